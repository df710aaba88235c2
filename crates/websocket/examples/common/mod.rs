//! Code that the client and the server share once they are connected.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use playfield_websocket::{Decoder, Deflater, Item, Mask, Opcode, encode, encode_close};

/// Conformance suites send messages of 16 MiB.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes that have arrived but are not yet consumed.
pub(crate) type Buffer = Vec<u8>;

/// Echoes every message until either end closes. `mask` returns the key for each frame.
pub(crate) fn echo(
    socket: &mut TcpStream,
    input: &mut Buffer,
    mut decoder: Decoder,
    mut deflater: Option<&mut Deflater>,
    mut mask: impl FnMut() -> Mask,
) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        let mut used = 0;
        let mut closed = false;
        while !closed {
            let decoded = match decoder.decode(&mut input[used..]) {
                Ok(decoded) => decoded,
                Err(error) => {
                    encode_close(&mut out, error.close_code(), &error.to_string(), mask());
                    closed = true;
                    continue;
                }
            };
            if decoded.consumed == 0 {
                break;
            }
            used += decoded.consumed;
            let mut message = |opcode, payload: &[u8]| match &mut deflater {
                Some(deflater) => deflater.encode(&mut out, opcode, payload, mask()),
                None => encode(&mut out, opcode, payload, mask()),
            };
            match decoded.item {
                None | Some(Item::Pong(_)) => {}
                Some(Item::Text(text)) => message(Opcode::Text, text.as_bytes()),
                Some(Item::Binary(bytes)) => message(Opcode::Binary, bytes),
                Some(Item::Ping(payload)) => message(Opcode::Pong, payload),
                Some(Item::Close(close)) => {
                    encode_close(&mut out, close.map_or(1005, |close| close.code), "", mask());
                    closed = true;
                }
            }
        }
        socket.write_all(&out)?;
        out.clear();
        input.drain(..used);
        if closed || !read_more(socket, input)? {
            return Ok(());
        }
    }
}

/// Waits for bytes. Returns `false` once the peer has closed its end.
pub(crate) fn read_more(socket: &mut TcpStream, input: &mut Buffer) -> io::Result<bool> {
    let mut chunk = [0; 16 << 10];
    let count = socket.read(&mut chunk)?;
    input.extend_from_slice(&chunk[..count]);
    Ok(count != 0)
}
