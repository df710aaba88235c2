//! Values: the state of rooms, replies, events and parsed texts, as trees that are read in place.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use playfield_client::{DynamicCopy, Mirror as _};
use playfield_state::Path;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{TreeFormat, json};
use serde_json::Value;

use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::text::{PfText, place};

/// A tree of your own, made by `pf_json_parse`. Free it with `pf_tree_free`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfTree {
    /// The handle; 0 is none.
    pub id: u64,
}

/// A value in a tree. It is checked: after its tree is gone it fails with `PF_CODE_STALE`.
///
/// A room's state is gone when `pf_client_next` reports another (`PF_EVENT_KIND_STATE`), the values
/// of an event with the next call of `pf_client_next`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PfValue {
    /// The tree; 0 means no value.
    pub tree: u64,
    /// The place in it.
    pub node: u64,
    /// Shows that tree and place belong together.
    pub check: u64,
}

/// What a value is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PfValueKind {
    /// There is none.
    None = 0,
    /// `null`: an `Option` without a value.
    Null = 1,
    /// A boolean.
    Bool = 2,
    /// A number.
    Number = 3,
    /// A text. Bytes, integers past 2^53 and floats that are not finite are texts too.
    Text = 4,
    /// A list, array, tuple or set.
    List = 5,
    /// A struct or map.
    Map = 6,
}

/// A member of a map, or an element of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PfEntry {
    /// The member's name; empty for an element.
    pub key: PfText,
    /// The value.
    pub value: PfValue,
}

/// What values belong to.
pub(crate) enum Tree {
    Own(Value),
    State(Arc<DynamicCopy>),
}

impl Object for Tree {
    const KIND: u8 = 4;
    const NAME: &'static str = "a tree";
}

impl Tree {
    fn root(&self) -> &Value {
        match self {
            Self::Own(value) => value,
            Self::State(state) => state.state(),
        }
    }

    /// Puts it into the table. Returns its root.
    pub(crate) fn publish(self) -> Outcome<PfValue> {
        let tree = Arc::new(self);
        let node = std::ptr::from_ref(tree.root());
        let handle = handle::insert(tree)?;
        Ok(PfValue::new(handle, node))
    }
}

/// The keys of checks.
static SECRET: LazyLock<[u64; 2]> =
    LazyLock::new(|| [0, 1].map(|number| RandomState::new().hash_one(number)));

impl PfValue {
    fn new(tree: u64, node: *const Value) -> Self {
        let node = node.expose_provenance() as u64;
        Self { tree, node, check: check(tree, node) }
    }
}

/// Shows that a program has made up or mixed the members of a value. It is no secret from a
/// program, which can read all memory.
fn check(tree: u64, node: u64) -> u64 {
    let [one, other] = *SECRET;
    let product = u128::from(tree ^ one) * u128::from(node ^ other);
    (product >> 64) as u64 ^ product as u64
}

/// Reads a value. What it borrows lives as long as the tree, which `read` must not let out except
/// as a [`PfText`], whose lifetime is documented.
fn with<T>(value: PfValue, read: impl FnOnce(&Value) -> Outcome<T>) -> Outcome<T> {
    with_tree(value, |_, found| read(found))
}

/// The same, with the tree.
fn with_tree<T>(value: PfValue, read: impl FnOnce(&Arc<Tree>, &Value) -> Outcome<T>) -> Outcome<T> {
    if value.tree == 0 {
        return Err(Failure::new(PfCode::NotFound, "there is no value"));
    }
    let tree = handle::find::<Tree>(value.tree).map_err(|failure| match failure.code {
        PfCode::Freed => Failure::new(PfCode::Stale, "the value is of a tree that is gone"),
        _ => failure,
    })?;
    if value.check != check(value.tree, value.node) {
        let text = "the members of a pf_value were changed, or are of two values";
        return Err(Failure::new(PfCode::Handle, text));
    }
    let node: *const Value = std::ptr::with_exposed_provenance(value.node as usize);
    // SAFETY: the check shows that this library made the address from a value in this tree. The
    // tree does not change while it is in the table, and `tree` keeps it through this call.
    read(&tree, unsafe { &*node })
}

fn kind(value: &Value) -> PfValueKind {
    match value {
        Value::Null => PfValueKind::Null,
        Value::Bool(_) => PfValueKind::Bool,
        Value::Number(_) => PfValueKind::Number,
        Value::String(_) => PfValueKind::Text,
        Value::Array(_) => PfValueKind::List,
        Value::Object(_) => PfValueKind::Map,
    }
}

fn unfit<T>(value: &Value, wanted: &str) -> Outcome<T> {
    let mut text = value.to_string();
    if let Some((end, _)) = text.char_indices().nth(60) {
        text.truncate(end);
        text.push('…');
    }
    Err(Failure::new(PfCode::Type, format!("{text} is not {wanted}")))
}

/// Parses JSON. `out` is set to a tree, whose root is a value.
///
/// # Safety
/// `text` points to text; `out` and `root` point to places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_json_parse(
    text: PfText,
    out: *mut PfTree,
    root: *mut PfValue,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (text, out, root) = unsafe {
            (
                text.bytes("the JSON")?,
                place(out, "the place for the tree")?,
                place(root, "the place for the value")?,
            )
        };
        if text.is_empty() {
            return Err(Failure::argument("the JSON", "it is empty"));
        }
        let value = read_value(TreeFormat::Json, text)
            .map_err(|error| Failure::argument("the JSON", error))?;
        *root = Tree::Own(value).publish()?;
        out.id = root.tree;
        Ok(())
    })
}

/// Keeps a value: `out` is set to a tree of your own with a copy of it, which is `root`.
///
/// # Safety
/// `out` and `root` point to places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_keep(
    value: PfValue,
    out: *mut PfTree,
    root: *mut PfValue,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (out, root) = unsafe {
            (place(out, "the place for the tree")?, place(root, "the place for the value")?)
        };
        *root = with_tree(value, |tree, found| match &**tree {
            // Such a tree never changes: another handle of it is as good as a copy.
            Tree::Own(whole) if std::ptr::eq(whole, found) => {
                Ok(PfValue::new(handle::insert(Arc::clone(tree))?, found))
            }
            _ => Tree::Own(found.clone()).publish(),
        })?;
        out.id = root.tree;
        Ok(())
    })
}

/// Frees a tree. Its values are stale then.
#[unsafe(no_mangle)]
pub extern "C" fn pf_tree_free(tree: PfTree) -> PfCode {
    call(|| {
        if matches!(&*handle::find::<Tree>(tree.id)?, Tree::State(_)) {
            let text = "the state of a room is not a tree of your own: free the room";
            return Err(Failure::new(PfCode::Handle, text));
        }
        handle::remove::<Tree>(tree.id).map(drop)
    })
}

/// What a value is. `PF_KIND_NONE` if it is stale, or there is none.
#[unsafe(no_mangle)]
pub extern "C" fn pf_value_kind(value: PfValue) -> PfValueKind {
    let mut found = PfValueKind::None;
    call(|| {
        found = with(value, |value| Ok(kind(value)))?;
        Ok(())
    });
    found
}

/// How many members or elements a value has; 0 if it is neither a map nor a list.
#[unsafe(no_mangle)]
pub extern "C" fn pf_value_size(value: PfValue) -> usize {
    let mut size = 0;
    call(|| {
        with(value, |value| {
            size = match value {
                Value::Array(elements) => elements.len(),
                Value::Object(members) => members.len(),
                _ => 0,
            };
            Ok(())
        })
    });
    size
}

/// Sets `out` to the value at a path from this one: names and indexes with dots between them, such
/// as `players.7.hp`. A name with other characters than letters, digits, `_` and `-` is quoted as
/// in JSON. An empty path is the value itself.
///
/// # Errors
/// `PF_CODE_NOT_FOUND` if there is none.
///
/// # Safety
/// `path` points to text, `out` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_get(value: PfValue, path: PfText, out: *mut PfValue) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (path, out) =
            unsafe { (path.text("the path")?, place(out, "the place for the value")?) };
        *out = PfValue::default();
        *out = with(value, |root| {
            let mut found = root;
            for step in steps(path) {
                let step = step?;
                let next = match found {
                    Value::Object(members) => members.get(&*step),
                    Value::Array(elements) => {
                        step.parse::<usize>().ok().and_then(|index| elements.get(index))
                    }
                    _ => None,
                };
                found = next.ok_or_else(|| {
                    let text = format!("there is no {step:?}, of the path {path:?}");
                    Failure::new(PfCode::NotFound, text)
                })?;
            }
            Ok(PfValue::new(value.tree, found))
        })?;
        Ok(())
    })
}

/// Sets `out` to the member of this name, which is not a path.
///
/// # Errors
/// `PF_CODE_NOT_FOUND` if there is none.
///
/// # Safety
/// `name` points to text, `out` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_member(
    value: PfValue,
    name: PfText,
    out: *mut PfValue,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, out) =
            unsafe { (name.text("the name")?, place(out, "the place for the value")?) };
        *out = PfValue::default();
        *out = with(value, |map| {
            map.get(name).map(|found| PfValue::new(value.tree, found)).ok_or_else(|| {
                Failure::new(PfCode::NotFound, format!("there is no member {name:?}"))
            })
        })?;
        Ok(())
    })
}

/// Fills `entries` with the members or elements of a value, from the one at `first`: at most
/// `capacity`. `written` is set to how many. Maps are in the order of their names.
///
/// # Safety
/// `entries` points to `capacity` places, `written` to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_entries(
    value: PfValue,
    first: usize,
    entries: *mut PfEntry,
    capacity: usize,
    written: *mut usize,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let written = unsafe { place(written, "the place for the number of entries") }?;
        *written = 0;
        let mut put = |index: usize, key: &str, found: &Value| {
            let entry = PfEntry { key: PfText::of(key), value: PfValue::new(value.tree, found) };
            // SAFETY: `index` is below `capacity`, and `entries` was checked below.
            unsafe { entries.add(index).write(entry) };
            *written = index + 1;
        };
        if capacity > 0 {
            // SAFETY: the caller promises it.
            unsafe { place(entries, "the place for the entries") }?;
        }
        with(value, |value| {
            match value {
                Value::Array(elements) => {
                    let all = elements.iter().skip(first).take(capacity).enumerate();
                    all.for_each(|(index, found)| put(index, "", found));
                }
                Value::Object(members) => {
                    let all = members.iter().skip(first).take(capacity).enumerate();
                    all.for_each(|(index, (key, found))| put(index, key, found));
                }
                value => return unfit(value, "a map or a list"),
            }
            Ok(())
        })
    })
}

/// Reads a value as a type.
///
/// # Safety
/// `out` is null or points to a place.
unsafe fn read<T>(
    value: PfValue,
    out: *mut T,
    wanted: &str,
    reader: impl Fn(&Value) -> Option<T>,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the value") }?;
        *out = with(value, |value| reader(value).map_or_else(|| unfit(value, wanted), Ok))?;
        Ok(())
    })
}

/// Reads a boolean.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_bool(value: PfValue, out: *mut bool) -> PfCode {
    // SAFETY: the caller promises it.
    unsafe { read(value, out, "a boolean", Value::as_bool) }
}

/// Reads a signed integer, also of the text that one past 2^53 is.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_i64(value: PfValue, out: *mut i64) -> PfCode {
    // SAFETY: the caller promises it.
    unsafe {
        read(value, out, "a signed integer of 64 bits", |value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_i64(),
        })
    }
}

/// Reads an unsigned integer, also of the text that one past 2^53 is.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_u64(value: PfValue, out: *mut u64) -> PfCode {
    // SAFETY: the caller promises it.
    unsafe {
        read(value, out, "an unsigned integer of 64 bits", |value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        })
    }
}

/// Reads a number, also one that is not finite.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_f64(value: PfValue, out: *mut f64) -> PfCode {
    // SAFETY: the caller promises it.
    unsafe { read(value, out, "a number", float) }
}

/// Reads a text in place: it is valid until the value is stale.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_text(value: PfValue, out: *mut PfText) -> PfCode {
    // SAFETY: the caller promises it.
    unsafe { read(value, out, "a text", |value| value.as_str().map(PfText::of)) }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        value => value.as_f64(),
    }
}

thread_local! {
    /// What the calls below return.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps bytes for the thread until its next such call.
pub(crate) fn scratch(bytes: Vec<u8>) -> PfText {
    SCRATCH
        .try_with(|scratch| {
            let mut scratch = scratch.borrow_mut();
            *scratch = bytes;
            PfText::of_bytes(&scratch)
        })
        .unwrap_or_default()
}

/// Decodes bytes, which are base64 in a value. Valid until this thread's next call that returns
/// text made for it.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_bytes(value: PfValue, out: *mut PfText) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the bytes") }?;
        let bytes = with(value, |value| {
            json::as_bytes(value).map_or_else(|| unfit(value, "bytes in base64"), Ok)
        })?;
        *out = scratch(bytes);
        Ok(())
    })
}

/// Writes a value as JSON. Valid until this thread's next call that returns text made for it.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_json(value: PfValue, out: *mut PfText) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the JSON") }?;
        let mut written = Vec::new();
        with(value, |value| {
            TreeWriter::new(TreeFormat::Json, &mut written).value(value);
            Ok(())
        })?;
        *out = scratch(written);
        Ok(())
    })
}

/// Sets `out` to whether two values are equal.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_value_equal(a: PfValue, b: PfValue, out: *mut bool) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the answer") }?;
        *out = with(a, |a| with(b, |b| Ok(a == b)))?;
        Ok(())
    })
}

/// The steps of a path.
fn steps(path: &str) -> impl Iterator<Item = Outcome<Cow<'_, str>>> {
    let mut rest = (!path.is_empty()).then_some(path);
    std::iter::from_fn(move || {
        let text = rest?;
        if !text.starts_with('"') {
            let (step, after) = text.split_once('.').map_or((text, None), |(a, b)| (a, Some(b)));
            rest = after;
            return Some(Ok(step.into()));
        }
        let mut quoted = serde_json::Deserializer::from_str(text).into_iter::<String>();
        let step = quoted.next()?;
        let after = &text[quoted.byte_offset()..];
        rest = after.strip_prefix('.');
        let is_whole = after.is_empty() || rest.is_some();
        Some(match step {
            Ok(step) if is_whole => Ok(step.into()),
            Ok(_) => {
                rest = None;
                Err(Failure::argument("the path", "a dot is missing after a quoted name"))
            }
            Err(error) => {
                rest = None;
                Err(Failure::argument("the path", error))
            }
        })
    })
}

/// A path as text.
pub(crate) fn path_text(path: &Path) -> String {
    path.to_string()
}
