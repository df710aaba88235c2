//! Reading any value.

use serde_json::{Map, Number, Value};

use super::token::{Cursor, Token};
use crate::error::{DecodeError, Kind};
use crate::json;

/// The maximum nesting depth of arrays and maps, the same as in JSON.
pub const NESTING_MAX: usize = 127;

/// Reads one value, as a JSON value. Bytes become base64 strings, NaN and infinities become their
/// names in JSON, and integer keys become decimal strings. If members have the same name, the last
/// one counts.
///
/// # Errors
/// If the value is truncated or followed by anything, nested deeper than [`NESTING_MAX`], an
/// extension type, a text that is not UTF-8, or a map with a key that is neither text nor integer.
pub fn read_value(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let value = value(&mut cursor, 0)?;
    cursor.finish()?;
    Ok(value)
}

fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, DecodeError> {
    let at = cursor.offset();
    Ok(match cursor.token()? {
        Token::Null => Value::Null,
        Token::Bool(value) => value.into(),
        Token::Unsigned(value) => value.into(),
        Token::Negative(value) => value.into(),
        Token::F32(value) => float(value.into()),
        Token::F64(value) => float(value),
        Token::Text(text) => utf8(cursor, text)?.into(),
        Token::Bytes(bytes) => json::base64(bytes).into(),
        // Neither reserves memory for its count: a value may be far larger than the byte that
        // announces it.
        Token::Array(count) => {
            let depth = deeper(depth, at)?;
            (0..count).map(|_| value(cursor, depth)).collect::<Result<_, _>>().map(Value::Array)?
        }
        Token::Map(count) => {
            let depth = deeper(depth, at)?;
            let mut members = Map::new();
            for _ in 0..count {
                let name = name(cursor)?;
                members.insert(name, value(cursor, depth)?);
            }
            Value::Object(members)
        }
    })
}

fn deeper(depth: usize, at: usize) -> Result<usize, DecodeError> {
    if depth == NESTING_MAX {
        return Err(DecodeError::new(at, format!("a value is nested deeper than {NESTING_MAX}")));
    }
    Ok(depth + 1)
}

fn float(value: f64) -> Value {
    Number::from_f64(value).map_or_else(|| json::name_of_float(value).into(), Value::Number)
}

fn name(cursor: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let at = cursor.offset();
    match cursor.token()? {
        Token::Text(text) => utf8(cursor, text).map(str::to_owned),
        Token::Unsigned(number) => Ok(number.to_string()),
        Token::Negative(number) => Ok(number.to_string()),
        _ => Err(DecodeError::new(at, "the key of a map is neither a text nor an integer")),
    }
}

/// Checks the text that `cursor` has just read.
fn utf8<'a>(cursor: &Cursor<'_>, text: &'a [u8]) -> Result<&'a str, DecodeError> {
    std::str::from_utf8(text).map_err(|error| {
        DecodeError::of(cursor.offset() - text.len() + error.valid_up_to(), Kind::NotUtf8)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaint(bytes: &[u8]) -> String {
        read_value(bytes).unwrap_err().to_string()
    }

    #[test]
    fn every_type_is_read() {
        let cases: [(&[u8], Value); 23] = [
            (b"\xc0", json!(null)),
            (b"\xc2", json!(false)),
            (b"\xc3", json!(true)),
            (b"\x07", json!(7)),
            (b"\xcc\x07", json!(7)),
            (b"\xcd\0\x07", json!(7)),
            (b"\xce\0\0\0\x07", json!(7)),
            (b"\xd3\0\0\0\0\0\0\0\x07", json!(7)),
            (b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", json!(u64::MAX)),
            (b"\xff", json!(-1)),
            (b"\xd0\xff", json!(-1)),
            (b"\xd1\xff\xff", json!(-1)),
            (b"\xd2\xff\xff\xff\xff", json!(-1)),
            (b"\xca\x3f\0\0\0", json!(0.5)),
            (b"\xcb\xbf\xe0\0\0\0\0\0\0", json!(-0.5)),
            (b"\xca\x7f\xc0\0\0", json!("NaN")),
            (b"\xcb\xff\xf0\0\0\0\0\0\0", json!("-Infinity")),
            (b"\xa2\xc3\xa9", json!("é")),
            (b"\xd9\x01a", json!("a")),
            (b"\xc4\x02\xff\0", json!("/wA=")),
            (b"\x92\x01\x90", json!([1, []])),
            (b"\xdc\0\x01\x01", json!([1])),
            (b"\x83\xa1a\x01\x07\xc3\xff\x80", json!({"a": 1, "7": true, "-1": {}})),
        ];
        for (bytes, value) in cases {
            assert_eq!(read_value(bytes), Ok(value), "{bytes:02x?}");
            for cut in 0..bytes.len() {
                assert!(
                    read_value(&bytes[..cut]).unwrap_err().is_truncated(),
                    "{bytes:02x?} cut at {cut}"
                );
            }
        }
        assert_eq!(read_value(b"\x82\xa1a\x01\xa1a\x02"), Ok(json!({"a": 2})));
    }

    #[test]
    fn invalid_values_are_rejected_at_the_first_wrong_byte() {
        assert_eq!(complaint(b""), "at byte 0: a value was expected, 0 bytes remain");
        assert_eq!(complaint(b"\x01\x02"), "at byte 1: the end was expected, 1 bytes remain");
        assert_eq!(complaint(b"\x91\xa2a\xff"), "at byte 3: a text is not UTF-8");
        assert_eq!(
            complaint(b"\x81\xc0\x01"),
            "at byte 1: the key of a map is neither a text nor an integer"
        );
        assert_eq!(
            complaint(b"\x91\xda\0\x05a"),
            "at byte 1: a text of 5 bytes was announced, 1 remain"
        );
        for byte in [0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8] {
            let why =
                format!("at byte 1: {byte:#04x} begins an extension type, which is not supported");
            assert_eq!(complaint(&[0x91, byte, 0, 0, 0]), why);
        }
    }

    #[test]
    fn counts_are_checked_against_the_bytes_that_are_left() {
        let why = "at byte 0: a list of 4294967295 elements was announced, 1 remain";
        assert_eq!(complaint(b"\xdd\xff\xff\xff\xff\x01"), why);
        let why = "at byte 0: a map of 2147483648 members was announced, 3 remain";
        assert_eq!(complaint(b"\xdf\x80\0\0\0\x01\x01\x01"), why);
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize, head: &[u8]| [head.repeat(depth), vec![0xc0]].concat();
        assert!(read_value(&nested(NESTING_MAX, b"\x91")).is_ok());
        assert!(read_value(&nested(NESTING_MAX, b"\x81\xa1a")).is_ok());
        let why = "at byte 127: a value is nested deeper than 127";
        assert_eq!(complaint(&nested(NESTING_MAX + 1, b"\x91")), why);
        assert_eq!(complaint(&nested(1_000_000, b"\x91")), why);
        assert!(complaint(&nested(1_000_000, b"\x81\xa1a")).ends_with("nested deeper than 127"));
    }
}
