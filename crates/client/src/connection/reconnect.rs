//! How the task restores a lost connection.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::backoff::Backoff;
use super::dial::Dialer;
use super::status::ConnectionEvent;
use super::stream::Stream;
use super::task::Task;
use super::token::Token;
use crate::Error;
use crate::error::Ending;

/// A connection that has lasted this long is not counted among the attempts to restore one.
const LASTING: Duration = Duration::from_secs(5);

/// While the node keeps the session, an attempt takes at most this part of that time, unless that
/// is shorter than `ATTEMPT`: an attempt that hangs, such as over a network that is gone, leaves
/// time for others.
const PART: u32 = 3;
const ATTEMPT: Duration = Duration::from_secs(3);

/// The settings for lost connections, and the attempts since the connection was lost.
#[derive(Debug)]
pub(super) struct Reconnect {
    dialer: Arc<Dialer>,
    token: Token,
    /// The time limit of one attempt, up to the welcome, and of the token for it.
    attempt_max: Duration,
    /// That of the present attempt.
    attempt_limit: Duration,
    /// How long the node keeps the session for certain, and until when.
    grace: Duration,
    kept_until: Instant,
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
    /// How long the node wants this client to wait.
    retry_after: Option<Duration>,
}

impl Reconnect {
    pub(super) fn new(
        dialer: Dialer,
        token: Token,
        attempt_max: Duration,
        lasts: Duration,
        backoff: Backoff,
    ) -> Self {
        Self {
            dialer: Arc::new(dialer),
            token,
            attempt_max,
            attempt_limit: attempt_max,
            grace: Duration::ZERO,
            kept_until: Instant::now(),
            lasts,
            backoff,
            began: Instant::now(),
            is_welcomed: false,
            took: Duration::ZERO,
            failed: None,
            retry_after: None,
        }
    }

    pub(super) fn is_web_socket(&self) -> bool {
        self.dialer.is_web_socket()
    }

    /// Whether a function gives the token: another time, it may give another.
    pub(super) fn renews_token(&self) -> bool {
        matches!(self.token, Token::By(_))
    }

    /// The node has answered the hello. Returns whether that is news.
    pub(super) fn welcomed(&mut self) -> bool {
        let is_news = !std::mem::replace(&mut self.is_welcomed, true);
        if is_news {
            (self.began, self.took, self.failed) = (Instant::now(), Duration::ZERO, None);
        }
        is_news
    }

    /// When the present attempt has failed, unless the node answers.
    pub(super) fn welcome_by(&self) -> Option<Instant> {
        (!self.is_welcomed).then(|| self.began + self.attempt_limit)
    }

    /// The connection was lost, or the attempt has failed for this reason. The node keeps the
    /// session for `grace` from the loss on, and may want this client to wait. The waits start over
    /// if the connection brought the session forward.
    pub(super) fn lost(
        &mut self,
        made_progress: bool,
        grace: Duration,
        retry_after: Option<Duration>,
        why: impl FnOnce() -> Option<Ending>,
    ) {
        self.retry_after = retry_after;
        if std::mem::take(&mut self.is_welcomed) {
            if made_progress || self.began.elapsed() >= LASTING {
                self.backoff.reset();
            }
            let now = Instant::now();
            (self.grace, self.kept_until) = (grace, now.checked_add(grace).unwrap_or(now));
            return;
        }
        let late = || Error::no_answer(&self.dialer.authority, self.attempt_limit);
        let why = if Instant::now() >= self.began + self.attempt_limit { None } else { why() };
        self.attempt_failed(why.map_or_else(late, Error::closed));
    }

    fn attempt_failed(&mut self, error: Error) {
        self.took += self.began.elapsed().min(self.attempt_max);
        self.failed = Some(error);
    }

    /// How long the node still keeps the session for certain.
    fn kept(&self) -> Duration {
        self.kept_until.saturating_duration_since(Instant::now())
    }

    /// The token is there: what is left of the attempt has a time limit of its own.
    fn dial(&mut self) {
        self.took += self.began.elapsed().min(self.attempt_max);
        self.began = Instant::now();
        let part = if self.kept().is_zero() { Duration::MAX } else { self.grace / PART };
        self.attempt_limit = self.attempt_max.min(part.max(ATTEMPT));
    }

    fn wait(&mut self) -> Duration {
        let mut random = [u8::MAX; 4];
        // Without random numbers, the longest wait is as good as any.
        let _ = getrandom::fill(&mut random);
        let mut wait = self.backoff.next(u32::from_le_bytes(random), self.kept());
        if let Some(retry_after) = self.retry_after.take() {
            wait = wait.saturating_add(retry_after);
        }
        // There is time for one attempt at least, and the last comes when the time is over.
        wait = wait.min(self.lasts.saturating_sub(self.took));
        self.took += wait;
        wait
    }
}

impl Task {
    /// Connects again, as often as it takes, and sends the hello. `None` if the time is over, or
    /// this client ends the connection.
    pub(super) async fn reconnect(&mut self) -> Option<Stream> {
        loop {
            if let Some(error) = self.reconnect.failed.take() {
                if self.reconnect.took >= self.reconnect.lasts {
                    self.dispatch.gave_up = Some((self.reconnect.took, error));
                    self.client.give_up(&mut self.dispatch);
                    return None;
                }
                self.status.report(ConnectionEvent::AttemptFailed { error });
            }
            let wait = self.reconnect.wait();
            if self.meanwhile(sleep(wait)).await.is_none() {
                break;
            }
            match self.attempt().await {
                None => break,
                Some(Ok(stream)) => return Some(stream),
                Some(Err(error)) => self.reconnect.attempt_failed(error),
            }
        }
        self.client.goodbye();
        self.client.ended(&mut self.dispatch);
        None
    }

    /// Connects once, and sends the hello. `None` if this client ends the connection.
    async fn attempt(&mut self) -> Option<Result<Stream, Error>> {
        self.reconnect.began = Instant::now();
        self.dispatch.retry_after = None;
        let (token, limit) = (self.reconnect.token.clone(), self.reconnect.attempt_max);
        match self.meanwhile(async move { token.give(limit).await }).await? {
            Ok(token) => self.client.set_token(token),
            Err(error) => return Some(Err(error)),
        }
        self.reconnect.dial();
        let (dialer, limit) = (Arc::clone(&self.reconnect.dialer), self.reconnect.attempt_limit);
        let dialed = self.meanwhile(async move { timeout(limit, dialer.dial()).await }).await?;
        let dialer = &self.reconnect.dialer;
        let stream = dialed.unwrap_or_else(|_| Err(Error::no_answer(&dialer.authority, limit)));
        Some(stream.and_then(|stream| {
            self.client.reconnect(dialer.transport()?)?;
            Ok(stream)
        }))
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
