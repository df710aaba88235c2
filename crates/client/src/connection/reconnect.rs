//! How the task restores a lost connection.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep, timeout};

use super::dial::Dialer;
use super::status::ConnectionEvent;
use super::stream::Stream;
use super::task::Task;
use super::token::Token;
use crate::Error;
use crate::error::Ending;
use crate::session::{Attempts, Patience, TokenLife};

/// The settings for lost connections, and the attempts since the connection was lost.
#[derive(Debug)]
pub(super) struct Reconnect {
    dialer: Arc<Dialer>,
    token: Token,
    token_life: TokenLife,
    patience: Patience,
    attempts: Attempts,
    /// The moment that the times of `attempts` are measured from.
    started: Instant,
    /// Why the last attempt failed.
    failed: Option<Error>,
}

impl Reconnect {
    /// `token_life` is that of the token of the first connection.
    pub(super) fn new(
        dialer: Dialer,
        token: Token,
        token_life: TokenLife,
        patience: Patience,
    ) -> Self {
        let attempts = Attempts::new(patience, Duration::ZERO);
        let (dialer, started) = (Arc::new(dialer), Instant::now());
        Self { dialer, token, token_life, patience, attempts, started, failed: None }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
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
        let is_news = self.attempts.welcomed(self.now());
        if is_news {
            self.failed = None;
        }
        is_news
    }

    /// When the present attempt has failed, unless the node answers.
    pub(super) fn welcome_by(&self) -> Option<Instant> {
        self.attempts.welcome_by().and_then(|by| self.started.checked_add(by))
    }

    /// The connection was lost, or the attempt has failed for this reason; see
    /// [`Attempts::lost`].
    pub(super) fn lost(
        &mut self,
        made_progress: bool,
        grace: Duration,
        retry_after: Option<Duration>,
        why: impl FnOnce() -> Option<Ending>,
    ) {
        let now = self.now();
        let is_late = self.attempts.welcome_by().is_some_and(|by| now >= by);
        if self.attempts.lost(made_progress, grace, retry_after, now) {
            let late = || Error::no_answer(&self.dialer.authority, self.attempts.limit());
            let why = if is_late { None } else { why() };
            self.failed = Some(why.map_or_else(late, Error::closed));
        }
    }

    fn wait(&mut self) -> Duration {
        let mut random = [u8::MAX; 4];
        // Without random numbers, the longest wait is as good as any.
        let _ = getrandom::fill(&mut random);
        self.attempts.wait(u32::from_le_bytes(random), self.now())
    }
}

impl Task {
    /// Connects again, as often as it takes, and sends the hello. `None` if the time is over, or
    /// this client ends the connection.
    pub(super) async fn reconnect(&mut self) -> Option<Stream> {
        loop {
            if let Some(error) = self.reconnect.failed.take() {
                if self.reconnect.attempts.is_over() {
                    self.dispatch.gave_up = Some((self.reconnect.attempts.took(), error));
                    self.client.give_up();
                    self.hear();
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
                Some(Err(error)) => {
                    let now = self.reconnect.now();
                    self.reconnect.attempts.failed(now);
                    self.reconnect.failed = Some(error);
                }
            }
        }
        self.client.goodbye();
        self.client.ended();
        self.hear();
        None
    }

    /// Connects once, and sends the hello. `None` if this client ends the connection.
    async fn attempt(&mut self) -> Option<Result<Stream, Error>> {
        let now = self.reconnect.now();
        self.reconnect.attempts.begin(now);
        self.dispatch.retry_after = None;
        let is_refused = self.client.is_token_refused();
        if is_refused || self.reconnect.token_life.is_over(SystemTime::now()) {
            let (token, limit) = (self.reconnect.token.clone(), self.reconnect.patience.timeout);
            match self.meanwhile(async move { token.give(limit).await }).await? {
                Ok(token) => {
                    self.reconnect.token_life = TokenLife::new(&token, SystemTime::now());
                    self.client.set_token(token);
                }
                Err(error) => return Some(Err(error)),
            }
        }
        let now = self.reconnect.now();
        let limit = self.reconnect.attempts.dial(now);
        let dialer = Arc::clone(&self.reconnect.dialer);
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
