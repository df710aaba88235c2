//! Rooms: their state, players, messages and timers.
//!
//! A developer implements [`Room`]. A host creates one by its [`RoomType`], calls it as an
//! [`AnyRoom`] and receives its output as a [`RoomOutput`]; [`sim`] has a host for tests. A room is
//! deterministic: time, ticks and a seed for randomness are inputs, and there are no sockets,
//! threads or clocks in this crate.

extern crate self as playfield_room;

mod any_room;
mod claims;
mod completion;
mod context;
mod context_state;
pub mod copies;
mod core;
mod deferred;
mod deferred_output;
mod error;
mod fences;
pub mod frozen;
mod hash;
mod key;
mod life;
mod memory_store;
mod message;
mod new_room;
mod operation;
mod output;
mod pausable;
mod player;
mod random;
pub mod rate;
pub mod recording;
mod reservation;
mod room;
mod room_type;
mod round_trips;
mod seats;
pub mod sim;
mod store;
mod timers;

/// For hosts, which catch panics of other code too.
#[doc(hidden)]
pub use crate::core::guard::{caught, panic_text};
pub use any_room::{Admission, AnyRoom, Entrant, InternalMessage, Mail, RoomSummary};
pub use claims::Claims;
pub use completion::Completion;
pub use context::Context;
pub use context_state::{METADATA_BYTES_MAX, METADATA_MAX, PENDING_MAX, TIMERS_MAX};
pub use core::{HELD_MAIL_MAX, Saves, Unsaved};
pub use deferred::{DEFERRED_MAX, Deferred};
pub use error::{ERROR_TEXT_BYTES_MAX, Error, Result, room_full};
pub use fences::Fences;
pub use key::{KEY_BYTES_MAX, check_key, invisible, visible};
pub use life::{EndReason, LeaveReason, Stage, Undone};
pub use memory_store::MemoryStore;
pub use message::{
    Answer, AskId, AskOf, Asks, CreatedBy, Durability, EventOf, Handle, Internal, InternalOf,
    Isolated, MessageOf, On, OnePerUser, RATE_MULTIPLE, REFUSALS_MIN, Record, Settings,
};
pub use new_room::{Founder, InRoom, NewRoom, RoomBuilder};
pub use operation::Operation;
pub use output::{
    EventHeader, Held, Job, Link, Payload, Publication, Push, RoomOutput, Target, Task,
};
pub use pausable::{Pausable, Pause};
pub use player::{Creator, Player, Sender};
pub use playfield_derive::Message;
/// [`Room`] lists the options of this attribute.
pub use playfield_derive::room;
pub use playfield_state::{Accepts, Emits, Message, PlayerId, RoomInterface};
pub use random::{Random, Shuffle, id_from_random};
pub use reservation::{
    RESERVATION_MAX, Reservation, ReservedSeat, SeatFor, split as split_reservation,
};
pub use room::Room;
pub use room_type::{Birth, Criteria, KeyOrigin, RoomType, Thaw, schema};
pub use store::{Fence, Loaded, Opened, Store, StoreError, StoreErrorKind, Stored};
pub use timers::{TIMER_PERIOD_MIN, TimerId};

/// For generated code only.
#[doc(hidden)]
pub mod __rt {
    pub use crate::message::{Call, Declared, answered, call, new_name, take, unknown};
    pub use crate::{
        Accepts, AskId, Asks, Context, CreatedBy, Durability, Emits, Internal, Isolated, Message,
        OnePerUser, Record, Result, Room, RoomInterface, Settings, schema as room_schema,
    };
    pub use playfield_state::__rt::*;
    pub use playfield_state::MessageRate;
    pub use playfield_wire::message::MessageRef;
    pub use playfield_wire::schema::{EventSchema, MessageSchema, RoomSchema};
}
