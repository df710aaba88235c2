//! What a client writes and reads in native framing.

use std::io;

use playfield_wire::Format;
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::ServerMessage;

/// The format of all messages.
pub(crate) const FORMAT: Format = Format::Packed;

/// What a message is to the client that reads it.
pub(crate) enum Verdict {
    /// It is the one that is waited for.
    Wanted,
    /// It may come before.
    Passing,
    Wrong,
}

/// The first bytes of a connection.
pub(crate) fn opening(hello: &Hello<'_>) -> Vec<u8> {
    [&PREAMBLE[..], &framed(&ClientMessage::Hello(hello.clone()))].concat()
}

/// One message in its frame.
pub(crate) fn framed(message: &ClientMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_frame_with(&mut out, |out| message.encode(FORMAT, out));
    out
}

/// Takes messages up to the one that is wanted. Whether it has come. Pings may always come.
pub(crate) fn heard(
    input: &mut Vec<u8>,
    judge: impl Fn(&ServerMessage<'_>) -> Verdict,
) -> io::Result<bool> {
    let framing = Framing { message_bytes_max: 1 << 20 };
    let invalid = |error: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidData, error.to_string())
    };
    while let Some(frame) = framing.decode(input).map_err(|error| invalid(&error))? {
        let message = ServerMessage::decode(FORMAT, frame.body);
        let message = message.map_err(|error| invalid(&error))?;
        let is_done = match judge(&message) {
            Verdict::Wanted => true,
            Verdict::Passing => false,
            Verdict::Wrong if matches!(message, ServerMessage::Ping(_)) => false,
            Verdict::Wrong => return Err(wrong("an unexpected message", frame.body)),
        };
        let consumed = frame.consumed;
        input.drain(..consumed);
        if is_done {
            input.shrink_to_fit();
            return Ok(true);
        }
    }
    Ok(false)
}

/// The error for bytes that should not have come.
pub(crate) fn wrong(what: &str, input: &[u8]) -> io::Error {
    let text = format!("{what}: {:?}", String::from_utf8_lossy(&input[..input.len().min(200)]));
    io::Error::new(io::ErrorKind::InvalidData, text)
}
