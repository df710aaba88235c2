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
use playfield_wire::client::ClientMessage;
use playfield_wire::server;

use crate::harness::Side;
use crate::harness::bare::{self, Answer};
use crate::harness::dialogue::{Dialogue, FORMAT, Transport, join_or_create, varint};
use crate::harness::fleet::Fleet;
use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, options};
use crate::harness::process::{Role, Server, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::stats::Samples;
use crate::harness::windows::{self, Answers, WINDOW_MAX, Windows};

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
    let mut clients = case.connect(&server, side, options.corrupt_one)?;
    clients.begin();
    // Every client is at its second window, and buffers have their sizes.
    let warm = 2 * (case.clients * case.window) as u64;
    clients.until(|clients, _| clients.answered >= warm);
    let (before, answered, began) = (server.cpu()?, clients.script.answered, Instant::now());
    clients.run(options.time);
    let time = began.elapsed();
    let (messages, cpu) =
        (clients.script.answered - answered, server.cpu()?.saturating_sub(before));
    clients.end();
    let is_wrong = clients.said_fault(&side);
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
    let mut clients = case.connect(&server, Side::Node, options.corrupt_one)?;
    // What is used again is there afterwards.
    clients.begin();
    clients.end();
    let (before, answered) = (server.cpu()?, clients.script.answered);
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        let began = Instant::now();
        clients.begin();
        clients.end();
        rounds.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let cpu = server.cpu()?.saturating_sub(before);
    let is_wrong = clients.said_fault(&format!("{shards} shards"));
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

impl Case {
    fn start(self, side: Side, shards: usize) -> io::Result<Server> {
        let Self { transport, clients, bytes, window } = self;
        ROLE.start(&[&side, &shards, &transport, &clients, &bytes, &window])
    }

    /// Connects all clients, and has each enter a room.
    fn connect(
        self,
        server: &Server,
        side: Side,
        corrupt: bool,
    ) -> io::Result<Fleet<Windows<Echoes>>> {
        let Self { transport, clients, window, .. } = self;
        let corrupt = corrupt && side == Side::Node;
        let echoes = Echoes { answers: self.answers(), corrupt };
        let dialogue = Dialogue::new(transport);
        let windows = Windows::new(echoes, dialogue, self.requests(), window, clients);
        let source = Source::Network(if side == Side::Bare { 50 } else { 60 });
        windows.connect(server, side, source)
    }

    /// The messages of a window.
    fn requests(self) -> Vec<u8> {
        let payload = |at| payload(self.bytes, at);
        windows::requests(Dialogue::new(self.transport), self.window, payload)
    }

    /// The answers to a window.
    fn answers(self) -> Vec<Vec<u8>> {
        let answer = |at| {
            let payload = payload(self.bytes, at);
            let echoed = &payload[payload.len() - self.bytes..][..ECHOED];
            let payload = [&[ECHOED as u8], echoed].concat();
            let mut body = Vec::new();
            server::Reply { request: windows::request(at), payload: (&payload).into() }
                .encode(FORMAT, &mut body);
            body
        };
        (0..self.window).map(answer).collect()
    }
}

/// The payload of a message of a window: a length, and as many bytes.
fn payload(bytes: usize, at: usize) -> Vec<u8> {
    let mut payload = varint(bytes);
    payload.extend((0..bytes).map(|byte| (byte * 7 + at * 31) as u8));
    payload
}

/// The answers of the rooms, or of the bare server.
struct Echoes {
    /// By the request's place in its window.
    answers: Vec<Vec<u8>>,
    corrupt: bool,
}

impl Answers for Echoes {
    fn join(&self, _: usize) -> ClientMessage<'_> {
        join_or_create("desk")
    }

    fn is_right(&mut self, _: usize, at: usize, body: &[u8]) -> bool {
        body == self.answers[at] && !self.corrupt
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
