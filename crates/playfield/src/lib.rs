//! Playfield: authoritative rooms for games, shared documents and fleets of devices, served in real
//! time.
//!
//! This crate is the one to depend on. The others, whose names begin with `playfield-`, are the
//! layers beneath it; `docs/architecture.md` in the repository draws them.
#![doc = include_str!("../../../README.md")]

mod server;

pub use playfield_room::*;
pub use playfield_server::{Config, ConfigError, Origin, Running, service};
pub use playfield_state::{
    Bytes, Data, ElementId, Format, Key, List, Map, Mirror, Set, State, Tracker, Tracking, view,
};
pub use playfield_wire::ErrorCode;
pub use playfield_wire::schema::{Incompatible, RoomSchema, SchemaError, check_compatible};
pub use server::Server;

/// The client: for bots, tests, and programs without a window.
#[cfg(feature = "client")]
pub use playfield_client as client;

/// Packets of your own: protocols that are given, and payloads that Playfield doesn't look into.
/// See `docs/packets.md`.
pub mod packet {
    pub use playfield_derive::Packet;
    pub use playfield_wire::packet::*;
}

/// All that a room needs.
pub mod prelude {
    pub use std::process::ExitCode;

    pub use playfield_room::{
        Answer, AskId, Context, Error, Handle, Message, On, Player, PlayerId, Result, Room,
        TimerId, room,
    };
    pub use playfield_state::{Bytes, Data, Key, List, Map, Set, State};

    pub use crate::Server;
}

/// The guide's steps compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

/// So does what is said of packets.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/packets.md")]
struct Packets;
