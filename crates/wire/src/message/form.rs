//! The tables of messages as data: for tests that make messages of all kinds, and for tables in
//! other languages, which are generated.

use super::field::{Coding, Input, Record};
use crate::reader::Reader;
use crate::tree::members::Member;
use crate::{DecodeError, Format};

/// A message of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageForm {
    /// Its number in `packed`.
    pub kind: u8,
    /// Its `type` in trees.
    pub name: &'static str,
    /// Its fields, in the order in which they are written.
    pub fields: Vec<FieldForm>,
}

/// A field of a message, or of a record within one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldForm {
    /// Its name.
    pub name: &'static str,
    /// Its name in trees.
    pub member: &'static str,
    /// Its documentation, as it is in the source: a line begins with a space.
    pub docs: &'static str,
    /// Its values.
    pub form: Form,
}

/// The values of a field, and how they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A bool.
    Bool,
    /// A varint of at most 32 bits.
    U32,
    /// A varint.
    U64,
    /// An integer of eight bytes in `packed`.
    Fixed,
    /// An integer no less than the one before it: in `packed` the difference.
    Since,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A payload in the format of the message, up to the end.
    Rest,
    /// A payload in the format of the message; in `packed` its length comes first.
    Embedded,
    /// JSON up to the end, in trees other than JSON a text.
    JsonText,
    /// Pairs of texts.
    Pairs,
    /// A list of texts.
    Texts,
    /// A message or an event of a room type: its index in `packed`, its name in trees.
    Message,
    /// An error code.
    Code,
    /// The format of later messages.
    Format,
    /// A value that may be absent.
    Option(Box<Self>),
    /// A list.
    List(Box<Self>),
    /// A record, by the name of its struct.
    Record(&'static str, Vec<FieldForm>),
}

/// The fields of a record.
pub(crate) fn fields_of<'a, T: Record<'a>>() -> Vec<FieldForm> {
    let mut fields = Fields(Vec::new());
    T::read(&mut fields).expect("each value is one that the field may have");
    let fields = fields.0.into_iter().zip(T::FIELDS);
    fields.map(|((member, form), (name, docs))| FieldForm { name, member, docs, form }).collect()
}

/// Has a record read itself, and keeps what it asks for.
#[derive(Clone)]
struct Fields(Vec<(&'static str, Form)>);

impl<'a> Input<'a> for Fields {
    fn format(&self) -> Format {
        Format::Packed
    }

    fn field<T, C: Coding<'a, T>>(&mut self, coding: C, member: Member) -> Result<T, DecodeError> {
        let form = coding.form();
        // All others may be zero, or empty.
        let least: &[u8] = if form == Form::Code { &[1] } else { &[0; 32] };
        self.0.push((member.name(), form));
        coding.take(&mut Reader::new(least))
    }

    fn skip_rest(&mut self) {}
}
