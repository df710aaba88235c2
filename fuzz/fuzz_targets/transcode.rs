//! Bodies converted from a schema to an older one: if a body fits a copy of the newer schema, the
//! converted body fits a copy of the older one.
#![no_main]

// The states that the laws of `playfield-state` are tested with.
#[path = "../../crates/state/tests/common/mod.rs"]
mod common;

use common::world::Root;
use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_fuzz::{VIEWER, older, schema_of};
use playfield_state::{DynamicMirror, Transcoder};

fuzz_target!(|data: &[u8]| playfield_fuzz::of_one_state!(check, data));

fn check<T: Root>(mut input: Input<'_>) {
    let node = schema_of::<T>();
    let client = older(&node);
    let transcoder = Transcoder::new(&node, &client).expect("the older schema lacks some fields");
    let mut transcoder = transcoder.state(VIEWER);
    let mut newer = DynamicMirror::new(&node.state, VIEWER).expect("the schema of a state");
    let mut older = DynamicMirror::new(&client.state, VIEWER).expect("the schema of a state");
    let mut is_first = true;
    while let Some(body) = input.piece() {
        let is_first = std::mem::take(&mut is_first);
        let mut turned = Vec::new();
        let read = if is_first {
            transcoder.snapshot(body, &mut turned)
        } else {
            transcoder.patch(body, &mut turned)
        };
        let taken = if is_first { newer.snapshot(body) } else { newer.patch(body) };
        if taken.is_err() {
            return;
        }
        read.expect("a body that fits a copy can be converted");
        assert_eq!(transcoder.digest(), Some(newer.digest()));
        let taken = if is_first { older.snapshot(&turned) } else { older.patch(&turned) };
        taken.expect("the converted body fits the older copy");
    }
}
