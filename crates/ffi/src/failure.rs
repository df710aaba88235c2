//! Error codes, and the message of the last error of each thread.

use std::cell::RefCell;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use playfield_client::Error;

use crate::runtime::is_forked;
use crate::text::PfText;

/// What a function returns: 0, or why it failed. `pf_error_message` says more.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PfCode {
    /// Done.
    #[default]
    Ok = 0,
    /// A pointer is null that must not be.
    Null = 1,
    /// A handle was never given out, is 0, or is of another kind.
    Handle = 2,
    /// What the handle named was freed.
    Freed = 3,
    /// An argument is invalid: not UTF-8, not JSON, not a URL, out of its range.
    Argument = 4,
    /// The call does not make sense now, such as a join before the connection is there.
    Usage = 5,
    /// Another thread is in `pf_client_next` of the same client.
    InUse = 6,
    /// A value has no such member or element.
    NotFound = 7,
    /// A value is of another kind, or does not fit the type that was asked for.
    Type = 8,
    /// The state has changed since the value was read, or the event it belongs to is over.
    Stale = 9,
    /// The connection has ended.
    Closed = 10,
    /// The node can't be reached, or did not answer in time.
    Unreachable = 11,
    /// The node's TLS certificate is not accepted.
    Untrusted = 12,
    /// The node or the room refused; the event's `reason` says why.
    Refused = 13,
    /// This client is not in the room.
    Left = 14,
    /// The answer was lost with the connection: it is unknown whether it was done.
    Lost = 15,
    /// Events or changes were missed.
    Missed = 16,
    /// The node's types do not fit.
    Incompatible = 17,
    /// The node did not answer in time.
    TimedOut = 18,
    /// Too much waits: try again when some of it is done.
    Busy = 19,
    /// The program gave no token.
    NoToken = 20,
    /// Something else failed; the message says what.
    Failed = 21,
    /// The library has a bug, and has stopped at it. The handle is still valid.
    Panic = 22,
}

/// Why a call fails.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: PfCode,
    pub(crate) message: String,
    /// The protocol's name of the error, such as `room_full`.
    pub(crate) reason: String,
    /// The node's own text.
    pub(crate) said: String,
    pub(crate) retry_after_ms: u64,
}

impl Failure {
    pub(crate) fn new(code: PfCode, message: impl Into<String>) -> Self {
        let (reason, said) = (String::new(), String::new());
        Self { code, message: message.into(), reason, said, retry_after_ms: 0 }
    }

    /// The connection has ended.
    pub(crate) fn closed() -> Self {
        Self::new(PfCode::Closed, "the connection has ended")
    }

    pub(crate) fn argument(what: &str, why: impl Display) -> Self {
        Self::new(PfCode::Argument, format!("{what} is invalid: {why}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if error.is_refused() {
            PfCode::Refused
        } else if error.is_left() {
            PfCode::Left
        } else if error.is_lost() {
            PfCode::Lost
        } else if error.is_missed() {
            PfCode::Missed
        } else if error.is_incompatible() {
            PfCode::Incompatible
        } else if error.is_untrusted() {
            PfCode::Untrusted
        } else if error.is_token_missing() {
            PfCode::NoToken
        } else if error.is_timed_out() {
            PfCode::TimedOut
        } else if error.is_unreachable() {
            PfCode::Unreachable
        } else if error.is_closed() {
            PfCode::Closed
        } else if error.code().is_some_and(|code| code == playfield_client::ErrorCode::Busy) {
            PfCode::Busy
        } else {
            PfCode::Failed
        };
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        let reason = error.code().map(|code| code.name().into_owned()).unwrap_or_default();
        let retry_after_ms = error.retry_after().map_or(0, crate::text::milliseconds);
        Self { code, message, reason, said: error.text().to_owned(), retry_after_ms }
    }
}

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of an exported function: an error becomes its code, and a panic stops here.
pub(crate) fn call(body: impl FnOnce() -> Outcome) -> PfCode {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if is_forked() {
            let text =
                "this process was forked from one that uses the library: only that can use it";
            return Err(Failure::new(PfCode::Usage, text));
        }
        body()
    }));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "a panic without a text".to_owned());
        Err(Failure::new(PfCode::Panic, format!("the library has a bug: {text}")))
    });
    match outcome {
        Ok(()) => PfCode::Ok,
        Err(Failure { code, message, .. }) => {
            // An error means that the thread is about to end: nobody can ask for the message.
            let _ = LAST.try_with(|last| *last.borrow_mut() = message);
            code
        }
    }
}

/// The message of the last call on this thread that failed: what was wrong, with which value, and
/// what to do. Empty if none has. Valid until the next call on this thread that fails.
#[unsafe(no_mangle)]
pub extern "C" fn pf_error_message() -> PfText {
    LAST.try_with(|last| PfText::of(&last.borrow())).unwrap_or_default()
}
