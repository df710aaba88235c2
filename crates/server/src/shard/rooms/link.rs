//! The link of a member to its session: the one way by which a room's output reaches a client.
//!
//! On the room's own shard the link is the session's connection, and output goes into its outbox.
//! To a session of another shard, everything goes as [frames](crate::shard::frames), which leave in
//! the order in which they were appended. The session's shard confirms the bytes of messages when
//! it has passed them on; until then they count as unread, so a client that reads slowly is sent
//! one patch instead of many wherever its room is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::EventHeader;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use crate::addresses::Address;
use crate::config::Config;
use crate::shard::connection::{Connection, Kind, unread};
use crate::shard::frames::{Frame, Stay, ToSession, append_message};
use crate::shard::keys::{ConnectionKey, RoomKey};
use crate::shard::mail::Act;
use crate::shard::mail::member::ResumeCopy;
use crate::shard::outbound::Outbound;
use crate::shard::rooms::delivery::{Delivery, EVENT_HEADER_BYTES_MAX};
use crate::shard::rooms::member::Member;

/// The most bytes that may be on their way to a log, as a multiple of what it keeps.
const LOGS_ON_THE_WAY: usize = 16;

/// The link of a member to its session.
pub(crate) enum MemberLink {
    /// To a connection of the room's shard.
    Local(ConnectionKey),
    /// To a session of another shard.
    Remote(Box<RemoteLink>),
}

/// The link to a session of another shard.
pub(crate) struct RemoteLink {
    pub(crate) shard: u16,
    stay: Stay,
    /// Whether more waits for the client than its transport takes.
    pub(crate) blocked: bool,
    /// The bytes of messages that are not known to be passed on.
    unconfirmed: usize,
    /// The unconfirmed bytes appended before the turn of the last message, which is the turn
    /// `appended_in`.
    earlier: usize,
    appended_in: u64,
    /// Whether it is given up: too much was unconfirmed. If its session turns out to be away, it
    /// goes on, and what it was not sent meanwhile is lost.
    pub(crate) doomed: bool,
    /// Whether it takes only what is counted: its session has no connection, or is being resumed.
    pub(crate) held: bool,
    /// The address that its client connects from.
    pub(crate) address: Arc<Address>,
    /// The return of its client that waits for what brings the copy up to date, if one does.
    pub(crate) resume_copy: Option<ResumeCopy>,
    /// Acts that wait until its client has read more of what it was sent.
    pub(crate) waiting: VecDeque<Act<'static>>,
}

impl RemoteLink {
    pub(crate) fn new(shard: u16, stay: Stay, address: Arc<Address>) -> Self {
        Self {
            shard,
            stay,
            blocked: false,
            unconfirmed: 0,
            earlier: 0,
            appended_in: 0,
            doomed: false,
            held: false,
            address,
            resume_copy: None,
            waiting: VecDeque::new(),
        }
    }

    pub(crate) fn connection(&self) -> ConnectionKey {
        self.stay.connection
    }

    /// Returns whether the client has yet to read something: the transport is full, or messages of earlier
    /// turns are not known to be passed on.
    pub(crate) fn is_behind(&self, turn: u64) -> bool {
        let unconfirmed = if self.appended_in == turn { self.earlier } else { self.unconfirmed };
        self.blocked || unconfirmed > 0
    }

    /// Returns whether more than `high_bytes` wait for the client.
    pub(crate) fn is_loaded(&self, high_bytes: usize) -> bool {
        self.unconfirmed > high_bytes
    }

    /// The session's shard has passed on this many bytes of messages, and the transport is empty.
    pub(crate) fn confirm(&mut self, bytes: usize) {
        self.blocked = false;
        self.unconfirmed = self.unconfirmed.saturating_sub(bytes);
        self.earlier = self.earlier.saturating_sub(bytes);
    }

    pub(crate) fn put(&self, outbound: &mut Outbound, what: ToSession<'_>) {
        outbound.frames(self.shard, |out| Frame::Session(self.stay, what).append(out));
    }

    /// Appends a message, which is what `write` appends, or nothing if it answers `false`.
    fn append(
        &mut self,
        outbound: &mut Outbound,
        turn: u64,
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let appended =
            outbound.frames(self.shard, |out| append_message(out, self.stay, kind, write));
        self.count(turn, appended.unwrap_or(0));
        appended.is_some()
    }

    fn count(&mut self, turn: u64, bytes: usize) {
        if std::mem::replace(&mut self.appended_in, turn) != turn {
            self.earlier = self.unconfirmed;
        }
        self.unconfirmed += bytes;
    }
}

/// The bytes that may be on their way to the log of a session without a connection: more than the
/// log keeps, since it keeps the newest.
fn held_bytes_max(config: &Config) -> usize {
    config
        .limits
        .session
        .outbox_bytes
        .max
        .saturating_add(config.limits.session.resume_bytes.saturating_mul(LOGS_ON_THE_WAY))
}

impl Delivery<'_> {
    /// Appends a message to a member's link, which is what `write` appends.
    #[inline]
    pub(crate) fn write(
        &mut self,
        room: RoomKey,
        member: &mut Member,
        kind: Kind,
        write: impl FnOnce(Format, &mut Vec<u8>),
    ) {
        let mut bytes = 0;
        let write = |format, out: &mut Vec<u8>| {
            let start = out.len();
            write(format, out);
            bytes = out.len() - start;
        };
        match &mut member.link {
            MemberLink::Local(connection) => self.outlet().write(*connection, kind, write),
            MemberLink::Remote(link) if link.held && kind == Kind::Fleeting => return,
            MemberLink::Remote(link) => {
                link.append(self.outbound, self.env.turn, kind, |out| {
                    write(member.format, out);
                    true
                });
            }
        }
        self.queues.traffic.sent(room, bytes);
    }

    /// Appends a message to a member's link.
    pub(crate) fn send(&mut self, room: RoomKey, member: &mut Member, message: &ServerMessage<'_>) {
        let kind = Kind::of(message, Some(member.number));
        self.write(room, member, kind, |format, out| message.encode(format, out));
    }

    /// Appends `joined`: from here on the client may speak to the room.
    pub(crate) fn send_joined(
        &mut self,
        room: RoomKey,
        member: &mut Member,
        joined: &ServerMessage<'_>,
    ) {
        match &mut member.link {
            MemberLink::Local(connection) => {
                let connection = *connection;
                self.send(room, member, joined);
                self.sessions.told_joined(connection, member.number);
            }
            MemberLink::Remote(link) => {
                let mut body = Vec::new();
                joined.encode(member.format, &mut body);
                link.count(self.env.turn, body.len());
                link.put(self.outbound, ToSession::Joined(&body));
                self.queues.traffic.sent(room, body.len());
            }
        }
    }

    /// Appends an event, unless the member's client is too slow for it; then the connection is
    /// given up.
    #[inline]
    pub(crate) fn event(
        &mut self,
        room: RoomKey,
        member: &mut Member,
        event: EventHeader,
        payload: &[u8],
    ) {
        member.events += 1;
        if !self.has_space(&member.link, payload.len() + EVENT_HEADER_BYTES_MAX) {
            if let MemberLink::Remote(link) = &member.link {
                link.put(self.outbound, ToSession::Lost);
            }
            return self.doom(&mut member.link, true);
        }
        let (number, sequence) = (member.number, member.events);
        // The room's own version would tell of syncs that changed nothing for this player.
        let version = member.latest();
        self.write(room, member, Kind::Counted(Some(number)), |format, out| {
            let EventHeader { index, name, .. } = event;
            server::write_event(format, out, number, sequence, version, index, name, payload);
        });
    }

    /// Appends a patch, which is what `write` appends if it answers `true`. If earlier output is on
    /// its way, nothing is appended without `force`, and the answer is `None`; the member
    /// [catches up](crate::shard::rooms::host::RoomHost::catch_up) later.
    #[inline]
    pub(crate) fn append_unless_behind(
        &mut self,
        link: &mut MemberLink,
        force: bool,
        mut write: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Option<bool> {
        match link {
            MemberLink::Local(connection) => {
                self.links.append_unless_blocked(*connection, force, |dialect, out| {
                    let mut changed = false;
                    dialect.write_with(out, |out| changed = write(out));
                    changed
                })
            }
            MemberLink::Remote(link) => {
                let turn = self.env.turn;
                if (link.is_behind(turn) && !force) || link.held {
                    return None;
                }
                Some(link.append(self.outbound, turn, Kind::Fleeting, write))
            }
        }
    }

    /// Returns whether earlier output is still on its way to a member's client.
    pub(crate) fn is_behind(&mut self, link: &MemberLink) -> bool {
        match link {
            MemberLink::Local(connection) => self.links.lags(*connection),
            MemberLink::Remote(link) => link.is_behind(self.env.turn) || link.held,
        }
    }

    /// Returns whether too much waits for a member's client for a snapshot to follow it. When the client
    /// has read it, the member [catches up](crate::shard::rooms::host::RoomHost::catch_up).
    pub(crate) fn is_loaded(&mut self, link: &MemberLink) -> bool {
        match link {
            MemberLink::Local(connection) => self.links.is_loaded(*connection),
            MemberLink::Remote(link) => {
                link.is_loaded(self.env.node.config.limits.session.outbox_bytes.high)
            }
        }
    }

    /// Returns whether there is space for `bytes` more on the way to a member's client. An empty way takes
    /// any message.
    pub(crate) fn has_space(&self, link: &MemberLink, bytes: usize) -> bool {
        let config = &self.env.node.config;
        let (waiting, bytes_max) = match link {
            MemberLink::Local(key) => (
                self.links.get(*key).map_or(0, Connection::unsent),
                config.limits.session.outbox_bytes.max,
            ),
            MemberLink::Remote(link) if link.held => (link.unconfirmed, held_bytes_max(config)),
            MemberLink::Remote(link) => (link.unconfirmed, config.limits.session.outbox_bytes.max),
        };
        waiting == 0 || waiting + bytes <= bytes_max
    }

    /// Returns whether a member's session takes only what is counted.
    pub(crate) fn is_held(&self, link: &MemberLink) -> bool {
        match link {
            MemberLink::Local(connection) => self.links.is_held(*connection),
            MemberLink::Remote(link) => link.held,
        }
    }

    /// Counts a change of the events held for a member at the connection of its session.
    pub(crate) fn holds(&mut self, member: &Member, before: usize, after: usize) {
        match &member.link {
            MemberLink::Local(connection) => {
                let stay = Stay { connection: *connection, room: member.number };
                self.outlet().holds_events(stay, before, after);
            }
            MemberLink::Remote(link) => {
                link.put(self.outbound, ToSession::Holds { before, after });
            }
        }
    }

    /// Charges a member's client for work that was done for it alone.
    pub(crate) fn charge(&mut self, link: &MemberLink, time: Duration) {
        match link {
            MemberLink::Local(connection) => self.links.charge(*connection, self.env.now, time),
            MemberLink::Remote(_) if time == Duration::ZERO => {}
            MemberLink::Remote(link) => {
                link.put(self.outbound, ToSession::Took(time));
            }
        }
    }

    /// Gives up a member's connection: too much waits for it. `unless_away`: a session that turns
    /// out to have no connection goes on.
    pub(crate) fn doom(&mut self, link: &mut MemberLink, unless_away: bool) {
        if let MemberLink::Remote(link) = link
            && std::mem::replace(&mut link.doomed, true)
        {
            return;
        }
        let (code, text) = unread(&self.env.node.config);
        self.close(link, code, text, unless_away);
    }

    /// Has the connection of a member closed.
    pub(crate) fn close(
        &mut self,
        link: &MemberLink,
        code: ErrorCode,
        text: String,
        unless_away: bool,
    ) {
        match link {
            MemberLink::Local(connection) => self.links.doom(self.env, *connection, code, text),
            MemberLink::Remote(link) => {
                let doom = ToSession::Doom { code, text: &text, unless_away };
                link.put(self.outbound, doom);
            }
        }
    }

    /// The last of a link: the session has left the room. `answered` is the request to leave that
    /// was answered, if it was one.
    pub(crate) fn leave(&mut self, member: &Member, answered: Option<RequestNumber>) {
        let Member { link, number, snapshots, .. } = member;
        match link {
            MemberLink::Local(connection) => {
                if let Some(session) = self.sessions.get_mut(*connection) {
                    session.left(*number, *snapshots);
                }
            }
            MemberLink::Remote(link) => {
                let snapshots = snapshots.remaining(self.env.now);
                let left = ToSession::Left { snapshots, answered };
                link.put(self.outbound, left);
            }
        }
    }
}
