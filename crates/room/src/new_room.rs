//! Rooms that rooms create.

use std::any::TypeId;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;

use crate::context_state::ContextState;
use crate::reservation::check_wait;
use crate::{
    Creator, Error, Reservation, ReservedSeat, Result, Room, RoomOutput, SeatFor, check_key,
};

/// A room that is to be created.
#[derive(Clone, Debug)]
pub struct NewRoom {
    /// The id that it gets.
    pub id: String,
    /// The Rust type of the room.
    pub rust_type: TypeId,
    /// The name of its type at the node; `None` for the first that was added with the Rust type.
    pub room_type: Option<String>,
    /// Its key, if it has one.
    pub key: Option<Arc<str>>,
    /// Whether it starts private.
    pub private: bool,
    /// The options, encoded in `packed`.
    pub options: Vec<u8>,
    /// The creator.
    pub creator: Creator,
    /// The seats that are reserved in it.
    pub seats: Vec<ReservedSeat>,
    /// The capacity that its Rust type declares.
    pub capacity: u32,
}

impl NewRoom {
    /// Returns whether it is a room of this Rust type.
    pub fn is<R: Room>(&self) -> bool {
        self.rust_type == TypeId::of::<R>()
    }

    /// Whether a room with this capacity has room for the seats that are reserved.
    ///
    /// # Errors
    /// `room_full` if there are more.
    pub fn check_seats(&self, capacity: u32) -> Result<()> {
        let reserved = self.seats.len();
        if reserved <= capacity as usize {
            return Ok(());
        }
        let text =
            format!("{reserved} seats are reserved in a new room with capacity = {capacity}");
        Err(Error::new(ErrorCode::RoomFull, text))
    }

    /// The options of a room of this type.
    ///
    /// # Errors
    /// If it is of another type, and its options can't be read.
    pub fn options<R: Room>(&self) -> Result<R::Options> {
        R::Options::read(Format::Packed, &self.options)
            .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))
    }
}

/// A party that can have rooms created: a room, or the node.
pub trait Founder {
    /// The result of creating a room.
    type Founded;

    /// An id for the new room, or a secret of the same form.
    fn new_id(&mut self) -> String;

    /// Has the room created, unless it was refused already.
    fn found(self, new: Result<NewRoom>) -> Self::Founded;
}

/// A room that is about to be created: see [`Context::new_room`](crate::Context::new_room).
#[must_use = "the room is created by `create`"]
pub struct RoomBuilder<F> {
    founder: F,
    new: NewRoom,
    refusal: Option<Error>,
}

impl<F: Founder> RoomBuilder<F> {
    /// A public room with these options, and without a key.
    pub fn new<N: Room>(mut founder: F, creator: Creator, options: &N::Options) -> Self {
        let mut encoded = Vec::new();
        options.encode(&mut encoded);
        let new = NewRoom {
            id: founder.new_id(),
            rust_type: TypeId::of::<N>(),
            room_type: None,
            key: None,
            private: false,
            options: encoded,
            creator,
            seats: Vec::new(),
            capacity: N::SETTINGS.capacity,
        };
        Self { founder, new, refusal: None }
    }

    /// Gives it a key, by which clients can join it. A node has one room of a type with a key at a
    /// time.
    pub fn key(mut self, key: &str) -> Self {
        self.refusal = self.refusal.or(check_key(key).err());
        self.new.key = Some(key.into());
        self
    }

    /// Makes it private: neither listed nor found by `join_or_create`.
    pub fn private(mut self) -> Self {
        self.new.private = true;
        self
    }

    /// Creates a room of the type that has this name at the node, if the same Rust type was added
    /// under several names.
    pub fn of_type(mut self, name: &str) -> Self {
        self.new.room_type = Some(name.to_owned());
        self
    }

    /// Reserves a seat in it: see [`Context::reserve`](crate::Context::reserve). The player may use
    /// it at once; they wait until the room is there.
    pub fn reserve(&mut self, who: impl Into<SeatFor>, wait: Duration) -> Reservation {
        self.refusal = self.refusal.take().or(check_wait(wait).err());
        let secret = self.founder.new_id();
        let reservation = Reservation::new(&self.new.id, &secret);
        self.new.seats.push(ReservedSeat { secret, who: who.into(), wait });
        reservation
    }

    /// The id that it gets.
    pub fn id(&self) -> &str {
        &self.new.id
    }

    /// Has the node create it: the result is its id. Messages to it from now on follow its creation.
    ///
    /// # Errors
    /// `room_exists` if the key is taken, `bad_key` if it can't be one, `unknown_room_type` if the
    /// node has no such room, `room_full` if more seats are reserved than its capacity, `limit` at
    /// `limits.rooms` or beyond [`RESERVATION_MAX`](crate::RESERVATION_MAX), `busy` if the mailbox
    /// of the room's shard is full, or `shutting_down`. If a room calls it in
    /// [`Room::create`](crate::Room::create), what only the node can know is logged instead.
    pub fn create(self) -> F::Founded {
        let Self { founder, new, refusal } = self;
        founder.found(refusal.map_or(Ok(new), Err))
    }
}

/// A room that has another created.
pub struct InRoom<'b> {
    context: &'b mut ContextState,
    out: &'b mut dyn RoomOutput,
}

impl<'b> InRoom<'b> {
    pub(crate) fn new(context: &'b mut ContextState, out: &'b mut dyn RoomOutput) -> Self {
        Self { context, out }
    }
}

impl Founder for InRoom<'_> {
    type Founded = Result<String>;

    fn new_id(&mut self) -> String {
        self.context.new_room_id()
    }

    fn found(self, new: Result<NewRoom>) -> Result<String> {
        let new = new?;
        if self.context.fork.is_some() {
            return Err("a fork of a recording creates no rooms".into());
        }
        let id = new.id.clone();
        self.out.create(new).map(|()| id)
    }
}
