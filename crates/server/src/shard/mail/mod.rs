//! Messages between shards.

pub(crate) mod channel;
pub(crate) mod device;
pub(crate) mod join;
pub(crate) mod member;
pub(crate) mod parcel;
pub(crate) mod resume;
pub(crate) mod user;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Held, Mail, SeatFor};
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;

use crate::addresses::Address;
use crate::auth::Decided;
use crate::background::Begin;
use crate::channel::Publication;
use crate::cluster::keeping::Claim;
use crate::cluster::seeking::{Seek, Sought};
use crate::founding::Founding;
use crate::handle::operated::{Inspect, Operate, Search, Survey};
use crate::handle::profile::Capturing;
use crate::handle::recordings::Forked;
use crate::room_id::RoomId;
use crate::shard::keys::{ConnectionKey, RoomKey, Seat};
use crate::shard::mail::channel::ChannelMail;
use crate::shard::mail::device::DeviceMail;
use crate::shard::mail::join::{JoinRequest, Joiner};
use crate::shard::mail::member::ToMember;
use crate::shard::mail::parcel::{PutIn, TakeOut};
use crate::shard::mail::user::UserMail;
use crate::shard::work::Host;

/// A message from one shard to another, or from the background to a shard.
pub(crate) enum ShardMail {
    /// To the room's shard: a session of another shard joins.
    Join { joiner: Box<Joiner>, join: Box<JoinRequest> },
    /// To the room's shard: what a session of that shard says to a member.
    Member(Seat, ToMember<'static>),
    /// To the session's shard: the room, or its shard, did not agree.
    Refused { connection: ConnectionKey, join: Box<JoinRequest>, error: Error },
    /// To the session's shard: where the room of a join is.
    Sought { seek: Box<Seek>, sought: Sought },
    /// To the room's shard: news of the claim of its key.
    Claim { room: RoomId, claim: Claim },
    /// To a shard that has seen the end of the node's lease: it was renewed.
    LeaseRenewed,
    /// To a connection's shard: the slot of the node that has the session which its client wants;
    /// `None` if none has.
    SessionSought { connection: ConnectionKey, session: u64, slot: Option<u16> },
    /// [Frames](crate::shard::frames) of rooms and sessions of another shard.
    Frames(Vec<u8>),
    /// To other shards: an address holds too much memory. If it still does, the connections that
    /// hold the most have to go.
    Relieve(Arc<Address>),
    /// To the room's shard: mail from another room, or from outside.
    Post { to: RoomId, mail: Mail },
    /// To the room's shard: someone outside ends the room.
    Close { room: RoomId, text: String },
    /// To a service's shard: the answer to its request to a room.
    Answered { service: u16, ask: u64, reply: Result<Vec<u8>, Error> },
    /// To the room's shard: an operator looks at a room.
    Inspect(Box<Inspect>),
    /// To the room's shard: an operator begins or ends a profile of a room.
    Capture(Box<Capturing>),
    /// To the rooms' shard: an operator looks at a list.
    Survey(Box<Survey>),
    /// To the rooms' shard: an operator looks for players.
    Search(Box<Search>),
    /// To the room's shard: an operator does something to a room.
    Operate(Box<Operate>),
    /// To the room's shard: the room is to move to another node.
    TakeOut(Box<TakeOut>),
    /// To a shard: a room comes from another node, or comes back.
    PutIn(Box<PutIn>),
    /// To the shard of a new room: it is a fork of a recorded one.
    Fork(Box<Forked>),
    /// To the room's shard: a seat is to be reserved, and the request from outside with this number
    /// answered.
    Reserve { room: RoomId, who: SeatFor, wait: Duration, answers: u64 },
    /// To the room's shard: create a room.
    Found(Box<Founding>),
    /// To the connection's shard: the authenticator has decided. The number is that of the
    /// [`Underway`](crate::background::Underway).
    Authenticated { connection: ConnectionKey, decision: u64, decided: Box<Decided> },
    /// To the home of a channel: a session subscribes no longer, if `live`, and is a member no
    /// longer, if it `leaves`. Many leave at once, so these are in no memory of their own, which
    /// another thread would have to free.
    Unsubscribe { channel: u64, shard: u16, session: u64, live: bool, leaves: bool },
    /// Between the home of a channel and a shard whose sessions use it.
    Channel(Box<ChannelMail>),
    /// To shards with subscribers: a publication of the channel with this number.
    Publication { channel: u64, publication: Publication },
    /// To the shard of devices' connections.
    Device(DeviceMail),
    /// To the shard of a user's session.
    User(UserMail),
    /// To the room's shard: its background work ended.
    Finished { room: RoomKey, mail: Mail },
    /// Of a journaled room, to its own shard: this is sent now.
    Held { room: RoomId, held: Held },
    /// From a journaled room, to its own shard: background work begins now.
    Begin(Begin),
    /// From a journaled room, to its own shard: the shard creates a room now.
    Create { shard: u16, founding: Box<Founding> },
    /// Of a journaled room, to its own shard: the request from outside with this number is
    /// answered.
    Answer { answers: u64, answer: Result<Vec<u8>, Error> },
    /// From a journaled room, to its own shard: the journal has the room's end, so its id and key
    /// are free.
    Ended(RoomId),
}

impl ShardMail {
    /// Returns whether code outside of rooms sent it, and it may change a room or create one.
    pub(in crate::shard) fn is_from_outside(&self) -> bool {
        match self {
            Self::Post { mail: Mail::Told { from, .. } | Mail::Asked { from, .. }, .. } => {
                from.is_none()
            }
            Self::Found(founding) => founding.answers.is_some(),
            Self::Close { .. } | Self::Operate(_) | Self::Reserve { .. } => true,
            _ => false,
        }
    }

    /// The address of the client that caused it, if it names one. [Frames](Self::Frames) name their
    /// members instead.
    pub(in crate::shard) fn payer(&self) -> Option<Host> {
        match self {
            Self::Join { joiner, .. } => Some(Host(Arc::clone(&joiner.address))),
            Self::Found(founding) => founding.founder.host().cloned(),
            Self::Channel(mail) => mail.creator().map(|address| Host(Arc::clone(address))),
            _ => None,
        }
    }
}

/// The most acts of one member that may be on their way to its room, or wait there, before nothing
/// more is read from its client.
pub(crate) const ACTS_MAX: u32 = 64;

/// An action of a member.
#[derive(Debug, PartialEq)]
pub(crate) enum Act<'a> {
    Message { message: MessageRef<'a>, payload: Cow<'a, [u8]>, request: Option<RequestNumber> },
    Leave { request: RequestNumber },
    Resync,
}

impl Act<'_> {
    /// The act, to be done later.
    pub(crate) fn into_owned(self) -> Act<'static> {
        match self {
            Self::Message { message, payload, request } => {
                let message = match message {
                    MessageRef::Index(index) => MessageRef::Index(index),
                    MessageRef::Name(name) => MessageRef::Name(Cow::Owned(name.into_owned())),
                };
                Act::Message { message, payload: Cow::Owned(payload.into_owned()), request }
            }
            Self::Leave { request } => Act::Leave { request },
            Self::Resync => Act::Resync,
        }
    }
}
