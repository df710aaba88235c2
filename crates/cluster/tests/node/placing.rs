//! The choice of a node for a new room.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_cluster::{Choice, Event, Load, Node, Settings};

use crate::bench::{Bench, run_and_hear, secs, settings};

/// A node in each slot, which have these loads.
fn nodes(loads: &[Load]) -> (Vec<Node>, Bench) {
    let mut bench = Bench::default();
    let mut nodes: Vec<Node> = (0..)
        .zip(loads)
        .map(|(slot, _)| {
            // The last one is of another build, and the one before has another type.
            let (name, fingerprint) = match loads.len() - usize::from(slot) {
                1 => ("board", 2),
                2 => ("chat", 1),
                _ => ("board", 1),
            };
            let types = vec![(name.to_owned(), fingerprint)];
            Node::new(Settings { types, ..settings(slot) }, slot.into(), secs(0))
        })
        .collect();
    for (node, load) in nodes.iter_mut().zip(loads) {
        node.event(secs(0), Event::Load(*load));
    }
    run_and_hear(&mut nodes, &mut bench, secs(0), secs(5));
    (nodes, bench)
}

fn load(rooms: u32, busy_percent: u8) -> Load {
    Load { rooms, busy_percent, takes_rooms: true }
}

/// The slots that the first node chooses, with how often it does so in 1,000 times.
fn chosen(nodes: &mut [Node], now: Duration) -> BTreeMap<u16, u32> {
    let mut chosen = BTreeMap::new();
    for _ in 0..1000 {
        let slot = match nodes[0].choose(now, "board", |fingerprint| fingerprint == 1) {
            Some(Choice::Here) => 0,
            Some(Choice::At(peer)) => peer.slot,
            None => u16::MAX,
        };
        *chosen.entry(slot).or_default() += 1;
    }
    chosen
}

#[test]
fn a_room_is_made_where_it_is_asked_for_unless_the_node_is_busy_or_has_many_rooms() {
    for (own, here) in
        [(load(125, 69), true), (load(170, 10), false), (load(10, 70), false), (load(0, 0), true)]
    {
        let (mut nodes, _) = nodes(&[own, load(100, 5), load(100, 5), load(0, 0), load(0, 0)]);
        let chosen = chosen(&mut nodes, secs(5));
        assert_eq!(chosen.get(&0), here.then_some(&1000), "{own:?}: {chosen:?}");
    }
}

#[test]
fn the_better_of_two_nodes_that_can_have_the_room_is_chosen() {
    let draining = Load { takes_rooms: false, ..load(0, 0) };
    let loads =
        [draining, load(5, 90), load(50, 5), load(100, 5), draining, load(0, 0), load(0, 0)];
    let (mut nodes, _) = nodes(&loads);
    let chosen = chosen(&mut nodes, secs(5));
    // The second one is busy, so it never is the better one.
    assert_eq!(chosen.keys().copied().collect::<Vec<_>>(), [2, 3]);
    assert!(chosen[&2] > 600 && chosen[&3] > 250, "{chosen:?}");
}

#[test]
fn a_node_that_is_alone_makes_all_rooms_itself() {
    let (mut nodes, _) = nodes(&[load(50, 99), load(1, 1), load(1, 1)]);
    assert_eq!(chosen(&mut nodes, secs(5)), BTreeMap::from([(0, 1000)]));
    // And none when it leaves.
    nodes[0].event(secs(5), Event::Load(Load { takes_rooms: false, ..load(0, 0) }));
    assert_eq!(chosen(&mut nodes, secs(5)), BTreeMap::from([(u16::MAX, 1000)]));
}

#[test]
fn silent_nodes_are_not_chosen() {
    let (mut nodes, mut bench) = nodes(&[load(50, 99), load(1, 1), load(1, 1), load(1, 1)]);
    assert_eq!(chosen(&mut nodes, secs(5)), BTreeMap::from([(1, 1000)]));
    run_and_hear(&mut nodes[..1], &mut bench, secs(5), secs(12));
    assert_eq!(chosen(&mut nodes, secs(12)), BTreeMap::from([(0, 1000)]));
}
