//! Rooms that come from other nodes: they are held cold until their claims say that this node has
//! them.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use playfield_cluster::{Event, Key, NodeId, Nonce, Place, Want};
use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::host::Host;
use super::message::Refusal;
use super::moving::{MoveAnswer, MoveRequest, PARCEL_BYTES_MAX, encode, id_key, put_in, read};
use super::{KeyOf, busy};
use crate::room_id::RoomId;
use crate::shard::frozen::parcel::check;
use crate::shard::mail::parcel::Parcel;

/// The most parcels that a node holds at once for others.
const HELD_MAX: usize = 64;

/// The interval between looks at the claim of a room that is held.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The number of moves that are remembered after their rooms were put in.
const SERVED_MAX: usize = 1024;

/// The parcels of other nodes.
#[derive(Default)]
pub(super) struct Inbox {
    held: Vec<Held>,
    /// The moves whose rooms are here, the oldest first.
    served: VecDeque<Nonce>,
}

/// A parcel that the target holds.
struct Held {
    from: NodeId,
    nonce: Nonce,
    parts: u32,
    bytes: Vec<u8>,
    /// The name of its claim, and the parcel until it is put in, once it is whole.
    whole: Option<(Key, Option<Parcel>)>,
    /// A task looks at the claim, or puts the room in.
    is_looked_at: bool,
}

impl Inbox {
    /// Returns whether the room with this claim is about to be put in. Until it is, nobody may
    /// create another one.
    pub(super) fn takes_in(&self, claim: &Key) -> bool {
        let is_it = |held: &Held| held.whole.as_ref().is_some_and(|(key, _)| key == claim);
        self.held.iter().any(|held| held.is_looked_at && is_it(held))
    }

    fn find(&mut self, nonce: Nonce) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.nonce == nonce)
    }

    /// A parcel was put in, or is of no use.
    fn end(&mut self, nonce: Nonce, is_served: bool) {
        self.held.retain(|held| held.nonce != nonce);
        if is_served {
            self.served.truncate(SERVED_MAX - 1);
            self.served.push_front(nonce);
        }
    }
}

impl Host {
    /// Answers a request about a move.
    pub(super) async fn moved(self: &Rc<Self>, from: NodeId, body: &[u8]) -> Vec<u8> {
        let done = match read::<MoveRequest>(body) {
            Some(request) => self.hear_move(from, request).await,
            None => Err(Error::new(ErrorCode::Internal, "a request about a move can't be read")),
        };
        encode(&match done {
            Ok(()) => MoveAnswer::Done,
            Err(error) => MoveAnswer::Refused(Refusal::from(&error)),
        })
    }

    async fn hear_move(self: &Rc<Self>, from: NodeId, request: MoveRequest) -> Result<()> {
        if let MoveRequest::Session { number } = request {
            let moved = self.handle().is_some_and(|handle| handle.node().moved.has_come(number));
            let text = "the session has not come here";
            return moved.then_some(()).ok_or_else(|| Error::new(ErrorCode::Refused, text));
        }
        let unknown = || Error::new(ErrorCode::Refused, "the node holds no such parcel");
        let (MoveRequest::Part { of, .. }
        | MoveRequest::Hold { of, .. }
        | MoveRequest::Go { of }
        | MoveRequest::Drop { of }) = &request
        else {
            return Err(unknown());
        };
        let nonce = Nonce::try_from(&of.0[..]).map_err(|_| unknown())?;
        match request {
            MoveRequest::Part { index, bytes, .. } => self.take_part(from, nonce, index, &bytes.0),
            MoveRequest::Hold { claim, .. } => self.hold(from, nonce, claim.as_str().into()),
            MoveRequest::Go { .. } => match self.look(nonce).await {
                Looked::Served => Ok(()),
                Looked::NotYet => Err(busy("the claim is not written yet")),
                Looked::Gone => Err(unknown()),
            },
            MoveRequest::Session { .. } => Err(unknown()),
            MoveRequest::Drop { .. } => {
                let held = &mut self.inbox.borrow_mut().held;
                held.retain(|held| held.nonce != nonce || held.is_looked_at);
                Ok(())
            }
        }
    }

    fn take_part(&self, from: NodeId, nonce: Nonce, index: u32, bytes: &[u8]) -> Result<()> {
        let all = &mut self.inbox.borrow_mut().held;
        // Of those whose sources are gone, no more parts come.
        all.retain(|held| held.whole.is_some() || self.is_alive(held.from));
        if index == 0 {
            if all.len() >= HELD_MAX {
                return Err(busy("the node takes in as many rooms as it can; try again"));
            }
            let (parts, bytes, whole) = (0, Vec::new(), None);
            all.push(Held { from, nonce, parts, bytes, whole, is_looked_at: false });
        }
        let held = all.iter_mut().find(|held| held.nonce == nonce && held.parts == index);
        let held = held.filter(|held| held.bytes.len() + bytes.len() <= PARCEL_BYTES_MAX);
        let held = held.ok_or_else(|| Error::new(ErrorCode::Refused, "a part is out of turn"))?;
        held.bytes.extend_from_slice(bytes);
        held.parts += 1;
        Ok(())
    }

    /// A parcel is whole. It is held until the claim says which node has the room.
    fn hold(self: &Rc<Self>, from: NodeId, nonce: Nonce, claim: Key) -> Result<()> {
        let handle = self.handle().ok_or_else(|| busy("the node is about to start"))?;
        let mut inbox = self.inbox.borrow_mut();
        let held = inbox.find(nonce).filter(|held| held.from == from);
        let held = held.ok_or_else(|| Error::new(ErrorCode::Refused, "there is no such parcel"))?;
        let parcel = check(&std::mem::take(&mut held.bytes), handle.node());
        let parcel = parcel.map_err(|text| Error::new(ErrorCode::Refused, text))?;
        held.whole = Some((claim, Some(parcel)));
        drop(inbox);
        let host = Rc::clone(self);
        spawn_local(async move {
            loop {
                sleep(LOOK_EVERY).await;
                if host.look(nonce).await != Looked::NotYet {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Looks at the claim of a room that is held, and puts the room in if it is this node's.
    async fn look(&self, nonce: Nonce) -> Looked {
        let (from, claim) = {
            let mut inbox = self.inbox.borrow_mut();
            if inbox.served.contains(&nonce) {
                return Looked::Served;
            }
            let Some(held) = inbox.find(nonce) else { return Looked::Gone };
            let Some((claim, _)) = &held.whole else { return Looked::NotYet };
            let found = (held.from, Key::clone(claim));
            if std::mem::replace(&mut held.is_looked_at, true) {
                return Looked::NotYet;
            }
            found
        };
        let place = self.locate_claim(claim.clone(), Want::Receive { nonce }).await.place;
        let looked = match place {
            Place::Here { is_new: true } => Looked::Served,
            Place::At(peer) if peer.id() != from => Looked::Gone,
            Place::Free if !self.is_alive(from) => Looked::Gone,
            Place::At(_) | Place::Here { .. } | Place::Free | Place::Busy => Looked::NotYet,
        };
        let parcel = {
            let mut inbox = self.inbox.borrow_mut();
            let Some(held) = inbox.find(nonce) else { return Looked::Gone };
            match looked {
                Looked::Served => held.whole.as_mut().and_then(|(_, parcel)| parcel.take()),
                Looked::NotYet => {
                    held.is_looked_at = false;
                    return looked;
                }
                Looked::Gone => None,
            }
        };
        let mut is_served = false;
        if let Some(parcel) = parcel {
            match self.put_in(parcel, &claim, nonce).await {
                Ok(()) => is_served = true,
                Err(error) => {
                    log::error!("cluster: a room that has moved here is lost: {error}");
                    self.event(Event::Released { key: claim });
                }
            }
        }
        self.inbox.borrow_mut().end(nonce, is_served);
        if is_served { Looked::Served } else { Looked::Gone }
    }

    async fn put_in(&self, parcel: Parcel, claim: &Key, nonce: Nonce) -> Result<()> {
        let handle = self.handle().ok_or_else(|| busy("the node ends"))?;
        let id = RoomId::parse(&parcel.id)
            .ok_or_else(|| Error::new(ErrorCode::Internal, "the id is not valid"))?;
        let key = parcel.key.as_deref().zip(handle.node().room_type(&parcel.room_type));
        if let Some((key, room_type)) = key {
            self.note_claim(claim.clone(), Some(KeyOf { room_type, key: key.into() }));
        }
        let is_keyed = parcel.key.is_some();
        put_in(&handle, id, parcel).await?;
        self.cluster.add_stray(id);
        if is_keyed {
            let of_id = id_key(id);
            let receive = self.locate_claim(of_id.clone(), Want::Receive { nonce }).await.place;
            if receive != (Place::Here { is_new: true }) {
                self.locate_claim(of_id, Want::Claim { is_code: false }).await;
            }
        }
        Ok(())
    }

    fn is_alive(&self, node: NodeId) -> bool {
        self.peer(node.slot).is_some_and(|peer| peer.id() == node)
    }
}

/// The outcome of a look at a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    Served,
    NotYet,
    /// The room is not this node's.
    Gone,
}
