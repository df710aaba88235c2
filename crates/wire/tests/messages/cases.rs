//! The messages in the vectors: of each kind the least, one in full, and some with special values.

use playfield_wire::message::{FieldForm, Form, MessageForm};
use playfield_wire::{ErrorCode, Format, PROTOCOL};

use super::{Message, Value, Written};

/// The messages of a direction in a format, each with a description.
pub(crate) fn cases<M: Message>(format: Format) -> Vec<(String, Written)> {
    let mut cases = Vec::new();
    for form in M::forms() {
        let [least, full] = [false, true].map(|is_full| {
            let values = Samples { format, is_full, count: 0 }.record(&form.fields);
            (values.clone(), Written::of(&form, format, &values))
        });
        if least.1.bytes != full.1.bytes {
            cases.push((format!("{}, the least", form.name), least.1));
        }
        cases.push((format!("{}, in full", form.name), full.1));
        for (about, changes) in special(form.kind, format) {
            let mut values = full.0.clone();
            for (field, value) in changes {
                values[place_of(&form, field)] = value;
            }
            let written = Written::of(&form, format, &values);
            cases.push((format!("{}, {about}", form.name), written));
        }
    }
    cases
}

fn place_of(form: &MessageForm, field: &str) -> usize {
    let place = form.fields.iter().position(|of| of.name == field);
    place.unwrap_or_else(|| panic!("{} has no field {field}", form.name))
}

type Special = (&'static str, Vec<(&'static str, Value)>);

/// Messages of a kind that are full but for these fields.
fn special(kind: u8, format: Format) -> Vec<Special> {
    let text = |text: &str| Value::Text(text.to_owned());
    let code = |code| ("code", Value::Code(code));
    match kind {
        0x02 => vec![("not in ASCII", vec![("room", text("täble \u{1F600}"))])],
        0x06 => vec![("of the largest number", vec![("request", Value::Number(u32::MAX.into()))])],
        0x08 => vec![("of a message without fields", vec![("payload", nothing(format))])],
        0x0B => vec![("with a nonce past 2^53", vec![("nonce", Value::Number(1 << 53))])],
        0x12 | 0x16 | 0x17 | 0x51 | 0x58 => vec![
            ("of JSON", vec![("payload", json(format))]),
            ("of bytes", vec![("payload", blob(format))]),
        ],
        0x42 => vec![(
            "with the largest numbers",
            vec![("epoch", Value::Number(u64::MAX)), ("fingerprint", Value::Number(u64::MAX))],
        )],
        0x44 => vec![("thrown out", vec![("request", Value::Absent), code(ErrorCode::Kicked)])],
        0x45 => vec![("of nothing", vec![("payload", nothing(format))])],
        0x4A => vec![("with the largest nonce", vec![("nonce", Value::Number(u64::MAX))])],
        0x4B => vec![("with a room's own code", vec![code(ErrorCode::Room(1001))])],
        0x4C => vec![("of a crowded node", vec![code(ErrorCode::Busy)])],
        _ => vec![],
    }
}

/// Values that depend on nothing but their order.
struct Samples {
    format: Format,
    is_full: bool,
    count: usize,
}

impl Samples {
    fn record(&mut self, fields: &[FieldForm]) -> Vec<Value> {
        fields.iter().map(|field| self.value(field.name, &field.form)).collect()
    }

    fn value(&mut self, name: &str, form: &Form) -> Value {
        let format = self.format;
        match form {
            // What follows another protocol is not read.
            Form::U64 if name == "protocol" => Value::Number(PROTOCOL),
            Form::Format => Value::Number(format.number().into()),
            Form::Message => Value::Message(2, "draw".into()),
            Form::JsonText => Value::Raw(b"{}".to_vec()),
            Form::Record(_, fields) => Value::Record(self.record(fields)),
            _ if !self.is_full => least(form),
            Form::Bool => Value::Bool(true),
            Form::U32 | Form::U64 | Form::Since => {
                self.count += 1;
                Value::Number([1, 130, 2, 16_384, 77, 300][self.count % 6])
            }
            Form::Fixed => Value::Number(0x0102_0304_0506_0708),
            Form::Text => Value::Text(format!("a {name}")),
            Form::Bytes => Value::Bytes(vec![1, 0xFF, 0]),
            Form::Rest if name == "body" => state(format),
            Form::Rest | Form::Embedded => payload(format),
            Form::Pairs => {
                let pairs = [("map", "sea"), ("a\"b", "")];
                Value::Pairs(pairs.map(|(name, value)| (name.into(), value.into())).to_vec())
            }
            Form::Texts => Value::Texts(vec!["roof".into(), "nörth".into()]),
            Form::Code => Value::Code(ErrorCode::RoomFull),
            Form::Option(form) => self.value(name, form),
            Form::List(form) => Value::List((0..2).map(|_| self.value(name, form)).collect()),
        }
    }
}

/// Zero, or nothing.
fn least(form: &Form) -> Value {
    match form {
        Form::Bool => Value::Bool(false),
        Form::U32 | Form::U64 | Form::Since | Form::Fixed => Value::Number(0),
        Form::Text => Value::Text(String::new()),
        Form::Bytes => Value::Bytes(vec![]),
        Form::Rest | Form::Embedded => Value::Raw(vec![]),
        Form::Pairs => Value::Pairs(vec![]),
        Form::Texts => Value::Texts(vec![]),
        Form::Code => Value::Code(ErrorCode::Left),
        Form::Option(_) => Value::Absent,
        Form::List(_) => Value::List(vec![]),
        other => panic!("{other:?} has no least value"),
    }
}

/// A payload of a room's message.
fn payload(format: Format) -> Value {
    Value::Raw(match format {
        Format::Packed => b"\x02\xff".to_vec(),
        Format::Msgpack => b"\x81\xa5count\x02".to_vec(),
        Format::Json => br#"{"count":2}"#.to_vec(),
    })
}

/// The payload of a message without fields.
fn nothing(format: Format) -> Value {
    Value::Raw(if format == Format::Packed { b"\0".to_vec() } else { vec![] })
}

/// A JSON value: its text in `packed`.
fn json(format: Format) -> Value {
    payload(if format == Format::Packed { Format::Json } else { format })
}

/// Bytes, not a JSON value.
fn blob(format: Format) -> Value {
    Value::Raw(match format {
        Format::Packed => b"\x02\xff".to_vec(),
        Format::Msgpack => b"\xc4\x02\x02\xff".to_vec(),
        Format::Json => br#""Av8=""#.to_vec(),
    })
}

/// The body of a snapshot or a patch. Only the state crate knows its meaning.
fn state(format: Format) -> Value {
    Value::Raw(match format {
        Format::Packed => b"\x02\xff".to_vec(),
        Format::Msgpack => b"\x91\x92\x90\x80".to_vec(),
        Format::Json => b"[[[],{}]]".to_vec(),
    })
}
