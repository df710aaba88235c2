//! Prints what the first player of the Colyseus workload is sent, for clients that are not in Rust
//! (`make bench-typescript`): the schema of the state, a snapshot and patches in hex, and the state
//! at the end.

use std::fmt::Write as _;

use playfield_bench::workloads::{Workload, colyseus::Colyseus};
use playfield_state::{Format, State, Tracker, Tracking, view};
use playfield_wire::schema::{RoomSchema, Type};

/// Every player moves, and a card changes in a fifth of the hands.
const PLAYERS: u64 = 30;
const PATCHES: u64 = 200;

fn main() {
    let workload = Colyseus::new(PLAYERS, 1, 10, true, 0.2);
    let viewer = workload.players()[0];
    let mut table = workload.state();
    let mut tracker = Tracker::new(&mut table, Tracking::On);
    let mut body = Vec::new();
    tracker.snapshot(viewer, Format::Packed, &mut body);
    let snapshot = hex(&body);
    let mut patches = Vec::new();
    for step in 1..=PATCHES {
        let since = tracker.version();
        workload.step(&mut table, step);
        tracker.sync(&mut table);
        body.clear();
        tracker.patch(viewer, since, Format::Packed, &mut body);
        patches.push(format!("\"{}\"", hex(&body)));
    }
    let schema = RoomSchema {
        state: <<Colyseus as Workload>::State as State>::schema(),
        options: Type::Unit,
        messages: Vec::new(),
        events: Vec::new(),
    };
    println!(
        "{{\"schema\": {}, \"viewer\": {}, \"snapshot\": \"{snapshot}\", \"patches\": [{}], \"state\": {}}}",
        schema.to_json(),
        viewer.0,
        patches.join(", "),
        view(&table, Some(viewer)),
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
