//! Parts of a node for benchmarks, fuzz targets and conformance suites. Not for programs: their
//! interface may change with any version.

mod bare_shard;
mod hostile;

#[cfg(test)]
pub(crate) use bare_shard::bare_shard;
pub use bare_shard::{BareConnection, BareShard};
pub use hostile::{Tls, TlsEnd, proxy_header};

use crate::Server;

/// Makes a node send each WebSocket message back to its client, in place of opening sessions: the
/// Autobahn suite tests its listener, TLS, handshake and framing (`conformance/autobahn`).
#[must_use]
pub fn echo_messages(mut server: Server) -> Server {
    server.echoes = true;
    server
}

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
