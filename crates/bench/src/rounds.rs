//! Rows of a suite, measured in turn in one process.

use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::stats::Samples;
use crate::{Record, allocations};

/// How much of the work a row does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Writes or reads, and no more.
    Same,
    /// Compares every field and touches every byte.
    Verified,
}

impl Form {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Same, Self::Verified];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Verified => "verified",
        }
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|form| form.name() == name)
            .ok_or_else(|| format!("there is no form {name:?}: same or verified"))
    }
}

/// Which rows to measure, and how to report them.
#[derive(Clone, Debug)]
pub struct Options {
    /// One row alone.
    pub row: Option<String>,
    /// One form alone.
    pub form: Option<Form>,
    /// Lines of JSON instead of a table.
    pub json: bool,
    /// How often each row is measured, in turn with all others; the fastest counts.
    pub rounds: u32,
    /// How long one measurement takes, in milliseconds.
    pub round_ms: u64,
}

impl Options {
    /// All rows, in both forms.
    pub fn new() -> Self {
        Self { row: None, form: None, json: false, rounds: 9, round_ms: 10 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// What is done in a row.
pub(crate) trait Body {
    /// Does the operation so many times.
    fn run(&self, form: Form, times: u64) -> Run;

    /// How many operations are done in the time of one.
    fn at_once(&self) -> f64 {
        1.0
    }

    /// How many operations of the form that compares prove what the other one did.
    fn proof(&self) -> u64 {
        1
    }
}

/// What one run of a body came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) took: Duration,
    /// Written and read together once: the bytes that one operation is about.
    pub(crate) bytes_per_op: u64,
    /// What was read was what was written, wherever that was looked at.
    pub(crate) right: bool,
    /// How often the process allocated meanwhile, where that is known.
    pub(crate) allocations: Option<u64>,
}

/// Does an operation so many times. `op` says whether what it read was right; one that doesn't look
/// says yes.
#[inline(always)]
pub(crate) fn run(times: u64, bytes_per_op: usize, mut op: impl FnMut(u64) -> bool) -> Run {
    let counted = || allocations::so_far().map(|allocations| allocations.count);
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
pub(crate) struct Measured {
    /// In the fastest round: what else the machine does only ever adds.
    pub(crate) ns_per_op: f64,
    pub(crate) ns_per_op_median: f64,
    pub(crate) bytes_per_op: u64,
    pub(crate) allocations_per_op: Option<f64>,
    pub(crate) verified: bool,
}

impl Measured {
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_op as f64 / self.ns_per_op * 1e9
    }

    /// Begins the row's record.
    pub(crate) fn record(&self, suite: &str, row: &str, form: Form) -> Record {
        Record::new()
            .with("suite", suite)
            .with("row", row)
            .with("form", form.name())
            .measured("ns_per_op", self.ns_per_op)
            .measured("ns_per_op_median", self.ns_per_op_median)
            .with("bytes_per_op", self.bytes_per_op)
            .measured("bytes_per_s", self.bytes_per_s())
    }

    /// Ends it.
    pub(crate) fn end(&self, mut record: Record) -> Record {
        if let Some(allocations) = self.allocations_per_op {
            record = record.measured("allocations_per_op", allocations);
        }
        record.with("verified", self.verified)
    }
}

/// Measures all rows, round by round, so that a slow minute is slow for all.
pub(crate) fn all<B: Body>(rows: &[(B, Form)], options: &Options) -> Vec<Measured> {
    let round = Duration::from_millis(options.round_ms);
    let times: Vec<u64> = rows.iter().map(|(row, form)| times(row, *form, round)).collect();
    let mut samples = vec![Vec::new(); rows.len()];
    let mut right = vec![true; rows.len()];
    let mut bytes = vec![0; rows.len()];
    let mut allocations = vec![None; rows.len()];
    for _ in 0..options.rounds.max(1) {
        for (place, (row, form)) in rows.iter().enumerate() {
            let run = row.run(*form, times[place]);
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
            verified: right[place]
                && (*form == Form::Verified || row.run(Form::Verified, row.proof()).right),
        }
    });
    measured.collect()
}

/// How many operations take about as long as a round should.
fn times(row: &impl Body, form: Form, round: Duration) -> u64 {
    let mut times = 1;
    loop {
        let took = row.run(form, times).took;
        if took * 4 > round {
            let share = round.as_secs_f64() / took.as_secs_f64();
            return ((times as f64 * share) as u64).max(1);
        }
        times *= 2;
    }
}
