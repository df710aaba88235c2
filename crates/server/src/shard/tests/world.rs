//! Shards, clients and the wires between them, in one thread and in simulated time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use playfield_room::{Completion, Error, Isolated, Job, Mail, OnePerUser, Task};
use playfield_websocket::{Decoder, Deflate, Item, Limits, Opcode, Role};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};
use tokio::sync::mpsc::UnboundedReceiver;

use super::authentication;
use super::gadget::{FleetLog, TestFleet};
use super::journal;
use super::law_room;
use super::life_room;
use super::listener;
use super::lobby;
use super::placed;
use super::room;
use super::speech::{self, Heard};
use super::tickets;
use super::{credit, overload, passed_on, switching};
use crate::addresses::Tally;
use crate::auth::{Authenticator, Deciding, Decision, Guests, Identity};
use crate::background::{Background, Begin, Origin, Underway};
use crate::cluster::{Cluster, Order};
use crate::config::Config;
use crate::entropy::Entropy;
use crate::fleet::{FleetSettings, HostedFleet};
use crate::node::Node;
use crate::pulse::Watch;
use crate::shard::Shard;
use crate::shard::SocketChange;
use crate::shard::connection::http::HandedOver;
use crate::shard::env::Stopwatch;
use crate::shard::frozen::{self, Frozen};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;
use crate::shard::mail::user::UserMail;
use crate::shard::session::Session;
use crate::shard::session::moving::Moving;
use crate::stats::Counters;
use crate::users::End;

/// Names a client of the world.
pub(super) type Client = usize;

/// A node in a test's hands.
pub(super) struct World {
    pub(super) shards: Vec<Shard>,
    pub(super) node: Arc<Node>,
    /// The calls of the fleet.
    pub(super) fleet_log: FleetLog,
    pub(super) now: Duration,
    pub(super) background: Arc<Held>,
    /// The number of parcels that each shard's mailbox takes at the moment.
    pub(super) space: Vec<usize>,
    parcels: Vec<VecDeque<Parcel>>,
    peers: Vec<Peer>,
    /// The users who are refused.
    pub(super) banned: Banned,
    /// Connections that were handed over, because they speak HTTP.
    handed_over: Vec<(Client, HandedOver)>,
    /// By shard, connections that wait to be served.
    queued: Vec<HashSet<ConnectionKey>>,
    /// The shards' own measure of time, in nanoseconds.
    stopwatch: Arc<[AtomicU64; 2]>,
    /// Instead of running until nothing more happens, it takes a few turns, as this number says.
    pub(super) pace: Option<u64>,
    /// Turns take time.
    is_real: bool,
    /// There are no turns.
    pub(super) is_still: bool,
    /// The settings, and the rule for a second session of a user.
    made_with: (Vec<(String, String)>, OnePerUser),
    /// The build of the room type `switching` in the next process.
    pub(super) build: usize,
    /// Instead of arriving, what clients send is kept here.
    pub(super) held: Option<Vec<u8>>,
}

enum Parcel {
    Mail(ShardMail),
    Moved(Client, Moving),
}

/// The client's end of a connection.
struct Peer {
    /// The location of the connection; `None` when it is gone.
    place: Option<(usize, ConnectionKey)>,
    format: Format,
    websocket: Option<Decoder>,
    /// Bytes that came and were not looked at.
    input: Vec<u8>,
    /// All bytes that ever came.
    came: Vec<u8>,
    /// The number of bytes that it will take before it stops reading.
    takes: usize,
    /// Whether the node said that nothing more comes.
    ended: bool,
    /// The payloads of the pings of its transport.
    pings: Vec<Vec<u8>>,
    /// Whether the client is gone. The node may not have noticed, while the connection moves.
    is_gone: bool,
    /// Bytes that the node did not read yet.
    unread: Vec<u8>,
}

/// A Close frame of a client, with the code 1000.
pub(super) const CLOSE: &[u8] = b"\x88\x82\0\0\0\0\x03\xE8";

/// Background work that waits to be run by the test.
#[derive(Default)]
pub(super) struct Held {
    jobs: Arc<Mutex<Vec<(Origin, Job)>>>,
    tasks: Mutex<Vec<(Origin, Task)>>,
    deciding: Mutex<Vec<(u16, ConnectionKey, u64, Deciding)>>,
    decisions: AtomicU64,
}

impl Background for Held {
    fn spawn(&self, origin: Origin, work: Task) -> Result<(), Error> {
        self.tasks.lock().unwrap().push((origin, work));
        Ok(())
    }

    fn completion(&self, _: Origin) -> Completion {
        // The node has no store.
        Completion::new(drop)
    }

    fn compute_later(&self, origin: Origin, job: Job) -> Result<Begin, Error> {
        if self.jobs.lock().unwrap().len() >= 2 {
            return Err(Error::new(ErrorCode::Busy, "two computations wait"));
        }
        let jobs = Arc::clone(&self.jobs);
        Ok(Box::new(move || jobs.lock().unwrap().push((origin, job))))
    }

    fn decide(
        &self,
        shard: u16,
        connection: ConnectionKey,
        deciding: Deciding,
    ) -> Result<Underway, Error> {
        let decision = self.decisions.fetch_add(1, Ordering::Relaxed) + 1;
        self.deciding.lock().unwrap().push((shard, connection, decision, deciding));
        Ok(Underway { task: None, decision })
    }
}

impl World {
    /// A node with this many shards and the room types `test`, `brisk`, which notices silence in
    /// three seconds, `brisker`, which does so in one and keeps seats for two, `ticking`, `timed`,
    /// which measures round trips every two seconds, `timed often` every 600 ms, `single`, which
    /// takes one player and lets the same user take over, `law`, `law on demand`, `life` and
    /// `meadow`.
    pub(super) fn new(shards: usize, settings: &[(&str, &str)]) -> Self {
        Self::with_fleet(shards, settings, FleetSettings::default())
    }

    /// Like [`new`](Self::new), with these settings of its fleet.
    pub(super) fn with_fleet(
        shards: usize,
        settings: &[(&str, &str)],
        fleet_settings: FleetSettings,
    ) -> Self {
        Self::with(shards, settings, fleet_settings, (OnePerUser::No, 0), None)
    }

    /// Like [`new`](Self::new), where a user has one session.
    pub(super) fn keeping_one(
        shards: usize,
        settings: &[(&str, &str)],
        one_session: OnePerUser,
    ) -> Self {
        Self::with(shards, settings, FleetSettings::default(), (one_session, 0), None)
    }

    /// Like [`new`](Self::new), in a cluster whose orders the test obeys. Rooms of the type `test`
    /// stand still without a lease.
    pub(super) fn in_cluster(shards: usize) -> (Self, Arc<Cluster>, UnboundedReceiver<Order>) {
        let (cluster, orders) = Cluster::of_test();
        let (cluster, rule) = (Arc::new(cluster), (OnePerUser::No, 0));
        let fleet = FleetSettings::default();
        let world = Self::with(shards, &[], fleet, rule, Some(Arc::clone(&cluster)));
        (world, cluster, orders)
    }

    fn with(
        shards: usize,
        settings: &[(&str, &str)],
        fleet_settings: FleetSettings,
        (one_session, build): (OnePerUser, usize),
        cluster: Option<Arc<Cluster>>,
    ) -> Self {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let made_with = (settings.iter().map(owned).collect(), one_session);
        let mut config = Config::default();
        for (name, value) in settings {
            config.set(name, value).unwrap();
        }
        let banned = Banned::default();
        let guests = Guests { name_bytes_max: config.limits.name_bytes.player };
        let guests = Box::new(Gate(guests, Arc::clone(&banned)));
        let mut room_types = vec![room::room_type("test")];
        for (name, silence_ms, grace_ms) in [("brisk", 3000, 10_000), ("brisker", 1000, 2000)] {
            let mut room_type = room::room_type(name);
            room_type.settings.silence_ms = silence_ms;
            room_type.settings.grace_ms = grace_ms;
            room_types.push(room_type);
        }
        for (name, round_trip_ms) in [("timed", 2000), ("timed often", 600)] {
            let mut room_type = room::room_type(name);
            room_type.settings.round_trip_ms = round_trip_ms;
            room_types.push(room_type);
        }
        room_types.extend(law_room::room_types());
        room_types.push(life_room::room_type());
        room_types.push(placed::room_type());
        room_types.push(journal::room_type());
        room_types.push(authentication::room_type());
        room_types.push(credit::room_type());
        room_types.push(overload::room_type());
        room_types.push(passed_on::room_type());
        room_types.push(switching::room_type(build));
        room_types.extend(lobby::room_types());
        room_types.push(listener::room_type());
        // Most clients here say nothing for as long as a test takes.
        let rooms = room_types.iter_mut().map(|room_type| &mut room_type.settings);
        for settings in rooms.filter(|settings| settings.silence_ms == 0) {
            settings.silence_ms = 3_600_000;
        }
        let mut ticking = room::room_type("ticking");
        (ticking.settings.tick_hz, ticking.settings.silence_ms) = (20, 0);
        room_types.push(ticking);
        let secret = Entropy::Seeded(99).bytes();
        if cluster.is_some() {
            room_types[0].settings.isolated = Isolated::Freeze;
        }
        let mut node = Node::new(config, shards, room_types, guests, None, secret);
        node.cluster = cluster;
        node.channel_rules = listener::rules();
        node.users.keep_one(one_session);
        node.service_paths = vec![("/service".to_owned(), 0)];
        let fleet_log = FleetLog::default();
        let fleet = TestFleet(Arc::clone(&fleet_log));
        let fleet = HostedFleet::new(
            Box::new(fleet),
            fleet_settings,
            &node.config,
            &mut Entropy::Seeded(1),
        )
        .unwrap();
        node.fleet = Some(fleet);
        node.tickets = Some(Box::<tickets::Checker>::default());
        let list = Arc::clone(&banned);
        node.admit = Some(Arc::new(move |identity| {
            let user = identity.user.as_deref().unwrap_or_default();
            let is_banned = list.lock().unwrap().contains(user);
            let is_later = user.starts_with("later ");
            let banned = Error::new(ErrorCode::Unauthorized, "banned");
            let decided = if is_banned { Err(banned) } else { Ok(identity) };
            if is_later { Decision::later(async { decided }) } else { decided.into() }
        }));
        let node = Arc::new(node);
        let background = Arc::new(Held::default());
        let stopwatch = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let shard = |index| {
            let background = Arc::clone(&background) as Arc<dyn Background>;
            let shard = Shard::new(
                index as u16,
                Arc::clone(&node),
                background,
                Entropy::Seeded(index as u64),
                Watch(Arc::default()),
                Stopwatch::Held(Arc::clone(&stopwatch)),
            );
            match journal::of_shard(&node.config.journal) {
                Some(journaled) => shard.with_journal(journaled),
                None => shard,
            }
        };
        Self {
            shards: (0..shards).map(shard).collect(),
            node,
            fleet_log,
            now: Duration::ZERO,
            background,
            space: vec![usize::MAX; shards],
            parcels: (0..shards).map(|_| VecDeque::new()).collect(),
            peers: Vec::new(),
            banned,
            handed_over: Vec::new(),
            queued: vec![HashSet::new(); shards],
            stopwatch,
            pace: None,
            is_real: false,
            is_still: false,
            made_with,
            build,
            held: None,
        }
    }

    /// This much of the shards' time passes within a turn.
    pub(super) fn works(&self, time: Duration) {
        self.stopwatch[0].fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// From here on, this much time passes whenever a shard reads its stopwatch.
    pub(super) fn each_look_takes(&self, time: Duration) {
        self.stopwatch[1].store(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Whether from here on turns take as much time as the shards' stopwatch says, and are made one
    /// by one while time [passes](Self::wait).
    pub(super) fn turns_take_time(&mut self, is_real: bool) {
        self.is_real = is_real;
    }

    /// The shards' own measure of time, in nanoseconds, and how much of it passes with each look.
    pub(super) fn stopwatch(&self) -> Arc<[AtomicU64; 2]> {
        Arc::clone(&self.stopwatch)
    }

    /// Turns of one shard for so long, each as long as its stopwatch says.
    pub(super) fn work(&mut self, shard: usize, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            let began = self.stopwatch[0].load(Ordering::Relaxed);
            self.turn(shard);
            let took = self.stopwatch[0].load(Ordering::Relaxed) - began;
            let next = self.shards[shard].next_deadline().unwrap_or(until);
            let waits = next + Duration::from_micros(1);
            self.now = (self.now + Duration::from_nanos(took)).max(waits.min(until));
        }
    }

    /// Lets time pass in which no shard has a turn.
    pub(super) fn oversleep(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// Bytes of a client, which are read at the shard's next turn.
    pub(super) fn leave(&mut self, client: Client, bytes: &[u8]) {
        self.peers[client].unread.extend_from_slice(bytes);
    }

    /// One turn of one shard.
    pub(super) fn turn_once(&mut self, shard: usize) {
        self.turn(shard);
    }

    /// Bytes of a client, as one visit handles them. Whether it has to come back.
    pub(super) fn visit(&mut self, client: Client, bytes: &[u8], took: Duration) -> bool {
        let Some((index, key)) = self.peers[client].place else { return false };
        self.shards[index].visit(key);
        self.works(took);
        if self.shards[index].links.reads(key) {
            self.shards[index].received_behind(key, &mut bytes.to_vec(), 0);
        }
        let comes_back = self.shards[index].visited(key);
        self.run();
        comes_back
    }

    /// Returns whether the client took much of its shard's time lately.
    pub(super) fn takes_much(&self, client: Client) -> bool {
        self.peers[client].place.is_some_and(|(index, key)| {
            self.shards[index].links.takes_much(key, self.shards[index].env.now)
        })
    }

    /// The bytes with which a connection was handed over, because it speaks HTTP.
    pub(super) fn handed_over(&mut self, client: Client) -> Option<Vec<u8>> {
        let at = self.handed_over.iter().position(|(of, _)| *of == client)?;
        Some(self.handed_over.remove(at).1.input)
    }

    /// Gives a connection back to its shard, with these bytes.
    pub(super) fn hand_back(&mut self, client: Client, shard: usize, input: &[u8]) {
        let at = self.handed_over.iter().position(|(of, _)| *of == client);
        let (_, mut http) = self.handed_over.remove(at.expect("it was handed over"));
        http.input = input.to_vec();
        self.shards[shard].begin(self.now);
        let key = self.shards[shard].by_outlet(|out| out.handed_back(http));
        self.peers[client].place = Some((shard, key));
        self.queue(shard, key);
        self.run();
    }

    /// Connects, and says nothing.
    pub(super) fn connect(&mut self, shard: usize) -> Client {
        self.connect_from([10, 0, 0, 1], shard)
    }

    /// Connects from an address, and says nothing.
    pub(super) fn connect_from(&mut self, address: [u8; 4], shard: usize) -> Client {
        self.shards[shard].begin(self.now);
        let tally = self.admit(address, shard, false);
        let tally = tally.expect("there is place for its address");
        let key = self.shards[shard]
            .by_outlet(|out| out.accepted(SocketAddr::from((address, 1234)), tally));
        self.add(shard, key)
    }

    /// Whether a connection from an address would be taken.
    pub(super) fn is_admitted(&mut self, address: [u8; 4], shard: usize) -> bool {
        self.shards[shard].begin(self.now);
        self.admit(address, shard, false).is_some()
    }

    fn admit(&mut self, address: [u8; 4], shard: usize, is_service: bool) -> Option<Tally> {
        let Shard { links, env, .. } = &mut self.shards[shard];
        links.admit_from(env, address.into(), is_service)
    }

    /// Connects from an address in native framing, and says hello.
    pub(super) fn client_from(&mut self, address: [u8; 4], shard: usize) -> Client {
        let client = self.connect_from(address, shard);
        self.bytes(client, &PREAMBLE);
        self.say(client, &speech::hello(Format::Packed));
        client
    }

    /// Connects to a service, and says nothing.
    pub(super) fn connect_to(&mut self, service: u16, shard: usize) -> Client {
        self.shards[shard].begin(self.now);
        let address = [10, 0, 0, 1];
        let tally = self.admit(address, shard, true).unwrap();
        let address = SocketAddr::from((address, 1234));
        let key = self.shards[shard].accepted_for(service, address, tally);
        let client = self.add(shard, key);
        self.run();
        client
    }

    fn add(&mut self, shard: usize, key: ConnectionKey) -> Client {
        self.peers.push(Peer {
            place: Some((shard, key)),
            format: Format::Packed,
            websocket: None,
            input: Vec::new(),
            came: Vec::new(),
            takes: usize::MAX,
            ended: false,
            pings: Vec::new(),
            is_gone: false,
            unread: Vec::new(),
        });
        self.peers.len() - 1
    }

    /// Connects in native framing, and says hello.
    pub(super) fn client(&mut self, shard: usize) -> Client {
        let client = self.connect(shard);
        self.bytes(client, &PREAMBLE);
        self.say(client, &speech::hello(Format::Packed));
        assert!(matches!(self.heard(client)[..], [Heard::Welcome { .. }]));
        client
    }

    /// Connects in native framing or over WebSocket, and says hello in a format under a name.
    pub(super) fn named_client(
        &mut self,
        shard: usize,
        is_websocket: bool,
        format: Format,
        name: &str,
    ) -> Client {
        let client = self.connect(shard);
        if is_websocket {
            self.upgrade(client, format);
        } else {
            self.bytes(client, &PREAMBLE);
            self.peers[client].format = format;
        }
        let hello = Hello { name: name.into(), ..Hello::new(format) };
        self.say(client, &speech::encoded(format, &ClientMessage::Hello(hello)));
        client
    }

    /// Connects over WebSocket, and says hello.
    pub(super) fn websocket_client(&mut self, shard: usize, format: Format) -> Client {
        let client = self.connect(shard);
        self.upgrade(client, format);
        self.say(client, &speech::hello(format));
        assert!(matches!(self.heard(client)[..], [Heard::Welcome { .. }]));
        client
    }

    /// Connects over WebSocket with compression, and says hello.
    pub(super) fn deflating_client(&mut self, shard: usize, format: Format) -> Client {
        let client = self.connect(shard);
        self.upgrade_deflating(client, format);
        self.say(client, &speech::hello(format));
        assert!(matches!(self.heard(client)[..], [Heard::Welcome { .. }]));
        client
    }

    /// Turns a connection into a WebSocket with an offer to compress messages, which the node
    /// takes.
    pub(super) fn upgrade_deflating(&mut self, client: Client, format: Format) {
        let head =
            self.upgrade_with(client, format, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
        assert!(head.contains("Sec-WebSocket-Extensions: permessage-deflate;"), "{head}");
        let limits = Limits { message_bytes_max: 1 << 24, ..Limits::default() };
        let decoder = Decoder::with_deflate(Role::Client, limits, &Deflate::default());
        self.peers[client].websocket = Some(decoder);
    }

    /// Turns a connection into a WebSocket.
    pub(super) fn upgrade(&mut self, client: Client, format: Format) {
        self.upgrade_with(client, format, "");
    }

    /// Like [`upgrade`](Self::upgrade), with more headers. Returns the node's answer.
    fn upgrade_with(&mut self, client: Client, format: Format, headers: &str) -> String {
        let head = self.ask_for_websocket(client, headers);
        assert!(head.starts_with("HTTP/1.1 101 ") && head.ends_with("\r\n\r\n"));
        let limits = Limits { message_bytes_max: 1 << 24, ..Limits::default() };
        self.peers[client].websocket = Some(Decoder::new(Role::Client, limits));
        self.peers[client].format = format;
        head
    }

    /// Asks for a WebSocket with these headers; what the node answers.
    pub(super) fn ask_for_websocket(&mut self, client: Client, headers: &str) -> String {
        let request = format!(
            "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
             {headers}\r\n"
        );
        self.bytes(client, request.as_bytes());
        String::from_utf8(self.raw(client)).unwrap()
    }

    /// Frames a message as the client sends it.
    pub(super) fn framed(&self, client: Client, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let peer = &self.peers[client];
        if peer.websocket.is_some() {
            let opcode = if peer.format.is_text() { Opcode::Text } else { Opcode::Binary };
            playfield_websocket::encode(&mut out, opcode, body, Some([9, 8, 7, 6]));
        } else {
            write_frame(&mut out, body);
        }
        out
    }

    pub(super) fn say(&mut self, client: Client, body: &[u8]) {
        let bytes = self.framed(client, body);
        self.bytes(client, &bytes);
    }

    /// Sends bytes as they are, and lets the node go on until it has nothing left to do.
    pub(super) fn bytes(&mut self, client: Client, bytes: &[u8]) {
        if let Some(held) = &mut self.held {
            return held.extend_from_slice(bytes);
        }
        self.peers[client].unread.extend_from_slice(bytes);
        self.run();
    }

    /// Sends the first bytes, without TLS to a node that accepts only TLS.
    pub(super) fn without_tls(&mut self, client: Client, bytes: &[u8]) {
        if let Some((shard, key)) = self.peers[client].place {
            self.shards[shard].by_outlet(|out| out.refuse_plain(key, bytes));
        }
        self.run();
    }

    /// Sends the same bytes from all of these before the node does anything.
    pub(super) fn all_at_once(&mut self, clients: &[Client], bytes: &[u8]) {
        let all: Vec<_> = clients.iter().map(|&client| (client, bytes.to_vec())).collect();
        self.each(&all);
    }

    /// Sends bytes from several clients before the node does anything.
    pub(super) fn each(&mut self, all: &[(Client, Vec<u8>)]) {
        for (client, bytes) in all {
            self.peers[*client].unread.extend_from_slice(bytes);
        }
        self.run();
    }

    /// The client closes its half of the connection.
    pub(super) fn hang_up(&mut self, client: Client) {
        if let Some((shard, key)) = self.peers[client].place {
            self.shards[shard].by_outlet(|out| out.hung_up(key));
        }
        self.run();
    }

    /// The client has closed its half, while the node does not read.
    pub(super) fn half_close(&mut self, client: Client) {
        if let Some((shard, key)) = self.peers[client].place {
            self.shards[shard].by_outlet(|out| out.half_closed(key));
        }
        self.run();
    }

    /// The connection was reset, while the node does not read.
    pub(super) fn reset(&mut self, client: Client) {
        if let Some((shard, key)) = self.peers[client].place {
            self.shards[shard].by_outlet(|out| out.vanished(key));
        }
        self.run();
    }

    /// The client is gone, without a word.
    pub(super) fn vanish(&mut self, client: Client) {
        self.peers[client].is_gone = true;
        if let Some((shard, key)) = self.peers[client].place.take() {
            self.shards[shard].by_outlet(|out| out.drop_connection(key));
        }
        self.run();
    }

    /// The format that the client speaks in native framing.
    pub(super) fn speaks(&mut self, client: Client, format: Format) {
        self.peers[client].format = format;
    }

    /// Of what came and was not looked at, only the first bytes have arrived.
    pub(super) fn shorten(&mut self, client: Client, bytes: usize) {
        self.peers[client].input.truncate(bytes);
    }

    /// From here on the client reads only this many bytes.
    pub(super) fn takes(&mut self, client: Client, bytes: usize) {
        self.peers[client].takes = bytes;
        let Some((shard, key)) = self.peers[client].place else { return };
        // The socket says that there is space again.
        self.flush(shard, key);
        self.run();
    }

    /// All that the client has heard since it was last asked.
    pub(super) fn heard(&mut self, client: Client) -> Vec<Heard> {
        let mut all = Vec::new();
        self.listen(client, |format, body| {
            all.push(body.map_or(Heard::Ping, |body| speech::heard(format, body)));
        });
        all
    }

    /// The messages that the client has heard since it was last asked, as they came.
    pub(super) fn bodies(&mut self, client: Client) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        self.listen(client, |_, body| all.extend(body.map(<[u8]>::to_vec)));
        all
    }

    pub(super) fn is_websocket(&self, client: Client) -> bool {
        self.peers[client].websocket.is_some()
    }

    /// Takes the payloads of the pings of the client's transport, among what was looked at.
    pub(super) fn transport_pings(&mut self, client: Client) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.peers[client].pings)
    }

    /// Takes what the client has heard: messages, and, as `None`, the pings of its transport. It
    /// answers a Close, as all do.
    fn listen(&mut self, client: Client, take: impl FnMut(Format, Option<&[u8]>)) {
        if self.take(client, take) {
            self.bytes(client, CLOSE);
        }
    }

    /// Returns whether a Close came.
    fn take(&mut self, client: Client, mut take: impl FnMut(Format, Option<&[u8]>)) -> bool {
        let mut has_closed = false;
        let peer = &mut self.peers[client];
        let framing = Framing { message_bytes_max: 1 << 24 };
        loop {
            let consumed = match &mut peer.websocket {
                None => {
                    let Some(frame) = framing.decode(&peer.input).unwrap() else { return false };
                    take(peer.format, Some(frame.body));
                    frame.consumed
                }
                Some(decoder) => {
                    let decoded = decoder.decode(&mut peer.input).unwrap();
                    match decoded.item {
                        Some(Item::Text(text)) => take(peer.format, Some(text.as_bytes())),
                        Some(Item::Binary(body)) => take(peer.format, Some(body)),
                        Some(Item::Ping(payload)) => {
                            peer.pings.push(payload.to_vec());
                            take(peer.format, None);
                        }
                        Some(Item::Close(_)) => has_closed = true,
                        _ if decoded.consumed == 0 => return has_closed,
                        _ => {}
                    }
                    decoded.consumed
                }
            };
            peer.input.drain(..consumed);
        }
    }

    /// The bytes that the client got since it was last asked.
    pub(super) fn raw(&mut self, client: Client) -> Vec<u8> {
        std::mem::take(&mut self.peers[client].input)
    }

    /// Every byte that the client ever got.
    pub(super) fn came(&self, client: Client) -> &[u8] {
        &self.peers[client].came
    }

    /// The rooms that the client's session is in: their numbers and ids, by number.
    pub(super) fn rooms_of(&mut self, client: Client) -> Vec<(RoomNumber, String)> {
        let Some((shard, key)) = self.peers[client].place else { return Vec::new() };
        let session = self.shards[shard].sessions.get_mut(key);
        let mut rooms: Vec<_> = session.map_or(Vec::new(), |session| {
            let joined = session.rooms.iter().filter(|room| session.joined(room.number).is_some());
            joined.map(|room| (room.number, room.id.to_string())).collect()
        });
        rooms.sort_unstable();
        rooms
    }

    /// The number of the client's session, if it has one here.
    pub(super) fn session_of(&self, client: Client) -> Option<u64> {
        let (shard, key) = self.peers[client].place?;
        self.shards[shard].sessions.number(key)
    }

    /// Returns whether the node has ended the connection.
    pub(super) fn is_over(&self, client: Client) -> bool {
        let moves = |parcel: &Parcel| matches!(parcel, Parcel::Moved(of, _) if *of == client);
        let peer = &self.peers[client];
        let has_no_place = || peer.place.is_none() && !self.parcels.iter().flatten().any(moves);
        peer.ended || has_no_place()
    }

    /// The shard and the key of the client's connection.
    pub(super) fn place_of(&self, client: Client) -> (usize, ConnectionKey) {
        self.peers[client].place.expect("the connection goes on")
    }

    /// Returns the number of bytes of events that wait for a session to be in their rooms.
    pub(super) fn entering_bytes(&self, shard: usize, key: ConnectionKey) -> usize {
        let session = self.shards[shard].sessions.get(key);
        session.and_then(Session::extras).map_or(0, |extras| extras.entering_bytes)
    }

    /// Returns the number of bytes of memory that the connection's buffers hold.
    pub(super) fn buffered(&self, client: Client) -> usize {
        let (shard, key) = self.place_of(client);
        self.shards[shard].links.get(key).map_or(0, crate::shard::connection::Connection::buffered)
    }

    /// The shard that the client's connection is on.
    pub(super) fn shard_of(&self, client: Client) -> usize {
        self.place_of(client).0
    }

    pub(super) fn join(&mut self, client: Client, request: RequestNumber, id: &str) {
        let message = ClientMessage::Join(client::Join { request, room: id.into() });
        self.say(client, &speech::encoded(self.peers[client].format, &message));
    }

    pub(super) fn create(
        &mut self,
        client: Client,
        request: RequestNumber,
        private: bool,
        options: &str,
    ) {
        let options = self.payload(client, options);
        let room_type = "test".into();
        let message = ClientMessage::Create(client::Create {
            request,
            room_type,
            private,
            code: false,
            key: None,
            options: &options,
        });
        self.say(client, &speech::encoded(self.peers[client].format, &message));
    }

    pub(super) fn join_or_create(&mut self, client: Client, request: RequestNumber, options: &str) {
        let options = self.payload(client, options);
        let message = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type: "test".into(),
            key: None,
            options: &options,
        });
        self.say(client, &speech::encoded(self.peers[client].format, &message));
    }

    fn payload(&self, client: Client, text: &str) -> Vec<u8> {
        match self.peers[client].format {
            Format::Msgpack | Format::Json if text.is_empty() => Vec::new(),
            format => room::encoded(format, text.as_bytes()),
        }
    }

    /// Makes a room with these options, and waits for it: its number and id.
    pub(super) fn room(&mut self, client: Client, options: &str) -> (RoomNumber, String) {
        self.create(client, RequestNumber(1000), false, options);
        self.joined(client)
    }

    /// Waits for a room to be joined: its number and id.
    pub(super) fn joined(&mut self, client: Client) -> (RoomNumber, String) {
        for _ in 0..20 {
            self.wait(60);
            if !self.peers[client].input.is_empty() {
                break;
            }
        }
        let heard = self.heard(client);
        let [Heard::Joined { room, id, .. }, Heard::Snapshot { room: shown, .. }, ..] = &heard[..]
        else {
            panic!("not joined: {heard:?}");
        };
        assert_eq!(room, shown);
        (*room, id.clone())
    }

    pub(super) fn request(
        &mut self,
        client: Client,
        room: RoomNumber,
        request: RequestNumber,
        name: &str,
        payload: &str,
    ) {
        self.say(client, &speech::request(self.peers[client].format, room, request, name, payload));
    }

    /// The answer to one request, at once.
    pub(super) fn ask(
        &mut self,
        client: Client,
        room: RoomNumber,
        name: &str,
        payload: &str,
    ) -> Vec<Heard> {
        self.request(client, room, RequestNumber(77), name, payload);
        self.heard(client)
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, milliseconds: u64) {
        let until = self.now + Duration::from_millis(milliseconds);
        loop {
            let next = self.shards.iter().filter_map(Shard::next_deadline).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            // The loop of a node wakes in whole milliseconds; where nothing changes, it must not
            // stand still either.
            self.now = self.now.max(next) + Duration::from_micros(1);
            if self.now >= until {
                break;
            }
            self.run();
        }
        // Not later, whatever was due: histories that are compared need the same times.
        self.now = if self.is_real { self.now.max(until) } else { until };
        self.run();
    }

    /// Runs what rooms and the authenticator have in the background.
    pub(super) fn run_background(&mut self) {
        let jobs = std::mem::take(&mut *self.background.jobs.lock().unwrap());
        let tasks = std::mem::take(&mut *self.background.tasks.lock().unwrap());
        let mut ended = Vec::new();
        for (origin, job) in jobs {
            ended.push((origin, job()));
        }
        for (origin, mut task) in tasks {
            let Poll::Ready(message) = task.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            else {
                self.background.tasks.lock().unwrap().push((origin, task));
                continue;
            };
            ended.push((origin, message));
        }
        for (shard, connection, decision, mut deciding) in
            std::mem::take(&mut *self.background.deciding.lock().unwrap())
        {
            let decided = deciding.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(decided) = decided else {
                panic!("nothing decides later than at once")
            };
            let decided = Box::new(decided);
            let mail = ShardMail::Authenticated { connection, decision, decided };
            self.parcels[usize::from(shard)].push_back(Parcel::Mail(mail));
        }
        for (origin, message) in ended {
            let mail = ShardMail::Finished {
                room: origin.room,
                mail: Mail::Done { task: origin.task, message },
            };
            self.parcels[usize::from(origin.shard)].push_back(Parcel::Mail(mail));
        }
        self.run();
    }

    pub(super) fn shut_down(&mut self) {
        self.close_rooms();
        self.say_goodbye();
    }

    /// The first half of a shutdown; the second begins when all shards have closed their rooms, or
    /// when it takes too long.
    pub(super) fn close_rooms(&mut self) {
        self.shards.iter_mut().for_each(Shard::close_rooms);
        self.run();
    }

    pub(super) fn have_closed_rooms(&self) -> bool {
        self.shards.iter().all(Shard::has_closed_rooms)
    }

    /// Returns the number of sessions that a user has, on all shards and on the way between them.
    pub(super) fn sessions_of(&self, user: &str) -> usize {
        let here = self
            .shards
            .iter()
            .flat_map(|shard| shard.sessions.keys().filter_map(|key| shard.sessions.get(key)));
        let moving = self.parcels.iter().flatten().filter_map(|parcel| match parcel {
            Parcel::Moved(_, moving) => moving.session.as_deref(),
            Parcel::Mail(_) => None,
        });
        here.chain(moving).filter(|session| session.user() == Some(user)).count()
    }

    /// The sessions of all shards, and how many of them are away.
    pub(super) fn sessions(&mut self) -> (u64, u64) {
        let counters: Vec<_> = self.shards.iter_mut().map(Shard::counters).collect();
        let sum = |of: fn(&Counters) -> u64| counters.iter().map(of).sum();
        (sum(|counters| counters.sessions), sum(|counters| counters.sessions_away))
    }

    /// The members of all rooms.
    pub(super) fn members(&self) -> usize {
        self.shards.iter().map(|shard| shard.host.members()).sum()
    }

    /// The rooms that the directory knows, and their taken and reserved seats.
    pub(super) fn load(&self) -> usize {
        self.shards[0].env.node.directory.load()
    }

    pub(super) fn say_goodbye(&mut self) {
        self.shards.iter_mut().for_each(Shard::say_goodbye);
        self.run();
    }

    /// Ends all sessions of a user, as a program does; how many there are.
    pub(super) fn end_sessions(&mut self, user: &str, why: &str) -> usize {
        let ending = self.node.users.end(user, End::kicked(why.into()), self.now);
        let count = ending.len();
        for (place, end) in ending {
            let mail = ShardMail::User(UserMail::End(place, end));
            self.parcels[usize::from(place.shard)].push_back(Parcel::Mail(mail));
        }
        self.run();
        count
    }

    /// Mail for a shard, from outside.
    pub(super) fn post(&mut self, shard: u16, mail: ShardMail) {
        self.parcels[usize::from(shard)].push_back(Parcel::Mail(mail));
        self.run();
    }

    pub(super) fn counters(&mut self, shard: usize) -> Counters {
        self.shards[shard].counters()
    }

    /// Another node takes over, with this many shards, from what this one is frozen to. What was
    /// written to connections arrives. All are lost but those that are passed on, if it `passes`
    /// any: returns the clients of these.
    pub(super) fn replace(&mut self, shards: usize, passes: bool) -> Vec<usize> {
        self.space.fill(usize::MAX);
        for shard in &mut self.shards {
            shard.begin(self.now);
            shard.stop_rooms();
        }
        self.exchange(Shard::settle_stopped);
        self.shards.iter_mut().for_each(Shard::freeze_rooms);
        self.exchange(Shard::settle_journaled);
        let (mut all, mut passed) = (Frozen::default(), Vec::new());
        for (index, shard) in self.shards.iter_mut().enumerate() {
            let is_at = |peer: &Peer, key| peer.place == Some((index, key)) && !peer.is_gone;
            let frozen = shard.collect_frozen(|key| {
                let client = self.peers.iter().position(|peer| passes && is_at(peer, key));
                passed.extend(client);
                client.is_some()
            });
            all.add(frozen.unwrap());
        }

        let (settings, one_session) = self.made_with.clone();
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let fleet = FleetSettings::default();
        let mut next = Self::with(shards, &settings, fleet, (one_session, self.build), None);
        // No number that it draws is one that this node has drawn.
        for (index, shard) in (0_u64..).zip(&mut next.shards) {
            let drawn = self.shards[0].env.entropy.bytes();
            shard.env.entropy = Entropy::Seeded(u64::from_le_bytes(drawn) ^ index);
        }
        next.shards.iter_mut().for_each(|shard| shard.begin(self.now));
        let thawed = frozen::thaw(&mut next.shards, &all).unwrap();
        next.shards.iter_mut().for_each(|shard| shard.go_on_thawed(self.now));
        next.now = self.now;
        next.pace = self.pace;
        next.is_real = self.is_real;
        next.peers = std::mem::take(&mut self.peers);
        let open: HashMap<usize, (u16, ConnectionKey)> =
            passed.into_iter().zip(thawed.connections).collect();
        for (client, peer) in next.peers.iter_mut().enumerate() {
            if let Some(&(shard, key)) = open.get(&client) {
                let shard = usize::from(shard);
                peer.place = Some((shard, key));
                next.shards[shard].goes_on(key);
                continue;
            }
            (peer.place, peer.is_gone, peer.ended) = (None, true, false);
            peer.unread.clear();
        }
        *self = next;
        self.run();
        open.into_keys().collect()
    }

    /// All rooms are written, this mail from outside comes, and no other node takes over.
    pub(super) fn fail_to_replace(&mut self, shard: usize, mail: ShardMail) {
        self.shards.iter_mut().for_each(Shard::stop_rooms);
        self.exchange(Shard::settle_stopped);
        self.shards.iter_mut().for_each(Shard::freeze_rooms);
        self.shards[shard].mail(mail);
        let before = self.shards[shard].counters().rooms;
        self.exchange(|_| {});
        assert_eq!(self.shards[shard].counters().rooms, before);
        self.shards.iter_mut().for_each(Shard::thaw_here);
        self.run();
    }

    /// All rooms are written, and no other node takes over.
    pub(super) fn stay(&mut self) {
        self.space.fill(usize::MAX);
        for shard in &mut self.shards {
            shard.begin(self.now);
            shard.stop_rooms();
        }
        self.exchange(Shard::settle_stopped);
        self.shards.iter_mut().for_each(Shard::freeze_rooms);
        self.exchange(Shard::settle_journaled);
        self.shards.iter_mut().for_each(Shard::thaw_here);
        self.run();
    }

    /// Delivers mail until none is under way, and does this on each shard in between.
    fn exchange(&mut self, act: impl Fn(&mut Shard)) {
        loop {
            let mut is_over = true;
            for index in 0..self.shards.len() {
                for parcel in std::mem::take(&mut self.parcels[index]) {
                    is_over = false;
                    match parcel {
                        Parcel::Mail(mail) => self.shards[index].mail(mail),
                        Parcel::Moved(client, moving) => {
                            let key = self.shards[index].by_outlet(|out| out.arrive(moving));
                            self.settle(client, index, key);
                        }
                    }
                }
                act(&mut self.shards[index]);
                self.change_places(index);
                while let Some(key) = self.shards[index].next_dirty() {
                    if !self.shards[index].links.is_blocked(key) {
                        self.flush(index, key);
                    }
                }
                for target in 0..self.shards.len() {
                    let mail = self.shards[index].outbound.outgoing(target as u16);
                    is_over &= mail.is_empty();
                    self.parcels[target].extend(mail.drain(..).map(Parcel::Mail));
                }
                is_over &= self.shards[index].is_quiet();
            }
            if is_over {
                return;
            }
        }
    }

    /// Runs turns until nothing more happens.
    pub(super) fn run(&mut self) {
        if let Some(pace) = &mut self.pace {
            *pace = pace.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut chance = *pace >> 32;
            for _ in 0..chance % 8 {
                chance /= 8;
                self.turn(chance as usize % self.shards.len());
            }
            return;
        }
        if self.is_still {
            return;
        }
        if self.is_real {
            let began = self.stopwatch[0].load(Ordering::Relaxed);
            for shard in 0..self.shards.len() {
                self.turn(shard);
            }
            let took = self.stopwatch[0].load(Ordering::Relaxed) - began;
            self.now += Duration::from_nanos(took) / self.shards.len() as u32;
            return;
        }
        for _ in 0..10_000 {
            let mut is_busy = false;
            for shard in 0..self.shards.len() {
                is_busy |= self.turn(shard);
            }
            if !is_busy {
                return;
            }
        }
        panic!("the node does not come to rest");
    }

    /// One turn of one shard; whether anything happened that others may see.
    fn turn(&mut self, index: usize) -> bool {
        let mut is_busy = false;
        self.shards[index].begin(self.now);
        for parcel in std::mem::take(&mut self.parcels[index]) {
            is_busy = true;
            match parcel {
                Parcel::Mail(mail) => self.shards[index].mail(mail),
                Parcel::Moved(client, moving) => {
                    let key = self.shards[index].by_outlet(|out| out.arrive(moving));
                    self.settle(client, index, key);
                }
            }
        }
        while let Some(key) = self.shards[index].links.next_resumed() {
            self.queue(index, key);
        }
        for client in 0..self.peers.len() {
            let peer = &self.peers[client];
            if let Some((shard, key)) = peer.place
                && shard == index
                && !peer.unread.is_empty()
                && self.shards[shard].links.reads(key)
            {
                self.queue(shard, key);
            }
        }
        self.shards[index].begin_work();
        while let Some(key) = self.shards[index].next_input() {
            is_busy = true;
            self.serve(index, key);
        }
        self.shards[index].end_input();
        self.shards[index].advance();
        self.change_places(index);
        while let Some(key) = self.shards[index].next_dirty() {
            if !self.shards[index].links.is_blocked(key) {
                self.flush(index, key);
                is_busy = true;
            }
        }
        while let Some(key) = self.shards[index].links.next_written() {
            if let Some(peer) = self.peer_at(index, key) {
                peer.ended = true;
            }
        }
        while let Some((key, target, moving)) =
            self.shards[index].by_outlet(|out| out.next_departure())
        {
            let client = self.client_at(index, key).expect("a client that moves is there");
            let target = usize::from(target);
            if self.parcels[target].len() < self.space[target] {
                is_busy = true;
                self.peers[client].place = None;
                self.parcels[target].push_back(Parcel::Moved(client, moving));
            } else {
                let key = self.shards[index].by_outlet(|out| out.bounced(moving));
                self.settle(client, index, key);
            }
        }
        for target in 0..self.shards.len() {
            let space = self.space[target].saturating_sub(self.parcels[target].len());
            let mail = self.shards[index].outbound.outgoing(target as u16);
            let fitting = space.min(mail.len());
            is_busy |= fitting > 0;
            self.parcels[target].extend(mail.drain(..fitting).map(Parcel::Mail));
            let all = mail.is_empty();
            self.shards[index].by_outlet(|out| out.posted(target as u16, all));
        }
        self.change_places(index);
        is_busy
            | self.shards[index]
                .sessions
                .snapshots
                .deadline()
                .is_some_and(|at| at <= self.shards[index].env.now)
            | self.shards[index].links.has_work()
            | self.shards[index].outbound.has_held()
            | journal::is_lagging(&self.shards[index].outbound)
    }

    /// Lets a connection wait to be served, unless it does already.
    fn queue(&mut self, shard: usize, key: ConnectionKey) {
        if self.queued[shard].insert(key) {
            let Shard { links, env, .. } = &mut self.shards[shard];
            links.queue_input(key, env.now);
        }
    }

    /// Serves a connection.
    fn serve(&mut self, shard: usize, key: ConnectionKey) {
        self.queued[shard].remove(&key);
        let client = self.client_at(shard, key);
        self.shards[shard].visit(key);
        if let Some(client) = client
            && self.shards[shard].links.reads(key)
        {
            let bytes = std::mem::take(&mut self.peers[client].unread);
            if !bytes.is_empty() {
                let mut buffer = [&[0xFF; SPACE_BEFORE_INPUT], &bytes[..]].concat();
                self.shards[shard].received_behind(key, &mut buffer, SPACE_BEFORE_INPUT);
            }
        }
        if self.shards[shard].visited(key) {
            self.queue(shard, key);
        }
    }

    /// A connection that moved has a place again. If its client is gone, the node notices now.
    fn settle(&mut self, client: Client, index: usize, key: ConnectionKey) {
        if self.peers[client].is_gone {
            self.shards[index].by_outlet(|out| out.drop_connection(key));
        } else {
            self.peers[client].place = Some((index, key));
        }
    }

    fn change_places(&mut self, index: usize) {
        while let Some(change) = self.shards[index].links.next_socket_change() {
            match change {
                SocketChange::Greeted(_) => {}
                SocketChange::Moved { from, to } => {
                    if let Some(peer) = self.peer_at(index, from) {
                        peer.place = Some((index, to));
                    }
                }
                SocketChange::HandedOver(key, http) => {
                    if let Some(client) = self.client_at(index, key) {
                        self.peers[client].place = None;
                        self.handed_over.push((client, *http));
                    }
                }
                SocketChange::Dropped(key) => {
                    if let Some(peer) = self.peer_at(index, key) {
                        peer.place = None;
                    }
                }
            }
        }
    }

    fn flush(&mut self, shard: usize, key: ConnectionKey) {
        let Some(client) = self.client_at(shard, key) else { return };
        let peer = &mut self.peers[client];
        loop {
            let bytes = self.shards[shard].links.unsent(key);
            let count = bytes.len().min(peer.takes);
            if bytes.is_empty() {
                return;
            }
            peer.input.extend_from_slice(&bytes[..count]);
            peer.came.extend_from_slice(&bytes[..count]);
            peer.takes -= count;
            self.shards[shard].wrote(key, count);
            if count == 0 {
                return;
            }
        }
    }

    fn client_at(&self, shard: usize, key: ConnectionKey) -> Option<Client> {
        self.peers.iter().position(|peer| peer.place == Some((shard, key)))
    }

    fn peer_at(&mut self, shard: usize, key: ConnectionKey) -> Option<&mut Peer> {
        self.client_at(shard, key).map(|client| &mut self.peers[client])
    }
}

/// Users who are refused.
pub(super) type Banned = Arc<Mutex<HashSet<String>>>;

/// Accepts guests, and users who are not banned, and panics at one token.
struct Gate(Guests, Banned);

/// The token at which the authenticator panics.
pub(super) const PANIC_TOKEN: &[u8] = b"panic";

/// The space, before the end of a message, for the part of it that was kept.
const SPACE_BEFORE_INPUT: usize = 24;

/// The prefix of a user's name in a token.
const USER_TOKEN: &[u8] = b"user:";

/// The prefix of a user's name in a token whose check ends with [`World::run_background`]. The
/// check looks at who is banned when it begins.
const LATER_TOKEN: &[u8] = b"later:";

/// The token of a client that is to show a ticket.
pub(super) const TICKET_TOKEN: &[u8] = b"ticket";

/// The token whose check waits for [`World::run_background`].
pub(super) const SLOW_TOKEN: &[u8] = b"slow";

impl Authenticator for Gate {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        assert!(hello.token != PANIC_TOKEN, "a bad token");
        if hello.token == SLOW_TOKEN {
            let name = hello.name.clone().into_owned();
            return Decision::later(async {
                let refusal = Error::new(ErrorCode::Unauthorized, "not you");
                if name == "nobody" { Err(refusal) } else { Ok(Identity::user("slow", name)) }
            });
        }
        if hello.token == TICKET_TOKEN {
            return Ok(Identity::ticket_holder(hello.name.clone())).into();
        }
        let after =
            |prefix| hello.token.strip_prefix(prefix).filter(|user: &&[u8]| !user.is_empty());
        let later = after(LATER_TOKEN);
        if let Some(user) = later.or_else(|| after(USER_TOKEN)) {
            let user = String::from_utf8_lossy(user);
            let decided = match self.1.lock().unwrap().contains(&*user) {
                true => Err(Error::new(ErrorCode::Unauthorized, "banned")),
                false => Ok(Identity::user(user.clone(), user)),
            };
            return match later {
                Some(_) => Decision::later(async { decided }),
                None => decided.into(),
            };
        }
        self.0.authenticate(hello)
    }
}
