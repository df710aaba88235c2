//! Rooms that outlive the process, on a running node.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::thread;

use playfield::client::{self, Connection, Creation, Dynamic, Room as Joined};
use playfield::prelude::*;
use playfield::store::{Completion, DiskStore, Fence, Loaded, MemoryStore, Opened, Store, Stored};
use playfield::{Config, NodeHandle, Running};
use serde_json::json;

#[derive(State, Default)]
struct Page {
    text: String,
    created: u32,
}

#[derive(Message)]
struct Write {
    text: String,
}

#[room(messages(Write), persist = 60, empty_ms = 60_000)]
impl Room for Page {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { created: 1, ..Self::default() })
    }

    fn rebuild(&mut self, _: &mut Context<Self>) {
        self.created += 10;
    }
}

impl Handle<Write> for Page {
    fn handle(&mut self, write: Write, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.text.push_str(&write.text);
        Ok(())
    }
}

/// Lets through what comes, or keeps it until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    fn set(&self, is_shut: bool) {
        let mut gate = self.0.lock().unwrap();
        gate.0 = is_shut;
        gate.1.drain(..).for_each(Waker::wake);
    }

    async fn pass(self) {
        poll_fn(|cx| {
            let mut gate = self.0.lock().unwrap();
            if gate.0 {
                gate.1.push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// A store whose work can be held, and which says what is begun.
struct Held {
    saves: MemoryStore,
    gate: Gate,
    begun: SyncSender<&'static str>,
}

impl Held {
    fn new() -> (Self, Gate, Receiver<&'static str>) {
        let (begun, says) = sync_channel(64);
        let gate = Gate::default();
        (Self { saves: MemoryStore::new(), gate: gate.clone(), begun }, gate, says)
    }

    fn after<T: Send + 'static>(&self, what: &'static str, work: Stored<T>) -> Stored<T> {
        let gate = self.gate.clone();
        // The test may be over.
        let _ = self.begun.send(what);
        Box::pin(async {
            gate.pass().await;
            work.await
        })
    }
}

impl Store for Held {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        self.after("open", self.saves.open(room_type, key))
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.after("load", self.saves.load(room_type, key))
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        let saved = self.after("save", self.saves.save_and_wait(room_type, key, fence, bytes));
        thread::spawn(|| done.complete(runtime().block_on(saved)));
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.after("remove", self.saves.remove(room_type, key, fence))
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.after("keys", self.saves.keys(room_type, after, limit))
    }
}

fn config() -> Config {
    let log = playfield::LevelFilter::Off;
    Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, log, ..Config::default() }
}

fn start(store: Held) -> Running {
    Server::new().room::<Page>("page").store(store).start(config()).unwrap()
}

async fn connect(running: &Running, name: &str) -> Connection {
    client::connect(&format!("tcp://{}", running.local_addr())).name(name).await.unwrap()
}

async fn enter(connection: Connection) -> Joined<Dynamic> {
    connection.join_or_create_by_key_dynamic("page", "42", None).await.unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn two_who_create_one_key_cause_one_load() {
    let (store, gate, says) = Held::new();
    gate.set(true);
    let running = start(store);
    let runtime = runtime();
    let (ann, bob) = runtime
        .block_on(async { (connect(&running, "Ann").await, connect(&running, "Bob").await) });
    let (ann, bob) = (runtime.spawn(enter(ann)), runtime.spawn(enter(bob)));
    assert_eq!(says.recv(), Ok("open"));
    gate.set(false);
    runtime.block_on(async {
        let (ann, bob) = (ann.await.unwrap(), bob.await.unwrap());
        assert_eq!(ann.id(), bob.id());
        assert_eq!(ann.state()["created"], 1);
    });
    assert!(says.try_recv().is_err(), "there was one load");
}

#[test]
fn who_comes_after_a_creator_that_died_meanwhile_finds_the_room() {
    let (store, gate, says) = Held::new();
    gate.set(true);
    let running = start(store);
    let runtime = runtime();
    let ann = runtime.block_on(connect(&running, "Ann"));
    let waits = runtime.spawn(enter(ann));
    assert_eq!(says.recv(), Ok("open"));
    waits.abort();
    assert!(runtime.block_on(waits).is_err());
    let bob = runtime.block_on(connect(&running, "Bob"));
    let bob = runtime.spawn(enter(bob));
    gate.set(false);
    let bob = runtime.block_on(bob).unwrap();
    assert_eq!(bob.state()["created"], 1);
}

#[test]
fn who_comes_while_a_room_is_saved_at_its_end_finds_what_was_saved() {
    let (store, gate, says) = Held::new();
    let running = start(store);
    let runtime = runtime();
    let ann = runtime.block_on(async { enter(connect(&running, "Ann").await).await });
    assert_eq!(says.recv(), Ok("open"));
    runtime.block_on(ann.request("Write", &json!({ "text": "Hello" }))).unwrap();
    gate.set(true);
    running.handle().close(ann.id(), "over").unwrap();
    assert_eq!(says.recv(), Ok("save"));
    let bob = runtime.block_on(connect(&running, "Bob"));
    let bob = runtime.spawn(enter(bob));
    gate.set(false);
    let bob = runtime.block_on(bob).unwrap();
    assert_eq!(says.recv(), Ok("open"));
    assert_ne!(ann.id(), bob.id());
    assert_eq!((&bob.state()["text"], &bob.state()["created"]), (&json!("Hello"), &json!(11)));
}

#[test]
fn a_node_saves_its_rooms_when_it_shuts_down() {
    let path = std::env::temp_dir().join(format!("playfield-lasting-{}.redb", std::process::id()));
    let runtime = runtime();
    for round in 0..3 {
        let server = Server::new().room::<Page>("page").store_file(&path);
        let running = server.start(config()).unwrap();
        runtime.block_on(async {
            let ann = enter(connect(&running, "Ann").await).await;
            assert_eq!(ann.state()["text"], "x".repeat(round));
            ann.request("Write", &json!({ "text": "x" })).await.unwrap();
        });
        running.shutdown();
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_store_can_be_opened_again_as_soon_as_the_node_is_shut_down() {
    let path = std::env::temp_dir().join(format!("playfield-again-{}.redb", std::process::id()));
    let server = || Server::new().room::<Page>("page").store_file(&path);
    // The thread of HTTP handlers has a handle, too.
    let running = server().route("GET", "/", async || "here").start(config()).unwrap();
    let handle = running.handle();
    running.shutdown();
    drop(DiskStore::open(&path).unwrap());
    let running = server().start(config()).unwrap();
    running.stopper().stop();
    running.wait().unwrap();
    drop(DiskStore::open(&path).unwrap());
    drop(handle);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_persistent_type_needs_a_store_that_can_be_opened() {
    let error = Server::new().room::<Page>("page").start(config()).err().unwrap().to_string();
    assert_eq!(
        error,
        "rooms of the type \"page\" are persistent (persist), but the node has no store: give it \
         one with Server::store"
    );
    let path = std::env::temp_dir().join(format!("playfield-in-use-{}.redb", std::process::id()));
    let store = DiskStore::open(&path).unwrap();
    let server = Server::new().room::<Page>("page").store_file(&path);
    let error = server.start(config()).err().unwrap().to_string();
    assert!(
        error.contains("is in use by another process, or by another store in this one"),
        "{error}"
    );
    drop(store);
    std::fs::remove_file(path).unwrap();
}

/// A store that has a save for each of the first keys that are loaded, as if the codes of saved
/// rooms had been drawn.
#[derive(Clone)]
struct Taken {
    saves: MemoryStore,
    left: Arc<AtomicU32>,
}

impl Store for Taken {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        let less = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            let other = Page { text: "another room's".into(), ..Page::default() };
            self.saves.set(room_type, key, playfield::save(&other));
        }
        self.saves.open(room_type, key)
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.saves.load(room_type, key)
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        self.saves.save(room_type, key, fence, bytes, done);
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.saves.remove(room_type, key, fence)
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.saves.keys(room_type, after, limit)
    }
}

#[test]
fn a_new_room_with_a_code_is_never_made_of_the_save_of_another() {
    for (taken, is_created) in [(0, true), (3, true), (100, false)] {
        let store = Taken { saves: MemoryStore::new(), left: Arc::new(AtomicU32::new(taken)) };
        let server = Server::new().room::<Page>("page").store(store.clone());
        let running = server.start(config()).unwrap();
        runtime().block_on(async {
            let ann = connect(&running, "Ann").await;
            let creation = Creation::new().private().code();
            let room = ann.create_dynamic("page", creation, None).await;
            match room {
                Ok(room) => assert_eq!((&room.state()["text"], is_created), (&json!(""), true)),
                Err(error) => {
                    let text = error.to_string();
                    assert!(!is_created && text.contains("the code that was drawn"), "{text}");
                }
            }
        });
        running.shutdown();
    }
}

#[test]
fn a_saved_room_is_found_by_its_code_however_that_is_written() {
    let saves = MemoryStore::new();
    let runtime = runtime();
    let run = |work: &dyn Fn(&Running)| {
        let server = Server::new().room::<Page>("page").store(saves.clone());
        let running = server.start(config()).unwrap();
        work(&running);
        running.shutdown();
    };
    let code = Mutex::new(String::new());
    run(&|running| {
        runtime.block_on(async {
            let ann = connect(running, "Ann").await;
            let creation = Creation::new().private().code();
            let room = ann.create_dynamic("page", creation, None).await.unwrap();
            room.request("Write", &json!({ "text": "Hello" })).await.unwrap();
            *code.lock().unwrap() = room.key().unwrap().to_owned();
        });
    });
    let code = code.into_inner().unwrap();
    let lower = code.to_lowercase();
    let written = [format!("{}-{}", &lower[..3], &lower[3..]), code.clone(), lower];
    // Opened again by one way of writing it, it is found by all.
    for (first, second) in [(0, 1), (1, 2), (2, 0)] {
        run(&|running| {
            runtime.block_on(async {
                let open = async |name, key: &str| {
                    let connection = connect(running, name).await;
                    connection.join_or_create_by_key_dynamic("page", key, None).await.unwrap()
                };
                let ann = open("Ann", &written[first]).await;
                assert_eq!(ann.state()["text"], "Hello");
                assert_eq!(ann.key(), Some(&*code));
                let bob = open("Bob", &written[second]).await;
                assert_eq!(ann.id(), bob.id());
                let cleo = connect(running, "Cleo").await;
                let third = &written[3 - first - second];
                let cleo = cleo.join_by_key_dynamic("page", third).await.unwrap();
                assert_eq!(ann.id(), cleo.id());
            });
        });
    }
    assert_eq!(saves.len(), 1);

    // The same if the program opens it.
    run(&|running| {
        runtime.block_on(async {
            let id = running.handle().find_or_create::<Page>(&code, &()).await.unwrap();
            let ann = connect(running, "Ann").await;
            let ann = ann.join_by_key_dynamic("page", &written[0]).await.unwrap();
            assert_eq!(ann.id(), id);
            ann.request("Write", &json!({ "text": "" })).await.unwrap();
        });
    });

    // Three who write it differently, or a key that is no code, get one room each time.
    for keys in [written, ["market"; 3].map(str::to_owned)] {
        run(&|running| {
            let all: Vec<_> = keys
                .iter()
                .map(|key| {
                    let connection = runtime.block_on(connect(running, "Ann"));
                    let key = key.clone();
                    runtime.spawn(async move {
                        connection.join_or_create_by_key_dynamic("page", &key, None).await.unwrap()
                    })
                })
                .collect();
            let rooms: Vec<_> =
                all.into_iter().map(|room| runtime.block_on(room).unwrap()).collect();
            assert!(rooms.iter().all(|room| room.id() == rooms[0].id()));
            let text = if keys[0] == "market" { "" } else { "Hello" };
            assert_eq!(rooms[0].state()["text"], text);
        });
    }
    assert_eq!(saves.len(), 2);
}

/// Looks up a room by its code, in lower case, from the wake-up that reports it as open.
struct LooksWhenTold {
    handle: NodeHandle,
    code: String,
    found: SyncSender<Option<String>>,
}

impl Wake for LooksWhenTold {
    fn wake(self: Arc<Self>) {
        let found = self.handle.find("page", &self.code.to_lowercase());
        self.found.send(found).unwrap();
    }
}

#[test]
fn a_room_is_in_the_directory_with_its_code_before_the_program_is_told() {
    let saves = MemoryStore::new();
    let runtime = runtime();
    let server = || Server::new().room::<Page>("page").store(saves.clone());
    let running = server().start(config()).unwrap();
    let code = runtime.block_on(async {
        let ann = connect(&running, "Ann").await;
        let room = ann.create_dynamic("page", Creation::new().code(), None).await.unwrap();
        room.request("Write", &json!({ "text": "Hello" })).await.unwrap();
        room.key().unwrap().to_owned()
    });
    running.shutdown();

    let running = server().start(config()).unwrap();
    let mut opening = running.handle().find_or_create::<Page>(&code, &());
    let (found, is_found) = sync_channel(1);
    let waker = Arc::new(LooksWhenTold { handle: running.handle(), code, found }).into();
    let polled = Pin::new(&mut opening).poll(&mut std::task::Context::from_waker(&waker));
    // It may be open already.
    if polled.is_pending() {
        let found = is_found.recv().unwrap();
        assert_eq!(found, Some(opening.wait().unwrap()));
    }
    running.shutdown();
}

#[test]
fn keys_that_only_look_like_codes_stay_apart() {
    let saves = MemoryStore::new();
    let runtime = runtime();
    for round in 0..2 {
        let server = Server::new().room::<Page>("page").store(saves.clone());
        let running = server.start(config()).unwrap();
        runtime.block_on(async {
            let mut rooms = Vec::new();
            for key in ["MARKET", "market", "34-6779", "346-779", "346779"] {
                let connection = connect(&running, "Ann").await;
                let room = connection.join_or_create_by_key_dynamic("page", key, None).await;
                let room = room.unwrap();
                assert_eq!(room.key(), Some(key));
                assert_eq!(room.state()["text"], key.repeat(round));
                room.request("Write", &json!({ "text": key })).await.unwrap();
                rooms.push(room);
            }
        });
        running.shutdown();
    }
    assert_eq!(saves.len(), 5);
}
