//! Keep-alive: pings, round trips, and the detection of a silent node.

use std::collections::VecDeque;
use std::time::Duration;

use super::CommandError;

/// The time that a connection that may be dead has to answer.
const DOUBT: Duration = Duration::from_secs(5);

/// A room with ticks that is quiet for so long has nothing to say, or the connection is weak: a
/// ping shows which. It has as long, and a round trip, to be answered.
const QUIET: Duration = Duration::from_millis(500);

/// Time that is noticed later than this says nothing of the node.
const TARDY: Duration = Duration::from_millis(250);

/// The number of answered pings to remember.
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
    /// The node's value of that, whatever rooms want.
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
    /// The time for which rooms are quiet only if they have nothing to say; `None` where they may
    /// always be.
    quiet: Option<Duration>,
    watch: Watch,
    is_weak: bool,
    /// The program does not know of `is_weak`.
    is_news: bool,
}

/// Says whether the connection is weak (`docs/protocol.md`, "Weak connections").
#[derive(Clone, Copy, Debug, Default)]
enum Watch {
    /// The rooms rest, as far as is known.
    #[default]
    Rest,
    /// The rooms speak.
    Listening,
    /// A ping shows it, until then.
    Asked { until: Duration, is_answered: bool },
}

/// Returns the time for which a room may be quiet while it has something to say; `None` if it has
/// no ticks.
pub(super) fn quiet_of(tick_hz: u32, sync_hz: u32) -> Option<Duration> {
    (tick_hz > 0 && sync_hz > 0).then(|| QUIET.max(Duration::from_secs(2) / sync_hz))
}

/// The delay to a node, and its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// The time from a ping to its pong: the shortest of the last eight.
    pub round_trip: Duration,
    /// The node's clock, in microseconds since the node started, minus the time given to
    /// [`Session::advance`](super::Session::advance). It is off by at most half the round trip.
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

/// Messages that are due at the current time.
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

    /// Sets the time, while something that was received is not handled: nothing is due.
    pub(super) fn set_now(&mut self, now: Duration) {
        self.now = self.now.max(now);
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
        let asks = self.listen();
        let silence = self.now - self.heard_at;
        match self.probed_at {
            Some(probed_at) if self.now >= self.silent_at(probed_at) => {
                return Due::Silent { silence };
            }
            None if silence >= self.heartbeat => return Due::Ping,
            Some(_) | None => {}
        }
        if asks || self.now - self.sent_at >= self.heartbeat / 2 { Due::Ping } else { Due::Nothing }
    }

    /// Notes whether the connection is weak. Returns whether a ping has to show it.
    fn listen(&mut self) -> bool {
        let Some(at) = self.listens_until().filter(|&at| self.now >= at) else { return false };
        let is_late = self.now > at + TARDY;
        match &mut self.watch {
            Watch::Rest => {}
            Watch::Listening => return true,
            // Input that came meanwhile may not have been read yet.
            Watch::Asked { until, is_answered: false } if is_late => *until = self.now + QUIET,
            Watch::Asked { is_answered: true, .. } => self.watch = Watch::Rest,
            Watch::Asked { .. } => {
                self.watch = Watch::Rest;
                (self.is_weak, self.is_news) = (true, true);
            }
        }
        false
    }

    fn listens_until(&self) -> Option<Duration> {
        match self.watch {
            Watch::Rest => None,
            Watch::Listening => self.quiet.map(|quiet| self.heard_at + quiet),
            Watch::Asked { until, .. } => Some(until),
        }
    }

    /// Returns whether the connection is weak, if that is news to the program.
    #[inline]
    pub(super) fn take_news(&mut self) -> Option<bool> {
        std::mem::take(&mut self.is_news).then_some(self.is_weak)
    }

    /// The node has sent more than a pong.
    #[inline]
    pub(super) fn spoke(&mut self) {
        if self.quiet.is_some() {
            self.watch = Watch::Listening;
        }
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
        let others = [self.doubted_until, self.listens_until()].into_iter().flatten();
        others.chain([listen, speak]).min()
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
    /// They are `quiet` for so long only if they have nothing to say.
    pub(super) fn expect(&mut self, silence: Option<Duration>, quiet: Option<Duration>) {
        self.quiet = quiet;
        if quiet.is_none() {
            self.watch = Watch::Rest;
        }
        let heartbeat = silence.map_or(Duration::MAX, |silence| silence / 2);
        self.heartbeat = self.usual.min(heartbeat);
    }

    /// Stops all timeouts.
    pub(super) fn stop(&mut self) {
        (self.heartbeat, self.usual) = (Duration::ZERO, Duration::ZERO);
        self.doubted_until = None;
        (self.quiet, self.watch) = (None, Watch::Rest);
        (self.is_weak, self.is_news) = (false, false);
    }

    #[inline]
    pub(super) fn heard(&mut self) {
        self.heard_at = self.now;
        if let Watch::Asked { is_answered, .. } = &mut self.watch {
            *is_answered = true;
        }
        if self.is_weak {
            (self.is_weak, self.is_news) = (false, true);
        }
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
        if self.quiet.is_some() && !self.is_weak && !matches!(self.watch, Watch::Asked { .. }) {
            let round_trip = self.clock().map_or(QUIET, |clock| clock.round_trip.min(QUIET));
            let until = self.now + QUIET + round_trip;
            self.watch = Watch::Asked { until, is_answered: false };
        }
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
    use super::{Due, Pulse, quiet_of};
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

    /// In a room of 20 ticks.
    fn in_room_at(at: Duration) -> Pulse {
        let mut pulse = welcomed_at(at);
        pulse.welcomed(ms(30_000));
        pulse.expect(Some(ms(5000)), quiet_of(20, 20));
        pulse.spoke();
        pulse
    }

    #[test]
    fn a_room_that_rests_costs_one_ping_and_is_no_weak_connection() {
        let mut pulse = in_room_at(ms(0));
        for at in (50..1000).step_by(50) {
            assert_eq!(pulse.advance(ms(at)), Due::Nothing);
            pulse.heard();
            pulse.spoke();
            pulse.sent();
        }
        assert_eq!(pulse.due_at(), Some(ms(1450)));
        assert_eq!(pulse.advance(ms(1450)), Due::Ping);
        let nonce = pulse.probe();
        pulse.sent();
        pulse.advance(ms(1480));
        pulse.heard();
        pulse.pong(nonce, 0);
        // The next is the one by which the node hears of the client.
        assert_eq!(pulse.advance(ms(2500)), Due::Nothing);
        assert_eq!(pulse.due_at(), Some(ms(2700)));
        assert_eq!(pulse.take_news(), None);
    }

    #[test]
    fn a_room_with_ticks_that_is_not_heard_for_a_second_is_weak_until_it_is() {
        let mut pulse = in_room_at(ms(0));
        let nonce = pulse.probe();
        pulse.advance(ms(40));
        pulse.heard();
        pulse.pong(nonce, 0);
        pulse.spoke();
        let mut next = || {
            let at = pulse.due_at().unwrap();
            let due = pulse.advance(at);
            if due == Due::Ping {
                pulse.probe();
                pulse.sent();
            }
            (at, due, pulse.take_news())
        };
        assert_eq!(next(), (ms(540), Due::Ping, None));
        assert_eq!(next(), (ms(1080), Due::Nothing, Some(true)), "and a round trip");
        pulse.heard();
        assert_eq!(pulse.take_news(), Some(false));
        // Only pongs, and nothing: the pings that are sent anyway show it.
        let mut was_weak = None;
        while was_weak.is_none() {
            let at = pulse.due_at().unwrap();
            match pulse.advance(at) {
                Due::Ping => drop(pulse.probe()),
                Due::Nothing => was_weak = pulse.take_news().map(|_| at),
                Due::Silent { .. } => panic!("it is lost before it is weak"),
            }
            pulse.sent();
        }
        assert!(was_weak.unwrap() < ms(1080 + 2500), "{was_weak:?}");
    }

    #[test]
    fn a_room_without_ticks_and_a_process_that_slept_have_no_weak_connection() {
        assert_eq!((quiet_of(0, 20), quiet_of(20, 0)), (None, None));
        assert_eq!((quiet_of(20, 20), quiet_of(1, 1)), (Some(ms(500)), Some(ms(2000))));
        let mut pulse = in_room_at(ms(0));
        assert_eq!(pulse.advance(ms(500)), Due::Ping);
        pulse.probe();
        pulse.advance(ms(2000));
        assert_eq!(pulse.take_news(), None);
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
