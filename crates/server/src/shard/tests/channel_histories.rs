//! Histories of subscribers that lose their connections, stop reading, and come back, while others
//! publish and mailboxes are full: each sees a channel's publications in order, the same as all
//! others, and without a gap that it is not informed of.

use std::collections::{BTreeMap, BTreeSet};

use playfield_wire::client::Position;
use playfield_wire::{ErrorCode, Format};
use proptest::collection::vec;
use proptest::prelude::*;

use super::listener::{Listener, Told};
use super::world::World;

const SHARDS: usize = 3;
/// With a history that is longer than any test, one that is short, none, and queues that are short,
/// after which publications are dropped, the subscription ends, or the connection does. The homes of
/// the last two are the first two shards, which clients are on in the beginning.
const CHANNELS: [&str; 6] = ["chat:a", "short:b", "plain:c", "drop:d", "strict:c", "hard:e"];
const CLIENTS: [(&str, bool, Format); 4] = [
    ("ann", false, Format::Packed),
    ("bob", true, Format::Packed),
    ("cid", true, Format::Json),
    ("dan", false, Format::Msgpack),
];

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish {
        client: usize,
        channel: usize,
        count: u32,
    },
    Subscribe {
        client: usize,
        channel: usize,
    },
    Unsubscribe {
        client: usize,
        channel: usize,
    },
    /// The connection is lost, with what is on its way or after the client has read it.
    Cut {
        client: usize,
        reads: bool,
    },
    Return {
        client: usize,
        shard: usize,
    },
    /// The client takes this many more bytes before it stops reading.
    Takes {
        client: usize,
        bytes: usize,
    },
    Space {
        shard: usize,
        parcels: usize,
    },
    Wait {
        ms: u64,
    },
    /// Another process takes over.
    Replace,
}

fn step() -> impl Strategy<Value = Step> {
    let (client, channel, shard) = (0..CLIENTS.len(), 0..CHANNELS.len(), 0..SHARDS);
    prop_oneof![
        6 => (client.clone(), channel.clone(), 1..6_u32)
            .prop_map(|(client, channel, count)| Step::Publish { client, channel, count }),
        2 => (client.clone(), channel.clone())
            .prop_map(|(client, channel)| Step::Subscribe { client, channel }),
        1 => (client.clone(), channel)
            .prop_map(|(client, channel)| Step::Unsubscribe { client, channel }),
        2 => (client.clone(), any::<bool>())
            .prop_map(|(client, reads)| Step::Cut { client, reads }),
        3 => (client.clone(), shard.clone())
            .prop_map(|(client, shard)| Step::Return { client, shard }),
        2 => (client, prop_oneof![Just(0), 1..300_usize, Just(usize::MAX)])
            .prop_map(|(client, bytes)| Step::Takes { client, bytes }),
        2 => (shard, prop_oneof![Just(0), 1..4_usize, Just(usize::MAX)])
            .prop_map(|(shard, parcels)| Step::Space { shard, parcels }),
        1 => prop_oneof![1..100_u64, Just(3000)].prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Replace),
    ]
}

/// The knowledge that one client has of a channel.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The last position that it knows.
    since: Option<Position>,
    last: Option<u64>,
}

struct History {
    world: World,
    clients: Vec<Listener>,
    is_here: [bool; CLIENTS.len()],
    known: BTreeMap<(usize, String), Known>,
    /// The channels that a client has left on its connection. The node may read that later, and
    /// what is published until then still comes.
    left: BTreeSet<(usize, String)>,
    /// The payloads by channel, epoch and offset, as the first client heard them.
    seen: BTreeMap<(String, u64, u64), String>,
    published: u32,
    /// Subscriptions that have missed nothing, as the node said.
    recovered: u32,
}

impl History {
    fn new() -> Self {
        let settings = [
            ("limits.session.outbox_bytes.high", "200"),
            ("timeouts.reconnect", "10000ms"),
            // A hello waits for as long as the mailbox is full of the shard that it is for.
            ("timeouts.hello", "86400000ms"),
        ];
        let mut world = World::new(SHARDS, &settings);
        let clients = CLIENTS.iter().enumerate().map(|(at, &(name, is_websocket, format))| {
            Listener::new(&mut world, at % SHARDS, name, is_websocket, format)
        });
        let clients = clients.collect();
        let is_here = [true; CLIENTS.len()];
        let (known, left, seen) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { world, clients, is_here, known, left, seen, published: 0, recovered: 0 }
    }

    fn take(&mut self, step: Step) {
        let world = &mut self.world;
        match step {
            Step::Publish { client, channel, count } if self.is_here[client] => {
                for _ in 0..count {
                    self.published += 1;
                    let value = self.published.to_string();
                    self.clients[client].publish(world, CHANNELS[channel], &value);
                }
            }
            Step::Subscribe { client, channel }
                if self.is_here[client]
                    && !self.clients[client].wanted.contains_key(CHANNELS[channel]) =>
            {
                self.clients[client].subscribe(world, CHANNELS[channel]);
            }
            Step::Unsubscribe { client, channel } if self.is_here[client] => {
                self.listen(client);
                let name = CHANNELS[channel];
                // It waits for the answer before it changes its mind.
                let listener = &self.clients[client];
                if listener.wanted.contains_key(name) && !listener.awaits(name) {
                    self.clients[client].unsubscribe(&mut self.world, name);
                    self.known.remove(&(client, name.into()));
                    self.left.insert((client, name.into()));
                }
            }
            Step::Cut { client, reads } if self.is_here[client] => {
                if reads {
                    self.listen(client);
                }
                self.lose(client);
            }
            Step::Return { client, shard } if !self.is_here[client] => {
                self.is_here[client] = true;
                self.clients[client].connect(&mut self.world, shard);
            }
            Step::Takes { client, bytes } if self.is_here[client] => {
                world.takes(self.clients[client].client, bytes);
            }
            Step::Space { shard, parcels } => {
                world.space[shard] = parcels;
                world.run();
            }
            Step::Wait { ms } => world.wait(ms),
            Step::Replace => {
                let open = world.replace(SHARDS, true);
                for client in 0..CLIENTS.len() {
                    if self.is_here[client] && !open.contains(&self.clients[client].client) {
                        self.listen(client);
                        self.lose(client);
                    }
                }
            }
            _ => {}
        }
        for client in 0..CLIENTS.len() {
            if self.is_here[client] {
                self.listen(client);
                // The node has ended the connection of one that is too slow.
                if self.is_here[client] && self.world.is_over(self.clients[client].client) {
                    self.lose(client);
                }
            }
        }
    }

    /// A client has no connection any more.
    fn lose(&mut self, client: usize) {
        self.is_here[client] = false;
        self.left.retain(|(of, _)| *of != client);
        self.world.vanish(self.clients[client].client);
    }

    /// Checks that a client has heard only what it may hear.
    fn listen(&mut self, client: usize) {
        for told in self.clients[client].told(&mut self.world) {
            match told {
                Told::Subscribed { channel, offset, recovered, .. } => {
                    let known = self.known.entry((client, channel.clone())).or_default();
                    let epoch = self.clients[client].epochs[&channel];
                    if recovered {
                        self.recovered += 1;
                        let since = known.since.expect("it was somewhere");
                        assert_eq!((since.epoch, since.offset), (epoch, offset), "{channel}");
                    }
                    *known = Known { since: Some(Position { epoch, offset }), last: Some(offset) };
                }
                Told::Publication { channel, offset, payload, .. } => {
                    let Some(known) = self.known.get_mut(&(client, channel.clone())) else {
                        assert!(self.left.contains(&(client, channel)), "it has subscribed");
                        continue;
                    };
                    let last = known.last.expect("it has subscribed");
                    // Nothing is dropped where the queue is long enough.
                    let is_next = offset == last + 1;
                    let may_miss = channel.starts_with("drop");
                    assert!(is_next || (may_miss && offset > last), "{channel}: {last}, {offset}");
                    let epoch = known.since.expect("it has subscribed").epoch;
                    known.last = Some(offset);
                    known.since = Some(Position { epoch, offset });
                    let first =
                        self.seen.entry((channel, epoch, offset)).or_insert(payload.clone());
                    assert_eq!(*first, payload, "all see the same");
                }
                Told::Unsubscribed { channel, code } => {
                    assert!(channel.starts_with("strict") && code == ErrorCode::TooSlow);
                    self.clients[client].wanted.remove(&channel);
                    self.known.remove(&(client, channel));
                }
                Told::Goodbye { code } | Told::Error { code } => {
                    assert_eq!(code, ErrorCode::TooSlow);
                }
                _ => {}
            }
        }
    }

    /// Everyone is there, reads, and is up to date in the end.
    fn end(&mut self) {
        self.world.space = vec![usize::MAX; SHARDS];
        for client in 0..CLIENTS.len() {
            self.take(Step::Takes { client, bytes: usize::MAX });
        }
        self.world.wait(200);
        // What was held back until now may have been too much at once for some.
        for client in 0..CLIENTS.len() {
            self.take(Step::Return { client, shard: client % SHARDS });
        }
        self.world.wait(200);
        for (channel, name) in CHANNELS.iter().enumerate() {
            self.take(Step::Publish { client: 0, channel, count: 1 });
            let last = self.published.to_string();
            self.world.wait(200);
            for client in 0..CLIENTS.len() {
                self.listen(client);
                let listener = &self.clients[client];
                if let Some(&position) = listener.wanted.get(*name) {
                    let Position { epoch, offset } = position.expect("it was answered");
                    let seen = &self.seen[&((*name).to_owned(), epoch, offset)];
                    assert_eq!(*seen, last, "{name}: the last reaches everyone");
                }
            }
        }
        let subscriptions: u64 =
            (0..SHARDS).map(|shard| self.world.counters(shard).subscriptions).sum();
        let wanted: usize = self.clients.iter().map(|client| client.wanted.len()).sum();
        assert_eq!(subscriptions, wanted as u64);
    }
}

/// The home gives up a subscriber of its own while it sends a publication to the shards with
/// subscribers, whichever subscribed first.
#[test]
fn who_is_given_up_by_the_home_takes_no_publication_from_subscribers_elsewhere() {
    for (channel, slow) in [(4, 0), (5, 1)] {
        for first in 0..3 {
            let mut history = History::new();
            for client in [first, (first + 1) % 3, (first + 2) % 3] {
                history.take(Step::Subscribe { client, channel });
            }
            history.take(Step::Takes { client: slow, bytes: 0 });
            for _ in 0..20 {
                history.take(Step::Publish { client: 2, channel, count: 1 });
            }
            let last: Vec<_> = history.known.values().map(|known| known.last).collect();
            assert_eq!(last.iter().filter(|last| **last == Some(20)).count(), 2, "{last:?}");
            history.end();
        }
    }
}

/// Nothing more is read from a client whose publications find a full mailbox: an `unsubscribe`
/// behind them comes later than what others publish meanwhile.
#[test]
fn who_leaves_behind_a_full_mailbox_still_gets_what_is_published_meanwhile() {
    let mut history = History::new();
    for step in [
        Step::Subscribe { client: 1, channel: 1 },
        Step::Space { shard: 0, parcels: 0 },
        Step::Publish { client: 1, channel: 3, count: 2 },
        Step::Unsubscribe { client: 1, channel: 1 },
        Step::Publish { client: 2, channel: 1, count: 1 },
        Step::Subscribe { client: 1, channel: 1 },
    ] {
        history.take(step);
    }
    history.end();
}

#[test]
fn a_history_goes_on_in_another_process() {
    let mut history = History::new();
    for step in [
        Step::Subscribe { client: 0, channel: 0 },
        Step::Publish { client: 1, channel: 0, count: 3 },
        Step::Cut { client: 0, reads: true },
        Step::Publish { client: 1, channel: 0, count: 2 },
        Step::Replace,
        Step::Return { client: 0, shard: 2 },
    ] {
        history.take(step);
    }
    assert_eq!(history.recovered, 1);
    let known = history.known.values().next().expect("it has subscribed");
    assert_eq!(known.last, Some(5));
    history.end();
}

/// The channel has ended while its subscriber was away, and another has come before it.
#[test]
fn who_comes_back_to_a_channel_that_has_another_number_leaves_it_by_that_one() {
    for replaces in [false, true] {
        let mut history = History::new();
        history.take(Step::Subscribe { client: 1, channel: 1 });
        history.take(Step::Cut { client: 1, reads: true });
        history.take(Step::Wait { ms: 45_000 });
        if replaces {
            history.take(Step::Replace);
        }
        for step in [
            Step::Subscribe { client: 0, channel: 5 },
            Step::Return { client: 1, shard: 0 },
            Step::Unsubscribe { client: 1, channel: 1 },
        ] {
            history.take(step);
        }
        history.end();
    }
}

proptest! {
    #[test]
    fn subscribers_see_the_same_in_order_and_know_of_every_gap(steps in vec(step(), 1..80)) {
        let mut history = History::new();
        for step in steps {
            history.take(step);
        }
        history.end();
    }
}
