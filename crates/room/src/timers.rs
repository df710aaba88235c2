//! A room's timers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use playfield_state::__rt::{Atomic, DecodeError, Reader, Value};
use playfield_state::{Data, TreeWriter};
use playfield_wire::schema::Type;

use crate::InternalMessage;
use crate::context_state::TIMERS_MAX;
use crate::frozen::parts::{self, Time};
use crate::random::Random;

/// A timer, from [`Context::after`](crate::Context::after) or
/// [`Context::every`](crate::Context::every).
///
/// It can be kept in a hidden field of the state. The default is no timer. To cancel a timer that
/// has fired does nothing, nor one of another room, as after the state was saved and loaded: each
/// room numbers its timers from another place on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerId(pub(crate) u64);

impl Data for TimerId {
    fn schema() -> Type {
        u64::schema()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u64::decode(reader).map(Self)
    }

    fn to_tree(&self, out: TreeWriter<'_>) {
        self.0.to_tree(out);
    }

    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        u64::from_json(value).map(Self)
    }
}

impl Atomic for TimerId {
    const FIXED: bool = true;
}

/// The shortest period of a repeating timer.
pub const TIMER_PERIOD_MIN: Duration = Duration::from_millis(1);

/// Timers in the order in which they are due; if due at the same time, in the order in which they
/// were set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Duration, u64)>,
    set: BTreeMap<u64, Timer>,
    next: u64,
}

#[derive(Debug)]
struct Timer {
    at: Duration,
    every: Option<Duration>,
    message: InternalMessage,
}

impl Timers {
    /// Timers of a room with this seed.
    pub(crate) fn new(seed: u64) -> Self {
        // From a generator of its own, and less than what a float holds exactly: nobody who sees
        // an id can tell the seed, and a client in JavaScript reads it.
        let next = Random::new(!seed).below(1 << 52);
        Self { next, ..Self::default() }
    }

    pub(crate) fn set(
        &mut self,
        at: Duration,
        every: Option<Duration>,
        message: InternalMessage,
    ) -> TimerId {
        self.next += 1;
        self.due.insert((at, self.next));
        self.set.insert(self.next, Timer { at, every, message });
        TimerId(self.next)
    }

    pub(crate) fn cancel(&mut self, TimerId(id): TimerId) -> bool {
        let timer = self.set.remove(&id);
        timer.is_some_and(|timer| self.due.remove(&(timer.at, id)))
    }

    /// Returns all, in the order of their numbers. `message` notes a message.
    pub(crate) fn freeze(
        &self,
        mut message: impl FnMut(&InternalMessage) -> parts::Message,
    ) -> parts::Timers {
        let timer = |(&number, timer): (&u64, &Timer)| parts::Timer {
            number,
            at: Time(timer.at),
            every: timer.every.map(Time),
            message: message(&timer.message),
        };
        parts::Timers { last: self.next, timers: self.set.iter().map(timer).collect() }
    }

    /// Makes timers of what [`freeze`](Self::freeze) returned.
    ///
    /// # Errors
    /// If a timer is wrong.
    pub(crate) fn thaw(
        parts::Timers { last, timers }: parts::Timers,
        mut message: impl FnMut(parts::Message) -> Result<InternalMessage, String>,
    ) -> Result<Self, String> {
        if timers.len() > TIMERS_MAX {
            return Err(format!("a room has at most {TIMERS_MAX} timers"));
        }
        parts::check_number(last)?;
        let mut this = Self { next: last, ..Self::default() };
        for parts::Timer { number, at: Time(at), every, message: of } in timers {
            let every = every.map(|Time(every)| every);
            if every.is_some_and(|every| every < TIMER_PERIOD_MIN) {
                return Err(format!("the period of timer {number} is too short"));
            }
            let timer = Timer { at, every, message: message(of)? };
            if number > last || this.set.insert(number, timer).is_some() {
                return Err(format!("a timer can't have the number {number}"));
            }
            this.due.insert((at, number));
        }
        Ok(this)
    }

    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the message of the next timer that is due by `now`. A repeating timer is set to the
    /// next multiple of its period that lies ahead: missed ones are skipped.
    pub(crate) fn take_due(&mut self, now: Duration) -> Option<InternalMessage> {
        let &(at, id) = self.due.first()?;
        if at > now {
            return None;
        }
        self.due.pop_first();
        let timer = self.set.get_mut(&id)?;
        let Some(every) = timer.every else {
            return self.set.remove(&id).map(|timer| timer.message);
        };
        let missed = (now - at).as_nanos() / every.as_nanos().max(1);
        let ahead = every.saturating_mul(u32::try_from(missed + 1).unwrap_or(u32::MAX));
        timer.at = at.saturating_add(ahead);
        self.due.insert((timer.at, id));
        Some(timer.message.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> InternalMessage {
        InternalMessage { name: name.to_owned().into(), payload: Vec::new() }
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn fired(timers: &mut Timers, now: u64) -> Vec<String> {
        std::iter::from_fn(|| timers.take_due(ms(now)).map(|message| message.name.into_owned()))
            .collect()
    }

    #[test]
    fn timers_fire_in_order_and_once() {
        let mut timers = Timers::default();
        timers.set(ms(20), None, named("b"));
        timers.set(ms(10), None, named("a"));
        let canceled = timers.set(ms(15), None, named("never"));
        assert!(timers.cancel(canceled));
        assert!(!timers.cancel(canceled));
        assert!(fired(&mut timers, 9).is_empty());
        assert_eq!(fired(&mut timers, 30), ["a", "b"]);
        assert_eq!(timers.next_due(), None);
    }

    #[test]
    fn a_repeating_timer_keeps_its_phase_and_skips_what_it_missed() {
        let mut timers = Timers::default();
        timers.set(ms(10), Some(ms(10)), named("again"));
        assert_eq!(fired(&mut timers, 12).len(), 1);
        assert_eq!(timers.next_due(), Some(ms(20)));
        assert_eq!(fired(&mut timers, 55).len(), 1);
        assert_eq!(timers.next_due(), Some(ms(60)));
    }
}
