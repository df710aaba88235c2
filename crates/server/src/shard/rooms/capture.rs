//! Bodies of a room's snapshots and patches, captured for an operator.
//!
//! They are written again in `packed` for a few of its players, whatever format those have. To take
//! little of the room's time, most syncs are passed over: a patch brings the copies up to date, and
//! the patch of the sync that follows counts.

use std::time::Duration;

use playfield_room::{AnyRoom, EventHeader, Player};
use playfield_state::{ExchangeProfile, Format, PlayerId};
use playfield_wire::message::MessageRef;

use crate::shard::env::Stopwatch;

/// A capture takes one part in this many of the time that the room's ticks, syncs and patches take.
/// What exceeds that, such as its snapshots, is made up for by passing over more syncs.
const PARTS: u32 = 200;
/// The time that it takes in any case, so that a room that takes little is captured all the same.
const FREE: Duration = Duration::from_micros(250);
/// For how many players bodies are captured.
const PLAYERS_MAX: usize = 3;
/// The most bytes of bodies kept.
const BYTES_MAX: usize = 4 << 20;
/// The extra time for which a capture goes on if nobody collects it.
const COLLECTED_WITHIN: Duration = Duration::from_secs(10);

/// The bodies of some players since a capture began.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Tells it from others of the same room.
    pub(crate) number: u64,
    began: Duration,
    until: Duration,
    /// The players for whom no body was captured yet.
    waiting: Vec<PlayerId>,
    players: Vec<PlayerId>,
    /// The version of their copies.
    version: u64,
    /// Whether the copies were brought up to date, so the next patch is that of one sync.
    is_ready: bool,
    pub(crate) captured: Captured,
}

/// The captured bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured {
    pub(crate) bodies: Vec<CapturedBody>,
    /// The messages and events of all its players.
    pub(crate) exchange: ExchangeProfile,
    /// The bytes of all bodies.
    bytes: usize,
    /// The number of players who had bodies at the end.
    pub(crate) players: usize,
    /// The number of syncs that the room had, and the number that were captured.
    pub(crate) syncs: u64,
    pub(crate) captured: u64,
    /// The time that the room took, and the time that the capture took.
    pub(crate) of_room: Duration,
    pub(crate) spent: Duration,
    /// The time that the capture has lasted.
    pub(crate) lasted: Duration,
}

/// The body of a snapshot or a patch for a player.
#[derive(Clone, Debug)]
pub(crate) struct CapturedBody {
    pub(crate) player: PlayerId,
    pub(crate) kind: CapturedKind,
    pub(crate) bytes: Vec<u8>,
}

/// The kind of a captured body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CapturedKind {
    Snapshot,
    /// The patch of one sync.
    Patch,
    /// The patch of the syncs that were passed over.
    CatchUp,
}

impl Capture {
    /// Begins a capture of a room that lasts for a while.
    pub(crate) fn begin(
        number: u64,
        now: Duration,
        lasts: Duration,
        exchange: ExchangeProfile,
        room: &mut dyn AnyRoom,
        watch: &Stopwatch,
    ) -> Self {
        let players: Vec<_> = room.players(&mut |_| true).iter().map(Player::id).collect();
        // Some who came early and some who came late.
        let step = players.len().div_ceil(PLAYERS_MAX).max(1);
        let mut capture = Self {
            number,
            began: now,
            until: now + lasts + COLLECTED_WITHIN,
            waiting: players.into_iter().step_by(step).collect(),
            players: Vec::new(),
            version: room.version(),
            is_ready: false,
            captured: Captured { exchange, ..Captured::default() },
        };
        let began = watch.read();
        capture.capture(room, false, true);
        capture.captured.spent = watch.read().saturating_sub(began);
        capture
    }

    /// Syncs that changed nothing were only counted: they led from this version to that.
    pub(crate) fn passed(&mut self, from: u64, to: u64) {
        if self.version == from {
            self.version = to;
        }
    }

    /// A player's message was handled, in so much time. One that the room type lacks is not
    /// counted.
    #[cold]
    pub(crate) fn handled(&mut self, message: &MessageRef<'_>, payload: &[u8], took: Duration) {
        let exchange = &mut self.captured.exchange;
        let number = match message {
            MessageRef::Index(number) => Some(*number),
            MessageRef::Name(name) => exchange.number(name),
        };
        let Some(number) = number else { return };
        if exchange.message(number, payload).is_ok() {
            // It has the message that was just counted.
            let _ = exchange.took(number, took);
        }
    }

    /// An event was sent to a player.
    #[cold]
    pub(crate) fn event(&mut self, player: PlayerId, event: EventHeader, payload: &[u8]) {
        // The room has declared the event.
        let _ = self.captured.exchange.event(player, event.version, event.index, payload);
    }

    /// The time that it still takes.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        self.until.saturating_sub(now + COLLECTED_WITHIN)
    }

    /// Returns whether nobody has collected it for long.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now > self.until
    }

    /// Ends it.
    pub(crate) fn end(mut self, now: Duration) -> Captured {
        self.captured.lasted = now.saturating_sub(self.began);
        self.captured.players = self.players.len();
        self.captured
    }

    /// The room was synced, and took this much time since the sync before.
    pub(crate) fn synced(&mut self, room: &mut dyn AnyRoom, took: Duration, watch: &Stopwatch) {
        self.captured.syncs += 1;
        self.captured.of_room += took;
        let is_next = room.version() == self.version + 1;
        let has_time = self.captured.spent <= self.captured.of_room / PARTS + FREE;
        let is_counted = is_next && (self.is_ready || has_time);
        self.is_ready = false;
        if !(is_counted || has_time) || self.captured.bytes > BYTES_MAX {
            return;
        }
        let began = watch.read();
        self.capture(room, is_counted, has_time);
        self.captured.spent += watch.read().saturating_sub(began);
    }

    fn capture(&mut self, room: &mut dyn AnyRoom, is_counted: bool, has_time: bool) {
        let mut there = Vec::new();
        room.players(&mut |player| {
            there.push(player.id());
            false
        });
        self.players.retain(|player| there.contains(player));
        self.waiting.retain(|player| there.contains(player));
        let reaches = room.reaches(self.version);
        for player in std::mem::take(&mut self.players) {
            let (mut kind, mut bytes) = (CapturedKind::CatchUp, Vec::new());
            let changed = if reaches {
                room.patch(player, self.version, Format::Packed, &mut bytes)
            } else {
                kind = CapturedKind::Snapshot;
                room.snapshot(player, Format::Packed, &mut bytes);
                true
            };
            if is_counted && reaches {
                kind = CapturedKind::Patch;
            }
            if changed {
                self.add(player, kind, bytes);
            }
            self.players.push(player);
        }
        if has_time && let Some(player) = self.waiting.pop() {
            let mut bytes = Vec::new();
            room.snapshot(player, Format::Packed, &mut bytes);
            self.add(player, CapturedKind::Snapshot, bytes);
            self.players.push(player);
        }
        self.captured.captured += u64::from(is_counted && !self.players.is_empty());
        self.version = room.version();
        self.is_ready = !is_counted;
    }

    fn add(&mut self, player: PlayerId, kind: CapturedKind, bytes: Vec<u8>) {
        self.captured.bytes += bytes.len();
        self.captured.bodies.push(CapturedBody { player, kind, bytes });
    }
}
