//! Compresses and decompresses the chat messages of `playfield-bench bench websocket` with plain flate2,
//! following RFC 7692: no frames, no text validation, no WebSocket library. None of the libraries
//! that Playfield is compared with implements the extension.
//!
//! The rounds of all rows are interleaved, so a slow period affects all of them, and the fastest
//! round counts. Compressed messages are decompressed and compared with the clock stopped.
//! Decompressed messages are compared within the measured time.

#[path = "../../../src/suites/websocket/chat.rs"]
mod chat;

use std::time::{Duration, Instant};

use chat::MESSAGE_BYTES;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

const LIBRARY: &str = if cfg!(feature = "miniz_oxide") { "miniz_oxide" } else { "zlib-rs" };

const ROUNDS: usize = 15;

/// The same number of messages as in `playfield-bench bench websocket`.
const MESSAGES: usize = 1_024;

/// The bytes that a sender omits and a receiver appends (RFC 7692, 7.2).
const FLUSH_END: [u8; 4] = [0, 0, 0xFF, 0xFF];

fn main() {
    let json = std::env::args().any(|argument| argument == "--json");
    let messages: Vec<String> = (0..MESSAGES as u64).map(chat::message).collect();
    let mut rows: Vec<Row> = [(false, 1), (false, 6), (true, 1), (true, 6)]
        .map(|(kept, level)| Row::new(kept, level))
        .into();
    for _ in 0..ROUNDS {
        rows.iter_mut().for_each(|row| row.round(&messages));
    }
    if !json {
        println!("{:>12} {:>28} {:>10} {:>9} {:>9}", "library", "row", "ns/op", "MB/s", "ratio");
    }
    for Row { kept, level, compress, inflate, bytes } in rows {
        for (name, took) in [("compress", compress), ("inflate", inflate)] {
            let row = [
                name,
                if kept { ", takeover" } else { "" },
                if level == 6 { ", level 6" } else { "" },
            ]
            .concat();
            let ns = took.as_secs_f64() * 1e9 / MESSAGES as f64;
            let (mb_per_s, to) =
                (MESSAGE_BYTES as f64 / ns * 1e3, bytes as f64 / (MESSAGES * MESSAGE_BYTES) as f64);
            if json {
                println!(
                    "{{\"suite\":\"deflate-peers\",\"library\":\"{LIBRARY}\",\"row\":\"{row}\",\"ns_per_op\":{ns:.3},\"mb_per_s\":{mb_per_s:.3},\"compressed_to\":{to:.3},\"verified\":true}}"
                );
            } else {
                println!("{LIBRARY:>12} {row:>28} {ns:>10.1} {mb_per_s:>9.1} {to:>9.3}");
            }
        }
    }
}

/// Messages compressed at one level, each independently or with the context of the earlier ones.
struct Row {
    kept: bool,
    level: u32,
    /// The fastest round of each.
    compress: Duration,
    inflate: Duration,
    /// The compressed size of all messages.
    bytes: usize,
}

impl Row {
    fn new(kept: bool, level: u32) -> Self {
        Self { kept, level, compress: Duration::MAX, inflate: Duration::MAX, bytes: 0 }
    }

    fn round(&mut self, messages: &[String]) {
        let mut stream = Compress::new(Compression::new(self.level), false);
        let mut compressed: Vec<Vec<u8>> =
            messages.iter().map(|_| Vec::with_capacity(2 * MESSAGE_BYTES)).collect();
        let began = Instant::now();
        for (message, out) in messages.iter().zip(&mut compressed) {
            if !self.kept {
                stream.reset();
            }
            let before = stream.total_in();
            stream
                .compress_vec(message.as_bytes(), out, FlushCompress::Sync)
                .expect("the stream is used correctly");
            assert_eq!(
                stream.total_in() - before,
                MESSAGE_BYTES as u64,
                "the buffer is large enough"
            );
            if out.ends_with(&FLUSH_END) {
                out.truncate(out.len() - FLUSH_END.len());
            }
        }
        self.compress = self.compress.min(began.elapsed());
        self.bytes = compressed.iter().map(Vec::len).sum();

        let mut stream = Decompress::new(false);
        let mut plain = Vec::with_capacity(2 * MESSAGE_BYTES);
        let began = Instant::now();
        for (message, compressed) in messages.iter().zip(&compressed) {
            if !self.kept {
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
        self.inflate = self.inflate.min(began.elapsed());
    }
}
