//! The primitive types of the format `json`: each `write_` function appends to `out`, each `as_`
//! function reads a value.

pub(crate) mod raw;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The largest integer that every JSON reader represents exactly, 2^53 − 1. Integers whose
/// magnitude is greater are written as decimal strings.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;

/// A text, quoted and escaped.
pub fn write_text(out: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(out, value).expect("writing to a Vec can't fail");
}

/// An unsigned integer; a string if it is greater than [`INTEGER_MAX`].
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    write_integer(out, value, false);
}

/// A signed integer; a string if its magnitude is greater than [`INTEGER_MAX`].
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_integer(out, value.unsigned_abs(), value < 0);
}

fn write_integer(out: &mut Vec<u8>, magnitude: u64, negative: bool) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut left = magnitude;
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    let quoted = magnitude > INTEGER_MAX;
    if quoted {
        out.push(b'"');
    }
    if negative {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
    if quoted {
        out.push(b'"');
    }
}

/// A float, in the shortest form that reads back as the same; NaN and infinities as strings.
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    match not_finite(value) {
        Some(name) => out.extend_from_slice(name),
        None => write_finite(out, &value),
    }
}

/// A float, in the shortest form that reads back as the same; NaN and infinities as strings.
pub fn write_f32(out: &mut Vec<u8>, value: f32) {
    if let Some(name) = not_finite(f64::from(value)) {
        return out.extend_from_slice(name);
    }
    let start = out.len();
    write_finite(out, &value);
    if read_back(&out[start..], value).is_none() {
        out.truncate(start);
        write_finite(out, &f64::from(value));
    }
}

/// The number that a 64-bit reader parses from `text`; `None` if rounding that to 32 bits gives a
/// neighbor of `value`. That happens with the shortest form of a few numbers, such as 7.038531e-26.
/// These need all digits of the 64-bit value.
fn read_back(text: &[u8], value: f32) -> Option<f64> {
    let wide: f64 = serde_json::from_slice(text).ok()?;
    ((wide as f32).to_bits() == value.to_bits()).then_some(wide)
}

/// The number that a reader of 64-bit floats gets from what [`write_f32`] writes. `room` is scratch
/// memory.
pub(crate) fn f32_as_read(value: f32, room: &mut Vec<u8>) -> f64 {
    room.clear();
    if value.is_finite() {
        write_finite(room, &value);
    }
    read_back(room, value).unwrap_or_else(|| value.into())
}

fn not_finite(value: f64) -> Option<&'static [u8]> {
    if value.is_nan() {
        Some(b"\"NaN\"")
    } else if value.is_infinite() {
        Some(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" })
    } else {
        None
    }
}

/// The text for a NaN or an infinity.
pub(crate) fn name_of_float(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn write_finite<T: serde::Serialize>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(&mut *out, value).expect("writing to a Vec can't fail");
    if out.ends_with(b".0") {
        out.truncate(out.len() - 2);
    }
}

/// Bytes, as a string in base64 (RFC 4648 section 4, with padding).
pub fn write_base64(out: &mut Vec<u8>, value: &[u8]) {
    out.push(b'"');
    put_base64(out, value);
    out.push(b'"');
}

/// The same without the quotes.
pub(crate) fn put_base64(out: &mut Vec<u8>, value: &[u8]) {
    let start = out.len();
    // Four characters for every three bytes, rounded up.
    out.resize(start + value.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(value, &mut out[start..]).expect("the buffer has the exact size");
}

/// An unsigned integer, from a number or a decimal string.
#[must_use]
pub fn as_u64(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => parse_u64(text),
        _ => None,
    }
}

/// A signed integer, from a number or a decimal string.
#[must_use]
pub fn as_i64(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => parse_i64(text),
        _ => None,
    }
}

/// A float, from a number or from `NaN`, `Infinity` or `-Infinity`.
#[must_use]
pub fn as_f64(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Bytes, from a string in base64.
#[must_use]
pub fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    parse_base64(value.as_str()?)
}

/// Bytes in base64, without quotes.
#[must_use]
pub fn base64(value: &[u8]) -> String {
    STANDARD.encode(value)
}

pub(crate) fn parse_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// An integer as JSON writes numbers: no plus sign, no leading zeros.
pub(crate) fn parse_u64(text: &str) -> Option<u64> {
    let canonical = text == "0" || text.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical { text.parse().ok() } else { None }
}

fn parse_i64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical = digits == "0" || digits.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_past_2_to_the_53_are_strings() {
        let cases = [
            (0, "0"),
            (1_234_567_890, "1234567890"),
            (INTEGER_MAX, "9007199254740991"),
            (INTEGER_MAX + 1, "\"9007199254740992\""),
            (u64::MAX, "\"18446744073709551615\""),
        ];
        for (value, text) in cases {
            assert_eq!(written(|out| write_u64(out, value)), text);
            assert_eq!(as_u64(&serde_json::from_str(text).unwrap()), Some(value));
        }
        let cases = [
            (-1, "-1"),
            (-INTEGER_MAX.cast_signed(), "-9007199254740991"),
            (-INTEGER_MAX.cast_signed() - 1, "\"-9007199254740992\""),
            (i64::MIN, "\"-9223372036854775808\""),
            (i64::MAX, "\"9223372036854775807\""),
        ];
        for (value, text) in cases {
            assert_eq!(written(|out| write_i64(out, value)), text);
            assert_eq!(as_i64(&serde_json::from_str(text).unwrap()), Some(value));
        }
    }

    #[test]
    fn either_form_of_an_integer_is_read_and_nothing_else() {
        assert_eq!(as_u64(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(as_u64(&json!("7")), Some(7));
        assert_eq!(as_i64(&json!("-7")), Some(-7));
        for bad in ["", "-", "+7", "07", "-07", "7.0", " 7", "7 ", "0x7", "18446744073709551616"] {
            assert_eq!(as_u64(&json!(bad)), None, "{bad:?}");
            assert_eq!(as_i64(&json!(bad)), None, "{bad:?}");
        }
        for bad in [json!(-1), json!(1.5), json!(null), json!(true), json!([1])] {
            assert_eq!(as_u64(&bad), None, "{bad}");
        }
    }

    #[test]
    fn floats_take_their_shortest_form() {
        let cases = [
            (1.0, "1"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1e300, "1e+300"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
            (f64::INFINITY, "\"Infinity\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
            (f64::NAN, "\"NaN\""),
        ];
        for (value, text) in cases {
            assert_eq!(written(|out| write_f64(out, value)), text);
            let back = as_f64(&serde_json::from_str(text).unwrap()).unwrap();
            assert_eq!(back.to_bits(), value.to_bits(), "{text}");
        }
        assert_eq!(written(|out| write_f32(out, 0.1)), "0.1");
        assert_eq!(written(|out| write_f32(out, f32::NEG_INFINITY)), "\"-Infinity\"");
        for bad in [json!("nan"), json!("1"), json!("+Infinity"), json!(null)] {
            assert_eq!(as_f64(&bad), None, "{bad}");
        }
    }

    #[test]
    fn an_f32_survives_a_reader_of_64_bits() {
        // The first is the value whose shortest form, 7.038531e-26, rounds twice to its neighbor.
        for bits in [0x15ae_43fd, 1, 0x007f_ffff, 0x7f7f_ffff, 0x8000_0000] {
            let value = f32::from_bits(bits);
            let text = written(|out| write_f32(out, value));
            let back: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((as_f64(&back).unwrap() as f32).to_bits(), bits, "{text}");
        }
    }

    #[test]
    fn bytes_are_base64_with_padding() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(written(|out| write_base64(out, bytes.as_bytes())), format!("{text:?}"));
            assert_eq!(as_bytes(&json!(text)).as_deref(), Some(bytes.as_bytes()));
        }
        for bad in [
            json!("Zg"),
            json!("Zg=="[..3]),
            json!("Zh=="),
            json!("Z g=="),
            json!("_-=="),
            json!(1),
        ] {
            assert_eq!(as_bytes(&bad), None, "{bad}");
        }
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(written(|out| write_text(out, "a\"\\\n\u{1}é")), r#""a\"\\\n\u0001é""#);
    }
}
