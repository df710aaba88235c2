//! The clock of leases: it counts the time for which the machine was suspended.

use std::time::Duration;

/// The time since the machine started.
#[cfg(target_os = "linux")]
pub(super) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// The time since the first call, which may stand still while the machine is suspended.
#[cfg(not(target_os = "linux"))]
pub(super) fn now() -> Duration {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    FIRST.get_or_init(std::time::Instant::now).elapsed()
}
