//! The opening handshake.

use playfield_websocket::Deflate;
use playfield_websocket::handshake::{ClientHandshake, HandshakeError, HeadLimits, Response};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// A client's side of one opening handshake (RFC 6455, 4.1), without I/O.
#[pyclass(module = "playfield._playfield")]
#[derive(Debug)]
pub struct Handshake {
    handshake: ClientHandshake,
    received: Vec<u8>,
    /// The compression that both ends agreed on.
    deflate: Option<Deflate>,
    subprotocol: Option<String>,
}

impl Handshake {
    pub(crate) fn deflate(&self) -> Option<&Deflate> {
        self.deflate.as_ref()
    }
}

#[pymethods]
impl Handshake {
    /// Checks everything that goes into the request. Raises `ValueError` for a line end or another
    /// control character, wherever it is.
    #[new]
    fn new(
        host: &str,
        target: &str,
        headers: Vec<(String, String)>,
        subprotocols: Vec<String>,
        compression: bool,
    ) -> PyResult<Self> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| PyOSError::new_err(error.to_string()))?;
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let subprotocols: Vec<_> = subprotocols.iter().map(String::as_str).collect();
        let handshake = ClientHandshake::new(host, target, key, &headers, &subprotocols)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let handshake =
            if compression { handshake.with_deflate(Deflate::default()) } else { handshake };
        Ok(Self { handshake, received: Vec::new(), deflate: None, subprotocol: None })
    }

    /// The bytes to send.
    #[getter]
    fn request(&self) -> &[u8] {
        self.handshake.request()
    }

    /// All bytes received so far.
    #[getter]
    fn received(&self) -> &[u8] {
        &self.received
    }

    /// The subprotocol that the server selected.
    #[getter]
    fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// Whether messages may be compressed.
    #[getter]
    fn compressed(&self) -> bool {
        self.deflate.is_some()
    }

    /// Takes received bytes. Returns `None` while the response is incomplete; then the status, and
    /// how many bytes the head takes if the status is 101. Raises `ValueError` for a response that
    /// is not valid.
    fn feed(&mut self, bytes: &[u8]) -> PyResult<Option<(u16, usize)>> {
        self.received.extend_from_slice(bytes);
        match self.handshake.parse_response(&self.received, &HeadLimits::default()) {
            Ok(Response::Partial) => Ok(None),
            Ok(Response::Complete { head_bytes, subprotocol, deflate }) => {
                self.subprotocol = subprotocol.map(str::to_owned);
                self.deflate = deflate;
                Ok(Some((101, head_bytes)))
            }
            Err(HandshakeError::Refused { status }) => Ok(Some((status, 0))),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }
}
