//! The calls of a host.

use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

use super::guard::guard;
use super::{Live, RoomCore};
use crate::context_state::Subject;
use crate::deferred::{Asker, DEFERRED_MAX, Fate};
use crate::frozen::{FreezeError, FrozenWriter, InFlight};
use crate::message::{AskId, Call};
use crate::{
    Admission, AnyRoom, Context, EndReason, Entrant, Error, LeaveReason, Link, Mail, Opened,
    Operation, Player, Reservation, Result, Room, RoomOutput, RoomSummary, Saves, SeatFor, Stage,
    Undone, Unsaved,
};

impl<R: Room> AnyRoom for RoomCore<R> {
    fn summary(&self) -> &RoomSummary {
        &self.context.summary
    }

    fn is_closed(&self) -> bool {
        self.is_over()
    }

    fn stage(&self) -> Stage {
        self.stage_now()
    }

    fn opened(&self) -> Option<Result<()>> {
        if let Some(why) = &self.why_not_open {
            return Some(Err(why.clone()));
        }
        match self.stage_now() {
            // What `create` asked of the host can still be refused.
            Stage::Open if self.opening.is_some() || !self.deferred.is_empty() => None,
            Stage::Open => Some(Ok(())),
            Stage::Closing | Stage::Finishing => Some(Err(closing())),
            Stage::Ended => Some(Err(EndReason::Closed.error("the room ended"))),
        }
    }

    fn undone(&self) -> Option<Undone> {
        self.undone
    }

    fn version(&self) -> u64 {
        self.context.version
    }

    fn pass_syncs(&mut self, syncs: u64) {
        if let Some(Live { tracker, .. }) = self.live.as_mut() {
            tracker.pass(syncs);
            self.context.version = tracker.version();
        }
    }

    fn tick_hz(&self) -> u32 {
        self.settings.tick_hz
    }

    fn sync_hz(&self) -> u32 {
        self.settings.sync_hz
    }

    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission> {
        if !self.begin(at, out) {
            return Err(self.why_over.clone().unwrap_or_else(ended));
        }
        if !self.is_open() {
            return Err(closing());
        }
        self.enter(entrant, out)
    }

    fn reserve(
        &mut self,
        at: Duration,
        who: SeatFor,
        wait: Duration,
        out: &mut dyn RoomOutput,
    ) -> Result<Reservation> {
        if !self.begin(at, out) {
            return Err(ended());
        }
        if !self.is_open() {
            return Err(closing());
        }
        self.context.reserve_seat(who, wait)
    }

    fn leave(
        &mut self,
        at: Duration,
        player: PlayerId,
        why: LeaveReason,
        out: &mut dyn RoomOutput,
    ) {
        if !self.begin(at, out) {
            return;
        }
        let player = self.renumbered.remove(&player).unwrap_or(player);
        if self.waiting.remove(&player).is_some() {
            return;
        }
        let Some(player) = self.unseat(player) else { return };
        self.act(out, |room, cx| room.leave(&player, why, cx));
        self.settle(out);
    }

    fn lost(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            self.connect(player, false, out);
        }
    }

    fn returned(
        &mut self,
        at: Duration,
        player: PlayerId,
        away: Duration,
        out: &mut dyn RoomOutput,
    ) {
        if self.begin(at, out) {
            let away = away.min(Duration::from_millis(self.settings.grace_ms));
            let number = self.number_of(player);
            if self.seats.get(number).is_some_and(|seated| !seated.is_connected) {
                self.context.credit_rates(number, away);
            }
            self.connect(player, true, out);
        }
    }

    fn measured(
        &mut self,
        at: Duration,
        player: PlayerId,
        round_trip: Duration,
        out: &mut dyn RoomOutput,
    ) {
        if !self.begin(at, out) || self.settings.round_trip_ms == 0 {
            return;
        }
        let player = self.number_of(player);
        if self.seats.get(player).is_some_and(Player::is_connected) {
            self.context.round_trips.measured(player, round_trip);
        }
    }

    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
        out: &mut dyn RoomOutput,
    ) {
        if !self.begin(at, out) {
            return;
        }
        let is_open = self.is_open();
        let Self { live: Some(Live { state, .. }), seats, context, reply, .. } = self else {
            return;
        };
        let Some(player) = seats.get(player) else { return };
        if !is_open {
            if request.is_some() {
                out.error(player.link, request, &closing());
            }
            return;
        }
        reply.clear();
        let &Player { id, link, format, .. } = player;
        if let Some(request) = request {
            context.replies.begin(Asker::Player { id, link, request, format });
        }
        let call = Call { player, payload, format, reply };
        let done = guard(|| {
            R::dispatch(state, message, call, &mut Context::called_by(player, seats, context, out))
        });
        let is_deferred = matches!(&done, Ok(Err(error)) if error.is_deferred());
        let fate = request.map_or(Fate::Returned, |_| context.replies.end(is_deferred));
        match (done, fate) {
            (Ok(Ok(())), Fate::Returned) => {
                if let Some(request) = request {
                    out.reply(link, request, reply);
                }
            }
            (done, fate) => self.conclude(done, fate, link, request, out),
        }
        self.settle(out);
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        self.begin(at, out);
        self.deliver(mail, out);
        self.finish(out);
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        if self.begin(at, out) && self.is_open() && self.opening.is_none() {
            self.context.tick = number;
            self.act(out, |room, cx| room.tick(cx));
            self.settle(out);
        }
    }

    fn wake_at(&self) -> Option<Duration> {
        if self.is_over() {
            return None;
        }
        if self.has_failed() || !self.deferred.is_empty() {
            return Some(self.context.now);
        }
        let save = self.save_due_at();
        if let Some(ending) = &self.ending {
            return save.into_iter().chain([ending.by]).min();
        }
        let timers = self.context.timers.next_due().filter(|_| self.opening.is_none());
        let replies = self.context.replies.next_due();
        let reserved = self.context.reserved.next_due();
        let due = [timers, self.empty_until(), self.joins_expire_at(), replies, reserved, save];
        due.into_iter().flatten().min()
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) {
            return;
        }
        if let Some(ending) = &self.ending {
            if ending.by <= self.context.now {
                self.part_now(out);
                self.give_up_waiting(out);
            } else {
                self.save_if_due(out);
                self.finish(out);
            }
            return;
        }
        self.save_if_due(out);
        self.free_reserved_seats();
        self.expire_joins(out);
        self.expire_replies(out);
        while self.is_open()
            && self.opening.is_none()
            && let Some(message) = self.context.timers.take_due(self.context.now)
        {
            self.internal_message_or_log(&message, out);
        }
        if self.empty_until().is_some_and(|until| until <= self.context.now) {
            self.begin_closing(EndReason::Empty, "the room had no players", out);
        }
    }

    fn wants_sync(&self) -> bool {
        self.is_open() && self.context.wants_sync
    }

    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) || self.stage_now() == Stage::Finishing {
            return;
        }
        self.context.wants_sync = false;
        let Some(Live { state, tracker, .. }) = self.live.as_mut() else { return };
        match guard(|| tracker.sync(state)) {
            Ok(()) => self.context.version = tracker.version(),
            Err(panic) => self.fail(&panic, out),
        }
    }

    fn reaches(&self, since: u64) -> bool {
        self.live.as_ref().is_none_or(|live| live.tracker.reaches(since))
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        self.write(body, |tracker, body| tracker.patch(player, since, format, body))
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.write(body, |tracker, body| {
            tracker.snapshot(player, format, body);
            true
        });
    }

    fn may_leave_out(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.tracker.may_leave_out())
    }

    fn left_out(&self, player: PlayerId) -> u64 {
        self.live.as_ref().map_or(0, |live| live.tracker.left_out(player))
    }

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        let mut digest = None;
        self.write(&mut Vec::new(), |tracker, _| {
            digest = Some(tracker.digest(player, format));
            true
        });
        digest
    }

    fn players(&self, wanted: &mut dyn FnMut(&Player) -> bool) -> Vec<Player> {
        self.seats.iter().filter(|player| wanted(player)).cloned().collect()
    }

    fn whole(&self, out: &mut Vec<u8>) -> bool {
        self.write_whole(out)
    }

    fn save(&mut self, out: &mut Vec<u8>) -> bool {
        self.write_save(out)
    }

    fn saves(&self) -> Option<Saves> {
        self.saving.as_ref().map(|saving| saving.saves().clone())
    }

    fn take_unsaved(&mut self) -> Option<Box<Unsaved>> {
        self.take_left()
    }

    fn asks(&self) -> Vec<u64> {
        self.context.asks.keys().copied().collect()
    }

    fn state_hash(&self) -> Option<u64> {
        self.hash_now()
    }

    fn capture(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        self.capture_now(form)
    }

    fn operate(
        &mut self,
        at: Duration,
        operation: Operation,
        out: &mut dyn RoomOutput,
    ) -> Result<()> {
        self.operate_now(at, operation, out)
    }

    fn resumed(&mut self, at: Duration, paused: Duration, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            for player in self.seats.iter() {
                self.context.credit_rates(player.id, paused);
            }
        }
    }

    fn reopened(&mut self, at: Duration, opened: Opened) -> bool {
        self.context.now = self.context.now.max(at);
        self.take_over_save(opened)
    }

    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        if why == EndReason::Moved {
            return self.move_away(text, out);
        }
        if self.begin(at, out) {
            self.begin_closing(why, text, out);
            self.settle(out);
        }
    }

    fn freeze(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        self.freeze_now(at, form, out)
    }

    fn freeze_after(
        &mut self,
        at: Duration,
        why: &Error,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        self.freeze_after_now(at, why, form, out)
    }

    fn in_flight(&self) -> InFlight {
        self.work_in_flight()
    }

    fn moved(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.moved_now(at, out);
    }

    fn part(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            self.part_now(out);
        }
    }

    fn abandon(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            self.abandon_now(out);
        }
    }
}

impl<R: Room> RoomCore<R> {
    /// The number of a player, who may have waited for the save under another one.
    fn number_of(&self, player: PlayerId) -> PlayerId {
        self.renumbered.get(&player).copied().unwrap_or(player)
    }

    /// Handles the outcome of a message that has no reply, or none yet.
    #[inline(never)]
    fn conclude(
        &mut self,
        done: Result<Result<()>, String>,
        fate: Fate,
        link: Link,
        request: Option<RequestNumber>,
        out: &mut dyn RoomOutput,
    ) {
        match (done, fate) {
            (Err(panic), _) => self.fail(&panic, out),
            (Ok(_), Fate::Deferred) | (Ok(Ok(())), Fate::Returned) => {}
            (Ok(_), Fate::Refused) => out.error(link, request, &too_many_deferred()),
            (Ok(Err(error)), Fate::Returned) => {
                if request.is_some() || !error.is_deferred() {
                    out.error(link, request, &error);
                }
            }
        }
    }

    /// A player has lost the connection, or has one again.
    pub(super) fn connect(
        &mut self,
        player: PlayerId,
        is_connected: bool,
        out: &mut dyn RoomOutput,
    ) {
        let player = self.number_of(player);
        // As long as they wait to join, the room does not hear of it.
        if let Some(waiting) = self.waiting.get_mut(&player) {
            waiting.player.is_connected = is_connected;
            return;
        }
        let Some(seated) = self.seats.get_mut(player) else { return };
        if std::mem::replace(&mut seated.is_connected, is_connected) == is_connected {
            return;
        }
        let player = seated.clone();
        self.context.round_trips.forget(player.id);
        if self.context.fork.is_some() {
            self.empty_since = self.is_deserted().then_some(self.context.now);
        }
        self.act(out, |room, cx| {
            if is_connected {
                room.returned(&player, cx);
            } else {
                room.lost(&player, cx);
            }
        });
        self.settle(out);
    }

    pub(super) fn deliver(&mut self, mail: Mail, out: &mut dyn RoomOutput) {
        let mail = match mail {
            Mail::Asked { .. } | Mail::Told { .. } => match self.keep_mail(mail) {
                Ok(()) => return,
                Err(mail) => mail,
            },
            _ => mail,
        };
        match mail {
            Mail::Asked { from, ask, message } => {
                let to = from.clone();
                let reply = match self.stage_now() {
                    Stage::Open if self.opening.is_some() => Err(full()),
                    Stage::Open => {
                        self.context.sender.clone_from(&from);
                        self.context.replies.begin(Asker::Room { from, ask });
                        let reply = self.internal_message(&message, out);
                        let is_deferred = matches!(&reply, Err(error) if error.is_deferred());
                        match self.context.replies.end(is_deferred) {
                            Fate::Deferred => return,
                            Fate::Refused => Err(too_many_deferred()),
                            Fate::Returned => reply,
                        }
                    }
                    Stage::Closing | Stage::Finishing => Err(closing()),
                    Stage::Ended => Err(ended()),
                };
                let to = to.as_deref().map_or("", |to| &to.room_id);
                out.post(to, Mail::Answered { ask, reply });
            }
            Mail::Told { from, message } => {
                if self.is_open() && self.opening.is_none() {
                    self.context.sender = from;
                    self.internal_message_or_log(&message, out);
                }
            }
            _ if self.is_over() => {}
            Mail::Done { task, message } if self.is_load(task) => self.loaded(Some(message), out),
            Mail::Panicked { task } if self.is_load(task) => self.loaded(None, out),
            Mail::Done { task, message } if self.is_reopening(task) => {
                self.reopening_ended(Some(message), out);
            }
            Mail::Panicked { task } if self.is_reopening(task) => self.reopening_ended(None, out),
            Mail::Saved { save, outcome } => self.saved(save, outcome, out),
            Mail::Done { task, message } => {
                if self.context.tasks.remove(&task).is_none() {
                    return;
                }
                if let Some(number) = self.context.replying.remove(&task) {
                    return self.send_packed(number, &message.payload, out);
                }
                match self.context.holds.remove(&task) {
                    Some(subject) => self.held_message(subject, &message, out),
                    None => self.internal_message_or_log(&message, out),
                }
            }
            Mail::Panicked { task } => {
                let Some(name) = self.context.tasks.remove(&task) else { return };
                let text = format!("the background task that ends with {name} panicked");
                match self.context.holds.remove(&task) {
                    Some(Subject::Player(id)) => self.refuse_after_panic(id, &text, out),
                    Some(Subject::Room) | None => self.fail(&text, out),
                }
            }
            Mail::Answered { ask, reply } => {
                if let Some(name) = self.context.asks.remove(&ask) {
                    self.act(out, |room, cx| R::answer(room, name, AskId(ask), reply, cx));
                    self.settle(out);
                }
            }
        }
    }
}

fn ended() -> Error {
    Error::new(ErrorCode::RoomNotFound, "the room has ended")
}

fn closing() -> Error {
    Error::new(ErrorCode::RoomClosed, "the room is about to end")
}

fn full() -> Error {
    Error::new(ErrorCode::Busy, "the room is not open yet, and too many messages wait for it")
}

fn too_many_deferred() -> Error {
    let text = format!("a room has at most {DEFERRED_MAX} deferred replies");
    Error::new(ErrorCode::Limit, text)
}
