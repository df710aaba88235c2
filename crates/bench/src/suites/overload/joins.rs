//! Clients go on asking for rooms, up to twice of what fits, and the node refuses some.

use super::watch::{begin, fault, watch};
use super::{Options, Row, setup};
use crate::harness::report::Record;
use crate::suites::rooms::window::Failure;
use crate::suites::rooms::{Options as Case, Setup};

pub(super) fn measure(options: &Options, fit: u32) -> Result<Record, Failure> {
    let case = Case { rooms: fit * 2, ..options.case() };
    let there = fit.div_ceil(2) as usize;
    let asked = Setup { rooms_at_once: there, is_limited: true, ..setup(&case) };
    let mut run = begin(asked)?;
    run.fleet.run(options.warm_up);
    let clients = &mut run.fleet.script;
    // The intervals of those who were there before count.
    let newcomers = clients.players(there).start;
    for client in &mut clients.all[newcomers..] {
        client.arrivals.is_uneven = true;
    }
    let further = case.rooms - there as u32;
    clients.asking.go_on(options.time / further);
    let watched = watch(&mut run, options.time)?;
    let clients = &mut run.fleet.script;
    clients.asking.end();
    let admitted = clients.rooms_made();
    let (rooms_refused, players_refused) =
        (clients.asking.rooms_refused, clients.asking.players_refused);
    let rates = watched.rates(0..there);
    let fault = fault(&mut run);
    let record = Row::Joins.record(&case).with("rooms_fit", fit);
    Ok(watched
        .add_to(record)
        .with("rooms_there", there)
        .with("rooms_admitted", admitted)
        .with("rooms_refused", rooms_refused)
        .with("players_refused", players_refused)
        .with("joins_refused_late", watched.counters.refused_late)
        .with("rooms_refused_busy", watched.counters.refused_busy)
        .measured("hz_mean", rates.mean())
        .measured("hz_min", rates.least())
        .measured("hz_max", rates.most())
        .measured("slowest_share", rates.slowest_share())
        .with("lost", run.fleet.script.lost)
        .with("verified", fault.is_none() && watched.is_compared())
        .with("failure", fault))
}
