//! Binary WebSocket messages as a stream, as services get them: however the input is split, it
//! gives the same bytes, the same pings and pongs, and the same end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_websocket::{Control, Error, Role, StreamDecoder};

/// The stream, the control frames, and the end.
type Read = (Vec<u8>, Vec<String>, Option<Result<Option<u16>, Error>>);

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let role = if input.byte() & 1 == 0 { Role::Server } else { Role::Client };
    let cut = 1 + usize::from(input.byte());
    let Some(wire) = input.piece() else { return };
    let whole = read(role, wire, wire.len().max(1));
    assert!(whole.0.len() <= wire.len());
    assert_eq!(read(role, wire, cut), whole);
});

fn read(role: Role, wire: &[u8], piece: usize) -> Read {
    let mut decoder = StreamDecoder::new(role);
    let (mut stream, mut controls) = (Vec::new(), Vec::new());
    for piece in wire.chunks(piece) {
        let mut input = piece.to_vec();
        let found = decoder.decode(&mut input, |control: Control<'_>| {
            controls.push(format!("{control:?}"));
        });
        stream.extend_from_slice(&input[..found.bytes]);
        if found.end.is_some() {
            return (stream, controls, found.end);
        }
    }
    (stream, controls, None)
}
