//! Restores a lost connection: the task does what the session says.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};

use super::status::ConnectionEvent;
use super::stream::Stream;
use super::task::Task;
use super::token::Token;
use crate::Error;
use crate::dial::Dialer;
use crate::session::{Step, Url};

/// Everything that the task connects with.
#[derive(Debug)]
pub(super) struct Reconnect {
    /// The node that is connected, or was.
    pub(super) dialer: Arc<Dialer>,
    pub(super) token: Token,
    /// The URL that the program gave.
    first: Arc<Dialer>,
    root_certificates: Vec<Vec<u8>>,
    /// The node that was dialed last at an address of its own.
    node: Option<(Url, Arc<Dialer>)>,
}

impl Reconnect {
    pub(super) fn new(dialer: Dialer, token: Token, root_certificates: Vec<Vec<u8>>) -> Self {
        let first = Arc::new(dialer);
        Self { dialer: Arc::clone(&first), token, first, root_certificates, node: None }
    }

    /// Picks the node at this address, or the URL that the program gave.
    fn aim(&mut self, address: Option<&Url>) -> Result<(), Error> {
        self.dialer = match (address, &self.node) {
            (None, _) => Arc::clone(&self.first),
            (Some(address), Some((known, dialer))) if address == known => Arc::clone(dialer),
            (Some(address), _) => {
                let dialer = Arc::new(Dialer::to(address.clone(), &self.root_certificates)?);
                self.node = Some((address.clone(), Arc::clone(&dialer)));
                dialer
            }
        };
        Ok(())
    }
}

impl Task {
    /// Connects again, as often as it takes, and sends the hello. `None` if the session is over, or
    /// this client ends the connection.
    pub(super) async fn reconnect(&mut self) -> Option<Stream> {
        loop {
            self.tell_time();
            let step = self.client.next_step();
            self.hear();
            let failed = match step {
                Step::Wait if self.client.is_finished() => return None,
                Step::Wait => {
                    let due_at = self.due_at().unwrap_or_else(Instant::now);
                    match self.meanwhile(sleep_until(due_at)).await {
                        Some(()) => continue,
                        None => break,
                    }
                }
                Step::Token(limit) => {
                    let token = self.reconnect.token.clone();
                    match self.meanwhile(async move { token.give(limit).await }).await {
                        Some(given) => given.map(|token| self.client.set_token(token)).err(),
                        None => break,
                    }
                }
                Step::Dial(limit) => match self.dial(limit).await {
                    Some(Ok(stream)) => return Some(stream),
                    Some(Err(error)) => Some(error),
                    None => break,
                },
            };
            if let Some(error) = failed {
                self.tell_time();
                self.attempt_failed(error);
            }
        }
        self.client.goodbye();
        self.client.ended();
        self.hear();
        None
    }

    /// Reports why an attempt came to no connection.
    fn attempt_failed(&mut self, error: Error) {
        let is_last = self.client.attempt_failed();
        self.registry.fate.attempt_failed(error.clone());
        if !is_last {
            self.status.report(ConnectionEvent::AttemptFailed { error });
        }
        self.hear();
    }

    /// Connects once, and sends the hello. `None` if this client ends the connection.
    async fn dial(&mut self, limit: Duration) -> Option<Result<Stream, Error>> {
        self.registry.fate.begin_attempt();
        if let Err(error) = self.reconnect.aim(self.client.dial_to()) {
            return Some(Err(error));
        }
        self.registry.fate.authority = Arc::clone(&self.reconnect.dialer.authority);
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
