//! Devices: who is connected to a node, by id and by tag.
//!
//! A [`Registry`] holds the [`Device`]s of all shards. It is shared: its locks are striped, each is
//! held for one step, and none is taken when a device is heard. Registering, finding and removing a
//! device take constant time, whatever the number of devices; counts are kept, not scanned.

mod device;
mod registry;
mod shrink;
mod stripe;
mod tags;

pub use device::{Device, Place, Registration};
pub use registry::{Cursor, Limits, Page, Prepared, RegisterError, Registered, Registry};
