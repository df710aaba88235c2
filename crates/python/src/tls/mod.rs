//! TLS of a connection: by `rustls`, or by the `ssl.SSLContext` that the program has given.

mod client;
mod error;
mod object;
mod state;
mod trust;

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;

use crate::socket;

pub(crate) use client::About;
pub use client::TlsClient;
pub(crate) use error::exception;
pub(crate) use object::{CHUNK_BYTES, SslObject};
pub(crate) use state::TlsState;

/// The bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// The bytes encrypted before they are written: the server works on them while more are encrypted.
pub(crate) const WRITE_BYTES: usize = 64 << 10;

/// TLS whose handshake is done.
#[derive(Debug)]
pub(crate) enum Tls {
    Object(SslObject),
    Rust(RustTls),
}

/// TLS by `rustls`. Both directions share a state, which is locked only while bytes are encrypted
/// or decrypted: never while code of Python runs, or while a thread waits for the interpreter.
#[derive(Debug)]
pub(crate) struct RustTls(Mutex<Box<TlsState>>);

impl Tls {
    /// Takes what has carried out the handshake: a [`TlsClient`], or an object with the parts of an
    /// [`SslObject`].
    pub(crate) fn new(opened: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(client) = opened.cast::<TlsClient>() {
            let state = client.borrow_mut().take()?;
            return Ok(Self::Rust(RustTls(Mutex::new(state))));
        }
        let parts = opened.getattr(intern!(opened.py(), "parts"))?;
        Ok(Self::Object(SslObject::new(&parts)?))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Object(object) => object.traverse(visit),
            Self::Rust(_) => Ok(()),
        }
    }

    /// Returns what both ends have agreed on. An `ssl.SSLObject` tells it itself.
    pub(crate) fn about(&self, py: Python<'_>) -> Option<About> {
        match self {
            Self::Object(_) => None,
            Self::Rust(tls) => Some(client::about(py, &tls.state())),
        }
    }
}

impl RustTls {
    pub(crate) fn state(&self) -> MutexGuard<'_, Box<TlsState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has ended the stream.
    ///
    /// # Errors
    /// What was wrong in it.
    pub(crate) fn has_ended(&self, py: Python<'_>) -> PyResult<bool> {
        let ended = self.state().has_ended();
        ended.map_err(|error| exception(py, &error))
    }

    /// Sends `close_notify`, if the kernel takes it.
    pub(crate) fn say_goodbye(&self, socket: &OwnedFd) {
        let goodbye = self.state().close();
        if !goodbye.is_empty() {
            // The connection is ending either way.
            let _ = socket::write_now(socket, &goodbye);
        }
    }
}

/// The buffers of a thread, which its connections share.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) incoming: Vec<u8>,
    pub(crate) plain: Vec<u8>,
}

thread_local! {
    static BUFFERS: Cell<Buffers> = Cell::default();
    static RECORDS: Cell<Vec<u8>> = Cell::default();
}

/// Lends the buffers for what is received. The plaintext is empty.
pub(crate) fn with_buffers<R>(read: impl FnOnce(&mut Buffers) -> R) -> R {
    let mut buffers = BUFFERS.take();
    if buffers.incoming.is_empty() {
        buffers.incoming = vec![0; READ_BYTES];
    }
    buffers.plain.clear();
    let result = read(&mut buffers);
    BUFFERS.set(buffers);
    result
}

/// Lends the buffer for what is sent, of any length and content.
pub(crate) fn with_records<R>(write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut records = RECORDS.take();
    let result = write(&mut records);
    RECORDS.set(records);
    result
}
