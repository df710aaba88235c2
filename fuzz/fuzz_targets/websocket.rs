//! WebSocket in both roles, with and without compression: however the input is split, it gives the
//! same messages or the same error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_websocket::{Decoder, Deflate, Direction, Error, Item, Limits, Role};

const MESSAGE_BYTES_MAX: usize = 4_096;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let settings = input.byte();
    let cut = 1 + usize::from(input.byte());
    let Some(stream) = input.piece() else { return };
    let whole = read(decoder(settings), stream, stream.len().max(1));
    assert_eq!(read(decoder(settings), stream, cut), whole);
});

fn decoder(settings: u8) -> Decoder {
    let role = if settings & 1 == 0 { Role::Server } else { Role::Client };
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, frame_bytes_max: 2_000 };
    let direction =
        Direction { context_takeover: settings & 4 != 0, window_bits: 8 + (settings >> 5) };
    match settings & 2 {
        0 => Decoder::new(role, limits),
        _ => Decoder::with_deflate(role, limits, &Deflate { server: direction, client: direction }),
    }
}

/// Everything that was decoded from a stream in pieces of `piece` bytes, and the error that ended
/// it.
fn read(mut decoder: Decoder, stream: &[u8], piece: usize) -> (Vec<String>, Option<Error>) {
    let (mut items, mut held) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        held.extend_from_slice(piece);
        loop {
            let consumed = match decoder.decode(&mut held) {
                Ok(decoded) => {
                    if let Some(item) = decoded.item {
                        if let Item::Text(text) = item {
                            assert!(text.len() <= MESSAGE_BYTES_MAX);
                        }
                        items.push(format!("{item:?}"));
                    }
                    decoded.consumed
                }
                Err(error) => return (items, Some(error)),
            };
            if consumed == 0 {
                break;
            }
            held.drain(..consumed);
        }
    }
    (items, None)
}
