//! The clients of a node: bots that play, and one that a test controls.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playfield::Format;
use playfield::client;
use playfield::client::RoomNumber;
use playfield::client::session::{ClientConfig, Event, Session, Transport};
use playfield::prelude::*;

use crate::PATIENCE;
use crate::node::Node;
use crate::rooms::{Count, Counted, Ledger};

pub(crate) const BOTS: u32 = 6;
pub(crate) const PER_ROOM: u32 = 3;

/// The state that the bots and the test share.
#[derive(Default)]
pub(crate) struct World {
    url: String,
    /// The certificate of a node with TLS.
    certificate: Option<Vec<u8>>,
    is_over: AtomicBool,
    answered: AtomicU64,
}

/// Asks until the world is over. Each request is executed once, and each event is heard once.
pub(crate) async fn play(world: Arc<World>, bot: u32) {
    let mut connect = client::connect(&world.url).timeout(PATIENCE);
    if let Some(certificate) = &world.certificate {
        connect = connect.root_certificate(certificate);
    }
    let connection = connect.await.unwrap();
    let key = format!("ledger-{}", bot / PER_ROOM);
    let room = connection.join_or_create_by_key::<Ledger>("ledger", &key, &()).await.unwrap();
    let (mut number, mut heard) = (0, BTreeMap::<u32, u64>::new());
    while !world.is_over.load(Ordering::Relaxed) {
        number += 1;
        let executed = room.request(Count { bot, number }).await.unwrap();
        assert_eq!(executed, number, "bot {bot}: each request is executed once");
        world.answered.fetch_add(1, Ordering::Relaxed);
        while heard.get(&bot).is_none_or(|last| *last < number) {
            let event = room.next_event().await.unwrap().decode::<Counted>().unwrap().unwrap();
            if let Some(last) = heard.insert(event.bot, event.number) {
                assert_eq!(event.number, last + 1, "bot {bot} hears each event of {}", event.bot);
            }
        }
        let departures = room.state().departures;
        // Others leave when the world is over.
        if !world.is_over.load(Ordering::Relaxed) {
            assert_eq!(departures, 0, "nobody leaves");
        }
    }
}

/// Bots that play until the end of the test.
pub(crate) struct Bots {
    world: Arc<World>,
    thread: Option<JoinHandle<()>>,
}

impl Bots {
    pub(crate) fn play(node: &Node) -> Self {
        Self::play_at(node.url(), None)
    }

    pub(crate) fn play_at(url: String, certificate: Option<Vec<u8>>) -> Self {
        let world = Arc::new(World { url, certificate, ..World::default() });
        let shared = Arc::clone(&world);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let bots = (0..BOTS).map(|bot| tokio::spawn(play(Arc::clone(&shared), bot)));
                for bot in bots.collect::<Vec<_>>() {
                    bot.await.unwrap();
                }
            });
        });
        Self { world, thread: Some(thread) }
    }

    /// Waits until so many more requests were answered.
    pub(crate) fn wait(&self, requests: u64) {
        let until = self.world.answered.load(Ordering::Relaxed) + requests;
        let by = Instant::now() + PATIENCE;
        while self.world.answered.load(Ordering::Relaxed) < until {
            let is_alive = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
            assert!(is_alive, "a bot has failed");
            assert!(Instant::now() < by, "the bots get answers");
            #[expect(clippy::disallowed_methods, reason = "the bots count without a signal")]
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn end(mut self) {
        self.world.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("no bot has failed");
    }
}

/// A client that sends and reads what the test says.
pub(crate) struct Manual {
    pub(crate) stream: TcpStream,
    session: Session,
    room: Option<RoomNumber>,
    /// The replies so far.
    pub(crate) replies: Vec<Vec<u8>>,
}

impl Manual {
    pub(crate) fn join(node: &Node) -> Self {
        let mut client = Self::connect(node);
        client.join_room();
        client
    }

    /// A client that is in no room.
    pub(crate) fn connect(node: &Node) -> Self {
        let stream = TcpStream::connect(&node.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let session = Session::new(ClientConfig::new(Transport::Native)).unwrap();
        let mut client = Self { stream, session, room: None, replies: Vec::new() };
        client.flush();
        client.read_until(|client| client.session.is_welcomed());
        client
    }

    pub(crate) fn join_room(&mut self) {
        self.session.join_or_create_by_key("ledger", "manual", &[]).unwrap();
        self.flush();
        self.read_until(|client| client.room.is_some());
    }

    /// Asks for the next number of a bot. Returns the number of requests that were executed.
    pub(crate) fn count(&mut self, bot: u32, number: u64) -> u64 {
        let bytes = self.request(0, &Count { bot, number });
        self.stream.write_all(&bytes).unwrap();
        let before = self.replies.len();
        self.read_until(|client| client.replies.len() > before);
        u64::read(Format::Packed, &self.replies[before]).unwrap()
    }

    /// The bytes of a request.
    pub(crate) fn request(&mut self, message: u32, payload: &impl Data) -> Vec<u8> {
        let (mut body, mut out) = (Vec::new(), Vec::new());
        payload.encode(&mut body);
        self.session.request(self.room.unwrap(), message, &body).unwrap();
        self.session.take_output(&mut out);
        out
    }

    pub(crate) fn flush(&mut self) {
        let mut out = Vec::new();
        self.session.take_output(&mut out);
        self.stream.write_all(&out).unwrap();
    }

    pub(crate) fn read_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let mut buffer = vec![0; 1 << 16];
        while !is_done(self) {
            let bytes = self.stream.read(&mut buffer).unwrap();
            assert!(bytes > 0, "the connection goes on");
            self.session.received(&buffer[..bytes]);
            while let Some(event) = self.session.poll_event() {
                match event {
                    Event::Joined(joined) => self.room = Some(joined.room),
                    Event::Reply(reply) => self.replies.push(reply.payload.to_vec()),
                    _ => {}
                }
            }
            self.flush();
        }
    }
}
