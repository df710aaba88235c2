//! A room: its state, its players, its clock. Deterministic: time, ticks and randomness are handed in; no sockets, no threads, no clock.

mod any_room;
mod error;
mod outlet;
mod room_type;

pub use any_room::{AnyRoom, Entrant, Facts, Mail, Note};
pub use error::{Error, Result};
pub use outlet::{EventHeader, Job, Link, Outlet, Task};
pub use playfield_state::PlayerId;
pub use room_type::{Birth, RoomType};
