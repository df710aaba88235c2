//! A room: its state, its players, its clock. Deterministic: time, ticks and randomness are handed
//! in; no sockets, no threads, no clock.
//!
//! A developer implements [`Room`]; a host drives it as an [`AnyRoom`], made by a [`RoomType`], and
//! takes what it gives out through an [`RoomOutput`]. [`sim`] is the host for tests.

mod any_room;
mod context;
mod core;
mod deferred_output;
mod error;
mod message;
#[cfg(doctest)]
mod misuse;
mod output;
mod player;
mod random;
mod room;
mod room_type;
pub mod sim;
mod timers;

pub use any_room::{AnyRoom, Entrant, InternalMessage, Mail, RoomSummary};
pub use context::{Context, METADATA_BYTES_MAX, METADATA_MAX, PENDING_MAX, TIMERS_MAX};
pub use error::{ERROR_TEXT_BYTES_MAX, Error, Result};
pub use message::{
    Accepts, Answer, AskId, AskOf, Asks, Emits, EventOf, Handle, Internal, InternalOf, Message,
    MessageOf, On, Settings,
};
pub use output::{EventHeader, Job, Link, RoomOutput, Task};
pub use player::{Creator, Player};
pub use playfield_derive::{Message, room};
pub use playfield_state::PlayerId;
pub use random::{Random, Shuffle};
pub use room::Room;
pub use room_type::{Birth, RoomType, schema};
pub use timers::{TIMER_PERIOD_MIN, TimerId};

/// What generated code names. Not for people.
#[doc(hidden)]
pub mod __rt {
    pub use crate::message::{Call, Declared, answered, call, new_name, take, unknown};
    pub use crate::{
        Accepts, AskId, Asks, Context, Emits, Internal, Message, Result, Room, Settings,
    };
    pub use playfield_state::__rt::*;
    pub use playfield_wire::message::MessageRef;
    pub use playfield_wire::schema::{EventSchema, MessageSchema, RoomSchema};
}
