//! Sessions: the user behind a connection, and the rooms that they are in.

mod acknowledging;
pub(crate) mod allowance;
mod catch_up;
#[cfg(feature = "echo")]
mod echo;
pub(crate) mod greeting;
pub(crate) mod hello;
pub(crate) mod messages;
pub(crate) mod rates;
mod resume;
pub(crate) mod resumption;
pub(crate) mod round_trips;
mod ticket_holder;

use std::time::Duration;

use playfield_room::Claims;
use playfield_wire::{RequestNumber, RoomNumber};

use crate::room_id::RoomId;
use crate::shard::channels::SessionChannels;
use crate::shard::connection::patience::Patience;
use crate::shard::keys::Seat;
use crate::shard::mail::ACTS_MAX;
use crate::shard::session::allowance::Allowance;
use crate::shard::session::rates::Usage;
use crate::shard::session::resumption::Resumption;
use crate::shard::session::round_trips::RoundTrips;

/// What a client and the node know of each other after the hello.
pub(crate) struct Session {
    /// Its number, which other subscribers of its channels see.
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) claims: Claims,
    /// Its client came without a token, and may do nothing but join by tickets that name a user.
    pub(crate) tickets_only: bool,
    pub(crate) rooms: Vec<SessionRoom>,
    /// The number of the last room.
    pub(crate) rooms_numbered: u32,
    /// How much of its rates of messages and bytes it has used.
    pub(crate) usage: Usage,
    /// How many rooms it may make.
    pub(crate) creations: Allowance,
    /// How often it may ask for rooms by keys that no room has.
    pub(crate) misses: Allowance,
    /// How often it may list them.
    pub(crate) lists: Allowance,
    /// How often it may ask for schemas.
    pub(crate) schemas: Allowance,
    /// How many snapshots it may be sent in the room that it enters next: no more than were left in
    /// any that it left. Leaving and joining again does not reset the limit.
    pub(crate) snapshots: Allowance,
    /// How many bytes of events rooms hold that it is entering.
    pub(crate) entering_bytes: usize,
    /// It came from another shard. It does so once at most.
    pub(crate) moved: bool,
    /// Measures the round trip to its client; `None` if no room of the session asks for it.
    pub(crate) round_trips: Option<Box<RoundTrips>>,
    /// The channels that it has to do with; `None` if there never was one.
    pub(crate) channels: Option<Box<SessionChannels>>,
    /// What it needs to outlive its connection; `None` if it does not.
    pub(crate) resumption: Option<Box<Resumption>>,
}

impl Session {
    /// The client could send nothing since `since`, and is back: what waited may come at once.
    pub(crate) fn credit(&mut self, since: Duration, now: Duration) {
        self.usage.credit(since, now);
        let allowances =
            [&mut self.creations, &mut self.misses, &mut self.lists, &mut self.schemas];
        for allowance in allowances {
            allowance.credit(since, now);
        }
    }
}

/// A room that a session is in, or on its way into.
pub(crate) struct SessionRoom {
    pub(crate) number: RoomNumber,
    pub(crate) id: RoomId,
    /// The request to be answered by `joined`; `None` after that.
    pub(crate) request: Option<RequestNumber>,
    /// Where it sits; `None` until the room's shard said so.
    pub(crate) seat: Option<Seat>,
    /// How long the room lets the connection be silent, from when it sits.
    pub(crate) patience: Patience,
    /// How long the seat is kept when the connection is lost, from when it sits.
    pub(crate) grace: Duration,
    /// The `joined` is the counted message with this number; 0 before.
    pub(crate) joined_at: u64,
    /// Bytes from the room's shard whose writing is not confirmed yet.
    pub(crate) undelivered: usize,
    /// How many acts went to the room's shard that are not done.
    pub(crate) acts: u32,
    /// The request to leave that is on its way to the room's shard. The client may send the room
    /// nothing more.
    pub(crate) leaving: Option<RequestNumber>,
}

impl Session {
    /// The seat in the room with this number, if the client has joined it and is not leaving.
    #[inline]
    pub(crate) fn joined(&self, number: RoomNumber) -> Option<Seat> {
        let room = self.rooms.iter().find(|room| room.number == number)?;
        if room.request.is_none() && room.leaving.is_none() { room.seat } else { None }
    }

    /// The client has been sent `joined` for this room, as the last of its counted messages.
    pub(crate) fn told_joined(&mut self, number: RoomNumber) {
        let joined_at = self.resumption.as_deref().map_or(0, |resumption| resumption.log.sent());
        if let Some(room) = self.room_mut(number) {
            room.request = None;
            room.joined_at = joined_at;
        }
    }

    /// The ids of its rooms.
    pub(crate) fn ids(&self) -> Vec<RoomId> {
        self.rooms.iter().map(|room| room.id).collect()
    }

    /// The room in which this is its seat.
    pub(crate) fn room_at(&mut self, seat: Seat) -> Option<&mut SessionRoom> {
        self.rooms.iter_mut().find(|room| room.seat == Some(seat))
    }

    /// Whether more acts are on their way to some room than may be.
    pub(crate) fn has_acts_enough(&self) -> bool {
        self.rooms.iter().any(|room| room.acts >= ACTS_MAX)
    }

    pub(crate) fn room_mut(&mut self, number: RoomNumber) -> Option<&mut SessionRoom> {
        self.rooms.iter_mut().find(|room| room.number == number)
    }

    /// Whether a room had this number once.
    pub(crate) fn was_numbered(&self, number: RoomNumber) -> bool {
        (1..=self.rooms_numbered).contains(&number.0)
    }

    /// Whether it was in this room, and is not any more.
    pub(crate) fn has_left(&self, number: RoomNumber) -> bool {
        self.was_numbered(number) && self.rooms.iter().all(|room| room.number != number)
    }

    /// Whether this request waits for a `joined`.
    pub(crate) fn awaits_joined(&self, request: RequestNumber) -> bool {
        self.rooms.iter().any(|room| room.request == Some(request))
    }

    /// It has left a room, in which its limit of snapshots stood at `snapshots`.
    pub(crate) fn left(&mut self, number: RoomNumber, snapshots: Allowance) -> Option<SessionRoom> {
        self.snapshots = self.snapshots.least(snapshots);
        self.remove(number)
    }

    /// Takes a room out. A number that the client never heard of may be given again.
    pub(crate) fn remove(&mut self, number: RoomNumber) -> Option<SessionRoom> {
        let at = self.rooms.iter().position(|room| room.number == number)?;
        let room = self.rooms.swap_remove(at);
        RoundTrips::remove(&mut self.round_trips, number);
        if room.request.is_some() && number.0 == self.rooms_numbered {
            self.rooms_numbered -= 1;
        }
        Some(room)
    }
}
