//! Rooms, as their shard keeps them.

mod acts;
mod admission;
pub(crate) mod busy;
pub(crate) mod capture;
pub(crate) mod catch_up;
pub(in crate::shard) mod delivery;
mod founding;
mod held_events;
pub(crate) mod host;
mod joining;
pub(crate) mod lateness;
pub(crate) mod link;
pub(crate) mod member;
mod operating;
pub(crate) mod overdue;
mod pausing;
mod queue;
pub(crate) mod record;
mod remote_link;
mod running;
pub(crate) mod saves;
pub(crate) mod schedule;
mod seeking;
mod snapshots;
pub(crate) mod sync;
pub(crate) mod thread_time;
pub(crate) mod traffic;
mod turn;

use std::ops::Range;
use std::time::Duration;

use capture::Capture;
use catch_up::CatchUp;
use lateness::{Cost, Late, LongestSync};
use member::{Member, Members, Standing};
use playfield_room::{AnyRoom, RoomSummary, Stage};
use playfield_session::SyncHistory;
use record::Record;
use schedule::{Beat, Schedule};
use sync::has_passed;
use traffic::Sample;

use crate::founding::Founding;
use crate::room_id::RoomId;
use crate::shard::keys::{OfRoom, RoomKey};
use crate::shard::slab::Slab;
use crate::shard::work::Founder;

pub(crate) type Rooms = Slab<OfRoom, Hosted>;

/// A room, and what its host keeps beside it.
pub(crate) struct Hosted {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) room: Box<dyn AnyRoom>,
    pub(crate) members: Members,
    /// When it was made. The room's own time counts from here.
    pub(crate) created: Duration,
    pub(crate) epoch: u64,
    /// Its syncs, for clients that come back with a copy of an earlier version.
    pub(crate) history: SyncHistory,
    pub(in crate::shard) ticks: Option<Beat>,
    pub(in crate::shard) syncs: Option<Beat>,
    catch_up: CatchUp,
    /// The number of syncs that the clock has called for, including those that were missed.
    pub(crate) regular_syncs: u64,
    /// A sync changes nothing for those who have the room's version, until the room is called.
    pub(super) is_quiet: bool,
    /// The number of regular syncs since then that were only counted.
    pub(super) syncs_passed: u64,
    /// The schedule has it for the next thing to do, and not for each sync until then. These are
    /// counted when it is [roused](Self::rouse).
    pub(super) rests: bool,
    /// When it next has to be called, by its own time.
    pub(super) wake_at: Option<Duration>,
    /// The time that its last regular sync took.
    pub(crate) cost: Cost,
    /// The longest lately. Checks of copies of a room at rest are not among them.
    pub(super) longest: LongestSync,
    /// The time that its ticks took since its last regular sync.
    pub(crate) ticking: Duration,
    /// When the schedule has it.
    pub(super) due: Option<Duration>,
    /// Whether it waits by founder instead.
    pub(super) is_overdue: bool,
    pub(crate) founder: Founder,
    /// The summary that the directory has.
    pub(super) published: RoomSummary,
    /// Whether it is in the list of rooms to follow up.
    pub(super) touched: bool,
    /// Whether it was created for a player who has not joined yet, so that it ends if they don't.
    pub(crate) founding: bool,
    /// Requests to be answered when it opens, or does not.
    pub(super) awaited_by: Vec<Founding>,
    /// The number of waiting players who have joined: the seats that were reserved for them are
    /// taken.
    pub(crate) admitted: u32,
    /// Whether someone joined, and there is no regular sync to make that known.
    pub(crate) sync_awaited: bool,
    /// The turn of the last sync that it asked for.
    pub(super) synced_on_demand: u64,
    /// Its messages, while an operator looks.
    pub(super) record: Option<Box<Record>>,
    /// The number of the last save that is complete.
    pub(in crate::shard) saved: Option<u64>,
    /// It stands still until its key is claimed again.
    pub(super) is_frozen: bool,
    /// Its recent lateness, and the number of syncs that it has missed since it began.
    pub(super) late: Late,
    pub(super) syncs_missed: u64,
    /// Its snapshots and patches, while an operator has them captured.
    pub(super) capture: Option<Box<Capture>>,
    /// Its bytes, when an operator last looked.
    pub(super) sample: Option<Box<Sample>>,
}

/// A room, and the facts with which it begins, or goes on.
pub(in crate::shard) struct Made {
    pub(in crate::shard) id: RoomId,
    pub(in crate::shard) room_type: u16,
    pub(in crate::shard) room: Box<dyn AnyRoom>,
    pub(in crate::shard) created: Duration,
    pub(in crate::shard) epoch: u64,
    pub(in crate::shard) ticks: Option<Beat>,
    pub(in crate::shard) syncs: Option<Beat>,
    pub(in crate::shard) founder: Founder,
}

impl Hosted {
    /// A room without members.
    pub(in crate::shard) fn new(made: Made) -> Self {
        let Made { id, room_type, room, created, epoch, ticks, syncs, founder } = made;
        Self {
            id,
            room_type,
            members: Slab::new(),
            created,
            epoch,
            history: SyncHistory::default(),
            ticks,
            syncs,
            catch_up: CatchUp::default(),
            regular_syncs: 0,
            is_quiet: false,
            syncs_passed: 0,
            rests: false,
            wake_at: None,
            cost: Cost::default(),
            longest: LongestSync::default(),
            ticking: Duration::ZERO,
            due: None,
            is_overdue: false,
            founder,
            published: room.summary().clone(),
            touched: false,
            founding: false,
            awaited_by: Vec::new(),
            admitted: 0,
            sync_awaited: false,
            synced_on_demand: 0,
            record: None,
            saved: None,
            is_frozen: false,
            late: Late::default(),
            syncs_missed: 0,
            capture: None,
            sample: None,
            room,
        }
    }

    /// Returns whether the player it was created for did not join, and nobody else did.
    fn is_unfounded(&self) -> bool {
        self.founding && self.members.len() == 0
    }

    /// Writes a journaled room whole. Returns `false` if that fails now, so that only older files
    /// have it.
    pub(super) fn write_whole(&mut self, now: Duration) -> bool {
        let at = now.saturating_sub(self.created);
        self.make_up_for_syncs();
        let is_in_older_files = match self.room.stage() {
            Stage::Open => self.room.opened() == Some(Ok(())),
            // The room waits for its save, or for background work.
            Stage::Closing | Stage::Finishing => true,
            Stage::Ended => false,
        };
        let recorder = self.room.journaled();
        recorder.is_none_or(|recorder| recorder.write_whole(at)) || !is_in_older_files
    }

    /// The numbers of the ticks to run now, `count_max` at most, and how many are skipped.
    pub(super) fn take_ticks(&mut self, now: Duration, count_max: u64) -> (Range<u64>, u64) {
        let Some(ticks) = &mut self.ticks else { return (0..0, 0) };
        let first = ticks.number();
        let taken = self.catch_up.take(ticks, self.syncs.as_ref(), &self.cost, now, count_max);
        let skipped = taken.start - first;
        (taken, skipped)
    }

    /// When there is something to do for it. `every` is how many syncs apart copies are checked.
    pub(super) fn next_due(&self, every: u64) -> Option<Duration> {
        let sync = self.syncs.as_ref().and_then(|beat| {
            if !self.rests {
                return Some(beat.deadline());
            }
            let left = self.regular_syncs.checked_rem(every).map(|checked| every - 1 - checked);
            left.map(|left| beat.deadline_after(left))
        });
        let tick = self.ticks.as_ref().map(Beat::deadline);
        let wake = self.wake_at.map(|at| self.created.saturating_add(at));
        [tick, sync, wake].into_iter().flatten().min()
    }

    /// Returns whether syncs change nothing for anyone, until it is called.
    fn is_at_rest(&mut self) -> bool {
        let version = self.room.version();
        let has_all = |member: &Member| {
            matches!(member.standing, Standing::Live)
                && member.clean == version
                && !member.lagging
                && !member.wants_snapshot
        };
        self.is_quiet && self.members.iter_mut().all(|(_, member)| has_all(member))
    }

    /// Returns whether a sync changes nothing for anyone, and no timer is due.
    pub(super) fn is_idle(&mut self, now: Duration) -> bool {
        let sleeps = self.wake_at.is_none_or(|at| self.created.saturating_add(at) > now);
        sleeps && self.is_at_rest()
    }

    /// Returns whether copies are checked at the next sync. `every` is how many syncs apart that
    /// is.
    pub(super) fn checks_next(&self, every: u64) -> bool {
        has_passed(every, self.regular_syncs, self.regular_syncs + 1)
    }

    /// Counts the syncs that passed while it rested, and returns how many. The next one is due
    /// again.
    #[cold]
    pub(super) fn rouse(&mut self, key: RoomKey, schedule: &mut Schedule) -> u64 {
        let passed = schedule.passed(self.due);
        let syncs = self.count_passed(passed);
        // Without a rest nothing depends on how often copies are checked.
        let due = self.next_due(0);
        self.set_due(key, schedule, due);
        syncs
    }

    /// The same for a room that the schedule does not have, with all syncs that passed by then.
    pub(super) fn count_passed(&mut self, passed: Duration) -> u64 {
        self.rests = false;
        let Some(beat) = &mut self.syncs else { return 0 };
        let first = beat.number();
        let syncs = beat.take(passed, 1).end - first;
        self.regular_syncs += syncs;
        self.syncs_passed += syncs;
        syncs
    }

    /// Does what the syncs that were only counted would have done.
    #[inline]
    pub(super) fn make_up_for_syncs(&mut self) {
        if self.syncs_passed > 0 {
            self.pass_syncs();
        }
    }

    #[cold]
    fn pass_syncs(&mut self) {
        let syncs = std::mem::take(&mut self.syncs_passed);
        let before = self.room.version();
        self.room.pass_syncs(syncs);
        let clock = 1 + self.regular_syncs;
        self.history.synced_in_a_row(clock + 1 - syncs, before + 1, syncs);
        if let Some(capture) = &mut self.capture {
            capture.passed(before, before + syncs);
        }
        for (_, member) in self.members.iter_mut().filter(|(_, member)| member.clean == before) {
            member.clean = before + syncs;
        }
    }
}
