//! Works over sockets: echoes, and the rooms of a Colyseus server.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use playfield_cli::options::Failure;
use serde_json::Value;

use super::comparison::{Comparison, MORE_IS_BETTER};
use super::{Options, Peer};
use crate::harness::Side;
use crate::harness::dialogue::Transport;
use crate::harness::machine::{DRIVER_CORE, pin, raise_descriptors};
use crate::harness::process::{self, Server};
use crate::suites::{echo, rooms};

/// Bytes of messages, and how many of each client are under way.
const ECHOES: [(usize, usize); 4] = [(8, 200), (64, 200), (1 << 10, 200), (64, 1)];
/// Players of a room.
const PLAYERS: u64 = 30;

/// Compares all servers that are installed.
pub(super) fn compare(
    options: &Options,
    add: &mut dyn FnMut(Comparison) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut echoing = Vec::new();
    if let Some(path) = options.installed(Peer::WebSocket, "websocket/release/echo") {
        echoing.push(Echoing { name: "tokio-tungstenite", path: path.clone() });
        echoing.push(Echoing { name: "fastwebsockets", path });
    }
    if let Some(path) = options.installed(Peer::UWebSockets, "uwebsockets/echo") {
        echoing.push(Echoing { name: "uWebSockets", path });
    }
    if !echoing.is_empty() {
        raise_descriptors();
        pin(DRIVER_CORE)?;
        for (bytes, window) in ECHOES {
            echoes(options, bytes, window, &echoing)?.into_iter().try_for_each(&mut *add)?;
        }
    }
    if let Some(path) = options.installed(Peer::Colyseus, "colyseus/rooms.mjs")
        && let Some(folder) = path.parent()
    {
        add(patches(options, folder)?)?;
        if options.find_max {
            add(most_rooms(folder)?)?;
        }
    }
    Ok(())
}

/// A WebSocket server that sends messages back.
struct Echoing {
    name: &'static str,
    path: PathBuf,
}

impl Echoing {
    /// Starts it. Its first line has its port and its version.
    fn start(&self) -> io::Result<(Server, String)> {
        let server = Server::start_foreign(Command::new(&self.path).arg(self.name))?;
        let version = server.word(1)?.to_owned();
        Ok((server, version))
    }
}

/// A row for each server: the processor time that a message takes.
fn echoes(
    options: &Options,
    bytes: usize,
    window: usize,
    echoing: &[Echoing],
) -> io::Result<Vec<Comparison>> {
    let usual = echo::Options::new(options.is_quick);
    let case = echo::Options {
        frame_bytes: bytes,
        window: window.min(usual.window),
        transport: Transport::WebSocket,
        time: options.time,
        ..usual
    };
    let mut ours: Vec<echo::Outcome> = Vec::new();
    let mut bare = Vec::new();
    let mut theirs: Vec<(String, Vec<echo::Outcome>)> =
        echoing.iter().map(|_| (String::new(), Vec::new())).collect();
    for _ in 0..options.rounds {
        bare.push(echo::measure(&case, Side::Bare)?);
        ours.push(echo::measure(&case, Side::Node)?);
        for (of, (version, outcomes)) in echoing.iter().zip(&mut theirs) {
            let (server, found) = of.start()?;
            *version = found;
            outcomes.push(echo::measure_on(&case, Side::Node, server)?);
        }
    }
    let figures = |of: &[echo::Outcome]| of.iter().map(echo::Outcome::each_ns).collect::<Vec<_>>();
    let is_right = |of: &[echo::Outcome]| of.iter().all(|outcome| outcome.fault.is_none());
    let rate = |of: &[echo::Outcome]| median(of.iter().map(echo::Outcome::rate).collect());
    let row = |(of, (version, theirs)): (&Echoing, (String, Vec<echo::Outcome>))| Comparison {
        peer: of.name.to_owned(),
        version,
        work: format!("echo of {bytes} B over WebSocket, {} under way", case.window),
        unit: "ns of the server a message",
        ours: figures(&ours),
        theirs: figures(&theirs),
        baseline: figures(&bare),
        more: vec![
            ("bytes", bytes.into()),
            ("window", case.window.into()),
            ("connections", case.connections.into()),
            ("per_s_ours", rate(&ours)),
            ("per_s_theirs", rate(&theirs)),
            ("per_s_baseline", rate(&bare)),
        ],
        is_verified: [&ours, &theirs, &bare].into_iter().all(|of| is_right(of)),
    };
    Ok(echoing.iter().zip(theirs).map(row).collect())
}

/// The row of the processor time that a patch takes, with so many rooms.
fn patches(options: &Options, folder: &Path) -> io::Result<Comparison> {
    let case = rooms::Options {
        rooms: options.rooms,
        players: PLAYERS,
        seconds: if options.is_quick { 1 } else { 3 },
        colyseus: folder.to_owned(),
        corrupt_one: options.corrupt_one,
        ..rooms::Options::new(false)
    };
    let (mut ours, mut theirs, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let run = rooms::run_ours(&rooms::Options { corrupt_one: false, ..case.clone() })?;
        bare.push(rooms::run_baseline(&case, rooms::sent_bytes(&run))?);
        ours.push(run);
        theirs.push(rooms::run_colyseus(&case)?);
    }
    let all = |of: &[Value], name: &str| -> Vec<f64> {
        of.iter().map(|run| rooms::number(&run[name])).collect()
    };
    let middle = |of: &[Value], name: &str| median(all(of, name));
    Ok(Comparison {
        peer: "Colyseus".into(),
        version: version(folder)?,
        work: format!("{} rooms of {PLAYERS} players at 20 Hz over WebSocket", case.rooms),
        unit: "µs of the server a patch",
        ours: all(&ours, "us_per_send"),
        theirs: all(&theirs, "us_per_send"),
        baseline: all(&bare, "us_per_send"),
        more: vec![
            ("rooms", case.rooms.into()),
            ("players", PLAYERS.into()),
            ("bytes_ours", middle(&ours, "bytes_per_patch")),
            ("bytes_theirs", middle(&theirs, "bytes_per_patch")),
            ("interval_ms_p99_ours", middle(&ours, "interval_ms_p99")),
            ("interval_ms_p99_theirs", middle(&theirs, "interval_ms_p99")),
            ("server_core_ours", middle(&ours, "server_core")),
            ("server_core_theirs", middle(&theirs, "server_core")),
        ],
        is_verified: ours.iter().chain(&theirs).chain(&bare).all(rooms::is_whole),
    })
}

/// The row of the most rooms that hold, by the search of `bench rooms`.
fn most_rooms(folder: &Path) -> io::Result<Comparison> {
    let colyseus = format!("--colyseus={}", folder.display());
    let arguments = ["bench", "rooms", "--json", "--find-max", &colyseus].map(str::to_owned);
    let found = process::run(&arguments)?;
    let most = |name: &str| vec![rooms::number(&found.record[name])];
    Ok(Comparison {
        peer: "Colyseus".into(),
        version: version(folder)?,
        work: format!("rooms of {PLAYERS} players at 20 Hz on one core, p99 of intervals to 60 ms"),
        unit: MORE_IS_BETTER,
        ours: most("max_rooms"),
        theirs: most("colyseus_max_rooms"),
        baseline: most("baseline_max_rooms"),
        more: vec![
            ("limit_ours", found.record["limit"].clone()),
            ("limit_theirs", found.record["colyseus_limit"].clone()),
        ],
        is_verified: found.is_verified && found.record["verified"] == true,
    })
}

/// The version of Colyseus that is installed.
fn version(folder: &Path) -> io::Result<String> {
    let path = folder.join("node_modules/@colyseus/core/package.json");
    let package: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    Ok(package["version"].as_str().unwrap_or("unknown").to_owned())
}

fn median(figures: Vec<f64>) -> Value {
    let median = crate::harness::stats::Samples::new(figures).percentile(50.0);
    ((median * 1e3).round() / 1e3).into()
}
