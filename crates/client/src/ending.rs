//! The fate of a connection, in words for the program: why it was lost, why attempts to restore it
//! failed, and how it ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::ErrorCode;

use crate::Error;
use crate::session::{ClientError, Event};

/// The end of a connection.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// This client said goodbye, or all its handles were dropped.
    Here,
    /// The node said goodbye.
    Goodbye { code: ErrorCode, text: String, retry_after: Option<Duration> },
    /// The socket failed.
    Socket(Arc<io::Error>),
    /// The node violated the protocol, or stopped answering.
    Broken(ClientError),
    /// The connection ended before the node's welcome.
    Unwelcome(Box<Ending>),
    /// The connection was lost, and could not be restored.
    GaveUp { lost: Box<Ending>, tried: Duration, last: Box<Error> },
}

/// Notes of what the session and the socket say about the connection.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// The node's host and port.
    pub(crate) authority: Arc<str>,
    /// Why the socket failed, which the session does not know.
    pub(crate) socket_error: Option<io::Error>,
    /// The time for which the session has tried to restore the connection.
    pub(crate) tried: Duration,
    /// Why the connection was lost.
    lost: Option<Box<Ending>>,
    failed_attempt: Option<Box<Error>>,
    is_welcomed: bool,
    /// Why the node said that it ends the connection.
    goodbye: Option<(ErrorCode, String)>,
    /// The time that the node wants this client to wait.
    retry_after: Option<Duration>,
}

impl Fate {
    pub(crate) fn of(authority: &Arc<str>) -> Self {
        Self { authority: Arc::clone(authority), ..Self::default() }
    }

    /// Notes an event. Returns why, if it is the loss, a failed attempt, or the end.
    pub(crate) fn note(&mut self, event: &Event<'_>) -> Option<Error> {
        match event {
            Event::Welcome(_) => self.is_welcomed = true,
            Event::ConnectionLost { error } => return Some(self.lost(error)),
            Event::AttemptFailed { error, .. } => {
                let error = match error {
                    ClientError::NoWelcome { limit } => Error::no_answer(&self.authority, *limit),
                    error => Error::closed(Ending::lost(error, self.socket_error.take())),
                };
                self.failed_attempt = Some(Box::new(error.clone()));
                return Some(error);
            }
            Event::Resumed(_) | Event::NewSession(_) => {
                (self.lost, self.failed_attempt) = (None, None);
            }
            Event::Error(error) if error.room.is_none() => {
                // Before the welcome, a goodbye follows.
                let is_welcomed = self.is_welcomed && self.lost.is_none();
                if let Some(wait) = error.retry_after().filter(|_| !is_welcomed) {
                    self.retry_after = Some(wait);
                }
                if error.code.closes() {
                    self.goodbye = Some((error.code, error.text.to_string()));
                }
            }
            Event::Goodbye(goodbye) => {
                self.goodbye = Some((goodbye.code, goodbye.text.to_string()));
            }
            Event::Closed { error } => {
                let ending = self.ended(error.as_ref());
                return Some(Error::closed(ending));
            }
            _ => {}
        }
        None
    }

    /// An attempt to restore the connection came to none.
    pub(crate) fn attempt_failed(&mut self, error: Error) {
        self.failed_attempt = Some(Box::new(error));
    }

    /// Another attempt begins.
    pub(crate) fn begin_attempt(&mut self) {
        self.retry_after = None;
    }

    /// Returns whether the node has answered the first hello.
    #[cfg(feature = "poll")]
    pub(crate) fn is_welcomed(&self) -> bool {
        self.is_welcomed
    }

    /// Returns whether the connection is lost now.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    fn lost(&mut self, error: &ClientError) -> Error {
        // An error that announced a goodbye was not followed by one.
        (self.goodbye, self.retry_after) = (None, None);
        let ending = Ending::lost(error, self.socket_error.take());
        self.lost = Some(Box::new(ending.clone()));
        Error::closed(ending)
    }

    /// Returns the end of the connection, with this error of the session.
    pub(crate) fn ended(&mut self, error: Option<&ClientError>) -> Ending {
        let lost = self.lost.take().zip(self.failed_attempt.take());
        match (error, self.goodbye.take()) {
            (Some(_), _) if let Some((lost, last)) = lost => {
                Ending::GaveUp { lost, tried: self.tried, last }
            }
            (None | Some(ClientError::Ended { .. }), Some((code, text))) => {
                Ending::Goodbye { code, text, retry_after: self.retry_after }
            }
            (None, None) => Ending::Here,
            (Some(error), _) => Ending::lost(error, self.socket_error.take()),
        }
    }
}

impl Ending {
    /// The connection ended with this error. If that is the end of the transport, the socket's own
    /// error says more.
    pub(crate) fn lost(error: &ClientError, socket_error: Option<io::Error>) -> Self {
        match (error, socket_error) {
            (ClientError::Ended { .. }, Some(error)) => Self::Socket(Arc::new(error)),
            (ClientError::TurnedAway { code, text, retry_after }, _) => {
                Self::Goodbye { code: *code, text: text.clone(), retry_after: *retry_after }
            }
            (error, _) => Self::Broken(error.clone()),
        }
    }

    /// Why connecting has failed, if the connection ended so before the first welcome.
    pub(crate) fn unwelcome(&self) -> Error {
        match self {
            Self::Goodbye { code, text, retry_after } => {
                Error::turned_away(*code, text, *retry_after)
            }
            Self::Socket(_) | Self::Broken(ClientError::Ended { .. }) => {
                Error::closed(Self::Unwelcome(Box::new(self.clone())))
            }
            ending => Error::closed(ending.clone()),
        }
    }
}
