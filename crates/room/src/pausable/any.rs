//! The wrapper as the room that it has.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;

use super::Pausable;
use crate::frozen::{FreezeError, FrozenWriter, InFlight};
use crate::recording::{Input, Recorder};
use crate::{
    Admission, AnyRoom, EndReason, Entrant, Error, LeaveReason, Mail, Opened, Operation, Player,
    Reservation, RoomOutput, RoomSummary, Saves, SeatFor, Stage, Undone, Unsaved,
};

impl AnyRoom for Pausable {
    fn pausable(&mut self) -> Option<&mut Pausable> {
        Some(self)
    }

    fn is_paused(&self) -> bool {
        self.why().is_some()
    }

    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.room_mut().recorder()
    }

    fn journaled(&mut self) -> Option<&mut Recorder> {
        self.room_mut().journaled()
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        if self.passes(at, out) {
            self.room_mut().tick(at, number, out);
        }
    }

    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if self.passes(at, out) {
            self.room_mut().sync(at, out);
        }
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if self.passes(at, out) {
            self.room_mut().wake(at, out);
        }
    }

    fn pass_syncs(&mut self, syncs: u64) {
        self.room_mut().pass_syncs(syncs);
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
        if self.passes(at, out) {
            return self.room_mut().message(at, player, message, payload, request, out);
        }
        let message = match message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(name.to_string().into()),
        };
        let payload = Cow::Owned(payload.to_vec());
        self.waiting.push_back(Input::Message { player, message, payload, request });
        // A journal holds back the news that a message is done, and so the next ones.
        if self.paused {
            out.waits(player);
        }
    }

    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission, Error> {
        self.may_pass(at, out)?;
        self.room_mut().join(at, entrant, out)
    }

    fn reserve(
        &mut self,
        at: Duration,
        who: SeatFor,
        wait: Duration,
        out: &mut dyn RoomOutput,
    ) -> Result<Reservation, Error> {
        self.may_pass(at, out)?;
        self.room_mut().reserve(at, who, wait, out)
    }

    fn lost(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        self.act(at, Input::Lost(player), out);
    }

    fn returned(
        &mut self,
        at: Duration,
        player: PlayerId,
        away: Duration,
        out: &mut dyn RoomOutput,
    ) {
        self.act(at, Input::Returned(player, away), out);
    }

    fn measured(
        &mut self,
        at: Duration,
        player: PlayerId,
        round_trip: Duration,
        out: &mut dyn RoomOutput,
    ) {
        self.act(at, Input::Measured(player, round_trip), out);
    }

    fn leave(
        &mut self,
        at: Duration,
        player: PlayerId,
        why: LeaveReason,
        out: &mut dyn RoomOutput,
    ) {
        self.act(at, Input::Leave(player, why), out);
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        let mail = match self.why() {
            None => Some(mail),
            Some(why) => self.bounded(mail, why, out),
        };
        if let Some(mail) = mail {
            self.act(at, Input::Mail(Cow::Owned(mail)), out);
        }
    }

    fn operate(
        &mut self,
        at: Duration,
        operation: Operation,
        out: &mut dyn RoomOutput,
    ) -> Result<(), Error> {
        self.may_pass(at, out)?;
        self.room_mut().operate(at, operation, out)
    }

    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        if why == EndReason::Moved {
            self.forget(out);
            return self.room_mut().close(at, why, text, out);
        }
        self.act(at, Input::Close(why, text.to_owned().into()), out);
    }

    fn part(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.act(at, Input::Part, out);
    }

    fn abandon(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.forget(out);
        self.room_mut().abandon(at, out);
    }

    fn resumed(&mut self, at: Duration, paused: Duration, out: &mut dyn RoomOutput) {
        self.act(at, Input::Resumed(paused), out);
    }

    fn reopened(&mut self, at: Duration, opened: Opened) -> bool {
        self.room_mut().reopened(at, opened)
    }

    fn freeze(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        if self.paused {
            return Err(FreezeError::Paused);
        }
        self.room_mut().freeze(at, form, out)
    }

    fn freeze_after(
        &mut self,
        at: Duration,
        why: &Error,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        if self.paused {
            return Err(FreezeError::Paused);
        }
        self.room_mut().freeze_after(at, why, form, out)
    }

    fn moved(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.room_mut().moved(at, out);
    }

    fn summary(&self) -> &RoomSummary {
        self.room().summary()
    }

    fn is_closed(&self) -> bool {
        self.room().is_closed()
    }

    fn stage(&self) -> Stage {
        self.room().stage()
    }

    fn opened(&self) -> Option<Result<(), Error>> {
        self.room().opened()
    }

    fn undone(&self) -> Option<Undone> {
        self.room().undone()
    }

    fn version(&self) -> u64 {
        self.room().version()
    }

    fn tick_hz(&self) -> u32 {
        self.room().tick_hz()
    }

    fn sync_hz(&self) -> u32 {
        self.room().sync_hz()
    }

    fn wake_at(&self) -> Option<Duration> {
        if self.is_paused() { None } else { self.room().wake_at() }
    }

    fn wants_sync(&self) -> bool {
        self.room().wants_sync() && !self.is_paused()
    }

    fn reaches(&self, since: u64) -> bool {
        self.room().reaches(since)
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        self.room_mut().patch(player, since, format, body)
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.room_mut().snapshot(player, format, body);
    }

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        self.room_mut().digest(player, format)
    }

    fn may_leave_out(&self) -> bool {
        self.room().may_leave_out()
    }

    fn left_out(&self, player: PlayerId) -> u64 {
        self.room().left_out(player)
    }

    fn players(&self, wanted: &mut dyn FnMut(&Player) -> bool) -> Vec<Player> {
        self.room().players(wanted)
    }

    fn whole(&self, out: &mut Vec<u8>) -> bool {
        self.room().whole(out)
    }

    fn save(&mut self, out: &mut Vec<u8>) -> bool {
        self.room_mut().save(out)
    }

    fn saves(&self) -> Option<Saves> {
        self.room().saves()
    }

    fn take_unsaved(&mut self) -> Option<Box<Unsaved>> {
        self.room_mut().take_unsaved()
    }

    fn asks(&self) -> Vec<u64> {
        self.room().asks()
    }

    fn state_hash(&self) -> Option<u64> {
        self.room().state_hash()
    }

    fn capture(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        self.room_mut().capture(form)
    }

    fn in_flight(&self) -> InFlight {
        self.room().in_flight()
    }
}
