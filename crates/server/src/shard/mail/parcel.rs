//! Mail about rooms that move between nodes.

use playfield_state::{Bytes, Data};

use crate::handle::operated::Answering;
use crate::room_id::RoomId;

/// A room on its way to another node, with the sessions that move with it.
#[derive(Clone, Data, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    pub(crate) id: String,
    pub(crate) room_type: String,
    pub(crate) key: Option<String>,
    /// The time at which it was taken out, by the clock of its node.
    pub(in crate::shard) at: u64,
    pub(in crate::shard) room: Bytes,
    pub(in crate::shard) sessions: Vec<Bytes>,
    /// The numbers of the sessions.
    pub(crate) numbers: Vec<u64>,
    /// The schemas that the clients use.
    pub(in crate::shard) schemas: Vec<Bytes>,
}

/// A request to take a room out.
pub(crate) struct TakeOut {
    pub(crate) room: RoomId,
    /// Its work in flight is given up. If not, such a room is busy.
    pub(crate) gives_up: bool,
    pub(crate) answer: Answering<Parcel>,
}

/// A request to put a room in, or back.
pub(crate) struct PutIn {
    pub(crate) parcel: Parcel,
    pub(crate) answer: Answering<()>,
}
