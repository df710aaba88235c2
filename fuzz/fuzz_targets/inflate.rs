//! Compressed messages. Arbitrary input gives an error or a message within its limit, and
//! compressed messages round-trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Direction, Item, Limits, Opcode, Role,
    encode_fragment,
};

const MESSAGE_BYTES_MAX: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let settings = input.byte();
    let direction =
        Direction { context_takeover: settings & 1 != 0, window_bits: 8 + (settings >> 5) };
    let agreed = Deflate { server: direction, client: direction };
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() };

    let options = DeflaterOptions { level: settings >> 2 & 7, message_bytes_min: 1 };
    let mut deflater = Deflater::new(Role::Server, &agreed, options);
    let mut client = Decoder::with_deflate(Role::Client, limits, &agreed);
    let mut strange = Decoder::with_deflate(Role::Client, limits, &agreed);
    while let Some(piece) = input.piece() {
        let mut frame = Vec::new();
        deflater.encode(&mut frame, Opcode::Binary, piece, None);
        assert_eq!(
            client.decode(&mut frame).expect("valid compressed data").item,
            Some(Item::Binary(piece))
        );

        let mut frame = Vec::new();
        encode_fragment(&mut frame, Opcode::Binary, true, piece, None);
        frame[0] |= 0x40;
        if let Ok(decoded) = strange.decode(&mut frame) {
            if let Some(Item::Binary(bytes)) = decoded.item {
                assert!(bytes.len() <= MESSAGE_BYTES_MAX);
            }
        }
    }
});
