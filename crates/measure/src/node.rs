//! The node of a measurement: a process of its own, with one shard on a core of its own.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::sync::PoisonError;
use std::time::Duration;

use playfield_room::Settings;
use playfield_server::config::{AddressLimits, Quota, RateLimit, Timeouts};
use playfield_server::{Config, LevelFilter, Pace, Server, ShardStats};
use playfield_state::SyncProbe;
use playfield_wire::schema::RoomSchema;
use serde_json::{Value, json};

use crate::exchange::{Profiles, names, watch};
use crate::field_time::{ProbeTimes, probe_numbers};
use crate::machine::{SERVER_CORE, pin, raise_descriptors};
use crate::process::{Answers, Server as Process};

/// The command of a program that makes its process the node of a measurement.
pub const COMMAND: &str = "measured-node";

/// The begin of the names of shards' threads; the system cuts longer names.
const SHARD_THREAD: &str = "playfield-shard";

/// The node of a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The type of the rooms that are measured.
    pub room_type: String,
    /// Their players.
    pub players: u32,
    /// Their rate of syncs, or of ticks for a type without syncs, if not their own. A type with both
    /// keeps their ratio.
    pub hz: Option<u32>,
    /// The pace of the node's clock, and what it does to caches.
    pub pace: Pace,
    /// Files with a certificate and its key, for TLS.
    pub tls: Option<[String; 2]>,
    /// Profiles of its rooms, once all players are there.
    pub(crate) profiles: Option<Profiles>,
    /// Measures syncs by field.
    pub(crate) is_probed: bool,
}

impl Node {
    /// The arguments of this program that start it.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let Self { room_type, players, hz, pace, tls, profiles, is_probed } = self;
        let settings = json!({
            "room_type": room_type, "players": players, "hz": hz, "tls": tls,
            "speed": pace.speed, "evict_bytes": pace.evict_bytes,
            "profile_rooms": profiles.map(|profiles| profiles.rooms),
            "profile_ms": profiles.map(|profiles| profiles.ms),
            "profile_rounds": profiles.map_or(0, |profiles| profiles.rounds),
            "is_probed": is_probed,
        });
        vec![COMMAND.into(), settings.to_string()]
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |name: &str| u32::try_from(value[name].as_u64()?).ok();
        let tls = value["tls"].as_array().map(|files| {
            [0, 1].map(|at| files.get(at).and_then(Value::as_str).unwrap_or_default().to_owned())
        });
        Some(Self {
            room_type: value["room_type"].as_str()?.to_owned(),
            players: number("players")?,
            hz: number("hz"),
            pace: Pace {
                speed: number("speed")?,
                evict_bytes: value["evict_bytes"].as_u64()? as usize,
            },
            tls,
            profiles: value["profile_rooms"]
                .as_u64()
                .zip(value["profile_ms"].as_u64())
                .zip(number("profile_rounds"))
                .map(|((rooms, ms), rounds)| Profiles { rooms: rooms as usize, ms, rounds }),
            is_probed: value["is_probed"].as_bool()?,
        })
    }

    /// The settings: those of the program, without limits on how fast clients come.
    fn config(&self) -> io::Result<Config> {
        let mut config = Config {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            shards: 1,
            log: LevelFilter::Error,
            ..Config::default()
        };
        // Clients that send nothing are not lost, however fast the clock runs.
        let Timeouts { heartbeat, hello, watchdog, .. } = &mut config.timeouts;
        [heartbeat, hello, watchdog].into_iter().for_each(|timeout| *timeout = DAY);
        let limits = &mut config.limits;
        let many = Quota { total: 1_000_000, per_address: 1_000_000 };
        (limits.connections, limits.handshakes) = (many, many);
        let AddressLimits { sessions, joins, rooms_created, keys_missed, .. } = &mut limits.address;
        for rate in [sessions, joins, rooms_created, keys_missed] {
            *rate = RateLimit::per_minute(10_000_000);
        }
        limits.session.rooms_created = RateLimit::per_minute(1_000_000);
        limits.session.keys_missed = RateLimit::per_minute(1_000_000);
        (limits.session.messages.count, limits.session.bytes.count) = (0, 0);
        // How many rooms fit is what is asked.
        (config.rooms.lateness, config.rooms.busy_percent) = (Duration::ZERO, 0);
        if let Some([certificate, key]) = &self.tls {
            config.set("tls.cert", certificate).map_err(io::Error::other)?;
            config.set("tls.key", key).map_err(io::Error::other)?;
        }
        Ok(config)
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of a room type that decide at which sizes and rates it can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    /// Its own rate of syncs.
    pub(crate) sync_hz: u32,
    /// Its own rate of ticks.
    pub(crate) tick_hz: u32,
    /// The most players.
    pub(crate) capacity: u32,
}

/// The word of a node's first line with the names of messages and events, counted from 0.
pub(crate) const NAMES_WORD: usize = 4;

impl Traits {
    /// Asks a node that runs.
    pub(crate) fn of(node: &Process) -> io::Result<Self> {
        let number = |at: usize| node.word(at)?.parse::<u32>().map_err(io::Error::other);
        Ok(Self { sync_hz: number(1)?, tick_hz: number(2)?, capacity: number(3)? })
    }

    /// Asks a node that has no rooms.
    pub(crate) fn of_type(room_type: &str) -> io::Result<Self> {
        let node = Node {
            room_type: room_type.into(),
            players: 0,
            hz: None,
            pace: Pace::default(),
            tls: None,
            profiles: None,
            is_probed: false,
        };
        Self::of(&Process::start(&node.arguments(), LOG)?)
    }

    /// The most players of a room that is measured.
    pub(crate) fn players_max(self) -> usize {
        self.capacity.max(1) as usize
    }

    /// The rate that another one replaces: that of syncs, or of ticks for a type without syncs.
    pub(crate) fn hz(self) -> u32 {
        if self.sync_hz > 0 { self.sync_hz } else { self.tick_hz }
    }
}

/// The level of a node's log.
pub(crate) const LOG: &str = "error";

/// Runs this process as the node that the words after [`COMMAND`] describe, until standard input is
/// closed. `make` makes the program's server.
///
/// # Errors
/// If the program lacks this room type, or the node can't run.
pub fn run(words: &[String], make: impl FnOnce(Config) -> io::Result<Server>) -> io::Result<()> {
    let words = words.first().map(String::as_str).unwrap_or_default();
    let node = Node::parse(words);
    let node = node.ok_or_else(|| io::Error::other(format!("{words:?} describes no node")))?;
    raise_descriptors();
    // From here on, output of the program and its rooms goes to standard error.
    let answers = Answers::new()?;
    pin(SERVER_CORE)?;
    let server = make(node.config()?)?;
    if !server.schemas().any(|(name, _)| name == node.room_type) {
        let known: Vec<_> = server.schemas().map(|(name, _)| name.to_owned()).collect();
        let text = format!(
            "this program has no room type {:?}; it has {}",
            node.room_type,
            known.join(", ")
        );
        return Err(io::Error::other(text));
    }
    let schema = server.schemas().find(|(name, _)| *name == node.room_type);
    let schema = schema.and_then(|(_, schema)| RoomSchema::from_json(schema.as_bytes()).ok());
    let names = schema.as_ref().map_or_else(String::new, names);
    let probe = schema.filter(|_| node.is_probed).and_then(|of| SyncProbe::new(&of.state).ok());
    let mut own = Traits { sync_hz: 0, tick_hz: 0, capacity: 0 };
    let server = server.pace(node.pace).change_room_types(|of| {
        // Without a store, no room is saved.
        of.settings.persist_s = 0;
        if of.name != node.room_type {
            return;
        }
        of.probe.clone_from(&probe);
        let settings = &mut of.settings;
        let Settings { sync_hz, tick_hz, capacity, .. } = *settings;
        own = Traits { sync_hz, tick_hz, capacity };
        // Players of a fast room would seem to be silent.
        settings.silence_ms = DAY.as_millis() as u64;
        if let Some(hz) = node.hz {
            let scale = |rate: u32| (rate * hz).checked_div(own.hz()).unwrap_or(rate);
            settings.tick_hz = scale(tick_hz).clamp(u32::from(tick_hz > 0), 1000);
            settings.sync_hz = scale(sync_hz);
        }
    });
    let running = server.start()?;
    let watched = node.profiles.map(|profiles| watch(running.handle(), node.players, profiles));
    let Traits { sync_hz, tick_hz, capacity } = own;
    answers.serve(
        format_args!("{} {sync_hz} {tick_hz} {capacity} {names}", running.local_addr().port()),
        || 0,
        || {
            let [cpu, user, system] = shard_cpu();
            let counters = running.stats().total().counters().map(|(_, value)| value);
            let all = [cpu, user, system].into_iter().chain(counters);
            let more = watched
                .as_ref()
                .map(|watched| watched.lock().unwrap_or_else(PoisonError::into_inner).clone());
            let times = probe.iter().flat_map(probe_numbers);
            all.chain(times).chain(more.into_iter().flatten()).collect()
        },
    )
}

/// The CPU time of the shards' threads in nanoseconds, and how many ticks of the system's clock
/// found them in the program and in the system.
pub(crate) fn shard_cpu() -> [u64; 3] {
    let mut sum = [0; 3];
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        if !read("comm").starts_with(SHARD_THREAD) {
            continue;
        }
        let schedule = read("schedstat");
        let ran = schedule.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        // The name, in parentheses, may have spaces. User and system time are fields 14 and 15.
        let status = read("stat");
        let after = status.rsplit(')').next().unwrap_or_default();
        let mut fields = after.split_whitespace().skip(11).map_while(|word| word.parse().ok());
        let parts = [ran.unwrap_or(0), fields.next().unwrap_or(0), fields.next().unwrap_or(0)];
        sum.iter_mut().zip(parts).for_each(|(sum, part): (&mut u64, u64)| *sum += part);
    }
    sum
}

/// Resources that the node of a measurement has used since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) cpu_ns: u64,
    pub(crate) user: u64,
    pub(crate) system: u64,
    counters: Vec<u64>,
    /// The times of a probe, if there is one.
    pub(crate) times: ProbeTimes,
    /// The numbers of a profile, once it is made.
    pub(crate) profile: Vec<u64>,
}

impl Used {
    /// The numbers that [`run`] reports.
    pub(crate) fn of(numbers: &[u64], is_probed: bool) -> Option<Self> {
        let ([cpu_ns, user, system], counters) = numbers.split_first_chunk()?;
        let count = ShardStats::default().counters().count();
        let (counters, rest) = counters.split_at_checked(count)?;
        let (times, profile) = match is_probed {
            true => ProbeTimes::read(rest)?,
            false => (ProbeTimes::default(), rest),
        };
        Some(Self {
            cpu_ns: *cpu_ns,
            user: *user,
            system: *system,
            counters: counters.into(),
            times,
            profile: profile.into(),
        })
    }

    /// The counter of this name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let names = ShardStats::default();
        let at = names.counters().position(|(known, _)| known == name);
        at.and_then(|at| self.counters.get(at)).copied().unwrap_or(0)
    }

    /// The resources used since an earlier sample.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let counters = self.counters.iter().zip(&before.counters);
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            counters: counters.map(|(now, then)| now.saturating_sub(*then)).collect(),
            times: self.times.since(&before.times),
            profile: self.profile.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use playfield_server::{Pace, ShardStats};

    use super::{COMMAND, Node, Used};
    use crate::exchange::Profiles;

    #[test]
    fn the_arguments_describe_the_node() {
        let node = Node {
            room_type: "a \"room\"".into(),
            players: 30,
            hz: Some(20),
            pace: Pace { speed: 50, evict_bytes: 1 << 20 },
            tls: Some(["cert.pem".into(), "key.pem".into()]),
            profiles: Some(Profiles { rooms: 1, ms: 2400, rounds: 3 }),
            is_probed: true,
        };
        for node in [node.clone(), Node { hz: None, tls: None, profiles: None, ..node }] {
            let arguments = node.arguments();
            assert_eq!(arguments[0], COMMAND);
            assert_eq!(Node::parse(&arguments[1]), Some(node));
        }
        assert_eq!(Node::parse("{}"), None);
        assert_eq!(Node::parse("nonsense"), None);
    }

    #[test]
    fn what_was_used_is_found_by_its_name() {
        let count = ShardStats::default().counters().count();
        let numbers: Vec<u64> = (1000..).take(3 + count).collect();
        let used = Used::of(&numbers, false).unwrap();
        assert_eq!((used.cpu_ns, used.counter("connections")), (1000, 1003));
        assert_eq!(used.since(&used), Used::of(&vec![0; 3 + count], false).unwrap());
        assert_eq!(Used::of(&numbers[1..], false), None);
        assert_eq!(Used::of(&numbers, true), None);
    }
}
