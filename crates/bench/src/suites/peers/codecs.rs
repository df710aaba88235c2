//! Works in memory: reading frames, compressing, packets, and the state of a room.

use std::hint::black_box;
use std::io::{self, Cursor, Read as _};
use std::time::{Duration, Instant};

use playfield_websocket::{Decoder, Item, Limits, Role};
use serde_json::Value;

use super::comparison::Comparison;
use super::frames::{Case, READ_BYTES, SIZES};
use super::program::Program;
use super::{Options, Peer, schema};
use crate::harness::rounds::{Body, Form, times};
use crate::suites::{packet, websocket};

/// The duration of a round of a body.
const ROUND: Duration = Duration::from_millis(10);
/// The longest message of the frames.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The figure of a round, and whether all that was read or written was right.
pub(super) type Round = (f64, bool);

/// A work of ours, and who else does it.
pub(super) struct Work {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) ours: Box<dyn FnMut() -> Round>,
    pub(super) baseline: Option<Box<dyn FnMut() -> Round>>,
    pub(super) rivals: Vec<Rival>,
    /// Other values of the row.
    pub(super) more: Vec<(&'static str, Value)>,
}

/// A peer that does a work.
pub(super) struct Rival {
    pub(super) name: &'static str,
    /// The program that it is a part of, by its place.
    pub(super) program: usize,
    /// The program's name of the work.
    pub(super) line: String,
}

type Add<'a> = dyn FnMut(Comparison) -> io::Result<()> + 'a;

/// Compares all works of the programs that are installed.
pub(super) fn compare(options: &Options, add: &mut Add<'_>) -> io::Result<()> {
    if let Some(path) = options.installed(Peer::WebSocket, "websocket/release/frames") {
        rounds(options, &mut [Program::start(&path)?], frames(), add)?;
    }
    let libraries = ["zlib-rs", "miniz_oxide"];
    let paths = libraries.map(|library| {
        options.installed(Peer::Deflate, format!("deflate-{library}/release/deflate-peers"))
    });
    if let [Some(one), Some(other)] = &paths {
        let mut programs = [Program::start(one)?, Program::start(other)?];
        rounds(options, &mut programs, compressing(libraries), add)?;
    }
    if let Some(path) = options.installed(Peer::Mpacket, "mpacket/peer") {
        rounds(options, &mut [Program::start(&path)?], packets(), add)?;
    }
    if let Some(path) = options.installed(Peer::Colyseus, "colyseus/schema.mjs") {
        rounds(options, &mut [Program::start(&path)?], schema::works(options.is_quick), add)?;
    }
    Ok(())
}

/// Measures works in rounds, in which all take turns, and adds a row for each rival.
fn rounds(
    options: &Options,
    programs: &mut [Program],
    mut works: Vec<Work>,
    add: &mut Add<'_>,
) -> io::Result<()> {
    let mut rows: Vec<Comparison> = Vec::new();
    for work in &works {
        rows.extend(work.rivals.iter().map(|rival| Comparison {
            peer: rival.name.to_owned(),
            version: programs[rival.program].version(rival.name),
            work: work.name.clone(),
            unit: work.unit,
            ours: Vec::new(),
            theirs: Vec::new(),
            baseline: Vec::new(),
            more: work.more.clone(),
            is_verified: true,
        }));
    }
    for round in 0..options.rounds {
        let mut left = &mut rows[..];
        for work in &mut works {
            let (of_work, rest) = left.split_at_mut(work.rivals.len());
            left = rest;
            // The order differs from round to round.
            let is_first = round % 2 == 0;
            let early = is_first.then(|| (work.ours)());
            for (row, rival) in of_work.iter_mut().zip(&work.rivals) {
                let theirs = programs[rival.program].round(&rival.line)?;
                row.theirs.extend(theirs["value"].as_f64());
                row.is_verified &= theirs["verified"] == true;
                if round == 0 && !theirs["bytes"].is_null() {
                    row.more.push(("bytes_theirs", theirs["bytes"].clone()));
                }
            }
            let ours = early.unwrap_or_else(|| (work.ours)());
            let baseline = work.baseline.as_mut().map(|baseline| baseline());
            for row in of_work {
                row.ours.push(ours.0);
                row.baseline.extend(baseline.map(|baseline| baseline.0));
                row.is_verified &= ours.1 && baseline.is_none_or(|baseline| baseline.1);
            }
        }
    }
    rows.into_iter().try_for_each(add)
}

fn frames() -> Vec<Work> {
    let work = |bytes: usize| {
        let rival = |name| Rival { name, program: 0, line: format!("{name} {bytes}") };
        Work {
            name: format!("read masked frames of {bytes} B in memory"),
            unit: "ns a frame",
            ours: Box::new(move || each(&Case::new(bytes), read)),
            baseline: Some(Box::new(move || each(&Case::new(bytes), copy))),
            rivals: vec![rival("fastwebsockets"), rival("tungstenite")],
            more: vec![("bytes", bytes.into())],
        }
    };
    SIZES.into_iter().map(work).collect()
}

/// Times the reading of all frames. Returns the nanoseconds for each.
fn each(case: &Case, read: fn(&Case) -> usize) -> Round {
    let began = Instant::now();
    let right = read(case);
    (began.elapsed().as_secs_f64() * 1e9 / case.frames as f64, right == case.frames)
}

/// Reads frames as a shard does. Returns how many had the right payload.
fn read(case: &Case) -> usize {
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() };
    let mut decoder = Decoder::new(Role::Server, limits);
    let mut socket = Cursor::new(&case.wire[..]);
    let mut buffer = vec![0; READ_BYTES + case.payload.len() + 14];
    let (mut held, mut right) = (0, 0);
    loop {
        let Ok(count @ 1..) = socket.read(&mut buffer[held..]) else { return right };
        let end = held + count;
        let mut used = 0;
        loop {
            let Ok(decoded) = decoder.decode(&mut buffer[used..end]) else { return right };
            if decoded.consumed == 0 {
                break;
            }
            used += decoded.consumed;
            if let Some(Item::Binary(payload)) = decoded.item {
                right += usize::from(payload == case.payload);
            }
        }
        buffer.copy_within(used..end, 0);
        held = end - used;
    }
}

/// The lower bound: payloads are copied, and compared as by all readers.
fn copy(case: &Case) -> usize {
    let mut buffer = vec![0; case.payload.len()];
    let copies = (0..case.frames).filter(|_| {
        black_box(&mut buffer).copy_from_slice(&case.payload);
        *black_box(&buffer) == case.payload
    });
    copies.count()
}

fn compressing(libraries: [&'static str; 2]) -> Vec<Work> {
    let work = |(row, body): (&'static str, Box<dyn Body>)| {
        let rival = |(program, name)| Rival { name, program, line: row.to_owned() };
        Work {
            name: format!("{row}, chat messages of 512 B"),
            unit: "ns a message",
            ours: bodily(body, Form::Verified),
            baseline: None,
            rivals: libraries.into_iter().enumerate().map(rival).collect(),
            more: vec![
                ("row", row.into()),
                ("compressed_to", rounded(websocket::compressed_to(row))),
            ],
        }
    };
    websocket::compressing().into_iter().map(work).collect()
}

fn rounded(share: Option<f64>) -> Value {
    share.map(|share| (share * 1e3).round() / 1e3).into()
}

/// The rows of mpacket that it can do, in the form that compares every field.
fn packets() -> Vec<Work> {
    let is_theirs = |row: &str| {
        !matches!(row, "player save" | "mix" | "mix, decode only" | "1000 players" | "memcpy 64 KB")
    };
    let work = |(row, body): (&'static str, Box<dyn Body>)| Work {
        name: format!("packets: {row}"),
        unit: "ns",
        ours: bodily(body, Form::Verified),
        baseline: None,
        rivals: vec![Rival { name: "mpacket", program: 0, line: row.to_owned() }],
        more: vec![("row", row.into())],
    };
    let rows = packet::bodies().into_iter().filter(|(row, _)| is_theirs(row));
    rows.map(work).collect()
}

/// Rounds of an operation, in nanoseconds for each.
fn bodily(body: Box<dyn Body>, form: Form) -> Box<dyn FnMut() -> Round> {
    let mut calibrated = None;
    Box::new(move || {
        let times = *calibrated.get_or_insert_with(|| times(&*body, form, ROUND));
        let run = body.run(form, times);
        (run.took.as_secs_f64() * 1e9 / times as f64 / body.at_once(), run.right)
    })
}

#[cfg(test)]
mod tests {
    use super::{Case, SIZES, copy, read};

    #[test]
    fn a_damaged_frame_is_noticed() {
        for bytes in SIZES {
            let mut case = Case::new(bytes);
            assert_eq!((read(&case), copy(&case)), (case.frames, case.frames), "{bytes}");
            *case.wire.last_mut().unwrap() ^= 1;
            assert_eq!(read(&case), case.frames - 1, "{bytes}");
        }
    }
}
