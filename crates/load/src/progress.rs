//! The progress of a load.

use std::fmt::Write as _;
use std::time::Duration;

use crate::counts::Counts;

/// The progress of a load.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// The number of connections to open.
    pub connections: usize,
    /// Counts so far.
    pub counts: Counts,
    /// The time to half of the replies since the last report, in milliseconds; of several
    /// processes, the longest.
    pub reply_ms_p50: f64,
    /// The time to 99 % of them.
    pub reply_ms_p99: f64,
}

impl Progress {
    /// One line. `before` is the report before this one, to show rates.
    #[must_use]
    pub fn line(&self, before: &Self) -> String {
        let seconds = (self.elapsed.saturating_sub(before.elapsed)).as_secs_f64();
        let rate = |now: u64, before: u64| {
            if seconds > 0.0 { (now.saturating_sub(before)) as f64 / seconds } else { 0.0 }
        };
        let (now, then) = (&self.counts, &before.counts);
        let mut line = format!(
            "{:6.1} s  {} of {} connected",
            self.elapsed.as_secs_f64(),
            now.open,
            self.connections
        );
        if now.joined > 0 {
            let _ = write!(line, ", {} in rooms", now.in_rooms);
        }
        if now.sent > 0 {
            let _ = write!(line, ", {} sent ({:.0}/s)", now.sent, rate(now.sent, then.sent));
            let _ = write!(line, ", {} replies", now.replies);
        }
        if now.patches > 0 {
            let _ = write!(line, ", {:.0} patches/s", rate(now.patches, then.patches));
        }
        if now.deliveries > 0 {
            let _ = write!(line, ", {:.0} deliveries/s", rate(now.deliveries, then.deliveries));
        }
        if self.reply_ms_p99 > 0.0 {
            let _ =
                write!(line, ", p50 {:.2} ms, p99 {:.2} ms", self.reply_ms_p50, self.reply_ms_p99);
        }
        for (count, what) in [
            (now.refused + now.sends_refused, "refused"),
            (now.joins_refused, "joins refused"),
            (now.failed, "failed"),
            (now.lost, "lost"),
            (now.deliveries_lost, "deliveries lost"),
            (now.wrong, "wrong"),
        ] {
            if count > 0 {
                let _ = write!(line, ", {count} {what}");
            }
        }
        line
    }
}
