//! The console of a real node, by its HTTP interface.

#[path = "console/journals.rs"]
mod journals;
#[path = "console/node.rs"]
mod node;
#[path = "console/recordings.rs"]
mod recordings;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use playfield::client::{Connection, Dynamic, Room as Joined};
use playfield::prelude::*;
use playfield::{Config, Identity, Running, Server};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// Cards: everyone sees the round, a hand is its owner's, the deck nobody's.
#[derive(State, Default)]
struct Table {
    round: u32,
    seats: Map<PlayerId, Seat>,
    #[sync(hidden)]
    deck: List<u8>,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    #[sync(owner)]
    hand: List<u8>,
}

#[derive(Message)]
struct Shout {
    text: String,
    times: u8,
}

#[derive(Message)]
#[reply(u8)]
struct Deal {
    cards: u8,
}

impl Handle<Deal> for Table {
    fn handle(&mut self, deal: Deal, _: &Player, cx: &mut Context<Self>) -> Result<u8> {
        if deal.cards > 5 {
            return Err("too many".into());
        }
        cx.emit(&Shout { text: "dealt".into(), times: deal.cards });
        Ok(deal.cards)
    }
}

#[room(sync_hz = 60, messages(Deal), events(Shout))]
impl Room for Table {
    type Options = ();

    fn create(_: (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { deck: (1..=3).collect(), ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let hand = [7, player.id().0 as u8].into_iter().collect();
        self.seats.insert(player.id(), Seat { name: player.name().into(), hand });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.seats.remove(&player.id());
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

/// A free port of the loopback interface.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn start(settings: &[(&str, &str)]) -> (Running, SocketAddr) {
    start_with(settings, Server::new)
}

/// Starts what `server` makes.
fn start_with(settings: &[(&str, &str)], server: fn() -> Server) -> (Running, SocketAddr) {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    // Someone else may take the port meanwhile.
    (0..100)
        .find_map(|_| {
            let console = free();
            config.set("console", &console.to_string()).unwrap();
            let running = server().room::<Table>("table").start(config.clone()).ok()?;
            Some((running, console))
        })
        .unwrap()
}

/// Sends a request with these lines behind the first, and returns the status and the body.
fn ask(at: SocketAddr, first: &str, lines: &[&str], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let mut text = format!("{first} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n");
    for line in lines {
        text += &format!("{line}\r\n");
    }
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Asks as the page does.
fn api(at: SocketAddr, request: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let host = format!("Host: {at}");
    let (status, text) = ask(at, request, &[&host, "X-Playfield-Console: 1"], &body);
    (status, serde_json::from_str(&text).unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn join(running: &Running, name: &str) -> (Connection, Joined<Dynamic>) {
    let url = format!("tcp://{}", running.local_addr());
    let connection = playfield::client::connect(&url).name(name).await.unwrap();
    let room = connection.join_or_create_dynamic("table", None).await.unwrap();
    (connection, room)
}

/// Why a player is in the room no longer.
async fn left(room: &Joined<Dynamic>) -> String {
    loop {
        if let Err(error) = room.changed().await {
            return error.to_string();
        }
    }
}

/// A client that opens connections and sends nothing whole needs no token.
#[test]
fn connections_that_wait_keep_nobody_out() {
    let (_running, console) = start(&[]);
    let mut waiting: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(console).unwrap();
            stream.write_all(b"GET /api/node HTTP/1.1\r\nX-A: ").unwrap();
            stream
        })
        .collect();
    let (status, _) = api(console, "GET /api/node", &Value::Null);
    assert_eq!(status, 200);
    // The one that had waited longest made room.
    let first = &mut waiting[0];
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(!first.read(&mut [0]).is_ok_and(|read| read > 0));
}

#[test]
fn a_room_is_shown_whole_and_as_a_player_sees_it() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let (_ann, room) = join(&running, "ann").await;
        let (_bob, _room) = join(&running, "<script>").await;
        let (status, list) = api(console, "GET /api/rooms?order=players&limit=10", &Value::Null);
        assert_eq!((status, &list["count"]), (200, &json!(1)));
        assert!(list["rooms"][0]["load"]["longest"]["sync_us"].is_u64(), "{list}");
        let id = list["rooms"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(id, room.id());
        let path = format!("GET /api/rooms/{id}");
        // Both sit once the room's next sync is over, which their joins waited for.
        let (_, shown) = api(console, &format!("{path}?as=1"), &Value::Null);
        let seat = |name: &str, hand: Option<Value>| match hand {
            Some(hand) => json!({ "name": name, "hand": hand }),
            None => json!({ "name": name }),
        };
        let state = json!({
            "round": 0,
            "seats": {
                "1": seat("ann", Some(json!([7, 1]))),
                "2": seat("<script>", Some(json!([7, 2]))),
            },
            "deck": [1, 2, 3],
        });
        let view = json!({
            "round": 0,
            "seats": { "1": seat("ann", Some(json!([7, 1]))), "2": seat("<script>", None) },
        });
        assert_eq!((&shown["state"], &shown["view"]), (&state, &view));
        let names: Vec<_> =
            shown["seats"].as_array().unwrap().iter().map(|of| &of["name"]).collect();
        assert_eq!(names, ["ann", "<script>"]);
        // Without a viewer, and for one who is not there, there is no view.
        for query in ["", "?as=9"] {
            let (status, shown) = api(console, &format!("{path}{query}"), &Value::Null);
            assert_eq!((status, &shown["view"]), (200, &Value::Null));
        }
    });
    running.shutdown();
}

#[test]
fn operators_kick_lock_emit_and_close() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let (ann, room) = join(&running, "ann").await;
        let (_bob, bobs) = join(&running, "bob").await;
        let id = room.id().to_owned();
        let act = |action: &str, body: Value| {
            api(console, &format!("POST /api/rooms/{id}/{action}"), &body)
        };

        let shout = json!({ "text": "tea \u{202e}", "times": 2 });
        assert_eq!(act("emit", json!({ "event": "Shout", "value": shout })).0, 200);
        let heard = room.next_event().await.unwrap();
        assert_eq!((heard.name(), heard.value().unwrap()), ("Shout", shout));
        for (event, value) in [("Shout", json!({ "text": 1 })), ("Whisper", json!({}))] {
            let (status, refusal) = act("emit", json!({ "event": event, "value": value }));
            assert_eq!(status, 400, "{refusal}");
        }

        assert_eq!(act("lock", json!({ "locked": true })).0, 200);
        let url = format!("tcp://{}", running.local_addr());
        let eve = playfield::client::connect(&url).await.unwrap();
        let refused = eve.join_dynamic(&id).await.unwrap_err();
        assert_eq!(refused.code(), Some(playfield::ErrorCode::RoomLocked));

        assert_eq!(act("kick", json!({ "player": 2, "text": "be kind" })).0, 200);
        let kicked = left(&bobs).await;
        assert!(kicked.contains("be kind"), "{kicked}");
        assert_eq!(act("kick", json!({ "player": 2 })).0, 400);

        assert_eq!(act("close", json!({})).0, 200);
        assert!(left(&room).await.contains("an operator closed the room"));
        drop(ann);
    });
    running.shutdown();
}

#[test]
fn operators_end_the_sessions_of_a_user() {
    let (running, console) = start_with(&[], || {
        Server::new()
            .authenticate(|hello| async move { Ok(Identity::user(hello.name.clone(), hello.name)) })
    });
    runtime().block_on(async {
        let (_ann, room) = join(&running, "ann b").await;
        let (_bob, _) = join(&running, "bob").await;
        let count = |user| api(console, &format!("GET /api/users/{user}"), &Value::Null).1;
        assert_eq!(count("ann%20b"), json!({ "sessions": 1 }));
        let act =
            |action: &str, body| api(console, &format!("POST /api/users/ann%20b/{action}"), &body);
        assert_eq!(act("recheck", json!({})), (200, json!({})));
        assert_eq!(act("unsubscribe", json!({ "channels": "chat:*" })), (200, json!({})));
        for (action, body) in [
            ("unsubscribe", json!({})),
            ("unsubscribe", json!({ "channels": "chat:" })),
            ("end", json!({ "text": "x".repeat(501) })),
            ("end", json!([])),
        ] {
            assert_eq!(act(action, body.clone()).0, 400, "{action} {body}");
        }
        assert_eq!(act("praise", json!({})).0, 404);
        assert_eq!(act("end", json!({ "text": "cheating" })), (200, json!({ "sessions": 1 })));
        assert!(left(&room).await.contains("cheating"));
        assert_eq!(act("end", json!({})), (200, json!({ "sessions": 0 })));
        assert_eq!(
            (count("ann%20b"), count("bob")),
            (json!({"sessions": 0}), json!({"sessions": 1}))
        );
    });
    running.shutdown();
}

#[test]
fn messages_are_shown_from_the_first_look_on() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let (_ann, room) = join(&running, "ann").await;
        let path = format!("GET /api/rooms/{}?messages", room.id());
        let deal = async |cards: u8| room.request("Deal", &json!({ "cards": cards })).await;
        deal(1).await.unwrap();
        assert_eq!(api(console, &path, &Value::Null).1["messages"], json!([]));
        deal(2).await.unwrap();
        deal(9).await.unwrap_err();
        let (_, shown) = api(console, &path, &Value::Null);
        let told = |message: &Value| {
            let of = |name: &str| message[name].clone();
            (of("direction"), of("kind"), of("name"), of("value"))
        };
        let told: Vec<_> = shown["messages"].as_array().unwrap().iter().map(told).collect();
        let row = |direction: &str, kind: &str, name: Value, value: Value| {
            (json!(direction), json!(kind), name, value)
        };
        assert_eq!(
            told,
            [
                row("in", "request", json!("Deal"), json!({ "cards": 2 })),
                row("out", "event", json!("Shout"), json!({ "text": "dealt", "times": 2 })),
                row("out", "reply", Value::Null, json!(2)),
                row("in", "request", json!("Deal"), json!({ "cards": 9 })),
                row("out", "error", json!("refused"), json!("too many")),
            ]
        );
    });
    running.shutdown();
}

#[test]
fn a_room_is_profiled() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let (_ann, room) = join(&running, "ann").await;
        let path = |query: &str| format!("GET /api/rooms/{}/profile{query}", room.id());
        // Messages until the profile has ended: nothing here says when it begins.
        let (ended, ends) = (Arc::new(AtomicBool::new(false)), path("?seconds=1"));
        let (is_over, profiled) = (
            Arc::clone(&ended),
            tokio::task::spawn_blocking(move || {
                let answer = api(console, &ends, &Value::Null);
                ended.store(true, Ordering::Relaxed);
                answer
            }),
        );
        while !is_over.load(Ordering::Relaxed) {
            room.request("Deal", &json!({ "cards": 1 })).await.unwrap();
        }
        let (status, shown) = profiled.await.unwrap();
        assert_eq!((status, &shown["players"]), (200, &json!(1)), "{shown}");
        assert_eq!(shown["snapshots"]["writes"], json!(1));
        let fields = shown["fields"].as_array().unwrap();
        let hand = fields.iter().find(|field| field["path"] == "seats.*.hand.*").unwrap();
        assert_eq!(hand["snapshots"]["shared"], json!(0));
        let deal = &shown["messages"].as_array().unwrap()[0];
        let (count, bytes) = (deal["count"].as_u64().unwrap(), deal["own"].as_u64().unwrap());
        assert_eq!(deal["name"], json!("Deal"), "{shown}");
        // Each is `{"cards":1}` or one byte.
        assert!(count > 0 && (bytes == count || bytes == 11 * count), "{shown}");
        let shout = &shown["events"].as_array().unwrap()[0];
        assert_eq!((&shout["name"], &shout["count"]), (&json!("Shout"), &deal["count"]));
        assert_eq!(shout["shared"], json!(0), "one player alone is there");
        assert_eq!(api(console, &path("?seconds=61"), &Value::Null).0, 400);
        assert_eq!(api(console, "GET /api/rooms/nowhere/profile", &Value::Null).0, 404);
    });
    running.shutdown();
}

#[test]
fn rooms_are_listed_by_what_they_take() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let (_ann, quiet) = join(&running, "ann").await;
        let url = format!("tcp://{}", running.local_addr());
        let bob = playfield::client::connect(&url).name("bob").await.unwrap();
        let busy = bob.create_dynamic("table", false, None).await.unwrap();
        for _ in 0..50 {
            busy.request("Deal", &json!({ "cards": 1 })).await.unwrap();
        }
        let listed = |order: &str| {
            let (status, list) =
                api(console, &format!("GET /api/rooms?order={order}"), &Value::Null);
            assert_eq!((status, &list["count"]), (200, &json!(2)), "{list}");
            list["rooms"].as_array().unwrap().clone()
        };
        // The rates that are compared are those of a second at least, which the first look begins.
        let rooms = loop {
            let rooms = listed("bytes");
            if rooms[0]["load"]["bytes_in_per_s"].as_u64() > Some(0) {
                break rooms;
            }
        };
        assert_eq!(rooms[0]["id"], busy.id());
        assert_eq!(rooms[1]["id"], quiet.id());
        let (load, other) = (&rooms[0]["load"], &rooms[1]["load"]);
        // A payload of `Deal` is `{"cards":1}` or one byte; what is written for it is longer.
        let sum =
            |of: &Value| (of["bytes_in"].as_u64().unwrap(), of["bytes_out"].as_u64().unwrap());
        assert!(sum(load).0 >= 50 && sum(load).1 > sum(load).0, "{load}");
        assert!(sum(other).0 == 0 && sum(other).1 > 0, "{other}");
        for order in ["slowest", "latest"] {
            assert_eq!(listed(order).len(), 2);
        }
        let (_, shown) = api(console, &format!("GET /api/rooms/{}", busy.id()), &Value::Null);
        assert!(shown["load"]["bytes_in"].as_u64() >= Some(50), "{shown}");
    });
    running.shutdown();
}

#[test]
fn players_are_found_by_name() {
    let (running, console) = start(&[]);
    runtime().block_on(async {
        let mut seated = Vec::new();
        for name in ["annabel", "Jo-Ann \u{fc}", "eve", "Ann"] {
            seated.push(join(&running, name).await);
        }
        let found = |query: &str| {
            let (status, found) = api(console, &format!("GET /api/players?{query}"), &Value::Null);
            assert_eq!((status, &found["complete"]), (200, &json!(true)), "{found}");
            let players = found["players"].as_array().unwrap();
            (players.iter().map(|of| of["name"].clone()).collect::<Vec<_>>(), found)
        };
        let (names, all) = found("find=aNN");
        assert_eq!(names, ["Ann", "annabel", "Jo-Ann \u{fc}"]);
        let ann = json!({
            "room": seated[0].1.id(), "type": "table", "id": 4, "name": "Ann", "user": null,
            "seat": null, "connected": true,
        });
        assert_eq!((&all["players"][0], &all["more"]), (&ann, &json!(false)));
        // The name itself comes first, however many contain it.
        let (names, one) = found("find=ann&limit=1");
        assert_eq!((names, &one["more"]), (vec![json!("Ann")], &json!(true)));
        assert_eq!(found("find=%C3%9C").0, ["Jo-Ann \u{fc}"]);
        assert_eq!(found("find=nobody").0, Vec::<Value>::new());
    });
    running.shutdown();
}

#[test]
fn limits_say_how_near_they_are_and_how_often_they_were_reached() {
    let (running, console) = start(&[("limits.session.rooms", "1")]);
    runtime().block_on(async {
        let (ann, _room) = join(&running, "ann").await;
        ann.create_dynamic("table", false, None).await.unwrap_err();
        let limit = |name: &str| {
            let (_, node) = api(console, "GET /api/node", &Value::Null);
            let limits = node["limits"].as_array().unwrap();
            limits.iter().find(|limit| limit["name"] == name).unwrap().clone()
        };
        // Shards publish their counters at the end of a turn.
        let until = |name: &str, is_so: &dyn Fn(&Value) -> bool| {
            while !is_so(&limit(name)) {
                std::thread::yield_now();
            }
        };
        until("limits.rooms", &|limit| limit["now"] == 1);
        until("limits.connections.total", &|limit| limit["now"] == 1);
        until("limits.session.rooms", &|limit| {
            let reached = json!({ "counter": "joins_refused", "times": 1 });
            (&limit["max"], &limit["now"], &limit["reached"]) == (&json!(1), &Value::Null, &reached)
        });
        assert_eq!(limit("limits.queues.mail")["max"], 16_384);
    });
    running.shutdown();
}

#[test]
fn what_the_console_does_not_know_is_refused_in_one_sentence() {
    let (running, console) = start(&[]);
    for (request, status) in [
        ("GET /api/nothing", 404),
        ("GET /api/rooms/none", 404),
        ("GET /api/rooms/%FF", 400),
        ("GET /api/rooms/none?as=me", 400),
        ("GET /api/rooms?limit=501", 400),
        ("GET /api/rooms?order=best", 400),
        ("GET /api/players?find=", 400),
        ("GET /api/players?find=a&limit=101", 400),
        ("GET /api/types/none", 404),
        ("POST /api/rooms/none/kick", 400),
        ("DELETE /api/rooms/none", 404),
    ] {
        let (got, answer) = api(console, request, &Value::Null);
        assert_eq!(got, status, "{request}: {answer}");
        assert!(answer["error"].is_string(), "{request}: {answer}");
    }
    let (status, _) = ask(console, "GET /nothing", &[&format!("Host: {console}")], "");
    assert_eq!(status, 404);
    running.shutdown();
}

#[test]
fn other_hosts_other_origins_and_plain_forms_are_refused() {
    let (running, console) = start(&[]);
    let own = format!("Host: {console}");
    let get = |lines: &[&str]| ask(console, "GET /api/node", lines, "").0;
    assert_eq!(get(&[&own]), 200);
    assert_eq!(get(&[&own, &format!("Origin: http://{console}")]), 200);
    // By DNS rebinding, a page of example.com reaches this address under its own name.
    let rebound = format!("Host: example.com:{}", console.port());
    assert_eq!(get(&[&rebound]), 403);
    assert_eq!(get(&[]), 400, "HTTP wants a host");
    for origin in ["http://example.com", "null", "http://127.0.0.1:1"] {
        assert_eq!(get(&[&own, &format!("Origin: {origin}")]), 403, "{origin}");
    }
    assert_eq!(ask(console, "GET /", &[&rebound], "").0, 403);
    // A page of another site makes a browser ask without an origin, as for an image.
    let site = |first: &str, site: &str, mode: &str, dest: &str| {
        let lines = [
            own.clone(),
            format!("Sec-Fetch-Site: {site}"),
            format!("Sec-Fetch-Mode: {mode}"),
            format!("Sec-Fetch-Dest: {dest}"),
        ];
        ask(console, first, &lines.each_ref().map(String::as_str), "").0
    };
    for other in ["cross-site", "same-site"] {
        assert_eq!(site("GET /api/node", other, "no-cors", "image"), 403, "{other}");
        assert_eq!(site("GET /api/node", other, "navigate", "document"), 403, "{other}");
        assert_eq!(site("GET /console.js", other, "no-cors", "script"), 403, "{other}");
        assert_eq!(site("GET /", other, "navigate", "iframe"), 403, "{other}");
        assert_eq!(site("GET /", other, "navigate", "document"), 200, "a link leads to it");
    }
    assert_eq!(site("GET /api/node", "same-origin", "cors", "empty"), 200);
    assert_eq!(site("GET /api/node", "none", "navigate", "document"), 200, "it was typed");
    // A refusal of the interface is JSON, whoever refuses: scripts read one form.
    let refused = |first: &str, line: &str| {
        let (status, body) = ask(console, first, &[line], "{}");
        (status, serde_json::from_str::<Value>(&body).unwrap()["error"].as_str().map(str::to_owned))
    };
    let missing = "the header X-Playfield-Console is missing".to_owned();
    assert_eq!(refused("POST /api/rooms/x/close", &own), (403, Some(missing)));
    let (status, said) = refused("GET /api/node", &rebound);
    assert!(status == 403 && said.unwrap().contains("localhost only"));
    running.shutdown();
}

#[test]
fn a_console_with_a_token_serves_those_who_have_it() {
    let token = "correct-horse-battery";
    let (running, console) = start(&[("console_token", token)]);
    let get = |lines: &[&str]| ask(console, "GET /api/node", lines, "");
    let asks = json!({ "error": "the console needs its token (console_token)" }).to_string();
    assert_eq!(get(&["Host: console.example.com"]), (401, asks));
    assert_eq!(get(&["Host: x", "Authorization: Bearer wrong-horse-battery"]).0, 401);
    let (status, body) = get(&["Host: x", &format!("Authorization: Bearer {token}")]);
    assert_eq!(status, 200);
    assert!(!body.contains(token), "settings are shown without the token");
    assert_eq!(ask(console, "GET /", &["Host: x"], "").0, 200, "the page asks for the token");
    running.shutdown();
}

#[test]
fn few_tokens_can_be_tried_from_one_address_and_the_others_are_served() {
    let token = "correct-horse-battery";
    let (running, console) = start(&[("console_token", token)]);
    let with_cookie = |address: [u8; 4], token: &str, cookie: &str| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
        socket.connect(&console.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        write!(
            stream,
            "GET /api/node HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer \
             {token}\r\nCookie: a=b; {cookie}\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let from = |address, token: &str| with_cookie(address, token, "");
    let attacker = [127, 9, 9, 9];
    // An operator behind the same proxy as the attacker.
    let served = from(attacker, token);
    let (_, cookie) = served.split_once("set-cookie: ").expect("a cookie");
    let cookie = cookie.split(';').next().unwrap();
    let guess = |number: usize| from(attacker, &format!("wrong-horse-battery-{number}"));
    let wrong = (0..100).map(guess).filter(|answer| answer.starts_with("HTTP/1.1 401 ")).count();
    assert!((1..=15).contains(&wrong), "{wrong} were compared");
    let refused = from(attacker, token);
    assert!(
        refused.starts_with("HTTP/1.1 429 ") && refused.contains("\r\nretry-after: "),
        "{refused}"
    );
    assert!(refused.contains("too many wrong tokens"), "{refused}");
    assert!(with_cookie(attacker, token, cookie).starts_with("HTTP/1.1 200 "));
    assert!(with_cookie(attacker, "wrong-horse-battery", cookie).starts_with("HTTP/1.1 401 "));
    let forged = "playfield_console=00";
    assert!(with_cookie(attacker, token, forged).starts_with("HTTP/1.1 429 "));
    // Two addresses may share a place of the table, but hardly three.
    let served = [2, 3, 4].map(|last| from([127, 0, 0, last], token).starts_with("HTTP/1.1 200 "));
    assert!(served.iter().filter(|is_served| **is_served).count() >= 2);
    running.shutdown();
}

#[test]
fn a_console_for_all_needs_a_token_and_a_good_one() {
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() };
    config.set("console", "0.0.0.0:0").unwrap();
    let error = Server::new().room::<Table>("table").start(config.clone()).err().unwrap();
    assert!(error.to_string().contains("set console_token"), "{error}");
    let error = config.set("console_token", "short").unwrap_err();
    assert!(error.to_string().contains("16 is the least"), "{error}");
    assert!(config.set("console_token", "sixteen letters!").is_err(), "a header can't have it");
}

#[test]
fn a_silent_or_broken_client_delays_nobody_and_the_console_ends_with_its_node() {
    let (running, console) = start(&[]);
    let silent: Vec<_> = (0..10).map(|_| TcpStream::connect(console).unwrap()).collect();
    let mut broken = TcpStream::connect(console).unwrap();
    broken.write_all(b"GET / HTTP/9.9\r\n\r\n").unwrap();
    let mut answer = String::new();
    broken.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
    assert_eq!(api(console, "GET /api/node", &Value::Null).0, 200);
    running.shutdown();
    drop(silent);
    // Its port is free again once its thread has ended.
    let (done, ended) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        while TcpStream::connect(console).is_ok() {
            std::thread::yield_now();
        }
        let _ = done.send(());
    });
    ended.recv_timeout(PATIENCE).expect("the console ends with its node");
}

/// Programs that find the console open take the node for ready, so the store comes first.
#[test]
fn the_store_is_opened_before_the_port_of_the_console() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let path = std::env::temp_dir().join(format!("playfield-no-store-{}", std::process::id()));
    std::fs::write(&path, b"this is a text").unwrap();
    let start = |server: Server| {
        let console = Some(taken.local_addr().unwrap());
        let listen = ([127, 0, 0, 1], 0).into();
        let config =
            Config { listen, console, log: playfield::LevelFilter::Off, ..Config::default() };
        server.start(config).err().expect("it does not start").to_string()
    };
    let why = start(Server::new().store_file(&path));
    assert!(why.starts_with("can't open the store"), "{why}");
    let why = start(Server::new());
    assert!(why.starts_with("console = 127.0.0.1:"), "{why}");
    std::fs::remove_file(path).unwrap();
}
