//! One test per rule of RFC 6455 on received frames.

use playfield_websocket::{
    Close, Decoder, Error, Item, Limits, Opcode, Role, encode, encode_fragment,
};

const KEY: [u8; 4] = [0xA1, 0x02, 0x73, 0x5C];

fn client() -> Decoder {
    Decoder::new(Role::Client, Limits::default())
}

fn server() -> Decoder {
    Decoder::new(Role::Server, Limits::default())
}

fn limited(message_bytes_max: usize) -> Decoder {
    Decoder::new(Role::Client, Limits { message_bytes_max, ..Limits::default() })
}

/// Decodes all frames in `bytes` and returns each result as text, errors included.
fn decode_all(decoder: &mut Decoder, bytes: &[u8]) -> Vec<String> {
    let mut input = bytes.to_vec();
    let mut used = 0;
    let mut shown = Vec::new();
    loop {
        match decoder.decode(&mut input[used..]) {
            Ok(decoded) => {
                shown.extend(decoded.item.map(|item| format!("{item:?}")));
                if decoded.consumed == 0 {
                    return shown;
                }
                used += decoded.consumed;
            }
            Err(error) => {
                shown.push(format!("{error:?}"));
                return shown;
            }
        }
    }
}

/// The error that a server's frames cause in a client.
fn refusal(bytes: &[u8]) -> Error {
    refusal_of(&mut client(), bytes)
}

fn refusal_of(decoder: &mut Decoder, bytes: &[u8]) -> Error {
    let mut input = bytes.to_vec();
    let mut used = 0;
    loop {
        match decoder.decode(&mut input[used..]) {
            Ok(decoded) => {
                assert_ne!(decoded.consumed, 0, "{bytes:x?} is not rejected");
                used += decoded.consumed;
            }
            Err(error) => return error,
        }
    }
}

#[test]
fn examples_of_the_rfc_5_7() {
    assert_eq!(decode_all(&mut client(), b"\x81\x05Hello"), [r#"Text("Hello")"#]);
    assert_eq!(
        decode_all(&mut server(), b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
        [r#"Text("Hello")"#]
    );
    assert_eq!(decode_all(&mut client(), b"\x01\x03Hel\x80\x02lo"), [r#"Text("Hello")"#]);
    assert_eq!(decode_all(&mut client(), b"\x89\x05Hello"), ["Ping([72, 101, 108, 108, 111])"]);
    assert_eq!(
        decode_all(&mut server(), b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
        ["Pong([72, 101, 108, 108, 111])"]
    );
    for length in [256, 65536] {
        let mut frame = if length == 256 {
            b"\x82\x7E\x01\x00".to_vec()
        } else {
            b"\x82\x7F\x00\x00\x00\x00\x00\x01\x00\x00".to_vec()
        };
        frame.resize(frame.len() + length, 7);
        let whole = frame.len();
        let mut decoder = client();
        let decoded = decoder.decode(&mut frame).unwrap();
        assert_eq!((decoded.consumed, decoded.item), (whole, Some(Item::Binary(&vec![7; length]))));
    }
}

#[test]
fn each_reserved_bit_is_rejected() {
    for bits in 1..8u8 {
        assert_eq!(refusal(&[0x81 | bits << 4]), Error::ReservedBits { bits });
    }
}

#[test]
fn each_reserved_opcode_is_rejected() {
    for opcode in [3, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        assert_eq!(refusal(&[0x80 | opcode]), Error::ReservedOpcode { opcode });
    }
}

#[test]
fn a_control_frame_must_be_final() {
    for (bits, opcode) in [(8, Opcode::Close), (9, Opcode::Ping), (10, Opcode::Pong)] {
        assert_eq!(refusal(&[bits, 0]), Error::FragmentedControl { opcode });
    }
}

#[test]
fn a_control_frame_holds_at_most_125_bytes() {
    let mut ping = vec![0x89, 125];
    ping.resize(127, 0);
    assert_eq!(decode_all(&mut client(), &ping).len(), 1);
    for (bits, opcode) in [(8, Opcode::Close), (9, Opcode::Ping), (10, Opcode::Pong)] {
        for length in [126, 127] {
            assert_eq!(refusal(&[0x80 | bits, length]), Error::ControlTooLong { opcode });
        }
    }
}

#[test]
fn a_length_must_be_written_in_the_shortest_form() {
    assert_eq!(refusal(&[0x82, 126, 0, 125]), Error::LengthNotMinimal { bytes: 125 });
    assert_eq!(
        refusal(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]),
        Error::LengthNotMinimal { bytes: 65535 }
    );
    let mut decoder = client();
    assert_eq!(decoder.frame_bytes(&[0x82, 126, 0, 126]), Ok(Some(4 + 126)));
    assert_eq!(decoder.frame_bytes(&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]), Ok(Some(10 + 65536)));
    assert_eq!(decoder.decode(&mut [0x82, 126, 0]).unwrap().consumed, 0);
}

#[test]
fn a_64_bit_length_must_have_its_top_bit_clear() {
    assert_eq!(refusal(&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]), Error::LengthTopBit);
}

#[test]
fn a_length_that_overflows_is_rejected_even_without_a_limit() {
    let mut decoder = limited(usize::MAX);
    let header = [0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
    // With its header it fits in 64 bits, so on such a machine the frame is merely incomplete.
    if usize::BITS == 64 {
        assert_eq!(decoder.frame_bytes(&header), Ok(Some((1 << 63) - 1 + 10)));
        assert_eq!(decoder.decode(&mut header.clone()).unwrap().consumed, 0);
    } else {
        assert!(matches!(decoder.frame_bytes(&header), Err(Error::MessageTooLarge { .. })));
    }
}

#[test]
fn a_client_must_mask() {
    assert_eq!(refusal_of(&mut server(), &[0x81, 0]), Error::MaskMissing);
    assert_eq!(refusal_of(&mut server(), &[0x89, 0]), Error::MaskMissing);
}

#[test]
fn a_server_must_not_mask() {
    assert_eq!(refusal(&[0x81, 0x80]), Error::MaskUnexpected);
    assert_eq!(refusal(&[0x8A, 0x80]), Error::MaskUnexpected);
}

#[test]
fn a_continuation_needs_a_message_in_progress() {
    assert_eq!(refusal(&[0x80, 0]), Error::ContinuationUnexpected);
    assert_eq!(refusal(&[0x00, 0]), Error::ContinuationUnexpected);
    // A complete message is not in progress, whether it came in one frame or in fragments.
    assert_eq!(refusal(b"\x81\x01a\x80\x00"), Error::ContinuationUnexpected);
    assert_eq!(refusal(b"\x01\x01a\x80\x01b\x80\x01c"), Error::ContinuationUnexpected);
}

#[test]
fn a_message_in_progress_must_be_continued() {
    for (bits, opcode) in [(1, Opcode::Text), (2, Opcode::Binary)] {
        assert_eq!(refusal(&[0x01, 0, 0x80 | bits]), Error::ContinuationExpected { opcode });
        assert_eq!(refusal(&[0x02, 0, bits]), Error::ContinuationExpected { opcode });
    }
}

#[test]
fn control_frames_are_allowed_between_fragments() {
    assert_eq!(
        decode_all(&mut client(), b"\x01\x01a\x89\x01p\x00\x01b\x8a\x00\x80\x01c\x82\x01d"),
        ["Ping([112])", "Pong([])", r#"Text("abc")"#, "Binary([100])"]
    );
}

#[test]
fn a_close_between_fragments_is_received() {
    assert_eq!(decode_all(&mut client(), b"\x01\x01a\x88\x00"), ["Close(None)"]);
}

#[test]
fn empty_messages_and_empty_fragments_are_messages() {
    assert_eq!(
        decode_all(&mut client(), b"\x81\x00\x82\x00\x01\x00\x80\x00\x02\x00\x00\x00\x80\x00"),
        [r#"Text("")"#, "Binary([])", r#"Text("")"#, "Binary([])"]
    );
}

#[test]
fn text_must_be_utf_8() {
    assert_eq!(refusal(b"\x81\x01\xff"), Error::InvalidText);
    assert_eq!(refusal(b"\x81\x02\xe2\x82"), Error::InvalidText, "a character is truncated");
    assert_eq!(refusal(b"\x81\x03\xed\xa0\x80"), Error::InvalidText, "a surrogate");
    assert_eq!(refusal(b"\x81\x02\xc0\xaf"), Error::InvalidText, "overlong");
    assert_eq!(refusal(b"\x81\x04\xf4\x90\x80\x80"), Error::InvalidText, "past the last character");
}

#[test]
fn fragmented_text_is_checked_as_a_whole() {
    assert_eq!(
        decode_all(&mut client(), b"\x01\x01\xe2\x00\x01\x82\x80\x01\xac"),
        [r#"Text("€")"#]
    );
    assert_eq!(
        refusal(b"\x01\x01\xe2\x80\x01\x82"),
        Error::InvalidText,
        "a character is truncated at the end"
    );
}

#[test]
fn fragmented_text_fails_in_the_fragment_that_breaks_it() {
    let mut decoder = client();
    assert_eq!(decode_all(&mut decoder, b"\x01\x03ok\xf4"), [""; 0]);
    assert_eq!(
        decode_all(&mut decoder, b"\x00\x01\x90"),
        ["InvalidText"],
        "before the last fragment"
    );
}

#[test]
fn binary_may_be_anything() {
    assert_eq!(decode_all(&mut client(), b"\x02\x01\xff\x80\x01\xc0"), ["Binary([255, 192])"]);
}

#[test]
fn a_close_may_be_empty_or_hold_a_code_and_a_reason() {
    assert_eq!(decode_all(&mut client(), b"\x88\x00"), ["Close(None)"]);
    let mut decoder = client();
    let mut frame = *b"\x88\x05\x03\xe8bye";
    let item = decoder.decode(&mut frame).unwrap().item;
    assert_eq!(item, Some(Item::Close(Some(Close { code: 1000, reason: "bye" }))));
}

#[test]
fn a_close_of_one_byte_is_rejected() {
    assert_eq!(refusal(b"\x88\x01\x03"), Error::TruncatedCloseCode);
}

#[test]
fn only_assigned_close_codes_are_accepted() {
    for code in 0..=u16::MAX {
        let [high, low] = code.to_be_bytes();
        let valid = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
        let mut frame = [0x88, 2, high, low];
        match client().decode(&mut frame) {
            Ok(decoded) => {
                assert!(valid, "{code}");
                assert_eq!(decoded.item, Some(Item::Close(Some(Close { code, reason: "" }))));
            }
            Err(error) => {
                assert!(!valid, "{code}");
                assert_eq!(error, Error::InvalidCloseCode { code });
            }
        }
    }
}

#[test]
fn a_close_reason_must_be_utf_8() {
    assert_eq!(refusal(b"\x88\x04\x03\xe8\xc3\x28"), Error::InvalidCloseReason);
    assert_eq!(refusal(b"\x88\x03\x03\xe8\xc3"), Error::InvalidCloseReason);
}

#[test]
fn everything_after_a_close_is_ignored() {
    assert_eq!(decode_all(&mut client(), b"\x88\x00\x89\x00\xff\xff\x00"), ["Close(None)"]);
    let mut decoder = client();
    decoder.decode(&mut [0x88, 0]).unwrap();
    let mut behind = [0xFF; 9];
    let decoded = decoder.decode(&mut behind).unwrap();
    assert_eq!((decoded.consumed, decoded.item), (9, None));
}

#[test]
fn everything_after_an_error_is_ignored() {
    let mut decoder = client();
    decoder.decode(&mut [0xFF; 2]).unwrap_err();
    let mut behind = [0x81, 0];
    let decoded = decoder.decode(&mut behind).unwrap();
    assert_eq!((decoded.consumed, decoded.item), (2, None));
    assert_eq!(decoder.frame_bytes(&[0x81, 0]), Ok(None));
}

#[test]
fn a_message_over_the_limit_is_rejected_from_its_header() {
    assert_eq!(decode_all(&mut limited(3), b"\x82\x03abc"), ["Binary([97, 98, 99])"]);
    let too_large = Error::MessageTooLarge { bytes: 4, bytes_max: 3 };
    assert_eq!(refusal_of(&mut limited(3), b"\x82\x04"), too_large);
    assert_eq!(limited(3).frame_bytes(b"\x82\x04"), Err(too_large));
    // On a server, even before the masking key arrives.
    let mut server =
        Decoder::new(Role::Server, Limits { message_bytes_max: 3, ..Limits::default() });
    assert_eq!(refusal_of(&mut server, b"\x82\x84"), too_large);
}

#[test]
fn the_default_limit_is_one_mebibyte() {
    assert_eq!(
        client().frame_bytes(&[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 0]),
        Ok(Some(10 + (1 << 20)))
    );
    let error = refusal(&[0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1]);
    assert_eq!(error, Error::MessageTooLarge { bytes: (1 << 20) + 1, bytes_max: 1 << 20 });
}

#[test]
fn the_limit_counts_all_fragments() {
    assert_eq!(decode_all(&mut limited(3), b"\x02\x02ab\x80\x01c"), ["Binary([97, 98, 99])"]);
    let too_large = Error::MessageTooLarge { bytes: 4, bytes_max: 3 };
    assert_eq!(refusal_of(&mut limited(3), b"\x02\x02ab\x80\x02"), too_large);
    // The bytes of a split character count too.
    assert_eq!(refusal_of(&mut limited(3), b"\x01\x03\xf0\x9f\x98\x80\x01"), too_large);
    let mut huge = b"\x02\x01a\x80\x7f".to_vec();
    huge.extend((u64::MAX >> 1).to_be_bytes());
    let error = refusal_of(&mut limited(3), &huge);
    assert_eq!(error, Error::MessageTooLarge { bytes: 1 << 63, bytes_max: 3 });
}

#[test]
fn the_limit_ignores_control_frames_and_applies_to_each_message() {
    assert_eq!(
        decode_all(&mut limited(1), b"\x02\x01a\x89\x02pp\x80\x00\x81\x01b\x88\x04\x03\xe8ok")
            .len(),
        4,
        "a ping, two messages and a close"
    );
}

#[test]
fn the_close_code_says_what_was_wrong() {
    assert_eq!(refusal(b"\x81\x01\xff").close_code(), 1007);
    assert_eq!(refusal(b"\x88\x03\x03\xe8\xff").close_code(), 1007);
    assert_eq!(refusal_of(&mut limited(0), b"\x82\x01").close_code(), 1009);
    assert_eq!(refusal(b"\xff").close_code(), 1002);
    assert_eq!(refusal(b"\x88\x02\x03\xed").close_code(), 1002);
}

#[test]
fn errors_say_what_was_wrong() {
    assert_eq!(refusal(b"\x83").to_string(), "opcode 0x3 is not assigned by RFC 6455");
    assert_eq!(
        refusal(b"\x09").to_string(),
        "a ping frame is fragmented; control frames must be final"
    );
    let error = refusal_of(&mut limited(3), b"\x82\x04");
    assert_eq!(
        error.to_string(),
        "a message of at least 4 bytes exceeds the limit of 3; send smaller messages"
    );
}

#[test]
fn an_incomplete_frame_is_left_untouched() {
    let mut whole = Vec::new();
    encode(&mut whole, Opcode::Text, "so far, só good".as_bytes(), Some(KEY));
    let mut decoder = server();
    for cut in 0..whole.len() {
        let mut input = whole[..cut].to_vec();
        let decoded = decoder.decode(&mut input).unwrap();
        assert_eq!((decoded.consumed, decoded.item), (0, None), "{cut} bytes");
        assert_eq!(input, whole[..cut], "{cut} bytes");
        let frame_bytes = if cut < 2 { None } else { Some(whole.len()) };
        assert_eq!(decoder.frame_bytes(&input), Ok(frame_bytes), "{cut} bytes");
    }
    let decoded = decoder.decode(&mut whole).unwrap();
    assert_eq!(decoded.item, Some(Item::Text("so far, só good")));
}

#[test]
fn bytes_after_the_frame_are_left_untouched() {
    let mut input = Vec::new();
    encode_fragment(&mut input, Opcode::Binary, false, b"one", Some(KEY));
    let first = input.len();
    encode_fragment(&mut input, Opcode::Continuation, true, b"two", Some(KEY));
    let behind = input[first..].to_vec();
    assert_eq!(server().decode(&mut input).unwrap().consumed, first);
    assert_eq!(input[first..], behind);
}

#[test]
fn a_decoder_is_small() {
    assert!(size_of::<Decoder>() <= 48, "{} bytes", size_of::<Decoder>());
}

#[test]
fn a_close_is_found_after_any_other_frames() {
    let mut wire = Vec::new();
    encode_fragment(&mut wire, Opcode::Text, false, b"\xff no text", Some(KEY));
    encode(&mut wire, Opcode::Ping, b"", Some(KEY));
    encode(&mut wire, Opcode::Binary, &[0x88; 300], Some(KEY));
    encode(&mut wire, Opcode::Binary, &[0x88; 70_000], Some(KEY));
    let front = wire.len();
    encode(&mut wire, Opcode::Close, b"\x03\xe8bye", Some(KEY));
    let back = wire.len();
    encode(&mut wire, Opcode::Ping, b"too late", Some(KEY));
    for piece in [1, 7, 1000, wire.len()] {
        let mut finder = server().into_close_finder();
        let found = wire.chunks(piece).position(|bytes| finder.push(bytes).unwrap());
        assert_eq!(found, Some((back - 1) / piece), "in pieces of {piece}");
    }
    let mut finder = server().into_close_finder();
    assert_eq!(finder.push(&wire[..front]), Ok(false));
    assert_eq!(client().into_close_finder().push(b"\x88\0"), Ok(true), "an empty Close");
}

#[test]
fn no_close_is_found_after_an_invalid_header() {
    assert_eq!(server().into_close_finder().push(b"\x82\x01"), Err(Error::MaskMissing));
    assert_eq!(
        client().into_close_finder().push(b"\xc2"),
        Err(Error::ReservedBits { bits: 0b100 })
    );
    assert_eq!(
        client().into_close_finder().push(b"\x82\x7f\x80\0\0\0\0\0\0\0"),
        Err(Error::LengthTopBit)
    );
}
