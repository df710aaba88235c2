//! Timers.

use std::time::Duration;

use super::Context;
use crate::InternalMessage;
use crate::Message;
use crate::context_state::TIMERS_MAX;
use crate::message::InternalOf;
use crate::timers::{TIMER_PERIOD_MIN, TimerId};

impl<'a, R> Context<'a, R> {
    /// Sets a timer: the room receives this message once, by [`On`](crate::On), after `wait`. It
    /// never fires in the callback that sets it, even with a `wait` of zero.
    ///
    /// Timers end with the room.
    ///
    /// # Panics
    /// At [`TIMERS_MAX`] timers.
    pub fn after<M: InternalOf<R>>(&mut self, wait: Duration, message: M) -> TimerId {
        self.set_timer(wait, None, &message)
    }

    /// Sets a repeating timer: the room receives this message after each `period`, which is at
    /// least [`TIMER_PERIOD_MIN`]. Periods that an overloaded server missed are skipped.
    ///
    /// # Panics
    /// At [`TIMERS_MAX`] timers.
    pub fn every<M: InternalOf<R>>(&mut self, period: Duration, message: M) -> TimerId {
        let period = period.max(TIMER_PERIOD_MIN);
        self.set_timer(period, Some(period), &message)
    }

    /// Cancels a timer; `false` if it had fired or was canceled before.
    pub fn cancel(&mut self, timer: TimerId) -> bool {
        self.context.timers.cancel(timer)
    }

    fn set_timer<M: Message>(
        &mut self,
        wait: Duration,
        every: Option<Duration>,
        message: &M,
    ) -> TimerId {
        assert!(
            self.context.timers.len() < TIMERS_MAX,
            "a room set more than {TIMERS_MAX} timers: cancel those it no longer needs"
        );
        // Never due in the wake that set it, so that a room that always sets a timer of zero cannot
        // block its shard.
        let at = self.context.now.saturating_add(wait.max(Duration::from_nanos(1)));
        self.context.timers.set(at, every, InternalMessage::of(message))
    }
}
