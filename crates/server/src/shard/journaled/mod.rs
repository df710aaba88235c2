//! The journal of a shard, and what its rooms have sent that waits for it.
//!
//! A journaled room speaks to all its members by [frames](crate::shard::frames), to those of its
//! own shard, too. Its mail goes into *lanes* of its own: for each shard one that is held. What
//! sessions of this shard say to such rooms has a lane as well. At the end of a turn, the inputs of
//! the turn become a block of the journal, and what is in the held lanes waits until that block is
//! durable. Then it goes on in the order in which it was made.

mod notes;

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(test)]
use playfield_room::recording::BlockKind;
use playfield_room::recording::{About, Recorder};
use playfield_room::{AnyRoom, Pausable, RoomType, Store, Unsaved};

pub(crate) use self::notes::LateRoom;
use self::notes::{Notes, RoomNotes};
use crate::journal::{Ending, Journal, Progress, is_journaled};
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
        Box::new(Pausable::journaled(Recorder::journal(room, Box::new(files), every), stalled))
    }

    /// Takes a room that was ending when its process ended, and saves it when the store accepts it.
    pub(in crate::shard) fn save_later(&mut self, room: Ending, store: Arc<dyn Store>) {
        let Ending { id, room_type, key, recording, save, saves } = room;
        let number = self.next_room;
        self.next_room += 1;
        recording.carry(|kind, content| self.notes().put(number, kind, content));
        self.journal.note_unsaved(&room_type.name, &key);
        let room = Unsaved::recovered(store, room_type.name.clone(), &key, save, saves);
        self.journal.save_later(LateRoom {
            room: Box::new(room),
            id,
            room_type,
            until: None,
            reads: 0,
            number,
            notes: Arc::clone(&self.notes),
        });
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
