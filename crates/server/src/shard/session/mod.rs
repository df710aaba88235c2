//! Sessions: the user behind a connection, and the rooms that they are in.

mod acknowledging;
mod arrival;
pub(crate) mod by_number;
pub(crate) mod closing;
mod echo;
pub(crate) mod ending;
mod examining;
pub(crate) mod greeting;
pub(crate) mod hello;
mod http;
pub(crate) mod input;
pub(crate) mod messages;
pub(crate) mod moving;
pub(crate) mod outlet;
mod patience;
pub(crate) mod rates;
mod relief;
mod remote;
mod resume;
pub(crate) mod resuming;
pub(crate) mod resumption;
pub(crate) mod round_trips;
mod service;
pub(crate) mod sessions;
mod staying;
pub(crate) mod switches;
pub(crate) mod ticket;
mod ticket_holder;

use std::time::Duration;

use playfield_room::Claims;
use playfield_wire::{RequestNumber, RoomNumber};

use crate::auth::Identity;
use crate::room_id::RoomId;
use crate::shard::allowance::Allowance;
use crate::shard::connection::patience::Patience;
use crate::shard::keys::Seat;
use crate::shard::mail::ACTS_MAX;
use crate::shard::session::rates::{Refused, Usage};
use crate::shard::session::resumption::Resumption;
use crate::shard::session::round_trips::RoundTrips;
use crate::shard::session::switches::Switches;
use crate::shard::session::ticket::PendingTicket;
use crate::shard::subscriptions::SessionChannels;

/// A session: the state that a client and the node share after the hello.
pub(crate) struct Session {
    /// Its number, which other subscribers of its channels see.
    pub(crate) number: u64,
    pub(crate) rooms: Vec<SessionRoom>,
    /// The usage of its rates of messages and bytes.
    pub(crate) usage: Usage,
    /// `None` as long as all of it is as for an idle guest.
    pub(crate) extras: Option<Box<Extras>>,
    /// The state that it needs to outlive its connection; `None` if it does not outlive it.
    pub(crate) resumption: Option<Resumption>,
}

/// The parts of a session that an idle guest does not have.
#[derive(Default)]
pub(crate) struct Extras {
    /// `None` for a guest without a name.
    identity: Option<Box<Identity>>,
    /// The number of the last room.
    pub(crate) rooms_numbered: u32,
    /// Whether it came from another shard. A session moves once at most.
    pub(crate) moved: bool,
    pub(crate) allowances: Allowances,
    /// Messages other than requests that came too fast; `None` if there never were any.
    pub(crate) refused: Option<Box<Refused>>,
    /// The bytes of events held by rooms that it is entering.
    pub(crate) entering_bytes: usize,
    /// Measures the round trip to its client; `None` if no room of the session asks for it.
    pub(crate) round_trips: Option<Box<RoundTrips>>,
    /// Users by whose tickets it has joined rooms, and who are not its own.
    pub(crate) ticket_users: Vec<Box<str>>,
    /// The ticket about whose user is being decided.
    pub(crate) ticket: Option<Box<PendingTicket>>,
    /// The channels that it has to do with; `None` if there never was one.
    pub(crate) channels: Option<Box<SessionChannels>>,
    /// The changes of schemas that its client has not confirmed; `None` if there are none.
    pub(crate) switches: Option<Box<Switches>>,
    /// The number of schemas that its client was sent without asking, if it ends with its
    /// connection.
    pub(crate) unasked_schemas: u64,
}

impl Extras {
    /// Returns whether nothing keeps the session on its shard.
    pub(crate) fn may_move(&self) -> bool {
        !self.moved && self.channels.is_none() && self.ticket.is_none()
    }
}

/// The allowances of a session for what costs the whole node something.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowances {
    /// The allowance for making rooms.
    pub(crate) creations: Allowance,
    /// The allowance for asking for rooms by keys that no room has.
    pub(crate) misses: Allowance,
    /// The allowance for listing rooms.
    pub(crate) lists: Allowance,
    /// The allowance for asking for schemas.
    pub(crate) schemas: Allowance,
    /// The allowance for its client to come back to it.
    pub(crate) resumes: Allowance,
    /// The allowance of snapshots in the room that it enters next: no more than were left in any
    /// that it left. Leaving and joining again does not reset the limit.
    pub(crate) snapshots: Allowance,
}

impl Session {
    /// The client could send nothing since `since`, and is back: what waited may come at once.
    pub(crate) fn credit(&mut self, since: Duration, now: Duration) {
        self.usage.credit(since, now);
        let Some(extras) = self.extras.as_deref_mut() else { return };
        let used = &mut extras.allowances;
        for allowance in [&mut used.creations, &mut used.misses, &mut used.lists, &mut used.schemas]
        {
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
    /// The session's seat; `None` until the room's shard said so.
    pub(crate) seat: Option<Seat>,
    /// The time that the room lets the connection be silent, from when it sits.
    pub(crate) patience: Patience,
    /// The time that the seat is kept when the connection is lost, from when it sits.
    pub(crate) grace: Duration,
    /// The `joined` is the counted message with this number; 0 before, and where it was lost: then
    /// the client never learns of it, and the session leaves the room.
    pub(crate) joined_at: u64,
    /// Bytes from the room's shard whose writing is not confirmed yet.
    pub(crate) undelivered: usize,
    /// Set while a room of another shard knows that the client is blocked.
    pub(crate) told_blocked: bool,
    /// The number of acts that went to the room's shard and are not done.
    pub(crate) acts: u32,
    /// The request to leave that is on its way to the room's shard. The client may send the room
    /// nothing more.
    pub(crate) leaving: Option<RequestNumber>,
}

impl SessionRoom {
    /// A room that the session had joined in another process, by the counted message with this
    /// number.
    pub(in crate::shard) fn joined_before(number: RoomNumber, id: RoomId, joined_at: u64) -> Self {
        Self { joined_at, ..Self::entering(number, id, None) }
    }

    /// A room without a seat yet.
    pub(in crate::shard) fn entering(
        number: RoomNumber,
        id: RoomId,
        request: Option<RequestNumber>,
    ) -> Self {
        Self {
            number,
            id,
            request,
            seat: None,
            patience: Patience::ALL,
            grace: Duration::MAX,
            joined_at: 0,
            undelivered: 0,
            told_blocked: false,
            acts: 0,
            leaving: None,
        }
    }
}

impl Session {
    /// A session in no room.
    pub(crate) fn new(number: u64, identity: Identity, resumption: Option<Resumption>) -> Self {
        let Identity { name, user, claims, tickets_only } = &identity;
        let is_nobody = name.is_empty() && user.is_none() && claims.is_empty() && !tickets_only;
        let extras = || Extras { identity: Some(Box::new(identity)), ..Extras::default() };
        Self {
            number,
            rooms: Vec::new(),
            usage: Usage::default(),
            extras: (!is_nobody).then(|| Box::new(extras())),
            resumption,
        }
    }

    pub(in crate::shard) fn identity(&self) -> Option<&Identity> {
        self.extras.as_deref()?.identity.as_deref()
    }

    /// The display name; may be empty.
    pub(crate) fn name(&self) -> &str {
        self.identity().map_or("", |identity| &identity.name)
    }

    /// The user's id, if that is known.
    pub(crate) fn user(&self) -> Option<&str> {
        self.identity()?.user.as_deref()
    }

    /// Returns whether its client came without a token, and may only join by tickets that name a
    /// user.
    pub(crate) fn is_tickets_only(&self) -> bool {
        self.identity().is_some_and(|identity| identity.tickets_only)
    }

    /// The claims of the token about its user.
    pub(crate) fn claims(&self) -> Claims {
        self.identity().map_or_else(Claims::default, |identity| identity.claims.clone())
    }

    /// The parts that an idle guest does not have, if it has any.
    pub(crate) fn extras(&self) -> Option<&Extras> {
        self.extras.as_deref()
    }

    /// Like [`extras`](Self::extras), to add something.
    pub(crate) fn extras_mut(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }

    /// The allowances as far as they are left.
    pub(crate) fn allowances(&self) -> Allowances {
        self.extras().map_or_else(Allowances::default, |extras| extras.allowances)
    }

    /// Like [`allowances`](Self::allowances), to take some.
    pub(crate) fn allowances_mut(&mut self) -> &mut Allowances {
        &mut self.extras_mut().allowances
    }

    /// Measures the round trip to its client, if a room of the session asks for it.
    pub(crate) fn round_trips(&mut self) -> Option<&mut RoundTrips> {
        self.extras.as_deref_mut()?.round_trips.as_deref_mut()
    }

    /// The channels that it has to do with, if there ever was one.
    pub(crate) fn channels(&mut self) -> Option<&mut SessionChannels> {
        self.extras.as_deref_mut()?.channels.as_deref_mut()
    }

    /// The seat in the room with this number, if the client has joined it and is not leaving.
    #[inline]
    pub(crate) fn joined(&self, number: RoomNumber) -> Option<Seat> {
        let room = self.rooms.iter().find(|room| room.number == number)?;
        if room.request.is_none() && room.leaving.is_none() { room.seat } else { None }
    }

    /// The seat in the room with this number, if the client may send it a message, or a request with
    /// this number.
    #[inline]
    pub(crate) fn seat_to_send(
        &self,
        number: RoomNumber,
        request: Option<RequestNumber>,
    ) -> Option<Seat> {
        let seat = self.joined(number)?;
        request.is_none_or(|request| !self.awaits_joined(request)).then_some(seat)
    }

    /// The client has been sent `joined` for this room, as the last of its counted messages.
    pub(crate) fn told_joined(&mut self, number: RoomNumber) {
        let joined_at = self.resumption.as_ref().map_or(0, |resumption| resumption.log.sent());
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

    /// Returns whether more acts are on their way to some room than may be.
    pub(crate) fn has_acts_enough(&self) -> bool {
        self.rooms.iter().any(|room| room.acts >= ACTS_MAX)
    }

    pub(crate) fn room_mut(&mut self, number: RoomNumber) -> Option<&mut SessionRoom> {
        self.rooms.iter_mut().find(|room| room.number == number)
    }

    /// Returns whether a room had this number once.
    pub(crate) fn was_numbered(&self, number: RoomNumber) -> bool {
        self.extras().is_some_and(|extras| (1..=extras.rooms_numbered).contains(&number.0))
    }

    /// Returns whether it was in this room, and is not any more.
    pub(crate) fn has_left(&self, number: RoomNumber) -> bool {
        self.was_numbered(number) && self.rooms.iter().all(|room| room.number != number)
    }

    /// Returns whether this request waits for a `joined`.
    pub(crate) fn awaits_joined(&self, request: RequestNumber) -> bool {
        self.rooms.iter().any(|room| room.request == Some(request))
    }

    /// Removes a room that it has left, in which its limit of snapshots stood at `snapshots`.
    pub(crate) fn left(&mut self, number: RoomNumber, snapshots: Allowance) -> Option<SessionRoom> {
        let least = self.allowances().snapshots.least(snapshots);
        if least != Allowance::default() {
            self.allowances_mut().snapshots = least;
        }
        self.remove(number)
    }

    /// Takes a room out. A number that the client never heard of may be given again.
    pub(crate) fn remove(&mut self, number: RoomNumber) -> Option<SessionRoom> {
        let at = self.rooms.iter().position(|room| room.number == number)?;
        let room = self.rooms.swap_remove(at);
        if let Some(extras) = self.extras.as_deref_mut() {
            RoundTrips::remove(&mut extras.round_trips, number);
            if room.request.is_some() && number.0 == extras.rooms_numbered {
                extras.rooms_numbered -= 1;
            }
        }
        Some(room)
    }
}
