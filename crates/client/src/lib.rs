//! The Playfield client.
//!
//! ```text
//!  tokio: Connection, Room ──▶ task ─┐                ┌─▶ socket
//!  poll:  Connection (C ABI, load) ──┼─▶ Session ─────┤
//!  Python ───────────────────────────┘   (no I/O)     └─▶ events, copies of states
//! ```
//!
//! [`session`] is the protocol as a state machine, without sockets or clocks; bindings for other
//! languages drive it directly. With the feature `tokio`, [`connect`] makes a
//! [`Connection`], which enters a [`Room`]: a typed one, as below, or a [`Dynamic`] one, whose values
//! are JSON. With the feature `poll` there is a connection that the program polls, without a
//! thread. Both are on by default.
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
//! #     fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<i64> {
//! #         Ok(add.0)
//! #     }
//! # }
//! # async fn example() -> std::result::Result<(), playfield_client::Error> {
//! // `Counter` is the room type that the node was built with.
//! let connection = playfield_client::connect("tcp://127.0.0.1:7350").name("Ann").await?;
//! let counter = connection.join_or_create::<Counter>("counter", &()).await?;
//! println!("{} of {}", counter.request(Add(2)).await?, counter.state().value);
//! counter.changed().await?;
//! counter.leave().await?;
//! connection.close().await;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "tokio")]
mod asleep;
#[cfg(feature = "tokio")]
mod channel;
#[cfg(feature = "tokio")]
mod connection;
#[cfg(feature = "tokio")]
mod device;
#[cfg(feature = "tokio")]
mod dial;
#[cfg(feature = "tokio")]
mod ending;
#[cfg(feature = "tokio")]
mod error;
#[cfg(feature = "tokio")]
mod limits;
mod mirror;
#[cfg(feature = "tokio")]
mod payload;
#[cfg(feature = "poll")]
pub mod poll;
#[cfg(feature = "tokio")]
mod queue;
#[cfg(feature = "tokio")]
mod room;
pub mod session;
#[cfg(all(feature = "tls", feature = "tokio"))]
mod tls;

pub use crate::session::{Creation, MemberInfo, Position};
#[cfg(feature = "tokio")]
pub use channel::{Channel, ChannelEvent, History, Members, Publication, Subscribing};
#[cfg(feature = "tokio")]
pub use connection::{Connect, Connection, ConnectionEvent, ConnectionEvents, connect};
#[cfg(feature = "tokio")]
pub use device::{Device, DeviceCommand, DeviceEvent};
#[cfg(feature = "tokio")]
pub use error::Error;
pub use mirror::Mirror;
#[cfg(feature = "tokio")]
pub use payload::Payload;
pub use playfield_state::{Change, ChangeKind, Path, PathStep, Pattern};
pub use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};
#[cfg(feature = "tokio")]
pub use queue::QueueLimits;
#[cfg(feature = "tokio")]
pub use room::{Changes, Dynamic, DynamicCopy, Kind, Room, RoomEvent, StateRef, Subscription};
