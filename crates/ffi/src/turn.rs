//! How much a task reports before the program takes it. What it follows may come faster than the
//! program takes it out, and only what waits before it is reported has a limit.

use tokio::task::yield_now;

/// The most events that a task reports in a turn.
const REPORTED_MAX: usize = 64;

/// A task reports no more events in a turn once they have more bytes than this.
const REPORTED_BYTES_MAX: usize = 1 << 20;

/// What a task has reported since it waited last.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    events: usize,
    bytes: usize,
}

impl Turn {
    /// An event of so many bytes of payload and texts is reported.
    pub(crate) fn report(&mut self, bytes: usize) {
        self.events += 1;
        self.bytes += bytes;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.events >= REPORTED_MAX || self.bytes > REPORTED_BYTES_MAX
    }

    /// If the turn is over, waits until the task is polled again: `pf_client_next` does so after the
    /// program has taken everything.
    pub(crate) async fn pause(&mut self) {
        if self.is_over() {
            *self = Self::default();
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// How many of these events a task reports before it waits.
    fn reported(bytes: usize) -> usize {
        let count = Cell::new(0);
        let mut task = pin!(async {
            let mut turn = Turn::default();
            while !turn.is_over() && count.get() < 1000 {
                turn.report(bytes);
                count.set(count.get() + 1);
            }
            turn.pause().await;
        });
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        count.get()
    }

    #[test]
    fn a_task_reports_a_limited_number_of_events_and_bytes_and_at_least_one() {
        assert_eq!(reported(0), REPORTED_MAX);
        assert_eq!(reported(REPORTED_BYTES_MAX / 2), 3);
        assert_eq!(reported(REPORTED_BYTES_MAX), 2);
        assert_eq!(reported(REPORTED_BYTES_MAX + 1), 1);
    }
}
