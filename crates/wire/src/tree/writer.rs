//! Writing trees, straight into the output.

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
    pub(super) out: &'o mut Vec<u8>,
    pub(super) format: TreeFormat,
}

impl<'o> TreeWriter<'o> {
    /// A value at the end of `out`.
    #[inline]
    pub fn new(format: TreeFormat, out: &'o mut Vec<u8>) -> Self {
        Self { out, format }
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.format
    }

    /// Nothing.
    pub fn null(self) {
        match self.format {
            TreeFormat::Json => self.out.extend_from_slice(b"null"),
            TreeFormat::Msgpack => msgpack::write_null(self.out),
        }
    }

    /// `true` or `false`.
    pub fn bool(self, value: bool) {
        match self.format {
            TreeFormat::Json => self.out.extend_from_slice(if value { b"true" } else { b"false" }),
            TreeFormat::Msgpack => msgpack::write_bool(self.out, value),
        }
    }

    /// An unsigned integer.
    #[inline]
    pub fn u64(self, value: u64) {
        match self.format {
            TreeFormat::Json => json::write_u64(self.out, value),
            TreeFormat::Msgpack => msgpack::write_u64(self.out, value),
        }
    }

    /// A signed integer.
    #[inline]
    pub fn i64(self, value: i64) {
        match self.format {
            TreeFormat::Json => json::write_i64(self.out, value),
            TreeFormat::Msgpack => msgpack::write_i64(self.out, value),
        }
    }

    /// A 32-bit float.
    #[inline]
    pub fn f32(self, value: f32) {
        match self.format {
            TreeFormat::Json => json::write_f32(self.out, value),
            TreeFormat::Msgpack => msgpack::write_f32(self.out, value),
        }
    }

    /// A 64-bit float.
    #[inline]
    pub fn f64(self, value: f64) {
        match self.format {
            TreeFormat::Json => json::write_f64(self.out, value),
            TreeFormat::Msgpack => msgpack::write_f64(self.out, value),
        }
    }

    /// A text.
    #[inline]
    pub fn text(self, value: &str) {
        match self.format {
            TreeFormat::Json => json::write_text(self.out, value),
            TreeFormat::Msgpack => msgpack::write_text(self.out, value),
        }
    }

    /// Bytes.
    pub fn bytes(self, value: &[u8]) {
        match self.format {
            TreeFormat::Json => json::write_base64(self.out, value),
            TreeFormat::Msgpack => msgpack::write_bytes(self.out, value),
        }
    }

    /// What `write` appends: a value in this format already. No bytes stand for null.
    #[inline]
    pub fn raw(self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        write(self.out);
        if self.out.len() == start {
            self.null();
        }
    }

    /// Begins an object. `expected` is how many members it will probably have: another number is written as correctly, but costs a
    /// move of the object's bytes where MessagePack counts it in another width.
    #[inline]
    pub fn object(self, expected: usize) -> Object<'o> {
        let Self { out, format } = self;
        let head = Head::begin(out, format, b'{', expected);
        Object { out, format, head, count: 0 }
    }

    /// Begins an array; `expected` is as in [`object`](Self::object).
    #[inline]
    pub fn array(self, expected: usize) -> Array<'o> {
        let Self { out, format } = self;
        let head = Head::begin(out, format, b'[', expected);
        Array { out, format, head: Some(head), count: 0 }
    }

    /// An array of these `count` elements, which an array that is [bare](Array::bare) wrote.
    #[inline]
    pub fn array_of(self, elements: &[u8], count: usize) {
        match self.format {
            TreeFormat::Json => {
                self.out.push(b'[');
                self.out.extend_from_slice(elements);
                self.out.push(b']');
            }
            TreeFormat::Msgpack => {
                msgpack::write_array_head(self.out, count);
                self.out.extend_from_slice(elements);
            }
        }
    }
}

/// An object that is being written. It ends with [`end`](Self::end).
#[derive(Debug)]
#[must_use = "an object has to be ended"]
pub struct Object<'o> {
    out: &'o mut Vec<u8>,
    format: TreeFormat,
    head: Head,
    count: usize,
}

impl Object<'_> {
    /// The next member's value, which bears any name.
    #[inline]
    pub fn member(&mut self, name: &str) -> TreeWriter<'_> {
        match self.format {
            TreeFormat::Json => {
                self.separate();
                json::write_text(self.out, name);
                self.out.push(b':');
            }
            TreeFormat::Msgpack => msgpack::write_text(self.out, name),
        }
        self.count += 1;
        TreeWriter { out: self.out, format: self.format }
    }

    /// The next member's value. The name is that of a field or a variant, so it needs no escapes.
    #[inline]
    pub fn field(&mut self, name: &str) -> TreeWriter<'_> {
        match self.format {
            TreeFormat::Json => {
                self.separate();
                self.out.push(b'"');
                self.out.extend_from_slice(name.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
            TreeFormat::Msgpack => msgpack::write_text(self.out, name),
        }
        self.count += 1;
        TreeWriter { out: self.out, format: self.format }
    }

    /// A [`field`](Self::field), unless `value` says that it wrote none.
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
        match self.format {
            TreeFormat::Json => self.out.push(b'}'),
            TreeFormat::Msgpack => self.head.end(self.out, self.count, msgpack::write_object_head),
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
    format: TreeFormat,
    head: Option<Head>,
    count: usize,
}

impl<'o> Array<'o> {
    /// Elements without an array around them, of which `count` are in `out` already: to be [appended](Self::append) to one.
    #[inline]
    pub fn bare(format: TreeFormat, out: &'o mut Vec<u8>, count: usize) -> Self {
        Self { out, format, head: None, count }
    }

    /// The format in which it is written.
    #[inline]
    #[must_use]
    pub fn format(&self) -> TreeFormat {
        self.format
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
        self.count += 1;
        TreeWriter { out: self.out, format: self.format }
    }

    /// The next `count` elements, which an array that is [bare](Self::bare) wrote.
    #[inline]
    pub fn append(&mut self, elements: &[u8], count: usize) {
        if count > 0 {
            self.separate();
            self.count += count;
            self.out.extend_from_slice(elements);
        }
    }

    /// Ends the array.
    #[inline]
    pub fn end(self) {
        match (self.format, self.head) {
            (_, None) => {}
            (TreeFormat::Json, Some(_)) => self.out.push(b']'),
            (TreeFormat::Msgpack, Some(head)) => head.end(self.out, self.count, msgpack::write_array_head),
        }
    }

    #[inline]
    fn separate(&mut self) {
        if self.count > 0 && self.format == TreeFormat::Json {
            self.out.push(b',');
        }
    }
}

/// Where an object or an array begins. MessagePack counts there what follows, so that place is held open until the end.
#[derive(Clone, Copy, Debug)]
struct Head {
    at: usize,
    bytes: usize,
}

impl Head {
    #[inline]
    fn begin(out: &mut Vec<u8>, format: TreeFormat, bracket: u8, expected: usize) -> Self {
        let at = out.len();
        match format {
            TreeFormat::Json => {
                out.push(bracket);
                Self { at, bytes: 1 }
            }
            TreeFormat::Msgpack => {
                let bytes = msgpack::head_bytes(expected);
                out.resize(at + bytes, 0);
                Self { at, bytes }
            }
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
        assert_eq!(written(TreeFormat::Msgpack, write), b"\x83\xa1a\xc3\xa1b\xc0\xa1\"\xa2\xc3\xa9");
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
            assert_eq!(rest, if format == TreeFormat::Json { &b"[2,3]"[..] } else { b"\x92\x02\x03" });
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
