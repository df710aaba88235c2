//! Reads masked frames in memory. For each line "LIBRARY BYTES" of standard input it reads frames
//! with payloads of that size, and prints the time of each in nanoseconds.
//!
//! Each library gets the bytes through the buffer it provides, as from a socket, and returns each
//! message's payload unmasked. Every payload is compared with what was sent.

#[path = "../../../../src/suites/peers/frames.rs"]
mod frames;

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use fastwebsockets::{OpCode, Role as FastRole};
use frames::{Case, READ_BYTES, SIZES};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::{Role as TungsteniteRole, WebSocketConfig};
use websocket_peers::version;

const MESSAGE_BYTES_MAX: usize = 1 << 20;

fn main() {
    let (fast, other) = ("fastwebsockets", "tungstenite");
    println!("{{\"{fast}\":\"{}\",\"{other}\":\"{}\"}}", version(fast), version(other));
    let cases = SIZES.map(Case::new);
    for line in io::stdin().lines() {
        let line = line.expect("a line");
        let (library, bytes) = line.split_once(' ').expect("a library and a size");
        let case = cases.iter().find(|case| case.payload.len().to_string() == bytes);
        let case = case.expect("one of the sizes");
        let began = Instant::now();
        let right = if library == fast { fastwebsockets(case) } else { tungstenite(case) };
        let ns = began.elapsed().as_secs_f64() * 1e9 / case.frames as f64;
        println!("{{\"value\":{ns},\"verified\":{}}}", right == case.frames);
    }
}

/// A socket that already holds all its bytes.
struct Memory<'a>(&'a [u8]);

impl AsyncRead for Memory<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.0.len().min(buffer.remaining()).min(READ_BYTES);
        let (now, later) = self.0.split_at(count);
        buffer.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Memory<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Read for Memory<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Memory<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns how many payloads were right.
fn fastwebsockets(case: &Case) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let wire: &[u8] = &case.wire;
    runtime.block_on(async {
        let mut socket = fastwebsockets::WebSocket::after_handshake(Memory(wire), FastRole::Server);
        socket.set_max_message_size(MESSAGE_BYTES_MAX);
        let (mut frames, mut right) = (0, 0);
        while frames < case.frames {
            let frame = socket.read_frame().await.expect("valid frames");
            if frame.opcode == OpCode::Binary {
                right += usize::from(*frame.payload == case.payload[..]);
                frames += 1;
            }
        }
        right
    })
}

/// The same.
fn tungstenite(case: &Case) -> usize {
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX));
    let mut socket = tungstenite::WebSocket::from_raw_socket(
        Memory(&case.wire),
        TungsteniteRole::Server,
        Some(config),
    );
    let (mut frames, mut right) = (0, 0);
    while frames < case.frames {
        if let tungstenite::Message::Binary(payload) = socket.read().expect("valid frames") {
            right += usize::from(payload == case.payload);
            frames += 1;
        }
    }
    right
}
