//! Recordings in the console of a real node: any moment is shown as it was, to operators and as a
//! player saw it.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;

use playfield::client::{Connection, Dynamic, Room as Joined};
use playfield::prelude::*;
use playfield::{ErrorCode, Server};
use serde_json::{Value, json};

use super::node::Node;
use super::{api, ask, runtime, start_with};

/// A game that is never at rest: everyone sees the tick and the scores, a hand is its owner's, and
/// the luck nobody's.
#[derive(State, Default)]
struct Game {
    tick: u64,
    players: Map<PlayerId, Gambler>,
    #[sync(hidden)]
    luck: u32,
}

#[derive(State, Default)]
struct Gambler {
    score: u32,
    #[sync(owner)]
    hand: List<u8>,
}

/// Draws a card. 13 is an internal error.
#[derive(Message)]
#[reply(u8)]
struct Draw {
    least: u8,
}

#[derive(Message)]
struct Drawn {
    cards: u32,
}

/// The states of rooms after each tick, by their ids. A replay finds its ticks here.
static TICKS: Mutex<BTreeMap<(String, u64), Value>> = Mutex::new(BTreeMap::new());

/// The room that another build runs: one in which a card counts one more.
static OTHER_BUILD: Mutex<String> = Mutex::new(String::new());

#[room(tick_hz = 50, messages(Draw), events(Drawn), capacity = 4)]
impl Room for Game {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), Gambler::default());
        Ok(())
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        self.tick = cx.tick();
        self.luck = cx.rng().below(1_000) as u32;
        let state = playfield_state::saved_as_json(&playfield::save(self)).unwrap();
        let mut ticks = TICKS.lock().unwrap();
        ticks.entry((cx.room_id().to_owned(), self.tick)).or_insert(state);
    }
}

impl Handle<Draw> for Game {
    fn handle(&mut self, draw: Draw, player: &Player, cx: &mut Context<Self>) -> Result<u8> {
        if draw.least == 13 {
            return Err(Error::new(ErrorCode::Internal, "13 brings no luck"));
        }
        let card = draw.least + cx.rng().below(10) as u8;
        if let Some(gambler) = self.players.get_mut(&player.id()) {
            let is_other = *OTHER_BUILD.lock().unwrap() == cx.room_id();
            gambler.score += u32::from(card) + u32::from(is_other);
            gambler.hand.push(card);
            let cards = gambler.hand.len() as u32;
            cx.emit_to(player.id(), &Drawn { cards });
        }
        Ok(card)
    }
}

/// A node whose recordings are in its folder.
fn start(name: &str) -> Node {
    Node::start(name, "recordings.folder", || Server::new().room::<Game>("game"))
}

async fn join(node: &Node, name: &str) -> (Connection, Joined<Dynamic>) {
    let connection = node.connect(name).await;
    let room = connection.join_or_create_dynamic("game", None).await.unwrap();
    (connection, room)
}

/// The recording of a room, once it is whole.
fn recorded(node: &Node, room: &str) -> Value {
    loop {
        let list = node.ok(&format!("recordings?find={room}"));
        if let Some(first) = list["recordings"].get(0).filter(|first| first["end"].is_string()) {
            return first.clone();
        }
        std::thread::yield_now();
    }
}

/// Plays until a tick is over. Returns what a client had, by the tick that it shows.
async fn watch(room: &Joined<Dynamic>, until: u64) -> BTreeMap<u64, Value> {
    let mut seen = BTreeMap::new();
    loop {
        let copy = room.state().clone();
        let tick = copy["tick"].as_u64().unwrap();
        seen.insert(tick, copy);
        if tick >= until {
            return seen;
        }
        room.changed().await.unwrap();
    }
}

/// A recording of a scripted game, and what a client and the room had.
struct Scripted {
    node: Node,
    room: String,
    file: String,
    anns: BTreeMap<u64, Value>,
}

fn scripted(name: &str) -> Scripted {
    let node = start(name);
    runtime().block_on(async {
        let (_ann, room) = join(&node, "ann").await;
        let id = room.id().to_owned();
        let (_, shown) = node.get(&format!("rooms/{id}"));
        assert_eq!(shown["recording"], json!(false), "{shown}");
        assert_eq!(node.post(&format!("rooms/{id}/record"), &json!({ "records": true })).0, 200);
        let (_, shown) = node.get(&format!("rooms/{id}"));
        assert_eq!(shown["recording"], json!(true), "{shown}");
        let mut anns = watch(&room, 5).await;
        let (_bob, bobs) = join(&node, "bob").await;
        for least in 1..=4 {
            room.request("Draw", &json!({ "least": least })).await.unwrap();
            let tick = room.state()["tick"].as_u64().unwrap();
            anns.extend(watch(&room, tick + 3).await);
            bobs.request("Draw", &json!({ "least": 20 })).await.unwrap();
        }
        bobs.request("Draw", &json!({ "least": 13 })).await.unwrap_err();
        let tick = room.state()["tick"].as_u64().unwrap();
        anns.extend(watch(&room, tick + 5).await);
        node.post(&format!("rooms/{id}/record"), &json!({ "records": false }));
        let file = recorded(&node, &id)["file"].as_str().unwrap().to_owned();
        Scripted { node, room: id, file, anns }
    })
}

impl Scripted {
    fn get(&self, rest: &str) -> (u16, Value) {
        self.node.get(&format!("recordings/{}/{}{rest}", self.file, self.room))
    }

    fn ok(&self, rest: &str) -> Value {
        self.node.ok(&format!("recordings/{}/{}{rest}", self.file, self.room))
    }
}

/// Makes of a value what the changes in an answer say. Lists only grow here.
fn apply(value: &mut Value, changes: &Value) {
    for change in changes.as_array().unwrap() {
        let mut at = &mut *value;
        for step in change["path"].as_array().unwrap() {
            at = match (step, at) {
                (Value::String(name), at) => &mut at[name],
                (Value::Number(index), Value::Array(list)) => {
                    let index = index.as_u64().unwrap() as usize;
                    if index == list.len() {
                        list.push(Value::Null);
                    }
                    &mut list[index]
                }
                other => panic!("{other:?}"),
            };
        }
        *at = change["new"].clone();
    }
}

#[test]
fn any_tick_is_shown_as_it_was_and_as_a_player_saw_it() {
    let of = scripted("ticks");
    let facts = of.ok("");
    assert_eq!((&facts["type"], &facts["why"]), (&json!("game"), &json!("on request")));
    assert_eq!((&facts["fault"], &facts["other_schema"]), (&Value::Null, &json!(false)));
    let tick = |of: &Value| of["tick"].as_u64().unwrap();
    let (first, last) = (tick(&facts["first"]), tick(&facts["last"]));
    assert!(last >= first + 10, "{facts}");
    let lived = |tick| TICKS.lock().unwrap().get(&(of.room.clone(), tick)).cloned();
    let mut seen = 0;
    for tick in first + 1..=last {
        // A node that is late leaves ticks out.
        let Some(lived) = lived(tick) else { continue };
        let shown = of.ok(&format!("/frames?tick={tick}&before=1&count=2&as=1"));
        let frames = shown["frames"].as_array().unwrap();
        assert_eq!(shown["verified"], json!(true), "{shown}");
        let (mut state, mut view) =
            (shown["begin"]["state"].clone(), shown["begin"]["view"].clone());
        apply(&mut state, &frames[0]["changes"]);
        apply(&mut view, &frames[0]["view_changes"]);
        assert_eq!((&frames[0]["input"], &frames[0]["tick"]), (&shown["input"], &json!(tick)));
        assert_eq!(state, lived, "tick {tick}");
        // The sync that follows takes it to the players.
        for frame in &frames[1..] {
            apply(&mut view, &frame["view_changes"]);
            if frame["inputs"][0]["kind"] == "sync" {
                break;
            }
        }
        if let Some(had) = of.anns.get(&tick).filter(|_| view["tick"] == tick) {
            assert_eq!(view, *had, "tick {tick}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "the client had {seen} of the ticks");
}

#[test]
fn what_happened_is_found_and_who_did_it() {
    let of = scripted("search");
    let found = |query: &str| {
        let answer = of.ok(&format!("/search?{query}"));
        assert!(answer["until"].is_null(), "{answer}");
        answer["found"]["input"].as_u64()
    };
    let first = of.ok("")["first"]["input"].as_u64().unwrap();
    // The part kept in memory begins with Ann's join.
    let anns = found(&format!("for=input&from={first}")).unwrap();
    let join = found(&format!("for=input&from={anns}")).unwrap();
    let shown = of.ok(&format!("/frames?input={join}&before=1&count=0"));
    let frame = &shown["frames"][0];
    let input = json!({ "kind": "join", "player": 2, "text": "bob", "message": null });
    assert_eq!(frame["inputs"], json!([input]));
    assert_eq!(frame["seats"][1]["name"], json!("bob"));
    let draw = found(&format!("for=input&from={join}&player=1")).unwrap();
    let shown = of.ok(&format!("/frames?input={draw}&before=1&count=0&as=1"));
    let frame = &shown["frames"][0];
    let message = |at: usize| {
        let message = &frame["messages"][at];
        (message["kind"].clone(), message["name"].clone(), message["value"].clone())
    };
    assert_eq!(message(0), (json!("request"), json!("Draw"), json!({ "least": 1 })));
    assert_eq!(message(1), (json!("event"), json!("Drawn"), json!({ "cards": 1 })));
    assert_eq!(message(2).0, json!("reply"));
    let card = &message(2).2;
    let score =
        json!({ "path": ["players", "1", "score"], "kind": "changed", "old": 0, "new": card });
    assert!(frame["changes"].as_array().unwrap().contains(&score), "{frame}");
    // Events to others are not the viewer's.
    let shown = of.ok(&format!("/frames?input={draw}&before=1&count=0&as=2"));
    assert_eq!(shown["frames"][0]["messages"].as_array().unwrap().len(), 1, "{shown}");
    let change = format!("for=change&from={join}&path=/players/1/score");
    assert_eq!(found(&change), Some(draw));
    assert_eq!(found(&format!("for=change&from={first}&path=/players/7")), None);
    assert_eq!(found(&format!("for=input&back&from={draw}")), Some(join));
    let error = found(&format!("for=internal&from={first}")).unwrap();
    assert_eq!(found(&format!("for=error&from={first}")), Some(error));
    let shown = of.ok(&format!("/frames?input={error}&before=1&count=0"));
    let refusal = &shown["frames"][0]["messages"][1];
    assert_eq!(
        (&refusal["kind"], &refusal["value"]),
        (&json!("error"), &json!("13 brings no luck"))
    );
    assert_eq!(found(&format!("for=difference&from={first}")), None);
}

#[test]
fn a_recording_that_is_not_there_or_damaged_is_refused_in_one_sentence() {
    let of = scripted("damage");
    let Scripted { node, room, file, .. } = &of;
    let path = node.folder.join(file);
    let bytes = fs::read(&path).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(node.folder.join(name), bytes).unwrap();
    let flipped = |at: usize| {
        let mut flipped = bytes.clone();
        flipped[at] ^= 4;
        flipped
    };
    write("begin.rec", &flipped(40));
    write("end.rec", &flipped(bytes.len() - 10));
    write("cut.rec", &bytes[..bytes.len() - 10]);
    write("no.rec", b"no");
    write("other.txt", &bytes);
    write("long.rec", &bytes);
    let long = fs::OpenOptions::new().write(true).open(node.folder.join("long.rec")).unwrap();
    long.set_len((256 << 20) + 1).unwrap();
    fs::create_dir(node.folder.join("folder.rec")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&path, node.folder.join("link.rec")).unwrap();
    for (name, status, why) in [
        ("begin.rec", 400, "begin.rec: block 0, at byte 8, is damaged"),
        ("no.rec", 400, "do not begin with"),
        ("long.rec", 400, "`replay long.rec --max-bytes 268435457` runs it"),
        ("none.rec", 404, "is not in the folder"),
        ("folder.rec", 404, "is not in the folder"),
        ("link.rec", 404, "is not in the folder"),
        ("other.txt", 400, "is not the name of a recording"),
        ("..%2F..%2Fetc%2Fpasswd", 400, "is not the name of a recording"),
        ("..%2Fa.rec", 400, "is not the name of a recording"),
        ("%2Fetc%2Fa.rec", 400, "is not the name of a recording"),
    ] {
        let (got, answer) = node.get(&format!("recordings/{name}/{room}"));
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(why), "{name}: {answer}");
        assert_eq!(got, status, "{name}: {answer}");
    }
    for name in ["end.rec", "cut.rec"] {
        let (status, facts) = node.get(&format!("recordings/{name}/{room}"));
        let fault = facts["fault"].as_str().unwrap();
        assert!(status == 200 && fault.contains(", at byte "), "{name}: {facts}");
    }
    assert_eq!(node.get(&format!("recordings/{file}/elsewhere")).0, 404);
    let (_, list) = node.get("recordings");
    assert_eq!(list["count"], json!(6), "{list}");
    let entry = |name: &str| {
        let all = list["recordings"].as_array().unwrap();
        all.iter().find(|of| of["file"] == name).unwrap().clone()
    };
    assert_eq!((&entry(file)["room"], &entry(file)["type"]), (&json!(room), &json!("game")));
    assert!(entry(file)["length_ms"].as_u64() > Some(100), "{list}");
    let too_large = entry("long.rec")["too_large"].as_str().unwrap().to_owned();
    assert!(too_large.contains("`replay long.rec --max-bytes 268435457` runs it"), "{list}");
    assert!(entry(file)["too_large"].is_null(), "{list}");
    assert!(entry("no.rec")["error"].is_string() && entry("cut.rec")["end"].is_null());
    for (rest, status) in [
        ("/frames", 400),
        ("/frames?input=0&tick=0", 400),
        ("/frames?input=999999", 400),
        ("/frames?tick=999999", 400),
        ("/frames?input=0&count=1001", 400),
        ("/frames?input=0&before=201", 400),
        ("/frames?input=0&every_ms=60001", 400),
        ("/frames?input=0&as=ann", 400),
        ("/search?for=luck", 400),
        ("/search?from=999999&for=input", 400),
        ("/nothing", 404),
    ] {
        let (got, answer) = of.get(rest);
        assert_eq!(got, status, "{rest}: {answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }
}

#[test]
fn a_node_without_a_folder_says_so() {
    let (running, console) = start_with(&[], Server::new);
    let (status, answer) = api(console, "GET /api/recordings", &Value::Null);
    assert_eq!(status, 400);
    assert!(answer["error"].as_str().unwrap().contains("set recordings.folder"), "{answer}");
    let host = format!("Host: {console}");
    assert_eq!(ask(console, "POST /api/recordings", &[&host], "{}").0, 403);
    running.shutdown();
}

#[test]
fn recordings_that_are_lost_are_among_the_counters() {
    let node = start("lost");
    let lost = || node.get("node").1["total"]["recordings_lost"].as_u64().unwrap();
    assert_eq!(lost(), 0);
    runtime().block_on(async {
        let (_ann, room) = join(&node, "ann").await;
        // No file can be in it.
        fs::remove_dir(&node.folder).unwrap();
        fs::write(&node.folder, "a file").unwrap();
        let record = format!("rooms/{}/record", room.id());
        assert_eq!(node.post(&record, &json!({ "records": true })).0, 200);
        while lost() == 0 {
            tokio::task::yield_now().await;
        }
    });
    fs::remove_file(&node.folder).unwrap();
}

#[test]
fn a_fork_goes_on_from_a_moment_as_a_room_of_its_own() {
    let of = scripted("fork");
    let Scripted { node, room, file, .. } = &of;
    let last = of.ok("")["last"]["tick"].as_u64().unwrap();
    let moment = of.ok(&format!("/frames?tick={}&before=1&count=0&as=1", last - 5));
    let input = &moment["input"];
    let (mut state, mut view) = (moment["begin"]["state"].clone(), moment["begin"]["view"].clone());
    apply(&mut state, &moment["frames"][0]["changes"]);
    apply(&mut view, &moment["frames"][0]["view_changes"]);
    let fork = |body: Value| node.post(&format!("recordings/{file}/{room}/fork"), &body);
    let (status, forked) = fork(json!({ "input": input }));
    assert_eq!(status, 200, "{forked}");
    let id = forked["room"].as_str().unwrap();
    let (_, shown) = node.get(&format!("rooms/{id}?as=1"));
    assert_eq!(shown["metadata"]["fork"], json!(format!("{file} input {input}")));
    assert_eq!((&shown["private"], &shown["players"]), (&json!(true), &json!(2)));
    assert_eq!(shown["seats"][0]["connected"], json!(false));
    // The fork plays on: its ticks follow, and nobody has drawn a card since.
    assert!(shown["state"]["tick"].as_u64() >= state["tick"].as_u64(), "{shown}");
    assert_eq!(shown["state"]["players"], state["players"]);
    runtime().block_on(async {
        let enter = async |name: &str| {
            let connection = node.connect(name).await;
            let room = connection.join_dynamic(id).await.unwrap();
            (connection, room)
        };
        let (_ann, anns) = enter("ann").await;
        assert_eq!(anns.state()["players"]["1"], view["players"]["1"], "her hand is hers again");
        let tick = anns.state()["tick"].as_u64().unwrap();
        watch(&anns, tick + 3).await;
        let card = anns.request("Draw", &json!({ "least": 100 })).await.unwrap();
        let score = state["players"]["1"]["score"].as_u64().unwrap() + card.as_u64().unwrap();
        while anns.state()["players"]["1"]["score"] != json!(score) {
            anns.changed().await.unwrap();
        }
        // Nobody is brought here by matchmaking, and the other room goes on as it was.
        let (_eve, eves) = join(node, "eve").await;
        assert_eq!(eves.id(), room);
        assert_eq!(eves.state()["players"]["1"]["score"], state["players"]["1"]["score"]);
    });
    assert_eq!(fork(json!({})).0, 400);
    assert_eq!(fork(json!({ "input": 999_999 })).0, 400);
}

#[test]
fn a_build_that_does_otherwise_shows_where_and_marks_what_is_behind() {
    let of = scripted("other");
    let facts = of.ok("");
    let (first, last) = (&facts["first"]["input"], &facts["last"]["input"]);
    let search = format!("/search?for=difference&from={first}");
    assert_eq!(of.ok(&search), json!({ "found": null }));
    OTHER_BUILD.lock().unwrap().clone_from(&of.room);
    let found = of.ok(&search);
    let text = found["difference"]["text"].as_str().unwrap();
    assert!(text.contains("made the difference"), "{text}");
    let same_until = found["difference"]["same_until"]["input"].as_u64().unwrap();
    let shown = of.ok(&format!("/frames?input={same_until}&before=1&count=1000"));
    assert_eq!(shown["difference"]["same_until"]["input"], json!(same_until));
    assert_eq!(shown["begin"]["differs"], json!(false));
    let frames = shown["frames"].as_array().unwrap();
    assert!(frames.len() > 2, "{shown}");
    for frame in frames {
        let is_behind = frame["input"].as_u64() > Some(same_until);
        assert_eq!(frame["differs"], json!(is_behind), "{frame}");
    }
    let shown = of.ok(&format!("/frames?input={last}&before=5"));
    assert_eq!(shown["begin"]["differs"], json!(true), "{shown}");
    assert_eq!(shown["frames"].as_array().unwrap().len(), 5, "{shown}");
    let path = format!("recordings/{}/{}/fork", of.file, of.room);
    let (status, refused) = of.node.post(&path, &json!({ "input": last }));
    let why = refused["error"].as_str().unwrap();
    assert!(status == 400 && why.contains("the room differs from its recording"), "{refused}");
}
