//! Keep-alive: pings, round trips, and the detection of a silent node.

use std::collections::VecDeque;
use std::time::Duration;

use super::CommandError;

/// The most pings that may wait for their pongs.
const PINGS_MAX: usize = 64;

/// The current time, and when messages were last sent and received.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    now: Duration,
    /// The node expects a message this often; zero if it expects none, and before the welcome.
    heartbeat: Duration,
    sent_at: Duration,
    heard_at: Duration,
    /// When the node was pinged to see whether it is alive, since its last message.
    probed_at: Option<Duration>,
    pings: VecDeque<Ping>,
    next_nonce: u64,
}

#[derive(Clone, Copy, Debug)]
struct Ping {
    nonce: u64,
    at: Duration,
    /// The user waits for the pong.
    asked: bool,
}

/// What is due at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Ping,
    /// The node did not answer a ping in time.
    Silent {
        silence: Duration,
    },
}

impl Pulse {
    /// Sets the time. A time before the current one is ignored.
    pub(super) fn advance(&mut self, now: Duration) -> Due {
        let slept = now.saturating_sub(self.now) > self.heartbeat;
        self.now = self.now.max(now);
        if self.heartbeat.is_zero() {
            return Due::Nothing;
        }
        if slept {
            // Messages that came meanwhile may not have been read yet: ping again first.
            self.probed_at = None;
        }
        let silence = self.now - self.heard_at;
        match self.probed_at {
            Some(probed_at) if self.now >= self.silent_at(probed_at) => {
                return Due::Silent { silence };
            }
            None if silence >= self.heartbeat => return Due::Ping,
            Some(_) | None => {}
        }
        if self.now - self.sent_at >= self.heartbeat / 2 { Due::Ping } else { Due::Nothing }
    }

    /// When [`advance`](Self::advance) next has something to do.
    pub(super) fn due_at(&self) -> Option<Duration> {
        if self.heartbeat.is_zero() {
            return None;
        }
        let listen = match self.probed_at {
            Some(probed_at) => self.silent_at(probed_at),
            None => self.heard_at + self.heartbeat,
        };
        Some(listen.min(self.sent_at + self.heartbeat / 2))
    }

    /// When a pinged node counts as silent. It gets one heartbeat from the ping on, as this process
    /// may have slept.
    fn silent_at(&self, probed_at: Duration) -> Duration {
        (self.heard_at + self.heartbeat * 2).max(probed_at + self.heartbeat)
    }

    pub(super) fn welcomed(&mut self, heartbeat: Duration) {
        self.heartbeat = heartbeat;
        self.sent_at = self.now;
    }

    /// Stops all timeouts.
    pub(super) fn stop(&mut self) {
        self.heartbeat = Duration::ZERO;
    }

    #[inline]
    pub(super) fn heard(&mut self) {
        self.heard_at = self.now;
        self.probed_at = None;
    }

    #[inline]
    pub(super) fn sent(&mut self) {
        self.sent_at = self.now;
    }

    /// The nonce of a ping that the user asks for.
    pub(super) fn ping(&mut self) -> Result<u64, CommandError> {
        if self.pings.len() >= PINGS_MAX {
            return Err(CommandError::Busy { waiting: self.pings.len() });
        }
        Ok(self.push_ping(true))
    }

    /// The nonce of a keep-alive ping.
    pub(super) fn probe(&mut self) -> u64 {
        self.probed_at.get_or_insert(self.now);
        if self.pings.len() >= PINGS_MAX {
            // Its round trip is not needed.
            return self.draw_nonce();
        }
        self.push_ping(false)
    }

    /// The round trip of a ping that the user asked for. Pings are answered in order, so earlier
    /// keep-alive pings are forgotten. Earlier pings of the user are kept: they are sent again if
    /// their answer was lost.
    pub(super) fn pong(&mut self, nonce: u64) -> Option<Duration> {
        let index = self.pings.iter().position(|ping| ping.nonce == nonce)?;
        let ping = self.pings.remove(index)?;
        self.pings.retain(|other| other.asked || other.nonce > nonce);
        ping.asked.then(|| self.now - ping.at)
    }

    /// The nonces of the pings whose pongs the user waits for.
    pub(super) fn asked(&self) -> Vec<u64> {
        self.pings.iter().filter(|ping| ping.asked).map(|ping| ping.nonce).collect()
    }

    fn push_ping(&mut self, asked: bool) -> u64 {
        let nonce = self.draw_nonce();
        self.pings.push_back(Ping { nonce, at: self.now, asked });
        nonce
    }

    fn draw_nonce(&mut self) -> u64 {
        self.next_nonce += 1;
        self.next_nonce
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, Pulse};
    use std::time::Duration;

    const HEARTBEAT: Duration = Duration::from_millis(1000);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn welcomed_at(at: Duration) -> Pulse {
        let mut pulse = Pulse::default();
        pulse.advance(at);
        pulse.heard();
        pulse.welcomed(HEARTBEAT);
        pulse
    }

    #[test]
    fn an_idle_client_pings_at_half_the_heartbeat() {
        let mut pulse = welcomed_at(ms(7000));
        assert_eq!(pulse.due_at(), Some(ms(7500)));
        assert_eq!(pulse.advance(ms(7499)), Due::Nothing);
        assert_eq!(pulse.advance(ms(7500)), Due::Ping);
        pulse.probe();
        pulse.sent();
        assert_eq!(pulse.due_at(), Some(ms(8000)));
        pulse.heard();
        pulse.sent();
        assert_eq!(pulse.advance(ms(7999)), Due::Nothing);
    }

    #[test]
    fn a_busy_client_pings_a_silent_node_once_and_then_gives_up() {
        let mut pulse = welcomed_at(ms(0));
        for at in (0..1000).step_by(100) {
            assert_eq!(pulse.advance(ms(at)), Due::Nothing);
            pulse.sent();
        }
        assert_eq!(pulse.advance(ms(1000)), Due::Ping);
        pulse.probe();
        for at in (1000..2000).step_by(100) {
            assert_eq!(pulse.advance(ms(at)), Due::Nothing);
            pulse.sent();
        }
        assert_eq!(pulse.due_at(), Some(ms(2000)));
        assert_eq!(pulse.advance(ms(2000)), Due::Silent { silence: ms(2000) });
    }

    #[test]
    fn a_process_that_slept_pings_before_it_gives_up() {
        let mut pulse = welcomed_at(ms(0));
        assert_eq!(pulse.advance(ms(60_000)), Due::Ping);
        pulse.probe();
        pulse.sent();
        assert_eq!(pulse.advance(ms(60_499)), Due::Nothing);
        pulse.heard();
        assert_eq!(pulse.due_at(), Some(ms(60_500)));

        // Also if it had pinged before it slept.
        assert_eq!(pulse.advance(ms(60_500)), Due::Ping);
        pulse.probe();
        pulse.sent();
        assert_eq!(pulse.advance(ms(90_000)), Due::Ping);
        pulse.probe();
        pulse.sent();
        assert_eq!(pulse.advance(ms(90_999)), Due::Ping);
        assert!(matches!(pulse.advance(ms(91_000)), Due::Silent { .. }));
    }

    #[test]
    fn a_pong_reports_the_round_trip_of_a_user_ping() {
        let mut pulse = welcomed_at(ms(0));
        let probe = pulse.probe();
        let asked = pulse.ping().unwrap();
        pulse.advance(ms(30));
        assert_eq!(pulse.pong(probe), None);
        assert_eq!(pulse.pong(asked), Some(ms(30)));
        assert_eq!(pulse.pong(asked), None, "a pong that came twice");
    }

    #[test]
    fn the_number_of_waiting_pings_is_limited() {
        let mut pulse = welcomed_at(ms(0));
        for _ in 0..super::PINGS_MAX {
            pulse.ping().unwrap();
        }
        assert!(pulse.ping().is_err());
        pulse.probe();
        assert_eq!(pulse.pings.len(), super::PINGS_MAX);
    }
}
