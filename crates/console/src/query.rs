//! The parts of a request to the console's interface.

use axum::response::Response;
use playfield_server::http::percent_decoded;
use playfield_state::PlayerId;
use serde_json::Value;

use crate::request::{self, Request};

/// Why a request is refused: the status, and one sentence.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) u16, pub(crate) String);

pub(crate) type Answered = Result<Value, Refusal>;

impl From<playfield_room::Error> for Refusal {
    fn from(error: playfield_room::Error) -> Self {
        use playfield_wire::ErrorCode;
        let status = match error.code() {
            ErrorCode::RoomNotFound => 404,
            ErrorCode::BadPayload | ErrorCode::Refused => 400,
            ErrorCode::RoomClosed => 409,
            ErrorCode::Busy | ErrorCode::ShuttingDown => 503,
            ErrorCode::Timeout => 504,
            _ => 500,
        };
        Self(status, error.to_string())
    }
}

impl From<Refusal> for Response {
    fn from(Refusal(status, text): Refusal) -> Self {
        request::json(request::status_of(status), serde_json::json!({ "error": text }).to_string())
    }
}

/// A whole number of the query, or its default; at most `max`.
pub(crate) fn number(
    request: &Request,
    name: &str,
    default: usize,
    max: usize,
) -> Result<usize, Refusal> {
    let Some(text) = request.query_value(name) else { return Ok(default) };
    match text.parse() {
        Ok(number) if number <= max => Ok(number),
        _ => Err(Refusal(400, format!("{name} = {text:?}: give a whole number up to {max}"))),
    }
}

/// A player of the query, if it names one.
pub(crate) fn player(request: &Request, name: &str) -> Result<Option<PlayerId>, Refusal> {
    let Some(text) = request.query_value(name) else { return Ok(None) };
    let number = text.parse();
    let number =
        number.map_err(|_| Refusal(400, format!("{name} = {text:?}: give a player's number")))?;
    Ok(Some(PlayerId(number)))
}

/// The body as a JSON object.
pub(crate) fn body(request: &Request) -> Result<Value, Refusal> {
    let value: Value = serde_json::from_slice(request.body())
        .map_err(|error| Refusal(400, format!("the body is not JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Refusal(400, "the body is not a JSON object".into()))
    }
}

/// A segment of the path, decoded.
pub(crate) fn segment(text: &str) -> Result<String, Refusal> {
    let decoded = percent_decoded(text).map(std::borrow::Cow::into_owned);
    decoded.ok_or_else(|| Refusal(400, format!("the path has an invalid part: {text:?}")))
}
