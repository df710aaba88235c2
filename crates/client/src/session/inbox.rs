//! Received bytes that were not handled yet.

use std::ops::Range;

use super::ClientError;
use super::transport::{Inbound, Piece};

/// An empty inbox with more capacity than this is freed.
const IDLE_BYTES_MAX: usize = 4 << 10;

/// While more bytes than this wait to be polled, no more are wanted.
const UNPOLLED_BYTES_MAX: usize = 1 << 20;

/// Received bytes, of which those before `start` were handled.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
    /// A whole piece may wait.
    pub(super) is_unread: bool,
    /// The transport ends after these bytes.
    pub(super) is_last: bool,
}

/// The place of a message's body.
#[derive(Debug)]
pub(super) enum Place {
    Inbox(Range<usize>),
    /// In the buffer of the transport's decoder.
    Decoder,
}

impl Inbox {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.is_unread = true;
    }

    pub(super) fn wants_more(&self) -> bool {
        !self.is_unread || self.bytes.len() - self.start < UNPOLLED_BYTES_MAX
    }

    /// The next piece, and where it is if it is a message. `None` if more bytes are needed.
    #[inline]
    pub(super) fn next<'a>(
        &'a mut self,
        inbound: &'a mut Inbound,
    ) -> Result<Option<(Piece<'a>, Place)>, ClientError> {
        let (begin, end) = (self.bytes.as_ptr().addr(), self.bytes.len());
        let input = &mut self.bytes[self.start..];
        let Some((bytes, piece)) = inbound.next(input)? else { return Ok(None) };
        self.start += bytes;
        let place = match &piece {
            Piece::Message(body) => {
                let start = body.as_ptr().addr().wrapping_sub(begin);
                if start < end { Place::Inbox(start..start + body.len()) } else { Place::Decoder }
            }
            _ => Place::Decoder,
        };
        Ok(Some((piece, place)))
    }

    /// The body of the last message.
    #[inline]
    pub(super) fn body<'a>(&'a self, inbound: &'a Inbound, place: Place) -> &'a [u8] {
        match place {
            Place::Inbox(range) => &self.bytes[range],
            Place::Decoder => inbound.held_message(),
        }
    }

    /// More bytes are needed: forgets those that were handled.
    pub(super) fn settle(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
        } else if self.start > 0 {
            self.bytes.drain(..self.start);
        }
        self.start = 0;
        if self.bytes.len() <= IDLE_BYTES_MAX && self.bytes.capacity() > IDLE_BYTES_MAX {
            self.bytes.shrink_to(0);
        }
        self.is_unread = false;
    }
}
