//! A shard's work for the channels whose home it is.

use std::sync::Arc;

use playfield_room::Error;
use playfield_wire::{ErrorCode, excerpt};

use crate::channel::{
    Change, ChannelRule, Creator, Full, Payload, Publication, Published, Subscribing, home_of,
};
use crate::shard::mail::ShardMail;
use crate::shard::mail::channel::ChannelMail;
use crate::shard::session::outlet::Outlet;
use crate::shard::topics::Topics;

impl Topics {
    /// Does what mail about channels says, which came from another shard or from this one.
    pub(crate) fn channel_mail(&mut self, out: &mut Outlet<'_>, mail: ChannelMail) {
        match mail {
            ChannelMail::Subscribe { shard, connection, serial, name, member, since, creator } => {
                let session = member.session;
                let creator: Arc<dyn Creator> = creator;
                let subscribing = Subscribing { shard, member, since, creator: Some(creator) };
                let (start, change) = match self.begin(out, &name, subscribing) {
                    Ok((start, change)) => (Ok(start), change),
                    Err(error) => (Err(error), None),
                };
                let channel = start.as_ref().map_or(0, |start| start.channel);
                let mail = ChannelMail::Subscribed { connection, serial, name, session, start };
                self.mail_channel(out, shard, mail);
                self.announce(out, channel, change);
            }
            ChannelMail::Publish { name, user, payload, creator, answers } => {
                let creator = creator.map(|address| address as Arc<dyn Creator>);
                let offset = self.publish_here(out, &name, creator, (user, payload));
                match (answers, offset) {
                    (Some((shard, connection, request)), offset) => {
                        let mail = ChannelMail::Published { connection, request, offset };
                        self.mail_channel(out, shard, mail);
                    }
                    (None, Err(error)) => self.refuse_publication(out, &name, &error),
                    (None, Ok(_)) => {}
                }
            }
            ChannelMail::ListMembers { shard, connection, request, name } => {
                let members_max = out.env.node.config.limits.listed.members;
                let members = self.channels.home.members(&name, members_max);
                self.mail_channel(
                    out,
                    shard,
                    ChannelMail::Members { connection, request, members },
                );
            }
            ChannelMail::ReadHistory {
                shard,
                connection,
                request,
                name,
                kind,
                since,
                count_max,
            } => {
                let max = (count_max, out.env.node.config.tuning.history_listed_bytes);
                let past = self.channels.home.past(&name, since, max, self.channels.now);
                self.mail_channel(
                    out,
                    shard,
                    ChannelMail::History { connection, request, kind, past },
                );
            }
            ChannelMail::RelieveHistories => {
                self.channels.home.relieve(self.channels.now);
            }
            ChannelMail::Subscribed { connection, serial, name, session, start } => {
                self.subscribed(out, connection, serial, &name, session, start);
            }
            ChannelMail::Published { connection, request, offset } => {
                out.published(connection, request, offset);
            }
            ChannelMail::Change { channel, change } => self.deliver_change(out, channel, &change),
            ChannelMail::Members { connection, request, members } => {
                out.list_members(connection, request, &members);
            }
            ChannelMail::History { connection, request, kind, past } => {
                out.list_history(connection, request, kind, &past);
            }
        }
    }

    /// A session subscribes no longer to a channel whose home this is, if `live`, and is a member no
    /// longer, if it `leaves`.
    pub(crate) fn unsubscribe(
        &mut self,
        out: &mut Outlet<'_>,
        channel: u64,
        session: (u16, u64),
        live_and_leaves: (bool, bool),
    ) {
        let now = self.channels.now;
        let change = self.channels.home.unsubscribe(channel, session, live_and_leaves, now);
        self.announce(out, channel, change);
    }

    /// Informs the home of a channel that a session of this shard subscribes no longer.
    pub(super) fn mail_unsubscribe(
        &mut self,
        out: &mut Outlet<'_>,
        name: &str,
        channel: u64,
        session: u64,
        (live, leaves): (bool, bool),
    ) {
        let (home, shard) = (out.home_of(name), out.env.shard);
        if home == shard {
            self.unsubscribe(out, channel, (shard, session), (live, leaves));
        } else {
            out.outbound
                .post(home, ShardMail::Unsubscribe { channel, shard, session, live, leaves });
        }
    }

    /// Sends mail about channels to a shard, which may be this one.
    pub(super) fn mail_channel(&mut self, out: &mut Outlet<'_>, shard: u16, mail: ChannelMail) {
        if shard == out.env.shard {
            self.channel_mail(out, mail);
        } else {
            out.outbound.post(shard, ShardMail::Channel(Box::new(mail)));
        }
    }

    /// Publishes for a room, a service or the program. What can't be published is counted, and
    /// logged.
    pub(crate) fn publish(&mut self, out: &mut Outlet<'_>, name: &str, payload: Payload) {
        match out.env.node.check_publication(name, &payload) {
            Ok(()) => {
                let home = out.home_of(name);
                if out.outbound.outgoing[usize::from(home)].len()
                    >= out.env.node.config.limits.queues.mail
                {
                    let text = "limits.queues.mail: the mailbox of the channel's shard is full";
                    let error = Error::new(ErrorCode::Busy, text);
                    return self.refuse_publication(out, name, &error);
                }
                let (name, user, creator, answers) = (name.into(), None, None, None);
                let mail = ChannelMail::Publish { name, user, payload, creator, answers };
                self.mail_channel(out, home, mail);
            }
            Err(error) => self.refuse_publication(out, name, &error),
        }
    }

    #[cold]
    fn refuse_publication(&mut self, out: &mut Outlet<'_>, name: &str, error: &Error) {
        out.env.counters.publications_refused += 1;
        if self.publications_logged.is_due(error.code(), self.channels.now) {
            log::warn!(
                "a publication in the channel {:?} is refused: {error}. Further ones like it are \
                 only counted for a minute",
                excerpt(name, 64)
            );
        }
    }

    fn begin(
        &mut self,
        out: &mut Outlet<'_>,
        name: &Arc<str>,
        subscribing: Subscribing,
    ) -> Result<(crate::channel::Start, Option<Arc<Change>>), Error> {
        let rule = Arc::clone(out.env.node.channel_rule(name)?);
        let begun = self.channels.home.subscribe(name, &rule, subscribing, self.channels.now);
        begun.map_err(|full| out.too_many_channels(full))
    }

    /// Publishes in a channel whose home this is, and says at which offset; 0 if nobody subscribes
    /// and nothing is kept.
    fn publish_here(
        &mut self,
        out: &mut Outlet<'_>,
        name: &str,
        creator: Option<Arc<dyn Creator>>,
        publication: (Option<Arc<str>>, Payload),
    ) -> Result<u64, Error> {
        let rule: Arc<ChannelRule> = Arc::clone(out.env.node.channel_rule(name)?);
        let now = self.channels.now;
        let published = self.channels.home.publish(name, &rule, creator, publication, now);
        if let Some(shard) = self.channels.home.overfull() {
            self.mail_channel(out, shard, ChannelMail::RelieveHistories);
        }
        match published.map_err(|full| out.too_many_channels(full))? {
            Published::To(channel, publication) => {
                out.env.counters.publications += 1;
                let offset = publication.offset;
                self.send_to_shards(out, channel, &publication);
                Ok(offset)
            }
            Published::ToNobody => {
                out.env.counters.publications += 1;
                Ok(0)
            }
        }
    }

    /// Sends a publication once to each shard with subscribers. One whose mailbox has been full for
    /// long misses it, which its subscribers see by the offsets.
    ///
    /// This shard comes last: subscribers here that are too slow leave the channel, which changes
    /// the list of its shards.
    fn send_to_shards(&mut self, out: &mut Outlet<'_>, channel: u64, publication: &Publication) {
        let dropped = self.post_to_subscribers(out, channel, || ShardMail::Publication {
            channel,
            publication: publication.clone(),
        });
        out.env.counters.publications_dropped += dropped;
        self.deliver_publication(out, channel, publication);
    }

    /// Tells the shards with subscribers of a change of the members.
    fn announce(&mut self, out: &mut Outlet<'_>, channel: u64, change: Option<Arc<Change>>) {
        let Some(change) = change else { return };
        self.post_to_subscribers(out, channel, || {
            let change = Arc::clone(&change);
            ShardMail::Channel(Box::new(ChannelMail::Change { channel, change }))
        });
        self.deliver_change(out, channel, &change);
    }

    /// Posts mail to each other shard with subscribers of a channel. How many subscribers miss it,
    /// because the mailboxes of their shards are full.
    fn post_to_subscribers(
        &mut self,
        out: &mut Outlet<'_>,
        channel: u64,
        mail: impl Fn() -> ShardMail,
    ) -> u64 {
        let mailbox_max = out.env.node.config.limits.queues.mail;
        let mut missed = 0;
        // Nothing can change the list meanwhile.
        for &(shard, subscribers) in self.channels.home.shards(channel) {
            if shard == out.env.shard {
                continue;
            }
            let outgoing = &mut out.outbound.outgoing[usize::from(shard)];
            if outgoing.len() < mailbox_max {
                outgoing.push_back(mail());
            } else {
                missed += u64::from(subscribers);
            }
        }
        missed
    }
}

impl Outlet<'_> {
    /// The home of the channel of this name.
    pub(super) fn home_of(&mut self, name: &str) -> u16 {
        home_of(name, self.env.node.shards)
    }

    fn too_many_channels(&mut self, full: Full) -> Error {
        let config = &self.env.node.config;
        let text = match full {
            Full::Node => format!(
                "limits.channels.total: there are {} channels",
                config.limits.channels.total
            ),
            Full::Creator => {
                self.env.counters.channels_refused_by_address += 1;
                let most = config.limits.channels.per_address;
                format!("limits.channels.per_address: your address has created {most} channels")
            }
        };
        Error::new(ErrorCode::Limit, text)
    }
}
