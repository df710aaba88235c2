//! How the task restores a lost connection.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::dial::Dialer;
use super::stream::Stream;
use super::task::Task;
use crate::Error;
use crate::error::Ending;

/// A connection that has lasted this long is not counted among the attempts to restore one.
const LASTING: Duration = Duration::from_secs(5);

/// The settings for lost connections, and the attempts since the connection was lost.
#[derive(Debug)]
pub(super) struct Reconnect {
    dialer: Arc<Dialer>,
    /// The time limit of one attempt, up to the welcome.
    attempt_max: Duration,
    /// The time limit of all attempts.
    lasts: Duration,
    backoff: Backoff,
    /// When the present attempt, or connection, began.
    began: Instant,
    is_welcomed: bool,
    /// The time that the attempts took. Time that this process slept does not count.
    took: Duration,
    /// Why the last attempt failed.
    failed: Option<Error>,
}

impl Reconnect {
    pub(super) fn new(
        dialer: Dialer,
        attempt_max: Duration,
        lasts: Duration,
        backoff: Backoff,
    ) -> Self {
        Self {
            dialer: Arc::new(dialer),
            attempt_max,
            lasts,
            backoff,
            began: Instant::now(),
            is_welcomed: false,
            took: Duration::ZERO,
            failed: None,
        }
    }

    pub(super) fn is_web_socket(&self) -> bool {
        self.dialer.is_web_socket()
    }

    /// The node has answered the hello.
    pub(super) fn welcomed(&mut self) {
        if !std::mem::replace(&mut self.is_welcomed, true) {
            (self.began, self.took, self.failed) = (Instant::now(), Duration::ZERO, None);
        }
    }

    /// When the present attempt has failed, unless the node answers.
    pub(super) fn welcome_by(&self) -> Option<Instant> {
        (!self.is_welcomed).then(|| self.began + self.attempt_max)
    }

    /// The connection was lost, or the attempt has failed for this reason.
    pub(super) fn lost(&mut self, why: impl FnOnce() -> Option<Ending>) {
        if std::mem::take(&mut self.is_welcomed) {
            if self.began.elapsed() >= LASTING {
                self.backoff.reset();
            }
            return;
        }
        let late = || Error::no_answer(&self.dialer.authority, self.attempt_max);
        let why = if Instant::now() >= self.began + self.attempt_max { None } else { why() };
        self.attempt_failed(why.map_or_else(late, Error::closed));
    }

    fn attempt_failed(&mut self, error: Error) {
        self.took += self.began.elapsed().min(self.attempt_max);
        self.failed = Some(error);
    }

    fn wait(&mut self) -> Duration {
        let mut random = [u8::MAX; 4];
        // Without random numbers, the longest wait is as good as any.
        let _ = getrandom::fill(&mut random);
        let wait = self.backoff.next(u32::from_le_bytes(random));
        self.took += wait;
        wait
    }
}

impl Task {
    /// Connects again, as often as it takes, and sends the hello. `None` if the time is over, or
    /// this client ends the connection.
    pub(super) async fn reconnect(&mut self) -> Option<Stream> {
        loop {
            if let Some(last) = self.reconnect.failed.take()
                && self.reconnect.took >= self.reconnect.lasts
            {
                self.dispatch.gave_up = Some((self.reconnect.took, last));
                self.client.give_up(&mut self.dispatch);
                return None;
            }
            let wait = self.reconnect.wait();
            if self.meanwhile(sleep(wait)).await.is_none() {
                break;
            }
            self.reconnect.began = Instant::now();
            let dialer = Arc::clone(&self.reconnect.dialer);
            let limit = self.reconnect.attempt_max;
            let dialed = self.meanwhile(async move { timeout(limit, dialer.dial()).await }).await;
            let authority = &self.reconnect.dialer.authority;
            let stream = match dialed {
                None => break,
                Some(Ok(dialed)) => dialed,
                Some(Err(_)) => Err(Error::no_answer(authority, limit)),
            };
            let prepared = stream.and_then(|stream| {
                self.client.reconnect(self.reconnect.dialer.transport()?)?;
                Ok(stream)
            });
            match prepared {
                Ok(stream) => return Some(stream),
                Err(error) => self.reconnect.attempt_failed(error),
            }
        }
        self.client.goodbye();
        self.client.ended(&mut self.dispatch);
        None
    }

    /// Waits for something, and handles signals meanwhile. `None` if this client ends the
    /// connection.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        while !self.is_closing {
            tokio::select! {
                done = &mut work => return Some(done),
                signals = self.signals.take() => {
                    signals.into_iter().for_each(|signal| self.heed(signal));
                }
            }
        }
        None
    }
}
