//! A copy reports everything that changed: applying the reports to an older copy gives the newer
//! one.

use crate::common;

use common::Dice;
use common::field::Field;
use common::kinds::Kinds;
use common::odd::Odd;
use common::swarm::{Fair, Swarm};
use common::world::{Desks, Root, World};
use playfield_state::{
    Change, ChangeKind, DynamicMirror, Format, Mirror, PathStep, PlayerId, Tracker, Tracking,
};
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::Value;

const _: () = assert!(Mirror::<Fair>::REPORTS && !Mirror::<Desks>::REPORTS);

const VIEWER: PlayerId = PlayerId(1);

/// Applies a change to a tree, and checks that the old value is there.
fn repeat(tree: &mut Value, change: &Change) {
    let Change { path, kind, old, new } = change;
    let (last, above) = path.steps().split_last().expect("a change is inside the root");
    let at = above.iter().fold(tree, |at, step| match step {
        PathStep::Name(name) => &mut at[&**name],
        PathStep::Index(index) => &mut at[index],
    });
    match (at, last, kind) {
        (Value::Object(members), PathStep::Name(name), _) => {
            let before = match new {
                Some(new) => members.insert(name.to_string(), new.clone()),
                None => members.remove(&**name),
            };
            assert_eq!(before, *old, "{path}");
            assert_eq!(old.is_none(), *kind == ChangeKind::Entered, "{path}");
            assert_eq!(new.is_none(), *kind == ChangeKind::Left, "{path}");
        }
        (Value::Array(elements), PathStep::Index(index), ChangeKind::Entered) => {
            elements.insert(*index, new.clone().unwrap());
        }
        (Value::Array(elements), PathStep::Index(index), ChangeKind::Left) => {
            assert_eq!(Some(elements.remove(*index)), *old, "{path}");
        }
        (Value::Array(elements), PathStep::Index(index), ChangeKind::Changed) => {
            let before = std::mem::replace(&mut elements[*index], new.clone().unwrap());
            assert_eq!(Some(before), *old, "{path}");
        }
        (Value::Array(elements), PathStep::Index(index), ChangeKind::Moved { from }) => {
            let element = elements.remove(*from);
            elements.insert(*index, element);
        }
        (at, ..) => panic!("{change:?} in {at}"),
    }
    if *kind == ChangeKind::Changed {
        assert_ne!(old, new, "{path}");
    }
}

fn changes_make_the_newer_copy<T: Root>(start: u64, seed: u64) {
    let mut dice = Dice::new(seed);
    let mut world = T::changed(start);
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    let mut packed = DynamicMirror::new(&T::schema(), VIEWER).unwrap();
    let mut typed = Mirror::<T>::new();
    let mut at = 0;
    for _ in 0..30 {
        (0..1 + dice.pick(8)).for_each(|_| world.change(&mut dice));
        tracker.sync(&mut world);
        if dice.once_in(3) {
            continue; // a slow reader
        }
        let mut tree = packed.state().clone();
        let (mut reported, mut by_typed, mut body) = (Vec::new(), Vec::new(), Vec::new());
        let is_first = at == 0;
        if is_first || dice.once_in(8) {
            tracker.snapshot(VIEWER, Format::Packed, &mut body);
            packed.snapshot_with(&body, |change| reported.push(change)).unwrap();
            typed.snapshot_with(&body, |change| by_typed.push(change)).unwrap();
        } else if tracker.patch(VIEWER, at, Format::Packed, &mut body) {
            packed.patch_with(&body, |change| reported.push(change)).unwrap();
            typed.patch_with(&body, |change| by_typed.push(change)).unwrap();
        }
        if Mirror::<T>::REPORTS {
            assert_eq!(by_typed, reported, "a typed copy reports the same");
        }
        at = tracker.version();
        if is_first {
            assert!(reported.is_empty(), "the first copy reports nothing");
            continue;
        }
        reported.iter().for_each(|change| repeat(&mut tree, change));
        assert_eq!(tree, *packed.state());
    }
}

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(15);
    Config { cases, failure_persistence: None, ..Config::default() }
}

macro_rules! changes {
    ($($name:ident, $state:ty;)*) => {
        proptest! {
            #![proptest_config(config())]

            $(
                #[test]
                fn $name(start in 0..80_u64, seed in any::<u64>()) {
                    changes_make_the_newer_copy::<$state>(start, seed);
                }
            )*
        }
    };
}

changes! {
    world, World;
    desks, Desks;
    swarm, Swarm;
    fair, Fair;
    kinds, Kinds;
    field, Field;
    odd, Odd;
}
