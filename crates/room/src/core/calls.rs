//! What a host calls.

use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

use super::guard::guard;
use super::{Live, RoomCore};
use crate::message::{AskId, Call};
use crate::{
    AnyRoom, Context, EndReason, Entrant, Error, LeaveReason, Mail, Player, Reservation, Result,
    Room, RoomOutput, RoomSummary, SeatFor, Stage,
};

impl<R: Room> AnyRoom for RoomCore<R> {
    fn summary(&self) -> &RoomSummary {
        &self.context.summary
    }

    fn is_closed(&self) -> bool {
        self.live.is_none()
    }

    fn stage(&self) -> Stage {
        self.stage_now()
    }

    fn version(&self) -> u64 {
        self.context.version
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
    ) -> Result<PlayerId> {
        if !self.begin(at, out) {
            return Err(ended());
        }
        if !self.is_open() {
            return Err(closing());
        }
        self.admit(&entrant)?;
        let id = PlayerId(self.next_player);
        // Not used again even if the room refuses: its code may have stored something under it.
        self.next_player += 1;
        let Entrant { link, format, name, user, .. } = entrant;
        self.seats.insert(id, Player { id, name, user, link, format });
        self.context.summary.players += 1;
        let was_empty = self.empty_since.take();
        self.joining = Some(id);
        let joined = self.act(out, |room, seats, cx| match seats.get(&id) {
            Some(player) => room.join(player, cx),
            None => Ok(()),
        });
        if let Some(Err(error)) = joined {
            self.unseat(id);
            self.empty_since = self.empty_since.and(was_empty);
            self.join_refusal = Some(error);
        }
        self.settle(out);
        self.joining = None;
        self.join_refusal.take().map_or(Ok(id), Err)
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
        let Some(player) = self.unseat(player) else { return };
        self.act(out, |room, _, cx| room.leave(&player, why, cx));
        self.settle(out);
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
        let Some(player) = seats.get(&player) else { return };
        if !is_open {
            if request.is_some() {
                out.error(player.link, request, &closing());
            }
            return;
        }
        reply.clear();
        let call = Call { player, payload, format: player.format, reply };
        match (
            guard(|| R::dispatch(state, message, call, &mut Context::new(seats, context, out))),
            request,
        ) {
            (Ok(Ok(())), Some(request)) => out.reply(player.link, request, reply),
            (Ok(Ok(())), None) => {}
            (Ok(Err(error)), request) => out.error(player.link, request, &error),
            (Err(panic), _) => self.fail(&panic, out),
        }
        self.settle(out);
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        let is_live = self.begin(at, out);
        match mail {
            Mail::Asked { from, ask, message } => {
                let reply = match self.stage_now() {
                    Stage::Open => {
                        self.context.sender.clone_from(&from);
                        self.internal_message(&message, out)
                    }
                    Stage::Closing | Stage::Finishing => Err(closing()),
                    Stage::Ended => Err(ended()),
                };
                let to = from.as_deref().map_or("", |from| &from.room_id);
                out.post(to, Mail::Answered { ask, reply });
            }
            Mail::Done { task, message }
                if is_live && self.context.tasks.remove(&task).is_some() =>
            {
                self.internal_message_or_log(&message, out);
            }
            Mail::Lost { task } if is_live => {
                if let Some(name) = self.context.tasks.remove(&task) {
                    self.fail(&format!("the background task that ends with {name} panicked"), out);
                }
            }
            Mail::Told { from, message } if self.is_open() => {
                self.context.sender = from;
                self.internal_message_or_log(&message, out);
            }
            Mail::Answered { ask, reply } if is_live => {
                if let Some(name) = self.context.asks.remove(&ask) {
                    self.act(out, |room, _, cx| R::answer(room, name, AskId(ask), reply, cx));
                    self.settle(out);
                }
            }
            _ => {}
        }
        self.finish();
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        if self.begin(at, out) && self.is_open() {
            self.context.tick = number;
            self.act(out, |room, _, cx| room.tick(cx));
            self.settle(out);
        }
    }

    fn wake_at(&self) -> Option<Duration> {
        self.live.as_ref()?;
        if self.has_failed() || !self.deferred.is_empty() {
            return Some(self.context.now);
        }
        if let Some(ending) = &self.ending {
            return Some(ending.by);
        }
        let timer = self.context.timers.next_due();
        let reservation = self.context.reserved.next_due();
        [timer, reservation, self.empty_until()].into_iter().flatten().min()
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) {
            return;
        }
        if let Some(ending) = &self.ending {
            if ending.by <= self.context.now {
                self.part_now(out);
                self.give_up_waiting();
            }
            return;
        }
        self.free_reserved_seats();
        while let Some(message) = self.context.timers.take_due(self.context.now) {
            self.internal_message_or_log(&message, out);
            if !self.is_open() {
                return;
            }
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
        let Some(Live { state, tracker }) = self.live.as_mut() else { return };
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

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        let mut digest = None;
        self.write(&mut Vec::new(), |tracker, _| {
            digest = Some(tracker.digest(player, format));
            true
        });
        digest
    }

    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            self.begin_closing(why, text, out);
            self.settle(out);
        }
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

fn ended() -> Error {
    Error::new(ErrorCode::RoomNotFound, "the room has ended")
}

fn closing() -> Error {
    Error::new(ErrorCode::RoomClosed, "the room is about to end")
}
