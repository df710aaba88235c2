//! A handle reaches the rooms of a running node from outside.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use playfield::client::{self, Dynamic};
use playfield::prelude::*;
use playfield::service::{
    self, Answered, ConnectionId, Frame, FrameCodec, NativeFrames, Peer, Service,
};
use playfield::{Config, Creator, ErrorCode, NodeHandle, Running, SeatFor};

#[derive(State, Default)]
struct Board {
    score: u32,
}

#[derive(Message)]
struct Add {
    points: u32,
}

#[derive(Message, Debug)]
#[reply(u32)]
struct Score;

/// Ends the room in its own handler.
#[derive(Message)]
struct Break;

/// Stays in its handler until a test lets go.
#[derive(Message)]
struct Hang;

/// No room declares it.
#[derive(Message)]
struct Unknown;

#[room(internal(Add, Score, Break, Hang), empty_ms = 60_000)]
impl Room for Board {}

impl On<Add> for Board {
    fn on(&mut self, add: Add, _: &mut Context<Self>) -> Result<()> {
        if add.points == 0 {
            return Err("add something".into());
        }
        self.score += add.points;
        Ok(())
    }
}

impl On<Score> for Board {
    fn on(&mut self, _: Score, _: &mut Context<Self>) -> Result<u32> {
        Ok(self.score)
    }
}

impl On<Break> for Board {
    fn on(&mut self, _: Break, _: &mut Context<Self>) -> Result<()> {
        panic!("on purpose")
    }
}

/// The channels on which a room that hangs says so, and waits.
static HANGS: Mutex<Option<(SyncSender<()>, Receiver<()>)>> = Mutex::new(None);

impl On<Hang> for Board {
    fn on(&mut self, _: Hang, _: &mut Context<Self>) -> Result<()> {
        let held = HANGS.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (hangs, goes_on) = held.expect("a test waits");
        hangs.send(()).expect("a test waits");
        let _ = goes_on.recv();
        Ok(())
    }
}

fn start(change: impl FnOnce(&mut Config)) -> Running {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    // The clients don't read while the test ends.
    config.timeouts.shutdown = Duration::from_millis(10);
    change(&mut config);
    Server::new().room::<Board>("board").start(config).expect("it starts")
}

/// A node, one player in a room, and the room's id.
struct Game {
    running: Running,
    runtime: tokio::runtime::Runtime,
    room: client::Room<Dynamic>,
    id: String,
    node: NodeHandle,
}

impl Game {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let running = start(change);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = format!("tcp://{}", running.local_addr());
        let room = runtime.block_on(async {
            let connection = client::connect(&url).await.expect("it serves");
            connection.join_or_create_dynamic("board", None).await.expect("it has rooms")
        });
        let (id, node) = (room.id().to_owned(), running.handle());
        Self { running, runtime, room, id, node }
    }
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.expect_err("it is refused").code()
}

#[test]
fn a_room_is_told_and_asked_from_outside_and_its_players_see_it() {
    let Game { runtime, room, id, node, .. } = &Game::new(|_| {});
    node.tell(id, &Add { points: 2 }).unwrap();
    assert_eq!(node.ask(id, &Score).wait(), Ok(2));
    // In any thread, and in any runtime.
    let (there, id_there) = (node.clone(), id.clone());
    thread::spawn(move || there.tell(&id_there, &Add { points: 3 })).join().unwrap().unwrap();
    assert_eq!(runtime.block_on(node.ask(id, &Score)), Ok(5));
    runtime.block_on(async {
        while room.state()["score"] != 5 {
            room.changed().await.unwrap();
        }
    });
    assert_eq!(node.stats().total().rooms, 1);
}

/// A folder for recordings that is removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("playfield-handle-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// The only file in it.
    fn file(&self) -> std::path::PathBuf {
        let files = std::fs::read_dir(&self.0).expect("a folder of recordings");
        let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        let [file] = &files[..] else { panic!("{files:?}") };
        file.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_operator_records_a_room_and_it_runs_again() {
    let folder = Folder::new("request");
    let game = Game::new(|config| config.recordings.folder = folder.0.clone());
    let Game { runtime, id, node, .. } = &game;
    node.tell(id, &Add { points: 2 }).unwrap();
    runtime.block_on(node.operator().record(id, true)).unwrap();
    node.tell(id, &Add { points: 3 }).unwrap();
    assert_eq!(node.ask(id, &Score).wait(), Ok(5));
    runtime.block_on(node.operator().record(id, false)).unwrap();
    node.tell(id, &Add { points: 4 }).unwrap();
    assert_eq!(node.ask(id, &Score).wait(), Ok(9));
    drop(game);
    let sim = playfield::sim::Sim::<Board>::replay(folder.file()).unwrap();
    assert_eq!(sim.room().score, 5);
}

#[test]
fn a_room_that_fails_leaves_a_recording() {
    let folder = Folder::new("failure");
    let game = Game::new(|config| config.recordings.folder = folder.0.clone());
    let Game { id, node, .. } = &game;
    node.tell(id, &Add { points: 2 }).unwrap();
    node.tell(id, &Break).unwrap();
    assert!(node.ask(id, &Score).wait().is_err());
    drop(game);
    // Until it is fixed, it fails again.
    let sim = playfield::sim::Sim::<Board>::replay(folder.file()).unwrap();
    assert!(sim.is_closed());
}

#[test]
fn without_a_folder_no_room_is_recorded() {
    let Game { runtime, id, node, .. } = &Game::new(|_| {});
    let refused = runtime.block_on(node.operator().record(id, true)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::Refused);
    assert!(refused.text().contains("recordings.folder"), "{refused}");
}

#[test]
fn an_operator_is_a_type_that_programs_can_name() {
    use playfield::operator::{Inspection, OperatedRoom, Operator, RoomOrder};

    let Game { runtime, id, node, .. } = &Game::new(|_| {});
    async fn look(operator: Operator<'_>) -> (usize, Vec<OperatedRoom>) {
        operator.rooms(Some("board"), "", RoomOrder::default(), 0, 10).await
    }
    let (count, rooms) = runtime.block_on(look(node.operator()));
    assert_eq!((count, &rooms[0].id), (1, id));
    let inspected: Result<Inspection> = runtime.block_on(node.operator().inspect(id, None, false));
    assert_eq!(inspected.unwrap().players.len(), 1);
}

#[test]
fn an_operator_counts_the_bytes_of_a_running_room_by_field() {
    let Game { runtime, room, id, node, .. } = &Game::new(|_| {});
    let lasts = Duration::from_millis(400);
    let profiled = async || node.operator().profile(id, lasts).await;
    let (profile, ()) = runtime.block_on(async {
        let play = async {
            // One change for each sync until the profile ends.
            for points in 1..=8 {
                node.tell(id, &Add { points }).unwrap();
                room.changed().await.unwrap();
            }
        };
        tokio::join!(profiled(), play)
    });
    let profile = profile.unwrap();
    assert_eq!((profile.players, profile.snapshots.writes), (1, 1));
    assert!(profile.counted > 0 && profile.counted <= profile.syncs, "{profile:?}");
    let of = |path: &str| profile.fields.iter().find(|field| field.path == path).unwrap();
    // A mask and the score.
    let (mask, score) = (of("").patches, of("score").patches);
    assert!(score.writes > 0 && score.writes <= 8, "{profile:?}");
    assert_eq!((mask.bytes(), score.bytes()), (score.writes, score.writes));
    assert_eq!(profile.patches.bytes(), 2 * score.writes);
    // Only players' messages count.
    assert!(profile.exchange.messages().iter().all(|message| message.counts.count == 0));

    let refused = runtime.block_on(node.operator().profile(id, Duration::from_secs(61)));
    assert_eq!(code(refused), ErrorCode::Refused);
    let gone = runtime.block_on(node.operator().profile("nowhere", lasts));
    assert_eq!(code(gone), ErrorCode::RoomNotFound);
    // The second is refused at once, and the first goes on.
    let longer = async || node.operator().profile(id, Duration::from_secs(60)).await;
    let (first, second) = runtime.block_on(async { tokio::join!(profiled(), longer()) });
    assert_eq!(first.unwrap().players, 1);
    let refused = second.expect_err("the room is being profiled");
    assert_eq!(refused.code(), ErrorCode::Refused);
    assert!(refused.to_string().contains("try again in 1 s"), "{refused}");
    assert_eq!(runtime.block_on(profiled()).unwrap().players, 1, "it is over");
}

#[test]
fn what_cant_be_done_is_an_error() {
    let game = Game::new(|config| config.timeouts.ask = Duration::from_millis(60_000));
    let Game { running, id, node, .. } = game;
    let id = &id;

    assert_eq!(code(node.ask(id, &Add { points: 0 }).wait()), ErrorCode::Refused);
    assert_eq!(code(node.ask(id, &Unknown).wait()), ErrorCode::UnknownMessage);
    for id in ["", "nowhere", "aaaaaaaaaaaaaaaa"] {
        assert_eq!(code(node.tell(id, &Score)), ErrorCode::RoomNotFound);
        assert_eq!(code(node.ask(id, &Score).wait()), ErrorCode::RoomNotFound);
        assert_eq!(code(node.close(id, "over")), ErrorCode::RoomNotFound);
    }
    // In the room's handler, and then behind it.
    let (first, second) = (node.ask(id, &Break), node.ask(id, &Score));
    assert_eq!(code(first.wait()), ErrorCode::RoomFailed);
    assert!(matches!(code(second.wait()), ErrorCode::RoomFailed | ErrorCode::RoomNotFound));
    running.shutdown();
    assert!(matches!(
        code(node.tell(id, &Score)),
        ErrorCode::ShuttingDown | ErrorCode::RoomNotFound
    ));
}

#[test]
fn a_room_is_closed_from_outside() {
    let Game { runtime, room, id, node, .. } = &Game::new(|_| {});
    node.close(id, "enough for today").unwrap();
    let end = runtime.block_on(async {
        loop {
            if let Err(end) = room.changed().await {
                return end;
            }
        }
    });
    assert!(end.to_string().contains("enough for today"), "{end}");
    assert_eq!(code(node.ask(id, &Score).wait()), ErrorCode::RoomNotFound);
}

#[test]
fn while_a_room_hangs_its_mailbox_fills_up_and_requests_time_out() {
    let (hangs, does_hang) = sync_channel(1);
    let (go_on, goes_on) = sync_channel(1);
    *HANGS.lock().unwrap() = Some((hangs, goes_on));
    let game = Game::new(|config| {
        config.limits.queues.mail = 3;
        config.timeouts.ask = Duration::from_millis(50);
    });
    let Game { id, node, .. } = &game;
    node.tell(id, &Hang).unwrap();
    does_hang.recv().unwrap();
    let asked = node.ask(id, &Score);
    node.tell(id, &Add { points: 1 }).unwrap();
    node.tell(id, &Add { points: 1 }).unwrap();
    let full = node.tell(id, &Add { points: 1 }).unwrap_err();
    assert_eq!(full.code(), ErrorCode::Busy);
    assert!(full.text().starts_with("limits.queues.mail: "), "{full}");
    assert_eq!(code(node.ask(id, &Score).wait()), ErrorCode::Busy);
    let late = asked.wait().unwrap_err();
    assert_eq!(late.code(), ErrorCode::Timeout);
    assert!(late.text().starts_with("timeouts.ask: "), "{late}");
    // What was accepted is not lost.
    go_on.send(()).unwrap();
    loop {
        match node.ask(id, &Score).wait() {
            Ok(score) => break assert_eq!(score, 2),
            // Its mailbox has yet to be emptied.
            Err(error) => assert_eq!(error.code(), ErrorCode::Busy),
        }
    }
}

#[test]
fn on_start_gets_the_handle_too() {
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 1, ..Config::default() };
    let (started, handles) = sync_channel(1);
    let server = Server::new().room::<Board>("board").on_start(move |node| {
        started.send(node).expect("a test waits");
    });
    let running = server.start(config).unwrap();
    let node = handles.try_recv().expect("it was called before `start` returned");
    assert!(node.stats().healthy);
    running.shutdown();
}

/// Adds the number in each frame to a room's score, and replies with the score.
struct Relay {
    room: String,
    /// The connections that wait, and the answers they wait for.
    waiting: Vec<(AskId, ConnectionId)>,
}

impl Service for Relay {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> service::Result {
        match frame.body {
            // The client tells the relay which room to ask.
            [b'@', room @ ..] => self.room = String::from_utf8(room.to_vec())?,
            [points] => {
                peer.tell(&self.room, &Add { points: u32::from(*points) })?;
                self.waiting.push((peer.ask(&self.room, &Score)?, peer.id()));
            }
            _ => self.waiting.push((peer.ask(&self.room, &Unknown)?, peer.id())),
        }
        Ok(())
    }

    fn answered(&mut self, answer: Answered, cx: &mut service::Context<Self>) {
        let place = self.waiting.iter().position(|(ask, _)| *ask == answer.id());
        let (_, peer) = self.waiting.remove(place.expect("it was asked"));
        let text = match answer.reply::<Score>() {
            Ok(score) => score.to_string(),
            Err(error) => error.code().to_string(),
        };
        cx.send(peer, text.as_bytes()).expect("a short frame");
    }
}

#[test]
fn a_service_tells_and_asks_rooms_on_any_shard() {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    config.timeouts.shutdown = Duration::from_millis(10);
    let relay = |_| Relay { room: String::new(), waiting: Vec::new() };
    let server = Server::new().room::<Board>("board").service(([127, 0, 0, 1], 0), relay);
    let running = server.start(config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("tcp://{}", running.local_addr());
    let room = runtime.block_on(async {
        let connection = client::connect(&url).await.unwrap();
        connection.join_or_create_dynamic("board", None).await.unwrap()
    });
    // Enough connections that some are on the other shard.
    for number in 1..=16 {
        let mut socket = TcpStream::connect(running.service_addrs()[0]).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut say = |bodies: &[&[u8]]| {
            let mut out = Vec::new();
            for body in bodies {
                NativeFrames::new().encode(&mut out, body).unwrap();
            }
            socket.write_all(&out).unwrap();
        };
        say(&[format!("@{}", room.id()).as_bytes(), &[2], b"??"]);
        let mut heard = || {
            let mut header = [0; 4];
            socket.read_exact(&mut header).unwrap();
            let mut body = vec![0; u32::from_le_bytes(header) as usize];
            socket.read_exact(&mut body).unwrap();
            String::from_utf8(body).unwrap()
        };
        assert_eq!((heard(), heard()), ((2 * number).to_string(), "unknown_message".into()));
    }
}

#[derive(State, Default)]
struct Duel {}

#[derive(Data, Default)]
struct Stakes {
    gold: u32,
}

#[room(creation = server, capacity = 1)]
impl Room for Duel {
    type Options = Stakes;

    fn create(stakes: Stakes, cx: &mut Context<Self>) -> Result<Self> {
        assert!(matches!(cx.creator(), Creator::Node));
        if stakes.gold == 0 {
            return Err("nobody plays for nothing".into());
        }
        cx.set_metadata("gold", &stakes.gold.to_string())?;
        Ok(Self {})
    }
}

#[tokio::test]
async fn a_handle_creates_finds_and_lists_rooms_and_reserves_seats() {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    config.timeouts.shutdown = Duration::from_millis(10);
    let running = Server::new().room::<Duel>("duel").start(config).expect("it starts");
    let handle = running.handle();

    let refused = handle.create_room::<Duel>(&Stakes { gold: 0 }).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Refused);
    let unknown = handle.create_room::<Board>(&()).await;
    assert_eq!(unknown.unwrap_err().code(), ErrorCode::UnknownRoomType);
    let id = handle.new_room::<Duel>(&Stakes { gold: 5 }).key("final").create().await.unwrap();
    let again = handle.new_room::<Duel>(&Stakes { gold: 5 }).key("final").create().await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::RoomExists);
    assert_eq!(handle.find("duel", "final").as_ref(), Some(&id));
    assert_eq!(handle.find("duel", "semifinal"), None);
    let mut crowded = handle.new_room::<Duel>(&Stakes { gold: 5 }).key("semifinal");
    for name in ["Ann", "Bob"] {
        let _ = crowded.reserve(SeatFor::Name(name.into()), Duration::from_secs(1));
    }
    assert_eq!(crowded.create().await.unwrap_err().code(), ErrorCode::RoomFull);
    assert_eq!(handle.find("duel", "semifinal"), None);
    let listed = handle.list(Some("duel"), &[("gold", "5")], 10);
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].id, &*listed[0].room_type), (&id, "duel"));
    assert_eq!(listed[0].summary.key.as_deref(), Some("final"));

    let wait = std::time::Duration::from_secs(60);
    let seat = handle.reserve(&id, SeatFor::Name("Ann".into()), wait).await.unwrap();
    let second = handle.reserve(&id, SeatFor::Name("Bob".into()), wait).await;
    assert_eq!(second.unwrap_err().code(), ErrorCode::RoomFull);
    let nowhere = handle.reserve("nowhere", SeatFor::Name("Bob".into()), wait).await;
    assert_eq!(nowhere.unwrap_err().code(), ErrorCode::RoomNotFound);
    let url = format!("tcp://{}", running.local_addr());
    let (bob, ann) = tokio::join!(
        async { client::connect(&url).name("Bob").await.expect("it serves") },
        async { client::connect(&url).name("Ann").await.expect("it serves") }
    );
    let refused =
        bob.join_by_key_dynamic("duel", "final").await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(ErrorCode::RoomFull));
    let refused =
        bob.create_dynamic("duel", false, None).await.err().and_then(|error| error.code());
    assert_eq!(refused, Some(ErrorCode::CreationClosed));
    let room = ann.join_dynamic(seat.as_str()).await.expect("her seat is reserved");
    assert_eq!((room.id(), room.key()), (&*id, Some("final")));
    let used = ann.join_dynamic(seat.as_str()).await.err().and_then(|error| error.code());
    assert_eq!(used, Some(ErrorCode::AlreadyJoined));
    drop(running);
    let late = handle.create_room::<Duel>(&Stakes { gold: 1 }).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::ShuttingDown);
}

#[test]
fn what_is_there_twice_is_an_error_of_the_start() {
    let config = || Config { listen: ([127, 0, 0, 1], 0).into(), shards: 1, ..Config::default() };
    for (server, expected) in [
        (
            Server::new().page("/playfield.js", "text/javascript", ""),
            "the page \"/playfield.js\": the server has the browser client at this path",
        ),
        (
            Server::new().page("/playfield-packed.js", "text/javascript", ""),
            "the page \"/playfield-packed.js\": the server has the browser client at this path",
        ),
        (Server::new().page("about", "text/html", ""), "the page \"about\": a path begins with"),
        (
            Server::new().room::<Board>("board").room::<Duel>("board"),
            "two room types have the name \"board\"",
        ),
        (Server::new().folder("/", "no such folder"), "the folder no such folder at \"/\": "),
    ] {
        let error = server.start(config()).err().expect("it does not start").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
