//! Writing trees, straight into the output.

use serde_json::Value;

use super::digest::{self, Place};
use super::value::{read_value, write_parts};
use crate::{TreeFormat, json, msgpack};

/// The place of one value in a tree that is being written: it is used up by writing that value.
///
/// ```
/// use playfield_wire::TreeFormat;
/// use playfield_wire::tree::TreeWriter;
///
/// let mut out = Vec::new();
/// let mut seat = TreeWriter::new(TreeFormat::Json, &mut out).object(2);
/// seat.field("name").text("Ada");
/// seat.field("hp").u64(100);
/// seat.end();
/// assert_eq!(out, br#"{"name":"Ada","hp":100}"#);
/// ```
#[derive(Debug)]
#[must_use = "a value is to be written here"]
pub struct TreeWriter<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug)]
enum Form {
    Json,
    Msgpack,
    /// The value, which stands at this place, is counted as a copy has it that was read from this
    /// format. The sum stands in the output's first four bytes; behind them is room to work.
    Digest {
        place: Place,
        of: TreeFormat,
    },
}

impl From<TreeFormat> for Form {
    #[inline]
    fn from(format: TreeFormat) -> Self {
        match format {
            TreeFormat::Json => Self::Json,
            TreeFormat::Msgpack => Self::Msgpack,
        }
    }
}

impl Form {
    #[inline]
    fn format(self) -> TreeFormat {
        match self {
            Self::Json => TreeFormat::Json,
            Self::Msgpack => TreeFormat::Msgpack,
            Self::Digest { of, .. } => of,
        }
    }
}

impl<'o> TreeWriter<'o> {
    /// A value at the end of `out`.
    #[inline]
    pub fn new(format: TreeFormat, out: &'o mut Vec<u8>) -> Self {
        Self { out, form: format.into() }
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.form.format()
    }

    /// Nothing.
    pub fn null(self) {
        match self.form {
            Form::Json => self.out.extend_from_slice(b"null"),
            Form::Msgpack => msgpack::write_null(self.out),
            Form::Digest { place, .. } => self.count(place, digest::null()),
        }
    }

    /// `true` or `false`.
    pub fn bool(self, value: bool) {
        match self.form {
            Form::Json => self.out.extend_from_slice(if value { b"true" } else { b"false" }),
            Form::Msgpack => msgpack::write_bool(self.out, value),
            Form::Digest { place, .. } => self.count(place, digest::bool(value)),
        }
    }

    /// An unsigned integer.
    #[inline]
    pub fn u64(self, value: u64) {
        match self.form {
            Form::Json => json::write_u64(self.out, value),
            Form::Msgpack => msgpack::write_u64(self.out, value),
            Form::Digest { place, of: TreeFormat::Json } if value > json::INTEGER_MAX => {
                self.count_written(place, |out| json::write_u64(out, value));
            }
            Form::Digest { place, .. } => self.count(place, digest::number(value as f64)),
        }
    }

    /// A signed integer.
    #[inline]
    pub fn i64(self, value: i64) {
        match self.form {
            Form::Json => json::write_i64(self.out, value),
            Form::Msgpack => msgpack::write_i64(self.out, value),
            Form::Digest { place, of: TreeFormat::Json }
                if value.unsigned_abs() > json::INTEGER_MAX =>
            {
                self.count_written(place, |out| json::write_i64(out, value));
            }
            Form::Digest { place, .. } => self.count(place, digest::number(value as f64)),
        }
    }

    /// A 32-bit float.
    #[inline]
    pub fn f32(self, value: f32) {
        match self.form {
            Form::Json => json::write_f32(self.out, value),
            Form::Msgpack => msgpack::write_f32(self.out, value),
            // In text it is another number: the shortest that is taken for it.
            Form::Digest { place, of: TreeFormat::Json } => {
                self.count_written(place, |out| json::write_f32(out, value));
            }
            Form::Digest { place, .. } => self.count_float(place, value.into()),
        }
    }

    /// A 64-bit float.
    #[inline]
    pub fn f64(self, value: f64) {
        match self.form {
            Form::Json => json::write_f64(self.out, value),
            Form::Msgpack => msgpack::write_f64(self.out, value),
            Form::Digest { place, .. } => self.count_float(place, value),
        }
    }

    /// A text.
    #[inline]
    pub fn text(self, value: &str) {
        match self.form {
            Form::Json => json::write_text(self.out, value),
            Form::Msgpack => msgpack::write_text(self.out, value),
            Form::Digest { place, .. } => self.count(place, digest::text(value)),
        }
    }

    /// Bytes.
    pub fn bytes(self, value: &[u8]) {
        match self.form {
            Form::Json => json::write_base64(self.out, value),
            Form::Msgpack => msgpack::write_bytes(self.out, value),
            // In every copy they are a text.
            Form::Digest { place, .. } => {
                self.count_written(place, |out| json::write_base64(out, value))
            }
        }
    }

    /// What `write` appends: a value in this format already. No bytes stand for null.
    #[inline]
    pub fn raw(self, write: impl FnOnce(&mut Vec<u8>)) {
        if let Form::Digest { place, of } = self.form {
            return self.count_read(place, of, write);
        }
        let start = self.out.len();
        write(self.out);
        if self.out.len() == start {
            self.null();
        }
    }

    /// Begins an object. `expected` is how many members it will probably have: another number is
    /// written as correctly, but costs a move of the object's bytes where MessagePack counts it in
    /// another width.
    #[inline]
    pub fn object(self, expected: usize) -> Object<'o> {
        let Self { out, form } = self;
        let head = Head::begin(out, form, b'{', expected);
        Object { out, form, head, count: 0 }
    }

    /// Begins an array; `expected` is as in [`object`](Self::object).
    #[inline]
    pub fn array(self, expected: usize) -> Array<'o> {
        let Self { out, form } = self;
        let head = Head::begin(out, form, b'[', expected);
        Array { out, form, head: Some(head), count: 0 }
    }

    /// An array of these `count` elements, which an array that is [bare](Array::bare) wrote.
    #[inline]
    pub fn array_of(self, elements: &[u8], count: usize) {
        match self.form {
            Form::Json => {
                self.out.push(b'[');
                self.out.extend_from_slice(elements);
                self.out.push(b']');
            }
            Form::Msgpack => {
                msgpack::write_array_head(self.out, count);
                self.out.extend_from_slice(elements);
            }
            Form::Digest { place, of } => {
                self.count_read(place, of, |out| {
                    TreeWriter::new(of, out).array_of(elements, count)
                });
            }
        }
    }

    /// Any value, as it is.
    pub fn value(self, value: &Value) {
        match self.form {
            Form::Json => {
                serde_json::to_writer(self.out, value)
                    .expect("a Vec takes all that is written to it");
            }
            Form::Msgpack => write_parts(self, value),
            Form::Digest { place, .. } => add_to(self.out, |sum| digest::add(sum, place, value)),
        }
    }

    /// Where the value stands, and in a copy read from what format, if it is not written but counts
    /// in a [`TreeDigest`].
    #[inline]
    #[must_use]
    pub fn counts(&self) -> Option<(TreeFormat, Place)> {
        match self.form {
            Form::Digest { place, of } => Some((of, place)),
            Form::Json | Form::Msgpack => None,
        }
    }

    /// An object whose members were counted before, where it [counts](Self::counts).
    pub fn count_object(self, members: u32) {
        if let Form::Digest { place, .. } = self.form {
            add_to(self.out, |sum| {
                *sum = sum.wrapping_add(members);
                digest::count(sum, place, digest::object());
            });
        }
    }

    /// Adds what this counts.
    #[inline]
    fn count(self, place: Place, what: u32) {
        add_to(self.out, |sum| digest::count(sum, place, what));
    }

    fn count_float(self, place: Place, value: f64) {
        if value.is_finite() {
            self.count(place, digest::number(value));
        } else {
            self.count(place, digest::text(json::name_of_float(value)));
        }
    }

    /// Adds what a value counts that is a text or a number in JSON.
    fn count_written(self, place: Place, write: impl FnOnce(&mut Vec<u8>)) {
        self.count_read(place, TreeFormat::Json, write);
    }

    /// Adds what a value counts that is written in this format.
    fn count_read(self, place: Place, format: TreeFormat, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        write(self.out);
        // What can't be read is in no copy either.
        let value = read_value(format, &self.out[start..]).unwrap_or_default();
        self.out.truncate(start);
        add_to(self.out, |sum| digest::add(sum, place, &value));
    }
}

/// The digest of a tree that is written here instead of into bytes, as that of a copy which was
/// read from the format.
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
    out: Vec<u8>,
}

impl TreeDigest {
    /// That of nothing yet.
    #[must_use]
    pub fn new(of: TreeFormat) -> Self {
        Self { of, out: vec![0; SUM_BYTES] }
    }

    /// A value at this place, which is added to what was written elsewhere.
    #[inline]
    pub fn at(&mut self, place: Place) -> TreeWriter<'_> {
        TreeWriter { out: &mut self.out, form: Form::Digest { place, of: self.of } }
    }

    /// What format the copy is read from.
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.of
    }

    /// Adds what was counted before.
    pub fn add(&mut self, more: u32) {
        add_to(&mut self.out, |sum| *sum = sum.wrapping_add(more));
    }

    /// What all that was written comes to.
    #[must_use]
    pub fn sum(&self) -> u32 {
        sum_of(&self.out)
    }
}

const SUM_BYTES: usize = size_of::<u32>();

fn sum_of(out: &[u8]) -> u32 {
    out.first_chunk().map_or(0, |sum| u32::from_le_bytes(*sum))
}

#[inline]
fn add_to(out: &mut [u8], add: impl FnOnce(&mut u32)) {
    let mut sum = sum_of(out);
    add(&mut sum);
    if let Some(place) = out.first_chunk_mut() {
        *place = sum.to_le_bytes();
    }
}

/// An object that is being written. It ends with [`end`](Self::end).
#[derive(Debug)]
#[must_use = "an object has to be ended"]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
    head: Head,
    count: usize,
}

impl Object<'_> {
    /// The next member's value, which bears any name.
    #[inline]
    pub fn member(&mut self, name: &str) -> TreeWriter<'_> {
        match self.form {
            Form::Json => {
                self.separate();
                json::write_text(self.out, name);
                self.out.push(b':');
            }
            Form::Msgpack => msgpack::write_text(self.out, name),
            Form::Digest { .. } => {}
        }
        self.value(name)
    }

    /// The next member's value. The name is that of a field or a variant, so it needs no escapes.
    #[inline]
    pub fn field(&mut self, name: &str) -> TreeWriter<'_> {
        match self.form {
            Form::Json => {
                self.separate();
                self.out.push(b'"');
                self.out.extend_from_slice(name.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
            Form::Msgpack => msgpack::write_text(self.out, name),
            Form::Digest { .. } => {}
        }
        self.value(name)
    }

    /// The place of the member whose name has been written.
    #[inline]
    fn value(&mut self, name: &str) -> TreeWriter<'_> {
        self.count += 1;
        let form = match self.form {
            Form::Digest { place, of } => Form::Digest { place: place.member(name), of },
            form => form,
        };
        TreeWriter { out: self.out, form }
    }

    /// A [`field`](Self::field), unless `value` says that it wrote none; then it must not have.
    #[inline]
    pub fn field_if(&mut self, name: &str, value: impl FnOnce(TreeWriter<'_>) -> bool) {
        let start = self.out.len();
        if !value(self.field(name)) {
            self.out.truncate(start);
            self.count -= 1;
        }
    }

    /// Ends the object.
    #[inline]
    pub fn end(self) {
        match self.form {
            Form::Json => self.out.push(b'}'),
            Form::Msgpack => self.head.end(self.out, self.count, msgpack::write_object_head),
            Form::Digest { place, .. } => {
                add_to(self.out, |sum| digest::count(sum, place, digest::object()))
            }
        }
    }

    #[inline]
    fn separate(&mut self) {
        if self.count > 0 {
            self.out.push(b',');
        }
    }
}

/// An array that is being written. It ends with [`end`](Self::end).
#[derive(Debug)]
#[must_use = "an array has to be ended"]
pub struct Array<'o> {
    out: &'o mut Vec<u8>,
    form: Form,
    head: Option<Head>,
    count: usize,
}

impl<'o> Array<'o> {
    /// Elements without an array around them, of which `count` are in `out` already: to be
    /// [appended](Self::append) to one.
    #[inline]
    pub fn bare(format: TreeFormat, out: &'o mut Vec<u8>, count: usize) -> Self {
        Self { out, form: format.into(), head: None, count }
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.form.format()
    }

    /// How many elements there are by now.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next element.
    #[inline]
    pub fn element(&mut self) -> TreeWriter<'_> {
        self.separate();
        let form = match self.form {
            Form::Digest { place, of } => Form::Digest { place: place.element(self.count), of },
            form => form,
        };
        self.count += 1;
        TreeWriter { out: self.out, form }
    }

    /// The next `count` elements, which an array that is [bare](Self::bare) wrote.
    #[inline]
    pub fn append(&mut self, elements: &[u8], count: usize) {
        if let Form::Digest { .. } = self.form {
            // They are read one after the other, since each counts by its index.
            let (format, mut bytes) = (self.format(), Vec::new());
            TreeWriter::new(format, &mut bytes).array_of(elements, count);
            let read = read_value(format, &bytes).unwrap_or_default();
            read.as_array().into_iter().flatten().for_each(|value| self.element().value(value));
        } else if count > 0 {
            self.separate();
            self.count += count;
            self.out.extend_from_slice(elements);
        }
    }

    /// Ends the array.
    #[inline]
    pub fn end(self) {
        match (self.form, self.head) {
            (_, None) => {}
            (Form::Json, Some(_)) => self.out.push(b']'),
            (Form::Msgpack, Some(head)) => {
                head.end(self.out, self.count, msgpack::write_array_head)
            }
            (Form::Digest { place, .. }, Some(_)) => {
                add_to(self.out, |sum| digest::count(sum, place, digest::array(self.count)));
            }
        }
    }

    #[inline]
    fn separate(&mut self) {
        if self.count > 0 && matches!(self.form, Form::Json) {
            self.out.push(b',');
        }
    }
}

/// Where an object or an array begins. MessagePack counts there what follows, so that place is held
/// open until the end.
#[derive(Clone, Copy, Debug)]
struct Head {
    at: usize,
    bytes: usize,
}

impl Head {
    #[inline]
    fn begin(out: &mut Vec<u8>, form: Form, bracket: u8, expected: usize) -> Self {
        let at = out.len();
        match form {
            Form::Json => {
                out.push(bracket);
                Self { at, bytes: 1 }
            }
            Form::Msgpack => {
                let bytes = msgpack::head_bytes(expected);
                out.resize(at + bytes, 0);
                Self { at, bytes }
            }
            Form::Digest { .. } => Self { at, bytes: 0 },
        }
    }

    fn end(self, out: &mut Vec<u8>, count: usize, write: fn(&mut Vec<u8>, usize)) {
        let bytes = msgpack::head_bytes(count);
        let end = out.len();
        write(out, count);
        if bytes == self.bytes {
            out.copy_within(end.., self.at);
            out.truncate(end);
        } else {
            // Another width than was expected: the head is put in front of what it counts.
            out[self.at..].rotate_right(bytes);
            out.drain(self.at + bytes..self.at + bytes + self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: TreeFormat, write: impl FnOnce(TreeWriter<'_>)) -> Vec<u8> {
        let mut out = vec![0xaa];
        write(TreeWriter::new(format, &mut out));
        assert_eq!(out.remove(0), 0xaa);
        out
    }

    fn array(format: TreeFormat, expected: usize, count: usize) -> Vec<u8> {
        written(format, |tree| {
            let mut array = tree.array(expected);
            (0..count).for_each(|_| array.element().u64(7));
            assert_eq!(array.count(), count);
            array.end();
        })
    }

    #[test]
    fn a_count_is_in_its_shortest_form_whatever_was_expected() {
        let counts = [0, 1, 15, 16, 17, 0xffff, 0x1_0000];
        for count in counts {
            let head: Vec<u8> = match count {
                0..16 => vec![0x90 | count as u8],
                16..0x1_0000 => [&[0xdc], &(count as u16).to_be_bytes()[..]].concat(),
                _ => [&[0xdd], &(count as u32).to_be_bytes()[..]].concat(),
            };
            let whole = [head, vec![7; count]].concat();
            for expected in counts {
                assert_eq!(
                    array(TreeFormat::Msgpack, expected, count),
                    whole,
                    "{count}, {expected} expected"
                );
            }
        }
    }

    #[test]
    fn an_object_is_counted_without_the_members_that_are_not_there() {
        let write = |tree: TreeWriter<'_>| {
            let mut object = tree.object(3);
            object.field_if("gone", |_| false);
            object.field("a").bool(true);
            object.field_if("b", |value| {
                value.null();
                true
            });
            object.field_if("gone", |_| false);
            object.member("\"").text("é");
            object.end();
        };
        assert_eq!(written(TreeFormat::Json, write), r#"{"a":true,"b":null,"\"":"é"}"#.as_bytes());
        assert_eq!(
            written(TreeFormat::Msgpack, write),
            b"\x83\xa1a\xc3\xa1b\xc0\xa1\"\xa2\xc3\xa9"
        );
        let many = written(TreeFormat::Msgpack, |tree| {
            let mut object = tree.object(0);
            (0..16).for_each(|_| object.field("a").null());
            object.end();
        });
        assert_eq!(many, [&[0xde, 0, 16][..], &b"\xa1a\xc0".repeat(16)].concat());
    }

    #[test]
    fn elements_are_appended_as_they_were_written() {
        for (format, whole) in
            [(TreeFormat::Json, &b"[1,2,3]"[..]), (TreeFormat::Msgpack, b"\x93\x01\x02\x03")]
        {
            let mut elements = Vec::new();
            Array::bare(format, &mut elements, 0).element().u64(2);
            Array::bare(format, &mut elements, 1).element().u64(3);
            let appended = written(format, |tree| {
                let mut array = tree.array(0);
                array.append(b"", 0);
                array.element().u64(1);
                array.append(&elements, 2);
                array.append(b"", 0);
                array.end();
            });
            assert_eq!(appended, whole);
            let rest = written(format, |tree| tree.array_of(&elements, 2));
            assert_eq!(
                rest,
                if format == TreeFormat::Json { &b"[2,3]"[..] } else { b"\x92\x02\x03" }
            );
        }
    }

    #[test]
    fn no_bytes_are_null() {
        for (format, null) in [(TreeFormat::Json, &b"null"[..]), (TreeFormat::Msgpack, b"\xc0")] {
            assert_eq!(written(format, |tree| tree.raw(|_| {})), null);
            assert_eq!(written(format, |tree| tree.raw(|out| out.push(b'1'))), b"1");
        }
    }
}
