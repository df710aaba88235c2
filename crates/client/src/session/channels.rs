//! Subscriptions to channels. They outlive connections: on each new one the client subscribes
//! again, with the position that it has reached.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_wire::client::{self, ClientMessage, Position};
use playfield_wire::{ErrorCode, RequestNumber, server};

use super::numbers::NumberMap;
use super::protocol::Protocol;
use super::report::Report;
use super::{ClientError, CommandError, Event};

/// The most channels that one client may subscribe to.
pub const SUBSCRIPTIONS_MAX: usize = 1024;

/// A refusal that passes is followed by another attempt after this time, unless the node names one.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A subscription of this client, over however many connections and sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionNumber(pub u32);

/// The node has answered a subscription, on a first or on a later connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscribed {
    /// The place in the channel before the publications that follow.
    pub position: Position,
    /// Says whether nothing was lost: all publications after the position that this client had
    /// reached follow, or it had none.
    pub recovered: bool,
    /// The number of publications that were missed since that position, as far as is known: if the
    /// channel has another epoch, those that the earlier one had are not counted.
    pub missed: u64,
    /// Says whether payloads are bytes, and not JSON.
    pub bytes: bool,
    /// The number of subscribed sessions, this one included; 0 if the client may not know.
    pub members: u64,
}

/// Returns whether a refusal passes, so that what was granted before may be asked for again.
pub(super) fn is_passing(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::Limit | ErrorCode::TooFast | ErrorCode::Busy)
}

#[derive(Debug)]
struct Entry {
    channel: String,
    presence: bool,
    /// The last publication that is known.
    reached: Option<Position>,
    /// The channel's number, once the node has answered on this connection.
    number: Option<u64>,
    /// The request on this connection, until it is answered.
    request: Option<RequestNumber>,
    /// The node has answered it once.
    is_begun: bool,
}

/// All subscriptions.
#[derive(Debug, Default)]
pub(super) struct Channels {
    last: u32,
    entries: BTreeMap<SubscriptionNumber, Entry>,
    by_number: NumberMap<u64, SubscriptionNumber>,
    waiting: NumberMap<RequestNumber, SubscriptionNumber>,
    /// The channels of subscriptions that were given up before the node had answered.
    dropped: NumberMap<RequestNumber, String>,
    /// Subscriptions to ask for again, and when.
    retries: Vec<(Duration, SubscriptionNumber)>,
}

impl Channels {
    fn has(&self, channel: &str) -> bool {
        self.entries.values().any(|entry| entry.channel == channel)
    }

    /// When to ask for the next subscription again.
    pub(super) fn retry_at(&self) -> Option<Duration> {
        self.retries.iter().map(|(at, _)| *at).min()
    }

    fn remove(&mut self, subscription: SubscriptionNumber) -> Option<Entry> {
        let entry = self.entries.remove(&subscription)?;
        if let Some(number) = entry.number {
            self.by_number.remove(&number);
        }
        if let Some(request) = entry.request {
            self.waiting.remove(&request);
        }
        self.retries.retain(|(_, of)| *of != subscription);
        Some(entry)
    }
}

impl Protocol {
    pub(super) fn subscribe(
        &mut self,
        channel: &str,
        since: Option<Position>,
        presence: bool,
    ) -> Result<SubscriptionNumber, CommandError> {
        self.check_open()?;
        let (bytes, bytes_max) = (channel.len(), self.bytes_max);
        if bytes > bytes_max {
            return Err(CommandError::TooLarge { bytes, bytes_max });
        }
        if self.channels.has(channel) {
            return Err(CommandError::Subscribed);
        }
        let subscriptions = self.channels.entries.len() + self.channels.dropped.len();
        if subscriptions >= SUBSCRIPTIONS_MAX {
            return Err(CommandError::Subscriptions { subscriptions });
        }
        self.channels.last = self.channels.last.wrapping_add(1);
        let subscription = SubscriptionNumber(self.channels.last);
        let (channel, reached) = (channel.to_owned(), since);
        let (number, request, is_begun) = (None, None, false);
        let entry = Entry { channel, presence, reached, number, request, is_begun };
        self.channels.entries.insert(subscription, entry);
        if self.can_send() {
            self.ask_to_subscribe(subscription);
        }
        Ok(subscription)
    }

    pub(super) fn unsubscribe(&mut self, subscription: SubscriptionNumber) {
        let Some(entry) = self.channels.remove(subscription) else { return };
        if !self.can_send() {
            return; // The next connection does not subscribe again.
        }
        if let Some(channel) = entry.number {
            let _ = self.send_message(&ClientMessage::Unsubscribe(client::Unsubscribe { channel }));
        } else if let Some(request) = entry.request {
            self.channels.dropped.insert(request, entry.channel);
        }
    }

    /// The position that a subscription has reached.
    pub(super) fn position(&self, subscription: SubscriptionNumber) -> Option<Position> {
        self.channels.entries.get(&subscription)?.reached
    }

    /// Subscribes again on a new connection.
    pub(super) fn subscribe_again(&mut self) {
        let channels = &mut self.channels;
        channels.by_number.clear();
        channels.waiting.clear();
        channels.dropped.clear();
        channels.retries.clear();
        let all: Vec<_> = channels.entries.keys().copied().collect();
        for subscription in all {
            self.ask_to_subscribe(subscription);
        }
    }

    /// Subscribes again where the node has refused it for a while.
    pub(super) fn retry_subscriptions(&mut self) {
        let now = self.pulse.now();
        if self.channels.retry_at().is_none_or(|at| at > now) || !self.can_send() {
            return;
        }
        let due: Vec<_> = self.channels.retries.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, subscription) in due {
            self.ask_to_subscribe(subscription);
        }
    }

    fn ask_to_subscribe(&mut self, subscription: SubscriptionNumber) {
        let request = self.requests.reserve_unanswered();
        let channels = &mut self.channels;
        let Some(entry) = channels.entries.get_mut(&subscription) else { return };
        (entry.number, entry.request) = (None, Some(request));
        channels.waiting.insert(request, subscription);
        let (channel, since, presence) =
            (entry.channel.clone().into(), entry.reached, entry.presence);
        // If it fails, the connection is at its end.
        let _ = self.send_message(&ClientMessage::Subscribe(client::Subscribe {
            request,
            channel,
            since,
            presence,
        }));
    }

    pub(super) fn subscribed(
        &mut self,
        &server::Subscribed { request, channel, epoch, mut offset, recovered, bytes, members }: &server::Subscribed,
    ) -> Result<(), ClientError> {
        if let Some(name) = self.channels.dropped.remove(&request) {
            // A later subscription to it has taken the place of this one.
            if !self.channels.has(&name) {
                let _ =
                    self.send_message(&ClientMessage::Unsubscribe(client::Unsubscribe { channel }));
            }
            return Ok(());
        }
        let Some(subscription) = self.channels.waiting.remove(&request) else {
            return self.requests.answered(request, "a subscription", |_| false).map(drop);
        };
        let Some(entry) = self.channels.entries.get_mut(&subscription) else { return Ok(()) };
        let position = Position { epoch, offset };
        let missed = match entry.reached {
            None => 0,
            Some(reached) if reached.epoch == epoch => {
                let missed = offset.saturating_sub(reached.offset);
                offset = offset.max(reached.offset);
                missed
            }
            Some(_) => offset,
        };
        let had_position = entry.reached.is_some();
        entry.reached = Some(Position { epoch, offset });
        (entry.number, entry.request, entry.is_begun) = (Some(channel), None, true);
        self.channels.by_number.insert(channel, subscription);
        let recovered = !had_position || (recovered && missed == 0);
        let subscribed = Subscribed { position, recovered, missed, bytes, members };
        self.events.push_back(Event::Subscribed(subscription, subscribed));
        Ok(())
    }

    #[inline]
    pub(super) fn publication(&mut self, publication: &server::Publication<'_>) -> Report {
        // One that is unknown was unsubscribed from.
        let Some(&subscription) = self.channels.by_number.get(&publication.channel) else {
            return Report::Nothing;
        };
        let entry = self.channels.entries.get_mut(&subscription);
        let Some(reached) = entry.and_then(|entry| entry.reached.as_mut()) else {
            return Report::Nothing;
        };
        let Some(steps) = publication.offset.checked_sub(reached.offset).filter(|steps| *steps > 0)
        else {
            let offset = publication.offset;
            self.events.push_back(Event::PublicationIgnored { subscription, offset });
            return Report::Nothing;
        };
        reached.offset = publication.offset;
        if steps > 1 {
            let publications = steps - 1;
            self.events.push_back(Event::PublicationsMissed { subscription, publications });
        }
        Report::Of(subscription)
    }

    pub(super) fn presence(&self, presence: &server::Presence<'_>) -> Report {
        let subscription = self.channels.by_number.get(&presence.channel);
        subscription.map_or(Report::Nothing, |subscription| Report::Of(*subscription))
    }

    pub(super) fn unsubscribed(&mut self, unsubscribed: &server::Unsubscribed<'_>) {
        let &server::Unsubscribed { channel, code, ref text } = unsubscribed;
        if let Some(&subscription) = self.channels.by_number.get(&channel) {
            self.channels.remove(subscription);
            let text = text.to_string();
            self.events.push_back(Event::Unsubscribed { subscription, code, text });
        }
    }

    /// The node refused a request. Returns whether it was a subscription.
    pub(super) fn refused_subscription(
        &mut self,
        request: RequestNumber,
        error: &server::Error<'_>,
    ) -> bool {
        if self.channels.dropped.remove(&request).is_some() {
            return true;
        }
        let Some(subscription) = self.channels.waiting.remove(&request) else { return false };
        let Some(entry) = self.channels.entries.get_mut(&subscription) else { return true };
        entry.request = None;
        if entry.is_begun && is_passing(error.code) {
            let at = self.pulse.now().saturating_add(error.retry_after().unwrap_or(RETRY_AFTER));
            self.channels.retries.push((at, subscription));
        } else {
            self.channels.remove(subscription);
            let (code, text) = (error.code, error.text.to_string());
            self.events.push_back(Event::Unsubscribed { subscription, code, text });
        }
        true
    }
}
