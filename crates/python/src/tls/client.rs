//! The handshake of TLS by `rustls`.

use std::path::PathBuf;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustls::pki_types::ServerName;
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};

use super::trust::{Roots, config};
use super::{TlsState, exception, with_records};

/// A client's end of TLS, without I/O, until a connection takes it. It trusts the certificates in
/// a file and in a folder; without both, those of the system.
#[pyclass(module = "playfield._playfield")]
#[derive(Debug)]
pub struct TlsClient {
    /// `None` once a connection has taken it.
    state: Option<Box<TlsState>>,
    plain: Vec<u8>,
    outgoing: Vec<u8>,
}

impl TlsClient {
    /// The state after the handshake.
    pub(super) fn take(&mut self) -> PyResult<Box<TlsState>> {
        self.state.take().ok_or_else(taken)
    }
}

fn taken() -> PyErr {
    PyRuntimeError::new_err("a connection has taken this end of TLS")
}

#[pymethods]
impl TlsClient {
    #[new]
    fn new(
        py: Python<'_>,
        host: &str,
        file: Option<PathBuf>,
        folder: Option<PathBuf>,
    ) -> PyResult<Self> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| {
            PyValueError::new_err(format!("{host:?} can't be named in TLS: {error}"))
        })?;
        let state = config(Roots { file, folder })
            .and_then(|config| TlsState::new(config, name))
            .map_err(|error| exception(py, &error))?;
        Ok(Self { state: Some(Box::new(state)), plain: Vec::new(), outgoing: Vec::new() })
    }

    /// Whether the handshake is complete; else more is to be sent and fed.
    fn handshake(&self) -> PyResult<bool> {
        let state = self.state.as_ref().ok_or_else(taken)?;
        Ok(!state.connection().is_handshaking())
    }

    /// Takes received bytes. Raises the exceptions of `ssl`; if there is plaintext before, `read` or
    /// the connection raises them, so that they do not depend on how the bytes were cut.
    fn feed(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let state = self.state.as_mut().ok_or_else(taken)?;
        let fed = state.receive(&mut data.to_vec(), &mut self.plain);
        self.outgoing.append(&mut state.take_answers());
        match fed {
            Err(error) if self.plain.is_empty() => Err(exception(py, &error)),
            _ => Ok(()),
        }
    }

    /// Takes what is to be sent.
    fn outgoing<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        if let Some(state) = &mut self.state {
            self.outgoing.append(&mut state.take_answers());
        }
        PyBytes::new(py, &std::mem::take(&mut self.outgoing))
    }

    /// Takes the plaintext: `None` if more is to be fed first, no bytes at the end. Raises what was
    /// wrong behind it.
    fn read<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let plain = std::mem::take(&mut self.plain);
        let has_ended = match &self.state {
            _ if !plain.is_empty() => true,
            Some(state) => state.has_ended().map_err(|error| exception(py, &error))?,
            None => true,
        };
        Ok(has_ended.then(|| PyBytes::new(py, &plain)))
    }

    /// Encrypts bytes to send.
    fn write(&mut self, py: Python<'_>, data: &[u8]) -> PyResult<()> {
        let state = self.state.as_mut().ok_or_else(taken)?;
        with_records(|records| {
            let bytes = state.encrypt(data, records).map_err(|error| exception(py, &error))?;
            self.outgoing.extend_from_slice(&records[..bytes]);
            Ok(())
        })
    }
}

/// The parameters that both ends have agreed on, as `ssl` words them: the version, the cipher, the
/// bits of its key, whether an earlier connection was resumed, and the server's certificate in DER.
pub(crate) type About = (Option<&'static str>, Option<String>, u32, bool, Option<Py<PyBytes>>);

pub(super) fn about(py: Python<'_>, state: &TlsState) -> About {
    let connection = state.connection();
    let version = connection.protocol_version().map(|version| match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "unknown",
    });
    let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
    let key_bits = if suite.is_some_and(is_short) { 128 } else { 256 };
    let is_resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
    let certificates = connection.peer_certificates().unwrap_or_default();
    let certificate = certificates.first().map(|first| PyBytes::new(py, first).unbind());
    (version, suite.map(cipher_name), key_bits, is_resumed, certificate)
}

fn is_short(suite: CipherSuite) -> bool {
    matches!(
        suite,
        CipherSuite::TLS13_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
            | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    )
}

/// OpenSSL's name: the standard one, but for TLS 1.2.
fn cipher_name(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or("unknown");
    if let Some(name) = name.strip_prefix("TLS13_") {
        return format!("TLS_{name}");
    }
    let name = name.trim_start_matches("TLS_").replace("_WITH", "").replace("AES_", "AES");
    name.replace('_', "-").replace("-POLY1305-SHA256", "-POLY1305")
}
