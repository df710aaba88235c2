//! A store that is unavailable while a journaled room is created, saved and ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Instant;

use playfield::client::{Connection, Error as ClientError, Room as Joined};
use playfield::prelude::*;
use playfield::store::{
    Completion, Fence, Loaded, MemoryStore, Opened, Store, StoreError, StoreErrorKind, Stored,
};
use playfield::{Config, ErrorCode, LevelFilter, Running, Server, Upgrade, client};

use super::PATIENCE;
use super::panics::Score;

#[derive(State, Default)]
struct Purse {
    coins: u64,
}

#[derive(Message)]
#[reply(u64)]
struct Put(u64);

#[room(messages(Put), closing_ms = 100, empty_ms = 60_000, persist = 1, durability = journal)]
impl Room for Purse {}

impl Handle<Put> for Purse {
    fn handle(&mut self, Put(coins): Put, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.coins += coins;
        Ok(self.coins)
    }
}

/// A store that can be unavailable, and reports each operation.
#[derive(Clone)]
struct Away {
    saves: MemoryStore,
    is_away: Arc<AtomicBool>,
    says: SyncSender<&'static str>,
}

impl Away {
    fn new() -> (Self, Receiver<&'static str>) {
        let (says, said) = sync_channel(10_000);
        (Self { saves: MemoryStore::new(), is_away: Arc::default(), says }, said)
    }

    fn goes(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    fn answer<T: Send + 'static>(&self, what: &'static str, done: Stored<T>) -> Stored<T> {
        if !self.is_away.load(Ordering::SeqCst) {
            let _ = self.says.send(what);
            return done;
        }
        let _ = self.says.send("away");
        let error = StoreError::new(StoreErrorKind::Away, "the database can't be reached");
        Box::pin(std::future::ready(Err(error)))
    }
}

impl Store for Away {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        self.answer("opened", self.saves.open(room_type, key))
    }
    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        self.saves.close(room_type, key, fence);
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.answer("loaded", self.saves.load(room_type, key))
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        if !self.is_away.load(Ordering::SeqCst) {
            self.saves.save(room_type, key, fence, bytes, done);
            let _ = self.says.send("saved");
            return;
        }
        let _ = self.says.send("away");
        let text = "the database can't be reached";
        done.complete(Err(StoreError::new(StoreErrorKind::Away, text)));
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.answer("removed", self.saves.remove(room_type, key, fence))
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.answer("keys", self.saves.keys(room_type, after, limit))
    }
}

/// The folder of a journal, which is removed when dropped.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let name = format!("playfield-journal-away-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// Starts a node that allows frequent joins.
    pub(super) fn start(&self, store: impl Store + 'static) -> Running {
        let mut config =
            Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
        config.log = LevelFilter::Off;
        config.journal.folder = self.0.clone();
        for limit in ["session.rooms_created", "address.rooms_created", "address.joins"] {
            config.set(&format!("limits.{limit}"), "{ per_minute = 1000000 }").unwrap();
        }
        let server = Server::new().room::<Purse>("purse").room::<Score>("score");
        server.store(store).start(config).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(super) async fn connect(running: &Running) -> Connection {
    client::connect(&format!("tcp://{}", running.local_addr())).await.unwrap()
}

async fn join(connection: &Connection) -> std::result::Result<Joined<Purse>, ClientError> {
    connection.join_or_create_by_key::<Purse>("purse", "one", &()).await
}

/// Joins as soon as the key is free.
pub(super) async fn join_when_free<T>(
    join: impl AsyncFn() -> std::result::Result<T, ClientError>,
) -> T {
    let by = Instant::now() + PATIENCE;
    loop {
        match join().await {
            Ok(room) => return room,
            Err(error) => assert_eq!(error.code(), Some(ErrorCode::Busy), "{error}"),
        }
        assert!(Instant::now() < by, "the key becomes free");
        tokio::task::yield_now().await;
    }
}

/// Waits until the store has said this.
fn wait_for(said: &Receiver<&'static str>, what: &str) {
    while said.recv_timeout(PATIENCE).expect("the store is used") != what {}
}

/// Has a room with 7 coins end while the store is away, and then its node.
fn end_while_away(folder: &Folder, store: &Away) {
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let room = join(&connect(&running).await).await.unwrap();
        assert_eq!(room.request(Put(7)).await.unwrap(), 7);
        store.goes(true);
        running.handle().close(room.id(), "over").unwrap();
        while room.changed().await.is_ok() {}
    });
    running.shutdown();
}

/// The coins in the save.
fn coins(store: &Away) -> u64 {
    let save = store.saves.get("purse", "one").expect("it is saved");
    playfield_state::load::<Purse>(&save).unwrap().coins
}

#[test]
fn a_room_that_is_created_while_the_store_is_away_can_be_joined_once_it_is_back() {
    let (store, _said) = Away::new();
    let folder = Folder::new("created");
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let ann = connect(&running).await;
        store.goes(true);
        let refused = join(&ann).await.expect_err("it can't be loaded");
        assert_eq!(refused.code(), Some(ErrorCode::Busy));
        let text = refused.to_string();
        for part in ["purse \"one\"", "can't be loaded now", "try again later"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        store.goes(false);
        let room = join(&ann).await.unwrap();
        assert_eq!(room.request(Put(1)).await.unwrap(), 1);
    });
    running.shutdown();
}

#[test]
fn a_room_goes_on_while_the_store_is_away_and_is_saved_once_it_is_back() {
    let (store, said) = Away::new();
    let folder = Folder::new("saved");
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = join(&ann).await.unwrap();
        store.goes(true);
        assert_eq!(room.request(Put(1)).await.unwrap(), 1);
        wait_for(&said, "away");
        assert_eq!(room.request(Put(2)).await.unwrap(), 3);
        store.goes(false);
        wait_for(&said, "saved");
    });
    assert_eq!(coins(&store), 3);
    running.shutdown();
}

#[test]
fn a_node_starts_while_the_store_is_away_and_saves_a_room_that_was_ending_once_it_is_back() {
    let (store, _said) = Away::new();
    let folder = Folder::new("ending");
    end_while_away(&folder, &store);
    // The second process finds the room in the journal of the first.
    for _ in 0..2 {
        let running = folder.start(store.clone());
        runtime().block_on(async {
            let refused = join(&connect(&running).await).await.expect_err("it is not saved");
            let text = refused.to_string();
            assert_eq!(refused.code(), Some(ErrorCode::Busy), "{text}");
            assert!(text.contains("not saved yet"), "{text}");
        });
        running.shutdown();
    }
    let running = folder.start(store.clone());
    store.goes(false);
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = join_when_free(async || join(&ann).await).await;
        assert_eq!(room.state().coins, 7, "nothing is lost");
        assert_eq!(room.request(Put(1)).await.unwrap(), 8);
    });
    running.shutdown();
    assert_eq!(coins(&store), 8);
}

#[test]
fn a_room_that_was_ending_does_not_replace_a_newer_save() {
    let (store, _said) = Away::new();
    let folder = Folder::new("newer");
    end_while_away(&folder, &store);
    // Another node has the room meanwhile.
    let newer = playfield_state::save(&Purse { coins: 100 });
    runtime().block_on(async {
        let Opened { fence, .. } = store.saves.open("purse", "one").await.unwrap();
        store.saves.save_and_wait("purse", "one", fence, newer).await.unwrap();
    });
    let running = folder.start(store.clone());
    store.goes(false);
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = join_when_free(async || join(&ann).await).await;
        assert_eq!(room.state().coins, 100);
    });
    running.shutdown();
}

#[test]
fn the_key_of_a_room_that_ended_while_the_store_was_away_is_free_once_it_is_back() {
    let (store, said) = Away::new();
    let folder = Folder::new("ended");
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = join(&ann).await.unwrap();
        assert_eq!(room.request(Put(7)).await.unwrap(), 7);
        store.goes(true);
        running.handle().close(room.id(), "over").unwrap();
        while room.changed().await.is_ok() {}
        // Joins wait until it has ended.
        let refused = join(&ann).await.expect_err("its last state is not saved");
        let text = refused.to_string();
        assert_eq!(refused.code(), Some(ErrorCode::Busy), "{text}");
        for part in ["\"purse\" \"one\"", "not saved yet", "Try again later"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
        // A new process would not know about it.
        let order = Upgrade { binary: Some("/bin/false".into()), arguments: None };
        let refused = running.handle().upgrade(&order).expect_err("it would be lost");
        assert!(refused.to_string().contains("are not saved yet"), "{refused}");
        store.goes(false);
        wait_for(&said, "saved");
        let room = join_when_free(async || join(&ann).await).await;
        assert_eq!(room.state().coins, 7, "nothing is lost");
        assert_eq!(room.request(Put(1)).await.unwrap(), 8);
    });
    running.shutdown();
    // The journal does not bring back the earlier state.
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = join(&ann).await.unwrap();
        assert_eq!(room.state().coins, 8);
        // Unavailable at the node's end, too.
        assert_eq!(room.request(Put(2)).await.unwrap(), 10);
        store.goes(true);
        running.handle().close(room.id(), "over").unwrap();
        while room.changed().await.is_ok() {}
        assert!(join(&ann).await.is_err());
    });
    running.shutdown();
    store.goes(false);
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let room = join(&connect(&running).await).await.unwrap();
        assert_eq!(room.state().coins, 10, "the journal has it");
    });
    running.shutdown();
}
