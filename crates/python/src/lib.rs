//! The extension module `playfield._playfield`: the parts of the Python package that are on the
//! path of every message.
//!
//! The protocol is in [`playfield_websocket`]. A `link` joins its two halves without any I/O.
//! [`SyncConnection`] reads and writes a blocking socket, without the interpreter's lock where it
//! waits. [`AsyncConnection`] is called by an event loop when its socket is ready, and wakes the
//! waiting task itself. `tls` is between them and their sockets: `rustls`, or an `ssl.SSLContext`
//! of the program. [`Core`] is the client of a node, without any I/O. Everything done once per
//! connection is in Python: names, proxies, timeouts, exceptions.

mod async_connection;
mod client;
mod exit;
mod handshake;
mod inbox;
mod large;
mod link;
mod masks;
mod message;
mod receive;
mod socket;
mod stream;
mod sync_connection;
mod sync_receive;
mod sync_send;
mod tls;
mod turn;

use playfield_client::session::NODE_IDLE;
use pyo3::prelude::*;

pub use async_connection::AsyncConnection;
pub use client::{Core, RoomCopy, Route};
pub use handshake::Handshake;
pub use receive::{Done, Receive, Wakeup};
pub use sync_connection::SyncConnection;
pub use tls::TlsClient;

/// The compiled part of the package `playfield`. It is not tested without the interpreter's lock,
/// so a free-threaded build turns the lock on when it imports this; PyO3 would declare it safe.
#[pymodule(gil_used = true)]
fn _playfield(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AsyncConnection>()?;
    module.add_class::<Core>()?;
    module.add_class::<Done>()?;
    module.add_class::<client::Event>()?;
    module.add_class::<Handshake>()?;
    module.add_class::<Receive>()?;
    module.add_class::<RoomCopy>()?;
    module.add_class::<Route>()?;
    module.add_class::<SyncConnection>()?;
    module.add_class::<TlsClient>()?;
    module.add_class::<Wakeup>()?;
    exit::register(module)?;
    module.add("NODE_IDLE", NODE_IDLE.as_secs_f64())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
