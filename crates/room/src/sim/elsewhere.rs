//! What comes to a simulated room from elsewhere than its players: background work and other rooms.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context as TaskContext, Poll, Waker};

use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;

use super::record::Record;
use super::{OTHER_ROOM_ID, Sim};
use crate::{AnyRoom, AskId, AskOf, Error, InternalMessage, InternalOf, Mail, Result, Room};

impl<R: Room + Default> Sim<R> {
    /// The numbers of the background work that has not ended, oldest first.
    pub fn background(&self) -> Vec<u64> {
        let Record { tasks, jobs, .. } = &self.out;
        let mut numbers: Vec<u64> =
            tasks.iter().map(|(task, _)| *task).chain(jobs.iter().map(|(task, _)| *task)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Ends background work with `message`, without running it: for work that would need the outside
    /// world.
    ///
    /// # Panics
    /// If no such work is under way.
    pub fn finish<M: InternalOf<R>>(&mut self, task: u64, message: &M) {
        assert!(self.background().contains(&task), "no background work {task} is under way");
        self.out.tasks.retain(|(number, _)| *number != task);
        self.out.jobs.retain(|(number, _)| *number != task);
        self.mail(Mail::Done { task, message: InternalMessage::of(message) });
    }

    /// Runs the computations that wait, and lets the waiting work go as far as it can. Says how
    /// many ended.
    pub fn run_background(&mut self) -> usize {
        let mut ended = Vec::new();
        for (task, job) in std::mem::take(&mut self.out.jobs) {
            let done = catch_unwind(AssertUnwindSafe(job));
            ended.push(done.map_or(Mail::Lost { task }, |message| Mail::Done { task, message }));
        }
        for (task, mut work) in std::mem::take(&mut self.out.tasks) {
            let poll = || work.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
            match catch_unwind(AssertUnwindSafe(poll)) {
                Ok(Poll::Ready(message)) => ended.push(Mail::Done { task, message }),
                Ok(Poll::Pending) => self.out.tasks.push((task, work)),
                Err(_) => ended.push(Mail::Lost { task }),
            }
        }
        let count = ended.len();
        for mail in ended {
            self.mail(mail);
        }
        count
    }

    /// Another room tells this one something.
    pub fn tell<M: InternalOf<R>>(&mut self, message: &M) {
        self.mail(Mail::Told { from: OTHER_ROOM_ID.into(), message: InternalMessage::of(message) });
    }

    /// Another room asks this one, and is answered.
    ///
    /// # Errors
    /// The room's refusal, `room_failed` if it panicked, or `room_not_found` if it has ended.
    pub fn ask<M: InternalOf<R>>(&mut self, message: &M) -> Result<M::Reply> {
        self.requests += 1;
        let number = u64::from(self.requests);
        self.mail(Mail::Asked {
            from: OTHER_ROOM_ID.into(),
            ask: number,
            message: InternalMessage::of(message),
        });
        let mine = |(to, mail): &(String, Mail)| {
            to == OTHER_ROOM_ID && matches!(mail, Mail::Answered { ask, .. } if *ask == number)
        };
        let place = self.out.posts.iter().rposition(mine).expect("a request is always answered");
        match self.out.posts.remove(place).1 {
            Mail::Answered { reply: Ok(reply), .. } => M::Reply::read(Format::Packed, &reply)
                .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string())),
            Mail::Answered { reply: Err(error), .. } => Err(error),
            _ => unreachable!("it was looked for as an answer"),
        }
    }

    /// Answers a request that this room sent to another.
    pub fn answer<M: AskOf<R>>(&mut self, ask: AskId, reply: Result<M::Reply>) {
        let reply = reply.map(|reply| {
            let mut payload = Vec::new();
            reply.encode(&mut payload);
            payload
        });
        self.mail(Mail::Answered { ask: ask.0, reply });
    }

    /// Gives the room mail, as its host would.
    pub fn mail(&mut self, mail: Mail) {
        self.core.mail(self.now, mail, &mut self.out);
        self.gone();
    }

    /// What the room sent to other rooms since it was last asked for.
    pub fn posted(&mut self) -> Vec<(String, Mail)> {
        std::mem::take(&mut self.out.posts)
    }
}
