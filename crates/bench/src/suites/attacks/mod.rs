//! `bench attacks`: how evenly a player is served at 20 Hz while strangers attack the same shard.
//!
//! The node runs in its own process on one core, with default limits and one shard; in rows across
//! shards it has two, and a player on each. The players and the attackers share another core. A
//! player checks its copy, and records when each patch arrives; another one loses its connection
//! once a second and comes back. Each attacker has its own address, and reconnects when the node
//! closes its connection. What an attack must cause while the player is watched is counted, mostly
//! where the node's answers arrive. The first and the last row are measured without an attack, the
//! last one on the node of the row before; each other row has a node of its own.
//!
//! Other work on the two cores makes an attack weaker and a player late. A row that fails only in
//! this way while others take a part of a core is not wrong but not measured.

mod answers;
mod attack;
mod flood;
mod intervals;
mod returning;
mod script;
mod server;
mod verdict;
mod victim;

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;

use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, options};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::Samples;
use attack::{Attack, CONNECTIONS};
use flood::{Done, Flood};
use intervals::Intervals;
use server::{Hosted, Stats};
use verdict::{Others, Verdict, note};
use victim::Victim;

pub(crate) use server::ROLE;

options! {
    Options {
        // An unknown name is found when the rows are selected.
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| given.value().map(Some);
        connections: usize = CONNECTIONS, quick 5
            => "connections" "N" "number of attackers (default 1000)", |given| given.within(0..=10_000);
        round: Duration = Duration::from_secs(2), quick Duration::from_millis(500)
            => "round-ms" "N" "duration of each attack (default 2000)",
            |given| given.milliseconds(10..=3_600_000);
        missed_percent_max: u32 = 10, quick 100
            => "missed-percent-max" "N" "share of due patches that may be missing (default 10)",
            |given| given.within(0..=100);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "attacks",
    about: "how evenly a player is served at 20 Hz while strangers attack the same shard. The node
runs on one core with its default limits, everyone else on another. A row is verified if the
player's copy was right throughout and missed few patches, and the attack had its effect. Where
other processes are the reason why not, the row is not measured: the exit status is then 3.",
    defaults: Options::new,
    run,
};

/// The interval at which a player loses its connection and comes back.
const RETURN_EVERY: Duration = Duration::from_secs(1);

/// The observations during an attack.
struct Watched {
    before: Stats,
    after: Stats,
    done: Done,
    time: Duration,
    intervals: Intervals,
    /// The time that the slowest join took.
    join_ms: f64,
    /// The time that each return took.
    returns_ms: Vec<f64>,
    /// The number of messages that the players sent.
    own_messages: u64,
    /// The faults that were found.
    faults: Vec<String>,
}

const COLUMNS: &[Column] = &[
    ("attack", "attack"),
    ("attackers", "attackers"),
    ("live in the end", "attackers_live"),
    ("effect            ", "effect"),
    ("count", "effect_count"),
    ("at least", "effect_count_min"),
    ("interval p50", "interval_ms_p50"),
    ("p99", "interval_ms_p99"),
    ("max", "interval_ms_max"),
    ("p99 ratio", "p99_ratio"),
    ("missed", "missed"),
    ("join ms", "join_ms"),
    ("return ms", "return_ms"),
    ("p50", "return_ms_p50"),
    ("ticks late p99", "tick_late_ms_p99"),
    ("patches", "patches"),
    ("sent MB/s", "attack_mb_per_second"),
    ("received MB/s", "answer_mb_per_second"),
    ("connections", "connections"),
    ("server CPU", "server_cpu"),
    ("delayed", "server_delayed"),
    ("others", "others_cpu"),
    ("server MB", "server_mb"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    let rows: Vec<_> = Attack::ALL
        .into_iter()
        .filter(|(_, name)| options.row.as_deref().is_none_or(|row| row == *name))
        .collect();
    if rows.is_empty() {
        let names: Vec<_> = Attack::ALL.iter().map(|(_, name)| *name).collect();
        let text = format!("unknown row; the rows are {}", names.join(", "));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text).into());
    }
    pin(DRIVER_CORE)?;
    report.begin(COLUMNS)?;
    let mut hosted: Option<Hosted> = None;
    let mut calm_p99 = None;
    for (attack, name) in rows {
        let node = match &mut hosted {
            Some(hosted) if attack == Attack::None => hosted,
            other => {
                // One at a time, and each without what an attack before has left: its rooms go on
                // for as long as its sessions can be resumed.
                *other = None;
                other.insert(Hosted::start(attack.shards())?)
            }
        };
        let others = Others::begin(node)?;
        let attacked = Flood::start(attack, options.connections, node.node, &node.places)
            .and_then(|flood| watch(node, options, flood));
        let watched = match attacked {
            Ok(watched) => watched,
            // The next row has another node: this one may be under attack still.
            Err(error) => {
                let others = others.end(None);
                hosted = None;
                note(name, Verdict::of(Vec::new(), vec![error.to_string()], others), report);
                continue;
            }
        };
        let others = others.end(Some(&watched.after));
        let count = watched.effect(attack);
        let (faults, doubts) = findings(attack, options, &watched, count);
        let verdict = Verdict::of(faults, doubts, others);
        let Watched { before, after, done, intervals, .. } = watched;
        let seconds = watched.time.as_secs_f64();
        let effect = attack.effect();
        let own_returns = watched.returns_ms.len();
        let waits = Samples::new(intervals.waits_ms);
        let returns = Samples::new(watched.returns_ms);
        let p99 = waits.percentile(99.0);
        let late = after.lateness_ns().iter().map(|ns| *ns as f64 / 1e6);
        let late = Samples::new(late.collect());
        let cpu = after.cpu.saturating_sub(before.cpu);
        let delayed = after.delayed.saturating_sub(before.delayed);
        let record = Record::of("attacks")
            .with("attack", name)
            .with("attackers", attack.attackers(options.connections))
            .with("attackers_live", done.live)
            .with("effect", effect.name)
            .with("effect_count", count)
            .with("effect_count_min", effect.least(options.round, options.connections))
            .measured("interval_ms_p50", waits.percentile(50.0))
            .measured("interval_ms_p99", p99)
            .measured("interval_ms_max", waits.percentile(100.0))
            .with("p99_ratio", calm_p99.map(|calm: f64| (p99 / calm * 1e3).round() / 1e3))
            .with("missed", intervals.missed)
            .measured("join_ms", watched.join_ms)
            .measured("return_ms", returns.percentile(100.0))
            .measured("return_ms_p50", returns.percentile(50.0))
            .with("returns", own_returns)
            .measured("tick_late_ms_p99", late.percentile(99.0))
            .with("patches", intervals.patches)
            .measured("attack_mb_per_second", done.sent as f64 / 1e6 / seconds)
            .measured("answer_mb_per_second", done.received as f64 / 1e6 / seconds)
            .with("connections", done.connections)
            .measured("server_cpu", cpu.as_secs_f64() / seconds)
            .measured("server_delayed", delayed.as_secs_f64() / seconds)
            .measured("others_cpu", others)
            .with("server_mb", after.resident / 1_000_000)
            .with("verified", verdict.is_verified());
        report.add(record)?;
        note(name, verdict, report);
        if attack == Attack::None {
            calm_p99.get_or_insert(p99);
        }
    }
    Ok(())
}

impl Watched {
    /// Returns the effect that the attack has had.
    fn effect(&self, attack: Attack) -> u64 {
        let (stats, own_returns) = ([&self.before, &self.after], self.returns_ms.len() as u64);
        self.done.effect(attack.effect().count, stats, self.own_messages, own_returns)
    }
}

/// Returns what is wrong in a row, and what may be due to the machine: an attack that is weak, or
/// players that were not served.
fn findings(
    attack: Attack,
    options: &Options,
    watched: &Watched,
    count: u64,
) -> (Vec<String>, Vec<String>) {
    let Watched { done, intervals, faults, .. } = watched;
    let (mut faults, mut doubts) = (faults.clone(), Vec::new());
    let effect = attack.effect();
    let least = effect.least(options.round, options.connections);
    if count < least {
        let text = format!("the attack had no effect: {} {count}, fewer than {least}", effect.name);
        // However busy the machine is, an attack has some.
        if count == 0 { faults.push(text) } else { doubts.push(text) }
    }
    let (missed, missed_max) = (intervals.missed_percent(), options.missed_percent_max);
    if missed > f64::from(missed_max) {
        let text = format!("{missed:.1} % of the patches are missing, more than {missed_max} %");
        doubts.push(text);
    }
    let attackers = attack.attackers(options.connections);
    if done.live < attackers / 2 {
        doubts.push(format!("only {} of {attackers} attackers were left", done.live));
    }
    (faults, doubts)
}

/// Runs a player on each shard during the attack, and one that keeps reconnecting. Then ends the
/// attack; each player must catch up.
fn watch(hosted: &mut Hosted, options: &Options, flood: Flood) -> io::Result<Watched> {
    let (node, rooms) = (hosted.node, hosted.places.watched.clone());
    let all_joined = &Barrier::new(rooms.len() + 2);
    let is_over = &AtomicBool::new(false);
    let (players, returning, before, time) = thread::scope(|scope| {
        let watch = |room: &str| {
            let player = Victim::join(node, room, false, options.corrupt_one);
            all_joined.wait();
            let mut player = player?;
            // The node has read what it sent before.
            player.sent = 0;
            player.watch(options.round)?;
            Ok(player)
        };
        let threads: Vec<_> = rooms.iter().map(|room| scope.spawn(move || watch(room))).collect();
        let returning = scope.spawn(|| {
            let player = Victim::join(node, &rooms[0], true, false);
            all_joined.wait();
            return_until(is_over, player?)
        });
        all_joined.wait();
        let began = Instant::now();
        flood.count();
        let before = hosted.stats();
        let players: io::Result<Vec<_>> = threads.into_iter().map(join).collect();
        let time = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        (players, join(returning), before, time)
    });
    let done = flood.stop()?;
    let after = hosted.stats()?;
    let mut watched = Watched {
        before: before?,
        after,
        done,
        time,
        intervals: Intervals::default(),
        join_ms: 0.0,
        returns_ms: Vec::new(),
        own_messages: 0,
        faults: Vec::new(),
    };
    for mut player in players? {
        watched.own_messages += player.sent;
        player.catch_up()?;
        watched.intervals.add(player.intervals);
        watched.faults.extend(player.fault);
        watched.join_ms = watched.join_ms.max(player.join_ms);
    }
    let (player, returns_ms) = returning?;
    watched.own_messages += player.sent;
    watched.faults.extend(player.fault);
    watched.returns_ms = returns_ms;
    Ok(watched)
}

/// Loses the connection and comes back, until the attack is over. How long each return took, in ms.
fn return_until(is_over: &AtomicBool, mut player: Victim) -> io::Result<(Victim, Vec<f64>)> {
    let mut returns_ms = Vec::new();
    player.sent = 0;
    while player.fault.is_none() && (returns_ms.is_empty() || !is_over.load(Ordering::Relaxed)) {
        let began = Instant::now();
        returns_ms.push(player.come_back()?.as_secs_f64() * 1e3);
        player.catch_up()?;
        if !is_over.load(Ordering::Relaxed) {
            player.watch(RETURN_EVERY.saturating_sub(began.elapsed()))?;
        }
    }
    Ok((player, returns_ms))
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, io::Result<T>>) -> io::Result<T> {
    thread.join().map_err(|_| io::Error::other("a player panicked"))?
}
