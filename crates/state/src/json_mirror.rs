//! The client's end, untyped.

use playfield_wire::tree::read_value;
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::Change;
use crate::change::{Watch, compare, moved};
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
    /// There is a copy of which changes can be told: a snapshot has come, and every patch since could be applied.
    in_step: bool,
}

impl JsonMirror {
    /// A copy of nothing yet, `null`, kept in step by bodies in `json`.
    pub fn new() -> Self {
        Self::of(TreeFormat::Json)
    }

    /// A copy of nothing yet, `null`, kept in step by bodies in this format.
    pub fn of(format: TreeFormat) -> Self {
        Self { format, state: Value::Null, in_step: false }
    }

    /// The format of the bodies that it takes.
    pub fn format(&self) -> TreeFormat {
        self.format
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
        self.in_step = true;
        Ok(())
    }

    /// As [`snapshot`](Self::snapshot), and tells what is different from the copy that it replaces. The first one tells nothing, nor does
    /// one that comes after a patch was refused.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_with(&mut self, body: &[u8], mut tell: impl FnMut(Change)) -> Result<(), DecodeError> {
        let before = std::mem::replace(&mut self.state, read_value(self.format, body)?);
        if std::mem::replace(&mut self.in_step, true) {
            compare(None, &before, &self.state, &mut Vec::new(), &mut tell);
        }
        Ok(())
    }

    /// Applies a list of operations. That they begin at the copy's version is the caller's to see to.
    ///
    /// # Errors
    /// A body that isn't a list of operations, or doesn't fit this copy. What it had changed by then can't be taken back, so there is no
    /// copy any more, but `null`, until a snapshot comes.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.apply_all(body, &mut Watch::new(None))
    }

    /// As [`patch`](Self::patch), and tells what changed, place by place. A value that is sent whole is compared with the one it replaces.
    ///
    /// The copy does not know its type: an object with one member of which the new value has another is told of as changed, since it may be an
    /// enum, though it may be a map.
    ///
    /// # Errors
    /// As [`patch`](Self::patch). What was told before the error is not all that may be different.
    pub fn patch_with(&mut self, body: &[u8], mut tell: impl FnMut(Change)) -> Result<(), DecodeError> {
        self.apply_all(body, &mut Watch::new(Some(&mut tell)))
    }

    fn apply_all(&mut self, body: &[u8], watch: &mut Watch<'_>) -> Result<(), DecodeError> {
        let applied = match read_value(self.format, body) {
            Ok(Value::Array(ops)) => ops.into_iter().try_for_each(|op| self.apply(op, watch)),
            Ok(other) => Err(unexpected("a list of operations", &other)),
            Err(error) => Err(error),
        };
        if applied.is_err() {
            (self.state, self.in_step) = (Value::Null, false);
        }
        applied
    }

    fn apply(&mut self, op: Value, watch: &mut Watch<'_>) -> Result<(), DecodeError> {
        let Value::Array(op) = op else { return Err(unexpected("an operation", &op)) };
        let mut parts = op.into_iter();
        let path = match parts.next() {
            Some(Value::Array(path)) => path,
            other => return Err(unexpected("a path", &other.unwrap_or_default())),
        };
        let (value, word) = (parts.next(), parts.next());
        let (1..=PATH_STEPS_MAX, Some((last, above))) = (path.len(), path.split_last()) else {
            return Err(unexpected("a path of 1 to 128 steps", &Value::Array(path)));
        };
        let mut at = &mut self.state;
        for step in above {
            at = inside(at, step)
                .ok_or_else(|| unexpected("a path into this copy", &Value::Array(path.clone())))?;
        }
        path.iter().for_each(|step| watch.go_to(step));
        let done = match (at, last, value, word) {
            (Value::Object(members), Value::String(name), Some(value), None) => {
                match members.get(name) {
                    Some(old) => watch.replaced(None, old, &value),
                    None => watch.entered(&value),
                }
                members.insert(name.clone(), value);
                true
            }
            // Something that came and went since this copy's version may be named, and is not here.
            (Value::Object(members), Value::String(name), None, None) => {
                if let Some(old) = members.remove(name) {
                    watch.left(old);
                }
                true
            }
            (Value::Array(elements), Value::Number(index), Some(value), None) => {
                elements.get_mut(place(index)).is_some_and(|element| {
                    watch.replaced(None, element, &value);
                    *element = value;
                    true
                })
            }
            (Value::Array(elements), Value::Number(index), None, None) if place(index) < elements.len() => {
                watch.left(elements.remove(place(index)));
                true
            }
            (Value::Array(elements), Value::Number(index), Some(value), Some(Value::String(word)))
                if word == "insert" && place(index) <= elements.len() =>
            {
                watch.entered(&value);
                elements.insert(place(index), value);
                true
            }
            (
                Value::Array(elements),
                Value::Number(index),
                Some(Value::Number(to)),
                Some(Value::String(word)),
            ) if word == "move" && place(index).max(place(&to)) < elements.len() => {
                let (from, to) = (place(index), place(&to));
                let element = elements.remove(from);
                elements.insert(to, element);
                watch.leave();
                watch.moved(to, from);
                true
            }
            (at, last, Some(Value::Array(order)), Some(Value::String(word))) if word == "order" => {
                let done = match inside(at, last) {
                    Some(Value::Array(elements)) => put_in_order(elements, &order),
                    _ => false,
                };
                if done && watch.listens() {
                    let stood: Vec<usize> = order.iter().filter_map(Value::as_number).map(place).collect();
                    moved(&stood).into_iter().for_each(|(to, from)| watch.moved(to, from));
                }
                done
            }
            _ => false,
        };
        watch.back_to(0);
        if done { Ok(()) } else { Err(unexpected("an operation that fits this copy", &Value::Array(path))) }
    }
}

/// One step of a path.
fn inside<'a>(at: &'a mut Value, step: &Value) -> Option<&'a mut Value> {
    match (at, step) {
        (Value::Object(members), Value::String(name)) => members.get_mut(name),
        (Value::Array(elements), Value::Number(index)) => elements.get_mut(place(index)),
        _ => None,
    }
}

/// For each place the index at which its element stood. Says whether it is an order of these elements.
fn put_in_order(elements: &mut Vec<Value>, order: &[Value]) -> bool {
    if order.len() != elements.len() {
        return false;
    }
    let mut old: Vec<Option<Value>> = elements.drain(..).map(Some).collect();
    elements.extend(order.iter().map_while(|from| match from {
        Value::Number(from) => old.get_mut(place(from))?.take(),
        _ => None,
    }));
    elements.len() == order.len()
}

impl Default for JsonMirror {
    fn default() -> Self {
        Self::new()
    }
}

fn place(index: &serde_json::Number) -> usize {
    index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(ops: &str) -> Result<String, String> {
        let mut mirror = JsonMirror::new();
        mirror.snapshot(br#"{"log": [10, 20, 30], "rows": [[1, 2], []], "name": 5}"#).unwrap();
        mirror.patch(ops.as_bytes()).map_err(|error| error.to_string())?;
        Ok(format!("{} {}", mirror.state()["log"], mirror.state()["rows"]))
    }

    #[test]
    fn elements_move() {
        let moved = |ops| patched(ops).unwrap();
        assert_eq!(moved(r#"[[["log", 0], 2, "move"]]"#), "[20,30,10] [[1,2],[]]");
        assert_eq!(moved(r#"[[["log", 2], 0, "move"], [["rows", 1], 0, "move"]]"#), "[30,10,20] [[],[1,2]]");
        assert_eq!(moved(r#"[[["log"], [2, 0, 1], "order"]]"#), "[30,10,20] [[1,2],[]]");
        assert_eq!(moved(r#"[[["rows", 0], [1, 0], "order"]]"#), "[10,20,30] [[2,1],[]]");
        assert_eq!(moved(r#"[[["rows", 1], [], "order"]]"#), "[10,20,30] [[1,2],[]]");
    }

    #[test]
    fn what_is_no_move_or_order_of_these_elements_is_refused() {
        for op in [
            r#"[["log", 0], 3, "move"]"#,
            r#"[["log", 3], 0, "move"]"#,
            r#"[["log", 0], -1, "move"]"#,
            r#"[["log", 0], [0], "move"]"#,
            r#"[["log"], 0, "move"]"#,
            r#"[["log"], [0, 1], "order"]"#,
            r#"[["log"], [0, 1, 1], "order"]"#,
            r#"[["log"], [0, 1, 3], "order"]"#,
            r#"[["log"], [0, 1, "2"], "order"]"#,
            r#"[["log"], [0, 1, 2, 3], "order"]"#,
            r#"[["log"], 0, "order"]"#,
            r#"[["name"], [], "order"]"#,
            r#"[["none"], [], "order"]"#,
            r#"[["log", 0], 1, "shift"]"#,
        ] {
            let error = patched(&format!("[{op}]")).unwrap_err();
            assert!(error.contains("an operation that fits this copy was expected"), "{op}: {error}");
        }
    }
}
