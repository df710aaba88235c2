//! Saves of rooms on disk, in one file.
//!
//! [`DiskStore`] is a [`Store`](playfield_room::Store) on [redb](https://www.redb.org), an embedded
//! database. One thread writes. It commits all saves that wait together, so thousands of rooms
//! share the cost of reaching the disk. Loads run beside it and never wait for a commit.

mod disk_store;
mod error;
mod file;
mod queue;
mod reader;
mod stored;
mod writer;
mod writes;

pub use disk_store::{DiskOptions, DiskStore};
