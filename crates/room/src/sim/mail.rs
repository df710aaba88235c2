//! Input of a simulated room from background work and from other rooms.

use std::any::TypeId;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;

use super::audit::By;
use super::record::Record;
use super::{OTHER_ROOM_ID, OTHER_ROOM_TYPE, Sim};
use crate::core::REOPENINGS;
use crate::{
    AnyRoom, AskId, AskOf, Error, InternalMessage, InternalOf, Mail, NewRoom, Publication, Push,
    Result, Room, Sender, Task,
};

impl<R: Room + Default> Sim<R> {
    /// The numbers of the unfinished background tasks, oldest first. Those that the room began in
    /// `create` are among them.
    pub fn background(&self) -> Vec<u64> {
        let Record { tasks, jobs, .. } = &self.out;
        let mut numbers: Vec<u64> =
            tasks.iter().map(|(task, _)| *task).chain(jobs.iter().map(|(task, _)| *task)).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Ends a background task with `message` instead of running it: for tasks that need the outside
    /// world.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// #[derive(State, Default)]
    /// struct Lobby {
    ///     motd: String,
    /// }
    ///
    /// #[derive(Message)]
    /// struct Loaded(String);
    ///
    /// async fn load_from_database() -> String {
    ///     unreachable!("there is no database in tests")
    /// }
    ///
    /// #[room(internal(Loaded))]
    /// impl Room for Lobby {
    ///     fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
    ///         cx.spawn(async { Loaded(load_from_database().await) })?;
    ///         Ok(Self::default())
    ///     }
    /// }
    ///
    /// impl On<Loaded> for Lobby {
    ///     fn on(&mut self, Loaded(motd): Loaded, _: &mut Context<Self>) -> Result<()> {
    ///         self.motd = motd;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Lobby>::new(1);
    /// let task = sim.background()[0];
    /// sim.finish(task, &Loaded("Welcome!".into()));
    /// assert_eq!(sim.room().motd, "Welcome!");
    /// ```
    ///
    /// # Panics
    /// If there is no such task.
    pub fn finish<M: InternalOf<R>>(&mut self, task: u64, message: &M) {
        assert!(self.background().contains(&task), "there is no unfinished background task {task}");
        self.out.tasks.retain(|(number, _)| *number != task);
        self.out.jobs.retain(|(number, _)| *number != task);
        self.mail(Mail::Done { task, message: InternalMessage::of(message) });
    }

    /// Runs all queued computations, polls each spawned future once, and delivers the outcomes of
    /// saves. Returns how many tasks and saves ended.
    pub fn run_background(&mut self) -> usize {
        let mut ended = Vec::new();
        for (task, job) in std::mem::take(&mut self.out.jobs) {
            let done = catch_unwind(AssertUnwindSafe(job));
            ended
                .push(done.map_or(Mail::Panicked { task }, |message| Mail::Done { task, message }));
        }
        for (task, work) in std::mem::take(&mut self.out.tasks) {
            ended.extend(self.poll(task, work));
        }
        ended.extend(self.out.take_saved());
        let count = ended.len();
        for mail in ended {
            self.mail(mail);
        }
        count
    }

    /// Opens the save of a room that goes on, as a node does at once.
    pub(super) fn reopen(&mut self) {
        let opens = |(task, _): &(u64, Task)| *task >= REOPENINGS;
        if let Some(place) = self.out.tasks.iter().position(opens) {
            let (task, work) = self.out.tasks.remove(place);
            let ended = self.poll(task, work);
            ended.into_iter().for_each(|mail| self.mail(mail));
        }
    }

    /// Polls a task once. Returns its end, if it has ended.
    fn poll(&mut self, task: u64, mut work: Task) -> Option<Mail> {
        let poll = || work.as_mut().poll(&mut TaskContext::from_waker(Waker::noop()));
        match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Ready(message)) => Some(Mail::Done { task, message }),
            Ok(Poll::Pending) => {
                self.out.tasks.push((task, work));
                None
            }
            Err(_) => Some(Mail::Panicked { task }),
        }
    }

    /// From here on there is another room of type `N` with this key and id, for
    /// [`Context::find`](crate::Context::find). It ends by [`created_ended`](Self::created_ended).
    pub fn other_room<N: Room>(&mut self, key: &str, id: &str) {
        self.out.keys.insert((TypeId::of::<N>(), None, key.into()), id.to_owned());
    }

    /// Another room sends this one a message.
    pub fn tell<M: InternalOf<R>>(&mut self, message: &M) {
        self.mail(Mail::Told { from: other(), message: InternalMessage::of(message) });
    }

    /// Another room sends this one a request, and gets the reply.
    ///
    /// # Errors
    /// The room's refusal, `room_failed` if it panicked, or `room_not_found` if it has ended.
    ///
    /// # Panics
    /// If the room [defers](crate::Context::defer) the reply: use [`mail`](Self::mail) and
    /// [`posted`](Self::posted).
    pub fn ask<M: InternalOf<R>>(&mut self, message: &M) -> Result<M::Reply> {
        self.requests += 1;
        let number = u64::from(self.requests);
        self.mail(Mail::Asked {
            from: other(),
            ask: number,
            message: InternalMessage::of(message),
        });
        let mine = |(to, mail): &(String, Mail)| {
            to == OTHER_ROOM_ID && matches!(mail, Mail::Answered { ask, .. } if *ask == number)
        };
        let place = self
            .out
            .posts
            .iter()
            .rposition(mine)
            .expect("the room answers at once; for a reply that it defers, use `Sim::mail`");
        match self.out.posts.remove(place).1 {
            Mail::Answered { reply: Ok(reply), .. } => M::Reply::read(Format::Packed, &reply)
                .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string())),
            Mail::Answered { reply: Err(error), .. } => Err(error),
            _ => unreachable!("the search above matches only answers"),
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

    /// Delivers mail to the room, as its host would.
    pub fn mail(&mut self, mail: Mail) {
        self.log_input(By::Test, |_| {
            match mail {
                Mail::Done { .. } | Mail::Panicked { .. } => "background work ends",
                Mail::Saved { .. } => "a save ends",
                Mail::Told { .. } => "a message from outside the room",
                Mail::Asked { .. } => "a request from outside the room",
                Mail::Answered { .. } => "an answer of another room",
            }
            .to_owned()
        });
        self.core.mail(self.now, mail, &mut self.out);
        self.follow_up();
    }

    /// The rooms that this one has created since the last call, oldest first. They do not exist: a
    /// test looks at them, and makes a `Sim` of each if it wants to.
    ///
    /// Their keys are taken until they [end](Self::created_ended): a second room of the same type
    /// with the same key is refused with `room_exists`, as on a node.
    pub fn created(&mut self) -> Vec<NewRoom> {
        std::mem::take(&mut self.out.rooms)
    }

    /// A room that this one has created ends, so that its key is free.
    pub fn created_ended(&mut self, id: &str) {
        self.out.keys.retain(|_, of| of != id);
    }

    /// Returns what the room published in channels since the last call, oldest first.
    pub fn published(&mut self) -> Vec<Publication> {
        std::mem::take(&mut self.out.publications)
    }

    /// Returns what the room pushed to devices since the last call, oldest first.
    pub fn pushed(&mut self) -> Vec<Push> {
        std::mem::take(&mut self.out.pushes)
    }

    /// Returns what the room sent to other rooms since the last call, with the id of each receiver.
    pub fn posted(&mut self) -> Vec<(String, Mail)> {
        std::mem::take(&mut self.out.posts)
    }
}

/// The room that [`Sim::tell`] and [`Sim::ask`] send as.
fn other() -> Option<Arc<Sender>> {
    let (room_id, room_type) = (OTHER_ROOM_ID.into(), OTHER_ROOM_TYPE.into());
    Some(Arc::new(Sender { room_id, room_type }))
}
