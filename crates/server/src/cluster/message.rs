//! Requests for seats between nodes, as bytes: the number of the format, and the value as `packed`.

use std::time::Duration;

use playfield_room::{Creator, Error, SeatFor};
use playfield_state::{Bytes, Data, Format};
use playfield_wire::{DecodeError, ErrorCode};

const FORMAT: u8 = 1;

/// A request for a seat at another node.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) struct SeatRequest {
    pub(super) who: Who,
    /// The time for which the seat is kept.
    pub(super) wait_ms: u64,
    pub(super) room: Wanted,
}

/// The player that a seat is for.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum Who {
    Name(String),
    User(String),
}

/// The room that a seat is wanted in.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum Wanted {
    /// The room with this id.
    Id(String),
    /// The room with this key, or code, if it is open.
    Key(RoomKey),
    /// A new room; or the one with its key, if it need not be new.
    New(NewRoom),
}

/// A key of a room type.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) struct RoomKey {
    pub(super) room_type: String,
    pub(super) key: String,
}

/// The key of a new room.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum NewKey {
    None,
    Chosen(String),
    /// A code that someone has spelled.
    Spelled(String),
    /// A code that the node of the room draws.
    Drawn,
}

/// A room that may have to be created.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) struct NewRoom {
    pub(super) room_type: String,
    pub(super) key: NewKey,
    /// A room that has the key already won't do.
    pub(super) is_new: bool,
    pub(super) private: bool,
    pub(super) format: u8,
    pub(super) options: Bytes,
    /// The name and the user of its creator.
    pub(super) name: String,
    pub(super) user: Option<String>,
}

/// The answer to a request for a seat.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum SeatAnswer {
    /// A reservation, or the id of a room that the player enters without one.
    Seat(String),
    Refused(Refusal),
    /// No room has that key at this node.
    NotHere,
}

/// An error of a room or its node.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) struct Refusal {
    code: u32,
    text: String,
    retry_after_ms: Option<u32>,
}

impl From<&SeatFor> for Who {
    fn from(who: &SeatFor) -> Self {
        match who {
            SeatFor::Name(name) => Self::Name(name.clone()),
            SeatFor::User(user) => Self::User(user.clone()),
        }
    }
}

impl From<Who> for SeatFor {
    fn from(who: Who) -> Self {
        match who {
            Who::Name(name) => Self::Name(name),
            Who::User(user) => Self::User(user),
        }
    }
}

impl NewRoom {
    pub(super) fn creator(&self) -> Creator {
        Creator::player(self.name.clone(), self.user.clone())
    }
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code().number().into(),
            text: error.text().to_owned(),
            retry_after_ms: error.retry_after_ms(),
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, text, retry_after_ms } = refusal;
        let code = u16::try_from(code).ok().and_then(ErrorCode::from_number);
        let error = Self::new(code.unwrap_or(ErrorCode::Internal), text);
        match retry_after_ms {
            Some(ms) => error.with_retry_after(Duration::from_millis(ms.into())),
            None => error,
        }
    }
}

/// Returns a message as bytes.
pub(super) fn encode(message: &impl Data) -> Vec<u8> {
    let mut out = vec![FORMAT];
    message.encode(&mut out);
    out
}

/// Reads a message.
///
/// # Errors
/// If the bytes are cut off, or of another format.
pub(super) fn decode<T: Data>(bytes: &[u8]) -> Result<T, DecodeError> {
    match bytes.split_first() {
        Some((&FORMAT, body)) => T::read(Format::Packed, body),
        _ => {
            let what = "a request between nodes of another format: upgrade the older node";
            Err(DecodeError::new(0, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_room::Error;
    use playfield_wire::ErrorCode;

    use super::{
        NewKey, NewRoom, Refusal, RoomKey, SeatAnswer, SeatRequest, Wanted, Who, decode, encode,
    };

    fn requests() -> Vec<SeatRequest> {
        let room = NewRoom {
            room_type: "match".into(),
            key: NewKey::Spelled("k".into()),
            is_new: false,
            private: true,
            format: 2,
            options: b"{}".to_vec().into(),
            name: "Ann".into(),
            user: Some("u1".into()),
        };
        let key = RoomKey { room_type: "match".into(), key: "k".into() };
        [Wanted::Id("a".into()), Wanted::Key(key), Wanted::New(room)]
            .into_iter()
            .map(|room| SeatRequest { who: Who::User("u1".into()), wait_ms: 30_000, room })
            .collect()
    }

    #[test]
    fn requests_are_read_whole_or_not_at_all() {
        for request in requests() {
            let bytes = encode(&request);
            assert_eq!(decode::<SeatRequest>(&bytes), Ok(request));
            for end in 0..bytes.len() {
                assert!(decode::<SeatRequest>(&bytes[..end]).is_err(), "{end}");
            }
            let later = [&[2], &bytes[1..]].concat();
            assert!(decode::<SeatRequest>(&later).is_err());
        }
    }

    #[test]
    fn a_refusal_is_the_error_that_it_was() {
        let error =
            Error::new(ErrorCode::RoomFull, "full").with_retry_after(Duration::from_secs(2));
        let answer = SeatAnswer::Refused(Refusal::from(&error));
        let SeatAnswer::Refused(read) = decode(&encode(&answer)).unwrap() else { panic!() };
        assert_eq!(Error::from(read), error);
    }
}
