//! Messages that can't be read while a room is joined: copies get snapshots, and requests fail.

use playfield_client::core::{
    ClientError, CommandError, Event, Failure, OutOfStep, UNUSABLE_IN_A_ROW_MAX,
};
use playfield_wire::message::MessageRef;
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use crate::support::{Talk, joined, other, patch, snapshot, welcome};

fn event(sequence: u64) -> ServerMessage<'static> {
    ServerMessage::Event {
        room: RoomNumber(1),
        sequence,
        version: 5,
        message: MessageRef::Index(0),
        payload: b"",
    }
}

/// The node sends an invalid message.
fn says_nonsense(talk: &mut Talk) {
    let mut bytes = talk.node.frame(b"\xff\xff\xff\xff\xff\xff\xff\xff");
    talk.client.received(&mut bytes, &mut talk.events);
}

/// In the rooms 1 and 2.
fn in_two_rooms() -> Talk {
    let mut talk = Talk::in_room();
    let request = talk.client.join("s").unwrap();
    talk.says(&joined(request, RoomNumber(2), 3));
    talk.says(&snapshot(RoomNumber(2), 3, 5));
    talk.all_events();
    talk.heard();
    talk
}

/// The client's events after an invalid message, except those of rooms.
fn told_of_nonsense(talk: &mut Talk) -> Vec<Event> {
    let is_why =
        |event: &Event| matches!(event, Event::OutOfStep { why: OutOfStep::Message(_), .. });
    let (why, rest): (Vec<_>, Vec<_>) = talk.all_events().into_iter().partition(is_why);
    assert!(!why.is_empty());
    rest
}

#[test]
fn each_room_waits_for_a_snapshot_and_ignores_patches() {
    let mut talk = in_two_rooms();
    says_nonsense(&mut talk);
    let events = talk.all_events();
    let rooms = events.iter().map(|event| match event {
        Event::OutOfStep { room, why: OutOfStep::Message(_) } => *room,
        other => panic!("{other:?}"),
    });
    assert_eq!(rooms.collect::<Vec<_>>(), [1, 2].map(RoomNumber));
    assert_eq!(talk.heard(), [other("Resync { room: 1 }"), other("Resync { room: 2 }")]);

    talk.says(&patch(RoomNumber(1), 5, 6));
    talk.says(&patch(RoomNumber(2), 5, 6));
    assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));
    talk.says(&snapshot(RoomNumber(2), 3, 6));
    talk.says(&patch(RoomNumber(2), 6, 7));
    talk.says(&snapshot(RoomNumber(1), 3, 6));
    talk.says(&patch(RoomNumber(1), 6, 7));
    assert!(matches!(
        talk.all_events()[..],
        [
            Event::Snapshot { room: RoomNumber(2), .. },
            Event::Patch { room: RoomNumber(2), .. },
            Event::Snapshot { room: RoomNumber(1), .. },
            Event::Patch { room: RoomNumber(1), .. }
        ]
    ));
}

#[test]
fn past_the_limit_the_connection_ends_and_a_usable_update_resets_the_count() {
    let mut talk = in_two_rooms();
    for _ in 0..2 {
        for _ in 0..UNUSABLE_IN_A_ROW_MAX {
            says_nonsense(&mut talk);
            assert_eq!(talk.heard().len(), 2);
        }
        talk.says(&snapshot(RoomNumber(1), 3, 6));
        talk.says(&snapshot(RoomNumber(2), 3, 6));
    }
    // A good room does not reset the count of another.
    for _ in 0..UNUSABLE_IN_A_ROW_MAX {
        says_nonsense(&mut talk);
        talk.says(&snapshot(RoomNumber(1), 3, 6));
    }
    talk.heard();
    assert!(!talk.client.is_finished());
    talk.all_events();
    says_nonsense(&mut talk);
    let closed = talk.all_events().pop();
    assert!(
        matches!(closed, Some(Event::Closed { error: Some(ClientError::Message(_)) })),
        "{closed:?}"
    );
    assert_eq!(talk.heard(), []);
}

#[test]
fn without_a_room_the_connection_ends() {
    let before_the_welcome = Talk::new(Format::Packed, false);
    let mut entering = Talk::welcomed();
    entering.client.join("r").unwrap();
    let mut left = Talk::in_room();
    left.says(&ServerMessage::Left {
        request: None,
        room: RoomNumber(1),
        code: ErrorCode::Kicked,
        text: "".into(),
    });
    for mut talk in [before_the_welcome, Talk::welcomed(), entering, left] {
        says_nonsense(&mut talk);
        let closed = talk.all_events().pop();
        assert!(
            matches!(closed, Some(Event::Closed { error: Some(ClientError::Message(_)) })),
            "{closed:?}"
        );
    }
}

#[test]
fn requests_fail_and_late_answers_are_ignored() {
    let mut talk = Talk::in_room();
    let message = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
    let list = talk.client.list(None, &[], 0).unwrap();
    let schema = talk.client.schema("table").unwrap();
    says_nonsense(&mut talk);
    let lost = |request| Event::Failed { request, failure: Failure::Lost };
    assert_eq!(told_of_nonsense(&mut talk), [lost(message), lost(list), lost(schema)]);

    talk.says(&ServerMessage::Reply { request: message, payload: b"" });
    talk.says(&ServerMessage::Listed { request: list, rooms: vec![] });
    talk.says(&ServerMessage::Schema {
        request: Some(schema),
        room_type: "table".into(),
        schema: b"{}",
    });
    let code = ErrorCode::Busy;
    talk.says(&ServerMessage::Error {
        request: Some(list),
        room: None,
        code,
        text: "".into(),
        retry_after_ms: None,
    });
    assert_eq!(talk.all_events(), []);
    // Later requests work as usual.
    let message = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
    talk.says(&ServerMessage::Reply { request: message, payload: b"" });
    assert!(matches!(talk.event(), Event::Reply { .. }));
}

#[test]
fn a_room_that_is_entered_after_all_is_left() {
    let mut talk = Talk::in_room();
    let join = talk.client.join("s").unwrap();
    talk.heard();
    says_nonsense(&mut talk);
    assert_eq!(
        told_of_nonsense(&mut talk),
        [Event::Failed { request: join, failure: Failure::Lost }]
    );
    talk.heard();

    talk.says(&joined(join, RoomNumber(2), 3));
    assert_eq!(talk.heard(), [other("Leave { request: 3, room: 2 }")]);
    talk.says(&snapshot(RoomNumber(2), 3, 5));
    talk.says(&patch(RoomNumber(2), 5, 6));
    assert_eq!(
        talk.client.request(RoomNumber(2), 0, "draw", b""),
        Err(CommandError::NotJoined { room: RoomNumber(2) })
    );
    talk.says(&ServerMessage::Left {
        request: Some(RequestNumber(3)),
        room: RoomNumber(2),
        code: ErrorCode::Left,
        text: "".into(),
    });
    assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));
    // After its `left`, the room is unknown.
    talk.says(&patch(RoomNumber(2), 6, 7));
    talk.assert_closed(ClientError::UnknownRoom { room: RoomNumber(2), message: "a patch" });
}

#[test]
fn a_room_whose_joined_was_lost_is_left() {
    let mut talk = Talk::in_room();
    talk.client.join("s").unwrap();
    says_nonsense(&mut talk);
    talk.all_events();
    talk.heard();
    talk.says(&snapshot(RoomNumber(2), 3, 5));
    talk.says(&patch(RoomNumber(2), 5, 6));
    assert_eq!(
        (talk.all_events(), talk.heard()),
        (vec![], vec![other("Leave { request: 3, room: 2 }")])
    );
    talk.says(&ServerMessage::Left {
        request: Some(RequestNumber(3)),
        room: RoomNumber(2),
        code: ErrorCode::Left,
        text: "".into(),
    });
    // The other room is unaffected.
    talk.says(&snapshot(RoomNumber(1), 3, 6));
    assert!(matches!(talk.all_events()[..], [Event::Snapshot { room: RoomNumber(1), .. }]));
}

#[test]
fn the_left_of_an_orphaned_room_is_ignored() {
    let mut talk = Talk::in_room();
    let join = talk.client.join("s").unwrap();
    says_nonsense(&mut talk);
    talk.all_events();
    talk.heard();
    let left = ServerMessage::Left {
        request: None,
        room: RoomNumber(2),
        code: ErrorCode::RoomClosed,
        text: "".into(),
    };
    talk.says(&left);
    assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));
    // If the join was refused, there is no such room.
    let code = ErrorCode::RoomFull;
    talk.says(&ServerMessage::Error {
        request: Some(join),
        room: None,
        code,
        text: "".into(),
        retry_after_ms: None,
    });
    talk.says(&left);
    talk.assert_closed(ClientError::UnknownRoom { room: RoomNumber(2), message: "a left" });
}

#[test]
fn a_refused_join_allows_no_room() {
    let mut talk = Talk::in_room();
    let join = talk.client.join("s").unwrap();
    says_nonsense(&mut talk);
    talk.all_events();
    let code = ErrorCode::RoomFull;
    talk.says(&ServerMessage::Error {
        request: Some(join),
        room: None,
        code,
        text: "".into(),
        retry_after_ms: None,
    });
    assert_eq!(talk.all_events(), []);
    talk.says(&snapshot(RoomNumber(2), 3, 5));
    talk.assert_closed(ClientError::UnknownRoom { room: RoomNumber(2), message: "a snapshot" });
}

/// Whether or not the unreadable message was the answer.
#[test]
fn a_room_that_is_being_left_counts_as_left() {
    let mut talk = Talk::in_room();
    let asked = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
    let leave = talk.client.leave(RoomNumber(1)).unwrap();
    talk.heard();
    says_nonsense(&mut talk);
    let (code, text) = (ErrorCode::Left, String::new());
    let expected = [
        Event::Failed { request: asked, failure: Failure::Lost },
        Event::Left { room: RoomNumber(1), request: Some(leave), code, text },
    ];
    assert_eq!(told_of_nonsense(&mut talk), expected);
    assert_eq!(talk.heard(), []);
    talk.says(&patch(RoomNumber(1), 5, 6));
    talk.says(&event(1));
    talk.says(&ServerMessage::Left {
        request: Some(leave),
        room: RoomNumber(1),
        code,
        text: "".into(),
    });
    assert_eq!(talk.all_events(), []);
}

/// A node does not answer a resync of a room that has ended, but it answers every request.
#[test]
fn a_room_whose_left_was_lost_ends_with_the_next_request() {
    for is_leave in [false, true] {
        let mut talk = Talk::in_room();
        says_nonsense(&mut talk);
        talk.all_events();
        let first = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
        let asked = if is_leave {
            talk.client.leave(RoomNumber(1))
        } else {
            talk.client.request(RoomNumber(1), 0, "draw", b"")
        };
        let asked = asked.unwrap();
        talk.heard();
        let (code, text) = (ErrorCode::NotJoined, "no");
        talk.says(&ServerMessage::Error {
            request: Some(asked),
            room: None,
            code,
            text: text.into(),
            retry_after_ms: None,
        });
        let expected = [
            Event::Failed {
                request: asked,
                failure: Failure::Refused { code, text: text.into(), retry_after: None },
            },
            Event::Failed { request: first, failure: Failure::Left { code, text: text.into() } },
            Event::Left { room: RoomNumber(1), request: None, code, text: text.to_owned() },
        ];
        assert_eq!(talk.all_events(), expected);
        // In case this client is in the room after all, it leaves.
        assert_eq!(talk.heard(), [other("Leave { request: 4, room: 1 }")]);
        talk.says(&snapshot(RoomNumber(1), 3, 6));
        talk.says(&ServerMessage::Error {
            request: Some(RequestNumber(4)),
            room: None,
            code,
            text: text.into(),
            retry_after_ms: None,
        });
        assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));
    }
    // If the room is in step, its own code sent the error.
    let mut talk = Talk::in_room();
    let asked = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
    let (code, text) = (ErrorCode::NotJoined, "");
    talk.says(&ServerMessage::Error {
        request: Some(asked),
        room: None,
        code,
        text: text.into(),
        retry_after_ms: None,
    });
    assert!(matches!(talk.all_events()[..], [Event::Failed { .. }]));
    assert!(talk.client.resync(RoomNumber(1)).is_ok());
}

#[test]
fn as_many_events_may_be_missing_as_messages_were_unreadable() {
    let mut talk = Talk::in_room();
    talk.says(&event(1));
    says_nonsense(&mut talk);
    says_nonsense(&mut talk);
    talk.all_events();
    talk.says(&event(4));
    assert_eq!(talk.event(), Event::Missed { room: RoomNumber(1), events: 2 });
    assert!(matches!(talk.event(), Event::Event(event) if event.sequence == 4));
    talk.says(&event(5));
    assert!(matches!(talk.all_events()[..], [Event::Event(_)]));

    // An event in order shows that none was lost before it.
    says_nonsense(&mut talk);
    talk.says(&event(6));
    talk.says(&event(8));
    talk.assert_closed(ClientError::EventOutOfOrder { room: RoomNumber(1), due: 7, got: 8 });

    let mut talk = Talk::in_room();
    says_nonsense(&mut talk);
    talk.says(&event(3));
    talk.assert_closed(ClientError::EventOutOfOrder { room: RoomNumber(1), due: 1, got: 3 });
}

#[test]
fn pings_are_sent_again() {
    let mut talk = Talk::in_room();
    let (first, second) = (talk.client.ping().unwrap(), talk.client.ping().unwrap());
    talk.heard();
    says_nonsense(&mut talk);
    assert_eq!(told_of_nonsense(&mut talk), []);
    let again =
        [other("Resync { room: 1 }"), other("Ping { nonce: 1 }"), other("Ping { nonce: 2 }")];
    assert_eq!(talk.heard(), again);
    // The first pong was lost, the second was on its way.
    for nonce in [second, first, second] {
        talk.says(&ServerMessage::Pong { nonce, time_us: 0 });
    }
    let pongs = talk.all_events();
    assert!(
        matches!(pongs[..], [Event::Pong { nonce: 2, .. }, Event::Pong { nonce: 1, .. }]),
        "{pongs:?}"
    );
}

#[test]
fn after_goodbye_the_client_asks_for_nothing() {
    let mut talk = Talk::in_room();
    let asked = talk.client.request(RoomNumber(1), 0, "draw", b"").unwrap();
    talk.client.goodbye();
    talk.heard();
    says_nonsense(&mut talk);
    assert_eq!(
        told_of_nonsense(&mut talk),
        [Event::Failed { request: asked, failure: Failure::Lost }]
    );
    assert_eq!(talk.heard(), []);
    talk.client.ended(&mut talk.events);
    assert_eq!(talk.all_events(), [Event::Closed { error: None }]);
}

#[test]
fn in_every_format_and_on_every_transport_the_next_message_is_read() {
    for (format, web_socket) in crate::support::WAYS {
        let mut talk = Talk::new(format, web_socket);
        talk.heard();
        let mut answer = talk.node.take_answer();
        talk.client.received(&mut answer, &mut talk.events);
        talk.says(&welcome(0, 1000));
        let request = talk.client.join("r").unwrap();
        talk.says(&joined(request, RoomNumber(1), 3));
        // A body in any of the formats.
        let snapshot = |version| ServerMessage::Snapshot {
            room: RoomNumber(1),
            epoch: 3,
            version,
            body: b"1",
        };
        talk.says(&snapshot(5));
        talk.all_events();
        talk.heard();
        for body in [&b"{"[..], b"[]", b"{\"type\":\"patch\"}", b"\x01", b"nonsense"] {
            // Several at once, followed by a good one.
            let mut bytes = talk.node.frame(body);
            bytes.extend(talk.node.frame(body));
            bytes.extend(talk.node.write(&snapshot(6)));
            talk.client.received(&mut bytes, &mut talk.events);
            let events = talk.all_events();
            assert!(
                matches!(
                    events[..],
                    [
                        Event::OutOfStep { .. },
                        Event::OutOfStep { .. },
                        Event::Snapshot { version: 6, .. }
                    ]
                ),
                "{format}: {events:?}"
            );
            assert_eq!(talk.heard(), [other("Resync { room: 1 }"), other("Resync { room: 1 }")]);
        }
    }
}
