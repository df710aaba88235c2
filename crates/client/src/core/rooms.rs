//! The rooms of a session, and how far each copy has got.

use super::numbers::NumberMap;
use super::{ClientError, CommandError, OutOfStep};

/// How often in a row something may come for a room's copy that it can't use, without a snapshot or
/// a patch that it can. A node that answers each question for a snapshot with the same wrong thing
/// would otherwise be asked without end; once more ends the connection.
pub const UNUSABLE_IN_A_ROW_MAX: u32 = 16;

/// How far the copy of one room has got.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomCopy {
    pub(super) epoch: u64,
    /// Of the copy; 0 before the first snapshot.
    pub(super) version: u64,
    /// Of the last event.
    pub(super) sequence: u64,
    /// A patch may be applied. If not, a snapshot is on its way, or was asked for, or could not be
    /// read.
    pub(super) in_step: bool,
    /// How many things came in a row that the copy could not use.
    unusable: u32,
    /// The last snapshot could not be read.
    unreadable: bool,
    /// How many messages came since the last event that could not be read: so many events may be
    /// missing.
    unread: u64,
}

impl RoomCopy {
    /// A snapshot or a patch was applied.
    #[inline]
    pub(super) fn is_at(&mut self, version: u64) {
        self.version = version;
        self.in_step = true;
        self.unusable = 0;
        self.unreadable = false;
    }

    /// A snapshot can't be read. Says whether it was the first in a row: it may have been damaged
    /// on its way, and the next be better.
    pub(super) fn cant_be_read(&mut self) -> bool {
        !std::mem::replace(&mut self.unreadable, true)
    }

    /// What came can't be used: the copy waits for a snapshot from now on. `Err` if that was so too
    /// often in a row.
    pub(super) fn fell_out(&mut self, room: u32) -> Result<(), ClientError> {
        self.in_step = false;
        self.unusable += 1;
        if self.unusable > UNUSABLE_IN_A_ROW_MAX {
            return Err(ClientError::NeverInStep { room, unusable: self.unusable });
        }
        Ok(())
    }
}

/// What to do with a patch.
#[derive(Debug)]
pub(super) enum Verdict<'a> {
    /// It begins where this copy is.
    Apply(&'a mut RoomCopy),
    /// The copy waits for a snapshot.
    Skip,
    /// It is none for this copy.
    OutOfStep(OutOfStep),
}

#[derive(Debug, Default)]
pub(super) struct Rooms {
    copies: NumberMap<RoomCopy>,
}

impl Rooms {
    pub(super) fn joined(&mut self, room: u32, epoch: u64) -> Result<(), ClientError> {
        let copy = RoomCopy {
            epoch,
            version: 0,
            sequence: 0,
            in_step: false,
            unusable: 0,
            unreadable: false,
            unread: 0,
        };
        match self.copies.insert(room, copy) {
            None => Ok(()),
            Some(_) => Err(ClientError::RoomNumberTaken { room }),
        }
    }

    pub(super) fn left(&mut self, room: u32) -> Result<(), ClientError> {
        self.copies
            .remove(&room)
            .map(drop)
            .ok_or(ClientError::UnknownRoom { room, message: "a left" })
    }

    pub(super) fn clear(&mut self) {
        self.copies = NumberMap::default();
    }

    pub(super) fn get(&self, room: u32) -> Result<&RoomCopy, CommandError> {
        self.copies.get(&room).ok_or(CommandError::NotJoined { room })
    }

    /// The copy waits for a snapshot from now on.
    pub(super) fn out_of_step(&mut self, room: u32) -> Result<(), CommandError> {
        let copy = self.copies.get_mut(&room).ok_or(CommandError::NotJoined { room })?;
        copy.in_step = false;
        Ok(())
    }

    /// Says how many events before this one were lost in messages that could not be read.
    pub(super) fn event(&mut self, room: u32, got: u64) -> Result<u64, ClientError> {
        let copy = self.get_mut(room, "an event")?;
        let due = copy.sequence + 1;
        let missed = got.checked_sub(due).filter(|missed| *missed <= copy.unread);
        let missed = missed.ok_or(ClientError::EventOutOfOrder { room, due, got })?;
        (copy.sequence, copy.unread) = (got, 0);
        Ok(missed)
    }

    /// A message could not be read, and may have been about any of these rooms.
    pub(super) fn missed_a_message(&mut self) -> Vec<u32> {
        self.copies.values_mut().for_each(|copy| copy.unread += 1);
        let mut rooms: Vec<u32> = self.copies.keys().copied().collect();
        rooms.sort_unstable();
        rooms
    }

    pub(super) fn knows(&self, room: u32) -> bool {
        self.copies.contains_key(&room)
    }

    /// Whether this client is in the room, as far as it knows, and its copy waits for a snapshot.
    pub(super) fn waits(&self, room: u32) -> bool {
        self.copies.get(&room).is_some_and(|copy| !copy.in_step)
    }

    /// The copy that a snapshot is for, if it is one for this copy.
    pub(super) fn snapshot(
        &mut self,
        room: u32,
        epoch: u64,
        version: u64,
    ) -> Result<Result<&mut RoomCopy, OutOfStep>, ClientError> {
        let copy = self.get_mut(room, "a snapshot")?;
        Ok(if epoch != copy.epoch {
            Err(OutOfStep::Epoch { joined: copy.epoch, got: epoch })
        } else if version < copy.version {
            Err(OutOfStep::Older { version: copy.version, got: version })
        } else {
            Ok(copy)
        })
    }

    #[inline]
    pub(super) fn patch(
        &mut self,
        room: u32,
        base: u64,
        version: u64,
    ) -> Result<Verdict<'_>, ClientError> {
        let copy = self.get_mut(room, "a patch")?;
        Ok(match copy.version {
            _ if !copy.in_step => Verdict::Skip,
            own if own != base => Verdict::OutOfStep(OutOfStep::Base { base, version: own }),
            // It would fit a second time, too.
            own if own >= version => Verdict::OutOfStep(OutOfStep::NoAdvance { version }),
            _ => Verdict::Apply(copy),
        })
    }

    /// Whether the copy is at this version, and may be looked at.
    pub(super) fn is_at(&mut self, room: u32, version: u64) -> Result<bool, ClientError> {
        let copy = self.get_mut(room, "a check")?;
        Ok(copy.in_step && copy.version == version)
    }

    /// What came for this copy can't be used.
    pub(super) fn fell_out(&mut self, room: u32) -> Result<(), ClientError> {
        self.copies.get_mut(&room).map_or(Ok(()), |copy| copy.fell_out(room))
    }

    fn get_mut(&mut self, room: u32, message: &'static str) -> Result<&mut RoomCopy, ClientError> {
        self.copies.get_mut(&room).ok_or(ClientError::UnknownRoom { room, message })
    }
}
