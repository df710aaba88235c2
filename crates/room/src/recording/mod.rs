//! Recordings of rooms, and their replay.
//!
//! A room is deterministic: from a frozen room and its [`Input`]s on, it runs again, here or on
//! another machine. A [`Recorder`] around a room notes each input, and from time to time the
//! [hash](crate::AnyRoom::state_hash) of the room and the whole room, a *keyframe*. [`Recording`]
//! reads what it wrote, and [`Replay`] runs it, and names the first inputs after which the room
//! differs.
//!
//! A recording is a file of [blocks](Blocks) behind a head of 8 bytes: `PFREC`, 0x0a, and the
//! version of the format, 1, in two bytes. The kinds of its blocks are the [`BlockKind`]s:
//!
//! | kind | content |
//! |---|---|
//! | `About` | the room: its type, id and key, the build, the time; once, first |
//! | `Keyframe` | the position, the hash, and the [frozen room](crate::frozen) |
//! | `Inputs` | the position, and entries: inputs, hashes, the host's answers |
//! | `Gap` | why the inputs up to the next keyframe are missing |
//! | `End` | why the recording ends; a recording without it was cut |
//! | `Segment` | in a journal: the head of a file, with its place in the journal |
//! | `Rooms` | of a journal: the number of the block in the whole journal, and sections, each with the number of a room, a kind, a length, and the content of a block of that kind |
//! | `Host` | of a journal: facts that the host has about the room, before each keyframe |
//!
//! A [journal](Journal) has the same of many rooms: its files begin with a `Segment`, and each of
//! their other blocks, a `Rooms`, has what the rooms of a shard noted until it was written.
//!
//! A position is the number of inputs before, the time in the room and the number of the last tick.

mod block;
mod coding;
mod describe;
mod excerpt;
mod glance;
mod heard;
mod input;
mod journal;
mod message;
mod playback;
mod read;
mod recorder;
mod recover;
mod replay;
mod search;
mod tap;
mod tape;
mod write;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

pub use self::block::{BLOCK_BYTES_MAX, Block, BlockError, BlockFault, BlockWriter, Blocks};
use self::coding::Coded;
pub use self::describe::{Described, InputKind};
pub use self::excerpt::{Excerpt, ExcerptOf, Frame, Shown};
pub use self::glance::Glance;
pub use self::input::{Answer, Cursor, Entry, Input};
pub use self::journal::{Journal, JournalFault, JournalPart, Segment, SegmentWriter, put_section};
pub use self::message::{RECORDED_PAYLOAD_BYTES_MAX, Recorded, RecordedKind};
pub use self::read::{End, ReadLimit, Recording, RecordingError};
pub use self::recorder::Recorder;
pub use self::recover::{RecoverError, Recovered, RecoveredRoom, recover, recover_save};
pub use self::replay::{Difference, Replay, ReplayError, Step, Summary};
pub use self::search::{Found, Search, Wanted};
pub use self::tape::{Files, RecorderSettings, Why};
pub use self::write::RecordingWriter;

/// The first bytes of a recording.
pub const HEAD: &[u8; 8] = b"PFREC\n\x01\x00";

/// The kinds of blocks in a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// The facts about the room.
    About = 0,
    /// The whole room.
    Keyframe = 1,
    /// Inputs.
    Inputs = 2,
    /// Missing inputs.
    Gap = 3,
    /// The end of the recording.
    End = 4,
    /// The begin of a file of a journal.
    Segment = 5,
    /// Blocks of the rooms of a journal.
    Rooms = 6,
    /// The facts that the host of a journal has about the room.
    Host = 7,
}

impl BlockKind {
    const ALL: [Self; 8] = [
        Self::About,
        Self::Keyframe,
        Self::Inputs,
        Self::Gap,
        Self::End,
        Self::Segment,
        Self::Rooms,
        Self::Host,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// The facts about a recorded room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The name of its type.
    pub room_type: String,
    /// Its id.
    pub room_id: String,
    /// Its key, if it has one.
    pub key: Option<String>,
    /// The fingerprint of the schema of its type.
    pub fingerprint: u64,
    /// The program that recorded it.
    pub build: String,
    /// The start of its file, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Why it was recorded.
    pub why: String,
    /// The names of its type's messages, in the order of their numbers.
    pub messages: Arc<[String]>,
}

impl About {
    /// The content of a block of this kind.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { room_type, room_id, key, fingerprint, build, unix_ms, why, messages } = self;
        let mut out = Vec::new();
        room_type.put(&mut out);
        room_id.put(&mut out);
        key.put(&mut out);
        fingerprint.put(&mut out);
        build.put(&mut out);
        unix_ms.put(&mut out);
        why.put(&mut out);
        messages.iter().for_each(|name| name.put(&mut out));
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        let mut this = Self {
            room_type: Coded::read(reader)?,
            room_id: Coded::read(reader)?,
            key: Coded::read(reader)?,
            fingerprint: Coded::read(reader)?,
            build: Coded::read(reader)?,
            unix_ms: Coded::read(reader)?,
            why: Coded::read(reader)?,
            messages: Arc::default(),
        };
        // Files of builds before this had none.
        let mut messages = Vec::new();
        while !reader.is_empty() {
            messages.push(Coded::read(reader)?);
        }
        this.messages = messages.into();
        Ok(this)
    }
}

/// A place in a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of inputs before.
    pub inputs: u64,
    /// The time in the room.
    pub at: Duration,
    /// The number of the last tick.
    pub tick: u64,
}

/// A moment in a recording, as people name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After so many inputs.
    Inputs(u64),
    /// After the first input of this tick, or of the next one that was recorded.
    Tick(u64),
    /// After the last input until this time in the room.
    At(Duration),
}

impl Position {
    fn cursor(self) -> Cursor {
        Cursor { at: self.at, tick: self.tick }
    }
}

impl Coded for Position {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { inputs, at, tick } = self;
        inputs.put(out);
        at.put(out);
        tick.put(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            inputs: Coded::read(reader)?,
            at: Coded::read(reader)?,
            tick: Coded::read(reader)?,
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inputs, at, tick } = self;
        match tick {
            // The room has no ticks, or none yet.
            0 => write!(f, "input {inputs}, {at:.3?}"),
            tick => write!(f, "input {inputs}, tick {tick}, {at:.3?}"),
        }
    }
}
