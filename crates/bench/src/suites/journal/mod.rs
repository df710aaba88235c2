//! `bench journal`: the same rooms with a journal and without, and the disk alone.

mod recovered;
mod till;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_room::MemoryStore;

use self::recovered::{blocks, kill, look};
use self::till::{Receipts, till};
use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, options};
use crate::harness::process::{Role, Server, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::Samples;

options! {
    Options {
        clients: usize = 300, quick 30
            => "clients" "N" "number of clients (default 300)", |given| given.within(1..=10_000);
        per_room: usize = 30
            => "per-room" "N" "clients of a room (default 30)", |given| given.within(1..=100);
        window: Option<usize> = None
            => "window" "N" "only with this many requests of a client under way (default 20, then 1)",
            |given| given.within(1..=50).map(Some);
        rounds: u32 = 9, quick 1
            => "rounds" "N" "rounds; the medians count (default 9)", |given| given.within(1..=1_000);
        time: Duration = Duration::from_secs(1), quick Duration::from_millis(200)
            => "seconds" "S" "how long each is measured in a round (default 1)",
            |given| given.seconds(1..=86_400);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "journal",
    about: "clients send requests to rooms with a journal, and to the same rooms without: answered
inputs a second, and the time to an answer, compared with the time that the disk alone takes for
the same blocks. Each answer is compared, and all that was answered is looked for in the files.
Other nodes are killed (SIGKILL) in mid-load: the rooms that are recovered from their files must
have done each request that was answered. That shows that no answer went out before its block was
written to the file; it does not show that fdatasync was called, or that the disk keeps its word:
what a process has written outlives it either way. Only a loss of power would show that.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "journal", log: "error", serve: host };

/// The maximum number of blocks that a round writes to the disk alone.
const BARE_BLOCKS: usize = 100;

/// The number of nodes that are killed.
const KILLED: usize = 8;

const COLUMNS: &[Column] = &[
    ("clients", "clients"),
    ("window", "window"),
    ("inputs/s", "inputs_per_s"),
    ("without", "plain_inputs_per_s"),
    ("ratio", "ratio"),
    ("answer us p50", "answer_us_p50"),
    ("without", "plain_answer_us_p50"),
    ("block", "block_bytes"),
    ("fdatasync us p50", "fdatasync_us_p50"),
    ("added/fdatasync", "added_of_fdatasync"),
    ("compared", "compared"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    pin(DRIVER_CORE)?;
    report.begin(COLUMNS)?;
    for window in options.window.map_or(vec![20, 1], |window| vec![window]) {
        report.add(measure(options, window)?)?;
    }
    Ok(())
}

/// A folder of a journal, which is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measure(options: &Options, window: usize) -> io::Result<Record> {
    let name = format!("playfield-bench-journal-{}-{window}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let mut sides = Vec::new();
    for is_journaled in [false, true] {
        let server = start(options, is_journaled, &folder.0)?;
        let clients = Receipts::connect(options, window, &server, is_journaled)?;
        sides.push((server, clients));
    }
    let (mut rates, mut times) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let (mut ratios, mut syncs, mut added) = (Vec::new(), Vec::new(), Vec::new());
    let (mut count, mut bytes) = (0, 0);
    // A warm-up.
    for round in 0..=options.rounds {
        let (mut pair, mut p50) = ([0.0, 0.0], [0.0, 0.0]);
        for turn in 0..2 {
            let side = (turn + round as usize) % 2;
            let (_, clients) = &mut sides[side];
            clients.script.answers.times.clear();
            let (answered, began) = (clients.script.answered, Instant::now());
            clients.begin();
            clients.run(options.time);
            let time = began.elapsed();
            pair[side] = (clients.script.answered - answered) as f64 / time.as_secs_f64();
            clients.end();
            if round > 0 {
                rates[side].push(pair[side]);
                let taken = std::mem::take(&mut clients.script.answers.times);
                p50[side] = Samples::new(taken).percentile(50.0);
                times[side].push(p50[side]);
            }
        }
        // Measured in each round, since the speed of a disk varies.
        let blocks = blocks(&folder.0)?;
        let fdatasync = bare(&folder.0, &blocks)?;
        if round > 0 {
            ratios.push(pair[1] / pair[0]);
            syncs.push(fdatasync);
            added.push(p50[1] - p50[0]);
        }
        (count, bytes) = (blocks.len(), blocks.iter().sum::<usize>() / blocks.len().max(1));
    }
    let mut is_wrong = false;
    for (_, clients) in &sides {
        is_wrong |= clients.said_fault(&format!("{window} under way"));
    }
    let answered = sides[1].1.script.answered;
    let kept: u64 = look(&folder.0)?.values().sum();
    if kept != answered {
        eprintln!("{answered} requests were answered, and {kept} are in the journal");
        is_wrong = true;
    }
    let mut compared: u64 = sides.iter().map(|(_, clients)| clients.script.answered).sum();
    drop((sides, folder));
    for number in 0..KILLED {
        let (answered, is_lost) = kill(options, window, number)?;
        compared += answered;
        is_wrong |= is_lost;
    }
    let [plain_rates, rates] = rates;
    let [plain_times, times] = times;
    let of_fdatasync: Vec<_> = added.iter().zip(&syncs).map(|(of, sync)| of / sync).collect();
    Ok(Record::of("journal")
        .with("clients", options.clients)
        .with("per_room", options.per_room)
        .with("window", window)
        .median("inputs_per_s", rates)
        .median("plain_inputs_per_s", plain_rates)
        .median("ratio", ratios)
        .median("answer_us_p50", times)
        .median("plain_answer_us_p50", plain_times)
        .with("blocks", count)
        .with("block_bytes", bytes)
        .median("fdatasync_us_p50", syncs)
        .median("added_us_p50", added)
        .median("added_of_fdatasync", of_fdatasync)
        .with("killed", KILLED)
        .with("compared", compared)
        .with("verified", !is_wrong))
}

/// Writes blocks of these sizes to the disk alone. Returns the median time for one, in
/// microseconds.
fn bare(folder: &Path, blocks: &[usize]) -> io::Result<f64> {
    let mut file = File::create(folder.join("bare"))?;
    let mut times = Vec::new();
    for bytes in blocks.iter().rev().take(BARE_BLOCKS) {
        let block = vec![7; bytes + 28];
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    // A file that has just begun has none.
    Ok(if times.is_empty() { f64::NAN } else { Samples::new(times).percentile(50.0) })
}

fn start(options: &Options, is_journaled: bool, folder: &Path) -> io::Result<Server> {
    ROLE.start(&[&options.clients, &is_journaled, &folder.display()])
}

fn host(words: &mut Words) -> io::Result<()> {
    let (clients, is_journaled): (usize, bool) = (words.next()?, words.next()?);
    let folder: String = words.next()?;
    let mut config = node_for(clients, 1)?;
    config.journal.folder = folder.into();
    let server = playfield_server::Server::new(config).room_type(till(is_journaled));
    let running = server.store(MemoryStore::new()).start()?;
    serve(running.local_addr().port(), Vec::new)
}
