//! The speed of this machine, and its noise: a fixed loop that is timed a few hundred times.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::machine::{Machine, is_same, thread_cpu};
use crate::samples::Samples;

/// Steps of the loop: some tenths of a millisecond in an optimized build.
const STEPS: u32 = 40_000;
/// The memory of the loop, in words of 8 bytes: more than a core's first cache has.
const WORDS: usize = 1 << 15;
/// Samples that are taken, if there is time.
const SAMPLES: usize = 400;
/// Samples that are taken even if there is none.
const SAMPLES_MIN: usize = 20;
/// The time after which no more samples are taken.
const TIME_MAX: Duration = Duration::from_millis(300);
/// The same for a calibration that only follows the speed.
const TIME_AGAIN: Duration = Duration::from_millis(20);
/// Samples before the first that counts: the processor's clock rises, and caches fill.
const WARM_UP: usize = 20;

/// The noise of a quiet machine, at most.
const NOISE_MAX: f64 = 0.15;
/// The load of a quiet machine for each core, at most.
const LOAD_MAX: f64 = 0.75;
/// The share of time that the host takes from a quiet machine, at most.
const STEAL_MAX: f64 = 0.05;

/// The names of [`Calibration::fields`].
pub const FIELDS: [&str; 5] = ["calibration_us", "noise", "load", "steal", "quiet"];

/// The speed of this machine, and signs of what else it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// CPU time of the loop, in microseconds: the median of the samples.
    pub us: f64,
    /// The part by which the loop takes longer on the clock in one of ten samples than in the
    /// fastest tenth: 0.1 is 10 %.
    pub noise: f64,
    /// Processes that ran or wanted to, averaged over the minute before; `None` if not known.
    pub load: Option<f64>,
    /// The share of all cores' time that the host took since the start; `None` if not known.
    pub steal: Option<f64>,
    /// The cores of this machine.
    pub cores: usize,
    /// The cores' times at the start.
    start: Option<Times>,
}

/// A sample of the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    cpu_us: f64,
    wall_us: f64,
}

/// The time of all cores so far, and the part of it that the host took, in hundredths of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Calibration {
    /// Times the loop on this thread, for at most 0.3 s in an optimized build.
    #[must_use]
    pub fn measure(machine: &Machine) -> Self {
        let load = fs::read_to_string("/proc/loadavg").ok().and_then(|text| load_of(&text));
        let start = Times::now();
        let (us, noise) = summary(&samples(TIME_MAX));
        Self { us, noise, load, steal: None, cores: machine.cores(), start }.now()
    }

    /// The same, with the speed of now: the loop is timed for some hundredths of a second. What the
    /// speed has changed by since the loop took `before_us` is noise.
    #[must_use]
    pub fn again(self, before_us: f64) -> Self {
        let us = summary(&samples(TIME_AGAIN)).0;
        Self { us, noise: self.noise.max(drift(before_us, us)), ..self }
    }

    /// The same, with the share of time that the host has taken until now.
    #[must_use]
    pub fn now(self) -> Self {
        let steal = self.start.zip(Times::now()).and_then(|(start, end)| end.steal_since(start));
        Self { steal: steal.or(self.steal), ..self }
    }

    /// Returns why figures of this machine are not to be relied on, in a sentence; `None` if it is
    /// quiet.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        let load_max = LOAD_MAX * self.cores as f64;
        let load = self
            .load
            .filter(|load| *load > load_max)
            .map(|load| format!("its load was {load:.2} at the start, more than {load_max:.2}"));
        let steal = self.steal.filter(|steal| *steal > STEAL_MAX).map(|steal| {
            format!(
                "its host took {} of its time, more than {}",
                percent(steal),
                percent(STEAL_MAX)
            )
        });
        let noise = (self.noise > NOISE_MAX).then(|| {
            let (noise, most) = (percent(self.noise), percent(NOISE_MAX));
            format!("a fixed loop took {noise} longer at times, more than {most}")
        });
        let reasons: Vec<String> = [load, steal, noise].into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| format!("the machine is not quiet: {}", reasons.join("; ")))
    }

    /// All of it by name, as results have it.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, Value); 5] {
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        let [us, noise, load, steal, quiet] = FIELDS;
        [
            (us, rounded(self.us).into()),
            (noise, rounded(self.noise).into()),
            (load, self.load.into()),
            (steal, self.steal.map(rounded).into()),
            (quiet, self.trouble().is_none().into()),
        ]
    }

    #[cfg(test)]
    pub(crate) const fn quiet() -> Self {
        Self { us: 200.0, noise: 0.02, load: Some(0.1), steal: Some(0.0), cores: 2, start: None }
    }
}

/// The conditions under which a result in a file was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// CPU time of the loop, in microseconds.
    pub us: f64,
    /// The noise.
    pub noise: f64,
    /// Says whether the machine was quiet.
    pub is_quiet: bool,
}

impl Conditions {
    /// Reads the fields of a calibration in an object; `None` if it has none.
    #[must_use]
    pub fn read(machine: &Value) -> Option<Self> {
        let number = |name: &str| machine[name].as_f64();
        let us = number("calibration_us").filter(|us| *us > 0.0)?;
        let noise = number("noise").unwrap_or(0.0);
        Some(Self { us, noise, is_quiet: machine["quiet"] != false })
    }

    /// The difference of two speeds, as a part of the lower one.
    #[must_use]
    pub fn drift_to(self, later: Self) -> f64 {
        drift(self.us, later.us)
    }
}

/// The difference of two speeds, as a part of the lower one.
fn drift(before_us: f64, now_us: f64) -> f64 {
    before_us.max(now_us) / before_us.min(now_us) - 1.0
}

/// The speed of a core of one result in a file, in relation to that of an earlier one. Both are given
/// as the fields of the machine and its calibration. `None` if their builds differ, or one of two
/// machines was not calibrated.
///
/// It is 1 on the same machine: calibrations a few minutes apart differ by as much as other figures
/// do, so scaling by them would add noise.
#[must_use]
pub fn speed(before: &Value, now: &Value) -> Option<f64> {
    if is_same(before, now) {
        return Some(1.0);
    }
    let conditions = Conditions::read(before).zip(Conditions::read(now));
    let (then, new) = conditions.filter(|_| before["profile"] == now["profile"])?;
    Some(then.us / new.us)
}

/// Samples of the loop, for some time at most.
fn samples(time: Duration) -> Vec<Sample> {
    let mut work = Work::new();
    (0..WARM_UP).for_each(|_| work.run());
    let (began, mut samples) = (Instant::now(), Vec::with_capacity(SAMPLES));
    while samples.len() < SAMPLES_MIN || (samples.len() < SAMPLES && began.elapsed() < time) {
        samples.push(work.sample());
    }
    samples
}

/// The median CPU time of samples, and their noise on the clock.
fn summary(samples: &[Sample]) -> (f64, f64) {
    let of = |value: fn(&Sample) -> f64| Samples::new(samples.iter().map(value).collect());
    let (cpu, wall) = (of(|sample| sample.cpu_us), of(|sample| sample.wall_us));
    let fast = wall.percentile(10.0);
    let noise = if fast > 0.0 { wall.percentile(90.0) / fast - 1.0 } else { 0.0 };
    (cpu.percentile(50.0), noise)
}

/// The first value of `/proc/loadavg`.
fn load_of(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

impl Times {
    /// The cores' times now; `None` where they are not known.
    fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the first line of `/proc/stat` (proc_stat(5)): the eighth value is stolen, and the two
    /// after it are counted in the first two.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> =
            line.split_whitespace().take(8).map_while(|number| number.parse().ok()).collect();
        Some(Self { all: times.iter().sum(), stolen: *times.get(7)? })
    }

    /// The stolen share of the time since an earlier one; `None` if no time has passed.
    fn steal_since(self, start: Self) -> Option<f64> {
        let all = self.all.checked_sub(start.all).filter(|all| *all > 0)?;
        Some(self.stolen.saturating_sub(start.stolen) as f64 / all as f64)
    }
}

/// The loop and its memory.
struct Work {
    words: Vec<u64>,
    state: u64,
}

impl Work {
    fn new() -> Self {
        Self { words: vec![1; WORDS], state: 1 }
    }

    fn sample(&mut self) -> Sample {
        let (cpu, wall) = (thread_cpu(), Instant::now());
        self.run();
        let (wall, cpu) = (wall.elapsed(), thread_cpu().saturating_sub(cpu));
        Sample { cpu_us: cpu.as_secs_f64() * 1e6, wall_us: wall.as_secs_f64() * 1e6 }
    }

    /// A generator of Knuth (MMIX) picks words, which are mixed with its state.
    fn run(&mut self) {
        let mut state = self.state;
        for _ in 0..STEPS {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let word = &mut self.words[(state >> 49) as usize % WORDS];
            *word = word.rotate_left(7) ^ state;
            state ^= *word >> 60;
        }
        self.state = black_box(state);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Calibration, Conditions, FIELDS, Sample, Times, Work, load_of, speed, summary};
    use crate::machine::Machine;

    #[test]
    fn the_median_is_of_cpu_time_and_the_noise_of_the_clock() {
        let mut samples: Vec<Sample> = (0..100)
            .map(|number| Sample { cpu_us: 200.0 + f64::from(number % 3), wall_us: 210.0 })
            .collect();
        assert_eq!(summary(&samples), (201.0, 0.0));
        // Something else ran during 15 of 100 samples, which took no CPU time of this thread.
        samples.iter_mut().step_by(7).for_each(|sample| sample.wall_us = 420.0);
        assert_eq!(summary(&samples), (201.0, 1.0));
        assert_eq!(summary(&[]), (0.0, 0.0));
    }

    #[test]
    fn a_change_of_speed_is_noise() {
        let later = Calibration::quiet().again(1e9);
        assert!(later.us < 1e9 && later.noise > 0.02, "{later:?}");
        let of = |us| Conditions { us, noise: 0.0, is_quiet: true };
        assert_eq!([of(200.0).drift_to(of(250.0)), of(250.0).drift_to(of(200.0))], [0.25; 2]);
    }

    #[test]
    fn a_machine_that_is_not_quiet_says_why_with_values() {
        let quiet = Calibration::quiet();
        assert_eq!(quiet.trouble(), None);
        let text = Calibration { load: Some(1.9), ..quiet }.trouble().unwrap();
        assert_eq!(
            text,
            "the machine is not quiet: its load was 1.90 at the start, more than 1.50"
        );
        let text = Calibration { noise: 0.4, steal: Some(0.07), ..quiet }.trouble().unwrap();
        assert!(text.contains("took 7 % of its time, more than 5 %"), "{text}");
        assert!(text.contains("a fixed loop took 40 % longer at times, more than 15 %"), "{text}");
        let unknown = Calibration { load: None, steal: None, ..quiet };
        assert_eq!(unknown.trouble(), None);
    }

    #[test]
    fn fields_are_named_rounded_and_have_a_verdict() {
        let fields = Calibration { us: 201.234_56, ..Calibration::quiet() }.fields();
        assert_eq!(fields.clone().map(|(name, _)| name), FIELDS);
        let values = fields.map(|(_, value)| value.to_string());
        assert_eq!(values, ["201.235", "0.02", "0.1", "0.0", "true"]);
    }

    #[test]
    fn the_speed_of_a_result_is_its_calibration() {
        let of = |cpu: &str, us: f64| json!({ "cpu": cpu, "calibration_us": us, "quiet": false });
        let (slow, fast) = (of("old", 200.0), of("new", 100.0));
        assert_eq!((speed(&slow, &fast), speed(&fast, &slow)), (Some(2.0), Some(0.5)));
        assert_eq!(speed(&slow, &of("new", 160.0)), Some(1.25));
        assert_eq!(speed(&slow, &of("old", 160.0)), Some(1.0), "that is noise of one machine");
        let debug = json!({ "cpu": "new", "calibration_us": 100.0, "profile": "debug" });
        assert_eq!((speed(&slow, &debug), speed(&slow, &of("new", 0.0))), (None, None));
        assert!(!Conditions::read(&slow).unwrap().is_quiet);
        assert_eq!(Conditions::read(&of("old", 0.0)), None);
        assert_eq!(Conditions::read(&Value::Null), None);
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let parse = |text: &str| Times::parse(text);
        let start = parse("cpu  100 0 50 800 10 0 40 0 7 0\ncpu0 1 1").unwrap();
        assert_eq!(start, Times { all: 1_000, stolen: 0 });
        let end = parse("cpu  160 0 60 910 10 0 40 20 9 0\n").unwrap();
        assert_eq!(end.steal_since(start), Some(0.1));
        assert_eq!(start.steal_since(start), None);
        assert_eq!(parse("intr 1 2 3"), None);
        assert_eq!(parse("cpu 1 2 3"), None);
        assert_eq!(load_of("1.25 0.80 0.40 2/310 4711\n"), Some(1.25));
        assert_eq!(load_of(""), None);
    }

    #[test]
    fn the_loop_does_the_same_each_time() {
        let run = || {
            let mut work = Work::new();
            work.run();
            work.state
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_calibration_has_values() {
        let calibration = Calibration::measure(&Machine::describe());
        assert!(calibration.us > 0.0 && calibration.noise >= 0.0, "{calibration:?}");
    }
}
