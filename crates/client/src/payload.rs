//! What is published to channels, and what devices and their fleet send each other.

use playfield_state::{Bytes, Data};
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{Format, TreeFormat};
use serde_json::Value;

use crate::Error;

/// The payload of a publication, a report or a command: a JSON value or bytes, as the rule of the
/// channel or the fleet says.
///
/// ```
/// use playfield_client::Payload;
/// use serde_json::json;
///
/// let said = Payload::from(json!({ "text": "hi" }));
/// assert_eq!(said.value()?["text"], "hi");
/// let raw = Payload::from(vec![1, 2, 3]);
/// assert_eq!(raw.bytes(), [1, 2, 3]);
/// # Ok::<(), playfield_client::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    form: Form,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Msgpack,
    Bytes,
}

impl Payload {
    /// A value of a type of your own, as JSON.
    #[must_use]
    pub fn of(data: &impl Data) -> Self {
        let mut bytes = Vec::new();
        data.write(Format::Json, &mut bytes);
        Self { form: Form::Json, bytes }
    }

    /// The value as a type of your own: read from JSON, or, if the payload is bytes, from `packed`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn decode<T: Data>(&self) -> Result<T, Error> {
        let format = match self.form {
            Form::Json => Format::Json,
            Form::Msgpack => Format::Msgpack,
            Form::Bytes => Format::Packed,
        };
        T::read(format, &self.bytes).map_err(|error| Error::payload("the payload", error))
    }

    /// The value, if the payload is JSON.
    ///
    /// # Errors
    /// If it is not.
    pub fn value(&self) -> Result<Value, Error> {
        let format =
            if self.form == Form::Msgpack { TreeFormat::Msgpack } else { TreeFormat::Json };
        read_value(format, &self.bytes).map_err(|error| Error::payload("the payload", error))
    }

    /// The bytes; the text, if the payload is JSON and the connection is not in `msgpack`.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A payload that has arrived in this format.
    pub(crate) fn received(format: Format, is_bytes: bool, payload: &[u8]) -> Self {
        let (form, raw) = match format {
            Format::Packed if is_bytes => (Form::Bytes, payload.to_vec()),
            Format::Packed | Format::Json if !is_bytes => (Form::Json, payload.to_vec()),
            Format::Msgpack if !is_bytes => (Form::Msgpack, payload.to_vec()),
            // As base64, or a bin. What is neither is shown as it came.
            format => match Bytes::read(format, payload) {
                Ok(Bytes(raw)) => (Form::Bytes, raw),
                Err(_) if format == Format::Json => (Form::Json, payload.to_vec()),
                Err(_) => (Form::Msgpack, payload.to_vec()),
            },
        };
        Self { form, bytes: raw }
    }

    /// The payload in this format, to be sent.
    pub(crate) fn into_format(self, format: Format) -> Result<Vec<u8>, Error> {
        Ok(match (self.form, format) {
            (Form::Json, Format::Packed | Format::Json)
            | (Form::Msgpack, Format::Msgpack)
            | (Form::Bytes, Format::Packed) => self.bytes,
            (Form::Bytes, _) => {
                let mut out = Vec::new();
                Bytes(self.bytes).write(format, &mut out);
                out
            }
            (Form::Json | Form::Msgpack, _) => {
                let mut out = Vec::new();
                let tree = format.tree().unwrap_or(TreeFormat::Json);
                TreeWriter::new(tree, &mut out).value(&self.value()?);
                out
            }
        })
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&Value> for Payload {
    fn from(value: &Value) -> Self {
        let mut bytes = Vec::new();
        TreeWriter::new(TreeFormat::Json, &mut bytes).value(value);
        Self { form: Form::Json, bytes }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self { form: Form::Bytes, bytes }
    }
}

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}
