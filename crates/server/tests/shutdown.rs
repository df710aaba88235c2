//! The shutdown of a node with rooms that have something to finish.

use std::future::{pending, ready};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::task::{self, Poll};
use std::time::Duration;

use crate::common::{Client, Heard, PATIENCE, config, until};

use axum::body::{Body, Bytes};
use playfield_room::{
    Completion, Context, EndReason, Fence, Loaded, Message, On, Opened, Result, Room, RoomType,
    Store, Stored, room,
};
use playfield_server::{Pace, Running, Server};
use playfield_state::State;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

/// Held by a test that uses what follows; it runs twice, once with descriptor tables of its own.
static ALONE: Mutex<()> = Mutex::new(());
/// Ends the background work that the room begins at its end.
static ENDS: Mutex<Option<SyncSender<()>>> = Mutex::new(None);
/// The callbacks of the room at its end.
static DONE: Mutex<Vec<&str>> = Mutex::new(Vec::new());

#[derive(State, Default)]
struct Saver {}

#[derive(Message)]
struct Saved;

#[room(internal(Saved))]
impl Room for Saver {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let (ends, end) = sync_channel(1);
        *ENDS.lock().unwrap() = Some(ends);
        let _ = cx.compute(move || {
            end.recv().unwrap();
            Saved
        });
    }
}

impl On<Saved> for Saver {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        DONE.lock().unwrap().push("saved");
        Ok(())
    }
}

#[derive(State, Default)]
struct Stuck {}

#[room(internal(Saved))]
impl Room for Stuck {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let _ = cx.spawn(std::future::pending::<Saved>());
    }
}

impl On<Saved> for Stuck {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

/// Its `closing` does not return until the sender for [`BLOCKS`] is gone.
#[derive(State, Default)]
struct Blocking {}

static BLOCKS: Mutex<Option<Receiver<()>>> = Mutex::new(None);

#[room()]
impl Room for Blocking {
    fn closing(&mut self, _: EndReason, _: &mut Context<Self>) {
        let blocks = BLOCKS.lock().unwrap().take().unwrap();
        let _ = blocks.recv();
    }
}

#[derive(State, Default)]
struct Lasting {}

#[room(persist = 60, closing_ms = 1)]
impl Room for Lasting {}

/// A disk that never ends a save.
#[derive(Default)]
struct Slow(Mutex<Vec<Completion>>);

impl Store for Slow {
    fn open(&self, _: &str, _: &str) -> Stored<Opened> {
        Box::pin(ready(Ok(Opened { fence: Fence(1), save: None })))
    }
    fn load(&self, _: &str, _: &str) -> Stored<Option<Loaded>> {
        Box::pin(ready(Ok(None)))
    }
    fn save(&self, _: &str, _: &str, _: Fence, _: Vec<u8>, done: Completion) {
        self.0.lock().unwrap().push(done);
    }
    fn remove(&self, _: &str, _: &str, _: Fence) -> Stored<()> {
        Box::pin(pending())
    }
    fn keys(&self, _: &str, _: Option<&str>, _: usize) -> Stored<Vec<String>> {
        Box::pin(pending())
    }
}

fn server(settings: &[(&str, &str)]) -> Server {
    Server::new(config(settings))
        .room_type(RoomType::of::<Saver>("saver"))
        .room_type(RoomType::of::<Stuck>("stuck"))
        .room_type(RoomType::of::<Blocking>("blocking"))
        .room_type(RoomType::of::<Lasting>("lasting"))
        .store(Slow::default())
}

fn start(settings: &[(&str, &str)]) -> Running {
    server(settings).start().unwrap()
}

fn enter(running: &Running, room_type: &str) -> Client {
    let mut client = Client::native(running.local_addr());
    let request = RequestNumber(1);
    let room_type = room_type.into();
    let key = Some("42".into());
    let join =
        ClientMessage::JoinOrCreate(client::JoinOrCreate { request, room_type, key, options: &[] });
    client.say(&crate::common::encoded(Format::Packed, &join));
    client.until_joined(request).unwrap();
    client
}

fn is_goodbye(heard: &Heard) -> bool {
    matches!(heard, Heard::Goodbye { code: ErrorCode::ShuttingDown })
}

#[test]
pub(crate) fn the_goodbye_comes_when_the_rooms_have_saved() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    DONE.lock().unwrap().clear();
    let running = start(&[("shards", "2")]);
    let mut clients = [enter(&running, "saver"), Client::native(running.local_addr())];
    let stopper = running.stopper();
    stopper.stop();
    clients[0].until(|heard| matches!(heard, Heard::Left { .. }).then_some(()));
    assert!(DONE.lock().unwrap().is_empty());
    let ends = ENDS.lock().unwrap().take().unwrap();
    DONE.lock().unwrap().push("left");
    ends.send(()).unwrap();
    for client in &mut clients {
        client.until(|heard| is_goodbye(heard).then_some(()));
    }
    assert_eq!(*DONE.lock().unwrap(), ["left", "saved"]);
    drop(clients);
    running.wait().unwrap();
}

#[test]
fn a_room_that_never_ends_does_not_keep_the_node_or_the_goodbye_from_its_clients() {
    let running = start(&[("shards", "2"), ("timeouts.shutdown", "100ms")]);
    let mut client = enter(&running, "stuck");
    running.shutdown();
    client.until(|heard| matches!(heard, Heard::Left { .. }).then_some(()));
    client.until(|heard| is_goodbye(heard).then_some(()));
}

#[test]
fn a_shutdown_that_does_not_finish_is_an_error_that_says_what_is_left() {
    let stop = |room_type: &str| {
        let running = start(&[("shards", "1"), ("timeouts.shutdown", "100ms")]);
        let client = enter(&running, room_type);
        running.stopper().stop();
        drop(client);
        running.wait().unwrap_err().to_string()
    };
    assert_eq!(
        stop("stuck"),
        "the shutdown did not finish: rooms dropped before they had ended: 1 (not saved: 0); raise \
         timeouts.shutdown = 100ms or their closing_ms; see the log"
    );
    let text = stop("lasting");
    assert!(text.contains("had ended: 1 (not saved: 1); raise"), "{text}");
    let (ends, blocks) = sync_channel(1);
    *BLOCKS.lock().unwrap() = Some(blocks);
    assert_eq!(
        stop("blocking"),
        "the shutdown did not finish: the thread \"playfield-shard-0\" does not end, and is left \
         behind; see the log"
    );
    drop(ends);
}

#[test]
fn a_save_that_the_store_never_completes_is_counted_and_does_not_keep_the_room() {
    let settings = [("timeouts.hello", "1h"), ("timeouts.heartbeat", "1h")];
    let pace = Pace { speed: 100, ..Pace::default() };
    let running = server(&settings).pace(pace).start().unwrap();
    let client = enter(&running, "lasting");
    until(&running, |running| running.stats().total().saves_late == 1);
    running.stopper().stop();
    drop(client);
    let text = running.wait().unwrap_err().to_string();
    assert!(text.contains("had ended: 1 (not saved: 1); raise"), "{text}");
}

/// A body that sends a piece, again and again, and ends after `pieces`.
struct Pieces {
    left: usize,
    wait: Pin<Box<tokio::time::Sleep>>,
}

impl Pieces {
    const EVERY: Duration = Duration::from_millis(20);

    fn new(left: usize) -> Self {
        Self { left, wait: Box::pin(tokio::time::sleep(Self::EVERY)) }
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<std::result::Result<http_body::Frame<Bytes>, Self::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        std::task::ready!(self.wait.as_mut().poll(cx));
        self.wait = Box::pin(tokio::time::sleep(Self::EVERY));
        self.left -= 1;
        Poll::Ready(Some(Ok(http_body::Frame::data("piece".into()))))
    }
}

/// A node with a handler that takes its time, a stream, a stream without end and a large page; all
/// say when they begin.
fn slow_http(settings: &[(&str, &str)]) -> (Running, Receiver<()>) {
    let (begins, begun) = sync_channel(9);
    let begins = move || {
        let _ = begins.send(());
    };
    let [slow, stream, endless] = std::array::from_fn(|_| begins.clone());
    let server = Server::new(config(settings))
        .route("GET", "/slow", async move || {
            slow();
            tokio::time::sleep(Duration::from_millis(300)).await;
            "answered"
        })
        .route("GET", "/stream", async move || {
            stream();
            Body::new(Pieces::new(15))
        })
        .route("GET", "/endless", async move || {
            endless();
            Body::new(Pieces::new(usize::MAX))
        })
        .route("GET", "/large", async move || {
            begins();
            vec![b'x'; LARGE_BYTES]
        });
    (server.start().unwrap(), begun)
}

const LARGE_BYTES: usize = 30_000_000;

fn begin(running: &Running, begun: &Receiver<()>, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(running.local_addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    begun.recv_timeout(PATIENCE).expect("the handler begins");
    stream
}

#[test]
pub(crate) fn http_requests_under_way_are_answered_to_their_end() {
    let (running, begun) = slow_http(&[("shards", "2"), ("timeouts.shutdown", "60s")]);
    let mut clients = ["/slow", "/stream", "/large"].map(|path| begin(&running, &begun, path));
    let mut idle = TcpStream::connect(running.local_addr()).unwrap();
    idle.set_read_timeout(Some(PATIENCE)).unwrap();
    idle.write_all(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut byte = [0];
    idle.read_exact(&mut byte).unwrap();
    running.stopper().stop();
    let waits = std::thread::spawn(move || running.wait());
    // Connections that wait for a request delay nothing.
    idle.read_to_end(&mut Vec::new()).unwrap();
    let [slow, stream, large] = &mut clients;
    let all = |client: &mut TcpStream| {
        let mut came = Vec::new();
        client.read_to_end(&mut came).unwrap();
        came
    };
    let large = all(large);
    let head = large.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
    assert_eq!(large.len() - head, LARGE_BYTES);
    assert!(String::from_utf8(all(slow)).unwrap().ends_with("answered"));
    let stream = String::from_utf8(all(stream)).unwrap();
    assert_eq!(stream.matches("piece").count(), 15, "{stream}");
    assert!(stream.ends_with("0\r\n\r\n"), "{stream}");
    waits.join().unwrap().unwrap();
}

#[test]
fn a_stream_without_end_does_not_keep_the_node() {
    let (running, begun) = slow_http(&[("timeouts.shutdown", "100ms")]);
    let mut client = begin(&running, &begun, "/endless");
    running.stopper().stop();
    running.wait().unwrap();
    let mut came = Vec::new();
    let _ = client.read_to_end(&mut came);
    assert!(!came.ends_with(b"0\r\n\r\n"));
}

#[test]
fn a_handler_that_never_returns_is_reported_at_the_end() {
    let (begins, begun) = sync_channel(1);
    let (ends, blocks) = sync_channel::<()>(1);
    let blocks = std::sync::Arc::new(Mutex::new(blocks));
    let blocked = async move || {
        begins.send(()).unwrap();
        let _ = blocks.lock().unwrap().recv();
    };
    let settings = config(&[("timeouts.shutdown", "100ms"), ("timeouts.watchdog", "50ms")]);
    let running = Server::new(settings).route("GET", "/blocked", blocked).start().unwrap();
    let client = begin(&running, &begun, "/blocked");
    running.stopper().stop();
    let error = running.wait().unwrap_err().to_string();
    let left = "the thread \"playfield-control\" does not end, and is left behind";
    assert_eq!(error, format!("the shutdown did not finish: {left}; see the log"));
    drop((client, ends));
}
