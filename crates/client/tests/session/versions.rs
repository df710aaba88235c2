//! The snapshots, patches and events that a client accepts.

use playfield_client::session::{
    ClientError, Event, OutOfStep, RoomCopy, UNUSABLE_IN_A_ROW_MAX, Update, UpdateKind,
};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{DecodeError, RoomNumber};

use crate::support::{Talk, is_update, joined, other, patch, snapshot};

#[test]
fn a_patch_of_another_base_is_ignored_and_a_snapshot_is_asked_for_once() {
    let mut talk = Talk::in_room();
    talk.says(&patch(RoomNumber(1), 6, 7));
    let why = OutOfStep::Base { base: 6, version: 5 };
    assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
    assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);

    // Later patches are ignored, even one that would fit.
    talk.says(&patch(RoomNumber(1), 7, 8));
    talk.says(&patch(RoomNumber(1), 5, 8));
    assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));

    talk.says(&snapshot(RoomNumber(1), 3, 8));
    assert!(is_update(&talk.event(), UpdateKind::Snapshot, 8));
    talk.says(&patch(RoomNumber(1), 8, 9));
    assert!(is_update(&talk.event(), UpdateKind::Patch, 9));
}

#[test]
fn a_repeated_patch_is_applied_once() {
    let mut talk = Talk::in_room();
    talk.says(&patch(RoomNumber(1), 5, 6));
    assert!(is_update(&talk.event(), UpdateKind::Patch, 6));
    talk.says(&patch(RoomNumber(1), 5, 6));
    let why = OutOfStep::Base { base: 5, version: 6 };
    assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
}

#[test]
fn events_and_replies_arrive_while_a_snapshot_is_awaited() {
    let mut talk = Talk::in_room();
    let request = talk.client.request(RoomNumber(1), 0, b"").unwrap();
    talk.client.resync(RoomNumber(1)).unwrap();
    talk.says(&patch(RoomNumber(1), 5, 6));
    let message = playfield_wire::message::MessageRef::Index(0);
    talk.says(&ServerMessage::Event(server::Event {
        room: RoomNumber(1),
        sequence: 1,
        version: 6,
        message,
        payload: b"".into(),
    }));
    talk.says(&ServerMessage::Reply(server::Reply { request, payload: b"".into() }));
    assert!(matches!(talk.event(), Event::Event(event) if event.version == 6));
    assert!(matches!(talk.event(), Event::Reply(_)));
}

#[test]
fn a_patch_that_does_not_advance_the_version_is_ignored() {
    let mut talk = Talk::in_room();
    talk.says(&patch(RoomNumber(1), 5, 5));
    assert_eq!(
        talk.all_events(),
        [Event::OutOfStep { room: RoomNumber(1), why: OutOfStep::NoAdvance { version: 5 } }]
    );
    assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);
}

/// A snapshot of another epoch, or older than the copy.
#[test]
fn a_wrong_snapshot_is_ignored_and_another_is_asked_for() {
    let cases = [
        (snapshot(RoomNumber(1), 4, 6), OutOfStep::Epoch { joined: 3, got: 4 }),
        (snapshot(RoomNumber(1), 3, 4), OutOfStep::Older { version: 5, got: 4 }),
    ];
    for (stray, why) in cases {
        let mut talk = Talk::in_room();
        talk.says(&stray);
        assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why: why.clone() }]);
        assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);
        // Patches are ignored, and the next snapshot is checked in the same way.
        talk.says(&patch(RoomNumber(1), 5, 6));
        talk.says(&stray);
        assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
        assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);

        talk.says(&snapshot(RoomNumber(1), 3, 8));
        assert!(is_update(&talk.event(), UpdateKind::Snapshot, 8));
        talk.says(&patch(RoomNumber(1), 8, 9));
        assert!(is_update(&talk.event(), UpdateKind::Patch, 9));
    }
}

#[test]
fn the_first_snapshot_of_a_room_is_checked_too() {
    let mut talk = Talk::welcomed();
    let request = talk.client.join("r").unwrap();
    talk.says(&joined(request, RoomNumber(1), 3));
    talk.says(&snapshot(RoomNumber(1), 4, 5));
    let why = OutOfStep::Epoch { joined: 3, got: 4 };
    assert_eq!(talk.all_events().pop(), Some(Event::OutOfStep { room: RoomNumber(1), why }));
    assert_eq!(talk.heard().pop(), Some(other("Resync { room: 1 }")));
    talk.says(&snapshot(RoomNumber(1), 3, 5));
    assert!(is_update(&talk.event(), UpdateKind::Snapshot, 5));
}

#[test]
fn a_node_that_always_sends_a_wrong_snapshot_is_not_asked_forever() {
    let mut talk = Talk::in_room();
    let wrong = snapshot(RoomNumber(1), 4, 6);
    for _ in 0..UNUSABLE_IN_A_ROW_MAX {
        talk.says(&wrong);
        assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);
    }
    // A usable one resets the count.
    talk.says(&snapshot(RoomNumber(1), 3, 6));
    for _ in 0..UNUSABLE_IN_A_ROW_MAX {
        talk.says(&wrong);
        assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);
    }
    talk.all_events();
    talk.says(&wrong);
    assert_eq!(talk.heard(), []);
    let why = OutOfStep::Epoch { joined: 3, got: 4 };
    assert_eq!(talk.event(), Event::OutOfStep { room: RoomNumber(1), why });
    let unusable = UNUSABLE_IN_A_ROW_MAX + 1;
    talk.assert_closed(ClientError::NeverInStep { room: RoomNumber(1), unusable });
}

#[test]
fn a_missing_event_ends_the_connection() {
    for (first, got) in [(1, 3), (1, 1), (2, 2), (u64::MAX, u64::MAX)] {
        let mut talk = Talk::in_room();
        let event = |sequence| {
            let message = playfield_wire::message::MessageRef::Index(0);
            ServerMessage::Event(server::Event {
                room: RoomNumber(1),
                sequence,
                version: 5,
                message,
                payload: b"".into(),
            })
        };
        talk.says(&event(first));
        talk.says(&event(got));
        let due = if first == 1 { 2 } else { 1 };
        talk.assert_closed(ClientError::EventOutOfOrder { room: RoomNumber(1), due, got });
    }
}

/// A copy that can read only the snapshot of version 5.
struct Blind;

impl RoomCopy for Blind {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        let is_good = update.kind == UpdateKind::Snapshot && update.version == 5;
        if is_good { Ok(()) } else { Err(DecodeError::other("blind")) }
    }

    fn digest_is(&mut self, _: u64) -> bool {
        true
    }
}

/// A session in room 1, whose copy can read only the snapshot of version 5.
fn blind() -> Talk {
    let mut talk = Talk::in_room();
    assert!(talk.client.set_copy(RoomNumber(1), Box::new(Blind)));
    talk
}

#[test]
fn a_patch_that_cant_be_applied_leads_to_a_snapshot() {
    let mut talk = blind();
    talk.says(&patch(RoomNumber(1), 5, 6));
    let why = OutOfStep::Patch(DecodeError::other("blind"));
    assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
    assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);
}

/// Also if the program asks for each of them.
#[test]
fn too_many_unreadable_snapshots_end_the_connection() {
    let mut talk = blind();
    for _ in 0..UNUSABLE_IN_A_ROW_MAX {
        talk.client.resync(RoomNumber(1)).unwrap();
        talk.says(&snapshot(RoomNumber(1), 3, 6));
        assert!(!talk.client.is_finished());
    }
    talk.says(&snapshot(RoomNumber(1), 3, 6));
    assert!(talk.client.is_finished());
}

#[test]
fn an_unreadable_snapshot_is_asked_for_again_once() {
    let mut talk = blind();
    for _ in 0..2 {
        let mut bytes = talk.node.write(&snapshot(RoomNumber(1), 3, 6));
        bytes.extend(talk.node.write(&patch(RoomNumber(1), 6, 7)));
        talk.receives(&bytes);
        let why = OutOfStep::Snapshot(DecodeError::other("blind"));
        assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
        assert_eq!(talk.heard(), [other("Resync { room: 1 }")]);

        talk.receives(&bytes);
        let why = OutOfStep::NoSnapshot(DecodeError::other("blind"));
        assert_eq!(talk.all_events(), [Event::OutOfStep { room: RoomNumber(1), why }]);
        assert_eq!(talk.heard(), [], "the patch is passed over");

        // A readable one resets the count.
        talk.says(&snapshot(RoomNumber(1), 3, 5));
        assert!(is_update(&talk.event(), UpdateKind::Snapshot, 5));
    }
}
