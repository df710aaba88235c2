//! A store that completes no save while its node is to be upgraded.

use std::sync::Mutex;

use playfield::Server;
use playfield::store::{Completion, Fence, Loaded, MemoryStore, Opened, Store, StoreError, Stored};

use crate::node::{Node, serve_stored};
use crate::players::Manual;
use crate::rooms::Ledger;

/// A store that keeps each save to itself.
#[derive(Default)]
struct Still {
    saves: MemoryStore,
    kept: Mutex<Vec<Completion>>,
}

impl Store for Still {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        self.saves.open(room_type, key)
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.saves.load(room_type, key)
    }
    fn save(&self, _: &str, _: &str, _: Fence, _: Vec<u8>, done: Completion) {
        self.kept.lock().unwrap().push(done);
        println!("\nsaves");
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.saves.remove(room_type, key, fence)
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.saves.keys(room_type, after, limit)
    }
    fn release(&self) -> std::result::Result<(), StoreError> {
        println!("\nreleased");
        Ok(())
    }
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_whose_store_stands_still() {
    serve_stored(2, Server::new().room::<Ledger>("ledger").store(Still::default()));
}

#[test]
fn an_upgrade_is_refused_before_rooms_stop_while_the_store_completes_no_saves() {
    let mut node = Node::start_program("stores::node_whose_store_stands_still", "");
    let mut client = Manual::join(&node);
    assert_eq!(client.count(1, 1), 1);
    node.says(&["saves"]);
    for number in 2..4 {
        let answer = node.upgrade("node");
        for part in ["failed the store has saves of rooms", "timeouts.freeze_wait = 1s"] {
            assert!(answer.contains(part), "{part} is missing in: {answer}");
        }
        assert_eq!(client.count(1, number), number);
    }
    let released = node.lines.try_iter().any(|line| line == "released");
    assert!(!released, "rooms had stopped");
}
