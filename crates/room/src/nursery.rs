//! What a room sends while it is created, before its host can take it.

use crate::{Error, EventHeader, Job, Link, Mail, Outlet, Result, Task};
use playfield_wire::ErrorCode;

/// Keeps it until the host's first call. There are no players yet, so there is nothing for players to keep.
#[derive(Default)]
pub(crate) struct Nursery {
    tasks: Vec<(u64, Task)>,
    posts: Vec<(String, Mail)>,
}

impl Nursery {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.posts.is_empty()
    }

    /// Hands everything on.
    pub(crate) fn empty(&mut self, out: &mut dyn Outlet) {
        for (task, work) in self.tasks.drain(..) {
            out.spawn(task, work);
        }
        for (to, mail) in self.posts.drain(..) {
            out.post(&to, mail);
        }
    }
}

impl Outlet for Nursery {
    fn reply(&mut self, _: Link, _: u32, _: &[u8]) {}
    fn error(&mut self, _: Link, _: Option<u32>, _: &Error) {}
    fn event(&mut self, _: Link, _: EventHeader, _: &[u8]) {}
    fn removed(&mut self, _: Link, _: &Error) {}

    fn spawn(&mut self, task: u64, work: Task) {
        self.tasks.push((task, work));
    }

    fn compute(&mut self, _: u64, _: Job) -> Result<()> {
        Err(Error::new(
            ErrorCode::Busy,
            "nothing can be computed aside while the room is created: set a timer and do it then",
        ))
    }

    fn post(&mut self, to: &str, mail: Mail) {
        self.posts.push((to.to_owned(), mail));
    }
}
