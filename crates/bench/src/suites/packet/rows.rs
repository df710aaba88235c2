//! The rows: their names and operations.

use super::bodies::{bulk, many, numbers, packets, threads};
use crate::harness::rounds::{Body, Form, Run};

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Runs the operation the given number of times.
    pub(super) body: fn(Form, u64) -> Run,
    /// Whether it runs on all cores at once.
    pub(super) on_all_cores: bool,
}

impl Body for Row {
    fn run(&self, form: Form, times: u64) -> Run {
        (self.body)(form, times)
    }

    fn at_once(&self) -> f64 {
        if self.on_all_cores { threads::count() as f64 } else { 1.0 }
    }
}

/// The names of all rows.
pub(super) fn names() -> Vec<&'static str> {
    all().iter().map(|row| row.name).collect()
}

pub(super) fn all() -> Vec<Row> {
    let one = |name, body| Row { name, body, on_all_cores: false };
    let every = |name, body| Row { name, body, on_all_cores: true };
    vec![
        one("write u8", numbers::write_u8),
        one("write i16", numbers::write_i16),
        one("write i32", numbers::write_i32),
        one("write i64", numbers::write_i64),
        one("write string", numbers::write_string),
        one("write 1024 bytes", numbers::write_bytes),
        one("read u8", numbers::read_u8),
        one("read i16", numbers::read_i16),
        one("read i32", numbers::read_i32),
        one("read i64", numbers::read_i64),
        one("read string", numbers::read_string),
        one("read 1024 bytes", numbers::read_bytes),
        one("small packet", packets::small),
        one("medium packet", packets::medium),
        one("large packet", packets::large),
        one("100 byte writes", many::write_100),
        one("100 byte reads", many::read_100),
        one("1000 x (u8 i16 i32) write", many::write_1000),
        one("1000 x (u8 i16 i32) read", many::read_1000),
        one("10 KB payload", bulk::payload_10_kb),
        one("player save", packets::player_save),
        one("create with opcode", packets::create),
        one("decode rotating", packets::rotating),
        every("write, all cores", threads::write),
        every("read, all cores", threads::read),
        every("small, all cores", threads::small),
        every("medium, all cores", threads::medium),
        every("large, all cores", threads::large),
        one("throughput 64 B", bulk::throughput_64),
        one("throughput 512 B", bulk::throughput_512),
        one("throughput 4 KB", bulk::throughput_4_kb),
        one("throughput 64 KB", bulk::throughput_64_kb),
        one("encode 1047 B", bulk::encode_1047),
        one("mix", bulk::mix),
        one("mix, decode only", bulk::mix_decode),
        one("1000 players", bulk::players),
        one("memcpy 64 KB", bulk::memcpy),
    ]
}
