//! Leases, and the observation of other nodes.

use std::time::Duration;

use playfield_cluster::*;

use crate::bench::*;

#[test]
fn a_node_freezes_at_three_quarters_of_its_lease_and_thaws_with_the_next_renewal() {
    let (mut node, mut bench, _) = serving();
    run(&mut [&mut node], &mut bench, secs(1), secs(10));
    let last_renewal = node.acts_until().unwrap() - LEASE * 3 / 4;
    assert!(last_renewal <= secs(10) && last_renewal >= secs(8));
    bench.is_away = true;
    run(&mut [&mut node], &mut bench, secs(10), secs(40));
    let freezes_at = last_renewal + secs(15);
    assert!(node.acts(freezes_at - Duration::from_millis(1)) && !node.acts(freezes_at));
    bench.is_away = false;
    run(&mut [&mut node], &mut bench, secs(40), secs(43));
    assert!(node.acts(secs(43)));
    assert_eq!(effects(&mut node), []);
}

#[test]
fn an_answer_that_waited_while_the_process_stood_still_does_not_thaw_it() {
    let (mut node, mut bench, _) = serving();
    run(&mut [&mut node], &mut bench, secs(1), secs(10));
    // The renewal is answered at once, and the answer is read when the process goes on.
    node.turn(secs(12));
    for command in commands(&mut node, secs(12)) {
        bench.begin(command);
    }
    node.exchange(secs(40), &mut bench);
    assert!(!node.acts(secs(40)));
}

#[test]
fn a_node_that_was_gone_before_another_began_is_declared_dead() {
    let (gone, mut bench, _) = serving();
    drop(gone);
    let mut other = Node::new(settings(2), 2, secs(30));
    run(&mut [&mut other], &mut bench, secs(30), secs(53));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
}

#[test]
fn a_node_with_a_longer_lease_than_the_observer_is_given_its_time() {
    let mut bench = Bench::default();
    let long = Settings { slot: Some(1), ..Settings::new(LEASE * 3).unwrap() };
    let mut gone = Node::new(long, 1, secs(0));
    let mut other = Node::new(settings(2), 2, secs(0));
    run(&mut [&mut gone, &mut other], &mut bench, secs(0), secs(7));
    drop(gone);
    run(&mut [&mut other], &mut bench, secs(7), secs(58));
    assert_eq!(bench.node_record(1).state, NodeState::Serving);
    run(&mut [&mut other], &mut bench, secs(58), secs(75));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
}

#[test]
fn an_answer_that_waited_while_the_observer_stood_still_does_not_count_for_others() {
    let (mut node, mut bench, _) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut node, &mut other], &mut bench, secs(1), secs(4));
    run(&mut [&mut other], &mut bench, secs(4), secs(12));
    // Its renewal is answered at once, and it stands still before it reads the answer.
    let mut now = secs(12);
    while bench.events.is_empty() {
        now += Duration::from_millis(100);
        other.turn(now);
        for command in commands(&mut other, now) {
            bench.begin(command);
        }
    }
    other.exchange(secs(40), &mut bench);
    // The engine is away at first. After that, the node of slot 1 has not renewed yet.
    bench.is_away = true;
    run(&mut [&mut other], &mut bench, secs(40), secs(43));
    bench.is_away = false;
    run(&mut [&mut other], &mut bench, secs(43), secs(62));
    assert_eq!(bench.node_record(1).state, NodeState::Serving);
}

#[test]
fn a_node_that_finds_no_free_slot_says_so_and_goes_on() {
    let mut bench = Bench::default();
    let taken = NodeRecord {
        incarnation: Incarnation(1),
        state: NodeState::Serving,
        beat: 1,
        name: String::new(),
        addresses: Vec::new(),
        build: 0,
        types: Vec::new(),
        lock: String::new(),
        lease_ms: 0,
    };
    for slot in 0..SLOTS {
        bench.put(&format!("n.{slot}"), taken.encode());
    }
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    let noted = Effect::Noted(Notice::SlotsTaken { tried: 32 });
    assert_eq!(effects(&mut node), [noted]);
    for slot in 0..SLOTS {
        let dead = NodeRecord { state: NodeState::Dead, ..taken.clone() };
        bench.put(&format!("n.{slot}"), dead.encode());
    }
    run(&mut [&mut node], &mut bench, secs(1), secs(3));
    assert!(node.acts(secs(3)));
}

#[test]
fn no_node_is_declared_dead_after_an_outage_of_the_engine() {
    let (mut node, mut bench, _) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut node, &mut other], &mut bench, secs(1), secs(5));
    bench.is_away = true;
    run(&mut [&mut node, &mut other], &mut bench, secs(5), secs(65));
    bench.is_away = false;
    // The node of slot 1 comes back late.
    run(&mut [&mut other], &mut bench, secs(65), secs(80));
    assert_eq!(bench.node_record(1).state, NodeState::Serving);
    run(&mut [&mut other], &mut bench, secs(80), secs(95));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
}

#[test]
fn a_restarted_process_that_holds_the_lock_has_its_slot_and_keys_at_once() {
    let locked = |slot| Settings { lock: "machine/lock".into(), ..settings(slot) };
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut gone = Node::new(locked(1), 1, secs(0));
    run(&mut [&mut gone], &mut bench, secs(0), secs(1));
    want(&mut gone, &mut bench, secs(1), &key);
    let mut next = Node::new(locked(1), 2, secs(2));
    run(&mut [&mut next], &mut bench, secs(2), secs(3));
    assert_eq!(next.slot(), 1);
    let opens = want(&mut next, &mut bench, secs(3), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 1 }]);

    // Without the lock, the slot is another's.
    let mut third = Node::new(settings(1), 3, secs(3));
    run(&mut [&mut third], &mut bench, secs(3), secs(4));
    assert_ne!(third.slot(), 1);
}

#[test]
fn a_lease_that_is_too_short_is_refused() {
    let error = Settings::new(secs(4)).unwrap_err().to_string();
    assert_eq!(error, "a lease of 4s is too short: set 5s or more");
}

#[test]
fn a_node_that_has_its_slot_says_so_and_listens_as_each_of_its_incarnations() {
    let mut bench = Bench::default();
    let mut node = Node::new(settings(1), 1, secs(0));
    for end in [1, 5] {
        run(&mut [&mut node], &mut bench, secs(end - 1), secs(end));
        let (slot, incarnation) = (1, node.incarnation().unwrap());
        let ready = std::iter::from_fn(|| node.next_effect());
        let ready = ready.filter(|effect| *effect == Effect::Ready { slot, incarnation });
        assert_eq!(ready.count(), 1);
        assert!(bench.sent.contains(&Command::Listen { slot, incarnation }));
        let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
        bench.put("n.1", dead.encode());
    }
}

#[test]
fn nodes_know_each_other_and_the_loads_that_they_have() {
    let mut bench = Bench::default();
    let mut nodes = [1, 2].map(|slot| Node::new(settings(slot), slot.into(), secs(0)));
    let [one, two] = &mut nodes;
    run(&mut [one, two], &mut bench, secs(0), secs(1));
    let load = Load { rooms: 7, busy_percent: 30, takes_rooms: false };
    two.event(secs(1), Event::Load(load));
    run(&mut [one, two], &mut bench, secs(1), Duration::from_millis(2200));
    for command in std::mem::take(&mut bench.sent) {
        if let Command::Broadcast { bytes } = command {
            one.event(secs(2), Event::Engine(EngineEvent::Received { bytes }));
        }
    }
    run(&mut [one], &mut bench, secs(3), secs(3));
    let peers: Vec<_> = one.peers().collect();
    assert_eq!(peers.len(), 1);
    assert_eq!((peers[0].slot, Some(peers[0].incarnation)), (2, two.incarnation()));
    assert_eq!((&*peers[0].name, peers[0].load), ("node 2", Some(load)));
}

#[test]
fn another_node_has_the_keys_of_a_node_that_leaves_at_once() {
    let (node, mut bench, key) = serving();
    let mut nodes = [node, Node::new(settings(2), 2, secs(1))];
    run_and_hear(&mut nodes, &mut bench, secs(1), secs(4));
    let now = secs(4);
    nodes[0].leave(now);
    assert!(!nodes[0].acts(now));
    run_and_hear(&mut nodes, &mut bench, now, now);
    assert!(nodes[0].has_left());
    assert_eq!(effects(&mut nodes[0]), [Effect::Freeze { key: key.clone() }]);
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
    assert_eq!(nodes[1].peers().count(), 0);
    let open = Effect::Open { key: key.clone(), attempt: 1 };
    assert_eq!(want(&mut nodes[1], &mut bench, now, &key), [open]);
    // And it stays away.
    run_and_hear(&mut nodes, &mut bench, now, secs(30));
    assert_eq!(nodes[0].incarnation(), None);
}

#[test]
fn a_node_leaves_whatever_the_engine_answers() {
    for is_away in [false, true] {
        let (mut node, mut bench, key) = serving();
        bench.loses_answer = !is_away;
        bench.is_away = is_away;
        node.leave(secs(2));
        run(&mut [&mut node], &mut bench, secs(2), secs(3));
        assert!(!node.has_left());
        bench.is_away = false;
        run(&mut [&mut node], &mut bench, secs(3), secs(7));
        assert!(node.has_left());
        assert_eq!(effects(&mut node), [Effect::Freeze { key }]);
        assert_eq!(bench.node_record(1).state, NodeState::Dead);
    }
    // One that has no slot yet leaves at once.
    let mut node = Node::new(settings(1), 1, secs(0));
    node.leave(secs(0));
    assert!(node.has_left());
}
