//! `bench attacks`: how evenly a player is served at 20 Hz while strangers attack the same shard.
//!
//! The node runs in its own process on one core, with default limits and one shard; in rows across
//! shards it has two, and a player on each. The players and the attackers share another core. A
//! player checks its copy, and records when each patch arrives. Each attacker has its own address,
//! and reconnects when the node closes its connection. What an attack must cause is counted, mostly
//! where the node's answers arrive. The first and the last row are measured without an attack.

mod answers;
mod attack;
mod attacker;
mod flood;
mod returning;
mod script;
mod server;
mod victim;

use std::io::{self, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::pin;
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use attack::Attack;
use flood::{Done, Flood};
use server::Hosted;
use victim::Victim;

/// The core of the node, and the core of all clients.
const SERVER_CORE: usize = 0;
const DRIVER_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Run only this attack.
    pub row: Option<String>,
    /// The number of attackers.
    pub connections: usize,
    /// The duration of each attack.
    pub round: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Corrupt one patch, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
    /// The number of shards of the server.
    pub shards: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            row: None,
            connections: 1000,
            round: Duration::from_secs(10),
            json: false,
            corrupt_one: false,
            is_server: false,
            shards: 1,
        }
    }
}

/// More than the players send in a row.
const OWN_MESSAGES: u64 = 16;

/// What the players of a row observed.
struct Watched {
    /// The times between patches.
    intervals_ms: Vec<f64>,
    /// How long the slowest join took.
    join_ms: f64,
    /// What was wrong.
    faults: Vec<String>,
}

const COLUMNS: &[Column] = &[
    ("attack", "attack"),
    ("attackers", "attackers"),
    ("effect            ", "effect"),
    ("count", "effect_count"),
    ("at least", "effect_count_min"),
    ("interval p50", "interval_ms_p50"),
    ("p99", "interval_ms_p99"),
    ("max", "interval_ms_max"),
    ("p99 ratio", "p99_ratio"),
    ("join ms", "join_ms"),
    ("ticks late p99", "tick_late_ms_p99"),
    ("patches", "patches"),
    ("sent MB/s", "attack_mb_per_second"),
    ("received MB/s", "answer_mb_per_second"),
    ("connections", "connections"),
    ("server CPU", "server_cpu"),
    ("delayed", "server_delayed"),
    ("server MB", "server_mb"),
    ("verified", "verified"),
];

/// Runs the suite. Returns whether each player received what it should, and each attack took effect.
///
/// # Errors
/// The node can't be started or reached, `out` can't be written, or no attack has the name.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host(options.shards).map(|()| true);
    }
    let rows: Vec<_> = Attack::ALL
        .into_iter()
        .filter(|(_, name)| options.row.as_deref().is_none_or(|row| row == *name))
        .collect();
    if rows.is_empty() {
        let names: Vec<_> = Attack::ALL.iter().map(|(_, name)| *name).collect();
        let text = format!("unknown row; the rows are {}", names.join(", "));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let machine = Machine::describe();
    pin(DRIVER_CORE)?;
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut hosted: Option<Hosted> = None;
    let mut calm_p99 = None;
    let mut all_verified = true;
    for (attack, name) in rows {
        let hosted = match &mut hosted {
            Some(hosted) if hosted.shards == attack.shards() => hosted,
            other => {
                // One at a time.
                *other = None;
                other.insert(Hosted::start(attack.shards())?)
            }
        };
        let before = hosted.stats()?;
        let began = Instant::now();
        let flood = Flood::start(attack, options.connections, hosted.node, &hosted.places)?;
        let (watched, done) = watch(hosted, options, flood)?;
        let after = hosted.stats()?;
        let seconds = began.elapsed().as_secs_f64();
        let effect = attack.effect();
        let least = effect.least(options.round);
        let count = done.effect(effect.count, &before, &after);
        let mut faults = watched.faults;
        if count < least {
            let text =
                format!("the attack had no effect: {} {count}, fewer than {least}", effect.name);
            faults.push(text);
        }
        for fault in &faults {
            eprintln!("{name}: {fault}");
        }
        all_verified &= faults.is_empty();
        let patches = watched.intervals_ms.len();
        let intervals = Samples::new(watched.intervals_ms);
        let p99 = intervals.percentile(99.0);
        let late = after.lateness_ns.iter().map(|ns| *ns as f64 / 1e6);
        let late = Samples::new(late.collect());
        let cpu = after.cpu.saturating_sub(before.cpu);
        let delayed = after.delayed.saturating_sub(before.delayed);
        let record = Record::new()
            .with("suite", "attacks")
            .with("attack", name)
            .with("attackers", attack.attackers(options.connections))
            .with("effect", effect.name)
            .with("effect_count", count)
            .with("effect_count_min", least)
            .measured("interval_ms_p50", intervals.percentile(50.0))
            .measured("interval_ms_p99", p99)
            .measured("interval_ms_max", intervals.percentile(100.0))
            .with("p99_ratio", calm_p99.map(|calm: f64| (p99 / calm * 1e3).round() / 1e3))
            .measured("join_ms", watched.join_ms)
            .measured("tick_late_ms_p99", late.percentile(99.0))
            .with("patches", patches)
            .measured("attack_mb_per_second", done.sent as f64 / 1e6 / seconds)
            .measured("answer_mb_per_second", done.received as f64 / 1e6 / seconds)
            .with("connections", done.connections)
            .measured("server_cpu", cpu.as_secs_f64() / seconds)
            .measured("server_delayed", delayed.as_secs_f64() / seconds)
            .with("server_mb", after.resident_mb)
            .with("verified", faults.is_empty());
        report.add(record, out)?;
        if attack == Attack::None {
            calm_p99.get_or_insert(p99);
        }
    }
    Ok(all_verified)
}

/// Watches a player on each shard during the attack, and ends it. Each player must then catch up.
fn watch(hosted: &Hosted, options: &Options, flood: Flood) -> io::Result<(Watched, Done)> {
    let players = thread::scope(|scope| {
        let watch = |room| {
            let mut player = Victim::join(hosted.node, room, options.corrupt_one)?;
            player.watch(options.round)?;
            Ok(player)
        };
        let threads: Vec<_> =
            hosted.places.watched.iter().map(|room| scope.spawn(move || watch(room))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, io::Result<Victim>>| {
            thread.join().map_err(|_| io::Error::other("a player panicked"))?
        };
        threads.into_iter().map(join).collect::<io::Result<Vec<_>>>()
    });
    let done = flood.stop()?;
    let mut watched = Watched { intervals_ms: Vec::new(), join_ms: 0.0, faults: Vec::new() };
    for mut player in players? {
        player.catch_up()?;
        watched.intervals_ms.extend(player.intervals_ms);
        watched.faults.extend(player.fault);
        watched.join_ms = watched.join_ms.max(player.join_ms);
    }
    Ok((watched, done))
}
