//! `bench websocket`: the cost of reading frames and of compressing messages.
//!
//! It is a separate suite, since its rows are compared with one another: frames with a copy of the
//! same bytes, and compressed messages with their compressed size and the memory a connection keeps
//! for them.
//!
//! Frames are read in the two forms of `bench packet`: *same* only returns each payload, *verified*
//! also compares all of it within the measured time. Compressed messages only have the second form.
//! Decompressed messages are compared within the measured time. Compressed ones are read back and
//! compared after it, every one.

mod chat;
mod deflate;
mod frames;
mod memory;
mod rows;

use std::io::{self, Write};

use crate::rounds::{self, Form};
use crate::table::{Column, Report};

pub use rows::names;
use rows::{Kind, Prepared};

/// What to measure and how to report it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which rows to measure, and how often.
    pub rows: rounds::Options,
    /// Corrupt one byte before it is read. Nothing may then be verified.
    pub corrupt_one: bool,
}

const COLUMNS: &[Column] = &[
    ("                        row", "row"),
    ("form", "form"),
    ("ns/op", "ns_per_op"),
    ("median", "ns_per_op_median"),
    ("bytes/op", "bytes_per_op"),
    ("MB/s", "mb_per_s"),
    ("x memcpy", "of_memcpy"),
    ("ratio", "compressed_to"),
    ("idle bytes", "idle_bytes"),
    ("in use bytes", "in_use_bytes"),
    ("allocations", "allocations_per_op"),
    ("verified", "verified"),
];

/// Measures every row and reports it. Returns whether everything read was correct.
///
/// # Errors
/// If the report can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let report = Report::begin(COLUMNS, options.rows.json, out)?;
    let rows: Vec<(Prepared, Form)> = rows::chosen(options.rows.row.as_deref())
        .into_iter()
        .flat_map(|(name, kind)| kind.forms().iter().map(move |form| (name, kind, *form)))
        .filter(|(_, _, form)| options.rows.form.is_none_or(|only| only == *form))
        .map(|(name, kind, form)| (Prepared::new(name, kind, options.corrupt_one), form))
        .collect();
    let measured = rounds::all(&rows, &options.rows);
    let copied = |bytes, form| {
        let place =
            rows.iter().position(|(row, of)| row.kind == Kind::Memcpy(bytes) && *of == form)?;
        Some(measured[place].bytes_per_s())
    };
    let mut verified = true;
    for (measured, (row, form)) in measured.iter().zip(&rows) {
        verified &= measured.verified;
        let mut record = measured
            .record("websocket", row.name, *form)
            .measured("mb_per_s", measured.bytes_per_s() / 1e6);
        if let Kind::Frames(bytes) = row.kind
            && let Some(copied) = copied(bytes, *form)
        {
            record = record.measured("of_memcpy", measured.bytes_per_s() / copied);
        }
        if let Kind::Compress(context, level) | Kind::Inflate(context, level) = row.kind {
            record = record.measured("compressed_to", deflate::compressed_to(context, level));
        }
        if let Some(kept) = memory::of(row.kind) {
            record = record
                .measured("new_bytes", kept.new_bytes)
                .measured("idle_bytes", kept.idle_bytes)
                .measured("in_use_bytes", kept.in_use_bytes)
                .measured("shared_bytes", kept.shared_bytes);
        }
        report.add(measured.end(record), out)?;
    }
    Ok(verified)
}
