//! A save that the host opens again, in doubt whether the room still owns it.

use std::time::Duration;

use super::{InFlight, Print, RETRY, Saving};
use crate::core::RoomCore;
use crate::{Opened, Room, StoreError};

impl<R: Room> RoomCore<R> {
    /// Takes over the save that the host has opened again. Returns whether it is the room's own.
    pub(in crate::core) fn take_over_save(&mut self, opened: Opened) -> bool {
        let is_live = self.live.is_some();
        let saving = self.saving.as_mut();
        saving.is_some_and(|saving| saving.takes_over(opened, self.context.now) && is_live)
    }
}

impl Saving {
    /// Takes an opened save over. The room stood still since it wrote its last one. Returns whether
    /// it is one that the store may have of this room.
    fn takes_over(&mut self, opened: Opened, now: Duration) -> bool {
        let Opened { fence, save } = opened;
        self.owned = self.owned.closed();
        // Nobody else has it.
        let _ = self.owned.fence.set(fence);
        self.reopening = None;
        let print = save.as_ref().map(|save| Print::of(&save.bytes));
        if !self.saves.has(print) {
            return false;
        }
        let is_durable = save.is_none_or(|save| save.is_durable);
        if is_durable {
            self.saves.is(print);
        }
        self.on_disk = print.filter(|_| is_durable);
        // A save in flight has reached the store before this, or is refused.
        self.put_back_in_flight();
        self.changed_since.get_or_insert(now);
        self.failed = None;
        true
    }

    /// Those who wait for the save in flight wait for the next one.
    fn put_back_in_flight(&mut self) {
        let Some(InFlight { asked, changed_since, .. }) = self.in_flight.take() else { return };
        let later = std::mem::replace(&mut self.asked, asked);
        self.asked.extend(later);
        self.changed_since = changed_since.or(self.changed_since);
    }

    /// The store has refused the save in flight, and the host is about to open it again.
    pub(super) fn is_refused(&mut self, why: &StoreError, now: Duration) {
        self.put_back_in_flight();
        // A room that does not stand still meanwhile need not be refused at once again.
        self.failed = Some((now.saturating_add(RETRY), why.to_string()));
    }
}
