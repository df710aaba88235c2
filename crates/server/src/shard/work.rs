//! The work that waits for a shard's time, in one [fair queue](crate::shard::fair_queue) by
//! address, and the parties that time is charged to.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

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
    Input,
    /// Input of connections that took much time lately.
    BusyInput,
    Resumes,
    Snapshots,
}

const LINES: usize = 4;

/// The work of all addresses.
pub(in crate::shard) type WorkQueue = FairQueue<Host, Work, LINES>;
