//! Rooms that stand still while their node can't show that it serves their keys.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use playfield::prelude::*;
use playfield::store::{Completion, Fence, Loaded, MemoryStore, Opened, Store, StoreError, Stored};
use playfield::{Config, ErrorCode, Running, SeatFor};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::ServerMessage;
use playfield_wire::{RequestNumber, RoomNumber};

use super::engine::Engine;
use super::raw::Raw;
use super::{SETTINGS, joined, rest, url, welcomed};

#[derive(State, Default)]
struct Board {
    sum: u32,
}

#[derive(Message)]
#[reply(u32)]
struct Add(u32);

#[room(messages(Add), persist = 1, empty_ms = 60_000)]
impl Room for Board {}

impl Handle<Add> for Board {
    fn handle(&mut self, Add(count): Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.sum += count;
        Ok(self.sum)
    }
}

/// The same, not kept.
#[derive(State, Default)]
struct Scratch {
    sum: u32,
}

#[room(messages(Add), empty_ms = 60_000)]
impl Room for Scratch {}

impl Handle<Add> for Scratch {
    fn handle(&mut self, Add(count): Add, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.sum += count;
        Ok(self.sum)
    }
}

/// A store that the nodes of a test share.
#[derive(Clone, Default)]
struct Shared(MemoryStore);

impl Store for Shared {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        self.0.open(room_type, key)
    }

    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.0.load(room_type, key)
    }

    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        self.0.save(room_type, key, fence, bytes, done);
    }

    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.0.remove(room_type, key, fence)
    }

    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.0.keys(room_type, after, limit)
    }

    fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

fn node(engine: &str, name: &str, store: &Shared) -> Running {
    let mut config = Config::default();
    let of_cluster = [("cluster.engine", engine), ("cluster.node", name), ("cluster.lease", "5s")];
    for (key, value) in SETTINGS.into_iter().chain(of_cluster) {
        config.set(key, value).unwrap();
    }
    let server = Server::new().room::<Board>("board").room::<Scratch>("scratch");
    server.store(store.clone()).start(config).unwrap()
}

fn enter(node: &Running, name: &str, room_type: &str, key: &str) -> (Raw, RoomNumber, String) {
    let mut raw = Raw::hello(&url(node), name, None);
    welcomed(&mut raw);
    raw.send(&wish(room_type, key));
    let joined = joined(&mut raw);
    (raw, joined.room, joined.id.into_owned())
}

fn wish<'a>(room_type: &'a str, key: &'a str) -> ClientMessage<'a> {
    let (request, room_type) = (RequestNumber(1), room_type.into());
    let key = Some(key.into());
    ClientMessage::JoinOrCreate(client::JoinOrCreate { request, room_type, key, options: &[] })
}

fn add(raw: &mut Raw, room: RoomNumber, request: u32) {
    raw.send(&ClientMessage::Request(client::Request {
        room,
        request: RequestNumber(request),
        message: MessageRef::Index(0),
        payload: &[1],
    }));
}

/// The number and the payload of the next reply.
fn reply(raw: &mut Raw) -> (u32, Vec<u8>) {
    match raw.next() {
        ServerMessage::Reply(reply) => (reply.request.0, reply.payload.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// Returns when a room reserves no seats, because it stands still.
fn await_standstill(node: &Running, room: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (handle, wait) = (node.handle(), Duration::from_millis(1));
    let error = loop {
        let eve = SeatFor::Name("Eve".into());
        match runtime.block_on(handle.reserve(room, eve, wait)) {
            Ok(_) => rest(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), ErrorCode::Busy, "{error:?}");
    assert!(error.text().contains("stands still"), "{error:?}");
}

#[test]
fn rooms_that_are_kept_stand_still_while_the_engine_does() {
    let Some(engine) = Engine::start() else { return };
    let a = node(engine.url(), "a", &Shared::default());
    let (mut ann, board, id) = enter(&a, "Ann", "board", "one");
    let (mut ben, scratch, _) = enter(&a, "Ben", "scratch", "one");
    add(&mut ann, board, 10);
    assert_eq!(reply(&mut ann), (10, vec![1]));
    engine.signal("STOP");
    await_standstill(&a, &id);
    for request in 11..15 {
        add(&mut ann, board, request);
        add(&mut ben, scratch, request);
        assert_eq!(reply(&mut ben).0, request, "a room that is not kept goes on");
    }
    engine.signal("CONT");
    for request in 11..15 {
        assert_eq!(reply(&mut ann), (request, vec![request as u8 - 9]));
    }
    add(&mut ann, board, 15);
    assert_eq!(reply(&mut ann), (15, vec![6]), "once each");
}

#[test]
fn a_room_goes_on_after_its_node_was_declared_dead_unless_another_had_its_key() {
    let Some(engine) = Engine::start() else { return };
    let (store, line) = (Shared::default(), Line::to(engine.url()));
    let a = node(&line.url, "a", &store);
    let (mut ann, one, _) = enter(&a, "Ann", "board", "one");
    let (mut cid, two, id) = enter(&a, "Cid", "board", "two");
    add(&mut cid, two, 10);
    assert_eq!(reply(&mut cid), (10, vec![1]));
    while store.0.len() < 2 {
        rest();
    }
    let b = node(engine.url(), "b", &store);
    line.cut();
    await_standstill(&a, &id);
    add(&mut ann, one, 10);
    add(&mut cid, two, 11);
    // Once the other node has the one, the first is declared dead.
    let mut dan = Raw::hello(&url(&b), "Dan", None);
    welcomed(&mut dan);
    let room = loop {
        dan.send(&wish("board", "two"));
        match dan.next() {
            ServerMessage::Joined(joined) => break joined.room,
            ServerMessage::Error(error) => assert_eq!(error.code, ErrorCode::Busy, "{error:?}"),
            ServerMessage::Redirect(_) => {}
            other => panic!("{other:?}"),
        }
        rest();
    };
    add(&mut dan, room, 1);
    assert_eq!(reply(&mut dan), (1, vec![2]), "by its save");
    line.mend();
    assert_eq!(reply(&mut ann), (10, vec![1]));
    match cid.next() {
        ServerMessage::Left(left) => assert_eq!(left.code, ErrorCode::RoomMoved, "{left:?}"),
        other => panic!("{other:?}"),
    }
    // The room that goes on is saved by its new fence.
    let before = store.0.get("board", "one");
    add(&mut ann, one, 11);
    assert_eq!(reply(&mut ann), (11, vec![2]));
    while store.0.get("board", "one") == before {
        rest();
    }
    add(&mut ann, one, 12);
    assert_eq!(reply(&mut ann), (12, vec![3]));
}

/// The way of a node to the engine, which can be cut.
struct Line {
    url: String,
    open: Arc<Mutex<Option<Vec<TcpStream>>>>,
}

impl Line {
    fn to(url: &str) -> Self {
        let address = url.strip_prefix("nats://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let open = Arc::new(Mutex::new(Some(Vec::new())));
        let of_thread = Arc::clone(&open);
        thread::spawn(move || {
            for near in listener.incoming().map_while(std::result::Result::ok) {
                let mut open = of_thread.lock().unwrap();
                let Some(open) = open.as_mut() else { continue };
                let Ok(far) = TcpStream::connect(&address) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || pass(from, to));
                }
                open.extend([near, far]);
            }
        });
        Self { url, open }
    }

    /// Ends all connections, and takes none.
    fn cut(&self) {
        for stream in self.open.lock().unwrap().take().unwrap() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        *self.open.lock().unwrap() = Some(Vec::new());
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes)
        && to.write_all(&bytes[..count]).is_ok()
    {}
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
