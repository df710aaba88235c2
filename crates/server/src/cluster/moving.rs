//! Moves of rooms to other nodes, with the sessions of their players.
//!
//! ```text
//!  source                                              target
//!  takes the room out of its shard
//!  parts of the parcel                       ────────▶ reads all, tries it, holds it cold
//!  commit: the claim, written for the target           looks at the claim each second
//!  go                                        ────────▶ claim is its own: puts the room in
//!  sends clients there by their tokens       ◀──────── serves
//! ```
//!
//! The claim decides. If the source is gone, the target finds in the claim whether the room goes on
//! there; if the target is gone before the commit, the source puts the room back.

use std::rc::Rc;
use std::time::Duration;

use playfield_cluster::{AskError, Event, Handed, Key, NodeId, Nonce, Peer, claim_key};
use playfield_room::{Error, Result};
use playfield_state::{Bytes, Data, Format};
use playfield_wire::ErrorCode;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::host::Host;
use super::message::Refusal;
use super::{SessionSeek, busy};
use crate::entropy::Entropy;
use crate::handle::NodeHandle;
use crate::handle::operated::Answering;
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
use crate::shard::mail::parcel::{Parcel, PutIn, TakeOut};

/// The first byte of a request about a move. Other requests begin with the number of their format.
const MOVE: u8 = 2;

/// The most bytes of a part of a parcel.
const PART_BYTES: usize = 256 << 10;

/// The most bytes of a parcel.
pub(super) const PARCEL_BYTES_MAX: usize = 64 << 20;

/// The time that another node has for a step of a move.
const STEP_MAX: Duration = Duration::from_secs(5);

/// The interval between attempts to take out a room that is busy.
const RETRY: Duration = Duration::from_millis(20);

/// The time in which clients come back by a token of this node after their sessions have moved, in
/// addition to `timeouts.reconnect`.
const RETURN_MAX: Duration = Duration::from_secs(60);

/// A request of the source of a move.
#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum MoveRequest {
    /// The next part of a parcel.
    Part { of: Bytes, index: u32, bytes: Bytes },
    /// All parts were sent. The room goes on there once the claim says so.
    Hold { of: Bytes, claim: String },
    /// The claim was written for the target.
    Go { of: Bytes },
    /// The room does not move.
    Drop { of: Bytes },
    /// Has a session come there?
    Session { number: u64 },
}

#[derive(Clone, Data, Debug, PartialEq)]
pub(super) enum MoveAnswer {
    Done,
    Refused(Refusal),
}

/// The name of the claim of a room that has moved: `i.<id>`.
pub(super) fn id_key(id: RoomId) -> Key {
    format!("i.{id}").into()
}

impl Host {
    /// Moves a room to another node.
    pub(super) async fn move_room(&self, id: RoomId, to: &Peer) -> Result<()> {
        let handle = self.handle().ok_or_else(|| busy("the node is about to start; try again"))?;
        let parcel = self.take_out(&handle, id, to).await?;
        let nonce: Nonce = Entropy::System.bytes();
        let claim = match &parcel.key {
            Some(key) => claim_key(&parcel.room_type, key)
                .map_err(|error| Error::new(ErrorCode::Internal, error.to_string())),
            None => Ok(id_key(id)),
        };
        let sent = match &claim {
            Ok(claim) => self.send(&parcel, claim, nonce, to).await,
            Err(error) => Err(error.clone()),
        };
        let (Ok(()), Ok(claim)) = (&sent, claim) else {
            self.tell_to_drop(nonce, to);
            put_back(&handle, id, parcel).await;
            return sent;
        };
        match self.hand_over(&claim, to.id(), nonce, parcel.key.is_none()).await {
            Handed::Yes => {}
            Handed::No => {
                self.tell_to_drop(nonce, to);
                put_back(&handle, id, parcel).await;
                return Err(busy("the room's claim could not be written; try again"));
            }
            Handed::Lost => {
                handle.node().moved.arrived(&parcel.numbers, to.slot, handle.now(), handle.now());
                handle.node().remove_room(id);
                let text = "another node has taken over the room while it moved";
                return Err(Error::new(ErrorCode::RoomMoved, text));
            }
        }
        if parcel.key.is_some() {
            self.note_claim(claim, None);
            // Those who look for the room by its id find it by this.
            self.hand_over(&id_key(id), to.id(), nonce, true).await;
        }
        let served = self.go(nonce, to).await;
        let until = handle.now() + handle.node().config.timeouts.reconnect + RETURN_MAX;
        handle.node().moved.arrived(&parcel.numbers, to.slot, handle.now(), until);
        self.cluster.forget_stray(id);
        handle.node().remove_room(id);
        served
    }

    /// Takes a room out of its shard, once it is not busy, or the time is over for that.
    async fn take_out(&self, handle: &NodeHandle, id: RoomId, to: &Peer) -> Result<Parcel> {
        let by = Instant::now() + handle.node().config.timeouts.freeze_wait;
        loop {
            let place = handle.node().directory.find(id).ok_or_else(|| {
                Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id}"))
            })?;
            let room_type = self.type_name(place.room_type);
            if !to.types.iter().any(|(name, _)| *name == room_type) {
                let text = format!("the node {:?} has no room type {room_type:?}", to.name);
                return Err(Error::new(ErrorCode::UnknownRoomType, text));
            }
            let gives_up = Instant::now() >= by;
            let (answer, answered) = Answering::new();
            let of = Box::new(TakeOut { room: id, gives_up, answer });
            handle.post(place.shard, ShardMail::TakeOut(of))?;
            match answered.await.map_err(|_| crate::asks::shard_failed(place.shard))? {
                Err(error) if error.code() == ErrorCode::Busy && !gives_up => sleep(RETRY).await,
                taken => return taken,
            }
        }
    }

    /// Sends a parcel, and has the target hold it.
    async fn send(&self, parcel: &Parcel, claim: &Key, nonce: Nonce, to: &Peer) -> Result<()> {
        let mut bytes = Vec::new();
        parcel.encode(&mut bytes);
        if bytes.len() > PARCEL_BYTES_MAX {
            let text = format!("the room and its sessions take {} bytes", bytes.len());
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        let of = || Bytes(nonce.to_vec());
        for (index, bytes) in (0..).zip(bytes.chunks(PART_BYTES)) {
            let bytes = Bytes(bytes.to_vec());
            self.request(to, &MoveRequest::Part { of: of(), index, bytes }).await?;
        }
        let claim = claim.to_string();
        self.request(to, &MoveRequest::Hold { of: of(), claim }).await
    }

    /// Tells the target that the room is its own, until it says that it serves it, or is gone.
    async fn go(&self, nonce: Nonce, to: &Peer) -> Result<()> {
        loop {
            let of = Bytes(nonce.to_vec());
            match self.request(to, &MoveRequest::Go { of }).await {
                Err(error) if error.code() == ErrorCode::Busy => sleep(RETRY).await,
                served => return served,
            }
        }
    }

    /// Writes a claim for another node.
    async fn hand_over(&self, key: &Key, to: NodeId, nonce: Nonce, is_first: bool) -> Handed {
        let (handed, outcome) = oneshot::channel();
        let request = self.await_handed(handed);
        self.event(Event::HandOver { key: key.clone(), to, nonce, request, is_first });
        outcome.await.unwrap_or(Handed::Lost)
    }

    /// Asks all other nodes for a session, and tells the client's shard which one has it.
    pub(super) async fn seek_session(self: Rc<Self>, session: SessionSeek) {
        let SessionSeek { number, shard, connection } = session;
        let mut asked = JoinSet::new();
        for peer in self.peers() {
            let host = Rc::clone(&self);
            asked.spawn_local(async move {
                let has = host.request(&peer, &MoveRequest::Session { number }).await;
                has.ok().map(|()| peer.slot)
            });
        }
        let mut slot = None;
        while slot.is_none()
            && let Some(answer) = asked.join_next().await
        {
            slot = answer.ok().flatten();
        }
        let sought = ShardMail::SessionSought { connection, session: number, slot };
        self.tell_shard(shard, sought);
    }

    fn tell_to_drop(&self, nonce: Nonce, to: &Peer) {
        let body = encode(&MoveRequest::Drop { of: Bytes(nonce.to_vec()) });
        self.event(Event::Tell { to: to.slot, body });
    }

    async fn request(&self, to: &Peer, request: &MoveRequest) -> Result<()> {
        let body = match self.ask(to.slot, STEP_MAX, encode(request)).await {
            Ok(body) => body,
            Err(AskError::Timeout | AskError::LinkReset) => {
                return Err(busy(format!("the node {:?} did not answer in time", to.name)));
            }
            Err(error) => {
                let text = format!("the node {:?}: {error}", to.name);
                return Err(Error::new(ErrorCode::Unreachable, text));
            }
        };
        match read::<MoveAnswer>(&body) {
            Some(MoveAnswer::Done) => Ok(()),
            Some(MoveAnswer::Refused(refusal)) => Err(refusal.into()),
            None => {
                let text = format!("the node {:?} is of another build: rooms can't move", to.name);
                Err(Error::new(ErrorCode::Refused, text))
            }
        }
    }
}

/// Puts a room back where it was taken from.
async fn put_back(handle: &NodeHandle, id: RoomId, parcel: Parcel) {
    if let Err(error) = put_in(handle, id, parcel).await {
        log::error!("cluster: room {id}, which did not move, is lost: {error}");
        handle.node().remove_room(id);
    }
}

pub(super) async fn put_in(handle: &NodeHandle, id: RoomId, parcel: Parcel) -> Result<()> {
    let directory = &handle.node().directory;
    let shard = directory.find(id).map_or_else(|| directory.shard_for_room(id), |of| of.shard);
    let (answer, answered) = Answering::new();
    let mailbox = &handle.shared().mailboxes[usize::from(shard)];
    mailbox.push_promised(ShardMail::PutIn(Box::new(PutIn { parcel, answer })));
    answered.await.map_err(|_| crate::asks::shard_failed(shard))?
}

/// Returns whether a request is about a move.
pub(super) fn is_move(body: &[u8]) -> bool {
    body.first() == Some(&MOVE)
}

pub(super) fn encode(message: &impl Data) -> Vec<u8> {
    let mut out = vec![MOVE];
    message.encode(&mut out);
    out
}

pub(super) fn read<T: Data>(bytes: &[u8]) -> Option<T> {
    T::read(Format::Packed, bytes.strip_prefix(&[MOVE])?).ok()
}
