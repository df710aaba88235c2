//! TLS by Python's own `ssl`, between two of its memory buffers.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// How many bytes of plaintext are asked for at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// An `ssl.SSLObject` whose handshake is done, and its buffers.
#[derive(Debug)]
pub(crate) struct Tls {
    object: Py<PyAny>,
    incoming: Py<PyAny>,
    outgoing: Py<PyAny>,
    want_read: Py<PyAny>,
    closed: Py<PyAny>,
}

impl Tls {
    /// Takes `(object, incoming, outgoing)`.
    pub(crate) fn new(parts: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (object, incoming, outgoing) = parts.extract()?;
        let ssl = parts.py().import("ssl")?;
        let want_read = ssl.getattr("SSLWantReadError")?.unbind();
        let closed = ssl.getattr("SSLZeroReturnError")?.unbind();
        Ok(Self { object, incoming, outgoing, want_read, closed })
    }

    /// Decrypts received bytes, and passes the plaintext to `take`. Returns whether the peer has
    /// ended the stream.
    pub(crate) fn decrypt(
        &self,
        py: Python<'_>,
        bytes: &[u8],
        take: &mut dyn FnMut(&mut [u8]),
    ) -> PyResult<bool> {
        if !bytes.is_empty() {
            self.incoming.call_method1(py, intern!(py, "write"), (PyBytes::new(py, bytes),))?;
        }
        loop {
            match self.object.call_method1(py, intern!(py, "read"), (CHUNK_BYTES,)) {
                Ok(plain) => {
                    let plain = plain.bind(py).cast::<PyBytes>()?;
                    if plain.as_bytes().is_empty() {
                        return Ok(true);
                    }
                    take(&mut plain.as_bytes().to_vec());
                }
                Err(error) if error.is_instance(py, self.want_read.bind(py)) => return Ok(false),
                Err(error) if error.is_instance(py, self.closed.bind(py)) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Encrypts bytes to send, with what the handshake has to say.
    pub(crate) fn encrypt(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Vec<u8>> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let part = PyBytes::new(py, &rest[..rest.len().min(CHUNK_BYTES)]);
            let written = self.object.call_method1(py, intern!(py, "write"), (part,))?;
            rest = &rest[written.extract::<usize>(py)?.min(rest.len())..];
        }
        self.outgoing.call_method0(py, intern!(py, "read"))?.extract(py)
    }
}
