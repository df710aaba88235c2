//! The raw value of a member of a message.

use std::borrow::Cow;

use super::token::{Cursor, Token};
use crate::TreeFormat;
use crate::error::DecodeError;
use crate::json;
use crate::tree::members::{Member, Pair, Raw, Values};

/// The bytes of one value. All values and lengths in them are well formed.
#[derive(Clone, Copy)]
pub(crate) struct RawMsgpack<'a>(&'a [u8]);

impl<'a> RawMsgpack<'a> {
    /// A whole message, not parsed yet.
    pub(crate) fn of_message(body: &'a [u8]) -> Self {
        Self(body)
    }

    fn token(self) -> Option<Token<'a>> {
        Cursor::new(self.0).token().ok()
    }
}

impl<'a> Raw<'a> for RawMsgpack<'a> {
    const FORMAT: TreeFormat = TreeFormat::Msgpack;

    fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn is_null(self) -> bool {
        self.0 == [0xc0]
    }

    fn members(self, what: &'static str) -> Result<Values<Self>, DecodeError> {
        let mut cursor = Cursor::new(self.0);
        let Token::Map(count) = cursor.token()? else {
            return Err(DecodeError::other(format!("{what} must be a map, but is another type")));
        };
        let mut values = Values::none();
        for _ in 0..count {
            let at = cursor.offset();
            let Token::Text(name) = cursor.token()? else {
                return Err(DecodeError::new(at, "the name of a member is not a text"));
            };
            let value = Self(cursor.slice()?);
            if let Some(member) = std::str::from_utf8(name).ok().and_then(Member::from_name) {
                values.set(member, value);
            }
        }
        cursor.finish()?;
        Ok(values)
    }

    fn as_u64(self) -> Option<u64> {
        match self.token()? {
            Token::Unsigned(value) => Some(value),
            Token::Text(_) => json::parse_u64(&self.as_text()?),
            _ => None,
        }
    }

    fn as_bool(self) -> Option<bool> {
        match self.token()? {
            Token::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn as_text(self) -> Option<Cow<'a, str>> {
        match self.token()? {
            Token::Text(text) => std::str::from_utf8(text).ok().map(Cow::Borrowed),
            _ => None,
        }
    }

    fn as_bytes(self) -> Option<Cow<'a, [u8]>> {
        match self.token()? {
            Token::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Token::Text(_) => json::parse_base64(&self.as_text()?).map(Cow::Owned),
            _ => None,
        }
    }

    fn as_pairs(self) -> Option<Vec<Pair<'a>>> {
        let mut cursor = Cursor::new(self.0);
        let Token::Map(count) = cursor.token().ok()? else { return None };
        let mut text = || Self(cursor.slice().ok()?).as_text();
        (0..count).map(|_| Some((text()?, text()?))).collect()
    }

    fn as_elements(self) -> Option<Vec<Self>> {
        let mut cursor = Cursor::new(self.0);
        let Token::Array(count) = cursor.token().ok()? else { return None };
        (0..count).map(|_| cursor.slice().ok().map(Self)).collect()
    }
}
