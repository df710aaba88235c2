//! Payloads that are published to channels, and that devices and their fleet send each other.

use playfield_state::Data;
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
            Form::Bytes => Format::Packed,
        };
        T::read(format, &self.bytes).map_err(|error| Error::payload("the payload", error))
    }

    /// The value, if the payload is JSON.
    ///
    /// # Errors
    /// If it is not.
    pub fn value(&self) -> Result<Value, Error> {
        let value = read_value(TreeFormat::Json, &self.bytes);
        value.map_err(|error| Error::payload("the payload", error))
    }

    /// The bytes; the text, if the payload is JSON.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A payload that has arrived.
    pub(crate) fn received(is_bytes: bool, payload: &[u8]) -> Self {
        let form = if is_bytes { Form::Bytes } else { Form::Json };
        Self { form, bytes: payload.to_vec() }
    }

    /// The bytes to send.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
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
