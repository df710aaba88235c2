//! Keep-alive: pings, round trips, and the detection of a silent node.

use std::collections::VecDeque;
use std::time::Duration;

use super::CommandError;

/// How long a connection that may be dead has to answer.
const DOUBT: Duration = Duration::from_secs(5);

/// How many answered pings are remembered.
const SAMPLES_MAX: usize = 8;

/// The most pings that may wait for their pongs.
const PINGS_MAX: usize = 64;

/// The current time, and when messages were last sent and received.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    now: Duration,
    /// A message is expected this often, in both directions; zero if none is, and before the
    /// welcome.
    heartbeat: Duration,
    /// What that is by the node, whatever rooms want.
    usual: Duration,
    sent_at: Duration,
    heard_at: Duration,
    /// When the node was pinged to see whether it is alive, since its last message.
    probed_at: Option<Duration>,
    pings: VecDeque<Ping>,
    next_nonce: u64,
    /// The last answered pings of this connection, oldest first.
    samples: VecDeque<Clock>,
    /// When the connection counts as lost if nothing is heard.
    doubted_until: Option<Duration>,
}

/// The delay to a node, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time from a ping to its pong: the shortest of the last eight.
    pub round_trip: Duration,
    /// The node's clock, in microseconds since the node started, minus the time given to
    /// [`Client::advance`](super::Client::advance). It is off by at most half the round trip.
    pub offset_us: i64,
}

impl Clock {
    /// The node's clock at this time.
    #[must_use]
    pub fn node_time(&self, now: Duration) -> Duration {
        let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        Duration::from_micros(now.saturating_add(self.offset_us).max(0).unsigned_abs())
    }
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
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// Sets the time. A time before the current one is ignored.
    pub(super) fn advance(&mut self, now: Duration) -> Due {
        let slept = now.saturating_sub(self.now) > self.heartbeat;
        let overslept = now.saturating_sub(self.now) > DOUBT + DOUBT / 4;
        self.now = self.now.max(now);
        if self.doubted_until.is_some_and(|until| self.now >= until) {
            self.doubted_until = None;
            if overslept {
                self.suspect();
                return Due::Ping;
            }
            return Due::Silent { silence: self.now - self.heard_at };
        }
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
            return self.doubted_until;
        }
        let listen = match self.probed_at {
            Some(probed_at) => self.silent_at(probed_at),
            None => self.heard_at + self.heartbeat,
        };
        let speak = self.sent_at + self.heartbeat / 2;
        Some(listen.min(speak).min(self.doubted_until.unwrap_or(Duration::MAX)))
    }

    /// When a pinged node counts as silent. It gets one heartbeat from the ping on, as this process
    /// may have slept.
    fn silent_at(&self, probed_at: Duration) -> Duration {
        (self.heard_at + self.heartbeat * 2).max(probed_at + self.heartbeat)
    }

    pub(super) fn welcomed(&mut self, heartbeat: Duration) {
        (self.heartbeat, self.usual) = (heartbeat, heartbeat);
        self.sent_at = self.now;
    }

    /// Rooms that the client is in want the connection to count as lost after this silence.
    pub(super) fn expect(&mut self, silence: Option<Duration>) {
        let heartbeat = silence.map_or(Duration::MAX, |silence| silence / 2);
        self.heartbeat = self.usual.min(heartbeat);
    }

    /// Stops all timeouts.
    pub(super) fn stop(&mut self) {
        (self.heartbeat, self.usual) = (Duration::ZERO, Duration::ZERO);
        self.doubted_until = None;
    }

    #[inline]
    pub(super) fn heard(&mut self) {
        self.heard_at = self.now;
        self.probed_at = None;
        self.doubted_until = None;
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
    /// ones that were not asked for are forgotten.
    pub(super) fn pong(&mut self, nonce: u64, time_us: u64) -> Option<Duration> {
        let index = self.pings.iter().position(|ping| ping.nonce == nonce)?;
        let ping = self.pings.remove(index)?;
        self.pings.retain(|other| other.asked || other.nonce > nonce);
        let round_trip = self.now - ping.at;
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        // The node answered when half the round trip had passed.
        let here = i64::try_from((ping.at + round_trip / 2).as_micros()).unwrap_or(i64::MAX);
        let offset_us = i64::try_from(time_us).unwrap_or(i64::MAX).saturating_sub(here);
        self.samples.push_back(Clock { round_trip, offset_us });
        ping.asked.then_some(round_trip)
    }

    /// The sample with the shortest round trip, which is the most exact.
    pub(super) fn clock(&self) -> Option<Clock> {
        self.samples.iter().rev().min_by_key(|sample| sample.round_trip).copied()
    }

    /// The connection may be dead: a message must come soon.
    pub(super) fn suspect(&mut self) {
        self.doubted_until = Some(self.now.saturating_add(DOUBT));
    }

    /// The connection is a new one. Returns the nonces of the pings to send again, whose pongs the
    /// user waits for: their round trips begin now.
    pub(super) fn ping_again(&mut self) -> Vec<u64> {
        self.samples.clear();
        self.pings.retain(|ping| ping.asked);
        self.pings.iter_mut().for_each(|ping| ping.at = self.now);
        self.pings.iter().map(|ping| ping.nonce).collect()
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
        assert_eq!(pulse.pong(probe, 0), None);
        assert_eq!(pulse.pong(asked, 0), Some(ms(30)));
        assert_eq!(pulse.pong(asked, 0), None, "a pong that came twice");
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
