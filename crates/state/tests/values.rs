//! Whole values with derived code survive a round trip in every format.

use std::collections::BTreeMap;

use playfield_state::{Bytes, Data, Format, PlayerId};
use proptest::prelude::*;

#[derive(Data, Clone, PartialEq, Debug)]
struct Named {
    flag: bool,
    small: u8,
    signed: i8,
    wide: u64,
    negative: i64,
    single: f32,
    double: f64,
    text: String,
    player: PlayerId,
    maybe: Option<u16>,
    many: Vec<i32>,
    table: BTreeMap<String, Pair>,
    raw: Bytes,
    r#type: Choice,
}

#[derive(Data, Clone, PartialEq, Debug)]
struct Pair(i16, String);

#[derive(Data, Clone, PartialEq, Debug)]
struct Wrapped(u32);

#[derive(Data, Clone, PartialEq, Debug)]
struct Unit;

#[derive(Data, Clone, PartialEq, Debug)]
struct Nothing {}

#[derive(Data, Clone, PartialEq, Debug)]
enum Choice {
    Plain,
    One(Wrapped),
    Two(u8, Option<String>),
    Named { x: i32, r#in: Unit },
    Empty(),
    Hollow {},
}

#[derive(Data, Clone, PartialEq, Debug)]
enum Single {
    Only { value: u8 },
}

fn packed(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.write(Format::Packed, &mut out);
    out
}

fn json(value: &impl Data) -> String {
    let mut out = Vec::new();
    value.write(Format::Json, &mut out);
    String::from_utf8(out).unwrap()
}

fn msgpack(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.write(Format::Msgpack, &mut out);
    out
}

#[track_caller]
fn there_and_back<T: Data>(value: &T) {
    for format in Format::ALL {
        let mut out = Vec::new();
        value.write(format, &mut out);
        let back = T::read(format, &out).unwrap_or_else(|error| panic!("{error} in {out:02x?}"));
        assert!(value.same(&back), "{format}: {out:02x?}");
    }
}

#[test]
fn each_shape_has_its_bytes_and_its_json() {
    assert_eq!((packed(&Unit), json(&Unit)), (vec![0], "null".into()));
    assert_eq!((packed(&Nothing {}), json(&Nothing {})), (vec![0], "null".into()));
    assert_eq!((packed(&()), json(&())), (vec![0], "null".into()));
    assert_eq!((packed(&Wrapped(300)), json(&Wrapped(300))), (vec![0xac, 2], "300".into()));
    let pair = Pair(-2, "é".into());
    assert_eq!((packed(&pair), json(&pair)), (vec![3, 2, 0xc3, 0xa9], r#"[-2,"é"]"#.into()));
    let choices = [
        (Choice::Plain, vec![0], r#""Plain""#),
        (Choice::One(Wrapped(7)), vec![1, 7], r#"{"One":7}"#),
        (Choice::Two(1, None), vec![2, 1, 0], r#"{"Two":[1,null]}"#),
        (Choice::Named { x: -1, r#in: Unit }, vec![3, 1, 0], r#"{"Named":{"x":-1,"in":null}}"#),
        (Choice::Empty(), vec![4], r#""Empty""#),
        (Choice::Hollow {}, vec![5], r#""Hollow""#),
    ];
    for (choice, bytes, text) in choices {
        assert_eq!((packed(&choice), json(&choice)), (bytes, text.into()));
        there_and_back(&choice);
    }
    assert_eq!(json(&Single::Only { value: 1 }), r#"{"Only":{"value":1}}"#);
    there_and_back(&Single::Only { value: 1 });
    [Unit].iter().for_each(there_and_back);
    there_and_back(&Nothing {});
}

#[test]
fn each_shape_has_its_messagepack() {
    let cases: [(Vec<u8>, &[u8]); 14] = [
        (msgpack(&Unit), b"\xc0"),
        (msgpack(&Nothing {}), b"\xc0"),
        (msgpack(&Wrapped(300)), b"\xcd\x01\x2c"),
        (msgpack(&Pair(-2, "é".into())), b"\x92\xfe\xa2\xc3\xa9"),
        (msgpack(&Choice::Plain), b"\xa5Plain"),
        (msgpack(&Choice::One(Wrapped(7))), b"\x81\xa3One\x07"),
        (msgpack(&Choice::Two(1, None)), b"\x81\xa3Two\x92\x01\xc0"),
        (msgpack(&Choice::Named { x: -1, r#in: Unit }), b"\x81\xa5Named\x82\xa1x\xff\xa2in\xc0"),
        (msgpack(&1.5_f32), b"\xca\x3f\xc0\0\0"),
        (msgpack(&f64::NAN), b"\xcb\x7f\xf8\0\0\0\0\0\0"),
        (msgpack(&i64::MIN), b"\xd3\x80\0\0\0\0\0\0\0"),
        (msgpack(&PlayerId(u64::MAX)), b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff"),
        (msgpack(&Bytes(vec![0xff, 0])), b"\xc4\x02\xff\0"),
        (msgpack(&BTreeMap::from([(-7_i8, true)])), b"\x81\xa2-7\xc3"),
    ];
    for (written, bytes) in cases {
        assert_eq!(written.escape_ascii().to_string(), bytes.escape_ascii().to_string());
    }
}

#[test]
fn messagepack_of_other_senders_is_read() {
    fn read<T: Data>(bytes: &[u8]) -> Result<T, String> {
        T::read(Format::Msgpack, bytes).map_err(|error| error.to_string())
    }
    // Integers of any fitting width and sign, and as texts.
    for seven in [
        &b"\x07"[..],
        b"\xcc\x07",
        b"\xcf\0\0\0\0\0\0\0\x07",
        b"\xd0\x07",
        b"\xd2\0\0\0\x07",
        b"\xa17",
    ] {
        assert_eq!((read::<u8>(seven), read::<i64>(seven)), (Ok(7), Ok(7)), "{seven:02x?}");
    }
    assert!(read::<u8>(b"\xcd\x01\0").unwrap_err().contains("found 256"));
    assert!(read::<u8>(b"\xff").unwrap_err().contains("found -1"));
    assert!(read::<u8>(b"\xca\x3f\xc0\0\0").unwrap_err().contains("found 1.5"));
    // Floats of either width, integers, and the names that JSON uses.
    assert_eq!(read::<f64>(b"\xca\x3f\xc0\0\0"), Ok(1.5));
    assert_eq!(read::<f32>(b"\xcb\x3f\xf8\0\0\0\0\0\0"), Ok(1.5));
    assert_eq!(read::<f32>(b"\xfe"), Ok(-2.0));
    assert!(read::<f32>(b"\xca\x7f\xc0\0\x01").unwrap().is_nan());
    assert_eq!(read::<f64>(b"\xa9-Infinity"), Ok(f64::NEG_INFINITY));
    // Bytes as text in base64, keys as integers.
    assert_eq!(read::<Bytes>(b"\xa4/wA="), Ok(Bytes(vec![0xff, 0])));
    assert!(read::<Bytes>(b"\xa1%").unwrap_err().contains("base64"));
    assert_eq!(read::<BTreeMap<u16, bool>>(b"\x81\xcc\xff\xc3"), Ok(BTreeMap::from([(255, true)])));
    assert!(
        read::<BTreeMap<u16, bool>>(b"\x81\xc3\xc3")
            .unwrap_err()
            .contains("neither a text nor an integer")
    );
    // A value of a wrong type is rejected.
    assert!(read::<bool>(b"\x01").unwrap_err().contains("expected true or false, found 1"));
    assert!(read::<String>(b"\x01").unwrap_err().contains("expected a text, found 1"));
    assert!(read::<Vec<u8>>(b"\xc4\x01\x01").unwrap_err().contains("expected an array"));
    assert!(read::<PlayerId>(b"\xd7\xff\0\0\0\0\0\0\0\0").unwrap_err().contains("extension type"));
    assert!(read::<Unit>(b"\xc0\xc0").unwrap_err().contains("the end was expected"));
    assert_eq!(read::<Unit>(b""), Ok(Unit));
}

#[test]
fn what_json_lacks_is_written_as_text() {
    assert_eq!(json(&((1_u64 << 53) - 1)), "9007199254740991");
    assert_eq!(json(&(1_u64 << 53)), r#""9007199254740992""#);
    assert_eq!(json(&i64::MIN), r#""-9223372036854775808""#);
    assert_eq!(json(&PlayerId(u64::MAX)), r#""18446744073709551615""#);
    assert_eq!(
        [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(|value| json(&value)),
        [r#""NaN""#, r#""Infinity""#, r#""-Infinity""#]
    );
    there_and_back(&u64::MAX);
    there_and_back(&i64::MIN);
    there_and_back(&f64::NEG_INFINITY);
    assert!(f32::read(Format::Json, br#""NaN""#).unwrap().is_nan());
    // Every integer is accepted in both forms.
    assert_eq!(u8::read(Format::Json, br#""7""#), Ok(7));
    assert_eq!(i16::read(Format::Json, b"-7"), Ok(-7));
}

#[test]
fn a_value_is_the_same_if_it_is_sent_as_the_same_bytes() {
    assert!(f64::NAN.same(&f64::NAN) && !f64::NAN.same(&-f64::NAN));
    assert!(!0.0_f32.same(&-0.0) && 0.5_f32.same(&0.5));
    assert!(Some(f32::NAN).same(&Some(f32::NAN)) && !Some(0_u8).same(&None));
    assert!(vec![f64::NAN].same(&vec![f64::NAN]) && !vec![1.0].same(&vec![]));
    assert!(Choice::Two(1, None).same(&Choice::Two(1, None)));
    assert!(!Choice::Two(1, None).same(&Choice::Two(2, None)));
    assert!(!Choice::Plain.same(&Choice::Empty()));
}

#[test]
fn invalid_values_are_rejected_with_the_reason() {
    let say = |error: playfield_state::DecodeError| error.to_string();
    assert!(
        say(u16::read(Format::Packed, &[0x80, 0x80, 4]).unwrap_err())
            .contains("65536 is past the range of u16")
    );
    assert!(
        say(u8::read(Format::Json, b"256").unwrap_err())
            .contains("expected a whole number from 0 to 255, found 256")
    );
    assert!(say(u8::read(Format::Json, b"1.5").unwrap_err()).contains("found 1.5"));
    assert!(say(bool::read(Format::Packed, &[1, 1]).unwrap_err()).contains("the end was expected"));
    assert!(
        say(Choice::read(Format::Packed, &[9]).unwrap_err())
            .contains("9 is not a variant of Choice")
    );
    assert!(
        say(Choice::read(Format::Json, br#""Other""#).unwrap_err())
            .contains("is not a variant of Choice")
    );
    assert!(
        say(Choice::read(Format::Json, br#"{"One":1,"Two":2}"#).unwrap_err())
            .contains("is not a variant of Choice")
    );
    assert!(
        say(Unit::read(Format::Packed, &[1]).unwrap_err())
            .contains("without content is the byte 0")
    );
    assert!(
        say(Pair::read(Format::Json, b"[1]").unwrap_err())
            .contains("member \"1\": expected a text, found null")
    );
    assert!(
        say(Pair::read(Format::Json, b"[1,\"x\",2]").unwrap_err())
            .contains("expected an array of 2, found one of 3")
    );
    let twice = [2, 1, b'a', 0, 0, 1, b'a', 0, 0];
    assert!(
        say(BTreeMap::<String, Pair>::read(Format::Packed, &twice).unwrap_err())
            .contains("a key occurs twice")
    );
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    assert!(
        say(Vec::<u8>::read(Format::Packed, &huge).unwrap_err())
            .contains("was announced, 0 remain")
    );
}

#[test]
fn an_absent_member_is_none_and_an_unknown_one_is_ignored() {
    #[derive(Data, PartialEq, Debug)]
    struct Options {
        size: u8,
        name: Option<String>,
    }
    let read = |text: &str| Options::read(Format::Json, text.as_bytes());
    assert_eq!(read(r#"{"size":3,"color":1}"#), Ok(Options { size: 3, name: None }));
    assert_eq!(read(r#"{"size":3,"name":"x"}"#), Ok(Options { size: 3, name: Some("x".into()) }));
    let error = read("{}").unwrap_err().to_string();
    assert!(error.starts_with("member \"size\": ") && !error.contains("at byte"), "{error}");
    assert!(read("").is_err());
    assert_eq!(Unit::read(Format::Json, b""), Ok(Unit));
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        Just(Choice::Plain),
        any::<u32>().prop_map(|value| Choice::One(Wrapped(value))),
        (any::<u8>(), any::<Option<String>>()).prop_map(|(a, b)| Choice::Two(a, b)),
        any::<i32>().prop_map(|x| Choice::Named { x, r#in: Unit }),
        Just(Choice::Empty()),
        Just(Choice::Hollow {}),
    ]
}

fn pair() -> impl Strategy<Value = Pair> {
    (any::<i16>(), any::<String>()).prop_map(|(a, b)| Pair(a, b))
}

fn named() -> impl Strategy<Value = Named> {
    let numbers = (
        any::<bool>(),
        any::<u8>(),
        any::<i8>(),
        any::<u64>(),
        any::<i64>(),
        any::<f32>(),
        any::<f64>(),
    );
    let rest = (
        any::<String>(),
        any::<u64>().prop_map(PlayerId),
        any::<Option<u16>>(),
        any::<Vec<i32>>(),
        proptest::collection::btree_map(any::<String>(), pair(), 0..4),
        any::<Vec<u8>>().prop_map(Bytes),
        choice(),
    );
    (numbers, rest).prop_map(|(numbers, rest)| {
        let (flag, small, signed, wide, negative, single, double) = numbers;
        let (text, player, maybe, many, table, raw, r#type) = rest;
        Named {
            flag,
            small,
            signed,
            wide,
            negative,
            single,
            double,
            text,
            player,
            maybe,
            many,
            table,
            raw,
            r#type,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_value_comes_back_as_it_went(value in named()) {
        there_and_back(&value);
    }

    #[test]
    fn every_float_comes_back_to_the_bit(single in any::<u32>(), double in any::<u64>()) {
        let (single, double) = (f32::from_bits(single), f64::from_bits(double));
        prop_assert!(f32::read(Format::Packed, &packed(&single)).unwrap().same(&single));
        prop_assert!(f64::read(Format::Packed, &packed(&double)).unwrap().same(&double));
        if !double.is_nan() {
            prop_assert!(f64::read(Format::Msgpack, &msgpack(&double)).unwrap().same(&double));
            prop_assert!(f64::read(Format::Json, json(&double).as_bytes()).unwrap().same(&double));
        }
        if !single.is_nan() {
            prop_assert!(f32::read(Format::Msgpack, &msgpack(&single)).unwrap().same(&single));
            prop_assert!(f32::read(Format::Json, json(&single).as_bytes()).unwrap().same(&single));
        }
    }

    #[test]
    fn bytes_that_are_read_are_written_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(value) = Named::read(Format::Packed, &bytes) {
            prop_assert_eq!(&packed(&value), &bytes);
        }
        if let Ok(value) = Choice::read(Format::Packed, &bytes) {
            prop_assert_eq!(&packed(&value), &bytes);
        }
    }

    #[test]
    fn random_values_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = (Named::read(format, &bytes), BTreeMap::<u16, Vec<Pair>>::read(format, &bytes));
        }
    }
}
