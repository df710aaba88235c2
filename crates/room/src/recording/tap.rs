//! The output of a room that is recorded: it passes, and the host's answers are noted.

use std::any::TypeId;

use playfield_state::PlayerId;
use playfield_wire::{ErrorCode, RequestNumber};

use super::Answer;
use super::tape::Tape;
use crate::{
    Completion, Error, EventHeader, Held, Job, Link, Mail, NewRoom, Publication, Push, Result,
    RoomOutput, Task,
};

/// Notes on a tape what a host answers.
pub(super) struct Tap<'a> {
    pub(super) tape: &'a mut Tape,
    pub(super) out: &'a mut dyn RoomOutput,
    /// The number of the next question in this input.
    pub(super) question: u64,
    /// The room is journaled.
    pub(super) holds: bool,
}

impl Tap<'_> {
    fn answered<T>(&mut self, answer: Result<T>) -> Result<T> {
        let question = self.question;
        self.question += 1;
        answer.inspect_err(|error| self.tape.answer(question, &Answer::Refused(error.clone())))
    }

    /// Notes an error that a handler returned.
    fn returned(&mut self, error: &Error) {
        if error.code() == ErrorCode::Internal {
            self.tape.internal_error(error);
        }
    }

    fn hold_back(&mut self, held: Held) {
        // Only work and rooms can be refused.
        let _ = self.out.hold(held);
    }
}

impl RoomOutput for Tap<'_> {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        self.out.reply(link, request, payload);
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.returned(error);
        self.out.error(link, request, error);
    }

    fn unheard(&mut self, error: &Error) {
        self.returned(error);
        self.out.unheard(error);
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        self.out.event(link, event, payload);
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.out.removed(link, why);
    }

    fn admitted(&mut self, link: Link, player: PlayerId) {
        self.out.admitted(link, player);
    }

    fn refused(&mut self, link: Link, why: &Error) {
        self.returned(why);
        self.out.refused(link, why);
    }

    fn spawn(&mut self, task: u64, work: Task) -> Result<()> {
        let answer = match self.holds {
            true => self.out.hold(Held::Spawn(task, work)),
            false => self.out.spawn(task, work),
        };
        self.answered(answer)
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        let answer = match self.holds {
            true => self.out.hold(Held::Compute(task, job)),
            false => self.out.compute(task, job),
        };
        self.answered(answer)
    }

    fn completion(&mut self, save: u64) -> Completion {
        self.out.completion(save)
    }

    fn waits(&mut self, player: PlayerId) {
        self.out.waits(player);
    }

    fn fenced(&mut self) -> bool {
        let is_reopened = self.out.fenced();
        if is_reopened {
            // In a replay, the room would end.
            self.tape.interrupt("another owner has opened the room's save");
        }
        is_reopened
    }

    fn create(&mut self, room: NewRoom) -> Result<()> {
        let answer = match self.holds {
            true => self.out.hold(Held::Create(Box::new(room))),
            false => self.out.create(room),
        };
        self.answered(answer)
    }

    fn find(&mut self, rust_type: TypeId, key: &str) -> Result<Option<String>> {
        let answer = self.out.find(rust_type, key);
        if let Ok(found) = &answer {
            self.tape.answer(self.question, &Answer::Found(found.clone()));
        }
        self.answered(answer)
    }

    fn publish(&mut self, publication: Publication) {
        match self.holds {
            true => self.hold_back(Held::Publish(publication)),
            false => self.out.publish(publication),
        }
    }

    fn push(&mut self, push: Push) {
        match self.holds {
            true => self.hold_back(Held::Push(push)),
            false => self.out.push(push),
        }
    }

    fn post(&mut self, to: &str, mail: Mail) {
        if let Mail::Answered { reply: Err(error), .. } = &mail {
            self.returned(error);
        }
        match self.holds {
            true => self.hold_back(Held::Post(to.to_owned(), mail)),
            false => self.out.post(to, mail),
        }
    }
}
