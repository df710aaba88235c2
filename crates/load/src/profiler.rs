//! Bytes by field of what some connections of one room are sent.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use playfield_client::session::UpdateKind;
use playfield_state::{FieldCounts, FieldProfile, PlayerId, StateProfile};
use playfield_wire::schema::Type;

/// The patches of a block at first.
const BLOCK_PATCHES: u64 = 8;
/// With more blocks, each two become one.
const BLOCKS_MAX: usize = 128;

/// Counts what connections are sent, by field. Set it in
/// [`Settings::profiler`](crate::Settings::profiler), and read it after the load.
#[derive(Clone, Default)]
pub struct Profiler(Arc<Mutex<Counted>>);

struct Counted {
    profile: Option<StateProfile>,
    patches: u64,
    is_wrong: bool,
    is_paused: bool,
    /// The runs before this one.
    runs: Vec<Vec<Block>>,
    /// The counts at the end of each block of this run.
    marks: Vec<Block>,
    /// The counts at its begin.
    begin: Block,
    block_patches: u64,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            profile: None,
            patches: 0,
            is_wrong: false,
            is_paused: false,
            runs: Vec::new(),
            marks: Vec::new(),
            begin: Block::default(),
            block_patches: BLOCK_PATCHES,
        }
    }
}

/// The counts of a [`Profiler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profiled {
    /// Patches counted: one for each sync and player with changes.
    pub patches: u64,
    /// The bytes of these patches.
    pub bytes: FieldCounts,
    /// The fields. Their bytes in patches add up to `bytes`.
    pub fields: Vec<FieldProfile>,
    /// The same in parts, one after the other, of each run, to say how much the bytes of a field vary.
    /// The last patches of a run are in none of them.
    pub runs: Vec<Vec<Block>>,
}

/// A part of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Its patches.
    pub patches: u64,
    /// The bytes of each field.
    pub bytes: Vec<u64>,
}

impl Profiler {
    /// The counts; `None` if nothing was sent, or a body could not be read.
    #[must_use]
    pub fn profiled(&self) -> Option<Profiled> {
        let counted = self.lock();
        let profile = counted.profile.as_ref().filter(|_| !counted.is_wrong)?;
        Some(Profiled {
            patches: counted.patches,
            bytes: profile.patches(),
            fields: profile.fields(),
            runs: counted.runs.iter().cloned().chain([counted.blocks()]).collect(),
        })
    }

    /// Counts no patches from here on.
    pub fn pause(&self) {
        self.lock().is_paused = true;
    }

    /// Counts patches again, as those of another run.
    pub fn resume(&self) {
        let mut counted = self.lock();
        let blocks = counted.blocks();
        if !blocks.is_empty() {
            counted.runs.push(blocks);
        }
        counted.is_paused = false;
        counted.marks.clear();
        counted.begin = counted.now();
        counted.block_patches = BLOCK_PATCHES;
    }

    /// Counts a body that a player of a room with this state is sent, in `packed`.
    pub fn count(&self, of: &Type, player: u64, kind: UpdateKind, body: &[u8]) {
        let mut counted = self.lock();
        let counted = &mut *counted;
        if counted.profile.is_none() {
            counted.profile = StateProfile::new(of).ok();
        }
        let Some(profile) = &mut counted.profile else { return };
        let read = match kind {
            UpdateKind::Snapshot => profile.snapshot(PlayerId(player), body),
            UpdateKind::Patch if counted.is_paused => profile.skip_patch(PlayerId(player), body),
            UpdateKind::Patch => profile.patch(PlayerId(player), body),
        };
        counted.is_wrong |= read.is_err();
        if kind == UpdateKind::Patch && !counted.is_paused {
            counted.patches += 1;
            counted.mark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    /// All counts until now.
    fn now(&self) -> Block {
        let bytes = self.profile.as_ref().map(StateProfile::patches_by_field);
        Block { patches: self.patches, bytes: bytes.unwrap_or_default() }
    }

    /// Ends a block, if it is long enough.
    fn mark(&mut self) {
        let last = self.marks.last().unwrap_or(&self.begin).patches;
        if self.patches < last + self.block_patches {
            return;
        }
        self.marks.push(self.now());
        if self.marks.len() == BLOCKS_MAX {
            let mut at = 0;
            self.marks.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.block_patches *= 2;
        }
    }

    /// The blocks of this run.
    fn blocks(&self) -> Vec<Block> {
        let mut last = &self.begin;
        let mut blocks = Vec::new();
        for mark in &self.marks {
            let before = |at: usize| last.bytes.get(at).copied().unwrap_or(0);
            let bytes = mark.bytes.iter().enumerate().map(|(at, bytes)| bytes - before(at));
            blocks.push(Block { patches: mark.patches - last.patches, bytes: bytes.collect() });
            last = mark;
        }
        blocks
    }
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Profiler")
    }
}
