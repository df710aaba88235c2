//! A client's copies of bodies in `json` and `msgpack`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_state::JsonMirror;
use playfield_wire::TreeFormat;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let format = if input.byte() % 2 == 0 { TreeFormat::Json } else { TreeFormat::Msgpack };
    let mut copy = JsonMirror::of(format);
    let Some(snapshot) = input.piece() else { return };
    if copy.snapshot(snapshot).is_err() {
        return;
    }
    while let Some(patch) = input.piece() {
        let taken = copy.patch(patch);
        drop(copy.state().to_string());
        if taken.is_err() {
            return;
        }
    }
});
