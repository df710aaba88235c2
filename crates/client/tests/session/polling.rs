//! A program that polls late, or stops in between: nothing is lost, and nothing is handled before.

use std::time::Duration;

use playfield_client::session::{ClientConfig, ClientError, Event, Session, UpdateKind};
use playfield_websocket::{Deflate, Deflater, DeflaterOptions, Opcode, Role};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RoomNumber};

use crate::support::{Node, Talk, config, is_update, patch, polled, welcome};

fn patches(talk: &mut Talk, versions: std::ops::Range<u64>) -> Vec<u8> {
    versions.flat_map(|base| talk.node.write(&patch(RoomNumber(1), base, base + 1))).collect()
}

#[test]
fn messages_are_handled_one_by_one_as_they_are_polled() {
    let mut talk = Talk::in_room();
    let bytes = patches(&mut talk, 5..8);
    let (front, back) = bytes.split_at(bytes.len() - 3);
    talk.client.received(front);
    assert!(is_update(&talk.client.poll_event().unwrap(), UpdateKind::Patch, 6));
    talk.client.received(back);
    for version in 7..9 {
        assert!(is_update(&talk.client.poll_event().unwrap(), UpdateKind::Patch, version));
    }
    assert_eq!(talk.client.poll_event(), None);
}

#[test]
fn the_end_comes_after_what_was_received_before_it() {
    let mut talk = Talk::kept_in_room();
    let bytes = patches(&mut talk, 5..7);
    talk.client.received(&bytes);
    talk.client.ended();
    assert!(!talk.client.is_away());
    let events = polled(&mut talk.client);
    assert!(is_update(&events[1], UpdateKind::Patch, 7));
    assert!(matches!(events[2..], [Event::ConnectionLost { .. }]), "{events:?}");
    assert!(talk.client.is_away());
    talk.client.received(&bytes);
    assert_eq!(polled(&mut talk.client), [], "there is no connection");
}

#[test]
fn another_connection_begins_with_an_empty_inbox() {
    let mut talk = Talk::kept_in_room();
    let bytes = patches(&mut talk, 5..7);
    talk.client.received(&bytes[..bytes.len() - 1]);
    talk.client.ended();
    talk.client.reconnect(config(false).transport).unwrap();
    talk.node = Node::new(false);
    talk.heard();
    talk.says(&crate::support::kept(b"t2", Some(server::Resumed { received: 1, lost: vec![] })));
    assert!(matches!(talk.all_events()[..], [Event::Resumed(_)]));
}

#[test]
fn a_node_is_not_silent_while_its_messages_wait() {
    let mut talk = Talk::new(false);
    talk.heard();
    talk.says(&welcome(1000, 1000));
    talk.all_events();
    let late = Duration::from_secs(60);
    let bytes = talk.node.write(&ServerMessage::Pong(server::Pong { nonce: 1, time_us: 0 }));
    talk.client.received(&bytes);
    for second in 1..60 {
        talk.client.advance(Duration::from_secs(second));
    }
    assert_eq!(talk.client.due_at(), None, "only polling helps");
    assert_eq!(polled(&mut talk.client), []);
    talk.advances(late);
    assert!(!talk.client.is_finished());
    // The node gets as long as after any other message.
    assert!(talk.client.due_at().unwrap() > late - Duration::from_secs(1));
    for second in 60..70 {
        talk.advances(Duration::from_secs(second));
    }
    let closed = talk.all_events().pop();
    assert!(matches!(closed, Some(Event::Closed { error: Some(ClientError::Silent { .. }) })));
}

#[test]
fn a_program_that_does_not_poll_wants_no_more() {
    let mut talk = Talk::in_room();
    let bytes = patches(&mut talk, 5..6);
    let mut received = 0;
    while talk.client.wants_input() {
        talk.client.received(&bytes);
        received += bytes.len();
    }
    assert!(received < 2 << 20, "{received}");
    while talk.client.poll_event().is_some() {}
    assert!(talk.client.wants_input());
    // The start of a long message is no reason to stop.
    let long = ServerMessage::Snapshot(server::Snapshot {
        room: RoomNumber(1),
        epoch: 3,
        version: 90,
        body: vec![b'1'; 3 << 20].into(),
    });
    for piece in talk.node.write(&long).chunks(64 << 10) {
        assert!(talk.client.wants_input());
        talk.client.received(piece);
        talk.events.extend(polled(&mut talk.client));
    }
    assert!(is_update(&talk.all_events().pop().unwrap(), UpdateKind::Snapshot, 90));
}

/// Bodies that are not in the inbox, but in the buffer of the WebSocket's decoder.
#[test]
fn compressed_and_fragmented_messages_are_reported_whole() {
    let config = ClientConfig { deflate: true, ..config(true) };
    let mut client = Session::new(config).unwrap();
    let mut out = Vec::new();
    client.take_output(&mut out);
    let mut node = Node::new(true);
    node.read(&out);
    let answer = String::from_utf8(node.take_answer()).unwrap();
    let header = "\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; \
                  client_no_context_takeover\r\n";
    client.received(answer.replacen("\r\n", header, 1).as_bytes());
    client.received(&node.write(&welcome(0, 1 << 20)));
    assert!(matches!(client.poll_event(), Some(Event::Welcome(_))));
    let said = |text: &str| {
        let mut body = Vec::new();
        let error = server::Error {
            request: None,
            room: None,
            code: playfield_wire::ErrorCode::Refused,
            text: text.repeat(300).into(),
            retry_after_ms: None,
        };
        ServerMessage::Error(error.clone()).encode(Format::Packed, &mut body);
        (body, Event::Error(error))
    };
    let options = DeflaterOptions { message_bytes_min: 0, ..DeflaterOptions::default() };
    let mut deflater = Deflater::new(Role::Server, &Deflate::default(), options);
    let (first, first_event) = said("first");
    let (second, second_event) = said("second");
    let (third, third_event) = said("third");
    let mut bytes = Vec::new();
    deflater.encode(&mut bytes, Opcode::Binary, &first, None);
    // Two fragments: the first without FIN, and a continuation.
    let (front, back) = second.split_at(100);
    bytes.extend(
        [&[0x02, 100][..], front, &[0x80, 126], &(back.len() as u16).to_be_bytes()].concat(),
    );
    bytes.extend(back);
    bytes.extend(node.frame(&third));
    for size in [1, 7, bytes.len()] {
        let mut events = Vec::new();
        for piece in bytes.chunks(size) {
            client.received(piece);
            events.extend(polled(&mut client));
        }
        let expected = [first_event.clone(), second_event.clone(), third_event.clone()];
        assert_eq!(events, expected, "in pieces of {size}");
    }
}
