//! What clients send on their own, spread evenly over time: inputs, or pings if there are none.

use std::time::{Duration, Instant};

use playfield_state::{Data, Format};
use playfield_wire::RoomNumber;
use playfield_wire::client::{self, ClientMessage, write_send};

use super::client::put;
use super::socket::put_message;
use crate::rooms::Transport;
use crate::rooms::case::Case;
use crate::rooms::table::Steer;

/// How often a client without inputs sends a ping: well within any server's idle timeout.
const PING_EVERY: Duration = Duration::from_secs(5);

/// Sends on a schedule, one client after another.
pub(super) struct Pacer {
    begin: Instant,
    /// The time between two clients.
    gap: Duration,
    sent: u64,
    inputs: bool,
    silent: bool,
}

impl Pacer {
    /// Starts now, for all clients of a case.
    pub(super) fn new(case: &Case) -> Self {
        let clients = case.clients().max(1) as u32;
        let inputs = case.inputs_hz > 0;
        let period = if inputs { Duration::from_secs(1) / case.inputs_hz } else { PING_EVERY };
        Self { begin: Instant::now(), gap: period / clients, sent: 0, inputs, silent: false }
    }

    /// Sends nothing.
    pub(super) fn silent() -> Self {
        Self { begin: Instant::now(), gap: Duration::ZERO, sent: 0, inputs: false, silent: true }
    }

    /// The next client that is due.
    pub(super) fn due(&mut self, now: Instant, clients: usize) -> Option<usize> {
        let elapsed = now.duration_since(self.begin).as_nanos();
        if self.silent || elapsed < u128::from(self.sent) * self.gap.as_nanos() {
            return None;
        }
        self.sent += 1;
        Some(((self.sent - 1) % clients as u64) as usize)
    }

    /// How long the loop may wait for input.
    pub(super) fn pause(&self) -> Duration {
        if self.silent { Duration::from_millis(50) } else { self.gap.max(Duration::from_millis(1)) }
    }

    /// How many inputs were sent.
    pub(super) fn inputs(&self) -> u64 {
        if self.inputs { self.sent } else { 0 }
    }

    /// Appends the message of a client whose room has this number in its session.
    pub(super) fn put(&self, transport: Transport, room: RoomNumber, out: &mut Vec<u8>) {
        if !self.inputs {
            return put(transport, out, &ClientMessage::Ping(client::Ping { nonce: self.sent }));
        }
        let mut payload = Vec::new();
        Steer { x: (self.sent % 7) as f32, y: 0.5 }.encode(&mut payload);
        let mut message = Vec::new();
        write_send(Format::Packed, &mut message, room, 0, "Steer", &payload);
        put_message(transport, out, &message);
    }
}
