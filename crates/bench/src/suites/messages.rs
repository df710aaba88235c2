//! `bench messages`: many clients send requests to rooms, compared with a bare server that reads
//! and answers as many bytes. And `bench requests`: 10,000 requests at once, to nodes with one
//! shard and with several.
//!
//! A client sends as many messages as the window has, waits for all answers, and sends the next.
//! Every answer is compared: its request, and what the room read of the message.

use std::io;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_state::Bytes;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use crate::harness::Side;
use crate::harness::bare::{self, Answer};
use crate::harness::dialogue::{Dialogue, FORMAT, Frame, Transport, join_or_create, varint};
use crate::harness::fleet::{Fleet, Links, Script, wrong};
use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, options};
use crate::harness::process::{Role, Server, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::stats::Samples;

options! {
    Options {
        count: usize = 10_000, quick 50
            => "count" "N" "number of clients (default 10000)", |given| given.within(1..=19_000);
        transport: Transport = Transport::Tcp
            => "transport" "tcp|ws" "native framing (default) or WebSocket", |given| given.value();
        bytes: Option<usize> = None
            => "bytes" "N" "only messages of this size",
            |given| given.within(ECHOED..=60_000).map(Some);
        window: Option<usize> = None
            => "window" "N" "only with this many messages of a client under way (default 10, then 1)",
            |given| given.within(1..=WINDOW_MAX).map(Some);
        time: Duration = Duration::from_secs(2), quick Duration::from_millis(300)
            => "seconds" "S" "how long each server of a case is measured (default 2)",
            |given| given.seconds(1..=86_400);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

options! {
    RequestsOptions {
        requests: usize = 10_000, quick 200
            => "requests" "N" "number of requests (default 10000)", |given| given.within(1..=19_000);
        rounds: u32 = 20, quick 3
            => "rounds" "N" "how often they are sent (default 20)", |given| given.within(1..=10_000);
        shards: Option<usize> = None
            => "shards" "N" "only with this many shards", |given| given.within(1..=256).map(Some);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const MESSAGES: Suite<Options> = Suite {
    name: "messages",
    about: "many clients send requests to rooms, compared with a bare server that reads and answers
as many bytes. The server runs on one core, the clients on another.",
    defaults: Options::new,
    run,
};

pub(crate) const REQUESTS: Suite<RequestsOptions> = Suite {
    name: "requests",
    about: "how long a node with 1, 2, 4 and 8 shards takes to answer 10,000 requests that are sent
at once, each by a client of its own. The node and the clients share all cores.",
    defaults: RequestsOptions::new,
    run: run_requests,
};

pub(crate) const ROLE: Role = Role { name: "messages", log: "error", serve: host };

/// The number of a message's bytes that are in its answer.
const ECHOED: usize = 8;
/// The largest window: the numbers of its requests all take one byte.
const WINDOW_MAX: usize = 100;
/// The number of each client's room.
const ROOM: RoomNumber = RoomNumber(1);
const OPENING_MAX: usize = 64;

/// One size and one window.
#[derive(Clone, Copy, Debug)]
struct Case {
    transport: Transport,
    clients: usize,
    bytes: usize,
    window: usize,
}

const COLUMNS: &[Column] = &[
    ("transport", "transport"),
    ("clients", "clients"),
    ("bytes", "bytes"),
    ("window", "window"),
    ("messages/s", "messages_per_s"),
    ("bare", "floor_messages_per_s"),
    ("ratio", "floor_ratio"),
    ("us/message", "server_us_per_message"),
    ("bare", "floor_us_per_message"),
    ("core", "server_core"),
    ("compared", "compared"),
    ("verified", "verified"),
];

const REQUESTS_COLUMNS: &[Column] = &[
    ("shards", "shards"),
    ("requests", "requests"),
    ("rounds", "rounds"),
    ("requests/s", "requests_per_s"),
    ("ms", "round_ms_p50"),
    ("ms, p99", "round_ms_p99"),
    ("us/request", "server_us_per_request"),
    ("compared", "compared"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> std::result::Result<(), Failure> {
    pin(DRIVER_CORE)?;
    report.begin(COLUMNS)?;
    for window in options.window.map_or(vec![10, 1], |window| vec![window]) {
        for bytes in options.bytes.map_or(vec![100, 1_000, 10_000], |bytes| vec![bytes]) {
            let Options { transport, count: clients, .. } = *options;
            let case = Case { transport, clients, bytes, window };
            let bare = measure(case, Side::Bare, options)?;
            let node = measure(case, Side::Node, options)?;
            let record = Record::of("messages")
                .with("transport", transport.name())
                .with("clients", clients)
                .with("bytes", bytes)
                .with("window", window)
                .with("messages", node.messages)
                .measured("messages_per_s", node.rate())
                .measured("floor_messages_per_s", bare.rate())
                .measured("floor_ratio", node.rate() / bare.rate())
                .measured("server_us_per_message", node.each_us())
                .measured("floor_us_per_message", bare.each_us())
                .measured("server_core", node.core())
                .measured("floor_server_core", bare.core())
                .with("compared", node.messages + bare.messages)
                .with("verified", !bare.is_wrong && !node.is_wrong);
            report.add(record)?;
        }
    }
    Ok(())
}

/// Results of one server.
struct Outcome {
    messages: u64,
    time: Duration,
    cpu: Duration,
    is_wrong: bool,
}

impl Outcome {
    fn rate(&self) -> f64 {
        self.messages as f64 / self.time.as_secs_f64()
    }

    fn core(&self) -> f64 {
        self.cpu.as_secs_f64() / self.time.as_secs_f64()
    }

    fn each_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.messages.max(1) as f64
    }
}

fn measure(case: Case, side: Side, options: &Options) -> io::Result<Outcome> {
    let mut server = case.start(side, 1)?;
    let mut clients = Clients::fleet(case, &server, side, options.corrupt_one)?;
    begin(&mut clients);
    // Every client is at its second window, and buffers have their sizes.
    let warm = 2 * (case.clients * case.window) as u64;
    clients.until(|clients, _| clients.answered >= warm);
    let (before, answered, began) = (server.cpu()?, clients.script.answered, Instant::now());
    clients.run(options.time);
    let time = began.elapsed();
    let (messages, cpu) =
        (clients.script.answered - answered, server.cpu()?.saturating_sub(before));
    end(&mut clients);
    let is_wrong = said(&side, &clients);
    Ok(Outcome { messages, time, cpu, is_wrong })
}

fn run_requests(
    options: &RequestsOptions,
    report: &mut Report<'_>,
) -> std::result::Result<(), Failure> {
    report.begin(REQUESTS_COLUMNS)?;
    for shards in options.shards.map_or(vec![1, 2, 4, 8], |shards| vec![shards]) {
        report.add(measure_requests(options, shards)?)?;
    }
    Ok(())
}

/// The time from the first request to the last answer counts, which includes the clients' own work:
/// more shards than there are cores to spare can't answer sooner.
fn measure_requests(options: &RequestsOptions, shards: usize) -> io::Result<Record> {
    let (transport, clients) = (Transport::Tcp, options.requests);
    let case = Case { transport, clients, bytes: 100, window: 1 };
    let mut server = case.start(Side::Node, shards)?;
    let mut clients = Clients::fleet(case, &server, Side::Node, options.corrupt_one)?;
    // What is used again is there afterwards.
    begin(&mut clients);
    end(&mut clients);
    let (before, answered) = (server.cpu()?, clients.script.answered);
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let began = Instant::now();
        begin(&mut clients);
        end(&mut clients);
        rounds.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let cpu = server.cpu()?.saturating_sub(before);
    let is_wrong = said(&format!("{shards} shards"), &clients);
    let compared = clients.script.answered - answered;
    let expected = options.requests as u64 * u64::from(options.rounds);
    let times = Samples::new(rounds);
    Ok(Record::of("requests")
        .with("shards", shards)
        .with("requests", options.requests)
        .with("rounds", options.rounds)
        .measured("requests_per_s", options.requests as f64 / times.percentile(50.0) * 1e3)
        .measured("round_ms_p50", times.percentile(50.0))
        .measured("round_ms_min", times.percentile(0.0))
        .measured("round_ms_max", times.percentile(100.0))
        .measured("round_ms_p99", times.percentile(99.0))
        .measured("server_us_per_request", cpu.as_secs_f64() * 1e6 / expected as f64)
        .with("compared", compared)
        .with("verified", !is_wrong && compared == expected))
}

/// Sends the first window of every client.
fn begin(clients: &mut Fleet<Clients>) {
    let Fleet { script, links, .. } = clients;
    script.is_over = false;
    for client in 0..script.answered_by.len() {
        // A lost connection is noticed where it is read.
        let _ = links.send(client, &script.window);
        script.waiting += 1;
    }
}

/// Waits for the answers that are missing.
fn end(clients: &mut Fleet<Clients>) {
    clients.script.is_over = true;
    clients.until(|clients, _| clients.waiting == 0);
}

/// Says what was wrong. Returns whether anything was.
fn said(of: &dyn std::fmt::Display, clients: &Fleet<Clients>) -> bool {
    clients.fault.iter().for_each(|fault| eprintln!("{of}: {fault}"));
    clients.fault.is_some()
}

impl Case {
    fn start(self, side: Side, shards: usize) -> io::Result<Server> {
        let Self { transport, clients, bytes, window } = self;
        ROLE.start(&[&side, &shards, &transport, &clients, &bytes, &window])
    }

    /// The messages of a window.
    fn requests(self) -> Vec<u8> {
        let dialogue = Dialogue::new(self.transport);
        let request = |at| {
            dialogue.framed(&ClientMessage::Request(client::Request {
                room: ROOM,
                request: request(at),
                message: MessageRef::Index(0),
                payload: &payload(self.bytes, at),
            }))
        };
        (0..self.window).flat_map(request).collect()
    }

    /// The answers to a window.
    fn answers(self) -> Vec<Vec<u8>> {
        let answer = |at| {
            let payload = payload(self.bytes, at);
            let echoed = &payload[payload.len() - self.bytes..][..ECHOED];
            let payload = [&[ECHOED as u8], echoed].concat();
            let mut body = Vec::new();
            server::Reply { request: request(at), payload: (&payload).into() }
                .encode(FORMAT, &mut body);
            body
        };
        (0..self.window).map(answer).collect()
    }
}

fn request(at: usize) -> RequestNumber {
    RequestNumber(1 + at as u32)
}

/// The payload of a message of a window: a length, and as many bytes.
fn payload(bytes: usize, at: usize) -> Vec<u8> {
    let mut payload = varint(bytes);
    payload.extend((0..bytes).map(|byte| (byte * 7 + at * 31) as u8));
    payload
}

/// All clients.
struct Clients {
    side: Side,
    dialogue: Dialogue,
    window: Vec<u8>,
    answers: Vec<Vec<u8>>,
    /// The number of answered requests of its window, by client.
    answered_by: Vec<u8>,
    answered: u64,
    /// The number of clients that wait for answers.
    waiting: usize,
    is_over: bool,
    corrupt: bool,
}

impl Clients {
    /// Connects all clients, and has each enter a room.
    fn fleet(case: Case, server: &Server, side: Side, corrupt: bool) -> io::Result<Fleet<Self>> {
        let clients = Self {
            side,
            dialogue: Dialogue::new(case.transport),
            window: case.requests(),
            answers: case.answers(),
            answered_by: vec![0; case.clients],
            answered: 0,
            waiting: 0,
            is_over: false,
            corrupt: corrupt && side == Side::Node,
        };
        let source = Source::Network(if side == Side::Bare { 50 } else { 60 });
        let mut fleet = Fleet::new(clients, server.address, source, None)?;
        fleet.connect(0..case.clients, OPENING_MAX);
        Ok(fleet)
    }

    fn hear(&mut self, client: usize, frame: Frame<'_>, links: &mut Links) -> io::Result<()> {
        let Frame::Message(body) = frame else {
            return links.send(client, &self.dialogue.reply(&frame, false)).map(drop);
        };
        let at = usize::from(self.answered_by[client]);
        if body == self.answers[at] && !self.corrupt {
            self.answered += 1;
            self.answered_by[client] += 1;
            if at + 1 == self.answers.len() {
                self.answered_by[client] = 0;
                if self.is_over {
                    self.waiting -= 1;
                } else {
                    links.send(client, &self.window)?;
                }
            }
            return Ok(());
        }
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(_) => {
                links.send(client, &self.dialogue.framed(&join_or_create("desk")))?;
            }
            ServerMessage::Snapshot(_) => links.ready += 1,
            ServerMessage::Joined(server::Joined { room: ROOM, .. })
            | ServerMessage::Ack(_)
            | ServerMessage::Check(_) => {}
            ServerMessage::Ping(server::Ping { nonce }) => {
                links.send(client, &self.dialogue.pong(nonce))?;
            }
            other => return Err(wrong(&format!("not expected now: {other:?}"))),
        }
        Ok(())
    }
}

impl Script for Clients {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        match self.side {
            Side::Bare => links.ready += 1,
            Side::Node => drop(links.send(client, &self.dialogue.opening(false))?),
        }
        Ok(())
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let dialogue = self.dialogue;
        dialogue.each(input, |frame| self.hear(client, frame, links))
    }

    fn progress(&self) -> u64 {
        self.answered
    }
}

/// A message of a client, which is answered with how it begins.
#[derive(Message)]
#[reply(Bytes)]
struct Told {
    data: Bytes,
}

/// A room to which clients report.
#[derive(State, Default)]
struct Desk {
    nothing: u8,
}

#[room(messages(Told), capacity = 100, empty_ms = 600_000)]
impl Room for Desk {}

impl Handle<Told> for Desk {
    fn handle(&mut self, told: Told, _: &Player, _: &mut Context<Self>) -> Result<Bytes> {
        Ok(Bytes::from(told.data[..ECHOED].to_vec()))
    }
}

fn host(words: &mut Words) -> io::Result<()> {
    let (side, shards): (Side, usize) = (words.next()?, words.next()?);
    let (transport, clients) = (words.next()?, words.next()?);
    let case = Case { transport, clients, bytes: words.next()?, window: words.next()? };
    if side == Side::Bare {
        return serve(bare::start(&Counted::new(case), 1)?.port(), Vec::new);
    }
    let desks = RoomType::of::<Desk>("desk");
    let running =
        playfield_server::Server::new(node_for(clients, shards)?).room_type(desks).start()?;
    serve(running.local_addr().port(), Vec::new)
}

/// The baseline: it counts bytes, and answers as many messages as these are.
#[derive(Clone)]
struct Counted {
    /// The length of a message.
    request: usize,
    /// The answers to twice a window: a whole one from any of them on.
    twice: Vec<u8>,
    window: usize,
}

impl Counted {
    fn new(case: Case) -> Self {
        let dialogue = Dialogue::new(case.transport);
        let mut answers = Vec::new();
        case.answers().iter().for_each(|body| dialogue.answer(&mut answers, body));
        let request = case.requests().len() / case.window;
        Self { request, twice: answers.repeat(2), window: case.window }
    }
}

impl Answer for Counted {
    /// The number of bytes that were read.
    type Peer = usize;

    fn answer<'a>(
        &'a mut self,
        read: &mut usize,
        input: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> (usize, &'a [u8]) {
        let answered = *read / self.request;
        *read += input.len();
        let mut due = *read / self.request - answered;
        let mut at = answered % self.window;
        let one = self.twice.len() / 2 / self.window;
        if due <= self.window {
            return (input.len(), &self.twice[at * one..(at + due) * one]);
        }
        while due > 0 {
            let some = due.min(self.window);
            out.extend_from_slice(&self.twice[at * one..(at + some) * one]);
            due -= some;
            at = (at + some) % self.window;
        }
        (input.len(), out)
    }
}
