//! Wakes the event loop at an exact time.
//!
//! A poll waits for whole milliseconds, and rounds up. Messages would be sent up to a millisecond
//! after they were due, which counts as their latency. Linux has a timer that is a descriptor.

use std::io;

use mio::{Registry, Token};

/// The token of the alarm's event.
pub(crate) const ALARM: Token = Token(usize::MAX);

#[cfg(target_os = "linux")]
pub(crate) struct Alarm {
    timer: std::os::fd::OwnedFd,
    /// The time that it is set to; 0 if it is not.
    set_to: u64,
}

#[cfg(target_os = "linux")]
impl Alarm {
    pub(crate) fn new(registry: &Registry) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        use mio::Interest;
        use mio::unix::SourceFd;
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), ALARM, Interest::READABLE)?;
        Ok(Self { timer, set_to: 0 })
    }

    /// Wakes the poll at this time. `now` is the present time; both are in nanoseconds.
    pub(crate) fn set(&mut self, at: u64, now: u64) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if at == self.set_to && at > now {
            return Ok(());
        }
        self.set_to = at;
        // Zero would switch it off.
        let wait = at.saturating_sub(now).max(1);
        let value = Timespec {
            tv_sec: i64::try_from(wait / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (wait % 1_000_000_000) as _,
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // Setting it also clears its event.
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

/// Elsewhere the poll's own time must do.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Alarm;

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as on Linux")]
impl Alarm {
    pub(crate) fn new(_: &Registry) -> io::Result<Self> {
        Ok(Self)
    }

    pub(crate) fn set(&mut self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
