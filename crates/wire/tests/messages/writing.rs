//! Writing of messages, by docs/protocol.md.

use playfield_wire::message::{FieldForm, Form, MessageForm};
use playfield_wire::tree::{Object, TreeWriter};
use playfield_wire::writer::{put_bool, put_bytes, put_text, put_u8, put_varint};
use playfield_wire::{Format, TreeFormat};

use super::Value;

/// A message, as its form has it written.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// The minimum length of the message in bytes, without a payload that reaches to the end.
    pub(crate) required: usize,
    /// There may be more at its end.
    pub(crate) is_open: bool,
}

impl Written {
    pub(crate) fn of(form: &MessageForm, format: Format, values: &[Value]) -> Self {
        let mut bytes = Vec::new();
        let Some(tree) = format.tree() else {
            put_u8(&mut bytes, form.kind);
            let rest = put_fields(&form.fields, values, &mut bytes);
            return Self {
                required: bytes.len() - rest.unwrap_or(0),
                is_open: rest.is_some(),
                bytes,
            };
        };
        let mut object = TreeWriter::new(tree, &mut bytes).object(0);
        object.field("type").text(form.name);
        write_fields(&form.fields, values, &mut object);
        object.end();
        Self { required: bytes.len(), is_open: false, bytes }
    }
}

/// Returns a number no less than the one before it.
fn sum(before: u64, difference: u64) -> u64 {
    before.saturating_add(difference)
}

/// Returns the length of a payload up to the end, if the last field is one.
fn put_fields(fields: &[FieldForm], values: &[Value], out: &mut Vec<u8>) -> Option<usize> {
    assert_eq!(fields.len(), values.len());
    let (mut before, mut rest) = (0, None);
    for (field, value) in fields.iter().zip(values) {
        rest = None;
        match (&field.form, value) {
            (Form::Since, Value::Number(number)) => put_varint(out, sum(before, *number) - before),
            (Form::Rest | Form::JsonText, Value::Raw(raw)) => {
                out.extend_from_slice(raw);
                rest = Some(raw.len());
            }
            (form, value) => put(form, value, out),
        }
        if let Value::Number(number) = value {
            before = *number;
        }
    }
    rest
}

fn put(form: &Form, value: &Value, out: &mut Vec<u8>) {
    match (form, value) {
        (Form::Bool, Value::Bool(value)) => put_bool(out, *value),
        (Form::U32 | Form::U64, Value::Number(number)) => put_varint(out, *number),
        (Form::Format, Value::Number(number)) => put_u8(out, *number as u8),
        (Form::Fixed, Value::Number(number)) => out.extend_from_slice(&number.to_le_bytes()),
        (Form::Text, Value::Text(text)) => put_text(out, text),
        (Form::Bytes, Value::Bytes(bytes)) | (Form::Embedded, Value::Raw(bytes)) => {
            put_bytes(out, bytes);
        }
        (Form::Pairs, Value::Pairs(pairs)) => {
            put_varint(out, pairs.len() as u64);
            for (name, value) in pairs {
                put_text(out, name);
                put_text(out, value);
            }
        }
        (Form::Texts, Value::Texts(texts)) => {
            put_varint(out, texts.len() as u64);
            texts.iter().for_each(|text| put_text(out, text));
        }
        (Form::Message, Value::Message(index, _)) => put_varint(out, (*index).into()),
        (Form::Code, Value::Code(code)) => put_varint(out, code.number().into()),
        (Form::Option(_), Value::Absent) => put_bool(out, false),
        (Form::Option(form), value) => {
            put_bool(out, true);
            put(form, value, out);
        }
        (Form::List(form), Value::List(values)) => {
            put_varint(out, values.len() as u64);
            values.iter().for_each(|value| put(form, value, out));
        }
        (Form::Record(_, fields), Value::Record(values)) => {
            put_fields(fields, values, out);
        }
        other => panic!("no such value: {other:?}"),
    }
}

fn write_fields(fields: &[FieldForm], values: &[Value], object: &mut Object<'_>) {
    assert_eq!(fields.len(), values.len());
    let mut before = 0;
    for (field, value) in fields.iter().zip(values) {
        match (&field.form, value) {
            (_, Value::Absent) => {}
            (Form::Since, Value::Number(number)) => {
                object.field(field.member).u64(sum(before, *number));
            }
            (form, value) => write(form, value, object.field(field.member)),
        }
        if let Value::Number(number) = value {
            before = *number;
        }
    }
}

fn write(form: &Form, value: &Value, to: TreeWriter<'_>) {
    match (form, value) {
        (Form::Option(form), value) => write(form, value, to),
        (Form::Record(_, fields), Value::Record(values)) => {
            let mut object = to.object(0);
            write_fields(fields, values, &mut object);
            object.end();
        }
        (Form::List(form), Value::List(values)) => {
            let mut array = to.array(values.len());
            values.iter().for_each(|value| write(form, value, array.element()));
            array.end();
        }
        (Form::JsonText, Value::Raw(raw)) if to.format() == TreeFormat::Msgpack => {
            to.text(str::from_utf8(raw).expect("JSON is text"));
        }
        (_, Value::Bool(value)) => to.bool(*value),
        (_, Value::Number(number)) => to.u64(*number),
        (_, Value::Text(text) | Value::Message(_, text)) => to.text(text),
        (_, Value::Bytes(bytes)) => to.bytes(bytes),
        (_, Value::Raw(raw)) => to.raw(|out| out.extend_from_slice(raw)),
        (_, Value::Pairs(pairs)) => {
            let mut object = to.object(pairs.len());
            pairs.iter().for_each(|(name, value)| object.member(name).text(value));
            object.end();
        }
        (_, Value::Texts(texts)) => {
            let mut array = to.array(texts.len());
            texts.iter().for_each(|text| array.element().text(text));
            array.end();
        }
        (_, Value::Code(code)) if code.number() >= playfield_wire::ErrorCode::ROOM_MIN => {
            to.u64(code.number().into());
        }
        (_, Value::Code(code)) => to.text(&code.name()),
        other => panic!("no such value: {other:?}"),
    }
}
