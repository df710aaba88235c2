//! Wrong bodies: the client reports the fault, asks for a snapshot, and has a right copy after it.

use playfield_client::session::OutOfStep;
use playfield_state::{Tracker, Tracking};
use playfield_wire::Format;

use crate::play::{ME, Play};

/// The room with another schema.
mod other {
    use playfield_state::{List, State};

    #[derive(State, Default)]
    pub(crate) struct Table {
        pub(crate) name: String,
        pub(crate) log: List<String>,
        pub(crate) best: Option<f64>,
        pub(crate) marks: [u8; 3],
        pub(crate) more: u64,
    }
}

#[test]
fn truncated_and_prolonged_patches() {
    let mut play = Play::new();
    for cut in 0..play.node.patch().1.len() {
        play = Play::new();
        let (base, body) = play.node.patch();
        play.says_patch(base, base + 1, &body[..cut]);
        play.assert_refused(&format!("cut at {cut}"), |why| matches!(why, OutOfStep::Patch(_)));
    }
    play = Play::new();
    let (base, mut body) = play.node.patch();
    // One 0 more is a valid, empty mask of the owned part; two are not.
    body.extend([0, 0]);
    play.says_patch(base, base + 1, &body);
    play.assert_refused("with bytes left over", |why| matches!(why, OutOfStep::Patch(_)));
}

#[test]
fn reordered_and_replayed_patches() {
    let mut play = Play::new();
    let (first, second) = (play.node.patch(), play.node.patch());
    play.says_patch(second.0, second.0 + 1, &second.1);
    play.assert_refused("reordered", |why| matches!(why, OutOfStep::Base { .. }));

    let (base, body) = play.node.patch();
    play.says_patch(base, base + 1, &body);
    play.says_patch(base, base + 1, &body);
    play.assert_refused("replayed", |why| matches!(why, OutOfStep::Base { .. }));

    play.says_patch(first.0, first.0 + 1, &first.1);
    play.assert_refused("replayed much later", |why| matches!(why, OutOfStep::Base { .. }));

    // A patch that does not advance the version could be replayed unnoticed.
    let (base, body) = play.node.patch();
    play.says_patch(base, base, &body);
    play.assert_refused("of no advance", |why| matches!(why, OutOfStep::NoAdvance { .. }));
}

#[test]
fn snapshots_of_another_epoch_and_of_the_past() {
    let mut play = Play::new();
    let old = (play.node.version(), play.node.snapshot());
    play.repair();
    play.says_snapshot(4, old.0 + 9, &old.1);
    play.assert_refused("of another epoch", |why| {
        matches!(why, OutOfStep::Epoch { joined: 3, got: 4 })
    });
    play.says_snapshot(3, old.0, &old.1);
    play.assert_refused("replayed", |why| matches!(why, OutOfStep::Older { .. }));
}

#[test]
fn patches_by_another_schema() {
    let mut state = other::Table::default();
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    state.name = "another".into();
    state.log.extend(["a".to_owned(), "b".to_owned()]);
    (state.best, state.marks, state.more) = (Some(1.5), [1, 2, 3], 1 << 50);
    tracker.sync(&mut state);
    let mut body = Vec::new();
    assert!(tracker.patch(ME, 1, Format::Packed, &mut body));
    let mut play = Play::new();
    play.refuses("another schema", &body);
}

#[test]
fn unknown_slots_and_lengths_past_the_end() {
    let mut play = Play::new();
    let cases: [(&str, &[u8]); 14] = [
        ("a field that isn't there", &[0x08]),
        ("a change in an empty slot", &[2, 4, 0x7f, 1, 2, 0]),
        ("a change in a slot past all slots", &[2, 4, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2, 0]),
        ("an entry past all slots", &[2, 2, 0xff, 0xff, 0xff, 0xff, 0x0f, 9, 2, 0, 0]),
        ("one key in two slots", &[2, 2, 0x30, 9, 2, 0, 1, 9, 2, 0, 0]),
        ("flags that no map has", &[2, 0x40]),
        ("a text longer than what came", &[2, 2, 0x30, 9, 2, 0xff, 0xff, 0x7f, b'a', 0]),
        ("a list longer than what came", &[4, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]),
        ("an element past the end", &[4, 1, 0x7f, 1, 0]),
        ("a removal past the end", &[4, 2, 4, 0x7f, 0, 0]),
        ("an insertion past the end", &[4, 2, 5, 0x7f, 0, 1, 1, 0]),
        ("a move past the end", &[4, 2, 6, 0, 0x7f, 0, 0]),
        ("an order that names an element twice", &[4, 2, 15, 0, 0, 0, 0, 0]),
        ("a group of slots that are not there", &[2, 8, 1, 2, 0x7f, 5, 1, 0, 0]),
    ];
    for (what, body) in cases {
        play.refuses(what, body);
    }
}
