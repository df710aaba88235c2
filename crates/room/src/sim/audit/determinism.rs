//! A check that a room does the same with the same inputs.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use playfield_state::saved_as_json;

use super::find::{Reader, compared};
use super::log::{Log, Settled};
use super::transcript::{Receiver, Transcript};
use super::{LeakKind, Run};
use crate::Room;
use crate::sim::Sim;

/// The first difference between two runs of a room with the same seed and the same inputs.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// The number of the last input before, from 1; 0 if there was none.
    pub input: usize,
    /// A description of that input.
    pub input_text: String,
    /// The time in the room.
    pub at: Duration,
    /// The number of the last tick.
    pub tick: u64,
    /// The kind of message that differs; `None` if it is the state.
    pub sent: Option<LeakKind>,
    /// The place: the path of a field of the state, or in a message; or the room's `timers` or its
    /// `random numbers`.
    pub path: String,
    /// The values in the two runs, in JSON.
    pub values: [String; 2],
}

impl<R: Room + Default> Sim<R> {
    /// Checks that a room is deterministic: plays it twice, and compares its whole state, its
    /// timers and its random numbers after each input and each tick, and all that it sends.
    ///
    /// `create` and `drive` must do the same each time. What makes a room differ is a clock
    /// (`Instant`, `SystemTime`), a random number that is not of `cx.rng()`, a static, or the order
    /// of a `HashMap` or `HashSet`. A [skipped](playfield_state::State#skipped-fields) field is not
    /// compared, but what depends on it is.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use playfield::prelude::*;
    /// use playfield::sim::Sim;
    ///
    /// #[derive(State, Default)]
    /// struct Queue {
    ///     #[sync(hidden)]
    ///     tickets: Map<PlayerId, u32>,
    /// }
    ///
    /// static NEXT: AtomicU32 = AtomicU32::new(0);
    ///
    /// #[room()]
    /// impl Room for Queue {
    ///     fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
    ///         self.tickets.insert(player.id(), NEXT.fetch_add(1, Ordering::Relaxed));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let differs = Sim::<Queue>::check_determinism(|| Sim::new(7), |sim| {
    ///     sim.join("Ann").unwrap();
    /// });
    /// let divergence = differs.unwrap_err();
    /// assert_eq!(divergence.path, "tickets.1");
    /// assert_eq!(divergence.values, ["0", "1"]);
    /// ```
    ///
    /// # Errors
    /// The first difference.
    pub fn check_determinism(
        create: impl Fn() -> Self,
        drive: impl Fn(&mut Self),
    ) -> Result<(), Box<Divergence>> {
        let [one, other] = [(); 2].map(|()| Run::play(create(), &drive));
        let reader = Reader::new(crate::schema::<R>());
        let divergence = divergence(&reader, [&one.log, &other.log]);
        if let Some(panic) = one.panic.or(other.panic).filter(|_| divergence.is_none()) {
            std::panic::resume_unwind(panic);
        }
        divergence.map_or(Ok(()), |divergence| Err(Box::new(divergence)))
    }
}

/// The first difference: of states if there is one, since what is sent follows from them.
pub(super) fn divergence(reader: &Reader, logs: [&Log; 2]) -> Option<Divergence> {
    let sent = of_messages(reader, logs);
    let state = of_states(logs);
    let is_first = |divergence: &Divergence| {
        sent.as_ref().is_none_or(|sent| (divergence.at, divergence.input) <= (sent.at, sent.input))
    };
    state.filter(is_first).or(sent)
}

fn of_states(logs: [&Log; 2]) -> Option<Divergence> {
    let [a, b] = logs.map(Log::states);
    let key = |state: &Settled| (state.moment, state.input, state.hash);
    let same = a.iter().zip(b).take_while(|(one, other)| key(one) == key(other)).count();
    let (one, other) = (a.get(same), b.get(same));
    // Only changes are logged: the run that has none here is as it was before.
    let before = |states: &[Settled]| same.checked_sub(1).map(|last| states[last].hash);
    let (run, first) = match (one, other) {
        (None, None) => return None,
        (Some(one), Some(other)) if (other.moment, other.input) < (one.moment, one.input) => {
            (1, other)
        }
        (Some(one), _) => (0, one),
        (None, Some(other)) => (1, other),
    };
    debug_assert_ne!(before(logs[run].states()), Some(first.hash));
    let is_together = |state: &&Settled| (state.moment, state.input) == (first.moment, first.input);
    let states = [(a, one), (b, other)].map(|(states, next)| {
        next.filter(is_together).or_else(|| same.checked_sub(1).map(|last| &states[last]))
    });
    let (path, values) = place(states);
    let last = first.input.checked_sub(1).and_then(|last| logs[run].inputs().get(last));
    Some(Divergence {
        input: first.input,
        input_text: last.map(|input| input.text.clone()).unwrap_or_default(),
        at: first.moment.at,
        tick: first.moment.tick,
        sent: None,
        path,
        values,
    })
}

/// The place at which two states differ.
fn place(states: [Option<&Settled>; 2]) -> (String, [String; 2]) {
    let saves = states.map(|state| {
        state.and_then(|state| state.save.as_ref()).and_then(|save| saved_as_json(save).ok())
    });
    if let [Some(one), Some(other)] = &saves
        && let Some(place) = compared("", one, other).into_iter().next()
    {
        return place;
    }
    let text = |of: fn(&Settled) -> String| states.map(|state| state.map(of).unwrap_or_default());
    let timers = text(|state| format!("next at {:?}", state.wake_at));
    if timers[0] != timers[1] {
        return ("timers".to_owned(), timers);
    }
    let numbers = text(|state| format!("next {}", state.next_random));
    if numbers[0] != numbers[1] {
        return ("random numbers".to_owned(), numbers);
    }
    (String::new(), text(|state| format!("a state with the hash {:016x}", state.hash)))
}

fn of_messages(reader: &Reader, logs: [&Log; 2]) -> Option<Divergence> {
    let receivers = logs.iter().flat_map(|log| log.transcripts().keys());
    let none = Transcript::default();
    let first = |receiver: &Receiver| {
        let runs = logs.map(|log| log.transcripts().get(receiver).unwrap_or(&none));
        reader.first_difference(runs).into_iter().next()
    };
    let found = receivers.filter_map(first).min_by_key(|found| (found.moment, found.input))?;
    let last = found.input.checked_sub(1);
    let last = last.and_then(|last| logs[found.run].inputs().get(last));
    Some(Divergence {
        input: found.input,
        input_text: last.map(|input| input.text.clone()).unwrap_or_default(),
        at: found.moment.at,
        tick: found.moment.tick,
        sent: Some(found.kind),
        path: found.path,
        values: found.values,
    })
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the room is not deterministic: two runs with the same seed and inputs differ ",
        )?;
        match self.input {
            0 => f.write_str("before any input")?,
            number => write!(f, "after input {number} ({})", self.input_text)?,
        }
        write!(f, ", at {:?}, tick {}: ", self.at, self.tick)?;
        match self.sent {
            None => f.write_str("the state")?,
            Some(kind) => kind.fmt(f)?,
        }
        let of = if self.path.is_empty() { "" } else { ", " };
        let [one, other] = &self.values;
        write!(
            f,
            "{of}{}: {one}, and {other}. Look there for a clock, a random number that is not of \
             `cx.rng()`, a static, or the order of a `HashMap`",
            self.path
        )
    }
}

/// Readable, since tests print it by `unwrap`.
impl fmt::Debug for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Divergence {}
