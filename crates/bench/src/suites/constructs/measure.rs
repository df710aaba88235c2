//! Measures one construct.

use std::time::{Duration, Instant};

use playfield_state::{Format, JsonMirror, Mirror, PlayerId, State, Tracker, Tracking, view};

use super::Options;
use crate::harness::stats::Samples;

/// The player who receives the patches and owns all owner-only values.
pub(super) const VIEWER: PlayerId = PlayerId(1);

/// The result.
pub(super) struct Measured {
    /// The number of changes per sync.
    pub(super) changes: u32,
    /// From the comparison to the body of the only patch.
    pub(super) ns_per_change: f64,
    pub(super) ns_per_change_min: f64,
    pub(super) ns_per_change_max: f64,
    /// Measured on the patch body.
    pub(super) bytes_per_change: f64,
    /// Whether every patch was decoded, and the copy equals what its viewer may see.
    pub(super) verified: bool,
}

/// The number of unmeasured syncs that come first.
const WARM_UP: u32 = 50;

/// The interval, in syncs, at which the copy is compared with the whole state.
const COMPARE_EVERY: u32 = 100;

/// Measures a state in which `step` makes `changes` changes before each sync.
pub(super) fn measure<T: State + Default>(
    options: &Options,
    changes: u32,
    begin: impl FnOnce(&mut T),
    mut step: impl FnMut(&mut T, u32),
) -> Measured {
    let mut state = T::default();
    begin(&mut state);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut copy = Mirror::<T>::new();
    let mut body = Vec::new();
    tracker.snapshot(VIEWER, Format::Packed, &mut body);
    let mut verified = copy.snapshot(&body).is_ok();
    let (mut bytes, mut times) = (0, Vec::new());
    for number in 0..WARM_UP + options.syncs {
        step(&mut state, number);
        body.clear();
        let since = tracker.version();
        let began = Instant::now();
        tracker.sync(&mut state);
        let any = tracker.patch(VIEWER, since, Format::Packed, &mut body);
        let took = began.elapsed();
        if number >= WARM_UP {
            times.push(took);
            bytes += body.len();
        }
        if options.corrupt_one && number == WARM_UP {
            body[0] ^= 0xFF;
        }
        verified &= any && copy.patch(&body).is_ok();
        // Not at every sync: comparing the whole state evicts it from the CPU caches.
        if number % COMPARE_EVERY == 0 {
            verified &= copy.digest() == tracker.digest(VIEWER, Format::Packed);
            verified &= view(copy.state(), Some(VIEWER)) == view(&state, Some(VIEWER));
        }
    }
    let bytes = bytes as f64 / f64::from(options.syncs.max(1)) / f64::from(changes);
    Measured::of(changes, times, bytes, verified)
}

/// Measures the digest after each sync, in which `step` makes `changes` changes.
pub(super) fn measure_digest<T: State + Default>(
    options: &Options,
    format: Format,
    changes: u32,
    begin: impl FnOnce(&mut T),
    mut step: impl FnMut(&mut T, u32),
) -> Measured {
    let mut state = T::default();
    begin(&mut state);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut times = Vec::new();
    let mut verified = true;
    for number in 0..WARM_UP + options.syncs {
        step(&mut state, number);
        tracker.sync(&mut state);
        let began = Instant::now();
        let digest = tracker.digest(VIEWER, format);
        let took = began.elapsed();
        let digest = digest ^ u64::from(options.corrupt_one);
        if number >= WARM_UP {
            times.push(took);
        }
        if number % COMPARE_EVERY == 0 {
            let mut body = Vec::new();
            tracker.snapshot(VIEWER, format, &mut body);
            verified &= digest_of_copy::<T>(format, &body) == Some(digest);
        }
    }
    Measured::of(changes, times, 0.0, verified)
}

fn digest_of_copy<T: State + Default>(format: Format, snapshot: &[u8]) -> Option<u64> {
    match format.tree() {
        None => {
            let mut copy = Mirror::<T>::new();
            copy.snapshot(snapshot).ok()?;
            Some(copy.digest())
        }
        Some(format) => {
            let mut copy = JsonMirror::of(format);
            copy.snapshot(snapshot).ok()?;
            Some(copy.digest())
        }
    }
}

impl Measured {
    fn of(changes: u32, times: Vec<Duration>, bytes_per_change: f64, verified: bool) -> Self {
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(changes);
        let times = Samples::new(times.into_iter().map(each).collect());
        let [ns_per_change_min, ns_per_change, ns_per_change_max] =
            [0.0, 50.0, 100.0].map(|percent| times.percentile(percent));
        Self {
            changes,
            ns_per_change,
            ns_per_change_min,
            ns_per_change_max,
            bytes_per_change,
            verified,
        }
    }
}
