//! Prints what the first player of two workloads is sent, for clients that are not in Rust
//! (`make bench-typescript`): the schema of the state, a snapshot and patches in hex, and the state
//! at the end.
//!
//! - `colyseus`: every player of 30 moves, and a card changes in a fifth of the hands.
//! - `entities`: 100 of 1,000 entities move.

use std::fmt::Write as _;

use playfield_bench::workloads::entities::{Entities, Open};
use playfield_bench::workloads::{Workload, colyseus::Colyseus};
use playfield_state::{Format, State, Tracker, Tracking, view};
use playfield_wire::schema::{RoomSchema, Type};

const PATCHES: u64 = 200;

fn main() {
    let colyseus = sent(&Colyseus::new(30, 1, 10, true, 0.2));
    let entities = sent(&Entities::<Open>::new(1, 1_000, 100, true, 0));
    println!("{{\"colyseus\": {colyseus}, \"entities\": {entities}}}");
}

/// Returns what the first player is sent, as JSON.
fn sent<W: Workload>(workload: &W) -> String {
    let viewer = workload.players()[0];
    let mut state = workload.state();
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut body = Vec::new();
    tracker.snapshot(viewer, Format::Packed, &mut body);
    let snapshot = hex(&body);
    let mut patches = Vec::new();
    for step in 1..=PATCHES {
        let since = tracker.version();
        workload.step(&mut state, step);
        tracker.sync(&mut state);
        body.clear();
        tracker.patch(viewer, since, Format::Packed, &mut body);
        patches.push(format!("\"{}\"", hex(&body)));
    }
    let schema = RoomSchema {
        state: W::State::schema(),
        options: Type::Unit,
        messages: Vec::new(),
        events: Vec::new(),
    };
    format!(
        "{{\"schema\": {}, \"viewer\": {}, \"snapshot\": \"{snapshot}\", \"patches\": [{}], \"state\": {}}}",
        schema.to_json(),
        viewer.0,
        patches.join(", "),
        view(&state, Some(viewer)),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
