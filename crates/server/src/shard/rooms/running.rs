//! Rooms are run when they are due: on time as long as there is time for all, and else by
//! [founder](crate::shard::rooms::overdue).

use std::time::Duration;

use crate::shard::env::nanoseconds;
use crate::shard::keys::RoomKey;
use crate::shard::rooms::Hosted;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::schedule::before;
use crate::shard::rooms::sync::Cause;
use crate::shard::rooms::thread_time::ThreadTime;

/// The time for which rooms are run in one turn, before what they sent is written. Those that are
/// due and were not run come in the next.
const ROOMS_PER_TURN: Duration = Duration::from_millis(10);

/// The number of syncs in a row that change nothing before a room rests.
const PASSED_BEFORE_REST: u64 = 4;

impl RoomHost {
    /// Runs rooms that are due, for as long as there is time in a turn.
    pub(in crate::shard) fn run_due_rooms(&mut self, below: &mut Below<'_>) {
        self.line_up_overdue(below.env.now);
        let began = below.env.stopwatch.read();
        let mut read = began;
        while read.saturating_sub(began) < ROOMS_PER_TURN
            && let Some((deadline, key)) = self.next_due(below.env.now)
        {
            self.run_room(below, deadline, key);
            let since = std::mem::replace(&mut read, below.env.stopwatch.read());
            self.overdue.took(read.saturating_sub(since));
        }
        self.schedule.end(below.env.now);
        let worked = below.env.stopwatch.read().saturating_sub(began);
        below.env.counters.rooms_ns += nanoseconds(worked);
        let time = ThreadTime::new(below.env.now, &below.env.counters);
        let (shard, directory) = (below.env.shard, &below.env.node.directory);
        if let Some(late) = self.shard_lateness.changed(time) {
            directory.set_lateness(shard, late);
        }
        if let Some(share) = self.busy.measured(time) {
            directory.set_busy(shard, share, self.busy.costs());
        }
    }

    /// Runs a room that was due then: ticks, then what it has timers for, then its sync.
    fn run_room(&mut self, below: &mut Below<'_>, deadline: Duration, key: RoomKey) {
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        let rested = hosted.rests;
        if rested {
            below.env.counters.syncs += hosted.count_passed(before(deadline));
        }
        let late = below.env.now - deadline;
        hosted.late.note(below.env.now, late.into());
        self.shard_lateness.note(late);
        below.env.counters.lateness_us_max =
            below.env.counters.lateness_us_max.max(late.as_micros() as u64);

        let count_max = below.env.node.config.tuning.catch_up_ticks;
        let (ticks, skipped) = hosted.take_ticks(below.env.now, count_max);
        let syncs_due = hosted.syncs.as_mut().map_or(0, |beat| {
            let first = beat.number();
            beat.take(below.env.now, 1).end - first
        });
        let every = below.env.node.config.rooms.check_every_syncs;
        let is_idle = ticks.is_empty() && hosted.is_idle(below.env.now);
        // Then it is enough to count the sync.
        if syncs_due == 1 && is_idle && !hosted.checks_next(every) {
            hosted.regular_syncs += 1;
            hosted.syncs_passed += 1;
            below.env.counters.syncs += 1;
            // One that is called more often stays, so that it need not be found here again.
            hosted.rests = hosted.syncs_passed >= PASSED_BEFORE_REST && !self.schedule.is_restless;
            let due = hosted.next_due(every);
            hosted.due = due;
            self.schedule.change(key, None, due);
            return;
        }
        if syncs_due > 1 {
            self.missed_syncs(below, key, syncs_due - 1, late);
        }
        let began = below.env.stopwatch.read();
        let count = ticks.end - ticks.start;
        below.env.counters.ticks += count;
        below.env.counters.ticks_skipped += skipped;
        for number in ticks {
            self.call(below, key, |room, at, out| {
                if !room.is_closed() {
                    room.tick(at, number, out);
                }
            });
        }
        self.call(below, key, |room, at, out| {
            if !room.is_closed() && room.wake_at().is_some_and(|due| due <= at) {
                room.wake(at, out);
            }
        });
        if let Some(hosted) = self.rooms.get_mut(key) {
            let took = below.env.stopwatch.read().saturating_sub(began);
            hosted.ticking += took;
            hosted.catch_up.took(count, took);
            self.busy.ran(hosted.room_type, took);
            below.env.counters.ticks_ns += nanoseconds(took);
        }
        if syncs_due > 0 {
            self.sync_room(below, key, Cause::Clock { due: syncs_due });
            if !is_idle && let Some(hosted) = self.rooms.get_mut(key) {
                hosted.longest.note(below.env.now, Some(hosted.cost));
            }
        }
        if rested && let Some(hosted) = self.rooms.get_mut(key) {
            // If nothing has changed, there were only copies to be checked.
            hosted.rests = hosted.is_at_rest();
        }
    }

    /// A room was due so late that syncs were missed: counts them and, now and then, says so.
    #[cold]
    fn missed_syncs(&mut self, below: &mut Below<'_>, key: RoomKey, syncs: u64, late: Duration) {
        below.env.counters.syncs_missed += syncs;
        let Some(hosted) = self.rooms.get_mut(key) else { return };
        hosted.syncs_missed += syncs;
        let players = hosted.members.len();
        if let Some(missed) = self.lateness.missed(hosted.room_type, syncs, players, below.env.now)
        {
            let name = &below.env.node.room_types[usize::from(hosted.room_type)].name;
            let Hosted { id, cost, members, .. } = hosted;
            log::warn!(
                "rooms of the type {name:?} have missed {missed} syncs; room {id} with {} players \
                 was {late:.1?} late for one: its {cost}, and writing to all sockets of the shard \
                 {:.1?}",
                members.len(),
                self.writing,
            );
        }
    }
}
