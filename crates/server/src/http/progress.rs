//! The progress of an HTTP connection, for its timeouts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::shard::connection::http::Refusal;

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// A request must come in, and some of its answer be read, within this time.
    pub(super) request: Duration,
    /// Between requests.
    pub(super) idle: Duration,
}

impl Timeouts {
    /// The period of checks: a timeout is noticed late by at most this.
    pub(super) fn period(&self) -> Duration {
        self.request.min(self.idle) / 4
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between requests.
    Idle,
    /// A head is coming in.
    Receiving,
    /// A request is being answered: its handler has time limits of its own.
    Answering,
}

/// The progress of a connection. Its stream and its requests report to it.
#[derive(Debug)]
pub(super) struct Progress(Mutex<State>);

/// The time in which a client that sends nothing more must be answered. It may read on, or be gone:
/// the system says the same of both.
const LEFT_AFTER: Duration = Duration::from_secs(1);

/// The state of the client's end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Sends,
    /// The time of the client's FIN.
    Ended(Instant),
    /// The connection is broken.
    Gone,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// When the phase began, or something was last written in it.
    since: Instant,
    /// Since when the client has read nothing of what waits for it.
    blocked_since: Option<Instant>,
    client: Client,
    /// Why the next request is refused.
    refusal: Option<Refusal>,
}

impl Progress {
    /// A connection whose first bytes are there.
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            phase: Phase::Receiving,
            since: Instant::now(),
            blocked_since: None,
            client: Client::Sends,
            refusal: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came in.
    pub(super) fn received(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            (state.phase, state.since) = (Phase::Receiving, Instant::now());
        }
    }

    /// A whole head has come. Returns when the request began to come in.
    pub(super) fn begins(&self) -> Instant {
        let mut state = self.lock();
        state.phase = Phase::Answering;
        state.since
    }

    /// The answer is handed to the socket, or given up.
    pub(super) fn answered(&self) {
        let mut state = self.lock();
        (state.phase, state.since) = (Phase::Idle, Instant::now());
    }

    /// The socket took bytes.
    pub(super) fn wrote(&self) {
        let mut state = self.lock();
        state.blocked_since = None;
        if state.phase == Phase::Idle {
            state.since = Instant::now();
        }
    }

    /// The socket takes no more for now.
    pub(super) fn blocked(&self) {
        self.lock().blocked_since.get_or_insert_with(Instant::now);
    }

    /// Returns whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        self.lock().phase == Phase::Answering
    }

    /// The client sends nothing more.
    pub(super) fn ended(&self) {
        let mut state = self.lock();
        if state.client == Client::Sends {
            state.client = Client::Ended(Instant::now());
        }
    }

    /// The connection is broken.
    pub(super) fn broke(&self) {
        self.lock().client = Client::Gone;
    }

    /// Returns whether the connection is broken: nobody reads the answer.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().client == Client::Gone
    }

    /// Returns when the client is taken for gone, if it sends nothing more.
    pub(super) fn leaves_at(&self) -> Option<Instant> {
        match self.lock().client {
            Client::Ended(at) => Some(at + LEFT_AFTER),
            Client::Sends | Client::Gone => None,
        }
    }

    /// Returns whether bytes wait until the socket has space.
    pub(super) fn is_blocked(&self) -> bool {
        self.lock().blocked_since.is_some()
    }

    /// The next head is refused: no more requests are read.
    pub(super) fn refuses(&self, refusal: Refusal) {
        self.lock().refusal = Some(refusal);
    }

    /// Takes why the next request is refused, once all answers before it are written.
    pub(super) fn take_refusal(&self) -> Option<Refusal> {
        let mut state = self.lock();
        if state.blocked_since.is_some() { None } else { state.refusal.take() }
    }

    /// Returns whether the connection has to end: the client is silent, or reads nothing.
    pub(super) fn is_late(&self, timeouts: &Timeouts) -> bool {
        let state = self.lock();
        let is_over = |since: Instant, timeout| since.elapsed() >= timeout;
        state.blocked_since.is_some_and(|since| is_over(since, timeouts.request))
            || match state.phase {
                Phase::Idle => is_over(state.since, timeouts.idle),
                Phase::Receiving => is_over(state.since, timeouts.request),
                Phase::Answering => {
                    matches!(state.client, Client::Ended(at) if is_over(at, LEFT_AFTER))
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::{Progress, Timeouts};

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// The clock is simulated: it goes on only where the test says so.
    fn simulated(test: impl Future<Output = ()>) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    const TIMEOUTS: Timeouts = Timeouts { request: ms(1_000), idle: ms(3_000) };

    #[test]
    fn a_head_must_come_in_time_however_it_trickles() {
        simulated(async {
            let progress = Progress::new();
            progress.begins();
            progress.answered();
            advance(ms(2_000)).await;
            for _ in 0..9 {
                progress.received();
                advance(ms(100)).await;
                assert!(!progress.is_late(&TIMEOUTS));
            }
            advance(ms(100)).await;
            assert!(progress.is_late(&TIMEOUTS));
        });
    }

    #[test]
    fn an_idle_connection_ends_in_time_and_a_handler_has_its_own() {
        simulated(async {
            let progress = Progress::new();
            progress.begins();
            advance(ms(10_000)).await;
            assert!(!progress.is_late(&TIMEOUTS));
            progress.answered();
            advance(ms(2_999)).await;
            assert!(!progress.is_late(&TIMEOUTS));
            advance(ms(1)).await;
            assert!(progress.is_late(&TIMEOUTS));
        });
    }

    #[test]
    fn a_client_that_sends_nothing_more_is_answered_soon_or_not_at_all() {
        simulated(async {
            let progress = Progress::new();
            progress.begins();
            progress.ended();
            advance(ms(999)).await;
            progress.ended();
            assert!(!progress.is_late(&TIMEOUTS) && progress.leaves_at().is_some());
            advance(ms(1)).await;
            assert!(progress.is_late(&TIMEOUTS));
        });
    }

    #[test]
    fn a_client_that_reads_slowly_stays_and_one_that_reads_nothing_does_not() {
        simulated(async {
            let progress = Progress::new();
            progress.begins();
            for _ in 0..5 {
                progress.blocked();
                advance(ms(900)).await;
                progress.blocked();
                assert!(!progress.is_late(&TIMEOUTS));
                progress.wrote();
            }
            progress.blocked();
            advance(ms(1_000)).await;
            assert!(progress.is_late(&TIMEOUTS));
        });
    }
}
