//! The messages of clients on their own, spread evenly over time.

use std::time::{Duration, Instant};

use playfield_state::{Bytes, Data};
use playfield_wire::client::{self, ClientMessage, write_send};

use super::clients::Client;
use super::room::Steer;
use crate::harness::dialogue::{Dialogue, FORMAT};
use crate::harness::fleet::Links;

/// The interval of a client's pings: well within the 5 s for which a room bears silence.
const PING_EVERY: Duration = Duration::from_secs(1);

/// The longest wait between two looks at what is due.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// A series of messages, of one client after the other.
pub(in crate::suites) struct Pacer {
    kind: Kind,
    begin: Instant,
    /// The time between two messages.
    gap: Duration,
    /// The number of messages that were due.
    due: u64,
    /// The number of messages that were sent.
    pub(in crate::suites) sent: u64,
    /// The number of messages that were not sent, as the client's socket took no more.
    pub(in crate::suites) withheld: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pings,
    /// Inputs with so many bytes more.
    Inputs(usize),
}

impl Pacer {
    /// A ping of each client, once a second, unless its last one is not answered yet.
    pub(in crate::suites) fn pings(clients: usize) -> Self {
        Self::new(Kind::Pings, PING_EVERY / clients.max(1) as u32)
    }

    /// So many inputs a second of all clients together, each with so many bytes more.
    pub(in crate::suites) fn inputs(per_second: f64, bytes: usize) -> Self {
        Self::new(Kind::Inputs(bytes), Duration::from_secs_f64(1.0 / per_second))
    }

    fn new(kind: Kind, gap: Duration) -> Self {
        Self { kind, begin: Instant::now(), gap, due: 0, sent: 0, withheld: 0 }
    }

    pub(super) fn has_inputs(&self) -> bool {
        self.kind != Kind::Pings
    }

    /// Sends what is due of those who are in a room. Returns how long it may be before more is.
    pub(super) fn send(
        &mut self,
        clients: &mut [Client],
        dialogue: Dialogue,
        links: &mut Links,
    ) -> Duration {
        let elapsed = links.now.saturating_duration_since(self.begin).as_nanos();
        while elapsed >= u128::from(self.due) * self.gap.as_nanos() {
            let client = (self.due % clients.len().max(1) as u64) as usize;
            self.due += 1;
            let Some(of) = clients.get_mut(client).filter(|of| of.is_in_room) else { continue };
            let message = match self.kind {
                Kind::Pings if of.pinged.is_some() => continue,
                Kind::Pings => {
                    of.pinged = Some(links.now);
                    dialogue.framed(&ClientMessage::Ping(client::Ping { nonce: self.due }))
                }
                Kind::Inputs(_) if links.is_blocked(client) => {
                    self.withheld += 1;
                    continue;
                }
                Kind::Inputs(bytes) => self.input(of, bytes, dialogue),
            };
            self.sent += 1;
            // A lost connection is noticed where it is read.
            let _ = links.send(client, &message);
        }
        self.gap.max(WAIT_MIN)
    }

    fn input(&self, of: &Client, bytes: usize, dialogue: Dialogue) -> Vec<u8> {
        let (mut payload, mut body, mut out) = (Vec::new(), Vec::new(), Vec::new());
        let steer = Steer { x: (self.sent % 7) as f32, y: 0.5, more: Bytes(vec![7; bytes]) };
        steer.encode(&mut payload);
        write_send(FORMAT, &mut body, of.number, 0, "Steer", &payload);
        dialogue.message(&mut out, &body);
        out
    }
}
