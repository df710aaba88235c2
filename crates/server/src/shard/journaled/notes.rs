//! The notes of a shard's rooms for its journal.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use playfield_room::recording::{About, BlockKind, End, Files, Why, put_section};
use playfield_room::{RoomType, Unsaved};

use crate::journal::Journal;
use crate::room_id::RoomId;

/// The size of a block at which another one begins, in bytes: far below the readers' limit, since a
/// single section may be large.
const BLOCK_BYTES: usize = 16 << 20;

/// The notes of a shard's rooms since the last block.
#[derive(Default)]
pub(super) struct Notes {
    sections: Vec<u8>,
    /// The sections of earlier blocks that are full.
    full: Vec<Vec<u8>>,
    /// The rooms that have inputs in no section yet.
    pub(super) open: Vec<RoomId>,
    /// The types and keys of rooms that are finally saved, and whose ends are in the sections.
    pub(super) saved: Vec<(String, String)>,
}

impl Notes {
    /// Appends what a room noted.
    pub(super) fn put(&mut self, room: u64, kind: BlockKind, content: &[u8]) {
        if !self.sections.is_empty() && self.sections.len() + content.len() > BLOCK_BYTES {
            self.full.push(mem::take(&mut self.sections));
        }
        put_section(room, kind, content, &mut self.sections);
    }

    /// Takes the sections of each block, in their order.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut blocks = mem::take(&mut self.full);
        blocks.push(mem::take(&mut self.sections));
        blocks
    }
}

/// The notes of a room.
pub(super) struct RoomNotes {
    pub(super) number: u64,
    pub(super) id: RoomId,
    pub(super) about: About,
    /// The values of its criteria.
    pub(super) criteria: Vec<u8>,
    pub(super) notes: Arc<Mutex<Notes>>,
    pub(super) journal: Arc<Journal>,
    pub(super) has_ended: bool,
    pub(super) room_type: RoomType,
    /// The remains of a room that ended without being saved, or failed; in the latter case with the
    /// number of inputs before the failure.
    pub(super) unsaved: Option<(Box<Unsaved>, Option<u64>)>,
}

/// A room that is saved after its end, and that end, for the journal.
pub(crate) struct LateRoom {
    pub(crate) room: Box<Unsaved>,
    pub(crate) id: RoomId,
    pub(crate) room_type: RoomType,
    /// Set if the room has failed: it resumes from its state after this many inputs.
    pub(crate) until: Option<u64>,
    /// The number of reads of its journal for that state.
    pub(crate) reads: u32,
    pub(super) number: u64,
    pub(super) notes: Arc<Mutex<Notes>>,
}

impl LateRoom {
    /// Writes its end into the journal, and releases its save. Its key is free when the end is
    /// durable.
    pub(crate) fn end(self) {
        let has_failed = self.until.is_some();
        let why =
            if has_failed { "the room failed" } else { "the room ended, and was saved later" };
        let end = End { has_failed, why: why.into() };
        let key = (self.room.room_type().to_owned(), self.room.key().to_owned());
        drop(self.room);
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.put(self.number, BlockKind::End, &end.encode());
        notes.saved.push(key);
    }
}

impl RoomNotes {
    fn put(&self, kind: BlockKind, content: &[u8]) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.put(self.number, kind, content);
    }
}

impl Files for RoomNotes {
    fn begin(&mut self, _: &Why) {
        self.about.why = "the room has a journal".into();
    }

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        if kind == BlockKind::Keyframe {
            // A file has all that is needed of a room from here on.
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.about.unix_ms = now.as_millis() as u64;
            self.put(BlockKind::About, &self.about.encode());
            self.put(BlockKind::Host, &self.criteria);
        }
        self.put(kind, &content);
        self.has_ended |= kind == BlockKind::End;
    }

    fn end(&mut self) {}

    fn unsaved(&mut self, room: Box<Unsaved>, until: Option<u64>) {
        self.unsaved = Some((room, until));
    }

    fn waits(&mut self) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).open.push(self.id);
    }
}

impl Drop for RoomNotes {
    fn drop(&mut self) {
        if !self.has_ended
            && let Some(key) = &self.about.key
        {
            let room_type = &self.about.room_type;
            self.journal.note_unsaved(room_type, key);
            if let Some((room, until)) = self.unsaved.take() {
                let (number, notes) = (self.number, Arc::clone(&self.notes));
                let (id, room_type) = (self.id, self.room_type.clone());
                let late = LateRoom { room, id, room_type, until, reads: 0, number, notes };
                self.journal.save_later(late);
            }
        }
    }
}
