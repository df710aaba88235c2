//! The rules of the protocol for both ends, and what happens if they are violated.

use std::time::Duration;

use playfield_client::session::{ClientConfig, ClientError, CommandError, Event, Failure, Session};
use playfield_websocket::handshake::HandshakeError;
use playfield_wire::framing::FrameError;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::support::{Node, Said, Talk, config, joined, other, patch, polled, snapshot, welcome};

// Rooms and requests.

#[test]
fn a_message_about_an_unknown_room_ends_the_connection() {
    let message = playfield_wire::message::MessageRef::Index(0);
    let cases = [
        (patch(RoomNumber(2), 1, 2), "a patch"),
        (snapshot(RoomNumber(2), 3, 1), "a snapshot"),
        (
            ServerMessage::Event(server::Event {
                room: RoomNumber(2),
                sequence: 1,
                version: 1,
                message,
                payload: b"".into(),
            }),
            "an event",
        ),
        (
            ServerMessage::Left(server::Left {
                request: None,
                room: RoomNumber(2),
                code: ErrorCode::Kicked,
                text: "".into(),
            }),
            "a left",
        ),
    ];
    for (stray, message) in cases {
        let mut talk = Talk::in_room();
        talk.says(&stray);
        talk.assert_closed(ClientError::UnknownRoom { room: RoomNumber(2), message });
    }
}

#[test]
fn two_rooms_with_one_number_end_the_connection() {
    let mut talk = Talk::in_room();
    let request = talk.client.join("s").unwrap();
    talk.says(&joined(request, RoomNumber(1), 3));
    talk.assert_closed(ClientError::RoomNumberTaken { room: RoomNumber(1) });
}

#[test]
fn an_answer_to_an_unknown_request_ends_the_connection() {
    for answer in [
        ServerMessage::Reply(server::Reply { request: RequestNumber(77), payload: b"".into() }),
        ServerMessage::Listed(server::Listed { request: RequestNumber(77), rooms: vec![] }),
        ServerMessage::Schema(server::Schema {
            request: Some(RequestNumber(77)),
            room_type: "table".into(),
            schema: b"{}".into(),
        }),
        joined(RequestNumber(77), RoomNumber(2), 3),
        ServerMessage::Error(server::Error {
            request: Some(RequestNumber(77)),
            room: None,
            code: ErrorCode::Busy,
            text: "".into(),
            retry_after_ms: None,
        }),
        ServerMessage::Left(server::Left {
            request: Some(RequestNumber(77)),
            room: RoomNumber(1),
            code: ErrorCode::Left,
            text: "".into(),
        }),
    ] {
        let mut talk = Talk::in_room();
        talk.says(&answer);
        talk.assert_closed(ClientError::UnknownRequest { request: RequestNumber(77) });
    }
}

#[test]
fn an_answer_of_the_wrong_kind_ends_the_connection() {
    type Make = fn(RequestNumber) -> ServerMessage<'static>;
    let cases: [(Make, _); 5] = [
        (|request| ServerMessage::Reply(server::Reply { request, payload: b"".into() }), "a reply"),
        (|request| joined(request, RoomNumber(2), 3), "a room"),
        (|request| ServerMessage::Listed(server::Listed { request, rooms: vec![] }), "a list"),
        (
            |request| {
                let (request, code) = (Some(request), ErrorCode::Left);
                ServerMessage::Left(server::Left {
                    request,
                    room: RoomNumber(1),
                    code,
                    text: "".into(),
                })
            },
            "a left",
        ),
        (
            |request| {
                let (request, room_type) = (Some(request), "table".into());
                ServerMessage::Schema(server::Schema { request, room_type, schema: b"{}".into() })
            },
            "a schema",
        ),
    ];
    for (which, (make, answer)) in cases.into_iter().enumerate() {
        let mut talk = Talk::in_room();
        let list = talk.client.list(None, &[], 0).unwrap();
        let message = talk.client.request(RoomNumber(1), 0, b"").unwrap();
        let request = if which == 2 { message } else { list };
        talk.says(&make(request));
        talk.assert_closed(ClientError::WrongAnswer { request, answer });
    }
}

#[test]
fn schemas_come_as_answers_and_unasked() {
    let mut talk = Talk::in_room();
    let asked = talk.client.schema("table").unwrap();
    for request in [Some(asked), None] {
        talk.says(&ServerMessage::Schema(server::Schema {
            request,
            room_type: "table".into(),
            schema: b"{}".into(),
        }));
        let told = Event::Schema(server::Schema {
            request,
            room_type: "table".into(),
            schema: b"{}".to_vec().into(),
        });
        assert_eq!(talk.events.pop_front(), Some(told));
    }
}

#[test]
fn the_end_of_a_room_fails_only_its_own_requests() {
    let mut talk = Talk::in_room();
    let asked = talk.client.request(RoomNumber(1), 0, b"").unwrap();
    let list = talk.client.list(None, &[], 0).unwrap();
    let (code, text) = (ErrorCode::Kicked, "out");
    talk.says(&ServerMessage::Left(server::Left {
        request: None,
        room: RoomNumber(1),
        code,
        text: text.into(),
    }));
    let failure = Failure::Left { code, text: text.into() };
    let expected = [
        Event::Failed { request: asked, failure },
        Event::Left(server::Left { room: RoomNumber(1), request: None, code, text: text.into() }),
    ];
    assert_eq!(talk.all_events(), expected);

    // The answer to a message that was sent before the end arrived.
    let code = ErrorCode::NotJoined;
    talk.says(&ServerMessage::Error(server::Error {
        request: Some(asked),
        room: None,
        code,
        text: "".into(),
        retry_after_ms: None,
    }));
    assert_eq!(talk.all_events(), []);
    talk.says(&ServerMessage::Listed(server::Listed { request: list, rooms: vec![] }));
    assert!(matches!(talk.event(), Event::Listed(_)));
    assert_eq!(
        talk.client.send(RoomNumber(1), 0, b""),
        Err(CommandError::NotJoined { room: RoomNumber(1) })
    );
}

#[test]
fn commands_for_an_unknown_room_fail() {
    let mut talk = Talk::in_room();
    let refused = CommandError::NotJoined { room: RoomNumber(2) };
    assert_eq!(talk.client.request(RoomNumber(2), 0, b""), Err(refused));
    assert_eq!(talk.client.send(RoomNumber(2), 0, b""), Err(refused));
    assert_eq!(talk.client.leave(RoomNumber(2)), Err(refused));
    assert_eq!(talk.client.resync(RoomNumber(2)), Err(refused));
    assert_eq!(talk.heard(), []);
}

#[test]
fn a_message_longer_than_the_node_accepts_is_not_sent() {
    let mut talk = Talk::in_room();
    let bytes_max = 1000;
    // Four bytes precede the payload: kind, room, request and message.
    assert_eq!(talk.client.request(RoomNumber(1), 0, &[7; 996]), Ok(RequestNumber(2)));
    let refused = CommandError::TooLarge { bytes: 1001, bytes_max };
    assert_eq!(talk.client.request(RoomNumber(1), 0, &[7; 997]), Err(refused));
    assert_eq!(talk.client.send(RoomNumber(1), 0, &[7; 998]), Err(refused));
    let refused = CommandError::TooLarge { bytes: 2000, bytes_max };
    assert_eq!(talk.client.join_or_create("table", &[7; 2000]), Err(refused));
    assert_eq!(talk.heard().len(), 1);
    assert_eq!(
        talk.client.request(RoomNumber(1), 0, b""),
        Ok(RequestNumber(3)),
        "the number was not used up"
    );
}

#[test]
fn the_number_of_waiting_requests_is_limited() {
    let mut config = config(false);
    config.requests_max = 1;
    let mut client = Session::new(config).unwrap();
    client.join("r").unwrap();
    assert_eq!(client.join("s"), Err(CommandError::Busy { waiting: 1 }));
}

// The order of messages, and the transport.

#[test]
fn only_the_welcome_or_a_refusal_comes_first() {
    for early in [
        joined(RequestNumber(1), RoomNumber(1), 1),
        patch(RoomNumber(1), 1, 2),
        snapshot(RoomNumber(1), 1, 1),
    ] {
        let mut talk = Talk::new(false);
        talk.client.join("r").unwrap();
        talk.says(&early);
        let closed = talk.all_events().pop();
        assert!(matches!(
            closed,
            Some(Event::Closed { error: Some(ClientError::OutOfTurn { .. }) })
        ));
    }
    let mut talk = Talk::new(false);
    talk.says(&ServerMessage::Goodbye(server::Goodbye {
        code: ErrorCode::Unauthorized,
        text: "who?".into(),
    }));
    let expected = [
        Event::Goodbye(server::Goodbye { code: ErrorCode::Unauthorized, text: "who?".into() }),
        Event::Closed { error: None },
    ];
    assert_eq!(talk.all_events(), expected);
}

#[test]
fn a_second_welcome_ends_the_connection() {
    let mut talk = Talk::welcomed();
    talk.says(&welcome(1, 1));
    talk.assert_closed(ClientError::OutOfTurn { message: "a second welcome" });
}

#[test]
fn another_protocol_version_ends_the_connection() {
    let mut talk = Talk::new(false);
    talk.says(&ServerMessage::Welcome(server::Welcome {
        protocol: 2,
        session: 1,
        resume: [][..].into(),
        heartbeat_ms: 0,
        max_message_bytes: 9,
        ..server::Welcome::default()
    }));
    talk.assert_closed(ClientError::Protocol { protocol: 2 });
}

#[test]
fn an_unreadable_message_ends_a_connection_without_rooms() {
    for body in [&b"\xff"[..], b"\x01", b"\x48", b"\x49\x01\x01", b"{}"] {
        let mut talk = Talk::welcomed();
        let bytes = talk.node.frame(body);
        talk.receives(&bytes);
        let closed = talk.all_events().pop();
        assert!(
            matches!(closed, Some(Event::Closed { error: Some(ClientError::Message(_)) })),
            "{body:x?}"
        );
    }
}

#[test]
fn frames_of_no_bytes_or_too_many_end_the_connection() {
    let message_bytes_max = 16 << 20;
    let too_large = (message_bytes_max + 1) as u32;
    let cases = [
        ([0; 4], FrameError::Empty),
        (too_large.to_le_bytes(), FrameError::TooLarge { announced: too_large, message_bytes_max }),
    ];
    for (mut header, error) in cases {
        let mut talk = Talk::welcomed();
        // The header alone, in two pieces: the client does not wait for the body.
        let (front, back) = header.split_at_mut(3);
        talk.receives(front);
        talk.receives(back);
        talk.assert_closed(ClientError::Frame(error));
    }
}

#[test]
fn a_text_message_ends_the_connection() {
    let mut talk = Talk::new(true);
    talk.heard();
    let mut bytes = talk.node.take_answer();
    playfield_websocket::encode(&mut bytes, playfield_websocket::Opcode::Text, b"{}", None);
    talk.receives(&bytes);
    talk.assert_closed(ClientError::Text);
    assert_eq!(talk.heard().pop(), Some(Said::Close(Some(1003))));
}

#[test]
fn a_websocket_ping_is_answered_and_a_close_reported() {
    let mut talk = Talk::new(true);
    talk.heard();
    let mut bytes = talk.node.take_answer();
    playfield_websocket::encode(&mut bytes, playfield_websocket::Opcode::Ping, b"you?", None);
    playfield_websocket::encode_close(&mut bytes, 1001, "", None);
    talk.receives(&bytes);
    assert_eq!(talk.heard()[1..], [Said::Pong(b"you?".to_vec()), Said::Close(Some(1001))]);
    talk.assert_closed(ClientError::Ended { close_code: Some(1001) });
}

#[test]
fn a_websocket_is_closed_with_a_code_that_says_why() {
    let close = |code| {
        let mut bytes = Vec::new();
        playfield_websocket::encode_close(&mut bytes, code, "", None);
        bytes
    };
    for (bytes, code) in [
        (close(1011), Some(1011)),
        (close(4000), Some(4000)),
        (close(1005), None),
        (vec![0x88, 1, 3], Some(1002)),
        (vec![0x82, 0x80, 0, 0, 0, 0], Some(1002)),
        (vec![0xC2, 1, 0xFF], Some(1002)),
        (vec![0x81, 1, 0xFF], Some(1007)),
        (vec![0x82, 127, 0, 0, 0, 0, 0xFF, 0, 0, 0], Some(1009)),
        (vec![0x81, 2, b'{', b'}'], Some(1003)),
        (vec![0x82, 1, 0xEE], Some(1002)),
    ] {
        let mut talk = Talk::new(true);
        talk.heard();
        let bytes = [talk.node.take_answer(), bytes].concat();
        talk.receives(&bytes);
        assert_eq!(talk.heard().pop(), Some(Said::Close(code)), "{bytes:x?}");
    }
    // With compression agreed on, invalid compressed data has a code of its own.
    let mut client = Session::new(ClientConfig { deflate: true, ..config(true) }).unwrap();
    let mut out = Vec::new();
    client.take_output(&mut out);
    let mut node = Node::new(true);
    node.read(&out);
    let answer = String::from_utf8(node.take_answer()).unwrap();
    let header = "\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
    let answer = answer.replacen("\r\n", header, 1).into_bytes();
    client.received(&[&answer[..], &[0xC2, 1, 0xFF]].concat());
    assert_eq!(polled(&mut client).len(), 1);
    let mut out = Vec::new();
    client.take_output(&mut out);
    assert_eq!(node.read(&out).pop(), Some(Said::Close(Some(1007))));
}

#[test]
fn a_node_that_refuses_the_handshake_ends_the_connection() {
    let mut talk = Talk::new(true);
    talk.receives(b"HTTP/1.1 404 Not Found\r\n\r\n");
    let closed = talk.all_events().pop();
    assert!(matches!(closed, Some(Event::Closed { error: Some(ClientError::Handshake(_)) })));
    assert_eq!(talk.heard(), [], "not even the hello is sent");
}

#[test]
fn a_node_may_only_accept_the_compression_that_was_offered() {
    for (offers, extensions, is_taken) in [
        (true, None, true),
        (true, Some("permessage-deflate; server_no_context_takeover"), true),
        (true, Some("permessage-deflate"), false),
        (true, Some("permessage-deflate; server_no_context_takeover; speed=9"), false),
        (true, Some("something-else"), false),
        (false, Some("permessage-deflate; server_no_context_takeover"), false),
        (false, None, true),
    ] {
        let config = ClientConfig { deflate: offers, ..config(true) };
        let mut client = Session::new(config).unwrap();
        let mut out = Vec::new();
        client.take_output(&mut out);
        let request = String::from_utf8(out).unwrap();
        assert_eq!(request.contains("Sec-WebSocket-Extensions: permessage-deflate;"), offers);
        let mut node = Node::new(true);
        assert!(node.read(request.as_bytes()).is_empty());
        let answer = String::from_utf8(node.take_answer()).unwrap();
        let header = extensions
            .map_or(String::new(), |value| format!("Sec-WebSocket-Extensions: {value}\r\n"));
        client.received(answer.replacen("\r\n", &format!("\r\n{header}"), 1).as_bytes());
        match polled(&mut client).pop() {
            None if is_taken => {}
            Some(Event::Closed { error: Some(ClientError::Handshake(error)) }) if !is_taken => {
                assert!(matches!(error, HandshakeError::ExtensionNotOffered { .. }), "{error}");
            }
            other => panic!("{extensions:?} led to {other:?}"),
        }
    }
}

#[test]
fn requests_without_an_answer_fail_with_the_connection() {
    let mut talk = Talk::in_room();
    let first = talk.client.request(RoomNumber(1), 0, b"").unwrap();
    let second = talk.client.join("s").unwrap();
    talk.ends();
    let expected = [
        Event::Failed { request: first, failure: Failure::Closed },
        Event::Failed { request: second, failure: Failure::Closed },
        Event::Closed { error: Some(ClientError::Ended { close_code: None }) },
    ];
    assert_eq!(talk.all_events(), expected);
    talk.ends();
    assert_eq!(talk.all_events(), [], "it ends once");
}

#[test]
fn after_goodbye_a_client_receives_but_sends_nothing() {
    let mut talk = Talk::in_room();
    let request = talk.client.request(RoomNumber(1), 0, b"").unwrap();
    talk.client.goodbye();
    talk.client.goodbye();
    assert_eq!(talk.client.request(RoomNumber(1), 0, b""), Err(CommandError::Closed));
    talk.says(&ServerMessage::Ping(server::Ping { nonce: 1 }));
    assert_eq!(talk.heard().last(), Some(&other("Goodbye")));
    talk.says(&ServerMessage::Reply(server::Reply { request, payload: b"".into() }));
    assert!(matches!(talk.event(), Event::Reply(_)));
    talk.ends();
    assert_eq!(talk.all_events(), [Event::Closed { error: None }]);
}

// Keep-alive.

#[test]
fn an_idle_client_pings_and_gives_up_on_a_silent_node() {
    let mut talk = Talk::welcomed();
    let at = Duration::from_millis;
    assert_eq!(talk.client.due_at(), Some(at(500)));
    talk.advances(at(499));
    assert_eq!(talk.heard(), []);
    talk.advances(at(500));
    assert_eq!(talk.heard(), [other("Ping { nonce: 2 }")]);
    talk.says(&ServerMessage::Pong(server::Pong { nonce: 2, time_us: 0 }));
    assert_eq!(talk.all_events(), [], "the user did not ask");

    while let Some(due) = talk.client.due_at() {
        talk.advances(due);
        assert!(due <= at(2500));
    }
    talk.assert_closed(ClientError::Silent { silence: at(2000) });
}

#[test]
fn a_room_shortens_the_silence_after_which_the_client_gives_up_while_it_is_there() {
    let at = Duration::from_millis;
    for leaves in [false, true] {
        let mut talk = Talk::welcomed();
        let request = talk.client.join("r").unwrap();
        let mut joined = joined(request, RoomNumber(1), 3);
        if let ServerMessage::Joined(server::Joined { silence_ms, .. }) = &mut joined {
            *silence_ms = 400;
        }
        talk.says(&joined);
        if leaves {
            let (code, text) = (ErrorCode::Kicked, "out".into());
            talk.says(&ServerMessage::Left(server::Left {
                request: None,
                room: RoomNumber(1),
                code,
                text,
            }));
        }
        talk.all_events();
        let expected = if leaves { 2000 } else { 400 };
        assert_eq!(talk.client.due_at(), Some(at(expected / 4)), "the first ping");
        while let Some(due) = talk.client.due_at() {
            talk.advances(due);
        }
        talk.assert_closed(ClientError::Silent { silence: at(expected) });
    }
}

#[test]
fn a_silent_room_with_ticks_is_a_weak_connection_before_it_is_a_lost_one() {
    for ticks in [0, 20] {
        let mut talk = Talk::welcomed();
        let request = talk.client.join("r").unwrap();
        let mut joined = joined(request, RoomNumber(1), 3);
        if let ServerMessage::Joined(server::Joined { tick_hz, sync_hz, .. }) = &mut joined {
            (*tick_hz, *sync_hz) = (ticks, 20);
        }
        talk.says(&joined);
        talk.all_events();
        let mut weak_at = None;
        while let Some(due) = talk.client.due_at().filter(|_| weak_at.is_none()) {
            talk.advances(due);
            let is_weak = |event: &Event| *event == Event::Weak { is_weak: true };
            weak_at = talk.all_events().iter().any(is_weak).then_some(due);
        }
        let expected = (ticks > 0).then(|| Duration::from_millis(1500));
        assert_eq!(weak_at, expected, "half a second, and as long twice without a round trip");
        if ticks > 0 {
            talk.says(&ServerMessage::Pong(server::Pong { nonce: 9, time_us: 0 }));
            assert_eq!(talk.all_events(), [Event::Weak { is_weak: false }]);
        }
    }
}

#[test]
fn a_ping_reports_its_round_trip() {
    let mut talk = Talk::welcomed();
    let nonce = talk.client.ping().unwrap();
    talk.advances(Duration::from_millis(40));
    talk.says(&ServerMessage::Pong(server::Pong { nonce, time_us: 0 }));
    talk.says(&ServerMessage::Pong(server::Pong { nonce, time_us: 0 }));
    talk.says(&ServerMessage::Pong(server::Pong { nonce: 99, time_us: 0 }));
    let round_trip = Duration::from_millis(40);
    assert_eq!(talk.all_events(), [Event::Pong { nonce, round_trip }]);
}
