//! A suite's rows, measured in turn, in one process or in several.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use serde_json::Value;

use super::allocations;
use super::options::names;
use super::process;
use super::report::{Record, Report};
use super::stats::Samples;

names! {
    /// The amount of work that a row does.
    Form {
        /// Only writes or reads.
        Same = "same",
        /// Compares every field and reads every byte.
        Verified = "verified",
    }
}

impl Form {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Same, Self::Verified];
}

/// Defines the options of a suite whose rows, with these names, are measured in turn; and more
/// options of its own.
macro_rules! row_options {
    ($names:expr $(; $($more:tt)*)?) => {
        $crate::harness::options::options! {
            Options {
                row: Option<String> = None
                    => "row" "NAME" "run only this row; an unknown name lists all rows",
                    |given| $crate::harness::options::row_of(given, &$names);
                form: Option<$crate::harness::rounds::Form> = None
                    => "form" "same|verified" "run only this form",
                    |given| given.value().map(Some);
                rounds: u32 = 9, quick 1
                    => "rounds" "N" "measurements per row; the fastest counts (default 9)",
                    |given| given.within(1..=10_000);
                round: std::time::Duration = std::time::Duration::from_millis(10),
                    quick std::time::Duration::from_millis(1)
                    => "round-ms" "N" "duration of one measurement (default 10)",
                    |given| given.milliseconds(1..=10_000);
                processes: u32 = 3, quick 0
                    => "processes" "N" "processes that measure, one after the other, as code and
memory lie differently in each; 0: this one (default 3)",
                    |given| given.within(0..=100);
                $($($more)*)?
            }
        }

        impl Options {
            fn plan(&self) -> $crate::harness::rounds::Plan<'_> {
                let Self { row, form, rounds, round, processes, .. } = self;
                $crate::harness::rounds::Plan {
                    row: row.as_deref(),
                    form: *form,
                    rounds: *rounds,
                    round: *round,
                    processes: *processes,
                }
            }
        }
    };
}

pub(crate) use row_options;

/// The rows and forms to measure, and how often.
pub(crate) struct Plan<'a> {
    pub(crate) row: Option<&'a str>,
    pub(crate) form: Option<Form>,
    pub(crate) rounds: u32,
    /// The duration of a round of one row.
    pub(crate) round: Duration,
    /// The processes that share the rounds; zero for this one.
    pub(crate) processes: u32,
}

impl Plan<'_> {
    /// The command line of a process that runs its share of the rounds.
    fn arguments(&self, suite: &str) -> Vec<String> {
        let mut arguments = ["bench", suite, "--json", "--processes=0"].map(str::to_owned).to_vec();
        arguments.push(format!("--rounds={}", self.rounds.div_ceil(self.processes)));
        arguments.push(format!("--round-ms={}", self.round.as_millis()));
        arguments.extend(self.row.map(|row| format!("--row={row}")));
        arguments.extend(self.form.map(|form| format!("--form={form}")));
        arguments
    }

    /// Returns whether this form is to be measured.
    pub(crate) fn has(&self, form: Form) -> bool {
        self.form.is_none_or(|only| only == form)
    }
}

/// The operation of a row.
pub(crate) trait Body {
    /// Runs the operation the given number of times.
    fn run(&self, form: Form, times: u64) -> Run;

    /// Returns the number of operations that run at the same time.
    fn at_once(&self) -> f64 {
        1.0
    }

    /// Returns the number of verified operations that prove the unverified form correct.
    fn proof(&self) -> u64 {
        1
    }
}

impl<B: Body + ?Sized> Body for &B {
    fn run(&self, form: Form, times: u64) -> Run {
        (**self).run(form, times)
    }

    fn at_once(&self) -> f64 {
        (**self).at_once()
    }

    fn proof(&self) -> u64 {
        (**self).proof()
    }
}

/// The result of running a body once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) took: Duration,
    /// The bytes of one operation; bytes that are written and read count once.
    pub(crate) bytes_per_op: u64,
    /// Says whether everything that was compared was correct.
    pub(crate) right: bool,
    /// The number of allocations during the run, if known.
    pub(crate) allocations: Option<u64>,
}

/// Runs an operation the given number of times. `op` returns whether what it read was correct;
/// without a comparison it returns `true`.
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

/// A row's result over all rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// In the fastest round, as other activity on the machine only adds time.
    pub(crate) ns_per_op: f64,
    pub(crate) ns_per_op_median: f64,
    pub(crate) ns_per_op_max: f64,
    pub(crate) bytes_per_op: u64,
    pub(crate) allocations_per_op: Option<f64>,
    pub(crate) verified: bool,
}

impl Measured {
    /// The result that a process reports.
    fn read(record: &Value) -> Option<Self> {
        Some(Self {
            ns_per_op: record["ns_per_op"].as_f64()?,
            ns_per_op_median: record["ns_per_op_median"].as_f64()?,
            ns_per_op_max: record["ns_per_op_max"].as_f64()?,
            bytes_per_op: record["bytes_per_op"].as_u64()?,
            allocations_per_op: record["allocations_per_op"].as_f64(),
            verified: record["verified"].as_bool()?,
        })
    }

    /// The result over several processes: the median is that of their medians.
    fn over(processes: &[Self]) -> Self {
        let samples =
            |figure: fn(&Self) -> f64| Samples::new(processes.iter().map(figure).collect());
        Self {
            ns_per_op: samples(|of| of.ns_per_op).percentile(0.0),
            ns_per_op_median: samples(|of| of.ns_per_op_median).percentile(50.0),
            ns_per_op_max: samples(|of| of.ns_per_op_max).percentile(100.0),
            verified: processes.iter().all(|of| of.verified),
            ..processes[0]
        }
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes_per_op as f64 / self.ns_per_op * 1e9
    }

    /// Starts the row's record.
    pub(crate) fn record(&self, suite: &str, row: &str, form: Form) -> Record {
        Record::of(suite)
            .with("row", row)
            .with("form", form.name())
            .measured("ns_per_op", self.ns_per_op)
            .measured("ns_per_op_median", self.ns_per_op_median)
            .measured("ns_per_op_max", self.ns_per_op_max)
            .with("bytes_per_op", self.bytes_per_op)
            .measured("bytes_per_s", self.bytes_per_s())
    }

    /// Completes it.
    pub(crate) fn end(&self, mut record: Record) -> Record {
        if let Some(allocations) = self.allocations_per_op {
            record = record.measured("allocations_per_op", allocations);
        }
        record.with("verified", self.verified)
    }
}

/// Measures the rows of a suite that are to be measured, in their forms, and reports each with one
/// more figure.
pub(crate) fn report<B: Body + Copy>(
    suite: &str,
    rows: impl IntoIterator<Item = (&'static str, B)>,
    plan: &Plan<'_>,
    figure: &str,
    value: fn(&Measured) -> f64,
    report: &mut Report<'_>,
) -> Result<(), Failure> {
    let chosen = rows.into_iter().filter(|(name, _)| plan.row.is_none_or(|row| row == *name));
    let forms = Form::ALL.into_iter().filter(|form| plan.has(*form));
    let rows: Vec<_> = chosen
        .flat_map(|(name, body)| forms.clone().map(move |form| (name, (body, form))))
        .collect();
    for (measured, (name, (_, form))) in measure(suite, &rows, plan)?.iter().zip(&rows) {
        let record = measured.record(suite, name, *form).measured(figure, value(measured));
        report.add(measured.end(record))?;
    }
    Ok(())
}

/// Measures these rows of a suite, with their names: here, or in the plan's processes.
pub(crate) fn measure<B: Body>(
    suite: &str,
    rows: &[(&str, (B, Form))],
    plan: &Plan<'_>,
) -> Result<Vec<Measured>, Failure> {
    if plan.processes == 0 {
        let rows: Vec<_> = rows.iter().map(|(_, (row, form))| (row, *form)).collect();
        return Ok(all(&rows, plan.rounds, plan.round));
    }
    let arguments = plan.arguments(suite);
    let mut measured = vec![Vec::new(); rows.len()];
    for _ in 0..plan.processes {
        // Each would say that the machine is not quiet, and so does this process.
        let (text, _) = process::printed(&arguments, Stdio::null())?;
        let records: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        for (measured, (name, (_, form))) in measured.iter_mut().zip(rows) {
            let is_it = |of: &&Value| of["row"] == *name && of["form"] == form.name();
            let read = records.iter().find(is_it).and_then(Measured::read);
            measured.push(read.ok_or_else(|| {
                let command = arguments.join(" ");
                io::Error::other(format!("`{command}` ended without the row {name:?}"))
            })?);
        }
    }
    Ok(measured.iter().map(|processes| Measured::over(processes)).collect())
}

/// Measures all rows, round by round, so that a slow period affects all of them. A round of a row
/// takes about `round`.
pub(crate) fn all<B: Body>(rows: &[(B, Form)], rounds: u32, round: Duration) -> Vec<Measured> {
    let times: Vec<u64> = rows.iter().map(|(row, form)| times(row, *form, round)).collect();
    let mut samples = vec![Vec::new(); rows.len()];
    let mut right = vec![true; rows.len()];
    let mut bytes = vec![0; rows.len()];
    let mut allocations = vec![None; rows.len()];
    for _ in 0..rounds.max(1) {
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
            ns_per_op_max: samples.percentile(100.0),
            bytes_per_op: bytes[place],
            allocations_per_op: allocations[place],
            // The verified form proves that what this form writes or reads is correct.
            verified: right[place]
                && (*form == Form::Verified || row.run(Form::Verified, row.proof()).right),
        }
    });
    measured.collect()
}

/// Returns the number of operations that take about as long as a round should.
pub(crate) fn times(row: &(impl Body + ?Sized), form: Form, round: Duration) -> u64 {
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
