//! Times by size, in constant memory.

use std::time::Duration;

/// Buckets per doubling: a bucket is at most 1/64 wide.
const STEPS: u64 = 64;

/// How often each time was measured, to 1/64 of itself.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { buckets: vec![0; 64 * STEPS as usize] }
    }

    pub(crate) fn note(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(ns)] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (bucket, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *bucket += more;
        }
    }

    /// The smallest time, rounded up, that at least `percent` of all do not exceed; NaN without
    /// any, which reports show as nothing.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        let all: u64 = self.buckets.iter().sum();
        let rank = (all as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return end(bucket) as f64 / 1e6;
            }
        }
        f64::NAN
    }
}

fn bucket(ns: u64) -> usize {
    let doublings = (ns / STEPS).checked_ilog2().map_or(0, |log| log + 1);
    let shift = doublings.saturating_sub(1);
    // The first two doublings are exact.
    (u64::from(shift) * STEPS + (ns >> shift)) as usize
}

/// The largest time in a bucket.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    ((bucket - shift * STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Histogram, bucket, end};

    #[test]
    fn a_bucket_holds_times_that_differ_by_little() {
        let mut last = 0;
        for ns in (0..100_000).chain((100_000..1 << 40).step_by(999_983_777)) {
            let bucket = bucket(ns);
            assert!(bucket >= last, "{ns}");
            last = bucket;
            let end = end(bucket);
            assert!(end >= ns && end - ns <= ns / 64, "{ns}: {end}");
        }
    }

    #[test]
    fn percentiles_count_every_time() {
        let mut histogram = Histogram::new();
        assert!(histogram.percentile_ms(99.0).is_nan(), "of no times there is none");
        for _ in 0..99 {
            histogram.note(Duration::from_nanos(100));
        }
        histogram.note(Duration::from_millis(1));
        assert_eq!(histogram.percentile_ms(99.0), 100.0 / 1e6);
        let most = histogram.percentile_ms(100.0);
        assert!((1.0..1.02).contains(&most), "{most}");
    }
}
