//! A room that is recorded.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

use super::tap::Tap;
use super::tape::Tape;
use super::{Files, Input, Position, RecorderSettings, Why};
use crate::frozen::{FreezeError, FrozenWriter, InFlight};
use crate::{
    Admission, AnyRoom, EndReason, Entrant, Error, LeaveReason, Mail, Opened, Operation, Player,
    Reservation, RoomOutput, RoomSummary, Saves, SeatFor, Stage, StoreErrorKind, Undone, Unsaved,
};

/// A room that notes its inputs: the last minutes in memory, or all in a file. To its host it is
/// the room.
///
/// While a room waits for its save, or for players who wait to join, it can't be written whole, and
/// its recording begins after that.
pub struct Recorder {
    room: Box<dyn AnyRoom>,
    tape: Tape,
    /// The number of the last tick.
    tick: u64,
    /// Nothing has been called yet.
    is_new: bool,
    /// The inputs go into a journal.
    journal: Option<Journaling>,
}

/// The state of a recorder that only a journal needs.
struct Journaling {
    /// Another owner has the room's save.
    is_fenced: bool,
}

/// The next whole millisecond, which takes less space in a recording. A room that is recorded has
/// such times.
fn whole_ms(at: Duration) -> Duration {
    let ms = u64::from(at.subsec_nanos().div_ceil(1_000_000));
    Duration::from_millis(at.as_secs().saturating_mul(1_000).saturating_add(ms))
}

/// The nearest whole millisecond, for the same reason.
fn nearest_ms(time: Duration) -> Duration {
    let ms = u64::from((time.subsec_micros() + 500) / 1_000);
    Duration::from_millis(time.as_secs().saturating_mul(1_000).saturating_add(ms))
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("position", &self.tape.position()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records a room, in memory.
    #[must_use]
    pub fn new(room: Box<dyn AnyRoom>, files: Box<dyn Files>, settings: RecorderSettings) -> Self {
        Self { room, tape: Tape::new(files, settings), tick: 0, is_new: true, journal: None }
    }

    /// Notes a room's inputs in a journal: all of them, from when it has opened. What the room
    /// sends to others than its players is [held](RoomOutput::hold).
    #[must_use]
    pub fn journal(
        room: Box<dyn AnyRoom>,
        files: Box<dyn Files>,
        keyframe_every: Duration,
    ) -> Self {
        let settings = RecorderSettings { keyframe_every, ..RecorderSettings::default() };
        let mut tape = Tape::new(files, settings);
        tape.begin_file(&Why::Setting);
        let journal = Some(Journaling { is_fenced: false });
        Self { room, tape, tick: 0, is_new: false, journal }
    }

    /// Ends the block of inputs that is being noted, if there is one.
    pub fn close_block(&mut self) {
        self.tape.close_block();
    }

    /// Returns whether the room has been written whole, so that its inputs are noted.
    #[must_use]
    pub fn has_whole(&self) -> bool {
        self.tape.has_keyframe()
    }

    /// Writes the room whole, if it can be now. Returns whether it was.
    pub fn write_whole(&mut self, at: Duration) -> bool {
        self.keyframe(whole_ms(at.max(self.tape.position().at)))
    }

    /// The position in the recording.
    #[must_use]
    pub fn position(&self) -> Position {
        self.tape.position()
    }

    /// Returns whether a file is being written.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.tape.has_file()
    }

    /// Begins a file, with what was kept in memory. Returns whether there was none.
    pub fn begin_file(&mut self, why: &Why) -> bool {
        let begins = !self.tape.has_file();
        self.tape.begin_file(why);
        begins
    }

    /// Ends the file, with the room's present hash. Returns whether there was one.
    pub fn end_file(&mut self, why: &Why) -> bool {
        let ends = self.tape.has_file();
        if ends {
            self.tape.hash(self.room.state_hash());
            self.tape.end_file(why);
        }
        ends
    }

    /// Calls the room, and notes the call.
    #[inline]
    fn call<T>(
        &mut self,
        at: Duration,
        input: &Input<'_>,
        out: &mut dyn RoomOutput,
        call: impl FnOnce(&mut dyn AnyRoom, Duration, &mut dyn RoomOutput) -> T,
    ) -> T {
        if !self.tape.is_on {
            self.is_new = false;
            let (room, mut tap) = self.tap(out);
            return call(room, at, &mut tap);
        }
        self.begin(at);
        let at = whole_ms(at);
        self.tape.input(at, input);
        let Self { room, tape, journal, .. } = self;
        let holds = journal.is_some();
        let result = call(&mut **room, at, &mut Tap { tape, out, question: 0, holds });
        self.called();
        if holds && !self.tape.has_keyframe() {
            // The effects of this call are held until the block is durable that has the room.
            self.keyframe(at);
        }
        result
    }

    /// Writes the room whole before its first call.
    #[inline]
    fn begin(&mut self, at: Duration) {
        if std::mem::take(&mut self.is_new) && self.tape.is_on {
            self.keyframe(whole_ms(at));
        }
    }

    /// After a call.
    #[inline]
    fn called(&mut self) {
        if self.tape.wants_hash() {
            self.tape.hash(self.room.state_hash());
        }
        if self.room.is_closed() {
            self.ended();
        }
        if let Some(error) = self.tape.takes_error() {
            let why = Why::InternalError(error.text().to_owned());
            self.begin_file(&why);
            self.end_file(&why);
        }
    }

    /// The room has ended: one that failed leaves a file.
    #[cold]
    fn ended(&mut self) {
        if let Some(journal) = &self.journal
            && self.room.undone() == Some(Undone::Save)
            && !journal.is_fenced
        {
            // The journal keeps what the store has not.
            if let Some(unsaved) = self.room.take_unsaved() {
                self.tape.unsaved(unsaved, None);
            }
            self.tape.is_on = false;
            return;
        }
        let failed =
            |why: Result<(), Error>| why.is_err_and(|error| error.code() == ErrorCode::RoomFailed);
        let has_failed = self.room.opened().is_some_and(failed);
        if has_failed
            && self.journal.is_some()
            && self.tape.has_keyframe()
            && let Some(unsaved) = self.room.take_unsaved()
        {
            // The journal has the room's state before the input that made it fail.
            self.tape.unsaved(unsaved, Some(self.tape.position().inputs.saturating_sub(1)));
            self.tape.is_on = false;
            return;
        }
        let why = match has_failed {
            true => {
                if self.tape.has_any() {
                    self.tape.begin_file(&Why::Failed);
                }
                Why::Failed
            }
            false => Why::Ended,
        };
        self.tape.end_file(&why);
        self.tape.is_on = false;
    }

    /// Writes the room whole, if it can be.
    #[cold]
    fn keyframe(&mut self, at: Duration) -> bool {
        let mut form = match self.journal {
            Some(_) => FrozenWriter::unsynced(),
            None => FrozenWriter::new(),
        };
        let frozen = self.room.capture(&mut form).and_then(|()| form.finish());
        let (Ok(frozen), Some(hash)) = (frozen, self.room.state_hash()) else { return false };
        self.tape.keyframe(at, self.tick, hash, &frozen);
        true
    }

    /// The output of a call that is not recorded.
    fn tap<'a>(&'a mut self, out: &'a mut dyn RoomOutput) -> (&'a mut dyn AnyRoom, Tap<'a>) {
        let Self { room, tape, journal, .. } = self;
        (&mut **room, Tap { tape, out, question: 0, holds: journal.is_some() })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A room that is dropped goes on from its journal.
        if self.journal.is_none() {
            self.tape.end_file(&Why::Dropped);
        }
    }
}

impl AnyRoom for Recorder {
    fn recorder(&mut self) -> Option<&mut Recorder> {
        if self.journal.is_some() { self.room.recorder() } else { Some(self) }
    }

    fn journaled(&mut self) -> Option<&mut Recorder> {
        self.journal.is_some().then_some(self)
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        self.begin(at);
        self.tick = number;
        self.call(at, &Input::Tick(number), out, |room, at, out| room.tick(at, number, out));
    }

    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.call(at, &Input::Sync, out, |room, at, out| room.sync(at, out));
        let at = whole_ms(at);
        if self.tape.wants_keyframe(at) {
            self.keyframe(at);
        }
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.call(at, &Input::Wake, out, |room, at, out| room.wake(at, out));
    }

    fn pass_syncs(&mut self, syncs: u64) {
        let at = self.tape.position().at;
        self.tape.input(at, &Input::PassSyncs(syncs));
        self.room.pass_syncs(syncs);
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
        let borrowed = match message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(Cow::Borrowed(name)),
        };
        let payload_ref = Cow::Borrowed(payload);
        let input = Input::Message { player, message: borrowed, payload: payload_ref, request };
        self.call(at, &input, out, |room, at, out| {
            room.message(at, player, message, payload, request, out);
        });
    }

    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission, Error> {
        let input = Input::Join(Cow::Owned(entrant.clone()));
        self.call(at, &input, out, |room, at, out| {
            room.join(at, entrant, out).inspect_err(|error| out.unheard(error))
        })
    }

    fn reserve(
        &mut self,
        at: Duration,
        who: SeatFor,
        wait: Duration,
        out: &mut dyn RoomOutput,
    ) -> Result<Reservation, Error> {
        let input = Input::Reserve(Cow::Owned(who.clone()), wait);
        self.call(at, &input, out, |room, at, out| room.reserve(at, who, wait, out))
    }

    fn lost(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        self.call(at, &Input::Lost(player), out, |room, at, out| room.lost(at, player, out));
    }

    fn returned(
        &mut self,
        at: Duration,
        player: PlayerId,
        away: Duration,
        out: &mut dyn RoomOutput,
    ) {
        let input = Input::Returned(player, away);
        self.call(at, &input, out, |room, at, out| room.returned(at, player, away, out));
    }

    fn measured(
        &mut self,
        at: Duration,
        player: PlayerId,
        round_trip: Duration,
        out: &mut dyn RoomOutput,
    ) {
        let round_trip = if self.tape.is_on { nearest_ms(round_trip) } else { round_trip };
        let input = Input::Measured(player, round_trip);
        self.call(at, &input, out, |room, at, out| room.measured(at, player, round_trip, out));
    }

    fn leave(
        &mut self,
        at: Duration,
        player: PlayerId,
        why: LeaveReason,
        out: &mut dyn RoomOutput,
    ) {
        let input = Input::Leave(player, why);
        self.call(at, &input, out, |room, at, out| room.leave(at, player, why, out));
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        if let (Some(journal), Mail::Saved { outcome: Err(error), .. }) = (&mut self.journal, &mail)
        {
            journal.is_fenced |= error.kind() == StoreErrorKind::Fenced;
        }
        let input = Input::Mail(Cow::Owned(mail.clone()));
        self.call(at, &input, out, |room, at, out| room.mail(at, mail, out));
    }

    fn operate(
        &mut self,
        at: Duration,
        operation: Operation,
        out: &mut dyn RoomOutput,
    ) -> Result<(), Error> {
        if self.journal.is_some() && matches!(operation, Operation::Record(_)) {
            return self.room.operate(at, operation, out);
        }
        if let Operation::Record(records) = operation {
            match records {
                true => self.begin_file(&Why::Request),
                false => self.end_file(&Why::Request),
            };
            return Ok(());
        }
        let input = Input::Operate(Cow::Owned(operation.clone()));
        self.call(at, &input, out, |room, at, out| room.operate(at, operation, out))
    }

    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        let input = Input::Close(why, text.into());
        self.call(at, &input, out, |room, at, out| room.close(at, why, text, out));
    }

    fn part(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.call(at, &Input::Part, out, |room, at, out| room.part(at, out));
    }

    fn abandon(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.call(at, &Input::Abandon, out, |room, at, out| room.abandon(at, out));
    }

    fn resumed(&mut self, at: Duration, paused: Duration, out: &mut dyn RoomOutput) {
        let input = Input::Resumed(paused);
        self.call(at, &input, out, |room, at, out| room.resumed(at, paused, out));
    }

    fn reopened(&mut self, at: Duration, opened: Opened) -> bool {
        self.tape.interrupt("the room's save was opened again");
        let is_last = self.room.reopened(at, opened);
        if let Some(journal) = &mut self.journal {
            journal.is_fenced = !is_last;
            self.keyframe(whole_ms(at));
        }
        is_last
    }

    fn freeze(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        let (room, mut tap) = self.tap(out);
        let frozen = room.freeze(at, form, &mut tap);
        // A room that goes on here has opened its save again.
        self.tape.interrupt("the room was frozen");
        frozen
    }

    fn freeze_after(
        &mut self,
        at: Duration,
        why: &Error,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        let (room, mut tap) = self.tap(out);
        let frozen = room.freeze_after(at, why, form, &mut tap);
        self.tape.interrupt("the room was frozen, and gave up its work");
        frozen
    }

    fn moved(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        self.tape.interrupt("the room went on after it was frozen");
        self.is_new = false;
        let (room, mut tap) = self.tap(out);
        room.moved(at, &mut tap);
        if self.journal.is_some() {
            self.keyframe(whole_ms(at));
        }
    }

    fn summary(&self) -> &RoomSummary {
        self.room.summary()
    }

    fn is_closed(&self) -> bool {
        self.room.is_closed()
    }

    fn stage(&self) -> Stage {
        self.room.stage()
    }

    fn opened(&self) -> Option<Result<(), Error>> {
        self.room.opened()
    }

    fn undone(&self) -> Option<Undone> {
        self.room.undone()
    }

    fn version(&self) -> u64 {
        self.room.version()
    }

    fn tick_hz(&self) -> u32 {
        self.room.tick_hz()
    }

    fn sync_hz(&self) -> u32 {
        self.room.sync_hz()
    }

    fn wake_at(&self) -> Option<Duration> {
        self.room.wake_at()
    }

    fn wants_sync(&self) -> bool {
        self.room.wants_sync()
    }

    fn reaches(&self, since: u64) -> bool {
        self.room.reaches(since)
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        self.room.patch(player, since, format, body)
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.room.snapshot(player, format, body);
    }

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        self.room.digest(player, format)
    }

    fn may_leave_out(&self) -> bool {
        self.room.may_leave_out()
    }

    fn left_out(&self, player: PlayerId) -> u64 {
        self.room.left_out(player)
    }

    fn players(&self, wanted: &mut dyn FnMut(&Player) -> bool) -> Vec<Player> {
        self.room.players(wanted)
    }

    fn whole(&self, out: &mut Vec<u8>) -> bool {
        self.room.whole(out)
    }

    fn save(&mut self, out: &mut Vec<u8>) -> bool {
        self.room.save(out)
    }

    fn saves(&self) -> Option<Saves> {
        self.room.saves()
    }

    fn take_unsaved(&mut self) -> Option<Box<Unsaved>> {
        self.room.take_unsaved()
    }

    fn asks(&self) -> Vec<u64> {
        self.room.asks()
    }

    fn state_hash(&self) -> Option<u64> {
        self.room.state_hash()
    }

    fn capture(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        self.room.capture(form)
    }

    fn in_flight(&self) -> InFlight {
        self.room.in_flight()
    }
}
