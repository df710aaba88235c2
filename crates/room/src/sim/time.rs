//! Simulated time: timers, ticks and syncs.

use std::time::Duration;

use super::Sim;
use super::audit::By;
use crate::{AnyRoom, Room};

impl<R: Room + Default> Sim<R> {
    /// Returns the time since the room was created.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Lets time pass. Timers, ticks and syncs happen when they are due, at the room's rates.
    ///
    /// # Panics
    /// As [`sync`](Self::sync).
    pub fn advance(&mut self, by: Duration) {
        self.log_input(By::Time, |_| format!("{by:?} pass"));
        let until = self.now + by;
        loop {
            let due_at = |hz: u32, number: u64| {
                (hz > 0).then(|| Duration::from_nanos(number * 1_000_000_000 / u64::from(hz)))
            };
            let wake = self.core.wake_at();
            let tick = due_at(self.core.tick_hz(), self.next_tick);
            let sync = due_at(self.core.sync_hz(), self.next_sync);
            let away = self.players.values().filter_map(|copies| copies.away_until).min();
            let due = [wake, tick, sync, away].into_iter().flatten().min();
            let Some(next) = due.filter(|next| *next <= until) else {
                break;
            };
            if self.core.is_closed() {
                break;
            }
            self.now = self.now.max(next);
            self.log_step(if tick == Some(next) { self.next_tick } else { self.next_tick - 1 });
            self.expire_away();
            if wake == Some(next) {
                self.core.wake(self.now, &mut self.out);
            }
            if tick == Some(next) {
                self.core.tick(self.now, self.next_tick, &mut self.out);
                self.next_tick += 1;
            }
            if sync == Some(next) {
                self.next_sync += 1;
                self.sync_now();
            }
            self.follow_up();
        }
        self.now = until;
    }

    /// Syncs now: each player that is not stalled gets a patch, and their copies are verified.
    ///
    /// # Panics
    /// If a copy differs from what the player may see.
    pub fn sync(&mut self) {
        self.log_input(By::Time, |_| "a sync".to_owned());
        self.sync_now();
    }

    pub(super) fn sync_now(&mut self) {
        self.core.sync(self.now, &mut self.out);
        self.follow_sync();
    }

    /// Does what a host does after a sync.
    pub(super) fn follow_sync(&mut self) {
        self.take_removed();
        for (&player, copies) in &mut self.players {
            if !copies.is_stalled {
                let log = self.out.log.as_deref_mut();
                copies.follow(player, &mut self.core, self.verify, log);
            }
        }
        if self.core.has_failed() {
            self.core.wake(self.now, &mut self.out);
            self.take_removed();
        }
    }

    /// Sets whether copies are verified after each sync, as they are by default. Without this,
    /// each player has only the typed [`copy`](Self::copy), and a long simulation with many players
    /// takes a fraction of the time.
    pub fn verify(&mut self, verify: bool) {
        self.verify = verify;
    }
}
