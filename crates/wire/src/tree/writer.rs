//! Writing trees, straight into the output.

use serde_json::Value;

use super::digest::{Place, TreeDigest};
use super::value::{read_value, write_parts};
use crate::{TreeFormat, json, msgpack};

/// The place of one value in a tree that is being written. Writing the value consumes it.
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
#[must_use = "exactly one value must be written here"]
pub struct TreeWriter<'o>(Sink<'o>);

/// The output for values. An enum and not a trait: with a trait, the code that writes trees would
/// be compiled once for each sink in every game.
#[derive(Debug)]
enum Sink<'o> {
    Json(&'o mut Vec<u8>),
    Msgpack(&'o mut Vec<u8>),
    /// Into a digest, as the value at this place.
    Digest(&'o mut TreeDigest, Place),
}

impl<'o> Sink<'o> {
    #[inline]
    fn new(format: TreeFormat, out: &'o mut Vec<u8>) -> Self {
        match format {
            TreeFormat::Json => Self::Json(out),
            TreeFormat::Msgpack => Self::Msgpack(out),
        }
    }

    #[inline]
    fn format(&self) -> TreeFormat {
        match self {
            Self::Json(_) => TreeFormat::Json,
            Self::Msgpack(_) => TreeFormat::Msgpack,
            Self::Digest(digest, _) => digest.format(),
        }
    }

    /// The output, if values are written.
    #[inline]
    fn out(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Json(out) | Self::Msgpack(out) => Some(out),
            Self::Digest(..) => None,
        }
    }
}

impl<'o> TreeWriter<'o> {
    /// Creates a writer that appends to `out`.
    #[inline]
    pub fn new(format: TreeFormat, out: &'o mut Vec<u8>) -> Self {
        Self(Sink::new(format, out))
    }

    /// Creates a writer that adds to a digest.
    #[inline]
    pub(super) fn counted(digest: &'o mut TreeDigest, place: Place) -> Self {
        Self(Sink::Digest(digest, place))
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.0.format()
    }

    /// Null.
    pub fn null(self) {
        match self.0 {
            Sink::Json(out) => out.extend_from_slice(b"null"),
            Sink::Msgpack(out) => msgpack::write_null(out),
            Sink::Digest(digest, place) => digest.null(place),
        }
    }

    /// `true` or `false`.
    pub fn bool(self, value: bool) {
        match self.0 {
            Sink::Json(out) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Sink::Msgpack(out) => msgpack::write_bool(out, value),
            Sink::Digest(digest, place) => digest.bool(place, value),
        }
    }

    /// An unsigned integer.
    #[inline]
    pub fn u64(self, value: u64) {
        match self.0 {
            Sink::Json(out) => json::write_u64(out, value),
            Sink::Msgpack(out) => msgpack::write_u64(out, value),
            Sink::Digest(digest, place) => digest.u64(place, value),
        }
    }

    /// A signed integer.
    #[inline]
    pub fn i64(self, value: i64) {
        match self.0 {
            Sink::Json(out) => json::write_i64(out, value),
            Sink::Msgpack(out) => msgpack::write_i64(out, value),
            Sink::Digest(digest, place) => digest.i64(place, value),
        }
    }

    /// A 32-bit float.
    #[inline]
    pub fn f32(self, value: f32) {
        match self.0 {
            Sink::Json(out) => json::write_f32(out, value),
            Sink::Msgpack(out) => msgpack::write_f32(out, value),
            Sink::Digest(digest, place) => digest.f32(place, value),
        }
    }

    /// A 64-bit float.
    #[inline]
    pub fn f64(self, value: f64) {
        match self.0 {
            Sink::Json(out) => json::write_f64(out, value),
            Sink::Msgpack(out) => msgpack::write_f64(out, value),
            Sink::Digest(digest, place) => digest.f64(place, value),
        }
    }

    /// A text.
    #[inline]
    pub fn text(self, value: &str) {
        match self.0 {
            Sink::Json(out) => json::write_text(out, value),
            Sink::Msgpack(out) => msgpack::write_text(out, value),
            Sink::Digest(digest, place) => digest.text(place, value),
        }
    }

    /// Bytes.
    pub fn bytes(self, value: &[u8]) {
        match self.0 {
            Sink::Json(out) => json::write_base64(out, value),
            Sink::Msgpack(out) => msgpack::write_bytes(out, value),
            Sink::Digest(digest, place) => digest.bytes(place, value),
        }
    }

    /// A value that `write` appends in this format. No bytes mean null.
    #[inline]
    pub fn raw(mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match &mut self.0 {
            Sink::Json(out) | Sink::Msgpack(out) => {
                let start = out.len();
                write(out);
                if out.len() == start {
                    self.null();
                }
            }
            Sink::Digest(digest, place) => digest.raw(*place, write),
        }
    }

    /// Begins an object. `expected` is its probable number of members. Any other number is written
    /// correctly too, but moves the object's bytes if MessagePack needs another width for it.
    #[inline]
    pub fn object(mut self, expected: usize) -> Object<'o> {
        let head = Head::begin(&mut self.0, b'{', expected);
        Object { sink: self.0, head, count: 0 }
    }

    /// Begins an array; `expected` is as in [`object`](Self::object).
    #[inline]
    pub fn array(mut self, expected: usize) -> Array<'o> {
        let head = Head::begin(&mut self.0, b'[', expected);
        Array { sink: self.0, head: Some(head), count: 0 }
    }

    /// An array of `count` elements that a [bare](Array::bare) array wrote.
    #[inline]
    pub fn array_of(self, elements: &[u8], count: usize) {
        match self.0 {
            Sink::Json(out) => {
                out.push(b'[');
                out.extend_from_slice(elements);
                out.push(b']');
            }
            Sink::Msgpack(out) => {
                msgpack::write_array_head(out, count);
                out.extend_from_slice(elements);
            }
            Sink::Digest(digest, place) => {
                let format = digest.format();
                digest.raw(place, |out| TreeWriter::new(format, out).array_of(elements, count));
            }
        }
    }

    /// Any value, as it is.
    pub fn value(self, value: &Value) {
        match self.0 {
            Sink::Json(out) => {
                serde_json::to_writer(out, value).expect("writing to a Vec can't fail");
            }
            Sink::Msgpack(_) => write_parts(self, value),
            Sink::Digest(digest, place) => digest.value(place, value),
        }
    }

    /// If the value is added to a [`TreeDigest`] instead of being written: the format of the copy,
    /// and the value's place.
    #[inline]
    #[must_use]
    pub fn counts(&self) -> Option<(TreeFormat, Place)> {
        match &self.0 {
            Sink::Digest(digest, place) => Some((digest.format(), *place)),
            Sink::Json(_) | Sink::Msgpack(_) => None,
        }
    }

    /// An object whose members have the digest `members` together, if it is [added to a
    /// digest](Self::counts).
    pub fn count_object(self, members: u32) {
        if let Sink::Digest(digest, place) = self.0 {
            digest.add(members);
            digest.object(place);
        }
    }
}

/// An object that is being written. It ends with [`end`](Self::end).
#[derive(Debug)]
#[must_use = "an object has to be ended"]
pub struct Object<'o> {
    sink: Sink<'o>,
    head: Head,
    count: usize,
}

impl Object<'_> {
    /// The value of the next member, which may have any name.
    #[inline]
    pub fn member(&mut self, name: &str) -> TreeWriter<'_> {
        self.next(name, |out| json::write_text(out, name))
    }

    /// The value of the next member. The name is that of a field or a variant, so it needs no
    /// escapes.
    #[inline]
    pub fn field(&mut self, name: &str) -> TreeWriter<'_> {
        self.next(name, |out| {
            out.push(b'"');
            out.extend_from_slice(name.as_bytes());
            out.push(b'"');
        })
    }

    #[inline]
    fn next(&mut self, name: &str, in_json: impl FnOnce(&mut Vec<u8>)) -> TreeWriter<'_> {
        let is_first = self.count == 0;
        self.count += 1;
        TreeWriter(match &mut self.sink {
            Sink::Json(out) => {
                if !is_first {
                    out.push(b',');
                }
                in_json(out);
                out.push(b':');
                Sink::Json(out)
            }
            Sink::Msgpack(out) => {
                msgpack::write_text(out, name);
                Sink::Msgpack(out)
            }
            Sink::Digest(digest, place) => Sink::Digest(digest, place.member(name)),
        })
    }

    /// A [`field`](Self::field), unless `value` returns false. It must not have written anything
    /// then.
    #[inline]
    pub fn field_if(&mut self, name: &str, value: impl FnOnce(TreeWriter<'_>) -> bool) {
        let start = self.sink.out().map_or(0, |out| out.len());
        if !value(self.field(name)) {
            self.count -= 1;
            if let Some(out) = self.sink.out() {
                out.truncate(start);
            }
        }
    }

    /// Ends the object.
    #[inline]
    pub fn end(self) {
        match self.sink {
            Sink::Json(out) => out.push(b'}'),
            Sink::Msgpack(out) => self.head.end(out, self.count, msgpack::write_object_head),
            Sink::Digest(digest, place) => digest.object(place),
        }
    }
}

/// An array that is being written. It ends with [`end`](Self::end).
#[derive(Debug)]
#[must_use = "an array has to be ended"]
pub struct Array<'o> {
    sink: Sink<'o>,
    head: Option<Head>,
    count: usize,
}

impl<'o> Array<'o> {
    /// Elements without an array around them, to be [appended](Self::append) to one. `out` already
    /// holds `count` of them.
    #[inline]
    pub fn bare(format: TreeFormat, out: &'o mut Vec<u8>, count: usize) -> Self {
        Self { sink: Sink::new(format, out), head: None, count }
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.sink.format()
    }

    /// The number of elements so far.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The next element.
    #[inline]
    pub fn element(&mut self) -> TreeWriter<'_> {
        let index = self.count;
        self.count += 1;
        TreeWriter(match &mut self.sink {
            Sink::Json(out) => {
                if index > 0 {
                    out.push(b',');
                }
                Sink::Json(out)
            }
            Sink::Msgpack(out) => Sink::Msgpack(out),
            Sink::Digest(digest, place) => Sink::Digest(digest, place.element(index)),
        })
    }

    /// The next `count` elements, which a [bare](Self::bare) array wrote.
    #[inline]
    pub fn append(&mut self, elements: &[u8], count: usize) {
        if let Sink::Digest(digest, _) = &self.sink {
            // Each counts by its index, so they are read one after the other.
            let (format, mut bytes) = (digest.format(), Vec::new());
            TreeWriter::new(format, &mut bytes).array_of(elements, count);
            let read = read_value(format, &bytes).unwrap_or_default();
            read.as_array().into_iter().flatten().for_each(|value| self.element().value(value));
        } else if count > 0
            && let TreeWriter(Sink::Json(out) | Sink::Msgpack(out)) = self.element()
        {
            out.extend_from_slice(elements);
            self.count += count - 1;
        }
    }

    /// Ends the array.
    #[inline]
    pub fn end(self) {
        let Some(head) = self.head else { return };
        match self.sink {
            Sink::Json(out) => out.push(b']'),
            Sink::Msgpack(out) => head.end(out, self.count, msgpack::write_array_head),
            Sink::Digest(digest, place) => digest.array(place, self.count),
        }
    }
}

/// The start of an object or an array. MessagePack has the count there, so that place is reserved
/// until the end.
#[derive(Clone, Copy, Debug)]
struct Head {
    at: usize,
    bytes: usize,
}

impl Head {
    #[inline]
    fn begin(sink: &mut Sink<'_>, bracket: u8, expected: usize) -> Self {
        match sink {
            Sink::Json(out) => {
                out.push(bracket);
                Self { at: out.len() - 1, bytes: 1 }
            }
            Sink::Msgpack(out) => {
                let (at, bytes) = (out.len(), msgpack::head_bytes(expected));
                out.resize(at + bytes, 0);
                Self { at, bytes }
            }
            Sink::Digest(..) => Self { at: 0, bytes: 0 },
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
            // The width differs from the expected one: move the head in front of the content.
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
    fn a_count_has_its_shortest_form_whatever_was_expected() {
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
    fn an_object_is_counted_without_absent_members() {
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
