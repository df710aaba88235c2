//! The journal of a shard, and what its rooms have sent that waits for it.
//!
//! A journaled room speaks to all its members by [frames](crate::shard::frames), to those of its
//! own shard, too. Its mail goes into *lanes* of its own: for each shard one that is held. What
//! sessions of this shard say to such rooms has a lane as well. At the end of a turn, the inputs of
//! the turn become a block of the journal, and what is in the held lanes waits until that block is
//! durable. Then it goes on in the order in which it was made.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use playfield_room::recording::{About, BlockKind, End, Files, Recorder, Why, put_section};
use playfield_room::{AnyRoom, RoomType, Unsaved};

use crate::journal::{Journal, Progress, is_journaled};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;

/// A block of a shard's journal.
pub(crate) struct Block {
    /// Its number in the whole journal.
    pub(crate) number: u64,
    pub(crate) sections: Vec<u8>,
    /// Set if the block begins a file.
    pub(crate) begins_file: bool,
}

/// The place where the blocks of a shard's journal go.
pub(crate) trait Sink: Send {
    /// Writes a block after those before. Never waits.
    fn append(&mut self, block: Block);

    /// With this block, each room is whole in a block from `first` on: what is before is of no use
    /// then.
    fn settled(&mut self, block: u64, first: u64);

    /// The number of blocks that are durable.
    fn durable(&self) -> u64;

    /// Returns whether a file was given up since the last call, because its disk failed. It is kept
    /// until all rooms are whole in another one.
    fn gave_up(&mut self) -> bool;
}

/// The lanes of a shard's mail, by their numbers: first one for each shard, then those of journaled
/// rooms.
#[derive(Clone, Copy)]
pub(in crate::shard) struct Lanes {
    shards: u16,
}

impl Lanes {
    pub(in crate::shard) fn new(shards: usize) -> Self {
        Self { shards: shards as u16 }
    }

    pub(in crate::shard) fn shards(self) -> u16 {
        self.shards
    }

    /// The number of lanes.
    pub(in crate::shard) fn count(self) -> usize {
        2 * usize::from(self.shards) + 1
    }

    /// The lane of mail for a shard that is held.
    pub(in crate::shard) fn held(self, shard: u16) -> u16 {
        self.shards + shard
    }

    /// The lane of what sessions of this shard say to its journaled rooms.
    pub(in crate::shard) fn inputs(self) -> u16 {
        2 * self.shards
    }

    /// The shard that a lane leads to.
    pub(in crate::shard) fn shard(self, lane: u16) -> u16 {
        if lane < self.shards { lane } else { lane - self.shards }
    }
}

/// The size of a block at which another one begins, in bytes: far below the readers' limit, since a
/// single section may be large.
const BLOCK_BYTES: usize = 16 << 20;

/// The notes of a shard's rooms since the last block.
#[derive(Default)]
struct Notes {
    sections: Vec<u8>,
    /// The sections of earlier blocks that are full.
    full: Vec<Vec<u8>>,
    /// The rooms that have inputs in no section yet.
    open: Vec<RoomId>,
    /// The types and keys of rooms that are finally saved, and whose ends are in the sections.
    saved: Vec<(String, String)>,
}

impl Notes {
    /// Appends what a room noted.
    fn put(&mut self, room: u64, kind: BlockKind, content: &[u8]) {
        if !self.sections.is_empty() && self.sections.len() + content.len() > BLOCK_BYTES {
            self.full.push(mem::take(&mut self.sections));
        }
        put_section(room, kind, content, &mut self.sections);
    }

    /// Takes the sections of each block, in their order.
    fn take(&mut self) -> Vec<Vec<u8>> {
        let mut blocks = mem::take(&mut self.full);
        blocks.push(mem::take(&mut self.sections));
        blocks
    }
}

/// Mail that waits for a block.
struct Waiting {
    /// The number of durable blocks at which it may leave.
    blocks: u64,
    shard: u16,
    mail: VecDeque<ShardMail>,
}

/// The journal of a shard.
pub(crate) struct Journaled {
    journal: Arc<Journal>,
    sink: Box<dyn Sink>,
    notes: Arc<Mutex<Notes>>,
    /// The journal has not been durable for too long.
    is_stalled: Arc<AtomicBool>,
    progress: Arc<Progress>,
    /// The number of the next block, and of the next room.
    next: u64,
    next_room: u64,
    waiting: VecDeque<Waiting>,
    /// Mail for this shard that need not wait any more.
    pub(in crate::shard) released: VecDeque<ShardMail>,
    /// The types and keys that are free when this block is durable.
    freed: VecDeque<(u64, Vec<(String, String)>)>,
    /// The blocks that are not durable, and when each was begun.
    under_way: VecDeque<(u64, Duration)>,
    /// The first block of the present file, and the bytes in it.
    first: u64,
    bytes: usize,
    /// Rooms to be written whole, so that older files are of no use; `None` if all are.
    pub(in crate::shard) to_write: Option<VecDeque<RoomId>>,
    /// The next turn writes some of them. If `false`, none could be written last time, so they are
    /// tried again after a while.
    pub(in crate::shard) is_write_due: bool,
    /// Rooms of these types are journaled without a key, too.
    #[cfg(test)]
    pub(crate) journals: fn(&RoomType) -> bool,
}

impl Journaled {
    pub(crate) fn new(journal: Arc<Journal>, sink: Box<dyn Sink>) -> Self {
        let progress = journal.count_blocks();
        Self {
            journal,
            progress,
            sink,
            notes: Arc::default(),
            is_stalled: Arc::default(),
            next: 0,
            next_room: 0,
            waiting: VecDeque::new(),
            released: VecDeque::new(),
            freed: VecDeque::new(),
            under_way: VecDeque::new(),
            first: 0,
            bytes: 0,
            to_write: Some(VecDeque::new()),
            is_write_due: true,
            #[cfg(test)]
            journals: |_| false,
        }
    }

    /// Returns whether a room of this type and with this key is journaled.
    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests journal other rooms, too"))]
    pub(in crate::shard) fn takes(&self, room_type: &RoomType, key: Option<&str>) -> bool {
        let takes = key.is_some() && is_journaled(&room_type.settings);
        #[cfg(test)]
        let takes = takes || (self.journals)(room_type);
        takes
    }

    /// Journals a room, if its type is to be and it has a key.
    pub(in crate::shard) fn journal(
        &mut self,
        room: Box<dyn AnyRoom>,
        id: RoomId,
        room_type: &RoomType,
        criteria: Vec<u8>,
    ) -> Box<dyn AnyRoom> {
        let key = room.summary().key.as_deref().map(str::to_owned);
        if !self.takes(room_type, key.as_deref()) {
            return room;
        }
        let about = About {
            room_type: room_type.name.clone(),
            room_id: id.to_string(),
            key,
            fingerprint: room_type.fingerprint,
            messages: Arc::clone(&room_type.messages),
            build: self.journal.build().to_owned(),
            ..About::default()
        };
        let number = self.next_room;
        self.next_room += 1;
        let (notes, journal) = (Arc::clone(&self.notes), Arc::clone(&self.journal));
        let files = RoomNotes {
            number,
            id,
            about,
            criteria,
            notes,
            journal,
            has_ended: false,
            room_type: room_type.clone(),
            unsaved: None,
        };
        let every = Duration::from_secs(room_type.settings.persist_s.into());
        let stalled = Arc::clone(&self.is_stalled);
        Box::new(Recorder::journal(room, Box::new(files), every, stalled))
    }

    /// Returns whether the last state of a room with this key is only in the journal.
    pub(in crate::shard) fn is_unsaved(&self, room_type: &RoomType, key: &str) -> bool {
        is_journaled(&room_type.settings) && self.journal.is_unsaved(&room_type.name, key)
    }

    pub(in crate::shard) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Relaxed)
    }

    /// Takes the rooms whose inputs are in no section.
    pub(in crate::shard) fn take_open(&mut self) -> Vec<RoomId> {
        mem::take(&mut self.notes().open)
    }

    /// Ends the block of this turn, if it has content; large content takes several blocks. Returns
    /// whether it begins a file, so that all rooms are to be [written](Self::to_write) again.
    pub(in crate::shard) fn end_block(&mut self, now: Duration) -> bool {
        let mut notes = self.notes();
        let (blocks, saved) = (notes.take(), mem::take(&mut notes.saved));
        drop(notes);
        let is_whole = self.to_write.as_ref().is_some_and(VecDeque::is_empty);
        if blocks.iter().all(Vec::is_empty) && !is_whole {
            return false;
        }
        let is_full = self.bytes > self.journal.file_bytes();
        let begins_file = self.to_write.is_none() && (self.sink.gave_up() || is_full);
        if begins_file {
            (self.first, self.bytes) = (self.next, 0);
        }
        for (place, sections) in blocks.into_iter().enumerate() {
            self.bytes += sections.len();
            let begins_file = begins_file && place == 0;
            self.under_way.push_back((self.next, now));
            self.sink.append(Block { number: self.next, sections, begins_file });
            self.next += 1;
        }
        self.progress.made.store(self.next, Ordering::Release);
        let last = self.next - 1;
        if !saved.is_empty() {
            self.freed.push_back((last, saved));
        }
        if is_whole {
            self.to_write = None;
            self.sink.settled(last, self.first);
        }
        begins_file
    }

    /// Notes something of a room.
    #[cfg(test)]
    pub(crate) fn note(&mut self, room: u64, content: &[u8]) {
        self.notes().put(room, BlockKind::Host, content);
    }

    /// Mail was made that waits for the last block.
    pub(in crate::shard) fn hold(&mut self, shard: u16, mail: VecDeque<ShardMail>) {
        self.waiting.push_back(Waiting { blocks: self.next, shard, mail });
    }

    /// Takes mail that need not wait any more.
    pub(in crate::shard) fn release(&mut self) -> Option<(u16, VecDeque<ShardMail>)> {
        let durable = self.sink.durable();
        self.waiting.front().filter(|waiting| waiting.blocks <= durable)?;
        self.waiting.pop_front().map(|released| (released.shard, released.mail))
    }

    /// Returns whether mail waits that may leave.
    pub(in crate::shard) fn may_release(&self) -> bool {
        self.waiting.front().is_some_and(|waiting| waiting.blocks <= self.sink.durable())
    }

    /// Returns whether no mail waits.
    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.released.is_empty()
    }

    /// Looks whether the journal is too late. Returns whether that has changed.
    pub(in crate::shard) fn look(&mut self, now: Duration) -> bool {
        let durable = self.sink.durable();
        self.progress.durable.store(durable, Ordering::Release);
        while self.under_way.front().is_some_and(|(number, _)| *number < durable) {
            self.under_way.pop_front();
        }
        while self.freed.front().is_some_and(|(number, _)| *number < durable)
            && let Some((_, saved)) = self.freed.pop_front()
        {
            for (room_type, key) in saved {
                self.journal.forget_unsaved(&room_type, &key);
            }
        }
        let is_late = self.late_at().is_some_and(|at| at <= now);
        let has_changed = self.is_stalled.swap(is_late, Ordering::Relaxed) != is_late;
        if has_changed && is_late {
            self.journal.stalls();
        }
        has_changed
    }

    /// When the journal is too late, if it is not by then durable.
    fn late_at(&self) -> Option<Duration> {
        self.under_way.front().map(|(_, begun)| begun.saturating_add(self.journal.wait()))
    }

    /// When to [look](Self::look) next.
    pub(in crate::shard) fn deadline(&self) -> Option<Duration> {
        self.late_at().filter(|_| !self.is_stalled())
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The notes of a room.
struct RoomNotes {
    number: u64,
    id: RoomId,
    about: About,
    /// The values of its criteria.
    criteria: Vec<u8>,
    notes: Arc<Mutex<Notes>>,
    journal: Arc<Journal>,
    has_ended: bool,
    room_type: RoomType,
    /// The remains of a room that ended without being saved, or failed; in the latter case with the
    /// number of inputs before the failure.
    unsaved: Option<(Box<Unsaved>, Option<u64>)>,
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
    number: u64,
    notes: Arc<Mutex<Notes>>,
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
