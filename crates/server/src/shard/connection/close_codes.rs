//! Codes of Close frames.

use playfield_wire::framing::FrameError;

use crate::service::Closed;

/// WebSocket close codes (RFC 6455, 7.4.1).
pub(in crate::shard) const NORMAL: u16 = 1000;
pub(in crate::shard) const GOING_AWAY: u16 = 1001;
pub(in crate::shard) const PROTOCOL_ERROR: u16 = 1002;
pub(in crate::shard) const UNSUPPORTED_DATA: u16 = 1003;
pub(in crate::shard) const POLICY: u16 = 1008;
pub(in crate::shard) const TOO_BIG: u16 = 1009;
pub(in crate::shard) const INTERNAL: u16 = 1011;

/// The code of a Close frame that has none (RFC 6455, 7.1.5); the answer has none either.
pub(in crate::shard) const NO_CLOSE_CODE: u16 = 1005;

/// The close code for a WebSocket client of a service, and the reason if it concerns the client.
pub(in crate::shard) fn close_of(why: &Closed) -> (u16, String) {
    let code = match why {
        Closed::HungUp | Closed::ByService => return (NORMAL, String::new()),
        Closed::Failed(_) => return (POLICY, String::new()),
        Closed::Panicked => return (INTERNAL, String::new()),
        Closed::WebSocket(error) => error.close_code(),
        Closed::Frame(FrameError::TooLarge { .. } | FrameError::Endless { .. }) => TOO_BIG,
        Closed::Frame(_) => PROTOCOL_ERROR,
        Closed::ShuttingDown => GOING_AWAY,
        Closed::TooSlow
        | Closed::Silent
        | Closed::Unfinished
        | Closed::TakenOver
        | Closed::Disconnected => POLICY,
    };
    (code, why.to_string())
}
