//! Why a request was refused, a room left, or a connection ended.

use std::borrow::Cow;
use std::fmt;

/// Declares the node's codes: number, variant, name, and `closes` if an `error` with it is followed
/// by `goodbye` and the end of the connection.
macro_rules! codes {
    (@closes closes) => { true };
    (@closes) => { false };
    ($($(#[$docs:meta])* $number:literal $code:ident $name:literal $($closes:ident)?;)*) => {
        /// A code of the protocol's table of errors, or a room's own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$docs])* $code,)*
            /// A room's own code, from [`ErrorCode::ROOM_MIN`] up. Smaller numbers are the node's.
            Room(u16),
        }

        impl ErrorCode {
            /// The code's number on the wire.
            #[must_use]
            pub fn number(self) -> u16 {
                match self {
                    $(Self::$code => $number,)*
                    Self::Room(number) => number,
                }
            }

            /// The code with this number, or `None` if the protocol has none.
            #[must_use]
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$code),)*
                    Self::ROOM_MIN.. => Some(Self::Room(number)),
                    _ => None,
                }
            }

            /// The code's name, such as `room_full`. A room's own code has its decimal number.
            #[must_use]
            pub fn name(self) -> Cow<'static, str> {
                match self {
                    $(Self::$code => Cow::Borrowed($name),)*
                    Self::Room(number) => Cow::Owned(number.to_string()),
                }
            }

            /// The code with this name, or `None` if the protocol has none.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$code),)*
                    number => Self::room_from_name(number),
                }
            }

            /// Whether an `error` with this code is followed by `goodbye` and the end of the
            /// connection.
            #[must_use]
            pub fn closes(self) -> bool {
                match self {
                    $(Self::$code => codes!(@closes $($closes)?),)*
                    Self::Room(_) => false,
                }
            }
        }
    };
}

codes! {
    /// The first bytes of the connection are no protocol that the node speaks.
    1 BadPreamble "bad_preamble" closes;
    /// A message came before `hello`, or a second `hello`.
    2 HelloExpected "hello_expected" closes;
    /// The client's protocol version is not the node's.
    3 UnsupportedProtocol "unsupported_protocol" closes;
    /// A text message where binary was agreed, the reverse, or a format the node doesn't speak.
    4 WrongFormat "wrong_format" closes;
    /// A message is truncated, has trailing bytes, an unknown kind or a malformed field.
    5 BadMessage "bad_message" closes;
    /// A frame or message is past `max_message_bytes`.
    6 TooLarge "too_large" closes;
    /// The payload of a user message, or a room's options, can't be decoded.
    7 BadPayload "bad_payload";
    /// The room type declares no message of this number or name.
    8 UnknownMessage "unknown_message";
    /// The session is not in a room of this number.
    9 NotJoined "not_joined";
    /// No room has this id, or this key.
    10 RoomNotFound "room_not_found";
    /// The node has no such room type.
    11 UnknownRoomType "unknown_room_type";
    /// The room holds as many players as it can.
    12 RoomFull "room_full";
    /// The room takes no more players.
    13 RoomLocked "room_locked";
    /// The room refused; the text beside the code is the room's.
    14 Refused "refused";
    /// The session is in that room already.
    15 AlreadyJoined "already_joined";
    /// A bounded queue is full; the client may try again.
    16 Busy "busy";
    /// A named limit is reached; the text beside the code names it.
    17 Limit "limit";
    /// The room ended.
    18 RoomClosed "room_closed";
    /// The room's code panicked, and the room was closed.
    19 RoomFailed "room_failed";
    /// The player was removed from the room.
    20 Kicked "kicked";
    /// No `hello`, or nothing at all, came in time.
    21 Timeout "timeout" closes;
    /// Events for this client overflowed its outbox.
    22 TooSlow "too_slow" closes;
    /// The node is shutting down.
    23 ShuttingDown "shutting_down" closes;
    /// The client's token was refused.
    24 Unauthorized "unauthorized" closes;
    /// The client was built for another schema of the room type.
    25 SchemaMismatch "schema_mismatch";
    /// A fault of the node; its log says more.
    26 Internal "internal";
    /// The client asked to leave.
    27 Left "left";
    /// The request number is still unanswered.
    28 DuplicateRequest "duplicate_request";
    /// A message came faster than a rate allows; `retry_after_ms` says when the next is taken.
    29 TooFast "too_fast";
    /// A room of this type has this key already.
    30 RoomExists "room_exists";
    /// The text can't be a key.
    31 BadKey "bad_key";
    /// Clients can't create rooms of this type.
    32 CreationClosed "creation_closed";
    /// The reservation was used, is over, or is another player's.
    33 BadReservation "bad_reservation";
    /// The session was resumed by another connection, or the user joined by another session.
    34 TakenOver "taken_over" closes;
    /// The player's connection was lost for longer than the room keeps a seat.
    35 ConnectionLost "connection_lost";
    /// The user is in the room already, by another session.
    36 AlreadyHere "already_here";
    /// The ticket was used, has expired, is for another user, or is not a ticket.
    37 BadTicket "bad_ticket";
    /// The channel, or the fleet, does not let this session do that.
    38 Forbidden "forbidden";
    /// The node has no channels of this name.
    39 UnknownChannel "unknown_channel";
    /// Another session is registered as this device, and is not replaced.
    40 DeviceTaken "device_taken";
    /// No device is registered under this id, or it is gone.
    41 UnknownDevice "unknown_device";
    /// The room is at another node, and the client's `hello` did not say that it follows redirects.
    42 Elsewhere "elsewhere";
    /// The room is served by another node now; the client may join it again by its key.
    43 RoomMoved "room_moved";
    /// Clients only: the node that has the room could not be reached, or its reservations ran out.
    44 Unreachable "unreachable";
}

impl ErrorCode {
    /// The first number that a room may use for a code of its own.
    pub const ROOM_MIN: u16 = 1000;

    fn room_from_name(name: &str) -> Option<Self> {
        let number: u16 = name.parse().ok()?;
        // One code, one name: `+1000` and `01000` are not names.
        let canonical = name.starts_with(|first: char| matches!(first, '1'..='9'));
        (canonical && number >= Self::ROOM_MIN).then_some(Self::Room(number))
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn every_code_is_found_by_its_number_and_by_its_name() {
        for number in 1..=44 {
            let code = ErrorCode::from_number(number).unwrap();
            assert_eq!(code.number(), number);
            assert_eq!(code.to_string(), code.name());
            assert_eq!(ErrorCode::from_name(&code.name()), Some(code));
        }
    }

    #[test]
    fn room_codes_begin_at_1000() {
        for number in [0, 45, 999] {
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
        assert_eq!(closing, [1, 2, 3, 4, 5, 6, 21, 22, 23, 24, 34]);
    }
}
