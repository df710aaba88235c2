//! Custom packets: what is written reads back, and anything else is rejected with the name of the
//! field.

use playfield_derive::Packet;
use playfield_wire::packet::{
    Big, Little, Order, Packet, PacketError, PacketErrorKind, PacketField, PacketReader,
    PacketWriter, Prefix,
};
use proptest::prelude::*;

#[derive(Packet, Clone, Debug, PartialEq)]
#[packet(opcode = 0x2A_u16)]
struct Login<'a> {
    id: i32,
    name: &'a str,
    #[packet(len = u8)]
    clan: String,
    #[packet(padded = 8)]
    tag: &'a str,
    level: Stats,
    scores: [i16; 4],
    #[packet(varint)]
    gold: u32,
    #[packet(varint)]
    debt: i64,
    is_new: bool,
    items: Vec<Item>,
    #[packet(len = varint)]
    key: &'a [u8],
    place: [f32; 2],
    raw: &'a [u8; 3],
    #[packet(rest)]
    rest: Vec<u8>,
}

#[derive(Packet, Clone, Copy, Debug, PartialEq)]
struct Stats(u8, u64);

#[derive(Packet, Clone, Debug, PartialEq)]
struct Item {
    of: u16,
    #[packet(padded = 4)]
    mark: String,
}

#[derive(Packet, Clone, Copy, Debug, PartialEq)]
#[packet(opcode = 0xFF_u8)]
struct Nothing;

fn login() -> Login<'static> {
    Login {
        id: -2,
        name: "ann",
        clan: "é".to_owned(),
        tag: "abcd",
        level: Stats(7, 8),
        scores: [1, -1, i16::MIN, i16::MAX],
        gold: 300,
        debt: -1,
        is_new: true,
        items: vec![
            Item { of: 1, mark: "x".to_owned() },
            Item { of: 0x0203, mark: "full".to_owned() },
        ],
        key: b"\x00\xFF",
        place: [1.5, -0.0],
        raw: b"raw",
        rest: b"the rest".to_vec(),
    }
}

fn written<O: Order>(packet: &Login<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.append::<O>(&mut out).unwrap();
    out
}

#[test]
fn every_byte_of_a_struct_is_where_it_should_be() {
    let little = b"\x2a\0 \xfe\xff\xff\xff \x03\0ann \x02\xc3\xa9 abcd\0\0\0\0 \x07 \x08\0\0\0\0\0\0\0 \
        \x01\0\xff\xff\0\x80\xff\x7f \xac\x02 \x01 \x01 \x02\0 \x01\0x\0\0\0 \x03\x02full \x02\0\xff \
        \0\0\xc0\x3f\0\0\0\x80 raw the~rest";
    let plain: Vec<u8> = little
        .iter()
        .filter(|byte| **byte != b' ')
        .map(|byte| if *byte == b'~' { b' ' } else { *byte })
        .collect();
    assert_eq!(written::<Little>(&login()), plain);
    assert_eq!(Login::parse::<Little>(&plain), Ok(login()));
    let big = written::<Big>(&login());
    assert_eq!(&big[..11], b"\0\x2a\xff\xff\xff\xfe\0\x03ann");
    assert_eq!(Login::parse::<Big>(&big), Ok(login()));
}

#[test]
fn the_minimum_size_of_a_struct_is_known() {
    assert_eq!(Stats::BYTES_MIN, 9);
    assert_eq!(Item::BYTES_MIN, 6);
    assert_eq!(Login::BYTES_MIN, 4 + 2 + 1 + 8 + 9 + 8 + 1 + 1 + 1 + 2 + 1 + 8 + 3);
    assert_eq!(Nothing::BYTES_MIN, 0);
}

#[derive(Packet, Clone, Debug, PartialEq)]
struct Tail<'a> {
    kind: u8,
    #[packet(rest)]
    body: &'a [u8],
}

#[derive(Packet, Clone, Debug, PartialEq)]
struct Boxed<'a>(u8, Tail<'a>);

#[derive(Packet, Clone, Debug, PartialEq)]
#[packet(opcode = -2_i8)]
struct Nested<'a> {
    to: [u16; 1],
    last: Boxed<'a>,
}

#[test]
fn a_struct_that_takes_the_rest_may_be_the_last_field_of_another() {
    let nested = Nested { to: [1], last: Boxed(2, Tail { kind: 3, body: b"rest" }) };
    let mut out = Vec::new();
    nested.append::<Little>(&mut out).unwrap();
    assert_eq!(out, b"\xfe\x01\0\x02\x03rest");
    assert_eq!(Nested::parse::<Little>(&out), Ok(nested));
    const {
        assert!(Tail::OPEN_ENDED && Boxed::OPEN_ENDED && Nested::OPEN_ENDED && Login::OPEN_ENDED);
        assert!(!Item::OPEN_ENDED && !Nothing::OPEN_ENDED && !<Vec<u8>>::OPEN_ENDED);
        assert!(<[Tail<'_>; 2]>::ELEMENTS_OPEN_ENDED && <Vec<Vec<Boxed<'_>>>>::ELEMENTS_OPEN_ENDED);
    }
}

#[test]
fn every_truncation_is_rejected_at_its_field() {
    let whole = Login { rest: Vec::new(), ..login() };
    let bytes = written::<Little>(&whole);
    let mut fields = Vec::new();
    for end in 0..bytes.len() {
        let error = Login::parse::<Little>(&bytes[..end]).unwrap_err();
        assert!(error.offset() <= end, "{error}");
        assert!(
            matches!(
                error.kind(),
                PacketErrorKind::Truncated { .. } | PacketErrorKind::PastEnd { .. }
            ),
            "{end}: {error}"
        );
        if fields.last() != Some(&error.field()) {
            fields.push(error.field());
        }
    }
    let names = "opcode Login.id Login.name Login.clan Login.tag Stats.0 Stats.1 Login.scores Login.gold Login.debt \
        Login.is_new Login.items Login.key Login.place Login.raw";
    assert_eq!(fields.join(" "), names);
}

#[test]
fn errors_name_the_byte_the_field_and_what_to_expect() {
    let say = |bytes: &[u8]| Login::parse::<Little>(bytes).unwrap_err().to_string();
    assert_eq!(say(b"\x2b\0"), "at byte 0, field opcode: expected the packet 0x2a, found 0x2b");
    assert_eq!(say(b"\x2a\0\x01"), "at byte 2, field Login.id: i32 was expected, 1 bytes remain");
    assert_eq!(
        say(b"\x2a\0\0\0\0\0\x05\0abc"),
        "at byte 6, field Login.name: a length of 5 was announced, 3 bytes remain"
    );
    assert_eq!(
        say(b"\x2a\0\0\0\0\0\x02\0a\xff"),
        "at byte 9, field Login.name: a text is not UTF-8"
    );
    assert_eq!(
        say(b"\x2a\0\0\0\0\0\0\0\0ab\0c\0\0\0\0"),
        "at byte 12, field Login.tag: a text must be padded with zeros, not 0x63"
    );
    let mut bytes = written::<Little>(&login());
    let is_new = 2 + 4 + 5 + 3 + 8 + 9 + 8 + 2 + 1;
    bytes[is_new] = 2;
    assert_eq!(
        say(&bytes),
        format!("at byte {is_new}, field Login.is_new: a bool is 0 or 1, not 2")
    );
    assert_eq!(
        Nothing::parse::<Little>(b"\xff\0").unwrap_err().to_string(),
        "at byte 1, field opcode: the end was expected, 1 bytes remain"
    );
}

/// Input that mpacket accepts or crashes on: reads past the end, negative lengths, lengths past
/// 32,767, and texts too long for their prefix.
#[test]
fn malformed_lengths_and_numbers_are_rejected() {
    let mut reader = PacketReader::<Little>::new(b"\x01");
    assert_eq!(reader.u8(), Ok(1));
    let missing = PacketErrorKind::Truncated { expected: "i64", remain: 0 };
    assert_eq!(reader.at("score").i64(), Err(PacketError::new(1, "score", missing)));

    for length in [0x8000_u16, 0xFFFF] {
        let mut bytes = length.to_le_bytes().to_vec();
        let past = PacketErrorKind::PastEnd { announced: length.into(), remain: 0 };
        assert_eq!(
            PacketReader::<Little>::new(&bytes).text(Prefix::U16),
            Err(PacketError::new(0, "", past))
        );
        bytes.resize(2 + usize::from(length), b'a');
        assert_eq!(
            PacketReader::<Little>::new(&bytes).text(Prefix::U16).map(str::len),
            Ok(length.into())
        );
    }

    for (prefix, max) in [(Prefix::U8, 255), (Prefix::U16, 65_535)] {
        let text = "a".repeat(max + 1);
        let mut out = b"before".to_vec();
        let mut writer = PacketWriter::<Little>::new(&mut out);
        assert_eq!(writer.text(prefix, &text[1..]), Ok(()));
        let bytes = writer.bytes_written();
        let error = writer.at("name").text(prefix, &text).unwrap_err();
        let kind = PacketErrorKind::TooLong { length: max + 1, max };
        assert_eq!(error, PacketError::new(bytes, "name", kind));
        assert_eq!(out.len(), 6 + bytes, "nothing was written");
    }
}

#[test]
fn a_packet_that_can_not_be_written_leaves_the_buffer_unchanged() {
    let mut out = b"before".to_vec();
    for (packet, kind) in [
        (
            Login { tag: "more than eight", ..login() },
            PacketErrorKind::TooLong { length: 15, max: 8 },
        ),
        (Login { tag: "a\0b", ..login() }, PacketErrorKind::ZeroInText),
        (
            Login { clan: "c".repeat(256), ..login() },
            PacketErrorKind::TooLong { length: 256, max: 255 },
        ),
    ] {
        assert_eq!(packet.append::<Big>(&mut out).map_err(|error| error.kind()), Err(kind));
        assert_eq!(out, b"before");
    }
}

/// Memory for lists is not reserved before their elements have arrived.
#[test]
fn a_count_is_checked_against_the_bytes_left() {
    #[derive(Packet, Debug, PartialEq)]
    #[packet(opcode = 1_u8)]
    struct Lists {
        #[packet(len = u32)]
        items: Vec<Item>,
    }
    let error = Lists::parse::<Little>(b"\x01\x03\0\0\0aaaaaabbbbbbccccc").unwrap_err();
    assert_eq!(
        error,
        PacketError::new(1, "Lists.items", PacketErrorKind::PastEnd { announced: 3, remain: 17 })
    );
}

#[test]
fn numbers_are_reserved_and_set_later() {
    let mut out = b"before".to_vec();
    let mut writer = PacketWriter::<Big>::new(&mut out);
    let length = writer.later::<u16>();
    let sum = writer.later::<u32>();
    writer.raw(b"body");
    let bytes = writer.bytes_since(&length);
    writer.set(length, bytes as u16);
    writer.set(sum, 0x0102_0304);
    assert_eq!(out, b"before\0\x08\x01\x02\x03\x04body");
}

/// A value of any kind that a packet can hold.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
    Bool(bool),
    Varint(u64),
    Zigzag(i64),
    Raw(Vec<u8>),
    Bytes(Prefix, Vec<u8>),
    Text(Prefix, String),
    Padded(String, usize),
}

fn part() -> impl Strategy<Value = Part> {
    let prefix =
        prop_oneof![Just(Prefix::U8), Just(Prefix::U16), Just(Prefix::U32), Just(Prefix::Varint)];
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        any::<u8>().prop_map(Part::U8),
        any::<u16>().prop_map(Part::U16),
        any::<u32>().prop_map(Part::U32),
        any::<u64>().prop_map(Part::U64),
        any::<i8>().prop_map(Part::I8),
        any::<i16>().prop_map(Part::I16),
        any::<i32>().prop_map(Part::I32),
        any::<i64>().prop_map(Part::I64),
        any::<u32>().prop_map(Part::F32),
        any::<u64>().prop_map(Part::F64),
        any::<bool>().prop_map(Part::Bool),
        any::<u64>().prop_map(Part::Varint),
        any::<i64>().prop_map(Part::Zigzag),
        bytes.clone().prop_map(Part::Raw),
        (prefix.clone(), bytes).prop_map(|(prefix, bytes)| Part::Bytes(prefix, bytes)),
        (prefix, "\\PC{0,60}").prop_map(|(prefix, text)| Part::Text(prefix, text)),
        ("[^\0]{0,20}", 0..9_usize).prop_map(|(text, more)| {
            let width = text.len() + more;
            Part::Padded(text, width)
        }),
    ]
}

fn write<O: Order>(part: &Part, packet: &mut PacketWriter<'_, O>) {
    match part {
        Part::U8(value) => packet.u8(*value),
        Part::U16(value) => packet.u16(*value),
        Part::U32(value) => packet.u32(*value),
        Part::U64(value) => packet.u64(*value),
        Part::I8(value) => packet.i8(*value),
        Part::I16(value) => packet.i16(*value),
        Part::I32(value) => packet.i32(*value),
        Part::I64(value) => packet.i64(*value),
        Part::F32(bits) => packet.f32(f32::from_bits(*bits)),
        Part::F64(bits) => packet.f64(f64::from_bits(*bits)),
        Part::Bool(value) => packet.bool(*value),
        Part::Varint(value) => packet.varint(*value),
        Part::Zigzag(value) => packet.zigzag(*value),
        Part::Raw(bytes) => packet.raw(bytes),
        Part::Bytes(prefix, bytes) => packet.bytes(*prefix, bytes).unwrap(),
        Part::Text(prefix, text) => packet.text(*prefix, text).unwrap(),
        Part::Padded(text, width) => packet.padded(text, *width).unwrap(),
    }
}

/// Reads one part.
fn read<O: Order>(part: &Part, packet: &mut PacketReader<'_, O>) -> Result<Part, PacketError> {
    Ok(match part {
        Part::U8(_) => Part::U8(packet.u8()?),
        Part::U16(_) => Part::U16(packet.u16()?),
        Part::U32(_) => Part::U32(packet.u32()?),
        Part::U64(_) => Part::U64(packet.u64()?),
        Part::I8(_) => Part::I8(packet.i8()?),
        Part::I16(_) => Part::I16(packet.i16()?),
        Part::I32(_) => Part::I32(packet.i32()?),
        Part::I64(_) => Part::I64(packet.i64()?),
        Part::F32(_) => Part::F32(packet.f32()?.to_bits()),
        Part::F64(_) => Part::F64(packet.f64()?.to_bits()),
        Part::Bool(_) => Part::Bool(packet.bool()?),
        Part::Varint(_) => Part::Varint(packet.varint()?),
        Part::Zigzag(_) => Part::Zigzag(packet.zigzag()?),
        Part::Raw(bytes) => Part::Raw(packet.raw(bytes.len())?.to_vec()),
        Part::Bytes(prefix, _) => Part::Bytes(*prefix, packet.bytes(*prefix)?.to_vec()),
        Part::Text(prefix, _) => Part::Text(*prefix, packet.text(*prefix)?.to_owned()),
        Part::Padded(_, width) => Part::Padded(packet.padded(*width)?.to_owned(), *width),
    })
}

fn come_back<O: Order>(parts: &[Part]) -> Result<(), TestCaseError> {
    let mut bytes = Vec::new();
    let mut writer = PacketWriter::<O>::new(&mut bytes);
    parts.iter().for_each(|part| write(part, &mut writer));
    let mut reader = PacketReader::<O>::new(&bytes);
    for part in parts {
        prop_assert_eq!(&read(part, &mut reader), &Ok(part.clone()));
    }
    prop_assert_eq!(reader.finish(), Ok(()));
    // If the packet is cut anywhere, one of the reads fails, and none before it returns another
    // value.
    for end in 0..bytes.len() {
        let mut reader = PacketReader::<O>::new(&bytes[..end]);
        let failed = parts.iter().find_map(|part| match read(part, &mut reader) {
            Ok(value) => {
                assert_eq!(&value, part);
                None
            }
            Err(error) => Some(error),
        });
        let error = failed.expect("the last part is cut");
        prop_assert!(error.offset() <= end, "{} in {} bytes", error, end);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_comes_back(parts in proptest::collection::vec(part(), 1..12), big in any::<bool>()) {
        if big { come_back::<Big>(&parts)? } else { come_back::<Little>(&parts)? }
    }

    #[test]
    fn arbitrary_bytes_are_a_packet_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        parts in proptest::collection::vec(part(), 1..12),
    ) {
        let mut reader = PacketReader::<Little>::new(&bytes);
        for part in &parts {
            if let Err(error) = read(part, &mut reader) {
                prop_assert!(error.offset() <= bytes.len());
                break;
            }
        }
        // A struct that could be read is written as the same bytes.
        let mut packet = b"\x2a\0".to_vec();
        packet.extend_from_slice(&bytes);
        if let Ok(login) = Login::parse::<Big>(&packet) {
            let mut out = Vec::new();
            login.append::<Big>(&mut out).unwrap();
            prop_assert_eq!(out, packet);
        }
    }
}

/// Names that a user of packets may have in scope.
mod shadowing {
    use playfield_derive::Packet;

    #[derive(Packet, Default, Debug, PartialEq)]
    #[packet(opcode = 7)]
    pub(super) struct Order {
        pub packet: PacketWriter,
        #[packet(len = u8)]
        pub value: ::std::vec::Vec<u8>,
    }

    #[derive(Packet, Default, Debug, PartialEq)]
    pub(super) struct PacketWriter(pub u8);

    #[allow(dead_code, reason = "only its name matters")]
    type Result = ();
    #[allow(dead_code, reason = "only its name matters")]
    struct PacketError;
    #[allow(dead_code, non_snake_case, reason = "only its name matters")]
    fn Ok() {}
}

#[test]
fn generated_names_do_not_collide_with_the_users() {
    let packet = shadowing::Order { packet: shadowing::PacketWriter(1), value: vec![2] };
    let mut bytes = Vec::new();
    PacketField::write(&packet, &mut PacketWriter::<Big>::new(&mut bytes)).unwrap();
    assert_eq!(bytes, [1, 1, 2]);
    let mut reader = PacketReader::<Big>::new(&bytes);
    assert_eq!(shadowing::Order::read(&mut reader), Ok(packet));
}
