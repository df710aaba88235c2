//! Schemas as JSON: a written schema reads back, and errors name the place.

use playfield_wire::schema::{
    Enum, EventSchema, Field, MessageSchema, Policy, Quantized, RoomSchema, SCHEMA_BYTES_MAX,
    SchemaError, Struct, TYPE_DEPTH_MAX, Type, fingerprint,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn field(name: &'static str, policy: Policy, of: Type) -> Field {
    Field { name: name.into(), policy, default_digest: None, of }
}

fn structure(name: &'static str, fields: Vec<Field>) -> Struct {
    Struct { name: name.into(), fields }
}

fn table() -> RoomSchema {
    let hundredths =
        Quantized { of: Type::F32, step: 0.01, range: Some((-50.0, 50.0)), angle: false };
    let angle = Quantized { of: Type::F64, step: 0.1, range: None, angle: true };
    let seat = structure(
        "Seat",
        vec![
            field("hp", Policy::Everyone, Type::I32),
            field("x", Policy::Everyone, Type::Quantized(Box::new(hundredths))),
            field("heading", Policy::View, Type::Quantized(Box::new(angle))),
            field("secret", Policy::Owner, Type::Option(Box::new(Type::U8))),
            Field {
                default_digest: Some(0x0123_4567_89ab_cdef),
                ..field("mood", Policy::View, Type::Text)
            },
            field("seed", Policy::Hidden, Type::U64),
        ],
    );
    let phase = Enum {
        name: "Phase".into(),
        variants: vec![
            structure("Waiting", vec![]),
            structure("Playing", vec![field("turn", Policy::Everyone, Type::Player)]),
        ],
    };
    let state = vec![
        field("phase", Policy::Everyone, Type::Enum(phase)),
        field(
            "seats",
            Policy::Everyone,
            Type::Map(Box::new(Type::Player), Box::new(Type::Struct(seat))),
        ),
        field("marks", Policy::Everyone, Type::Array(Box::new(Type::Bool), 9)),
        field("names", Policy::Everyone, Type::Set(Box::new(Type::Text))),
    ];
    RoomSchema {
        state: Type::Struct(structure("Table", state)),
        options: Type::Unit,
        messages: vec![MessageSchema {
            name: "Draw".into(),
            of: Type::List(Box::new(Type::Bytes)),
            reply: Type::F64,
        }],
        events: vec![EventSchema { name: "Dealt".into(), of: Type::Text }],
    }
}

const TABLE: &str = concat!(
    r#"{"fingerprint":"FINGERPRINT","state":{"struct":"Table","fields":["#,
    r#"{"name":"phase","type":{"enum":"Phase","variants":["#,
    r#"{"name":"Waiting","fields":[]},{"name":"Playing","fields":[{"name":"turn","type":"player"}]}]}},"#,
    r#"{"name":"seats","type":{"map":{"struct":"Seat","fields":["#,
    r#"{"name":"hp","type":"i32"},"#,
    r#"{"name":"x","type":{"quantized":"f32","step":0.01,"range":[-50.0,50.0]}},"#,
    r#"{"name":"heading","policy":"view","type":{"quantized":"f64","step":0.1,"angle":true}},"#,
    r#"{"name":"secret","policy":"owner","type":{"option":"u8"}},"#,
    r#"{"name":"mood","policy":"view","default_digest":"0123456789abcdef","type":"text"}"#,
    r#"]},"key":"player"}},"#,
    r#"{"name":"marks","type":{"array":"bool","length":9}},{"name":"names","type":{"set":"text"}}]},"#,
    r#""options":"unit","messages":[{"name":"Draw","type":{"list":"bytes"},"reply":"f64"}],"#,
    r#""events":[{"name":"Dealt","type":"text"}]}"#
);

fn table_text() -> String {
    TABLE.replace("FINGERPRINT", &fingerprint(&table()).to_string())
}

#[test]
fn the_text_has_its_members_in_a_fixed_order_and_no_hidden_fields() {
    assert_eq!(table().to_json(), table_text());
}

#[test]
fn a_written_schema_reads_back_without_hidden_fields() {
    let mut shown = table();
    let read = RoomSchema::from_json(table_text().as_bytes()).unwrap();
    assert_eq!(RoomSchema::from_json(table().to_json_pretty().as_bytes()), Ok(read.clone()));
    let Type::Struct(state) = &mut shown.state else { unreachable!("the state is a struct") };
    let Type::Map(_, seat) = &mut state.fields[1].of else { unreachable!("seats are a map") };
    let Type::Struct(seat) = &mut **seat else { unreachable!("a seat is a struct") };
    seat.fields.pop();
    assert_eq!(read, shown);
}

#[test]
fn the_example_in_the_protocol_is_a_schema() {
    let document = include_str!("../../../docs/protocol.md");
    let (_, section) = document.split_once("## Schemas").unwrap();
    let (_, example) = section.split_once("```json").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let schema = RoomSchema::from_json(example.as_bytes()).unwrap();
    let one_line: String = example.lines().map(str::trim).collect();
    let without_spaces = |text: &str| text.replace(' ', "");
    assert_eq!(schema.to_json(), without_spaces(&one_line));
    let (_, text) = section.split_once("```text\n").unwrap();
    assert_eq!(schema.canonical_text(), text.split_once("```").unwrap().0);
}

#[test]
fn schema_errors_name_the_place() {
    let cases = [
        ("", "", r#"{"a":"#, "a schema must be JSON: EOF while parsing a value at line 1 column 5"),
        ("", "", "[]", "the schema: expected an object, found []"),
        (r#""options":"unit","#, "", "", r#"the schema: the member "options" is missing"#),
        (
            r#""type":"i32""#,
            r#""type":"i33""#,
            "",
            r#"state.seats.*.hp: expected the word for a type, found "i33""#,
        ),
        (r#""name":"hp","#, "", "", r#"state.seats.*: the member "name" is missing"#),
        (r#""name":"hp""#, r#""name":7"#, "", "state.seats.*: expected a name, found 7"),
        (r#""name":"x""#, r#""name":"hp""#, "", "state.seats.*.hp: two have this name"),
        (
            r#"{"option":"u8"}"#,
            r#"{"maybe":"u8"}"#,
            "",
            r#"state.seats.*.secret: expected a type, found {"maybe":"u8"}"#,
        ),
        (
            "owner",
            "everyone",
            "",
            r#"state.seats.*.secret: expected the policy "owner" or "view", found "everyone""#,
        ),
        (
            r#""0123456789abcdef""#,
            r#""123456789abcdef""#,
            "",
            r#"state.seats.*.mood: expected a digest of 16 digits from 0 to f, found "123456789abcdef""#,
        ),
        (
            r#""0123456789abcdef""#,
            r#""0123456789ABCDEF""#,
            "",
            "state.seats.*.mood: expected a digest of 16 digits",
        ),
        (
            r#""0123456789abcdef""#,
            r#""+123456789abcdef""#,
            "",
            "state.seats.*.mood: expected a digest of 16 digits",
        ),
        (
            r#""0123456789abcdef""#,
            r#""ééééabcd""#,
            "",
            "state.seats.*.mood: expected a digest of 16 digits",
        ),
        (
            r#""0123456789abcdef""#,
            "81985529216486895",
            "",
            "state.seats.*.mood: expected a digest of 16 digits",
        ),
        (r#""0123456789abcdef""#, "null", "", "state.seats.*.mood: expected a digest of 16 digits"),
        (
            r#""policy":"view","default_digest""#,
            r#""default_digest""#,
            "",
            r#"state.seats.*.mood: expected no "default_digest" where everyone sees the field, found "0123456789abcdef""#,
        ),
        (r#""key":"player""#, r#""key":"bool""#, "", r#"state.seats (its key): expected a player"#),
        (
            r#""key":"player""#,
            r#""kee":"player""#,
            "",
            r#"state.seats: the member "key" is missing"#,
        ),
        (
            r#""length":9"#,
            r#""length":0"#,
            "",
            "state.marks: expected a length from 1 to 2^32 - 1, found 0",
        ),
        (
            r#""length":9"#,
            r#""length":4294967296"#,
            "",
            "state.marks: expected a length from 1 to 2^32 - 1",
        ),
        (
            r#""step":0.01"#,
            r#""step":0"#,
            "",
            "state.seats.*.x: expected a step greater than 0, found 0",
        ),
        (r#""quantized":"f32""#, r#""quantized":"u8""#, "", "state.seats.*.x: expected f32 or f64"),
        (
            "[-50.0,50.0]",
            "[1,0]",
            "",
            "state.seats.*.x: expected a least value and then a greatest one",
        ),
        (
            r#""angle":true"#,
            r#""angle":true,"range":[0,1]"#,
            "",
            "state.seats.*.heading: expected true, and no range",
        ),
        (
            r#""angle":true"#,
            r#""angle":false"#,
            "",
            "state.seats.*.heading: expected true, and no range",
        ),
        (
            r#"{"list":"bytes"}"#,
            r#"{"list":0}"#,
            "",
            "messages.Draw.*: expected an object, found 0",
        ),
        (r#","reply":"f64""#, "", "", r#"messages.Draw: the member "reply" is missing"#),
        (
            r#""reply":"f64""#,
            r#""reply":"f65""#,
            "",
            "messages.Draw (its reply): expected the word for a type",
        ),
        (r#""variants":["#, r#""variants":[7,"#, "", "state.phase: expected an object, found 7"),
    ];
    for (from, to, text, expected) in cases {
        let text =
            if from.is_empty() { text.to_owned() } else { table_text().replacen(from, to, 1) };
        let error = RoomSchema::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected) || error.contains(expected), "{error}\n{expected}");
    }
}

#[test]
fn the_fingerprint_must_match_the_content() {
    let text = table_text().replace(r#""type":"i32""#, r#""type":"i64""#);
    let stated = fingerprint(&table());
    let error = RoomSchema::from_json(text.as_bytes()).unwrap_err();
    assert!(
        matches!(error, SchemaError::Fingerprint { stated: found, .. } if found == stated),
        "{error}"
    );
    let text = table_text().replace(&stated.to_string(), "x");
    assert!(matches!(RoomSchema::from_json(text.as_bytes()), Err(SchemaError::Unexpected { .. })));
}

#[test]
fn depth_and_length_are_limited() {
    let nested = |depth: usize| {
        let leaf = Type::Struct(structure("Leaf", vec![]));
        let wrap = |of, _| {
            let variant = structure("Only", vec![field("of", Policy::Everyone, of)]);
            Type::Enum(Enum { name: "Deep".into(), variants: vec![variant] })
        };
        let options = (1..depth).fold(leaf, wrap);
        RoomSchema { options, ..table() }
    };
    let text = nested(TYPE_DEPTH_MAX).to_json_in_limits().unwrap();
    RoomSchema::from_json(text.as_bytes()).unwrap();
    let deeper = nested(TYPE_DEPTH_MAX + 1);
    let error = RoomSchema::from_json(deeper.to_json().as_bytes()).unwrap_err();
    assert_eq!(deeper.to_json_in_limits().unwrap_err(), error);
    assert!(
        matches!(&error, SchemaError::TooDeep { place } if place.starts_with("options.Only.of")),
        "{error}"
    );
    let error = RoomSchema::from_json(&vec![b' '; SCHEMA_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error, SchemaError::TooLong { bytes: SCHEMA_BYTES_MAX + 1 });
    let named = |bytes: usize| {
        let event = EventSchema { name: "x".repeat(bytes).into(), of: Type::Unit };
        RoomSchema { events: vec![event], ..table() }
    };
    // The fingerprint's length varies.
    let left = (SCHEMA_BYTES_MAX - named(0).to_json().len() - 4..)
        .find(|bytes| named(*bytes).to_json().len() > SCHEMA_BYTES_MAX)
        .unwrap();
    let bytes = named(left).to_json().len();
    assert_eq!(named(left).to_json_in_limits(), Err(SchemaError::TooLong { bytes }));
    let text = named(left - 2).to_json_in_limits().unwrap();
    RoomSchema::from_json(text.as_bytes()).unwrap();
    let deep = "[".repeat(SCHEMA_BYTES_MAX);
    assert!(matches!(RoomSchema::from_json(deep.as_bytes()), Err(SchemaError::Json { .. })));
}

fn any_type() -> impl Strategy<Value = Type> {
    let key = prop_oneof![Just(Type::Player), Just(Type::Text), Just(Type::U32), Just(Type::I64)];
    let quantized = (any::<bool>(), 1e-6..10.0_f64, 0..3, -1e3..1e3_f64, 1e-3..1e3_f64).prop_map(
        |(wide, step, kind, least, span)| {
            let of = if wide { Type::F64 } else { Type::F32 };
            let range = (kind == 1).then_some((least, least + span));
            Type::Quantized(Box::new(Quantized { of, step, range, angle: kind == 2 }))
        },
    );
    let leaf = prop_oneof![
        Just(Type::Bool),
        Just(Type::Unit),
        Just(Type::F64),
        Just(Type::Bytes),
        quantized
    ];
    leaf.prop_recursive(5, 40, 4, move |inner| {
        let policy = prop_oneof![Just(Policy::Everyone), Just(Policy::Owner), Just(Policy::View)];
        let default_digest = prop::option::of(any::<u64>());
        let fields =
            btree_map(".{0,6}", (policy, default_digest, inner.clone()), 0..4).prop_map(|fields| {
                let field = |(name, (policy, default_digest, of)): (String, _)| {
                    let default_digest =
                        if policy == Policy::Everyone { None } else { default_digest };
                    Field { name: name.into(), policy, default_digest, of }
                };
                fields.into_iter().map(field).collect::<Vec<_>>()
            });
        let structs = (".{0,6}", fields.clone())
            .prop_map(|(name, fields)| Type::Struct(Struct { name: name.into(), fields }));
        let enums = (".{0,6}", btree_map(".{0,6}", fields, 1..4)).prop_map(|(name, variants)| {
            let variant = |(name, fields): (String, _)| Struct { name: name.into(), fields };
            Type::Enum(Enum {
                name: name.into(),
                variants: variants.into_iter().map(variant).collect(),
            })
        });
        prop_oneof![
            inner.clone().prop_map(|of| Type::Option(Box::new(of))),
            inner.clone().prop_map(|of| Type::List(Box::new(of))),
            (inner.clone(), 1..99_usize).prop_map(|(of, length)| Type::Array(Box::new(of), length)),
            (key.clone(), inner).prop_map(|(key, of)| Type::Map(Box::new(key), Box::new(of))),
            key.clone().prop_map(|key| Type::Set(Box::new(key))),
            structs,
            enums,
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_comes_back(options in any_type(), of in any_type(), names in vec("[a-z]{1,4}", 0..1)) {
        let messages = names.into_iter().map(|name| MessageSchema { name: name.into(), of: of.clone(), reply: Type::Unit });
        let schema = RoomSchema { options, messages: messages.collect(), ..table() };
        let text = schema.to_json();
        let read = RoomSchema::from_json(text.as_bytes()).unwrap();
        prop_assert_eq!(read.to_json(), text);
        prop_assert_eq!(&read.options, &schema.options);
        prop_assert_eq!(&read.messages, &schema.messages);
    }

    #[test]
    fn damaged_text_never_panics(at in 0..2000_usize, byte in any::<u8>(), end in 0..2000_usize) {
        let mut text = table_text().into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let _ = RoomSchema::from_json(&text);
        text.truncate(end);
        let _ = RoomSchema::from_json(&text);
    }
}
