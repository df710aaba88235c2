//! Payloads of channels and devices, which have no schema.

use playfield_state::generate::{Generator, LENGTH_MAX};
use playfield_wire::TreeFormat;
use playfield_wire::tree::TreeWriter;
use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::settings::Content;
use crate::stamp::{STAMP_BYTES, Stamp};

/// The member of a publication in which the load finds it again.
pub(crate) const STAMP_MEMBER: &str = "load";

/// The number of values generated to check a step.
const SAMPLES: u64 = 32;

/// The payload that a step sends.
#[derive(Debug)]
pub(crate) struct Payload(Form);

#[derive(Debug)]
enum Form {
    /// The same each time, but for the stamp at this place.
    Fixed {
        payload: Vec<u8>,
        stamp_at: Option<usize>,
    },
    Generated(Value),
    Bytes(Vec<u8>),
}

impl Payload {
    /// Checks what a step sends. A publication has a stamp.
    ///
    /// # Errors
    /// Its error.
    pub(crate) fn new(content: &Content, has_stamp: bool) -> Result<Self, String> {
        let value = match content {
            Content::Bytes(length) => {
                if has_stamp && *length < STAMP_BYTES {
                    return Err(format!(
                        "bytes = {length} must be at least {STAMP_BYTES}, so that the load finds \
                         its publication again"
                    ));
                }
                let mut random = Random::new(0, 0);
                let bytes = (0..*length).map(|_| random.bits() as u8).collect();
                return Ok(Self(Form::Bytes(bytes)));
            }
            Content::Json(value) => value,
        };
        if has_stamp {
            let table = value.as_object().ok_or_else(|| {
                format!("value = {value} must be a table, to which the load adds a member")
            })?;
            if table.contains_key(STAMP_MEMBER) {
                return Err(format!(
                    "value has the member {STAMP_MEMBER:?}, which is the load's own; rename it"
                ));
            }
        }
        let samples = (0..SAMPLES).map(|seed| generated(value, &mut Random::new(seed, 0)));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        if samples.iter().any(|sample| *sample != samples[0]) {
            return Ok(Self(Form::Generated(value.clone())));
        }
        let stamp = has_stamp.then(Stamp::default);
        let payload = written(samples[0].clone(), stamp.as_ref());
        let stamp_at = stamp.and_then(|stamp| {
            let text = stamp.text();
            payload.windows(text.len()).position(|bytes| bytes == text.as_bytes())
        });
        Ok(Self(Form::Fixed { payload, stamp_at }))
    }

    /// Writes a payload.
    pub(crate) fn write(&self, random: &mut Random, stamp: Option<&Stamp>, out: &mut Vec<u8>) {
        match &self.0 {
            Form::Fixed { payload, stamp_at } => {
                let begin = out.len();
                out.extend_from_slice(payload);
                if let (Some(at), Some(stamp)) = (stamp_at, stamp) {
                    let text = stamp.text();
                    out[begin + at..][..text.len()].copy_from_slice(text.as_bytes());
                }
            }
            Form::Generated(value) => {
                // The value was checked.
                let value = generated(value, random).unwrap_or_default();
                out.extend_from_slice(&written(value, stamp));
            }
            Form::Bytes(bytes) => {
                let mut bytes = bytes.clone();
                if let Some(stamp) = stamp {
                    bytes[..STAMP_BYTES].copy_from_slice(stamp.text().as_bytes());
                }
                out.extend_from_slice(&bytes);
            }
        }
    }
}

fn written(mut value: Value, stamp: Option<&Stamp>) -> Vec<u8> {
    if let (Some(stamp), Some(table)) = (stamp, value.as_object_mut()) {
        table.insert(STAMP_MEMBER.into(), stamp.text().into());
    }
    let mut out = Vec::new();
    TreeWriter::new(TreeFormat::Json, &mut out).value(&value);
    out
}

/// A value in which `{ from = 1, to = 6 }`, `{ one_of = [...] }` and `{ length = 100 }` are
/// replaced by random ones: numbers, whole between whole ones; one of several values; texts.
fn generated(given: &Value, random: &mut Random) -> Result<Value, String> {
    Ok(match given {
        Value::Array(elements) => {
            let elements = elements.iter().map(|element| generated(element, random));
            Value::Array(elements.collect::<Result<_, _>>()?)
        }
        Value::Object(table) => match special(table, random)? {
            Some(value) => value,
            None => {
                let members =
                    table.iter().map(|(name, given)| Ok((name.clone(), generated(given, random)?)));
                Value::Object(members.collect::<Result<_, String>>()?)
            }
        },
        other => other.clone(),
    })
}

fn special(table: &Map<String, Value>, random: &mut Random) -> Result<Option<Value>, String> {
    let names: Vec<_> = table.keys().map(String::as_str).collect();
    let wrong = |wanted: &str| Err(format!("{} must be {wanted}", Value::Object(table.clone())));
    Ok(Some(match names[..] {
        ["from", "to"] => {
            let (from, to) = (&table["from"], &table["to"]);
            if let (Some(from), Some(to)) = (from.as_i64(), to.as_i64()) {
                if from > to {
                    return wrong("a range from the smaller number to the greater");
                }
                let width = to.wrapping_sub(from).cast_unsigned().saturating_add(1);
                json!(from.wrapping_add(random.below(width).cast_signed()))
            } else if let (Some(from), Some(to)) = (from.as_f64(), to.as_f64()) {
                json!(from + random.fraction() * (to - from))
            } else {
                return wrong("a range of numbers");
            }
        }
        ["one_of"] => match table["one_of"].as_array().map(Vec::as_slice) {
            Some(choices @ [_, ..]) => generated(&choices[random.index(choices.len())], random)?,
            _ => return wrong("a list of values"),
        },
        ["length"] => match table["length"].as_u64().filter(|length| *length <= LENGTH_MAX) {
            Some(length) => Generator::new(&mut || random.bits(), 0).text(length).into(),
            None => return wrong(&format!("a length from 0 to {LENGTH_MAX}")),
        },
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Payload;
    use crate::random::Random;
    use crate::settings::Content;
    use crate::stamp::Stamp;

    #[test]
    fn a_payload_is_generated_and_its_stamp_is_found_again() {
        let value = json!({"at": {"from": 1, "to": 6}, "is": {"one_of": ["a", {"length": 3}]},
            "of": [{"from": 0.5, "to": 1}]});
        let stamp = Stamp { run: 7, publisher: 3, sequence: 9, due: u64::MAX };
        for content in [Content::Json(value), Content::Json(json!({"zzz": 1})), Content::Bytes(90)]
        {
            let payload = Payload::new(&content, true).unwrap();
            let (mut random, mut out) = (Random::new(1, 1), vec![b'"']);
            payload.write(&mut random, Some(&stamp), &mut out);
            assert_eq!(Stamp::find(&out[1..]), Some(stamp), "{content:?}");
        }
        assert_eq!(Stamp::find(b"\"load:1\""), None);
        assert_eq!(Stamp::find(b"load:"), None);
    }

    #[test]
    fn ranges_are_whole_between_whole_numbers() {
        let content = json!([{"from": -1, "to": 1}, {"from": 0.0, "to": 1}, {"length": 5}, 4]);
        let payload = Payload::new(&Content::Json(content), false).unwrap();
        let mut random = Random::new(5, 0);
        for _ in 0..50 {
            let mut out = Vec::new();
            payload.write(&mut random, None, &mut out);
            let value: Value = serde_json::from_slice(&out).unwrap();
            assert!((-1..=1).contains(&value[0].as_i64().unwrap()), "{value}");
            assert!((0.0..1.0).contains(&value[1].as_f64().unwrap()), "{value}");
            assert_eq!((value[2].as_str().unwrap().len(), &value[3]), (5, &json!(4)));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (content, has_stamp, why) in [
            (Content::Json(json!(3)), true, "value = 3 must be a table"),
            (Content::Json(json!({"load": 3})), true, "the member \"load\""),
            (Content::Json(json!({"a": {"from": 2, "to": 1}})), false, "the smaller number"),
            (Content::Json(json!({"a": {"from": 2, "to": "x"}})), false, "a range of numbers"),
            (Content::Json(json!({"one_of": []})), false, "a list of values"),
            (Content::Json(json!({"length": -1})), false, "a length from 0 to"),
            (Content::Bytes(52), true, "bytes = 52 must be at least 53"),
        ] {
            let error = Payload::new(&content, has_stamp).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        assert!(Payload::new(&Content::Bytes(53), true).is_ok());
    }
}
