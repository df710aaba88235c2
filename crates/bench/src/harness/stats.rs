//! Means and percentiles.

use playfield_load::Timings;
pub(crate) use playfield_measure::Samples;

/// The time in milliseconds that so many percent of all do not exceed; NaN without any, which reports
/// show as nothing.
pub(crate) fn percentile_ms(times: &Timings, percent: f64) -> f64 {
    if times.count() == 0 { f64::NAN } else { times.percentile_ms(percent) }
}
