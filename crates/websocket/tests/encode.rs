//! Encoded frames match RFC 6455 byte by byte.

use std::panic::{AssertUnwindSafe, catch_unwind};

use playfield_websocket::{
    Close, Decoder, FrameParts, Item, Limits, Mask, Opcode, Role, encode, encode_close,
    encode_fragment, encode_with, encode_with_about,
};

const KEY: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

/// Payload lengths around every change of the header's size.
const LENGTHS: [usize; 9] = [0, 1, 124, 125, 126, 127, 65535, 65536, 70000];

fn frame(opcode: Opcode, payload: &[u8], mask: Mask) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, opcode, payload, mask);
    out
}

fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut out = Vec::new();
    encode_close(&mut out, code, reason, None);
    out
}

#[test]
fn examples_of_the_rfc_5_7() {
    assert_eq!(frame(Opcode::Text, b"Hello", None), b"\x81\x05Hello");
    assert_eq!(
        frame(Opcode::Text, b"Hello", Some(KEY)),
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
    );
    assert_eq!(frame(Opcode::Ping, b"Hello", None), b"\x89\x05Hello");
    assert_eq!(
        frame(Opcode::Pong, b"Hello", Some(KEY)),
        b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
    );
    assert_eq!(frame(Opcode::Binary, &[0; 256], None)[..4], *b"\x82\x7E\x01\x00");
    assert_eq!(
        frame(Opcode::Binary, &[0; 65536], None)[..10],
        *b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00"
    );
}

#[test]
fn fragments_as_in_the_rfc_5_7() {
    let mut out = Vec::new();
    encode_fragment(&mut out, Opcode::Text, false, b"Hel", None);
    encode_fragment(&mut out, Opcode::Continuation, true, b"lo", None);
    assert_eq!(out, b"\x01\x03Hel\x80\x02lo");
}

#[test]
fn lengths_are_written_in_the_shortest_form() {
    for length in LENGTHS {
        let header_bytes = match length {
            0..=125 => 2,
            126..=65535 => 4,
            _ => 10,
        };
        let payload = vec![0; length];
        assert_eq!(frame(Opcode::Binary, &payload, None).len(), header_bytes + length);
        assert_eq!(frame(Opcode::Binary, &payload, Some(KEY)).len(), header_bytes + 4 + length);
    }
}

#[test]
fn frames_are_appended() {
    let mut out = b"before".to_vec();
    encode(&mut out, Opcode::Text, b"a", None);
    encode_with(&mut out, Opcode::Text, None, |out| out.push(b'b'));
    encode_close(&mut out, 1000, "", None);
    assert_eq!(out, b"before\x81\x01a\x81\x01b\x88\x02\x03\xe8");
}

#[test]
fn a_control_frame_is_always_final_and_short() {
    let long = [b'x'; 200];
    for opcode in [Opcode::Ping, Opcode::Pong] {
        let cut = frame(opcode, &long[..125], None);
        assert_eq!(frame(opcode, &long, None), cut);
        let mut written = Vec::new();
        encode_with(&mut written, opcode, None, |out| out.extend_from_slice(&long));
        assert_eq!(written, cut);
        let mut fragment = Vec::new();
        encode_fragment(&mut fragment, opcode, false, &long, None);
        assert_eq!(fragment, cut);
    }
}

#[test]
fn writing_in_place_equals_writing_a_copy() {
    for length in LENGTHS {
        let payload: Vec<u8> = (0..length).map(|i| (i * 31) as u8).collect();
        for mask in [None, Some(KEY)] {
            let mut copied = b"before".to_vec();
            encode(&mut copied, Opcode::Binary, &payload, mask);
            let mut in_place = b"before".to_vec();
            let result = encode_with(&mut in_place, Opcode::Binary, mask, |out| {
                out.extend_from_slice(&payload);
                "the writer's result"
            });
            assert_eq!(result, "the writer's result");
            assert!(in_place == copied, "{length} bytes, {mask:?}");
        }
    }
}

#[test]
fn a_writer_that_panics_leaves_no_half_frame() {
    let mut out = b"before".to_vec();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        encode_with(&mut out, Opcode::Binary, None, |out| {
            out.extend_from_slice(b"half a mess");
            panic!("a writer fails");
        })
    }));
    assert!(outcome.is_err());
    assert_eq!(out, b"before");
}

#[test]
#[should_panic(expected = "may only append")]
fn a_writer_must_not_shorten_the_buffer() {
    encode_with(&mut b"before".to_vec(), Opcode::Binary, None, Vec::clear);
}

#[test]
fn a_close_has_a_code_and_a_reason() {
    assert_eq!(close(1001, "restart"), b"\x88\x09\x03\xe9restart");
    assert_eq!(close(4999, ""), b"\x88\x02\x13\x87");
}

#[test]
fn a_close_reason_is_truncated_at_a_character_boundary() {
    for (reason, kept) in [
        ("x".repeat(123), 123),
        ("x".repeat(124), 123),
        ("é".repeat(62), 122),
        ("😀".repeat(40), 120),
    ] {
        let mut out = close(1000, &reason);
        let mut decoder = Decoder::new(Role::Client, Limits::default());
        let item = decoder.decode(&mut out).unwrap().item;
        assert_eq!(item, Some(Item::Close(Some(Close { code: 1000, reason: &reason[..kept] }))));
    }
}

#[test]
fn a_close_code_that_must_not_be_sent_is_omitted() {
    for code in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, u16::MAX] {
        assert_eq!(close(code, "reason"), b"\x88\x00", "{code}");
    }
}

#[test]
fn every_encoded_close_can_be_decoded() {
    for code in 0..=u16::MAX {
        let mut out = close(code, "r");
        let mut decoder = Decoder::new(Role::Client, Limits::default());
        assert!(decoder.decode(&mut out).is_ok(), "{code}");
    }
}

#[test]
fn whatever_length_was_expected_the_frame_is_the_same() {
    for bytes in [0, 1, 124, 125, 126, 1_000, 65_535, 65_536] {
        let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let mut expected = b"before".to_vec();
        encode(&mut expected, Opcode::Binary, &payload, None);
        for about in [0, 125, 126, 65_535, 65_536] {
            let mut out = b"before".to_vec();
            encode_with_about(&mut out, Opcode::Binary, None, about, |out| {
                out.extend_from_slice(&payload);
            });
            assert!(out == expected, "{bytes} bytes, {about} expected");
        }
    }
}

#[test]
#[should_panic(expected = "may only append")]
fn a_writer_of_a_short_payload_may_only_append() {
    encode_with_about(&mut b"before".to_vec(), Opcode::Binary, None, 1, Vec::clear);
}

#[test]
fn a_frame_in_parts_is_the_frame() {
    for payload_bytes in [0, 1, 125, 126, 8 << 10, (8 << 10) + 1, 70_000, 200_001] {
        let payload: Vec<u8> = (0..payload_bytes).map(|place| place as u8).collect();
        for mask in [None, Some([7, 1, 200, 3])] {
            for part_bytes in [0, 1, 8 << 10, 20_000, usize::MAX] {
                let (mut whole, mut parts) = (b"before".to_vec(), b"before".to_vec());
                encode(&mut whole, Opcode::Binary, &payload, mask);
                let mut rest = FrameParts::begin(&mut parts, Opcode::Binary, &payload, mask);
                while rest.append(&mut parts, part_bytes) {}
                assert!(parts == whole, "{payload_bytes} bytes in parts of {part_bytes}");
            }
        }
    }
}
