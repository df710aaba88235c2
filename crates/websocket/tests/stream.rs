//! Binary messages as one stream of bytes.

use playfield_websocket::{
    Control, Decoder, Error, Item, Limits, Opcode, Role, StreamDecoder, encode, encode_close,
    encode_fragment,
};
use proptest::prelude::*;

const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// A decoder's results for input that comes in pieces of this length: the stream, the pings and
/// pongs in order, and the end.
type Read = (Vec<u8>, Vec<(char, Vec<u8>)>, Option<Result<Option<u16>, Error>>);

fn read(role: Role, wire: &[u8], piece: usize) -> Read {
    let mut decoder = StreamDecoder::new(role);
    let (mut stream, mut controls) = (Vec::new(), Vec::new());
    for piece in wire.chunks(piece) {
        let mut input = piece.to_vec();
        let found = decoder.decode(&mut input, |control| {
            controls.push(match control {
                Control::Ping(payload) => ('?', payload.to_vec()),
                Control::Pong(payload) => ('!', payload.to_vec()),
            });
        });
        stream.extend_from_slice(&input[..found.bytes]);
        if found.end.is_some() {
            return (stream, controls, found.end);
        }
    }
    (stream, controls, None)
}

#[test]
fn messages_and_fragments_are_pieces_of_a_stream() {
    let mut wire = Vec::new();
    encode(&mut wire, Opcode::Binary, b"one", Some(KEY));
    encode(&mut wire, Opcode::Binary, b"", Some(KEY));
    encode_fragment(&mut wire, Opcode::Binary, false, b"two, longer than eight", Some(KEY));
    encode(&mut wire, Opcode::Ping, b"there?", Some(KEY));
    encode_fragment(&mut wire, Opcode::Continuation, false, &[7; 300], Some(KEY));
    encode(&mut wire, Opcode::Pong, b"", Some(KEY));
    encode_fragment(&mut wire, Opcode::Continuation, true, b"end", Some(KEY));
    encode(&mut wire, Opcode::Binary, &[9; 70_000], Some(KEY));
    encode_close(&mut wire, 1001, "bye", Some(KEY));
    encode(&mut wire, Opcode::Binary, b"too late", Some(KEY));
    let stream = [&b"onetwo, longer than eight"[..], &[7; 300], b"end", &[9; 70_000]].concat();
    let controls = vec![('?', b"there?".to_vec()), ('!', Vec::new())];
    for piece in [1, 2, 3, 5, 7, 13, 64, 1_000, wire.len()] {
        let expected = (stream.clone(), controls.clone(), Some(Ok(Some(1001))));
        assert_eq!(read(Role::Server, &wire, piece), expected, "in pieces of {piece}");
    }
}

#[test]
fn what_breaks_the_rules_ends_the_stream_after_what_came_before() {
    let masked = |opcode, payload: &[u8]| {
        let mut wire = Vec::new();
        encode(&mut wire, opcode, payload, Some(KEY));
        wire
    };
    let mut open = Vec::new();
    encode_fragment(&mut open, Opcode::Binary, false, b"", Some(KEY));
    let binary = Opcode::Binary;
    for (wire, expected) in [
        (masked(Opcode::Text, b"text"), Error::TextUnexpected),
        (masked(Opcode::Continuation, b"x"), Error::ContinuationUnexpected),
        ([open, masked(binary, b"x")].concat(), Error::ContinuationExpected { opcode: binary }),
        (b"\x82\x01x".to_vec(), Error::MaskMissing),
        (b"\xC2\x81".to_vec(), Error::ReservedBits { bits: 4 }),
        (b"\x83\x81".to_vec(), Error::ReservedOpcode { opcode: 3 }),
        (b"\x09\x80".to_vec(), Error::FragmentedControl { opcode: Opcode::Ping }),
        (b"\x89\xFE".to_vec(), Error::ControlTooLong { opcode: Opcode::Ping }),
        (b"\x82\xFE\x00\x7D".to_vec(), Error::LengthNotMinimal { bytes: 125 }),
        (b"\x82\xFF\x80\0\0\0\0\0\0\0".to_vec(), Error::LengthTopBit),
        (masked(Opcode::Close, b"\x03"), Error::TruncatedCloseCode),
        (masked(Opcode::Close, b"\x03\xED"), Error::InvalidCloseCode { code: 1005 }),
    ] {
        let wire = [masked(binary, b"before"), wire].concat();
        for piece in [1, wire.len()] {
            let (stream, _, end) = read(Role::Server, &wire, piece);
            assert_eq!((&*stream, end), (&b"before"[..], Some(Err(expected))));
        }
    }
}

#[test]
fn only_headers_and_control_frames_can_be_unfinished() {
    let mut wire = Vec::new();
    encode(&mut wire, Opcode::Binary, b"12345678", Some(KEY));
    let message = wire.len();
    encode(&mut wire, Opcode::Ping, b"1234", Some(KEY));
    for end in 0..=wire.len() {
        let mut decoder = StreamDecoder::new(Role::Server);
        decoder.decode(&mut wire[..end].to_vec(), |_| {});
        let is_unfinished = (1..6).contains(&end) || (message + 1..wire.len()).contains(&end);
        assert_eq!(decoder.is_unfinished(), is_unfinished, "after {end} bytes");
    }
}

#[test]
fn a_close_is_found_wherever_the_decoder_was() {
    let mut wire = Vec::new();
    encode(&mut wire, Opcode::Binary, &[1; 200], Some(KEY));
    encode_close(&mut wire, 1000, "", Some(KEY));
    for at in 0..wire.len() {
        let mut decoder = StreamDecoder::new(Role::Server);
        assert_eq!(decoder.decode(&mut wire[..at].to_vec(), |_| {}).end, None);
        let mut finder = decoder.into_close_finder();
        assert_eq!(finder.push(&wire[at..wire.len() - 1]), Ok(false), "from byte {at} on");
        assert_eq!(finder.push(&wire[wire.len() - 1..]), Ok(true), "from byte {at} on");
    }
}

proptest! {
    /// Given any messages and pings, then the stream is what a decoder of messages returns, however
    /// the input is split.
    #[test]
    fn a_stream_is_all_messages(
        frames in prop::collection::vec((0..3_u8, any::<bool>(), 0..300_usize, any::<[u8; 4]>()), 0..20),
        is_server in any::<bool>(),
        piece in 1..200_usize,
    ) {
        let role = if is_server { Role::Server } else { Role::Client };
        let (mut wire, mut is_open) = (Vec::new(), false);
        for (kind, fin, bytes, key) in frames {
            let mask = is_server.then_some(key);
            let payload: Vec<u8> = (0..bytes).map(|at| (at * 7) as u8).collect();
            if kind == 0 {
                encode(&mut wire, Opcode::Ping, &payload, mask);
            } else {
                let opcode = if is_open { Opcode::Continuation } else { Opcode::Binary };
                encode_fragment(&mut wire, opcode, fin, &payload, mask);
                is_open = !fin;
            }
        }
        if is_open {
            let mask = is_server.then_some(KEY);
            encode_fragment(&mut wire, Opcode::Continuation, true, b"", mask);
        }
        let (mut messages, mut pings) = (Vec::new(), Vec::new());
        let mut decoder = Decoder::new(role, Limits::default());
        let (mut input, mut at) = (wire.clone(), 0);
        while at < input.len() {
            let decoded = decoder.decode(&mut input[at..]).unwrap();
            match decoded.item {
                Some(Item::Binary(payload)) => messages.extend_from_slice(payload),
                Some(Item::Ping(payload)) => pings.push(('?', payload.to_vec())),
                _ => {}
            }
            at += decoded.consumed;
        }
        prop_assert_eq!(read(role, &wire, piece), (messages, pings, None));
    }
}
