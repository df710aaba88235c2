//! Compresses and decompresses the chat messages of `playfield-bench bench websocket` with plain
//! flate2, following RFC 7692: no frames, no text validation, no WebSocket library. No WebSocket
//! library in Rust that Playfield is compared with implements the extension.
//!
//! For each line of standard input, which is the name of a row of `bench websocket`, it prints the
//! time of a message in nanoseconds. Compressed messages are decompressed and compared with the
//! clock stopped, decompressed ones within the measured time.

#[path = "../../../src/suites/websocket/chat.rs"]
mod chat;
#[path = "../../../src/harness/dice.rs"]
mod dice;

use std::io;
use std::time::{Duration, Instant};

use chat::MESSAGE_BYTES;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

const LIBRARY: &str = if cfg!(feature = "miniz_oxide") { "miniz_oxide" } else { "zlib-rs" };

/// The same number of messages as in `playfield-bench bench websocket`.
const MESSAGES: usize = 1_024;

/// The bytes that a sender omits and a receiver appends (RFC 7692, 7.2).
const FLUSH_END: [u8; 4] = [0, 0, 0xFF, 0xFF];

fn main() {
    println!("{{\"{LIBRARY}\":\"{}\"}}", version(LIBRARY));
    let messages: Vec<String> = (0..MESSAGES as u64).map(chat::message).collect();
    for line in io::stdin().lines() {
        let line = line.expect("a line");
        let (level, kept) =
            (if line.contains("level 6") { 6 } else { 1 }, line.contains("takeover"));
        let (compress, inflate) = round(&messages, kept, level);
        let took = if line.starts_with("compress") { compress } else { inflate };
        let ns = took.as_secs_f64() * 1e9 / MESSAGES as f64;
        // A message that differs ends the program.
        println!("{{\"value\":{ns},\"verified\":true}}");
    }
}

/// The version of the library, by way of flate2.
fn version(library: &str) -> String {
    let lock = include_str!("../Cargo.lock");
    let of = |package: &str| {
        let begin = format!("\nname = \"{package}\"\nversion = \"");
        let version = lock.split("[[package]]").find_map(|entry| entry.strip_prefix(&begin));
        version.and_then(|rest| rest.split('"').next()).expect("a dependency").to_owned()
    };
    format!("{}, flate2 {}", of(library), of("flate2"))
}

/// Compresses all messages at a level, each independently or with the context of the earlier ones,
/// and decompresses them. Returns how long each took.
fn round(messages: &[String], kept: bool, level: u32) -> (Duration, Duration) {
    let mut stream = Compress::new(Compression::new(level), false);
    let mut compressed: Vec<Vec<u8>> =
        messages.iter().map(|_| Vec::with_capacity(2 * MESSAGE_BYTES)).collect();
    let began = Instant::now();
    for (message, out) in messages.iter().zip(&mut compressed) {
        if !kept {
            stream.reset();
        }
        let before = stream.total_in();
        stream
            .compress_vec(message.as_bytes(), out, FlushCompress::Sync)
            .expect("the stream is used correctly");
        assert_eq!(stream.total_in() - before, MESSAGE_BYTES as u64, "the buffer is large enough");
        if out.ends_with(&FLUSH_END) {
            out.truncate(out.len() - FLUSH_END.len());
        }
    }
    let compressing = began.elapsed();

    let mut stream = Decompress::new(false);
    let mut plain = Vec::with_capacity(2 * MESSAGE_BYTES);
    let began = Instant::now();
    for (message, compressed) in messages.iter().zip(&compressed) {
        if !kept {
            stream.reset(false);
        }
        plain.clear();
        for part in [&compressed[..], &FLUSH_END] {
            stream
                .decompress_vec(part, &mut plain, FlushDecompress::Sync)
                .expect("valid compressed data");
        }
        assert!(plain == message.as_bytes(), "a message differs");
    }
    (compressing, began.elapsed())
}
