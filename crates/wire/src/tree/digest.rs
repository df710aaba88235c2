//! A number that tells whether a copy of a tree is what it should be.
//!
//! Every value in a tree counts by itself, by what it is and where it stands: the digest is the sum
//! of what they count. So that of a tree which is put together from parts, such as what everyone
//! sees and what is one player's own, is the sum of theirs. It finds faults; it is no defence
//! against forgery.
//!
//! It is of 32 bits, and made of what every language has at hand, a browser too: products of 32
//! bits and a float's bits. A number counts as a 64-bit float, since a reader of JSON has no other.
//! Sums and products are modulo 2^32. *mix* is the finaliser of MurmurHash3 (Appleby, public
//! domain, 2011).

use serde_json::Value;

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
    let mut sum = 0;
    add(&mut sum, Place::ROOT, tree);
    sum
}

/// Where in a tree a value stands, as it counts in a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Where the root stands.
    pub const ROOT: Self = Self(0x726f_6f74);

    /// The place of a member of the object that stands here.
    #[inline]
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        self.inside(of_text(MEMBER, name))
    }

    /// The place of an element of the array that stands here.
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

/// Adds what a value at this place counts, with all that is in it.
pub(super) fn add(sum: &mut u32, place: Place, value: &Value) {
    let what = match value {
        Value::Null => null(),
        Value::Bool(value) => bool(*value),
        Value::Number(value) => number(value.as_f64().unwrap_or_default()),
        Value::String(value) => text(value),
        Value::Array(elements) => {
            elements
                .iter()
                .enumerate()
                .for_each(|(index, value)| add(sum, place.element(index), value));
            array(elements.len())
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| add(sum, place.member(name), value));
            object()
        }
    };
    count(sum, place, what);
}

/// Adds what this counts at this place.
#[inline]
pub(super) fn count(sum: &mut u32, place: Place, what: u32) {
    *sum = sum.wrapping_add(mix(place.0 ^ what));
}

pub(super) fn null() -> u32 {
    NULL
}

pub(super) fn bool(value: bool) -> u32 {
    if value { TRUE } else { FALSE }
}

/// Zero counts as one number, whichever its sign.
#[inline]
pub(super) fn number(value: f64) -> u32 {
    let bits = (value + 0.0).to_bits();
    mix(mix(NUMBER ^ bits as u32) ^ (bits >> 32) as u32)
}

#[inline]
pub(super) fn text(value: &str) -> u32 {
    of_text(TEXT, value)
}

pub(super) fn array(length: usize) -> u32 {
    mix(ARRAY ^ length as u32)
}

pub(super) fn object() -> u32 {
    OBJECT
}

/// By its UTF-16 code units, which are what a browser has of a text (FNV-1a's step: Fowler, Noll,
/// Vo; RFC 9923).
#[inline]
fn of_text(seed: u32, text: &str) -> u32 {
    let step = |sum: u32, unit: u16| (sum ^ u32::from(unit)).wrapping_mul(0x0100_0193);
    mix(text.encode_utf16().fold(seed, step))
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
    fn what_stands_elsewhere_or_is_something_else_counts_otherwise() {
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
