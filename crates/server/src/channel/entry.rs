//! One channel, where its home is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::client::Position;

use crate::channel::creator::Charge;
use crate::channel::frozen::ChannelPart;
use crate::channel::history::History;
use crate::channel::{ChannelRule, Payload, Publication};

/// A session that subscribes, as others may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The session's number.
    pub session: u64,
    /// Its verified user, if it has one.
    pub user: Option<Arc<str>>,
    /// Its display name.
    pub name: Arc<str>,
}

/// A session became a member, or is one no longer.
#[derive(Debug)]
pub struct Change {
    /// Counts the changes of a channel.
    pub sequence: u64,
    /// Whether it became one.
    pub joined: bool,
    /// The session.
    pub member: Member,
}

/// The start of a subscription.
#[derive(Debug)]
pub struct Start {
    /// The channel's number.
    pub channel: u64,
    /// New for each creation of the channel.
    pub epoch: u64,
    /// The offset of the last publication before those that follow.
    pub offset: u64,
    /// Whether all that the subscriber has missed follows.
    pub recovered: bool,
    /// The publications that it has missed and the channel still keeps.
    pub publications: Vec<Publication>,
    /// The number of sessions that are members, this one included.
    pub members: u64,
}

/// The members of a channel.
#[derive(Debug, Default)]
pub struct Members {
    /// The number of the last change.
    pub sequence: u64,
    /// The number of members.
    pub count: u64,
    /// Some of them: all, unless they are more than were asked for.
    pub members: Vec<Member>,
}

/// The history of a channel.
#[derive(Debug, Default)]
pub struct Past {
    /// New for each creation of the channel.
    pub epoch: u64,
    /// The offset of the last publication.
    pub offset: u64,
    /// Publications that are kept, the oldest first.
    pub publications: Vec<Publication>,
}

/// A channel: the order of its publications, its history, its members, and the shards that
/// subscribe for sessions of theirs.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) name: Arc<str>,
    pub(crate) rule: Arc<ChannelRule>,
    /// Counts the channel with its creator until it is dropped.
    pub(crate) charge: Charge,
    epoch: u64,
    offset: u64,
    pub(crate) history: History,
    members: BTreeMap<u64, Member>,
    changes: u64,
    /// The number of subscribers of each shard. Shards with none are not here.
    shards: Vec<(u16, u32)>,
    /// Since when nobody subscribes.
    idle_since: Duration,
    /// When it is looked at next; `Duration::MAX` if it need not be.
    pub(crate) look_at: Duration,
}

impl Channel {
    pub(crate) fn new(
        name: Arc<str>,
        rule: Arc<ChannelRule>,
        charge: Charge,
        epoch: u64,
        now: Duration,
    ) -> Self {
        Self {
            name,
            rule,
            charge,
            epoch,
            offset: 0,
            history: History::default(),
            members: BTreeMap::new(),
            changes: 0,
            shards: Vec::new(),
            idle_since: now,
            look_at: Duration::MAX,
        }
    }

    /// The channel as a value, for another process.
    pub(crate) fn part(&self) -> ChannelPart {
        ChannelPart {
            name: self.name.to_string(),
            epoch: self.epoch,
            offset: self.offset,
            changes: self.changes,
            kept: self.history.parts(),
        }
    }

    /// Goes on as this one did in another process.
    pub(crate) fn go_on(&mut self, part: ChannelPart) {
        (self.epoch, self.offset, self.changes) = (part.epoch, part.offset, part.changes);
        let kind = self.rule.payload_kind();
        self.history.go_on(part.kept.into_iter().map(|kept| kept.publication(kind)));
    }

    /// A session of a shard subscribes.
    pub(crate) fn subscribe(
        &mut self,
        channel: u64,
        shard: u16,
        member: Member,
        since: Option<Position>,
        now: Duration,
    ) -> (Start, Option<Arc<Change>>) {
        match self.shards.iter_mut().find(|(of, _)| *of == shard) {
            Some((_, count)) => *count += 1,
            None => self.shards.push((shard, 1)),
        }
        let change = if self.rule.keeps_members() && !self.members.contains_key(&member.session) {
            self.members.insert(member.session, member.clone());
            Some(self.change(true, member))
        } else {
            None
        };
        let (recovered, publications) = self.missed(since, now);
        let first = publications.first().map(|publication| publication.offset - 1);
        let start = Start {
            channel,
            epoch: self.epoch,
            offset: first.unwrap_or(self.offset),
            recovered,
            publications,
            members: self.members.len() as u64,
        };
        (start, change)
    }

    /// Whether the history has all that was published after this position, and what it has of it.
    fn missed(&mut self, since: Option<Position>, now: Duration) -> (bool, Vec<Publication>) {
        let Some(since) = since else { return (false, Vec::new()) };
        self.history.expire(now);
        let is_known = since.epoch == self.epoch && since.offset <= self.offset;
        let next = self.history.first().unwrap_or(self.offset + 1);
        let recovered = is_known && since.offset + 1 >= next;
        let after = if is_known { since.offset } else { 0 };
        (recovered, self.history.after(after).cloned().collect())
    }

    /// A session of a shard subscribes no longer, if `live`, and is a member no longer, if it
    /// `leaves`.
    pub(crate) fn unsubscribe(
        &mut self,
        shard: u16,
        session: u64,
        (live, leaves): (bool, bool),
        now: Duration,
    ) -> Option<Arc<Change>> {
        if live && let Some(at) = self.shards.iter().position(|(of, _)| *of == shard) {
            let (_, count) = &mut self.shards[at];
            *count -= 1;
            if *count == 0 {
                self.shards.swap_remove(at);
            }
        }
        let member = if leaves { self.members.remove(&session) } else { None };
        if self.is_idle() {
            self.idle_since = now;
        }
        member.map(|member| self.change(false, member))
    }

    fn change(&mut self, joined: bool, member: Member) -> Arc<Change> {
        self.changes += 1;
        Arc::new(Change { sequence: self.changes, joined, member })
    }

    /// The next publication.
    pub(crate) fn publish(
        &mut self,
        user: Option<Arc<str>>,
        payload: Payload,
        now: Duration,
    ) -> Publication {
        self.offset += 1;
        let publication = Publication { offset: self.offset, user, payload };
        if self.rule.keeps_history() {
            self.history.push(now, &self.rule, publication.clone());
        }
        publication
    }

    pub(crate) fn members(&self, members_max: usize) -> Members {
        Members {
            sequence: self.changes,
            count: self.members.len() as u64,
            members: self.members.values().take(members_max).cloned().collect(),
        }
    }

    /// At most this many past publications, and this many bytes of them, but at least one.
    pub(crate) fn past(
        &mut self,
        since: Option<Position>,
        (count_max, bytes_max): (usize, usize),
        now: Duration,
    ) -> Past {
        self.history.expire(now);
        let after = since.filter(|since| since.epoch == self.epoch).map_or(0, |since| since.offset);
        let mut bytes = 0;
        let fits = |publication: &&Publication| {
            bytes += publication.memory();
            bytes <= bytes_max || bytes == publication.memory()
        };
        let publications = self.history.after(after).take(count_max).take_while(fits).cloned();
        Past { epoch: self.epoch, offset: self.offset, publications: publications.collect() }
    }

    /// The shards that have subscribers.
    pub(crate) fn shards(&self) -> &[(u16, u32)] {
        &self.shards
    }

    /// Returns whether nobody subscribes.
    pub(crate) fn is_idle(&self) -> bool {
        self.shards.is_empty() && self.members.is_empty()
    }

    /// Returns whether it may end: nobody has subscribed for a while, and nothing is kept.
    pub(crate) fn is_over(&self, linger: Duration, now: Duration) -> bool {
        self.is_idle() && self.history.is_empty() && self.idle_since.saturating_add(linger) <= now
    }

    /// When something of it is over.
    pub(crate) fn next(&self, linger: Duration, now: Duration) -> Duration {
        if self.is_idle() && self.history.is_empty() {
            return self.idle_since.saturating_add(linger);
        }
        // Not for each publication, as they come.
        let soon = || now.saturating_add(self.rule.history_age / 4);
        self.history.expires_at().map_or(Duration::MAX, |at| at.max(soon()))
    }
}
