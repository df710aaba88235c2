//! For any bytes, a copy reads them or returns an error; it never panics.

use crate::common;

use common::Dice;
use common::field::Field;
use common::kinds::Kinds;
use common::odd::Odd;
use common::swarm::Swarm;
use common::world::{Root, World};
use playfield_state::{
    DecodeError, DynamicMirror, Format, JsonMirror, Map, Mirror, PlayerId, State, StateProfile,
    Tracker, Tracking, view,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

const VIEWER: PlayerId = PlayerId(1);

/// Errors that a typed copy can't report: it is made of plain values, and has defaults where
/// something is missing.
const UNKNOWABLE: [&str; 3] = [
    "a value was changed, but it is not in view in this copy",
    "a part of a new value was not sent",
    "this body implies too many values that it does not send",
];

/// Bodies that were sent to one player: a snapshot, and a patch that follows it.
struct Bodies {
    snapshot: Vec<u8>,
    patch: Vec<u8>,
}

impl Bodies {
    fn of<T: Root>(seed: u64, format: Format) -> Self {
        let mut world = T::changed(60 + seed % 60);
        let mut tracker = Tracker::new(&mut world, Tracking::On);
        let mut snapshot = Vec::new();
        tracker.snapshot(VIEWER, format, &mut snapshot);
        let mut dice = Dice::new(seed);
        for _ in 0..3 {
            (0..5).for_each(|_| world.change(&mut dice));
            tracker.sync(&mut world);
        }
        let mut patch = Vec::new();
        tracker.patch(VIEWER, 1, format, &mut patch);
        Self { snapshot, patch }
    }
}

/// Reads both bodies until an error, and looks at the copy.
fn read<T: Root>(format: Format, snapshot: &[u8], patch: &[u8]) {
    match format.tree() {
        None => {
            let mut mirror = Mirror::<T>::new();
            let mut dynamic = DynamicMirror::new(&T::schema(), VIEWER).unwrap();
            let read = (mirror.snapshot(snapshot), dynamic.snapshot(snapshot));
            let mut profile = StateProfile::new(&T::schema()).unwrap();
            assert_eq!(profile.snapshot(VIEWER, snapshot), read.1);
            assert_eq!(profile.snapshots().bytes(), counted(&read.1, snapshot));
            assert_agree::<T>(&read, snapshot, &[]);
            if read.0.is_ok() {
                let typed = mirror.patch(patch);
                // A copy that rejected a patch is useless, but looking at it must not panic.
                view(mirror.state(), Some(VIEWER));
                if read.1.is_ok() {
                    let mut reported = 0;
                    let read = (typed, dynamic.patch_with(patch, |_| reported += 1));
                    assert_eq!(profile.patch(VIEWER, patch), read.1);
                    assert_eq!(profile.patches().bytes(), counted(&read.1, patch));
                    assert_agree::<T>(&read, snapshot, patch);
                    drop(dynamic.state().to_string());
                    let digests = (dynamic.digest(), mirror.digest());
                    if read.1.is_ok() && T::IS_BLANK_EMPTY {
                        assert_eq!(digests.0, digests.1, "{snapshot:02x?}\n{patch:02x?}");
                    }
                }
            }
        }
        Some(format) => {
            let mut mirror = JsonMirror::of(format);
            if mirror.snapshot(snapshot).is_ok() && mirror.patch(patch).is_ok() {
                drop(mirror.state().to_string());
            }
        }
    }
}

/// The bytes that a profile counts of a body: all if it was read, none if it was refused.
fn counted(read: &Result<(), DecodeError>, body: &[u8]) -> u64 {
    if read.is_ok() { body.len() as u64 } else { 0 }
}

/// The typed copy and the one made from the schema accept the same bodies, and reject the others
/// for the same reason at the same byte, except for errors that a typed one can't detect.
fn assert_agree<T: Root>(
    read: &(Result<(), DecodeError>, Result<(), DecodeError>),
    snapshot: &[u8],
    patch: &[u8],
) {
    let (typed, by_schema) = read;
    let is_unknowable =
        |error: &DecodeError| UNKNOWABLE.iter().any(|what| error.to_string().ends_with(what));
    if T::IS_BLANK_EMPTY && !by_schema.as_ref().is_err_and(is_unknowable) {
        assert_eq!(typed, by_schema, "{snapshot:02x?}\n{patch:02x?}");
    }
}

/// One change to the bytes.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Set(usize, u8),
    Insert(usize, u8),
    Remove(usize),
    Copy(usize, usize, u8),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let at = any::<usize>;
    let byte = prop_oneof![any::<u8>(), Just(0), Just(1), Just(0xff), Just(0x7f)];
    let one = prop_oneof![
        1 => at().prop_map(Damage::Cut),
        4 => (at(), any::<u8>()).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        4 => (at(), byte.clone()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        2 => (at(), byte).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        2 => at().prop_map(Damage::Remove),
        1 => (at(), at(), any::<u8>()).prop_map(|(from, to, count)| Damage::Copy(from, to, count)),
    ];
    proptest::collection::vec(one, 1..6)
}

fn damaged(body: &[u8], damage: &[Damage]) -> Vec<u8> {
    let mut body = body.to_vec();
    for one in damage {
        let length = body.len();
        if length == 0 {
            break;
        }
        match *one {
            Damage::Cut(at) => body.truncate(at % length),
            Damage::Flip(at, bits) => body[at % length] ^= bits,
            Damage::Set(at, byte) => body[at % length] = byte,
            Damage::Insert(at, byte) => body.insert(at % length, byte),
            Damage::Remove(at) => drop(body.remove(at % length)),
            Damage::Copy(from, to, count) => {
                let from = from % length;
                let piece = body[from..(from + usize::from(count)).min(length)].to_vec();
                body.splice(to % length..to % length, piece);
            }
        }
    }
    body
}

fn formats() -> impl Strategy<Value = Format> {
    proptest::sample::select(&Format::ALL)
}

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(16);
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// The tests for one type of state: damaged bodies, and random bytes.
macro_rules! readers {
    ($name:ident, $state:ty) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn damaged_bodies_are_read_or_refused(
                    seed in 0..64_u64,
                    format in formats(),
                    many in proptest::collection::vec((any::<bool>(), damage()), 16),
                ) {
                    let bodies = Bodies::of::<$state>(seed, format);
                    for (first, damage) in many {
                        if first {
                            read::<$state>(format, &damaged(&bodies.snapshot, &damage), &bodies.patch);
                        } else {
                            read::<$state>(format, &bodies.snapshot, &damaged(&bodies.patch, &damage));
                        }
                    }
                }

                #[test]
                fn one_damaged_byte_is_refused_by_both_readers_or_by_none(
                    seed in 0..64_u64, many in proptest::collection::vec((any::<usize>(), any::<u8>(), 0..8_u8), 8)
                ) {
                    let Bodies { snapshot, patch } = Bodies::of::<$state>(seed, Format::Packed);
                    for (at, byte, bit) in many {
                        read::<$state>(Format::Packed, &snapshot, &damaged(&patch, &[Damage::Flip(at, 1_u8 << bit)]));
                        read::<$state>(Format::Packed, &snapshot, &damaged(&patch, &[Damage::Set(at, byte % 4)]));
                    }
                }

                #[test]
                fn random_bodies_are_read_or_refused(
                    seed in 0..64_u64, format in formats(), body in proptest::collection::vec(any::<u8>(), 0..200)
                ) {
                    let bodies = Bodies::of::<$state>(seed, format);
                    read::<$state>(format, &body, &body);
                    read::<$state>(format, &bodies.snapshot, &body);
                }
            }

            #[test]
            fn prefixes_of_a_body_are_read_or_rejected() {
                for seed in 0..4 {
                    for format in Format::ALL {
                        let Bodies { snapshot, patch } = Bodies::of::<$state>(seed, format);
                        for end in prefixes(snapshot.len(), seed) {
                            read::<$state>(format, &snapshot[..end], &[]);
                        }
                        for end in prefixes(patch.len(), seed) {
                            read::<$state>(format, &snapshot, &patch[..end]);
                        }
                    }
                }
            }
        }
    };
}

/// The lengths at which a body is cut: all of a short one and, by default, some hundred of a long
/// one, others for each seed. `PLAYFIELD_LAW_CASES` makes it all of them.
fn prefixes(length: usize, seed: u64) -> impl Iterator<Item = usize> {
    const PREFIXES: usize = 300;
    let is_long_run = std::env::var_os("PLAYFIELD_LAW_CASES").is_some();
    let step = if is_long_run { 1 } else { length / PREFIXES + 1 };
    (seed as usize % step..length).step_by(step)
}

readers!(world, World);
readers!(swarm, Swarm);
readers!(kinds, Kinds);
readers!(field, Field);
readers!(odd, Odd);

proptest! {
    #![proptest_config(config())]

    #[test]
    fn random_operations_are_applied_or_refused(ops in proptest::collection::vec(operation(), 0..8)) {
        let bodies = Bodies::of::<World>(7, Format::Json);
        read::<World>(Format::Json, &bodies.snapshot, format!("[{}]", ops.join(",")).as_bytes());
    }
}

/// A random operation, made from the parts of real ones.
fn operation() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        Just("\"players\""),
        Just("\"1\""),
        Just("\"items\""),
        Just("\"slots\""),
        Just("\"log\""),
        Just("\"nested\""),
        Just("0"),
        Just("1"),
        Just("9"),
        Just("-1"),
        Just("0.5"),
        Just("18446744073709551615"),
        Just("null"),
        Just("[]"),
    ];
    let path =
        proptest::collection::vec(step, 0..5).prop_map(|steps| format!("[{}]", steps.join(",")));
    let value = prop_oneof![
        Just(""),
        Just(",1"),
        Just(",{}"),
        Just(",[[]]"),
        Just(",null"),
        Just(",[0]"),
        Just(",[1,0]"),
        Just(",[2,0,1]"),
        Just(",[1,1]"),
    ];
    let word = prop_oneof![
        4 => Just(""),
        3 => Just(",\"insert\""),
        2 => Just(",\"move\""),
        2 => Just(",\"order\""),
        1 => Just(",\"remove\""),
        1 => Just(",1"),
    ];
    (path, value, word).prop_map(|(path, value, word)| format!("[{path}{value}{word}]"))
}

#[test]
fn a_rejected_snapshot_leaves_the_copy_unchanged() {
    let Bodies { snapshot, .. } = Bodies::of::<World>(3, Format::Packed);
    let mut mirror = Mirror::<World>::new();
    mirror.snapshot(&snapshot).unwrap();
    let before = format!("{:?}", mirror.state());
    assert!(mirror.snapshot(&snapshot[..snapshot.len() / 2]).is_err());
    assert_eq!(format!("{:?}", mirror.state()), before);
    let mut longer = snapshot.clone();
    longer.extend([0; 40]);
    assert!(mirror.snapshot(&longer).is_err());
    assert_eq!(format!("{:?}", mirror.state()), before);
}

#[test]
fn a_copy_in_json_can_t_be_nested_without_end() {
    let mut mirror = JsonMirror::new();
    mirror.snapshot(b"[[[],{}]]").unwrap();
    let deepest = |steps: usize| format!("[[[{}],{{}}]]", vec!["\"a\""; steps].join(","));
    for steps in 1..=128 {
        mirror.patch(deepest(steps).as_bytes()).unwrap();
    }
    let error = mirror.patch(deepest(129).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("expected a path of 1 to 128 steps"), "{error}");
}

#[test]
fn a_snapshot_in_json_sets_the_root_first() {
    let mut mirror = JsonMirror::new();
    mirror.snapshot(br#"[[[], {"a": 1}], [["b"], 2]]"#).unwrap();
    let before = mirror.state().clone();
    assert_eq!(before, serde_json::json!({"a": 1, "b": 2}));
    for body in [
        r#"{"a": 1}"#,
        "[]",
        "[[]]",
        "[[[]]]",
        r#"[[["a"], 1]]"#,
        r#"[[[], {}, "insert"]]"#,
        "[[[], 5]]",
        "[[[], null]]",
        "[[[], [1]]]",
        r#"[[[], {}], [[], {}]]"#,
        r#"[[[], {}], [["a", "b"], 1]]"#,
        r#"[[[], {}], 7]"#,
        "[[0, {}]]",
    ] {
        assert!(mirror.snapshot(body.as_bytes()).is_err(), "{body}");
        assert_eq!(*mirror.state(), before, "{body}");
    }
}

#[derive(State, Default)]
struct Hall {
    #[sync(owner)]
    lockers: Map<PlayerId, Locker>,
}

#[derive(State, Default)]
struct Locker {
    size: u8,
    #[sync(owner)]
    note: u8,
}

#[test]
fn open_fields_are_not_marked_in_an_owners_mask() {
    let body = |mask: u8| [0, 1, 1, 1, 7, mask, 5];
    let both = |body: &[u8]| {
        let (mut typed, mut dynamic) =
            (Mirror::<Hall>::new(), DynamicMirror::new(&Hall::schema(), VIEWER).unwrap());
        let read = (typed.snapshot(body), dynamic.snapshot(body));
        assert_eq!(read.0, read.1);
        read.0.map(|()| typed.state().lockers.get(&VIEWER).map(|locker| locker.note))
    };
    assert_eq!(both(&body(0b10)), Ok(Some(5)));
    let error = both(&body(0b11)).unwrap_err().to_string();
    assert_eq!(error, "at byte 5: the mask 0x3 marks fields that are not allowed here");
}
