//! What a room gives out, on its way to its players.

use playfield_room::{AnyRoom, Error, EventHeader, Job, Link, Mail, Outlet, Result, Task};
use playfield_wire::ErrorCode;
use playfield_wire::server::{ServerMessage, write_event, write_reply};

use super::mail::{RoomAddress, ShardMail};
use super::rooms::{Home, Member, RoomSlot, Stage};
use super::{Net, Node};
use crate::slab::{Key, Slab};

/// What a message to a client is, and so what becomes of it where there is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A patch or a snapshot: not more than one waits.
    State,
    /// Past the outbox's limit, the connection is closed.
    Event,
    /// The answer to a request; bounded, since nothing is read while much waits.
    Reply(u32),
    /// Anything else that is said once.
    Notice,
}

/// One room's way out.
pub(super) struct RoomOutlet<'a> {
    members: &'a mut Slab<Member>,
    net: &'a mut Net,
    node: &'a Node,
    address: RoomAddress,
}

impl<'a> RoomOutlet<'a> {
    /// A room, and its way out.
    pub(super) fn split(
        slot: &'a mut RoomSlot,
        room: Key,
        net: &'a mut Net,
        node: &'a Node,
    ) -> (&'a mut dyn AnyRoom, Self) {
        let address = RoomAddress { shard: net.shard, room };
        (&mut *slot.room, Self { members: &mut slot.members, net, node, address })
    }

    fn say(&mut self, link: Link, kind: Kind, message: &ServerMessage<'_>) {
        let key = Key::from_bits(link.0);
        if let Some(member) = self.members.get_mut(key) {
            let format = member.format;
            self.net.send_to(member, (self.address, link.0), kind, |out| message.encode(format, out));
        }
    }
}

impl Outlet for RoomOutlet<'_> {
    fn reply(&mut self, link: Link, request: u32, payload: &[u8]) {
        if let Some(member) = self.members.get_mut(Key::from_bits(link.0)) {
            let format = member.format;
            let kind = Kind::Reply(request);
            self.net.send_to(member, (self.address, link.0), kind, |out| {
                write_reply(format, out, request, payload);
            });
        }
    }

    fn error(&mut self, link: Link, request: Option<u32>, error: &Error) {
        let Some(member) = self.members.get(Key::from_bits(link.0)) else { return };
        let room = if request.is_some() { None } else { Some(member.number) };
        let kind = request.map_or(Kind::Notice, Kind::Reply);
        let message = ServerMessage::Error { request, room, code: error.code(), text: error.text().into() };
        self.say(link, kind, &message);
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        let Some(member) = self.members.get_mut(Key::from_bits(link.0)) else { return };
        self.net.stats.events += 1;
        member.sequence += 1;
        let (format, number, sequence) = (member.format, member.number, member.sequence);
        let write = |out: &mut Vec<u8>| {
            write_event(format, out, number, sequence, event.version, event.index, event.name, payload);
        };
        if let Stage::Joining { events, .. } = &mut member.stage {
            // It follows `joined` and the snapshot.
            let waiting: usize = events.iter().map(Vec::len).sum();
            if waiting + payload.len() <= self.net.outbox_bytes_max {
                let mut bytes = Vec::new();
                write(&mut bytes);
                events.push(bytes);
            } else if let Home::Here(connection) = member.home {
                self.net.too_slow(connection);
            }
            return;
        }
        self.net.send_to(member, (self.address, link.0), Kind::Event, write);
    }

    fn removed(&mut self, link: Link, why: &Error) {
        let Some(member) = self.members.remove(Key::from_bits(link.0)) else { return };
        let format = member.format;
        let (code, text) = (why.code(), why.text());
        let message = match member.stage {
            // It has not been told that it is in, and so is told that it did not get in.
            Stage::Joining { request, .. } => {
                ServerMessage::Error { request: Some(request), room: None, code, text: text.into() }
            }
            Stage::Live => {
                ServerMessage::Left { request: None, room: member.number, code, text: text.into() }
            }
        };
        self.net.send_to(&member, (self.address, link.0), Kind::Notice, |out| message.encode(format, out));
        self.net.unseat(&member);
    }

    fn spawn(&mut self, task: u64, work: Task) {
        self.node.background.spawn(self.address, task, work);
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        self.node.background.compute(self.address, task, job)
    }

    fn post(&mut self, to: &str, mail: Mail) {
        let answer = |net: &mut Net, error: Error| {
            if let Mail::Asked { ask, .. } = &mail {
                let mail = Mail::Answered { ask: *ask, reply: Err(error) };
                net.letters[self.address.shard].push(ShardMail::Room { room: self.address.room, mail });
            }
        };
        let shard = match self.node.directory.find(to) {
            Ok(place) => place.shard,
            Err(error) => return answer(self.net, error),
        };
        let may_be_refused = !matches!(mail, Mail::Answered { .. });
        if may_be_refused && self.node.mailboxes.is_full(shard, self.net.letters[shard].len()) {
            log::warn!("a message for room {to} is dropped: mailbox_max letters wait for its shard");
            return answer(self.net, Error::new(ErrorCode::Busy, "the room's shard has too much waiting"));
        }
        self.net.letters[shard].push(ShardMail::ToRoom { id: to.to_owned(), mail });
    }
}

impl Net {
    /// Sends a message to a member, wherever the connection is.
    pub(super) fn send_to(
        &mut self,
        member: &Member,
        from: (RoomAddress, u64),
        kind: Kind,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        match member.home {
            Home::Here(connection) => self.hand_over(connection, kind, write),
            Home::Elsewhere { shard, connection } => {
                let mut bytes = Vec::new();
                write(&mut bytes);
                self.letters[shard].push(ShardMail::Deliver { connection, kind, bytes, from });
            }
        }
    }

    /// Puts a message to a connection of this shard. An event that would overflow the outbox closes the connection instead.
    pub(super) fn hand_over(&mut self, key: Key, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.is_open()) else {
            return;
        };
        self.pool.equip(connection);
        let mark = connection.mark();
        let format = connection.format();
        connection.put(format, write);
        if kind == Kind::Event && connection.unsent() > self.outbox_bytes_max {
            connection.take_back(mark);
            return self.too_slow(key);
        }
        Self::mark_dirty(&mut self.dirty, connection, key);
    }

    /// The documented outcome of events for one who does not read them.
    fn too_slow(&mut self, key: Key) {
        let text = format!("events for you overflowed outbox_bytes_max = {}", self.outbox_bytes_max);
        self.fail(key, ErrorCode::TooSlow, &text);
    }

    /// The session is not in that room any more.
    fn unseat(&mut self, member: &Member) {
        match member.home {
            Home::Here(connection) => {
                if let Some(session) = self.session(connection) {
                    session.seats.retain(|seat| seat.number != member.number);
                }
            }
            Home::Elsewhere { shard, connection } => {
                self.letters[shard].push(ShardMail::Removed { connection, number: member.number });
            }
        }
    }
}
