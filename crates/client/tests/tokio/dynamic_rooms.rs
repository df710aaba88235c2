//! Dynamic rooms, against a node over real sockets.

use crate::support::{Said, joined, joined_as};
use playfield_client::{
    Connection, ConnectionEvent, Dynamic, ErrorCode, Room as RoomHandle, connect,
};
use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, RoomType, room};
use playfield_server::{Config, Running, Server};
use playfield_state::{Bytes, Data, List, Map, State, Tracker, Tracking};
use playfield_wire::schema::{RoomSchema, Type, fingerprint};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};
use serde_json::{Value, json};

#[derive(State, Default)]
struct Table {
    round: u32,
    seats: Map<PlayerId, Seat>,
    last: Option<Card>,
    log: List<String>,
}

#[derive(State, Default)]
struct Seat {
    #[sync(quantize = 0.25)]
    x: f32,
    #[sync(owner)]
    hand: List<Card>,
}

#[derive(State, Data, Clone, Default)]
enum Card {
    #[default]
    Blank,
    Number(u8),
    Pair(i64, u64),
    Face {
        name: String,
        worth: Option<f64>,
    },
}

#[derive(Data, Default)]
struct Setup {
    rounds: u32,
}

#[derive(Message)]
struct Nudge;

/// Plays a card, and returns the hand.
#[derive(Message)]
#[reply(Vec<Card>)]
struct Play {
    card: Card,
    seal: Bytes,
}

#[derive(Message)]
struct Over;

#[derive(Message)]
struct Played {
    by: PlayerId,
    seal: Bytes,
}

#[room(messages(Nudge, Play), events(Over, Played))]
impl Room for Table {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { round: setup.rounds, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let seat = self.seats.get_or_default(player.id());
        seat.x = 1.25;
        seat.hand.push(Card::Number(7));
        Ok(())
    }
}

impl Handle<Nudge> for Table {
    fn handle(&mut self, _: Nudge, _: &Player, context: &mut Context<Self>) -> Result<()> {
        context.emit(&Over);
        Ok(())
    }
}

impl Handle<Play> for Table {
    fn handle(
        &mut self,
        play: Play,
        player: &Player,
        context: &mut Context<Self>,
    ) -> Result<Vec<Card>> {
        self.log.push(player.id().to_string());
        self.last = Some(play.card.clone());
        let hand = &mut self.seats.get_or_default(player.id()).hand;
        hand.push(play.card);
        context.emit(&Played { by: player.id(), seal: play.seal });
        Ok(self.seats.get_or_default(player.id()).hand.iter().cloned().collect())
    }
}

fn node() -> Running {
    let config = Config { listen: "127.0.0.1:0".parse().unwrap(), shards: 1, ..Config::default() };
    Server::new(config).room_type(RoomType::of::<Table>("table")).start().unwrap()
}

async fn connected(node: &Running) -> Connection {
    connect(&format!("tcp://{}", node.local_addr())).name("Ann").await.unwrap()
}

/// Waits until the copy equals this state.
async fn becomes(table: &RoomHandle<Dynamic>, expected: &Value) {
    while *table.state() != *expected {
        table.changed().await.unwrap();
    }
}

#[tokio::test]
async fn a_room_is_the_same_for_all_its_players() {
    let node = node();
    let ann = connected(&node).await;
    let bob = connected(&node).await;
    let one = ann.create_dynamic("table", false, Some(&json!({"rounds": 3}))).await.unwrap();
    let two = bob.join_dynamic(one.id()).await.unwrap();
    assert_eq!((one.player(), two.player()), (PlayerId(1), PlayerId(2)));
    let mut hand = vec![json!({"Number": 7})];
    for card in [
        json!("Blank"),
        json!({"Number": 9}),
        json!({"Pair": [-5, "18446744073709551615"]}),
        json!({"Face": {"name": "king", "worth": 0.1}}),
        json!({"Face": {"name": "knave", "worth": null}}),
    ] {
        let mut log = one.state()["log"].as_array().unwrap().clone();
        hand.push(card.clone());
        for (room, player) in [(&one, "1"), (&two, "2")] {
            let reply = room.request("Play", &json!({"card": card, "seal": "AQI="})).await.unwrap();
            assert_eq!(reply, json!(hand));
            log.push(json!(player));
            for listener in [&one, &two] {
                let event = listener.next_event().await.unwrap();
                assert_eq!(event.name(), "Played");
                assert_eq!(
                    event.value().unwrap(),
                    json!({"by": player.parse::<u64>().unwrap(), "seal": "AQI="})
                );
            }
        }
        let state = |own: &str, other: &str| {
            json!({
                "round": 3,
                "seats": {own: {"x": 1.25, "hand": hand}, other: {"x": 1.25}},
                "last": card,
                "log": log,
            })
        };
        becomes(&one, &state("1", "2")).await;
        becomes(&two, &state("2", "1")).await;
    }
    one.send("Nudge", &Value::Null).await.unwrap();
    let event = two.next_event().await.unwrap();
    assert_eq!((event.name(), event.value().unwrap()), ("Over", Value::Null));
}

/// A second room of the type needs no schema request.
#[tokio::test]
async fn changes_are_reported_by_the_node_s_schema() {
    let node = node();
    let ann = connected(&node).await;
    let first = ann.join_or_create_dynamic("table", None).await.unwrap();
    assert_eq!(first.state()["round"], 0);
    first.leave().await.unwrap();
    let table = ann.create_dynamic("table", true, Some(&json!({"rounds": 8}))).await.unwrap();
    let mut changes = table.changes().await.unwrap();
    table.request("Play", &json!({"card": "Blank", "seal": ""})).await.unwrap();
    let mut told = Vec::new();
    for _ in 0..3 {
        let change = changes.next().await.unwrap();
        told.push((change.path.to_string(), change.old, change.new));
    }
    told.sort_by(|one, two| one.0.cmp(&two.0));
    assert_eq!(
        told,
        [
            ("last".to_owned(), Some(Value::Null), Some(json!("Blank"))),
            ("log.0".to_owned(), None, Some(json!("1"))),
            ("seats.1.hand.1".to_owned(), None, Some(json!("Blank"))),
        ]
    );
}

#[tokio::test]
async fn messages_that_do_not_fit_the_schema_are_not_sent() {
    let node = node();
    let ann = connected(&node).await;
    let bad =
        ann.create_dynamic("table", true, Some(&json!({"rounds": "many"}))).await.unwrap_err();
    assert!(bad.to_string().starts_with("the options"), "{bad}");
    let table = ann.create_dynamic("table", true, None).await.unwrap();
    for (name, message) in
        [("Deal", json!(null)), ("Play", json!({"card": {"Number": 300}, "seal": ""}))]
    {
        let error = table.request(name, &message).await.unwrap_err();
        assert!(error.to_string().starts_with("the message"), "{error}");
        assert!(table.send(name, &message).await.is_err());
    }
    let error = ann.create_dynamic("chair", true, None).await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownRoomType));
    ann.ping().await.unwrap();
}

/// If the node's schema is invalid, or it sends none, the client leaves the room.
#[tokio::test]
async fn a_room_without_a_valid_schema_is_not_entered() {
    for answer in [&b"{"[..], b""] {
        let (connection, mut node) =
            crate::server::Server::welcomed_as(false, |connect| connect).await;
        let meet = async {
            node.hear().await;
            node.say(&joined(RequestNumber(1), RoomNumber(1), 3)).await;
            node.say(&ServerMessage::Snapshot(server::Snapshot {
                room: RoomNumber(1),
                epoch: 3,
                version: 1,
                body: (&[1, 2, 3]).into(),
            }))
            .await;
            let Said::Other(asked) = node.hear().await else { panic!("a question") };
            assert!(asked.starts_with("Schema { request: 2"), "{asked}");
            if answer.is_empty() {
                node.error(Some(RequestNumber(2)), ErrorCode::UnknownRoomType, "no such").await;
            } else {
                node.schema(Some(RequestNumber(2)), answer).await;
            }
            assert_eq!(node.hear().await, Said::Other("Leave { request: 3, room: 1 }".to_owned()));
        };
        let (room, ()) = tokio::join!(connection.join_dynamic("r"), meet);
        assert!(room.is_err());
    }
}

#[derive(State, Default)]
struct Hall {
    round: u32,
    desks: Map<PlayerId, ContextState>,
}

#[derive(State, Default)]
struct ContextState {
    #[sync(owner)]
    lamp: Lamp,
}

#[derive(State)]
struct Lamp {
    level: u8,
}

/// A default that no type implies, and that counts in the digest.
impl Default for Lamp {
    fn default() -> Self {
        Self { level: 3 }
    }
}

/// A patch is damaged but readable. The next digest shows it, and a snapshot replaces the copy.
#[tokio::test]
async fn a_wrong_copy_is_detected_and_replaced() {
    let (connection, mut node) = crate::server::Server::welcomed_as(false, |connect| connect).await;
    let schema =
        RoomSchema { state: Hall::schema(), options: Type::Unit, messages: vec![], events: vec![] };
    let me = PlayerId(4);
    let mut state = Hall { round: 1, ..Hall::default() };
    state.desks.get_or_default(me);
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let mut body = Vec::new();
    tracker.snapshot(me, Format::Packed, &mut body);
    let meet = async {
        node.hear().await;
        node.say(&joined_as(RequestNumber(1), fingerprint(&schema))).await;
        node.snapshot(1, &body).await;
        let asked = node.hear().await;
        assert_eq!(asked, Said::Other(r#"Schema { request: 2, room_type: "table" }"#.to_owned()));
        let text = schema.to_json();
        node.schema(Some(RequestNumber(2)), text.as_bytes()).await;
    };
    let (hall, ()) = tokio::join!(connection.join_dynamic("r"), meet);
    let hall = hall.unwrap();
    assert_eq!(*hall.state(), json!({"round": 1, "desks": {"4": {"lamp": {"level": 3}}}}));
    let check = |tracker: &mut Tracker<Hall>| {
        ServerMessage::Check(server::Check {
            room: RoomNumber(1),
            version: tracker.version(),
            digest: tracker.digest(me, Format::Packed),
        })
    };
    // The digest is right, although the lamp is at its default, so nothing is asked for.
    node.say(&check(&mut tracker)).await;

    state.round = 7;
    tracker.sync(&mut state);
    body.clear();
    assert!(tracker.patch(me, 1, Format::Packed, &mut body));
    *body.last_mut().unwrap() ^= 1;
    node.patch(1, 2, &body).await;
    hall.changed().await.unwrap();
    assert_eq!(hall.state()["round"], 6);
    node.say(&check(&mut tracker)).await;
    assert_eq!(node.hear().await, Said::Other("Resync { room: 1 }".to_owned()));

    body.clear();
    tracker.snapshot(me, Format::Packed, &mut body);
    node.snapshot(2, &body).await;
    hall.changed().await.unwrap();
    assert_eq!(*hall.state(), json!({"round": 7, "desks": {"4": {"lamp": {"level": 3}}}}));
    node.say(&check(&mut tracker)).await;
    drop(hall);
    assert_eq!(node.hear().await, Said::Other("Leave { request: 3, room: 1 }".to_owned()));
}

#[tokio::test]
async fn the_node_confirms_what_came_before_a_goodbye() {
    let node = node();
    for scheme in ["tcp", "ws"] {
        let connection = connect(&format!("{scheme}://{}", node.local_addr())).await.unwrap();
        let room = connection.join_or_create_dynamic("table", None).await.unwrap();
        let mut events = connection.events();
        for _ in 0..5 {
            room.send("Nudge", &Value::Null).await.unwrap();
        }
        connection.close().await;
        let event = events.next().await;
        let Some(ConnectionEvent::Ended { unconfirmed, .. }) = event else { panic!("{event:?}") };
        assert_eq!(unconfirmed, 0);
    }
    node.shutdown();
}
