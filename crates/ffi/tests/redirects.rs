//! Joins that a node redirects to another: the nodes are scripts.

use std::sync::mpsc::sync_channel;

use playfield::ErrorCode;
use playfield_ffi::*;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use crate::calls::{next, read, text};
use crate::script::{
    Node, Place, connecting, connecting_with, event, join, joined, patch, request_of, welcome,
};

/// Redirects the next request, a join. Returns what it was.
fn redirect(node: &mut Node, addresses: &[&str], reservation: &str) -> String {
    let heard = node.hear();
    assert!(heard.starts_with("Join"), "{heard}");
    node.say(&ServerMessage::Redirect(server::Redirect {
        request: request_of(&heard),
        addresses: addresses.iter().map(|address| (*address).into()).collect(),
        reservation: reservation.into(),
    }));
    heard
}

/// Refuses the next request, a join.
fn refuse(node: &mut Node, code: ErrorCode) {
    let heard = node.hear();
    assert!(heard.starts_with("Join"), "{heard}");
    node.say(&ServerMessage::Error(server::Error {
        request: Some(request_of(&heard)),
        room: None,
        code,
        text: "not so".into(),
        retry_after_ms: None,
    }));
}

/// The next event, which must be of this kind.
fn exactly(client: PfClient, kind: PfEventKind) -> PfEvent {
    let mut event = PfEvent::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_client_next(client, 30_000, &raw mut event) }, PfCode::Ok);
    assert_eq!(event.kind, kind, "{:?}: {} {}", event, read(event.text), read(event.name));
    event
}

fn joins(client: PfClient) -> PfRoom {
    join(client);
    let event = next(client, PfEventKind::Joined);
    assert_eq!(event.code, PfCode::Ok, "{}", read(event.text));
    event.room
}

/// The address of a room's node.
fn node_of(room: PfRoom) -> String {
    let mut info = PfRoomInfo::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_room_get_info(room, &raw mut info) }, PfCode::Ok);
    read(info.node)
}

fn send(room: PfRoom) {
    // SAFETY: the texts outlive the call.
    let sent = unsafe { pf_room_send(room, text("Go"), text("1")) };
    assert_eq!(sent, PfCode::Ok, "{}", read(pf_error_message()));
}

/// The answer to a join that fails: its reason and text.
fn refusal(client: PfClient) -> (PfCode, String, String) {
    join(client);
    let event = next(client, PfEventKind::Joined);
    (event.code, read(event.reason), read(event.text))
}

fn free(client: PfClient) {
    assert_eq!(pf_client_free(client), PfCode::Ok);
}

#[test]
fn a_room_is_entered_at_the_node_that_has_it() {
    let (first, other) = (Place::new(), Place::new());
    let (url, address, name) = (first.url.clone(), other.url.clone(), other.url.clone());
    let other = other.start(move |node| {
        // The join comes with the hello.
        let heard = node.hear();
        assert!(heard.starts_with("Join") && heard.contains("seat"), "{heard}");
        node.prepare(&welcome());
        node.prepare(&joined(request_of(&heard), 1));
        node.show(1);
        assert!(node.hear().starts_with("Send"));
        node.say(&event(1, 1, "there"));
        node.say(&patch(1));
        let heard = node.hear();
        assert!(heard.starts_with("Leave"), "{heard}");
        assert!(node.hear().starts_with("Goodbye"));
    });
    let first = first.start(move |node| {
        node.welcome();
        redirect(node, &["ws://127.0.0.1:1", &address], "seat");
        // A room of the same number.
        node.let_in(1);
        assert!(node.hear().starts_with("Send"));
        node.say(&event(1, 1, "here"));
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let there = joins(client);
    let here = joins(client);
    assert_eq!((node_of(there), node_of(here)), (name, String::new()));
    send(there);
    let event = next(client, PfEventKind::Event);
    assert_eq!(event.room, there);
    assert_eq!(exactly(client, PfEventKind::State).room, there);
    send(here);
    assert_eq!(next(client, PfEventKind::Event).room, here);
    assert_eq!(pf_room_free(there), PfCode::Ok);
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

#[test]
fn without_a_reservation_the_same_request_is_sent_there() {
    let (first, other) = (Place::new(), Place::new());
    let (url, address) = (first.url.clone(), other.url.clone());
    let (is_asked, asked) = sync_channel(1);
    let other = other.start(move |node| {
        node.welcome();
        let heard = node.hear();
        is_asked.send(heard.clone()).expect("the test waits");
        node.prepare(&joined(request_of(&heard), 1));
        node.show(1);
    });
    let first = first.start(move |node| {
        node.welcome();
        let heard = redirect(node, &[&address], "");
        assert_eq!(heard, asked.recv().expect("the other node runs"));
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let (none, mut request) = (PfText::default(), 0);
    // SAFETY: the texts outlive the call, and the request is a place.
    let asked = unsafe {
        pf_client_join_or_create(client, text("table"), text("key"), none, &raw mut request)
    };
    assert_eq!(asked, PfCode::Ok);
    let event = next(client, PfEventKind::Joined);
    assert_eq!((event.code, event.request), (PfCode::Ok, request));
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

#[test]
fn a_node_that_is_gone_is_unreachable_after_three_joins() {
    let (gone, first) = (Place::new(), Place::new());
    let (address, name, url) = (gone.url.clone(), gone.url.clone(), first.url.clone());
    drop(gone);
    let first = first.start(move |node| {
        node.welcome();
        for _ in 0..3 {
            let heard = redirect(node, &["tls://127.0.0.1:1", &address], "seat");
            assert!(heard.contains("\"r\""), "{heard}");
        }
        // The fourth is another.
        node.let_in(1);
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let (code, reason, why) = refusal(client);
    assert_eq!((code, &*reason), (PfCode::Unreachable, "unreachable"));
    assert!(why.contains(&name), "{why}");
    joins(client);
    free(client);
    first.join().expect("a node that heard what it expects");
}

#[test]
fn a_join_whose_reservation_is_over_asks_again() {
    let (first, other) = (Place::new(), Place::new());
    let (url, address, name) = (first.url.clone(), other.url.clone(), other.url.clone());
    let other = other.start(|node| {
        node.welcome();
        refuse(node, ErrorCode::BadReservation);
        node.let_in(1);
        // Other refusals are the answer.
        refuse(node, ErrorCode::RoomFull);
        for _ in 0..3 {
            refuse(node, ErrorCode::RoomNotFound);
        }
        // Without a reservation as well.
        refuse(node, ErrorCode::RoomNotFound);
    });
    let first = first.start(move |node| {
        node.welcome();
        for seat in ["1", "2", "3", "4", "5", "6", ""] {
            redirect(node, &[&address], seat);
        }
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    joins(client);
    let (code, reason, _) = refusal(client);
    assert_eq!((code, &*reason), (PfCode::Refused, "room_full"));
    let (code, reason, why) = refusal(client);
    assert_eq!((code, &*reason), (PfCode::Unreachable, "unreachable"));
    assert!(why.contains("3 times") && why.contains(&name), "{why}");
    let (code, reason, _) = refusal(client);
    assert_eq!((code, &*reason), (PfCode::Refused, "room_not_found"));
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

#[test]
fn a_join_to_a_node_that_shuts_down_asks_again_and_one_that_is_turned_away_does_not() {
    for (code, goes_on) in [(ErrorCode::ShuttingDown, true), (ErrorCode::Unauthorized, false)] {
        let (first, other) = (Place::new(), Place::new());
        let (url, address) = (first.url.clone(), other.url.clone());
        let other = other.start(move |node| {
            let text = "not now".into();
            node.say(&ServerMessage::Goodbye(server::Goodbye { code, text }));
        });
        let first = first.start(move |node| {
            node.welcome();
            redirect(node, &[&address], "seat");
            if goes_on {
                node.let_in(1);
            }
        });
        let client = connecting(&url, &[]);
        next(client, PfEventKind::Connected);
        if goes_on {
            joins(client);
        } else {
            let (code, reason, _) = refusal(client);
            assert_eq!((code, &*reason), (PfCode::Refused, "unauthorized"));
        }
        free(client);
        first.join().expect("a node that heard what it expects");
        other.join().expect("a node that heard what it expects");
    }
}

#[test]
fn redirects_in_a_circle_end() {
    let (first, other) = (Place::new(), Place::new());
    let (url, back, address) = (first.url.clone(), first.url.clone(), other.url.clone());
    let other = other.start(move |node| {
        node.welcome();
        redirect(node, &[&back], "2");
        redirect(node, &[&back], "4");
    });
    let first = first.start(move |node| {
        node.welcome();
        redirect(node, &[&address], "1");
        redirect(node, &[&address], "3");
        // Nothing more comes of it.
        node.let_in(1);
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let (code, reason, why) = refusal(client);
    assert_eq!((code, &*reason), (PfCode::Unreachable, "unreachable"), "{why}");
    joins(client);
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

/// A welcome of a node that keeps the session.
fn keeping(resumed: Option<server::Resumed>) -> ServerMessage<'static> {
    let ServerMessage::Welcome(welcome) = welcome() else { unreachable!() };
    let resume = b"token"[..].into();
    ServerMessage::Welcome(server::Welcome { resume, grace_ms: 60_000, resumed, ..welcome })
}

/// A client in a room of the first node and in one of another, with both nodes.
fn in_two_rooms(
    set: &[(PfOption, u64)],
    at_first: impl FnOnce(&mut Node) + Send + 'static,
    at_other: impl FnOnce(&mut Node) + Send + 'static,
) -> (PfClient, [PfRoom; 2], String, impl FnOnce()) {
    let (first, other) = (Place::new(), Place::new());
    let (url, address) = (first.url.clone(), other.url.clone());
    let name = address.clone();
    let other = other.start(move |node| {
        node.say(&keeping(None));
        node.let_in(1);
        at_other(node);
    });
    let first = first.start(move |node| {
        node.say(&keeping(None));
        node.let_in(1);
        redirect(node, &[&address], "seat");
        at_first(node);
    });
    let client = connecting_with(&url, &[&[(PfOption::BackoffFirstMs, 0)], set].concat());
    next(client, PfEventKind::Connected);
    let rooms = [(); 2].map(|()| joins(client));
    let join = || {
        first.join().expect("a node that heard what it expects");
        other.join().expect("a node that heard what it expects");
    };
    (client, rooms, name, join)
}

#[test]
fn a_lost_connection_to_another_node_is_restored() {
    let (client, [_, there], name, join) = in_two_rooms(
        &[],
        |_| {},
        |node| {
            node.again();
            // The joins and the schema that it has sent were heard before.
            node.say(&keeping(Some(server::Resumed { received: 2, lost: Vec::new() })));
            assert!(node.hear().starts_with("Send"));
            node.say(&event(1, 1, "again"));
        },
    );
    let lost = next(client, PfEventKind::Lost);
    assert_eq!(read(lost.name), name);
    assert!(read(lost.text).starts_with(&name), "{}", read(lost.text));
    send(there);
    let resumed = next(client, PfEventKind::Resumed);
    assert_eq!(read(resumed.name), name);
    assert_eq!(next(client, PfEventKind::Event).room, there);
    let mut statistics = PfStatistics::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_client_statistics(client, &raw mut statistics) }, PfCode::Ok);
    assert!(statistics.is_connected && statistics.reconnects == 1, "{statistics:?}");
    free(client);
    join();
}

#[test]
fn a_new_session_at_another_node_ends_its_rooms_only() {
    let (client, [here, there], name, join) = in_two_rooms(
        &[],
        |node| assert!(node.hear().starts_with("Send")),
        |node| {
            node.again();
            node.say(&keeping(None));
        },
    );
    next(client, PfEventKind::Lost);
    assert_eq!(exactly(client, PfEventKind::Left).room, there);
    assert_eq!(read(exactly(client, PfEventKind::NewSession).name), name);
    // SAFETY: the texts outlive the call.
    let sent = unsafe { pf_room_send(there, text("Go"), text("1")) };
    assert_eq!(sent, PfCode::Left);
    send(here);
    free(client);
    join();
}

#[test]
fn the_end_of_another_node_is_not_that_of_the_client() {
    let (client, [here, there], name, join) =
        in_two_rooms(&[], |node| assert!(node.hear().starts_with("Send")), Node::bye);
    let left = exactly(client, PfEventKind::Left);
    assert_eq!((left.room, &*read(left.reason)), (there, "kicked"));
    let over = exactly(client, PfEventKind::NewSession);
    assert_eq!((read(over.name), read(over.reason)), (name, "kicked".into()));
    send(here);
    free(client);
    join();
}

/// A request that was made while the connection was being closed had no answer.
#[test]
fn a_request_to_a_room_of_a_node_that_has_ended_is_answered() {
    let (client, [_, there], _, join) = in_two_rooms(
        &[],
        |_| {},
        |node| {
            // The node does not hang up.
            let (code, text) = (ErrorCode::Kicked, "enough".into());
            node.say(&ServerMessage::Goodbye(server::Goodbye { code, text }));
        },
    );
    assert_eq!(exactly(client, PfEventKind::Left).room, there);
    let mut request = 0;
    // SAFETY: the texts outlive the call, and the request is a place.
    let asked = unsafe { pf_room_request(there, text("Ask"), text("1"), &raw mut request) };
    assert_eq!(asked, PfCode::Ok);
    let reply = next(client, PfEventKind::Reply);
    assert_eq!((reply.request, reply.code), (request, PfCode::Closed));
    free(client);
    join();
}

#[test]
fn the_connection_to_another_node_is_closed_when_nothing_is_left_there() {
    let (is_told, told) = sync_channel(1);
    let (client, [_, there], _, join) = in_two_rooms(
        &[(PfOption::NodeIdleMs, 0)],
        |_| {},
        move |node| {
            assert!(node.hear().starts_with("Leave"));
            node.say(&ServerMessage::Left(server::Left {
                request: None,
                room: RoomNumber(1),
                code: ErrorCode::Left,
                text: "".into(),
            }));
            assert!(node.hear().starts_with("Goodbye"));
            is_told.send(()).expect("the test waits");
        },
    );
    assert_eq!(pf_room_free(there), PfCode::Ok);
    // The library's thread serves the connections meanwhile.
    told.recv().expect("the node runs");
    let mut event = PfEvent::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_client_next(client, 0, &raw mut event) }, PfCode::Ok);
    assert_eq!(event.kind, PfEventKind::None, "the client stays");
    free(client);
    join();
}

#[test]
fn joins_to_one_node_share_a_connection() {
    let (first, other) = (Place::new(), Place::new());
    let (url, address) = (first.url.clone(), other.url.clone());
    let other = other.start(|node| {
        let ServerMessage::Welcome(welcome) = welcome() else { unreachable!() };
        let addresses = vec!["tcp://other.test:1".into()];
        node.prepare(&ServerMessage::Welcome(server::Welcome { addresses, ..welcome }));
        // In the order in which the program has asked.
        for (number, seat) in [(1, "\"1\""), (2, "\"2\"")] {
            let heard = node.hear();
            assert!(heard.contains(seat), "{heard}");
            node.prepare(&joined(request_of(&heard), number));
        }
        node.show(1);
        node.show(2);
        node.grant(3);
        node.show(3);
    });
    let first = first.start(move |node| {
        node.welcome();
        redirect(node, &[&address], "1");
        redirect(node, &[&address], "2");
        // The node has said that this is its address.
        redirect(node, &["tcp://other.test:1"], "3");
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    join(client);
    join(client);
    let rooms = [(); 2].map(|()| next(client, PfEventKind::Joined).room);
    let third = joins(client);
    assert!(third != rooms[0] && rooms[0] != rooms[1], "{rooms:?}");
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

/// Requests that waited for a lost connection had no answer if the client was closed.
#[test]
fn requests_that_wait_are_answered_when_a_client_is_closed() {
    let (url, node) = Node::start(|node| {
        node.say(&keeping(None));
        node.again();
    });
    let client = connecting_with(&url, &[(PfOption::BackoffFirstMs, 0)]);
    next(client, PfEventKind::Connected);
    next(client, PfEventKind::Lost);
    join(client);
    assert_eq!(pf_client_close(client), PfCode::Ok);
    assert_eq!(next(client, PfEventKind::Joined).code, PfCode::Closed);
    next(client, PfEventKind::Ended);
    free(client);
    node.join().expect("a node that heard what it expects");
}

#[test]
fn a_session_goes_on_where_redirects_lead() {
    let (first, moved) = (Place::new(), Place::new());
    let (url, address, own) = (first.url.clone(), moved.url.clone(), moved.url.clone());
    let moved = moved.start(move |node| {
        let resumed = || {
            let resumed = Some(server::Resumed { received: 0, lost: Vec::new() });
            let ServerMessage::Welcome(welcome) = keeping(resumed) else { unreachable!() };
            let addresses = vec![own.clone().into()];
            ServerMessage::Welcome(server::Welcome { addresses, ..welcome })
        };
        node.say(&resumed());
        // The next attempt is at the address that the node has told.
        node.again();
        node.say(&resumed());
    });
    let first = first.start(move |node| {
        node.say(&keeping(None));
        node.again();
        node.say(&ServerMessage::Redirect(server::Redirect {
            request: RequestNumber(0),
            addresses: vec![address.into()],
            reservation: "".into(),
        }));
        node.bye();
    });
    let client = connecting_with(&url, &[(PfOption::BackoffFirstMs, 0)]);
    next(client, PfEventKind::Connected);
    for _ in 0..2 {
        next(client, PfEventKind::Lost);
        assert_eq!(read(next(client, PfEventKind::Resumed).name), "");
    }
    free(client);
    first.join().expect("a node that heard what it expects");
    moved.join().expect("a node that heard what it expects");
}

#[test]
fn closing_a_client_closes_all_its_connections() {
    let (client, rooms, _, join) = in_two_rooms(
        &[],
        |node| assert!(node.hear().starts_with("Goodbye")),
        |node| {
            // What was sent before is delivered.
            assert!(node.hear().starts_with("Send"));
            assert!(node.hear().starts_with("Goodbye"));
        },
    );
    send(rooms[1]);
    assert_eq!(pf_client_close(client), PfCode::Ok);
    let left = [(); 2].map(|()| exactly(client, PfEventKind::Left).room);
    assert!(rooms.iter().all(|room| left.contains(room)), "{left:?}");
    assert_eq!(exactly(client, PfEventKind::Ended).code, PfCode::Closed);
    free(client);
    join();
}

#[test]
fn the_end_of_the_first_connection_ends_the_others() {
    let (client, rooms, _, join) = in_two_rooms(
        &[],
        |node| {
            assert!(node.hear().starts_with("Send"));
            node.bye();
        },
        |node| assert!(node.hear().starts_with("Goodbye")),
    );
    send(rooms[0]);
    let left = [(); 2].map(|()| exactly(client, PfEventKind::Left).room);
    assert_eq!(left, rooms);
    assert_eq!(read(exactly(client, PfEventKind::Ended).reason), "kicked");
    // SAFETY: the texts outlive the call.
    let sent = unsafe { pf_room_send(rooms[1], text("Go"), text("1")) };
    assert_eq!(sent, PfCode::Closed);
    free(client);
    join();
}

#[test]
fn a_client_that_is_freed_says_goodbye_to_all_nodes() {
    let goodbye = |node: &mut Node| assert!(node.hear().starts_with("Goodbye"));
    let (client, _, _, join) = in_two_rooms(&[], goodbye, goodbye);
    free(client);
    join();
}

#[test]
fn another_node_asks_for_a_token_of_its_own() {
    let (first, other) = (Place::new(), Place::new());
    let (url, address) = (first.url.clone(), other.url.clone());
    let name = address.clone();
    let other = other.start(|node| {
        node.welcome();
        node.let_in(1);
    });
    let first = first.start(move |node| {
        node.welcome();
        redirect(node, &[&address], "seat");
    });
    let client = connecting(&url, &[(PfOption::TokenWanted, 1)]);
    let give = |of: &str| {
        let wanted = next(client, PfEventKind::TokenWanted);
        assert_eq!(read(wanted.name), of);
        // SAFETY: the text outlives the call.
        let given = unsafe { pf_client_give_token(client, wanted.request, text("token")) };
        assert_eq!(given, PfCode::Ok);
    };
    give("");
    next(client, PfEventKind::Connected);
    join(client);
    give(&name);
    assert_eq!(next(client, PfEventKind::Joined).code, PfCode::Ok);
    free(client);
    first.join().expect("a node that heard what it expects");
    other.join().expect("a node that heard what it expects");
}

/// The pings of other nodes must have answers, also while the program does not poll.
#[test]
fn the_library_serves_connections_to_other_nodes() {
    let (is_answered, answered) = sync_channel(1);
    let (client, _, _, join) = in_two_rooms(
        &[],
        |_| {},
        move |node| {
            node.say(&ServerMessage::Ping(server::Ping { nonce: 9 }));
            assert!(node.hear().starts_with("Pong"));
            is_answered.send(()).expect("the test waits");
        },
    );
    answered.recv().expect("the node runs");
    free(client);
    join();
}
