//! Conversion of handlers' results to responses.

use playfield_http::Response;
use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;

/// A result that an HTTP handler may return: a [`Response`], text, nothing (204), an [`Error`], or
/// a [`Result`] of these.
///
/// An [`Error`] becomes its code and text, with the status that its code has:
///
/// | code | status |
/// |---|---|
/// | `refused`, and codes of a room's own | 422 |
/// | `bad_payload`, `bad_key` | 400 |
/// | `unauthorized` | 401 |
/// | `creation_closed` | 403 |
/// | `room_not_found`, `unknown_room_type` | 404 |
/// | `room_full`, `room_locked`, `room_exists` | 409 |
/// | `too_large` | 413 |
/// | `limit`, `too_fast` | 429 |
/// | `room_closed` | 503 with `Retry-After`: the next room with its key may do |
/// | `busy`, `shutting_down` | 503 |
/// | `timeout` | 504 |
/// | all others | 500 |
#[diagnostic::on_unimplemented(
    message = "an HTTP handler can't return `{Self}`",
    note = "return a `Response`, text, `()`, an `Error`, or a `Result` of these"
)]
pub trait IntoResponse {
    /// The response.
    fn into_response(self) -> Response;
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

impl IntoResponse for () {
    fn into_response(self) -> Response {
        Response::new(204)
    }
}

impl IntoResponse for &str {
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for String {
    fn into_response(self) -> Response {
        Response::text(self)
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let response = Response::error(status(self.code()), format!("{self}\n"));
        let ending = (self.code() == ErrorCode::RoomClosed).then_some(ROOM_CLOSED_RETRY_MS);
        match self.retry_after_ms().or(ending) {
            Some(ms) => response.with_header("Retry-After", ms.div_ceil(1000).to_string()),
            None => response,
        }
    }
}

impl<T: IntoResponse, E: IntoResponse> IntoResponse for Result<T, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(value) => value.into_response(),
            Err(error) => error.into_response(),
        }
    }
}

/// When to ask again after a room was ending, in milliseconds.
const ROOM_CLOSED_RETRY_MS: u32 = 1_000;

fn status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::BadPayload | ErrorCode::BadKey => 400,
        ErrorCode::Unauthorized => 401,
        ErrorCode::CreationClosed | ErrorCode::Forbidden => 403,
        ErrorCode::RoomNotFound
        | ErrorCode::UnknownRoomType
        | ErrorCode::UnknownChannel
        | ErrorCode::UnknownDevice => 404,
        ErrorCode::RoomFull | ErrorCode::RoomLocked | ErrorCode::RoomExists => 409,
        ErrorCode::TooLarge => 413,
        ErrorCode::Refused | ErrorCode::Room(_) => 422,
        ErrorCode::Limit | ErrorCode::TooFast => 429,
        ErrorCode::RoomClosed | ErrorCode::Busy | ErrorCode::ShuttingDown => 503,
        ErrorCode::Timeout => 504,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_room::{Error, Result};
    use playfield_wire::ErrorCode;

    use super::IntoResponse;

    #[test]
    fn errors_have_the_status_of_their_code() {
        for (code, status) in [
            (ErrorCode::RoomNotFound, 404),
            (ErrorCode::UnknownDevice, 404),
            (ErrorCode::Forbidden, 403),
            (ErrorCode::UnknownChannel, 404),
            (ErrorCode::Busy, 503),
            (ErrorCode::RoomClosed, 503),
            (ErrorCode::Limit, 429),
            (ErrorCode::Refused, 422),
            (ErrorCode::Room(1000), 422),
            (ErrorCode::Internal, 500),
            (ErrorCode::Timeout, 504),
        ] {
            let result: Result<()> = Err(Error::new(code, "so it is"));
            let response = result.into_response();
            assert_eq!(response.status(), status);
            assert_eq!(response.body(), format!("{code}: so it is\n").as_bytes());
        }
        let error = Error::new(ErrorCode::Limit, "slow down");
        let error = error.with_retry_after(Duration::from_millis(1001));
        assert_eq!(error.into_response().header("Retry-After"), Some("2"));
        let ending = Error::new(ErrorCode::RoomClosed, "the room is about to end");
        assert_eq!(ending.into_response().header("Retry-After"), Some("1"));
        assert_eq!(().into_response().status(), 204);
        assert_eq!("hello".into_response().body(), b"hello");
    }
}
