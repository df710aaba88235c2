//! The client: a state machine over bytes, and on tokio.
//!
//! [`core`] holds the protocol and touches neither sockets nor clocks; load generators, other
//! languages and tests drive it directly. The rest, behind the feature `tokio` (on by default),
//! drives it over a socket:
//!
//! ```no_run
//! # use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
//! # use playfield_state::State;
//! #[derive(State, Default)]
//! struct Counter {
//!     value: i64,
//! }
//!
//! #[derive(Message)]
//! #[reply(i64)]
//! struct Add(i64);
//!
//! # #[room(messages(Add))]
//! # impl Room for Counter {}
//! # impl Handle<Add> for Counter {
//! #     fn handle(&mut self, Add(step): Add, _: &Player, _: &mut Context<Self>) -> Result<i64> { Ok(step) }
//! # }
//! # async fn example() -> std::result::Result<(), playfield_client::Error> {
//! // `Counter` is the type of room that the node was built with.
//! let connection = playfield_client::connect("tcp://127.0.0.1:7350").name("Ann").await?;
//! let counter = connection.join_or_create::<Counter>("counter", &()).await?;
//! println!("{} of {}", counter.request(Add(2)).await?, counter.state().value);
//! counter.changed().await?;
//! counter.leave().await?;
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
pub use connection::{
    Changes, Connect, Connection, Kind, Room, RoomEvent, StateRef, Subscription, connect,
};
#[cfg(feature = "tokio")]
pub use dynamic::{Dynamic, DynamicCopy};
#[cfg(feature = "tokio")]
pub use error::Error;
pub use mirror::{ChangeMirror, Mirror};
pub use playfield_state::{Change, ChangeKind, Path, PathStep, Pattern};
pub use playfield_wire::{ErrorCode, Format};
