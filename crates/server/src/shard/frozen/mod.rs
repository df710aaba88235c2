//! Rooms and sessions of a shard as bytes, from which they go on in another process.
//!
//! A room is what `playfield_room::frozen` writes, with two parts of the host: what the shard keeps
//! beside it, and its members. A session is a value in `packed`. Both name sessions by the place
//! that they had. Times are those since the node started: the clock of the next process goes on.
//!
//! A frozen session has its connection with all that is under way there, or is one whose connection
//! was lost. Then its client comes back by its token, and gets what it missed, as after any lost
//! connection. The rooms hear of that only if it takes long.

mod connection;
mod freeze;
pub(crate) mod parcel;
mod parts;
mod schemas;
mod thaw;

pub(crate) use freeze::Frozen;
pub(crate) use parts::recovered;
pub(crate) use thaw::{ThawedRoom, thaw};
