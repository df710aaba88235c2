//! Audits: whether players can tell secrets apart, and whether a room is deterministic.

mod determinism;
mod find;
mod inputs;
mod log;
mod refusals;
mod report;
mod transcript;

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use playfield_state::PlayerId;

pub use self::determinism::Divergence;
use self::find::Reader;
use self::log::Input;
pub(super) use self::log::{By, Log};
pub use self::refusals::Refusals;
use self::report::Void;
pub use self::report::{AuditReport, Difference, Leak, LeakKind};
use self::transcript::{Receiver, Transcript};
use super::Sim;
use crate::Room;

impl<R: Room + Default> Sim<R> {
    /// Audits a room for leaks: plays it once with each secret, and compares all that is sent to
    /// parties who may not see it.
    ///
    /// `drive` gets a new room, as of [`Sim::new`], and one of the secrets, and plays: the secret
    /// may be a card in a hand, a move in the fog, a number in hidden state. Everything else must
    /// be the same in each run. Players who [may see](Self::may_see) the secret are left out. To
    /// all others, and to clients that list rooms or subscribe to channels, each run must look the
    /// same to the byte: patches and snapshots in `packed` and in a tree format, events, replies,
    /// errors and removals, their lengths, their order, and their times.
    ///
    /// The first secret is played twice, which shows that the room is deterministic. A run whose
    /// `drive` panics ends there: the panic goes on if nothing leaked until then.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// #[derive(State, Default)]
    /// struct Guess {
    ///     #[sync(hidden)]
    ///     number: u32,
    /// }
    ///
    /// #[derive(Message)]
    /// #[reply(bool)]
    /// struct Try(u32);
    ///
    /// #[room(messages(Try))]
    /// impl Room for Guess {}
    ///
    /// impl Handle<Try> for Guess {
    ///     fn handle(&mut self, Try(it): Try, _: &Player, _: &mut Context<Self>) -> Result<bool> {
    ///         if it > 100 {
    ///             return Err(format!("{} is at most 100", self.number).into());
    ///         }
    ///         Ok(it == self.number)
    ///     }
    /// }
    ///
    /// let report = Sim::<Guess>::audit([7, 9], |sim, secret| {
    ///     sim.room_mut().number = *secret;
    ///     let ann = sim.join("Ann").unwrap();
    ///     assert!(!sim.request(ann, Try(5)).unwrap());
    ///     sim.request(ann, Try(101)).unwrap_err();
    /// });
    /// let leak = &report.leaks()[0];
    /// assert_eq!(leak.path, "Try.text");
    /// assert_eq!(leak.values, [r#""7 is at most 100""#, r#""9 is at most 100""#]);
    /// ```
    pub fn audit<S>(
        secrets: impl IntoIterator<Item = S>,
        drive: impl Fn(&mut Self, &S),
    ) -> AuditReport {
        Self::audit_with(secrets, |_| Self::new(1), drive)
    }

    /// Audits like [`audit`](Self::audit) a room that `create` makes: with options, with a key, or
    /// with the secret as its seed.
    pub fn audit_with<S>(
        secrets: impl IntoIterator<Item = S>,
        create: impl Fn(&S) -> Self,
        drive: impl Fn(&mut Self, &S),
    ) -> AuditReport {
        let mut secrets = secrets.into_iter();
        let Some(first) = secrets.next() else { return AuditReport::void(Void::FewerThanTwo) };
        let play = |secret: &S| Run::play(create(secret), |sim| drive(sim, secret));
        let (run, again) = (play(&first), play(&first));
        let reader = Reader::new(crate::schema::<R>());
        let mut report = AuditReport::void(Void::NoEffect);
        (report.inputs, report.refusals) = (run.log.inputs().len(), run.log.refusals());
        if let Some(divergence) = determinism::divergence(&reader, [&run.log, &again.log]) {
            return AuditReport { void: Some(Void::Divergence(divergence)), ..report };
        }
        drop(again);
        let mut audit = Audit { reader, report, has_audience_only: true };
        let (mut runs, mut panic) = (1, None);
        for (number, secret) in secrets.enumerate() {
            let mut other = play(&secret);
            audit.compare([&run.log, &other.log], number + 1);
            (runs, panic) = (runs + 1, panic.or(other.panic.take()));
        }
        let Audit { mut report, has_audience_only, .. } = audit;
        report.runs = runs;
        if has_audience_only && report.is_silent() {
            report.void = Some(Void::Nobody);
        }
        if runs < 2 {
            report.void = Some(Void::FewerThanTwo);
        }
        if let Some(panic) = run.panic.or(panic).filter(|_| report.leaks.is_empty()) {
            resume_unwind(panic);
        }
        report
    }

    /// Declares that a player may see the secret of an [`audit`](Self::audit), in all of its run.
    /// Does nothing elsewhere.
    pub fn may_see(&mut self, player: PlayerId) {
        if let Some(log) = &mut self.out.log {
            log.add_to_audience(player);
        }
    }
}

/// One run of a room.
struct Run {
    log: Box<Log>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Run {
    fn play<R: Room + Default>(mut sim: Sim<R>, drive: impl FnOnce(&mut Sim<R>)) -> Self {
        sim.out.log = Some(Box::new(Log::new::<R>()));
        let panic = catch_unwind(AssertUnwindSafe(|| drive(&mut sim))).err();
        sim.log_step(sim.next_tick - 1);
        let log = sim.out.log.take().expect("it was set above");
        Self { log, panic }
    }
}

/// Compares runs.
struct Audit {
    reader: Reader,
    report: AuditReport,
    /// Nobody who may not see the secret was sent anything, but by the list of rooms.
    has_audience_only: bool,
}

impl Audit {
    fn compare(&mut self, logs: [&Log; 2], number: usize) {
        let [a, b] = logs;
        let receivers = logs.iter().flat_map(|log| log.transcripts().keys());
        let receivers: BTreeSet<&Receiver> = receivers.collect();
        let (mut found, mut has_effect) = (Vec::new(), states(a).ne(states(b)));
        let (none, mut messages) = (Transcript::default(), 0);
        for receiver in receivers {
            let runs = logs.map(|log| log.transcripts().get(receiver).unwrap_or(&none));
            let is_room = matches!(receiver, Receiver::Room(_));
            if is_room || logs.iter().any(|log| log.is_audience(receiver)) {
                has_effect |= runs[0].entries != runs[1].entries;
                continue;
            }
            messages += runs[0].entries.len();
            let is_sent = runs.iter().any(|run| !run.entries.is_empty());
            self.has_audience_only &= !is_sent || matches!(receiver, Receiver::Listing);
            for finding in self.reader.first_difference(runs) {
                let input = finding.input.checked_sub(1);
                let input = input.and_then(|last| logs[finding.run].inputs().get(last));
                let input_text = input.map(|input| input.text.clone()).unwrap_or_default();
                found.push(Leak {
                    player: runs[finding.run].player,
                    to: receiver.describe(runs[finding.run]),
                    kind: finding.kind,
                    difference: finding.difference,
                    path: finding.path,
                    values: finding.values,
                    runs: [0, number],
                    at: finding.moment.at,
                    tick: finding.moment.tick,
                    input: finding.input,
                    input_text,
                });
            }
        }
        self.report.messages = self.report.messages.max(messages);
        found.sort_by_key(|leak| (leak.at, leak.tick, leak.input));
        let differ = unequal_inputs(logs);
        // A leak may be why inputs differ later.
        let is_before = |leak: &Leak| differ.as_ref().is_none_or(|(at, _)| leak.input <= *at);
        found.retain(is_before);
        self.report.void = match (differ, self.report.void.take()) {
            (Some((_, inputs)), _) if found.is_empty() => Some(Void::Inputs(inputs)),
            (_, Some(Void::NoEffect)) if has_effect || !found.is_empty() => None,
            (_, before) => before,
        };
        for leak in found {
            // Other secrets leak at the same places.
            let is_known = |known: &Leak| {
                (&known.to, known.kind, &known.path) == (&leak.to, leak.kind, &leak.path)
            };
            if !self.report.leaks.iter().any(is_known) {
                self.report.leaks.push(leak);
            }
        }
    }
}

impl AuditReport {
    fn void(why: Void) -> Self {
        let (leaks, refusals) = (Vec::new(), Vec::new());
        Self { leaks, void: Some(why), runs: 0, inputs: 0, messages: 0, refusals }
    }
}

fn states(log: &Log) -> impl Iterator<Item = u64> {
    log.states().iter().map(|state| state.hash)
}

/// The first inputs that must be the same and are not: the number of inputs before, and both.
fn unequal_inputs(logs: [&Log; 2]) -> Option<(usize, [String; 2])> {
    let is_audience = |by: By| match by {
        By::Player(link) => logs.iter().any(|log| log.is_audience(&Receiver::Link(link.0))),
        By::Time => false,
        By::Test => true,
    };
    let known = |log: &Log| -> Vec<(usize, Input)> {
        let inputs = log.inputs().iter().cloned().enumerate();
        inputs.filter(|(_, input)| !is_audience(input.by)).collect()
    };
    let [a, b] = logs.map(known);
    let same = a.iter().zip(&b).take_while(|((_, one), (_, other))| one == other).count();
    let (one, other) = (a.get(same), b.get(same));
    let at = one.or(other).map(|(at, _)| *at)?;
    let text = |of: Option<&(usize, Input)>| {
        of.map_or_else(
            || "none in the other run".to_owned(),
            |(at, input)| format!("input {} ({} at {:?})", at + 1, input.text, input.moment.at),
        )
    };
    Some((at, [text(one), text(other)]))
}
