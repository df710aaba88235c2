//! Bodies are converted between schemas. Reordering fields and back gives identical bytes, and
//! removing fields at once or one by one gives the same result.

use crate::common;

use common::Dice;
use common::field::Field;
use common::kinds::Kinds;
use common::swarm::Swarm;
use common::world::{Desks, Root, World};
use playfield_state::{Format, Mirror, PlayerId, State, Tracker, Tracking, Transcoder};
use playfield_wire::schema::{RoomSchema, Struct, Type};
use proptest::prelude::*;
use proptest::test_runner::Config;

fn schema(state: Type) -> RoomSchema {
    RoomSchema { state, options: Type::Unit, messages: vec![], events: vec![] }
}

/// The type with the fields of each struct, and the variants of each enum, as `change` leaves them.
fn changed(of: &Type, change: &mut dyn FnMut(&mut Struct)) -> Type {
    let mut inner = |of: &Type| Box::new(changed(of, change));
    match of {
        Type::Option(of) => Type::Option(inner(of)),
        Type::List(of) => Type::List(inner(of)),
        Type::Array(of, length) => Type::Array(inner(of), *length),
        Type::Map(key, of) => Type::Map(key.clone(), inner(of)),
        Type::Struct(of) => {
            let mut of = of.clone();
            for field in &mut of.fields {
                field.of = changed(&field.of, change);
            }
            change(&mut of);
            Type::Struct(of)
        }
        Type::Enum(of) => {
            let mut of = of.clone();
            for variant in &mut of.variants {
                for field in &mut variant.fields {
                    field.of = changed(&field.of, change);
                }
                change(variant);
            }
            Type::Enum(of)
        }
        plain => plain.clone(),
    }
}

fn shuffled(of: &Type, dice: &mut Dice) -> Type {
    let shuffled = changed(of, &mut |of| {
        for place in 1..of.fields.len() {
            of.fields.swap(place, dice.pick(place + 1));
        }
    });
    match shuffled {
        Type::Enum(mut of) => {
            of.variants.reverse();
            Type::Enum(of)
        }
        other => other,
    }
}

fn cut(of: &Type, dice: &mut Dice) -> Type {
    changed(of, &mut |of| of.fields.retain(|_| !dice.once_in(4)))
}

/// Returns the bodies sent in a random history to a viewer who reads every other sync: a snapshot
/// and patches.
fn bodies<T: Root>(seed: u64, viewer: PlayerId) -> Vec<Vec<u8>> {
    let mut state = T::changed(60 + seed % 60);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut dice = Dice::new(seed);
    let mut bodies = vec![Vec::new()];
    tracker.snapshot(viewer, Format::Packed, &mut bodies[0]);
    let mut since = 1;
    for round in 0..12 {
        (0..1 + dice.pick(20)).for_each(|_| state.change(&mut dice));
        tracker.sync(&mut state);
        if round % 2 == 0 {
            let mut body = Vec::new();
            if tracker.patch(viewer, since, Format::Packed, &mut body) {
                bodies.push(body);
                since = tracker.version();
            }
        }
    }
    bodies
}

fn transcoded(transcoder: &Transcoder, viewer: PlayerId, bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut transcoder = transcoder.state(viewer);
    let transcode = |(place, body): (usize, &Vec<u8>)| {
        let mut out = Vec::new();
        let result = if place == 0 {
            transcoder.snapshot(body, &mut out)
        } else {
            transcoder.patch(body, &mut out)
        };
        result.unwrap_or_else(|error| panic!("body {place}: {error}"));
        out
    };
    bodies.iter().enumerate().map(transcode).collect()
}

fn between(node: &Type, client: &Type) -> Transcoder {
    Transcoder::new(&schema(node.clone()), &schema(client.clone())).unwrap()
}

fn there_and_back<T: Root>(seed: u64) {
    let whole = <T as State>::schema();
    let dice = &mut Dice::new(seed);
    let other = shuffled(&whole, dice);
    let viewer = PlayerId(1 + seed % 3);
    let bodies = bodies::<T>(seed, viewer);
    assert_eq!(transcoded(&between(&whole, &whole), viewer, &bodies), bodies);
    let there = transcoded(&between(&whole, &other), viewer, &bodies);
    assert_eq!(transcoded(&between(&other, &whole), viewer, &there), bodies);
}

fn bit_by_bit<T: Root>(seed: u64) {
    let whole = <T as State>::schema();
    let dice = &mut Dice::new(seed);
    let less = cut(&shuffled(&whole, dice), dice);
    let least = cut(&shuffled(&less, dice), dice);
    let viewer = PlayerId(1 + seed % 3);
    let bodies = bodies::<T>(seed, viewer);
    let some = transcoded(&between(&whole, &less), viewer, &bodies);
    let at_once = transcoded(&between(&whole, &least), viewer, &bodies);
    assert_eq!(transcoded(&between(&less, &least), viewer, &some), at_once);
}

/// Damaged bytes are rejected, or pass through unchanged.
fn damaged<T: Root>(seed: u64, at: usize, bits: u8) {
    let whole = <T as State>::schema();
    let same = between(&whole, &whole);
    let dice = &mut Dice::new(seed);
    let fewer = between(&whole, &cut(&shuffled(&whole, dice), dice));
    let bodies = bodies::<T>(seed, PlayerId(1));
    let (snapshot, patch) = (&bodies[0], bodies.get(1).unwrap_or(&bodies[0]));
    let read = |snapshot: &[u8], patch: &[u8]| {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let (mut same, mut fewer) = (same.state(PlayerId(1)), fewer.state(PlayerId(1)));
        let is_snapshot = same.snapshot(snapshot, &mut one).is_ok();
        let is_patch = same.patch(patch, &mut two).is_ok();
        // The copy decides what to make of them.
        let mut mirror = Mirror::<T>::new();
        if is_snapshot {
            assert_eq!(one, snapshot);
            if mirror.snapshot(&one).is_ok() && is_patch {
                let _ = mirror.patch(&two);
            }
        }
        if is_patch {
            assert_eq!(two, patch);
        }
        one.clear();
        two.clear();
        let _ = fewer.snapshot(snapshot, &mut one);
        let _ = fewer.patch(patch, &mut two);
    };
    let mut flipped = patch.clone();
    let place = at % patch.len();
    flipped[place] ^= bits;
    read(snapshot, &flipped);
    let mut flipped = snapshot.clone();
    let place = at % snapshot.len();
    flipped[place] ^= bits;
    read(&flipped, patch);
    for end in (0..patch.len()).step_by(1 + patch.len() / 256) {
        read(snapshot, &patch[..end]);
    }
    for end in (0..snapshot.len()).step_by(1 + snapshot.len() / 64) {
        read(&snapshot[..end], patch);
    }
}

macro_rules! laws {
    ($($law:ident: $cases:literal, $($name:ident $of:ty),*;)*) => {$(
        mod $law {
            use super::*;

            proptest! {
                #![proptest_config(Config { cases: $cases, failure_persistence: None, ..Config::default() })]
                $(#[test]
                fn $name(seed in any::<u64>()) {
                    super::$law::<$of>(seed);
                })*
            }
        }
    )*};
}

laws! {
    there_and_back: 40, world World, desks Desks, kinds Kinds, field Field, swarm Swarm;
    bit_by_bit: 40, world World, desks Desks, kinds Kinds, field Field, swarm Swarm;
}

/// `PLAYFIELD_LAW_CASES` sets the number, for a longer run.
fn damage_cases() -> u32 {
    std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(8)
}

proptest! {
    #![proptest_config(Config { cases: damage_cases(), failure_persistence: None, ..Config::default() })]

    #[test]
    fn damage_never_panics(seed in any::<u64>(), at in any::<usize>(), bits in 1..=u8::MAX) {
        damaged::<World>(seed, at, bits);
        damaged::<Desks>(seed, at, bits);
        damaged::<Kinds>(seed, at, bits);
        damaged::<Field>(seed, at, bits);
        damaged::<Swarm>(seed, at, bits);
    }
}
