//! Connections that are cut, at every byte and at random: nothing is missing, and nothing is done
//! twice.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::model::{Step, World};

/// A conversation in which both ends have something on its way at any time.
fn script(world: &mut World) {
    for _ in 0..4 {
        world.step(Step::ToNode(9));
        world.step(Step::ToClient(30));
    }
    for turn in 0..12 {
        world.step(Step::Request);
        world.step(Step::Change);
        world.step(Step::Send);
        world.step(Step::ToNode(37));
        world.step(Step::Request);
        world.step(Step::ToClient(41));
        match turn % 4 {
            0 => world.step(Step::Answer),
            1 => world.step(Step::Acknowledge),
            2 => world.step(Step::Wait),
            _ => world.step(Step::Change),
        }
    }
}

#[test]
fn a_cut_at_any_byte() {
    let mut whole = World::new(usize::MAX);
    script(&mut whole);
    let passed = whole.passed;
    assert!(passed[0] > 200 && passed[1] > 200, "{passed:?}");
    whole.check(false);
    for (direction, bytes) in passed.into_iter().enumerate() {
        for cut in 0..=bytes {
            let mut world = World::new(usize::MAX);
            world.cuts[direction] = Some(cut);
            script(&mut world);
            world.check(false);
        }
    }
}

#[test]
fn a_cut_in_each_direction() {
    let mut whole = World::new(usize::MAX);
    script(&mut whole);
    let passed = whole.passed;
    for first in (0..passed[0]).step_by(11) {
        for second in (0..passed[1]).step_by(11) {
            let mut world = World::new(usize::MAX);
            world.cuts = [Some(first), Some(second)];
            script(&mut world);
            world.check(false);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Request),
        2 => Just(Step::Send),
        3 => Just(Step::Change),
        1 => Just(Step::Answer),
        4 => (1_usize..200).prop_map(Step::ToNode),
        4 => (1_usize..400).prop_map(Step::ToClient),
        1 => Just(Step::Acknowledge),
        1 => Just(Step::Wait),
        1 => Just(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn cuts_at_random(
        steps in vec(step(), 0..300),
    ) {
        let mut world = World::new(usize::MAX);
        for step in steps {
            world.step(step);
        }
        world.check(false);
    }

    /// The node keeps little: what it forgets is reported, and each request still ends once.
    #[test]
    fn cuts_at_random_of_a_node_that_forgets(
        bytes_max in 40_usize..400,
        steps in vec(step(), 0..300),
    ) {
        let mut world = World::new(bytes_max);
        for step in steps {
            world.step(step);
        }
        world.check(true);
    }
}
