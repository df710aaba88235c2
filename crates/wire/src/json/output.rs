//! Writing objects.

use super::{write_base64, write_text, write_u64};

/// An object under construction, straight into the output.
pub(crate) struct Object<'o> {
    out: &'o mut Vec<u8>,
    is_empty: bool,
}

impl<'o> Object<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_empty: true }
    }

    /// The object that is a message of this `type`.
    pub(crate) fn message(out: &'o mut Vec<u8>, name: &str) -> Self {
        let mut object = Self::new(out);
        object.text("type", name);
        object
    }

    /// Begins a member; its value is the caller's to write. `name` is one of ours, so it needs no escapes.
    pub(crate) fn member(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(crate) fn integer(&mut self, name: &str, value: impl Into<u64>) {
        write_u64(self.member(name), value.into());
    }

    pub(crate) fn optional_integer(&mut self, name: &str, value: Option<impl Into<u64>>) {
        if let Some(value) = value {
            self.integer(name, value);
        }
    }

    pub(crate) fn bool(&mut self, name: &str, value: bool) {
        self.member(name).extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        write_text(self.member(name), value);
    }

    pub(crate) fn bytes(&mut self, name: &str, value: &[u8]) {
        write_base64(self.member(name), value);
    }

    /// A value that is JSON already; no bytes stand for `null`.
    pub(crate) fn raw(&mut self, name: &str, value: &[u8]) {
        self.raw_with(name, |out| out.extend_from_slice(value));
    }

    pub(crate) fn raw_with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        let out = self.member(name);
        let start = out.len();
        value(out);
        if out.len() == start {
            out.extend_from_slice(b"null");
        }
    }

    pub(crate) fn pairs(&mut self, name: &str, pairs: &[(impl AsRef<str>, impl AsRef<str>)]) {
        let out = self.member(name);
        out.push(b'{');
        for (index, (key, value)) in pairs.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write_text(out, key.as_ref());
            out.push(b':');
            write_text(out, value.as_ref());
        }
        out.push(b'}');
    }

    pub(crate) fn list<T>(&mut self, name: &str, items: &[T], mut write: impl FnMut(&mut Object<'_>, &T)) {
        let out = self.member(name);
        out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let mut object = Object::new(out);
            write(&mut object, item);
            object.end();
        }
        out.push(b']');
    }

    pub(crate) fn end(self) {
        self.out.push(b'}');
    }
}
