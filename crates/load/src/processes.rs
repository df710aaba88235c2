//! One process, or several that share the connections.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::counts::Counts;
use crate::deliveries::{Ending, Endings, add_ending, missing, monotonic_ns};
use crate::descriptors;
use crate::dial::Dial;
use crate::engine::{Control, Engine, Outcome, TICK};
use crate::probe;
use crate::program::{Program, Programs, room_types};
use crate::progress::Progress;
use crate::report::Report;
use crate::settings::{LoadError, Settings};
use crate::timings::{AllTimings, Timings};

/// The most processes of one load.
pub const PROCESSES_MAX: usize = 1024;

/// The duration of a load that neither ends by itself nor has a duration.
const DURATION: Duration = Duration::from_secs(10);

/// The number of ticks of the engine between two reports of a worker.
const TICKS: u32 = 10;

/// The most lines of processes that may wait to be read.
const LINES_MAX: usize = 1024;

/// Runs a load to its end, or until `stop` is set: then what was sent may still be answered.
/// `progress` is called about once a second.
///
/// # Errors
/// If the settings are wrong, or the node can't be reached. A load that ran and found trouble is
/// no error: see [`Report::trouble`].
pub fn run(
    settings: &Settings,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, LoadError> {
    let per_process = descriptors::connections_max();
    let processes = match settings.processes {
        0 => settings.connections.div_ceil(per_process),
        given => given,
    };
    if processes > PROCESSES_MAX || settings.connections.div_ceil(processes) > per_process {
        return Err(LoadError::Usage(format!(
            "{} connections do not fit into {processes} processes, which may have {per_process} \
             each (ulimit -n); use more processes, up to {PROCESSES_MAX}",
            settings.connections
        )));
    }
    let dial = Dial::new(settings)?;
    let schemas = probe::schemas(settings, &dial, &room_types(&settings.scripts))?;
    let programs = Programs::new(&settings.scripts, schemas, settings.speed)?;
    let mut settings = settings.clone();
    if settings.duration.is_none() && !programs.programs.iter().all(Program::ends) {
        settings.duration = Some(DURATION);
    }
    let engine = |settings| Engine::new(settings, &dial, Rc::new(programs));
    let mut outcome = match settings.worker {
        Some(_) => {
            let mut control = Worker::new(stop);
            let outcome = engine(&settings)?.run(&mut control)?;
            say(&json!({ "outcome": to_json(&outcome) }));
            outcome
        }
        None if processes == 1 => engine(&settings)?.run(&mut Alone {
            stop,
            progress,
            every: settings.progress_every,
            shown: Duration::ZERO,
        })?,
        None => Crew::start(&settings, processes)?.run(&settings, stop, progress),
    };
    outcome.counts.deliveries_late += missing(&outcome.endings);
    Ok(Report::new(&settings, processes, outcome))
}

/// The only process.
struct Alone<'a> {
    stop: &'a AtomicBool,
    progress: &'a mut dyn FnMut(&Progress),
    every: Duration,
    /// When the last report was made, in the load's time.
    shown: Duration,
}

impl Control for Alone<'_> {
    fn tick(&mut self, progress: &dyn Fn() -> Progress, interval: &mut Timings) -> bool {
        let now = progress();
        if now.elapsed.saturating_sub(self.shown) >= self.every {
            self.shown = now.elapsed;
            (self.progress)(&now);
            interval.clear();
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn may_go(&mut self) -> bool {
        true
    }
}

/// One of several processes. It prints a line of JSON for each report, and reads `go` and `stop`.
struct Worker<'a> {
    stop: &'a AtomicBool,
    commands: Receiver<String>,
    ticks: u32,
    is_ready: bool,
    may_go: bool,
}

impl<'a> Worker<'a> {
    fn new(stop: &'a AtomicBool) -> Self {
        let (sender, commands) = sync_channel(LINES_MAX);
        // The thread ends with the process: nothing else can interrupt a read of standard input.
        thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { stop, commands, ticks: 0, is_ready: false, may_go: false }
    }
}

impl Control for Worker<'_> {
    fn tick(&mut self, progress: &dyn Fn() -> Progress, interval: &mut Timings) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(line) if line == "go" => self.may_go = true,
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                // The process that started this one asks it to stop, or is gone.
                Ok(_) | Err(_) => {
                    self.stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        self.ticks += 1;
        if self.ticks.is_multiple_of(TICKS) {
            let Progress { counts, reply_ms_p50, reply_ms_p99, .. } = progress();
            say(&json!({ "counts": counts.values(), "p50": reply_ms_p50, "p99": reply_ms_p99 }));
            interval.clear();
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn may_go(&mut self) -> bool {
        if !std::mem::replace(&mut self.is_ready, true) {
            say(&json!({ "ready": true }));
        }
        self.may_go
    }
}

/// Prints one line. If nobody reads it, standard input ends, too.
fn say(line: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Several processes, seen from the one that started them.
struct Crew {
    members: Vec<Member>,
    /// Lines of the members, by their number; `None` at the end.
    lines: Receiver<(usize, Option<Value>)>,
}

struct Member {
    child: Child,
    input: Option<ChildStdin>,
    progress: Progress,
    is_ready: bool,
    is_done: bool,
    outcome: Option<Outcome>,
}

impl Crew {
    fn start(settings: &Settings, processes: usize) -> Result<Self, LoadError> {
        let (sender, lines) = sync_channel(LINES_MAX);
        let mut crew = Self { members: Vec::new(), lines };
        let run = monotonic_ns();
        for number in 0..processes {
            let mut child = Command::new(std::env::current_exe()?)
                .args(&settings.worker_arguments)
                .arg(format!("--worker={number}/{processes}/{run}"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            crew.members.push(Member {
                child,
                input,
                progress: Progress::default(),
                is_ready: false,
                is_done: false,
                outcome: None,
            });
            let output = output.ok_or_else(|| LoadError::Work("a process has no pipe".into()))?;
            let sender: SyncSender<_> = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let line = serde_json::from_str(&line).unwrap_or_default();
                    if sender.send((number, Some(line))).is_err() {
                        return;
                    }
                }
                let _ = sender.send((number, None));
            });
        }
        Ok(crew)
    }

    fn run(
        mut self,
        settings: &Settings,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&Progress),
    ) -> Outcome {
        let began = Instant::now();
        let (mut shown_at, mut went, mut stopped) = (began, false, false);
        while self.members.iter().any(|member| !member.is_done) {
            match self.lines.recv_timeout(TICK) {
                Ok((number, line)) => self.members[number].heard(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if !went && self.members.iter().all(|member| member.is_ready || member.is_done) {
                went = true;
                self.command("go");
            }
            if !stopped && stop.load(Ordering::Relaxed) {
                stopped = true;
                self.command("stop");
            }
            if shown_at.elapsed() >= settings.progress_every {
                shown_at = Instant::now();
                progress(&self.progress(began.elapsed(), settings.connections));
            }
        }
        self.outcome()
    }

    fn command(&mut self, word: &str) {
        for input in self.members.iter_mut().filter_map(|member| member.input.as_mut()) {
            // A process that is gone is noticed by the end of its lines.
            let _ = writeln!(input, "{word}").and_then(|()| input.flush());
        }
    }

    fn progress(&self, elapsed: Duration, connections: usize) -> Progress {
        let mut all = Progress { elapsed, connections, ..Progress::default() };
        for Member { progress, .. } in &self.members {
            all.counts.add(&progress.counts);
            all.reply_ms_p50 = all.reply_ms_p50.max(progress.reply_ms_p50);
            all.reply_ms_p99 = all.reply_ms_p99.max(progress.reply_ms_p99);
        }
        all
    }

    fn outcome(mut self) -> Outcome {
        let mut all = Outcome::default();
        for (number, member) in self.members.iter_mut().enumerate() {
            let status =
                member.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
            let Some(outcome) = &member.outcome else {
                let problem = format!("process {number} ended early: {status}");
                *all.problems.entry(problem.clone()).or_default() += 1;
                all.ended_early.push(problem);
                continue;
            };
            all.counts.add(&outcome.counts);
            all.timings.add(&outcome.timings);
            for (problem, count) in &outcome.problems {
                *all.problems.entry(problem.clone()).or_default() += count;
            }
            for (channel, ending) in &outcome.endings {
                add_ending(&mut all.endings, channel.clone(), *ending);
            }
            all.connect_s = all.connect_s.max(outcome.connect_s);
            all.load_s = all.load_s.max(outcome.load_s);
        }
        all
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Most have exited already.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

impl Member {
    fn heard(&mut self, line: Option<Value>) {
        let Some(line) = line else {
            self.is_done = true;
            return;
        };
        self.is_ready |= line["ready"] == true;
        if let Some(counts) = line["counts"].as_array() {
            self.progress.counts = Counts::of(counts.iter().filter_map(Value::as_u64));
            self.progress.reply_ms_p50 = line["p50"].as_f64().unwrap_or(0.0);
            self.progress.reply_ms_p99 = line["p99"].as_f64().unwrap_or(0.0);
        }
        if line["outcome"].is_object() {
            self.outcome = Some(of_json(&line["outcome"]));
        }
    }
}

/// The last line of one of several processes.
fn to_json(outcome: &Outcome) -> Value {
    json!({
        "counts": outcome.counts.values(),
        "timings": outcome.timings.to_json(),
        "problems": outcome.problems,
        "endings": outcome
            .endings
            .iter()
            .map(|((name, epoch), end)| {
                json!([name, epoch, end.latest, end.subscriptions, end.reached])
            })
            .collect::<Vec<_>>(),
        "connect_s": outcome.connect_s,
        "load_s": outcome.load_s,
    })
}

fn of_json(value: &Value) -> Outcome {
    let problems = value["problems"].as_object().into_iter().flatten();
    let problems: BTreeMap<_, _> =
        problems.map(|(text, count)| (text.clone(), count.as_u64().unwrap_or(0))).collect();
    let endings = value["endings"].as_array().into_iter().flatten();
    let endings: Endings = endings
        .map(|ending| {
            let number = |index: usize| ending[index].as_u64().unwrap_or(0);
            let channel = (ending[0].as_str().unwrap_or_default().to_owned(), number(1));
            let (latest, subscriptions, reached) = (number(2), number(3), number(4));
            (channel, Ending { latest, subscriptions, reached })
        })
        .collect();
    Outcome {
        endings,
        counts: Counts::of(
            value["counts"].as_array().into_iter().flatten().filter_map(Value::as_u64),
        ),
        timings: AllTimings::from_json(&value["timings"]),
        problems,
        ended_early: Vec::new(),
        connect_s: value["connect_s"].as_f64().unwrap_or(0.0),
        load_s: value["load_s"].as_f64().unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, add_ending, of_json, to_json};
    use crate::deliveries::{Ending, missing};

    #[test]
    fn what_a_process_has_not_received_comes_back_from_json() {
        let mut outcome = Outcome::default();
        let end = Ending { latest: u64::MAX / 4, subscriptions: 2, reached: u64::MAX / 2 - 8 };
        add_ending(&mut outcome.endings, ("a \"b\"".into(), u64::MAX), end);
        let read = of_json(&to_json(&outcome));
        assert_eq!(read.endings, outcome.endings);
        assert_eq!(missing(&read.endings), (u64::MAX / 4) * 2 - end.reached);
    }
}
