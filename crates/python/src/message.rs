//! Messages as Python objects.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use playfield_websocket::Opcode;

/// The payload of a message to send.
pub(crate) enum Payload<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    /// A copy of bytes that others may change.
    Copy(Vec<u8>),
}

impl<'a> Payload<'a> {
    /// Reads `str`, `bytes`, `bytearray` and `memoryview`. `None` for all else.
    pub(crate) fn of(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Some(Self::Text(text.to_str()?)));
        }
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Some(Self::Bytes(bytes.as_bytes())));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Some(Self::Copy(bytes.to_vec())));
        }
        if object.is_instance_of::<PyMemoryView>() {
            let bytes = object.call_method0(intern!(object.py(), "tobytes"))?;
            return Ok(Some(Self::Copy(bytes.extract()?)));
        }
        Ok(None)
    }

    /// Works like [`of`](Self::of), but all else is an error.
    pub(crate) fn required(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(object)?.ok_or_else(|| {
            let kind = object.get_type();
            PyTypeError::new_err(format!(
                "a message is str, bytes, bytearray or memoryview, not {kind}"
            ))
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
            Self::Copy(bytes) => bytes,
        }
    }

    /// The message's kind: text is `str`, binary is bytes, unless `text` says otherwise.
    ///
    /// # Errors
    /// If bytes are to be sent as text and are not UTF-8.
    pub(crate) fn opcode(&self, text: Option<bool>) -> PyResult<Opcode> {
        match (self, text) {
            (Self::Text(_), None | Some(true)) => Ok(Opcode::Text),
            (_, Some(true)) => {
                utf8(self.as_bytes())?;
                Ok(Opcode::Text)
            }
            (Self::Bytes(_) | Self::Copy(_), None) | (_, Some(false)) => Ok(Opcode::Binary),
        }
    }
}

fn utf8(bytes: &[u8]) -> PyResult<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        PyValueError::new_err(format!("bytes that are to be text must be UTF-8: {error}"))
    })
}

/// A received message as `recv(decode=)` wants it: `str` if `Some(true)`, `bytes` if `Some(false)`.
///
/// # Errors
/// If a binary message is wanted as `str` and is not valid UTF-8.
pub(crate) fn converted<'py>(
    message: Bound<'py, PyAny>,
    decode: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = message.py();
    match decode {
        Some(true) => match message.cast::<PyBytes>() {
            Ok(bytes) => Ok(PyString::new(py, utf8(bytes.as_bytes())?).into_any()),
            Err(_) => Ok(message),
        },
        Some(false) => match message.cast::<PyString>() {
            Ok(text) => Ok(text.encode_utf8()?.into_any()),
            Err(_) => Ok(message),
        },
        None => Ok(message),
    }
}
