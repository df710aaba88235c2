//! The end of subscriptions, and what becomes of them while their session is away.

use std::sync::Arc;
use std::time::Duration;

use crate::memory::shrink_map;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;
use crate::shard::subscriptions::{SessionChannels, Stage, Subscription};
use crate::shard::topics::Topics;
use crate::shard::topics::channels::Subscriber;

impl Topics {
    /// Ends a subscription of a session for good.
    pub(super) fn end_subscription(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        channel: u64,
    ) {
        let Some(session) = out.sessions.get_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        let is_it =
            |stage: &Stage| matches!(stage, Stage::Live { channel: of, .. } if *of == channel);
        let Some(at) = own.subscriptions.iter().position(|of| is_it(&of.stage)) else { return };
        let subscription = own.subscriptions.swap_remove(at);
        self.leave_channel(out, number, &subscription.name, &subscription.stage, true);
    }

    /// Ends a subscription, but the session stays a member, because it is about to subscribe again.
    pub(super) fn pause_subscription(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        channel: u64,
    ) {
        let Some(session) = out.sessions.get_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        for subscription in &mut own.subscriptions {
            if matches!(subscription.stage, Stage::Live { channel: of, .. } if of == channel) {
                let stage = std::mem::replace(&mut subscription.stage, Stage::Away { channel });
                let name = Arc::clone(&subscription.name);
                return self.leave_channel(out, number, &name, &stage, false);
            }
        }
    }

    /// A session has lost its connection: its subscriptions end, but it stays a member.
    pub(crate) fn suspend_channels(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let Some(session) = out.sessions.get_mut(key) else { return };
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
            self.leave_channel(out, number, &name, &stage, false);
        }
    }

    /// A session ends, and with it all its subscriptions.
    pub(crate) fn end_channels(
        &mut self,
        out: &mut Outlet<'_>,
        session: u64,
        own: SessionChannels,
    ) {
        for subscription in own.subscriptions {
            self.leave_channel(out, session, &subscription.name, &subscription.stage, true);
        }
    }

    /// Takes a subscription out of the tables of this shard and of the home.
    pub(super) fn leave_channel(
        &mut self,
        out: &mut Outlet<'_>,
        session: u64,
        name: &str,
        stage: &Stage,
        leaves: bool,
    ) {
        let (channel, live) = match *stage {
            // The answer of the home finds nobody.
            Stage::Pending { .. } => return,
            Stage::Live { channel, place } => {
                self.remove_subscriber(out, channel, place);
                (channel, true)
            }
            Stage::Away { channel } => (channel, false),
        };
        self.mail_unsubscribe(out, name, channel, session, (live, leaves));
    }

    /// Removes the subscriber at this place. The last one takes its place, and is informed.
    fn remove_subscriber(&mut self, out: &mut Outlet<'_>, channel: u64, place: usize) {
        let Some(local) = self.channels.local.get_mut(&channel) else { return };
        if place >= local.subscribers.len() {
            return;
        }
        let Subscriber { connection, backlog, .. } = local.subscribers.swap_remove(place);
        self.channels.subscriptions -= 1;
        if let Some(backlog) = backlog {
            out.links.waits(connection, backlog.bytes(), 0);
        }
        if local.subscribers.is_empty() {
            self.channels.local.remove(&channel);
            shrink_map(&mut self.channels.local);
            return;
        }
        let Some(moved) = local.subscribers.get(place) else { return };
        let Some(session) = out.sessions.get_mut(moved.connection) else { return };
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

impl Topics {
    /// Takes a session that was resumed out of channels to which it has not subscribed again.
    pub(in crate::shard) fn expire_subscriptions(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
    ) {
        let now: Duration = out.env.now;
        let Some(session) = out.sessions.get_mut(key) else { return };
        let number = session.number;
        let Some(own) = session.channels() else { return };
        if own.returns_by.is_none_or(|by| now < by) {
            return;
        }
        own.returns_by = None;
        let is_away = |of: &mut Subscription| matches!(of.stage, Stage::Away { .. });
        let over: Vec<_> = own.subscriptions.extract_if(.., is_away).collect();
        for subscription in over {
            self.leave_channel(out, number, &subscription.name, &subscription.stage, true);
        }
    }
}

impl Outlet<'_> {
    /// A session was resumed: it has to subscribe again in time to stay a member.
    pub(in crate::shard) fn await_subscriptions(&mut self, key: ConnectionKey) {
        let by = self.env.now + 2 * self.env.node.config.timeouts.heartbeat;
        let Some(session) = self.sessions.get_mut(key) else { return };
        if let Some(own) = session.channels()
            && !own.subscriptions.is_empty()
        {
            own.returns_by = Some(by);
        }
    }
}
