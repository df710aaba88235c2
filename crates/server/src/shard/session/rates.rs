//! Limits the messages, and their bytes, that a connection may send in a second.

use std::time::Duration;

use playfield_room::Error;
use playfield_room::rate::{Limit, Limiters, Rate, Verdict};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::config::{Config, RateLimit};
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

/// An error answers each request that is refused. Other messages to the same room that are refused
/// share one in this time, which says how many they are, or the refusals would flood the client.
const ERROR_PERIOD: Duration = Duration::from_millis(100);

/// The most rooms of which refusals are counted apart: a client may name any number of rooms.
pub(in crate::shard) const ROOMS_MAX: usize = 8;

/// The settings, ready for use.
pub(crate) struct Rates {
    messages: Option<Limit>,
    bytes: Option<Limit>,
    texts: [String; 2],
}

/// The usage that counts against a session's rates.
#[derive(Default)]
pub(crate) struct Usage(Limiters<2>);

const MESSAGES: usize = 0;
const BYTES: usize = 1;

/// A message exceeds a rate.
#[derive(Clone, Copy)]
pub(crate) struct Excess {
    /// The place of the setting in [`Rates::texts`].
    setting: usize,
    /// The time to wait; `None` if the connection has to be closed.
    wait: Option<Duration>,
}

/// Messages other than requests that came too fast.
#[derive(Default)]
pub(crate) struct Refused {
    /// The number that the client has not been told of, by room. `None` counts those to no
    /// room, and to more than [`ROOMS_MAX`] rooms.
    untold: Vec<(Option<RoomNumber>, u64)>,
    /// Until then it is told nothing.
    quiet_until: Duration,
    /// Of the last one: the setting, and when it might have come.
    setting: usize,
    retry_at: Duration,
}

impl Refused {
    fn count(&mut self, room: Option<RoomNumber>) {
        let is_full = self.untold.len() >= ROOMS_MAX;
        let is_known = self.untold.iter().any(|&(counted, _)| counted == room);
        let room = room.filter(|_| is_known || !is_full);
        match self.untold.iter_mut().find(|(counted, _)| *counted == room) {
            Some((_, count)) => *count += 1,
            None => self.untold.push((room, 1)),
        }
    }
}

impl Rates {
    pub(crate) fn new(config: &Config) -> Self {
        let limit = |limit: RateLimit| {
            let rate = Rate::new(limit.count, limit.per.time(), limit.burst());
            (limit.count > 0).then(|| Limit::new(rate, config.tuning.rate_multiple))
        };
        let (messages, mut bytes) = (config.limits.session.messages, config.limits.session.bytes);
        // Any message that may be sent may be sent at some time.
        bytes.burst = Some(bytes.burst().max(config.limits.message_bytes as u64));
        let text = |what: &str, limit: RateLimit| {
            let (count, unit, burst) = (limit.count, limit.per.unit(), limit.burst());
            format!(
                "limits.session.{what}: a connection may send {count} {what} per {unit}, and \
                 {burst} at once"
            )
        };
        Self {
            messages: limit(messages),
            bytes: limit(bytes),
            texts: [text("messages", messages), text("bytes", bytes)],
        }
    }
}

impl Usage {
    /// Takes one message of `bytes` bytes.
    #[inline]
    pub(crate) fn take(
        &mut self,
        now: Duration,
        rates: &Rates,
        bytes: usize,
    ) -> Result<(), Excess> {
        if let Some(limit) = &rates.messages {
            within(self.0.take_of::<MESSAGES>(now, limit, 1), MESSAGES)?;
        }
        if let Some(limit) = &rates.bytes {
            within(self.0.take_of::<BYTES>(now, limit, bytes as u64), BYTES)?;
        }
        Ok(())
    }
}

impl Usage {
    /// The client could send nothing since `since`, and is back: what waited may come at once.
    pub(crate) fn credit(&mut self, since: Duration, now: Duration) {
        self.0.credit(since, now);
    }
}

#[inline]
fn within(verdict: Verdict, setting: usize) -> Result<(), Excess> {
    match verdict {
        Verdict::Within => Ok(()),
        Verdict::Exceeds(wait) => Err(Excess { setting, wait: Some(wait) }),
        Verdict::Excessive => Err(Excess { setting, wait: None }),
    }
}

impl Outlet<'_> {
    /// Acts on a message that came too fast. Whether it is handled nevertheless.
    #[cold]
    pub(in crate::shard) fn exceed(
        &mut self,
        key: ConnectionKey,
        excess: Excess,
        message: Option<&ClientMessage<'_>>,
    ) -> bool {
        let Excess { setting, wait } = excess;
        let Some(wait) = wait else {
            self.env.counters.messages_too_fast += 1;
            let text = self.sessions.rates.texts[setting].clone();
            self.close_too_fast(key, &text);
            return false;
        };
        let request = match message {
            // What ends something, or says how it is, only makes less work.
            Some(
                ClientMessage::Ack(_)
                | ClientMessage::Pong(_)
                | ClientMessage::Resync(_)
                | ClientMessage::Leave(_)
                | ClientMessage::Unsubscribe(_)
                | ClientMessage::Goodbye(client::Goodbye {}),
            ) => return true,
            Some(message) => request_of(message),
            None => None,
        };
        self.env.counters.messages_too_fast += 1;
        let now = self.env.now;
        let Some(session) = self.sessions.get_mut(key) else { return false };
        let room = match message {
            Some(ClientMessage::Send(client::Send { room, .. })) => Some(*room),
            _ => None,
        };
        if request.is_none() {
            let refused = session.extras_mut().refused.get_or_insert_default();
            refused.count(room);
            refused.setting = setting;
            refused.retry_at = now.saturating_add(wait);
            let tells_at = self.tell_refused(key);
            self.links.look_by(key, tells_at);
            return false;
        }
        let text = self.sessions.rates.texts[setting].as_str();
        let error = Error::new(ErrorCode::TooFast, text).with_retry_after(wait);
        self.send_error(key, request, room, &error);
        false
    }

    /// Tells a client how many of its messages without an answer were refused since it was told
    /// last, unless that was just now. When to do so next.
    pub(in crate::shard) fn tell_refused(&mut self, key: ConnectionKey) -> Duration {
        let session = self.sessions.get_mut(key);
        let Some(refused) = session
            .and_then(|session| session.extras.as_deref_mut()?.refused.as_deref_mut())
            .filter(|refused| !refused.untold.is_empty())
        else {
            return Duration::MAX;
        };
        if self.env.now < refused.quiet_until {
            return refused.quiet_until;
        }
        refused.quiet_until = self.env.now + ERROR_PERIOD;
        let untold = std::mem::take(&mut refused.untold);
        let (setting, wait) = (refused.setting, refused.retry_at.saturating_sub(self.env.now));
        for (room, count) in untold {
            let text = &self.sessions.rates.texts[setting];
            let text = match count {
                1 => format!("{text}; 1 message without an answer was refused"),
                _ => format!("{text}; {count} messages without an answer were refused"),
            };
            let error = Error::new(ErrorCode::TooFast, text).with_retry_after(wait);
            self.send_error(key, None, room, &error);
        }
        Duration::MAX
    }

    /// Closes a connection that exceeded a multiple of a rate.
    pub(in crate::shard) fn close_too_fast(&mut self, key: ConnectionKey, text: &str) {
        self.env.counters.closed_too_fast += 1;
        self.goodbye(key, ErrorCode::TooFast, text, None);
    }

    /// Returns whether a control frame of the WebSocket is handled: it counts as a message.
    pub(in crate::shard) fn admits_control(&mut self, key: ConnectionKey, bytes: usize) -> bool {
        match self.sessions.take(key, self.env.now, bytes) {
            None | Some(Ok(())) => true,
            Some(Err(excess)) => self.exceed(key, excess, None),
        }
    }
}

pub(super) fn request_of(message: &ClientMessage<'_>) -> Option<RequestNumber> {
    match message {
        ClientMessage::Request(client::Request { request, .. })
        | ClientMessage::Join(client::Join { request, .. })
        | ClientMessage::JoinByKey(client::JoinByKey { request, .. })
        | ClientMessage::Create(client::Create { request, .. })
        | ClientMessage::JoinOrCreate(client::JoinOrCreate { request, .. })
        | ClientMessage::List(client::List { request, .. })
        | ClientMessage::Schema(client::Schema { request, .. })
        | ClientMessage::Leave(client::Leave { request, .. })
        | ClientMessage::Subscribe(client::Subscribe { request, .. })
        | ClientMessage::Members(client::Members { request, .. })
        | ClientMessage::History(client::History { request, .. })
        | ClientMessage::Register(client::Register { request, .. }) => Some(*request),
        ClientMessage::Publish(client::Publish { request, .. })
        | ClientMessage::Report(client::Report { request, .. }) => *request,
        _ => None,
    }
}
