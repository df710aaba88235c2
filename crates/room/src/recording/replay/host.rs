//! The surroundings of a room that runs again.

use std::any::TypeId;
use std::future::pending;

use playfield_state::PlayerId;
use playfield_wire::RequestNumber;

use crate::recording::Answer;
use crate::{
    Completion, Error, EventHeader, Fence, Job, Link, Loaded, Mail, NewRoom, Opened, Publication,
    Push, RoomOutput, Store, Stored, Task,
};

/// The host of a room that runs again. It does nothing, and answers what the recorded one did.
#[derive(Default)]
pub(in crate::recording) struct Host<'a> {
    pub(super) answers: Vec<(u64, Answer)>,
    pub(super) question: u64,
    pub(super) out: Option<&'a mut dyn RoomOutput>,
}

impl Host<'_> {
    fn answer(&mut self) -> Result<Option<String>, Error> {
        let question = self.question;
        self.question += 1;
        let answer = self.answers.iter().find(|(of, _)| *of == question);
        match answer.map(|(_, answer)| answer) {
            None => Ok(None),
            Some(Answer::Found(id)) => Ok(id.clone()),
            Some(Answer::Refused(error)) => Err(error.clone()),
        }
    }

    fn pass(&mut self, pass: impl FnOnce(&mut dyn RoomOutput)) {
        if let Some(out) = &mut self.out {
            pass(*out);
        }
    }
}

impl RoomOutput for Host<'_> {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        self.pass(|out| out.reply(link, request, payload));
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.pass(|out| out.error(link, request, error));
    }

    fn unheard(&mut self, error: &Error) {
        self.pass(|out| out.unheard(error));
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        self.pass(|out| out.event(link, event, payload));
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.pass(|out| out.removed(link, why));
    }

    fn admitted(&mut self, link: Link, player: PlayerId) {
        self.pass(|out| out.admitted(link, player));
    }

    fn refused(&mut self, link: Link, why: &Error) {
        self.pass(|out| out.refused(link, why));
    }

    fn spawn(&mut self, _: u64, _: Task) -> Result<(), Error> {
        self.answer().map(drop)
    }

    fn compute(&mut self, _: u64, _: Job) -> Result<(), Error> {
        self.answer().map(drop)
    }

    fn completion(&mut self, _: u64) -> Completion {
        // The outcome is one of the inputs.
        Completion::new(drop)
    }

    fn create(&mut self, _: NewRoom) -> Result<(), Error> {
        self.answer().map(drop)
    }

    fn find(&mut self, _: TypeId, _: &str) -> Result<Option<String>, Error> {
        self.answer()
    }

    fn publish(&mut self, publication: Publication) {
        self.pass(|out| out.publish(publication));
    }

    fn push(&mut self, push: Push) {
        self.pass(|out| out.push(push));
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.pass(|out| out.post(to, mail));
    }
}

/// The store of a room that runs again: nothing is saved, and outcomes are inputs.
pub(super) struct NoStore;

impl Store for NoStore {
    fn open(&self, _: &str, _: &str) -> Stored<Opened> {
        Box::pin(pending())
    }

    fn load(&self, _: &str, _: &str) -> Stored<Option<Loaded>> {
        Box::pin(pending())
    }

    fn save(&self, _: &str, _: &str, _: Fence, _: Vec<u8>, _: Completion) {}

    fn remove(&self, _: &str, _: &str, _: Fence) -> Stored<()> {
        Box::pin(pending())
    }

    fn keys(&self, _: &str, _: Option<&str>, _: usize) -> Stored<Vec<String>> {
        Box::pin(pending())
    }
}
