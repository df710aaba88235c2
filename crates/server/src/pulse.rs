//! Signs of life of the node's threads, for the [watchdog](crate::watchdog).

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{Method, Uri};
use playfield_room::Undone;

use crate::stats::Published;

/// A thread's heartbeat.
#[derive(Default)]
pub(crate) struct Pulse {
    /// The start of the turn, in milliseconds since the node started, plus 1; 0 between turns. For
    /// the control thread, when it was asked for a sign of life that it has not given.
    pub(crate) turn_began_ms: AtomicU64,
    /// The user code that was called last in this turn, as an encoded [`Called`].
    called: AtomicU32,
    /// The thread was reported as stuck.
    pub(crate) stuck: AtomicBool,
    /// The shard's thread has panicked.
    pub(crate) failed: AtomicBool,
    /// Rooms that the shutdown dropped before they had ended, and how many of them were not saved.
    pub(crate) rooms_undone: AtomicU64,
    pub(crate) rooms_unsaved: AtomicU64,
}

/// The user code that a thread called last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Nothing,
    /// A room of the type with this number.
    Room(u16),
    /// The service with this number.
    Service(u16),
    /// The authenticator.
    Authenticator,
    /// The fleet.
    Fleet,
    /// A handler of HTTP requests.
    Handler,
    /// Background work of a room or of the program.
    Task,
}

/// The first number for services; room types have the numbers below, from 1.
const SERVICES: u32 = 1 << 16;
/// The first number past those for services.
const OTHERS: u32 = 1 << 17;

impl Called {
    #[inline]
    fn encode(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Room(number) => u32::from(number) + 1,
            Self::Service(number) => SERVICES + u32::from(number),
            Self::Authenticator => OTHERS,
            Self::Fleet => OTHERS + 1,
            Self::Handler => OTHERS + 2,
            Self::Task => OTHERS + 3,
        }
    }

    fn decode(code: u32) -> Self {
        let others = [Self::Authenticator, Self::Fleet, Self::Handler, Self::Task];
        match code {
            0 => Self::Nothing,
            code if code < SERVICES => Self::Room((code - 1) as u16),
            code if code < OTHERS => Self::Service((code - SERVICES) as u16),
            code => others.get((code - OTHERS) as usize).copied().unwrap_or(Self::Nothing),
        }
    }
}

impl Pulse {
    /// This code is about to be called.
    #[inline]
    pub(crate) fn calls(&self, called: Called) {
        self.called.store(called.encode(), Ordering::Relaxed);
    }

    /// The user code that was called last in this turn.
    pub(crate) fn called(&self) -> Called {
        Called::decode(self.called.load(Ordering::Relaxed))
    }

    /// The turn is over, and what was called in it is forgotten.
    pub(crate) fn rest(&self) {
        self.turn_began_ms.store(0, Ordering::Relaxed);
        self.calls(Called::Nothing);
    }

    /// Returns whether the thread is neither stuck nor gone.
    pub(crate) fn is_well(&self) -> bool {
        !self.stuck.load(Ordering::Relaxed) && !self.failed.load(Ordering::Relaxed)
    }
}

/// A shard's end of its [`Pulse`].
pub(crate) struct Watch(pub(crate) Arc<Published>);

impl Watch {
    /// A room of this type is about to be called.
    #[inline]
    pub(crate) fn enters(&self, room_type: u16) {
        self.calls(Called::Room(room_type));
    }

    /// This code is about to be called.
    #[inline]
    pub(crate) fn calls(&self, called: Called) {
        self.0.pulse.calls(called);
    }

    /// A room was dropped before it had ended.
    pub(crate) fn leaves(&self, undone: Undone) {
        let pulse = &self.0.pulse;
        pulse.rooms_undone.fetch_add(1, Ordering::Relaxed);
        pulse.rooms_unsaved.fetch_add(u64::from(undone == Undone::Save), Ordering::Relaxed);
    }
}

/// The heartbeat of the control thread.
#[derive(Default)]
pub(crate) struct ControlPulse {
    pub(crate) pulse: Pulse,
    /// The request whose handler was called last.
    request: Mutex<Option<(Method, Uri)>>,
}

impl ControlPulse {
    /// The handler of this request is about to be called.
    pub(crate) fn calls_handler(&self, request: &(Method, Uri)) {
        *self.request.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.clone());
        self.pulse.calls(Called::Handler);
    }

    /// The request whose handler was called last, as text.
    pub(crate) fn request(&self) -> String {
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |(method, uri): &(Method, Uri)| format!("{method} {}", uri.path());
        request.as_ref().map(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Called, Pulse};

    #[test]
    fn it_reports_whose_code_was_called_last() {
        let pulse = Pulse::default();
        assert_eq!(pulse.called(), Called::Nothing);
        let numbered = [0, 1, u16::MAX - 1].map(|at| [Called::Room(at), Called::Service(at)]);
        let others = [Called::Authenticator, Called::Fleet, Called::Handler, Called::Task];
        for called in numbered.concat().into_iter().chain(others) {
            pulse.calls(called);
            assert_eq!(pulse.called(), called);
        }
        pulse.rest();
        assert_eq!(pulse.called(), Called::Nothing);
    }
}
