//! The client's side of `json` and `msgpack`, without types.

mod elements;

use std::iter::Peekable;

use playfield_wire::tree::{digest_of, read_value};
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::data::unexpected;
use elements::Elements;

/// The most steps of a path. A copy can't be nested deeper than this plus what the parsers allow in
/// one value. Dropping a deeper tree would overflow the stack.
const PATH_STEPS_MAX: usize = 128;

/// The most elements in the arrays whose shape one patch changes, in addition to
/// [`RESHAPED_FACTOR`] for each value in the copy and each byte of the patch. An array counts each
/// time that the patch switches to it from another place.
const RESHAPED_MAX: usize = 65_536;

/// See [`RESHAPED_MAX`]. A node switches to an array at most twice, before and after an order, and
/// removes at most half of the remaining elements.
const RESHAPED_FACTOR: usize = 5;

/// A client's copy of a room's state as a JSON value. Bodies in `json` or `msgpack` keep it up to
/// date.
///
/// In a copy from `msgpack`, integers of any size are numbers. As in JSON, bytes are base64
/// strings, and NaN and the infinities are strings.
#[derive(Clone, Debug)]
pub struct JsonMirror {
    format: TreeFormat,
    state: Value,
}

impl JsonMirror {
    /// Creates an empty copy, `null`, for bodies in `json`.
    pub fn new() -> Self {
        Self::of(TreeFormat::Json)
    }

    /// Creates an empty copy, `null`, for bodies in this format.
    pub fn of(format: TreeFormat) -> Self {
        Self { format, state: Value::Null }
    }

    /// The format of the bodies that it accepts.
    pub fn format(&self) -> TreeFormat {
        self.format
    }

    /// The copy.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// The copy's digest. It equals the server's if the copy is right. See [`digest_of`].
    pub fn digest(&self) -> u64 {
        digest_of(&self.state).into()
    }

    /// Replaces the copy by a snapshot: a list of operations, the first of which sets the root.
    ///
    /// # Errors
    /// If the body isn't such a list in the copy's format. The copy is unchanged.
    pub fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.state = self.read_snapshot(body)?;
        Ok(())
    }

    /// Applies a list of operations. The caller ensures that they start at the copy's version.
    ///
    /// # Errors
    /// If the body isn't a list of operations, or doesn't fit this copy. Its changes so far can't
    /// be undone, so the copy is `null` until the next snapshot.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let ops = self.read_ops(body);
        let applied = ops.and_then(|ops| apply_all(&mut self.state, ops, body.len()));
        if applied.is_err() {
            self.state = Value::Null;
        }
        applied
    }

    fn read_snapshot(&self, body: &[u8]) -> Result<Value, DecodeError> {
        let mut ops = self.read_ops(body)?;
        let mut state = match ops.next() {
            Some(Value::Array(op)) if matches!(&*op, [Value::Array(path), _] if path.is_empty()) => {
                op.into_iter().next_back().unwrap_or_default()
            }
            other => {
                return Err(unexpected(
                    "a snapshot whose first operation sets the root",
                    &other.unwrap_or_default(),
                ));
            }
        };
        if !state.is_object() {
            return Err(unexpected("a snapshot of an object", &state));
        }
        apply_all(&mut state, ops, body.len())?;
        Ok(state)
    }

    fn read_ops(&self, body: &[u8]) -> Result<std::vec::IntoIter<Value>, DecodeError> {
        match read_value(self.format, body)? {
            Value::Array(ops) => Ok(ops.into_iter()),
            other => Err(unexpected("a list of operations", &other)),
        }
    }
}

fn apply_all(
    state: &mut Value,
    ops: impl Iterator<Item = Value>,
    body_bytes: usize,
) -> Result<(), DecodeError> {
    let mut ops = ops.map(Op::read).peekable();
    let mut allowance = Allowance::new(body_bytes);
    while let Some(op) = ops.next() {
        apply(state, op?, &mut ops, &mut allowance)?;
    }
    Ok(())
}

/// Applies an operation. If it changes the shape of an array, also applies the operations after it
/// that change the shape of the same array.
fn apply(
    state: &mut Value,
    op: Op,
    rest: &mut Peekable<impl Iterator<Item = Result<Op, DecodeError>>>,
    allowance: &mut Allowance,
) -> Result<(), DecodeError> {
    let mut at = op.walk(state)?;
    if op.reshapes()
        && let Value::Array(array) = &*at
    {
        let length = array.len();
        if length > allowance.left {
            allowance.measure(state);
            at = op.walk(state)?;
        }
        allowance.take(length)?;
    }
    match at {
        Value::Array(array) if op.reshapes() => reshape(array, op, rest),
        at => change(at, op),
    }
}

/// A parsed operation.
struct Op {
    /// The object or array that it changes, and the member or index in it.
    above: Vec<Value>,
    last: Value,
    value: Option<Value>,
    word: Option<Value>,
}

impl Op {
    fn read(op: Value) -> Result<Self, DecodeError> {
        let Value::Array(op) = op else { return Err(unexpected("an operation", &op)) };
        let mut parts = op.into_iter();
        let mut above = match parts.next() {
            Some(Value::Array(path)) => path,
            other => return Err(unexpected("a path", &other.unwrap_or_default())),
        };
        if above.len() > PATH_STEPS_MAX {
            return Err(unexpected("a path of 1 to 128 steps", &Value::Array(above)));
        }
        let Some(last) = above.pop() else {
            return Err(unexpected("a path of 1 to 128 steps", &Value::Array(above)));
        };
        let (value, word) = (parts.next(), parts.next());
        if let Some(more) = parts.next() {
            return Err(unexpected("an operation with at most three parts", &more));
        }
        Ok(Self { above, last, value, word })
    }

    /// Returns whether it inserts, removes or moves an element of an array.
    fn reshapes(&self) -> bool {
        let word = self.word.as_ref().map(Value::as_str);
        self.last.is_number()
            && (self.value.is_none() || matches!(word, Some(Some("insert" | "move"))))
    }

    /// The object or array that it changes.
    fn walk<'a>(&self, state: &'a mut Value) -> Result<&'a mut Value, DecodeError> {
        let walked = self.above.iter().try_fold(state, inside);
        walked.ok_or_else(|| unexpected("a path into this copy", &self.path()))
    }

    fn path(&self) -> Value {
        self.above.iter().chain([&self.last]).cloned().collect()
    }

    fn refused(&self) -> DecodeError {
        unexpected("an operation that fits this copy", &self.path())
    }
}

/// The number of further elements that the arrays whose shape a patch changes may have. Switching
/// to an array takes time proportional to its length.
struct Allowance {
    left: usize,
    body_bytes: usize,
    is_measured: bool,
}

impl Allowance {
    fn new(body_bytes: usize) -> Self {
        Self { left: RESHAPED_MAX, body_bytes, is_measured: false }
    }

    /// Adds the part that is proportional to the copy and the patch. Measuring the copy visits all
    /// of it; few patches need that.
    fn measure(&mut self, state: &Value) {
        if !std::mem::replace(&mut self.is_measured, true) {
            self.left += RESHAPED_FACTOR * (values_in(state) + self.body_bytes);
        }
    }

    fn take(&mut self, length: usize) -> Result<(), DecodeError> {
        self.left = self.left.checked_sub(length).ok_or_else(|| {
            DecodeError::other(
                format!(
                    "the patch changes the shape of too many arrays, or of the same ones too often: this one, of {length} elements, is \
                     past the {RESHAPED_MAX} that may be in them, and {RESHAPED_FACTOR} for each value in the copy and each byte of the patch"
                ),
            )
        })?;
        Ok(())
    }
}

/// Returns the number of values in a tree.
fn values_in(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(elements) => elements.iter().map(values_in).sum(),
        Value::Object(members) => members.values().map(values_in).sum(),
        _ => 0,
    }
}

/// Applies this operation, which changes the shape of an array, and the similar ones that follow.
fn reshape(
    array: &mut Vec<Value>,
    first: Op,
    rest: &mut Peekable<impl Iterator<Item = Result<Op, DecodeError>>>,
) -> Result<(), DecodeError> {
    let mut elements = Elements::new(std::mem::take(array));
    let mut op = first;
    loop {
        reshape_once(&mut elements, &mut op)?;
        let goes_on = |next: &Result<Op, DecodeError>| {
            next.as_ref().is_ok_and(|next| next.reshapes() && next.above == op.above)
        };
        match rest.next_if(goes_on) {
            Some(next) => op = next?,
            None => break,
        }
    }
    *array = elements.into_array();
    Ok(())
}

fn reshape_once(elements: &mut Elements, op: &mut Op) -> Result<(), DecodeError> {
    let index = op.last.as_number().map_or(usize::MAX, place);
    match (op.value.take(), op.word.as_ref().and_then(Value::as_str)) {
        (None, _) if index < elements.len() => {
            elements.remove(index);
        }
        (Some(value), Some("insert")) if index <= elements.len() => {
            elements.insert(index, value);
        }
        (Some(Value::Number(to)), Some("move")) if index.max(place(&to)) < elements.len() => {
            let element = elements.remove(index);
            elements.insert(place(&to), element);
        }
        _ => return Err(op.refused()),
    }
    Ok(())
}

/// Applies any other operation.
fn change(at: &mut Value, mut op: Op) -> Result<(), DecodeError> {
    match (at, &op.last, op.value.take(), op.word.as_ref().map(Value::as_str)) {
        (Value::Object(members), Value::String(name), Some(value), None) => {
            members.insert(name.clone(), value);
        }
        // The patch may name an entry that was added and removed since this copy's version; it is
        // absent here.
        (Value::Object(members), Value::String(name), None, _) => {
            members.remove(name);
        }
        (Value::Array(elements), Value::Number(index), Some(value), None) => {
            let element = elements.get_mut(place(index)).ok_or_else(|| op.refused())?;
            *element = value;
        }
        (at, last, Some(Value::Array(order)), Some(Some("order"))) => {
            let done = match inside(at, last) {
                Some(Value::Array(elements)) => put_in_order(elements, &order),
                _ => false,
            };
            if !done {
                return Err(op.refused());
            }
        }
        _ => return Err(op.refused()),
    }
    Ok(())
}

/// One step of a path.
fn inside<'a>(at: &'a mut Value, step: &Value) -> Option<&'a mut Value> {
    match (at, step) {
        (Value::Object(members), Value::String(name)) => members.get_mut(name),
        (Value::Array(elements), Value::Number(index)) => elements.get_mut(place(index)),
        _ => None,
    }
}

/// Reorders elements by their old indices. Returns whether each is named exactly once.
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
        mirror
            .snapshot(br#"[[[], {"log": [10, 20, 30], "rows": [[1, 2], []], "name": 5}]]"#)
            .unwrap();
        mirror.patch(ops.as_bytes()).map_err(|error| error.to_string())?;
        Ok(format!("{} {}", mirror.state()["log"], mirror.state()["rows"]))
    }

    #[test]
    fn elements_move() {
        let moved = |ops| patched(ops).unwrap();
        assert_eq!(moved(r#"[[["log", 0], 2, "move"]]"#), "[20,30,10] [[1,2],[]]");
        assert_eq!(
            moved(r#"[[["log", 2], 0, "move"], [["rows", 1], 0, "move"]]"#),
            "[30,10,20] [[],[1,2]]"
        );
        assert_eq!(moved(r#"[[["log"], [2, 0, 1], "order"]]"#), "[30,10,20] [[1,2],[]]");
        assert_eq!(moved(r#"[[["rows", 0], [1, 0], "order"]]"#), "[10,20,30] [[2,1],[]]");
        assert_eq!(moved(r#"[[["rows", 1], [], "order"]]"#), "[10,20,30] [[1,2],[]]");
    }

    #[test]
    fn one_patch_inserts_and_removes_many_elements() {
        let ones = |of: &str| vec![of; 100_000].join(",");
        let mut mirror = JsonMirror::new();
        mirror.snapshot(format!(r#"[[[], {{"log": [{}]}}]]"#, ones("1")).as_bytes()).unwrap();
        mirror.patch(format!("[{}]", ones(r#"[["log", 0], 2, "insert"]"#)).as_bytes()).unwrap();
        mirror.patch(format!("[{}]", ones(r#"[["log", 0], 199999, "move"]"#)).as_bytes()).unwrap();
        let log = mirror.state()["log"].as_array().unwrap();
        assert_eq!(log.len(), 200_000);
        assert!(
            log[..100_000].iter().all(|one| *one == 1)
                && log[100_000..].iter().all(|one| *one == 2)
        );
        mirror.patch(format!("[{}]", ones(r#"[["log", 0]]"#)).as_bytes()).unwrap();
        assert_eq!(mirror.state()["log"].as_array().unwrap().len(), 100_000);
    }

    #[test]
    fn a_patch_that_switches_between_arrays_too_often_is_rejected() {
        let array = vec!["1"; 10_000].join(",");
        // 20,003 values in the copy.
        let snapshot = format!(r#"[[[], {{"a": [{array}], "b": [{array}]}}]]"#);
        let turns = |count: usize| {
            let ops = [r#"[["a",0],10,"move"]"#, r#"[["b",0],10,"move"]"#]
                .into_iter()
                .cycle()
                .take(count);
            let body = format!("[{}]", ops.collect::<Vec<_>>().join(","));
            let mut mirror = JsonMirror::new();
            mirror.snapshot(snapshot.as_bytes()).unwrap();
            (body.len(), mirror.patch(body.as_bytes()))
        };
        let allowed = |bytes: usize| (RESHAPED_MAX + RESHAPED_FACTOR * (20_003 + bytes)) / 10_000;
        let (bytes, applied) = turns(16);
        assert_eq!((allowed(bytes), applied), (16, Ok(())));
        let (bytes, refused) = turns(17);
        assert_eq!(allowed(bytes), 16);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("this one, of 10000 elements, is past the 65536"), "{error}");
        // Without returning to an array, any number is allowed.
        let rows = vec!["[1, 2, 3]"; 50_000].join(",");
        let mut mirror = JsonMirror::new();
        mirror.snapshot(format!(r#"[[[], {{"rows": [{rows}]}}]]"#).as_bytes()).unwrap();
        let ops: Vec<String> = (0..50_000).map(|row| format!(r#"[["rows",{row},0]]"#)).collect();
        mirror.patch(format!("[{}]", ops.join(",")).as_bytes()).unwrap();
        assert_eq!(mirror.state()["rows"][49_999], serde_json::json!([2, 3]));
    }

    #[test]
    fn invalid_moves_and_orders_are_rejected() {
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
            r#"[["log", 0], 1, "insert", 2]"#,
        ] {
            let error = patched(&format!("[{op}]")).unwrap_err();
            let known = [
                "expected an operation that fits this copy,",
                "expected an operation with at most three parts,",
            ];
            assert!(known.iter().any(|known| error.contains(known)), "{op}: {error}");
        }
    }
}
