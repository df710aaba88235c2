//! Twice the rooms that fit, and then half of them.

use super::watch::{Watched, begin, fault, recover, watch};
use super::{Options, Row, setup};
use crate::harness::report::Record;
use crate::suites::rooms::Options as Case;
use crate::suites::rooms::window::Failure;

pub(super) fn measure(options: &Options, fit: u32) -> Result<Record, Failure> {
    let case = Case { rooms: fit * 2, ..options.case() };
    let mut run = begin(setup(&case))?;
    run.fleet.run(options.warm_up);
    let watched: Watched = watch(&mut run, options.time)?;
    let rates = watched.rates(0..case.rooms as usize);
    for room in fit as usize..case.rooms as usize {
        run.fleet.script.leave(room, &mut run.fleet.links);
    }
    let recovered = recover(&mut run)?;
    let fault = fault(&mut run);
    let record = Row::Rooms.record(&case).with("rooms_fit", fit);
    Ok(watched
        .add_to(record)
        .measured("hz_mean", rates.mean())
        .measured("hz_min", rates.least())
        .measured("hz_max", rates.most())
        .measured("slowest_share", rates.slowest_share())
        .with("recovery_s", recovered.map(|time| time.as_secs_f64()))
        .with("lost", run.fleet.script.lost)
        .with("verified", fault.is_none() && watched.is_compared())
        .with("failure", fault))
}
