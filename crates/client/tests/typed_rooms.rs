//! Typed rooms, against a node over a real socket.
#![cfg(feature = "tokio")]

#[path = "support/server.rs"]
mod server;
mod support;

use std::convert::Infallible;
use std::time::Duration;

use playfield_client::{Connect, Connection, Error, ErrorCode, Format, Room as RoomHandle};
use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, room, schema};
use playfield_state::{Data, Map, State, Tracker, Tracking};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{Field, Policy, RoomSchema, Type, fingerprint};
use playfield_wire::server::ServerMessage;

use server::Server;
use support::{Said, joined};

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

fn other(said: &str) -> Said {
    Said::Other(said.to_owned())
}

/// The first room with options that is created asks for the schema, so that they are understood.
async fn tell_schema(server: &mut Server) {
    assert_eq!(server.hear().await, other(r#"Schema { request: 1, room_type: "table" }"#));
    let text = schema::<Table>().to_json();
    let room_type = "table".into();
    server
        .say(&ServerMessage::Schema { request: Some(1), room_type, schema: text.as_bytes() })
        .await;
}

fn joined_as(request: u32, fingerprint: u64) -> ServerMessage<'static> {
    match joined(request, 1, 3) {
        ServerMessage::Joined {
            request,
            room,
            id,
            room_type,
            player,
            epoch,
            tick_hz,
            sync_hz,
            ..
        } => ServerMessage::Joined {
            request,
            room,
            id,
            room_type,
            player,
            epoch,
            tick_hz,
            sync_hz,
            fingerprint,
        },
        _ => unreachable!("a joined"),
    }
}

async fn enter(
    connection: &Connection,
    server: &mut Server,
    tracker: &mut Tracker<Table>,
) -> RoomHandle<Table> {
    let node = async {
        tell_schema(server).await;
        let expected = r#"JoinOrCreate { request: 2, room_type: "table", options: [4] }"#;
        assert_eq!(server.hear().await, other(expected));
        server.say(&joined_as(2, fingerprint(&schema::<Table>()))).await;
        let mut body = Vec::new();
        tracker.snapshot(PlayerId(4), Format::Packed, &mut body);
        server.say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: &body }).await;
    };
    let setup = Setup { seats: 4 };
    tokio::join!(connection.join_or_create("table", &setup), node).0.unwrap()
}

#[tokio::test]
async fn states_replies_and_events_have_their_types() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, true, |connect| connect).await;
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
        server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: &body }).await;
        let message = MessageRef::Index(1);
        server
            .say(&ServerMessage::Event { room: 1, sequence: 1, version: 2, message, payload: &[9] })
            .await;
        server.say(&ServerMessage::Reply { request: 3, payload: &[17] }).await;
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

/// A patch is damaged on its way so that it can still be read. The next digest shows it, and a
/// snapshot mends it.
#[tokio::test]
async fn a_copy_that_went_wrong_is_noticed_and_mended() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, true, |connect| connect).await;
    let mut state = Table { round: 1, ..Table::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let me = PlayerId(4);
    let table = enter(&connection, &mut server, &mut tracker).await;
    let check = |tracker: &mut Tracker<Table>| ServerMessage::Check {
        room: 1,
        version: tracker.version(),
        digest: tracker.digest(me, Format::Packed),
    };
    // All is well, and nothing is asked for.
    server.say(&check(&mut tracker)).await;

    state.round = 7;
    tracker.sync(&mut state);
    let mut body = Vec::new();
    assert!(tracker.patch(me, 1, Format::Packed, &mut body));
    *body.last_mut().unwrap() ^= 1;
    server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: &body }).await;
    table.changed().await.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 6));
    // One that is about another version says nothing.
    server.say(&ServerMessage::Check { room: 1, version: 1, digest: 0 }).await;
    server.say(&check(&mut tracker)).await;
    assert_eq!(server.hear().await, other("Resync { room: 1 }"));

    body.clear();
    tracker.snapshot(me, Format::Packed, &mut body);
    server.say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 2, body: &body }).await;
    table.changed().await.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 7));
    server.say(&check(&mut tracker)).await;
    table.send(Nudge).await.unwrap();
    assert_eq!(server.hear().await, other("Send { room: 1, message: Index(0), payload: [0] }"));
}

#[tokio::test]
async fn a_reply_of_another_type_is_an_error() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let mut tracker = Tracker::new(&mut Table::default(), Tracking::On);
    let table = enter(&connection, &mut server, &mut tracker).await;
    let node = async {
        server.hear().await;
        server.say(&ServerMessage::Reply { request: 3, payload: b"\x01\x02" }).await;
    };
    let (card, ()) = tokio::join!(table.request(Draw { from: 3 }), node);
    let error = card.unwrap_err();
    assert!(error.to_string().starts_with("the reply is not of the type"), "{error}");
    assert!(!error.is_refused() && !error.is_closed());
}

#[tokio::test]
async fn a_room_of_another_build_is_not_entered() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let mut other_build = schema::<Table>();
    let Type::Struct(state) = &mut other_build.state else { unreachable!("the state is a struct") };
    state.fields[0].of = Type::I64;
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, fingerprint(&other_build))).await;
        server.say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: b"?" }).await;
        server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: b"?" }).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        let text = other_build.to_json();
        let room_type = "table".into();
        server
            .say(&ServerMessage::Schema { request: Some(2), room_type, schema: text.as_bytes() })
            .await;
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let error = table.unwrap_err();
    assert!(error.is_incompatible());
    assert_eq!(error.code(), Some(ErrorCode::SchemaMismatch));
    let text = "state.round: the node has i64, this client was built with u32: build it anew";
    assert_eq!(error.to_string(), text);
    // Now that it is known, nothing is created.
    let error = connection.create::<Table>("table", true, &Setup::default()).await.unwrap_err();
    assert_eq!(error.to_string(), text);
}

/// The room as a later node has it.
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

/// What comes before the schema waits for it, and what comes in time is not lost.
#[tokio::test]
async fn what_comes_before_the_schema_waits_for_it() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
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
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, fingerprint(&grown_schema()))).await;
        server
            .say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: &snapshot })
            .await;
        server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: &bodies[0] }).await;
        let message = MessageRef::Index(0);
        server
            .say(&ServerMessage::Event { room: 1, sequence: 1, version: 2, message, payload: &[9] })
            .await;
        // A digest of the node's copy says nothing of this client's.
        server.say(&ServerMessage::Check { room: 1, version: 2, digest: 7 }).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        let room_type = "table".into();
        server
            .say(&ServerMessage::Schema { request: Some(2), room_type, schema: text.as_bytes() })
            .await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let table = table.unwrap();
    assert_eq!((table.version(), table.state().round), (2, 2));
    assert_eq!(table.next_event().await.unwrap().decode().unwrap(), Some(Dealt { cards: 9 }));
    server.say(&ServerMessage::Check { room: 1, version: 2, digest: 7 }).await;
    server.say(&ServerMessage::Patch { room: 1, base: 2, version: 3, body: &bodies[1] }).await;
    while table.version() < 3 {
        table.changed().await.unwrap();
    }
    assert_eq!(table.state().round, 3);
    table.send(Nudge).await.unwrap();
    assert_eq!(server.hear().await, other("Send { room: 1, message: Index(0), payload: [0] }"));
}

/// What the hello names, the node tells unasked if it differs; then nothing has to be asked for,
/// and options are the node's.
#[tokio::test]
async fn a_schema_that_came_unasked_is_remembered() {
    let named = |connect: Connect| connect.built_with::<Table>("table");
    let (connection, mut server) = Server::welcomed_as(Format::Packed, false, named).await;
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
            .say(&ServerMessage::Schema { request: None, room_type: name.into(), schema: text })
            .await;
    }
    // Whoever has heard the answer to a ping has heard what came before it.
    let pong = async {
        let Said::Other(ping) = server.hear().await else { panic!("a ping is no user message") };
        let nonce = ping.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap();
        server.say(&ServerMessage::Pong { nonce }).await;
    };
    tokio::join!(connection.ping(), pong).0.unwrap();
    let node = async {
        let expected =
            r#"Create { request: 1, room_type: "table", private: false, options: [0, 4] }"#;
        assert_eq!(server.hear().await, other(expected));
        let (room, code, text) = (None, ErrorCode::Busy, "".into());
        server
            .say(&ServerMessage::Error { request: Some(1), room, code, text, retry_after_ms: None })
            .await;
    };
    let setup = Setup { seats: 4 };
    let (table, ()) = tokio::join!(connection.create::<Table>("table", false, &setup), node);
    assert_eq!(table.unwrap_err().code(), Some(ErrorCode::Busy));
}

/// A schema that comes before the snapshot does not make the room be entered without one.
#[tokio::test]
async fn a_room_is_entered_with_its_snapshot() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let text = grown_schema().to_json();
    let mut state = grown::Table { round: 5, ..Default::default() };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut snapshot = Vec::new();
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, fingerprint(&grown_schema()))).await;
        server.hear().await;
        let room_type = "table".into();
        server
            .say(&ServerMessage::Schema { request: Some(2), room_type, schema: text.as_bytes() })
            .await;
        server
            .say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: &snapshot })
            .await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    assert_eq!(table.unwrap().state().round, 5);
}

/// As where nothing waits: a snapshot that can't be read is asked for once more, and the room is
/// left after the second.
#[tokio::test]
async fn a_snapshot_that_waited_and_can_not_be_read_is_asked_for_once_more() {
    for is_mended in [true, false] {
        let (connection, mut server) =
            Server::welcomed_as(Format::Packed, false, |connect| connect).await;
        let text = grown_schema().to_json();
        let mut state = grown::Table { round: 5, ..Default::default() };
        let mut tracker = Tracker::new(&mut state, Tracking::On);
        let mut snapshot = Vec::new();
        tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
        let body = if is_mended { &snapshot[..] } else { b"?" };
        let node = async {
            server.hear().await;
            server.say(&joined_as(1, fingerprint(&grown_schema()))).await;
            server
                .say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: b"?" })
                .await;
            server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: b"?" }).await;
            server.hear().await;
            let room_type = "table".into();
            server
                .say(&ServerMessage::Schema {
                    request: Some(2),
                    room_type,
                    schema: text.as_bytes(),
                })
                .await;
            assert_eq!(server.hear().await, other("Resync { room: 1 }"));
            // It crossed the question.
            server.say(&ServerMessage::Patch { room: 1, base: 2, version: 3, body: b"?" }).await;
            server.say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 3, body }).await;
            if !is_mended {
                assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
            }
        };
        let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
        match table {
            Ok(table) => {
                assert_eq!((is_mended, table.version(), table.state().round), (true, 3, 5))
            }
            Err(error) => {
                assert!(
                    !is_mended && error.to_string().starts_with("the room's state "),
                    "{error}"
                );
            }
        }
    }
}

/// More than is kept while the schema is awaited: a snapshot is asked for in place of patches, and
/// events are missed.
#[tokio::test]
async fn what_waits_for_the_schema_is_bounded() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let text = grown_schema().to_json();
    let mut tracker = Tracker::new(&mut grown::Table::default(), Tracking::On);
    let mut snapshot = Vec::new();
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    let large = vec![0; 1 << 20];
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, fingerprint(&grown_schema()))).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        server
            .say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 1, body: &snapshot })
            .await;
        server.say(&ServerMessage::Patch { room: 1, base: 1, version: 2, body: &large }).await;
        assert_eq!(server.hear().await, other("Resync { room: 1 }"));
        let message = MessageRef::Index(0);
        server
            .say(&ServerMessage::Event {
                room: 1,
                sequence: 1,
                version: 2,
                message,
                payload: &large,
            })
            .await;
        server
            .say(&ServerMessage::Snapshot { room: 1, epoch: 3, version: 9, body: &snapshot })
            .await;
        let room_type = "table".into();
        server
            .say(&ServerMessage::Schema { request: Some(2), room_type, schema: text.as_bytes() })
            .await;
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let table = table.unwrap();
    assert_eq!(table.version(), 9);
    assert!(table.next_event().await.unwrap_err().is_missed());
}

/// Whatever the node answers, nobody waits in vain.
#[tokio::test]
async fn a_node_that_tells_no_schema_is_not_waited_for() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, 1)).await;
        server.hear().await;
        let (room, code, text) = (None, ErrorCode::Refused, "it is a secret".into());
        server
            .say(&ServerMessage::Error { request: Some(2), room, code, text, retry_after_ms: None })
            .await;
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    assert_eq!(table.unwrap_err().code(), Some(ErrorCode::Refused));

    let setup = Setup::default();
    let node = async {
        assert_eq!(server.hear().await, other(r#"Schema { request: 4, room_type: "table" }"#));
        server
            .say(&ServerMessage::Schema { request: Some(4), room_type: "x".into(), schema: b"{}" })
            .await;
    };
    let (table, ()) = tokio::join!(connection.create::<Table>("table", true, &setup), node);
    let error = table.unwrap_err();
    assert_eq!(error.to_string(), "the node's schema of the room can't be read");
}

/// A node that is asked and says nothing: whoever waits learns for what, and the room is left
/// again.
#[tokio::test]
async fn a_join_does_not_wait_for_ever_for_a_schema() {
    let soon = |connect: Connect| connect.schema_timeout(Duration::from_millis(30));
    let (connection, mut server) = Server::welcomed_as(Format::Packed, false, soon).await;
    let text = "the node did not tell the schema of the room type \"table\" within 30ms; try again, or wait longer";
    let node = async {
        server.hear().await;
        server.say(&joined_as(1, 1)).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        assert_eq!(server.hear().await, other("Leave { request: 3, room: 1 }"));
    };
    let (table, ()) = tokio::join!(connection.join::<Table>("r"), node);
    let error = table.unwrap_err();
    assert!(error.is_timed_out() && !error.is_closed());
    assert_eq!(error.to_string(), text);

    // So it is where the schema is needed for the options; and an answer that comes too late is
    // nobody's.
    let setup = Setup::default();
    let error = connection.create::<Table>("table", true, &setup).await.unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(server.hear().await, other(r#"Schema { request: 4, room_type: "table" }"#));
    let late = schema::<Table>().to_json();
    let room_type = "table".into();
    server
        .say(&ServerMessage::Schema { request: Some(4), room_type, schema: late.as_bytes() })
        .await;
    let node = async {
        assert_eq!(server.hear().await, other("Ping { nonce: 1 }"));
        server.say(&ServerMessage::Pong { nonce: 1 }).await;
    };
    tokio::join!(connection.ping(), node).0.unwrap();
}

/// Asked too often, the node says when to try again, and the client does.
#[tokio::test]
async fn a_schema_that_was_asked_for_too_often_is_asked_for_again() {
    let (connection, mut server) =
        Server::welcomed_as(Format::Packed, false, |connect| connect).await;
    let node = async {
        assert_eq!(server.hear().await, other(r#"Schema { request: 1, room_type: "table" }"#));
        let (room, code, text) = (None, ErrorCode::Limit, "too many".into());
        let (request, retry_after_ms) = (Some(1), Some(0));
        server.say(&ServerMessage::Error { request, room, code, text, retry_after_ms }).await;
        assert_eq!(server.hear().await, other(r#"Schema { request: 2, room_type: "table" }"#));
        // Longer than it would be waited for: that is an answer.
        let (room, code, text) = (None, ErrorCode::Limit, "too many".into());
        let (request, retry_after_ms) = (Some(2), Some(3_600_000));
        server.say(&ServerMessage::Error { request, room, code, text, retry_after_ms }).await;
    };
    let setup = Setup::default();
    let (table, ()) = tokio::join!(connection.create::<Table>("table", true, &setup), node);
    let error = table.unwrap_err();
    assert_eq!((error.code(), error.text()), (Some(ErrorCode::Limit), "too many"));
}

#[tokio::test]
async fn a_typed_room_needs_packed() {
    let (connection, _server) = Server::welcomed().await;
    let error = connection.create::<Table>("table", true, &Setup::default()).await.unwrap_err();
    assert!(error.to_string().contains("packed"));
}

/// What is awaited can be awaited in any task.
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
