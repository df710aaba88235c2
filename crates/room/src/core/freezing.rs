//! A room as bytes, and the end of work that can't go on elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::__rt::Save;
use playfield_state::{Bytes, describe_type, save_kept};

use super::guard::guard;
use super::joining::Waiting;
use super::saving::Saving;
use super::{Live, RoomCore};
use crate::context::replies::send_reply;
use crate::context_state::Subject;
use crate::frozen::parts::{self, Part, Time};
use crate::frozen::{FreezeError, FrozenWriter, InFlight};
use crate::{
    AnyRoom as _, Durability, Error, InternalMessage, Player, Room, RoomOutput, RoomSummary,
};

/// Work that was given up may be followed by other work, for so many times.
const ROUNDS: usize = 4;

impl<R: Room> RoomCore<R> {
    /// Writes the room as it is after a sync.
    pub(super) fn freeze_now(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        if !self.begin(at, out) || !self.is_open() {
            return Err(FreezeError::Ended);
        }
        let work = self.work_in_flight();
        if !work.is_empty() {
            return Err(FreezeError::Busy(work));
        }
        self.sync(at, out);
        if let Err(panic) = self.write_room(form, false) {
            self.fail(&panic, out);
            return Err(FreezeError::Ended);
        }
        if self.live.is_none() {
            return Err(FreezeError::Ended);
        }
        if let Some(saving) = &mut self.saving {
            saving.disown(self.context.now);
        }
        Ok(())
    }

    /// Writes the room as it is, with the work in flight, from which a replay goes on.
    pub(super) fn capture_now(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        if !self.is_open() || self.has_failed() {
            return Err(FreezeError::Ended);
        }
        let work = self.work_in_flight();
        let is_held = work.is_opening || self.context.holds.values().any(|of| *of == Subject::Room);
        let is_asked = || self.saving.as_ref().is_some_and(|saving| !saving.is_captured());
        if is_held || !self.deferred.is_empty() || is_asked() {
            return Err(FreezeError::Busy(work));
        }
        self.write_room(form, true).map_err(|panic| {
            self.failure = Some(panic);
            FreezeError::Ended
        })
    }

    /// Writes the state and all other parts. The error is the text of a panic.
    fn write_room(&mut self, form: &mut FrozenWriter, with_work: bool) -> Result<(), String> {
        let mark = self.mark();
        let Some(Live { state, tracker, kept }) = &mut self.live else { return Ok(()) };
        let (mut save, mut slots) = (Vec::new(), Vec::new());
        let is_unsynced = form.is_unsynced;
        // The comparison of custom keys is user code.
        guard(|| {
            save_kept(state, mark, kept, &mut save);
            match is_unsynced {
                true => slots.extend(parts::NO_SLOTS),
                false => tracker.put_slots(&mut slots),
            }
        })?;
        self.write_parts(form, with_work);
        form.part(Part::State, |out| out.append(&mut save));
        form.part(Part::Slots, |out| out.append(&mut slots));
        Ok(())
    }

    /// The work in flight.
    fn pending(&self, message: impl FnMut(&InternalMessage) -> parts::Message) -> parts::Pending {
        let tasks = self.context.tasks.iter().map(|(task, name)| (*task, (*name).to_owned()));
        parts::Pending {
            tasks: tasks.collect(),
            replying: self.context.replying.clone(),
            save: self.saving.as_ref().and_then(|saving| saving.capture(message)),
        }
    }

    pub(super) fn freeze_after_now(
        &mut self,
        at: Duration,
        why: &Error,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        for _ in 0..ROUNDS {
            match self.freeze_now(at, form, out) {
                Err(FreezeError::Busy(_)) => self.give_up(why, out),
                done => return done,
            }
        }
        self.freeze_now(at, form, out)
    }

    /// Returns the work that can't go on elsewhere.
    pub(super) fn work_in_flight(&self) -> InFlight {
        let holds = &self.context.holds;
        let tasks = self.context.tasks.iter().filter(|(task, _)| !holds.contains_key(task));
        InFlight {
            is_opening: self.opening.is_some() || self.unborn.is_some(),
            joins: self.waiting.len(),
            tasks: tasks.map(|(_, name)| *name).collect(),
            is_saving: self.saving.as_ref().is_some_and(Saving::is_saving),
        }
    }

    /// Ends the work in flight: its results will not be known.
    fn give_up(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        self.refuse_all(why, out);
        if !self.is_open() {
            return;
        }
        for (task, name) in std::mem::take(&mut self.context.tasks) {
            let is_hold = self.context.holds.remove(&task).is_some();
            match self.context.replying.remove(&task) {
                Some(number) => {
                    if let Some(to) = self.context.replies.remove(number) {
                        send_reply(&to, Err(why.clone()), out);
                    }
                }
                None if is_hold => {}
                None => self.context.given_up.push(name),
            }
        }
        let told = self.saving.as_mut().map(|saving| saving.give_up(why)).unwrap_or_default();
        self.context.saves_asked -= told.len();
        for message in told {
            self.internal_message_or_log(&message, out);
        }
    }

    /// Tells the room that it was frozen, and goes on.
    pub(super) fn moved_now(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) || !self.is_open() {
            return;
        }
        if std::mem::take(&mut self.replays) {
            // Nothing was lost, and its save is open: it only lacks what keyframes leave out.
            if <R as Save>::SKIPS {
                self.act(out, |room, cx| room.moved(cx));
                self.follow_effects(out);
            }
            return;
        }
        self.act(out, |room, cx| room.moved(cx));
        self.context.given_up.clear();
        self.note_changes_if_any();
        self.follow_effects(out);
        // The room opens its save again.
        self.save_if_due(out);
    }

    /// Writes all parts but the state.
    fn write_parts(&self, form: &mut FrozenWriter, with_work: bool) {
        let Self { context, settings, seats, .. } = self;
        let RoomSummary { locked, private, key, is_code, metadata, .. } = &context.summary;
        form.value(
            Part::About,
            &parts::About {
                id: context.own.room_id.clone(),
                room_type: context.own.room_type.clone(),
                key: key.as_deref().map(str::to_owned),
                is_code: *is_code,
                private: *private,
                locked: *locked,
                metadata: metadata.clone(),
                creator: (&context.creator).into(),
            },
        );
        form.value(Part::Settings, &parts::Settings::from(*settings));
        // Without slots, a room goes on with the next version.
        let version = context.version - u64::from(form.is_unsynced);
        form.value(
            Part::Clock,
            &parts::Clock {
                now: Time(context.now),
                tick: context.tick,
                version,
                empty_since: self.empty_since.map(Time),
            },
        );
        form.value(Part::Random, &context.freeze_random());
        let mut messages = Messages::<R>::default();
        let timers = context.timers.freeze(|message| messages.note(message));
        let saving = self.saving.as_ref();
        let saving = saving.map(|saving| saving.freeze(|message| messages.note(message)));
        let pending = with_work.then(|| self.pending(|message| messages.note(message)));
        form.value(Part::Messages, &messages.types);
        form.value(Part::Timers, &timers);
        form.value(
            Part::Seats,
            &parts::Seats {
                next_player: self.next_player,
                players: seats.iter().map(frozen_player).collect(),
                renumbered: self.renumbered.clone(),
            },
        );
        form.value(Part::Reserved, &context.reserved.freeze());
        form.value(Part::Replies, &context.replies.freeze());
        let asks = context.asks.iter().map(|(number, name)| (*number, (*name).to_owned()));
        form.value(
            Part::Work,
            &parts::Work {
                last: context.next_number,
                asks: asks.collect(),
                given_up: context.given_up.iter().map(|name| (*name).to_owned()).collect(),
            },
        );
        form.value(Part::Rates, &context.freeze_rates());
        if let Some(saving) = saving {
            form.value(Part::Saving, &saving);
        }
        let is_journaled = settings.durability == Durability::Journal;
        if let Some(saving) = self.saving.as_ref().filter(|_| is_journaled) {
            form.value(Part::Saves, &saving.freeze_saves());
        }
        if let Some(fork) = &context.fork {
            form.value(Part::Fork, fork);
        }
        if let Some(pending) = pending {
            form.value(Part::Pending, &pending);
            if let Some(held) = self.held() {
                form.value(Part::Held, &held);
            }
        }
    }

    /// The players who wait to join, and the opening of the save, if there are any.
    fn held(&self) -> Option<parts::Held> {
        let reopening = self.saving.as_ref().and_then(Saving::reopening);
        let holds = self.context.holds.iter().filter_map(|(task, of)| match of {
            Subject::Player(player) => Some((*task, *player)),
            Subject::Room => None,
        });
        let held = parts::Held {
            joins: self.waiting.values().map(Waiting::freeze).collect(),
            holds: holds.collect(),
            reopening,
        };
        let is_any = !held.joins.is_empty() || !held.holds.is_empty() || reopening.is_some();
        is_any.then_some(held)
    }
}

pub(super) fn frozen_player(player: &Player) -> parts::Player {
    let Player { id, name, user, claims, seat, link: _, format, is_connected } = player;
    parts::Player {
        id: *id,
        name: name.clone(),
        user: user.clone(),
        claims: claims.to_json(),
        seat: seat.clone(),
        format: format.number(),
        is_connected: *is_connected,
    }
}

/// The types of the messages that wait in a room.
struct Messages<R> {
    places: BTreeMap<String, u32>,
    types: Vec<parts::MessageType>,
    of: std::marker::PhantomData<fn() -> R>,
}

impl<R> Default for Messages<R> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), types: Vec::new(), of: std::marker::PhantomData }
    }
}

impl<R: Room> Messages<R> {
    fn note(&mut self, message: &InternalMessage) -> parts::Message {
        let InternalMessage { name, payload } = message;
        let of = self.places.get(&**name).copied().unwrap_or_else(|| {
            let of = R::internal_type(name).map(|of| describe_type(&of)).unwrap_or_default();
            self.types.push(parts::MessageType { name: name.to_string(), of: Bytes(of) });
            let place = self.types.len() as u32 - 1;
            self.places.insert(name.to_string(), place);
            place
        });
        parts::Message { of, payload: Bytes(payload.clone()) }
    }
}
