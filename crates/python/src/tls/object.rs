//! TLS by an `ssl.SSLContext` of the program, between two memory buffers.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::exit;

/// The bytes of plaintext asked for at a time: a record of TLS holds no more.
const RECORD_BYTES: usize = 16 << 10;

/// The bytes of plaintext given at a time.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// An `ssl.SSLObject` whose handshake is done, and its buffers.
#[derive(Debug)]
pub(crate) struct SslObject {
    /// The object that the `SSLObject` wraps.
    object: Py<PyAny>,
    incoming: Py<PyAny>,
    outgoing: Py<PyAny>,
    want_read: Py<PyAny>,
    closed: Py<PyAny>,
}

impl SslObject {
    /// Takes `(object, incoming, outgoing)`.
    pub(crate) fn new(parts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (object, incoming, outgoing): (Bound<'_, PyAny>, _, _) = parts.extract()?;
        // The object behind it is called without Python code between, in which a signal's handler
        // could use the connection while it works.
        let object = object.getattr("_sslobj").unwrap_or(object).unbind();
        let ssl = parts.py().import("ssl")?;
        let want_read = ssl.getattr("SSLWantReadError")?.unbind();
        let closed = ssl.getattr("SSLZeroReturnError")?.unbind();
        Ok(Self { object, incoming, outgoing, want_read, closed })
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.object)?;
        visit.call(&self.incoming)?;
        visit.call(&self.outgoing)
    }

    /// Decrypts received bytes, and passes the plaintext to `take`. Returns whether the peer has
    /// ended the stream.
    pub(crate) fn decrypt(
        &self,
        py: Python<'_>,
        bytes: &[u8],
        take: &mut dyn FnMut(&mut [u8]),
    ) -> PyResult<bool> {
        exit::call(|| {
            if !bytes.is_empty() {
                let bytes = PyBytes::new(py, bytes);
                self.incoming.call_method1(py, intern!(py, "write"), (bytes,))?;
            }
            loop {
                match self.object.call_method1(py, intern!(py, "read"), (RECORD_BYTES,)) {
                    Ok(plain) => {
                        let plain = plain.bind(py).cast::<PyBytes>()?;
                        if plain.as_bytes().is_empty() {
                            return Ok(true);
                        }
                        take(&mut plain.as_bytes().to_vec());
                    }
                    Err(error) if error.is_instance(py, self.want_read.bind(py)) => {
                        return Ok(false);
                    }
                    Err(error) if error.is_instance(py, self.closed.bind(py)) => return Ok(true),
                    Err(error) => return Err(error),
                }
                // An exception that says so would cost more than the message.
                if !self.holds_more(py)? {
                    return Ok(false);
                }
            }
        })
    }

    /// Whether there is something left to decrypt, as far as known.
    fn holds_more(&self, py: Python<'_>) -> PyResult<bool> {
        let Ok(left) = self.incoming.getattr(py, intern!(py, "pending")) else { return Ok(true) };
        if left.extract::<usize>(py)? > 0 {
            return Ok(true);
        }
        self.object.call_method0(py, intern!(py, "pending"))?.is_truthy(py)
    }

    /// Encrypts bytes to send, with what the handshake has to say.
    pub(crate) fn encrypt(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Vec<u8>> {
        exit::call(|| {
            let mut rest = bytes;
            while !rest.is_empty() {
                let part = PyBytes::new(py, &rest[..rest.len().min(CHUNK_BYTES)]);
                let written = self.object.call_method1(py, intern!(py, "write"), (part,))?;
                rest = &rest[written.extract::<usize>(py)?.min(rest.len())..];
            }
            let cipher = self.outgoing.call_method0(py, intern!(py, "read"))?;
            Ok(cipher.bind(py).cast::<PyBytes>()?.as_bytes().to_vec())
        })
    }
}
