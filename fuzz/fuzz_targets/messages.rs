//! Messages of both directions in each format: a decoded message encodes to bytes that decode to
//! the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_wire::Format;
use playfield_wire::client::ClientMessage;
use playfield_wire::server::ServerMessage;

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let format = Format::ALL[usize::from(input.byte()) % 3];
    let Some(body) = input.piece() else { return };
    if let Ok(message) = ClientMessage::decode(format, body) {
        let mut again = Vec::new();
        message.encode(format, &mut again);
        assert_eq!(ClientMessage::decode(format, &again).as_ref(), Ok(&message));
    }
    if let Ok(message) = ServerMessage::decode(format, body) {
        let mut again = Vec::new();
        message.encode(format, &mut again);
        assert_eq!(ServerMessage::decode(format, &again).as_ref(), Ok(&message));
    }
});
