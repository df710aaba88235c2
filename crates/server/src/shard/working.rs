//! The work that waits by address: input, resumes and snapshots, in one
//! [fair queue](crate::shard::work).

use std::time::Duration;

use crate::shard::Shard;
use crate::shard::keys::ConnectionKey;
use crate::shard::pacing::Part;
use crate::shard::work::{Waiting, Work};

impl Shard {
    /// Begins to work off what waits.
    pub(crate) fn begin_work(&mut self) {
        outlet!(self).retry_resumes();
        while let Some(waiting) = self.sessions.snapshots.next_due(self.env.now) {
            self.host.queue_due_snapshot(&mut below!(self), waiting);
        }
        self.pacing.begin_part(&self.env, Part::Work);
        self.links.begin_work();
    }

    /// Works off what waits until a connection is to be served, and returns that. `None` if that was
    /// all, or there is no time for more in this turn.
    pub(crate) fn next_input(&mut self) -> Option<ConnectionKey> {
        loop {
            if self.is_part_over() {
                return None;
            }
            let has_time = self.sessions.snapshots.has_time(self.env.turn);
            let is_wanted = |work: &Work| has_time || !matches!(work, Work::Snapshot(..));
            match self.links.next_work(is_wanted)? {
                Work::Input(key) => {
                    if let Some(connection) = self.links.get_mut(key) {
                        connection.unread = false;
                    }
                    return Some(key);
                }
                work => self.work_on(work),
            }
        }
    }

    /// No more input is read in this turn.
    pub(crate) fn end_input(&mut self) {
        self.links.end_input();
        self.pacing.end_part(&self.env);
    }

    /// Goes on until a connection is to be served, which is not done in this turn any more: what
    /// input and rooms have caused in this turn need not wait for the next.
    pub(in crate::shard) fn go_on_working(&mut self) {
        self.pacing.begin_part(&self.env, Part::Work);
        while !self.is_part_over() {
            let has_time = self.sessions.snapshots.has_time(self.env.turn);
            let is_wanted = |work: &Work| match work {
                Work::Input(_) => false,
                Work::Resume(_) => true,
                Work::Snapshot(..) => has_time,
            };
            let Some(work) = self.links.work.next_if(is_wanted) else { break };
            self.work_on(work);
        }
        self.pacing.end_part(&self.env);
    }

    fn work_on(&mut self, work: Work) {
        let began = self.env.stopwatch.read();
        match work {
            Work::Input(_) => {}
            Work::Resume(key) => self.by_outlet(|out| out.resume_for(key)),
            Work::Snapshot(waiting, number) => {
                if self.sessions.snapshots.leave(waiting, number) {
                    self.write_snapshot(waiting, began);
                }
            }
        }
        let took = self.env.stopwatch.read().saturating_sub(began);
        self.links.work.took(took);
    }

    fn write_snapshot(&mut self, waiting: Waiting, began: Duration) {
        match waiting {
            Waiting::Session(key) => self.host.catch_up_session(&mut below!(self), key),
            Waiting::Member(room, member) => {
                self.host.serve_member(&mut below!(self), room, member);
            }
        }
        self.apply_effects();
        let took = self.env.stopwatch.read().saturating_sub(began);
        self.sessions.snapshots.wrote(self.env.turn, took);
        self.host.charge_waiting(&mut below!(self), waiting, took);
    }
}
