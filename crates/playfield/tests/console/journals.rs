//! Journaled rooms in the console of a real node: live or ended, they are shown like recordings.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use playfield::client::{Connection, Dynamic, Room as Joined};
use playfield::prelude::*;
use playfield::store::MemoryStore;
use playfield::{Running, Server};
use serde_json::{Value, json};

use super::{api, runtime, start_with};

/// Counts; a note is its owner's, the total nobody's.
#[derive(State, Default)]
struct Ledger {
    counts: Map<PlayerId, Count>,
    #[sync(hidden)]
    total: u32,
}

#[derive(State, Default)]
struct Count {
    count: u32,
    #[sync(owner)]
    note: u32,
}

#[derive(Message)]
#[reply(u32)]
struct Add {
    number: u32,
}

#[room(messages(Add), sync_hz = 60, persist = 1, durability = journal)]
impl Room for Ledger {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.counts.insert(player.id(), Count::default());
        Ok(())
    }
}

impl Handle<Add> for Ledger {
    fn handle(&mut self, Add { number }: Add, of: &Player, _: &mut Context<Self>) -> Result<u32> {
        if let Some(count) = self.counts.get_mut(&of.id()) {
            count.count += number;
            count.note = number;
        }
        self.total += number;
        Ok(self.total)
    }
}

/// A node with a journal in a folder, which is removed when dropped. Its recordings have none.
struct Node {
    running: Option<Running>,
    console: SocketAddr,
    folder: PathBuf,
}

impl Node {
    fn start(name: &str) -> Self {
        let name = format!("playfield-console-journal-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let settings = [("journal.folder", folder.to_str().unwrap())];
        let server = || Server::new().room::<Ledger>("ledger").store(MemoryStore::new());
        let (running, console) = start_with(&settings, server);
        Self { running: Some(running), console, folder }
    }

    fn ok(&self, path: &str) -> Value {
        let (status, shown) = api(self.console, &format!("GET /api/{path}"), &Value::Null);
        assert_eq!(status, 200, "{path}: {shown}");
        shown
    }

    async fn join(&self, key: &str) -> (Connection, Joined<Dynamic>) {
        let url = format!("tcp://{}", self.running.as_ref().unwrap().local_addr());
        let connection = playfield::client::connect(&url).name("ann").await.unwrap();
        let room = connection.join_or_create_by_key_dynamic("ledger", key, None).await.unwrap();
        (connection, room)
    }

    /// The only entry of a room in the list.
    fn listed(&self, room: &str) -> Value {
        let list = self.ok(&format!("recordings?find={room}"));
        assert_eq!(list["count"], json!(1), "{list}");
        list["recordings"][0].clone()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Adds the numbers from 1 on.
async fn add(room: &Joined<Dynamic>, until: u32) {
    for number in 1..=until {
        room.request("Add", &json!({ "number": number })).await.unwrap();
    }
}

#[test]
fn a_journaled_room_is_listed_and_shown_while_it_lives_and_after_its_end() {
    let node = Node::start("shown");
    runtime().block_on(async {
        let (_ann, room) = node.join("one").await;
        let (_bob, other) = node.join("two").await;
        let id = room.id().to_owned();
        add(&room, 9).await;
        add(&other, 3).await;
        let shown = node.ok(&format!("rooms/{id}"));
        assert_eq!((&shown["recording"], &shown["journaled"]), (&Value::Null, &json!(true)));
        assert_eq!(node.ok("recordings")["count"], json!(2));

        let entry = node.listed(&id);
        let file = entry["file"].as_str().unwrap();
        assert!(file.ends_with("-0.journal") || file.ends_with("-1.journal"), "{entry}");
        assert_eq!((&entry["key"], &entry["end"]), (&json!("one"), &Value::Null), "{entry}");
        assert!(entry["began_ms"].as_u64() > Some(1_600_000_000_000), "{entry}");
        assert!(entry["bytes"].as_u64() > Some(100), "{entry}");
        let recording = format!("recordings/{file}/{id}");
        let facts = node.ok(&recording);
        assert_eq!((&facts["type"], &facts["fault"]), (&json!("ledger"), &Value::Null));

        // Checks the effect of each request, and her view.
        let mut from = facts["first"]["input"].as_u64().unwrap();
        for number in 1..=9 {
            let search = format!("{recording}/search?for=change&path=/total&from={from}");
            from = node.ok(&search)["found"]["input"].as_u64().unwrap();
            let moment = format!("{recording}/frames?input={from}&before=1&count=50&as=1");
            let shown = node.ok(&moment);
            assert_eq!(shown["difference"], Value::Null, "{shown}");
            let frame = &shown["frames"][0];
            assert_eq!(frame["messages"][0]["value"], json!({ "number": number }), "{frame}");
            let total: u32 = (1..=number).sum();
            let new = |path: &[&str], changes: &Value| {
                let changes = changes.as_array().unwrap().clone();
                let change = changes.into_iter().find(|change| change["path"] == json!(path));
                change.map(|change| change["new"].clone())
            };
            assert_eq!(new(&["total"], &frame["changes"]), Some(json!(total)), "{frame}");
            let frames = shown["frames"].as_array().unwrap();
            let note = |frame: &Value| new(&["counts", "1", "note"], &frame["view_changes"]);
            if let Some(note) = frames.iter().find_map(note) {
                assert!(note.as_u64() >= Some(number.into()), "{shown}");
            }
            assert!(shown["begin"]["view"]["total"].is_null(), "it is hidden");
        }

        // Continues as a separate room.
        let fork = format!("POST /api/{recording}/fork");
        let (status, forked) = api(node.console, &fork, &json!({ "input": from }));
        assert_eq!(status, 200, "{forked}");
        let fork = node.ok(&format!("rooms/{}", forked["room"].as_str().unwrap()));
        assert_eq!(fork["state"]["total"], json!(45));

        // The room ends.
        let close = format!("POST /api/rooms/{id}/close");
        assert_eq!(api(node.console, &close, &json!({})).0, 200);
        while node.listed(&id)["end"].is_null() {
            tokio::task::yield_now().await;
        }
        assert_eq!(node.listed(&id)["end"], json!("the room ended"));
        let last = node.ok(&recording)["last"]["input"].as_u64().unwrap();
        let shown = node.ok(&format!("{recording}/frames?input={from}&count=0"));
        assert_eq!(shown["begin"]["state"]["total"], json!(45));
        assert!(last > from);

        // The other continues, and the error names a room that does not exist.
        assert_eq!(node.listed(other.id())["end"], Value::Null);
        let (status, answer) =
            api(node.console, &format!("GET /api/recordings/{file}/none"), &Value::Null);
        let why = answer["error"].as_str().unwrap();
        assert!(status == 404 && why.contains("nothing of the room \"none\""), "{answer}");
    });
}
