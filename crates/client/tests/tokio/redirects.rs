//! Joins and sessions that are redirected to other nodes, against scripted nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playfield_client::{Connect, Connection, ConnectionEvent, Error, ErrorCode, Room, connect};
use playfield_wire::RequestNumber;
use playfield_wire::server::{self, Resumed, ServerMessage};
use tokio::net::TcpListener;

use crate::server::{Counted, Server, counted, joined};
use crate::support::{Said, kept};

/// The place of a node.
struct Place {
    listener: TcpListener,
    url: String,
}

impl Place {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        Self { listener, url }
    }

    /// The next client, which the node welcomes.
    async fn welcomes(&self) -> Server {
        self.welcomes_as(&[&self.url]).await
    }

    async fn welcomes_as(&self, addresses: &[&str]) -> Server {
        let (mut server, hello) = Server::accept(&self.listener).await;
        assert_eq!(hello, Said::Hello { name: "Ann".to_owned() });
        assert!(server.redirects());
        server.say(&welcome(addresses, None)).await;
        server
    }
}

fn welcome(addresses: &[&str], resumed: Option<Resumed>) -> ServerMessage<'static> {
    let mut message = kept(b"t1", resumed);
    if let ServerMessage::Welcome(welcome) = &mut message {
        welcome.addresses = addresses.iter().map(|address| (*address).to_owned().into()).collect();
    }
    message
}

/// The client's next message that is neither a ping nor an acknowledgement.
async fn hears(server: &mut Server) -> String {
    loop {
        let Said::Other(said) = server.hear().await else { panic!("a second hello") };
        if !said.starts_with("Ping") && !said.starts_with("Ack") {
            return said;
        }
    }
}

async fn hears_join(server: &mut Server, request: u32, room: &str) {
    let expected = format!("Join {{ request: {request}, room: {room:?} }}");
    assert_eq!(hears(server).await, expected);
}

async fn redirects(server: &mut Server, request: u32, address: &str, reservation: &str) {
    let (request, addresses) = (RequestNumber(request), vec![address.to_owned().into()]);
    let reservation = reservation.to_owned().into();
    let redirect = server::Redirect { request, addresses, reservation };
    server.say(&ServerMessage::Redirect(redirect)).await;
}

async fn admits(server: &mut Server, request: u32) {
    server.say(&joined(RequestNumber(request))).await;
    server.snapshot(5, &counted(1)).await;
}

/// A client that is connected to the first of two nodes.
async fn connected(set: impl FnOnce(Connect) -> Connect) -> (Connection, Server, [Place; 2]) {
    let places = [Place::new().await, Place::new().await];
    let (first, most) = (Duration::from_millis(1), Duration::from_millis(5));
    let connecting = set(connect(&places[0].url).name("Ann").backoff(first, most));
    let (connection, server) = tokio::join!(connecting, places[0].welcomes());
    (connection.unwrap(), server, places)
}

/// A client that is in a room at the second of two nodes.
async fn elsewhere(
    set: impl FnOnce(Connect) -> Connect,
) -> (Connection, Room<Counted>, [Server; 2], [Place; 2]) {
    let (connection, mut first, places) = connected(set).await;
    let nodes = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &places[1].url, "r.s").await;
        let mut second = places[1].welcomes().await;
        hears_join(&mut second, 1, "r.s").await;
        admits(&mut second, 1).await;
        second
    };
    let (room, second) = tokio::join!(connection.join::<Counted>("r"), nodes);
    (connection, room.unwrap(), [first, second], places)
}

fn unreachable(error: &Error, address: &str) {
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(error.code(), Some(ErrorCode::Unreachable));
    assert!(error.to_string().contains(address), "{error}");
}

#[tokio::test]
async fn a_room_at_another_node_is_like_any_other() {
    let (connection, room, [mut first, mut second], _places) = elsewhere(|connect| connect).await;
    assert_eq!((room.id(), room.state().n), ("r", 1));
    second.patch(5, 6, &crate::server::counts(2)).await;
    room.changed().await.unwrap();
    assert_eq!(room.state().n, 2);
    let node = async {
        second.pong().await;
        let leave = hears(&mut second).await;
        assert!(leave.starts_with("Leave"), "{leave}");
        let (request, room) = (Some(RequestNumber(2)), playfield_wire::RoomNumber(1));
        let (code, text) = (ErrorCode::Left, "".into());
        second.say(&ServerMessage::Left(server::Left { request, room, code, text })).await;
    };
    let client = async {
        room.connection().ping().await.unwrap();
        room.leave().await.unwrap();
    };
    tokio::join!(client, node);
    // Everything else stays with the first.
    let node = async {
        assert!(hears(&mut first).await.starts_with("List"));
        let listed = server::Listed { request: RequestNumber(2), rooms: vec![] };
        first.say(&ServerMessage::Listed(listed)).await;
    };
    tokio::join!(connection.list(None, &[], 0), node).0.unwrap();
}

#[tokio::test]
async fn joins_share_the_session_at_a_node() {
    let (connection, mut first, places) = connected(|connect| connect).await;
    let nodes = async {
        for request in [1, 2] {
            hears_join(&mut first, request, "r").await;
        }
        for request in [1, 2] {
            redirects(&mut first, request, &places[1].url, &format!("r.{request}")).await;
        }
        let mut second = places[1].welcomes().await;
        let mut joins = [hears(&mut second).await, hears(&mut second).await];
        joins.sort();
        let expected = [1, 2].map(|request| format!("request: {request}"));
        assert!(joins.iter().zip(&expected).all(|(join, part)| join.contains(part)), "{joins:?}");
        for request in [1, 2] {
            let (request, code) = (Some(RequestNumber(request)), ErrorCode::RoomFull);
            second.error(request, code, "no seat").await;
        }
        second
    };
    let joins =
        async { tokio::join!(connection.join::<Counted>("r"), connection.join::<Counted>("r")) };
    let ((one, two), _second) = tokio::join!(joins, nodes);
    for refused in [one, two] {
        let error = refused.unwrap_err();
        assert_eq!((error.code(), error.text()), (Some(ErrorCode::RoomFull), "no seat"));
    }
}

#[tokio::test]
async fn a_session_without_rooms_is_closed_after_a_while() {
    let (connection, room, [mut first, mut second], places) =
        elsewhere(|connect| connect.node_idle(Duration::from_millis(1))).await;
    tokio::join!(room.connection().ping(), second.pong()).0.unwrap();
    drop(room);
    assert!(hears(&mut second).await.starts_with("Leave"));
    let (request, number) = (None, playfield_wire::RoomNumber(1));
    let (code, text) = (ErrorCode::Left, "".into());
    second.say(&ServerMessage::Left(server::Left { request, room: number, code, text })).await;
    assert_eq!(hears(&mut second).await, "Goodbye");
    drop(second);
    // The next join opens another.
    let nodes = async {
        hears_join(&mut first, 2, "r").await;
        redirects(&mut first, 2, &places[1].url, "r.s").await;
        let mut second = places[1].welcomes().await;
        hears_join(&mut second, 1, "r.s").await;
        admits(&mut second, 1).await;
        second
    };
    let (room, _second) = tokio::join!(connection.join::<Counted>("r"), nodes);
    assert_eq!(room.unwrap().state().n, 1);
}

#[tokio::test]
async fn closing_the_first_connection_closes_all() {
    let (connection, room, servers, _places) = elsewhere(|connect| connect).await;
    let nodes = async {
        for mut server in servers {
            assert_eq!(hears(&mut server).await, "Goodbye");
        }
    };
    tokio::join!(connection.close(), nodes);
    assert!(room.changed().await.unwrap_err().is_closed());
}

#[tokio::test]
async fn a_room_keeps_the_first_connection_and_the_last_handle_closes_all() {
    let (connection, room, [mut first, mut second], _places) = elsewhere(|connect| connect).await;
    let mut events = connection.events();
    drop(connection);
    tokio::join!(room.connection().ping(), second.pong()).0.unwrap();
    assert!(!first.has_ended().await);
    drop(room);
    assert_eq!(hears(&mut first).await, "Goodbye");
    drop(first);
    assert!(matches!(events.next().await, Some(ConnectionEvent::Ended { .. })));
    let said = second.hear_all().await;
    assert_eq!(said.last(), Some(&Said::Other("Goodbye".to_owned())), "{said:?}");
}

#[tokio::test]
async fn a_node_that_cannot_be_reached_is_asked_for_three_times_and_named() {
    let (connection, mut first, [_, second]) = connected(|connect| connect).await;
    drop(second.listener);
    let node = async {
        for request in 1..=3 {
            hears_join(&mut first, request, "r").await;
            redirects(&mut first, request, &second.url, "r.s").await;
        }
    };
    let (refused, ()) = tokio::join!(connection.join::<Counted>("r"), node);
    unreachable(&refused.unwrap_err(), &second.url);
}

#[tokio::test]
async fn a_reservation_that_is_over_is_asked_for_again() {
    let (connection, mut first, [_, place]) = connected(|connect| connect).await;
    let nodes = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &place.url, "r.1").await;
        let mut second = place.welcomes().await;
        hears_join(&mut second, 1, "r.1").await;
        second.error(Some(RequestNumber(1)), ErrorCode::BadReservation, "over").await;
        hears_join(&mut first, 2, "r").await;
        redirects(&mut first, 2, &place.url, "r.2").await;
        hears_join(&mut second, 2, "r.2").await;
        second.error(Some(RequestNumber(2)), ErrorCode::RoomNotFound, "gone").await;
        // The room is here meanwhile.
        hears_join(&mut first, 3, "r").await;
        admits(&mut first, 3).await;
    };
    let (room, ()) = tokio::join!(connection.join::<Counted>("r"), nodes);
    assert_eq!(room.unwrap().state().n, 1);
}

#[tokio::test]
async fn without_a_reservation_the_same_is_asked_there() {
    let (connection, mut first, [_, place]) = connected(|connect| connect).await;
    let nodes = async {
        let said = hears(&mut first).await;
        redirects(&mut first, 1, &place.url, "").await;
        let mut second = place.welcomes().await;
        assert_eq!(hears(&mut second).await, said);
        // What the program asked for is not there: that is the answer.
        second.error(Some(RequestNumber(1)), ErrorCode::RoomNotFound, "none").await;
    };
    let (refused, ()) = tokio::join!(connection.join_by_key::<Counted>("table", "k"), nodes);
    assert_eq!(refused.unwrap_err().text(), "none");
}

#[tokio::test]
async fn a_loop_of_redirects_ends_after_three() {
    let (connection, mut first, [_, place]) = connected(|connect| connect).await;
    let nodes = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &place.url, "r.s").await;
        let mut second = place.welcomes().await;
        for request in 1..=3 {
            hears_join(&mut second, request, "r.s").await;
            redirects(&mut second, request, &place.url, "r.s").await;
        }
    };
    let (refused, ()) = tokio::join!(connection.join::<Counted>("r"), nodes);
    unreachable(&refused.unwrap_err(), &place.url);
}

#[tokio::test]
async fn a_redirect_back_to_the_first_node_uses_its_session() {
    let (connection, mut first, places) = connected(|connect| connect).await;
    let nodes = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &places[1].url, "r.s").await;
        let mut second = places[1].welcomes().await;
        hears_join(&mut second, 1, "r.s").await;
        redirects(&mut second, 1, &places[0].url, "r.t").await;
        hears_join(&mut first, 2, "r.t").await;
        admits(&mut first, 2).await;
    };
    let (room, ()) = tokio::join!(connection.join::<Counted>("r"), nodes);
    assert_eq!(room.unwrap().state().n, 1);
}

#[tokio::test]
async fn a_node_that_refuses_the_client_is_the_answer() {
    let (connection, mut first, [_, place]) = connected(|connect| connect).await;
    let nodes = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &place.url, "r.s").await;
        let (mut second, _) = Server::accept(&place.listener).await;
        let (code, text) = (ErrorCode::Unauthorized, "who are you?".into());
        second.say(&ServerMessage::Goodbye(server::Goodbye { code, text })).await;
    };
    let (refused, ()) = tokio::join!(connection.join::<Counted>("r"), nodes);
    let error = refused.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unauthorized), "{error}");
}

#[tokio::test]
async fn a_join_that_is_given_up_on_its_way_leaves_nothing() {
    let (connection, mut first, [_, place]) =
        connected(|connect| connect.node_idle(Duration::ZERO)).await;
    let mut join = Box::pin(connection.join::<Counted>("r"));
    let until_hello = async {
        hears_join(&mut first, 1, "r").await;
        redirects(&mut first, 1, &place.url, "r.s").await;
        Server::accept(&place.listener).await.0
    };
    let mut second = tokio::select! {
        _ = &mut join => panic!("there was no answer"),
        second = until_hello => second,
    };
    drop(join);
    second.say(&welcome(&[&place.url], None)).await;
    assert_eq!(hears(&mut second).await, "Goodbye", "nothing was joined");
}

#[tokio::test]
async fn each_node_gets_the_same_token() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&calls);
    let token = move || {
        let call = counting.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, std::io::Error>(format!("token {call}")) }
    };
    let (_connection, _room, [first, second], _places) =
        elsewhere(|connect| connect.token_by(token)).await;
    assert_eq!((first.token(), second.token()), (&b"token 0"[..], &b"token 1"[..]));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_client_comes_back_to_its_node_and_where_that_sends_it() {
    // The client knows the address of any node; its session is at the second.
    let [any, own, next] = [Place::new().await, Place::new().await, Place::new().await];
    let connecting = connect(&any.url).name("Ann").backoff(Duration::ZERO, Duration::ZERO);
    let addresses = [&*own.url];
    let (connection, server) = tokio::join!(connecting, any.welcomes_as(&addresses));
    let connection = connection.unwrap();
    let mut events = connection.events();
    drop(server);
    let (mut server, hello) = Server::accept(&own.listener).await;
    assert!(matches!(&hello, Said::Resume(token, ..) if token == b"t1"), "{hello:?}");
    redirects(&mut server, 0, &next.url, "").await;
    let (code, text) = (ErrorCode::Elsewhere, "".into());
    server.say(&ServerMessage::Goodbye(server::Goodbye { code, text })).await;
    let (mut server, again) = Server::accept(&next.listener).await;
    assert_eq!(again, hello, "with the same token");
    server.say(&welcome(&[&next.url], Some(Resumed { received: 0, lost: vec![] }))).await;
    assert!(matches!(events.next().await, Some(ConnectionEvent::Lost { .. })));
    assert!(matches!(events.next().await, Some(ConnectionEvent::Resumed { .. })));

    // That node is gone: any other will do.
    drop((server, next.listener));
    let (_server, hello) = Server::accept(&any.listener).await;
    assert!(matches!(hello, Said::Resume(..)), "{hello:?}");
}

#[tokio::test]
async fn a_first_hello_that_is_redirected_says_where_to() {
    let place = Place::new().await;
    let node = async {
        let (mut server, _) = Server::accept(&place.listener).await;
        redirects(&mut server, 0, "tcp://n2:7350", "").await;
        server
    };
    let (refused, _server) = tokio::join!(connect(&place.url), node);
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("tcp://n2:7350"), "{error}");
}
