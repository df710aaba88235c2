//! Typed rooms, against a node over a real socket.
use std::convert::Infallible;
use std::time::Duration;

use playfield_client::{Connect, Connection, Error, ErrorCode, Room as RoomHandle};
use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, room, schema};
use playfield_state::{Data, Map, State, Tracker, Tracking};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{Field, Policy, RoomSchema, Type, fingerprint};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use crate::server::Server;
use crate::support::{joined_as, other};

#[derive(State, Default)]
struct Table {
    round: u32,
    seats: Map<PlayerId, String>,
}

#[derive(Data, Default)]
struct Setup {
    seats: u8,
}

/// Draws a card.
#[derive(Message)]
#[reply(u32)]
struct Draw {
    from: u8,
}

#[derive(Message)]
struct Nudge;

#[derive(Message, Debug, PartialEq)]
struct Dealt {
    cards: u32,
}

#[derive(Message, Debug, PartialEq)]
struct Shuffled;

#[room(messages(Nudge, Draw), events(Shuffled, Dealt))]
impl Room for Table {
    type Options = Setup;

    fn create(_: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self::default())
    }
}

impl Handle<Draw> for Table {
    fn handle(&mut self, draw: Draw, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        Ok(draw.from.into())
    }
}

impl Handle<Nudge> for Table {
    fn handle(&mut self, _: Nudge, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

/// Creating the first room with options asks for the schema.
async fn tell_schema(server: &mut Server) {
    assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
    let text = schema::<Table>().to_json();
    server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
}

async fn enter(
    connection: &Connection,
    server: &mut Server,
    tracker: &mut Tracker<Table>,
) -> RoomHandle<Table> {
    let node = async {
        tell_schema(server).await;
        let expected =
            r#"JoinOrCreate { request: 1, room_type: "table", key: None, options: [4] }"#;
        assert_eq!(server.hear().await, other(expected));
        server.say(&joined_as(RequestNumber(1), fingerprint(&schema::<Table>()))).await;
        let mut body = Vec::new();
        tracker.snapshot(PlayerId(4), Format::Packed, &mut body);
        server.snapshot(1, &body).await;
    };
    let setup = Setup { seats: 4 };
    tokio::join!(connection.join_or_create("table", &setup), node).0.unwrap()
}

#[tokio::test]
async fn states_replies_and_events_are_typed() {
    let (connection, mut server) = Server::welcomed_as(true, |connect| connect).await;
    let mut state = Table { round: 1, ..Table::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let table = enter(&connection, &mut server, &mut tracker).await;
    assert_eq!(table.state().round, 1);

    let node = async {
        let expected = "Request { room: 1, request: 3, message: Index(1), payload: [3] }";
        assert_eq!(server.hear().await, other(expected));
        state.seats.insert(PlayerId(4), "Ann".to_owned());
        tracker.sync(&mut state);
        let mut body = Vec::new();
        assert!(tracker.patch(PlayerId(4), 1, Format::Packed, &mut body));
        server.patch(1, 2, &body).await;
        let message = MessageRef::Index(1);
        server
            .say(&ServerMessage::Event(server::Event {
                room: RoomNumber(1),
                sequence: 1,
                version: 2,
                message,
                payload: (&[9]).into(),
            }))
            .await;
        server
            .say(&ServerMessage::Reply(server::Reply {
                request: RequestNumber(3),
                payload: (&[17]).into(),
            }))
            .await;
    };
    let (card, ()) = tokio::join!(table.request(Draw { from: 3 }), node);
    assert_eq!(card.unwrap(), 17);
    assert_eq!(table.state().seats.get(&table.player()).map(String::as_str), Some("Ann"));
    let event = table.next_event().await.unwrap();
    assert_eq!(event.decode::<Shuffled>().unwrap(), None);
    assert_eq!(event.decode().unwrap(), Some(Dealt { cards: 9 }));

    table.send(Nudge).await.unwrap();
    assert_eq!(server.hear().await, other("Send { room: 1, message: Index(0), payload: [0] }"));
}

/// A patch is damaged but readable. The next digest shows it, and a snapshot replaces the copy.
#[tokio::test]
async fn a_wrong_copy_is_detected_and_replaced() {
    let (connection, mut server) = Server::welcomed_as(true, |connect| connect).await;
    let mut state = Table { round: 1, ..Table::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let me = PlayerId(4);
    let table = enter(&connection, &mut server, &mut tracker).await;
    let check = |tracker: &mut Tracker<Table>| {
        ServerMessage::Check(server::Check {
            room: RoomNumber(1),
            version: tracker.version(),
            digest: tracker.digest(me, Format::Packed),
        })
    };
    // The digest is right, so nothing is asked for.
    server.say(&check(&mut tracker)).await;

    state.round = 7;
    tracker.sync(&mut state);
    let mut body = Vec::new();
    assert!(tracker.patch(me, 1, Format::Packed, &mut body));
    *body.last_mut().unwrap() ^= 1;
    server.patch(1, 2, &body).await;
    table.changed().await.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 6));
    // A digest of another version is ignored.
    server.check(1, 0).await;
    server.say(&check(&mut tracker)).await;
    assert_eq!(server.hear().await, other("Resync { room: 1 }"));

    body.clear();
    tracker.snapshot(me, Format::Packed, &mut body);
    server.snapshot(2, &body).await;
    table.changed().await.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 7));
    server.say(&check(&mut tracker)).await;
    table.send(Nudge).await.unwrap();
    assert_eq!(server.hear().await, other("Send { room: 1, message: Index(0), payload: [0] }"));
}

#[tokio::test]
async fn a_reply_of_another_type_is_an_error() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let mut tracker = Tracker::new(&mut Table::default(), Tracking::On);
    let table = enter(&connection, &mut server, &mut tracker).await;
    let node = async {
        server.hear().await;
        server
            .say(&ServerMessage::Reply(server::Reply {
                request: RequestNumber(3),
                payload: b"\x01\x02".into(),
            }))
            .await;
    };
    let (card, ()) = tokio::join!(table.request(Draw { from: 3 }), node);
    let error = card.unwrap_err();
    assert!(error.to_string().starts_with("the reply can't be read as its type"), "{error}");
    assert!(!error.is_refused() && !error.is_closed());
}

#[tokio::test]
async fn a_room_of_another_build_is_not_entered() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let mut other_build = schema::<Table>();
    let Type::Struct(state) = &mut other_build.state else { unreachable!("the state is a struct") };
    state.fields[0].of = Type::I64;
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), fingerprint(&other_build))).await;
        server.snapshot(1, b"?").await;
        server.patch(1, 2, b"?").await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        let text = other_build.to_json();
        server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let error = table.unwrap_err();
    assert!(error.is_incompatible());
    assert_eq!(error.code(), Some(ErrorCode::SchemaMismatch));
    let text = "state.round: the node has i64, this client was built with u32: rebuild the client";
    assert_eq!(error.to_string(), text);
    // Now the schema is known, and no room is created.
    let error = connection.create::<Table>("table", true, &Setup::default()).await.unwrap_err();
    assert_eq!(error.to_string(), text);
}

/// A later version of the room.
mod grown {
    use super::{Map, PlayerId, State};

    #[derive(State, Default)]
    pub(crate) struct Table {
        pub(crate) seats: Map<PlayerId, String>,
        pub(crate) fog: bool,
        pub(crate) round: u32,
    }
}

fn grown_schema() -> RoomSchema {
    let mut grown = schema::<Table>();
    grown.state = <grown::Table as State>::schema();
    grown.events.reverse();
    grown
}

#[tokio::test]
async fn updates_and_events_wait_for_the_schema() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let text = grown_schema().to_json();
    let mut state = grown::Table { round: 1, ..Default::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut snapshot = Vec::new();
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    let mut patch = |round| {
        (state.round, state.fog) = (round, !state.fog);
        tracker.sync(&mut state);
        let mut body = Vec::new();
        assert!(tracker.patch(PlayerId(4), u64::from(round) - 1, Format::Packed, &mut body));
        body
    };
    let bodies = [patch(2), patch(3)];
    let digest = tracker.digest(PlayerId(4), Format::Packed);
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), fingerprint(&grown_schema()))).await;
        server.snapshot(1, &snapshot).await;
        server.patch(1, 2, &bodies[0]).await;
        let message = MessageRef::Index(0);
        server
            .say(&ServerMessage::Event(server::Event {
                room: RoomNumber(1),
                sequence: 1,
                version: 2,
                message,
                payload: (&[9]).into(),
            }))
            .await;
        // A check says nothing about a copy that waits for its schema.
        server.check(2, 7).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let table = table.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 2));
    assert_eq!(table.next_event().await.unwrap().decode().unwrap(), Some(Dealt { cards: 9 }));
    server.patch(2, 3, &bodies[1]).await;
    while table.version() < 3 {
        table.changed().await.unwrap();
    }
    assert_eq!(table.state().round, 3);
    server.check(3, digest).await;
    table.send(Nudge).await.unwrap();
    assert_eq!(server.hear().await, other("Send { room: 1, message: Index(0), payload: [0] }"));
    // The copy of an older build has the node's digest.
    server.check(3, digest ^ 1).await;
    assert_eq!(server.hear().await, other("Resync { room: 1 }"));
}

/// The node sends a schema unasked if the fingerprint in the hello differs. Then the client need
/// not ask, and sends options in the node's form.
#[tokio::test]
async fn a_schema_that_came_unasked_is_used() {
    let named = |connect: Connect| connect.built_with::<Table>("table");
    let (connection, mut server) = Server::welcomed_as(false, named).await;
    let mut grown = grown_schema();
    let Type::Struct(options) = &mut grown.options else { unreachable!("options are a struct") };
    let of = Type::List(Box::new(Type::U8));
    options.fields.insert(
        0,
        Field { name: "decks".into(), policy: Policy::Everyone, default_digest: None, of },
    );
    let text = grown.to_json();
    for (name, text) in [("table", text.as_bytes()), ("chair", b"?")] {
        server
            .say(&ServerMessage::Schema(server::Schema {
                request: None,
                room_type: name.into(),
                schema: text.into(),
            }))
            .await;
    }
    for received in 1..=2 {
        assert_eq!(server.hear().await, other(&format!("Ack {{ received: {received} }}")));
    }
    let node = async {
        let expected = r#"Create { request: 1, room_type: "table", private: false, code: false, key: None, options: [0, 4] }"#;
        assert_eq!(server.hear().await, other(expected));
        server.error(Some(RequestNumber(1)), ErrorCode::Busy, "").await;
    };
    let setup = Setup { seats: 4 };
    let (table, ()) = tokio::join!(connection.create::<Table>("table", false, &setup), node);
    assert_eq!(table.unwrap_err().code(), Some(ErrorCode::Busy));
}

/// Also if the schema comes before the snapshot.
#[tokio::test]
async fn a_room_is_entered_with_its_snapshot() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let text = grown_schema().to_json();
    let mut state = grown::Table { round: 5, ..Default::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut snapshot = Vec::new();
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), fingerprint(&grown_schema()))).await;
        server.hear().await;
        server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
        server.snapshot(1, &snapshot).await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    assert_eq!(table.unwrap().state().round, 5);
}

/// A snapshot that can't be read is, as when nothing waits, asked for again. The core does not
/// count the one that waited, so the room is left after two more.
#[tokio::test]
async fn an_unreadable_snapshot_that_waited_is_asked_for_again() {
    for (is_readable, is_typed) in [(true, true), (false, true), (true, false), (false, false)] {
        let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
        let text = grown_schema().to_json();
        let mut state = grown::Table { round: 5, ..Default::default() };
        let mut tracker = Tracker::new(&mut state, Tracking::On);
        let mut snapshot = Vec::new();
        tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
        let body = if is_readable { &snapshot[..] } else { b"?" };
        let node = async {
            server.hear().await;
            server.say(&joined_as(RequestNumber(1), fingerprint(&grown_schema()))).await;
            server.snapshot(1, b"?").await;
            server.patch(1, 2, b"?").await;
            server.hear().await;
            server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
            assert_eq!(server.hear().await, other("Resync { room: 1 }"));
            // This was sent before the node read the resync.
            server.patch(2, 3, b"?").await;
            server.snapshot(3, body).await;
            if !is_readable {
                assert_eq!(server.hear().await, other("Resync { room: 1 }"));
                server.snapshot(3, body).await;
                assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
            }
        };
        let client = async {
            if is_typed {
                let table = connection.join::<Table>("r").await?;
                Ok((table.version(), u64::from(table.state().round)))
            } else {
                let table = connection.join_dynamic("r").await?;
                Ok((table.version(), table.state()["round"].as_u64().unwrap()))
            }
        };
        let (entered, ()): (std::result::Result<_, Error>, _) = tokio::join!(client, node);
        match entered {
            Ok(entered) => assert_eq!((is_readable, entered), (true, (3, 5))),
            Err(error) => {
                assert!(
                    !is_readable && error.to_string().starts_with("the room's state "),
                    "{error}"
                );
            }
        }
    }
}

/// Past the limit, the client drops the patches and asks for a snapshot.
#[tokio::test]
async fn the_updates_that_wait_for_the_schema_are_bounded() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let text = grown_schema().to_json();
    let mut tracker = Tracker::new(&mut grown::Table::default(), Tracking::On);
    let mut snapshot = Vec::new();
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    let large = vec![0; 1 << 20];
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), fingerprint(&grown_schema()))).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        server.snapshot(1, &snapshot).await;
        server.patch(1, 2, &large).await;
        assert_eq!(server.hear().await, other("Resync { room: 1 }"));
        server.snapshot(9, &snapshot).await;
        server.schema(Some(RequestNumber(2)), text.as_bytes()).await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let table = table.unwrap();
    assert_eq!(table.version(), 9);
}

#[tokio::test]
async fn without_the_schema_entering_fails() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), 1)).await;
        server.hear().await;
        server.error(Some(RequestNumber(2)), ErrorCode::Refused, "it is a secret").await;
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    assert_eq!(table.unwrap_err().code(), Some(ErrorCode::Refused));

    let setup = Setup::default();
    let node = async {
        assert_eq!(server.hear().await, other(r#"Schema { request: 5, room_type: "table" }"#));
        server
            .say(&ServerMessage::Schema(server::Schema {
                request: Some(RequestNumber(5)),
                room_type: "x".into(),
                schema: b"{}".into(),
            }))
            .await;
    };
    let (table, ()) = tokio::join!(connection.create::<Table>("table", true, &setup), node);
    let error = table.unwrap_err();
    assert_eq!(error.to_string(), "the node's schema can't be read");
}

/// The error says what was waited for, and the client leaves the room.
#[tokio::test]
async fn a_join_does_not_wait_forever_for_a_schema() {
    let soon = |connect: Connect| connect.timeout(Duration::from_secs(1));
    let (connection, mut server) = Server::welcomed_as(false, soon).await;
    let text = "the node did not send the schema of the room type \"table\" \
                within 1s; try again, or set a longer timeout";
    let node = async {
        server.hear().await;
        server.say(&joined_as(RequestNumber(1), 1)).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let error = table.unwrap_err();
    assert!(error.is_timed_out() && !error.is_closed());
    assert_eq!(error.to_string(), text);

    // The same applies if the options need the schema. A late answer is ignored.
    let setup = Setup::default();
    let error = connection.create::<Table>("table", true, &setup).await.unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(server.hear().await, other(r#"Schema { request: 5, room_type: "table" }"#));
    let late = schema::<Table>().to_json();
    server.schema(Some(RequestNumber(5)), late.as_bytes()).await;
    tokio::join!(connection.ping(), server.pong()).0.unwrap();
}

/// The node says when to try again, and the client does.
#[tokio::test]
async fn a_schema_request_that_was_too_frequent_is_repeated() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let node = async {
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        server.refuse_for(RequestNumber(2), 0).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 3, room_type: "table" }"#));
        // This is longer than the time limit, so the request fails.
        server.refuse_for(RequestNumber(3), 3_600_000).await;
    };
    let setup = Setup::default();
    let (table, ()) = tokio::join!(connection.create::<Table>("table", true, &setup), node);
    let error = table.unwrap_err();
    assert_eq!((error.code(), error.text()), (Some(ErrorCode::Limit), "too many"));
}

#[test]
fn futures_can_be_sent_between_threads() {
    fn is_send<T: Send>(_: T) -> Option<Infallible> {
        None
    }
    fn futures(connection: &Connection, table: &RoomHandle<Table>) {
        is_send(connection.join::<Table>("r"));
        is_send(connection.ping());
        is_send(table.request(Nudge));
        is_send(table.send(Nudge));
        is_send(table.changed());
        is_send(table.next_event());
    }
    fn errors(error: Error) -> impl std::error::Error + Send + Sync + 'static {
        error
    }
    let _ = (futures, errors);
}
