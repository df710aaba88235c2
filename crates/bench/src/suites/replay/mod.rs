//! `bench replay`: what it costs to record a room, and how fast it runs again.

mod arena;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use playfield_cli::options::Failure;
use playfield_room::AnyRoom;
use playfield_room::recording::{
    About, BlockKind, Files, Moment, Recorder, RecorderSettings, Recording, RecordingWriter,
    Replay, Why,
};
use rustix::time::{ClockId, clock_gettime};

use self::arena::Driven;
use crate::harness::dice::Dice;
use crate::harness::options::{Suite, options};
use crate::harness::report::{Column, Record, Report};

options! {
    Options {
        players: u64 = 30 => "players" "N" "players of the arena (default 30)",
            |given| given.within(1..=300);
        rounds: u32 = 15, quick 1
            => "rounds" "N" "rounds; the medians count (default 15)", |given| given.within(1..=1_000);
        seconds: u64 = 60, quick 1
            => "seconds" "N" "simulated seconds in a round (default 60)",
            |given| given.within(1..=3_600);
        hour: u64 = 3_600, quick 30
            => "hour" "N" "simulated seconds of the recording that is replayed (default 3600)",
            |given| given.within(10..=36_000);
        seeks: u64 = 50, quick 3
            => "seeks" "N" "ticks that are looked for (default 50)", |given| given.within(1..=10_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "replay",
    about:
        "an arena of 30 players, with and without a recording: the CPU time of the room's thread,
its patches included, and that of the thread that compresses, without its disk; the bytes of an
hour; how fast the hour is read and runs again, compared hash by hash, and how long it takes to find
a tick in it, where the state is compared with that of the room when it was recorded.",
    defaults: Options::new,
    run,
};

/// The number of turns that a player takes a second: few as people, or many as the example's bots.
const STEERS: [f64; 2] = [1.0, 5.0];

const COST_COLUMNS: &[Column] = &[
    ("           row", "row"),
    ("steers/s", "steers_per_s"),
    ("room µs/s", "room_us_per_s"),
    ("recording %", "recording_percent"),
    ("writing %", "writing_percent"),
    ("total %", "total_percent"),
    ("verified", "verified"),
];

const HOUR_COLUMNS: &[Column] = &[
    ("           row", "row"),
    ("steers/s", "steers_per_s"),
    ("MB/hour", "mb_per_hour"),
    ("× real time", "times_real_time"),
    ("seek p50 ms", "seek_ms_p50"),
    ("max", "seek_ms_max"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COST_COLUMNS)?;
    for steers in STEERS {
        for (row, mode) in [("last minutes", Mode::Memory), ("file", Mode::File)] {
            report.add(cost(options, row, mode, steers))?;
        }
    }
    report.begin(HOUR_COLUMNS)?;
    for steers in STEERS {
        report.add(hour(options, steers).map_err(io::Error::other)?)?;
    }
    Ok(())
}

/// The longest time between two hashes in a recording, in seconds.
const HASHED_WITHIN_S: u64 = 6;

/// The place of a recording.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Memory,
    File,
}

/// Blocks that wait to be written, as by the thread of a node.
#[derive(Clone, Default)]
struct Blocks(Arc<Mutex<Vec<Block>>>);

type Block = (BlockKind, Vec<u8>);

impl Blocks {
    fn take(&self) -> Vec<Block> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn record(&self, room: Box<dyn AnyRoom>, mode: Mode) -> Box<dyn AnyRoom> {
        let keeps = std::time::Duration::from_secs(300);
        let settings = RecorderSettings { keeps, ..RecorderSettings::default() };
        let mut recorder = Recorder::new(room, Box::new(self.clone()), settings);
        if mode == Mode::File {
            recorder.begin_file(&Why::Setting);
        }
        Box::new(recorder)
    }
}

impl Files for Blocks {
    fn begin(&mut self, _: &Why) {}

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((kind, content));
    }

    fn end(&mut self) {}
}

/// The CPU time of this thread, in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// The CPU time of a room with and without a recording, in turn.
fn cost(options: &Options, row: &str, mode: Mode, steers: f64) -> Record {
    let blocks = Blocks::default();
    let mut bare = Driven::new(options.players, steers, |room| room);
    let mut recorded = Driven::new(options.players, steers, |room| blocks.record(room, mode));
    let (mut out, mut writer) = (Vec::new(), writer());
    let (mut bares, mut shares) = (Vec::new(), Vec::new());
    let (mut writings, mut totals) = (Vec::new(), Vec::new());
    // A warm-up.
    let rounds = options.rounds + 1;
    for round in 0..rounds {
        let timed = |driven: &mut Driven| {
            let began = cpu_us();
            driven.run(1);
            cpu_us() - began
        };
        // Second by second, so that both have the same machine; the first finds another cache.
        let (mut without, mut with) = (0.0, 0.0);
        for second in 0..options.seconds {
            if second % 2 == 0 {
                without += timed(&mut bare);
                with += timed(&mut recorded);
            } else {
                with += timed(&mut recorded);
                without += timed(&mut bare);
            }
        }
        let began = cpu_us();
        for (kind, content) in blocks.take() {
            writer.block(kind, &content, &mut out);
        }
        let writing = cpu_us() - began;
        out.clear();
        if round > 0 {
            bares.push(without / options.seconds as f64);
            let percent = |more: f64| 100.0 * more / without;
            shares.push(percent(with - without));
            writings.push(percent(writing));
            totals.push(percent(with - without + writing));
        }
    }
    let is_same =
        bare.room.state_hash() == recorded.room.state_hash() && bare.sent == recorded.sent;
    Record::of("replay")
        .with("row", row)
        .with("players", options.players)
        .with("steers_per_s", steers)
        .median("room_us_per_s", bares)
        .median("recording_percent", shares)
        .median("writing_percent", writings)
        .median("total_percent", totals)
        .with("verified", is_same && !options.corrupt_one)
}

fn writer() -> RecordingWriter {
    RecordingWriter::begin(&about(), &mut Vec::new())
}

fn about() -> About {
    About { room_type: "arena".into(), room_id: "arena".into(), ..About::default() }
}

/// An hour is recorded, runs again, and ticks are looked for in it.
fn hour(options: &Options, steers: f64) -> Result<Record, String> {
    let blocks = Blocks::default();
    let mut driven = Driven::new(options.players, steers, |room| blocks.record(room, Mode::File));
    let (ticks, mut dice) = (options.hour * arena::TICKS, Dice(1));
    let sought: Vec<u64> = (0..options.seeks).map(|_| 1 + dice.below(ticks)).collect();
    driven.hashes = sought.iter().map(|tick| (*tick, None)).collect();
    driven.run(options.hour);
    let (hash, ticks) = (driven.room.state_hash(), driven.tick());
    let hashes = std::mem::take(&mut driven.hashes);
    drop(driven);
    let mut file = Vec::new();
    let mut writer = RecordingWriter::begin(&about(), &mut file);
    for (kind, content) in blocks.take() {
        writer.block(kind, &content, &mut file);
    }
    if options.corrupt_one {
        let middle = file.len() / 2;
        file[middle] ^= 1;
    }
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let began = Instant::now();
    let recording = Recording::read(&file).map_err(|error| text(&error))?;
    let room_type = arena::room_type();
    let mut replay = Replay::new(&recording, &room_type).map_err(|error| text(&error))?;
    let summary = replay.verify().map_err(|error| text(&error))?;
    let took = began.elapsed().as_secs_f64();
    let is_same = summary.difference.is_none()
        && summary.compared >= options.hour / HASHED_WITHIN_S
        && recording.fault().is_none()
        && replay.room().state_hash() == hash
        && summary.position.tick == ticks;
    let (mut seeks, mut found) = (Vec::new(), true);
    for tick in sought {
        let began = Instant::now();
        let is_there = replay.seek(Moment::Tick(tick)).is_ok();
        seeks.push(began.elapsed().as_secs_f64() * 1e3);
        let hash = replay.room().state_hash();
        let is_it = replay.position().tick == tick && hash.is_some() && hash == hashes[&tick];
        if !(is_there && is_it) {
            eprintln!("tick {tick}: the room that was looked for is not as it was");
            found = false;
        }
    }
    seeks.sort_by(f64::total_cmp);
    let max = seeks.last().copied().unwrap_or_default();
    Ok(Record::of("replay")
        .with("row", "an hour")
        .with("players", options.players)
        .with("steers_per_s", steers)
        .with("bytes", file.len())
        .measured("mb_per_hour", file.len() as f64 / 1e6 * 3_600.0 / options.hour as f64)
        .measured("times_real_time", options.hour as f64 / took)
        .measured("seek_ms_p50", seeks[seeks.len() / 2])
        .measured("seek_ms_max", max)
        .with("verified", is_same && found))
}
