//! The client's end, untyped.

use playfield_wire::tree::read_value;
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::data::unexpected;

/// The most steps of a path. A copy can't be nested deeper than this and what the parsers allow in one value: a deeper tree could
/// not be dropped without overflowing the stack.
const PATH_STEPS_MAX: usize = 128;

/// A client's copy of a room's state as a JSON value, kept in step by bodies in `json` or in `msgpack`.
///
/// In a copy from `msgpack` integers of any size are numbers; bytes are texts in base64, and floats that are no numbers their names,
/// as they are in JSON.
#[derive(Clone, Debug)]
pub struct JsonMirror {
    format: TreeFormat,
    state: Value,
}

impl JsonMirror {
    /// A copy of nothing yet, `null`, kept in step by bodies in `json`.
    pub fn new() -> Self {
        Self::of(TreeFormat::Json)
    }

    /// A copy of nothing yet, `null`, kept in step by bodies in this format.
    pub fn of(format: TreeFormat) -> Self {
        Self { format, state: Value::Null }
    }

    /// The copy.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// Replaces the copy by a snapshot.
    ///
    /// # Errors
    /// A body that isn't in the copy's format; the copy is as before.
    pub fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.state = read_value(self.format, body)?;
        Ok(())
    }

    /// Applies a list of operations. That they begin at the copy's version is the caller's to see to.
    ///
    /// # Errors
    /// A body that isn't a list of operations, or doesn't fit this copy, which may then be half changed.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        match read_value(self.format, body)? {
            Value::Array(ops) => ops.into_iter().try_for_each(|op| self.apply(op)),
            other => Err(unexpected("a list of operations", &other)),
        }
    }

    fn apply(&mut self, op: Value) -> Result<(), DecodeError> {
        let Value::Array(op) = op else { return Err(unexpected("an operation", &op)) };
        let mut parts = op.into_iter();
        let path = match parts.next() {
            Some(Value::Array(path)) => path,
            other => return Err(unexpected("a path", &other.unwrap_or_default())),
        };
        let (value, insert) = (parts.next(), parts.next());
        let (1..=PATH_STEPS_MAX, Some((last, above))) = (path.len(), path.split_last()) else {
            return Err(unexpected("a path of 1 to 128 steps", &Value::Array(path)));
        };
        let mut at = &mut self.state;
        for step in above {
            at = match (at, step) {
                (Value::Object(members), Value::String(name)) => members.get_mut(name),
                (Value::Array(elements), Value::Number(index)) => elements.get_mut(place(index)),
                _ => None,
            }
            .ok_or_else(|| unexpected("a path into this copy", &Value::Array(path.clone())))?;
        }
        let done = match (at, last, value, insert) {
            (Value::Object(members), Value::String(name), Some(value), None) => {
                members.insert(name.clone(), value);
                true
            }
            // Something that came and went since this copy's version may be named, and is not here.
            (Value::Object(members), Value::String(name), None, None) => {
                members.remove(name);
                true
            }
            (Value::Array(elements), Value::Number(index), Some(value), None) => {
                elements.get_mut(place(index)).map(|element| *element = value).is_some()
            }
            (Value::Array(elements), Value::Number(index), None, None) if place(index) < elements.len() => {
                elements.remove(place(index));
                true
            }
            (Value::Array(elements), Value::Number(index), Some(value), Some(Value::String(word)))
                if word == "insert" && place(index) <= elements.len() =>
            {
                elements.insert(place(index), value);
                true
            }
            _ => false,
        };
        if done { Ok(()) } else { Err(unexpected("an operation that fits this copy", &Value::Array(path))) }
    }
}

impl Default for JsonMirror {
    fn default() -> Self {
        Self::new()
    }
}

fn place(index: &serde_json::Number) -> usize {
    index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX)
}
