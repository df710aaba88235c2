//! The whole path over real sockets: connect, join, act, see, leave.

use crate::plain as common;

use std::io::{Read, Write};

use common::{Client, Transport, connect, server};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

const ALL: [(Transport, Format); 6] = [
    (Transport::Native, Format::Packed),
    (Transport::Native, Format::Msgpack),
    (Transport::Native, Format::Json),
    (Transport::WebSocket, Format::Packed),
    (Transport::WebSocket, Format::Msgpack),
    (Transport::WebSocket, Format::Json),
];

#[test]
fn a_player_joins_acts_and_leaves_over_each_transport_in_each_format() {
    let server = server(|_| {});
    for (transport, format) in ALL {
        let mut ann = Client::hello(&server, transport, format, "Ann");
        ann.join_or_create().unwrap();
        assert!(ann.count() > 0);
        let (request, room) = (ann.request_number(), ann.room);
        ann.say(&ClientMessage::Leave(client::Leave { request: RequestNumber(request), room }));
        ann.expect(|message| {
            matches!(
                message,
                ServerMessage::Left(server::Left { request: Some(_), code: ErrorCode::Left, .. })
            )
            .then_some(())
        });
        ann.say(&ClientMessage::Goodbye(client::Goodbye {}));
        assert_eq!(ann.ending().0, None);
    }
}

#[test]
fn the_snapshot_holds_what_the_join_did_and_events_follow_it() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    assert_eq!(ann.mirror.state().players.get(&ann.player).map(String::as_str), Some("Ann"));
    let sequence = ann.expect(|message| match message {
        ServerMessage::Event(server::Event { sequence, .. }) => Some(*sequence),
        _ => None,
    });
    assert_eq!(sequence, 1);
}

#[test]
fn copies_are_held_to_a_digest_now_and_then() {
    let server = server(|config| config.rooms.check_every_syncs = 5);
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::seated(&server, "Bob");
    bob.count();
    for _ in 0..3 {
        let (version, digest) = ann.expect(|message| match message {
            ServerMessage::Check(server::Check { version, digest, .. }) => {
                Some((*version, *digest))
            }
            _ => None,
        });
        assert_eq!((ann.version, ann.mirror.digest()), (version, digest));
        bob.count();
    }
}

#[test]
fn players_see_each_other_and_no_other_hand() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::seated(&server, "Bob");
    assert_eq!(ann.room_id, bob.room_id);
    ann.until(|table| table.players.len() == 2);
    assert_eq!(ann.mirror.state().hands.len(), 1);
    assert!(ann.mirror.state().hands.contains_key(&ann.player));
    bob.count();
    ann.until(|table| table.count == 1);
    drop(bob);
    ann.until(|table| table.players.len() == 1);
}

#[test]
fn a_hundred_who_join_at_once_never_overfill_a_room() {
    let server = server(|_| {});
    let threads: Vec<_> = (0..100)
        .map(|number| {
            let mut client = Client::guest(&server, &format!("p{number}"));
            std::thread::spawn(move || {
                client.join_or_create().unwrap();
                client
            })
        })
        .collect();
    let mut clients: Vec<Client> =
        threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let mut rooms = std::collections::BTreeMap::new();
    for client in &clients {
        *rooms.entry(client.room_id.clone()).or_insert(0) += 1;
    }
    assert!(rooms.values().all(|players| *players <= 3), "{rooms:?}");
    assert_eq!(rooms.len(), 34, "rooms are filled before new ones are made");
    for client in &mut clients {
        assert!(client.count() > 0);
    }
}

#[test]
fn a_connection_that_moves_takes_its_unread_bytes_along() {
    let server = server(|_| {});
    for round in 0..8 {
        let mut ann = Client::guest(&server, &format!("a{round}"));
        // The join and all that follows come in one segment, before the room is known to be
        // elsewhere.
        let mut bytes = ann.encoded(&ClientMessage::Create(client::Create {
            request: RequestNumber(1),
            room_type: "table".into(),
            private: false,
            code: false,
            key: None,
            options: &[],
        }));
        for nonce in 0..50 {
            bytes.extend(ann.encoded(&ClientMessage::Ping(client::Ping { nonce })));
        }
        ann.stream.write_all(&bytes).unwrap();
        let mut seated = false;
        for wanted in 0..50 {
            let nonce = ann.expect(|message| match message {
                ServerMessage::Pong(server::Pong { nonce, .. }) => Some(*nonce),
                ServerMessage::Joined(_) => {
                    seated = true;
                    None
                }
                ServerMessage::Error(server::Error { text, .. }) => panic!("{text}"),
                _ => None,
            });
            assert_eq!(nonce, wanted, "in order");
        }
        if !seated {
            ann.joined(RequestNumber(1)).unwrap();
        }
        ann.count_in(RoomNumber(1));
    }
}

#[test]
fn one_session_is_in_several_rooms_wherever_they_are() {
    let server = server(|_| {});
    let mut others: Vec<Client> =
        (0..4).map(|number| Client::guest(&server, &format!("o{number}"))).collect();
    let mut ann = Client::guest(&server, "Ann");
    let mut rooms = Vec::new();
    for other in &mut others {
        let request = other.request_number();
        other.say(&ClientMessage::Create(client::Create {
            request: RequestNumber(request),
            room_type: "table".into(),
            private: false,
            code: false,
            key: None,
            options: &[],
        }));
        other.joined(RequestNumber(request)).unwrap();
        ann.join(&other.room_id).unwrap();
        rooms.push((ann.room, ann.player));
        assert_eq!(ann.mirror.state().hands.len(), 1);
    }
    assert_eq!(
        rooms.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        [1, 2, 3, 4].map(RoomNumber)
    );
    for (number, _) in &rooms {
        let request = ann.request_number();
        ann.say(&ClientMessage::Request(client::Request {
            room: *number,
            request: RequestNumber(request),
            message: playfield_wire::message::MessageRef::Index(0),
            payload: &[0],
        }));
        ann.version = 0;
        let done = |message: &ServerMessage<'_>| matches!(message, ServerMessage::Reply(server::Reply { request: of, .. }) if *of == RequestNumber(request));
        // Patches of several rooms come by turns here: only the reply is looked for.
        loop {
            let bytes = ann.next().unwrap();
            if done(&ServerMessage::decode(Format::Packed, &bytes).unwrap()) {
                break;
            }
        }
    }
    let (code, _) = {
        let room_id = others[3].room_id.clone();
        let request = ann.request_number();
        ann.say(&ClientMessage::Join(client::Join {
            request: RequestNumber(request),
            room: room_id.as_str().into(),
        }));
        loop {
            let bytes = ann.next().unwrap();
            if let ServerMessage::Error(server::Error { request: Some(of), code, text, .. }) =
                ServerMessage::decode(Format::Packed, &bytes).unwrap()
                && of == RequestNumber(request)
            {
                break (code, text.to_string());
            }
        }
    };
    assert_eq!(code, ErrorCode::AlreadyJoined);
    drop(ann);
    for other in &mut others {
        other.until(|table| table.players.len() == 1);
    }
}

#[test]
fn rooms_elsewhere_ask_and_answer() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::guest(&server, "Bob");
    let request = bob.request_number();
    bob.say(&ClientMessage::Create(client::Create {
        request: RequestNumber(request),
        room_type: "table".into(),
        private: true,
        code: false,
        key: None,
        options: &[],
    }));
    bob.joined(RequestNumber(request)).unwrap();
    ann.have(&format!("ask {}", bob.room_id)).unwrap();
    ann.until(|table| table.answer == Some(42));
    ann.have("ask nowhere").unwrap();
    ann.until(|table| table.answer == Some(u32::from(ErrorCode::RoomNotFound.number())));
}

#[test]
fn background_work_comes_back() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    ann.have("spawn 4").unwrap();
    ann.until(|table| table.answer == Some(8));
    ann.have("compute 5").unwrap();
    ann.until(|table| table.answer == Some(10));
}

#[test]
fn rooms_are_listed_by_type_and_metadata_unless_they_are_private() {
    // It asks again and again until the answer is right.
    let server = server(|config| config.tuning.lists.count = 1_000_000);
    let mut ann = Client::seated(&server, "Ann");
    ann.have("meta desert").unwrap();
    let mut bob = Client::guest(&server, "Bob");
    let list = |bob: &mut Client, filter: Vec<(&'static str, &'static str)>| {
        let request = bob.request_number();
        let filter = filter.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        bob.say(&ClientMessage::List(client::List {
            request: RequestNumber(request),
            room_type: Some("table".into()),
            filter,
            limit: 0,
        }));
        bob.expect(|message| match message {
            ServerMessage::Listed(server::Listed { rooms, .. }) => Some(
                rooms.iter().map(|room| (room.id.to_string(), room.players)).collect::<Vec<_>>(),
            ),
            _ => None,
        })
    };
    // A list may be a turn behind the room.
    while list(&mut bob, vec![("map", "desert")]) != [(ann.room_id.clone(), 1)] {}
    assert!(list(&mut bob, vec![("map", "moon")]).is_empty());
    ann.have("private").unwrap();
    while !list(&mut bob, vec![]).is_empty() {}
    bob.join(&ann.room_id).unwrap();
}

#[test]
fn a_browser_gets_its_page_on_the_same_port() {
    let server = server(|_| {});
    let mut stream = connect(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("<p>hi"),
        "{response}"
    );
}

#[test]
fn an_end_tells_everyone_and_waits_for_nobody_who_does_not_read() {
    let server = server(|config| config.timeouts.shutdown = std::time::Duration::from_millis(500));
    let mut ann = Client::seated(&server, "Ann");
    let mut bob = Client::hello(&server, Transport::WebSocket, Format::Json, "Bob");
    bob.join_or_create().unwrap();
    let mut deaf = Client::seated(&server, "Deaf");
    for _ in 0..200 {
        deaf.send(1, &common::Do { what: "noise 100000".into() });
    }
    let _silent = connect(&server);
    server.shutdown();
    assert_eq!(ann.ending().1, Some(ErrorCode::ShuttingDown));
    assert_eq!(bob.ending().1, Some(ErrorCode::ShuttingDown));
}

#[test]
fn a_peer_that_says_all_and_ends_in_one_segment_is_heard_to_the_end() {
    let server = server(|_| {});
    let mut ann = Client::seated(&server, "Ann");
    for _ in 0..50 {
        // The last words and the end arrive together, and epoll tells of both at once.
        let mut bob = Client::seated(&server, "Bob");
        let goodbye = bob.encoded(&ClientMessage::Ping(client::Ping { nonce: 1 }));
        bob.stream.write_all(&goodbye).unwrap();
        bob.stream.shutdown(std::net::Shutdown::Write).unwrap();
        while bob.next().is_some() {}
    }
    ann.until(|table| table.players.len() == 1);
}
