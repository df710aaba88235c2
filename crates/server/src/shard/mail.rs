//! What shards write to each other.

use mio::net::TcpStream;
use playfield_room::{Mail, Result};
use playfield_wire::Format;
use playfield_wire::message::MessageRef;

use super::Shard;
use super::connection::Connection;
use super::join::{JoinJob, NewSeat};
use super::outlet::Kind;
use super::rooms::Home;
use crate::auth::Identity;
use crate::slab::Key;

/// Where a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomAddress {
    pub(crate) shard: usize,
    pub(crate) room: Key,
}

/// A connection on its way to the shard of the room that it joins first.
pub(crate) struct Arrival {
    pub(super) connection: Connection,
    pub(super) job: JoinJob,
}

/// One who wants to join a room of another shard.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(super) home: Home,
    /// The number that the session has for the room.
    pub(super) number: u32,
    pub(super) format: Format,
    pub(super) identity: Identity,
    pub(super) schemas: Vec<(String, u64)>,
}

/// A message's name, on its way.
#[derive(Debug)]
pub(crate) enum Named {
    Index(u32),
    Name(String),
}

impl Named {
    pub(super) fn of(message: &MessageRef<'_>) -> Self {
        match message {
            MessageRef::Index(index) => Self::Index(*index),
            MessageRef::Name(name) => Self::Name(name.to_string()),
        }
    }

    fn as_ref(&self) -> MessageRef<'_> {
        match self {
            Self::Index(index) => MessageRef::Index(*index),
            Self::Name(name) => MessageRef::Name(name.as_str().into()),
        }
    }
}

/// A letter.
pub(crate) enum ShardMail {
    /// A socket that another shard accepted.
    Accepted(TcpStream),
    /// A connection that moves here, with its socket.
    Arrival(Box<Arrival>, TcpStream),
    /// Someone whose connection stays elsewhere joins a room here.
    Join { newcomer: Newcomer, job: JoinJob },
    /// The answer to that.
    Joined { connection: Key, request: u32, result: Result<Box<NewSeat>> },
    /// A member with a connection elsewhere goes.
    Leave { room: Key, member: u64 },
    /// A member with a connection elsewhere says something.
    Message { room: Key, member: u64, message: Named, payload: Vec<u8>, request: Option<u32> },
    /// A member with a connection elsewhere wants a snapshot.
    Resync { room: Key, member: u64 },
    /// The connection has taken the last patch: the next may come.
    Drained { room: Key, member: u64 },
    /// An encoded message for a connection here, from a room elsewhere.
    Deliver { connection: Key, kind: Kind, bytes: Vec<u8>, from: (RoomAddress, u64) },
    /// A room elsewhere took a member out.
    Removed { connection: Key, number: u32 },
    /// Mail for a room here.
    Room { room: Key, mail: Mail },
    /// Mail for a room here, by its id.
    ToRoom { id: String, mail: Mail },
    /// The node ends.
    End,
}

impl Shard {
    /// Handles a letter. Those that bring a socket are the event loop's, which calls [`Shard::accepted`] and [`Shard::arrived`].
    pub(crate) fn handle_mail(&mut self, letter: ShardMail) {
        match letter {
            ShardMail::Accepted(_) | ShardMail::Arrival(..) => {}
            ShardMail::Join { newcomer, job } => {
                let Home::Elsewhere { shard, connection } = newcomer.home else { return };
                let (number, request) = (newcomer.number, job.request);
                let index = self.index;
                let result = self.admit(newcomer, job).map(|(room, member, player)| {
                    Box::new(NewSeat { number, address: RoomAddress { shard: index, room }, member, player })
                });
                self.net.letters[shard].push(ShardMail::Joined { connection, request, result });
            }
            ShardMail::Joined { connection, request, result } => {
                self.joined_elsewhere(connection, request, result);
            }
            ShardMail::Leave { room, member } => self.member_left(room, member),
            ShardMail::Message { room, member, message, payload, request } => {
                self.message_from_elsewhere(room, member, &message.as_ref(), &payload, request);
            }
            ShardMail::Resync { room, member } => self.begin_again(room, member),
            ShardMail::Drained { room, member } => self.credit(room, member),
            ShardMail::Deliver { connection, kind, bytes, from } => {
                self.deliver(connection, kind, &bytes, from);
            }
            ShardMail::Removed { connection, number } => {
                if let Some(session) = self.net.session(connection) {
                    session.seats.retain(|seat| seat.number != number);
                }
            }
            ShardMail::Room { room, mail } => self.room_mail(room, mail),
            ShardMail::ToRoom { id, mail } => self.room_mail_by_id(&id, mail),
            ShardMail::End => self.end_all(),
        }
    }

    /// Hands a message from a room elsewhere to its connection.
    fn deliver(&mut self, key: Key, kind: Kind, bytes: &[u8], (address, member): (RoomAddress, u64)) {
        if let Kind::Reply(request) = kind
            && let Some(session) = self.net.session(key)
        {
            session.unanswered.remove(&request);
        }
        self.net.hand_over(key, kind, |out| out.extend_from_slice(bytes));
        if kind == Kind::State
            && let Some(connection) = self.net.connection(key)
        {
            if connection.blocked {
                connection.credits.push((address, member));
            } else {
                self.net.letters[address.shard].push(ShardMail::Drained { room: address.room, member });
            }
        }
    }
}
