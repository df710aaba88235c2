//! Nodes of a cluster on a real engine.

#[path = "cluster/engine.rs"]
mod engine;
#[path = "cluster/moves.rs"]
mod moves;
#[path = "cluster/nomad.rs"]
mod nomad;
#[path = "cluster/process.rs"]
mod process;
#[path = "cluster/raw.rs"]
mod raw;
#[path = "cluster/standing.rs"]
mod standing;

use std::time::{Duration, Instant};

use playfield::prelude::*;
use playfield::{Config, ErrorCode, Running};
use playfield_wire::RequestNumber;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};

use engine::Engine;
use process::Process;
use raw::Raw;

#[derive(State, Default)]
struct Lobby {
    counted: u32,
}

#[derive(Message)]
struct End;

#[derive(Message)]
#[reply(u32)]
struct Count;

#[derive(Message)]
struct Counted(u32);

#[room(messages(End, Count), events(Counted), empty_ms = 60_000)]
impl Room for Lobby {}

impl Handle<Count> for Lobby {
    fn handle(&mut self, _: Count, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.counted += 1;
        cx.emit(&Counted(self.counted));
        Ok(self.counted)
    }
}

impl Handle<End> for Lobby {
    fn handle(&mut self, _: End, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.close("over");
        Ok(())
    }
}

/// Settings of a node. The rates would be in the way.
const SETTINGS: [(&str, &str); 5] = [
    ("listen", "127.0.0.1:0"),
    ("shards", "2"),
    ("limits.session.rooms_created", "{ per_minute = 100000, burst = 1000 }"),
    ("limits.address.rooms_created", "{ per_minute = 100000, burst = 1000 }"),
    ("limits.address.joins", "{ per_minute = 100000, burst = 1000 }"),
];

fn start<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Running {
    let mut config = Config::default();
    for (key, value) in SETTINGS.into_iter().chain(settings) {
        config.set(key, value).unwrap();
    }
    Server::new().room::<Lobby>("lobby").start(config).unwrap()
}

fn node(engine: &Engine, name: &str) -> Running {
    start([("cluster.engine", engine.url()), ("cluster.node", name)])
}

/// Waits before a node is asked once more.
#[expect(clippy::disallowed_methods, reason = "no event says that another node has changed")]
fn rest() {
    std::thread::sleep(Duration::from_millis(20));
}

fn url(node: &Running) -> String {
    format!("tcp://{}", node.local_addr())
}

fn welcomed(raw: &mut Raw) -> server::Welcome<'static> {
    match raw.next() {
        ServerMessage::Welcome(welcome) => welcome,
        other => panic!("{other:?}"),
    }
}

fn joined(raw: &mut Raw) -> server::Joined<'static> {
    match raw.next() {
        ServerMessage::Joined(joined) => joined,
        other => panic!("{other:?}"),
    }
}

fn redirected(raw: &mut Raw, to: &Running) -> String {
    match raw.next() {
        ServerMessage::Redirect(server::Redirect { addresses, reservation, .. }) => {
            assert_eq!(addresses[0], url(to));
            reservation.into_owned()
        }
        other => panic!("{other:?}"),
    }
}

fn refused(raw: &mut Raw) -> (ErrorCode, String) {
    match raw.next() {
        ServerMessage::Error(error) => (error.code, error.text.into_owned()),
        other => panic!("{other:?}"),
    }
}

fn join(room: &str) -> ClientMessage<'_> {
    ClientMessage::Join(client::Join { request: RequestNumber(1), room: room.into() })
}

fn by_key(key: &str) -> ClientMessage<'_> {
    let (request, room_type) = (RequestNumber(1), "lobby".into());
    ClientMessage::JoinByKey(client::JoinByKey { request, room_type, key: key.into() })
}

fn any(key: &str) -> ClientMessage<'_> {
    let (request, room_type) = (RequestNumber(1), "lobby".into());
    let key = Some(key.into());
    ClientMessage::JoinOrCreate(client::JoinOrCreate { request, room_type, key, options: &[] })
}

fn new(key: Option<&str>, code: bool) -> ClientMessage<'_> {
    ClientMessage::Create(client::Create {
        request: RequestNumber(1),
        room_type: "lobby".into(),
        private: false,
        code,
        key: key.map(Into::into),
        options: &[],
    })
}

/// Follows a redirect.
fn follow(reservation: &str, to: &Running, name: &str) -> server::Joined<'static> {
    let mut raw = Raw::hello(&url(to), name, None);
    welcomed(&mut raw);
    raw.send(&join(reservation));
    joined(&mut raw)
}

#[test]
fn rooms_are_found_from_every_node() {
    let Some(engine) = Engine::start() else { return };
    let nodes = [node(&engine, "a"), node(&engine, "b")];
    let [a, b] = &nodes;
    let mut ann = Raw::hello(&url(a), "Ann", None);
    assert_eq!(welcomed(&mut ann).addresses[0], url(a));
    let mut bob = Raw::hello(&url(b), "Bob", None);
    assert_eq!(welcomed(&mut bob).addresses[0], url(b));

    // By key: the one who comes first has the room.
    ann.send(&any("table 7"));
    let id = joined(&mut ann).id;
    for wish in [any("table 7"), by_key("table 7"), join(&id)] {
        bob.send(&wish);
        let reservation = redirected(&mut bob, a);
        assert!(reservation.starts_with(&*id) && reservation.len() > id.len(), "{reservation}");
        assert_eq!(follow(&reservation, a, "Bob").id, id);
    }
    bob.send(&new(Some("table 7"), false));
    assert_eq!(refused(&mut bob).0, ErrorCode::RoomExists);
    bob.send(&by_key("table 8"));
    assert_eq!(refused(&mut bob).0, ErrorCode::RoomNotFound);

    // By code, in any case.
    ann.send(&new(None, true));
    let code = joined(&mut ann).key.unwrap();
    bob.send(&by_key(&code.to_lowercase()));
    assert!(!redirected(&mut bob, a).is_empty());

    // A room without a key, by its id.
    bob.send(&new(None, false));
    let id = joined(&mut bob).id;
    ann.send(&join(&id));
    let reservation = redirected(&mut ann, b);
    assert_eq!(follow(&reservation, b, "Ann").id, id);
    ann.send(&join("aaaaaaaaaaaaaaaa"));
    assert_eq!(refused(&mut ann).0, ErrorCode::RoomNotFound);
}

#[test]
fn joins_that_came_before_the_node_serves_are_answered() {
    let Some(engine) = Engine::start() else { return };
    for round in 0..5 {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        std::thread::scope(|scope| {
            let settings = [("cluster.engine", engine.url()), ("listen", &address)];
            let starting = scope.spawn(move || start(settings));
            // It listens before it has a slot in the cluster.
            while std::net::TcpStream::connect(&address).is_err() {}
            let clients = (0..10).map(|client| {
                let mut raw = Raw::hello(&format!("tcp://{address}"), "Ann", None);
                raw.send(&any(&format!("table {round} {client}")));
                raw
            });
            let clients: Vec<_> = clients.collect();
            let _node = starting.join().unwrap();
            for mut raw in clients {
                welcomed(&mut raw);
                joined(&mut raw);
            }
        });
    }
}

#[test]
fn a_session_is_resumed_at_its_node() {
    let Some(engine) = Engine::start() else { return };
    let [a, b] = &[node(&engine, "a"), node(&engine, "b")];
    let mut ann = Raw::hello(&url(a), "Ann", None);
    let welcome = welcomed(&mut ann);
    ann.send(&any("table"));
    joined(&mut ann);
    drop(ann);
    let resume =
        || client::Resume { token: welcome.resume.to_vec().into(), received: 0, rooms: Vec::new() };
    let mut ann = Raw::hello(&url(b), "Ann", Some(resume()));
    assert_eq!(redirected(&mut ann, a), "");
    assert!(matches!(ann.next(), ServerMessage::Goodbye(_)));
    let mut ann = Raw::hello(&url(a), "Ann", Some(resume()));
    let again = welcomed(&mut ann);
    assert_eq!((again.session, again.resumed.is_some()), (welcome.session, true));
}

#[test]
fn a_key_is_free_when_its_room_has_ended() {
    let Some(engine) = Engine::start() else { return };
    let [a, b] = &[node(&engine, "a"), node(&engine, "b")];
    let mut ann = Raw::hello(&url(a), "Ann", None);
    welcomed(&mut ann);
    ann.send(&any("table"));
    let id = joined(&mut ann).id;
    a.handle().close(&id, "over").unwrap();
    while !matches!(ann.next(), ServerMessage::Left(_)) {}
    let mut bob = Raw::hello(&url(b), "Bob", None);
    welcomed(&mut bob);
    // The claim is removed soon after. Until then, the first node may have made the new room.
    let other = loop {
        bob.send(&any("table"));
        match bob.next() {
            ServerMessage::Joined(joined) => break joined.id,
            ServerMessage::Error(error) => assert_eq!(error.code, ErrorCode::Busy, "{error:?}"),
            ServerMessage::Redirect(redirect) if redirect.reservation.starts_with(&*id) => {}
            ServerMessage::Redirect(redirect) => break redirect.reservation,
            other => panic!("{other:?}"),
        }
    };
    assert!(!other.starts_with(&*id), "{other}");
}

#[test]
fn new_rooms_are_placed_by_load() {
    let Some(engine) = Engine::start() else { return };
    let [a, b] = &[node(&engine, "a"), node(&engine, "b")];
    let mut ann = Raw::hello(&url(a), "Ann", None);
    welcomed(&mut ann);
    for kind in [(None, false), (Some("key"), false), (None, true)] {
        let mut number = 0;
        let reservation = loop {
            number += 1;
            assert!(number < 1000, "no room is placed elsewhere");
            let key = kind.0.map(|key| format!("{key} {number}"));
            ann.send(&new(key.as_deref(), kind.1));
            match ann.next() {
                ServerMessage::Joined(server::Joined { room, .. }) => {
                    let request = RequestNumber(2);
                    ann.send(&ClientMessage::Leave(client::Leave { request, room }));
                    while !matches!(ann.next(), ServerMessage::Left(_)) {}
                }
                ServerMessage::Redirect(redirect) => {
                    assert_eq!(redirect.addresses[0], url(b));
                    break redirect.reservation;
                }
                ServerMessage::Error(error) => assert_eq!(error.code, ErrorCode::Limit),
                other => panic!("{other:?}"),
            }
        };
        follow(&reservation, b, "Ann");
    }
}

/// Asks for a room by key until it is joined here. The node says `busy` as long as it can't know
/// whether the one that had the key is gone.
fn joined_in_time(raw: &mut Raw, key: &str) -> server::Joined<'static> {
    loop {
        raw.send(&any(key));
        match raw.next() {
            ServerMessage::Joined(joined) => return joined,
            ServerMessage::Error(error) => {
                assert_eq!(error.code, ErrorCode::Busy, "{error:?}");
                rest();
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn the_keys_of_a_killed_node_go_to_others_after_the_lease() {
    let Some(engine) = Engine::start() else { return };
    let of_engine = [("cluster.engine", engine.url()), ("cluster.lease", "5s")];
    let lasting = start(of_engine.into_iter().chain([("cluster.node", "lasting")]));
    let mut bob = Raw::hello(&url(&lasting), "Bob", None);
    welcomed(&mut bob);

    let victim = Process::start(&of_engine);
    let mut ann = Raw::hello(victim.url(), "Ann", None);
    welcomed(&mut ann);
    ann.send(&any("table"));
    let id = joined(&mut ann).id;
    victim.kill();
    let killed = Instant::now();
    assert_ne!(joined_in_time(&mut bob, "table").id, id);
    assert!(killed.elapsed() > Duration::from_secs(3), "{:?}", killed.elapsed());
}

#[test]
fn the_keys_of_a_killed_node_go_to_its_successor_on_the_machine_at_once() {
    let Some(engine) = Engine::start() else { return };
    let lock = engine.folder().join("lock");
    let lock = lock.to_str().unwrap();
    let with_lock =
        [("cluster.engine", engine.url()), ("cluster.lease", "5m"), ("cluster.lock", lock)];
    let victim = Process::start(&with_lock);
    let mut ann = Raw::hello(victim.url(), "Ann", None);
    welcomed(&mut ann);
    ann.send(&any("other table"));
    let id = joined(&mut ann).id;
    victim.kill();
    let successor = Process::start(&with_lock);
    let mut ann = Raw::hello(successor.url(), "Ann", None);
    welcomed(&mut ann);
    assert_ne!(joined_in_time(&mut ann, "other table").id, id);
}

#[test]
#[ignore = "a process that another test starts"]
fn a_node_of_its_own() {
    let settings = process::settings();
    let node = start(settings.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    process::serve(&node, &url(&node));
}

/// Uses the connections that the C ABI uses.
#[cfg(feature = "load")]
#[test]
fn connections_of_a_load_move_to_the_node_of_their_room() {
    let Some(engine) = Engine::start() else { return };
    let [a, b] = &[node(&engine, "a"), node(&engine, "b")];
    let mut bob = Raw::hello(&url(b), "Bob", None);
    welcomed(&mut bob);
    bob.send(&any("there"));
    let id = joined(&mut bob).id;
    let mut settings = playfield_load::Settings::new(url(a).parse().unwrap());
    (settings.connections, settings.duration) = (5, None);
    let script = r#"steps = [{ join = "lobby", key = "there" }, { wait = "all" }]"#;
    settings.scripts = playfield_load::script::parse("load.toml", script).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let report = playfield_load::run(&settings, &stop, &mut |_| {}).unwrap();
    assert_eq!(report.trouble(), None, "{:?}", report.problems());
    assert_eq!(report.counts().joined, 5);
    assert_eq!(a.handle().find("lobby", "there"), None);
    assert_eq!(b.handle().find("lobby", "there").as_deref(), Some(&*id));
}
