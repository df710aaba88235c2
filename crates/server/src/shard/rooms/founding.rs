//! Rooms that rooms and the node have created, and the node's wait for them to open.

use playfield_room::{Error, Stage};
use playfield_wire::ErrorCode;

use crate::founding::Founding;
use crate::room_id::RoomId;
use crate::shard::env::SHUTTING_DOWN;
use crate::shard::keys::RoomKey;
use crate::shard::mail::ShardMail;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::session::outlet::Outlet;

impl RoomHost {
    /// Creates a room for a room, or for the node; or finds the one that has its key.
    pub(in crate::shard) fn found(&mut self, below: &mut Below<'_>, mut founding: Founding) {
        if let Some(found) = founding.found {
            return self.await_room(below, found, founding);
        }
        let seats = std::mem::take(&mut founding.seats);
        let created = if below.env.is_shutting_down {
            Err(shutting_down())
        } else {
            let creator = (founding.creator.clone(), founding.founder.clone());
            self.create_room(below, founding.id, &founding.spec, creator, seats)
        };
        match created {
            Ok(key) => {
                if founding.answers.is_some()
                    && let Some(hosted) = self.rooms.get_mut(key)
                {
                    hosted.awaited_by.push(founding);
                }
            }
            Err(error) => {
                below.env.node.remove_room(founding.id);
                outlet!(below).not_founded(&founding, error);
            }
        }
    }

    /// Waits for a room that has the key to open, or to end and leave the key to the next.
    fn await_room(&mut self, below: &mut Below<'_>, found: RoomId, mut founding: Founding) {
        let node = &below.env.node;
        if !founding.answers.is_some_and(|answers| node.asks.is_waiting(answers)) {
            return;
        }
        if below.env.is_shutting_down {
            return outlet!(below).not_founded(&founding, shutting_down());
        }
        if let Some(&key) = self.by_id.get(&found) {
            match self.rooms.get_mut(key) {
                Some(hosted) if hosted.room.stage() == Stage::Open => {
                    hosted.awaited_by.push(founding);
                    self.touch(key);
                }
                _ => self.parked_foundings.push(founding),
            }
        } else if node.directory.find(found).is_some() {
            // Its shard has yet to create it.
            self.parked_foundings.push(founding);
        } else {
            founding.id = node.room_id(below.env.entropy.bytes());
            match founding.place(node, below.env.shard) {
                Err(error) => outlet!(below).not_founded(&founding, error),
                Ok(shard) if shard == below.env.shard => {
                    below.outbound.local_foundings.push(founding);
                }
                Ok(shard) => below.outbound.post(shard, ShardMail::Found(Box::new(founding))),
            }
        }
    }

    /// Tells those who wait for a room to open, if it has, or will not.
    pub(super) fn answer_if_open(&mut self, below: &mut Below<'_>, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        // If it has ended, those who wait are answered when its key is free.
        if hosted.awaited_by.is_empty() || hosted.room.is_closed() {
            return;
        }
        let Some(opened) = hosted.room.opened() else { return };
        let (id, awaited_by) = (hosted.id, std::mem::take(&mut hosted.awaited_by));
        self.answer_founders(below, id, awaited_by, &opened);
    }

    /// Tells those who wait for this room to open what became of it.
    pub(super) fn answer_founders(
        &mut self,
        below: &mut Below<'_>,
        id: RoomId,
        awaited_by: Vec<Founding>,
        opened: &Result<(), Error>,
    ) {
        for mut founding in awaited_by {
            match opened {
                Ok(()) => {
                    if let Some(answers) = founding.answers {
                        let room = self.by_id.get(&id).copied();
                        self.answer_outside(below, room, answers, Ok(id.as_str().into()));
                    }
                }
                Err(error) if may_be_next(error.code()) && founding.searches > 1 => {
                    founding.searches -= 1;
                    founding.found = Some(id);
                    self.parked_foundings.push(founding);
                }
                Err(error) => outlet!(below).not_founded(&founding, error.clone()),
            }
        }
    }
}

impl Outlet<'_> {
    fn not_founded(&self, founding: &Founding, error: Error) {
        let node = &self.env.node;
        let Some(answers) = founding.answers else {
            let name = &node.room_types[usize::from(founding.spec.room_type)].name;
            let id = founding.id;
            log::warn!("room {id} of the type {name:?}, which another room wanted: {error}");
            return;
        };
        node.asks.answer(answers, Err(error));
    }
}

/// Returns whether a later room with the key would do. `room_not_found` is about a code that no
/// room has.
fn may_be_next(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::RoomClosed | ErrorCode::RoomNotFound)
}

pub(super) fn shutting_down() -> Error {
    Error::new(ErrorCode::ShuttingDown, SHUTTING_DOWN)
}
