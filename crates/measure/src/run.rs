//! One run: rooms in a node of their own, and their players on another core.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use playfield_load::{Counts, Profiler, Progress, Report, Settings};
use playfield_server::Pace;

use crate::drive::Drive;
use crate::exchange::{Exchange, Profiles};
use crate::field_time::ProbeTimes;
use crate::machine::{DRIVER_CORE, delayed, pin, process_cpu, raise_descriptors};
use crate::node::{LOG, NAMES_WORD, Node, Traits, Used};
use crate::process::{Server, Usage};

/// The longest time until all players have joined.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for which the load runs before the measurement begins.
pub(crate) const WARM_UP: Duration = Duration::from_millis(700);

/// The number of players that a profile looks at.
const PROFILED: usize = 8;

/// The longest time to read the node's profile.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two pings of a player, as clients send them to show that they are there.
const PING: Duration = Duration::from_secs(2);

/// A certificate for loopback: a file with the certificate, and one with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate, which clients trust.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The rooms and players of a run, and its length.
#[derive(Clone, Debug)]
pub struct Case {
    /// The type of the rooms.
    pub room_type: String,
    /// The number of rooms.
    pub rooms: usize,
    /// Players in each.
    pub players: usize,
    /// Ticks and syncs a second, if not the type's own.
    pub hz: Option<u32>,
    /// The behavior of the players.
    pub drive: Drive,
    /// The pace of the node's clock.
    pub pace: Pace,
    /// Over TLS, with this certificate.
    pub tls: Option<Certificate>,
    /// The duration of the measurement, in real time.
    pub time: Duration,
    /// Counts, by field, what some of the players are sent.
    pub profiler: Option<Profiler>,
    /// Of all random values.
    pub seed: u64,
}

/// The measurements of a run. Times and counts are of the measurement, without joining and warm-up.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The duration of the run, in the time of the rooms.
    pub room_s: f64,
    /// Rooms.
    pub rooms: usize,
    /// Players in each.
    pub players: usize,
    /// The type's own rate of syncs.
    pub sync_hz: u32,
    /// CPU time of the node's shard, in seconds.
    pub cpu_s: f64,
    /// The part of it in the system.
    pub system_share: f64,
    /// Its parts, in seconds, by name.
    pub parts: [(&'static str, f64); 5],
    /// Reading memory for cold caches, which is no part of it.
    pub eviction_s: f64,
    /// The share of a core that the node took.
    pub node_core: f64,
    /// The share of a core that the players took.
    pub driver_core: f64,
    /// The share of the time in which the node was ready to run and something else ran; 1 at most.
    pub node_delayed: f64,
    /// The same of the players.
    pub driver_delayed: f64,
    /// Bytes that the node received and sent, in the frames of the protocol.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Patches sent.
    pub patches: u64,
    /// Syncs.
    pub syncs: u64,
    /// Syncs that were missed since rooms were late.
    pub syncs_missed: u64,
    /// Messages received.
    pub messages_in: u64,
    /// Messages sent: patches, events, replies and all others.
    pub messages_out: u64,
    /// Turns of the shard.
    pub turns: u64,
    /// Resident memory of the node before the first player, in bytes.
    pub resident_before: u64,
    /// Resident memory of the node at the end, in bytes.
    pub resident: u64,
    /// The time between two patches of a room, in milliseconds: half of all, and 99 % of them.
    pub interval_ms: [f64; 2],
    /// The lateness of 99 % of the patches at most, in milliseconds; NaN without any.
    pub lateness_ms: f64,
    /// The time to the answers of 99 % of the players' pings, in milliseconds; NaN without any.
    pub ping_ms: f64,
    /// Faults that make the run worthless, in a sentence with reasons.
    pub trouble: Option<String>,
    /// Messages that the players could not make, in a sentence with reasons.
    pub unmade: Option<String>,
}

impl Run {
    /// CPU time of a room in a second of its own time, in seconds: the share of a core that it
    /// takes.
    #[must_use]
    pub fn core_per_room(&self) -> f64 {
        self.cpu_s / (self.room_s * self.rooms as f64)
    }

    /// A part of the CPU time, by its name, in seconds.
    #[must_use]
    pub fn part(&self, name: &str) -> f64 {
        self.parts.iter().find(|(of, _)| *of == name).map_or(0.0, |(_, seconds)| *seconds)
    }

    /// Something for each player in a second of the room's time.
    #[must_use]
    pub fn per_player(&self, count: u64) -> f64 {
        count as f64 / (self.room_s * (self.rooms * self.players) as f64)
    }
}

/// The counters that are parts of the CPU time, and their names.
const PARTS: [(&str, &str); 5] = [
    ("receive", "input_ns"),
    ("ticks", "ticks_ns"),
    ("changes", "syncs_ns"),
    ("patches", "patches_ns"),
    ("send", "writes_ns"),
];

/// Runs a case.
///
/// # Errors
/// If the node can't run, a player can't join, or a room fails, ends, or removes a player.
pub fn run(case: &Case) -> io::Result<Run> {
    run_with(case, Besides::default()).map(|measured| measured.run)
}

/// Runs a case whose [trouble](Run::trouble) is a result, too.
///
/// # Errors
/// If the node can't run, or a player can't join.
pub(crate) fn attempt(case: &Case) -> io::Result<Run> {
    attempt_with(case, Besides::default()).map(|measured| measured.run)
}

/// Measurements of a node's rooms besides.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Besides {
    /// Profiles of all rooms for so long, once all players have joined.
    pub(crate) profile: Option<Duration>,
    /// Rounds without profiles and with them, in place of one profile.
    pub(crate) rounds: u32,
    /// The time of syncs by field.
    pub(crate) is_probed: bool,
}

/// A run, and what its node has measured besides.
pub(crate) struct Measured {
    pub(crate) run: Run,
    /// The messages and events of the first room, if its profile ends before its players do.
    pub(crate) exchange: Exchange,
    pub(crate) times: ProbeTimes,
    /// The CPU time of the rounds without profiles and with them, in nanoseconds.
    pub(crate) rounds: Vec<u64>,
}

/// The same as [`run`], while the node measures something else of its rooms.
pub(crate) fn run_with(case: &Case, besides: Besides) -> io::Result<Measured> {
    let measured = attempt_with(case, besides)?;
    match &measured.run.trouble {
        Some(trouble) => {
            let Case { players, room_type, .. } = case;
            Err(io::Error::other(format!(
                "rooms of the type {room_type:?} with {players} players can't be measured: {trouble}"
            )))
        }
        None => Ok(measured),
    }
}

fn attempt_with(case: &Case, besides: Besides) -> io::Result<Measured> {
    case.drive.check(&case.room_type)?;
    let Besides { profile: lasts, rounds, is_probed } = besides;
    raise_descriptors();
    let tls = case.tls.as_ref();
    let node = Node {
        room_type: case.room_type.clone(),
        players: case.players as u32,
        hz: case.hz,
        pace: case.pace,
        tls: tls.map(|tls| [&tls.certificate, &tls.key].map(|file| file.display().to_string())),
        profiles: lasts.map(|lasts| {
            let (rooms, ms) = (case.rooms, lasts.as_millis() as u64);
            Profiles { rooms, ms, rounds }
        }),
        is_probed,
    };
    // A profile leaves out the cost of joining.
    case.profiler.iter().for_each(Profiler::pause);
    let mut server = Server::start(&node.arguments(), LOG)?;
    let Traits { sync_hz, .. } = Traits::of(&server)?;
    let before = server.usage()?;
    let settings = settings(case, &server)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stops = Arc::clone(&stop);
    let (tells, hears) = sync_channel(1024);
    let load = thread::Builder::new().name("players".into()).spawn(move || {
        // Without a core of its own it still runs.
        let _ = pin(DRIVER_CORE);
        playfield_load::run(&settings, &stops, &mut |progress: &Progress| {
            // Nobody listens once the measurement has begun.
            let _ = tells.try_send(progress.counts);
        })
    })?;
    // At the begin, after the warm-up, and at the end.
    let mut samples = Vec::new();
    let mut exchange = None;
    let measured = (|| {
        let deadline = Instant::now() + JOIN_TIMEOUT;
        loop {
            match hears.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(now) if now.in_rooms as usize == case.rooms * case.players => break,
                Ok(now) if now.failed + now.joins_refused + now.lost + now.removed == 0 => {}
                // The report has the reason.
                Ok(_) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Ok(());
                }
            }
        }
        for (time, is_counted) in [(WARM_UP, false), (case.time, true)] {
            samples.push(Sample::take(&mut server, is_probed)?);
            case.profiler.iter().filter(|_| is_counted).for_each(Profiler::resume);
            let until = Instant::now() + time;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                if hears.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
                    return Ok(());
                }
            }
        }
        case.profiler.iter().for_each(Profiler::pause);
        samples.push(Sample::take(&mut server, is_probed)?);
        let deadline = Instant::now() + PROFILE_TIMEOUT;
        let is_awaited = rounds == 0 && lasts.is_some_and(|lasts| lasts < case.time);
        while is_awaited && exchange.is_none() && Instant::now() < deadline {
            let used = Sample::take(&mut server, is_probed)?.used;
            exchange = Exchange::read(server.word(NAMES_WORD)?, &used.profile);
            // The players go on, so this ends at the next report.
            let _ = hears.recv_timeout(WARM_UP);
        }
        Ok::<_, io::Error>(())
    })();
    stop.store(true, Ordering::Relaxed);
    let ended = server.ended()?;
    let report = load.join().map_err(|_| io::Error::other("the players' thread has panicked"))?;
    if let Some(status) = ended {
        let text = format!("the node ended with {status} while it was measured; see above");
        return Err(io::Error::other(text));
    }
    let report = report.map_err(|error| io::Error::other(error.to_string()))?;
    measured?;
    match &samples[..] {
        [_, from, to] => Ok(Measured {
            run: of(case, sync_hz, &before, from, to, &report),
            exchange: exchange.unwrap_or_default(),
            times: to.used.times.since(&from.used.times),
            rounds: if rounds > 0 { to.used.profile.clone() } else { Vec::new() },
        }),
        [] => Err(io::Error::other(not_joined(case, &report))),
        _ => Err(io::Error::other(format!(
            "the players' programs ended before the measurement did: {}",
            problems(&report)
        ))),
    }
}

/// The players' settings.
fn settings(case: &Case, server: &Server) -> io::Result<Settings> {
    let scheme = if case.tls.is_some() { "tls" } else { "tcp" };
    // The certificate is for this name.
    let url = format!("{scheme}://localhost:{}", server.address.port());
    let url = url.parse().map_err(|error| io::Error::other(format!("{url}: {error}")))?;
    Ok(Settings {
        connections: case.rooms * case.players,
        processes: 1,
        duration: Some(Duration::from_secs(3600)),
        timeout: Duration::from_secs(5),
        scripts: case.drive.scripts(&case.room_type, case.players),
        copies: if case.profiler.is_some() { PROFILED } else { 1 },
        profiler: case.profiler.clone(),
        ping: Some(PING),
        spin: true,
        speed: case.pace.speed,
        warm_up: WARM_UP,
        progress_every: Duration::from_millis(100),
        root: case.tls.as_ref().map(|tls| tls.certificate.clone()),
        seed: case.seed,
        ..Settings::new(url)
    })
}

fn not_joined(case: &Case, report: &Report) -> String {
    let &Counts { joined, removed, .. } = report.counts();
    format!(
        "{joined} of {} players joined rooms of the type {:?}{}: {}",
        case.rooms * case.players,
        case.room_type,
        if removed > 0 { format!(", and {removed} were removed") } else { String::new() },
        problems(report)
    )
}

/// The first problems of a load.
fn problems(report: &Report) -> String {
    let ended = report.counts().finished;
    let ended = (ended > 0).then(|| {
        format!("the scripts of {ended} players have ended: let them hold, or repeat their steps")
    });
    let problems = report.problems().keys().take(PROBLEMS_SHOWN).cloned();
    let problems: Vec<_> = ended.into_iter().chain(problems).collect();
    match problems.is_empty() {
        true => "no reason was given".to_owned(),
        false => problems.join("; "),
    }
}

/// The most problems of a load that an error names.
const PROBLEMS_SHOWN: usize = 3;

/// Faults that make a run worthless. Refusals are a room's own answers, and what was about to be
/// answered when the measurement ended is none.
fn trouble(report: &Report) -> Option<String> {
    let Counts { lost, removed, wrong, .. } = report.counts();
    let faults = [
        (lost, "players were lost"),
        (removed, "players were removed from rooms"),
        (wrong, "copies of the state were wrong"),
    ];
    let faults = faults.iter().filter(|(count, _)| **count > 0);
    let faults: Vec<_> = faults.map(|(count, what)| format!("{count} {what}")).collect();
    (!faults.is_empty()).then(|| format!("{} ({})", faults.join(", "), problems(report)))
}

fn unmade(report: &Report) -> Option<String> {
    let count = report.counts().undone;
    (count > 0).then(|| format!("{count} messages could not be made ({})", problems(report)))
}

/// Both ends at one time.
struct Sample {
    usage: Usage,
    used: Used,
    driver_cpu: Duration,
    driver_delayed: Duration,
}

impl Sample {
    fn take(server: &mut Server, is_probed: bool) -> io::Result<Self> {
        let usage = server.usage()?;
        let used = Used::of(&usage.more, is_probed);
        let used = used.ok_or_else(|| io::Error::other("the node is of another version"))?;
        let driver_delayed = delayed(DRIVER_CORE);
        Ok(Self { usage, used, driver_cpu: process_cpu(), driver_delayed })
    }
}

fn of(
    case: &Case,
    sync_hz: u32,
    before: &Usage,
    from: &Sample,
    to: &Sample,
    report: &Report,
) -> Run {
    let real_s = (to.usage.at - from.usage.at).as_secs_f64();
    let used = to.used.since(&from.used);
    let seconds = |counter: &str| used.counter(counter) as f64 / 1e9;
    let share = |now: Duration, then: Duration| now.saturating_sub(then).as_secs_f64() / real_s;
    let eviction_s = seconds("eviction_ns");
    let cpu_s = used.cpu_ns as f64 / 1e9;
    let own_s = (cpu_s - eviction_s).max(0.0);
    // Eviction is in the program, so the time in the system is that of the room.
    let system_s = cpu_s * used.system as f64 / (used.user + used.system).max(1) as f64;
    let system_share = if own_s > 0.0 { (system_s / own_s).min(1.0) } else { 0.0 };
    let percentile = |name: &str, percent| {
        let timed = report.timings(name).filter(|timings| timings.count() > 0);
        timed.map_or(f64::NAN, |timings| timings.percentile_ms(percent))
    };
    Run {
        room_s: real_s * f64::from(case.pace.speed),
        rooms: case.rooms,
        players: case.players,
        sync_hz,
        cpu_s: own_s,
        system_share,
        parts: PARTS.map(|(name, counter)| (name, seconds(counter))),
        eviction_s,
        node_core: cpu_s / real_s,
        driver_core: share(to.driver_cpu, from.driver_cpu),
        // Several of its threads may wait at once.
        node_delayed: share(to.usage.delayed, from.usage.delayed).min(1.0),
        driver_delayed: share(to.driver_delayed, from.driver_delayed).min(1.0),
        bytes_in: used.counter("bytes_in"),
        bytes_out: used.counter("bytes_out"),
        patches: used.counter("patches"),
        syncs: used.counter("syncs"),
        syncs_missed: used.counter("syncs_missed"),
        messages_in: used.counter("messages_in"),
        messages_out: used.counter("messages_out"),
        turns: used.counter("turns"),
        resident_before: before.resident,
        resident: to.usage.resident,
        interval_ms: [percentile("interval", 50.0), percentile("interval", 99.0)],
        lateness_ms: percentile("lateness", 99.0),
        ping_ms: percentile("ping", 99.0),
        trouble: trouble(report),
        unmade: unmade(report),
    }
}
