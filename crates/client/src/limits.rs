//! Limits of a connection, which hold for every edge.

use std::time::Duration;

use crate::session::Session;

/// The size of a read.
pub(crate) const INPUT_BYTES: usize = 64 << 10;

/// The most bytes that may wait to be sent before commands should wait.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The most bytes that may wait to be sent before no more is read: a node that does not read must
/// not fill this client's memory with answers.
pub(crate) const ANSWERS_BYTES_MAX: usize = 4 * OUTPUT_BYTES_MAX;

/// The time limit for the end of a connection: for the rest of the output, the node's goodbye, and
/// the end of the transport.
pub(crate) const FAREWELL: Duration = Duration::from_secs(5);

impl Session {
    /// Returns whether commands can be given: the connection is there, and not too much is
    /// unconfirmed, or unsent with these bytes.
    pub(crate) fn takes_commands(&self, unsent: usize) -> bool {
        self.is_welcomed() && !self.is_full() && unsent + self.output_bytes() < OUTPUT_BYTES_MAX
    }

    /// Returns whether more may be read, while so many bytes wait for the socket.
    pub(crate) fn reads(&self, unsent: usize) -> bool {
        self.wants_input() && unsent + self.output_bytes() < ANSWERS_BYTES_MAX
    }
}
