//! A shard's work for its sessions that subscribe.

use std::borrow::Cow;
use std::sync::Arc;

use playfield_room::Error;
use playfield_wire::server::{self, MemberInfo, PastPublication, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::channel::{
    Backlog, Change, Member, Members, Past, PayloadKind, Publication, Pushed, Slow, Start, Waiting,
};
use crate::shard::connection::transport::Dialect;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::Session;
use crate::shard::session::outlet::Outlet;
use crate::shard::subscriptions::Stage;
use crate::shard::topics::Topics;
use crate::shard::topics::channels::{LocalChannel, Subscriber};

impl Topics {
    /// A publication for all subscribers of this shard.
    pub(crate) fn deliver_publication(
        &mut self,
        out: &mut Outlet<'_>,
        channel: u64,
        publication: &Publication,
    ) {
        let outbox_bytes_max = out.env.node.config.limits.session.outbox_bytes.max;
        let (topics, connections, env) = (&mut *self, &mut *out.links, &mut *out.env);
        let (channels, counters) = (&mut topics.channels, &mut env.counters);
        let frames = &mut channels.frames;
        let Some(local) = channels.local.get_mut(&channel) else { return };
        frames.clear();
        let (slow, queue_max) = (local.rule.when_slow(), local.rule.queue_max());
        let mut sent = 0;
        let mut full = Vec::new();
        for subscriber in &mut local.subscribers {
            if subscriber.backlog.is_none() {
                let write = |dialect, out: &mut Vec<u8>| {
                    let frame = frames.of(dialect, |format, out| {
                        publication.write(channel, format, out);
                    });
                    out.extend_from_slice(frame);
                    true
                };
                if connections.append_unless_blocked(subscriber.connection, false, write).is_some()
                {
                    sent += 1;
                    continue;
                }
            }
            let key = subscriber.connection;
            let backlog = subscriber.backlog.get_or_insert_default();
            let before = backlog.bytes();
            // All subscriptions of a connection share a limit.
            let others = connections.waiting_bytes(key).saturating_sub(before);
            let bytes_max = outbox_bytes_max.saturating_sub(others);
            match backlog.push(publication.clone(), slow, queue_max, bytes_max) {
                Pushed::Waits { dropped } => counters.publications_dropped += dropped as u64,
                Pushed::Full => full.push(key),
            }
            connections.waits(key, before, backlog.bytes());
        }
        connections.messages_out += sent;
        for connection in full {
            self.give_up(out, connection, channel, slow, queue_max);
        }
    }

    /// A subscriber is too slow for a channel.
    fn give_up(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        channel: u64,
        slow: Slow,
        queue_max: usize,
    ) {
        let text = format!("the channel's rule: more than {queue_max} publications wait");
        out.env.counters.publications_dropped += 1;
        if slow == Slow::Disconnect {
            return out.links.doom(out.env, key, ErrorCode::TooSlow, text);
        }
        self.end_subscription(out, key, channel);
        let (code, text) = (ErrorCode::TooSlow, text.into());
        out.send(key, &ServerMessage::Unsubscribed(server::Unsubscribed { channel, code, text }));
    }

    /// A change of the members, for those subscribers of this shard that want to know.
    pub(super) fn deliver_change(
        &mut self,
        out: &mut Outlet<'_>,
        channel: u64,
        change: &Arc<Change>,
    ) {
        let (topics, connections, sessions) = (&mut *self, &mut *out.links, &mut *out.sessions);
        let channels = &mut topics.channels;
        let frames = &mut channels.frames;
        let Some(local) = channels.local.get_mut(&channel) else { return };
        frames.clear();
        for subscriber in local.subscribers.iter_mut().filter(|of| of.wants_presence) {
            let key = subscriber.connection;
            let session = sessions.number(key);
            if session == Some(change.member.session) {
                continue;
            }
            if subscriber.backlog.is_none() {
                let write = |dialect, out: &mut Vec<u8>| {
                    let frame = frames.of(dialect, |format, out| {
                        presence(channel, change).encode(format, out);
                    });
                    out.extend_from_slice(frame);
                    true
                };
                if connections.append_unless_blocked(key, false, write).is_some() {
                    connections.messages_out += 1;
                    continue;
                }
            }
            subscriber.backlog.get_or_insert_default().push_change(change);
        }
    }

    /// A connection has drained: its subscriptions go on where they waited.
    pub(crate) fn catch_up_channels(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let Some(session) = out.sessions.get_mut(key) else { return };
        let Some(own) = session.channels() else { return };
        let places: Vec<(u64, usize)> = own
            .subscriptions
            .iter()
            .filter_map(|subscription| match subscription.stage {
                Stage::Live { channel, place } => Some((channel, place)),
                Stage::Pending { .. } | Stage::Away { .. } => None,
            })
            .collect();
        for (channel, place) in places {
            self.catch_up_channel(out, channel, place);
        }
    }

    /// Sends a subscriber what waits for it, as far as it takes it.
    fn catch_up_channel(&mut self, out: &mut Outlet<'_>, channel: u64, place: usize) {
        let (topics, connections) = (&mut *self, &mut *out.links);
        let channels = &mut topics.channels;
        let Some(local) = channels.local.get_mut(&channel) else { return };
        let Some(subscriber) = local.subscribers.get_mut(place) else { return };
        let Some(backlog) = subscriber.backlog.as_deref_mut() else { return };
        let key = subscriber.connection;
        let before = backlog.bytes();
        while let Some(waiting) = backlog.first() {
            let write = |dialect: Dialect, out: &mut Vec<u8>| {
                dialect.write_with(out, |out| match &waiting {
                    Waiting::Publication(publication) => {
                        publication.write(channel, dialect.format, out);
                    }
                    Waiting::Change(change) => {
                        presence(channel, change).encode(dialect.format, out);
                    }
                });
                true
            };
            if connections.append_unless_blocked(key, false, write).is_none() {
                break;
            }
            backlog.pop();
            connections.messages_out += 1;
        }
        connections.waits(key, before, backlog.bytes());
        if backlog.is_empty() {
            subscriber.backlog = None;
        }
    }

    /// The home has answered a session that subscribes.
    pub(super) fn subscribed(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        serial: u32,
        name: &Arc<str>,
        session: u64,
        start: Result<Start, Error>,
    ) {
        let own = out.sessions.get_mut(key).and_then(Session::channels);
        let subscriptions = own.map(|own| &mut own.subscriptions);
        let entry = subscriptions.and_then(|all| {
            let at = all.iter().position(|subscription| subscription.name == *name)?;
            Some((all, at))
        });
        let (waits, known) = match &entry {
            Some((all, at)) => match all[*at].stage {
                Stage::Pending { serial: of, request, wants_presence, .. } if of == serial => {
                    (Some((request, wants_presence)), true)
                }
                _ => (None, true),
            },
            None => (None, false),
        };
        let (Some((request, wants_presence)), Some((all, at))) = (waits, entry) else {
            // It has ended meanwhile, or its connection has.
            if let Ok(Start { channel, .. }) = start {
                self.mail_unsubscribe(out, name, channel, session, (true, !known));
            }
            return;
        };
        let start = match start {
            Ok(start) => start,
            Err(error) => {
                all.swap_remove(at);
                return out.refuse_request(key, Some(request), &error);
            }
        };
        let Ok(rule) = out.env.node.channel_rule(name).cloned() else { return };
        let mut start = start;
        let waiting = out.links.waiting_bytes(key);
        let outbox_bytes_max = out.env.node.config.limits.session.outbox_bytes.max;
        out.env.counters.publications_dropped += promise(&mut start, waiting, outbox_bytes_max);
        let Start { channel, epoch, offset, recovered, publications, members } = start;
        let new = || LocalChannel { rule: Arc::clone(&rule), subscribers: Vec::new() };
        let local = self.channels.local.entry(channel).or_insert_with(new);
        let place = local.subscribers.len();
        let backlog = Backlog::promised(publications);
        out.links.waits(key, 0, backlog.bytes());
        let backlog = (!backlog.is_empty()).then(|| Box::new(backlog));
        local.subscribers.push(Subscriber { connection: key, wants_presence, backlog });
        self.channels.subscriptions += 1;
        let Some(session) = out.sessions.get_mut(key) else { return };
        if let Some(own) = session.channels() {
            own.subscriptions[at].stage = Stage::Live { channel, place };
        }
        let may_know = session.asks(|asker| rule.may_see_members(asker, name));
        let message = ServerMessage::Subscribed(server::Subscribed {
            request,
            channel,
            epoch,
            offset,
            recovered,
            bytes: rule.payload_kind() == PayloadKind::Bytes,
            members: if may_know { members } else { 0 },
        });
        out.send(key, &message);
        self.catch_up_channel(out, channel, place);
    }
}

/// Leaves out of what a subscriber has missed the oldest that it may not have wait for it, because
/// `waiting` bytes of other channels do. It learns that something is lost. How many are left out.
fn promise(start: &mut Start, waiting: usize, bytes_max: usize) -> u64 {
    let mut bytes: usize = start.publications.iter().map(Publication::memory).sum();
    if waiting == 0 {
        return 0; // One channel is bounded by its rule.
    }
    let is_too_much = |publication: &&Publication| {
        let is_over = waiting + bytes > bytes_max;
        bytes -= publication.memory();
        is_over
    };
    let count = start.publications.iter().take_while(is_too_much).count();
    if let Some(last) = start.publications.drain(..count).next_back() {
        (start.offset, start.recovered) = (last.offset, false);
    }
    count as u64
}

fn presence(channel: u64, change: &Change) -> ServerMessage<'_> {
    let Change { sequence, joined, member } = change;
    ServerMessage::Presence(server::Presence {
        channel,
        sequence: *sequence,
        joined: *joined,
        session: member.session,
        user: member.user.as_deref().map(Cow::Borrowed),
        name: Cow::Borrowed(&member.name),
    })
}

impl Outlet<'_> {
    /// Answers a session that asked for the members.
    pub(super) fn list_members(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        members: &Members,
    ) {
        let Members { sequence, count, members } = members;
        let info = |member: &'_ Member| MemberInfo {
            session: member.session,
            user: member.user.as_deref().map(|user| Cow::Owned(user.to_owned())),
            name: Cow::Owned((*member.name).to_owned()),
        };
        let members = members.iter().map(info).collect();
        let (sequence, count) = (*sequence, *count);
        let message = ServerMessage::Members(server::Members { request, sequence, count, members });
        self.send(key, &message);
    }

    /// Answers a session that asked for past publications.
    pub(super) fn list_history(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        kind: PayloadKind,
        past: &Past,
    ) {
        let Some(format) = self.links.get(key).map(|connection| connection.dialect.format) else {
            return;
        };
        let publications = past
            .publications
            .iter()
            .map(|publication| PastPublication {
                offset: publication.offset,
                user: publication.user.as_deref().map(Cow::Borrowed),
                payload: publication.payload.written(format),
            })
            .collect();
        let (epoch, offset, bytes) = (past.epoch, past.offset, kind == PayloadKind::Bytes);
        let message =
            ServerMessage::History(server::History { request, epoch, offset, bytes, publications });
        self.send(key, &message);
    }

    pub(super) fn refuse_request(
        &mut self,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        error: &Error,
    ) {
        let (code, text) = (error.code(), error.text().into());
        let retry_after_ms = error.retry_after_ms();
        let message =
            ServerMessage::Error(server::Error { request, room: None, code, text, retry_after_ms });
        self.send(key, &message);
    }
}

impl Outlet<'_> {
    /// Answers a session that has published.
    pub(super) fn published(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        offset: Result<u64, Error>,
    ) {
        match offset {
            Ok(offset) => {
                self.send(key, &ServerMessage::Published(server::Published { request, offset }));
            }
            Err(error) => self.refuse_request(key, Some(request), &error),
        }
    }
}
