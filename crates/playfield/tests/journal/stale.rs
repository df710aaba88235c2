//! A journal that is older than the saves in the store: another process has saved its rooms since.

use std::fs;
use std::path::{Path, PathBuf};

use playfield::prelude::*;
use playfield::store::MemoryStore;
use playfield::{Accepts, Config, LevelFilter, Running, Server};

use super::away::{connect, runtime};

#[derive(Message)]
#[reply(u64)]
struct Put(u64);

/// A purse with a journal. It is saved at its end.
#[derive(State, Default)]
struct Purse {
    coins: u64,
}

#[room(messages(Put), empty_ms = 600_000, persist = 600, durability = journal)]
impl Room for Purse {}

impl Handle<Put> for Purse {
    fn handle(&mut self, Put(coins): Put, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.coins += coins;
        Ok(self.coins)
    }
}

/// The same room of a build without a journal.
mod plain {
    use playfield::prelude::*;

    use super::Put;

    #[derive(State, Default)]
    pub(super) struct Purse {
        coins: u64,
    }

    #[room(messages(Put), empty_ms = 600_000, persist = 600)]
    impl Room for Purse {}

    impl Handle<Put> for Purse {
        fn handle(&mut self, Put(coins): Put, _: &Player, _: &mut Context<Self>) -> Result<u64> {
            self.coins += coins;
            Ok(self.coins)
        }
    }
}

/// The folder of a journal, which is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("playfield-journal-stale-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn start(&self, store: &MemoryStore) -> Running {
        let mut config = config();
        config.journal.folder = self.0.clone();
        Server::new().room::<Purse>("purse").store(store.clone()).start(config).unwrap()
    }

    fn kept(&self) -> usize {
        fs::read_dir(self.0.join("kept")).map_or(0, Iterator::count)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn config() -> Config {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 1, ..Config::default() };
    config.log = LevelFilter::Off;
    config
}

fn start_plain(store: &MemoryStore) -> Running {
    Server::new().room::<plain::Purse>("purse").store(store.clone()).start(config()).unwrap()
}

/// Puts coins into a purse. Returns how many are in it then.
fn put<R: Room<Options = ()> + Default + Sync + Accepts<Put>>(
    running: &Running,
    coins: u64,
) -> u64 {
    runtime().block_on(async {
        let connection = connect(running).await;
        let room = connection.join_or_create_by_key::<R>("purse", "one", &()).await.unwrap();
        room.request(Put(coins)).await.unwrap()
    })
}

/// Copies the files of a folder in their current state, as a crash would leave them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            // A file that no room needs any more may be removed in the meantime.
            let _ = fs::copy(entry.path(), to.join(entry.file_name()));
        }
    }
}

#[test]
fn a_save_that_is_newer_than_the_journal_is_not_overwritten() {
    for was_saved in [false, true] {
        let store = MemoryStore::new();
        let (folder, crashed) = (Folder::new("folder"), Folder::new("crashed"));
        if was_saved {
            let running = folder.start(&store);
            assert_eq!(put::<Purse>(&running, 1), 1);
            running.shutdown();
        }
        let running = folder.start(&store);
        let before = put::<Purse>(&running, 5);
        copy(&folder.0, &crashed.0);
        running.shutdown();
        let running = start_plain(&store);
        assert_eq!(put::<plain::Purse>(&running, 100), before + 100);
        running.shutdown();
        let running = crashed.start(&store);
        assert_eq!(put::<Purse>(&running, 0), before + 100);
        running.shutdown();
        assert_eq!(crashed.kept(), 1);
        // The old state does not come back later, either.
        let running = crashed.start(&store);
        assert_eq!(put::<Purse>(&running, 0), before + 100);
        running.shutdown();
    }
}

#[test]
fn a_journal_goes_on_if_the_store_has_a_save_that_it_knows() {
    for was_saved in [false, true] {
        let store = MemoryStore::new();
        let (folder, crashed) = (Folder::new("own"), Folder::new("own-crashed"));
        if was_saved {
            let running = folder.start(&store);
            assert_eq!(put::<Purse>(&running, 1), 1);
            running.shutdown();
        }
        let save = store.get("purse", "one");
        let running = folder.start(&store);
        let before = put::<Purse>(&running, 5);
        copy(&folder.0, &crashed.0);
        running.shutdown();
        // Restores the state at the crash.
        let store = MemoryStore::new();
        save.into_iter().for_each(|save| store.set("purse", "one", save));
        let running = crashed.start(&store);
        assert_eq!(put::<Purse>(&running, 0), before, "only the journal has it");
        running.shutdown();
        assert_eq!(crashed.kept(), 0);
    }
}
