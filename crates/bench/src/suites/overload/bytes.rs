//! Rooms whose patches have twice the bytes that their players read, next to rooms whose players
//! read them all; then all do.

use super::watch::{begin, fault, recover, watch};
use super::{Options, Row};
use crate::harness::report::Record;
use crate::suites::rooms::driver::Run;
use crate::suites::rooms::room::Opening;
use crate::suites::rooms::window::Failure;
use crate::suites::rooms::{Options as Case, Setup};

/// The rooms, with a player each, so that a player who skips patches can be compared at little
/// cost. Every other one reads slowly.
const ROOMS: u32 = 40;

/// The number of seats that move in each room, so that a patch is long.
const SEATS: u64 = 600;

pub(super) fn measure(options: &Options) -> Result<Record, Failure> {
    let case = Case { rooms: ROOMS, players: 1, ..options.case() };
    let opening = Opening { seats: SEATS, ..Opening::of(1) };
    let mut run = begin(Setup { opening, ..Setup::of(&case) })?;
    run.fleet.run(options.warm_up);
    let bytes = watch(&mut run, options.warm_up)?.bytes_per_patch();
    let read = bytes * f64::from(case.hz) / 2.0;
    pace(&mut run, Some(read));
    run.fleet.run(options.fill);
    let watched = watch(&mut run, options.time)?;
    let rooms = case.rooms as usize;
    let (fast, slow) = (watched.rates((0..rooms).step_by(2)), watched.rates((1..rooms).step_by(2)));
    pace(&mut run, None);
    let recovered = recover(&mut run)?;
    let fault = fault(&mut run);
    let record = Row::Bytes.record(&case);
    Ok(watched
        .add_to(record)
        .measured("bytes_per_s_due", bytes * f64::from(case.hz))
        .measured("bytes_per_s_read", read)
        .with("conflated", watched.counters.conflated)
        .measured("hz_mean", fast.mean())
        .measured("hz_min", fast.least())
        .measured("hz_max", fast.most())
        .measured("hz_mean_slow", slow.mean())
        .measured("hz_min_slow", slow.least())
        .measured("hz_max_slow", slow.most())
        .measured("slowest_share", fast.slowest_share().min(slow.slowest_share()))
        .with("recovery_s", recovered.map(|time| time.as_secs_f64()))
        .with("lost", run.fleet.script.lost)
        .with("verified", fault.is_none() && watched.is_compared())
        .with("failure", fault))
}

/// Has every other player read so many bytes a second, or all that come.
fn pace(run: &mut Run, bytes_per_second: Option<f64>) {
    let (clients, links) = (&mut run.fleet.script, &mut run.fleet.links);
    for client in (1..clients.all.len()).step_by(2) {
        links.pace(client, bytes_per_second);
        clients.all[client].arrivals.is_uneven = bytes_per_second.is_some();
    }
}
