//! Runs rows in turn.

use std::time::{Duration, Instant};

use super::rows::Row;
use super::{ALLOCATIONS, Form, Options};
use crate::stats::Samples;

/// What one run of a body came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) took: Duration,
    /// Written and read together once: the bytes that one operation is about.
    pub(super) bytes_per_op: u64,
    /// What was read was what was written, wherever that was looked at.
    pub(super) right: bool,
    /// How often the process allocated meanwhile, where that is known.
    pub(super) allocations: Option<u64>,
}

/// Does an operation so many times. `op` says whether what it read was right; one that doesn't look says yes.
#[inline(always)]
pub(super) fn run(times: u64, bytes_per_op: usize, mut op: impl FnMut(u64) -> bool) -> Run {
    let counted = || ALLOCATIONS.get().map(|counter| counter());
    let before = counted();
    let began = Instant::now();
    let mut right = true;
    for time in 0..times {
        right &= op(time);
    }
    let took = began.elapsed();
    let allocations = counted().zip(before).map(|(after, before)| after - before);
    Run { took, bytes_per_op: bytes_per_op as u64, right, allocations }
}

/// What a row came to in all rounds.
pub(super) struct Measured {
    /// In the fastest round: what else the machine does only ever adds.
    pub(super) ns_per_op: f64,
    pub(super) ns_per_op_median: f64,
    pub(super) bytes_per_op: u64,
    pub(super) allocations_per_op: Option<f64>,
    pub(super) verified: bool,
}

/// Measures all rows, round by round, so that a slow minute is slow for all.
pub(super) fn all(rows: &[(Row, Form)], options: &Options) -> Vec<Measured> {
    let round = Duration::from_millis(options.round_ms);
    let times: Vec<u64> = rows.iter().map(|(row, form)| times(row, *form, round)).collect();
    let mut samples = vec![Vec::new(); rows.len()];
    let mut right = vec![true; rows.len()];
    let mut bytes = vec![0; rows.len()];
    let mut allocations = vec![None; rows.len()];
    for _ in 0..options.rounds.max(1) {
        for (place, (row, form)) in rows.iter().enumerate() {
            let run = (row.body)(*form, times[place]);
            samples[place].push(run.took.as_secs_f64() * 1e9 / times[place] as f64 / row.at_once());
            right[place] &= run.right;
            bytes[place] = run.bytes_per_op;
            allocations[place] =
                run.allocations.map(|count| count as f64 / times[place] as f64 / row.at_once());
        }
    }
    let measured = samples.into_iter().enumerate().map(|(place, samples)| {
        let samples = Samples::new(samples);
        let (row, form) = &rows[place];
        Measured {
            ns_per_op: samples.percentile(0.0),
            ns_per_op_median: samples.percentile(50.0),
            bytes_per_op: bytes[place],
            allocations_per_op: allocations[place],
            // The other form proves that what this one writes or reads is right.
            verified: right[place] && (*form == Form::Verified || (row.body)(Form::Verified, 1).right),
        }
    });
    measured.collect()
}

/// How many operations take about as long as a round should.
fn times(row: &Row, form: Form, round: Duration) -> u64 {
    let mut times = 1;
    loop {
        let took = (row.body)(form, times).took;
        if took * 4 > round {
            let share = round.as_secs_f64() / took.as_secs_f64();
            return ((times as f64 * share) as u64).max(1);
        }
        times *= 2;
    }
}
