//! Each example runs, and does what it says. They run as programs, on their own port; clients
//! know them by their schemas only.

/// Its own tests run here.
#[path = "../duel.rs"]
#[expect(dead_code, reason = "it is a program of its own")]
mod duel;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use playfield::client::{self, ChannelEvent, Connection, Creation, Dynamic, Error, Room};
use playfield::identity::Signer;
use playfield::{ErrorCode, SelfSigned};
use serde_json::{Value, json};

/// An example that runs; killed when dropped.
struct Example {
    process: Child,
    address: String,
}

impl Example {
    fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(program, arguments, &[])
    }

    fn start_with(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_and_read(program, arguments, variables).0
    }

    /// Starts an example that has a service, too: its address.
    fn start_with_service(program: &str, variable: &str) -> (Self, String) {
        let arguments = ["--listen=127.0.0.1:0", "--shards=2"];
        let variables = [(variable, "127.0.0.1:0")];
        let (example, mut stdout) = Self::start_and_read(program, &arguments, &variables);
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it says where the service listens");
        let address = line.trim().strip_prefix("a service listens on ").expect("an address");
        (example, address.to_owned())
    }

    fn start_and_read(
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (Self, BufReader<ChildStdout>) {
        let mut process = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .env("PLAYFIELD_LOG", "warn")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the example can be run");
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("it is piped"));
        stdout.read_line(&mut line).expect("it says where it listens");
        let address = line.trim().strip_prefix("listening on ").expect("an address");
        let address = address.strip_suffix(" with TLS").unwrap_or(address).to_owned();
        (Self { process, address }, stdout)
    }

    fn rooms(program: &str) -> Self {
        Self::start(program, &["--listen=127.0.0.1:0", "--shards=2"])
    }

    /// Sends an HTTP request on a connection of its own; the whole answer.
    fn http(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens there");
        let request = format!("{head}\r\nHost: localhost\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    async fn connect(&self, name: &str) -> Connection {
        client::connect(&format!("tcp://{}", self.address)).name(name).await.expect("it serves")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A line to an example that can be cut.
struct Line {
    address: String,
    /// The open connections.
    sockets: Arc<Mutex<Vec<TcpStream>>>,
    /// New ones are closed at once.
    is_cut: Arc<AtomicBool>,
}

impl Line {
    fn to(node: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (node, sockets) = (node.to_owned(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let is_cut = Arc::<AtomicBool>::default();
        let line = Self { address, sockets: Arc::clone(&sockets), is_cut: Arc::clone(&is_cut) };
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let mut open = sockets.lock().expect("nobody panics with it");
                if is_cut.load(Ordering::Relaxed) {
                    continue;
                }
                let node = TcpStream::connect(&node).expect("it listens there");
                for (from, to) in [(&client, &node), (&node, &client)] {
                    let pair = (from.try_clone(), to.try_clone());
                    let (Ok(mut from), Ok(mut to)) = pair else { continue };
                    thread::spawn(move || io::copy(&mut from, &mut to));
                }
                open.extend([client, node]);
            }
        });
        line
    }

    /// Cuts all connections. There are no others until it is [restored](Self::restore).
    fn cut(&self) {
        let mut open = self.sockets.lock().expect("nobody panics with it");
        self.is_cut.store(true, Ordering::Relaxed);
        for socket in open.drain(..) {
            // An error means that it has ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn restore(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

fn state(room: &Room<Dynamic>) -> Value {
    room.state().clone()
}

/// Waits until the room's state is as it should be.
async fn until(room: &Room<Dynamic>, is_so: impl Fn(&Value) -> bool) -> Result<(), Error> {
    while !is_so(&state(room)) {
        room.changed().await?;
    }
    Ok(())
}

#[tokio::test]
async fn chat_lets_in_who_has_a_token_and_moderators_clear_the_room() -> Result<(), Error> {
    let (signer, public) = Signer::generate().expect("random numbers");
    let file = std::env::temp_dir().join(format!("playfield-chat-{}.pem", std::process::id()));
    std::fs::write(&file, public).expect("a file in the temporary folder");
    let keys = file.to_str().expect("a path that is text");
    let example = Example::start_with(
        env!("CARGO_BIN_EXE_chat"),
        &["--listen=127.0.0.1:0"],
        &[("CHAT_KEYS", keys)],
    );
    let url = format!("tcp://{}", example.address);
    let connect = async |user: &str, role: &str| {
        let expires = SystemTime::now() + Duration::from_secs(60);
        let expires = expires.duration_since(UNIX_EPOCH).expect("a clock").as_secs();
        let claims =
            json!({ "sub": user, "name": user, "role": role, "aud": "chat", "exp": expires });
        let claims = claims.as_object().expect("an object");
        let token = signer.token(claims).expect("a signature");
        client::connect(&url).name("someone else").token(token.as_bytes()).await
    };
    let stranger = client::connect(&url).name("Ann").await.err().and_then(|error| error.code());
    assert_eq!(stranger, Some(ErrorCode::Unauthorized));
    let (ann, bob) = (connect("Ann", "moderator").await?, connect("Bob", "member").await?);
    let ann = ann.join_or_create_dynamic("chat", None).await?;
    let bob = bob.join_dynamic(ann.id()).await?;
    bob.request("Say", &json!({ "text": "hi" })).await?;
    until(&ann, |state| state["lines"] == json!([{ "from": "Bob", "text": "hi" }])).await?;
    assert!(bob.request("Clear", &Value::Null).await.is_err_and(|error| error.is_refused()));
    ann.request("Clear", &Value::Null).await?;
    until(&bob, |state| state["lines"] == json!([])).await?;
    std::fs::remove_file(file).expect("it is there");
    Ok(())
}

#[tokio::test]
async fn chat_shows_what_is_said_to_all_and_to_those_who_come_later() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_chat"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let ann = ann.join_or_create_dynamic("chat", None).await?;
    ann.request("Say", &json!({ "text": "hello" })).await?;
    let bob = bob.join_dynamic(ann.id()).await?;
    assert_eq!(state(&bob)["lines"], json!([{ "from": "Ann", "text": "hello" }]));
    let notice = ann.next_event().await?;
    assert_eq!((notice.name(), notice.value()?["text"].as_str()), ("Notice", Some("Bob is here")));
    bob.request("Say", &json!({ "text": "hi" })).await?;
    until(&ann, |state| state["lines"][1]["text"] == "hi").await?;
    let refused = bob.request("Say", &json!({ "text": "x".repeat(2_000) })).await;
    assert!(refused.is_err_and(|error| error.is_refused()));
    // Who says too much at once is told when to go on.
    let mut said = 0;
    let refusal = loop {
        match ann.request("Say", &json!({ "text": "and" })).await {
            Ok(_) => said += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refusal.code(), Some(ErrorCode::TooFast), "{refusal}");
    let wait = refusal.retry_after().expect("it says when");
    assert!(said >= 9 && wait <= Duration::from_millis(200), "{said}, then {refusal}");
    Ok(())
}

#[tokio::test]
async fn chat_shows_who_is_away_and_who_comes_back_has_missed_nothing() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_chat"));
    let line = Line::to(&example.address);
    let ann = client::connect(&format!("tcp://{}", line.address)).name("Ann").await?;
    let ann = ann.join_or_create_dynamic("chat", None).await?;
    let bob = example.connect("Bob").await.join_dynamic(ann.id()).await?;
    line.cut();
    until(&bob, |state| state["away"] != json!({})).await?;
    bob.request("Say", &json!({ "text": "are you there?" })).await?;
    line.restore();
    until(&bob, |state| state["away"] == json!({})).await?;
    until(&ann, |state| state["lines"][0]["text"] == "are you there?").await?;
    assert_eq!(ann.next_event().await?.value()?["text"], "Bob is here");
    ann.request("Say", &json!({ "text": "again" })).await?;
    until(&bob, |state| state["lines"][1]["from"] == "Ann").await
}

#[tokio::test]
async fn chat_is_served_over_tls_by_flags() -> Result<(), Error> {
    let signed = SelfSigned::new(&["localhost"]).expect("a certificate");
    let file = |name: &str, text: String| {
        let name = format!("playfield-example-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    };
    let cert = file("cert.pem", signed.certificate_pem());
    let key = file("key.pem", signed.key_pem());
    let arguments = ["--listen=127.0.0.1:0", "--tls.cert", &cert, "--tls.key", &key];
    let example = Example::start(env!("CARGO_BIN_EXE_chat"), &arguments);
    // The files are read at the start.
    [cert, key].iter().for_each(|path| std::fs::remove_file(path).expect("it is there"));
    let (_, port) = example.address.rsplit_once(':').expect("a port");
    for scheme in ["wss", "tls"] {
        let connection = client::connect(&format!("{scheme}://localhost:{port}"))
            .root_certificate(signed.certificate_pem().as_bytes())
            .await?;
        let room = connection.join_or_create_dynamic("chat", None).await?;
        room.request("Say", &json!({ "text": scheme })).await?;
        // The room of the connection before may still be there.
        let is_said = |state: &Value| {
            let lines = state["lines"].as_array();
            lines.is_some_and(|lines| lines.iter().any(|line| line["text"] == scheme))
        };
        until(&room, is_said).await?;
        room.leave().await?;
    }
    Ok(())
}

#[tokio::test]
async fn cards_shows_each_player_their_own_hand() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_cards"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let ann = ann.join_or_create_dynamic("table", None).await?;
    let bob = bob.join_dynamic(ann.id()).await?;
    for room in [&ann, &bob] {
        let state = state(room);
        let hands = state["hands"].as_object().expect("a map");
        assert_eq!(hands.keys().collect::<Vec<_>>(), [&room.player().0.to_string()]);
        assert!(state.get("deck").is_none());
    }
    let first = state(&ann)["hands"][ann.player().0.to_string()][0].clone();
    let card = ann.request("Play", &json!({ "place": 0 })).await?;
    assert_eq!(card, first);
    until(&bob, |state| state["played"] == json!([card])).await?;
    // Her copy must be without the card too, before she counts her places.
    until(&ann, |state| state["played"] == json!([card])).await?;

    // The reply to an offer comes when the other player accepts.
    let hand = |room: &Room<Dynamic>| state(room)["hands"][room.player().0.to_string()].clone();
    let (of_ann, of_bob) = (hand(&ann)[1].clone(), hand(&bob)[0].clone());
    let offer = json!({ "place": 1, "with": bob.player().0 });
    let accepts = async {
        loop {
            match bob.request("Accept", &json!({ "place": 0 })).await {
                Err(error) if error.is_refused() => {} // the offer is still on its way
                accepted => break accepted,
            }
        }
    };
    let (offered, accepted) = tokio::join!(ann.request("Trade", &offer), accepts);
    assert_eq!((offered?, accepted?), (of_bob.clone(), of_ann));
    until(&ann, |_| hand(&ann).as_array().is_some_and(|cards| cards.contains(&of_bob))).await
}

/// A folder that is removed when dropped.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn notes_are_loaded_before_anyone_enters_and_saved_on_sigterm() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("playfield-notes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let folder = Folder(folder);
    let arguments = ["--listen=127.0.0.1:0", "--shards=2"];
    let start = || {
        let folder = folder.0.to_str().expect("a plain path");
        Example::start_with(env!("CARGO_BIN_EXE_notes"), &arguments, &[("NOTES", folder)])
    };
    for (before, after) in [("", "milk"), ("milk", "milk, eggs"), ("milk, eggs", "")] {
        let mut example = start();
        let ann = example.connect("Ann").await;
        let note = ann.join_or_create_by_key_dynamic("note", "shopping", None).await?;
        assert_eq!(state(&note)["text"], before);
        note.request("Write", &json!({ "text": after })).await?;
        let id = example.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().is_ok_and(|it| it.success()));
        // Meanwhile the client has to read the goodbye.
        let ended = tokio::task::spawn_blocking(move || example.process.wait());
        assert!(ended.await.is_ok_and(|ended| ended.is_ok_and(|it| it.success())));
    }
    let ann = start();
    let refused = ann.connect("Ann").await.create_dynamic("note", false, None).await;
    assert!(refused.is_err_and(|error| error.is_refused()), "a note needs a key");
    Ok(())
}

#[tokio::test]
async fn arena_shows_a_ship_as_long_as_it_is_near() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_arena"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let ann = ann.join_or_create_dynamic("arena", None).await?;
    let bob = bob.join_dynamic(ann.id()).await?;
    let sees_bob = |state: &Value| state["ships"].get(bob.player().0.to_string()).is_some();
    // Into one corner both, then one out of it.
    for room in [&ann, &bob] {
        room.request("Steer", &json!({ "angle": std::f32::consts::FRAC_PI_4 })).await?;
    }
    until(&ann, sees_bob).await?;
    bob.request("Steer", &json!({ "angle": std::f32::consts::PI })).await?;
    until(&ann, |state| !sees_bob(state)).await?;
    let own = ann.player().0.to_string();
    assert!(state(&ann)["ships"].get(&own).is_some());
    // The node has measured the round trip, and the room shows it.
    until(&ann, |state| state["ships"][&own]["round_trip_ms"].is_u64()).await?;
    Ok(())
}

#[tokio::test]
async fn timers_sells_to_the_highest_bid_when_no_other_comes() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_timers"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let terms = json!({ "patience_ms": 200 });
    let ann = ann.join_or_create_dynamic("auction", Some(&terms)).await?;
    let bob = bob.join_dynamic(ann.id()).await?;
    ann.request("Bid", &json!({ "price": 10 })).await?;
    until(&ann, |state| state["sold"] == true).await?;
    assert_eq!(state(&ann)["winner"], json!(ann.player().0));
    let late = bob.request("Bid", &json!({ "price": 20 })).await;
    assert!(late.is_err_and(|error| error.is_refused()));
    Ok(())
}

#[tokio::test]
async fn sensors_shows_what_http_requests_bring() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_sensors"));
    let post = |path: &str, body: &str| {
        let length = body.len();
        example.http(&format!("POST {path} HTTP/1.1\r\nContent-Length: {length}"), body)
    };
    // The first measurement creates the station.
    let kitchen = "/stations/home/the%20kitchen";
    let answer = post(kitchen, "19.5");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n1 sensors\n"));
    let ann = example.connect("Ann").await;
    let station = ann.join_by_key_dynamic("station", "home").await?;
    assert_eq!(state(&station)["readings"]["the kitchen"], 19.5);
    assert!(post(kitchen, "21.5").starts_with("HTTP/1.1 200 "));
    until(&station, |state| state["readings"]["the kitchen"] == 21.5).await?;
    assert!(post(kitchen, "warm").starts_with("HTTP/1.1 422 "));
    let page = example.http("GET / HTTP/1.1", "");
    assert!(page.contains("content-type: text/html") && page.contains("<h1>Sensors</h1>"));
    assert!(example.http("GET /../sensors.rs HTTP/1.1", "").starts_with("HTTP/1.1 404 "));
    Ok(())
}

/// A connection whose frames have a length of four bytes, little endian.
struct Frames(TcpStream);

impl Frames {
    fn to(address: &str, preamble: &[u8]) -> Self {
        let mut stream = TcpStream::connect(address).expect("it listens there");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        stream.write_all(preamble).expect("it reads");
        Self(stream)
    }

    fn say(&mut self, text: &str) {
        let frame = [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
        self.0.write_all(&frame).expect("it reads");
    }

    fn hear(&mut self) -> String {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("a frame");
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut text).expect("all of it");
        String::from_utf8(text).expect("text")
    }

    /// The next message of a type, in JSON.
    fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            let message: Value = serde_json::from_str(&self.hear()).expect("JSON");
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Waits for a publication of this kind.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) {
        while !is_it(&self.hear_of("publication")["payload"]) {}
    }
}

/// The next publication of a subscription: who published it, and its text.
async fn said(channel: &client::Channel) -> (Option<String>, String) {
    loop {
        match channel.next().await.expect("the subscription goes on") {
            ChannelEvent::Publication(said) => {
                let value = said.payload.value().expect("JSON");
                return (said.user, value["text"].as_str().expect("a text").to_owned());
            }
            ChannelEvent::Unsubscribed { text, .. } => panic!("it has ended: {text}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn talk_lets_guests_read_and_users_write_as_the_rules_say() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_talk"));
    let url = format!("tcp://{}", example.address);
    let log_in = |name: &str, word: &str| client::connect(&url).name(name).token(word.as_bytes());
    assert!(log_in("ann", "guess").await.is_err());
    let (guest, ann) = (example.connect("Gus").await, log_in("ann", "apple").await?);
    let bob = log_in("bob", "banana").await?;
    let refused = |error: Option<Error>| error.and_then(|error| error.code());

    let lobby = guest.subscribe("talk:lobby").presence().await?;
    let forbidden = guest.publish("talk:lobby", json!({ "text": "me too" })).await;
    assert_eq!(refused(forbidden.err()), Some(ErrorCode::Forbidden));
    let anns = ann.subscribe("talk:lobby").await?;
    let joined = loop {
        if let Some(ChannelEvent::Joined { member, .. }) = lobby.next().await {
            break member;
        }
    };
    assert_eq!((joined.user.as_deref(), &*joined.name), (Some("ann"), "ann"));
    assert_eq!(lobby.members().await?.count, 2);
    ann.publish("talk:lobby", json!({ "text": "hi" })).await?;
    assert_eq!(said(&lobby).await, (Some("ann".into()), "hi".into()));
    anns.unsubscribe();

    // Only Ann writes the news. Who comes later reads them.
    let denied = bob.publish("talk:news", json!({ "text": "no" })).await;
    assert_eq!(refused(denied.err()), Some(ErrorCode::Forbidden));
    ann.publish("talk:news", json!({ "text": "news" })).await?;
    let history = guest.history("talk:news", None, 0).await?;
    assert_eq!(history.publications[0].payload.value()?["text"], "news");

    // Bob alone reads what is for Bob, and notes are everyone's own.
    ann.publish("inbox:bob", json!({ "text": "psst" })).await?;
    let others = ann.subscribe("inbox:bob").await;
    assert_eq!(refused(others.err()), Some(ErrorCode::Forbidden));
    let own = bob.subscribe("inbox:bob").await?;
    ann.publish("inbox:bob", json!({ "text": "it's me" })).await?;
    assert_eq!(said(&own).await.1, "it's me");
    let notes = ann.publish("notes:bob", json!({ "text": "no" })).await;
    assert_eq!(refused(notes.err()), Some(ErrorCode::Forbidden));
    bob.publish("notes:bob", json!({ "text": "mine" })).await?;
    assert!(example.http("GET / HTTP/1.1", "").contains("<h1>Talk</h1>"));
    Ok(())
}

#[tokio::test]
async fn talk_brings_what_was_said_while_the_connection_was_lost() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_talk"));
    let line = Line::to(&example.address);
    let ann = client::connect(&format!("tcp://{}", example.address)).name("ann").token(b"apple");
    let ann = ann.await?;
    let guest = client::connect(&format!("tcp://{}", line.address)).name("Gus").await?;
    let lobby = guest.subscribe("talk:lobby").await?;
    line.cut();
    for text in ["one", "two"] {
        ann.publish("talk:lobby", json!({ "text": text })).await?;
    }
    line.restore();
    loop {
        if let Some(ChannelEvent::Subscribed { recovered, missed, .. }) = lobby.next().await
            && recovered
        {
            assert_eq!(missed, 0);
            break;
        }
    }
    assert_eq!((said(&lobby).await.1, said(&lobby).await.1), ("one".into(), "two".into()));
    Ok(())
}

#[test]
fn fleet_shows_what_devices_report_and_commands_one_and_those_with_a_tag() {
    let (example, wire) = Example::start_with_service(env!("CARGO_BIN_EXE_fleet"), "FLEET_LISTEN");
    let open = || {
        let mut client = Frames::to(&example.address, b"PF1\n");
        client.say(r#"{"type":"hello","protocol":1,"name":"x"}"#);
        client.hear_of("welcome");
        client
    };
    let post = |path: &str, body: &str| {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}", body.len());
        example.http(&head, body)
    };
    let (mut page, mut valve) = (open(), open());
    page.say(r#"{"type":"subscribe","request":1,"channel":"fleet"}"#);
    page.hear_of("subscribed");
    // One device speaks the protocol of the node, the other its own.
    valve.say(r#"{"type":"register","request":1,"device":"valve","tags":["east"]}"#);
    valve.hear_of("registered");
    page.until(|change| change["id"] == "valve" && change["alive"] == true);
    let mut pump = Frames::to(&wire, b"");
    pump.say("pump east");
    pump.say("2.5");
    page.until(|change| change["id"] == "pump" && change["value"] == 2.5);
    valve.say(r#"{"type":"report","payload":7.5}"#);
    page.until(|change| change["id"] == "valve" && change["value"] == 7.5);
    let list = example.http("GET /devices HTTP/1.1", "");
    assert!(list.contains("pump alive east\n") && list.contains("valve alive east\n"), "{list}");

    assert!(post("/tags/east", "40").ends_with("2 devices\n"));
    assert_eq!(pump.hear().parse(), Ok(40.0));
    assert_eq!(valve.hear_of("command")["payload"], 40.0);
    assert!(post("/devices/pump", "50").ends_with("\r\n\r\n50\n"));
    assert_eq!(pump.hear().parse(), Ok(50.0));
    assert!(post("/devices/nobody", "50").starts_with("HTTP/1.1 4"));
    drop(pump);
    page.until(|change| change["id"] == "pump" && change["alive"] == false);
    assert!(example.http("GET / HTTP/1.1", "").contains("<h1>Fleet</h1>"));
}

#[tokio::test]
async fn fleet_reads_frames_that_arrive_byte_by_byte_from_both_kinds_of_devices()
-> Result<(), Error> {
    let (example, wire) = Example::start_with_service(env!("CARGO_BIN_EXE_fleet"), "FLEET_LISTEN");
    let page = client::connect(&format!("ws://{}", example.address)).await?;
    let changes = page.subscribe("fleet").await?;
    let valve = client::connect(&format!("ws://{}", example.address)).await?;
    let valve = valve.register("valve", &[], &["east"]).await?;
    let mut pump = Frames::to(&wire, b"");
    pump.0.set_nodelay(true).expect("an option");
    let frame = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    for byte in [frame("pump east"), frame("1.5"), frame("2.5")].concat() {
        pump.0.write_all(&[byte]).expect("it reads");
        valve.report_unconfirmed(json!(7)).await?;
    }
    let (mut values, mut reports) = (Vec::new(), 0);
    while values.last() != Some(&json!(2.5)) || reports < 27 {
        if let Some(ChannelEvent::Publication(change)) = changes.next().await {
            let change = change.payload.value()?;
            reports += u32::from(change["id"] == "valve" && change["value"] == 7.0);
            if change["id"] == "pump" && !change["value"].is_null() {
                values.push(change["value"].clone());
            }
        }
    }
    assert_eq!((values, reports), (vec![json!(1.5), json!(2.5)], 27));
    let head = "POST /tags/east HTTP/1.1\r\nContent-Length: 2";
    assert!(example.http(head, "40").ends_with("2 devices\n"));
    assert_eq!(pump.hear().parse(), Ok(40.0));
    let command = valve.next_command().await.expect("it is registered");
    assert_eq!(command.payload().value()?.as_f64(), Some(40.0));
    Ok(())
}

#[tokio::test]
async fn lobby_makes_a_match_for_two_and_sends_them_there() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_lobby"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let at_lobby = ann.join_or_create_dynamic("lobby", None).await?;
    let also = bob.join_dynamic(at_lobby.id()).await?;
    let refused = bob.create_dynamic("match", false, None).await;
    assert_eq!(refused.err().and_then(|error| error.code()), Some(ErrorCode::CreationClosed));
    at_lobby.request("Queue", &json!({ "mode": "duel" })).await?;
    also.request("Queue", &json!({ "mode": "duel" })).await?;
    let mut seats = Vec::new();
    for room in [&at_lobby, &also] {
        let ready = room.next_event().await?.value()?;
        seats.push(ready["seat"].as_str().expect("a reservation").to_owned());
    }
    // The seat is Ann's.
    let stolen = bob.join_dynamic(&seats[0]).await;
    assert_eq!(stolen.err().and_then(|error| error.code()), Some(ErrorCode::BadReservation));
    let duel = ann.join_dynamic(&seats[0]).await?;
    let same = bob.join_dynamic(&seats[1]).await?;
    assert_eq!(duel.id(), same.id());
    until(&duel, |state| state["players"].as_object().is_some_and(|all| all.len() == 2)).await?;
    until(&at_lobby, |state| state["matches"][duel.id()] == 2).await?;
    duel.leave().await?;
    same.leave().await?;
    until(&at_lobby, |state| state["matches"] == json!({})).await
}

#[tokio::test]
async fn lobby_signs_tickets_with_which_ranked_players_join_their_match() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_lobby"));
    let ticket = |player: &str| {
        let head = format!("POST /ranked/{player} HTTP/1.1\r\nContent-Length: 0");
        let answer = example.http(&head, "");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.rsplit("\r\n").next().expect("a body").to_owned()
    };
    let tickets = ["Ann", "Bob", "Cleo"].map(ticket);
    let (guest, other) = (example.connect("guest").await, example.connect("other").await);
    let white = guest.join_dynamic(&tickets[0]).await?;
    let again = other.join_dynamic(&tickets[0]).await;
    assert_eq!(again.err().and_then(|error| error.code()), Some(ErrorCode::BadTicket));
    let black = other.join_dynamic(&tickets[1]).await?;
    assert_eq!(white.id(), black.id());
    until(&white, |state| state["players"].as_object().is_some_and(|all| all.len() == 2)).await?;
    let player =
        |room: &Room<Dynamic>| state(&white)["players"][room.player().0.to_string()].clone();
    assert_eq!(
        (player(&white), player(&black)),
        ("Ann plays white".into(), "Bob plays black".into())
    );
    let next = other.join_dynamic(&tickets[2]).await?;
    assert!(next.id() != white.id() && state(&next)["mode"] == "ranked");
    Ok(())
}

#[tokio::test]
async fn lobby_has_tables_that_friends_join_by_a_code() -> Result<(), Error> {
    let example = Example::rooms(env!("CARGO_BIN_EXE_lobby"));
    let (ann, bob) = (example.connect("Ann").await, example.connect("Bob").await);
    let table = ann.create_dynamic("table", Creation::new().private().code(), None).await?;
    let code = state(&table)["code"].as_str().expect("a code").to_owned();
    assert_eq!((table.key(), &state(&table)["host"]), (Some(&*code), &json!("Ann")));
    let guest = bob.join_by_key_dynamic("table", &code.to_lowercase()).await?;
    assert_eq!(guest.id(), table.id());
    let seat = table.request("Keep", &json!({ "name": "Eve" })).await?;
    let eve = example.connect("Eve").await;
    let eve = eve.join_dynamic(seat.as_str().expect("a reservation")).await?;
    assert_eq!(eve.id(), table.id());
    until(&eve, |state| state["guests"].as_object().is_some_and(|all| all.len() == 3)).await
}

#[cfg(unix)]
#[tokio::test]
async fn a_whiteboard_outlives_the_program() -> Result<(), Error> {
    let file = std::env::temp_dir().join(format!("playfield-boards-{}.redb", std::process::id()));
    let path = file.to_str().expect("a path in UTF-8");
    let arguments = ["--listen=127.0.0.1:0", "--shards=2"];
    let start =
        || Example::start_with(env!("CARGO_BIN_EXE_whiteboard"), &arguments, &[("BOARDS", path)]);
    let example = start();
    let ann = example.connect("Ann").await;
    let ann = ann.join_or_create_by_key_dynamic("board", "42", None).await?;
    let stroke = json!({ "points": [{ "x": 120.5, "y": 30 }, { "x": 130, "y": 31 }] });
    assert_eq!(ann.request("Draw", &stroke).await?, json!(0));
    ann.request("Keep", &Value::Null).await?;
    // The process is killed, as by `kill -9`.
    drop(example);

    let mut example = start();
    let bob = example.connect("Bob").await;
    let bob = bob.join_or_create_by_key_dynamic("board", "42", None).await?;
    assert_eq!(state(&bob)["strokes"]["0"]["author"], "Ann");
    assert_eq!(bob.request("Near", &json!({ "x": 199, "y": 99 })).await?, json!([0]));
    assert_eq!(bob.request("Draw", &stroke).await?, json!(1));
    // An orderly end needs no `Keep`.
    let id = example.process.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().is_ok_and(|it| it.success()));
    let ended = tokio::task::spawn_blocking(move || example.process.wait());
    assert!(ended.await.is_ok_and(|ended| ended.is_ok_and(|it| it.success())));

    let example = start();
    let cleo = example.connect("Cleo").await;
    let cleo = cleo.join_or_create_by_key_dynamic("board", "42", None).await?;
    assert_eq!(state(&cleo)["strokes"]["1"]["author"], "Bob");
    drop(example);
    let _ = std::fs::remove_file(file);
    Ok(())
}

#[test]
fn echo_sends_back_what_it_hears() {
    let example = Example::start(env!("CARGO_BIN_EXE_echo"), &["127.0.0.1:0"]);
    let mut client = TcpStream::connect(&example.address).expect("it listens there");
    let frame = [&5_u32.to_le_bytes()[..], b"hello"].concat();
    client.write_all(&frame).expect("it reads");
    let mut echo = vec![0; frame.len()];
    client.read_exact(&mut echo).expect("it answers");
    assert_eq!(echo, frame);
}
