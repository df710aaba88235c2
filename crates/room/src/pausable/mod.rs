//! A room that stands still for a while.

mod any;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use playfield_wire::ErrorCode;

use crate::recording::{Input, Recorder};
use crate::{AnyRoom, Error, Mail, RoomOutput};

/// The most messages of others than players that wait for a room.
const MAIL_WAITING_MAX: usize = 1_024;

/// The time after which a client may ask again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The reason that a room stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The journal can't be written.
    Journal,
    /// The node can't tell whether it still serves the room's key.
    Cluster,
}

impl Pause {
    /// The error of a request that can't wait.
    #[must_use]
    pub fn error(self) -> Error {
        let (text, retry_after) = match self {
            Self::Journal => ("the journal can't be written now; try again", None),
            Self::Cluster => {
                let text = "the room stands still until its node has confirmed in the cluster \
                            that it serves the room's key; try again";
                (text, Some(RETRY_AFTER))
            }
        };
        let error = Error::new(ErrorCode::Busy, text);
        retry_after.map_or(error.clone(), |after| error.with_retry_after(after))
    }
}

/// A room around another one, which is not called while it stands still. Ticks, syncs and timers
/// are left out then, joins and reservations are refused with `busy`, and all else waits. When the
/// room goes on, it is first told what has waited, in order.
pub struct Pausable {
    /// `None` before the room is put in, and after it is taken out.
    room: Option<Box<dyn AnyRoom>>,
    /// The journal of the room can't be written.
    journal: Option<Arc<AtomicBool>>,
    /// The host has paused the room.
    paused: bool,
    /// The time at which the room was first not called.
    since: Option<Duration>,
    /// The calls that wait.
    waiting: VecDeque<Input<'static>>,
    /// The number of messages among them that are none of players.
    mail: usize,
}

impl Pausable {
    /// A room that stands still while its journal is stalled.
    #[must_use]
    pub fn journaled(room: Recorder, is_stalled: Arc<AtomicBool>) -> Self {
        Self { room: Some(Box::new(room)), journal: Some(is_stalled), ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            room: None,
            journal: None,
            paused: false,
            since: None,
            waiting: VecDeque::new(),
            mail: 0,
        }
    }

    /// Pauses a room, until it is [resumed](Self::resume).
    pub fn pause(room: &mut Box<dyn AnyRoom>, at: Duration) {
        if room.pausable().is_none() {
            let inner = std::mem::replace(room, Box::new(Self::empty()));
            if let Some(outer) = room.pausable() {
                outer.room = Some(inner);
            }
        }
        if let Some(outer) = room.pausable() {
            outer.paused = true;
            outer.since.get_or_insert(at);
        }
    }

    /// Tells a paused room all that has waited: it goes on. [`unwrap`](Self::unwrap) follows.
    pub fn resume(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.paused = false;
        self.passes(at, out);
    }

    /// Takes a room out of its wrapper, if that has no further use.
    pub fn unwrap(room: &mut Box<dyn AnyRoom>) {
        let outer = room.pausable().filter(|outer| outer.journal.is_none() && !outer.paused);
        if let Some(inner) = outer.and_then(|outer| outer.room.take()) {
            *room = inner;
        }
    }

    /// Returns why the room stands still, if it does.
    #[must_use]
    pub fn why(&self) -> Option<Pause> {
        if self.paused {
            return Some(Pause::Cluster);
        }
        let is_stalled = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        self.journal.as_ref().is_some_and(is_stalled).then_some(Pause::Journal)
    }

    fn room(&self) -> &dyn AnyRoom {
        &**self.room.as_ref().expect("the wrapper has a room but for a moment")
    }

    fn room_mut(&mut self) -> &mut dyn AnyRoom {
        &mut **self.room.as_mut().expect("the wrapper has a room but for a moment")
    }

    /// Calls the room, unless it stands still: then the call waits.
    fn act(&mut self, at: Duration, input: Input<'static>, out: &mut dyn RoomOutput) {
        match self.passes(at, out) {
            true => drop(input.apply(at, self.room_mut(), out)),
            false => self.waiting.push_back(input),
        }
    }

    /// Returns whether the room may be called. What has waited until then comes first.
    fn passes(&mut self, at: Duration, out: &mut dyn RoomOutput) -> bool {
        self.may_pass(at, out).is_ok()
    }

    fn may_pass(&mut self, at: Duration, out: &mut dyn RoomOutput) -> Result<(), Error> {
        if let Some(why) = self.why() {
            self.since.get_or_insert(at);
            return Err(why.error());
        }
        if let Some(since) = self.since.take() {
            self.mail = 0;
            let waiting = std::mem::take(&mut self.waiting);
            let room = self.room_mut();
            room.resumed(at, at.saturating_sub(since), out);
            for input in waiting {
                input.apply(at, room, out);
            }
        }
        Ok(())
    }

    /// Gives back mail that may wait. Refuses all other.
    fn bounded(&mut self, mail: Mail, why: Pause, out: &mut dyn RoomOutput) -> Option<Mail> {
        let is_told = matches!(mail, Mail::Told { .. } | Mail::Asked { .. });
        if is_told && self.mail < MAIL_WAITING_MAX {
            self.mail += 1;
        } else if is_told {
            refuse(mail, why, out);
            return None;
        }
        Some(mail)
    }

    /// Drops what waits for a room that ends.
    fn forget(&mut self, out: &mut dyn RoomOutput) {
        let why = self.why().unwrap_or(Pause::Cluster);
        for input in std::mem::take(&mut self.waiting) {
            if let Input::Mail(mail) = input {
                refuse(mail.into_owned(), why, out);
            }
        }
    }
}

/// Answers mail that is dropped, if it asks for an answer.
fn refuse(mail: Mail, why: Pause, out: &mut dyn RoomOutput) {
    if let Mail::Asked { from, ask, .. } = mail {
        let to = from.as_ref().map_or("", |from| from.room_id.as_str());
        out.post(to, Mail::Answered { ask, reply: Err(why.error()) });
    }
}
