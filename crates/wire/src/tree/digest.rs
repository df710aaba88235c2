//! A number that shows whether a copy of a tree is right.
//!
//! Every value in a tree contributes a number that depends on the value and its place. The digest
//! is their sum. So the digest of a tree made of parts, such as what everyone sees and what is one
//! player's own, is the sum of the parts' digests. It finds faults; it does not protect against
//! forgery.
//!
//! It has 32 bits and needs only what every language has, in a browser too: products of 32 bits and
//! a float's bits. Numbers are taken as 64-bit floats, since some JSON readers have no other
//! numbers. Sums and products are modulo 2^32. *mix* is the finalizer of MurmurHash3 (Appleby,
//! public domain, 2011).

use serde_json::Value;

use super::{TreeWriter, read_value};
use crate::{TreeFormat, json};

const MEMBER: u32 = 0x6d65_6d62;
const ELEMENT: u32 = 0x656c_656d;
const NULL: u32 = 0x6e75_6c6c;
const FALSE: u32 = 0x6661_6c73;
const TRUE: u32 = 0x7472_7565;
const NUMBER: u32 = 0x6e75_6d62;
const TEXT: u32 = 0x7465_7874;
const ARRAY: u32 = 0x6172_7261;
const OBJECT: u32 = 0x6f62_6a65;

/// The digest of a tree.
///
/// ```
/// use playfield_wire::tree::digest_of;
/// use serde_json::json;
///
/// assert_eq!(digest_of(&json!({"hp": 100, "name": "Ada"})), digest_of(&json!({"name": "Ada", "hp": 100.0})));
/// assert_ne!(digest_of(&json!({"hp": 100})), digest_of(&json!({"hp": 99})));
/// ```
#[must_use]
pub fn digest_of(tree: &Value) -> u32 {
    let mut digest = TreeDigest::new(TreeFormat::Json);
    digest.value(Place::ROOT, tree);
    digest.sum()
}

/// The place of a value in a tree, as it counts in a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// The root's place.
    pub const ROOT: Self = Self(0x726f_6f74);

    /// The place of a member of the object here.
    #[inline]
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        self.inside(of_text(MEMBER, name.encode_utf16()))
    }

    /// The place of an element of the array here.
    #[inline]
    #[must_use]
    pub fn element(self, index: usize) -> Self {
        self.inside(mix(ELEMENT ^ index as u32))
    }

    #[inline]
    fn inside(self, step: u32) -> Self {
        Self(mix(self.0 ^ step).wrapping_add(self.0))
    }
}

/// Computes the digest of a tree without writing it, as it is in a copy that was read from the
/// format.
///
/// ```
/// use playfield_wire::TreeFormat;
/// use playfield_wire::tree::{Place, TreeDigest, digest_of};
///
/// let mut digest = TreeDigest::new(TreeFormat::Json);
/// let mut seat = digest.at(Place::ROOT).object(1);
/// seat.field("hp").u64(100);
/// seat.end();
/// assert_eq!(digest.sum(), digest_of(&serde_json::json!({"hp": 100})));
/// ```
#[derive(Debug)]
pub struct TreeDigest {
    of: TreeFormat,
    sum: u32,
    /// Memory for texts.
    room: Vec<u8>,
}

impl TreeDigest {
    /// Creates an empty digest.
    #[must_use]
    pub fn new(of: TreeFormat) -> Self {
        Self { of, sum: 0, room: Vec::new() }
    }

    /// A writer that adds the value at this place to the digest.
    #[inline]
    pub fn at(&mut self, place: Place) -> TreeWriter<'_> {
        TreeWriter::counted(self, place)
    }

    /// The format from which the copy is read.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.of
    }

    /// Adds a sum that was counted before.
    #[inline]
    pub fn add(&mut self, more: u32) {
        self.sum = self.sum.wrapping_add(more);
    }

    /// The sum of all that was counted.
    #[must_use]
    pub fn sum(&self) -> u32 {
        self.sum
    }

    #[inline]
    fn count(&mut self, place: Place, what: u32) {
        self.add(mix(place.0 ^ what));
    }

    pub(super) fn null(&mut self, place: Place) {
        self.count(place, NULL);
    }

    pub(super) fn bool(&mut self, place: Place, value: bool) {
        self.count(place, if value { TRUE } else { FALSE });
    }

    #[inline]
    pub(super) fn u64(&mut self, place: Place, value: u64) {
        if self.of == TreeFormat::Json && value > json::INTEGER_MAX {
            return self.text(place, &value.to_string());
        }
        self.count(place, number(value as f64));
    }

    #[inline]
    pub(super) fn i64(&mut self, place: Place, value: i64) {
        if self.of == TreeFormat::Json && value.unsigned_abs() > json::INTEGER_MAX {
            return self.text(place, &value.to_string());
        }
        self.count(place, number(value as f64));
    }

    #[inline]
    pub(super) fn f32(&mut self, place: Place, value: f32) {
        let read = match self.of {
            TreeFormat::Json => json::f32_as_read(value, &mut self.room),
            TreeFormat::Msgpack => value.into(),
        };
        self.f64(place, read);
    }

    #[inline]
    pub(super) fn f64(&mut self, place: Place, value: f64) {
        if value.is_finite() {
            self.count(place, number(value));
        } else {
            self.text(place, json::name_of_float(value));
        }
    }

    #[inline]
    pub(super) fn text(&mut self, place: Place, value: &str) {
        self.count(place, of_text(TEXT, value.encode_utf16()));
    }

    /// In every copy they are a text in base64.
    pub(super) fn bytes(&mut self, place: Place, value: &[u8]) {
        self.room.clear();
        json::put_base64(&mut self.room, value);
        let what = of_text(TEXT, self.room.iter().map(|&character| character.into()));
        self.count(place, what);
    }

    /// A value that `write` appends in this digest's format.
    pub(super) fn raw(&mut self, place: Place, write: impl FnOnce(&mut Vec<u8>)) {
        self.room.clear();
        write(&mut self.room);
        // A value that can't be read is in no copy either.
        let value = read_value(self.of, &self.room).unwrap_or_default();
        self.value(place, &value);
    }

    pub(super) fn array(&mut self, place: Place, length: usize) {
        self.count(place, mix(ARRAY ^ length as u32));
    }

    pub(super) fn object(&mut self, place: Place) {
        self.count(place, OBJECT);
    }

    /// A value with all that is in it.
    pub(super) fn value(&mut self, place: Place, value: &Value) {
        match value {
            Value::Null => self.null(place),
            Value::Bool(value) => self.bool(place, *value),
            Value::Number(value) => {
                self.count(place, number(value.as_f64().unwrap_or_default()));
            }
            Value::String(value) => self.text(place, value),
            Value::Array(elements) => {
                for (index, value) in elements.iter().enumerate() {
                    self.value(place.element(index), value);
                }
                self.array(place, elements.len());
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.value(place.member(name), value);
                }
                self.object(place);
            }
        }
    }
}

/// Zero counts as the same number with either sign.
#[inline]
fn number(value: f64) -> u32 {
    let bits = (value + 0.0).to_bits();
    mix(mix(NUMBER ^ bits as u32) ^ (bits >> 32) as u32)
}

/// By its UTF-16 code units, since browsers store texts in these (FNV-1a's step: Fowler, Noll, Vo;
/// RFC 9923).
#[inline]
fn of_text(seed: u32, units: impl Iterator<Item = u16>) -> u32 {
    let step = |sum: u32, unit: u16| (sum ^ u32::from(unit)).wrapping_mul(0x0100_0193);
    mix(units.fold(seed, step))
}

#[inline]
fn mix(value: u32) -> u32 {
    let value = (value ^ (value >> 16)).wrapping_mul(0x85eb_ca6b);
    let value = (value ^ (value >> 13)).wrapping_mul(0xc2b2_ae35);
    value ^ (value >> 16)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_places_and_other_values_have_other_digests() {
        let trees = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(1.5),
            json!(""),
            json!("1"),
            json!("null"),
            json!([]),
            json!({}),
            json!([null]),
            json!([0]),
            json!([[]]),
            json!([0, 1]),
            json!([1, 0]),
            json!({"0": 0}),
            json!({"a": null}),
            json!({"a": {}}),
            json!({"a": {"b": 1}, "b": {"a": 2}}),
            json!({"a": {"b": 2}, "b": {"a": 1}}),
            json!({"b": {"a": {}}}),
            json!({"a": {"b": {}}}),
            json!({"ab": 1}),
            json!({"ba": 1}),
            json!({"é": "💡"}),
        ];
        for (place, one) in trees.iter().enumerate() {
            for other in &trees[..place] {
                assert_ne!(digest_of(one), digest_of(other), "{one} and {other}");
            }
        }
        assert_eq!(digest_of(&json!(-0.0)), digest_of(&json!(0)));
        assert_eq!(digest_of(&json!(3.0)), digest_of(&json!(3)));
    }
}
