//! Playfield: authoritative rooms for games, shared documents and fleets of devices, served in real
//! time.
//!
//! Depend on this crate only. The others, whose names begin with `playfield-`, are the layers
//! below it; `docs/architecture.md` in the repository describes them.
#![doc = include_str!("../README.md")]

#[cfg(feature = "cluster")]
mod engine;
#[cfg(feature = "jwt")]
mod jwt;
mod server;

pub use playfield_room::{
    Accepts, Answer, AskId, AskOf, Asks, Claims, Context, CreatedBy, Creator, DEFERRED_MAX,
    Deferred, ERROR_TEXT_BYTES_MAX, Emits, EndReason, Error, EventOf, Founder, HELD_MAIL_MAX,
    Handle, InRoom, Internal, InternalMessage, InternalOf, KEY_BYTES_MAX, LeaveReason,
    METADATA_BYTES_MAX, METADATA_MAX, Mail, Message, MessageOf, NewRoom, On, OnePerUser,
    PENDING_MAX, Player, PlayerId, RATE_MULTIPLE, REFUSALS_MIN, RESERVATION_MAX, Random,
    Reservation, ReservedSeat, Result, Room, RoomBuilder, RoomSummary, SeatFor, Sender, Shuffle,
    TIMER_PERIOD_MIN, TIMERS_MAX, TimerId, room, schema, sim,
};
pub use playfield_server::{
    Asked, AsyncAuthenticator, AtNode, Authenticator, Config, ConfigError, Decided, Deciding,
    Decision, Descriptors, Drained, Guests, Identity, LevelFilter, ListedRoom, Network, NodeHandle,
    Origin, Pending, Running, SelfSigned, ShardStats, Stats, Stopper, Subscriber, TicketChecker,
    TicketPass, TicketRoom, Upgrade, UpgradeError, Upgraded, axum, config, http, service,
};
pub use playfield_state::{
    Bytes, Data, Dropped, ElementId, Format, Kept, Key, List, LoadError, Map, MessageRate, Mirror,
    NEAREST_DEFAULT, Restored, SaveDifference, SaveFate, Set, State, Tracker, Tracking, TreeFormat,
    load, restore, save, save_differences, save_kept, save_to, saved_type, view, view_after,
};
pub use playfield_wire::ErrorCode;
pub use playfield_wire::client::Hello;
pub use playfield_wire::schema::{Incompatible, RoomSchema, SchemaError, check_compatible};
pub use server::Server;

/// For generated code.
#[doc(hidden)]
pub use playfield_room::__rt;

/// The client: for bots, tests, and programs without a window.
#[cfg(feature = "client")]
pub use playfield_client as client;

/// Bots, the players of [`Server::bot`].
#[cfg(feature = "load")]
pub mod load {
    pub use playfield_load::{Bot, Turn};
}

/// Signed proof of who players are: JSON Web Tokens for [`Server::jwt`], and tickets for
/// [`Server::tickets`].
#[cfg(feature = "jwt")]
pub mod identity {
    pub use playfield_identity::{
        Jwt, KEYS_BYTES_MAX, KEYS_MAX, KeyError, Keys, Pace, Pass, Place, Refreshed, Refused,
        RefusedKind, SEAT_BYTES_MAX, SECRET_BYTES_MIN, Signer, TICKET_LIFE_MAX, TICKETS_USED_MAX,
        TOKEN_BYTES_MAX, Ticket, Tickets, USER_BYTES_MAX, Verified,
    };
}

/// Storage for saves of rooms: the trait [`Store`](store::Store), one in memory for tests and, with
/// the feature `store`, one on disk. With the feature `postgres`, `PostgresStore` keeps them in a
/// database that nodes may share.
pub mod store {
    pub use playfield_room::copies;
    pub use playfield_room::{
        Completion, Fence, Fences, Loaded, MemoryStore, Opened, Store, StoreError, StoreErrorKind,
        Stored,
    };
    #[cfg(feature = "store")]
    pub use playfield_store::{DiskOptions, DiskStore};
    #[cfg(feature = "postgres")]
    pub use playfield_store::{PostgresOptions, PostgresStore};
}

/// Frozen rooms: the errors of [`Sim::freeze`](sim::Sim::freeze) and [`Sim::thaw`](sim::Sim::thaw).
pub mod frozen {
    pub use playfield_room::frozen::{FROZEN_BYTES_MAX, FreezeError, InFlight, ThawError};
}

/// Channels, by which clients publish and subscribe apart from rooms: rules for
/// [`Server::channel`], and what rooms publish.
pub mod channel {
    pub use playfield_room::{Payload, Publication};
    pub use playfield_server::channel::{
        Access, Asker, ChannelRule, Pattern, PatternError, PayloadKind, Slow,
    };
}

/// Devices, for fleets without rooms: what a program decides about them, for [`Server::fleet`], and
/// who is connected.
pub mod device {
    pub use playfield_room::{Payload, Push, Target};
    pub use playfield_server::device::{Cursor, Device, Page, Registration};
    pub use playfield_server::{Devices, Duplicates, Fleet, FleetSettings, Gone};
}

/// The node as its operators see it, by [`NodeHandle::operator`]: all rooms, what each takes, whole
/// states, kick, lock, close, and how near the limits are.
pub mod operator {
    pub use playfield_room::recording::{
        About, Described, Difference, End, Excerpt, ExcerptOf, Found, Frame, Glance, InputKind,
        Moment, Position, Search, Shown, Wanted,
    };
    pub use playfield_server::{
        FoundPlayer, FoundPlayers, Inspection, Limit, OperatedRoom, Operator, Recorded,
        RecordedKind, RecordingFacts, RecordingFile, RecordingSource, RoomCost, RoomLoad,
        RoomOrder,
    };
}

/// The bytes of a room's state by field, and of messages and events by name.
/// See `docs/profile.md`.
pub mod profile {
    pub use playfield_server::LiveProfile;
    pub use playfield_state::{
        Beside, ExchangeProfile, FieldCounts, FieldProfile, MessageCounts, MessageProfile,
        PlaceTime, Probing, RoomProfile, Saving, Spent, StateProfile, SyncProbe,
    };
}

/// Packets: custom binary protocols, and payloads that Playfield passes on as they are.
/// See `docs/packets.md`.
pub mod packet {
    pub use playfield_derive::Packet;
    pub use playfield_wire::packet::*;
}

/// Everything that a room needs.
pub mod prelude {
    pub use std::process::ExitCode;

    pub use playfield_room::{
        Answer, AskId, Claims, Context, Deferred, EndReason, Error, Handle, LeaveReason, Message,
        On, Player, PlayerId, Result, Room, TimerId, room,
    };
    pub use playfield_state::{Bytes, Data, Key, List, Map, Set, State};

    pub use crate::Server;
}

/// The example in the repository's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The steps of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide.md")]
struct Guide;

/// The examples for packets compile too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/packets.md")]
struct Packets;

/// The programs of the Rust client compile, and the first one runs.
#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../../../docs/rust.md")]
struct Rust;

/// The bot of the page on capacity compiles.
#[cfg(all(doctest, feature = "load"))]
#[doc = include_str!("../../../docs/capacity.md")]
struct Capacity;

/// The recipes compile and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/recipes.md")]
struct Recipes;
