//! Devices: who is connected to a node, by id and by tag.
//!
//! A `Registry` holds the [`Device`]s of all shards. It is shared: its locks are striped, each is
//! held for one step, and none is taken when a device is heard. Registering, finding and removing a
//! device take constant time, whatever the number of devices; counts are kept, not scanned.

pub(crate) mod entry;
pub(crate) mod registry;
mod shrink;
mod stripe;
mod tags;
#[cfg(test)]
mod tests;

pub use entry::{Device, Registration};
pub use registry::{Cursor, Page};

pub(crate) use entry::Place;
pub(crate) use registry::{Limits, RegisterError, Registry};
