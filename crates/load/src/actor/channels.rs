//! Steps of a connection in channels.

use playfield_client::ErrorCode;
use playfield_client::session::{Session, Subscribed, SubscriptionNumber};
use playfield_wire::server;

use super::steps::Stop;
use super::{Actor, Numbers, What};
use crate::deliveries::Subscription;
use crate::engine::Shared;
use crate::name::Name;
use crate::payload::Payload;
use crate::settings::MessageKind;

impl Actor {
    pub(super) fn subscribe(
        &mut self,
        channel: &Name,
        presence: bool,
        timing: u32,
        client: &mut Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        let name = channel.of(self.number as usize);
        let channel = shared.deliveries.channel(&name);
        if self.subscriptions.iter().any(|of| of.channel == channel) {
            self.advance();
            return Ok(());
        }
        let subscribed = client.subscribe(&name, None, presence);
        let number = self.taken(subscribed, shared)?;
        self.subscriptions.push(Subscription::new(number, channel));
        self.ask(number.0.into(), What::Subscribe { timing }, true, self.due);
        Ok(())
    }

    pub(super) fn unsubscribe(
        &mut self,
        channel: Option<&Name>,
        client: &mut Session,
        shared: &mut Shared,
    ) {
        let index = match channel {
            None => self.subscriptions.len().checked_sub(1),
            Some(name) => {
                let channel = shared.deliveries.channel(&name.of(self.number as usize));
                self.subscriptions.iter().position(|of| of.channel == channel)
            }
        };
        if let Some(index) = index {
            let of = self.subscriptions.remove(index);
            shared.counts.in_channels -= u64::from(of.is_open);
            client.unsubscribe(of.number);
        }
        self.advance();
    }

    pub(super) fn publish(
        &mut self,
        channel: &Name,
        payload: &Payload,
        kind: MessageKind,
        timing: u32,
        client: &mut Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        let name = channel.of(self.number as usize);
        let channel = shared.deliveries.channel(&name);
        let published = self.published.iter().position(|(of, _)| *of == channel);
        let sequence = published.map_or(1, |at| self.published[at].1.wrapping_add(1));
        let stamp = shared.deliveries.stamp(self.number, sequence, self.due);
        let mut bytes = std::mem::take(&mut shared.payload);
        bytes.clear();
        payload.write(&mut self.random, Some(&stamp), &mut bytes);
        let sent = client.publish(&name, &bytes, kind != MessageKind::Send);
        shared.payload = bytes;
        let request = self.taken(sent, shared)?;
        match published {
            Some(at) => self.published[at].1 = sequence,
            None => self.published.push((channel, sequence)),
        }
        shared.counts.publications += 1;
        let epoch = shared.deliveries.epoch(channel);
        self.sent(request, What::Publish { timing, channel, epoch }, kind, client, shared)
    }

    /// The load ends, and its subscriptions with it.
    pub(crate) fn end_subscriptions(&self, shared: &mut Shared) {
        self.subscriptions.iter().for_each(|of| shared.deliveries.end(of));
    }

    fn subscription(&mut self, number: SubscriptionNumber) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|of| of.number == number)
    }

    pub(super) fn is_subscribed(
        &mut self,
        number: SubscriptionNumber,
        with: &Subscribed,
        shared: &mut Shared,
        now: u64,
    ) {
        let Some(of) = self.subscription(number) else { return };
        shared.counts.subscribed += 1;
        shared.counts.in_channels += 1;
        shared.deliveries.subscribed(of, with);
        let Some(asked) = self.answered(number.0.into(), Numbers::Subscription) else {
            return;
        };
        if let What::Subscribe { timing } = asked.what {
            shared.replied(timing, now - asked.due);
        }
        self.go_on(now);
        self.advance();
    }

    pub(super) fn is_unsubscribed(
        &mut self,
        number: SubscriptionNumber,
        code: ErrorCode,
        text: &str,
        shared: &mut Shared,
    ) {
        let Some(index) = self.subscriptions.iter().position(|of| of.number == number) else {
            return;
        };
        let of = self.subscriptions.remove(index);
        shared.counts.in_channels -= u64::from(of.is_open);
        if self.answered(number.0.into(), Numbers::Subscription).is_some() {
            shared.counts.subscriptions_refused += 1;
            shared.problem(format!("a subscription was refused: {} {text}", code.name()));
            self.end(shared);
        } else if !shared.is_over {
            shared.counts.unsubscribed += 1;
            shared.problem(format!("a subscription was ended: {} {text}", code.name()));
        }
    }

    pub(super) fn delivered(
        &mut self,
        number: SubscriptionNumber,
        publication: &server::Publication<'_>,
        shared: &mut Shared,
        now: u64,
    ) {
        let Some(of) = self.subscription(number) else { return };
        let Shared { deliveries, counts, timings, .. } = shared;
        if let Some(ns) = deliveries.received(of, publication, counts, now) {
            timings.delivery.record(ns);
        }
    }

    pub(super) fn delivered_again(
        &mut self,
        number: SubscriptionNumber,
        offset: u64,
        shared: &mut Shared,
    ) {
        if let Some(of) = self.subscription(number) {
            of.ignored(offset, &mut shared.counts);
        }
    }
}
