//! Requests to rooms from outside, until they are answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;
use tokio::sync::oneshot::{Receiver, Sender, channel};

use crate::memory::shrink_map;
use crate::sys::with_process_table;

/// An encoded reply, or why there is none.
pub(crate) type Answer = Result<Vec<u8>>;

/// The unanswered requests of a node. Each is answered once: by its room, by the shard that does
/// not find the room, by its shard's end, or by its deadline.
pub(crate) struct Asks {
    inner: Mutex<Inner>,
    asks_max: usize,
    timeout: Duration,
}

#[derive(Default)]
struct Inner {
    begun: u64,
    waiting: HashMap<u64, Waiting>,
    /// The node has ended.
    ended: bool,
}

struct Waiting {
    shard: u16,
    /// For a device, which its shard gives up itself.
    is_for_device: bool,
    by: Instant,
    asker: Asker,
}

/// The receiver of an answer.
pub(crate) enum Asker {
    Future(Sender<Answer>),
    /// A service: the call puts the answer, with its number, into the mail of its shard.
    Service(Box<dyn FnOnce(u64, Answer) + Send>),
}

impl Asker {
    fn take(self, number: u64, answer: Answer) {
        match self {
            // Who asked may have gone. If not, this wakes the runtime that polls it.
            Self::Future(future) => with_process_table(move || drop(future.send(answer))),
            Self::Service(post) => post(number, answer),
        }
    }
}

impl Asks {
    pub(crate) fn new(asks_max: usize, timeout: Duration) -> Self {
        Self { inner: Mutex::default(), asks_max, timeout }
    }

    /// Counts requests from a number far from those of other processes: a room that goes on here
    /// may answer what it was asked there.
    pub(crate) fn count_from(&self, random: u64) {
        self.lock().begun = random >> 2;
    }

    /// Notes a request to a room of this shard; its number, and where the answer arrives. It has
    /// the usual time and `more`, for what the shard waits for itself.
    ///
    /// # Errors
    /// `busy` at `limits.queues.asks`, `shutting_down` after the node's end.
    pub(crate) fn begin(&self, shard: u16, more: Duration) -> Result<(u64, Receiver<Answer>)> {
        let (answer, answered) = channel();
        Ok((self.begin_within(shard, Asker::Future(answer), more)?, answered))
    }

    /// Notes a request to a device of this shard, which gives it up after this time. Without the
    /// shard, it is given up somewhat later.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_for_device(
        &self,
        shard: u16,
        wait: Duration,
    ) -> Result<(u64, Receiver<Answer>)> {
        let (answer, answered) = channel();
        let wait = wait.saturating_add(self.timeout);
        Ok((self.note(shard, Asker::Future(answer), wait, true)?, answered))
    }

    /// Like [`begin`](Self::begin), for an answer that goes to `asker`.
    ///
    /// # Errors
    /// As [`begin`](Self::begin).
    pub(crate) fn begin_for(&self, shard: u16, asker: Asker) -> Result<u64> {
        self.begin_within(shard, asker, Duration::ZERO)
    }

    fn begin_within(&self, shard: u16, asker: Asker, more: Duration) -> Result<u64> {
        self.note(shard, asker, self.timeout.saturating_add(more), false)
    }

    fn note(&self, shard: u16, asker: Asker, wait: Duration, is_for_device: bool) -> Result<u64> {
        let mut inner = self.lock();
        if inner.ended {
            return Err(ended());
        }
        if inner.waiting.len() >= self.asks_max {
            let text = format!("limits.queues.asks: {} requests are unanswered", self.asks_max);
            return Err(Error::new(ErrorCode::Busy, text));
        }
        inner.begun += 1;
        let number = inner.begun;
        let now = Instant::now();
        let by = now.checked_add(wait).unwrap_or(now + self.timeout);
        inner.waiting.insert(number, Waiting { shard, is_for_device, by, asker });
        Ok(number)
    }

    /// Whether a request waits for its answer.
    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    pub(crate) fn is_waiting(&self, number: u64) -> bool {
        self.lock().waiting.contains_key(&number)
    }

    /// Answers a request, if it still waits.
    pub(crate) fn answer(&self, number: u64, answer: Answer) {
        let waiting = self.take(number);
        // Outside the lock: it may wake the one who asked.
        if let Some(waiting) = waiting {
            waiting.asker.take(number, answer);
        }
    }

    /// Nobody waits for the answer any longer.
    pub(crate) fn forget(&self, number: u64) {
        drop(self.take(number));
    }

    /// Answers the requests whose deadline has passed.
    pub(crate) fn expire(&self, now: Instant) {
        let text = format!("timeouts.ask: the room did not answer within {:?}", self.timeout);
        let is_late = |waiting: &Waiting| waiting.by <= now;
        self.answer_all(&Error::new(ErrorCode::Timeout, text), |waiting| {
            is_late(waiting) && !waiting.is_for_device
        });
        let text = "the device did not answer in time";
        self.answer_all(&Error::new(ErrorCode::Timeout, text), is_late);
    }

    /// A shard has failed: its rooms answer nothing any more.
    pub(crate) fn shard_failed(&self, shard: u16) {
        self.answer_all(&shard_failed(shard), |waiting| waiting.shard == shard);
    }

    /// The node has ended.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.answer_all(&ended(), |_| true);
    }

    /// Returns whether the node has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    fn take(&self, number: u64) -> Option<Waiting> {
        let mut inner = self.lock();
        let waiting = inner.waiting.remove(&number);
        shrink_map(&mut inner.waiting);
        waiting
    }

    fn answer_all(&self, error: &Error, which: impl Fn(&Waiting) -> bool) {
        let chosen: Vec<_> = self.lock().waiting.extract_if(|_, waiting| which(waiting)).collect();
        for (number, waiting) in chosen {
            waiting.asker.take(number, Err(error.clone()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No user code runs under the lock.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error after the node's end.
pub(crate) fn ended() -> Error {
    Error::new(ErrorCode::ShuttingDown, "the node has ended")
}

/// The error for rooms of a shard that failed.
pub(crate) fn shard_failed(shard: u16) -> Error {
    Error::new(ErrorCode::Internal, format!("shard {shard}, where the room is, has failed"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use playfield_wire::ErrorCode;
    use tokio::sync::oneshot::Receiver;

    use super::{Answer, Asks};

    fn code(mut answered: Receiver<Answer>) -> ErrorCode {
        answered.try_recv().expect("it is answered").unwrap_err().code()
    }

    #[test]
    fn there_are_at_most_asks_max_at_once() {
        let asks = Asks::new(2, Duration::from_secs(1));
        let (one, mut answered) = asks.begin(0, Duration::ZERO).unwrap();
        let (two, _kept) = asks.begin(0, Duration::ZERO).unwrap();
        let error = asks.begin(0, Duration::ZERO).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Busy);
        assert!(error.text().starts_with("limits.queues.asks: 2 "), "{error}");
        asks.answer(one, Ok(vec![1]));
        assert_eq!(answered.try_recv().unwrap(), Ok(vec![1]));
        asks.forget(two);
        assert!(
            asks.begin(0, Duration::ZERO).is_ok()
                && asks.begin(0, Duration::ZERO).is_ok()
                && asks.begin(0, Duration::ZERO).is_err()
        );
    }

    #[test]
    fn deadlines_failed_shards_and_the_nodes_end_answer() {
        let asks = Asks::new(10, Duration::from_secs(1));
        let (_, late) = asks.begin(0, Duration::ZERO).unwrap();
        asks.expire(Instant::now());
        asks.expire(Instant::now() + Duration::from_secs(1));
        assert_eq!(code(late), ErrorCode::Timeout);
        let ((_, of_one), (_, of_two)) =
            (asks.begin(1, Duration::ZERO).unwrap(), asks.begin(2, Duration::ZERO).unwrap());
        asks.shard_failed(1);
        assert_eq!(code(of_one), ErrorCode::Internal);
        asks.end();
        assert_eq!(code(of_two), ErrorCode::ShuttingDown);
        assert_eq!(asks.begin(1, Duration::ZERO).unwrap_err().code(), ErrorCode::ShuttingDown);
    }
}
