//! The output of a simulated room, kept until it is asked for.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use playfield_state::{Format, PlayerId};
use playfield_wire::{ErrorCode, RequestNumber};

use super::audit::Log;
use crate::{
    Completion, Error, EventHeader, Job, Link, Mail, NewRoom, Publication, Push, Result,
    RoomOutput, Task,
};

/// The output of the room.
#[derive(Default)]
pub(super) struct Record {
    pub(super) answers: BTreeMap<RequestNumber, SentAnswer>,
    pub(super) errors: Vec<(Link, Error)>,
    pub(super) events: Vec<SentEvent>,
    /// The number of events and answers.
    pub(super) sent: u64,
    pub(super) removed: Vec<(Link, Error)>,
    pub(super) admitted: Vec<(Link, PlayerId)>,
    pub(super) refused: Vec<(Link, Error)>,
    pub(super) gone: BTreeMap<PlayerId, Error>,
    pub(super) tasks: Vec<(u64, Task)>,
    pub(super) jobs: Vec<(u64, Job)>,
    /// Saves that ended, from whichever thread of the store.
    saved: Arc<Mutex<Vec<Mail>>>,
    pub(super) posts: Vec<(String, Mail)>,
    pub(super) publications: Vec<Publication>,
    pub(super) pushes: Vec<Push>,
    pub(super) rooms: Vec<NewRoom>,
    /// The ids of the rooms that have a key, by it and their type.
    pub(super) keys: BTreeMap<RoomKey, String>,
    /// The formats of those that are not `packed`.
    pub(super) formats: BTreeMap<Link, Format>,
    /// All that is sent, while the room is audited.
    pub(super) log: Option<Box<Log>>,
}

/// The type of a room, the name of the type if the room was created by it, and the room's key.
pub(super) type RoomKey = (TypeId, Option<String>, Arc<str>);

pub(super) struct SentAnswer {
    /// Counts all events and answers, from 1.
    pub(super) number: u64,
    pub(super) link: Link,
    pub(super) reply: Result<Vec<u8>>,
}

pub(super) struct SentEvent {
    /// Counts all events and answers, from 1.
    pub(super) number: u64,
    pub(super) link: Link,
    pub(super) index: u32,
    pub(super) payload: Vec<u8>,
}

impl Record {
    pub(super) fn format_of(&self, link: Link) -> Format {
        self.formats.get(&link).copied().unwrap_or_default()
    }

    pub(super) fn log(&mut self, log: impl FnOnce(&mut Log)) {
        if let Some(to) = &mut self.log {
            log(to);
        }
    }

    /// The outcomes of saves since the last call.
    pub(super) fn take_saved(&mut self) -> Vec<Mail> {
        std::mem::take(&mut self.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn answer(&mut self, link: Link, request: RequestNumber, reply: Result<Vec<u8>>) {
        self.sent += 1;
        self.answers.insert(request, SentAnswer { number: self.sent, link, reply });
    }

    /// Forgets what was sent to this player and not received: all after this number.
    pub(super) fn lose(&mut self, link: Link, heard_until: u64) {
        self.events.retain(|event| event.link != link || event.number <= heard_until);
        self.answers.retain(|_, answer| answer.link != link || answer.number <= heard_until);
    }
}

impl RoomOutput for Record {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        let format = self.format_of(link);
        self.log(|log| log.reply(link, request, format, payload));
        self.answer(link, request, Ok(payload.to_vec()));
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.log(|log| log.error(link, request, error));
        match request {
            Some(request) => self.answer(link, request, Err(error.clone())),
            None => self.errors.push((link, error.clone())),
        }
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        let format = self.format_of(link);
        self.log(|log| log.event(link, event.index, format, payload));
        self.sent += 1;
        let (number, payload) = (self.sent, payload.to_vec());
        self.events.push(SentEvent { number, link, index: event.index, payload });
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.log(|log| log.removed(link, why));
        self.removed.push((link, why.clone()));
    }

    fn admitted(&mut self, link: Link, player: PlayerId) {
        self.log(|log| log.joined(link, player));
        self.admitted.push((link, player));
    }

    fn refused(&mut self, link: Link, why: &Error) {
        self.log(|log| log.refused(link, why));
        self.refused.push((link, why.clone()));
    }

    fn spawn(&mut self, task: u64, work: Task) -> Result<()> {
        self.tasks.push((task, work));
        Ok(())
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        self.jobs.push((task, job));
        Ok(())
    }

    fn completion(&mut self, save: u64) -> Completion {
        let saved = Arc::clone(&self.saved);
        Completion::new(move |outcome| {
            let mut saved = saved.lock().unwrap_or_else(PoisonError::into_inner);
            saved.push(Mail::Saved { save, outcome });
        })
    }

    fn create(&mut self, room: NewRoom) -> Result<()> {
        room.check_seats(room.capacity)?;
        if let Some(key) = &room.key {
            let place = (room.rust_type, room.room_type.clone(), Arc::clone(key));
            if self.keys.contains_key(&place) {
                let text = format!("a room of this type has the key {key:?} already");
                return Err(Error::new(ErrorCode::RoomExists, text));
            }
            self.keys.insert(place, room.id.clone());
        }
        self.log(|log| log.created(&room));
        self.rooms.push(room);
        Ok(())
    }

    fn find(&mut self, rust_type: TypeId, key: &str) -> Result<Option<String>> {
        let is_it = |(of, _, taken): &RoomKey| *of == rust_type && **taken == *key;
        Ok(self.keys.iter().find(|(place, _)| is_it(place)).map(|(_, id)| id.clone()))
    }

    fn publish(&mut self, publication: Publication) {
        self.log(|log| log.published(&publication));
        self.publications.push(publication);
    }

    fn push(&mut self, push: Push) {
        self.log(|log| log.pushed(&push));
        self.pushes.push(push);
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.log(|log| log.posted(to, &mail));
        self.posts.push((to.to_owned(), mail));
    }
}
