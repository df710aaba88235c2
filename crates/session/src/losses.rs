//! What was lost, by room.

use std::collections::VecDeque;

use playfield_wire::RoomNumber;
use playfield_wire::server::Lost;

use crate::log::NO_ROOM;

/// How many runs are remembered. With more the oldest are forgotten, and an end that may have
/// received some of them can't resume the session. Only an end that does not acknowledge what it
/// receives gets there: what was lost without having been sent takes one run for each room. They
/// take 8 KiB, little beside the messages that a session may keep.
pub(crate) const RUNS_MAX: usize = 1024;

/// Memory is released if the capacity exceeds the contents this many times.
const SLACK: usize = 4;

/// Messages that were lost one after the other, oldest first.
///
/// How many messages the other end has received shows when it comes back. That may be any part of
/// those that were sent, so their order is remembered, in runs with the same room. Of those that
/// were held it has received none: their sums by room are enough.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    runs: VecDeque<Run>,
    /// The messages of all runs.
    messages: u64,
    /// How many of the last runs are sums of what was held, ordered by room.
    sums: usize,
}

/// Messages about one room, or about none. One with too many to count is followed by another.
#[derive(Clone, Copy, Debug)]
struct Run {
    room: u32,
    messages: u32,
}

impl Losses {
    /// How many bytes of memory this takes.
    pub(crate) fn memory(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }

    /// A message was lost that the other end may have received.
    pub(crate) fn of_sent(&mut self, room: Option<RoomNumber>) {
        let room = number(room);
        self.sums = 0;
        self.messages += 1;
        match self.runs.back_mut() {
            Some(run) if run.room == room && run.messages < u32::MAX => run.messages += 1,
            _ => self.insert(self.runs.len(), Run { room, messages: 1 }),
        }
    }

    /// Messages were lost that the other end can't have received.
    pub(crate) fn of_held(&mut self, room: Option<RoomNumber>, messages: u32) {
        let room = number(room);
        self.messages += u64::from(messages);
        let (mut at, mut end) = (self.runs.len() - self.sums, self.runs.len());
        while at < end {
            let middle = at.midpoint(end);
            if self.runs[middle].room < room { at = middle + 1 } else { end = middle }
        }
        match self.runs.get_mut(at).filter(|run| run.room == room) {
            Some(run) if run.messages <= u32::MAX - messages => run.messages += messages,
            _ => {
                self.sums += 1;
                self.insert(at, Run { room, messages });
            }
        }
    }

    fn insert(&mut self, mut at: usize, run: Run) {
        if self.runs.len() == RUNS_MAX {
            // The oldest is forgotten first, so that the buffer does not grow.
            let oldest = if at == 0 { Some(run) } else { self.runs.pop_front() };
            self.messages -= oldest.map_or(0, |run| u64::from(run.messages));
            self.sums = self.sums.min(RUNS_MAX);
            if at == 0 {
                return;
            }
            at -= 1;
        }
        self.runs.insert(at, run);
    }

    /// The other end has received all but the last `messages` of them.
    pub(crate) fn keep_last(&mut self, messages: u64) {
        while self.messages > messages
            && let Some(run) = self.runs.front_mut()
        {
            let over = u64::from(run.messages).min(self.messages - messages) as u32;
            self.messages -= u64::from(over);
            run.messages -= over;
            if run.messages == 0 {
                self.runs.pop_front();
            }
        }
        self.sums = self.sums.min(self.runs.len());
        if self.runs.capacity() > SLACK * self.runs.len() {
            self.runs.shrink_to(2 * self.runs.len());
        }
    }

    /// The last `messages` of them by room; `None` if that is forgotten. The other end may be told
    /// now: what is lost from here on is apart from these.
    pub(crate) fn tell(&mut self, messages: u64) -> Option<Vec<Lost>> {
        self.keep_last(messages);
        self.sums = 0;
        if self.messages < messages {
            return None;
        }
        let lost = |run: &Run| {
            let room = (run.room != NO_ROOM).then_some(RoomNumber(run.room));
            Lost { room, messages: u64::from(run.messages) }
        };
        let mut told: Vec<Lost> = self.runs.iter().map(lost).collect();
        told.sort_unstable_by_key(|lost| lost.room);
        told.dedup_by(|lost, sum| {
            let is_same = lost.room == sum.room;
            sum.messages += if is_same { lost.messages } else { 0 };
            is_same
        });
        Some(told)
    }
}

/// The number of a room, or of none.
fn number(room: Option<RoomNumber>) -> u32 {
    room.map_or(NO_ROOM, |room| room.0)
}
