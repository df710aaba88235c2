//! A client's copies from `packed` bodies. The typed copy and the one created from the schema
//! accept the same bodies with the same result, or both reject them for the same reason. (The typed
//! copy consists of plain values and can't record that one is absent, so it accepts some more
//! bodies.)
#![no_main]

// The states that the laws of `playfield-state` are tested with.
#[path = "../../crates/state/tests/common/mod.rs"]
mod common;

use common::world::Root;
use libfuzzer_sys::fuzz_target;
use playfield_fuzz::VIEWER;
use playfield_fuzz::input::Input;
use playfield_state::{DynamicMirror, Mirror, view};

/// The same list as in `crates/state/tests/readers.rs`.
const UNKNOWABLE: [&str; 3] = [
    "a value was changed, but it is not in view in this copy",
    "a part of a new value was not sent",
    "this body implies too many values that it does not send",
];

fuzz_target!(|data: &[u8]| playfield_fuzz::of_one_state!(check, data));

fn check<T: Root>(mut input: Input<'_>) {
    let mut typed = Mirror::<T>::new();
    let mut dynamic = DynamicMirror::new(&T::schema(), VIEWER).expect("a valid state schema");
    let mut is_first = true;
    while let Some(body) = input.piece() {
        let (one, two) = if std::mem::take(&mut is_first) {
            (typed.snapshot(body), dynamic.snapshot(body))
        } else {
            (typed.patch(body), dynamic.patch(body))
        };
        view(typed.state(), Some(VIEWER));
        let is_unknowable =
            |what: &&str| two.as_ref().is_err_and(|error| error.to_string().ends_with(what));
        if UNKNOWABLE.iter().any(is_unknowable) {
            return;
        }
        assert_eq!(one, two);
        if two.is_err() {
            return;
        }
        assert_eq!(typed.digest(), dynamic.digest());
    }
}
