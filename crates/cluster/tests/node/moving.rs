//! Moves of claims to other nodes.

use playfield_cluster::*;

use crate::bench::*;

const NONCE: Nonce = [7; 16];

/// The node that serves a key, and another that is to have its room.
fn pair() -> (Node, Node, Bench, Key) {
    let (mut source, mut bench, key) = serving();
    let mut target = Node::new(settings(2), 2, secs(1));
    run(&mut [&mut source, &mut target], &mut bench, secs(1), secs(2));
    effects(&mut source);
    effects(&mut target);
    (source, target, bench, key)
}

fn id(node: &Node) -> NodeId {
    NodeId { slot: node.slot(), incarnation: node.incarnation().unwrap() }
}

fn hand_over(
    node: &mut Node,
    bench: &mut Bench,
    key: &Key,
    to: NodeId,
    first: bool,
) -> Vec<Effect> {
    let (key, request, nonce) = (key.clone(), 9, NONCE);
    let event = Event::HandOver { key, to, nonce, request, is_first: first };
    node.event(secs(2), event);
    node.exchange(secs(2), bench);
    effects(node)
}

fn handed(handed: Handed) -> [Effect; 1] {
    [Effect::HandedOver { request: 9, handed }]
}

/// Looks for the claim at the target; saves are opened at once.
fn receive(node: &mut Node, bench: &mut Bench, key: &Key, nonce: Nonce) -> Vec<Effect> {
    let want = Want::Receive { nonce };
    node.event(secs(2), Event::Wanted { key: key.clone(), request: 8, want });
    node.exchange(secs(2), bench);
    let all = effects(node);
    match all[..] {
        [Effect::Open { attempt, .. }] => open(node, bench, secs(2), key, attempt),
        _ => all,
    }
}

fn found(place: Place) -> Effect {
    Effect::Found { request: 8, place, is_code: false }
}

#[test]
fn a_claim_is_at_the_target_once_it_was_handed_over_and_not_before() {
    let (mut source, mut target, mut bench, key) = pair();
    let peer = target.peers().next().unwrap().clone();
    let early = receive(&mut target, &mut bench, &key, NONCE);
    assert_eq!(early, [found(Place::At(peer))]);
    let to = id(&target);
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, false), handed(Handed::Yes));
    let served = receive(&mut target, &mut bench, &key, NONCE);
    let here = found(Place::Here { is_new: true });
    assert_eq!(served, [Effect::Serve { key: key.clone() }, here]);
    let claim = bench.claim(&key).unwrap();
    assert_eq!((claim.slot, claim.incarnation), (to.slot, to.incarnation));
    assert_ne!(claim.nonce, NONCE);
    // It is handed back in the same way.
    let back = id(&source);
    assert_eq!(hand_over(&mut target, &mut bench, &key, back, false), handed(Handed::Yes));
    let served = receive(&mut source, &mut bench, &key, NONCE);
    assert!(served.contains(&found(Place::Here { is_new: true })), "{served:?}");
}

#[test]
fn a_room_without_a_key_gets_a_claim_by_its_first_move() {
    let (mut source, mut target, mut bench, _) = pair();
    let key = Key::from("i.aaaaaaaaaaaaaaaa");
    let to = id(&target);
    assert_eq!(receive(&mut target, &mut bench, &key, NONCE), [found(Place::Free)]);
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, false), handed(Handed::No));
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, true), handed(Handed::Yes));
    let served = receive(&mut target, &mut bench, &key, NONCE);
    assert!(served.contains(&found(Place::Here { is_new: true })), "{served:?}");
    target.event(secs(2), Event::Released { key: key.clone() });
    target.exchange(secs(2), &mut bench);
    assert_eq!(bench.claim(&key), None);
}

#[test]
fn an_unknown_outcome_is_read_until_it_is_known() {
    let (mut source, target, mut bench, key) = pair();
    bench.loses_answer = true;
    let to = id(&target);
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, false), handed(Handed::Yes));
    // It did not arrive, and no answer says so before the engine is back.
    let (mut source, target, mut bench, key) = pair();
    bench.is_away = true;
    let to = id(&target);
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, false), []);
    bench.is_away = false;
    run(&mut [&mut source], &mut bench, secs(2), secs(4));
    assert_eq!(effects(&mut source), handed(Handed::Yes));
}

#[test]
fn a_claim_that_another_node_has_meanwhile_is_lost() {
    let (mut source, target, mut bench, key) = pair();
    bench.put(&key, claim(9, Incarnation(9)).encode());
    let lost = hand_over(&mut source, &mut bench, &key, id(&target), false);
    assert_eq!(lost, [&handed(Handed::Lost)[..], &[Effect::End { key: key.clone() }]].concat());
    assert_eq!(bench.claim(&key), Some(claim(9, Incarnation(9))));
}

#[test]
fn a_claim_with_another_nonce_is_not_received() {
    let (mut source, mut target, mut bench, key) = pair();
    let to = id(&target);
    assert_eq!(hand_over(&mut source, &mut bench, &key, to, false), handed(Handed::Yes));
    let other = receive(&mut target, &mut bench, &key, [8; 16]);
    assert_eq!(other, [found(Place::Busy)]);
    assert!(receive(&mut target, &mut bench, &key, NONCE).len() > 1);
}

#[test]
fn a_node_that_is_declared_dead_while_it_hands_over_learns_the_outcome() {
    let (mut source, target, mut bench, key) = pair();
    bench.is_away = true;
    assert_eq!(hand_over(&mut source, &mut bench, &key, id(&target), false), []);
    bench.is_away = false;
    let dead = NodeRecord { state: NodeState::Dead, ..bench.node_record(1) };
    bench.put("n.1", dead.encode());
    run(&mut [&mut source], &mut bench, secs(2), secs(9));
    let all = effects(&mut source);
    let outcome = all.iter().find(|effect| matches!(effect, Effect::HandedOver { .. }));
    assert_eq!(outcome, Some(&handed(Handed::Yes)[0]), "{all:?}");
    let claim = bench.claim(&key).unwrap();
    assert_eq!((claim.slot, claim.nonce), (2, NONCE));
}
