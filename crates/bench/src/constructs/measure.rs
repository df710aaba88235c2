//! Measures one construct.

use std::time::{Duration, Instant};

use playfield_state::{Format, JsonMirror, Mirror, PlayerId, State, Tracker, Tracking, view};

/// The player who receives the patches and owns all owner-only values.
pub(super) const VIEWER: PlayerId = PlayerId(1);

/// The result.
pub(super) struct Measured {
    /// The number of changes per sync.
    pub(super) changes: u32,
    /// From the comparison to the body of the only patch.
    pub(super) ns_per_change: f64,
    /// Measured on the patch body.
    pub(super) bytes_per_change: f64,
    /// Whether every patch was decoded, and the copy equals what its viewer may see.
    pub(super) verified: bool,
}

/// How many unmeasured syncs come first.
const WARM_UP: u32 = 50;

/// How often, in syncs, the copy is compared with the whole state.
const COMPARE_EVERY: u32 = 100;

/// Measures a state in which `step` makes `changes` changes before each sync.
pub(super) fn measure<T: State + Default>(
    syncs: u32,
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
    for number in 0..WARM_UP + syncs {
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
        verified &= any && copy.patch(&body).is_ok();
        // Not at every sync: comparing the whole state evicts it from the CPU caches.
        if number % COMPARE_EVERY == 0 {
            verified &= copy.digest() == tracker.digest(VIEWER, Format::Packed);
            verified &= view(copy.state(), Some(VIEWER)) == view(&state, Some(VIEWER));
        }
    }
    Measured {
        changes,
        ns_per_change: median_ns(&mut times) / f64::from(changes),
        bytes_per_change: bytes as f64 / f64::from(syncs.max(1)) / f64::from(changes),
        verified,
    }
}

/// Measures the digest after each sync, in which `step` makes `changes` changes.
pub(super) fn measure_digest<T: State + Default>(
    syncs: u32,
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
    for number in 0..WARM_UP + syncs {
        step(&mut state, number);
        tracker.sync(&mut state);
        let began = Instant::now();
        let digest = tracker.digest(VIEWER, format);
        let took = began.elapsed();
        if number >= WARM_UP {
            times.push(took);
        }
        if number % COMPARE_EVERY == 0 {
            let mut body = Vec::new();
            tracker.snapshot(VIEWER, format, &mut body);
            verified &= digest_of_copy::<T>(format, &body) == Some(digest);
        }
    }
    Measured {
        changes,
        ns_per_change: median_ns(&mut times) / f64::from(changes),
        bytes_per_change: 0.0,
        verified,
    }
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

fn median_ns(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default().as_nanos() as f64
}
