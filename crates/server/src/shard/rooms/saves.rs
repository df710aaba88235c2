//! Saves under way. A store that does not complete one is noticed: the room is not saved again until
//! then.

use std::collections::VecDeque;
use std::time::Duration;

use crate::shard::env::Env;
use crate::shard::keys::RoomKey;
use crate::shard::log_limit::LogLimit;
use crate::shard::rooms::host::RoomHost;

/// The time that a store has to complete a save, before that is reported.
pub(crate) const SAVE_MAX: Duration = Duration::from_secs(10);

/// Saves that were begun within this time, complete or not, in their order.
#[derive(Default)]
pub(crate) struct Saves {
    begun: VecDeque<Begun>,
    logged: LogLimit<u16>,
}

struct Begun {
    at: Duration,
    room: RoomKey,
    save: u64,
}

impl Saves {
    /// A room begins to be saved.
    pub(super) fn begins(&mut self, at: Duration, room: RoomKey, save: u64) {
        self.begun.push_back(Begun { at, room, save });
    }

    /// The time at which the next save is late, if it is not complete by then.
    pub(in crate::shard) fn deadline(&self) -> Option<Duration> {
        self.begun.front().map(|begun| begun.at + SAVE_MAX)
    }
}

impl RoomHost {
    /// Counts the saves that the store has had for too long, and logs some of them.
    pub(in crate::shard) fn report_late_saves(&mut self, env: &mut Env) {
        while self.queues.saves.deadline().is_some_and(|at| at <= env.now)
            && let Some(Begun { room, save, .. }) = self.queues.saves.begun.pop_front()
        {
            let Some(hosted) = self.rooms.get(room) else { continue };
            // A room has one save under way, and numbers them upward.
            if hosted.saved.is_some_and(|saved| saved >= save) {
                continue;
            }
            env.counters.saves_late += 1;
            if self.queues.saves.logged.is_due(hosted.room_type, env.now) {
                let name = &env.node.room_types[usize::from(hosted.room_type)].name;
                log::error!(
                    "the store has not completed the save of room {} of the type {name:?} within \
                     {SAVE_MAX:?}; until it does, the room is not saved again ({} saves are late so \
                     far: saves_late)",
                    hosted.id,
                    env.counters.saves_late
                );
            }
        }
    }
}
