//! Links between nodes.

use std::time::Duration;

use playfield_cluster::{
    AskError, Beat, Effect, EngineEvent, Event, Incarnation, Load, NodeState, Notice, Settings,
};

use crate::bench::secs;
use crate::pair::{Pair, SECOND, answered, linked};

#[test]
fn requests_are_answered_and_messages_keep_their_order() {
    let mut pair = linked();
    pair.frames = 0;
    pair.ask(0, 5, b"how");
    pair.tell(0, b"one");
    pair.tell(0, b"two");
    pair.settle();
    let [asked, tells @ ..] = &pair.effects(1)[..] else { panic!() };
    let Effect::Asked { from, number, within, body } = asked else { panic!("{asked:?}") };
    assert_eq!((&body[..], *within), (&b"how"[..], 2 * SECOND));
    assert_eq!((from.slot, Some(from.incarnation)), (0, pair.nodes[0].incarnation()));
    let told = |body: &[u8]| Effect::Told { from: *from, body: body.to_vec() };
    assert_eq!(tells, [told(b"one"), told(b"two")]);
    assert_eq!(pair.frames, 1);
    pair.nodes[1].event(pair.now, Event::Answer { to: 0, number: *number, body: b"so".to_vec() });
    pair.settle();
    assert_eq!(pair.effects(0), [answered(5, Ok(b"so"))]);
}

#[test]
fn a_request_to_nobody_fails_at_once() {
    let mut pair = Pair::new();
    for to in [0, 2, u16::MAX] {
        let ask = u64::from(to);
        let event = Event::Ask { to, ask, within: Duration::MAX, body: Vec::new() };
        pair.nodes[0].event(pair.now, event);
        pair.settle();
        assert_eq!(pair.effects(0), [answered(ask, Err(AskError::NobodyThere))]);
    }
}

#[test]
fn a_lost_message_resets_the_link_at_both_ends_within_about_a_second() {
    let mut pair = linked();
    pair.is_deaf[1] = true;
    pair.ask(0, 5, b"lost");
    pair.settle();
    pair.is_deaf[1] = false;
    pair.pass(SECOND + SECOND / 5);
    assert_eq!(pair.effects(1), [pair.reset(1)]);
    let failed = answered(5, Err(AskError::LinkReset));
    assert_eq!(pair.effects(0), [pair.reset(0), failed]);
    pair.tell(0, b"next");
    pair.tell(1, b"back");
    pair.settle();
    assert_eq!((pair.heard(1), pair.heard(0)), (vec![b"next".to_vec()], vec![b"back".to_vec()]));
}

#[test]
fn a_gap_is_noticed_with_the_next_message() {
    let mut pair = linked();
    pair.is_deaf[1] = true;
    pair.tell(0, b"lost");
    pair.settle();
    pair.is_deaf[1] = false;
    pair.tell(0, b"late");
    pair.settle();
    assert_eq!((pair.effects(1), pair.effects(0)), (vec![pair.reset(1)], vec![pair.reset(0)]));
}

#[test]
fn a_request_to_a_node_that_hears_nothing_fails_once() {
    let mut pair = linked();
    pair.is_deaf[1] = true;
    pair.ask(0, 5, b"unheard");
    pair.pass(SECOND);
    assert_eq!(pair.effects(0), []);
    pair.pass(9 * SECOND);
    assert_eq!(pair.effects(0), [answered(5, Err(AskError::Timeout))]);
    // Nothing grows meanwhile: one short frame a second.
    assert!(pair.frames < 20, "{}", pair.frames);
}

#[test]
fn an_answer_that_comes_too_late_is_dropped() {
    let mut pair = linked();
    pair.ask(0, 5, b"how");
    pair.settle();
    let Some(Effect::Asked { number, .. }) = pair.effects(1).pop() else { panic!() };
    pair.pass(3 * SECOND);
    assert_eq!(pair.effects(0), [answered(5, Err(AskError::Timeout))]);
    pair.nodes[1].event(pair.now, Event::Answer { to: 0, number, body: b"so".to_vec() });
    pair.settle();
    assert_eq!(pair.effects(0), []);
}

#[test]
fn a_request_that_could_not_be_sent_in_time_is_not_sent_later() {
    let mut pair = Pair::new();
    pair.is_deaf = [true; 2];
    pair.ask(0, 5, b"old");
    pair.pass(3 * SECOND);
    assert_eq!(pair.effects(0), [answered(5, Err(AskError::Timeout))]);
    pair.is_deaf = [false; 2];
    pair.ask(0, 6, b"new");
    pair.pass(2 * SECOND);
    assert_eq!(pair.heard(1), [b"new"]);
}

#[test]
fn a_node_that_stood_still_does_not_carry_out_what_was_asked_meanwhile() {
    let mut pair = linked();
    pair.is_stopped[1] = true;
    pair.ask(0, 5, b"old");
    pair.pass(2 * SECOND);
    pair.ask(0, 6, b"older than it looks");
    pair.exchange(0);
    pair.is_stopped[1] = false;
    pair.pass(SECOND);
    assert_eq!(pair.effects(1), [pair.reset(1)]);
    let expected =
        [answered(5, Err(AskError::Timeout)), pair.reset(0), answered(6, Err(AskError::LinkReset))];
    assert_eq!(pair.effects(0), expected);
    pair.ask(0, 7, b"new");
    pair.settle();
    assert_eq!(pair.heard(1), [b"new"]);
}

#[test]
fn a_link_to_a_dead_node_is_closed_and_one_to_its_next_incarnation_opened() {
    let mut pair = linked();
    pair.is_deaf[1] = true;
    let (within, body) = (secs(60), b"unheard".to_vec());
    pair.nodes[0].event(pair.now, Event::Ask { to: 1, ask: 5, within, body });
    pair.settle();
    let reset = pair.reset(0);
    let mut record = pair.bench.node_record(1);
    record.state = NodeState::Dead;
    pair.bench.put("n.1", record.encode());
    pair.pass(3 * SECOND);
    pair.is_deaf[1] = false;
    let effects = pair.effects(0);
    assert_eq!(effects, [reset, answered(5, Err(AskError::NobodyThere))]);
    pair.ask(0, 6, b"new");
    pair.pass(SECOND);
    assert_eq!(pair.heard(1), [b"new"]);
}

#[test]
fn an_end_that_was_closed_is_noticed_at_the_other_end() {
    let mut pair = linked();
    let (peer, revision) = (pair.nodes[0].peers().next().unwrap().clone(), pair.bench.revision);
    // For a moment, another incarnation seems to have the slot.
    for (incarnation, revision) in
        [(Incarnation(1), revision + 1), (peer.incarnation, revision + 2)]
    {
        let bytes = Beat {
            slot: 1,
            incarnation,
            revision,
            state: NodeState::Serving,
            load: Load::default(),
        }
        .encode();
        pair.nodes[0].event(pair.now, Event::Engine(EngineEvent::Received { bytes }));
        pair.nodes[0].turn(pair.now);
    }
    pair.pass(11 * SECOND);
    assert_eq!(pair.effects(0), [Effect::LinkReset { with: peer.id() }]);
    assert_eq!(pair.effects(1), [pair.reset(1)]);
}

#[test]
fn an_interrupted_connection_resets_the_link() {
    let mut pair = linked();
    pair.ask(0, 5, b"how");
    pair.settle();
    pair.effects(1);
    pair.nodes[1].event(pair.now, Event::Engine(EngineEvent::Interrupted));
    pair.settle();
    assert_eq!(pair.effects(1), [pair.reset(1)]);
    assert_eq!(pair.effects(0), [pair.reset(0), answered(5, Err(AskError::LinkReset))]);
}

#[test]
fn many_messages_are_split_into_frames() {
    let mut pair = linked();
    pair.frames = 0;
    let bodies: Vec<_> = (0..40u8).map(|number| vec![number; 60_000]).collect();
    for body in &bodies {
        pair.tell(0, body);
    }
    pair.exchange(0);
    assert_eq!(pair.frames, 5);
    assert!(pair.ways[1].iter().all(|frame| frame.len() <= 512 * 1024));
    pair.settle();
    assert_eq!(pair.heard(1), bodies);
}

#[test]
fn what_is_too_large_for_a_frame_is_refused() {
    let mut pair = linked();
    let large = vec![0; 512 * 1024];
    pair.ask(0, 5, &large);
    pair.tell(0, &large);
    pair.ask(0, 6, b"how");
    pair.settle();
    let Some(Effect::Asked { number, .. }) = pair.effects(1).pop() else { panic!() };
    pair.nodes[1].event(pair.now, Event::Answer { to: 0, number, body: large });
    pair.settle();
    let expected = [
        answered(5, Err(AskError::TooLarge)),
        Effect::Noted(Notice::MessageTooLarge { bytes: 512 * 1024 }),
        answered(6, Err(AskError::TooLarge)),
    ];
    assert_eq!(pair.effects(0), expected);
}

#[test]
fn a_link_whose_other_end_does_not_read_is_reset_and_holds_no_more() {
    let bound = 1 << 20;
    let mut pair = Pair::with(|settings| Settings { link_bytes_max: bound, ..settings });
    pair.tell(0, b"first");
    pair.settle();
    assert_eq!(pair.heard(1), [b"first"]);
    pair.is_deaf[1] = true;
    let body = vec![0; 100_000];
    for _ in 0..20 {
        pair.tell(0, &body);
        pair.exchange(0);
    }
    pair.ask(0, 5, b"how");
    pair.settle();
    let failed = answered(5, Err(AskError::LinkReset));
    assert_eq!(pair.effects(0), [pair.reset(0), failed]);
    pair.is_deaf[1] = false;
    pair.pass(SECOND + SECOND / 5);
    pair.tell(0, b"next");
    pair.settle();
    assert_eq!(pair.heard(1), [b"next"]);
    // One that reads never holds it up.
    for _ in 0..100 {
        pair.tell(0, &body);
        pair.settle();
    }
    assert_eq!((pair.effects(0), pair.heard(1).len()), (Vec::new(), 100));
}

#[test]
fn frames_for_others_and_frames_that_cannot_be_read_are_ignored() {
    let mut pair = linked();
    pair.tell(0, b"next");
    pair.exchange(0);
    let frame = pair.ways[1][0].clone();
    let mut ignored: Vec<Vec<u8>> = (0..20).map(|end| frame[..end].to_vec()).collect();
    let mut of_later_format = frame.clone();
    of_later_format[0] = 2;
    let mut from_itself = frame.clone();
    from_itself[2] = 1;
    let mut to_another = frame.clone();
    to_another[12] ^= 1;
    let mut from_another = frame.clone();
    from_another[4] ^= 1;
    ignored.extend([of_later_format, from_itself, to_another, from_another]);
    for bytes in ignored.into_iter().chain([frame]) {
        pair.nodes[1].event(pair.now, Event::Engine(EngineEvent::Delivered { bytes }));
    }
    pair.ways[1].clear();
    pair.settle();
    assert_eq!(pair.heard(1), [b"next"]);
}
