//! Rooms whose claim is in doubt: they stand still, and go on when their keys are claimed again.
//!
//! ```text
//!  Freeze ──▶ stands still ──▶ Open: the save is opened again ──▶ Thaw: goes on, by the new fence
//!                                └─ another owner has saved it ──▶ End: its players are sent on
//! ```
//!
//! The rooms of a shard also stand still as soon as the shard sees that the lease has run out, until
//! the host says that it was renewed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use playfield_cluster::{Event, Key, Save};
use playfield_room::Opened;
use tokio::task::spawn_local;

use super::KeyOf;
use super::host::Host;
use crate::directory::Place;
use crate::handle::NodeHandle;
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;

/// News of a room's claim, for its shard.
#[derive(Debug)]
pub(crate) enum Claim {
    /// In doubt.
    Freeze,
    /// Certain again.
    Thaw,
    /// The room's save was opened again, for a new fence: compare it.
    Reopened { key: KeyOf, attempt: u64, opened: Box<Opened> },
    /// Another node has had the key.
    End,
}

impl Host {
    /// Shows the shards until when they may call rooms, and lets those go on that have noticed the
    /// end of a lease before this.
    pub(super) fn renew(&self, now: Duration, acts_until: Option<Duration>) {
        self.cluster.set_acts_until(acts_until);
        if acts_until.is_none_or(|until| until <= now) {
            return;
        }
        if let Some(ready) = self.state.borrow_mut().ready.take() {
            let _ = ready.send(());
        }
        let Some(handle) = self.handle() else { return };
        let cut_off = std::mem::take(&mut self.state.borrow_mut().cut_off);
        for shard in cut_off {
            let mailbox = &handle.shared().mailboxes[usize::from(shard)];
            mailbox.push_promised(ShardMail::LeaseRenewed);
        }
    }

    /// The key that was claimed, and its room, if it is in memory or about to be created.
    fn room_of(&self, key: &Key) -> Option<(KeyOf, Option<(RoomId, Place)>)> {
        let of = self.state.borrow().keys.get(key).cloned()?;
        let room = self.handle().and_then(|handle| handle.node().directory.place_of(&of));
        Some((of, room))
    }

    fn tell(&self, (room, place): (RoomId, Place), claim: Claim) {
        let Some(handle) = self.handle() else { return };
        let mailbox = &handle.shared().mailboxes[usize::from(place.shard)];
        mailbox.push_promised(ShardMail::Claim { room, claim });
    }

    pub(super) fn freeze(&self, key: &Key) {
        let Some((of, room)) = self.room_of(key) else { return };
        self.cluster.set_frozen(of, true);
        if let Some(room) = room {
            self.tell(room, Claim::Freeze);
        }
    }

    pub(super) fn thaw(&self, key: &Key) {
        let Some((of, room)) = self.room_of(key) else { return };
        self.cluster.set_frozen(of, false);
        if let Some(room) = room {
            self.tell(room, Claim::Thaw);
        }
    }

    /// Ends a room whose key another node has had meanwhile.
    pub(super) fn end(&self, key: &Key) {
        let Some((of, room)) = self.room_of(key) else { return };
        self.state.borrow_mut().keys.remove(key);
        self.cluster.set_frozen(of, false);
        if let Some(room) = room {
            self.tell(room, Claim::End);
        }
    }

    /// The save of a room was refused.
    pub(super) fn fenced(&self, of: KeyOf) {
        let claimed =
            self.state.borrow().keys.iter().find(|(_, it)| **it == of).map(|it| it.0.clone());
        if let Some(key) = claimed {
            return self.event(Event::Fenced { key });
        }
        // Nothing would claim it again.
        if let Some(room) = self.handle().and_then(|handle| handle.node().directory.place_of(&of)) {
            self.tell(room, Claim::End);
        }
    }

    /// Opens the save of a room in memory again. Without one, the room is made of the save after
    /// this, and opens it then.
    pub(super) fn open(self: &Rc<Self>, key: Key, attempt: u64) {
        let room = self.room_of(&key).and_then(|(of, room)| Some((of, room?)));
        let store = self.handle().and_then(|handle| handle.node().store.lend());
        let (Some((of, room)), Some(store)) = (room, store) else {
            return self.event(Event::Opened { key, attempt, save: Some(Save::Intact) });
        };
        let moves = |handle: NodeHandle| handle.node().directory.is_suspended(room.0);
        // A room that moves opens its save when it goes on.
        if !self.is_persistent(of.room_type) || self.handle().is_some_and(moves) {
            return self.event(Event::Opened { key, attempt, save: Some(Save::Intact) });
        }
        let (host, room_type) = (Rc::clone(self), self.type_name(of.room_type));
        spawn_local(async move {
            let begun = catch_unwind(AssertUnwindSafe(|| store.open(&room_type, &of.key)));
            // A task of its own: it may panic.
            let opened = match begun {
                Ok(opening) => spawn_local(opening).await.ok(),
                Err(_) => None,
            };
            match opened {
                Some(Ok(opened)) => {
                    let opened = Box::new(opened);
                    host.tell(room, Claim::Reopened { key: of, attempt, opened });
                }
                Some(Err(error)) => {
                    log::error!("the save of {room_type} {:?} can't be opened: {error}", of.key);
                    host.event(Event::Opened { key, attempt, save: None });
                }
                None => {
                    log::error!("the store panicked in `open` for {room_type} {:?}", of.key);
                    host.event(Event::Opened { key, attempt, save: None });
                }
            }
        });
    }
}

/// The text for the players of a room that has ended.
pub(crate) const MOVED: &str = "another node has taken over the room; join it again by its key";
