//! Why a request was refused, a room left, or a connection ended.

use std::borrow::Cow;
use std::fmt;

/// A code of the protocol's table of errors, or a room's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The first bytes of the connection are no protocol the node speaks.
    BadPreamble,
    /// A message came before `hello`, or a second `hello`.
    HelloExpected,
    /// The client's protocol version is not the node's.
    UnsupportedProtocol,
    /// A text message where binary was agreed, the reverse, or a format the node doesn't speak.
    WrongFormat,
    /// A message is truncated, has trailing bytes, an unknown kind or a malformed field.
    BadMessage,
    /// A frame or message is past `max_message_bytes`.
    TooLarge,
    /// The payload of a user message, or a room's options, can't be decoded.
    BadPayload,
    /// The room type declares no message of this number or name.
    UnknownMessage,
    /// The session is not in a room of this number.
    NotJoined,
    /// No room has this id.
    RoomNotFound,
    /// The node has no such room type.
    UnknownRoomType,
    /// The room holds as many players as it can.
    RoomFull,
    /// The room takes no more players.
    RoomLocked,
    /// The room said no; the text beside the code is the room's.
    Refused,
    /// The session is in that room already.
    AlreadyJoined,
    /// A bounded queue is full; the client may try again.
    Busy,
    /// A named limit is reached; the text beside the code names it.
    Limit,
    /// The room ended.
    RoomClosed,
    /// The room's code panicked, and the room was closed.
    RoomFailed,
    /// The player was removed from the room.
    Kicked,
    /// No `hello`, or no sign of life, came in time.
    Timeout,
    /// Events for this client overflowed its outbox.
    TooSlow,
    /// The node is shutting down.
    ShuttingDown,
    /// The client's token was refused.
    Unauthorized,
    /// The client was built for another schema of the room type.
    SchemaMismatch,
    /// A fault of the node; its log says more.
    Internal,
    /// The client asked to leave.
    Left,
    /// The request number is still unanswered.
    DuplicateRequest,
    /// A room's own code, from [`ErrorCode::ROOM_MIN`] up. Below that the number means the node's
    /// code.
    Room(u16),
}

/// The node's codes by number, beginning with 1, and their names.
const TABLE: [(ErrorCode, &str); 28] = [
    (ErrorCode::BadPreamble, "bad_preamble"),
    (ErrorCode::HelloExpected, "hello_expected"),
    (ErrorCode::UnsupportedProtocol, "unsupported_protocol"),
    (ErrorCode::WrongFormat, "wrong_format"),
    (ErrorCode::BadMessage, "bad_message"),
    (ErrorCode::TooLarge, "too_large"),
    (ErrorCode::BadPayload, "bad_payload"),
    (ErrorCode::UnknownMessage, "unknown_message"),
    (ErrorCode::NotJoined, "not_joined"),
    (ErrorCode::RoomNotFound, "room_not_found"),
    (ErrorCode::UnknownRoomType, "unknown_room_type"),
    (ErrorCode::RoomFull, "room_full"),
    (ErrorCode::RoomLocked, "room_locked"),
    (ErrorCode::Refused, "refused"),
    (ErrorCode::AlreadyJoined, "already_joined"),
    (ErrorCode::Busy, "busy"),
    (ErrorCode::Limit, "limit"),
    (ErrorCode::RoomClosed, "room_closed"),
    (ErrorCode::RoomFailed, "room_failed"),
    (ErrorCode::Kicked, "kicked"),
    (ErrorCode::Timeout, "timeout"),
    (ErrorCode::TooSlow, "too_slow"),
    (ErrorCode::ShuttingDown, "shutting_down"),
    (ErrorCode::Unauthorized, "unauthorized"),
    (ErrorCode::SchemaMismatch, "schema_mismatch"),
    (ErrorCode::Internal, "internal"),
    (ErrorCode::Left, "left"),
    (ErrorCode::DuplicateRequest, "duplicate_request"),
];

impl ErrorCode {
    /// The first number that a room may use for a code of its own.
    pub const ROOM_MIN: u16 = 1000;

    /// The code's number on the wire.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::BadPreamble => 1,
            Self::HelloExpected => 2,
            Self::UnsupportedProtocol => 3,
            Self::WrongFormat => 4,
            Self::BadMessage => 5,
            Self::TooLarge => 6,
            Self::BadPayload => 7,
            Self::UnknownMessage => 8,
            Self::NotJoined => 9,
            Self::RoomNotFound => 10,
            Self::UnknownRoomType => 11,
            Self::RoomFull => 12,
            Self::RoomLocked => 13,
            Self::Refused => 14,
            Self::AlreadyJoined => 15,
            Self::Busy => 16,
            Self::Limit => 17,
            Self::RoomClosed => 18,
            Self::RoomFailed => 19,
            Self::Kicked => 20,
            Self::Timeout => 21,
            Self::TooSlow => 22,
            Self::ShuttingDown => 23,
            Self::Unauthorized => 24,
            Self::SchemaMismatch => 25,
            Self::Internal => 26,
            Self::Left => 27,
            Self::DuplicateRequest => 28,
            Self::Room(number) => number,
        }
    }

    /// The code with this number, or `None` if the protocol has none.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        if number >= Self::ROOM_MIN {
            return Some(Self::Room(number));
        }
        let index = usize::from(number).checked_sub(1)?;
        TABLE.get(index).map(|&(code, _)| code)
    }

    /// The code's name, such as `room_full`. A room's own code has its decimal number for a name.
    #[must_use]
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::Room(number) => Cow::Owned(number.to_string()),
            code => Cow::Borrowed(TABLE[usize::from(code.number()) - 1].1),
        }
    }

    /// The code with this name, or `None` if the protocol has none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if let Some(&(code, _)) = TABLE.iter().find(|(_, known)| *known == name) {
            return Some(code);
        }
        let number: u16 = name.parse().ok()?;
        // One code, one name: `+1000` and `01000` are not names.
        let canonical = name.starts_with(|first: char| matches!(first, '1'..='9'));
        (canonical && number >= Self::ROOM_MIN).then_some(Self::Room(number))
    }

    /// Whether an `error` with this code is followed by `goodbye` and the end of the connection.
    #[must_use]
    pub fn closes(self) -> bool {
        matches!(
            self,
            Self::BadPreamble
                | Self::HelloExpected
                | Self::UnsupportedProtocol
                | Self::WrongFormat
                | Self::BadMessage
                | Self::TooLarge
                | Self::Timeout
                | Self::TooSlow
                | Self::ShuttingDown
                | Self::Unauthorized
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorCode, TABLE};

    #[test]
    fn every_code_is_found_by_its_number_and_by_its_name() {
        for (index, &(code, name)) in TABLE.iter().enumerate() {
            assert_eq!(usize::from(code.number()), index + 1, "{name}");
            assert_eq!(code.name(), name);
            assert_eq!(code.to_string(), name);
            assert_eq!(ErrorCode::from_number(code.number()), Some(code));
            assert_eq!(ErrorCode::from_name(name), Some(code));
        }
    }

    #[test]
    fn room_codes_begin_at_1000() {
        for number in [0, 29, 999] {
            assert_eq!(ErrorCode::from_number(number), None, "{number}");
            assert_eq!(ErrorCode::from_name(&number.to_string()), None, "{number}");
        }
        for number in [1000, 1001, u16::MAX] {
            let code = ErrorCode::Room(number);
            assert_eq!(ErrorCode::from_number(number), Some(code));
            assert_eq!(ErrorCode::from_name(&number.to_string()), Some(code));
            assert_eq!(code.number(), number);
            assert!(!code.closes());
        }
        for name in ["+1000", "01000", "65536", "", "Room", "room_Full"] {
            assert_eq!(ErrorCode::from_name(name), None, "{name}");
        }
    }

    #[test]
    fn exactly_the_codes_marked_in_the_table_close() {
        let closing: Vec<u16> = (0..2000)
            .filter(|&number| ErrorCode::from_number(number).is_some_and(ErrorCode::closes))
            .collect();
        assert_eq!(closing, [1, 2, 3, 4, 5, 6, 21, 22, 23, 24]);
    }
}
