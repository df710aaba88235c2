//! Lost connections that the client restores by itself, against a scripted node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use playfield_client::{
    Connect, Connection, ConnectionEvent, ConnectionEvents, Dynamic, ErrorCode, Room, connect,
};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};
use serde_json::json;
use tokio::net::TcpListener;

use crate::server::{Counted, Server, counted, joined};
use crate::support::{Said, kept, other};

/// A client that tries again at once.
fn dial(listener: &TcpListener) -> Connect {
    let address = listener.local_addr().unwrap();
    let (first, most) = (Duration::from_millis(1), Duration::from_millis(5));
    let connect = connect(&format!("tcp://{address}")).built_with::<Counted>("table");
    connect.name("Ann").backoff(first, most)
}

/// A client in room 1, whose session the node keeps.
async fn in_room(
    set: impl FnOnce(Connect) -> Connect,
) -> (Connection, Room<Dynamic>, Server, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = async {
        let (mut server, hello) = Server::accept(&listener).await;
        assert_eq!(hello, Said::Hello { name: "Ann".to_owned() });
        server.say(&kept(b"t1", None)).await;
        server
    };
    let (connection, mut server) = tokio::join!(set(dial(&listener)), node);
    let connection = connection.unwrap();
    let room = enter(&connection, &mut server, 1).await;
    (connection, room, server, listener)
}

async fn enter(connection: &Connection, server: &mut Server, request: u32) -> Room<Dynamic> {
    let node = async {
        while !matches!(server.hear().await, Said::Other(said) if said.starts_with("Join")) {}
        server.tell_schema().await;
        server.say(&joined(RequestNumber(request))).await;
        server.snapshot(5, &counted(1)).await;
    };
    tokio::join!(connection.join_dynamic("r"), node).0.unwrap()
}

/// The client's next connection, which resumes.
async fn comes_back(listener: &TcpListener, received: u64) -> Server {
    let (mut server, hello) = Server::accept(listener).await;
    assert!(matches!(hello, Said::Resume(..)), "{hello:?}");
    server.say(&kept(b"t2", Some(Resumed { received, lost: vec![] }))).await;
    server
}

async fn is_lost(events: &mut ConnectionEvents) {
    let event = events.next().await;
    assert!(matches!(event, Some(ConnectionEvent::Lost { .. })), "{event:?}");
}

/// The event after the attempts to connect that failed.
async fn after_attempts(events: &mut ConnectionEvents) -> Option<ConnectionEvent> {
    loop {
        match events.next().await {
            Some(ConnectionEvent::AttemptFailed { .. }) => {}
            event => return event,
        }
    }
}

#[tokio::test]
async fn in_a_new_session_old_rooms_have_ended_and_touch_no_new_one() {
    let (connection, room, mut server, listener) = in_room(|connect| connect).await;
    let mut events = connection.events();
    let value = json!(2);
    let node = async {
        server.hear().await;
        drop(server);
        let (mut server, hello) = Server::accept(&listener).await;
        assert!(matches!(hello, Said::Resume(..)));
        server.say(&kept(b"n1", None)).await;
        server
    };
    let (reply, mut server) = tokio::join!(room.request("Add", &value), node);
    let error = reply.unwrap_err();
    assert!(error.is_lost() && !error.is_closed(), "{error}");
    let error = room.changed().await.unwrap_err();
    assert!(error.is_left());
    assert_eq!(error.code(), Some(ErrorCode::ConnectionLost));
    assert!(error.to_string().contains("join the room again"), "{error}");
    is_lost(&mut events).await;
    let event = events.next().await;
    assert!(matches!(event, Some(ConnectionEvent::NewSession { .. })), "{event:?}");

    // The new room has the number of the old one.
    let again = enter(&connection, &mut server, 3).await;
    assert!(room.send("Add", &value).await.unwrap_err().is_left());
    assert!(room.request("Add", &value).await.unwrap_err().is_left());
    drop(room);
    again.send("Add", &value).await.unwrap();
    let said = loop {
        let Said::Other(said) = server.hear().await else { continue };
        if !said.starts_with("Ping") {
            break said;
        }
    };
    assert!(said.starts_with("Send"), "the old room's end is not this one's: {said}");
}

#[tokio::test]
async fn a_client_that_gives_up_says_what_it_tried() {
    let (connection, room, server, listener) =
        in_room(|connect| connect.reconnect_timeout(Duration::from_millis(20))).await;
    let mut events = connection.events();
    let address = listener.local_addr().unwrap();
    drop((listener, server));
    let error = room.changed().await.unwrap_err();
    assert!(error.is_closed());
    let text = error.to_string();
    assert!(
        text.starts_with("the connection ended without a goodbye; the client has tried"),
        "{text}"
    );
    assert!(text.ends_with(&format!("{address} can't be reached")), "{text}");
    assert!(std::error::Error::source(&error).is_some());
    is_lost(&mut events).await;
    assert!(matches!(after_attempts(&mut events).await, Some(ConnectionEvent::Ended { .. })));
    assert!(events.next().await.is_none());
    assert!(connection.events().next().await.is_none());
    assert!(connection.ping().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn close_and_drop_do_not_wait_for_a_lost_connection() {
    for drops in [false, true] {
        let (connection, room, server, listener) = in_room(|connect| {
            connect.backoff(Duration::from_secs(3600), Duration::from_secs(3600))
        })
        .await;
        let mut events = connection.events();
        drop((listener, server));
        is_lost(&mut events).await;
        if drops {
            drop((connection, room));
        } else {
            connection.close().await;
            assert!(room.changed().await.unwrap_err().is_closed());
        }
        assert!(matches!(after_attempts(&mut events).await, Some(ConnectionEvent::Ended { .. })));
    }
}

#[tokio::test]
async fn all_events_of_a_resumption_are_kept_until_they_are_taken_out() {
    let (connection, room, server, listener) = in_room(|connect| connect).await;
    drop(server);
    let mut server = comes_back(&listener, 1).await;
    for sequence in 1..=3000 {
        let (room, message) = (RoomNumber(1), MessageRef::Index(0));
        let (version, payload) = (5, &[7][..]);
        server
            .say(&ServerMessage::Event(server::Event {
                room,
                sequence,
                version,
                message,
                payload: payload.into(),
            }))
            .await;
    }
    // The first ping is that of the welcome.
    server.pong().await;
    tokio::join!(connection.ping(), server.pong()).0.unwrap();
    for sequence in 1..=3000 {
        assert_eq!(room.next_event().await.unwrap().sequence(), sequence);
    }
}

#[tokio::test]
async fn a_refusal_says_why_and_when_to_come_again() {
    let (connection, room, server, listener) = in_room(|connect| connect).await;
    let mut events = connection.events();
    drop(server);
    let wait = Duration::from_millis(60);
    for code in [ErrorCode::Busy, ErrorCode::Limit, ErrorCode::Internal] {
        let (mut server, _) = Server::accept(&listener).await;
        let (text, retry_after_ms) = ("try again".into(), Some(60));
        let error = ServerMessage::Error(server::Error {
            request: None,
            room: None,
            code,
            text,
            retry_after_ms,
        });
        server.say(&error).await;
        server.say(&ServerMessage::Goodbye(server::Goodbye { code, text: "full".into() })).await;
        let refused = Instant::now();
        let (_, hello) = Server::accept(&listener).await;
        assert!(refused.elapsed() >= wait, "it came again too soon: {hello:?}");
    }
    is_lost(&mut events).await;
    for code in [ErrorCode::Busy, ErrorCode::Limit, ErrorCode::Internal] {
        // Between them are the connections that ended at once.
        let error = loop {
            match events.next().await {
                Some(ConnectionEvent::AttemptFailed { error }) if error.code().is_some() => {
                    break error;
                }
                Some(ConnectionEvent::AttemptFailed { .. }) => {}
                event => panic!("{event:?}"),
            }
        };
        assert_eq!(
            (error.code(), error.text(), error.retry_after()),
            (Some(code), "full", Some(wait))
        );
        assert!(error.to_string().contains("full"), "{error}");
    }
    drop((connection, room));
}

#[tokio::test]
async fn a_suspected_connection_is_pinged_and_the_clock_is_measured() {
    let (connection, _room, mut server, _listener) = in_room(|connect| connect).await;
    assert_eq!((connection.round_trip(), connection.node_time()), (None, None));
    connection.suspect();
    assert_eq!(server.hear().await, other("Ping { nonce: 2 }"));
    server.say(&ServerMessage::Pong(server::Pong { nonce: 2, time_us: 3_600_000_000 })).await;
    tokio::join!(connection.ping(), server.pong()).0.unwrap();
    assert!(connection.round_trip().unwrap() < Duration::from_secs(60));
    assert!(connection.node_time().is_some());
}

#[tokio::test]
async fn a_function_gives_another_token_when_one_is_refused_and_may_fail() {
    // The outcome of the function's nth call.
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let give = move || {
        let call = count.fetch_add(1, Ordering::SeqCst) + 1;
        assert_ne!(call, 3, "the third call panics before it waits");
        async move {
            match call {
                2 => Err(std::io::Error::other("the account service is away")),
                4 => panic!("the fourth panics later"),
                5 => std::future::pending().await,
                call => Ok(format!("token {call}")),
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = async {
        let (mut server, _) = Server::accept(&listener).await;
        assert_eq!(server.token(), b"token 1");
        server.say(&kept(b"t1", None)).await;
        server
    };
    let connecting = dial(&listener).token_by(give).timeout(Duration::from_millis(200));
    let (connection, server) = tokio::join!(connecting, node);
    let connection = connection.unwrap();
    let mut events = connection.events();
    drop(server);
    // An attempt that fails is no reason to call it.
    drop(listener.accept().await.unwrap());
    let (mut server, _) = Server::accept(&listener).await;
    assert_eq!((server.token(), calls.load(Ordering::SeqCst)), (&b"token 1"[..], 1));
    let code = ErrorCode::Unauthorized;
    server
        .say(&ServerMessage::Goodbye(server::Goodbye { code, text: "it has expired".into() }))
        .await;
    let (mut server, _) = Server::accept(&listener).await;
    assert_eq!((server.token(), calls.load(Ordering::SeqCst)), (&b"token 6"[..], 6));
    server.say(&kept(b"t2", None)).await;
    is_lost(&mut events).await;
    for code in [None, Some(code)] {
        let Some(ConnectionEvent::AttemptFailed { error }) = events.next().await else {
            panic!("each attempt is reported");
        };
        assert_eq!(error.code(), code);
    }
    for why in ["is away", "it panicked", "it panicked", "it gave none within 200ms"] {
        let Some(ConnectionEvent::AttemptFailed { error }) = events.next().await else {
            panic!("each attempt is reported");
        };
        assert!(error.is_token_missing(), "{error}");
        assert!(error.to_string().starts_with("the function that gives the token failed: "));
        assert!(error.to_string().contains(why), "{error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(why), "{source}");
    }
}

#[tokio::test]
async fn a_client_whose_token_function_always_fails_gives_up_and_says_why() {
    let fails = || async { Err::<Vec<u8>, _>("the user logged out") };
    let error = connect("tcp://127.0.0.1:1").token_by(fails).await.unwrap_err();
    assert!(error.is_token_missing() && !error.is_closed(), "{error}");

    let is_out = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&is_out);
    let once = move || {
        let call = count.fetch_add(1, Ordering::SeqCst);
        async move { if call == 0 { Ok("token") } else { Err("the user logged out") } }
    };
    let set =
        |connect: Connect| connect.token_by(once).reconnect_timeout(Duration::from_millis(20));
    let (connection, room, server, listener) = in_room(set).await;
    drop(server);
    let (mut server, _) = Server::accept(&listener).await;
    let code = ErrorCode::Unauthorized;
    server
        .say(&ServerMessage::Goodbye(server::Goodbye { code, text: "it has expired".into() }))
        .await;
    let error = room.changed().await.unwrap_err();
    assert!(error.is_closed());
    let text = error.to_string();
    assert!(
        text.ends_with("the function that gives the token failed: the user logged out"),
        "{text}"
    );
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the user logged out");
    assert!(is_out.load(Ordering::SeqCst) > 1);
    drop(connection);
}

#[tokio::test]
async fn a_client_tries_while_the_node_keeps_the_session_whatever_its_settings() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let node = async {
        let (mut server, _) = Server::accept(&listener).await;
        let mut kept = kept(b"t1", None);
        let ServerMessage::Welcome(server::Welcome { grace_ms, .. }) = &mut kept else {
            unreachable!()
        };
        *grace_ms = 200;
        server.say(&kept).await;
    };
    let hour = Duration::from_secs(3600);
    let connection = tokio::join!(dial(&listener).backoff(hour, hour), node).0.unwrap();
    // Its wait is a random part of the session's 200 milliseconds, and not of an hour.
    let back = Server::accept(&listener);
    let back = tokio::time::timeout(Duration::from_secs(30), back).await;
    assert!(matches!(back, Ok((_, Said::Resume(..)))), "the client has not come back");
    drop(connection);
}

#[tokio::test]
async fn the_waits_start_over_after_each_return_that_made_progress() {
    let (first, most) = (Duration::from_millis(1), Duration::from_secs(3600));
    let (connection, room, server, listener) =
        in_room(|connect| connect.backoff(first, most)).await;
    let mut last = Some(server);
    let cuts = async {
        for sequence in 1..=40 {
            drop(last.take());
            let mut server = comes_back(&listener, 1).await;
            let (room_number, message) = (RoomNumber(1), MessageRef::Index(0));
            let event = ServerMessage::Event(server::Event {
                room: room_number,
                sequence,
                version: 5,
                message,
                payload: (&[1]).into(),
            });
            server.say(&event).await;
            room.next_event().await.unwrap();
            last = Some(server);
        }
    };
    // If they counted as failures in a row, they would take minutes.
    let cuts = tokio::time::timeout(Duration::from_secs(30), cuts).await;
    assert!(cuts.is_ok(), "the client waits ever longer");
    drop(connection);
}

#[tokio::test]
async fn sends_without_a_confirmation_are_counted_in_a_new_session_also_those_that_waited() {
    let (connection, room, mut server, listener) = in_room(|connect| connect).await;
    let mut events = connection.events();
    room.send("Nudge", &json!("1")).await.unwrap();
    while !matches!(server.hear().await, Said::Other(said) if said.starts_with("Send")) {}
    drop(server);
    is_lost(&mut events).await;
    for number in 2..=4 {
        room.send("Nudge", &json!(number.to_string())).await.unwrap();
    }
    let list = connection.list(None, &[], 0);
    let node = async {
        let (mut server, _) = Server::accept(&listener).await;
        server.say(&kept(b"n1", None)).await;
        while !matches!(server.hear().await, Said::Other(said) if said.starts_with("List")) {}
        server
            .say(&ServerMessage::Listed(server::Listed {
                request: RequestNumber(2),
                rooms: vec![],
            }))
            .await;
        server
    };
    let (list, _server) = tokio::join!(list, node);
    assert_eq!(list.unwrap(), [], "what concerns no room is carried out in the new session");
    let event = after_attempts(&mut events).await;
    let Some(ConnectionEvent::NewSession { unconfirmed, .. }) = event else { panic!("{event:?}") };
    assert_eq!(unconfirmed, 4);
    assert!(room.send("Nudge", &json!("5")).await.unwrap_err().is_left());
}

#[tokio::test]
async fn sends_without_a_confirmation_are_counted_at_the_end() {
    let hour = Duration::from_secs(3600);
    for (drops, gives_up) in [(true, false), (false, false), (false, true)] {
        let (connection, room, mut server, listener) = in_room(|connect| match gives_up {
            true => connect.reconnect_timeout(Duration::from_millis(300)),
            false => connect.backoff(hour, hour),
        })
        .await;
        let mut events = connection.events();
        room.send("Nudge", &json!("1")).await.unwrap();
        while !matches!(server.hear().await, Said::Other(said) if said.starts_with("Send")) {}
        drop((listener, server));
        is_lost(&mut events).await;
        room.send("Nudge", &json!("2")).await.unwrap();
        let handles = match (drops, gives_up) {
            (true, _) => {
                drop((connection, room));
                None
            }
            (_, true) => Some((connection, room)),
            _ => {
                connection.close().await;
                None
            }
        };
        let event = after_attempts(&mut events).await;
        let Some(ConnectionEvent::Ended { unconfirmed, .. }) = event else { panic!("{event:?}") };
        assert_eq!(unconfirmed, 2);
        drop(handles);
    }
}
