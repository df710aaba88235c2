//! Strategies for messages, for the property tests.

use playfield_wire::message::{FieldForm, Form};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{ErrorCode, Format, PROTOCOL, TreeFormat};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::{Message, Value, Written};

/// Any message of a direction, as it is written in a format.
pub(crate) fn message<M: Message>(format: Format) -> impl Strategy<Value = Written> {
    Union::new(M::forms().into_iter().map(move |form| {
        let values = record(&form.fields, format);
        values.prop_map(move |values| Written::of(&form, format, &values)).boxed()
    }))
}

fn record(fields: &[FieldForm], format: Format) -> Vec<BoxedStrategy<Value>> {
    // What follows another protocol is not read.
    let value = |field: &FieldForm| match field.name {
        "protocol" => Just(Value::Number(PROTOCOL)).boxed(),
        _ => value(&field.form, format),
    };
    fields.iter().map(value).collect()
}

fn value(form: &Form, format: Format) -> BoxedStrategy<Value> {
    match form {
        Form::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Form::U32 => (any::<u32>(), 0..32_u32)
            .prop_map(|(number, shift)| Value::Number((number >> shift).into()))
            .boxed(),
        // Of every length, small ones as often as large ones.
        Form::U64 | Form::Since => (any::<u64>(), 0..64_u32)
            .prop_map(|(number, shift)| Value::Number(number >> shift))
            .boxed(),
        Form::Fixed => any::<u64>().prop_map(Value::Number).boxed(),
        Form::Format => Just(Value::Number(format.number().into())).boxed(),
        Form::Text => text().prop_map(Value::Text).boxed(),
        Form::Bytes => bytes().prop_map(Value::Bytes).boxed(),
        Form::Rest | Form::Embedded => raw(format).prop_map(Value::Raw).boxed(),
        Form::JsonText => raw(if format == Format::Msgpack { Format::Json } else { format })
            .prop_map(Value::Raw)
            .boxed(),
        Form::Pairs => vec((text(), text()), 0..4).prop_map(Value::Pairs).boxed(),
        Form::Texts => vec(text(), 0..4).prop_map(Value::Texts).boxed(),
        Form::Message => {
            (any::<u32>(), text()).prop_map(|(index, name)| Value::Message(index, name)).boxed()
        }
        Form::Code => code().prop_map(Value::Code).boxed(),
        Form::Option(form) => prop_oneof![Just(Value::Absent), value(form, format)].boxed(),
        Form::List(form) => vec(value(form, format), 0..4).prop_map(Value::List).boxed(),
        Form::Record(_, fields) => record(fields, format).prop_map(Value::Record).boxed(),
    }
}

fn text() -> impl Strategy<Value = String> {
    vec(prop_oneof![any::<char>(), prop::char::range('\0', '~')], 0..12)
        .prop_map(|text| text.into_iter().collect())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..20)
}

/// Any bytes in `packed`, any value in MessagePack and JSON.
fn raw(format: Format) -> BoxedStrategy<Vec<u8>> {
    let object = |text| serde_json::json!({ "a": [text, null, true] });
    match format {
        Format::Packed => bytes().boxed(),
        Format::Msgpack => prop_oneof![
            Just(Vec::new()),
            any::<i32>().prop_map(|number| tree(|value| value.i64(number.into()))),
            bytes().prop_map(|bytes| tree(|value| value.bytes(&bytes))),
            text().prop_map(move |text| tree(|value| value.value(&object(text)))),
        ]
        .boxed(),
        Format::Json => prop_oneof![
            Just(Vec::new()),
            any::<i32>().prop_map(|number| number.to_string().into_bytes()),
            text().prop_map(move |text| object(text).to_string().into_bytes()),
        ]
        .boxed(),
    }
}

fn tree(write: impl FnOnce(TreeWriter<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(TreeWriter::new(TreeFormat::Msgpack, &mut out));
    out
}

fn code() -> impl Strategy<Value = ErrorCode> {
    let node = (1..=40_u16)
        .prop_map(|number| ErrorCode::from_number(number).expect("the table has 40 codes"));
    prop_oneof![node, (ErrorCode::ROOM_MIN..).prop_map(ErrorCode::Room)]
}
