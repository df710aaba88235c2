//! Deliveries to the subscriptions of this process: their times, their order, and losses.

use std::collections::{BTreeMap, HashMap};

use playfield_client::session::{Subscribed, SubscriptionNumber};
use playfield_wire::server;
use rustix::time::{ClockId, clock_gettime};

use crate::counts::Counts;
use crate::stamp::Stamp;

/// The time without deliveries after which a load counts what is missing.
const QUIET_NS: u64 = 500_000_000;

/// A subscription of one connection.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) number: SubscriptionNumber,
    /// The channel's number in this process.
    pub(crate) channel: u32,
    /// Says whether the node has answered it.
    pub(crate) is_open: bool,
    epoch: u64,
    /// The last offset.
    reached: u64,
    /// Bits for the last 64 publications that say which have come; the lowest bit is the last.
    seen: u64,
}

impl Subscription {
    pub(crate) fn new(number: SubscriptionNumber, channel: u32) -> Self {
        Self { number, channel, is_open: false, epoch: 0, reached: 0, seen: u64::MAX }
    }

    /// The client has ignored a delivery, as its offset is not after the last.
    pub(crate) fn ignored(&mut self, offset: u64, counts: &mut Counts) {
        let bit = self.reached.checked_sub(offset).filter(|age| *age < 64).map(|age| 1_u64 << age);
        match bit.filter(|bit| self.seen & bit == 0) {
            Some(bit) => {
                self.seen |= bit;
                counts.deliveries_out_of_order += 1;
                // This was counted when the one after it came.
                counts.deliveries_lost = counts.deliveries_lost.saturating_sub(1);
            }
            None => counts.deliveries_repeated += 1,
        }
    }
}

/// Deliveries to all subscriptions of this process to a channel.
#[derive(Debug)]
struct Channel {
    name: String,
    epoch: u64,
    /// The last offset that is known.
    latest: u64,
    /// The last offset that was delivered.
    delivered: u64,
    /// The sequence of each publisher's last publication.
    publishers: HashMap<u32, u32>,
    end: Ending,
}

/// Deliveries that are missing at the end of a load, of the subscriptions that were open to the
/// last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The last offset that is known.
    pub(crate) latest: u64,
    /// The number of subscriptions.
    pub(crate) subscriptions: u64,
    /// The sum of the offsets that they have reached.
    pub(crate) reached: u64,
}

/// The endings of channels, by name and epoch, of one or of all processes.
pub(crate) type Endings = BTreeMap<(String, u64), Ending>;

/// Adds an ending of another process.
pub(crate) fn add_ending(endings: &mut Endings, channel: (String, u64), more: Ending) {
    let own = endings.entry(channel).or_default();
    own.latest = own.latest.max(more.latest);
    own.subscriptions += more.subscriptions;
    own.reached += more.reached;
}

/// Returns the number of deliveries missing at the end: publications that one subscription has
/// received, or the node has confirmed, and another has not received.
pub(crate) fn missing(endings: &Endings) -> u64 {
    endings.values().map(|end| (end.latest * end.subscriptions).saturating_sub(end.reached)).sum()
}

/// All channels of this process.
#[derive(Debug)]
pub(crate) struct Deliveries {
    run: u64,
    /// When the load began, by the machine's monotonic clock.
    began: u64,
    numbers: HashMap<String, u32>,
    channels: Vec<Channel>,
    last_at: u64,
}

impl Deliveries {
    pub(crate) fn new(run: u64) -> Self {
        let (numbers, channels) = (HashMap::new(), Vec::new());
        Self { run, began: monotonic_ns(), numbers, channels, last_at: 0 }
    }

    /// The number of a channel in this process.
    pub(crate) fn channel(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.channels.len() as u32;
        self.channels.push(Channel {
            name: name.into(),
            epoch: 0,
            latest: 0,
            delivered: 0,
            publishers: HashMap::new(),
            end: Ending::default(),
        });
        self.numbers.insert(name.into(), number);
        number
    }

    /// The stamp of a publication that was due at this time.
    pub(crate) fn stamp(&self, publisher: u32, sequence: u32, due: u64) -> Stamp {
        Stamp { run: self.run, publisher, sequence, due: self.began.wrapping_add(due) }
    }

    /// The epoch of a channel, as far as this process knows it.
    pub(crate) fn epoch(&self, channel: u32) -> u64 {
        self.channels[channel as usize].epoch
    }

    /// The node has confirmed a publication that was sent when the channel had this epoch.
    pub(crate) fn confirmed(&mut self, channel: u32, epoch: u64, offset: u64) {
        let channel = &mut self.channels[channel as usize];
        if channel.epoch == epoch && epoch != 0 {
            channel.latest = channel.latest.max(offset);
        }
    }

    pub(crate) fn subscribed(&mut self, of: &mut Subscription, with: &Subscribed) {
        of.is_open = true;
        (of.epoch, of.reached) = (with.position.epoch, with.position.offset);
        let channel = &mut self.channels[of.channel as usize];
        if channel.epoch != of.epoch {
            (channel.epoch, channel.latest, channel.delivered) = (of.epoch, 0, 0);
            channel.publishers.clear();
        }
        channel.latest = channel.latest.max(of.reached);
        if of.reached > channel.delivered {
            channel.delivered = of.reached;
            channel.publishers.clear();
        }
    }

    /// Counts a delivery. Returns the time since the publication was due, in nanoseconds; `None` if
    /// it is none of this load.
    pub(crate) fn received(
        &mut self,
        of: &mut Subscription,
        publication: &server::Publication<'_>,
        counts: &mut Counts,
        now: u64,
    ) -> Option<u64> {
        counts.deliveries += 1;
        self.last_at = now;
        let steps = publication.offset.saturating_sub(of.reached);
        of.seen =
            u32::try_from(steps).ok().and_then(|steps| of.seen.checked_shl(steps)).unwrap_or(0) | 1;
        of.reached = publication.offset;
        let stamp = Stamp::find(&publication.payload);
        let stamp = stamp.filter(|stamp| stamp.run == self.run);
        let channel = &mut self.channels[of.channel as usize];
        if channel.epoch == of.epoch && publication.offset > channel.delivered {
            if publication.offset > channel.delivered + 1 {
                // Nobody here has seen those between: they may be of any publisher.
                channel.publishers.clear();
            }
            channel.delivered = publication.offset;
            channel.latest = channel.latest.max(publication.offset);
            if let Some(stamp) = &stamp {
                let before = stamp.sequence.saturating_sub(1);
                let last = channel.publishers.entry(stamp.publisher).or_insert(before);
                match stamp.sequence.cmp(last) {
                    std::cmp::Ordering::Greater => {
                        counts.publications_lost += u64::from(stamp.sequence - *last - 1);
                        *last = stamp.sequence;
                    }
                    std::cmp::Ordering::Equal => counts.deliveries_repeated += 1,
                    std::cmp::Ordering::Less => {
                        counts.deliveries_out_of_order += 1;
                        // This was counted when the one after it came.
                        counts.publications_lost = counts.publications_lost.saturating_sub(1);
                    }
                }
            }
        }
        Some(self.began.wrapping_add(now).saturating_sub(stamp?.due))
    }

    /// The load is over.
    pub(crate) fn stop(&mut self, now: u64) {
        self.last_at = now;
    }

    /// Returns whether nothing was delivered for a while.
    pub(crate) fn is_quiet(&self, now: u64) -> bool {
        now.saturating_sub(self.last_at) >= QUIET_NS
    }

    /// Returns whether a subscription has all that this process knows of.
    pub(crate) fn is_complete(&self, of: &Subscription) -> bool {
        let channel = &self.channels[of.channel as usize];
        !of.is_open || of.epoch != channel.epoch || of.reached >= channel.latest
    }

    /// A subscription ends with the load.
    pub(crate) fn end(&mut self, of: &Subscription) {
        let channel = &mut self.channels[of.channel as usize];
        if of.is_open && of.epoch == channel.epoch {
            channel.end.subscriptions += 1;
            channel.end.reached += of.reached;
        }
    }

    pub(crate) fn endings(self) -> Endings {
        let ended = self.channels.into_iter().filter(|channel| channel.end.subscriptions > 0);
        ended
            .map(|channel| {
                let end = Ending { latest: channel.latest, ..channel.end };
                ((channel.name, channel.epoch), end)
            })
            .collect()
    }
}

/// The machine's monotonic clock, in nanoseconds: the same in all processes.
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use playfield_client::session::{Subscribed, SubscriptionNumber};
    use playfield_wire::client::Position;
    use playfield_wire::server;

    use super::{Deliveries, Endings, Subscription, add_ending, missing};
    use crate::counts::Counts;

    struct Party {
        all: Deliveries,
        counts: Counts,
        subscriptions: Vec<Subscription>,
    }

    impl Party {
        fn new(count: u32) -> Self {
            let mut all = Deliveries::new(5);
            let channel = all.channel("news");
            let subscriptions = (0..count)
                .map(|number| {
                    let mut of = Subscription::new(SubscriptionNumber(number), channel);
                    let position = Position { epoch: 3, offset: 10 };
                    let (recovered, missed, bytes, members) = (false, 0, false, 1);
                    all.subscribed(
                        &mut of,
                        &Subscribed { position, recovered, missed, bytes, members },
                    );
                    of
                })
                .collect();
            Self { all, counts: Counts::default(), subscriptions }
        }

        fn hear(&mut self, index: usize, offset: u64, sequence: u32) -> Option<u64> {
            let payload = self.all.stamp(1, sequence, 100).text().into_bytes();
            let (channel, payload) = (1, Cow::Owned(payload));
            let publication = server::Publication { channel, offset, user: None, payload };
            let of = &mut self.subscriptions[index];
            self.all.received(of, &publication, &mut self.counts, 130)
        }

        fn miss_and_ignore(&mut self, missed: u64, offset: u64) {
            self.counts.deliveries_lost += missed;
            self.subscriptions[0].ignored(offset, &mut self.counts);
        }
    }

    #[test]
    fn deliveries_are_timed_and_those_that_are_late_or_repeated_are_counted() {
        let mut party = Party::new(2);
        assert_eq!(party.hear(0, 11, 1), Some(30));
        assert_eq!(party.hear(1, 11, 1), Some(30));
        // The node has published the same thing again, and then an earlier one.
        assert_eq!(party.hear(0, 12, 1), Some(30));
        party.hear(0, 13, 5);
        party.hear(0, 14, 4);
        let counts = party.counts;
        assert_eq!((counts.deliveries_repeated, counts.deliveries_out_of_order), (1, 1));
        // 15 comes after 16, and 16 comes twice.
        party.hear(0, 16, 6);
        party.miss_and_ignore(1, 15);
        party.miss_and_ignore(0, 16);
        let Counts { deliveries, deliveries_lost, .. } = party.counts;
        assert_eq!((deliveries, deliveries_lost), (6, 0));
        let counts = party.counts;
        assert_eq!((counts.deliveries_repeated, counts.deliveries_out_of_order), (2, 2));
    }

    #[test]
    fn what_never_comes_out_of_a_channel_is_a_gap_in_what_its_publisher_has_sent() {
        let mut party = Party::new(2);
        for (offset, sequence) in [(11, 7), (12, 8), (13, 11), (14, 12)] {
            party.hear(0, offset, sequence);
            party.hear(1, offset, sequence);
        }
        assert_eq!(party.counts.publications_lost, 2, "9 and 10");
        // Misses of subscriptions are counted by the offsets.
        party.hear(0, 20, 17);
        party.hear(0, 21, 18);
        assert_eq!(party.counts.publications_lost, 2);
    }

    #[test]
    fn publications_of_others_are_not_timed() {
        let mut party = Party::new(1);
        party.all.run = 6;
        let payload = party.all.stamp(1, 1, 100).text().into_bytes();
        party.all.run = 5;
        let (channel, payload) = (1, Cow::Owned(payload));
        let publication = server::Publication { channel, offset: 11, user: None, payload };
        let of = &mut party.subscriptions[0];
        assert_eq!(party.all.received(of, &publication, &mut party.counts, 130), None);
        assert_eq!(party.counts.deliveries, 1);
    }

    #[test]
    fn what_one_process_knows_of_the_others_have_missed() {
        let (mut near, mut far) = (Party::new(2), Party::new(1));
        near.hear(0, 11, 1);
        near.hear(1, 11, 1);
        near.hear(0, 12, 2);
        assert!(near.all.is_complete(&near.subscriptions[0]));
        assert!(!near.all.is_complete(&near.subscriptions[1]));
        far.hear(0, 11, 1);
        // Confirmed, and delivered to nobody. One of an earlier epoch does not count.
        near.all.confirmed(0, 3, 13);
        near.all.confirmed(0, 2, 99);
        let mut endings = Endings::default();
        for mut party in [near, far] {
            for of in &party.subscriptions {
                party.all.end(of);
            }
            for (channel, end) in party.all.endings() {
                add_ending(&mut endings, channel, end);
            }
        }
        assert_eq!(missing(&endings), 1 + 2 + 2);
    }
}
