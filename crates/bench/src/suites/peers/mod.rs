//! `bench peers`: other projects' programs on the same work as ours, in the same run.
//!
//! `make bench-peers` installs the programs of `crates/bench/peers` into a folder. A round of a work
//! measures all of those that compare, one after the other, so a slow period of the machine affects
//! all of them. One that is not installed is named, and left out.

mod codecs;
mod comparison;
mod frames;
mod program;
mod python;
mod schema;
mod sockets;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use playfield_cli::options::Failure;

use crate::harness::options::{Suite, names, options};
use crate::harness::report::{Column, Report};

names! {
    /// Peers that can be installed, and chosen.
    Peer {
        /// Its schema, and its rooms over sockets.
        Colyseus = "colyseus",
        /// flate2 without frames, with each of two libraries.
        Deflate = "deflate",
        Mpacket = "mpacket",
        /// WebSocket clients in Python.
        Python = "python",
        UWebSockets = "uwebsockets",
        /// WebSocket libraries in Rust, in memory and over sockets.
        WebSocket = "websocket",
    }
}

/// Peers, as a list with blanks.
#[derive(Clone, Debug)]
pub(crate) struct Peers(Vec<Peer>);

impl FromStr for Peers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

options! {
    Options {
        peers: Peers = Peers(Peer::NAMES.iter().map(|(_, peer)| *peer).collect())
            => "peers" "NAMES" "colyseus, deflate, mpacket, python, uwebsockets, websocket; separate \
                several by blanks (default all)",
            |given| given.value();
        folder: PathBuf = "target/bench-peers".into()
            => "folder" "PATH" "where make bench-peers has installed them (default target/bench-peers)",
            |given| given.value();
        rounds: u32 = 5, quick 1
            => "rounds" "N" "measurements of each; the median counts (default 5)",
            |given| given.within(1..=1_000);
        time: Duration = Duration::from_millis(400), quick Duration::from_millis(300)
            => "seconds" "S" "duration of one measurement of echoes (default 0.4)",
            |given| given.within(0.1..=3_600.0).map(Duration::from_secs_f64);
        rooms: u32 = 20, quick 2
            => "rooms" "N" "rooms of 30 players, over sockets (default 20)",
            |given| given.within(1..=10_000);
        find_max: bool = false
            => "find-max" "" "find the most rooms that hold 20 Hz, too; takes some minutes",
            |_given| Ok(true);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
        is_quick: bool = false, quick true => "is-quick" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "peers",
    about: "other projects' programs on the same work, in the same run: Colyseus, mpacket, WebSocket
libraries in Rust and C++, WebSocket clients in Python, flate2. Those that are not installed are left
out; `make bench-peers` installs them, and runs this. A ratio is how many times better ours is.",
    defaults: Options::new,
    run,
};

const COLUMNS: &[Column] = &[
    ("            peer", "peer"),
    ("                                     work", "work"),
    ("    ours", "ours"),
    ("  theirs", "theirs"),
    ("baseline", "baseline"),
    ("                    unit", "unit"),
    ("   ratio", "ratio"),
    ("     min", "ratio_min"),
    ("     max", "ratio_max"),
    ("verified", "verified"),
];

impl Options {
    /// A file of a peer that was chosen; `None` if it was not, or if it is not installed.
    fn installed(&self, peer: Peer, file: impl AsRef<Path>) -> Option<PathBuf> {
        if !self.peers.0.contains(&peer) {
            return None;
        }
        let path = self.folder.join(file);
        if !path.exists() {
            let path = path.display();
            eprintln!(
                "playfield: {peer} is left out: {path} is missing; install it by `make bench-peers`."
            );
            return None;
        }
        Some(path)
    }
}

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    report.begin(COLUMNS)?;
    let mut add = |comparison: comparison::Comparison| report.add(comparison.record());
    codecs::compare(options, &mut add)?;
    python::compare(options, &mut add)?;
    sockets::compare(options, &mut add)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Peer, Peers};

    #[test]
    fn the_script_installs_every_peer() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let script = std::fs::read_to_string(root.join("scripts/bench-peers")).unwrap();
        let known = script.lines().find_map(|line| line.strip_prefix("known=")).unwrap();
        let mut known: Vec<&str> = known.trim_matches('"').split(' ').collect();
        known.sort_unstable();
        assert_eq!(known, Peer::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        for name in known {
            assert!(script.contains(&format!("\n{name}() {{\n")), "{name}");
        }
    }

    #[test]
    fn a_peer_that_there_is_not_is_refused() {
        assert_eq!(" mpacket  colyseus".parse::<Peers>().unwrap().0.len(), 2);
        assert!("mpacket other".parse::<Peers>().is_err_and(|why| why.contains("colyseus")));
    }
}
