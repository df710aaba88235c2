//! The sync of a room, compared with the encoding of `@colyseus/schema`.

use std::time::Instant;

use playfield_state::{Format, Tracking};

use super::codecs::{Rival, Round, Work};
use crate::harness::stats::Samples;
use crate::suites::sync::copies::check;
use crate::suites::sync::room::Room;
use crate::suites::sync::{MEASURED, WARM_UP};
use crate::workloads::colyseus::Colyseus;

/// The schema, as npm names it.
const NAME: &str = "@colyseus/schema";
const CARDS: u32 = 10;
/// The number of rooms played in a round, as in `peers/colyseus/schema.mjs`.
const ROOMS: usize = 10;

/// Both scenarios, with few and many players, with few and many hands that change.
pub(super) fn works(is_quick: bool) -> Vec<Work> {
    let mut works = Vec::new();
    for players in [30, 50] {
        for scenario in ["A", "B"] {
            for hands in [0.05, 0.2, 0.8] {
                works.push(work(players, scenario, hands));
            }
        }
    }
    works.truncate(if is_quick { 1 } else { usize::MAX });
    works
}

fn work(players: u64, scenario: &'static str, hands: f64) -> Work {
    let workload = Colyseus::new(players, 0, CARDS, scenario == "B", hands);
    let (_, bytes, _) = play(&workload);
    let percent = hands * 100.0;
    Work {
        name: format!("sync of colyseus {scenario}, {percent:.0} % of hands, {players} players"),
        unit: "µs a sync",
        ours: Box::new(move || round(&workload)),
        baseline: None,
        rivals: vec![Rival {
            name: NAME,
            program: 0,
            line: format!("{players} {scenario} {hands}"),
        }],
        more: vec![
            ("players", players.into()),
            ("scenario", scenario.into()),
            ("hands", hands.into()),
            ("bytes_ours", bytes.into()),
        ],
    }
}

/// The median of all syncs, in microseconds.
fn round(workload: &Colyseus) -> Round {
    let (mut us, mut is_right) = (Vec::new(), true);
    for _ in 0..ROOMS {
        let (took, _, right) = play(workload);
        us.extend(took);
        is_right &= right;
    }
    (Samples::new(us).percentile(50.0), is_right)
}

/// Plays a room. Returns the times of syncs, the bytes of one for all players, and whether every
/// message led to the right copy.
fn play(workload: &Colyseus) -> (Vec<f64>, f64, bool) {
    let mut room = Room::new(workload, Format::Packed, Tracking::On);
    let (mut us, mut bytes) = (Vec::new(), 0);
    for iteration in 0..WARM_UP + MEASURED {
        room.step(iteration);
        let began = Instant::now();
        room.sync();
        let took = began.elapsed().as_secs_f64() * 1e6;
        let sent = room.keep();
        if iteration >= WARM_UP {
            us.push(took);
            bytes += sent;
        }
    }
    let checked = check(workload, &room, Format::Packed, WARM_UP + MEASURED);
    let is_right = checked.failure.is_none() && checked.compared == room.sent.messages();
    (us, bytes as f64 / MEASURED as f64, is_right)
}
