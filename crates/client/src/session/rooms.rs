//! The rooms of a session, and the version of each copy.

use std::sync::Arc;
use std::time::Duration;

use playfield_state::Transcoder;
use playfield_wire::RoomNumber;
use playfield_wire::client::ResumeRoom;
use playfield_wire::server::{self, Versions};

use super::copy::BoxedCopy;
use super::entering::Granted;
use super::numbers::NumberMap;
use super::pulse::quiet_of;
use super::schemas::Schema;
use super::switch::{Since, Speech};
use super::{ClientError, CommandError, OutOfStep, RoomCopy, Unusable, Update, UpdateKind};

/// The most updates in a row that one room's copy may fail to use. Each makes the client ask for a
/// snapshot; one more ends the connection, so that a node which always sends the same wrong
/// snapshot is not asked forever.
pub const UNUSABLE_IN_A_ROW_MAX: u32 = 16;

/// The progress of one room's copy.
#[derive(Debug)]
pub(super) struct Progress {
    copy: Option<BoxedCopy>,
    epoch: u64,
    /// The time for which the connection may be silent while the client is in the room.
    silence: Option<Duration>,
    /// The time for which the room may be quiet while it has something to say.
    quiet: Option<Duration>,
    /// The time for which the room keeps the seat after a lost connection.
    grace: Duration,
    /// The version of the copy; 0 before the first snapshot.
    pub(super) version: u64,
    /// The number of the last event.
    pub(super) sequence: u64,
    /// Says whether a patch can be applied. If not, a snapshot is on its way, was asked for, or
    /// could not be read.
    in_step: bool,
    /// The number of updates in a row that could not be used.
    unusable: u32,
    /// The last snapshot could not be read.
    snapshot_failed: bool,
    /// The number of messages about the room that were lost since the last event: as many events
    /// may be missing.
    lost_messages: u64,
    /// A snapshot was asked for while nothing could be sent.
    resync_waits: bool,
    /// The session has entered the room, and leaves it if it can't be used.
    is_entered: bool,
    /// The steps that are left until it is entered.
    granted: Option<Box<Granted>>,
    /// The schemas by which a room that the session has entered is read and written.
    speech: Option<Box<Speech>>,
}

/// The outcome of an update.
#[derive(Debug)]
pub(super) enum Outcome {
    Applied,
    /// The copy waits for a snapshot.
    Skipped,
    /// A snapshot is to be asked for.
    OutOfStep(OutOfStep),
    /// Another snapshot would be of no use.
    NoSnapshot(OutOfStep),
}

/// The handling of an update.
#[derive(Debug)]
pub(super) enum Verdict {
    Apply,
    /// The copy waits for a snapshot.
    Skip,
    OutOfStep(OutOfStep),
}

impl Progress {
    /// A patch must start at the copy's version, and advance it.
    #[inline]
    pub(super) fn check_patch(&self, Versions { base, version }: Versions) -> Verdict {
        if !self.in_step {
            Verdict::Skip
        } else if base != self.version {
            Verdict::OutOfStep(OutOfStep::Base { base, version: self.version })
        } else if version <= base {
            // The patch would fit a second time, too.
            Verdict::OutOfStep(OutOfStep::NoAdvance { version })
        } else {
            Verdict::Apply
        }
    }

    /// A snapshot must be of the room that was joined, and no older than the copy.
    pub(super) fn check_snapshot(&self, epoch: u64, version: u64) -> Verdict {
        if epoch != self.epoch {
            Verdict::OutOfStep(OutOfStep::Epoch { joined: self.epoch, got: epoch })
        } else if version < self.version {
            Verdict::OutOfStep(OutOfStep::Older { version: self.version, got: version })
        } else {
            Verdict::Apply
        }
    }

    /// Applies an update if the verdict allows it.
    #[inline]
    pub(super) fn update(&mut self, verdict: Verdict, update: &Update<'_>) -> Outcome {
        match verdict {
            Verdict::Skip => return Outcome::Skipped,
            Verdict::OutOfStep(why) => return Outcome::OutOfStep(why),
            Verdict::Apply => {}
        }
        let Err(error) = self.copy.as_mut().map_or(Ok(()), |copy| copy.apply(update)) else {
            self.version = update.version;
            self.in_step = true;
            self.unusable = 0;
            self.snapshot_failed = false;
            return Outcome::Applied;
        };
        match update.kind {
            UpdateKind::Patch => Outcome::OutOfStep(OutOfStep::Patch(error)),
            // The snapshot may have been damaged on its way: the next one may be readable.
            UpdateKind::Snapshot if !std::mem::replace(&mut self.snapshot_failed, true) => {
                Outcome::OutOfStep(OutOfStep::Snapshot(error))
            }
            UpdateKind::Snapshot => Outcome::NoSnapshot(OutOfStep::NoSnapshot(error)),
        }
    }

    /// Returns whether the copy has this digest, if it is at this version.
    pub(super) fn check(&mut self, version: u64, digest: u64) -> Option<bool> {
        let copy = self.copy.as_mut().filter(|_| self.in_step && self.version == version)?;
        Some(copy.digest_is(digest))
    }

    /// A message in the node's form: its number and payload. `None` if that is the program's.
    ///
    /// # Errors
    /// If it is not as its number says.
    #[inline]
    pub(super) fn to_node(
        &self,
        room: RoomNumber,
        message: u32,
        payload: &[u8],
    ) -> Result<Option<(u32, Vec<u8>)>, CommandError> {
        let Some(since) = self.speech.as_deref().and_then(|speech| speech.since.as_ref()) else {
            return Ok(None);
        };
        let by = since.by().map_err(|_| CommandError::NotJoined { room })?;
        let mut of_node = Vec::new();
        let number = by.message(message, payload, &mut of_node);
        let number = number.map_err(|_| CommandError::BadMessage { room, message })?;
        Ok(Some((number, of_node)))
    }

    /// An update can't be used: from now on the copy waits for a snapshot. `Err` if that happened
    /// too often in a row.
    fn fell_out(&mut self, room: RoomNumber) -> Result<(), ClientError> {
        self.in_step = false;
        self.unusable += 1;
        if self.unusable > UNUSABLE_IN_A_ROW_MAX {
            return Err(ClientError::NeverInStep { room, unusable: self.unusable });
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Rooms {
    copies: NumberMap<RoomNumber, Progress>,
    /// The node has continued a room with another schema.
    any_switched: bool,
}

impl Rooms {
    pub(super) fn joined(&mut self, joined: &server::Joined<'_>) -> Result<(), ClientError> {
        let &server::Joined { room, epoch, tick_hz, sync_hz, .. } = joined;
        let copy = Progress {
            copy: None,
            epoch,
            silence: joined.silence(),
            quiet: quiet_of(tick_hz, sync_hz),
            grace: joined.grace(),
            version: 0,
            sequence: 0,
            in_step: false,
            unusable: 0,
            snapshot_failed: false,
            lost_messages: 0,
            resync_waits: false,
            is_entered: false,
            granted: None,
            speech: None,
        };
        match self.copies.insert(room, copy) {
            None => Ok(()),
            Some(_) => Err(ClientError::RoomNumberTaken { room }),
        }
    }

    pub(super) fn left(&mut self, room: RoomNumber) -> Result<(), ClientError> {
        self.copies
            .remove(&room)
            .map(drop)
            .ok_or(ClientError::UnknownRoom { room, message: "a left" })
    }

    /// Returns the time for which the connection may be silent, by the room that allows least.
    pub(super) fn silence(&self) -> Option<Duration> {
        self.copies.values().filter_map(|copy| copy.silence).min()
    }

    /// Returns the time for which the rooms may be quiet, by the one that allows least.
    pub(super) fn quiet(&self) -> Option<Duration> {
        self.copies.values().filter_map(|copy| copy.quiet).min()
    }

    /// The shortest time for which a room keeps the seat, of those that keep it.
    pub(super) fn grace(&self) -> Option<Duration> {
        self.copies.values().map(|copy| copy.grace).filter(|grace| !grace.is_zero()).min()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn get(&self, room: RoomNumber) -> Result<&Progress, CommandError> {
        self.copies.get(&room).ok_or(CommandError::NotJoined { room })
    }

    /// The room that a message from the node names.
    #[inline]
    pub(super) fn named(
        &mut self,
        room: RoomNumber,
        message: &'static str,
    ) -> Result<&mut Progress, ClientError> {
        self.copies.get_mut(&room).ok_or(ClientError::UnknownRoom { room, message })
    }

    /// From now on the copy waits for a snapshot. `is_asked` says whether one can be asked for now;
    /// if not, [`take_resyncs`](Self::take_resyncs) returns the room later.
    pub(super) fn wait_for_snapshot(
        &mut self,
        room: RoomNumber,
        is_asked: bool,
    ) -> Result<(), CommandError> {
        let copy = self.copies.get_mut(&room).ok_or(CommandError::NotJoined { room })?;
        copy.in_step = false;
        copy.resync_waits |= !is_asked;
        Ok(())
    }

    /// Returns how many events before this one were lost.
    pub(super) fn event(&mut self, room: RoomNumber, got: u64) -> Result<u64, ClientError> {
        let copy = self.named(room, "an event")?;
        let due = copy.sequence + 1;
        let missed = got.checked_sub(due).filter(|missed| *missed <= copy.lost_messages);
        let missed = missed.ok_or(ClientError::EventOutOfOrder { room, due, got })?;
        (copy.sequence, copy.lost_messages) = (got, 0);
        Ok(missed)
    }

    /// Messages about a room were lost. Returns whether this client is in the room.
    pub(super) fn lost(&mut self, room: RoomNumber, messages: u64) -> bool {
        let copy = self.copies.get_mut(&room);
        copy.map(|copy| copy.lost_messages = copy.lost_messages.saturating_add(messages)).is_some()
    }

    /// Sets the copy of a room. Returns whether the client is in it.
    pub(super) fn set_copy(&mut self, room: RoomNumber, copy: Box<dyn RoomCopy + Send>) -> bool {
        let progress = self.copies.get_mut(&room);
        progress.map(|progress| progress.copy = Some(BoxedCopy::new(copy))).is_some()
    }

    /// A request for this room was granted: keeps its copy up to date.
    pub(super) fn grant(&mut self, room: RoomNumber, copy: BoxedCopy, granted: Granted) {
        if let Some(progress) = self.copies.get_mut(&room) {
            (progress.copy, progress.granted) = (Some(copy), Some(Box::new(granted)));
            progress.is_entered = true;
        }
    }

    /// A room is read and written by these schemas.
    pub(super) fn speak(&mut self, room: RoomNumber, speech: Option<Speech>) {
        if let Some(progress) = self.copies.get_mut(&room) {
            progress.speech = speech.map(Box::new);
        }
    }

    /// The rooms of a type whose schema is known.
    pub(super) fn speaking(&self, room_type: &str) -> Vec<RoomNumber> {
        let is_of = |speech: &Speech| speech.room_type == room_type;
        let rooms = self.copies.iter();
        let rooms = rooms.filter(|(_, of)| of.speech.as_deref().is_some_and(is_of));
        rooms.map(|(room, _)| *room).collect()
    }

    /// Switches a room to another schema of the node; a snapshot in it follows. Returns the
    /// converter for messages that are already written, or `None` if the schema has not changed.
    ///
    /// # Errors
    /// If the program can't use it.
    pub(super) fn switch(
        &mut self,
        room: RoomNumber,
        node: &Arc<Schema>,
    ) -> Result<Option<Arc<Transcoder>>, Unusable> {
        let Some(progress) = self.copies.get_mut(&room) else { return Ok(None) };
        let Some(speech) = progress.speech.as_deref_mut() else { return Ok(None) };
        let Some(written) = speech.switch(node)? else { return Ok(None) };
        if let (Some(copy), Some(Ok(by))) =
            (&mut progress.copy, speech.since.as_ref().map(Since::by))
        {
            copy.convert(by.state(speech.player));
        }
        progress.in_step = false;
        self.any_switched = true;
        Ok(Some(written))
    }

    /// Converts the node's messages in a room whose schema differs from the program's.
    #[inline]
    pub(super) fn switched(&self, room: RoomNumber) -> Option<Result<&Transcoder, &Unusable>> {
        if !self.any_switched {
            return None;
        }
        let speech = self.copies.get(&room)?.speech.as_deref()?;
        Some(speech.since.as_ref()?.by())
    }

    /// Gives up a room that the program can't continue: nothing is read or written there any more.
    pub(super) fn give_up(&mut self, room: RoomNumber, why: &Unusable) {
        let progress = self.copies.get_mut(&room);
        if let Some(speech) = progress.and_then(|progress| progress.speech.as_deref_mut()) {
            speech.since = Some(Since::Unusable(why.clone()));
            self.any_switched = true;
        }
    }

    /// Returns whether the session has entered the room by itself.
    pub(super) fn is_entered(&self, room: RoomNumber) -> bool {
        self.copies.get(&room).is_some_and(|progress| progress.is_entered)
    }

    /// Returns whether a snapshot of the room has come.
    pub(super) fn has_copy(&self, room: RoomNumber) -> bool {
        self.copies.get(&room).is_some_and(|progress| progress.version > 0)
    }

    /// The steps that are left until a room is entered, and its copy.
    pub(super) fn granted(&mut self, room: RoomNumber) -> Option<(&mut Granted, &mut BoxedCopy)> {
        let progress = self.copies.get_mut(&room)?;
        progress.granted.as_deref_mut().zip(progress.copy.as_mut())
    }

    /// The room is entered, or will not be.
    pub(super) fn take_granted(&mut self, room: RoomNumber) -> Option<Box<Granted>> {
        self.copies.get_mut(&room)?.granted.take()
    }

    /// The rooms that wait for a schema that fits.
    pub(super) fn awaiting(&self, fits: impl Fn(&Granted) -> bool) -> Vec<RoomNumber> {
        let waiting = self.copies.iter().filter(|(_, of)| of.granted.as_deref().is_some_and(&fits));
        waiting.map(|(room, _)| *room).collect()
    }

    pub(super) fn knows(&self, room: RoomNumber) -> bool {
        self.copies.contains_key(&room)
    }

    /// The copies as a resuming client states them. One that waits for a snapshot has version 0.
    pub(super) fn resume(&mut self) -> Vec<ResumeRoom> {
        let mut rooms: Vec<_> = self
            .copies
            .iter_mut()
            .map(|(&room, copy)| {
                copy.resync_waits = false;
                let version = if copy.in_step { copy.version } else { 0 };
                ResumeRoom { room, epoch: copy.epoch, version }
            })
            .collect();
        rooms.sort_unstable_by_key(|copy| copy.room);
        rooms
    }

    /// The rooms that need a snapshot and could not ask for it yet.
    pub(super) fn take_resyncs(&mut self) -> Vec<RoomNumber> {
        let waiting = self.copies.iter_mut().filter(|(_, copy)| copy.resync_waits);
        let mut rooms: Vec<_> = waiting
            .map(|(room, copy)| {
                copy.resync_waits = false;
                *room
            })
            .collect();
        rooms.sort_unstable();
        rooms
    }

    /// An update for this copy can't be used.
    pub(super) fn fell_out(&mut self, room: RoomNumber) -> Result<(), ClientError> {
        self.copies.get_mut(&room).map_or(Ok(()), |copy| copy.fell_out(room))
    }
}
