//! Errors of rooms as responses.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use playfield_room::Error;
use playfield_wire::ErrorCode;

/// An [`Error`] as the response of a handler: `?` makes one of what a room, or the node, refused.
///
/// Responds with the error's code and text, with the status that the code has:
///
/// | code | status |
/// |---|---|
/// | `refused`, and codes of a room's own | 422 |
/// | `bad_payload`, `bad_key` | 400 |
/// | `unauthorized` | 401 |
/// | `creation_closed`, `forbidden` | 403 |
/// | `room_not_found`, `unknown_room_type`, `unknown_channel`, `unknown_device` | 404 |
/// | `room_full`, `room_locked`, `room_exists` | 409 |
/// | `too_large` | 413 |
/// | `limit`, `too_fast` | 429 |
/// | `room_closed` | 503 with `Retry-After`: the next room with its key may do |
/// | `busy`, `shutting_down` | 503 |
/// | `timeout` | 504 |
/// | all others | 500 |
#[derive(Clone, Debug, PartialEq)]
pub struct Failure(pub Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(error) = self;
        let ending = (error.code() == ErrorCode::RoomClosed).then_some(ROOM_CLOSED_RETRY_MS);
        let retry_s = error.retry_after_ms().or(ending).map(|ms| ms.div_ceil(1000));
        let retry = retry_s.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        let answer = (status(error.code()), format!("{error}\n"));
        match retry {
            Some(retry) => (retry, answer).into_response(),
            None => answer.into_response(),
        }
    }
}

/// When to ask again after a room was ending, in milliseconds.
const ROOM_CLOSED_RETRY_MS: u32 = 1_000;

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::BadPayload | ErrorCode::BadKey => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::CreationClosed | ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::RoomNotFound
        | ErrorCode::UnknownRoomType
        | ErrorCode::UnknownChannel
        | ErrorCode::UnknownDevice => StatusCode::NOT_FOUND,
        ErrorCode::RoomFull | ErrorCode::RoomLocked | ErrorCode::RoomExists => StatusCode::CONFLICT,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::Refused | ErrorCode::Room(_) => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::Limit | ErrorCode::TooFast => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::RoomClosed | ErrorCode::Busy | ErrorCode::ShuttingDown => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::response::IntoResponse;
    use playfield_room::Error;
    use playfield_wire::ErrorCode;

    use super::Failure;

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
            let response = Failure(Error::new(code, "so it is")).into_response();
            assert_eq!(response.status(), status);
        }
        let retry = |error: Error| {
            let response = Failure(error).into_response();
            response.headers()["retry-after"].to_str().unwrap().to_owned()
        };
        let error = Error::new(ErrorCode::Limit, "slow down");
        assert_eq!(retry(error.with_retry_after(Duration::from_millis(1001))), "2");
        assert_eq!(retry(Error::new(ErrorCode::RoomClosed, "the room is about to end")), "1");
    }
}
