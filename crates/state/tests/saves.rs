//! Saves are exact, are read by later builds, and are refused if anything is wrong with them.

mod damage;
mod formats;
mod kept;
mod kept_laws;
mod newer;
mod older;

use playfield_state::{
    Bytes, JsonExchange, JsonMirror, Kept, List, Map, PlayerId, Set, State, Tracker, Tracking,
    load, restore, save, saved_as_json, saved_type,
};
use playfield_wire::schema::{MessageSchema, RoomSchema, Struct, Type};
use proptest::prelude::*;
use serde_json::Value;

use crate::common::kinds::Kinds;
use crate::common::odd::Odd;
use crate::common::swarm::Swarm;
use crate::common::world::{Desks, Root, World};

/// Checks that what is loaded is what was saved, and that the loaded state behaves like it.
fn survives<R: Root>(times: u64, synced: bool) -> Result<(), TestCaseError> {
    let mut state = R::changed(times);
    let mut tracker = synced.then(|| Tracker::new(&mut state, Tracking::On));
    let bytes = save(&state);
    let mut loaded: R = load(&bytes).unwrap();
    prop_assert!(loaded.equals(&state), "{loaded:?}\nis not\n{state:?}");
    let shown = saved_as_json(&bytes).unwrap();
    let (of, body) = (saved_type::<R>(), read_by_schema::<R>(&bytes));
    prop_assert!(body == shown || with_lists(&of) != of, "{body}\nis not\n{shown}");
    prop_assert_eq!(save(&loaded), bytes, "equal states have equal saves");
    // A sync of each sends the same from here on.
    let mut one = Tracker::new(&mut loaded, Tracking::On);
    let mut two = tracker.take().unwrap_or_else(|| Tracker::new(&mut state, Tracking::On));
    for seed in 0..8 {
        loaded.change(&mut crate::common::Dice::new(seed));
        state.change(&mut crate::common::Dice::new(seed));
        one.sync(&mut loaded);
        two.sync(&mut state);
        let json = playfield_state::Format::Json;
        let digest = |tracker: &mut Tracker<R>| tracker.digest(PlayerId(1), json);
        prop_assert_eq!(digest(&mut one), digest(&mut two));
    }
    Ok(())
}

/// The body of a save, as `packed` is read by a schema: it is a value that is sent as a whole, in
/// which a set is the list of its keys.
fn read_by_schema<S: State>(bytes: &[u8]) -> Value {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let start = 44 + word(16);
    let root = Type::Struct(Struct { name: "Root".into(), fields: Vec::new() });
    let (name, of) = ("save".into(), with_lists(&saved_type::<S>()));
    let messages = vec![MessageSchema { name, of: Type::Unit, reply: of }];
    let schema = RoomSchema { state: root, options: Type::Unit, messages, events: Vec::new() };
    let exchange = JsonExchange::new(&schema).unwrap();
    exchange.reply(0, &bytes[start..start + word(24)]).unwrap()
}

/// The type with lists in place of sets.
fn with_lists(of: &Type) -> Type {
    let inner = |of: &Type| Box::new(with_lists(of));
    match of {
        Type::Set(of) => Type::List(of.clone()),
        Type::Option(of) => Type::Option(inner(of)),
        Type::List(of) => Type::List(inner(of)),
        Type::Array(of, length) => Type::Array(inner(of), *length),
        Type::Map(key, of) => Type::Map(key.clone(), inner(of)),
        Type::Struct(of) => {
            let mut of = of.clone();
            of.fields.iter_mut().for_each(|field| field.of = with_lists(&field.of));
            Type::Struct(of)
        }
        of => of.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_kind_of_state_survives_exactly(times in 0..60_u64, synced in any::<bool>()) {
        survives::<World>(times, synced)?;
        survives::<Desks>(times, synced)?;
        survives::<Kinds>(times, synced)?;
        survives::<Swarm>(times, synced)?;
        survives::<Odd>(times, synced)?;
    }

    #[test]
    fn floats_survive_by_their_bits(bits in any::<u32>(), wide in any::<u64>()) {
        let number = Numbers {
            coarse: f32::from_bits(bits),
            near: f64::from_bits(wide),
            turn: f32::from_bits(bits),
            plain: f64::from_bits(wide),
        };
        let loaded: Numbers = load(&save(&number)).unwrap();
        prop_assert_eq!(loaded.coarse.to_bits(), bits);
        prop_assert_eq!(loaded.near.to_bits(), wide);
        prop_assert_eq!(loaded.turn.to_bits(), bits);
        prop_assert_eq!(loaded.plain.to_bits(), wide);
    }
}

#[derive(State, Default)]
struct Numbers {
    #[sync(quantize = 0.5)]
    coarse: f32,
    #[sync(quantize = 0.01, range = -1.0..=1.0)]
    near: f64,
    #[sync(angle = 0.01)]
    turn: f32,
    plain: f64,
}

/// Its mask and its policies hide nothing from a save.
#[derive(State, Default, Debug, PartialEq)]
struct Secrets {
    #[sync(hidden)]
    deck: List<u8>,
    #[sync(owner)]
    hands: Map<PlayerId, List<u8>>,
    #[sync(mask = blank)]
    code: String,
    #[sync(view = near, viewer = hands)]
    traps: Map<u8, u8>,
}

fn blank(_: &String) -> String {
    String::new()
}

fn near(trap: &u8, hand: &List<u8>) -> bool {
    hand.len() > usize::from(*trap)
}

#[test]
fn what_players_do_not_see_is_saved() {
    let secrets = Secrets {
        deck: List::from([1, 2, 3]),
        hands: [(PlayerId(7), List::from([4]))].into_iter().collect(),
        code: "swordfish".into(),
        traps: [(1, 2)].into_iter().collect(),
    };
    assert_eq!(load::<Secrets>(&save(&secrets)).unwrap(), secrets);
}

#[test]
fn a_part_of_a_state_can_be_saved() {
    let map: Map<String, List<u32>> =
        [("b".to_owned(), List::from([1, 2])), ("a".to_owned(), List::new())].into_iter().collect();
    assert_eq!(load::<Map<String, List<u32>>>(&save(&map)).unwrap(), map);
    let set: Set<u8> = [3, 1].into_iter().collect();
    assert_eq!(load::<Set<u8>>(&save(&set)).unwrap(), set);
    assert_eq!(load::<Bytes>(&save(&Bytes(vec![1, 2]))).unwrap(), Bytes(vec![1, 2]));
    assert_eq!(load::<Option<u8>>(&save(&None::<u8>)).unwrap(), None);
    assert_eq!(load::<[u16; 2]>(&save(&[5_u16, 500])).unwrap(), [5, 500]);
}

/// Not `Clone`, not `Debug`, no state.
#[derive(Default)]
struct Index {
    calls: Option<Box<dyn FnMut() + Send>>,
}

#[derive(State, Default)]
struct Indexed {
    count: u32,
    #[sync(skip)]
    index: Index,
    #[sync(hidden)]
    seed: u64,
}

/// The same without the skipped field.
#[derive(State, Default)]
struct Plain {
    count: u32,
    #[sync(hidden)]
    seed: u64,
}

#[derive(State, Default)]
struct Skipped {
    #[sync(skip)]
    index: Index,
}

#[test]
fn a_skipped_field_is_no_part_of_the_schema_of_syncs_and_of_saves() {
    let schema = |of: playfield_wire::schema::Type| match of {
        playfield_wire::schema::Type::Struct(of) => of.fields,
        other => panic!("{other:?}"),
    };
    assert_eq!(schema(Indexed::schema()), schema(Plain::schema()));
    let mut state = Indexed { count: 3, seed: 9, ..Indexed::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let before = tracker.version();
    state.index.calls = Some(Box::new(|| ()));
    tracker.sync(&mut state);
    let mut patch = Vec::new();
    let packed = playfield_state::Format::Packed;
    assert!(!tracker.patch(PlayerId(1), before, packed, &mut patch), "nothing changed");
    let loaded: Indexed = load(&save(&state)).unwrap();
    assert!(loaded.index.calls.is_none() && loaded.count == 3 && loaded.seed == 9);
    let plain = Plain { count: 3, seed: 9 };
    let body = |bytes: Vec<u8>, name: &str| bytes[44 + 1 + name.len()..].to_vec();
    assert_eq!(body(save(&plain), "Plain"), {
        // Only the name and the checksum over it differ.
        let mut bytes = body(save(&state), "Indexed");
        let end = bytes.len() - 4;
        bytes[end..].copy_from_slice(&save(&plain)[save(&plain).len() - 4..]);
        bytes
    });
    assert!(load::<Skipped>(&save(&Skipped::default())).unwrap().index.calls.is_none());
}

#[test]
fn a_save_has_the_documented_bytes() {
    #[derive(State, Default)]
    struct Table {
        round: u32,
        #[sync(hidden)]
        deck: List<u8>,
    }
    let bytes = save(&Table { round: 300, deck: List::from([10, 20]) });
    let description = b"\x05Table\x25\x02\x05round\x04\x04deck\x21\x02";
    let body = [0xac, 2, 2, 10, 20];
    assert_eq!(&bytes[..8], b"PFSAVE\n\x01");
    assert_eq!(bytes[16..24], (description.len() as u64).to_le_bytes());
    assert_eq!(bytes[24..32], (body.len() as u64).to_le_bytes());
    assert_eq!(bytes[32..40], [0; 8]);
    assert_eq!(bytes[44..bytes.len() - 4], [&description[..], &body].concat());
    let check = |bytes: &[u8]| crc32fast::hash(bytes).to_le_bytes();
    assert_eq!(bytes[40..44], check(&bytes[..40]));
    assert_eq!(bytes[bytes.len() - 4..], check(&bytes[44..bytes.len() - 4]));
}

#[test]
fn a_writer_can_leave_a_number() {
    let mut bytes = Vec::new();
    playfield_state::save_kept(&7_u8, 1 << 40, &mut Kept::default(), &mut bytes);
    let restored = |bytes: &[u8]| restore::<u8>(bytes).map(|of| (of.state, of.mark));
    assert_eq!(restored(&bytes), Ok((7, 1 << 40)));
    assert_eq!(restored(&save(&7_u8)), Ok((7, 0)));
}

/// A state that everyone sees in full: a save as JSON is what every player's copy is.
#[derive(State, Default)]
struct Open {
    text: String,
    large: u64,
    half: f32,
    bytes: Bytes,
    maybe: Option<i8>,
    nothing: Option<i8>,
    list: List<Option<bool>>,
    array: [u8; 2],
    map: Map<i16, Inner>,
    set: Set<PlayerId>,
    shapes: List<Shape>,
}

#[derive(State, Default)]
struct Inner {
    players: Map<PlayerId, String>,
}

#[derive(State, playfield_state::Data, Clone, Debug, PartialEq)]
enum Shape {
    Empty,
    Circle(f64),
    Segment(i32, i32),
    Box { width: u16, tag: Option<String> },
}

#[test]
fn a_save_is_shown_as_a_copy_is() {
    let mut open = Open {
        text: "é\u{202e}<b>".into(),
        large: u64::MAX,
        half: 0.5,
        bytes: Bytes::from(vec![0, 255]),
        maybe: Some(-7),
        list: [Some(true), None].into_iter().collect(),
        array: [1, 2],
        set: [PlayerId(3)].into_iter().collect(),
        shapes: [
            Shape::Empty,
            Shape::Circle(-0.0),
            Shape::Segment(-1, 2),
            Shape::Box { width: 9, tag: None },
        ]
        .into_iter()
        .collect(),
        ..Open::default()
    };
    open.map.insert(-5, Inner::default());
    open.map.get_mut(&-5).unwrap().players.insert(PlayerId(1), "ann".into());
    let shown = saved_as_json(&save(&open)).unwrap();
    let (mut body, mut mirror) = (Vec::new(), JsonMirror::new());
    let mut tracker = Tracker::new(&mut open, Tracking::On);
    tracker.snapshot(PlayerId(1), playfield_state::Format::Json, &mut body);
    mirror.snapshot(&body).unwrap();
    assert_eq!(&shown, mirror.state());
}
