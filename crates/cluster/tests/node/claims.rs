//! Claims of keys.

use playfield_cluster::*;

use crate::bench::*;

#[test]
fn a_node_that_was_declared_dead_claims_its_keys_again_with_a_new_incarnation() {
    let (mut node, mut bench, key) = serving();
    let before = node.incarnation().unwrap();
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.1", dead.encode());
    run(&mut [&mut node], &mut bench, secs(1), secs(5));
    let after = node.incarnation().unwrap();
    assert_ne!(before, after);
    assert_eq!(bench.claim(&key).unwrap().incarnation, after);
    let expected = [
        Effect::Noted(Notice::DeclaredDead),
        Effect::Freeze { key: key.clone() },
        Effect::Open { key: key.clone(), attempt: 2 },
    ];
    assert_eq!(effects(&mut node), expected);
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 2), [Effect::Thaw { key }]);
}

#[test]
fn a_save_that_an_earlier_incarnation_has_asked_for_is_not_used() {
    let (mut bench, key) = (Bench::default(), Key::from("r.board.1"));
    let mut node = Node::new(settings(1), 1, secs(0));
    run(&mut [&mut node], &mut bench, secs(0), secs(1));
    want(&mut node, &mut bench, secs(1), &key);
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.1", dead.encode());
    run(&mut [&mut node], &mut bench, secs(1), secs(5));
    effects(&mut node);
    let opens = want(&mut node, &mut bench, secs(5), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 2 }]);
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 1), []);
    let found = Effect::Found { request: 7, place: Place::Here { is_new: true }, is_code: false };
    let served = [Effect::Serve { key: key.clone() }, found];
    assert_eq!(open(&mut node, &mut bench, secs(5), &key, 2), served);
}

#[test]
fn a_room_whose_save_another_owner_has_written_ends() {
    let (mut node, mut bench, key) = serving();
    node.event(secs(2), Event::Fenced { key: key.clone() });
    node.exchange(secs(2), &mut bench);
    let expected =
        [Effect::Freeze { key: key.clone() }, Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(effects(&mut node), expected);
    let changed = Event::Opened { key: key.clone(), attempt: 2, save: Some(Save::Changed) };
    node.event(secs(2), changed);
    node.exchange(secs(2), &mut bench);
    assert_eq!(effects(&mut node), [Effect::End { key: key.clone() }]);
    assert_eq!(bench.claim(&key), None);
}

#[test]
fn a_write_whose_outcome_is_unknown_is_written_again_before_the_room_is_served() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    bench.loses_answer = true;
    bench.sent.clear();
    let opens = want(&mut node, &mut bench, secs(2), &key);
    assert_eq!(opens, [Effect::Open { key: key.clone(), attempt: 2 }]);
    let writes = bench.sent.iter().filter(|command| matches!(command, Command::Write { .. }));
    assert_eq!(writes.count(), 2);
    assert_eq!(bench.claim(&key).unwrap().incarnation, node.incarnation().unwrap());
}

#[test]
fn a_claim_that_the_engine_has_lost_is_noticed_after_the_next_renewal() {
    let (mut node, mut bench, key) = serving();
    // The number of its revision was used again, by a removal.
    bench.records.get_mut(&key).unwrap().value = None;
    run(&mut [&mut node], &mut bench, secs(1), secs(4));
    let expected =
        [Effect::Freeze { key: key.clone() }, Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(effects(&mut node), expected);
    assert!(bench.claim(&key).is_some());
}

#[test]
fn a_key_of_a_dead_node_is_taken_over_after_the_lease_and_not_before() {
    let (gone, mut bench, key) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut other], &mut bench, secs(1), secs(2));
    let last_renewal = bench.node_record(1);
    let at = |node: &mut Node, bench: &mut Bench, now| want(node, bench, now, &key);
    let elsewhere = |node: &Node| {
        let place = Place::At(node.peers().next().unwrap().clone());
        [Effect::Found { request: 7, place, is_code: false }]
    };
    assert_eq!(at(&mut other, &mut bench, secs(2)), elsewhere(&other));
    run(&mut [&mut other], &mut bench, secs(2), secs(21));
    assert_eq!(bench.node_record(1), last_renewal);
    assert_eq!(at(&mut other, &mut bench, secs(21)), elsewhere(&other));
    run(&mut [&mut other], &mut bench, secs(21), secs(23));
    assert_eq!(bench.node_record(1).state, NodeState::Dead);
    let open = Effect::Open { key: key.clone(), attempt: 1 };
    assert_eq!(at(&mut other, &mut bench, secs(23)), [open]);
    drop(gone);
}

#[test]
fn a_claim_that_arrives_after_its_incarnation_was_forgotten_is_taken_over_after_the_lease() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    // The engine was wiped since, so no record says that the node of slot 9 is dead.
    bench.put(&key, claim(9, Incarnation(9)).encode());
    let busy = [Effect::Found { request: 7, place: Place::Busy, is_code: false }];
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), busy);
    run(&mut [&mut node], &mut bench, secs(2), secs(22));
    assert_eq!(want(&mut node, &mut bench, secs(22), &key), busy);
    run(&mut [&mut node], &mut bench, secs(22), secs(24));
    let open = [Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(want(&mut node, &mut bench, secs(24), &key), open);
}

#[test]
fn a_claim_for_this_node_that_it_has_not_written_is_left_alone() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    let incarnation = node.incarnation().unwrap();
    bench.put(&key, claim(1, incarnation).encode());
    let busy = Effect::Found { request: 7, place: Place::Busy, is_code: false };
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), [busy]);
}

#[test]
fn a_record_of_a_later_format_is_reported_and_not_overwritten() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    bench.put(&key, vec![2, 1, 2, 3]);
    let error = "at byte 0: a record of the format 2, and this build reads 1: upgrade this node";
    let expected = [
        Effect::Noted(Notice::Unreadable { key: key.clone(), error: error.into() }),
        Effect::Found { request: 7, place: Place::Busy, is_code: false },
    ];
    assert_eq!(want(&mut node, &mut bench, secs(2), &key), expected);
    assert_eq!(bench.records[&key].value.as_deref(), Some(&[2, 1, 2, 3][..]));

    // A message that can't be read is none.
    let mut bytes = Beat {
        slot: 3,
        incarnation: node.incarnation().unwrap(),
        revision: 9,
        state: NodeState::Serving,
        load: Load::default(),
    }
    .encode();
    bytes[0] = 2;
    node.event(secs(2), Event::Engine(EngineEvent::Received { bytes }));
    assert_eq!(effects(&mut node), []);
}

#[test]
fn a_claim_that_is_later_than_the_death_of_another_incarnation_is_taken_over_after_the_lease() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    // The engine has lost the record of the incarnation that has made the claim.
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.9", NodeRecord { incarnation: Incarnation(8), ..dead }.encode());
    bench.put(&key, claim(9, Incarnation(9)).encode());
    let busy = [Effect::Found { request: 7, place: Place::Busy, is_code: false }];
    let begins = secs(2);
    for second in 0..21 {
        run(&mut [&mut node], &mut bench, begins + secs(second), begins + secs(second + 1));
        // Asking again does not make it longer.
        assert_eq!(want(&mut node, &mut bench, begins + secs(second + 1), &key), busy);
    }
    run(&mut [&mut node], &mut bench, secs(23), secs(25));
    let open = [Effect::Open { key: key.clone(), attempt: 2 }];
    assert_eq!(want(&mut node, &mut bench, secs(25), &key), open);
}

/// Wishes for a key, whose answers come with later events.
fn wish(node: &mut Node, bench: &mut Bench, key: &Key, requests: &[(RequestId, Want)]) {
    for &(request, want) in requests {
        node.event(secs(2), Event::Wanted { key: key.clone(), request, want });
    }
    node.exchange(secs(2), bench);
}

const KEY: Want = Want::Claim { is_code: false };
const CODE: Want = Want::Claim { is_code: true };

#[test]
fn a_search_finds_rooms_and_leaves_no_claim() {
    let (mut node, mut bench, key) = serving();
    let free = Key::from("r.board.2");
    wish(&mut node, &mut bench, &free, &[(1, Want::Find), (2, Want::Find)]);
    wish(&mut node, &mut bench, &key, &[(3, Want::Find)]);
    let found = |request, place| Effect::Found { request, place, is_code: false };
    let here = Place::Here { is_new: false };
    let expected = [found(1, Place::Free), found(2, Place::Free), found(3, here)];
    assert_eq!(effects(&mut node), expected);
    assert_eq!(bench.records.get(&free), None);
}

#[test]
fn a_room_is_new_for_the_first_request_that_claims_its_key() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    wish(&mut node, &mut bench, &key, &[(1, Want::Find), (2, CODE), (3, KEY)]);
    assert_eq!(effects(&mut node), [Effect::Open { key: key.clone(), attempt: 2 }]);
    let found = |request, is_new| {
        let place = Place::Here { is_new };
        Effect::Found { request, place, is_code: true }
    };
    let served = open(&mut node, &mut bench, secs(2), &key, 2);
    let serve = Effect::Serve { key: key.clone() };
    assert_eq!(served, [serve, found(2, true), found(1, false), found(3, false)]);
    assert!(bench.claim(&key).unwrap().is_code);
}

#[test]
fn another_node_says_that_a_key_is_a_code_and_where_its_room_is() {
    let (mut node, mut bench, key) = serving();
    let mut other = Node::new(settings(2), 2, secs(1));
    node.event(secs(1), Event::IsCode { key: key.clone() });
    run(&mut [&mut node, &mut other], &mut bench, secs(1), secs(2));
    wish(&mut other, &mut bench, &key, &[(1, Want::Find), (2, KEY)]);
    for (effect, request) in effects(&mut other).into_iter().zip(1..) {
        let Effect::Found { place: Place::At(peer), is_code: true, request: answered } = effect
        else {
            panic!("{effect:?}");
        };
        assert_eq!((answered, peer.slot, &*peer.name), (request, 1, "node 1"));
        assert_eq!(*peer.addresses, ["tls://1".to_owned()]);
    }
}

#[test]
fn a_claim_that_was_marked_as_a_code_is_held_and_removed_like_others() {
    let (mut node, mut bench, key) = serving();
    node.event(secs(1), Event::IsCode { key: key.clone() });
    run(&mut [&mut node], &mut bench, secs(1), secs(6));
    assert!(bench.claim(&key).unwrap().is_code);
    assert_eq!(effects(&mut node), []);
    node.event(secs(6), Event::Released { key: key.clone() });
    node.exchange(secs(6), &mut bench);
    assert_eq!(bench.claim(&key), None);
}

#[test]
fn a_room_that_ends_while_its_claim_is_marked_leaves_no_claim() {
    let (mut node, mut bench, key) = serving();
    node.event(secs(1), Event::IsCode { key: key.clone() });
    node.event(secs(1), Event::Released { key: key.clone() });
    node.exchange(secs(1), &mut bench);
    assert_eq!(bench.claim(&key), None);
    assert_eq!(effects(&mut node), []);
}

#[test]
fn a_key_that_is_given_up_while_its_claim_is_written_is_free() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    node.event(secs(2), Event::Wanted { key: key.clone(), request: 1, want: KEY });
    // The read is answered, the write is not yet.
    for command in commands(&mut node, secs(2)) {
        bench.begin(command);
    }
    node.event(secs(2), Event::Engine(bench.next().unwrap()));
    for command in commands(&mut node, secs(2)) {
        bench.begin(command);
    }
    assert!(bench.claim(&key).is_some());
    node.event(secs(2), Event::Released { key: key.clone() });
    node.exchange(secs(2), &mut bench);
    assert_eq!(bench.claim(&key), None);
    let busy = Effect::Found { request: 1, place: Place::Busy, is_code: false };
    assert_eq!(effects(&mut node), [busy]);
    // And is claimed as if nothing had been.
    wish(&mut node, &mut bench, &key, &[(2, KEY)]);
    assert_eq!(effects(&mut node), [Effect::Open { key: key.clone(), attempt: 2 }]);
}

#[test]
fn a_key_whose_save_cannot_be_opened_is_free_again() {
    let (mut node, mut bench, _) = serving();
    let key = Key::from("r.board.2");
    wish(&mut node, &mut bench, &key, &[(1, KEY)]);
    effects(&mut node);
    node.event(secs(2), Event::Opened { key: key.clone(), attempt: 2, save: None });
    node.exchange(secs(2), &mut bench);
    let busy = Effect::Found { request: 1, place: Place::Busy, is_code: false };
    assert_eq!(effects(&mut node), [busy]);
    assert_eq!(bench.claim(&key), None);
}
