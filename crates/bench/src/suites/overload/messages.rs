//! Twice the messages that rooms can handle, and then half of them.

use std::time::Duration;

use super::fit::FULL;
use super::watch::{begin, fault, recover, watch};
use super::{Options, Row};
use crate::harness::report::Record;
use crate::harness::source::Source;
use crate::suites::rooms::driver::Run;
use crate::suites::rooms::measure::CALM;
use crate::suites::rooms::pacer::Pacer;
use crate::suites::rooms::room::Opening;
use crate::suites::rooms::window::Failure;
use crate::suites::rooms::{Options as Case, Setup};

/// The rooms, and the players of each: few, so that what waits in sockets is soon full.
const ROOMS: u32 = 4;
const PLAYERS: u64 = 5;

/// The bytes of a message, and how long a room works for it.
const BYTES: usize = 1_000;
const INPUT_US: u64 = 100;

/// The messages a second by which the cost of one is measured.
const TRIED: f64 = 2_000.0;

pub(super) fn measure(options: &Options) -> Result<Record, Failure> {
    let case = Case { rooms: ROOMS, players: PLAYERS, ..options.case() };
    let opening = Opening { input_us: INPUT_US, ..Opening::of(PLAYERS) };
    let source = Source::Narrow(100);
    let mut run = begin(Setup { opening, source, ..Setup::of(&case) })?;
    let mut sent = 0;
    let idle = share(&mut run, options.warm_up)?;
    send(&mut run, TRIED, &mut sent);
    let tried = share(&mut run, options.warm_up)?;
    let fit = fit(idle, tried, TRIED);
    send(&mut run, fit * 2.0, &mut sent);
    run.fleet.run(options.warm_up);
    let (sent_before, withheld_before) = so_far(&run);
    let watched = watch(&mut run, options.time)?;
    let (sent_after, withheld_after) = so_far(&run);
    let rates = watched.rates(0..case.rooms as usize);
    let [sent_now, withheld] = [sent_after - sent_before, withheld_after - withheld_before];
    send(&mut run, fit, &mut sent);
    let recovered = recover(&mut run)?;
    sent += so_far(&run).0;
    run.fleet.script.pacers.truncate(1);
    let handled = run.inputs_handled(sent);
    let fault = fault(&mut run);
    // Messages of a client that is lost need not be handled.
    let lost = run.fleet.script.lost;
    let is_handled = handled == sent || (lost > 0 && handled < sent);
    let per_second = |count: u64| count as f64 / watched.seconds;
    let record = Row::Messages.record(&case);
    Ok(watched
        .add_to(record)
        .measured("messages_per_s_fit", fit)
        .measured("messages_per_s_due", per_second(sent_now + withheld))
        .measured("messages_per_s_sent", per_second(sent_now))
        .measured("messages_per_s_handled", per_second(watched.counters.messages_in))
        .with("withheld", withheld)
        .with("too_fast", watched.counters.too_fast)
        .with("inputs_sent", sent)
        .with("inputs_handled", handled)
        .measured("hz_mean", rates.mean())
        .measured("hz_min", rates.least())
        .measured("hz_max", rates.most())
        .measured("slowest_share", rates.slowest_share())
        .with("recovery_s", recovered.map(|time| time.as_secs_f64()))
        .with("lost", lost)
        .with("verified", fault.is_none() && watched.is_compared() && is_handled)
        .with("failure", fault))
}

/// The node's share of a core in this time.
fn share(run: &mut Run, time: Duration) -> Result<f64, Failure> {
    run.fleet.run(CALM);
    let before = run.used()?;
    run.fleet.run(time);
    Ok(before.until(&run.used()?).server)
}

/// The messages a second that take [`FULL`] of a core with what else there is to do, if so many
/// take this share of it.
fn fit(idle: f64, tried: f64, per_second: f64) -> f64 {
    let each = ((tried - idle) / per_second).max(1e-6);
    ((FULL - idle) / each).max(per_second / 10.0)
}

/// From now on all clients send so many messages a second. Those that were sent are counted.
fn send(run: &mut Run, per_second: f64, sent: &mut u64) {
    let pacers = &mut run.fleet.script.pacers;
    *sent += pacers.drain(1..).map(|pacer| pacer.sent).sum::<u64>();
    pacers.push(Pacer::inputs(per_second, BYTES));
}

/// Returns the number of messages that were sent, and that of those withheld, at the present rate.
fn so_far(run: &Run) -> (u64, u64) {
    let inputs = &run.fleet.script.pacers[1..];
    inputs.iter().fold((0, 0), |sum, pacer| (sum.0 + pacer.sent, sum.1 + pacer.withheld))
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn what_fits_follows_from_what_a_few_messages_take() {
        assert_eq!(fit(0.1, 0.3, 2_000.0).round(), 7_000.0);
        assert_eq!(fit(0.9, 0.95, 2_000.0), 200.0, "there is little to learn from a busy machine");
    }
}
