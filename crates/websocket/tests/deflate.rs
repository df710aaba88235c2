//! Compressed messages (RFC 7692).

use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Direction, Error, Item, Limits, Opcode, Role,
    encode, encode_fragment,
};
use proptest::prelude::*;

const KEPT: Direction = Direction { context_takeover: true, window_bits: 15 };
const KEEPING: Deflate = Deflate { server: KEPT, client: KEPT };

/// A received message.
#[derive(Debug, PartialEq)]
enum Got {
    Text(String),
    Binary(Vec<u8>),
    Pong(Vec<u8>),
}

/// Returns the messages that a client decodes from a server's bytes, received in pieces of `cut`
/// bytes.
fn read(decoder: &mut Decoder, bytes: &[u8], cut: usize) -> Result<Vec<Got>, Error> {
    let mut got = Vec::new();
    let mut input = Vec::new();
    for piece in bytes.chunks(cut.max(1)) {
        input.extend_from_slice(piece);
        loop {
            let decoded = decoder.decode(&mut input)?;
            let consumed = decoded.consumed;
            got.extend(match decoded.item {
                Some(Item::Text(text)) => Some(Got::Text(text.to_owned())),
                Some(Item::Binary(bytes)) => Some(Got::Binary(bytes.to_vec())),
                Some(Item::Pong(bytes)) => Some(Got::Pong(bytes.to_vec())),
                Some(Item::Ping(_) | Item::Close(_)) | None => None,
            });
            if consumed == 0 {
                break;
            }
            input.drain(..consumed);
        }
    }
    assert!(input.is_empty(), "{} bytes are left", input.len());
    Ok(got)
}

fn client(agreed: &Deflate) -> Decoder {
    Decoder::with_deflate(Role::Client, Limits::default(), agreed)
}

fn hello() -> Got {
    Got::Text("Hello".to_owned())
}

/// An encoder that compresses every non-empty message.
fn deflater(agreed: &Deflate) -> Deflater {
    Deflater::new(
        Role::Server,
        agreed,
        DeflaterOptions { message_bytes_min: 1, ..DeflaterOptions::default() },
    )
}

#[test]
fn the_examples_of_the_rfc() {
    let all: [&[u8]; 5] = [
        b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00",         // 7.2.3.1
        b"\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00", // in fragments
        b"\xc1\x0b\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", // 7.2.3.3, an uncompressed block
        b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00",     // 7.2.3.4, a final block
        b"\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", // 7.2.3.5, two blocks
    ];
    for agreed in [Deflate::default(), KEEPING] {
        for frames in all {
            for cut in 1..=frames.len() {
                let twice = [frames, frames].concat();
                assert_eq!(
                    read(&mut client(&agreed), &twice, cut),
                    Ok(vec![hello(), hello()]),
                    "{frames:x?}"
                );
            }
        }
    }
    // 7.2.3.2, which refers to the previous message.
    let second = b"\xc1\x05\xf2\x00\x11\x00\x00";
    let both = [all[0], second].concat();
    assert_eq!(read(&mut client(&KEEPING), &both, 99), Ok(vec![hello(), hello()]));
    assert_eq!(read(&mut client(&Deflate::default()), &both, 99), Err(Error::InvalidDeflate));
}

#[test]
fn repeated_messages_shrink_if_the_context_is_kept() {
    for (agreed, first, second) in [(KEEPING, 0xC1, 0xC1), (Deflate::default(), 0x81, 0x81)] {
        let mut out = Vec::new();
        let mut deflater = deflater(&agreed);
        deflater.encode(&mut out, Opcode::Text, b"Hello", None);
        let middle = out.len();
        deflater.encode(&mut out, Opcode::Text, b"Hello", None);
        assert_eq!((out[0], out[middle]), (first, second), "seven bytes are no shorter than five");
        assert_eq!(out.len() - middle < middle, agreed == KEEPING);
        assert_eq!(read(&mut client(&agreed), &out, 99), Ok(vec![hello(), hello()]));
    }
}

#[test]
fn short_messages_and_control_frames_are_sent_uncompressed() {
    let mut out = Vec::new();
    let mut deflater = Deflater::new(Role::Server, &KEEPING, DeflaterOptions::default());
    deflater.encode(&mut out, Opcode::Binary, &[7; 63], None);
    deflater.encode(&mut out, Opcode::Ping, &[7; 100], None);
    deflater.encode(&mut out, Opcode::Binary, b"", None);
    assert_eq!((out[0], out[65], out[167]), (0x82, 0x89, 0x82));
    deflater.encode(&mut out, Opcode::Binary, &[7; 64], None);
    assert_eq!(out[169], 0xC2);
}

#[test]
fn messages_are_sent_uncompressed_with_the_smallest_window() {
    let smallest = Direction { context_takeover: true, window_bits: 8 };
    let agreed = Deflate { server: smallest, client: smallest };
    let mut out = Vec::new();
    deflater(&agreed).encode(&mut out, Opcode::Binary, &[7; 1_000], None);
    assert_eq!(out[0], 0x82);
    // A message compressed anyway can be read.
    assert_eq!(
        read(&mut client(&agreed), b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", 99),
        Ok(vec![hello()])
    );
}

#[test]
fn changing_windows_compress_as_well_as_one() {
    let deflate = |window_bits| {
        let direction = Direction { context_takeover: false, window_bits };
        Deflate { server: direction, client: direction }
    };
    let payload = b"again and again and again and again".repeat(40);
    let mut out = Vec::new();
    for _ in 0..3 {
        for window_bits in 9..=15 {
            deflater(&deflate(window_bits)).encode(&mut out, Opcode::Binary, &payload, None);
        }
    }
    assert!(out.len() < 21 * 100, "{} bytes", out.len());
    let expected: Vec<_> = (0..21).map(|_| Got::Binary(payload.clone())).collect();
    assert_eq!(read(&mut client(&Deflate::default()), &out, 1 << 20), Ok(expected));
}

#[test]
fn invalid_compressed_messages_are_rejected() {
    let cases: [&[u8]; 6] = [
        b"\xc1\x01\xff",                             // an invalid block type
        b"\xc1\x03\xf2\x48\xcd",                     // ends in the middle of a block
        b"\xc2\x06\x00\x09\x00\xf6\xff\x48",         // ends in the middle of an uncompressed block
        b"\x41\x03\xf2\x48\xcd\x80\x00",             // in fragments too
        b"\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\xff\xff", // other data after a final block
        b"\xc1\x05\xf2\x00\x11\x00\x00",             // refers back to data that does not exist
    ];
    for frames in cases {
        assert_eq!(
            read(&mut client(&Deflate::default()), frames, 99),
            Err(Error::InvalidDeflate),
            "{frames:x?}"
        );
        // A rejected message leaves no state behind for others on this thread.
        let hello_frame = b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00";
        assert_eq!(read(&mut client(&Deflate::default()), hello_frame, 99), Ok(vec![hello()]));
    }
}

#[test]
fn compressed_text_is_validated_as_it_arrives() {
    let mut out = Vec::new();
    deflater(&KEEPING).encode(&mut out, Opcode::Text, b"cut \xE2\x82", None);
    assert_eq!(read(&mut client(&KEEPING), &out, 99), Err(Error::InvalidText));
    assert_eq!(Error::InvalidDeflate.close_code(), 1007);
}

#[test]
fn only_a_first_frame_may_have_the_compression_bit() {
    let reserved = |bits| Err(Error::ReservedBits { bits });
    let agreed = Deflate::default();
    assert_eq!(read(&mut client(&agreed), b"\xc9\x00", 9), reserved(4), "a ping");
    assert_eq!(read(&mut client(&agreed), b"\x01\x01a\xc0\x00", 9), reserved(4), "a continuation");
    assert_eq!(read(&mut client(&agreed), b"\xa1\x00", 9), reserved(2), "another bit");
    assert_eq!(read(&mut client(&agreed), b"\xe1\x00", 9), reserved(6), "with another bit");
    let mut plain = Decoder::new(Role::Client, Limits::default());
    assert_eq!(
        read(&mut plain, b"\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", 9),
        reserved(4),
        "nothing was negotiated"
    );
}

#[test]
fn decompression_bombs_are_rejected_early() {
    let limits = Limits { message_bytes_max: 10_000, ..Limits::default() };
    for agreed in [Deflate::default(), KEEPING] {
        let mut bomb = Vec::new();
        deflater(&agreed).encode(&mut bomb, Opcode::Binary, &vec![0; 50 << 20], None);
        assert!(bomb.len() < 1 << 20, "{} bytes compressed", bomb.len());
        // Split into frames so small that none is rejected for its own length.
        let payload = &bomb[10..];
        let mut frames = Vec::new();
        for (place, piece) in payload.chunks(1_000).enumerate() {
            let opcode = if place == 0 { Opcode::Binary } else { Opcode::Continuation };
            let first = frames.len();
            encode_fragment(&mut frames, opcode, false, piece, None);
            frames[first] |= if place == 0 { 0x40 } else { 0 };
        }
        let mut decoder = Decoder::with_deflate(Role::Client, limits, &agreed);
        match read(&mut decoder, &frames, 1 << 20) {
            Err(Error::MessageTooLarge { bytes, bytes_max: 10_000 }) => {
                assert!(bytes <= 2 * 10_000 + 64 + 1_000, "{bytes}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_unfinished_message_takes_no_more_than_has_arrived() {
    let mut bomb = Vec::new();
    deflater(&Deflate::default()).encode(&mut bomb, Opcode::Binary, &vec![0; 1 << 20], None);
    let payload = &bomb[4..];
    assert!(payload.len() < 20_000, "{} bytes compressed", payload.len());
    let mut frames = Vec::new();
    encode_fragment(&mut frames, Opcode::Binary, false, payload, None);
    frames[0] |= 0x40;
    let mut decoder = client(&Deflate::default());
    assert_eq!(read(&mut decoder, &frames, 1 << 20), Ok(vec![]));
    assert!(decoder.is_unfinished());
    assert!(decoder.buffered_bytes() < 2 * payload.len(), "{}", decoder.buffered_bytes());
    let mut last = Vec::new();
    encode_fragment(&mut last, Opcode::Continuation, true, b"", None);
    assert_eq!(read(&mut decoder, &last, 1 << 20), Ok(vec![Got::Binary(vec![0; 1 << 20])]));
    assert_eq!((decoder.is_unfinished(), decoder.buffered_bytes()), (false, 0));
}

#[test]
fn the_limit_applies_to_the_decompressed_message() {
    let random: Vec<u8> =
        (0..4_096_u64).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    for payload in [vec![0; 4_096], random] {
        let mut out = Vec::new();
        deflater(&KEEPING).encode(&mut out, Opcode::Binary, &payload, None);
        assert_eq!(out[0], 0xC2);
        for (message_bytes_max, fits) in [(4_096, true), (4_095, false)] {
            let limits = Limits { message_bytes_max, ..Limits::default() };
            let got =
                read(&mut Decoder::with_deflate(Role::Client, limits, &KEEPING), &out, 1 << 20);
            assert_eq!(
                got.is_ok(),
                fits,
                "{} bytes compressed, at most {message_bytes_max}",
                out.len()
            );
        }
    }
}

fn direction() -> impl Strategy<Value = Direction> {
    (any::<bool>(), 8..=15_u8)
        .prop_map(|(context_takeover, window_bits)| Direction { context_takeover, window_bits })
}

/// Messages that compress well and messages that don't.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (proptest::collection::vec(0..4_u8, 1..40), 0..2_000_usize).prop_map(|(piece, times)| {
            piece.iter().copied().cycle().take(piece.len() * times / 8).collect()
        }),
        proptest::collection::vec(32..127_u8, 0..20_000),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// For every negotiated configuration, one end reads what the other writes, split anywhere and
    /// fragmented with pongs in between.
    #[test]
    fn compressed_messages_round_trip(
        server in direction(),
        messages in proptest::collection::vec((payload(), any::<bool>(), 1..400_usize), 1..8),
        level in 0..12_u8,
        message_bytes_min in 0..100_usize,
        cut in 1..5_000_usize,
        text in any::<bool>(),
    ) {
        let agreed = Deflate { server, client: Direction::default() };
        let mut deflater = Deflater::new(Role::Server, &agreed, DeflaterOptions { level, message_bytes_min });
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (payload, in_fragments, fragment_bytes) in messages {
            let (opcode, got, payload) = match String::from_utf8(payload) {
                Ok(string) if text => (Opcode::Text, Got::Text(string.clone()), string.into_bytes()),
                Ok(string) => (Opcode::Binary, Got::Binary(string.clone().into_bytes()), string.into_bytes()),
                Err(error) => (Opcode::Binary, Got::Binary(error.as_bytes().to_vec()), error.into_bytes()),
            };
            let mut frame = Vec::new();
            deflater.encode(&mut frame, opcode, &payload, None);
            if !in_fragments {
                bytes.extend_from_slice(&frame);
                expected.push(got);
                continue;
            }
            let header = match frame[1] { 126 => 4, 127 => 10, _ => 2 };
            let pieces: Vec<&[u8]> = if frame.len() == header { vec![b""] } else { frame[header..].chunks(fragment_bytes).collect() };
            for (place, piece) in pieces.iter().enumerate() {
                let opcode = if place == 0 { opcode } else { Opcode::Continuation };
                let first = bytes.len();
                encode_fragment(&mut bytes, opcode, place + 1 == pieces.len(), piece, None);
                if place == 0 {
                    bytes[first] |= frame[0] & 0x40;
                }
                if place % 7 == 3 {
                    encode(&mut bytes, Opcode::Pong, b"between", None);
                    expected.push(Got::Pong(b"between".to_vec()));
                }
            }
            // A pong arrives before the message whose fragments it is between, except after the
            // last one.
            if pieces.len() % 7 == 4 {
                let last = expected.len() - 1;
                expected.insert(last, got);
            } else {
                expected.push(got);
            }
        }
        prop_assert_eq!(read(&mut client(&agreed), &bytes, cut), Ok(expected));
    }

    /// Arbitrary bytes give an error or a message, and never a message over the limit.
    #[test]
    fn arbitrary_data_never_exceeds_the_limit(bytes in proptest::collection::vec(any::<u8>(), 0..125), kept in any::<bool>()) {
        let agreed = if kept { KEEPING } else { Deflate::default() };
        let limits = Limits { message_bytes_max: 1_000, ..Limits::default() };
        let mut frame = vec![0xC2, bytes.len() as u8];
        frame.extend_from_slice(&bytes);
        match read(&mut Decoder::with_deflate(Role::Client, limits, &agreed), &frame, 999) {
            Ok(got) => prop_assert!(matches!(&got[..], [Got::Binary(bytes)] if bytes.len() <= 1_000)),
            Err(Error::InvalidDeflate | Error::MessageTooLarge { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
