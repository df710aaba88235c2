//! Lost messages, by room.

use std::collections::VecDeque;

use playfield_wire::reader::Reader;
use playfield_wire::server::Lost;
use playfield_wire::{DecodeError, RoomNumber, writer};

use crate::log::NO_ROOM;

/// The maximum number of remembered runs. With more, the oldest are merged: of those it is known
/// how many there are, and of each room how many there may be. They take 8 KiB, little beside the
/// messages that a session may keep.
pub(crate) const RUNS_MAX: usize = 1024;

/// The maximum number of rooms in merged runs. With more, the oldest messages are forgotten, and an
/// end that may have received some of them can't resume the session.
const MERGED_MAX: usize = RUNS_MAX / 4;

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
    /// The number of runs at the end that are sums of what was held, ordered by room.
    sums: usize,
    /// The number of runs at the front that are merged: sums by room, in no order of time.
    merged: usize,
    /// The messages in the merged runs. Once the other end has received some, each sum is an upper
    /// bound.
    merged_messages: u64,
}

/// Messages about one room, or about none. One with too many to count is followed by another.
#[derive(Clone, Copy, Debug)]
struct Run {
    room: u32,
    messages: u32,
}

impl Losses {
    /// Returns the memory this takes, in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.runs.capacity() * size_of::<Run>()
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    pub(crate) fn freeze(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.runs.len() as u64);
        for run in &self.runs {
            writer::put_varint(out, run.room.into());
            writer::put_varint(out, run.messages.into());
        }
        for number in [self.sums as u64, self.merged as u64, self.merged_messages] {
            writer::put_varint(out, number);
        }
    }

    pub(crate) fn thaw(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        let run = |reader: &mut Reader<'_>| {
            Ok(Run { room: reader.varint_u32()?, messages: reader.varint_u32()? })
        };
        let count = reader.count()?;
        let runs = (0..count).map(|_| run(reader)).collect::<Result<VecDeque<Run>, _>>()?;
        let [sums, merged] = [reader.varint_u32()? as usize, reader.varint_u32()? as usize];
        let merged_messages = reader.varint()?;
        let exact: u64 = runs.iter().skip(merged).map(|run| u64::from(run.messages)).sum();
        match merged_messages.checked_add(exact) {
            Some(messages)
                if count <= RUNS_MAX
                    && merged <= MERGED_MAX
                    && merged + sums <= count
                    && (merged > 0 || merged_messages == 0) =>
            {
                Ok(Self { runs, messages, sums, merged, merged_messages })
            }
            _ => Err(DecodeError::new(at, "the numbers of lost messages do not fit")),
        }
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
            at -= self.merge_oldest(at);
            if self.runs.len() == RUNS_MAX {
                if at == 0 {
                    // All others are of the same time: one has to go.
                    self.messages -= u64::from(run.messages);
                    return;
                }
                at -= self.forget_oldest();
            }
        }
        self.runs.insert(at, run);
    }

    /// Merges the oldest of the first `before` runs. Returns by how much there are fewer.
    fn merge_oldest(&mut self, before: usize) -> usize {
        let count = before.min(RUNS_MAX / 2);
        if count <= self.merged {
            return 0;
        }
        let exact = self.runs.range(self.merged..count).map(|run| u64::from(run.messages));
        self.merged_messages += exact.sum::<u64>();
        let mut sums: Vec<Run> = self.runs.drain(..count).collect();
        sums.sort_unstable_by_key(|run| run.room);
        sums.dedup_by(|run, sum| {
            let is_same = run.room == sum.room;
            sum.messages = sum.messages.saturating_add(if is_same { run.messages } else { 0 });
            is_same
        });
        self.merged = sums.len();
        sums.into_iter().rev().for_each(|sum| self.runs.push_front(sum));
        let mut fewer = count - self.merged;
        if self.merged > MERGED_MAX {
            fewer += self.forget_oldest();
        }
        self.sums = self.sums.min(self.runs.len() - self.merged);
        fewer
    }

    /// Forgets the merged runs, or if there are none, the oldest. Returns how many these are.
    fn forget_oldest(&mut self) -> usize {
        if self.merged == 0 {
            self.messages -= self.runs.pop_front().map_or(0, |run| u64::from(run.messages));
            return 1;
        }
        self.messages -= std::mem::take(&mut self.merged_messages);
        self.runs.drain(..self.merged);
        std::mem::take(&mut self.merged)
    }

    /// The other end has received all but the last `messages` of them.
    pub(crate) fn keep_last(&mut self, messages: u64) {
        let received = self.messages.saturating_sub(messages).min(self.merged_messages);
        self.merged_messages -= received;
        self.messages -= received;
        if self.merged_messages == 0 {
            self.runs.drain(..std::mem::take(&mut self.merged));
        }
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

    /// The last `messages` of them by room, or more, where the order was too long; `None` if that
    /// is forgotten. The other end may be told now: what is lost from here on is apart from these.
    pub(crate) fn tell(&mut self, messages: u64) -> Option<Vec<Lost>> {
        self.keep_last(messages);
        self.sums = 0;
        if self.messages < messages {
            return None;
        }
        let lost = |(at, run): (usize, &Run)| {
            let room = (run.room != NO_ROOM).then_some(RoomNumber(run.room));
            let most = if at < self.merged { self.merged_messages } else { u64::MAX };
            Lost { room, messages: u64::from(run.messages).min(most) }
        };
        let mut told: Vec<Lost> = self.runs.iter().enumerate().map(lost).collect();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use playfield_wire::RoomNumber;
    use proptest::prelude::*;

    use super::{Losses, RUNS_MAX};

    #[derive(Clone, Debug)]
    enum Step {
        Sent { room: u32, times: usize },
        Alternating { rooms: u32, times: usize },
        Held { room: u32, messages: u32 },
        Received { part: f64 },
        Told,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..4_u32, 1..9_usize).prop_map(|(room, times)| Step::Sent { room, times }),
            (2..9_u32, 1..1500_usize).prop_map(|(rooms, times)| Step::Alternating { rooms, times }),
            (1..900_u32, 1..4_u32).prop_map(|(room, messages)| Step::Held { room, messages }),
            (0.0..1.0).prop_map(|part| Step::Received { part }),
            Just(Step::Told),
        ]
    }

    fn runs(rooms: &[u32]) -> usize {
        rooms.chunk_by(|one, next| one == next).count()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Nobody is told of less than was lost; nor of more, unless the order was too long; and
        /// all is remembered, unless it was about too many rooms.
        #[test]
        fn what_was_lost_is_told_by_room(steps in prop::collection::vec(step(), 1..40)) {
            let mut losses = Losses::default();
            let mut model: Vec<u32> = Vec::new();
            let (mut is_exact, mut of_few_rooms) = (true, true);
            for step in steps {
                match step {
                    Step::Sent { room, times } => {
                        for _ in 0..times {
                            losses.of_sent(Some(RoomNumber(room)));
                            model.push(room);
                        }
                    }
                    Step::Alternating { rooms, times } => {
                        for time in 0..times as u32 {
                            losses.of_sent(Some(RoomNumber(1 + time % rooms)));
                            model.push(1 + time % rooms);
                        }
                    }
                    Step::Held { room, messages } => {
                        losses.of_held(Some(RoomNumber(room)), messages);
                        model.extend((0..messages).map(|_| room));
                        of_few_rooms &= room < 9;
                        // The other end has received none of them, so their order is free.
                        losses.sums = 0;
                    }
                    Step::Received { part } => {
                        let kept = (model.len() as f64 * part) as usize;
                        losses.keep_last(kept as u64);
                        model.drain(..model.len() - kept);
                    }
                    Step::Told => {
                        if let Some(told) = losses.tell(model.len() as u64) {
                            let mut exact = BTreeMap::new();
                            for room in &model {
                                *exact.entry(Some(RoomNumber(*room))).or_insert(0_u64) += 1;
                            }
                            let told: BTreeMap<_, _> =
                                told.iter().map(|lost| (lost.room, lost.messages)).collect();
                            for (room, messages) in &exact {
                                prop_assert!(told.get(room) >= Some(messages), "{:?}", room);
                            }
                            prop_assert!(!is_exact || told == exact);
                        } else {
                            prop_assert!(!of_few_rooms);
                        }
                    }
                }
                is_exact &= runs(&model) <= RUNS_MAX;
                let capacity = losses.runs.capacity();
                prop_assert!(losses.runs.len() <= RUNS_MAX && capacity <= 2 * RUNS_MAX);
            }
        }
    }
}
