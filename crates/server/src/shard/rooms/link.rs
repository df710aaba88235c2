//! The link of a member to its session: the one way by which a room's output reaches a client.
//!
//! On the room's own shard the link is the session's connection, and output goes into its outbox.
//! To a session of another shard, everything goes as [frames](crate::shard::frames), which leave in
//! the order in which they were appended. The session's shard confirms the bytes of messages when
//! it has passed them on; until then they count as unread, so a client that reads slowly is sent
//! one patch instead of many wherever its room is.

use std::time::Duration;

use playfield_room::EventHeader;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use crate::shard::connection::{Connection, Kind, unread};
use crate::shard::frames::{Stay, ToSession};
use crate::shard::keys::{ConnectionKey, RoomKey};
use crate::shard::rooms::delivery::{Delivery, EVENT_HEADER_BYTES_MAX};
use crate::shard::rooms::member::Member;
pub(crate) use crate::shard::rooms::remote_link::RemoteLink;

/// The link of a member to its session.
pub(crate) enum MemberLink {
    /// To a connection of the room's shard.
    Local(ConnectionKey),
    /// To a session of another shard.
    Remote(Box<RemoteLink>),
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
        self.write_within(room, member, kind, None, write);
    }

    /// Appends a message to a member's link, unless there is no space for so many `bytes`. Returns
    /// whether there is. An empty way takes any message.
    #[inline]
    fn write_within(
        &mut self,
        room: RoomKey,
        member: &mut Member,
        kind: Kind,
        bytes: Option<usize>,
        write: impl FnOnce(Format, &mut Vec<u8>),
    ) -> bool {
        let config = &self.env.node.config;
        let mut written = 0;
        let write = |format, out: &mut Vec<u8>| {
            let start = out.len();
            write(format, out);
            written = out.len() - start;
        };
        match &mut member.link {
            MemberLink::Local(connection) => {
                let Some(outbox) = self.links.outbox(*connection) else { return true };
                let bytes_max = config.limits.session.outbox_bytes.max;
                let waiting = outbox.connection.unsent();
                if bytes.is_some_and(|bytes| !has_space(waiting, bytes, bytes_max)) {
                    return false;
                }
                self.sessions.write(config, outbox, kind, write);
            }
            MemberLink::Remote(link) => {
                if bytes.is_some_and(|bytes| !link.has_space(config, bytes)) {
                    return false;
                }
                if link.held && kind == Kind::Fleeting {
                    return true;
                }
                link.append(self.outbound, self.env.turn, kind, |out| {
                    write(member.format, out);
                    true
                });
            }
        }
        self.queues.traffic.sent(room, written);
        true
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
                if let ServerMessage::Joined(server::Joined { room_type, .. }) = joined {
                    outlet!(self).switch(connection, room_type, &[]);
                }
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
        let (number, sequence) = (member.number, member.events);
        // The room's own version would tell of syncs that changed nothing for this player.
        let version = member.latest();
        let (kind, bytes) = (Kind::Counted(Some(number)), payload.len() + EVENT_HEADER_BYTES_MAX);
        let has_space = self.write_within(room, member, kind, Some(bytes), |format, out| {
            let EventHeader { index, name, .. } = event;
            server::write_event(format, out, number, sequence, version, index, name, payload);
        });
        if !has_space {
            self.lose_event(member);
        }
    }

    /// Gives up a member's connection: too much waits for it to be sent an event.
    #[cold]
    fn lose_event(&mut self, member: &mut Member) {
        if let MemberLink::Remote(link) = &member.link {
            link.put(self.outbound, ToSession::Lost);
        }
        self.doom(&mut member.link, true);
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

    /// Returns whether too much waits for a member's client for a snapshot to follow it. When the
    /// client has read it, the member [catches up](crate::shard::rooms::host::RoomHost::catch_up).
    pub(crate) fn is_loaded(&mut self, link: &MemberLink) -> bool {
        match link {
            MemberLink::Local(connection) => self.links.is_loaded(*connection),
            MemberLink::Remote(link) => {
                link.is_loaded(self.env.node.config.limits.session.outbox_bytes.high)
            }
        }
    }

    /// Returns whether there is space for more on the way to a member's client.
    pub(crate) fn has_space(&self, link: &MemberLink) -> bool {
        let config = &self.env.node.config;
        match link {
            MemberLink::Local(key) => {
                let waiting = self.links.get(*key).map_or(0, Connection::unsent);
                has_space(waiting, 0, config.limits.session.outbox_bytes.max)
            }
            MemberLink::Remote(link) => link.has_space(config, 0),
        }
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

/// Returns whether there is space for `bytes` more where so many wait. An empty way takes any
/// message.
#[inline]
pub(super) fn has_space(waiting: usize, bytes: usize, bytes_max: usize) -> bool {
    waiting == 0 || waiting + bytes <= bytes_max
}
