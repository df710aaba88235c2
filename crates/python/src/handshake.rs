//! The opening handshake.

use playfield_websocket::handshake::{ClientHandshake, HandshakeError, HeadLimits, Response};
use playfield_websocket::{Deflate, Direction};
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

/// The offer for the messages of the server and of the client: whether the context is kept, and the
/// size of the window as a power of two.
type Offer = ((bool, u8), (bool, u8));

fn direction(context_takeover: bool, window_bits: u8) -> PyResult<Direction> {
    if !(8..=15).contains(&window_bits) {
        let text = format!("a window has from 8 to 15 bits, not {window_bits}");
        return Err(PyValueError::new_err(text));
    }
    Ok(Direction { context_takeover, window_bits })
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
        compression: Option<Offer>,
    ) -> PyResult<Self> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| PyOSError::new_err(error.to_string()))?;
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let subprotocols: Vec<_> = subprotocols.iter().map(String::as_str).collect();
        let handshake = ClientHandshake::new(host, target, key, &headers, &subprotocols)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let handshake = match compression {
            Some(((server_keeps, server_bits), (client_keeps, client_bits))) => handshake
                .with_deflate(Deflate {
                    server: direction(server_keeps, server_bits)?,
                    client: direction(client_keeps, client_bits)?,
                }),
            None => handshake,
        };
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
    /// is not valid, with a text, what is wrong (the name of a header, "negotiation" or "message")
    /// and the header's value.
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
            Err(error) => {
                let (kind, value) = match &error {
                    HandshakeError::Missing { header } => (*header, None),
                    HandshakeError::Invalid { what, value } => (*what, Some(value.as_str())),
                    HandshakeError::Repeated { header } => (*header, Some("multiple values")),
                    HandshakeError::AcceptMismatch => {
                        ("Sec-WebSocket-Accept", Some("not the answer to the key"))
                    }
                    HandshakeError::ExtensionNotOffered { .. }
                    | HandshakeError::SubprotocolNotOffered { .. } => ("negotiation", None),
                    _ => ("message", None),
                };
                Err(PyValueError::new_err((error.to_string(), kind, value.map(str::to_owned))))
            }
        }
    }
}
