//! The output of a room while it is created, when it has nowhere to go yet.

use std::any::TypeId;

use playfield_state::PlayerId;
use playfield_wire::RequestNumber;

use crate::{
    Completion, Error, EventHeader, Job, Link, Mail, NewRoom, Publication, Push, Result,
    RoomOutput, Task,
};

/// Keeps tasks and mail until the host's first call. It drops output to players: there are none
/// yet.
#[derive(Default)]
pub(crate) struct DeferredOutput {
    tasks: Vec<(u64, Task)>,
    jobs: Vec<(u64, Job)>,
    rooms: Vec<NewRoom>,
    posts: Vec<(String, Mail)>,
    publications: Vec<Publication>,
    pushes: Vec<Push>,
}

impl DeferredOutput {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let Self { tasks, jobs, rooms, posts, publications, pushes } = self;
        let work = tasks.len() | jobs.len() | rooms.len();
        // Without a branch for each: every call of a room asks.
        work | posts.len() | publications.len() | pushes.len() == 0
    }

    /// Passes everything on.
    ///
    /// # Errors
    /// The host refused a task. What came before it was passed on.
    pub(crate) fn empty(&mut self, out: &mut dyn RoomOutput) -> Result<()> {
        for room in self.rooms.drain(..) {
            let id = room.id.clone();
            if let Err(error) = out.create(room) {
                log::warn!("room {id}, which another wanted in its `create`, is refused: {error}");
            }
        }
        for (to, mail) in self.posts.drain(..) {
            out.post(&to, mail);
        }
        for publication in self.publications.drain(..) {
            out.publish(publication);
        }
        for push in self.pushes.drain(..) {
            out.push(push);
        }
        for (task, work) in self.tasks.drain(..) {
            out.spawn(task, work)?;
        }
        for (task, job) in self.jobs.drain(..) {
            out.compute(task, job)?;
        }
        Ok(())
    }
}

impl RoomOutput for DeferredOutput {
    fn reply(&mut self, _: Link, _: RequestNumber, _: &[u8]) {}
    fn error(&mut self, _: Link, _: Option<RequestNumber>, _: &Error) {}
    fn event(&mut self, _: Link, _: EventHeader, _: &[u8]) {}
    fn removed(&mut self, _: Link, _: &Error) {}
    fn admitted(&mut self, _: Link, _: PlayerId) {}
    fn refused(&mut self, _: Link, _: &Error) {}

    fn spawn(&mut self, task: u64, work: Task) -> Result<()> {
        self.tasks.push((task, work));
        Ok(())
    }

    fn compute(&mut self, task: u64, job: Job) -> Result<()> {
        self.jobs.push((task, job));
        Ok(())
    }

    fn completion(&mut self, _: u64) -> Completion {
        // No room is saved before it is created.
        Completion::new(drop)
    }

    fn create(&mut self, room: NewRoom) -> Result<()> {
        room.check_seats(room.capacity)?;
        self.rooms.push(room);
        Ok(())
    }

    fn find(&mut self, _: TypeId, key: &str) -> Result<Option<String>> {
        let text = format!(
            "can't look for the room {key:?} in `create`: look for it in `join` or by a timer"
        );
        Err(text.into())
    }

    fn publish(&mut self, publication: Publication) {
        self.publications.push(publication);
    }

    fn push(&mut self, push: Push) {
        self.pushes.push(push);
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.posts.push((to.to_owned(), mail));
    }
}
