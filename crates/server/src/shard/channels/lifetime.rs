//! How subscriptions end, and what becomes of them while their session is away.

use std::sync::Arc;
use std::time::Duration;

use crate::memory::shrink_map;
use crate::shard::Shard;
use crate::shard::channels::{SessionChannels, Stage, Subscriber, Subscription};
use crate::shard::delivery::Delivery;
use crate::shard::keys::ConnectionKey;

impl Delivery {
    /// Ends a subscription of a session for good.
    pub(super) fn end_subscription(&mut self, key: ConnectionKey, channel: u64) {
        let Some(session) = self.connections.session_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        let is_it =
            |stage: &Stage| matches!(stage, Stage::Live { channel: of, .. } if *of == channel);
        let Some(at) = own.subscriptions.iter().position(|of| is_it(&of.stage)) else { return };
        let subscription = own.subscriptions.swap_remove(at);
        self.leave_channel(number, &subscription.name, &subscription.stage, true);
    }

    /// Ends a subscription, but the session stays a member, because it is about to subscribe again.
    pub(super) fn pause_subscription(&mut self, key: ConnectionKey, channel: u64) {
        let Some(session) = self.connections.session_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        for subscription in &mut own.subscriptions {
            if matches!(subscription.stage, Stage::Live { channel: of, .. } if of == channel) {
                let stage = std::mem::replace(&mut subscription.stage, Stage::Away { channel });
                let name = Arc::clone(&subscription.name);
                return self.leave_channel(number, &name, &stage, false);
            }
        }
    }

    /// A session has lost its connection: its subscriptions end, but it stays a member.
    pub(crate) fn suspend_channels(&mut self, key: ConnectionKey) {
        let Some(session) = self.connections.session_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        own.returns_by = None;
        // What the home is still to answer is of no use to the next connection.
        own.subscriptions.retain_mut(|of| match of.stage {
            Stage::Pending { member_of: Some(channel), .. } => {
                of.stage = Stage::Away { channel };
                true
            }
            Stage::Pending { .. } => false,
            Stage::Live { .. } | Stage::Away { .. } => true,
        });
        let mut left = Vec::new();
        for subscription in &mut own.subscriptions {
            if let Stage::Live { channel, .. } = subscription.stage {
                let stage = std::mem::replace(&mut subscription.stage, Stage::Away { channel });
                left.push((Arc::clone(&subscription.name), stage));
            }
        }
        for (name, stage) in left {
            self.leave_channel(number, &name, &stage, false);
        }
    }

    /// A session ends, and with it all its subscriptions.
    pub(crate) fn end_channels(&mut self, session: u64, own: SessionChannels) {
        for subscription in own.subscriptions {
            self.leave_channel(session, &subscription.name, &subscription.stage, true);
        }
    }

    /// Takes a subscription out of the tables of this shard and of the home.
    pub(super) fn leave_channel(&mut self, session: u64, name: &str, stage: &Stage, leaves: bool) {
        let (channel, live) = match *stage {
            // The answer of the home finds nobody.
            Stage::Pending { .. } => return,
            Stage::Live { channel, place } => {
                self.remove_subscriber(channel, place);
                (channel, true)
            }
            Stage::Away { channel } => (channel, false),
        };
        self.mail_unsubscribe(name, channel, session, (live, leaves));
    }

    /// Removes the subscriber at this place. The last one takes its place, and is informed.
    fn remove_subscriber(&mut self, channel: u64, place: usize) {
        let Some(local) = self.channels.local.get_mut(&channel) else { return };
        if place >= local.subscribers.len() {
            return;
        }
        let Subscriber { connection, backlog, .. } = local.subscribers.swap_remove(place);
        self.channels.subscriptions -= 1;
        if let Some(backlog) = backlog {
            self.connections.waits(connection, backlog.bytes(), 0);
        }
        if local.subscribers.is_empty() {
            self.channels.local.remove(&channel);
            shrink_map(&mut self.channels.local);
            return;
        }
        let Some(moved) = local.subscribers.get(place) else { return };
        let Some(session) = self.connections.session_mut(moved.connection) else { return };
        let Some(own) = session.channels() else { return };
        for subscription in &mut own.subscriptions {
            if let Stage::Live { channel: of, place: at } = &mut subscription.stage
                && *of == channel
            {
                *at = place;
            }
        }
    }
}

impl Shard {
    /// A session was resumed: it has to subscribe again in time to stay a member.
    pub(in crate::shard) fn await_subscriptions(&mut self, key: ConnectionKey) {
        let by = self.now + 2 * self.delivery.node.config.heartbeat();
        let Some(session) = self.delivery.connections.session_mut(key) else { return };
        if let Some(own) = session.channels()
            && !own.subscriptions.is_empty()
        {
            own.returns_by = Some(by);
        }
    }

    /// Takes a session that was resumed out of channels to which it has not subscribed again.
    pub(in crate::shard) fn expire_subscriptions(&mut self, key: ConnectionKey) {
        let now: Duration = self.now;
        let Some(session) = self.delivery.connections.session_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        if own.returns_by.is_none_or(|by| now < by) {
            return;
        }
        own.returns_by = None;
        let is_away = |of: &mut Subscription| matches!(of.stage, Stage::Away { .. });
        let over: Vec<_> = own.subscriptions.extract_if(.., is_away).collect();
        for subscription in over {
            self.delivery.leave_channel(number, &subscription.name, &subscription.stage, true);
        }
    }
}
