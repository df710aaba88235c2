//! All channels whose home is one shard.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use foldhash::quality::SeedableRandomState;
use playfield_wire::client::Position;

use crate::channel::creator::{Charge, Creator};
use crate::channel::entry::Channel;
use crate::channel::shares::{Holder, Shares};
use crate::channel::{Change, ChannelRule, Member, Members, Past, Payload, Publication, Start};

/// The shard that is the home of the channel of this name.
#[must_use]
pub(crate) fn home_of(name: &str, shards: usize) -> u16 {
    // FNV-1a.
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    ((hash ^ (hash >> 32)) % shards.max(1) as u64) as u16
}

/// The number of channels and the bytes of history of all shards together.
#[derive(Debug)]
pub struct Totals {
    channels: AtomicUsize,
    history_bytes: AtomicUsize,
    shards: Box<[ShardTotal]>,
}

/// The history of the channels of one shard.
#[derive(Debug, Default)]
struct ShardTotal {
    history_bytes: AtomicUsize,
    /// Whether the shard was asked to keep less.
    is_asked: AtomicBool,
}

impl Totals {
    /// Of this many shards.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let shards = (0..shards).map(|_| ShardTotal::default()).collect();
        Self { channels: AtomicUsize::new(0), history_bytes: AtomicUsize::new(0), shards }
    }

    /// Bytes of the publications that all channels keep.
    #[must_use]
    pub fn history_bytes(&self) -> usize {
        self.history_bytes.load(Ordering::Relaxed)
    }

    /// Returns whether a shard's channels keep more than an equal part of what all may.
    fn is_over(&self, shard: usize, history_max: usize) -> bool {
        let bytes = self.shards[shard].history_bytes.load(Ordering::Relaxed);
        bytes > history_max / self.shards.len()
    }

    /// A channel of a shard keeps `after` bytes, and kept `before`.
    fn keep(&self, shard: usize, before: usize, after: usize) {
        for bytes in [&self.history_bytes, &self.shards[shard].history_bytes] {
            if after > before {
                bytes.fetch_add(after - before, Ordering::Relaxed);
            } else {
                bytes.fetch_sub(before - after, Ordering::Relaxed);
            }
        }
    }
}

/// The numbers of publications that were forgotten before their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Because all channels kept too much: those of whoever kept the most.
    pub by_node: u64,
    /// Because the channels of a [`Creator`] kept more than its share.
    pub by_creator: u64,
}

/// Limits on all channels together.
#[derive(Clone, Copy, Debug)]
pub struct TotalsMax {
    /// The maximum number of channels.
    pub channels: usize,
    /// The maximum bytes of history.
    pub history_bytes: usize,
}

/// There are as many channels as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Of all together.
    Node,
    /// Because of their [`Creator`].
    Creator,
}

/// A session that subscribes.
pub struct Subscribing {
    /// Its shard.
    pub shard: u16,
    /// The session as other members see it.
    pub member: Member,
    /// The last publication that it knows.
    pub since: Option<Position>,
    /// The creator that the channel is counted with, if it has to be created.
    pub creator: Option<Arc<dyn Creator>>,
}

/// The outcome of publishing.
#[derive(Debug)]
pub enum Published {
    /// Send this publication to all who subscribe to the channel with this number.
    To(u64, Publication),
    /// Nobody subscribes, and nothing is kept.
    ToNobody,
}

/// The channels whose home is one shard.
#[derive(Debug)]
pub struct Channels {
    /// Strangers choose the names, but not the seed of the hash.
    by_name: HashMap<Arc<str>, u64, SeedableRandomState>,
    by_number: HashMap<u64, Channel, RandomState>,
    /// The number of the next channel, and the distance to the one after that.
    next: u64,
    step: u64,
    seed: u64,
    upkeep: Upkeep,
    shard: usize,
    shares: Shares,
    evicted: Evicted,
}

impl Channels {
    /// No channels yet, on one of this many shards, which are those of `totals`. `linger` is how
    /// long a channel without subscribers is kept, so that those who come back soon know that they
    /// missed nothing.
    ///
    /// The seed is of the channels' epochs. Strangers, who choose names and learn epochs, must not
    /// be able to guess the state of the hash from it, or otherwise.
    #[must_use]
    pub fn new(
        (shard, shards): (u16, usize),
        (seed, hasher): (u64, SeedableRandomState),
        linger: Duration,
        totals: Arc<Totals>,
        max: TotalsMax,
    ) -> Self {
        Self {
            by_name: HashMap::with_hasher(hasher),
            by_number: HashMap::default(),
            next: u64::from(shard) + 1,
            step: shards as u64,
            seed,
            upkeep: Upkeep { due: BinaryHeap::new(), linger, totals, max },
            shard: usize::from(shard),
            shares: Shares::default(),
            evicted: Evicted::default(),
        }
    }

    /// Returns the number of channels.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// A session subscribes to the channel of this name, which it creates if there is none.
    ///
    /// # Errors
    /// If there are too many channels.
    pub fn subscribe(
        &mut self,
        name: &Arc<str>,
        rule: &Arc<ChannelRule>,
        subscribing: Subscribing,
        now: Duration,
    ) -> Result<(Start, Option<Arc<Change>>), Full> {
        let Subscribing { shard, member, since, creator } = subscribing;
        let number = self.create(name, rule, creator, now)?;
        self.with(number, now, |channel| channel.subscribe(number, shard, member, since, now))
            .ok_or(Full::Node)
    }

    /// A session subscribes no longer, if `live`, and is a member no longer, if it `leaves`. The
    /// change of the members, if others should hear of it.
    pub fn unsubscribe(
        &mut self,
        number: u64,
        (shard, session): (u16, u64),
        live_and_leaves: (bool, bool),
        now: Duration,
    ) -> Option<Arc<Change>> {
        let end = |channel: &mut Channel| channel.unsubscribe(shard, session, live_and_leaves, now);
        self.with(number, now, end).flatten()
    }

    /// Publishes in the channel of this name. It is created, for `creator`, if it would keep the
    /// publication.
    ///
    /// # Errors
    /// If there are too many channels.
    pub fn publish(
        &mut self,
        name: &str,
        rule: &Arc<ChannelRule>,
        creator: Option<Arc<dyn Creator>>,
        (user, payload): (Option<Arc<str>>, Payload),
        now: Duration,
    ) -> Result<Published, Full> {
        let number = match self.by_name.get(name) {
            Some(&number) => number,
            None if rule.keeps_history() => self.create(&name.into(), rule, creator, now)?,
            None => return Ok(Published::ToNobody),
        };
        let publish = |channel: &mut Channel| channel.publish(user, payload, now);
        let publication = self.with(number, now, publish);
        Ok(publication
            .map_or(Published::ToNobody, |publication| Published::To(number, publication)))
    }

    /// The shards that have subscribers of a channel, and how many.
    #[must_use]
    pub fn shards(&self, number: u64) -> &[(u16, u32)] {
        self.by_number.get(&number).map_or(&[], Channel::shards)
    }

    /// At most this many members of the channel with this name.
    #[must_use]
    pub fn members(&self, name: &str, members_max: usize) -> Members {
        let channel = self.by_name.get(name).and_then(|number| self.by_number.get(number));
        channel.map_or_else(Members::default, |channel| channel.members(members_max))
    }

    /// At most this many publications of the channel with this name, and this many bytes of them.
    pub fn past(
        &mut self,
        name: &str,
        since: Option<Position>,
        max: (usize, usize),
        now: Duration,
    ) -> Past {
        let Some(&number) = self.by_name.get(name) else { return Past::default() };
        self.with(number, now, |channel| channel.past(since, max, now)).unwrap_or_default()
    }

    /// Forgets what is too old, and ends channels that nobody needs.
    pub fn expire(&mut self, now: Duration) {
        while let Some(number) = self.upkeep.due(now) {
            let Some(channel) = self.by_number.get_mut(&number) else { continue };
            if channel.look_at > now {
                continue; // Another deadline has replaced this one.
            }
            channel.look_at = Duration::MAX;
            self.with(number, now, |channel| channel.history.expire(now));
            let Entry::Occupied(entry) = self.by_number.entry(number) else { continue };
            if entry.get().is_over(self.upkeep.linger, now) {
                self.by_name.remove(&entry.get().name);
                self.upkeep.totals.channels.fetch_sub(1, Ordering::Relaxed);
                entry.remove();
            }
        }
    }

    /// Forgets publications while all channels keep more than they may and those of this shard more
    /// than an equal part. Whoever keeps the most loses the oldest of its largest channel.
    pub fn relieve(&mut self, now: Duration) {
        let totals = Arc::clone(&self.upkeep.totals);
        totals.shards[self.shard].is_asked.store(false, Ordering::Relaxed);
        let history_max = self.upkeep.max.history_bytes;
        while totals.history_bytes.load(Ordering::Relaxed) > history_max
            && totals.is_over(self.shard, history_max)
            && let Some(largest) = self.shares.largest()
        {
            self.evicted.by_node += 1;
            self.forget(largest, now);
        }
    }

    /// A shard that has to be [relieved](Self::relieve), because all channels keep too much, and
    /// has not been asked.
    #[must_use]
    pub fn overfull(&self) -> Option<u16> {
        let Upkeep { totals, max, .. } = &self.upkeep;
        if totals.history_bytes.load(Ordering::Relaxed) <= max.history_bytes {
            return None;
        }
        let is_asked = |shard: usize| totals.shards[shard].is_asked.swap(true, Ordering::Relaxed);
        let overfull = |shard: &usize| {
            *shard != self.shard && totals.is_over(*shard, max.history_bytes) && !is_asked(*shard)
        };
        (0..totals.shards.len()).find(overfull).map(|shard| shard as u16)
    }

    /// Returns the numbers of publications that were forgotten before their time.
    #[must_use]
    pub fn evicted(&self) -> Evicted {
        self.evicted
    }

    /// When [`expire`](Self::expire) has something to do.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.upkeep.due.peek().map(|Reverse((at, _))| *at)
    }

    /// All channels, in the order of their creation.
    pub(super) fn all(&self) -> impl Iterator<Item = &Channel> {
        let mut all: Vec<_> = self.by_number.iter().collect();
        all.sort_unstable_by_key(|(number, _)| **number);
        all.into_iter().map(|(_, channel)| channel)
    }

    /// The number of the channel of this name, which is created if there is none.
    pub(super) fn create(
        &mut self,
        name: &Arc<str>,
        rule: &Arc<ChannelRule>,
        creator: Option<Arc<dyn Creator>>,
        now: Duration,
    ) -> Result<u64, Full> {
        if let Some(&number) = self.by_name.get(name) {
            return Ok(number);
        }
        let Upkeep { totals, max, .. } = &self.upkeep;
        if totals.channels.fetch_add(1, Ordering::Relaxed) >= max.channels {
            totals.channels.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Node);
        }
        let Some(charge) = Charge::of(creator) else {
            totals.channels.fetch_sub(1, Ordering::Relaxed);
            return Err(Full::Creator);
        };
        let number = self.next;
        self.next += self.step;
        let epoch = epoch(self.seed, number);
        let channel = Channel::new(Arc::clone(name), Arc::clone(rule), charge, epoch, now);
        self.by_name.insert(Arc::clone(name), number);
        self.by_number.insert(number, channel);
        Ok(number)
    }

    /// Changes a channel, and sees to what it keeps and when it is looked at again.
    pub(super) fn with<T>(
        &mut self,
        number: u64,
        now: Duration,
        change: impl FnOnce(&mut Channel) -> T,
    ) -> Option<T> {
        let channel = self.by_number.get_mut(&number)?;
        let before = channel.history.bytes();
        let result = change(channel);
        let after = channel.history.bytes();
        self.upkeep.schedule(channel, number, now);
        if after != before {
            channel.charge.keeps(before, after);
            let is_over = after > before && channel.charge.is_over();
            let holder = channel.charge.holder(number);
            self.shares.changed(holder, number, before, after);
            self.upkeep.totals.keep(self.shard, before, after);
            if is_over {
                self.relieve_creator(number, holder, now);
            }
            if after > before {
                self.relieve(now);
            }
        }
        Some(result)
    }

    /// The creator of a channel keeps more than its share: it loses the oldest of its largest.
    fn relieve_creator(&mut self, number: u64, holder: Holder, now: Duration) {
        while self.by_number.get(&number).is_some_and(|channel| channel.charge.is_over())
            && let Some(largest) = self.shares.largest_of(holder)
        {
            self.evicted.by_creator += 1;
            self.forget(largest, now);
        }
    }

    /// A channel forgets its oldest publication. What it keeps is the latest, without a gap.
    fn forget(&mut self, number: u64, now: Duration) {
        self.with(number, now, |channel| channel.history.forget());
    }
}

/// Limits on all channels, and the times at which each is looked at again.
#[derive(Debug)]
struct Upkeep {
    due: BinaryHeap<Reverse<(Duration, u64)>>,
    linger: Duration,
    totals: Arc<Totals>,
    max: TotalsMax,
}

impl Upkeep {
    /// The number of a channel that may have to be looked at now. Its deadline is forgotten.
    fn due(&mut self, now: Duration) -> Option<u64> {
        let Reverse((at, number)) = *self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        Some(number)
    }

    /// Notes when a channel has to be looked at again.
    fn schedule(&mut self, channel: &mut Channel, number: u64, now: Duration) {
        let next = channel.next(self.linger, now);
        if next < channel.look_at {
            channel.look_at = next;
            self.due.push(Reverse((next, number)));
        }
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        let totals = &self.upkeep.totals;
        totals.channels.fetch_sub(self.by_number.len(), Ordering::Relaxed);
        for channel in self.by_number.values() {
            let bytes = channel.history.bytes();
            channel.charge.keeps(bytes, 0);
            totals.keep(self.shard, bytes, 0);
        }
    }
}

/// Distinguishes a channel from others, and from one of the same name before it. It has 53 bits, so
/// that it is a number in JSON. The mix is that of SplitMix64.
fn epoch(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) >> 11
}
