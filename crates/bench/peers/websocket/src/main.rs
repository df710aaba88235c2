//! Reads the same masked frames with Playfield's WebSocket codec and with other libraries, in
//! memory, one after another in the same run.
//!
//! Each reader receives the bytes through the buffer it provides, as from a socket, and returns
//! each message's payload unmasked. Every payload is compared with what was sent. The rounds are
//! interleaved, so a slow period affects all readers.

use std::io::{self, Cursor, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use fastwebsockets::{OpCode, Role as FastRole};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tungstenite::protocol::{Role as TungsteniteRole, WebSocketConfig};

const ROUNDS: usize = 15;

/// How many payload bytes are read per round.
const ROUND_BYTES: usize = 16 << 20;

/// The number of bytes that a shard reads at once.
const READ_BYTES: usize = 256 << 10;

const MESSAGE_BYTES_MAX: usize = 1 << 20;

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    if !json {
        println!(
            "{:>8} {:>16} {:>10} {:>10} {:>10} {:>9}",
            "bytes", "reader", "ns/frame", "GB/s", "x memcpy", "ours is"
        );
    }
    for bytes in [8, 64, 1 << 10, 64 << 10] {
        let case = Case::new(bytes);
        let readers: [(&str, fn(&Case) -> usize); 4] = [
            ("playfield", playfield),
            ("fastwebsockets", fastwebsockets),
            ("tungstenite", tungstenite),
            ("memcpy", memcpy),
        ];
        let mut best = [Duration::MAX; 4];
        for _ in 0..ROUNDS {
            for ((_, read), best) in readers.iter().zip(&mut best) {
                let began = Instant::now();
                let frames = read(&case);
                *best = (*best).min(began.elapsed());
                assert_eq!(frames, case.frames, "every frame must be read and compared");
            }
        }
        let per_frame = best.map(|best| best.as_secs_f64() * 1e9 / case.frames as f64);
        for ((name, _), ns) in readers.iter().zip(per_frame) {
            let rate = bytes as f64 / ns;
            let (memcpy, ours) = (per_frame[3] / ns, ns / per_frame[0]);
            if json {
                println!(
                    "{{\"suite\":\"websocket-peers\",\"bytes\":{bytes},\"reader\":\"{name}\",\"ns_per_frame\":{ns:.3},\"gb_per_s\":{rate:.3},\"of_memcpy\":{memcpy:.3},\"ours_is_faster_by\":{ours:.3},\"verified\":true}}"
                );
            } else {
                println!(
                    "{bytes:>8} {name:>16} {ns:>10.1} {rate:>10.2} {memcpy:>10.2} {ours:>8.2}x"
                );
            }
        }
    }
}

/// Frames from a client, and their payload.
struct Case {
    payload: Vec<u8>,
    wire: Vec<u8>,
    frames: usize,
}

impl Case {
    fn new(bytes: usize) -> Self {
        let payload: Vec<u8> = (0..bytes).map(|place| (place * 7) as u8).collect();
        let frames = (ROUND_BYTES / bytes).clamp(256, 400_000);
        let mut wire = Vec::new();
        for number in 0..frames {
            let key = (number as u32).wrapping_mul(0x9e37_79b9) | 1;
            encode(&mut wire, Opcode::Binary, &payload, Some(key.to_ne_bytes()));
        }
        Self { payload, wire, frames }
    }

    fn check(&self, payload: &[u8]) {
        assert!(payload == self.payload, "a payload differs");
    }
}

fn playfield(case: &Case) -> usize {
    let mut decoder = Decoder::new(
        Role::Server,
        Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() },
    );
    let mut socket = Cursor::new(&case.wire[..]);
    let mut buffer = vec![0; READ_BYTES + case.payload.len() + 14];
    let (mut held, mut frames) = (0, 0);
    loop {
        let count = socket.read(&mut buffer[held..]).expect("reading a slice succeeds");
        if count == 0 {
            return frames;
        }
        let end = held + count;
        let mut used = 0;
        loop {
            let decoded = decoder.decode(&mut buffer[used..end]).expect("valid frames");
            if decoded.consumed == 0 {
                break;
            }
            used += decoded.consumed;
            if let Some(Item::Binary(payload)) = decoded.item {
                case.check(payload);
                frames += 1;
            }
        }
        buffer.copy_within(used..end, 0);
        held = end - used;
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
        let (now, later) = self.0.split_at(self.0.len().min(buffer.remaining()));
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

fn fastwebsockets(case: &Case) -> usize {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    // The socket must be `'static`. Leaking the frames once per round would use more memory than
    // leaking this one slice.
    let wire: &[u8] = &case.wire;
    runtime.block_on(async {
        let mut socket = fastwebsockets::WebSocket::after_handshake(Memory(wire), FastRole::Server);
        socket.set_max_message_size(MESSAGE_BYTES_MAX);
        let mut frames = 0;
        while frames < case.frames {
            let frame = socket.read_frame().await.expect("valid frames");
            if frame.opcode == OpCode::Binary {
                case.check(&frame.payload);
                frames += 1;
            }
        }
        frames
    })
}

fn tungstenite(case: &Case) -> usize {
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_BYTES_MAX));
    let mut socket = tungstenite::WebSocket::from_raw_socket(
        Memory(&case.wire),
        TungsteniteRole::Server,
        Some(config),
    );
    let mut frames = 0;
    while frames < case.frames {
        if let tungstenite::Message::Binary(payload) = socket.read().expect("valid frames") {
            case.check(&payload);
            frames += 1;
        }
    }
    frames
}

/// The lower bound: payloads are copied, and compared as by all readers.
fn memcpy(case: &Case) -> usize {
    let mut buffer = vec![0; case.payload.len()];
    for _ in 0..case.frames {
        std::hint::black_box(&mut buffer).copy_from_slice(&case.payload);
        case.check(std::hint::black_box(&buffer));
    }
    case.frames
}
