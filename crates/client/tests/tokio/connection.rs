//! Connections and rooms, against a scripted node over a real socket.
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use playfield_client::{Connection, Dynamic, Error, ErrorCode, QueueLimits, Room, connect};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};
use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{BAD_PATCH, Server, counted, counts, joined};
use crate::support::{Said, other};

fn event(sequence: u64) -> ServerMessage<'static> {
    let (room, message) = (RoomNumber(1), MessageRef::Index(0));
    let payload = (&[7]).into();
    ServerMessage::Event(server::Event { room, sequence, version: 5, message, payload })
}

fn left(code: ErrorCode) -> ServerMessage<'static> {
    ServerMessage::Left(server::Left {
        request: None,
        room: RoomNumber(1),
        code,
        text: "because".into(),
    })
}

/// A client in room 1, with the state `{"n": 1}` at version 5.
async fn in_room() -> (Connection, Room<Dynamic>, Server) {
    let (connection, mut server) = Server::welcomed().await;
    let room = enter(&connection, &mut server).await;
    (connection, room, server)
}

async fn enter(connection: &Connection, server: &mut Server) -> Room<Dynamic> {
    let node = async {
        let heard = server.hear().await;
        assert_eq!(heard, other(r#"Join { request: 1, room: "r" }"#));
        server.say(&joined(RequestNumber(1))).await;
        server.snapshot(5, &counted(1)).await;
    };
    tokio::join!(connection.join_dynamic("r"), node).0.unwrap()
}

/// Waits until the client has handled everything that the node has sent.
async fn settle(connection: &Connection, server: &mut Server) {
    tokio::join!(connection.ping(), server.pong()).0.unwrap();
}

/// Polls a future once.
fn poll_once<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

// Connecting.

#[tokio::test]
async fn both_ends_close_a_web_socket_and_the_node_the_transport() {
    let (connection, mut server) = Server::welcomed_as(true, |connect| connect).await;
    let node = async {
        assert_eq!(server.hear().await, other("Goodbye"));
        assert_eq!(server.hear().await, Said::Close(Some(1000)));
        assert!(!server.has_ended().await, "the node has not answered");
        server.close(1000).await;
        assert!(!server.has_ended().await, "the node has not closed the transport");
        server.hang_up().await;
        assert_eq!(server.hear_all().await, []);
    };
    tokio::join!(connection.close(), node);
}

#[tokio::test]
async fn a_web_socket_close_frame_is_answered() {
    let (connection, mut server) = Server::welcomed_as(true, |connect| connect).await;
    server.close(1011).await;
    assert_eq!(server.hear().await, Said::Close(Some(1011)));
    assert!(connection.ping().await.unwrap_err().is_closed());
    assert!(!server.has_ended().await, "the node has not closed the transport");
    server.hang_up().await;
    assert_eq!(server.hear_all().await, []);
}

#[tokio::test]
async fn an_unreachable_node_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = playfield_client::connect(&format!("tcp://{address}")).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{address} can't be reached"));
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn connecting_has_a_time_limit() {
    let limit = Duration::from_millis(20);
    let mut nothing_said = false;
    let (connection, _server) =
        Server::met(false, |connect| connect.timeout(limit), async |_| nothing_said = true).await;
    assert!(nothing_said);
    assert!(connection.unwrap_err().to_string().contains("can't be reached"));
}

// Rooms.

#[tokio::test]
async fn a_room_is_entered_with_its_state_and_kept_up_to_date() {
    let (_connection, room, mut server) = in_room().await;
    assert_eq!((room.id(), room.player().0, room.version()), ("r", 4, 5));
    assert_eq!(*room.state(), json!({"n": 1}));
    assert!(poll_once(room.changed()).is_pending(), "the first snapshot is no change");

    server.patch(5, 6, &counts(2)).await;
    room.changed().await.unwrap();
    assert_eq!((&room.state()["n"], room.version()), (&json!(2), 6));
    assert!(poll_once(room.changed()).is_pending());
}

#[tokio::test]
async fn events_past_the_limit_are_dropped_and_counted() {
    let (connection, mut server) = Server::counting(|connect| {
        connect.queue_limits(QueueLimits {
            events_max: 2,
            event_bytes_max: 0,
            ..Default::default()
        })
    })
    .await;
    let room = enter(&connection, &mut server).await;
    for sequence in 1..=5 {
        server.say(&event(sequence)).await;
    }
    settle(&connection, &mut server).await;
    let error = room.next_event().await.unwrap_err();
    assert!(error.is_missed());
    assert!(error.to_string().starts_with("3 events"));
    assert_eq!(room.next_event().await.unwrap().sequence(), 4);
    assert_eq!(room.next_event().await.unwrap().sequence(), 5);
}

#[tokio::test]
async fn more_events_are_kept_while_they_are_short() {
    // Each counts for its payload of 1 byte, and for 24.
    for (bytes_max, missed) in [(5 * 25, 0), (5 * 25 - 1, 1)] {
        let (connection, mut server) = Server::counting(|connect| {
            connect.queue_limits(QueueLimits {
                events_max: 2,
                event_bytes_max: bytes_max,
                ..Default::default()
            })
        })
        .await;
        let room = enter(&connection, &mut server).await;
        for sequence in 1..=5 {
            server.say(&event(sequence)).await;
        }
        settle(&connection, &mut server).await;
        if missed > 0 {
            let error = room.next_event().await.unwrap_err();
            assert!(error.to_string().starts_with("1 events"), "{error}");
        }
        for sequence in missed + 1..=5 {
            assert_eq!(room.next_event().await.unwrap().sequence(), sequence);
        }
    }
}

/// A program that takes nothing out kept up to `events_max` events of any size, and refusals
/// counted without their texts.
#[tokio::test]
async fn few_events_and_refusals_are_dropped_if_they_are_long() {
    let text = "x".repeat(100);
    let payload = [&[99][..], &[b'y'; 99]].concat();
    // Each counts for its text or payload of 100 bytes, and for 24.
    for (bytes_max, missed) in [(5 * 124, 0), (5 * 124 - 1, 1), (0, 4)] {
        let (connection, mut server) = Server::counting(|connect| {
            connect.queue_limits(QueueLimits {
                event_bytes_max: 0,
                queue_bytes_max: bytes_max,
                ..Default::default()
            })
        })
        .await;
        let room = enter(&connection, &mut server).await;
        for _ in 0..2 {
            let (room, code, text) = (Some(RoomNumber(1)), ErrorCode::Forbidden, (&*text).into());
            let (request, retry_after_ms) = (None, None);
            let error =
                ServerMessage::Error(server::Error { request, room, code, text, retry_after_ms });
            server.say(&error).await;
        }
        for sequence in 1..=3 {
            let (room, message) = (RoomNumber(1), MessageRef::Index(1));
            let payload = &payload;
            server
                .say(&ServerMessage::Event(server::Event {
                    room,
                    sequence,
                    version: 5,
                    message,
                    payload: payload.into(),
                }))
                .await;
        }
        settle(&connection, &mut server).await;
        if missed > 0 {
            let error = room.next_event().await.unwrap_err();
            assert!(error.is_missed(), "{error}");
            assert_eq!(error.missed_count(), missed);
        }
        for _ in missed..2 {
            assert_eq!(room.next_event().await.unwrap_err().text(), text);
        }
        for sequence in missed.saturating_sub(2) + 1..=3 {
            assert_eq!(room.next_event().await.unwrap().sequence(), sequence);
        }
        assert!(poll_once(room.next_event()).is_pending());
    }
}

#[tokio::test]
async fn a_room_that_is_dropped_is_left_before_the_program_enters_another() {
    for _ in 0..32 {
        let (connection, room, mut server) = in_room().await;
        room.send("Nudge", &json!("1")).await.unwrap();
        drop(room);
        let node = async {
            let mut heard = Vec::new();
            while heard.len() < 3 {
                let Said::Other(said) = server.hear().await else { continue };
                heard.extend(
                    ["Send", "Leave", "Join"].into_iter().find(|what| said.starts_with(what)),
                );
            }
            assert_eq!(heard, ["Send", "Leave", "Join"]);
            drop(server);
        };
        let (joined, ()) = tokio::join!(connection.join_dynamic("r"), node);
        assert!(joined.is_err());
    }
}

#[tokio::test]
async fn a_node_that_closes_a_connection_on_arrival_may_have_refused_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = connect(&format!("tcp://{address}"));
    let (refused, ()) = tokio::join!(connecting, async { drop(listener.accept().await.unwrap()) });
    let error = refused.unwrap_err();
    assert!(error.is_closed() && error.to_string().contains("may have refused it"), "{error}");
}

#[tokio::test]
async fn the_state_is_frozen_while_it_is_read_and_catches_up_after() {
    let (connection, room, mut server) = in_room().await;
    let look = room.state();
    server.patch(5, 6, &counts(2)).await;
    server.patch(6, 7, &counts(3)).await;
    settle(&connection, &mut server).await;
    let second_look = room.state();
    assert_eq!((&look["n"], &second_look["n"], room.version()), (&json!(1), &json!(1), 5));
    drop(look);
    assert_eq!(second_look["n"], json!(1));
    drop(second_look);
    assert_eq!((&room.state()["n"], room.version()), (&json!(3), 7));
    room.changed().await.unwrap();
}

#[tokio::test]
async fn a_patch_that_does_not_fit_leads_to_a_snapshot() {
    let (connection, room, mut server) = in_room().await;
    // Once when it comes, and once after a reader held the copy.
    server.patch(5, 6, BAD_PATCH).await;
    assert_eq!(server.hear().await, other("Resync { room: 1 }"));
    server.snapshot(5, &counted(1)).await;
    room.changed().await.unwrap();
    let look = room.state();
    server.patch(5, 6, BAD_PATCH).await;
    settle(&connection, &mut server).await;
    drop(look);
    assert_eq!(server.hear().await, other("Resync { room: 1 }"));
    server.snapshot(6, &counted(9)).await;
    room.changed().await.unwrap();
    assert_eq!(room.state()["n"], json!(9));
}

// The end of a room.

#[tokio::test]
async fn dropping_a_room_leaves_it() {
    let (_connection, room, mut server) = in_room().await;
    drop(room);
    assert_eq!(server.hear().await, other("Leave { request: 2, room: 1 }"));
}

#[tokio::test]
async fn a_room_is_left_if_its_join_was_dropped() {
    let (connection, mut server) = Server::welcomed().await;
    tokio::select! {
        _ = connection.join_dynamic("r") => panic!("it is not answered"),
        heard = server.hear() => assert_eq!(heard, other(r#"Join { request: 1, room: "r" }"#)),
    }
    server.say(&joined(RequestNumber(1))).await;
    server.snapshot(5, &counted(1)).await;
    assert_eq!(server.hear().await, other("Leave { request: 2, room: 1 }"));
}

#[tokio::test]
async fn all_methods_report_why_the_client_was_removed() {
    let (_connection, room, mut server) = in_room().await;
    let node = async {
        server.hear().await;
        server.say(&event(1)).await;
        server.say(&left(ErrorCode::Kicked)).await;
    };
    let is_kicked = |error: Error| error.is_left() && error.code() == Some(ErrorCode::Kicked);
    let value = json!(1);
    let (changed, reply, ()) = tokio::join!(room.changed(), room.request("Add", &value), node);
    assert!(is_kicked(changed.unwrap_err()));
    assert!(is_kicked(reply.unwrap_err()));
    assert!(is_kicked(room.request("Add", &value).await.unwrap_err()));
    assert!(is_kicked(room.send("Add", &value).await.unwrap_err()));
    assert_eq!(room.next_event().await.unwrap().sequence(), 1, "what came before is not lost");
    assert!(is_kicked(room.next_event().await.unwrap_err()));
    assert_eq!(room.state()["n"], json!(1), "the copy stays as it was");
    assert!(is_kicked(room.leave().await.unwrap_err()));
}

// The end of the connection.

#[tokio::test]
async fn dropping_the_last_handle_says_goodbye() {
    let (connection, room, mut server) = in_room().await;
    drop(connection);
    settle_without(&mut server, &room).await;
    drop(room);
    let said = server.hear_all().await;
    assert_eq!(said.last(), Some(&other("Goodbye")));
}

/// The room's handle alone keeps the connection open.
async fn settle_without(server: &mut Server, room: &Room<Dynamic>) {
    server.say(&event(1)).await;
    room.next_event().await.unwrap();
}

#[tokio::test]
async fn a_lost_connection_fails_everything_that_waits() {
    let (connection, room, mut server) = in_room().await;
    let value = json!(1);
    let node = async {
        server.hear().await;
        drop(server);
    };
    let (reply, pong, changed, next, ()) = tokio::join!(
        room.request("Add", &value),
        connection.ping(),
        room.changed(),
        room.next_event(),
        node
    );
    for error in [reply.unwrap_err(), pong.unwrap_err(), changed.unwrap_err(), next.unwrap_err()] {
        assert!(error.is_closed(), "{error}");
    }
    assert!(connection.list(None, &[], 0).await.unwrap_err().is_closed());
    assert!(room.send("Add", &value).await.unwrap_err().is_closed());
}

#[tokio::test]
async fn all_methods_report_the_goodbye_of_the_node() {
    let (connection, room, mut server) = in_room().await;
    server
        .say(&ServerMessage::Goodbye(server::Goodbye {
            code: ErrorCode::ShuttingDown,
            text: "until nine".into(),
        }))
        .await;
    let error = room.changed().await.unwrap_err();
    assert_eq!((error.is_closed(), error.code()), (true, Some(ErrorCode::ShuttingDown)));
    assert_eq!(connection.ping().await.unwrap_err().text(), "until nine");
}

// Lists and limits.

#[tokio::test]
async fn a_full_queue_of_commands_makes_callers_wait() {
    let (connection, mut server) = Server::counting(|connect| connect).await;
    let room = enter(&connection, &mut server).await;
    // The connection's task does not run in between.
    let is_queued = || {
        let message = json!("1");
        poll_once(tokio::task::unconstrained(room.send("Nudge", &message))).is_ready()
    };
    let places = std::iter::repeat_with(is_queued).take_while(|is_queued| *is_queued).count();
    assert_eq!(places, 1024);
    room.send("Nudge", &json!("3")).await.unwrap();
    for payload in std::iter::repeat_n("49", places).chain(["51"]) {
        let expected = format!("Send {{ room: 1, message: Index(1), payload: [1, {payload}] }}");
        assert_eq!(server.hear().await, other(&expected));
    }
}

/// The last changes of a room were not reported if its state was held when it ended.
#[tokio::test]
async fn what_waits_for_a_reader_is_reported_as_changed_after_the_room_s_end() {
    let (connection, room, mut server) = in_room().await;
    let mut changes = room.changes().await.unwrap();
    let reader = room.state();
    server.patch(5, 6, &counts(2)).await;
    server.say(&left(ErrorCode::Kicked)).await;
    settle(&connection, &mut server).await;
    assert!(poll_once(changes.next()).is_pending(), "the state is still the old one");
    drop(reader);
    assert_eq!(changes.next().await.unwrap().new, Some(json!(2)));
    assert!(changes.next().await.unwrap_err().is_left());
}

#[tokio::test]
async fn a_message_too_long_for_the_node_is_not_sent() {
    let (_connection, room, mut server) = in_room().await;
    let long = json!("x".repeat(1000));
    let error = room.request("Nudge", &long).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::TooLarge));
    room.send("Nudge", &long).await.unwrap();
    assert_eq!(room.next_event().await.unwrap_err().code(), Some(ErrorCode::TooLarge));
    server.say(&event(1)).await;
    room.next_event().await.unwrap();
}
