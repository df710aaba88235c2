//! The search for the number of rooms that fit.

use std::time::Duration;

use super::watch::{begin, watch};
use super::{Options, setup};
use crate::suites::rooms::Options as Case;
use crate::suites::rooms::run::INTERVAL_P99_MAX;
use crate::suites::rooms::window::Failure;

/// The share of a core at which rooms fit: with more, some of them are late.
pub(super) const FULL: f64 = 0.8;

/// The number of rooms that are tried first.
const FIRST: u32 = 40;

/// The number of tries of a number of rooms, and the time for which each is watched.
const TRIES: u32 = 4;
const TRY: Duration = Duration::from_secs(1);

/// The step from a number with which rooms are late to the next.
const LESS: f64 = 0.9;

/// Searches for the number of rooms that take [`FULL`] of the node's core and are not late.
pub(super) fn rooms_that_fit(options: &Options) -> Result<u32, Failure> {
    let case = options.case();
    let (mut rooms, mut fitted) = (FIRST, None);
    for _ in 0..TRIES {
        let mut run = begin(setup(&Case { rooms, ..case.clone() }))?;
        run.fleet.run(case.warm_up);
        let tried = watch(&mut run, TRY)?;
        let is_late = tried.interval_ms_p99() * f64::from(case.hz) > INTERVAL_P99_MAX * 1e3;
        if !is_late {
            fitted = fitted.max(Some(rooms));
        }
        let next = next(rooms, tried.shares.server, is_late);
        if next.abs_diff(rooms) * 20 <= rooms {
            break;
        }
        rooms = next;
    }
    fitted.ok_or_else(|| Failure::Overload(format!("not even {rooms} rooms are in time")))
}

/// The number to try after one that took this share of the core.
fn next(rooms: u32, share: f64, is_late: bool) -> u32 {
    let by_share = f64::from(rooms) * FULL / share.max(0.01);
    let next = if is_late { by_share.min(f64::from(rooms) * LESS) } else { by_share };
    (next as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn the_next_number_would_fill_the_core_and_is_less_if_rooms_are_late() {
        assert_eq!(next(40, 0.32, false), 100);
        assert_eq!(next(100, 1.0, false), 80);
        assert_eq!(next(100, 0.8, true), 90);
        assert_eq!(next(1, 1.0, true), 1);
    }
}
