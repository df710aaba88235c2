//! Parts of a node for benchmarks, fuzz targets and counts. Not for programs: their interface may
//! change with any version.

/// Channels without shards.
pub mod channel {
    pub use crate::channel::backlog::{Backlog, Pushed, Waiting};
    pub use crate::channel::channels::{Channels, Published, Subscribing, Totals, TotalsMax};
    pub use crate::channel::entry::Member;
    pub use crate::channel::publication::{Payload, Publication};
}

/// The registry of devices.
pub mod device {
    pub use crate::device::entry::Place;
    pub use crate::device::registry::{Limits, Registry};
}
