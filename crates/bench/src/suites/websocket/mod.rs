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

use playfield_cli::options::Failure;

use crate::harness::dice;
use crate::harness::options::Suite;
use crate::harness::report::{Column, Report};
use crate::harness::rounds::{self, Form, row_options};
use rows::{Kind, Prepared};
pub(crate) use rows::{compressed_to, compressing};

row_options!(rows::names(); corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true););

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "websocket",
    about: "parsing masked frames and unmasking them in place, compared with copying the same
bytes; and compressing and decompressing 512-byte chat messages, with and without context takeover,
with their compressed size and the memory that a connection keeps.",
    defaults: Options::new,
    run,
};

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

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let mut plan = options.plan();
    if options.corrupt_one {
        plan.processes = 0;
    }
    let rows: Vec<(&str, (Prepared, Form))> = rows::chosen(plan.row)
        .into_iter()
        .flat_map(|(name, kind)| kind.forms().iter().map(move |form| (name, kind, *form)))
        .filter(|(_, _, form)| plan.has(*form))
        .map(|(name, kind, form)| (name, (Prepared::new(kind, options.corrupt_one), form)))
        .collect();
    let measured = rounds::measure("websocket", &rows, &plan)?;
    let copied = |bytes, form| {
        let place = rows
            .iter()
            .position(|(_, (row, of))| row.kind == Kind::Memcpy(bytes) && *of == form)?;
        Some(measured[place].bytes_per_s())
    };
    for (measured, (name, (row, form))) in measured.iter().zip(&rows) {
        let mut record = measured
            .record("websocket", name, *form)
            .measured("mb_per_s", measured.bytes_per_s() / 1e6);
        if let Kind::Frames(bytes) = row.kind
            && let Some(copied) = copied(bytes, *form)
        {
            record = record.measured("of_memcpy", measured.bytes_per_s() / copied);
        }
        if let Some(compressed_to) = row.kind.compressed_to() {
            record = record.measured("compressed_to", compressed_to);
        }
        if let Some(kept) = memory::of(row.kind) {
            record = record
                .measured("new_bytes", kept.new_bytes)
                .measured("idle_bytes", kept.idle_bytes)
                .measured("in_use_bytes", kept.in_use_bytes)
                .measured("shared_bytes", kept.shared_bytes);
        }
        report.add(measured.end(record))?;
    }
    Ok(())
}
