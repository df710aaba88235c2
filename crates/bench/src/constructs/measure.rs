//! Measures one construct.

use std::time::Instant;

use playfield_state::{Format, Mirror, PlayerId, State, Tracker, Tracking, view};

/// Who looks: the player to whom everything belongs that is anybody's.
pub(super) const VIEWER: PlayerId = PlayerId(1);

/// What came out.
pub(super) struct Measured {
    /// How many changes each sync had.
    pub(super) changes: u32,
    /// From the comparison to the body of the one patch.
    pub(super) ns_per_change: f64,
    /// Of the patch's body.
    pub(super) bytes_per_change: f64,
    /// Every patch was read, and the copy was what its viewer may see.
    pub(super) verified: bool,
}

/// How many syncs come before those that are measured.
const WARM_UP: u32 = 50;

/// How often the copy is compared with the whole state, which every patch since has led to.
const COMPARE_EVERY: u32 = 100;

/// Measures a state in which `step` makes so many changes before each sync.
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
        // Not at each sync: what goes through the whole state leaves none of it in the processor's caches.
        if number % COMPARE_EVERY == 0 {
            verified &= copy.digest() == tracker.digest(VIEWER);
            verified &= view(copy.state(), Some(VIEWER)) == view(&state, Some(VIEWER));
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Measured {
        changes,
        ns_per_change: median.as_nanos() as f64 / f64::from(changes),
        bytes_per_change: bytes as f64 / f64::from(syncs.max(1)) / f64::from(changes),
        verified,
    }
}
