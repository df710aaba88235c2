//! The extension module `playfield._playfield`: the parts of the Python package that are on the
//! path of every message.
//!
//! The protocol is in [`playfield_websocket`]. A `link` joins its two halves without any I/O.
//! [`SyncConnection`] reads and writes a blocking socket, without the interpreter's lock where it
//! waits. [`AsyncConnection`] is called by an event loop when its socket is ready, and wakes the
//! waiting task itself. [`Core`] is the client of a node, without any I/O. Everything done once per
//! connection is in Python: names, proxies, TLS handshakes, timeouts, exceptions.

mod async_connection;
mod client;
mod handshake;
mod link;
mod masks;
mod message;
mod receive;
mod socket;
mod sync_connection;
mod tls;

use pyo3::prelude::*;

pub use async_connection::{AsyncConnection, Messages};
pub use client::Core;
pub use handshake::Handshake;
pub use receive::{Done, Receive, Wakeup};
pub use sync_connection::SyncConnection;

/// The compiled part of the package `playfield`.
#[pymodule]
fn _playfield(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncConnection>()?;
    module.add_class::<Core>()?;
    module.add_class::<Done>()?;
    module.add_class::<Handshake>()?;
    module.add_class::<Messages>()?;
    module.add_class::<Receive>()?;
    module.add_class::<SyncConnection>()?;
    module.add_class::<Wakeup>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
