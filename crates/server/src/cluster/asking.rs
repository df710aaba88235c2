//! Requests of the host to its state machine, and to other nodes.

use std::time::Duration;

use playfield_cluster::{AskError, Event, Handed, Key, Peer, Place, Want, claim_key};
use playfield_room::Error;
use playfield_wire::ErrorCode;
use tokio::sync::oneshot;

use super::KeyOf;
use super::host::{Host, Located};
use super::seeking::undecided;

impl Host {
    /// The place of a key.
    pub(super) async fn locate(
        &self,
        room_type: u16,
        key: &str,
        want: Want,
    ) -> Result<Located, Error> {
        let key_of = claim_key(&self.type_name(room_type), key)
            .map_err(|error| Error::new(ErrorCode::BadKey, error.to_string()))?;
        if let Want::Claim { .. } = want {
            let of = KeyOf { room_type, key: key.into() };
            self.state.borrow_mut().keys.insert(key_of.clone(), of);
        }
        match self.locate_claim(key_of.clone(), want).await {
            Located { place: Place::Busy, .. } => Err(undecided(key)),
            _ if self.inbox.borrow().takes_in(&key_of) => Err(undecided(key)),
            located => Ok(located),
        }
    }

    /// The place of a claim.
    pub(super) async fn locate_claim(&self, key: Key, want: Want) -> Located {
        let (located, answer) = oneshot::channel();
        let request = self.number();
        self.state.borrow_mut().located.insert(request, located);
        self.event(Event::Wanted { key, request, want });
        answer.await.unwrap_or(Located { place: Place::Busy, is_code: false })
    }

    /// A claim was received, or is given up, with the room.
    pub(super) fn note_claim(&self, claim: Key, key: Option<KeyOf>) {
        let keys = &mut self.state.borrow_mut().keys;
        match key {
            Some(key) => drop(keys.insert(claim, key)),
            None => drop(keys.remove(&claim)),
        }
    }

    /// The number of a request whose outcome is sent there.
    pub(super) fn await_handed(&self, handed: oneshot::Sender<Handed>) -> u64 {
        let number = self.number();
        self.state.borrow_mut().handed.insert(number, handed);
        number
    }

    /// Asks another node.
    pub(super) async fn ask(
        &self,
        to: u16,
        within: Duration,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, AskError> {
        let (asked, answer) = oneshot::channel();
        let ask = self.number();
        self.state.borrow_mut().asked.insert(ask, asked);
        self.event(Event::Ask { to, ask, within, body });
        answer.await.unwrap_or(Err(AskError::Timeout))
    }

    fn number(&self) -> u64 {
        let mut state = self.state.borrow_mut();
        state.last += 1;
        state.last
    }

    /// The nodes that are known and not dead, but this one.
    pub(super) fn peers(&self) -> Vec<Peer> {
        self.node.borrow().peers().cloned().collect()
    }

    pub(super) fn peer_named(&self, name: &str) -> Result<Peer, Error> {
        let node = self.node.borrow();
        node.peers().find(|peer| &*peer.name == name).cloned().ok_or_else(|| {
            let text = format!("no other node of the cluster has the name {name:?}");
            Error::new(ErrorCode::Unreachable, text)
        })
    }
}
