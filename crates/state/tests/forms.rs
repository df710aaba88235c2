//! Fields of values that are sent as a whole have a form in JSON and MessagePack: `null`, the one
//! field itself, an array or an object. What a client of an older build writes in its form, a node
//! reads as if the client had been built with its schema, and what such a client reads, it
//! understands, if the two are compatible.

use crate::common::Dice;

use playfield_state::{Data, Format, JsonExchange, Transcoder};
use playfield_wire::schema::{
    Enum, EventSchema, Field, Form, MessageSchema, Policy, RoomSchema, Struct, Type,
    check_compatible,
};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

mod old {
    use super::Data;

    #[derive(Data)]
    pub(crate) struct Clear;

    #[derive(Data)]
    pub(crate) struct Step(pub(crate) u8);

    #[derive(Data)]
    pub(crate) struct Jump(pub(crate) u8, pub(crate) String);

    #[derive(Data)]
    pub(crate) enum Mode {
        Off,
        Pause,
        At(u8),
    }
}

mod later {
    use super::Data;

    #[derive(Data, Debug, PartialEq, Default)]
    pub(crate) struct Clear {
        pub(crate) soft: Option<bool>,
        pub(crate) notes: Vec<String>,
        pub(crate) costs: std::collections::BTreeMap<u8, u8>,
    }

    #[derive(Data, Debug, PartialEq)]
    pub(crate) struct ClearOne(pub(crate) Option<u8>);

    #[derive(Data, Debug, PartialEq)]
    pub(crate) struct Step(pub(crate) u8, pub(crate) Option<u8>, pub(crate) Vec<u8>);

    #[derive(Data, Debug, PartialEq)]
    pub(crate) struct Jump(pub(crate) u8, pub(crate) String, pub(crate) Option<u8>);

    #[derive(Data, Debug, PartialEq)]
    pub(crate) enum Mode {
        On(u8),
        Off { level: Option<u8> },
        Pause(Option<u8>, Vec<u8>),
        At(u8, Option<u8>),
    }
}

/// The older value, in the bytes of a client that writes trees, as the later type.
fn grown<T: Data>(old: &impl Data) -> T {
    let read = |format| {
        let mut payload = Vec::new();
        old.write(format, &mut payload);
        T::read(format, &payload).unwrap()
    };
    let (json, msgpack): (T, T) = (read(Format::Json), read(Format::Msgpack));
    assert!(json.same(&msgpack));
    json
}

#[test]
fn a_node_reads_the_forms_of_older_clients() {
    assert_eq!(grown::<later::Clear>(&old::Clear), later::Clear::default());
    assert_eq!(later::Clear::read(Format::Json, b""), Ok(later::Clear::default()));
    assert_eq!(grown::<later::ClearOne>(&old::Clear), later::ClearOne(None));
    assert_eq!(grown::<later::Step>(&old::Step(5)), later::Step(5, None, vec![]));
    let jump = later::Jump(5, "hi".into(), None);
    assert_eq!(grown::<later::Jump>(&old::Jump(5, "hi".into())), jump);
    assert_eq!(grown::<later::Mode>(&old::Mode::Off), later::Mode::Off { level: None });
    assert_eq!(grown::<later::Mode>(&old::Mode::Pause), later::Mode::Pause(None, vec![]));
    assert_eq!(grown::<later::Mode>(&old::Mode::At(3)), later::Mode::At(3, None));
}

#[test]
fn what_is_missing_and_may_not_be_empty_is_named() {
    let error =
        |json: &str| later::Step::read(Format::Json, json.as_bytes()).unwrap_err().to_string();
    assert_eq!(error("null"), "member \"0\": expected a whole number from 0 to 255, found null");
    assert_eq!(error("[1,2,[],4]"), "expected an array of 3, found one of 4");
    for refused in ["{\"Off\":4}", "{\"On\":null}", "\"On\"", "\"Of\"", "{\"Of\":null}"] {
        assert!(later::Mode::read(Format::Json, refused.as_bytes()).is_err(), "{refused}");
    }
}

fn field(name: String, of: Type) -> Field {
    Field { name: name.into(), policy: Policy::Everyone, default_digest: None, of }
}

fn plain(dice: &mut Dice) -> Type {
    match dice.pick(4) {
        0 => Type::Bool,
        1 => Type::Text,
        2 => Type::Unit,
        _ => Type::U16,
    }
}

fn random_type(dice: &mut Dice, depth: usize) -> Type {
    if depth == 0 {
        return plain(dice);
    }
    match dice.pick(10) {
        0 => Type::Option(Box::new(random_type(dice, depth - 1))),
        1 => Type::List(Box::new(random_type(dice, depth - 1))),
        2 => Type::Array(Box::new(random_type(dice, depth - 1)), 2),
        3 => Type::Map(Box::new(Type::U8), Box::new(random_type(dice, depth - 1))),
        4..7 => Type::Struct(random_struct(dice, "S".into(), depth)),
        7 | 8 => {
            let variants = (0..1 + dice.pick(3))
                .map(|number| random_struct(dice, format!("V{number}"), depth))
                .collect();
            Type::Enum(Enum { name: "E".into(), variants })
        }
        _ => plain(dice),
    }
}

fn random_struct(dice: &mut Dice, name: String, depth: usize) -> Struct {
    let is_named = dice.once_in(2);
    let fields = (0..dice.pick(4)).map(|number| {
        let name = if is_named { format!("f{number}") } else { number.to_string() };
        field(name, random_type(dice, depth - 1))
    });
    let fields = fields.collect();
    Struct { name: name.into(), fields }
}

/// A later build of the type. If `is_sent` by clients, new fields may be empty, and there may be
/// new variants.
fn later(of: &Type, dice: &mut Dice, is_sent: bool) -> Type {
    let mut inner = |of: &Type| Box::new(later(of, dice, is_sent));
    match of {
        Type::Option(of) => Type::Option(inner(of)),
        Type::List(of) => Type::List(inner(of)),
        Type::Array(of, length) => Type::Array(inner(of), *length),
        Type::Map(key, of) => Type::Map(key.clone(), inner(of)),
        Type::Struct(of) => Type::Struct(later_struct(of, dice, is_sent)),
        Type::Enum(of) => {
            let mut variants: Vec<_> =
                of.variants.iter().map(|of| later_struct(of, dice, is_sent)).collect();
            if is_sent && dice.once_in(2) {
                variants.insert(0, random_struct(dice, "New".into(), 1));
            }
            Type::Enum(Enum { name: of.name.clone(), variants })
        }
        plain => plain.clone(),
    }
}

fn later_struct(of: &Struct, dice: &mut Dice, is_sent: bool) -> Struct {
    let mut fields: Vec<_> = of
        .fields
        .iter()
        .map(|known| field(known.name.clone().into_owned(), later(&known.of, dice, is_sent)))
        .collect();
    let is_named = match Form::of(&of.fields) {
        Form::Nothing => dice.once_in(2),
        form => form == Form::Named,
    };
    // Most later builds are compatible.
    let may_grow = is_sent || is_named && !of.fields.is_empty() || dice.once_in(9);
    let count = if may_grow { dice.pick(3) } else { 0 };
    for number in 0..count {
        let new = match dice.pick(3) {
            _ if !is_sent => plain(dice),
            0 => Type::Option(Box::new(plain(dice))),
            1 => Type::List(Box::new(plain(dice))),
            _ => Type::Map(Box::new(Type::U8), Box::new(plain(dice))),
        };
        let count = fields.len();
        if is_named {
            fields.insert(dice.pick(count + 1), field(format!("new{number}"), new));
        } else {
            fields.push(field(count.to_string(), new));
        }
    }
    Struct { name: of.name.clone(), fields }
}

/// A value as JSON, in the form of the type.
fn value(of: &Type, dice: &mut Dice) -> Value {
    match of {
        Type::Bool => json!(dice.once_in(2)),
        Type::Text => json!(dice.pick(99).to_string()),
        Type::Unit => Value::Null,
        Type::Option(of) if dice.once_in(2) => value(of, dice),
        Type::Option(_) => Value::Null,
        Type::List(of) => (0..dice.pick(3)).map(|_| value(of, dice)).collect(),
        Type::Array(of, length) => (0..*length).map(|_| value(of, dice)).collect(),
        Type::Map(_, of) => {
            let entries = (0..dice.pick(3)).map(|key| (key.to_string(), value(of, dice)));
            Value::Object(entries.collect())
        }
        Type::Struct(of) => fields(of, dice),
        Type::Enum(of) => {
            let variant = &of.variants[dice.pick(of.variants.len())];
            let name = variant.name.clone().into_owned();
            match Form::of(&variant.fields) {
                Form::Nothing => Value::String(name),
                _ => Value::Object([(name, fields(variant, dice))].into_iter().collect()),
            }
        }
        _ => json!(dice.pick(1 << 16)),
    }
}

fn fields(of: &Struct, dice: &mut Dice) -> Value {
    let mut values = of.fields.iter().map(|field| value(&field.of, dice));
    match Form::of(&of.fields) {
        Form::Nothing => Value::Null,
        Form::One => values.next().unwrap(),
        Form::Tuple => values.collect(),
        Form::Named => {
            let names = of.fields.iter().map(|field| field.name.to_string());
            Value::Object(names.zip(values).collect())
        }
    }
}

/// Returns what a client with this type makes of a tree: it takes what it knows, where it expects
/// it.
fn read(of: &Type, tree: &Value) -> Value {
    match of {
        Type::Option(_) if tree.is_null() => Value::Null,
        Type::Option(of) => read(of, tree),
        Type::List(of) | Type::Array(of, _) => {
            tree.as_array().unwrap().iter().map(|tree| read(of, tree)).collect()
        }
        Type::Map(_, of) => {
            let entries = tree.as_object().unwrap().iter();
            Value::Object(entries.map(|(key, tree)| (key.clone(), read(of, tree))).collect())
        }
        Type::Struct(of) => read_fields(of, tree),
        Type::Enum(of) => match tree {
            Value::String(_) => tree.clone(),
            tree => {
                let (name, tree) = tree.as_object().unwrap().iter().next().unwrap();
                let variant = of.variants.iter().find(|variant| *variant.name == **name).unwrap();
                Value::Object([(name.clone(), read_fields(variant, tree))].into_iter().collect())
            }
        },
        _ => tree.clone(),
    }
}

fn read_fields(of: &Struct, tree: &Value) -> Value {
    match Form::of(&of.fields) {
        Form::Nothing => tree.clone(),
        Form::One => read(&of.fields[0].of, tree),
        Form::Tuple => {
            let places = of.fields.iter().zip(tree.as_array().unwrap());
            places.map(|(field, tree)| read(&field.of, tree)).collect()
        }
        Form::Named => {
            let name = |field: &Field| field.name.to_string();
            let members =
                of.fields.iter().map(|field| (name(field), read(&field.of, &tree[name(field)])));
            Value::Object(members.collect())
        }
    }
}

/// A room with one message and one event.
fn schema(message: Type, event: Type) -> RoomSchema {
    let message = MessageSchema { name: "ask".into(), of: message, reply: Type::Unit };
    RoomSchema {
        state: Type::Struct(Struct { name: "World".into(), fields: vec![] }),
        options: Type::Unit,
        messages: vec![message],
        events: vec![EventSchema { name: "told".into(), of: event }],
    }
}

proptest! {
    #![proptest_config(Config { cases: 2000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_node_reads_what_an_older_client_wrote_as_if_it_had_its_schema(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let old = random_type(dice, 3);
        let new = later(&old, dice, true);
        let (node, client) = (schema(new, Type::Unit), schema(old.clone(), Type::Unit));
        let transcoder = Transcoder::new(&node, &client).unwrap();
        if check_compatible(&node, &client).is_err() {
            return Ok(());
        }
        let (at_node, at_client) =
            (JsonExchange::new(&node).unwrap(), JsonExchange::new(&client).unwrap());
        for _ in 0..8 {
            let tree = value(&old, dice);
            let (_, own) = at_client.message("ask", &tree).unwrap();
            let mut expected = Vec::new();
            transcoder.message(0, &own, &mut expected).unwrap();
            prop_assert_eq!(at_node.message("ask", &tree), Ok((0, expected)), "{}", tree);
        }
    }

    #[test]
    fn a_payload_is_checked_as_it_is_read(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let of = random_type(dice, 3);
        let exchange = JsonExchange::new(&schema(Type::Unit, of.clone())).unwrap();
        for _ in 0..8 {
            let (_, mut payload) = exchange.event_payload("told", &value(&of, dice)).unwrap();
            prop_assert_eq!(exchange.check_event(0, &payload), Ok("told"));
            for _ in 0..dice.pick(3) {
                let place = dice.pick(payload.len());
                match dice.pick(3) {
                    0 => payload.truncate(place.max(1)),
                    1 => payload.insert(place, dice.pick(256) as u8),
                    _ => payload[place] = dice.pick(256) as u8,
                }
            }
            let read = exchange.event(0, &payload).map(|(name, _)| name);
            prop_assert_eq!(exchange.check_event(0, &payload), read);
        }
    }

    #[test]
    fn an_older_client_reads_what_a_node_writes_as_if_it_had_its_schema(seed in any::<u64>()) {
        let dice = &mut Dice::new(seed);
        let old = random_type(dice, 3);
        let new = later(&old, dice, false);
        let (node, client) = (schema(Type::Unit, new.clone()), schema(Type::Unit, old.clone()));
        let transcoder = Transcoder::new(&node, &client).unwrap();
        if check_compatible(&node, &client).is_err() {
            return Ok(());
        }
        let (at_node, at_client) =
            (JsonExchange::new(&node).unwrap(), JsonExchange::new(&client).unwrap());
        for _ in 0..8 {
            let (_, packed) = at_node.event_payload("told", &value(&new, dice)).unwrap();
            let (_, tree) = at_node.event(0, &packed).unwrap();
            let mut own = Vec::new();
            transcoder.event(0, &packed, &mut own).unwrap();
            prop_assert_eq!(read(&old, &tree), at_client.event(0, &own).unwrap().1, "{}", tree);
        }
    }
}
