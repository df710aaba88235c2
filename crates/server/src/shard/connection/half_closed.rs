//! HTTP clients that have ended their input while requests are not answered yet.
//!
//! A FIN says only that nothing more comes. A client that has shut down its sending half sends one,
//! and still reads the answers; so does one that has closed its socket, or whose process has ended.
//! The two differ only in what the client's system does with more data: for a socket that is closed
//! it answers with a reset. So a client that has to wait longer is sent an interim response, which
//! every client of HTTP/1.1 must accept and may ignore (RFC 9110, 15.2). One of HTTP/1.0 can't be
//! asked; its handlers run until they answer or are late.

use std::time::Duration;

/// How long after its FIN a client is first probed. Then each wait is as long as all before it.
pub(crate) const PROBE_AFTER: Duration = Duration::from_millis(500);

/// A client that has sent its FIN.
#[derive(Clone, Copy, Debug)]
pub(in crate::shard) struct HalfClosed {
    pub(in crate::shard) since: Duration,
    pub(in crate::shard) probe_at: Duration,
    /// All that came before the FIN is read.
    pub(in crate::shard) is_read: bool,
}

impl HalfClosed {
    /// Whether it is time to ask; then the next time is set.
    pub(in crate::shard) fn is_due(&mut self, now: Duration) -> bool {
        let is_due = now >= self.probe_at;
        if is_due {
            self.probe_at = now + (now - self.since).max(PROBE_AFTER);
        }
        is_due
    }
}
