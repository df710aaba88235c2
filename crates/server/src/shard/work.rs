//! The work that waits for a shard's time, in one [fair queue](crate::shard::fair_queue) by
//! address, and the parties that time is charged to.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::addresses::Address;
use crate::shard::fair_queue::{FairQueue, Payer};
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey};

/// An address, by its place in memory, which no other has while it is held.
#[derive(Clone)]
pub(crate) struct Host(pub(in crate::shard) Arc<Address>);

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Host {}

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl Payer for Host {}

/// The weight of the program, in clients, where rooms of both are overdue.
const SHARES_OF_PROGRAM: u64 = 1000;

/// The party that a room's time is charged to.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Founder {
    /// The address of the client that created it, or the room that created it, and so on.
    Client(Host),
    /// The program.
    Program,
}

impl Founder {
    /// The client's address, unless it is the program.
    pub(in crate::shard) fn host(&self) -> Option<&Host> {
        match self {
            Self::Client(host) => Some(host),
            Self::Program => None,
        }
    }
}

impl Payer for Founder {
    fn weight(&self) -> u64 {
        match self {
            Self::Client(_) => 1,
            Self::Program => SHARES_OF_PROGRAM,
        }
    }
}

/// A session or a member that waits for snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Waiting {
    /// A session whose client has come back: its rooms bring the copies up to date.
    Session(ConnectionKey),
    /// A member who joins or has asked for a snapshot, or whose session on another shard has asked
    /// on its return.
    Member(RoomKey, MemberKey),
}

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A connection has input.
    Input(ConnectionKey),
    /// A client that came back wants its session.
    Resume(ConnectionKey),
    /// Someone waits for a snapshot, at the place with this number.
    Snapshot(Waiting, u64),
}

/// The lines of one address, which share its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum Line {
    /// Input of connections without a session, if nothing else of their address waits: mostly a
    /// hello.
    Hellos,
    /// Clients that want a session back.
    Resumes,
    /// Sessions on their way back, whose rooms bring the copies up to date.
    Returns,
    Input,
    /// Input of connections that took much time lately.
    BusyInput,
    Snapshots,
}

/// By how much the pieces of each line stand back, in their order: the first three are short, and a
/// snapshot may be long. When a crowd comes at once, nobody has taken anything yet, and one that
/// comes back goes first. It is less than the head start, and what is taken counts as ever.
const STANDS_BACK: [Duration; 6] = [
    Duration::ZERO,
    Duration::ZERO,
    Duration::ZERO,
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(1),
];

/// The lines whose pieces are held when enough snapshots were written in a turn.
const MAY_HOLD: [bool; STANDS_BACK.len()] = [false, false, true, false, false, true];

/// The work of all addresses.
pub(in crate::shard) type WorkQueue = FairQueue<Host, Work, { STANDS_BACK.len() }>;

/// Returns a queue without work.
pub(in crate::shard) fn work_queue() -> WorkQueue {
    FairQueue::with(STANDS_BACK, MAY_HOLD)
}
