//! Rooms of a cluster that stand still while their node can't show that it serves their keys.

use std::sync::Arc;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};
use tokio::sync::mpsc::UnboundedReceiver;

use super::room;
use super::speech::{Heard, encoded, send};
use super::world::{Client, World};
use crate::cluster::keeping::Claim;
use crate::cluster::seeking::Sought;
use crate::cluster::{Cluster, KeyOf, Order};
use crate::room_id::RoomId;
use crate::shard::mail::{ACTS_MAX, ShardMail};

const PACKED: Format = Format::Packed;

/// A node in a cluster, and the test as the cluster's thread.
struct Clustered {
    world: World,
    cluster: Arc<Cluster>,
    orders: UnboundedReceiver<Order>,
    /// Shards that have seen the end of the lease.
    cut_off: Vec<u16>,
}

impl Clustered {
    fn new(shards: usize) -> Self {
        let (world, cluster, orders) = World::in_cluster(shards);
        Self { world, cluster, orders, cut_off: Vec::new() }
    }

    /// Gives each join the key that it wants.
    fn obey(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Seek(seek) => {
                    let key = KeyOf { room_type: 0, key: "key".into() };
                    let (shard, sought) = (seek.shard, Sought::Here(Some(key)));
                    self.world.post(shard, ShardMail::Sought { seek, sought });
                }
                Order::CutOff(shard) => self.cut_off.push(shard),
                _ => {}
            }
        }
    }

    /// Joins or creates the room with the key.
    fn enter(&mut self, shard: usize) -> (Client, RoomNumber, RoomId) {
        let client = self.world.client(shard);
        self.ask_to_enter(client);
        let (room, id) = self.world.joined(client);
        (client, room, RoomId::parse(&id).unwrap())
    }

    fn ask_to_enter(&mut self, client: Client) {
        let options = room::encoded(PACKED, b"");
        let message = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "test".into(),
            key: Some("key".into()),
            options: &options,
        });
        self.world.say(client, &encoded(PACKED, &message));
        self.obey();
    }

    fn end_lease(&mut self) {
        self.cluster.set_lease(false);
    }

    fn renew_lease(&mut self) {
        self.obey();
        self.cluster.set_lease(true);
        for shard in std::mem::take(&mut self.cut_off) {
            self.world.post(shard, ShardMail::LeaseRenewed);
        }
    }

    fn tell(&mut self, room: RoomId, claim: Claim) {
        let shard = self.world.node.directory.find(room).unwrap().shard;
        self.world.post(shard, ShardMail::Claim { room, claim });
    }

    fn add(&mut self, client: Client, room: RoomNumber, request: u32) {
        self.world.request(client, room, RequestNumber(request), "add", "");
    }

    /// The numbers of the requests that were answered, in their order.
    fn answered(&mut self, client: Client) -> Vec<u32> {
        let reply = |heard| match heard {
            Heard::Reply { request: RequestNumber(request), .. } => Some(request),
            _ => None,
        };
        self.world.heard(client).into_iter().filter_map(reply).collect()
    }
}

#[test]
fn rooms_with_keys_stand_still_when_the_lease_ends_and_go_on_when_it_is_renewed() {
    for remote in [0, 1] {
        let mut all = Clustered::new(2);
        let (ann, room, _) = all.enter(0);
        // It has a room there already, so it does not move.
        let visitor = all.world.client(remote);
        all.world.room(visitor, "");
        let free = RoomNumber(1);
        all.ask_to_enter(visitor);
        let (in_key, _) = all.world.joined(visitor);
        all.end_lease();
        // The clock is looked at before the input is.
        all.add(ann, room, 10);
        all.add(visitor, in_key, 20);
        all.add(visitor, free, 30);
        all.add(ann, room, 11);
        all.world.wait(20_000);
        assert_eq!(all.answered(ann), [0; 0]);
        assert_eq!(all.answered(visitor), [30], "a room without a key goes on");
        // Pings are answered, and nobody comes in.
        all.world.say(ann, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
        let heard = all.world.heard(ann);
        assert!(matches!(heard[..], [Heard::Pong { .. }]), "{heard:?}");
        let late = all.world.client(0);
        all.ask_to_enter(late);
        all.world.wait(100);
        let heard = all.world.heard(late);
        let [Heard::Error { code: ErrorCode::Busy, .. }] = heard[..] else { panic!("{heard:?}") };

        all.renew_lease();
        all.world.wait(100);
        assert_eq!(all.answered(ann), [10, 11]);
        assert_eq!(all.answered(visitor), [20]);
        all.ask_to_enter(late);
        all.world.joined(late);
        // The syncs that it missed are not made up for.
        let missed = all.world.counters(0).syncs_missed + all.world.counters(1).syncs_missed;
        assert!(missed > 300, "{missed}");
    }
}

/// Nothing more is read from a client whose messages wait, and nothing is lost.
#[test]
fn a_bounded_number_of_messages_of_a_player_waits() {
    for remote in [false, true] {
        let mut all = Clustered::new(2);
        let (ann, first, _) = all.enter(0);
        let (client, room) = if remote {
            let visitor = all.world.client(1);
            all.world.room(visitor, "");
            all.ask_to_enter(visitor);
            let (room, _) = all.world.joined(visitor);
            (visitor, room)
        } else {
            (ann, first)
        };
        all.end_lease();
        for _ in 0..ACTS_MAX - 1 {
            all.world.say(client, &send(room, "add", ""));
        }
        all.world.wait(100);
        let ping = |nonce| encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce }));
        let pongs = |all: &mut Clustered| {
            let heard = all.world.heard(client);
            heard.iter().filter(|heard| matches!(heard, Heard::Pong { .. })).count()
        };
        all.world.say(client, &ping(1));
        assert_eq!(pongs(&mut all), 1);
        for _ in 0..200 {
            all.world.say(client, &send(room, "add", ""));
        }
        all.world.wait(100);
        all.world.say(client, &ping(2));
        all.world.wait(100);
        assert_eq!(pongs(&mut all), 0, "it is behind what is not read");
        all.renew_lease();
        all.world.wait(500);
        assert_eq!(pongs(&mut all), 1);
        let heard = all.world.ask(ann, first, "add", "");
        all.world.wait(100);
        let count = (ACTS_MAX - 1 + 200 + 1).to_string();
        let replies = heard.into_iter().chain(all.world.heard(ann));
        let found = replies.into_iter().any(|heard| match heard {
            Heard::Reply { payload, .. } => payload == count,
            _ => false,
        });
        assert!(found, "not {count}");
    }
}

#[test]
fn a_frozen_room_goes_on_when_its_key_is_claimed_again_even_if_the_lease_was_renewed_before() {
    let mut all = Clustered::new(1);
    let (ann, room, id) = all.enter(0);
    all.tell(id, Claim::Freeze);
    all.add(ann, room, 10);
    all.end_lease();
    all.world.wait(100);
    all.renew_lease();
    all.world.wait(100);
    assert_eq!(all.answered(ann), [0; 0]);
    all.end_lease();
    all.world.wait(100);
    all.tell(id, Claim::Thaw);
    all.world.wait(100);
    assert_eq!(all.answered(ann), [0; 0]);
    all.renew_lease();
    all.world.wait(100);
    assert_eq!(all.answered(ann), [10]);
    all.add(ann, room, 11);
    assert_eq!(all.answered(ann), [11]);
}

/// The lease has run out again before the news of its renewal came.
#[test]
fn old_news_of_a_renewal_lets_no_room_go_on() {
    let mut all = Clustered::new(1);
    let (ann, room, _) = all.enter(0);
    all.end_lease();
    all.add(ann, room, 10);
    all.world.post(0, ShardMail::LeaseRenewed);
    all.world.wait(100);
    assert_eq!(all.answered(ann), [0; 0]);
    all.obey();
    assert_eq!(all.cut_off, [0, 0]);
    all.renew_lease();
    all.world.wait(100);
    assert_eq!(all.answered(ann), [10]);
}

#[test]
fn the_players_of_a_room_whose_key_another_node_has_are_sent_on() {
    let mut all = Clustered::new(1);
    let (ann, room, id) = all.enter(0);
    all.tell(id, Claim::Freeze);
    all.add(ann, room, 10);
    all.tell(id, Claim::End);
    all.world.wait(100);
    let heard = all.world.heard(ann);
    let left = Heard::Left { request: None, room, code: ErrorCode::RoomMoved };
    assert_eq!(heard.last(), Some(&left), "{heard:?}");
    assert!(all.world.node.directory.find(id).is_none());
}

#[test]
fn players_who_leave_meanwhile_are_gone_when_the_room_goes_on() {
    let mut all = Clustered::new(2);
    let (ann, room, _) = all.enter(0);
    let (ben, _, _) = all.enter(1);
    let (cid, _, _) = all.enter(0);
    all.world.heard(ann);
    all.end_lease();
    let leave = client::Leave { request: RequestNumber(5), room };
    all.world.say(ben, &encoded(PACKED, &ClientMessage::Leave(leave)));
    all.world.hang_up(cid);
    all.world.wait(1_000);
    let heard = all.world.heard(ben);
    let left = |heard: &Heard| matches!(heard, Heard::Left { request: Some(_), .. });
    assert!(heard.iter().any(left), "{heard:?}");
    all.renew_lease();
    all.world.wait(100);
    let events: Vec<_> = all
        .world
        .heard(ann)
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Event { payload, .. } => Some(payload),
            _ => None,
        })
        .collect();
    assert_eq!(events.len(), 2, "{events:?}");
}

/// A room that may go on is found by its key no more.
#[test]
fn a_room_that_goes_on_without_its_key_is_not_found_by_it() {
    let mut all = Clustered::new(1);
    let client = all.world.client(0);
    let options = room::encoded(PACKED, b"");
    let message = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: "brisk".into(),
        key: Some("key".into()),
        options: &options,
    });
    all.world.say(client, &encoded(PACKED, &message));
    all.obey();
    let (room, id) = all.world.joined(client);
    let id = RoomId::parse(&id).unwrap();
    all.end_lease();
    all.tell(id, Claim::Freeze);
    all.add(client, room, 10);
    assert_eq!(all.answered(client), [10]);
    let key = KeyOf { room_type: 1, key: "key".into() };
    assert!(all.world.node.directory.place_of(&key).is_some());
    all.tell(id, Claim::End);
    all.world.wait(100);
    assert!(all.world.node.directory.place_of(&key).is_none());
    all.add(client, room, 11);
    assert_eq!(all.answered(client), [11]);
}
