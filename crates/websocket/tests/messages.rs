//! Messages arrive as sent, however they are fragmented, masked and split. No input causes a panic.

use playfield_websocket::{
    Decoder, Error, Item, Limits, Mask, Opcode, Role, encode, encode_close, encode_fragment,
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{Index, select},
};

/// An item that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

impl From<Item<'_>> for Owned {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Text(text) => Self::Text(text.to_owned()),
            Item::Binary(bytes) => Self::Binary(bytes.to_owned()),
            Item::Ping(bytes) => Self::Ping(bytes.to_owned()),
            Item::Pong(bytes) => Self::Pong(bytes.to_owned()),
            Item::Close(close) => {
                Self::Close(close.map(|close| (close.code, close.reason.to_owned())))
            }
        }
    }
}

/// A message, its fragment boundaries, and the control frames sent before each fragment.
#[derive(Clone, Debug)]
struct Sent {
    message: Owned,
    cuts: Vec<Index>,
    controls: Vec<Vec<Owned>>,
}

fn message() -> impl Strategy<Value = Owned> {
    prop_oneof![
        4 => "\\PC{0,40}".prop_map(Owned::Text),
        4 => vec(any::<u8>(), 0..300).prop_map(Owned::Binary),
        1 => (60_000..70_000usize, any::<u8>()).prop_map(|(length, byte)| Owned::Binary(vec![byte; length])),
    ]
}

fn control() -> impl Strategy<Value = Owned> {
    let payload = || vec(any::<u8>(), 0..=125);
    prop_oneof![payload().prop_map(Owned::Ping), payload().prop_map(Owned::Pong)]
}

fn sent() -> impl Strategy<Value = Sent> {
    (message(), vec(any::<Index>(), 0..6), vec(vec(control(), 0..3), 7))
        .prop_map(|(message, cuts, controls)| Sent { message, cuts, controls })
}

fn close() -> impl Strategy<Value = Option<Owned>> {
    let code = prop_oneof![1000..=1003u16, 1007..=1014u16, 3000..=4999u16];
    option::of(option::of((code, "\\PC{0,20}")).prop_map(Owned::Close))
}

/// Writes everything, using the masks of `keys` in turn. Returns the bytes, and the items in the
/// order in which they are completed.
fn write(
    all: &[Sent],
    close: Option<&Owned>,
    mut next_mask: impl FnMut() -> Mask,
) -> (Vec<u8>, Vec<Owned>) {
    let mut wire = Vec::new();
    let mut items = Vec::new();
    for sent in all {
        let (first, bytes) = match &sent.message {
            Owned::Text(text) => (Opcode::Text, text.as_bytes()),
            Owned::Binary(bytes) => (Opcode::Binary, &bytes[..]),
            other => unreachable!("{other:?} is not a message"),
        };
        let mut cuts: Vec<usize> = sent.cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut start = 0;
        for (index, &end) in cuts.iter().enumerate() {
            for control in &sent.controls[index] {
                match control {
                    Owned::Ping(payload) => encode(&mut wire, Opcode::Ping, payload, next_mask()),
                    Owned::Pong(payload) => encode(&mut wire, Opcode::Pong, payload, next_mask()),
                    other => unreachable!("{other:?} is not sent between fragments"),
                }
                items.push(control.clone());
            }
            let opcode = if index == 0 { first } else { Opcode::Continuation };
            encode_fragment(
                &mut wire,
                opcode,
                index + 1 == cuts.len(),
                &bytes[start..end],
                next_mask(),
            );
            start = end;
        }
        items.push(sent.message.clone());
    }
    if let Some(Owned::Close(close)) = close {
        let (code, reason) = close.as_ref().map_or((1005, ""), |(code, reason)| (*code, reason));
        encode_close(&mut wire, code, reason, next_mask());
        items.push(Owned::Close(close.clone()));
    }
    (wire, items)
}

/// Receives the bytes in pieces that end at `cuts`. As on a connection, unconsumed bytes are kept.
fn receive(
    decoder: &mut Decoder,
    wire: &[u8],
    cuts: &[Index],
) -> Result<(Vec<Owned>, usize), Error> {
    receive_with(decoder, wire, cuts, |_| {})
}

/// Does `between` after each piece.
fn receive_with(
    decoder: &mut Decoder,
    wire: &[u8],
    cuts: &[Index],
    between: impl Fn(&mut Decoder),
) -> Result<(Vec<Owned>, usize), Error> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(wire.len());
    let mut buffer = Vec::new();
    let mut items = Vec::new();
    let mut start = 0;
    for end in cuts {
        buffer.extend_from_slice(&wire[start..end]);
        start = end;
        let mut used = 0;
        loop {
            let frame_bytes = decoder.frame_bytes(&buffer[used..])?;
            let left = buffer.len() - used;
            let decoded = decoder.decode(&mut buffer[used..])?;
            items.extend(decoded.item.map(Owned::from));
            assert!(decoded.consumed <= left, "no more is consumed than there is");
            if decoded.consumed == 0 {
                assert_eq!(decoded.item, None, "an item consumes bytes");
                assert!(frame_bytes.is_none_or(|bytes| bytes > left), "a whole frame is consumed");
                break;
            }
            assert!(
                frame_bytes.is_none_or(|bytes| bytes == decoded.consumed),
                "a frame is consumed whole"
            );
            used += decoded.consumed;
        }
        buffer.drain(..used);
        between(decoder);
    }
    Ok((items, buffer.len()))
}

/// Characters of every length, and bytes that complete or break one depending on their neighbors.
const TEXT_PIECES: &[&[u8]] = &[
    b"\xf0\x9f\x98\x80",
    b"\xe2\x82\xac",
    b"\xc3\xa9",
    b"a",
    b"\xed",
    b"\xa0",
    b"\x80",
    b"\xf4",
    b"\xe0",
    b"\xc2",
];

proptest! {
    #[test]
    fn messages_arrive_as_sent(
        all in vec(sent(), 0..6),
        close in close(),
        keys in vec(any::<[u8; 4]>(), 1..5),
        cuts in vec(any::<Index>(), 0..20),
    ) {
        for role in [Role::Server, Role::Client] {
            let mut keys = keys.iter().cycle();
            let (wire, expected) = write(&all, close.as_ref(), || match role {
                Role::Server => keys.next().copied(),
                Role::Client => None,
            });
            let mut decoder = Decoder::new(role, Limits::default());
            let (items, left) = receive(&mut decoder, &wire, &cuts).unwrap();
            prop_assert_eq!(&items, &expected);
            prop_assert_eq!(left, 0);

            let new = || Decoder::new(role, Limits::default());
            let renew = |decoder: &mut Decoder| {
                if decoder.is_idle() {
                    *decoder = new();
                }
            };
            let (items, _) = receive_with(&mut new(), &wire, &cuts, renew).unwrap();
            prop_assert_eq!(&items, &expected, "an idle decoder can be replaced");
        }
    }

    #[test]
    fn messages_arrive_as_sent_byte_by_byte(sent in sent(), key in any::<[u8; 4]>()) {
        prop_assume!(!matches!(&sent.message, Owned::Binary(bytes) if bytes.len() > 1000));
        let (wire, expected) = write(&[sent], None, || Some(key));
        let mut decoder = Decoder::new(Role::Server, Limits::default());
        let mut buffer = Vec::new();
        let mut items = Vec::new();
        for &byte in &wire {
            buffer.push(byte);
            let decoded = decoder.decode(&mut buffer).unwrap();
            items.extend(decoded.item.map(Owned::from));
            if decoded.consumed != 0 {
                prop_assert_eq!(decoded.consumed, buffer.len());
                buffer.clear();
            }
        }
        prop_assert_eq!(items, expected);
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        wire in vec(any::<u8>(), 0..400),
        cuts in vec(any::<Index>(), 0..8),
        message_bytes_max in prop_oneof![0..300usize, Just(usize::MAX)],
    ) {
        for role in [Role::Server, Role::Client] {
            let mut decoder = Decoder::new(role, Limits { message_bytes_max, ..Limits::default() });
            if let Err(error) = receive(&mut decoder, &wire, &cuts) {
                prop_assert!([1002, 1007, 1009].contains(&error.close_code()));
            }
        }
    }

    /// Bytes that resemble frames get further than arbitrary ones.
    #[test]
    fn arbitrary_frames_do_no_harm(
        frames in vec((any::<u8>(), any::<u8>(), vec(any::<u8>(), 0..12)), 0..12),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let mut wire = Vec::new();
        for (first, second, rest) in frames {
            wire.extend([first & 0x8F, second & 0x0F]);
            wire.extend(rest);
        }
        let whole = receive(&mut Decoder::new(Role::Client, Limits::default()), &wire, &[]);
        let cut = receive(&mut Decoder::new(Role::Client, Limits::default()), &wire, &cuts);
        // The split changes nothing, except whether bytes are left over after an error.
        prop_assert_eq!(whole, cut);
    }

    /// A fragmented text is accepted exactly if the whole text is valid UTF-8.
    #[test]
    fn fragmented_text_follows_the_rules_of_whole_text(
        pieces in vec(select(TEXT_PIECES), 0..8),
        cuts in vec(any::<Index>(), 0..8),
    ) {
        let bytes = pieces.concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut wire = Vec::new();
        let mut start = 0;
        for (index, &end) in cuts.iter().enumerate() {
            let opcode = if index == 0 { Opcode::Text } else { Opcode::Continuation };
            encode_fragment(&mut wire, opcode, index + 1 == cuts.len(), &bytes[start..end], None);
            start = end;
        }
        let received = receive(&mut Decoder::new(Role::Client, Limits::default()), &wire, &[]);
        match String::from_utf8(bytes) {
            Ok(text) => prop_assert_eq!(received, Ok((vec![Owned::Text(text)], 0))),
            Err(_) => prop_assert_eq!(received, Err(Error::InvalidText)),
        }
    }
}

#[test]
fn invalid_text_is_rejected_before_its_frame_is_complete() {
    for (role, mask) in [(Role::Client, None), (Role::Server, Some([1, 2, 3, 4]))] {
        let long = "é€😀".repeat(200);
        for (fragments, wrong_at) in
            [(vec![""], 1_800 + 5), (vec!["before ", "\u{20ac}"], 1_800 + 5)]
        {
            let mut input = Vec::new();
            let mut decoder = Decoder::new(role, Limits::default());
            for (place, fragment) in fragments.iter().enumerate() {
                let opcode = if place == 0 { Opcode::Text } else { Opcode::Continuation };
                encode_fragment(&mut input, opcode, false, fragment.as_bytes(), mask);
            }
            let frames = input.len();
            let text = [long.as_bytes(), b"right\xFF", &[b'x'; 100]].concat();
            encode_fragment(&mut input, Opcode::Continuation, true, &text, mask);
            let header = input.len() - frames - text.len();
            let mut arrived = input[..frames].to_vec();
            while !arrived.is_empty() {
                let consumed = decoder.decode(&mut arrived).unwrap().consumed;
                arrived.drain(..consumed);
            }
            for place in 0..header + wrong_at {
                arrived.push(input[frames + place]);
                let decoded = decoder
                    .decode(&mut arrived)
                    .unwrap_or_else(|error| panic!("byte {place}: {error}"));
                assert_eq!((decoded.consumed, decoded.item), (0, None));
            }
            assert_eq!(
                arrived,
                input[frames..frames + header + wrong_at],
                "the input is left unchanged"
            );
            arrived.push(input[frames + header + wrong_at]);
            assert_eq!(decoder.decode(&mut arrived), Err(Error::InvalidText));
        }
    }
}
