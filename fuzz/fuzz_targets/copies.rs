//! A client's copies of bodies in `packed`: what the one made from the schema takes, the typed one takes too, and both come to the same.
//! (The typed one knows less of what it was told before, so it takes some more.)
#![no_main]

// The states that the laws of `playfield-state` are held to.
#[path = "../../crates/state/tests/common/mod.rs"]
mod common;

use libfuzzer_sys::fuzz_target;
use common::field::Field;
use common::kinds::Kinds;
use common::swarm::Swarm;
use common::world::{Desks, Root, World};
use playfield_fuzz::input::Input;
use playfield_fuzz::VIEWER;
use playfield_state::{DynamicMirror, Mirror, view};

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    match input.byte() % 5 {
        0 => check::<World>(input),
        1 => check::<Desks>(input),
        2 => check::<Swarm>(input),
        3 => check::<Kinds>(input),
        _ => check::<Field>(input),
    }
});

fn check<T: Root>(mut input: Input<'_>) {
    let mut typed = Mirror::<T>::new();
    let mut dynamic = DynamicMirror::new(&T::schema(), VIEWER).expect("the schema of a state");
    let mut is_first = true;
    while let Some(body) = input.piece() {
        let (one, two) = if std::mem::take(&mut is_first) {
            (typed.snapshot(body), dynamic.snapshot(body))
        } else {
            (typed.patch(body), dynamic.patch(body))
        };
        view(typed.state(), Some(VIEWER));
        if two.is_err() {
            return;
        }
        assert!(one.is_ok(), "{one:?}");
        assert_eq!(typed.digest(), dynamic.digest());
    }
}
