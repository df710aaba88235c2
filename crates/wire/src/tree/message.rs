//! Writing messages: objects of named fields.

use super::{Object, TreeWriter};
use crate::TreeFormat;

impl<'o> Object<'o> {
    /// Begins the object of a message with this `type`.
    pub(crate) fn message(format: TreeFormat, out: &'o mut Vec<u8>, name: &str) -> Self {
        let mut object = TreeWriter::new(format, out).object(0);
        object.text("type", name);
        object
    }

    pub(crate) fn integer(&mut self, name: &str, value: impl Into<u64>) {
        self.field(name).u64(value.into());
    }

    pub(crate) fn bool(&mut self, name: &str, value: bool) {
        self.field(name).bool(value);
    }

    pub(crate) fn text(&mut self, name: &str, value: &str) {
        self.field(name).text(value);
    }

    pub(crate) fn bytes(&mut self, name: &str, value: &[u8]) {
        self.field(name).bytes(value);
    }

    /// A value that is already in this format; no bytes mean null.
    pub(crate) fn raw(&mut self, name: &str, value: &[u8]) {
        self.field(name).raw(|out| out.extend_from_slice(value));
    }

    pub(crate) fn pairs(&mut self, name: &str, pairs: &[(impl AsRef<str>, impl AsRef<str>)]) {
        let mut object = self.field(name).object(pairs.len());
        for (key, value) in pairs {
            object.member(key.as_ref()).text(value.as_ref());
        }
        object.end();
    }

    pub(crate) fn texts(&mut self, name: &str, texts: &[impl AsRef<str>]) {
        let mut array = self.field(name).array(texts.len());
        texts.iter().for_each(|text| array.element().text(text.as_ref()));
        array.end();
    }

    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        items: &[T],
        mut write: impl FnMut(&mut Object<'_>, &T),
    ) {
        let mut array = self.field(name).array(items.len());
        for item in items {
            let mut object = array.element().object(0);
            write(&mut object, item);
            object.end();
        }
        array.end();
    }
}
