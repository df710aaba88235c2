//! Reading by a schema: what is refused, and what goes without saying. That all else is read right
//! is law one's to see to.

use playfield_state::{
    Change, ChangeKind, Data, DynamicMirror, Format, JsonExchange, List, Map, Path, PathStep,
    PlayerId, Set, ShapeError, State, Tracker, Tracking, view,
};
use playfield_wire::schema::{
    Enum, EventSchema, Field, MessageSchema, Policy, Quantized, RoomSchema, Struct, Type,
};
use serde_json::{Value, json};

const ANN: PlayerId = PlayerId(1);

/// A root struct and a leaf leave room for so many types between them.
const DEEPEST: usize = playfield_wire::schema::TYPE_DEPTH_MAX - 2;

fn field(name: &'static str, policy: Policy, of: Type) -> Field {
    Field { name: name.into(), policy, default_digest: None, of }
}

fn structure(fields: Vec<Field>) -> Type {
    Type::Struct(Struct { name: "Thing".into(), fields })
}

/// A state of one open field.
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

/// A copy of a state of one open field, after a snapshot.
fn copy(of: Type, snapshot: &[u8]) -> DynamicMirror {
    let mut mirror = mirror(&around(of));
    mirror.snapshot(snapshot).unwrap();
    mirror
}

/// What a patch of that field is refused with.
fn refusal(of: Type, snapshot: &[u8], patch: &[u8]) -> String {
    let mut mirror = copy(of, snapshot);
    mirror.patch(&[&[1], patch].concat()).unwrap_err().to_string()
}

#[test]
fn what_does_not_fit_a_copy_is_refused() {
    let numbers = || map(Type::U32, Type::U8);
    let cases: [(Type, &[u8], &[u8], &str); 20] = [
        (numbers(), &[0], &[32], "at byte 1: the flags of a map's patch are below 32, 32 came"),
        (
            numbers(),
            &[0],
            &[4, 3, 1, 0],
            "at byte 3: a change came for slot 2, which is empty here",
        ),
        (
            numbers(),
            &[0],
            &[16, 1, 1, 0],
            "at byte 3: a change came for slot 0, which is empty here",
        ),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[2, 2, 5, 8, 0],
            "at byte 1: one key stands in two slots of a map",
        ),
        (numbers(), &[0], &[8, 9], "at byte 2: a map's patch has 1 to 8 groups, 9 came"),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 4, 0, 1, 0, 1, 0, 0],
            "at byte 3: a change came for slot 1, which is empty here",
        ),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 2, 0, 1, 66, 0],
            "at byte 6: a column's width is at most 65, 66 came",
        ),
        (
            numbers(),
            &[1, 5, 9, 0],
            &[8, 1, 2, 0, 1, 1, 255, 1],
            "at byte 6: a value 1 above the least of its column is out of range",
        ),
        (list(Type::U8), &[1, 7], &[3], "at byte 1: a list's patch begins with 0, 1 or 2, 3 came"),
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
            "at byte 6: an element that came to a list was not sent",
        ),
        (
            list(Type::U8),
            &[1, 7],
            &[2, 8, 0, 0],
            "at byte 2: 2 elements can't go from 0 of a list of 1",
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
            "at byte 1: a change came for an option that holds nothing here",
        ),
        (
            Type::Option(Box::new(Type::U8)),
            &[0],
            &[3],
            "at byte 1: an option's patch begins with 0, 1 or 2, 3 came",
        ),
        (
            Type::Array(Box::new(Type::U8), 3),
            &[1, 2, 3],
            &[8, 0],
            "at byte 1: element 3 is past the end of an array of 3",
        ),
        (around(Type::U8), &[7], &[2], "at byte 1: the mask 0x2 marks fields that can't come here"),
        (Type::U16, &[7], &[0xff, 0xff, 7], "at byte 1: 131071 is past the range of u16"),
        (Type::U8, &[7], &[7, 1, 1, 9], "at byte 4: the end was expected, 1 bytes remain"),
        (Type::Text, &[0], &[2, b'a'], "at byte 1: a text of 2 bytes was announced, 1 remain"),
    ];
    for (of, snapshot, patch, expected) in cases {
        assert_eq!(refusal(of.clone(), snapshot, patch), expected, "{of:?} {patch:02x?}");
    }
}

#[test]
fn what_is_its_owners_alone_comes_where_it_may() {
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
        "at byte 3: a field that is its owner's alone came in the part that all share"
    );
    let own = |patch: &[u8]| {
        let mut mirror = copy(seats.clone(), &whole);
        mirror.patch(&[&[0, 1], patch].concat()).map(|()| mirror.state().clone())
    };
    // A list that is not here yet comes whole, and a part that is left out is an error.
    let all = json!({"it": {"1": {"open": 7, "own": {"it": [9]}}}});
    assert_eq!(own(&[4, 1, 2, 1, 0, 1, 9, 0]), Ok(all));
    let error = own(&[4, 1, 2, 0, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 6: a part of a value that is new here was not sent");
    let error = own(&[4, 1, 4, 2, 9, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 5: a change came for a value that is not in view here");
    let error = own(&[4, 1, 4, 9, 0]).unwrap_err().to_string();
    assert_eq!(error, "at byte 5: what comes into view begins with 0 to 3, 9 came");
    let error = own(&[8, 1, 2, 0, 1, 1]).unwrap_err().to_string();
    assert_eq!(error, "at byte 2: what an owner alone sees came in columns");

    let hands = structure(vec![field("hands", Policy::Owner, map(Type::Player, Type::U8))]);
    let mut copy = mirror(&hands);
    copy.snapshot(&[0]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {}}));
    let say = |patch: &[u8]| {
        let mut copy = copy.clone();
        copy.patch(&[&[0, 1], patch].concat()).unwrap_err().to_string()
    };
    assert_eq!(say(&[3, 1]), "at byte 2: an entry of one's own begins with 0, 1 or 2, 3 came");
    assert_eq!(
        say(&[2, 1, 1]),
        "at byte 2: a change came for an entry of one's own that is not here"
    );
    copy.patch(&[0, 1, 1, 1, 9]).unwrap();
    copy.patch(&[0, 1, 2, 1, 8]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {"1": 8}}));
    copy.patch(&[0, 1, 0, 1]).unwrap();
    assert_eq!(*copy.state(), json!({"hands": {}}));
}

#[test]
fn a_copy_that_refused_a_patch_is_mended_by_a_snapshot_alone() {
    let mut copy = mirror(&around(list(Type::U8)));
    assert_eq!((copy.state(), copy.digest()), (&Value::Null, 0));
    let error = copy.patch(&[1]).unwrap_err().to_string();
    assert_eq!(error, "a patch came before the first snapshot");
    copy.snapshot(&[1, 7]).unwrap();
    // A snapshot that is refused leaves the copy as it was.
    copy.snapshot(&[2, 7]).unwrap_err();
    copy.patch(&[1, 1, 1, 8, 0]).unwrap();
    assert_eq!(*copy.state(), json!({"it": [8]}));
    copy.patch(&[1, 1, 9]).unwrap_err();
    let error = copy.patch(&[1, 1, 1, 8, 0]).unwrap_err().to_string();
    assert_eq!(error, "a patch before it could not be applied: a snapshot is needed");
    let mut told = 0;
    copy.snapshot_with(&[1, 1], |_| told += 1).unwrap();
    copy.patch_with(&[1, 1, 1, 2, 0], |_| told += 1).unwrap();
    assert_eq!((copy.state(), told), (&json!({"it": [2]}), 1));
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

/// What has nothing in it is there for its owner, though no byte speaks of it.
#[test]
fn what_is_empty_goes_without_saying() {
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
fn a_schema_that_no_state_has_is_refused() {
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

fn open(of: Type) -> Field {
    field("it", Policy::Everyone, of)
}

/// As deep as can be, each way down: neither reading, nor comparing, nor dropping overflows the
/// stack of a small thread.
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
            let mut told = 0;
            copy.snapshot_with(&body(6), |_| told += 1).unwrap();
            assert_eq!(told, 1);
            let _ = (copy.digest(), copy.state().to_string());
        }
    };
    std::thread::Builder::new().stack_size(512 << 10).spawn(run).unwrap().join().unwrap();
}

/// A few bytes that announce much are refused before anything is made of them.
#[test]
fn nothing_is_made_of_what_did_not_come() {
    for body in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0x03]] {
        mirror(&around(list(Type::U8))).snapshot(body).unwrap_err();
        mirror(&around(map(Type::U8, Type::U8))).snapshot(body).unwrap_err();
    }
    // Patches that bring many elements only to take them away.
    let say = refusal(
        list(Type::U8),
        &[1, 7],
        &[2, 81, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
    assert_eq!(say, "at byte 2: 20 elements came to a list, of which 1 are left");
}

#[test]
fn changes_of_a_list_are_told_in_an_order_in_which_they_can_be_repeated() {
    let mut copy = copy(list(Type::U8), &[4, 1, 2, 3, 4]);
    let mut told = Vec::new();
    // The first goes, the last moves to the front, one comes behind it, and what was the third
    // changes.
    copy.patch_with(&[1, 2, 4, 0, 6, 2, 0, 5, 1, 0, 2, 9, 2, 8, 0], |change| told.push(change))
        .unwrap();
    assert_eq!(*copy.state(), json!({"it": [4, 9, 2, 8]}));
    let at = |index| Path(vec![PathStep::Name("it".into()), PathStep::Index(index)]);
    let told_of = |index, kind, old: Value, new: Value| Change {
        path: at(index),
        kind,
        old: Some(old).filter(|old| !old.is_null()),
        new: Some(new).filter(|new| !new.is_null()),
    };
    assert_eq!(
        told,
        [
            told_of(0, ChangeKind::Left, json!(1), Value::Null),
            told_of(0, ChangeKind::Moved { from: 2 }, Value::Null, Value::Null),
            told_of(1, ChangeKind::Entered, Value::Null, json!(9)),
            told_of(3, ChangeKind::Changed, json!(3), json!(8)),
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
fn what_is_said_goes_from_json_to_packed_and_back() {
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
    // Whatever is cut off or damaged is read or refused, as by the type itself.
    for end in 0..packed.len() {
        exchange.reply(0, &packed[..end]).unwrap_err();
        for byte in [0, 1, 0x7f, 0xff] {
            let mut bytes = packed.clone();
            bytes[end] = byte;
            assert_eq!(
                exchange.reply(0, &bytes).is_ok(),
                Said::read(Format::Packed, &bytes).is_ok()
            );
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
    schema.options = Type::Set(Box::new(Type::U8));
    assert!(matches!(JsonExchange::new(&schema), Err(ShapeError::Place { .. })));
}
