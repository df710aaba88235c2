//! Stores of rooms' saves.
//!
//! [`DiskStore`] is a [`Store`](playfield_room::Store) on [redb](https://www.redb.org), an embedded
//! database. One thread writes. It commits all saves that wait together, so thousands of rooms
//! share the cost of reaching the disk. Loads run beside it and never wait for a commit.
//!
//! `PostgresStore`, with the feature `postgres`, keeps saves in a database, which several nodes may
//! share.

mod disk_store;
mod error;
mod file;
#[cfg(feature = "postgres")]
mod postgres_store;
mod queue;
mod reader;
mod stored;
mod writer;
mod writes;

pub use disk_store::{DiskOptions, DiskStore};
#[cfg(feature = "postgres")]
pub use postgres_store::{PostgresOptions, PostgresStore};
