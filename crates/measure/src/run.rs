//! One run: rooms in a node of their own, and their players on another core.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use playfield_load::{
    Action, Counts, Enter, MakeBot, MessageKind, Profiler, Progress, Report, Script, Settings, Step,
};
use playfield_server::Pace;
use serde_json::Value;

use crate::exchange::{Exchange, Profiles};
use crate::field_time::ProbeTimes;
use crate::machine::{DRIVER_CORE, delayed, pin, process_cpu, raise_descriptors};
use crate::node::{Node, Used};
use crate::process::{Server, Usage};

/// The longest time until all players have joined.
const JOIN_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the load runs before the measurement begins.
pub(crate) const WARM_UP: Duration = Duration::from_millis(700);

/// How many players a profile looks at.
const PROFILED: usize = 8;

/// The longest time to read the node's profile.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two pings of a player, as clients send them to show that they are there.
const PING: Duration = Duration::from_secs(2);

/// The behavior of players.
#[derive(Clone, Debug, PartialEq)]
pub enum Drive {
    /// Bots in Rust.
    Bot(MakeBot),
    /// Scripts, which join rooms of the type that is measured.
    Scripts(Vec<Script>),
    /// Messages generated from the schema.
    Messages {
        /// The message's name; any message of the room without one.
        name: Option<String>,
        /// The message. Fields that it leaves out are generated.
        value: Option<Value>,
        /// How many each player sends in a second; 0 for none.
        rate: f64,
        /// Says whether a reply is asked for.
        is_request: bool,
    },
}

impl Drive {
    /// Messages at another rate; what has rates of its own stays as it is.
    #[must_use]
    pub fn at_rate(&self, times: f64) -> Self {
        match self {
            Self::Messages { name, value, rate, is_request } => Self::Messages {
                name: name.clone(),
                value: value.clone(),
                rate: rate * times,
                is_request: *is_request,
            },
            other => other.clone(),
        }
    }

    fn scripts(&self, room_type: &str, players: usize) -> Vec<Script> {
        let step = |action| Step { place: "capacity".into(), action };
        let mut steps = vec![
            step(Action::Join {
                room_type: room_type.into(),
                enter: Enter::Shared { key: "measured-".into(), connections: players },
                options: None,
            }),
            step(Action::WaitForAll),
        ];
        match self {
            Self::Scripts(scripts) => return scripts.clone(),
            Self::Bot(make) => steps.push(step(Action::Bot { make: make.clone() })),
            Self::Messages { rate, .. } if *rate <= 0.0 => steps.push(step(Action::Hold)),
            Self::Messages { name, value, rate, is_request } => {
                let kind = match is_request {
                    true => MessageKind::RequestAhead,
                    false => MessageKind::Send,
                };
                let message = Action::Message {
                    room_type: None,
                    name: name.clone(),
                    value: value.clone(),
                    kind,
                };
                steps.push(step(Action::Repeat {
                    times: None,
                    every: Some(Duration::from_secs_f64(1.0 / rate)),
                    steps: vec![step(message)],
                }));
            }
        }
        vec![Script { weight: 1, token: None, steps }]
    }
}

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
    /// How many rooms.
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
    /// How long the measurement takes, in real time.
    pub time: Duration,
    /// Counts, by field, what some of the players are sent.
    pub profiler: Option<Profiler>,
    /// Of all random values.
    pub seed: u64,
}

/// The measurements of a run. Times and counts are of the measurement, without joining and warm-up.
#[derive(Clone, Debug)]
pub struct Run {
    /// How long it took, in the time of the rooms.
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
    /// The share of the time in which the node was ready to run and something else ran.
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
    /// Turns of the shard.
    pub turns: u64,
    /// Resident memory of the node before the first player, in bytes.
    pub resident_before: u64,
    /// Resident memory of the node at the end, in bytes.
    pub resident: u64,
    /// The time between two patches of a room, in milliseconds: half of all, and 99 % of them.
    pub interval_ms: [f64; 2],
    /// How late 99 % of the patches were at most, in milliseconds.
    pub lateness_ms: f64,
    /// The time to the answers of 99 % of the players' pings, in milliseconds.
    pub ping_ms: f64,
    /// Faults, in a sentence.
    pub trouble: Option<String>,
}

impl Run {
    /// CPU time of a room in a second of its own time, in seconds: the share of a core that it takes.
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
/// If the node can't run, a player can't join, or the room ends.
pub fn run(case: &Case) -> io::Result<Run> {
    run_with(case, Besides::default()).map(|measured| measured.run)
}

/// What a node measures of its rooms besides.
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

/// The same, while the node measures something else of its rooms.
pub(crate) fn run_with(case: &Case, besides: Besides) -> io::Result<Measured> {
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
    let mut server = Server::start(&node.arguments(), "error")?;
    let sync_hz = server.word(1)?.parse().map_err(io::Error::other)?;
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
                Ok(now) if now.failed + now.joins_refused + now.lost == 0 => {}
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
            exchange = Exchange::read(server.word(2)?, &used.profile);
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
    format!(
        "{} of {} players joined rooms of the type {:?}: {}",
        report.counts().joined,
        case.rooms * case.players,
        case.room_type,
        problems(report)
    )
}

/// The first problems of a load.
fn problems(report: &Report) -> String {
    let problems: Vec<_> = report.problems().keys().take(3).cloned().collect();
    match problems.is_empty() {
        true => "no reason was given".to_owned(),
        false => problems.join("; "),
    }
}

/// Faults that make a run worthless. Refusals are a room's own answers, and what was about to be answered
/// when the measurement ended is none.
fn trouble(counts: &Counts) -> Option<String> {
    let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let parts: Vec<_> = [
        of(counts.lost, "players were lost"),
        of(counts.removed, "players were removed from rooms"),
        of(counts.wrong, "copies of the state were wrong"),
        of(counts.undone, "messages could not be made"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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
        report.timings(name).map_or(f64::NAN, |timings| timings.percentile_ms(percent))
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
        node_delayed: share(to.usage.delayed, from.usage.delayed),
        driver_delayed: share(to.driver_delayed, from.driver_delayed),
        bytes_in: used.counter("bytes_in"),
        bytes_out: used.counter("bytes_out"),
        patches: used.counter("patches"),
        syncs: used.counter("syncs"),
        syncs_missed: used.counter("syncs_missed"),
        messages_in: used.counter("messages_in"),
        turns: used.counter("turns"),
        resident_before: before.resident,
        resident: to.usage.resident,
        interval_ms: [percentile("interval", 50.0), percentile("interval", 99.0)],
        lateness_ms: percentile("lateness", 99.0),
        ping_ms: percentile("ping", 99.0),
        trouble: trouble(report.counts()),
    }
}
