//! The client: a state machine over bytes, and on tokio.
//!
//! [`core`] holds the protocol and touches neither sockets nor clocks; load generators, other languages and tests drive it directly.
//! The rest, behind the feature `tokio` (on by default), drives it over a socket:
//!
//! ```no_run
//! # async fn example() -> Result<(), playfield_client::Error> {
//! let connection = playfield_client::connect("tcp://127.0.0.1:7350").name("Ann").await?;
//! for room in connection.list(None, &[], 0).await? {
//!     println!("{}: {} of {} players", room.id, room.players, room.capacity);
//! }
//! connection.close().await;
//! # Ok(())
//! # }
//! ```

pub mod core;

#[cfg(feature = "tokio")]
mod connection;
#[cfg(feature = "tokio")]
mod dynamic;
#[cfg(feature = "tokio")]
mod error;
mod mirror;
#[cfg(feature = "tokio")]
mod typed;

#[cfg(feature = "tokio")]
pub use connection::{Connect, Connection, Kind, Room, RoomEvent, StateRef, connect};
#[cfg(feature = "tokio")]
pub use dynamic::Dynamic;
#[cfg(feature = "tokio")]
pub use error::Error;
pub use mirror::Mirror;
pub use playfield_wire::{ErrorCode, Format};
