//! Restoring a lost connection: when to dial again, when another token is needed, when to give up.

use std::time::{Duration, SystemTime};

use super::addresses::Addresses;
use super::attempts::{Attempts, Patience};
use super::masks::Masks;
use super::token::TokenLife;
use super::{ClientError, Event, Reach, Session};

/// An edge's next step for the connection of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until [`Session::due_at`] or the next event.
    Wait,
    /// Get a token, within this time: then [`Session::set_token`], or
    /// [`attempt_failed`](Session::attempt_failed).
    Token(Duration),
    /// Connect to [`Session::dial_to`], within this time: then [`Session::reconnect`], or
    /// [`attempt_failed`](Session::attempt_failed).
    Dial(Duration),
}

/// The attempts to restore the connection of a session.
#[derive(Debug)]
pub(super) struct Reconnect {
    attempts: Attempts,
    pub(super) addresses: Addresses,
    /// The program can give another token.
    renews_token: bool,
    token_life: TokenLife,
    random: Masks,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is a connection, or an attempt that waits for the welcome.
    Connected,
    Waiting {
        until: Duration,
    },
    Token,
    Dialing,
}

impl Reconnect {
    /// The session was made with this token, and connects for the first time.
    pub(super) fn new(
        patience: Patience,
        renews_token: bool,
        token: &[u8],
        redirects: Option<Reach>,
        seed: [u8; 16],
    ) -> Self {
        let token_life = match renews_token {
            true => TokenLife::new(token, SystemTime::now()),
            false => TokenLife::default(),
        };
        let (attempts, random) = (Attempts::new(patience, Duration::ZERO), Masks::seeded(seed));
        let (addresses, stage) = (Addresses::new(redirects), Stage::Connected);
        Self { attempts, addresses, renews_token, token_life, random, stage }
    }

    /// The program has given another token.
    pub(super) fn renewed(&mut self, token: &[u8]) {
        if self.renews_token {
            self.token_life = TokenLife::new(token, SystemTime::now());
        }
    }

    fn wait(&mut self, now: Duration) -> Stage {
        let random = u32::from_le_bytes(self.random.draw());
        Stage::Waiting { until: now.saturating_add(self.attempts.wait(random, now)) }
    }
}

/// Restoring a connection. An edge calls [`next_step`](Self::next_step) whenever all events are
/// polled, and does what it says.
impl Session {
    /// The next step for the connection, at the time that was last given.
    pub fn next_step(&mut self) -> Step {
        let now = self.protocol.pulse.now();
        if !self.is_away() {
            return Step::Wait;
        }
        if self.reconnect.stage == Stage::Connected && !self.note_loss(now) {
            return Step::Wait;
        }
        let needs_token =
            self.is_token_refused() || self.reconnect.token_life.is_over(SystemTime::now());
        let Reconnect { attempts, addresses, stage, .. } = &mut self.reconnect;
        match *stage {
            Stage::Waiting { until } if now >= until => attempts.begin(now),
            // The token was given.
            Stage::Token if !needs_token => {}
            _ => return Step::Wait,
        }
        if needs_token {
            *stage = Stage::Token;
            return Step::Token(attempts.timeout());
        }
        *stage = Stage::Dialing;
        addresses.next();
        Step::Dial(attempts.dial(now))
    }

    /// Sets the token for the node's authenticator in later hellos, which must name the same user.
    pub fn set_token(&mut self, token: Vec<u8>) {
        self.reconnect.renewed(&token);
        self.protocol.resumption.greeting.token = token;
        self.protocol.resumption.is_token_refused = false;
    }

    /// Returns whether the node has refused the token as `unauthorized`, and the client is
    /// [away](Self::is_away) for one more attempt with another.
    #[must_use]
    pub fn is_token_refused(&self) -> bool {
        self.protocol.resumption.is_token_refused
    }

    /// Sets whether the program may give another token after one was refused. If so, the next
    /// refusal as `unauthorized` after a lost connection leaves the client [away](Self::is_away),
    /// for one more attempt with another token. Call it again once the client was welcomed.
    pub fn set_renews_token(&mut self, renews: bool) {
        self.protocol.resumption.renews_token = renews;
    }

    /// The step failed that [`next_step`](Self::next_step) has asked for. Returns whether the session
    /// gives up, and is over.
    pub fn attempt_failed(&mut self) -> bool {
        let now = self.protocol.pulse.now();
        self.reconnect.attempts.failed(now);
        self.reconnect.addresses.failed();
        self.is_over(now)
    }

    /// Returns the time that the attempts to restore the connection took so far.
    #[must_use]
    pub fn tried(&self) -> Duration {
        self.reconnect.attempts.took()
    }

    /// The connection was lost, or an attempt was not welcomed. Returns whether there is another.
    fn note_loss(&mut self, now: Duration) -> bool {
        let lost = self.protocol.resumption.lost().cloned();
        if let Some(ClientError::Redirected { addresses }) = &lost
            && self.reconnect.addresses.redirected(addresses)
        {
            self.reconnect.attempts.failed(now);
            self.reconnect.stage = Stage::Waiting { until: now };
            return true;
        }
        let retry_after = match &lost {
            Some(ClientError::TurnedAway { retry_after, .. }) => *retry_after,
            _ => None,
        };
        let (made_progress, grace) = (self.made_progress(), self.shortest_grace());
        let is_attempt = self.reconnect.attempts.lost(made_progress, grace, retry_after, now);
        if let Some(error) = lost.filter(|_| is_attempt) {
            self.reconnect.addresses.failed();
            let is_last = self.reconnect.attempts.is_over();
            self.protocol.events.push_back(Event::AttemptFailed { error, is_last });
            return !self.is_over(now);
        }
        self.reconnect.stage = self.reconnect.wait(now);
        true
    }

    /// An attempt has failed. Returns whether the session gives up.
    fn is_over(&mut self, now: Duration) -> bool {
        let is_over = self.reconnect.attempts.is_over();
        if is_over {
            self.give_up();
        } else {
            self.reconnect.stage = self.reconnect.wait(now);
        }
        is_over
    }

    /// Another connection was made.
    pub(super) fn dialed(&mut self) {
        self.reconnect.stage = Stage::Connected;
    }

    /// Notes a welcome.
    pub(super) fn note_welcome(&mut self) {
        let now = self.protocol.pulse.now();
        if let Some(addresses) = self.protocol.resumption.addresses.take() {
            self.reconnect.addresses.welcomed(&addresses);
        }
        if self.is_welcomed()
            && self.reconnect.attempts.welcomed(now)
            && self.reconnect.renews_token
        {
            self.set_renews_token(true);
        }
    }

    /// When an attempt fails, unless the node answers. The edge has its own limit for the first.
    fn welcome_by(&self) -> Option<Duration> {
        let is_attempt = self.protocol.is_open() && !self.protocol.resumption.is_first();
        self.reconnect.attempts.welcome_by().filter(|_| is_attempt)
    }

    /// When [`next_step`](Self::next_step) has something to do, or an attempt is over.
    pub(super) fn step_at(&self) -> Option<Duration> {
        match self.reconnect.stage {
            Stage::Waiting { until } if self.is_away() => Some(until),
            _ => self.welcome_by(),
        }
    }

    /// Fails an attempt that the node has not answered in time.
    pub(super) fn check_welcome(&mut self) {
        let now = self.protocol.pulse.now();
        if self.welcome_by().is_some_and(|by| by <= now) && !self.is_welcomed() {
            let limit = self.reconnect.attempts.limit();
            self.protocol.fail(ClientError::NoWelcome { limit });
        }
    }
}
