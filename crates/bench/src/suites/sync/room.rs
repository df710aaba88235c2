//! The server's side: a synced room, and the messages it sent.

use playfield_state::{Format, PlayerId, Tracker, Tracking};
use playfield_wire::RoomNumber;
use playfield_wire::server::{self, Versions, write_patch, write_snapshot};

use crate::workloads::Workload;

/// The number of the room in its players' sessions.
pub(super) const ROOM: RoomNumber = RoomNumber(1);

/// The interval, in syncs, at which a player is sent a digest.
const CHECK_EVERY_SYNCS: u64 = 100;

/// The epoch of the room.
pub(super) const EPOCH: u64 = 1;

/// A workload's state, synced to all its players.
pub(crate) struct Room<'a, W: Workload> {
    workload: &'a W,
    pub(super) state: W::State,
    tracker: Tracker<W::State>,
    format: Format,
    players: Vec<Seat>,
    transport: Transport,
    pub(crate) sent: Sent,
}

/// A player, and what is known about their copy.
struct Seat {
    id: PlayerId,
    /// The last version sent.
    sent: u64,
    /// The version that the copy equals. It is newer than `sent` if nothing has changed for this
    /// player since.
    clean: u64,
}

/// Accepts messages as a socket would, each whole and contiguous. It counts them and keeps them
/// until the next sync.
#[derive(Default)]
struct Transport {
    bytes: Vec<u8>,
    /// For each message, the player's index and the message's end.
    ends: Vec<(usize, usize)>,
}

/// Everything that a room sent, in order.
#[derive(Default)]
pub(crate) struct Sent {
    bytes: Vec<u8>,
    /// For each turn and each message in it, the player's index and the message's end.
    turns: Vec<Vec<(usize, usize)>>,
}

impl<'a, W: Workload> Room<'a, W> {
    /// Creates a room before its first step, whose players have received their snapshots.
    pub(crate) fn new(workload: &'a W, format: Format, tracking: Tracking) -> Self {
        let mut state = workload.state();
        let tracker = Tracker::new(&mut state, tracking);
        let now = tracker.version();
        let players =
            workload.players().into_iter().map(|id| Seat { id, sent: now, clean: now }).collect();
        let mut room = Self {
            workload,
            state,
            tracker,
            format,
            players,
            transport: Transport::default(),
            sent: Sent::default(),
        };
        room.snapshots();
        room.keep();
        room
    }

    /// Runs one step of the workload.
    pub(crate) fn step(&mut self, iteration: u64) {
        self.workload.step(&mut self.state, iteration);
    }

    /// Runs one sync: finds the changes and passes every player's message to the transport. This is
    /// the timed part.
    #[inline(never)]
    pub(crate) fn sync(&mut self) {
        self.tracker.sync(&mut self.state);
        let version = self.tracker.version();
        for (place, seat) in self.players.iter_mut().enumerate() {
            let start = self.transport.bytes.len();
            let mut any = false;
            let versions = Versions { base: seat.sent, version };
            write_patch(self.format, &mut self.transport.bytes, ROOM, versions, |out| {
                any = self.tracker.patch(seat.id, seat.clean, self.format, out);
            });
            seat.clean = version;
            if any {
                self.transport.send(place);
                seat.sent = version;
            } else {
                self.transport.bytes.truncate(start);
            }
            // As a server does by default.
            if version.is_multiple_of(CHECK_EVERY_SYNCS) {
                let (version, digest) = (seat.sent, self.tracker.digest(seat.id, self.format));
                server::Check { room: ROOM, version, digest }
                    .encode(self.format, &mut self.transport.bytes);
                self.transport.send(place);
            }
        }
    }

    /// Passes every player's snapshot to the transport, as if all had joined at once.
    #[inline(never)]
    pub(super) fn snapshots(&mut self) {
        let version = self.tracker.version();
        for (place, seat) in self.players.iter_mut().enumerate() {
            write_snapshot(self.format, &mut self.transport.bytes, ROOM, EPOCH, version, |out| {
                self.tracker.snapshot(seat.id, self.format, out);
            });
            self.transport.send(place);
            (seat.sent, seat.clean) = (version, version);
        }
    }

    /// Moves the messages aside for the check and returns their length in bytes.
    pub(crate) fn keep(&mut self) -> usize {
        let offset = self.sent.bytes.len();
        self.sent.bytes.extend_from_slice(&self.transport.bytes);
        self.sent
            .turns
            .push(self.transport.ends.iter().map(|(place, end)| (*place, offset + end)).collect());
        let bytes = self.transport.bytes.len();
        self.transport.bytes.clear();
        self.transport.ends.clear();
        bytes
    }
}

impl Transport {
    /// Records the message that ends here.
    fn send(&mut self, place: usize) {
        self.ends.push((place, self.bytes.len()));
    }
}

impl Sent {
    /// All messages, turn by turn, each with the index of its player.
    pub(super) fn turns(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, &[u8])>> {
        let mut start = 0;
        self.turns.iter().map(move |turn| {
            let mut from = start;
            start = turn.last().map_or(start, |(_, end)| *end);
            turn.iter().map(move |(place, end)| {
                let message = &self.bytes[from..*end];
                from = *end;
                (*place, message)
            })
        })
    }

    /// The number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.turns.iter().map(|turn| turn.len() as u64).sum()
    }

    /// Flips one bit in the middle of the middle message.
    pub(crate) fn corrupt_one(&mut self) {
        let all: Vec<usize> = self.turns.iter().flatten().map(|(_, end)| *end).collect();
        if let [.., start, end] = all[..=all.len() / 2] {
            self.bytes[(start + end) / 2] ^= 1;
        }
    }
}
