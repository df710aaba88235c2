//! Changes of a room's copy, over a real socket.
use std::sync::mpsc;

use playfield_client::{
    Change, ChangeKind, Changes, Connect, Dynamic, Error, Kind, QueueLimits, Room as RoomHandle,
};
use playfield_room::{Context, PlayerId, Result, Room, room, schema};
use playfield_state::{List, Map, State, Tracker, Tracking};
use playfield_wire::schema::fingerprint;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber};
use serde_json::{Value, json};

use crate::server::{BAD_PATCH, Counted, Server, counted, counts, joined};
use crate::support::{Said, joined_as};

#[derive(State, Default)]
struct Arena {
    round: u32,
    players: Map<PlayerId, Fighter>,
    #[sync(view = near, viewer = players)]
    traps: Map<u32, Trap>,
    log: List<String>,
}

#[derive(State, Default)]
struct Fighter {
    x: i32,
    hp: i32,
    #[sync(owner)]
    mana: u8,
}

#[derive(State, Default)]
struct Trap {
    x: i32,
    armed: bool,
}

fn near(trap: &Trap, fighter: &Fighter) -> bool {
    (trap.x - fighter.x).abs() <= 10
}

#[room]
impl Room for Arena {
    type Options = ();

    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self::default())
    }
}

const ME: PlayerId = PlayerId(4);

/// The node's end: the room, and the version that this client was sent.
struct Node {
    server: Server,
    arena: Arena,
    tracker: Tracker<Arena>,
    sent: u64,
}

impl Node {
    /// A client in a room with the players 4 (Ann, this client) and 7, and its node.
    async fn entered<R: Kind>(
        knows_schema: bool,
        set: impl FnOnce(Connect) -> Connect,
        enter: impl AsyncFnOnce(
            &playfield_client::Connection,
        ) -> std::result::Result<RoomHandle<R>, Error>,
    ) -> (playfield_client::Connection, RoomHandle<R>, Self) {
        let (connection, server) = Server::welcomed_as(false, set).await;
        let mut arena = Arena { round: 1, ..Arena::default() };
        arena.players.insert(ME, Fighter { x: 0, hp: 100, mana: 5 });
        arena.players.insert(PlayerId(7), Fighter { x: 50, hp: 90, mana: 6 });
        let tracker = Tracker::new(&mut arena, Tracking::On);
        let mut node = Self { server, arena, tracker, sent: 1 };
        let meet = async {
            node.server.hear().await;
            let joined = joined_as(RequestNumber(1), fingerprint(&schema::<Arena>()));
            node.server.say(&joined).await;
            node.snapshot().await;
            if !knows_schema {
                node.server.hear().await;
                let schema = schema::<Arena>().to_json();
                node.server.schema(Some(RequestNumber(2)), schema.as_bytes()).await;
            }
        };
        let (room, ()) = tokio::join!(enter(&connection), meet);
        (connection, room.unwrap(), node)
    }

    async fn typed(
        set: impl FnOnce(Connect) -> Connect,
    ) -> (playfield_client::Connection, RoomHandle<Arena>, Self) {
        Self::entered(true, set, async |connection| connection.join::<Arena>("r").await).await
    }

    async fn dynamic() -> (playfield_client::Connection, RoomHandle<Dynamic>, Self) {
        Self::entered(
            false,
            |connect| connect,
            async |connection| connection.join_dynamic("r").await,
        )
        .await
    }

    async fn snapshot(&mut self) {
        let mut body = Vec::new();
        self.tracker.snapshot(ME, Format::Packed, &mut body);
        let version = self.tracker.version();
        self.server.snapshot(version, &body).await;
        self.sent = version;
    }

    /// Answers the resync of the first listener.
    async fn answer_resync(&mut self) {
        assert_eq!(self.server.hear().await, Said::Other("Resync { room: 1 }".to_owned()));
        self.snapshot().await;
    }

    /// Changes the state, and sends the patch.
    async fn change(&mut self, change: impl FnOnce(&mut Arena)) {
        change(&mut self.arena);
        self.tracker.sync(&mut self.arena);
        let mut body = Vec::new();
        if self.tracker.patch(ME, self.sent, Format::Packed, &mut body) {
            let version = self.tracker.version();
            self.server.patch(self.sent, version, &body).await;
            self.sent = version;
        }
    }
}

async fn listen<R: Kind>(room: &RoomHandle<R>, node: &mut Node) -> Changes {
    tokio::join!(room.changes(), node.answer_resync()).0.unwrap()
}

/// The next changes, each as its path, kind and values.
async fn next(changes: &mut Changes, count: usize) -> Vec<(String, String, Value)> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(shown(changes.next().await.unwrap()));
    }
    told
}

fn shown(change: Change) -> (String, String, Value) {
    let values = json!([change.old, change.new]);
    (change.path.to_string(), format!("{:?}", change.kind), values)
}

fn told(path: &str, kind: &str, values: Value) -> (String, String, Value) {
    (path.to_owned(), kind.to_owned(), values)
}

/// Changes in the arena, and what Ann's client reports of them.
async fn a_story(node: &mut Node, changes: &mut Changes) {
    node.change(|arena| {
        arena.round = 2;
        arena.players.get_or_default(PlayerId(7)).hp = 80;
        arena.players.get_or_default(PlayerId(7)).mana = 0; // not hers to see
        arena.players.get_or_default(ME).mana = 4;
    })
    .await;
    let mut heard = next(changes, 3).await;
    heard.sort_by(|one, two| one.0.cmp(&two.0));
    assert_eq!(
        heard,
        [
            told("players.4.mana", "Changed", json!([5, 4])),
            told("players.7.hp", "Changed", json!([90, 80])),
            told("round", "Changed", json!([1, 2])),
        ]
    );
    // A trap is set out of sight, then Ann comes near, it is armed, and she leaves.
    node.change(|arena| *arena.traps.get_or_default(1) = Trap { x: 30, armed: false }).await;
    node.change(|arena| arena.players.get_or_default(ME).x = 25).await;
    assert_eq!(
        next(changes, 2).await,
        [
            told("players.4.x", "Changed", json!([0, 25])),
            told("traps.1", "Entered", json!([null, {"x": 30, "armed": false}])),
        ]
    );
    node.change(|arena| arena.traps.get_or_default(1).armed = true).await;
    assert_eq!(next(changes, 1).await, [told("traps.1.armed", "Changed", json!([false, true]))]);
    node.change(|arena| arena.players.get_or_default(ME).x = 0).await;
    assert_eq!(
        next(changes, 2).await,
        [
            told("players.4.x", "Changed", json!([25, 0])),
            told("traps.1", "Left", json!([{"x": 30, "armed": true}, null])),
        ]
    );
    // Entries of a map and elements of a list.
    node.change(|arena| {
        arena.players.remove(&PlayerId(7));
        arena.players.insert(PlayerId(9), Fighter { x: 1, hp: 2, mana: 3 });
        arena.log.extend(["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    })
    .await;
    assert_eq!(
        next(changes, 2).await,
        [
            told("players.7", "Left", json!([{"x": 50, "hp": 80}, null])),
            told("players.9", "Entered", json!([null, {"x": 1, "hp": 2}])),
        ]
    );
    let entered = next(changes, 3).await;
    assert_eq!(entered[2], told("log.2", "Entered", json!([null, "c"])));
    node.change(|arena| {
        let last = arena.log.remove(2).unwrap();
        arena.log.insert(0, last);
    })
    .await;
    assert_eq!(next(changes, 1).await, [told("log.0", "Moved { from: 2 }", json!([null, null]))]);
}

#[tokio::test]
async fn a_typed_room_reports_changes() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let mut changes = listen(&room, &mut node).await;
    a_story(&mut node, &mut changes).await;
    assert_eq!(room.state().log[0], "c");
}

/// Its own copy reports changes, so no snapshot is asked for.
#[tokio::test]
async fn a_typed_room_of_which_all_is_seen_reads_each_patch_once() {
    let (connection, mut server) = Server::welcomed_as(false, |connect| connect).await;
    let meet = async {
        server.hear().await;
        server.say(&joined(RequestNumber(1))).await;
        server.snapshot(1, &counted(5)).await;
    };
    let room = tokio::join!(connection.join::<Counted>("r"), meet).0.unwrap();
    let mut changes = room.changes().await.unwrap();
    server.patch(1, 2, &counts(6)).await;
    assert_eq!(next(&mut changes, 1).await, [told("n", "Changed", json!([5, 6]))]);
    server.snapshot(3, &counted(8)).await;
    assert_eq!(next(&mut changes, 1).await, [told("n", "Changed", json!([6, 8]))]);
    assert_eq!(room.state().n, 8);
    let ping = async {
        assert_eq!(server.hear().await, Said::Other("Ping { nonce: 2 }".to_owned()));
        server.say(&ServerMessage::Pong(server::Pong { nonce: 2, time_us: 0 })).await;
    };
    tokio::join!(connection.ping(), ping).0.unwrap();

    // After a patch that can't be applied it can't know what changed.
    server.patch(3, 4, BAD_PATCH).await;
    assert_eq!(server.hear().await, Said::Other("Resync { room: 1 }".to_owned()));
    server.snapshot(4, &counted(9)).await;
    assert!(changes.next().await.unwrap_err().is_missed());
    server.patch(4, 5, &counts(10)).await;
    assert_eq!(next(&mut changes, 1).await, [told("n", "Changed", json!([9, 10]))]);
}

#[tokio::test]
async fn a_dynamic_room_reports_the_same_changes() {
    let (_connection, room, mut node) = Node::dynamic().await;
    // Its own copy reports changes: no snapshot is asked for.
    let mut changes = room.changes().await.unwrap();
    a_story(&mut node, &mut changes).await;
    assert_eq!(room.state()["log"][0], "c");
}

/// A second listener asks for no snapshot.
#[tokio::test]
async fn a_snapshot_reports_the_differences() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let mut changes = listen(&room, &mut node).await;
    let mut second = room.changes().await.unwrap();
    node.arena.round = 5;
    node.arena.players.remove(&PlayerId(7));
    node.tracker.sync(&mut node.arena);
    node.snapshot().await;
    let expected = [
        told("round", "Changed", json!([1, 5])),
        told("players.7", "Left", json!([{"x": 50, "hp": 90}, null])),
    ];
    assert_eq!(next(&mut changes, 2).await, expected);
    assert_eq!(next(&mut second, 2).await, expected);
}

#[tokio::test]
async fn a_slow_listener_learns_that_it_missed_changes() {
    let (_connection, room, mut node) = Node::typed(|connect| {
        connect.queue_limits(QueueLimits { events_max: 3, ..Default::default() })
    })
    .await;
    let mut changes = listen(&room, &mut node).await;
    for round in 2..=8 {
        node.change(|arena| arena.round = round).await;
    }
    while room.state().round < 8 {
        room.changed().await.unwrap();
    }
    let error = changes.next().await.unwrap_err();
    assert!(error.is_missed() && !error.is_closed());
    assert_eq!(error.to_string(), "4 changes were dropped because they were not taken out in time");
    let rounds = next(&mut changes, 3).await;
    assert_eq!(rounds[0], told("round", "Changed", json!([5, 6])));
    node.change(|arena| arena.round = 9).await;
    assert_eq!(next(&mut changes, 1).await, [told("round", "Changed", json!([8, 9]))]);
}

/// After a patch that can't be applied, the second copy of a typed room still reports what the
/// snapshot changes.
#[tokio::test]
async fn a_typed_room_reports_changes_across_a_resync() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let mut changes = listen(&room, &mut node).await;
    node.server.patch(1, 2, &[0xff]).await;
    node.arena.round = 7;
    node.tracker.sync(&mut node.arena);
    node.answer_resync().await;
    assert_eq!(next(&mut changes, 1).await, [told("round", "Changed", json!([1, 7]))]);
}

/// After a patch that can't be applied, a dynamic room can't know what changed.
#[tokio::test]
async fn a_dynamic_room_reports_a_gap_after_a_resync() {
    let (_connection, room, mut node) = Node::dynamic().await;
    let mut changes = room.changes().await.unwrap();
    node.server.patch(1, 2, &[0xff]).await;
    node.arena.round = 7;
    node.tracker.sync(&mut node.arena);
    node.answer_resync().await;
    let error = changes.next().await.unwrap_err();
    assert!(error.is_missed());
    assert_eq!(
        error.to_string(),
        "changes were missed because the copy had to be replaced by a snapshot"
    );
    node.change(|arena| arena.round = 8).await;
    assert_eq!(next(&mut changes, 1).await, [told("round", "Changed", json!([7, 8]))]);
}

#[tokio::test]
async fn after_the_last_listener_the_next_one_starts_over() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let changes = listen(&room, &mut node).await;
    drop(changes);
    node.change(|arena| arena.round = 2).await;
    // The client asks for a snapshot again, as the second copy was dropped.
    let mut changes = listen(&room, &mut node).await;
    node.change(|arena| arena.round = 3).await;
    assert_eq!(next(&mut changes, 1).await, [told("round", "Changed", json!([2, 3]))]);
}

#[tokio::test]
async fn the_end_of_a_room_follows_its_last_change() {
    let (connection, room, mut node) = Node::typed(|connect| connect).await;
    let mut changes = listen(&room, &mut node).await;
    node.change(|arena| arena.round = 2).await;
    room.changed().await.unwrap();
    while room.state().round < 2 {
        room.changed().await.unwrap();
    }
    node.server.hang_up().await;
    drop(node);
    connection.ping().await.unwrap_err();
    assert_eq!(next(&mut changes, 1).await, [told("round", "Changed", json!([1, 2]))]);
    assert!(changes.next().await.unwrap_err().is_closed());
    assert!(room.changes().await.unwrap_err().is_closed());
}

/// Waits for the next call, on a thread that may block.
async fn called<T: Send + 'static>(calls: mpsc::Receiver<T>) -> (T, mpsc::Receiver<T>) {
    tokio::task::spawn_blocking(move || (calls.recv().unwrap(), calls)).await.unwrap()
}

#[tokio::test]
async fn functions_are_called_for_changes_that_match_their_pattern() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let (sender, calls) = mpsc::sync_channel(8);
    let call = move |change: Change| sender.send(shown(change)).unwrap();
    let subscription =
        tokio::join!(room.on_change("players.*.hp", call), node.answer_resync()).0.unwrap();
    node.change(|arena| {
        arena.round = 2;
        arena.players.get_or_default(PlayerId(7)).hp = 1;
    })
    .await;
    let (call, calls) = called(calls).await;
    assert_eq!(call, told("players.7.hp", "Changed", json!([90, 1])));
    node.change(|arena| arena.players.get_or_default(ME).hp = 2).await;
    let (call, calls) = called(calls).await;
    assert_eq!(call, told("players.4.hp", "Changed", json!([100, 2])));
    assert_eq!(subscription.missed(), 0);
    drop(subscription);
    // The function is dropped, so its channel ends.
    let rest = tokio::task::spawn_blocking(move || calls.recv()).await.unwrap();
    assert_eq!(rest, Err(mpsc::RecvError));
    let error = room.on_change("players..hp", drop).await.unwrap_err();
    assert!(error.to_string().contains("an empty step"), "{error}");
}

#[tokio::test]
async fn a_function_that_panics_ends_only_its_own_subscription() {
    let (_connection, room, mut node) = Node::typed(|connect| connect).await;
    let mut changes = listen(&room, &mut node).await;
    let (sender, calls) = mpsc::sync_channel::<()>(8);
    let panics = room
        .on_change("**", move |change| {
            let _sender = &sender;
            panic!("no use for {}", change.path);
        })
        .await
        .unwrap();
    node.change(|arena| arena.round = 2).await;
    let ended = tokio::task::spawn_blocking(move || calls.recv()).await.unwrap();
    assert_eq!(ended, Err(mpsc::RecvError));
    while !panics.is_over() {
        tokio::task::yield_now().await;
    }
    node.change(|arena| arena.round = 3).await;
    assert_eq!(next(&mut changes, 2).await[1], told("round", "Changed", json!([2, 3])));
}

/// Also on a runtime of one thread.
#[tokio::test]
async fn a_slow_function_delays_nothing_else() {
    let (connection, room, mut node) = Node::typed(|connect| {
        connect.queue_limits(QueueLimits { events_max: 2, ..Default::default() })
    })
    .await;
    let (go, wait) = mpsc::sync_channel::<()>(8);
    let (sender, calls) = mpsc::sync_channel(8);
    let call = move |change: Change| {
        sender.send(change.new).unwrap();
        wait.recv().unwrap();
    };
    let subscription = tokio::join!(room.on_change("round", call), node.answer_resync()).0.unwrap();
    node.change(|arena| arena.round = 2).await;
    let (first, calls) = called(calls).await;
    assert_eq!(first, Some(json!(2)));
    for round in 3..=6 {
        node.change(|arena| arena.round = round).await;
    }
    while room.state().round < 6 {
        room.changed().await.unwrap();
    }
    tokio::join!(connection.ping(), node.server.pong()).0.unwrap();
    (0..3).for_each(|_| go.send(()).unwrap());
    let (second, calls) = called(calls).await;
    let (third, _calls) = called(calls).await;
    assert_eq!([second, third], [Some(json!(5)), Some(json!(6))]);
    assert_eq!(subscription.missed(), 2);
    drop(go);
}

#[test]
fn futures_can_be_sent_between_threads() {
    fn is_send<T: Send>(_: T) {}
    fn futures(room: &RoomHandle<Arena>, mut changes: Changes) {
        is_send(room.changes());
        is_send(room.on_change("**", drop));
        is_send(changes.next());
    }
    let _ = futures;
    assert_ne!(ChangeKind::Entered, ChangeKind::Left);
}
