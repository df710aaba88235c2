//! A decoder that passes fragments on gives them as they were sent.

use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Direction, Error, Item, Limits, Opcode, Role,
    encode_fragment,
};

/// The items of `input`, and whether each ends its message.
fn pieces(decoder: &mut Decoder, input: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, Error> {
    let mut input = input.to_vec();
    let (mut used, mut found) = (0, Vec::new());
    while used < input.len() {
        let decoded = decoder.decode(&mut input[used..])?;
        assert!(decoded.consumed > 0, "the input ends with a frame");
        used += decoded.consumed;
        match decoded.item {
            Some(Item::Text(text)) => found.push((text.as_bytes().to_vec(), decoded.fin)),
            Some(Item::Binary(bytes)) => found.push((bytes.to_vec(), decoded.fin)),
            Some(_) | None => {}
        }
    }
    Ok(found)
}

fn passing(message_bytes_max: usize) -> Decoder {
    let limits = Limits { message_bytes_max, ..Limits::default() };
    Decoder::new(Role::Client, limits).passing_fragments()
}

fn frames(kind: Opcode, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let opcode = if place == 0 { kind } else { Opcode::Continuation };
        encode_fragment(&mut out, opcode, place + 1 == parts.len(), part, None);
    }
    out
}

#[test]
fn each_fragment_is_an_item() {
    let mut decoder = passing(100);
    let mut input = frames(Opcode::Binary, &[b"ab", b"", b"c"]);
    input.extend(frames(Opcode::Binary, &[b"whole"]));
    let expected: [(&[u8], bool); 4] =
        [(b"ab", false), (b"", false), (b"c", true), (b"whole", true)];
    let expected = expected.map(|(bytes, fin)| (bytes.to_vec(), fin));
    assert_eq!(pieces(&mut decoder, &input).unwrap(), expected);
    assert!(decoder.buffered_bytes() < 100);
}

#[test]
fn a_split_character_is_in_the_later_fragment() {
    let input = frames(Opcode::Text, &[b"a\xe2", b"\x82", b"\xacb"]);
    let found = pieces(&mut passing(100), &input).unwrap();
    let texts: Vec<_> =
        found.iter().map(|(bytes, _)| std::str::from_utf8(bytes).unwrap()).collect();
    assert_eq!(texts, ["a", "", "\u{20ac}b"]);
    let cut = frames(Opcode::Text, &[b"a\xe2", b"\x82"]);
    assert_eq!(pieces(&mut passing(100), &cut), Err(Error::InvalidText));
}

#[test]
fn control_frames_may_come_between() {
    let mut input = Vec::new();
    encode_fragment(&mut input, Opcode::Binary, false, b"a", None);
    encode_fragment(&mut input, Opcode::Ping, true, b"ping", None);
    encode_fragment(&mut input, Opcode::Continuation, true, b"b", None);
    let found = pieces(&mut passing(100), &input).unwrap();
    assert_eq!(found, [(b"a".to_vec(), false), (b"b".to_vec(), true)]);
}

#[test]
fn the_limit_is_that_of_the_whole_message() {
    for kind in [Opcode::Text, Opcode::Binary] {
        let fits = frames(kind, &[b"abc", b"de", b"f"]);
        assert_eq!(pieces(&mut passing(6), &fits).unwrap().len(), 3);
        let error = pieces(&mut passing(5), &fits).unwrap_err();
        assert_eq!(error, Error::MessageTooLarge { bytes: 6, bytes_max: 5 });
    }
}

#[test]
fn compressed_fragments_are_decompressed_as_they_arrive() {
    let plain: Vec<u8> =
        (0..10_000).flat_map(|number| format!("{number}, ").into_bytes()).collect();
    for context in [false, true] {
        let direction = Direction { context_takeover: context, window_bits: 15 };
        let agreed = Deflate { server: direction, client: direction };
        let limits = Limits { message_bytes_max: plain.len(), ..Limits::default() };
        let mut decoder = Decoder::with_deflate(Role::Client, limits, &agreed).passing_fragments();
        let mut deflater = Deflater::new(Role::Server, &agreed, DeflaterOptions::default());
        for _ in 0..3 {
            let mut whole = Vec::new();
            deflater.encode(&mut whole, Opcode::Binary, &plain, None);
            assert!(whole[0] & 0x40 != 0, "it is compressed");
            // Its payload, in fragments of which the first says that they are compressed.
            let payload = &whole[if whole[1] == 127 { 10 } else { 4 }..];
            let mut input = Vec::new();
            let parts: Vec<&[u8]> = payload.chunks(payload.len() / 4 + 1).collect();
            for (place, part) in parts.iter().enumerate() {
                let begin = input.len();
                let opcode = if place == 0 { Opcode::Binary } else { Opcode::Continuation };
                encode_fragment(&mut input, opcode, place + 1 == parts.len(), part, None);
                input[begin] |= if place == 0 { 0x40 } else { 0 };
            }
            let found = pieces(&mut decoder, &input).unwrap();
            assert_eq!(found.len(), 4);
            assert!(found.iter().all(|(bytes, _)| !bytes.is_empty()), "each brings something");
            let joined: Vec<u8> = found.into_iter().flat_map(|(bytes, _)| bytes).collect();
            assert!(joined == plain);
        }
    }
}
