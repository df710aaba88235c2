//! The law of journals: whatever is left of the files of a journal, a room that is recovered is as
//! it was at the last block that is whole, or the journal says that it is damaged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playfield_room::frozen::Frozen;
use playfield_room::recording::{
    About, BlockKind, Files, Journal, JournalPart, Moment, Recorder, RecoveredRoom, Replay,
    Segment, SegmentWriter, Why, put_section, recover,
};
use playfield_room::{AnyRoom, Link, MemoryStore, Pausable, RoomType, Thaw};
use proptest::prelude::*;

use crate::freezing_laws::{Input, Play, cases, inputs};
use crate::support::park::Park;

/// The sections of one room, on their way to the next block.
struct Sections {
    room: u64,
    to: Arc<Mutex<Vec<u8>>>,
}

impl Sections {
    fn put(&self, kind: BlockKind, content: &[u8]) {
        put_section(self.room, kind, content, &mut self.to.lock().unwrap());
    }
}

impl Files for Sections {
    fn begin(&mut self, _: &Why) {}

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        if kind == BlockKind::Keyframe {
            let about = About { room_id: format!("room {}", self.room), ..About::default() };
            self.put(BlockKind::About, &about.encode());
        }
        self.put(kind, &content);
    }

    fn end(&mut self) {}
}

/// The state of a room when a block was written: its hash, and whether it had ended.
type Known = (Option<u64>, bool);

/// A journal of several rooms.
struct Journaled {
    rooms: Vec<Play>,
    sections: Arc<Mutex<Vec<u8>>>,
    files: Vec<Vec<u8>>,
    writer: SegmentWriter,
    /// After each block: the file, its length then, and the rooms.
    blocks: Vec<(usize, usize, Vec<Known>)>,
}

impl Journaled {
    fn new(rooms: u64, keyframe_every: Duration) -> Self {
        let sections = Arc::new(Mutex::new(Vec::new()));
        let mut of = Vec::new();
        for room in 0..rooms {
            let mut play = Play::new(room, false);
            let files = Sections { room, to: Arc::clone(&sections) };
            let journaled = |room| -> Box<dyn AnyRoom> {
                let recorder = Recorder::journal(room, Box::new(files), keyframe_every);
                Box::new(Pausable::journaled(recorder, Arc::new(AtomicBool::new(false))))
            };
            // Some rooms come from another process, and open their saves again.
            match room % 2 {
                0 => crate::recording_laws::take_room(&mut play, journaled),
                _ => play.go_on_in(journaled),
            }
            of.push(play);
        }
        let mut first = Vec::new();
        let writer = SegmentWriter::begin(&Segment::default(), &mut first);
        Self { rooms: of, sections, files: vec![first], writer, blocks: Vec::new() }
    }

    fn commit(&mut self) {
        for play in &mut self.rooms {
            if let Some(recorder) = play.host.room.journaled() {
                recorder.close_block();
            }
        }
        let sections = std::mem::take(&mut *self.sections.lock().unwrap());
        let number = self.blocks.len() as u64;
        let file = self.files.len() - 1;
        self.writer.block(number, &sections, &mut self.files[file]);
        let known = self.rooms.iter().map(|play| {
            let room = &play.host.room;
            (room.state_hash(), room.is_closed())
        });
        self.blocks.push((file, self.files[file].len(), known.collect()));
    }

    /// Begins the next file, with rooms that are written whole as far as they can be.
    fn rotate(&mut self) {
        let first = self.blocks.len() as u64;
        let segment = Segment { number: self.files.len() as u64, first, ..Segment::default() };
        let mut bytes = Vec::new();
        self.writer = SegmentWriter::begin(&segment, &mut bytes);
        self.files.push(bytes);
        for play in &mut self.rooms {
            let at = play.host.at;
            if let Some(recorder) = play.host.room.journaled() {
                recorder.write_whole(at);
            }
        }
    }
}

fn read(files: &[Vec<u8>]) -> Journal {
    read_part(files, JournalPart::All)
}

fn read_part(files: &[Vec<u8>], part: JournalPart<'_>) -> Journal {
    Journal::read_part(files.iter().map(|file| ("file", &file[..])), part)
}

/// Reads the rooms of a journal one by one, and as a list.
fn check_parts(files: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let (journal, list) = (read(files), read_part(files, JournalPart::List));
    prop_assert_eq!(journal.rooms().count(), list.rooms().count());
    for ((_, of), (_, listed)) in journal.rooms().zip(list.rooms()) {
        prop_assert_eq!(of.glance(), listed.glance());
        let one = read_part(files, JournalPart::Room(&of.about().room_id, u64::MAX));
        let rooms: Vec<_> = one.rooms().collect();
        let [(_, one)] = rooms[..] else { panic!("{} rooms", rooms.len()) };
        prop_assert_eq!(one.glance(), of.glance());
        prop_assert_eq!(one.last(), of.last());
        let mut replay = Replay::new(one, &RoomType::of::<Park>("test")).unwrap();
        prop_assert_eq!(replay.verify().unwrap().difference, None);
        let cut = read_part(files, JournalPart::Room(&of.about().room_id, 0));
        let (_, cut) = cut.rooms().next().unwrap();
        prop_assert_eq!((cut.bytes(), cut.begin()), (one.bytes(), one.begin()));
        prop_assert_eq!(cut.keyframe_positions().len(), 1, "no more is held");
        // Inputs before the room was written whole do not count.
        let begin = one.begin();
        prop_assert_eq!(one.inputs_until(Moment::At(begin.at)).unwrap() >= begin.inputs, true);
        prop_assert!(one.inputs_until(Moment::Inputs(begin.inputs)).is_ok());
    }
    Ok(())
}

/// Compares the rooms of a journal with what they were.
fn check(journal: &Journal, known: &[Known]) -> Result<(), TestCaseError> {
    let room_type = RoomType::of::<Park>("test");
    for (room, (hash, has_ended)) in (0..).zip(known) {
        let Some((_, recording)) = journal.rooms().find(|(number, _)| *number == room) else {
            // The room has not been called, or has ended without having been written.
            continue;
        };
        if journal.damage(room).is_some() {
            continue;
        }
        if *has_ended && recording.end().is_some() {
            continue;
        }
        let mut replay = Replay::new(recording, &room_type).unwrap();
        let summary = replay.verify().unwrap();
        prop_assert_eq!(&summary.difference, &None);
        prop_assert_eq!(replay.room().state_hash(), *hash, "room {}", room);
        let recovered = recover(recording, &room_type).unwrap();
        prop_assert_eq!(recovered.stopped, None);
        prop_assert_eq!(recovered.position, summary.position);
        if let RecoveredRoom::Open(frozen) = recovered.room {
            let frozen = frozen.finish().unwrap();
            let frozen = Frozen::read(&frozen).unwrap();
            let store = Some(Arc::new(MemoryStore::new()) as _);
            (room_type.thaw)(Thaw { frozen: &frozen, store, link: &mut |_| Link(0) }).unwrap();
        }
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(usize, Input, u8)>> {
    let step = (0..3_usize, inputs(), 0..12_u8);
    prop::collection::vec(step, 1..12).prop_map(|steps| {
        let of = |(room, inputs, then): (usize, Vec<Input>, u8)| {
            inputs.into_iter().take(8).map(move |input| (room, input, then))
        };
        steps.into_iter().flat_map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_of_a_journal_is_what_the_rooms_were(
        steps in steps(),
        keyframe_ms in 0..3_000_u64,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 8),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..8_u8), 8),
    ) {
        let mut all = Journaled::new(3, Duration::from_millis(keyframe_ms));
        for (room, input, then) in &steps {
            all.rooms[*room].take(input);
            match then {
                0..6 => all.commit(),
                6 => {
                    all.commit();
                    all.rotate();
                }
                _ => {}
            }
        }
        all.commit();
        let (_, _, last) = all.blocks.last().unwrap();
        let journal = read(&all.files);
        prop_assert!(journal.faults().is_empty(), "{:?}", journal.faults());
        prop_assert!(!journal.is_damaged());
        check(&journal, last)?;
        check_parts(&all.files)?;
        // Older files are removed.
        check_parts(&all.files[all.files.len() - 1..])?;

        // Cut at any byte: the process ended while it wrote.
        let total: usize = all.files.iter().map(Vec::len).sum();
        for cut in cuts {
            let mut left = cut.index(total);
            let mut files = Vec::new();
            for file in &all.files {
                let bytes = left.min(file.len());
                files.push(file[..bytes].to_vec());
                left -= bytes;
                if bytes < file.len() {
                    break;
                }
            }
            let at = (files.len() - 1, files.last().unwrap().len());
            let whole = all.blocks.iter().rev().find(|(file, bytes, _)| (*file, *bytes) <= at);
            let journal = read(&files);
            prop_assert!(!journal.is_damaged(), "{:?}", journal.faults());
            match whole {
                Some((.., known)) => check(&journal, known)?,
                None => prop_assert_eq!(journal.rooms().count(), 0),
            }
        }

        // A flipped bit: what was acknowledged is there, or the journal is damaged.
        for (file, byte, bit) in flips {
            let mut files = all.files.clone();
            let file = file.index(files.len());
            let byte = byte.index(files[file].len());
            files[file][byte] ^= 1 << bit;
            let journal = read(&files);
            prop_assert!(!journal.faults().is_empty());
            if !journal.is_damaged() {
                check(&journal, last)?;
            }
        }
    }
}

/// While the journal can't be written, a room is not called, and then it does all in order.
#[test]
fn a_stalled_room_does_later_what_waits() {
    use playfield_room::{PlayerId, Stage};

    let mut play = Play::new(1, false);
    let sections = Arc::new(Mutex::new(Vec::new()));
    let stalled = Arc::new(AtomicBool::new(false));
    let files = Sections { room: 0, to: Arc::clone(&sections) };
    let flag = Arc::clone(&stalled);
    crate::recording_laws::take_room(&mut play, |room| {
        let recorder = Recorder::journal(room, Box::new(files), Duration::from_secs(60));
        Box::new(Pausable::journaled(recorder, flag))
    });
    let player = play.host.join("Ann").unwrap();
    let before = play.host.room.state_hash();
    stalled.store(true, Ordering::Relaxed);
    let room: &mut dyn AnyRoom = &mut *play.host.room;
    room.lost(Duration::from_secs(1), player, &mut play.host.out);
    room.leave(
        Duration::from_secs(1),
        player,
        playfield_room::LeaveReason::Left,
        &mut play.host.out,
    );
    room.tick(Duration::from_secs(1), 1, &mut play.host.out);
    assert_eq!((room.state_hash(), room.wake_at()), (before, None));
    assert_eq!(room.players(&mut |_| true).len(), 1);
    assert!(play.host.join("Ben").is_err());
    stalled.store(false, Ordering::Relaxed);
    let room: &mut dyn AnyRoom = &mut *play.host.room;
    room.wake(Duration::from_secs(2), &mut play.host.out);
    assert_eq!(room.players(&mut |_| true).len(), 0);
    assert_eq!((room.stage(), player), (Stage::Open, PlayerId(1)));
}
