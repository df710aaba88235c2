//! Channels against a model: what a subscriber that comes back is given, whatever happened before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use playfield_wire::client::Position;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::channel::{
    ChannelRule, Channels, Member, Payload, Published, Subscribing, Totals, TotalsMax,
};

const HISTORY_MAX: usize = 4;
const AGE: Duration = Duration::from_secs(10);
const LINGER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish {
        bytes: usize,
    },
    Subscribe {
        session: u64,
    },
    /// Its connection is lost, or it leaves for good.
    Unsubscribe {
        session: u64,
        leaves: bool,
    },
    Wait {
        seconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..4_u64;
    prop_oneof![
        4 => (0..300_usize).prop_map(|bytes| Step::Publish { bytes }),
        2 => session.clone().prop_map(|session| Step::Subscribe { session }),
        2 => (session, any::<bool>())
            .prop_map(|(session, leaves)| Step::Unsubscribe { session, leaves }),
        1 => (0..12_u64).prop_map(|seconds| Step::Wait { seconds }),
    ]
}

fn member(session: u64) -> Member {
    Member { session, user: None, name: session.to_string().into() }
}

proptest! {
    #[test]
    fn who_comes_back_is_given_all_or_informed(steps in vec(step(), 1..60)) {
        let rule = ChannelRule::new("a").history(HISTORY_MAX, AGE).history_bytes(900);
        let rule = Arc::new(rule.presence(crate::channel::Access::Anyone));
        let totals = Arc::new(Totals::new(3));
        let max = TotalsMax { channels: 1, history_bytes: 800 };
        let mut channels = Channels::new((1, 3), (7, Default::default()), LINGER, totals, max);
        let name: Arc<str> = "a".into();
        let mut now = Duration::ZERO;
        let mut all: Vec<u64> = Vec::new();
        // Since when the channel has its epoch: what was published then is of no use any more.
        let mut epoch = None;
        let mut known: BTreeMap<u64, Position> = BTreeMap::new();
        let mut live = BTreeSet::new();
        let mut number = 0;
        let mut members = BTreeSet::new();
        for step in steps {
            match step {
                Step::Publish { bytes } => {
                    let payload = Payload::Bytes(vec![0; bytes].into());
                    let published = channels.publish(&name, &rule, None, (None, payload), now).unwrap();
                    let Published::To(number, publication) = published else {
                        panic!("the channel keeps publications")
                    };
                    let past = channels.past(&name, None, (1, 1), now);
                    if epoch.replace(past.epoch) != Some(past.epoch) {
                        all.clear();
                    }
                    all.push(publication.offset);
                    prop_assert_eq!(publication.offset, all.len() as u64);
                    for session in &live {
                        known.insert(*session, Position { epoch: past.epoch, offset: publication.offset });
                    }
                    let subscribers = channels.shards(number).iter().map(|(_, count)| count);
                    prop_assert_eq!(subscribers.sum::<u32>() as usize, live.len());
                }
                Step::Subscribe { session } if !live.contains(&session) => {
                    let since = known.get(&session).copied();
                    let subscribing = Subscribing { shard: 1, member: member(session), since, creator: None };
                    let (start, change) = channels.subscribe(&name, &rule, subscribing, now).unwrap();
                    if epoch.replace(start.epoch) != Some(start.epoch) {
                        all.clear();
                    }
                    live.insert(session);
                    prop_assert_eq!(change.is_some(), members.insert(session));
                    prop_assert_eq!(start.members, members.len() as u64);
                    let given: Vec<u64> = start.publications.iter().map(|of| of.offset).collect();
                    let last = all.len() as u64;
                    prop_assert_eq!(&given, &(start.offset + 1..=last).collect::<Vec<_>>());
                    prop_assert!(given.len() <= HISTORY_MAX);
                    match since {
                        Some(since) if start.recovered => {
                            prop_assert_eq!((since.epoch, since.offset), (start.epoch, start.offset));
                        }
                        Some(since) => prop_assert!(since.epoch != start.epoch || since.offset < start.offset),
                        None => prop_assert!(!start.recovered && given.is_empty()),
                    }
                    known.insert(session, Position { epoch: start.epoch, offset: last });
                    number = start.channel;
                    prop_assert_eq!(number % 3, 2, "numbers of a shard are no other shard's");
                }
                Step::Unsubscribe { session, leaves } if live.contains(&session) => {
                    live.remove(&session);
                    let change =
                        channels.unsubscribe(number, (1, session), (true, leaves), now);
                    prop_assert_eq!(change.is_some(), leaves && members.remove(&session));
                }
                Step::Wait { seconds } => {
                    now += Duration::from_secs(seconds);
                    channels.expire(now);
                    let is_used = !members.is_empty() || !live.is_empty();
                    prop_assert!(!is_used || channels.len() == 1);
                }
                Step::Subscribe { .. } | Step::Unsubscribe { .. } => {}
            }
        }
        // Once nobody is there and all is forgotten, nothing is left.
        let sessions: Vec<u64> = members.iter().chain(&live).copied().collect();
        for session in sessions {
            channels.unsubscribe(number, (1, session), (live.remove(&session), true), now);
        }
        channels.expire(now + 2 * (AGE + LINGER));
        channels.expire(now + 4 * (AGE + LINGER));
        prop_assert!(channels.is_empty() && channels.next().is_none());
    }
}
