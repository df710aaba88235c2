//! The clock of a host.

use std::time::Duration;

/// A clock that goes at a rate of its own, or stands still.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// The true time at which the rate began, in microseconds.
    began: u64,
    /// The time that the clock showed then.
    shown: u64,
    /// In parts of 1,024; 0 while it stands still.
    rate: u64,
    /// The rate when it does not stand still.
    usual: u64,
}

impl Clock {
    pub(super) fn new(rate: u64, shown: u64) -> Self {
        Self { began: 0, shown, rate, usual: rate }
    }

    pub(super) fn usual(&self) -> u64 {
        self.usual
    }

    pub(super) fn is_still(&self) -> bool {
        self.rate == 0
    }

    pub(super) fn show(&self, now: u64) -> Duration {
        Duration::from_micros(self.shown + (((now - self.began) * self.rate) >> 10))
    }

    /// The true time at which the clock shows a time, if it goes on as it does.
    pub(super) fn when(&self, shown: Duration) -> Option<u64> {
        let ahead = (shown.as_micros() as u64).saturating_sub(self.shown);
        (self.rate > 0).then(|| self.began + (ahead << 10) / self.rate + 1)
    }

    pub(super) fn stop(&mut self, now: u64) {
        self.change(now, 0);
    }

    pub(super) fn go_on(&mut self, now: u64) {
        self.change(now, self.usual);
    }

    pub(super) fn set_rate(&mut self, now: u64, rate: u64) {
        self.usual = rate;
        if self.rate > 0 {
            self.change(now, rate);
        }
    }

    fn change(&mut self, now: u64, rate: u64) {
        self.shown = self.show(now).as_micros() as u64;
        (self.began, self.rate) = (now, rate);
    }
}
