//! Connections between real clients and a real node that are cut at random bytes, under traffic: no
//! event is lost, doubled or reordered, no message is executed twice, and every copy is right.
//!
//! `make cuts` runs it with many more cuts.

mod channels;
mod proxy;
mod short_lives;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playfield_client::{Connection, ConnectionEvent, Dynamic, Room as Entered, connect};
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Running, Server};
use playfield_state::{Map, PlayerId, State};
use proxy::{Cuts, Random};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// A room that checks what it receives: the messages of each player are numbered.
#[derive(State, Default)]
struct Ledger {
    total: u32,
    /// The last number of each player.
    last: Map<PlayerId, Last>,
    /// Messages that were lost, doubled or reordered.
    faults: u32,
}

#[derive(State, Default)]
struct Last {
    number: u32,
    /// The last number, for its player alone.
    #[sync(owner)]
    own: u32,
}

/// A message with an answer.
#[derive(Message)]
#[reply(u32)]
struct Ask {
    number: u32,
}

/// A message without.
#[derive(Message)]
struct Tell {
    number: u32,
}

#[derive(Message)]
struct Done {
    player: PlayerId,
    number: u32,
}

#[room(messages(Ask, Tell), events(Done), sync_hz = 100)]
impl Room for Ledger {
    type Options = ();

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.last.insert(player.id(), Last::default());
        Ok(())
    }
}

impl Ledger {
    fn note(&mut self, number: u32, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let last = self.last.get_mut(&player.id()).ok_or("not in the room")?;
        self.faults += u32::from(number != last.number + 1);
        (last.number, last.own) = (number, number);
        self.total += 1;
        cx.emit(&Done { player: player.id(), number });
        Ok(())
    }
}

impl Handle<Ask> for Ledger {
    fn handle(&mut self, ask: Ask, player: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.note(ask.number, player, cx).map(|()| ask.number)
    }
}

impl Handle<Tell> for Ledger {
    fn handle(&mut self, tell: Tell, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.note(tell.number, player, cx)
    }
}

const KEYS: [&str; 3] = ["a", "b", "c"];

/// The settings of a node with TLS, and without limits that a test would meet.
fn config() -> Config {
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        shards: std::env::var("PLAYFIELD_CUTS_SHARDS").map_or(3, |shards| shards.parse().unwrap()),
        check_every_syncs: 10,
        // A client may lose many connections in a row.
        resume_bytes_max: 64 << 20,
        outbox_bytes_max: 64 << 20,
        messages_per_second_max: 0,
        bytes_per_second_max: 0,
        lists_per_second_max: 1_000_000,
        publishes_per_second_max: 1_000_000,
        subscribes_per_second_max: 1_000_000,
        resyncs_per_second_max: 1_000_000,
        websocket_deflate: true,
        tls_self_signed: true,
        // Connections are cut much faster than anyone loses them.
        resumes_per_minute_max: 1_000_000,
        ..Config::default()
    }
}

/// A node with TLS, and its certificate.
fn start() -> (Running, Vec<u8>) {
    let server = Server::new(config()).room_type(RoomType::of::<Ledger>("ledger"));
    let running = server.start().unwrap();
    let certificate = running.tls_certificate().unwrap();
    (running, certificate)
}

/// One client: all its rooms, until there are no cuts left. Returns how often it was resumed.
async fn play(
    connection: Connection,
    name: String,
    cuts: Arc<Cuts>,
    totals: Arc<[AtomicUsize; 3]>,
    playing: Arc<tokio::sync::Barrier>,
) -> (usize, Vec<Value>) {
    let mut events = connection.events();
    let watch = tokio::spawn(async move {
        let mut resumed = 0;
        while let Some(event) = events.next().await {
            match event {
                ConnectionEvent::Resumed { lost, .. } => {
                    assert!(lost.is_empty(), "{name}: {lost:?}");
                    resumed += 1;
                }
                ConnectionEvent::Lost { .. } | ConnectionEvent::AttemptFailed { .. } => {}
                ConnectionEvent::Ended { error, .. }
                    if error.to_string().contains("this client") => {}
                other => panic!("{name}: {other:?}"),
            }
        }
        resumed
    });
    let rooms = KEYS.map(|key| {
        let (connection, cuts) = (connection.clone(), Arc::clone(&cuts));
        let (totals, playing) = (Arc::clone(&totals), Arc::clone(&playing));
        async move { (key, play_in(connection, key, cuts, totals, playing).await) }
    });
    let mut rooms = JoinSet::from_iter(rooms);
    let mut copies = BTreeMap::new();
    while let Some(room) = rooms.join_next().await {
        copies.extend([room.unwrap()]);
    }
    connection.close().await;
    (watch.await.unwrap(), copies.into_values().collect())
}

async fn play_in(
    connection: Connection,
    key: &str,
    cuts: Arc<Cuts>,
    totals: Arc<[AtomicUsize; 3]>,
    playing: Arc<tokio::sync::Barrier>,
) -> Value {
    let room = connection.join_or_create_by_key_dynamic("ledger", key, None).await.unwrap();
    let total = &totals[KEYS.iter().position(|known| *known == key).unwrap()];
    let mut number = 0;
    let mut heard = Heard::default();
    while cuts.left() > 0 {
        for _ in 0..3 {
            number += 1;
            room.send("Tell", &json!({ "number": number })).await.unwrap();
        }
        number += 1;
        let ask = json!({ "number": number });
        let asked = tokio::join!(room.request("Ask", &ask), heard.until(&room, number)).0;
        assert_eq!(asked.unwrap(), number);
        if number % 100 == 0 {
            assert_eq!(connection.list(Some("ledger"), &[], 0).await.unwrap().len(), KEYS.len());
        }
    }
    total.fetch_add(number, Ordering::SeqCst);
    // All have stopped sending.
    playing.wait().await;
    let expected = json!(total.load(Ordering::SeqCst));
    while room.state()["total"] != expected {
        room.changed().await.unwrap();
    }
    let me = room.player().to_string();
    let mut state = room.state().clone();
    assert_eq!(state["faults"], json!(0));
    let own = &state["last"][&me];
    assert_eq!((&own["number"], &own["own"]), (&json!(number), &json!(number)));
    // What only the owner sees is not in the copies of others.
    for last in state["last"].as_object_mut().unwrap().values_mut() {
        last.as_object_mut().unwrap().remove("own");
    }
    // All have looked.
    playing.wait().await;
    // A last event, after all others: none is missing at the end either.
    number += 1;
    room.request("Ask", &json!({ "number": number })).await.unwrap();
    heard.until(&room, number).await;
    playing.wait().await;
    state
}

/// The events of one room.
#[derive(Default)]
struct Heard {
    sequence: u64,
    /// The last number of each player.
    last: BTreeMap<u64, u64>,
}

impl Heard {
    /// Takes out the events up to this number of this client's own.
    async fn until(&mut self, room: &Entered<Dynamic>, number: usize) {
        let me = room.player().0;
        while self.last.get(&me).is_none_or(|last| *last < number as u64) {
            let event = room.next_event().await.unwrap();
            assert_eq!(event.sequence(), self.sequence + 1);
            self.sequence += 1;
            let done = event.value().unwrap();
            let player = done["player"].as_u64().unwrap();
            let number = done["number"].as_u64().unwrap();
            // Others may have played before this client came.
            if let Some(before) = self.last.insert(player, number) {
                assert_eq!(number, before + 1, "of player {player}");
            } else {
                assert!(player != me || number == 1);
            }
        }
    }
}

/// Fails if there are no cuts for long.
async fn stands_still(cuts: &Cuts) -> ! {
    let mut before = usize::MAX;
    loop {
        tokio::time::sleep(Duration::from_secs(20)).await;
        let left = cuts.left();
        assert!(left < before, "nothing goes on, with {left} cuts left");
        before = left;
    }
}

/// Connects, as often as it takes: before the first welcome there is no session.
async fn connected(url: &str, name: &str, root: &[u8]) -> Connection {
    loop {
        let connection = connect(url)
            .name(name)
            .deflate(true)
            .root_certificate(root)
            .events_max(1 << 20)
            .timeout(Duration::from_secs(5))
            .backoff(Duration::from_millis(1), Duration::from_millis(20));
        match connection.await {
            Ok(connection) => return connection,
            Err(error) => assert!(!error.is_refused(), "{name}: {error}"),
        }
    }
}

/// How many connections to cut, by `PLAYFIELD_CUTS`, and where, by `PLAYFIELD_CUTS_SEED`.
fn cuts_and_random() -> (usize, Random) {
    let count = std::env::var("PLAYFIELD_CUTS").map_or(200, |count| count.parse().unwrap());
    let seed = std::env::var("PLAYFIELD_CUTS_SEED").map_or(1, |seed| seed.parse().unwrap());
    (count, Random(seed))
}

/// Every transport, for three players each.
fn ways() -> Vec<(&'static str, u8)> {
    ["tcp", "ws", "tls", "wss"]
        .into_iter()
        .flat_map(|scheme| [1, 2, 3].map(|player| (scheme, player)))
        .collect()
}

#[tokio::test]
async fn nothing_is_lost_or_done_twice_however_often_connections_are_cut() {
    let (node, root) = start();
    let (count, mut random) = cuts_and_random();
    let cuts = Cuts::new(count);
    let ways = ways();
    let totals = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let playing = Arc::new(tokio::sync::Barrier::new(ways.len() * KEYS.len()));
    let mut players = JoinSet::new();
    for (scheme, player) in ways {
        let proxy = proxy::start(node.local_addr(), random.next(), Arc::clone(&cuts)).await;
        let (cuts, totals, playing) =
            (Arc::clone(&cuts), Arc::clone(&totals), Arc::clone(&playing));
        let root = root.clone();
        players.spawn(async move {
            let (url, name) =
                (format!("{scheme}://localhost:{}", proxy.port()), format!("{scheme} {player}"));
            let connection = connected(&url, &name, &root).await;
            play(connection, name, cuts, totals, playing).await
        });
    }
    let left = Arc::clone(&cuts);
    players.spawn(async move { stands_still(&left).await });
    let mut resumed = 0;
    let mut copies: [Option<Value>; 3] = [const { None }; 3];
    // The first that fails ends the test.
    while players.len() > 1
        && let Some(player) = players.join_next().await
    {
        let (times, own) = player.unwrap();
        resumed += times;
        for (copy, own) in copies.iter_mut().zip(own) {
            assert_eq!(*copy.get_or_insert_with(|| own.clone()), own, "all copies are equal");
        }
    }
    println!("{count} cuts, {resumed} sessions resumed");
    assert!(resumed > 0);
    node.shutdown();
}
