//! The notes of a recorder: entries of a block, blocks of the last minutes, and its file.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::coding::Coded;
use super::input::{put_answer, put_hash};
use super::{Answer, BlockKind, Cursor, End, Input, Position};
use crate::{Error, Unsaved};

/// A block of inputs is closed at this size, and in a file at this age: a process that is killed
/// loses what is younger, and shorter blocks take more space.
const BLOCK_BYTES: usize = 32 << 10;
const BLOCK_AGE: Duration = Duration::from_secs(15);

/// A file begins at most so often for internal errors.
const ERRORS_EVERY: Duration = Duration::from_secs(60);

/// The files of a recorder, which its host keeps. Calls must not block: they come from the room's
/// shard.
pub trait Files: Send {
    /// Begins a file.
    fn begin(&mut self, why: &Why);

    /// Appends a block to it.
    fn block(&mut self, kind: BlockKind, content: Vec<u8>);

    /// The file is whole.
    fn end(&mut self);

    /// The room has ended, and its last state is not saved. A journal takes care of that. A failed
    /// room resumes from its state after `until` inputs.
    fn unsaved(&mut self, room: Box<Unsaved>, until: Option<u64>) {
        let _ = (room, until);
    }

    /// Inputs are noted that are in no block yet. A journal has them
    /// [closed](crate::recording::Recorder::close_block) at the end of the turn.
    fn waits(&mut self) {}
}

/// Why a recording begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The setting of the room type.
    Setting,
    /// An operator or the program wants it so.
    Request,
    /// The room failed: its code panicked.
    Failed,
    /// A handler returned an internal error, with this text.
    InternalError(String),
    /// The room ended.
    Ended,
    /// The room was dropped, or goes on in another process.
    Dropped,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting => f.write_str("the room type is recorded"),
            Self::Request => f.write_str("on request"),
            Self::Failed => f.write_str("the room failed"),
            Self::InternalError(text) => write!(f, "a handler returned an internal error: {text}"),
            Self::Ended => f.write_str("the room ended"),
            Self::Dropped => f.write_str("the room was dropped, or goes on in another process"),
        }
    }
}

/// The amount that a recorder notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    /// The span of inputs kept in memory without a file; zero for none.
    pub keeps: Duration,
    /// The most bytes that are kept in memory.
    pub kept_bytes_max: usize,
    /// The number of inputs from one hash to the next; at least 1.
    pub inputs_per_hash: u32,
    /// The most time from one hash to the next, if inputs come.
    pub hash_every: Duration,
    /// The time from one keyframe to the next.
    pub keyframe_every: Duration,
}

impl Default for RecorderSettings {
    /// Keeps nothing in memory. A hash follows after 1,000 inputs or 5 seconds, and a
    /// keyframe each 5 minutes.
    fn default() -> Self {
        Self {
            keeps: Duration::ZERO,
            kept_bytes_max: 1 << 20,
            inputs_per_hash: 1_000,
            hash_every: Duration::from_secs(5),
            keyframe_every: Duration::from_secs(300),
        }
    }
}

/// The blocks from one keyframe to the next.
struct Segment {
    began: Duration,
    bytes: usize,
    /// The bytes of its keyframe among them.
    keyframe: usize,
    blocks: Vec<(BlockKind, Vec<u8>)>,
}

pub(super) struct Tape {
    files: Box<dyn Files>,
    settings: RecorderSettings,
    /// Something is recorded, in memory or in a file.
    pub(super) is_on: bool,
    has_file: bool,
    cursor: Cursor,
    inputs: u64,
    /// The entries of the block that is being written, and where it begins.
    entries: Vec<u8>,
    begins: Position,
    /// A file has that block closed after this time.
    is_old_after: Duration,
    until_hash: u32,
    hash_due: Duration,
    /// There is a keyframe that the next input counts on from.
    has_keyframe: bool,
    keyframe_at: Duration,
    /// The room is too large to be kept in memory, or was: it is tried again from time to time.
    is_too_large: bool,
    /// The blocks that are kept in memory.
    kept: VecDeque<Segment>,
    kept_bytes: usize,
    error: Option<Error>,
    errors_from: Duration,
}

impl Tape {
    pub(super) fn new(files: Box<dyn Files>, settings: RecorderSettings) -> Self {
        Self {
            files,
            settings,
            is_on: !settings.keeps.is_zero(),
            has_file: false,
            cursor: Cursor::default(),
            inputs: 0,
            entries: Vec::new(),
            begins: Position::default(),
            is_old_after: BLOCK_AGE,
            until_hash: settings.inputs_per_hash,
            hash_due: settings.hash_every,
            has_keyframe: false,
            keyframe_at: Duration::ZERO,
            is_too_large: false,
            kept: VecDeque::new(),
            kept_bytes: 0,
            error: None,
            errors_from: Duration::ZERO,
        }
    }

    pub(super) fn has_keyframe(&self) -> bool {
        self.has_keyframe
    }

    pub(super) fn has_file(&self) -> bool {
        self.has_file
    }

    /// Returns whether a file would have anything of the room.
    pub(super) fn has_any(&self) -> bool {
        self.has_keyframe || !self.kept.is_empty()
    }

    pub(super) fn position(&self) -> Position {
        Position { inputs: self.inputs, at: self.cursor.at, tick: self.cursor.tick }
    }

    /// Begins a file, with what is kept in memory.
    pub(super) fn begin_file(&mut self, why: &Why) {
        if self.has_file {
            return;
        }
        self.close_block();
        self.files.begin(why);
        for Segment { blocks, .. } in std::mem::take(&mut self.kept) {
            blocks.into_iter().for_each(|(kind, content)| self.files.block(kind, content));
        }
        self.kept_bytes = 0;
        (self.has_file, self.is_on, self.is_too_large) = (true, true, false);
    }

    /// The room has ended without being saved, or has failed.
    pub(super) fn unsaved(&mut self, room: Box<Unsaved>, until: Option<u64>) {
        // Omits the input that drops an unsaved room, or the next process would drop the room
        // again.
        if until.is_some() {
            self.close_block();
        }
        self.files.unsaved(room, until);
    }

    /// Ends the file. What follows is kept in memory again, from the next keyframe on.
    pub(super) fn end_file(&mut self, why: &Why) {
        if !self.has_file {
            return;
        }
        self.close_block();
        let end = End { has_failed: *why == Why::Failed, why: why.to_string() };
        self.files.block(BlockKind::End, end.encode());
        self.files.end();
        (self.has_file, self.has_keyframe) = (false, false);
        self.is_on = !self.settings.keeps.is_zero();
    }

    /// The room goes on in a way that inputs do not tell: the next keyframe has it.
    pub(super) fn interrupt(&mut self, why: &str) {
        if !self.has_keyframe {
            return;
        }
        self.close_block();
        self.block(BlockKind::Gap, why.as_bytes().to_vec());
        self.has_keyframe = false;
    }

    /// Notes an input that is about to come.
    #[inline]
    pub(super) fn input(&mut self, at: Duration, input: &Input<'_>) {
        if !self.has_keyframe {
            return;
        }
        let is_old = at > self.is_old_after && self.has_file;
        if (self.entries.len() >= BLOCK_BYTES || is_old) && !self.entries.is_empty() {
            self.close_block();
        }
        self.begin_block();
        self.cursor.put(at, input, &mut self.entries);
        self.inputs += 1;
        self.until_hash = self.until_hash.saturating_sub(1);
    }

    /// Notes an answer of the host to the last input.
    #[cold]
    pub(super) fn answer(&mut self, question: u64, answer: &Answer) {
        if self.has_keyframe {
            put_answer(question, answer, &mut self.entries);
        }
    }

    #[cold]
    pub(super) fn internal_error(&mut self, error: &Error) {
        self.error.get_or_insert_with(|| error.clone());
    }

    /// Returns whether the last input ended in an internal error that is worth a file.
    pub(super) fn takes_error(&mut self) -> Option<Error> {
        let error = self.error.take()?;
        let is_kept = !self.has_file && self.has_keyframe && self.cursor.at >= self.errors_from;
        is_kept.then(|| {
            self.errors_from = self.cursor.at.saturating_add(ERRORS_EVERY);
            error
        })
    }

    #[inline]
    pub(super) fn wants_hash(&self) -> bool {
        (self.until_hash == 0 || self.cursor.at >= self.hash_due) && self.has_keyframe
    }

    #[cold]
    pub(super) fn hash(&mut self, hash: Option<u64>) {
        let has_inputs = self.until_hash < self.settings.inputs_per_hash;
        self.hashed(self.cursor.at);
        if let Some(hash) = hash.filter(|_| self.has_keyframe && has_inputs) {
            self.begin_block();
            put_hash(hash, &mut self.entries);
        }
    }

    /// The next hash counts from here.
    fn hashed(&mut self, at: Duration) {
        self.until_hash = self.settings.inputs_per_hash;
        self.hash_due = at.saturating_add(self.settings.hash_every);
    }

    /// Returns whether the room is to be written whole now, if it can be.
    pub(super) fn wants_keyframe(&self, at: Duration) -> bool {
        let is_due = |at: Duration| {
            let age = at.saturating_sub(self.keyframe_at);
            let every = self.settings.keyframe_every;
            // Memory is freed from keyframe to keyframe.
            let every = if self.has_file { every } else { every.min(self.settings.keeps / 4) };
            let last = self.kept.back().map_or(0, |segment| segment.bytes - segment.keyframe);
            age >= every || last > self.settings.kept_bytes_max / 4
        };
        self.is_on && ((!self.has_keyframe && !self.is_too_large) || is_due(at))
    }

    /// Takes the whole room.
    pub(super) fn keyframe(&mut self, at: Duration, tick: u64, hash: u64, frozen: &[u8]) {
        self.close_block();
        if !self.has_keyframe {
            self.cursor = Cursor { at, tick };
        }
        let mut content = Vec::with_capacity(frozen.len() + 32);
        self.position().put(&mut content);
        content.extend(hash.to_le_bytes());
        content.extend(frozen);
        self.keyframe_at = at;
        if !self.has_file {
            let keyframe = content.len();
            self.kept.push_back(Segment { began: at, bytes: 0, keyframe, blocks: Vec::new() });
        }
        (self.has_keyframe, self.is_too_large) = (true, false);
        self.block(BlockKind::Keyframe, content);
        self.hashed(at);
    }

    /// Begins a block of inputs, if none is being written.
    #[inline]
    fn begin_block(&mut self) {
        if self.entries.is_empty() {
            self.begins = self.position();
            self.is_old_after = self.begins.at.saturating_add(BLOCK_AGE);
            self.files.waits();
        }
    }

    /// Ends the block of inputs that is being written.
    pub(super) fn close_block(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let mut content = Vec::with_capacity(self.entries.len() + 24);
        self.begins.put(&mut content);
        content.append(&mut self.entries);
        self.block(BlockKind::Inputs, content);
    }

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        if self.has_file {
            return self.files.block(kind, content);
        }
        let Some(last) = self.kept.back_mut() else { return };
        last.bytes += content.len();
        self.kept_bytes += content.len();
        last.blocks.push((kind, content));
        self.forget();
    }

    /// Forgets what is kept for longer than it is to be, and what is too much.
    fn forget(&mut self) {
        let Self { settings, cursor, .. } = self;
        let until = cursor.at.saturating_sub(settings.keeps);
        while self.kept.get(1).is_some_and(|next| next.began <= until)
            || self.kept.len() > 1 && self.kept_bytes > settings.kept_bytes_max
        {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |first| first.bytes);
        }
        if self.kept_bytes > settings.kept_bytes_max {
            // One segment alone, of a room that could not be written whole for long.
            self.kept.clear();
            (self.kept_bytes, self.has_keyframe, self.is_too_large) = (0, false, true);
        }
    }
}
