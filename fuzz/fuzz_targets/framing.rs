//! Native framing: however the stream is split, the frames are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_wire::framing::{FrameError, Framing};

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let framing = Framing { message_bytes_max: 1 + usize::from(input.byte()) * 16 };
    let cut = 1 + usize::from(input.byte());
    let Some(stream) = input.piece() else { return };
    let whole = frames(framing, stream, stream.len().max(1));
    assert_eq!(frames(framing, stream, cut), whole);
});

/// All frames of a stream that arrives in pieces of `piece` bytes, and the error that ended it.
fn frames(framing: Framing, stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, Option<FrameError>) {
    let (mut frames, mut held) = (Vec::new(), Vec::new());
    for piece in stream.chunks(piece) {
        held.extend_from_slice(piece);
        loop {
            match framing.decode(&held) {
                Ok(Some(frame)) => {
                    assert!(
                        !frame.body.is_empty() && frame.body.len() <= framing.message_bytes_max
                    );
                    frames.push(frame.body.to_vec());
                    let consumed = frame.consumed;
                    held.drain(..consumed);
                }
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}
