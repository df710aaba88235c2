//! Rooms that are overdue: while there is not time for all, those that are due wait in a
//! [fair queue](crate::shard::fair_queue) by their founders. However many rooms others create, a
//! founder gets a share of the time.

use std::time::Duration;

use crate::shard::keys::RoomKey;
use crate::shard::rooms::Hosted;
use crate::shard::rooms::host::RoomHost;
use crate::shard::rooms::schedule::Schedule;

/// If a room is late by more than this, there is not time for all.
const OVERDUE: Duration = Duration::from_millis(4);

impl RoomHost {
    /// If there is not time for all, the rooms that are due wait by founder.
    pub(super) fn line_up_overdue(&mut self, now: Duration) {
        let is_late = self.schedule.next().is_some_and(|at| at + OVERDUE <= now);
        if !is_late && self.overdue.is_empty() {
            return;
        }
        while let Some((_, key)) = self.schedule.pop(now) {
            if let Some(hosted) = self.rooms.get_mut(key) {
                hosted.is_overdue = true;
                self.overdue.push(&hosted.founder, 0, key);
            }
        }
    }

    /// Takes out the next room to be run, and when it was due.
    pub(super) fn next_due(&mut self, now: Duration) -> Option<(Duration, RoomKey)> {
        while let Some(key) = self.overdue.next() {
            let hosted = self.rooms.get_mut(key);
            // It may have ended, or have been called in the meantime, and not be due any more.
            if let Some(hosted) = hosted.filter(|hosted| hosted.is_overdue) {
                hosted.is_overdue = false;
                if let Some(due) = hosted.due.take() {
                    return Some((due, key));
                }
            }
        }
        let (due, key) = self.schedule.pop(now)?;
        if let Some(hosted) = self.rooms.get_mut(key) {
            hosted.due = None;
        }
        Some((due, key))
    }

    /// When the next room is due; that may be long past.
    pub(crate) fn due_at(&self) -> Option<Duration> {
        if self.overdue.is_empty() { self.schedule.next() } else { Some(Duration::ZERO) }
    }
}

impl Hosted {
    /// Moves the room in the schedule. If it waits because it is overdue, it does so as long as it
    /// is due.
    pub(super) fn set_due(&mut self, key: RoomKey, schedule: &mut Schedule, due: Option<Duration>) {
        if !self.is_overdue {
            schedule.change(key, self.due, due);
        } else if due.is_none_or(|due| due > schedule.now()) {
            self.is_overdue = false;
            schedule.change(key, None, due);
        }
        self.due = due;
    }
}
