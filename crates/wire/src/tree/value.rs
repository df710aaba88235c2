//! Trees in memory, as JSON values.

use serde_json::Value;

use super::TreeWriter;
use crate::{DecodeError, TreeFormat, msgpack};

/// Reads one tree; no bytes mean null. [`msgpack::read_value`] documents how values that only
/// MessagePack has are converted.
///
/// # Errors
/// If the bytes are not exactly one value in this format, or it is nested deeper than
/// [`msgpack::NESTING_MAX`].
pub fn read_value(format: TreeFormat, bytes: &[u8]) -> Result<Value, DecodeError> {
    match format {
        _ if bytes.is_empty() => Ok(Value::Null),
        TreeFormat::Msgpack => msgpack::read_value(bytes),
        TreeFormat::Json => serde_json::from_slice(bytes)
            .map_err(|error| DecodeError::new(error.column(), error.to_string())),
    }
}

/// Writes a value part by part.
pub(super) fn write_parts(out: TreeWriter<'_>, value: &Value) {
    match value {
        Value::Null => out.null(),
        Value::Bool(value) => out.bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => out.u64(value),
            (None, Some(value)) => out.i64(value),
            // Every number of JSON is one of the three.
            (None, None) => out.f64(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => out.text(text),
        Value::Array(elements) => {
            let mut array = out.array(elements.len());
            elements.iter().for_each(|element| write_parts(array.element(), element));
            array.end();
        }
        Value::Object(members) => {
            let mut object = out.object(members.len());
            members.iter().for_each(|(name, value)| write_parts(object.member(name), value));
            object.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_comes_back_from_either_format() {
        let nested = (0..msgpack::NESTING_MAX).fold(json!(null), |value, _| json!([value]));
        let long: Value = (0..70_000).collect::<Vec<u32>>().into();
        let values = [
            json!(null),
            json!({"a": [true, false, null, "é\"\0"], "": {}, "b": [[]]}),
            json!([0, 127, 128, u64::MAX, -1, i64::MIN, 0.5, -0.0, 1e300, 1.0]),
            nested,
            long,
        ];
        for value in values {
            for format in [TreeFormat::Msgpack, TreeFormat::Json] {
                let mut out = Vec::new();
                TreeWriter::new(format, &mut out).value(&value);
                assert_eq!(read_value(format, &out), Ok(value.clone()));
            }
        }
    }

    #[test]
    fn no_bytes_are_null() {
        for format in [TreeFormat::Msgpack, TreeFormat::Json] {
            assert_eq!(read_value(format, b""), Ok(Value::Null));
        }
    }

    #[test]
    fn both_formats_accept_the_same_nesting_depth() {
        for format in [TreeFormat::Msgpack, TreeFormat::Json] {
            let deep = |depth: usize| match format {
                TreeFormat::Msgpack => [vec![0x91; depth], vec![0xc0]].concat(),
                TreeFormat::Json => {
                    format!("{}0{}", "[".repeat(depth), "]".repeat(depth)).into_bytes()
                }
            };
            assert!(read_value(format, &deep(msgpack::NESTING_MAX)).is_ok());
            assert!(read_value(format, &deep(msgpack::NESTING_MAX + 1)).is_err());
        }
    }
}
