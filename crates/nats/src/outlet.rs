//! The way out: messages are handed to the client without waiting.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use async_nats::{Client, HeaderMap, PublishError, PublishErrorKind, Subscriber};

/// The most bytes that wait to be written.
const WAITING_MAX: u64 = 32 << 20;

/// Hands messages of one connection to its client.
#[derive(Debug)]
pub(crate) struct Outlet {
    client: Client,
    /// The subject of answers, up to the number of the request.
    inbox: String,
    /// The bytes that were handed over, as the client counts those that it has taken.
    handed: u64,
}

/// The connection has ended, or too much waits to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotSent;

impl Outlet {
    pub(crate) fn new(client: Client, inbox: String) -> Self {
        Self { client, inbox, handed: 0 }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The number of the request that a subject answers.
    pub(crate) fn number(&self, subject: &str) -> Option<u64> {
        subject.strip_prefix(&self.inbox)?.parse().ok()
    }

    pub(crate) fn request(
        &mut self,
        subject: String,
        number: u64,
        headers: Option<HeaderMap>,
        payload: Vec<u8>,
    ) -> Result<(), NotSent> {
        let reply = format!("{}{number}", self.inbox);
        let names = headers.as_ref().map_or(0, HeaderMap::len);
        let bytes = self.room(subject.len() + reply.len() + payload.len() + names)?;
        let (client, payload) = (&self.client, payload.into());
        match headers {
            Some(headers) => {
                done(client.publish_with_reply_and_headers(subject, reply, headers, payload))?;
            }
            None => done(client.publish_with_reply(subject, reply, payload))?,
        }
        self.handed += bytes;
        Ok(())
    }

    pub(crate) fn send(&mut self, subject: String, payload: Vec<u8>) -> Result<(), NotSent> {
        let bytes = self.room(subject.len() + payload.len())?;
        done(self.client.publish(subject, payload.into()))?;
        self.handed += bytes;
        Ok(())
    }

    pub(crate) fn subscribe(&self, subject: String) -> Option<Subscriber> {
        now(self.client.subscribe(subject))?.ok()
    }

    /// Returns the bytes of a message, if there is room for them.
    fn room(&self, bytes: usize) -> Result<u64, NotSent> {
        let bytes = bytes as u64;
        let taken = self.client.statistics().out_bytes.load(Ordering::Relaxed);
        let has_room = self.handed.saturating_sub(taken) + bytes <= WAITING_MAX;
        has_room.then_some(bytes).ok_or(NotSent)
    }
}

fn done(sent: impl Future<Output = Result<(), PublishError>>) -> Result<(), NotSent> {
    match now(sent) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            if error.kind() != PublishErrorKind::Send {
                log::error!("a message of the cluster can't be sent: {error}");
            }
            Err(NotSent)
        }
        None => Err(NotSent),
    }
}

/// The output of a future that waits for nothing: the client has room in its queue, or has none.
fn now<F: Future>(future: F) -> Option<F::Output> {
    // The budget by which tokio lets other tasks run would make it wait.
    match pin!(tokio::task::unconstrained(future)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
