//! Requests of clients to channels.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::Error;
use playfield_wire::client::Position;
use playfield_wire::{ErrorCode, RequestNumber, excerpt};

use crate::addresses::Pace;
use crate::channel::{Asker, ChannelRule, Member, Payload};
use crate::config::RateLimit;
use crate::node::Node;
use crate::panics::guard;
use crate::shard::allowance::Rate;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::channel::ChannelMail;
use crate::shard::session::Session;
use crate::shard::session::outlet::Outlet;
use crate::shard::subscriptions::{SessionChannels, Stage, Subscription};
use crate::shard::topics::Topics;

/// The number of channels remembered: those that a session named last.
const NAMED_MAX: usize = 8;

/// The kind of a client's request to a channel.
#[derive(Clone, Copy)]
enum Wish {
    Subscribe,
    Publish,
    Members,
    History,
}

impl Node {
    /// The rule of the channel of this name.
    pub(crate) fn channel_rule(&self, name: &str) -> Result<&Arc<ChannelRule>, Error> {
        let bytes_max = self.config.limits.name_bytes.channel;
        if name.len() > bytes_max {
            let text = format!(
                "limits.name_bytes.channel: a name of {} bytes, past {bytes_max}",
                name.len()
            );
            return Err(Error::new(ErrorCode::Limit, text));
        }
        self.channel_rules.of(name).ok_or_else(|| {
            let text = format!("no rule of the node matches the channel {:?}", excerpt(name, 64));
            Error::new(ErrorCode::UnknownChannel, text)
        })
    }

    /// Whether a room, a service or the program may publish this in the channel of this name.
    pub(crate) fn check_publication(&self, name: &str, payload: &Payload) -> Result<(), Error> {
        let rule = self.channel_rule(name)?;
        if rule.payload_kind() != payload.kind() {
            let text = match payload {
                Payload::Json(_) => "payloads of this channel are bytes: publish bytes",
                Payload::Bytes(_) => "payloads of this channel are JSON: publish a message",
            };
            return Err(Error::new(ErrorCode::BadPayload, text));
        }
        self.check_size(payload.as_slice().len())
    }

    fn check_size(&self, bytes: usize) -> Result<(), Error> {
        let bytes_max = self.config.limits.payload_bytes;
        if bytes > bytes_max {
            let text =
                format!("limits.payload_bytes: a payload of {bytes} bytes, past {bytes_max}");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        Ok(())
    }
}

impl Session {
    /// Asks a rule about this session. A rule whose check panics allows nothing.
    pub(super) fn asks(&self, ask: impl FnOnce(&Asker<'_>) -> bool) -> bool {
        let of_user = self.claims();
        let claims = |name: &str| of_user.get(name);
        let asker = Asker::new(self.user(), self.name(), &claims);
        guard("the check of a channel's rule", || ask(&asker)).unwrap_or(false)
    }

    /// The session, as other subscribers see it.
    fn as_member(&self) -> Member {
        let user = self.user().map(Into::into);
        Member { session: self.number, user, name: self.name().into() }
    }
}

impl SessionChannels {
    /// The session names a channel that may have to be created for it, if it and its address may.
    /// Those that it subscribes to, and the last that it published in, do not count.
    pub(in crate::shard) fn open(
        &mut self,
        name: &str,
        now: Duration,
        limit: RateLimit,
        address_may: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.subscriptions.iter().any(|subscription| *subscription.name == *name)
            || self.named.iter().any(|known| **known == *name)
        {
            return Ok(());
        }
        let rate = Rate::new("limits.session.channels_opened", limit);
        self.opened.check(now, rate)?;
        address_may()?;
        self.opened.take(now, rate);
        if self.named.len() >= NAMED_MAX {
            self.named.pop_front();
        }
        self.named.push_back(name.into());
        Ok(())
    }
}

impl Topics {
    /// A client subscribes to a channel.
    pub(in crate::shard) fn subscribe(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
        since: Option<Position>,
        presence: bool,
    ) {
        if let Err(error) = self.try_subscribe(out, key, request, name, since, presence) {
            out.send_error(key, Some(request), None, &error);
        }
    }

    fn try_subscribe(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
        since: Option<Position>,
        presence: bool,
    ) -> Result<(), Error> {
        let rule = out.admit_to_channel(key, name, Wish::Subscribe)?;
        let node = Arc::clone(&out.env.node);
        let Some(connection) = out.links.get_mut(key) else { return Ok(()) };
        let creator = Arc::clone(connection.tally.address());
        let Some(session) = out.sessions.get_mut(key) else { return Ok(()) };
        if presence && !session.asks(|asker| rule.may_see_members(asker, name)) {
            let text = format!(
                "this session may not see who subscribes to {:?}: subscribe without presence",
                excerpt(name, 64)
            );
            return Err(Error::new(ErrorCode::Forbidden, text));
        }
        let member = session.as_member();
        let own = session.extras_mut().channels.get_or_insert_default();
        let known = own.subscriptions.iter().position(|of| *of.name == *name);
        let name: Arc<str> = match known {
            Some(at) => Arc::clone(&own.subscriptions[at].name),
            None => name.into(),
        };
        let mut member_of = None;
        match known.map(|at| &own.subscriptions[at].stage) {
            Some(Stage::Pending { .. }) => {
                let text = "an earlier `subscribe` to this channel is not answered yet";
                return Err(Error::new(ErrorCode::Busy, text));
            }
            // The second takes the place of the first.
            Some(&Stage::Live { channel, .. }) => {
                member_of = Some(channel);
                self.pause_subscription(out, key, channel);
            }
            Some(&Stage::Away { channel }) => member_of = Some(channel),
            None => {
                let subscriptions_max = node.config.limits.session.subscriptions;
                if own.subscriptions.len() >= subscriptions_max {
                    let text = format!(
                        "limits.session.subscriptions: the session has {subscriptions_max}"
                    );
                    return Err(Error::new(ErrorCode::Limit, text));
                }
            }
        }
        let Some(session) = out.sessions.get_mut(key) else { return Ok(()) };
        let Some(own) = session.channels() else { return Ok(()) };
        own.serial = own.serial.wrapping_add(1);
        let serial = own.serial;
        let stage = Stage::Pending { serial, request, wants_presence: presence, member_of };
        match known {
            Some(at) => own.subscriptions[at].stage = stage,
            None => own.subscriptions.push(Subscription { name: Arc::clone(&name), stage }),
        }
        let (shard, connection) = (out.env.shard, key);
        let home = out.home_of(&name);
        let mail =
            ChannelMail::Subscribe { shard, connection, serial, name, member, since, creator };
        self.mail_home(out, key, home, mail);
        Ok(())
    }

    /// A client ends a subscription.
    pub(in crate::shard) fn unsubscribe_client(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        channel: u64,
    ) {
        self.end_subscription(out, key, channel);
    }

    /// A client publishes.
    pub(in crate::shard) fn publish_for_client(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        name: &str,
        payload: &[u8],
    ) {
        if let Err(error) = self.try_publish(out, key, request, name, payload) {
            out.send_error(key, request, None, &error);
        }
    }

    fn try_publish(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: Option<RequestNumber>,
        name: &str,
        payload: &[u8],
    ) -> Result<(), Error> {
        let rule = out.admit_to_channel(key, name, Wish::Publish)?;
        let Some(connection) = out.links.get(key) else { return Ok(()) };
        let Some(session) = out.sessions.get(key) else { return Ok(()) };
        let creator = rule.keeps_history().then(|| Arc::clone(connection.tally.address()));
        let user: Option<Arc<str>> = session.user().map(Into::into);
        let read = Payload::read(rule.payload_kind(), connection.dialect.format, payload);
        let payload = read.map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))?;
        out.env.node.check_size(payload.as_slice().len())?;
        let home = out.home_of(name);
        let answers = request.map(|request| (out.env.shard, key, request));
        let name = name.into();
        self.mail_home(
            out,
            key,
            home,
            ChannelMail::Publish { name, user, payload, creator, answers },
        );
        Ok(())
    }

    /// A client asks who subscribes.
    pub(in crate::shard) fn ask_members(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
    ) {
        match out.admit_to_channel(key, name, Wish::Members) {
            Ok(_) => {
                let home = out.home_of(name);
                let (shard, connection, name) = (out.env.shard, key, name.into());
                let mail = ChannelMail::ListMembers { shard, connection, request, name };
                self.mail_home(out, key, home, mail);
            }
            Err(error) => out.send_error(key, Some(request), None, &error),
        }
    }

    /// A client asks for past publications.
    pub(in crate::shard) fn ask_history(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        request: RequestNumber,
        name: &str,
        since: Option<Position>,
        limit: u32,
    ) {
        let listed_max = out.env.node.config.limits.listed.publications;
        let count_max = if limit == 0 { listed_max } else { listed_max.min(limit as usize) };
        match out.admit_to_channel(key, name, Wish::History) {
            Ok(rule) => {
                let home = out.home_of(name);
                let mail = ChannelMail::ReadHistory {
                    shard: out.env.shard,
                    connection: key,
                    request,
                    name: name.into(),
                    kind: rule.payload_kind(),
                    since,
                    count_max,
                };
                self.mail_home(out, key, home, mail);
            }
            Err(error) => out.send_error(key, Some(request), None, &error),
        }
    }

    /// Sends mail of a client to the home of a channel. While the mailbox there is full, nothing
    /// more is read from the client.
    fn mail_home(
        &mut self,
        out: &mut Outlet<'_>,
        key: ConnectionKey,
        home: u16,
        mail: ChannelMail,
    ) {
        if out.outbound.congested[usize::from(home)]
            && let Some(connection) = out.links.get_mut(key)
            && !connection.pause.mailbox
        {
            connection.pause.mailbox = true;
            out.links.waiting_for_mailbox.push((home, key));
        }
        self.mail_channel(out, home, mail);
    }
}

impl Outlet<'_> {
    /// Whether a session may do something with a channel, by the rule of that channel and the
    /// session's rates.
    fn admit_to_channel(
        &mut self,
        key: ConnectionKey,
        name: &str,
        wish: Wish,
    ) -> Result<Arc<ChannelRule>, Error> {
        let node = Arc::clone(&self.env.node);
        let now = self.env.now;
        let gone = || Error::new(ErrorCode::Internal, "the session has ended");
        let connection = self.links.get(key).ok_or_else(gone)?;
        let address = connection.tally.address();
        let session = self.sessions.get_mut(key).ok_or_else(gone)?;
        let own: &mut SessionChannels = session.extras_mut().channels.get_or_insert_default();
        let config = &node.config;
        let (allowance, setting, limit) = match wish {
            Wish::Subscribe => (&mut own.subscribes, "tuning.subscribes", config.tuning.subscribes),
            Wish::Publish => {
                let limit = config.limits.session.publishes;
                (&mut own.publishes, "limits.session.publishes", limit)
            }
            Wish::Members | Wish::History => {
                (&mut own.reads, "tuning.channel_reads", config.tuning.channel_reads)
            }
        };
        let rate = Rate::new(setting, limit);
        allowance.check(now, rate)?;
        allowance.take(now, rate);
        let rule = node.channel_rule(name)?;
        let may = session.asks(|asker| match wish {
            Wish::Subscribe => rule.may_subscribe(asker, name),
            Wish::Publish => rule.may_publish(asker, name),
            Wish::Members => rule.may_see_members(asker, name),
            Wish::History => rule.may_read_history(asker, name),
        });
        if may {
            let rule = Arc::clone(rule);
            if let (Wish::Subscribe | Wish::Publish, Some(own)) = (wish, session.channels()) {
                let counters = &mut self.env.counters;
                own.open(name, now, config.limits.session.channels_opened, || {
                    let may = address.take(Pace::Channel, now);
                    counters.channels_refused_by_address += u64::from(may.is_err());
                    may
                })?;
            }
            return Ok(rule);
        }
        let name = excerpt(name, 64);
        let text = match wish {
            Wish::Subscribe => format!("this session may not subscribe to {name:?}"),
            Wish::Publish => format!("this session may not publish in {name:?}"),
            Wish::Members => format!("this session may not see who subscribes to {name:?}"),
            Wish::History => format!("this session may not read the history of {name:?}"),
        };
        Err(Error::new(ErrorCode::Forbidden, text))
    }
}
