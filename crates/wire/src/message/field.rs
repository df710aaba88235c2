//! Encoding of a message's fields, in `packed` and in trees.

use std::borrow::{Borrow, Cow};

use super::MessageRef;
use super::form::{self, Form};
use crate::error::Kind;
use crate::reader::Reader;
use crate::tree::Object;
use crate::tree::members::{Member, Members, Pair, Raw};
use crate::writer::{put_bool, put_bytes, put_text, put_u8, put_varint};
use crate::{DecodeError, ErrorCode, Format, RequestNumber, RoomNumber, TreeFormat};

/// The output for the fields of a message.
pub(crate) trait Output {
    fn field<'a, T, C: Coding<'a, T>>(&mut self, coding: C, member: Member, value: &T);
}

/// Writes in `packed`.
pub(crate) struct Packed<'o>(pub(crate) &'o mut Vec<u8>);

impl Output for Packed<'_> {
    #[inline]
    fn field<'a, T, C: Coding<'a, T>>(&mut self, coding: C, _: Member, value: &T) {
        coding.put(value, self.0);
    }
}

impl Output for Object<'_> {
    fn field<'a, T, C: Coding<'a, T>>(&mut self, coding: C, member: Member, value: &T) {
        coding.write(value, self, member.name());
    }
}

/// The input with the fields of a message.
pub(crate) trait Input<'a>: Clone {
    fn format(&self) -> Format;

    fn field<T, C: Coding<'a, T>>(&mut self, coding: C, member: Member) -> Result<T, DecodeError>;

    /// Passes over all fields that were not read.
    fn skip_rest(&mut self);
}

impl<'a> Input<'a> for Reader<'a> {
    fn format(&self) -> Format {
        Format::Packed
    }

    #[inline]
    fn field<T, C: Coding<'a, T>>(&mut self, coding: C, _: Member) -> Result<T, DecodeError> {
        coding.take(self)
    }

    fn skip_rest(&mut self) {
        self.rest();
    }
}

impl<'a, R: Raw<'a>> Input<'a> for &Members<'a, R> {
    fn format(&self) -> Format {
        R::FORMAT.into()
    }

    fn field<T, C: Coding<'a, T>>(&mut self, coding: C, member: Member) -> Result<T, DecodeError> {
        coding.read(self, member)
    }

    fn skip_rest(&mut self) {}
}

/// Writes and reads a field of type `T`: `put` and `take` in `packed`, `write` and `read` as a
/// member of a tree.
pub(crate) trait Coding<'a, T> {
    fn form(&self) -> Form;
    fn put(&self, value: &T, out: &mut Vec<u8>);
    fn take(&self, reader: &mut Reader<'a>) -> Result<T, DecodeError>;
    fn write(&self, value: &T, object: &mut Object<'_>, name: &str);
    fn read<R: Raw<'a>>(&self, members: &Members<'a, R>, member: Member) -> Result<T, DecodeError>;
}

/// A type with one obvious [`Coding`].
pub(crate) trait Field<'a>: Sized {
    fn form() -> Form;
    fn put(&self, out: &mut Vec<u8>);
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError>;
    fn write(&self, object: &mut Object<'_>, name: &str);
    /// `None` if the member is absent, or null, and this type can't say so itself.
    fn read<R: Raw<'a>>(
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Option<Self>, DecodeError>;
}

/// A struct within a message.
pub(crate) trait Record<'a>: Sized {
    const NAME: &'static str;
    /// The names of its fields, and their documentation.
    const FIELDS: &'static [(&'static str, &'static str)];

    fn read<I: Input<'a>>(input: &mut I) -> Result<Self, DecodeError>;
    fn write<O: Output>(&self, output: &mut O);
}

/// Encoding by the type's [`Field`]. The member must be there.
pub(crate) struct Plain;

/// Like [`Plain`], but in trees the member may be absent: that means the type's default.
pub(crate) struct OrDefault;

/// Eight bytes, little endian.
pub(crate) struct Fixed;

/// A version no less than this one: in `packed` the difference.
pub(crate) struct Since<V>(pub(crate) V);

/// All bytes to the end: a payload in the format of the message.
pub(crate) struct Rest;

/// A payload with fields after it: in `packed` its length comes first.
pub(crate) struct Embedded;

/// Text in JSON, whatever the format: in `json` the value itself, in `msgpack` its text.
pub(crate) struct JsonText;

impl<'a, T: Field<'a>> Coding<'a, T> for Plain {
    fn form(&self) -> Form {
        T::form()
    }

    #[inline]
    fn put(&self, value: &T, out: &mut Vec<u8>) {
        value.put(out);
    }

    #[inline]
    fn take(&self, reader: &mut Reader<'a>) -> Result<T, DecodeError> {
        T::take(reader)
    }

    fn write(&self, value: &T, object: &mut Object<'_>, name: &str) {
        value.write(object, name);
    }

    fn read<R: Raw<'a>>(&self, members: &Members<'a, R>, member: Member) -> Result<T, DecodeError> {
        T::read(members, member)?.ok_or_else(|| members.missing(member))
    }
}

impl<'a, T: Field<'a> + Default> Coding<'a, T> for OrDefault {
    fn form(&self) -> Form {
        T::form()
    }

    fn put(&self, value: &T, out: &mut Vec<u8>) {
        value.put(out);
    }

    fn take(&self, reader: &mut Reader<'a>) -> Result<T, DecodeError> {
        T::take(reader)
    }

    fn write(&self, value: &T, object: &mut Object<'_>, name: &str) {
        value.write(object, name);
    }

    fn read<R: Raw<'a>>(&self, members: &Members<'a, R>, member: Member) -> Result<T, DecodeError> {
        Ok(T::read(members, member)?.unwrap_or_default())
    }
}

impl<'a> Coding<'a, u64> for Fixed {
    fn form(&self) -> Form {
        Form::Fixed
    }

    fn put(&self, value: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_le_bytes());
    }

    fn take(&self, reader: &mut Reader<'a>) -> Result<u64, DecodeError> {
        reader.u64()
    }

    fn write(&self, value: &u64, object: &mut Object<'_>, name: &str) {
        value.write(object, name);
    }

    fn read<R: Raw<'a>>(&self, from: &Members<'a, R>, member: Member) -> Result<u64, DecodeError> {
        Plain.read(from, member)
    }
}

impl<'a, V: Borrow<u64>> Coding<'a, u64> for Since<V> {
    fn form(&self) -> Form {
        Form::Since
    }

    fn put(&self, version: &u64, out: &mut Vec<u8>) {
        put_varint(out, advance(*self.0.borrow(), *version));
    }

    fn take(&self, reader: &mut Reader<'a>) -> Result<u64, DecodeError> {
        let at = reader.offset();
        self.0
            .borrow()
            .checked_add(reader.varint()?)
            .ok_or_else(|| DecodeError::new(at, "the patch's version is past 2^64 - 1"))
    }

    fn write(&self, version: &u64, object: &mut Object<'_>, name: &str) {
        advance(*self.0.borrow(), *version);
        version.write(object, name);
    }

    fn read<R: Raw<'a>>(&self, from: &Members<'a, R>, member: Member) -> Result<u64, DecodeError> {
        let (base, version): (u64, u64) = (*self.0.borrow(), Plain.read(from, member)?);
        if version < base {
            return Err(from.refuse(member, &format!("at least the base, {base}")));
        }
        Ok(version)
    }
}

/// Returns the number of versions that a patch leads forward.
#[inline]
pub(crate) fn advance(base: u64, version: u64) -> u64 {
    version.checked_sub(base).expect("a patch leads from its base to a later version")
}

impl<'a> Coding<'a, Cow<'a, [u8]>> for Rest {
    fn form(&self) -> Form {
        Form::Rest
    }

    #[inline]
    fn put(&self, value: &Cow<'a, [u8]>, out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }

    #[inline]
    fn take(&self, reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, DecodeError> {
        Ok(Cow::Borrowed(reader.rest()))
    }

    fn write(&self, value: &Cow<'a, [u8]>, object: &mut Object<'_>, name: &str) {
        object.raw(name, value);
    }

    fn read<R: Raw<'a>>(
        &self,
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        Ok(Cow::Borrowed(members.raw(member)))
    }
}

impl<'a> Coding<'a, Cow<'a, [u8]>> for Embedded {
    fn form(&self) -> Form {
        Form::Embedded
    }

    fn put(&self, value: &Cow<'a, [u8]>, out: &mut Vec<u8>) {
        put_bytes(out, value);
    }

    fn take(&self, reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, DecodeError> {
        reader.bytes().map(Cow::Borrowed)
    }

    fn write(&self, value: &Cow<'a, [u8]>, object: &mut Object<'_>, name: &str) {
        Rest.write(value, object, name);
    }

    fn read<R: Raw<'a>>(
        &self,
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        Rest.read(members, member)
    }
}

impl<'a> Coding<'a, Cow<'a, [u8]>> for JsonText {
    fn form(&self) -> Form {
        Form::JsonText
    }

    fn put(&self, value: &Cow<'a, [u8]>, out: &mut Vec<u8>) {
        Rest.put(value, out);
    }

    fn take(&self, reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, DecodeError> {
        Rest.take(reader)
    }

    fn write(&self, value: &Cow<'a, [u8]>, object: &mut Object<'_>, name: &str) {
        let member = object.field(name);
        match member.format() {
            TreeFormat::Json => member.raw(|out| out.extend_from_slice(value)),
            // Bytes that are not text are no JSON either: they are written as an empty text.
            TreeFormat::Msgpack => member.text(str::from_utf8(value).unwrap_or_default()),
        }
    }

    fn read<R: Raw<'a>>(
        &self,
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Cow<'a, [u8]>, DecodeError> {
        match R::FORMAT {
            TreeFormat::Json => Rest.read(members, member),
            TreeFormat::Msgpack => match Plain.read(members, member)? {
                Cow::<str>::Borrowed(text) => Ok(Cow::Borrowed(text.as_bytes())),
                Cow::Owned(text) => Ok(Cow::Owned(text.into_bytes())),
            },
        }
    }
}

/// Implements [`Field`] by its form and its four functions, for types that `packed` and trees have
/// such for.
macro_rules! fields {
    ($($type:ty, $form:ident: $put:expr, $take:expr, $write:expr, $read:expr;)*) => {$(
        impl<'a> Field<'a> for $type {
            fn form() -> Form {
                Form::$form
            }

            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                let put: fn(&mut Vec<u8>, &Self) = $put;
                put(out, self);
            }

            #[inline]
            fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let take: fn(&mut Reader<'a>) -> Result<Self, DecodeError> = $take;
                take(reader)
            }

            fn write(&self, object: &mut Object<'_>, name: &str) {
                let write: fn(&mut Object<'_>, &str, &Self) = $write;
                write(object, name, self);
            }

            fn read<R: Raw<'a>>(
                members: &Members<'a, R>,
                member: Member,
            ) -> Result<Option<Self>, DecodeError> {
                let read: fn(&Members<'a, R>, Member) -> Result<Option<Self>, DecodeError> = $read;
                read(members, member)
            }
        }
    )*};
}

fields! {
    bool, Bool:
        |out, value| put_bool(out, *value),
        Reader::bool,
        |object, name, value| object.bool(name, *value),
        Members::bool;
    u32, U32:
        |out, value| put_varint(out, (*value).into()),
        Reader::varint_u32,
        |object, name, value| object.integer(name, *value),
        Members::u32;
    RoomNumber, U32:
        |out, room| put_varint(out, (*room).into()),
        |reader| reader.varint_u32().map(RoomNumber),
        |object, name, room| object.integer(name, *room),
        |members, member| Ok(members.u32(member)?.map(RoomNumber));
    RequestNumber, U32:
        |out, request| put_varint(out, (*request).into()),
        |reader| reader.varint_u32().map(RequestNumber),
        |object, name, request| object.integer(name, *request),
        |members, member| Ok(members.u32(member)?.map(RequestNumber));
    u64, U64:
        |out, value| put_varint(out, *value),
        Reader::varint,
        |object, name, value| object.integer(name, *value),
        Members::u64;
    Cow<'a, str>, Text:
        |out, value| put_text(out, value),
        |reader| reader.text().map(Cow::Borrowed),
        |object, name, value| object.text(name, value),
        Members::text;
    Cow<'a, [u8]>, Bytes:
        |out, value| put_bytes(out, value),
        |reader| reader.bytes().map(Cow::Borrowed),
        |object, name, value| object.bytes(name, value),
        Members::bytes;
    // All bytes to the end: a payload in the format of the message.
    &'a [u8], Rest:
        |out, value| out.extend_from_slice(value),
        |reader| Ok(reader.rest()),
        |object, name, value| object.raw(name, value),
        |members, member| Ok(Some(members.raw(member)));
    Vec<Pair<'a>>, Pairs:
        |out, pairs| {
            put_varint(out, pairs.len() as u64);
            for (key, value) in pairs {
                put_text(out, key);
                put_text(out, value);
            }
        },
        |reader| list(reader, |reader| Ok((reader.text()?.into(), reader.text()?.into()))),
        |object, name, pairs| object.pairs(name, pairs),
        Members::pairs;
    Vec<Cow<'a, str>>, Texts:
        |out, texts| {
            put_varint(out, texts.len() as u64);
            texts.iter().for_each(|text| put_text(out, text));
        },
        |reader| list(reader, |reader| reader.text().map(Cow::Borrowed)),
        |object, name, texts| object.texts(name, texts),
        Members::texts;
    MessageRef<'a>, Message:
        |out, message| put_varint(out, message.index().into()),
        |reader| reader.varint_u32().map(MessageRef::Index),
        |object, name, message| object.text(name, message.name()),
        |members, member| Ok(members.text(member)?.map(MessageRef::Name));
    ErrorCode, Code:
        |out, code| put_varint(out, code.number().into()),
        |reader| {
            let at = reader.offset();
            let number = reader.varint()?;
            let code = u16::try_from(number).ok().and_then(ErrorCode::from_number);
            code.ok_or_else(|| DecodeError::new(at, format!("no code has the number {number}")))
        },
        |object, name, code| match code {
            ErrorCode::Room(number) => object.integer(name, *number),
            code => object.text(name, &code.name()),
        },
        |members, member| {
            let code = match members.text(member) {
                Ok(Some(name)) => ErrorCode::from_name(&name),
                Ok(None) => return Ok(None),
                Err(_) => members.u32(member).ok().flatten().and_then(room_code),
            };
            code.map(Some).ok_or_else(|| {
                members.refuse(member, "the name of a code, or a number from 1000 to 65535")
            })
        };
    Format, Format:
        |out, format| put_u8(out, format.number()),
        |reader| {
            let at = reader.offset();
            let number = reader.u8()?;
            Format::from_number(number)
                .ok_or_else(|| DecodeError::of(at, Kind::UnspokenFormat { number }))
        },
        |object, name, format| object.integer(name, format.number()),
        |members, member| {
            // What follows a hello in a tree is in the hello's own format, so it can name no other.
            let own = Format::from(R::FORMAT);
            let number = u64::from(own.number());
            let named = members.u64(member)?.unwrap_or(number);
            if named == number {
                return Ok(Some(own));
            }
            Err(match u8::try_from(named) {
                Ok(number) => {
                    DecodeError::of(members.offset(member), Kind::UnspokenFormat { number })
                }
                Err(_) => members.refuse(member, &number.to_string()),
            })
        };
}

/// A room's own code, which trees carry as its number.
fn room_code(number: u32) -> Option<ErrorCode> {
    let number = u16::try_from(number).ok()?;
    ErrorCode::from_number(number).filter(|code| matches!(code, ErrorCode::Room(_)))
}

fn list<'a, T>(
    reader: &mut Reader<'a>,
    mut element: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    // Elements are not reserved: how many were announced is the sender's word.
    let mut elements = Vec::new();
    for _ in 0..reader.count()? {
        elements.push(element(reader)?);
    }
    Ok(elements)
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn form() -> Form {
        Form::Option(Box::new(T::form()))
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_bool(out, self.is_some());
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if reader.bool()? { T::take(reader).map(Some) } else { Ok(None) }
    }

    fn write(&self, object: &mut Object<'_>, name: &str) {
        if let Some(value) = self {
            value.write(object, name);
        }
    }

    fn read<R: Raw<'a>>(
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Option<Self>, DecodeError> {
        T::read(members, member).map(Some)
    }
}

impl<'a, T: Record<'a>> Field<'a> for T {
    fn form() -> Form {
        Form::Record(T::NAME, form::fields_of::<T>())
    }

    fn put(&self, out: &mut Vec<u8>) {
        Record::write(self, &mut Packed(out));
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Record::read(reader)
    }

    fn write(&self, object: &mut Object<'_>, name: &str) {
        let mut object = object.field(name).object(0);
        Record::write(self, &mut object);
        object.end();
    }

    fn read<R: Raw<'a>>(
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Option<Self>, DecodeError> {
        let object = members.object(member)?;
        object.as_ref().map(|mut members| Record::read(&mut members)).transpose()
    }
}

impl<'a, T: Record<'a>> Field<'a> for Vec<T> {
    fn form() -> Form {
        Form::List(Box::new(T::form()))
    }

    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.len() as u64);
        self.iter().for_each(|record| record.put(out));
    }

    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        list(reader, Record::read)
    }

    fn write(&self, object: &mut Object<'_>, name: &str) {
        object.list(name, self, |object, record| Record::write(record, object));
    }

    fn read<R: Raw<'a>>(
        members: &Members<'a, R>,
        member: Member,
    ) -> Result<Option<Self>, DecodeError> {
        members.list(member, |mut members| Record::read(&mut members))
    }
}
