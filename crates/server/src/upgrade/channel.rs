//! The way between two processes.

use std::io::{self, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use playfield_state::{Bytes, Data, Format};

use super::message::{MESSAGE_BYTES_MAX, Message, PART_BYTES, PART_HEADER_BYTES_MAX, Part, Piece};
use crate::sys;

/// One end of the way. Every wait has an end.
pub(super) struct Channel(UnixStream);

impl Channel {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    pub(super) fn send(&mut self, message: &Message) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        message.encode(&mut bytes);
        let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.0.write_all(&bytes)
    }

    /// Sends pieces in parts, many small ones in a message.
    pub(super) fn send_pieces<'a>(
        &mut self,
        pieces: impl Iterator<Item = (Piece, &'a [u8])>,
    ) -> io::Result<()> {
        let (mut parts, mut bytes) = (Vec::new(), 0);
        for (of, piece) in pieces {
            let mut chunks = piece.chunks(PART_BYTES).peekable();
            while let Some(chunk) = chunks.next() {
                if bytes + chunk.len() > PART_BYTES && !parts.is_empty() {
                    self.send(&Message::Parts { parts: std::mem::take(&mut parts) })?;
                    bytes = 0;
                }
                bytes += chunk.len() + PART_HEADER_BYTES_MAX;
                let is_last = chunks.peek().is_none();
                parts.push(Part { of, is_last, bytes: Bytes(chunk.to_vec()) });
            }
        }
        self.send(&Message::Parts { parts })
    }

    /// The next message, within this time.
    pub(super) fn receive(&mut self, within: Duration) -> io::Result<Message> {
        let by = Instant::now() + within;
        let mut length = [0; 4];
        self.read_exact(&mut length, by)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MESSAGE_BYTES_MAX {
            let text = format!("a message of {length} bytes is too long: is it another program?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut bytes = vec![0; length];
        self.read_exact(&mut bytes, by)?;
        Message::read(Format::Packed, &bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
    }

    fn read_exact(&mut self, mut into: &mut [u8], by: Instant) -> io::Result<()> {
        while !into.is_empty() {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.0.set_read_timeout(Some(left))?;
            match self.0.read(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => into = &mut into[bytes..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A write that takes longer fails.
    pub(super) fn write_within(&self, within: Duration) -> io::Result<()> {
        self.0.set_write_timeout(Some(within))
    }

    pub(super) fn send_sockets(&self, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        sys::send_descriptors(&self.0, sockets)
    }

    pub(super) fn receive_sockets(
        &self,
        count: usize,
        within: Duration,
    ) -> io::Result<Vec<OwnedFd>> {
        self.0.set_read_timeout(Some(within))?;
        sys::receive_descriptors(&self.0, count)
    }
}
