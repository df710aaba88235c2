//! Journaled rooms in the console of a real node: live or ended, they are shown like recordings.

use playfield::Server;
use playfield::client::{Connection, Dynamic, Room as Joined};
use playfield::prelude::*;
use playfield::store::MemoryStore;
use serde_json::{Value, json};

use super::node::Node;
use super::runtime;

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

/// A node with a journal in its folder. Its recordings have none.
fn start(name: &str) -> Node {
    let server = || Server::new().room::<Ledger>("ledger").store(MemoryStore::new());
    Node::start(name, "journal.folder", server)
}

async fn join(node: &Node, key: &str) -> (Connection, Joined<Dynamic>) {
    let connection = node.connect("ann").await;
    let room = connection.join_or_create_by_key_dynamic("ledger", key, None).await.unwrap();
    (connection, room)
}

/// The only entry of a room in the list.
fn listed(node: &Node, room: &str) -> Value {
    let list = node.ok(&format!("recordings?find={room}"));
    assert_eq!(list["count"], json!(1), "{list}");
    list["recordings"][0].clone()
}

/// Adds the numbers from 1 on.
async fn add(room: &Joined<Dynamic>, until: u32) {
    for number in 1..=until {
        room.request("Add", &json!({ "number": number })).await.unwrap();
    }
}

#[test]
fn a_journaled_room_is_listed_and_shown_while_it_lives_and_after_its_end() {
    let node = start("journal-shown");
    runtime().block_on(async {
        let (_ann, room) = join(&node, "one").await;
        let (_bob, other) = join(&node, "two").await;
        let id = room.id().to_owned();
        add(&room, 9).await;
        add(&other, 3).await;
        let shown = node.ok(&format!("rooms/{id}"));
        assert_eq!((&shown["recording"], &shown["journaled"]), (&Value::Null, &json!(true)));
        assert_eq!(node.ok("recordings")["count"], json!(2));

        let entry = listed(&node, &id);
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
        let (status, forked) = node.post(&format!("{recording}/fork"), &json!({ "input": from }));
        assert_eq!(status, 200, "{forked}");
        let fork = node.ok(&format!("rooms/{}", forked["room"].as_str().unwrap()));
        assert_eq!(fork["state"]["total"], json!(45));

        // The room ends.
        assert_eq!(node.post(&format!("rooms/{id}/close"), &json!({})).0, 200);
        while listed(&node, &id)["end"].is_null() {
            tokio::task::yield_now().await;
        }
        assert_eq!(listed(&node, &id)["end"], json!("the room ended"));
        let last = node.ok(&recording)["last"]["input"].as_u64().unwrap();
        let shown = node.ok(&format!("{recording}/frames?input={from}&count=0"));
        assert_eq!(shown["begin"]["state"]["total"], json!(45));
        assert!(last > from);

        // The other continues, and the error names a room that does not exist.
        assert_eq!(listed(&node, other.id())["end"], Value::Null);
        let (status, answer) = node.get(&format!("recordings/{file}/none"));
        let why = answer["error"].as_str().unwrap();
        assert!(status == 404 && why.contains("nothing of the room \"none\""), "{answer}");
    });
}
