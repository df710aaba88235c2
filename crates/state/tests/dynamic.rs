//! Reading by a schema: what is rejected, and what is implied without being sent. Law 1 covers
//! everything else.

use playfield_state::{
    Change, ChangeKind, Data, DynamicMirror, Format, JsonExchange, JsonMirror, List, Map, Path,
    PathStep, PlayerId, Set, ShapeError, State, Tracker, Tracking, Transcoder, view,
};
use playfield_wire::TreeFormat;
use playfield_wire::schema::{
    Enum, EventSchema, Field, MessageSchema, Policy, Quantized, RoomSchema, Struct, Type,
};
use serde_json::{Value, json};

const ANN: PlayerId = PlayerId(1);

/// The number of types that fit between a root struct and a leaf.
const DEEPEST: usize = playfield_wire::schema::TYPE_DEPTH_MAX - 2;

fn field(name: &'static str, policy: Policy, of: Type) -> Field {
    Field { name: name.into(), policy, default_digest: None, of }
}

fn structure(fields: Vec<Field>) -> Type {
    Type::Struct(Struct { name: "Thing".into(), fields })
}

/// A state with one open field.
fn around(of: Type) -> Type {
    structure(vec![field("it", Policy::Everyone, of)])
}

fn list(of: Type) -> Type {
    Type::List(Box::new(of))
}

fn map(key: Type, value: Type) -> Type {
    Type::Map(Box::new(key), Box::new(value))
}

fn mirror(of: &Type) -> DynamicMirror {
    DynamicMirror::new(of, ANN).unwrap()
}

/// A copy of a state with one open field, after a snapshot.
fn copy(of: Type, snapshot: &[u8]) -> DynamicMirror {
    let mut mirror = mirror(&around(of));
    mirror.snapshot(snapshot).unwrap();
    mirror
}

/// The error for a patch of that field.
fn refusal(of: Type, snapshot: &[u8], patch: &[u8]) -> String {
    let mut mirror = copy(of, snapshot);
    mirror.patch(&[&[1], patch].concat()).unwrap_err().to_string()
}

#[test]
fn patches_that_do_not_fit_a_copy_are_rejected() {
    let numbers = || map(Type::U32, Type::U8);
    let cases: [(Type, &[u8], &[u8], &str); 20] = [
        (numbers(), &[0], &[32], "at byte 1: the flags of a map's patch are below 32, not 32"),
        (
            numbers(),
            &[0],
            &[4, 3, 1, 0],
            "at byte 3: slot 2 was changed, but it is empty in this copy",
        ),
        (
            numbers(),
            &[0],
            &[16, 1, 1, 0],
            "at byte 3: slot 0 was changed, but it is empty in this copy",
        ),
        (numbers(), &[1, 5, 9, 0], &[2, 2, 5, 8, 0], "at byte 1: one key is in two slots of a map"),
        (numbers(), &[0], &[8, 9], "at byte 2: a map's patch has 1 to 8 groups, not 9"),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 4, 0, 1, 0, 1, 0, 0],
            "at byte 3: slot 1 was changed, but it is empty in this copy",
        ),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 2, 0, 1, 66, 0],
            "at byte 6: the width of a column is at most 65, not 66",
        ),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 2, 0, 1, 1, 255, 1],
            "at byte 6: a value 1 above the least of its column is out of range",
        ),
        (list(Type::U8), &[1, 7], &[3], "at byte 1: a list's patch begins with 0, 1 or 2, not 3"),
        (
            list(Type::U8),
            &[1, 7],
            &[1, 2, 9, 0],
            "at byte 2: index 1 is past the end of a list of 1",
        ),
        (
            list(Type::U8),
            &[1, 7],
            &[2, 5, 0, 0, 0],
            "at byte 6: an inserted list element was not sent",
        ),
        (
            list(Type::U8),
            &[1, 7],
            &[2, 8, 0, 0],
            "at byte 2: can't remove 2 elements at 0 of a list of 1",
        ),
        (
            list(Type::U8),
            &[2, 7, 8],
            &[2, 11, 0, 0],
            "at byte 4: an order names the element 0 twice",
        ),
        (
            Type::Option(Box::new(Type::U8)),
            &[0],
            &[2, 1],
            "at byte 1: an option was changed, but it is None in this copy",
        ),
        (
            Type::Option(Box::new(Type::U8)),
            &[0],
            &[3],
            "at byte 1: an option's patch begins with 0, 1 or 2, not 3",
        ),
        (
            Type::Array(Box::new(Type::U8), 3),
            &[1, 2, 3],
            &[8, 0],
            "at byte 1: element 3 is past the end of an array of 3",
        ),
        (
            around(Type::U8),
            &[7],
            &[2],
            "at byte 1: the mask 0x2 marks fields that are not allowed here",
        ),
        (Type::U16, &[7], &[0xff, 0xff, 7], "at byte 1: 131071 is past the range of u16"),
        (Type::U8, &[7], &[7, 1, 1, 9], "at byte 4: the end was expected, 1 bytes remain"),
        (Type::Text, &[0], &[2, b'a'], "at byte 1: a text of 2 bytes was announced, 1 remain"),
    ];
    for (of, snapshot, patch, expected) in cases {
        assert_eq!(refusal(of.clone(), snapshot, patch), expected, "{of:?} {patch:02x?}");
    }
}

#[test]
fn owner_fields_are_accepted_only_where_allowed() {
    let seats = map(
        Type::Player,
        structure(vec![
            field("open", Policy::Everyone, Type::U8),
            field("own", Policy::Owner, around(list(Type::U8))),
            field("seen", Policy::View, Type::U8),
        ]),
    );
    let whole = [1, 1, 7, 0];
    let say = |patch: &[u8]| refusal(seats.clone(), &whole, patch);
    assert_eq!(
        say(&[4, 1, 2, 1, 1]),
        "at byte 3: a field that only its owner sees was sent in the shared part"
    );
    let own = |patch: &[u8]| {
        let mut mirror = copy(seats.clone(), &whole);
        mirror.patch(&[&[0, 1], patch].concat()).map(|()| mirror.state().clone())
    };
    // A list that the copy doesn't have yet is sent whole. A part that is left out is an error.
    let all = json!({"it": {"1": {"open": 7, "own": {"it": [9]}}}});
    assert_eq!(own(&[4, 1, 2, 1, 0, 1, 9, 0]), Ok(all));
    let error = own(&[4, 1, 2, 0, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 6: a part of a new value was not sent");
    let error = own(&[4, 1, 4, 2, 9, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 5: a value was changed, but it is not in view in this copy");
    let error = own(&[4, 1, 4, 9, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 5: the patch of a value with a view begins with 0 to 3, not 9");
    let error = own(&[8, 1, 2, 0, 1, 1]).unwrap_err().to_string();
    assert_eq!(error, "at byte 2: a field that only its owner sees was sent in columns");

    let hands = structure(vec![field("hands", Policy::Owner, map(Type::Player, Type::U8))]);
    let mut copy = mirror(&hands);
    copy.snapshot(&[0]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {}}));
    let say = |patch: &[u8]| {
        let mut copy = copy.clone();
        copy.patch(&[&[0, 1], patch].concat()).unwrap_err().to_string()
    };
    assert_eq!(say(&[3, 1]), "at byte 2: the player's own entry begins with 0, 1 or 2, not 3");
    assert_eq!(
        say(&[2, 1, 1]),
        "at byte 2: the player's own entry was changed, but this copy has none"
    );
    copy.patch(&[0, 1, 1, 1, 9]).unwrap();
    copy.patch(&[0, 1, 2, 1, 8]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {"1": 8}}));
    copy.patch(&[0, 1, 0, 1]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {}}));
}

#[test]
fn only_a_snapshot_repairs_a_copy_that_rejected_a_patch() {
    let mut copy = mirror(&around(list(Type::U8)));
    assert_eq!((copy.state(), copy.digest()), (&Value::Null, 0));
    let error = copy.patch(&[1]).unwrap_err().to_string();
    assert_eq!(error, "a patch was received before the first snapshot");
    copy.snapshot(&[1, 7]).unwrap();
    // A rejected snapshot leaves the copy unchanged.
    copy.snapshot(&[2, 7]).unwrap_err();
    copy.patch(&[1, 1, 1, 8, 0]).unwrap();
    assert_eq!(*copy.state(), json!({"it": [8]}));
    copy.patch(&[1, 1, 9]).unwrap_err();
    let error = copy.patch(&[1, 1, 1, 8, 0]).unwrap_err().to_string();
    assert_eq!(error, "an earlier patch could not be applied: a snapshot is needed");
    let mut reported = 0;
    copy.snapshot_with(&[1, 1], |_| reported += 1).unwrap();
    copy.patch_with(&[1, 1, 1, 2, 0], |_| reported += 1).unwrap();
    assert_eq!((copy.state(), reported), (&json!({"it": [2]}), 1));
}

#[derive(State, Default)]
struct Room {
    players: Map<PlayerId, Bag>,
}

#[derive(State, Default)]
struct Bag {
    #[sync(owner)]
    items: Map<u8, u8>,
    #[sync(owner)]
    tags: Set<String>,
    #[sync(owner)]
    pockets: [Map<u8, u8>; 2],
    #[sync(owner)]
    purse: Purse,
    #[sync(owner)]
    notes: List<u8>,
}

#[derive(State, Default)]
struct Purse {
    coins: Map<u8, u8>,
    #[sync(owner)]
    name: String,
}

/// Empty values exist in their owner's copy, though no byte is sent for them.
#[test]
fn empty_values_are_implied() {
    let mut room = Room::default();
    room.players.get_or_default(ANN);
    room.players.get_or_default(PlayerId(2));
    let mut tracker = Tracker::new(&mut room, Tracking::On);
    let mut copy = mirror(&Room::schema());
    let mut body = Vec::new();
    tracker.snapshot(ANN, Format::Packed, &mut body);
    copy.snapshot(&body).unwrap();
    let expected = json!({"players": {
        "1": {"items": {}, "tags": {}, "pockets": [{}, {}], "purse": {"coins": {}, "name": ""}, "notes": []},
        "2": {},
    }});
    assert_eq!(view(&room, Some(ANN)), expected);
    assert_eq!(*copy.state(), expected);
    room.players.get_or_default(ANN).pockets[1].insert(3, 4);
    room.players.get_or_default(PlayerId(3));
    tracker.sync(&mut room);
    body.clear();
    assert!(tracker.patch(ANN, 1, Format::Packed, &mut body));
    copy.patch(&body).unwrap();
    assert_eq!(*copy.state(), view(&room, Some(ANN)));
    assert_eq!(copy.digest(), tracker.digest(ANN, Format::Packed));
}

#[test]
fn a_schema_that_no_state_can_have_is_rejected() {
    let say = |of: &Type| DynamicMirror::new(of, ANN).unwrap_err();
    assert_eq!(say(&Type::U8), ShapeError::Root);
    let deep = |depth: usize| (0..depth).fold(Type::U8, |of, _| Type::Option(Box::new(of)));
    mirror(&around(deep(DEEPEST)));
    assert_eq!(say(&around(deep(DEEPEST + 1))), ShapeError::TooDeep);
    assert_eq!(say(&around(deep(5_000))), ShapeError::TooDeep);
    let array = |of: Type, length| Type::Array(Box::new(of), length);
    mirror(&around(array(Type::U8, 1 << 19)));
    assert_eq!(say(&around(array(Type::U8, (1 << 20) + 1))), ShapeError::TooLarge);
    assert_eq!(say(&around(array(array(Type::U8, usize::MAX), usize::MAX))), ShapeError::TooLarge);
    assert!(matches!(say(&around(array(Type::U8, 0))), ShapeError::Empty { .. }));
    // 16 arrays in lists, each with one value for itself and one for its element: 2^24 with the
    // root.
    let lists = |last| {
        let length = |place| if place < 15 { 1 << 20 } else { last };
        let of = |place: usize| Field {
            name: place.to_string().into(),
            ..open(list(array(Type::U8, length(place))))
        };
        structure((0..16).map(of).collect())
    };
    mirror(&lists((1 << 20) - 16 * 2 - 1));
    assert_eq!(say(&lists((1 << 20) - 16 * 2)), ShapeError::TooLarge);
    let names = |count: usize| {
        (0..count).map(|place| Field { name: place.to_string().into(), ..open(Type::U8) })
    };
    mirror(&structure(names(64).collect()));
    assert!(matches!(say(&structure(names(65).collect())), ShapeError::Fields { count: 65, .. }));
    let hidden = field("a", Policy::Hidden, Type::U8);
    mirror(&structure(vec![field("a", Policy::Everyone, Type::U8), hidden]));
    let twice = structure(vec![open(Type::U8), open(Type::U16)]);
    assert_eq!(say(&twice), ShapeError::Twice { field: "it".to_owned() });
    for key in [Type::Bool, Type::F32, Type::Bytes, Type::Unit, list(Type::U8)] {
        assert!(matches!(say(&around(map(key.clone(), Type::U8))), ShapeError::Key { .. }));
        assert!(matches!(say(&around(Type::Set(Box::new(key)))), ShapeError::Key { .. }));
    }
    let steps =
        |of, step| Type::Quantized(Box::new(Quantized { of, step, range: None, angle: false }));
    assert!(matches!(say(&around(steps(Type::F32, 0.0))), ShapeError::Steps { .. }));
    assert!(matches!(say(&around(steps(Type::U8, 1.0))), ShapeError::Steps { .. }));
    let one_of = |variants| Type::Enum(Enum { name: "Phase".into(), variants });
    assert_eq!(say(&around(one_of(vec![]))), ShapeError::Empty { name: "Phase".to_owned() });
    let variant = |of, policy| {
        one_of(vec![Struct { name: "A".into(), fields: vec![field("0", policy, of)] }])
    };
    assert!(matches!(say(&around(variant(Type::U8, Policy::Owner))), ShapeError::Policy { .. }));
    let set = Type::Set(Box::new(Type::U8));
    assert!(matches!(say(&around(variant(set, Policy::Everyone))), ShapeError::Place { .. }));
    assert!(!say(&twice).to_string().is_empty());
}

/// No type has values that take no bytes, so none can be announced by a schema, and no body of a
/// few bytes announces many values.
#[test]
fn values_that_take_no_bytes_are_no_part_of_a_schema() {
    let array = |of: Type, length| Type::Array(Box::new(of), length);
    let nothing = || array(Type::Unit, 0);
    let most = u32::MAX as usize;
    let exchange = |of: &Type| {
        let message = MessageSchema { name: "say".into(), of: of.clone(), reply: of.clone() };
        RoomSchema {
            state: around(Type::U8),
            options: of.clone(),
            messages: vec![message],
            events: vec![EventSchema { name: "said".into(), of: of.clone() }],
        }
    };
    for of in [
        nothing(),
        array(nothing(), most),
        list(nothing()),
        map(Type::U8, array(nothing(), most)),
        array(array(array(nothing(), most), most), most),
        array(structure(vec![]), most),
        array(structure(vec![open(nothing())]), most),
        array(Type::Unit, most),
    ] {
        assert!(DynamicMirror::new(&around(of.clone()), ANN).is_err(), "{of:?}");
        let schema = exchange(&of);
        assert!(JsonExchange::new(&schema).is_err(), "{of:?}");
        assert!(Transcoder::new(&schema, &schema).is_err(), "{of:?}");
    }
    // An empty struct and a unit take a byte.
    for of in [structure(vec![]), Type::Unit] {
        let missing = [255, 255, 255, 255, 15, 0, 0, 0];
        assert!(mirror(&around(list(of.clone()))).snapshot(&missing).is_err());
        let schema = exchange(&list(of.clone()));
        assert!(JsonExchange::new(&schema).unwrap().reply(0, &missing).is_err());
        let transcoder = Transcoder::new(&schema, &schema).unwrap();
        assert!(transcoder.message(0, &missing, &mut Vec::new()).is_err());
        assert!(transcoder.state(ANN).snapshot(&missing, &mut Vec::new()).is_err());
    }
    // The same without a schema: 2^32 - 1 times nothing.
    let mut copy = JsonMirror::of(TreeFormat::Msgpack);
    for announced in [0xdd, 0xdf] {
        let body = [0x91, 0x92, 0x90, 0x81, 0xa1, b'a', announced, 255, 255, 255, 255, 0xc0];
        assert!(copy.snapshot(&body).is_err());
    }
}

fn open(of: Type) -> Field {
    field("it", Policy::Everyone, of)
}

/// With every kind of type nested as deep as possible, reading, comparing and dropping don't
/// overflow the stack of a small thread.
#[test]
fn deep_values_take_little_of_the_stack() {
    let run = || {
        for one in [
            |of| Type::Option(Box::new(of)),
            list,
            around,
            |of| Type::Array(Box::new(of), 1),
            |of| map(Type::U8, of),
        ] {
            let of = (0..DEEPEST).fold(Type::U8, |of, _| one(of));
            let mut copy = mirror(&around(of));
            let bytes: &[u8] = match one(Type::U8) {
                Type::Map(..) => &[1, 0].repeat(DEEPEST),
                Type::Option(_) | Type::List(_) => &[1; DEEPEST],
                _ => &[],
            };
            let close = if matches!(one(Type::U8), Type::Map(..)) { DEEPEST } else { 0 };
            let body = |leaf: u8| [bytes, &[leaf], &vec![0; close]].concat();
            copy.snapshot(&body(5)).unwrap();
            let mut reported = 0;
            copy.snapshot_with(&body(6), |_| reported += 1).unwrap();
            assert_eq!(reported, 1);
            let _ = (copy.digest(), copy.state().to_string());
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

/// A few bytes that announce much are rejected before anything is allocated for them.
#[test]
fn announced_but_missing_values_allocate_nothing() {
    for body in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0x03]] {
        mirror(&around(list(Type::U8))).snapshot(body).unwrap_err();
        mirror(&around(map(Type::U8, Type::U8))).snapshot(body).unwrap_err();
    }
    // Patches that insert many elements only to remove them.
    let say = refusal(
        list(Type::U8),
        &[1, 7],
        &[2, 81, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    assert_eq!(say, "at byte 2: 20 elements were inserted into a list that has 1 at the end");
}

#[test]
fn list_changes_are_reported_in_an_order_that_can_be_replayed() {
    let mut copy = copy(list(Type::U8), &[4, 1, 2, 3, 4]);
    let mut reported = Vec::new();
    // The first is removed, the last moves to the front, one is inserted after it, and the old
    // third changes.
    copy.patch_with(&[1, 2, 4, 0, 6, 2, 0, 5, 1, 0, 2, 9, 2, 8, 0], |change| reported.push(change))
        .unwrap();
    assert_eq!(*copy.state(), json!({"it": [4, 9, 2, 8]}));
    let at = |index| Path(vec![PathStep::Name("it".into()), PathStep::Index(index)]);
    let change_at = |index, kind, old: Value, new: Value| Change {
        path: at(index),
        kind,
        old: Some(old).filter(|old| !old.is_null()),
        new: Some(new).filter(|new| !new.is_null()),
    };
    assert_eq!(
        reported,
        [
            change_at(0, ChangeKind::Left, json!(1), Value::Null),
            change_at(0, ChangeKind::Moved { from: 2 }, Value::Null, Value::Null),
            change_at(1, ChangeKind::Entered, Value::Null, json!(9)),
            change_at(3, ChangeKind::Changed, json!(3), json!(8)),
        ]
    );
}

#[derive(Data, PartialEq, Debug, Clone, Default)]
struct Said {
    names: std::collections::BTreeMap<i32, Option<String>>,
    what: Vec<What>,
    unit: Nothing,
    pair: Pair,
    three: [u64; 3],
    exact: f64,
}

#[derive(Data, PartialEq, Debug, Clone, Default)]
struct Nothing;

#[derive(Data, PartialEq, Debug, Clone, Default)]
struct Pair(i8, f32);

#[derive(Data, PartialEq, Debug, Clone)]
enum What {
    Is,
    Was(bool),
    Will(u8, PlayerId),
    Be { at: i64 },
}

#[test]
fn messages_convert_from_json_to_packed_and_back() {
    let said = Said {
        names: [(10, None), (-9, Some("a".to_owned())), (9, None)].into(),
        what: vec![
            What::Is,
            What::Was(true),
            What::Will(3, PlayerId(u64::MAX)),
            What::Be { at: -1 },
        ],
        three: [0, 1 << 60, 5],
        pair: Pair(-1, 0.1),
        exact: f64::NEG_INFINITY,
        ..Said::default()
    };
    let mut schema = RoomSchema {
        state: around(Type::U8),
        options: Said::schema(),
        messages: vec![MessageSchema {
            name: "say".into(),
            of: Said::schema(),
            reply: Said::schema(),
        }],
        events: vec![EventSchema { name: "said".into(), of: Said::schema() }],
    };
    let exchange = JsonExchange::new(&schema).unwrap();
    let (mut packed, mut text) = (Vec::new(), Vec::new());
    said.write(Format::Packed, &mut packed);
    said.write(Format::Json, &mut text);
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(exchange.message("say", &value), Ok((0, packed.clone())));
    assert_eq!(exchange.options(&value), Ok(packed.clone()));
    assert_eq!(exchange.reply(0, &packed), Ok(value.clone()));
    assert_eq!(exchange.event(0, &packed), Ok(("said", value.clone())));
    assert_eq!(exchange.check_message("say", &packed), Ok(0));
    assert_eq!(exchange.check_event(0, &packed), Ok("said"));
    // Truncated or damaged bytes are read or rejected, exactly as by the typed reader.
    for end in 0..packed.len() {
        exchange.reply(0, &packed[..end]).unwrap_err();
        for byte in [0, 1, 0x7f, 0xff] {
            let mut bytes = packed.clone();
            bytes[end] = byte;
            assert_eq!(
                exchange.reply(0, &bytes).is_ok(),
                Said::read(Format::Packed, &bytes).is_ok()
            );
            assert_eq!(exchange.check_reply(0, &bytes), exchange.reply(0, &bytes).map(drop));
        }
    }
    for (name, bad) in [
        ("what", json!("Is")),
        ("what", json!(["Gone"])),
        ("what", json!(["Was"])),
        ("what", json!([{"Is": null}])),
        ("what", json!([{"Was": true, "Is": 1}])),
        ("three", json!([1, 2])),
        ("pair", json!([1])),
        ("names", json!({"x": null})),
        ("unit", json!(0)),
        ("exact", json!("much")),
    ] {
        let mut value = value.clone();
        value[name] = bad;
        let error = exchange.message("say", &value).unwrap_err().to_string();
        assert!(error.contains(&format!("member {name:?}")), "{error}");
    }
    assert!(
        exchange.message("shout", &value).unwrap_err().to_string().contains("no message \"shout\"")
    );
    assert!(exchange.reply(1, &packed).is_err() && exchange.event(1, &packed).is_err());
    assert!(exchange.check_reply(1, &packed).is_err() && exchange.check_event(1, &packed).is_err());
    let error = exchange.check_message("shout", &packed).unwrap_err();
    assert_eq!(error.to_string(), "the room has no message \"shout\"");
    schema.options = Type::Set(Box::new(Type::U8));
    assert!(matches!(JsonExchange::new(&schema), Err(ShapeError::Place { .. })));
}
