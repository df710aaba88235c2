//! The work that waits by address: input, resumes and snapshots, in one
//! [fair queue](crate::shard::work).

use crate::shard::Shard;
use crate::shard::connection::Links;
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
        if self.outbound.journaled.is_some() {
            // Receipts for the output of the last turn: messages after them would have to wait in
            // the lane.
            self.hear_inputs();
        }
        self.pacing.begin_part(&self.env, Part::Work);
        self.links.begin_work(self.env.now);
    }

    /// Works off what waited when the turn began to, until a connection is to be served, and
    /// returns that. `None` if that was all, or there is no time for more in this turn.
    pub(crate) fn next_input(&mut self) -> Option<ConnectionKey> {
        self.work_off(Links::next_work)
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
        self.work_off(Links::next_work_but_input);
        self.pacing.end_part(&self.env);
    }

    /// Works off what `next` takes out, as long as there is time, up to a connection that is to be
    /// served. Snapshots are held once enough of them were written in this turn.
    fn work_off(
        &mut self,
        next: impl Fn(&mut Links, bool) -> Option<Work>,
    ) -> Option<ConnectionKey> {
        while !self.is_part_over() {
            let holds_snapshots = !self.sessions.snapshots.has_time();
            let work = next(&mut self.links, holds_snapshots)?;
            if let Work::Input(key) = work {
                if let Some(connection) = self.links.get_mut(key) {
                    connection.unread = false;
                }
                return Some(key);
            }
            self.work_on(work);
        }
        None
    }

    fn work_on(&mut self, work: Work) {
        let began = self.env.stopwatch.read();
        match work {
            Work::Input(_) => {}
            Work::Resume(key) => self.by_outlet(|out| out.resume_for(key)),
            Work::Snapshot(waiting, number) => {
                if !self.sessions.snapshots.leave(waiting, number) {
                    return;
                }
                match waiting {
                    Waiting::Session(key) => self.host.catch_up_session(&mut below!(self), key),
                    Waiting::Member(room, member) => {
                        self.host.serve_member(&mut below!(self), room, member);
                    }
                }
                self.apply_effects();
                let took = self.env.stopwatch.read().saturating_sub(began);
                self.sessions.snapshots.wrote(took);
                self.host.charge_waiting(&mut below!(self), waiting, took);
            }
        }
        let took = self.env.stopwatch.read().saturating_sub(began);
        self.links.work.took(took);
    }
}
