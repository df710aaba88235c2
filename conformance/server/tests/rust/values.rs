//! Values that steps name, and whether they are so.

use std::collections::BTreeSet;
use std::fmt::Display;

use playfield::client::Error;
use serde_json::Value;

use super::{Outcome, Step};

/// The thing that was made, or `None` if it was refused as the step says.
pub(super) fn taken<T>(step: &Step, made: Result<T, Error>) -> Outcome<Option<T>> {
    let Some(refused) = step.get("refused") else { return made.map(Some).map_err(said) };
    let error = made.err().ok_or("it was not refused")?;
    let refused = refused.as_object().ok_or("refused is not an object")?;
    is_code(refused, &error)?;
    match refused.get("text").and_then(Value::as_str) {
        Some(text) if text != error.text() => Err(format!("the text is {:?}", error.text())),
        _ => Ok(None),
    }
}

pub(super) fn is_code(step: &Step, error: &Error) -> Outcome<()> {
    let code = error.code().map(|code| code.name().into_owned());
    match code {
        _ if !step.contains_key("code") => Ok(()),
        Some(code) if step["code"] == *code => Ok(()),
        code => Err(format!("the code is {code:?}: {error}")),
    }
}

pub(super) fn is_connection_lost(code: playfield::ErrorCode) -> bool {
    code == playfield::ErrorCode::ConnectionLost
}

/// Checks that values are equal, however their integers are written.
pub(super) fn equal(expected: &Value, found: &Value) -> Outcome<()> {
    if is_equal(expected, found) { Ok(()) } else { Err(format!("it is {found}")) }
}

fn is_equal(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected.iter().zip(found).all(|(expected, found)| is_equal(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            names.into_iter().all(|name| match (expected.get(name), found.get(name)) {
                (Some(expected), Some(found)) => is_equal(expected, found),
                _ => false,
            })
        }
        (Value::Number(one), Value::String(other)) | (Value::String(other), Value::Number(one)) => {
            one.to_string() == *other
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one.as_f64() == other.as_f64()
                || (one.is_f64() && one.as_f64().map(narrow) == other.as_f64().map(narrow))
        }
        (expected, found) => expected == found,
    }
}

fn narrow(number: f64) -> f32 {
    number as f32
}

/// Checks that the members of one object are those of another, which may have more.
pub(super) fn contained(expected: &Value, found: &Value) -> Outcome<()> {
    let members = expected.as_object().ok_or("it is not an object")?;
    members.iter().try_for_each(|(name, value)| equal(value, &found[name]))
}

pub(super) fn text<'s>(step: &'s Step, name: &str) -> Outcome<&'s str> {
    step.get(name).and_then(Value::as_str).ok_or_else(|| format!("it has no {name}"))
}

pub(super) fn room_name(step: &Step) -> &str {
    step.get("room").and_then(Value::as_str).unwrap_or("room")
}

pub(super) fn said(error: impl Display) -> String {
    error.to_string()
}
