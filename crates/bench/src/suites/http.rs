//! `bench http`: HTTP requests that ask a room, each checked, while the room ticks at 60 Hz.
//!
//! The server runs in a process of its own on one core, the clients on another. Each connection has
//! one request under way. In turns, the same clients measure three things on the same core:
//! requests to a *room*, which a handler asks; to a *page*; and the *bare* baseline, which reads
//! and writes as many bytes and does nothing else.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_derive::State;
use playfield_room::{Context, Message, On, Result, Room, RoomType, room};
use playfield_server::NodeHandle;
use playfield_server::axum::extract::Path;
use playfield_server::http;
use playfield_wire::client::Hello;
use playfield_wire::server::{self, ServerMessage};

use crate::harness::bare::{self, Answer};
use crate::harness::dialogue::{Dialogue, FORMAT, Transport, join_or_create, opening};
use crate::harness::fleet::{Fleet, Links, Script, wrong};
use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, names, options};
use crate::harness::process::{Role, Words, node, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::ticks::AllTicks;
use crate::harness::visits::{AT_ONCE, Progress, Verdict, Visits, messages};

options! {
    Options {
        connections: usize = 32, quick 4
            => "connections" "N" "number of connections (default 32)", |given| given.within(1..=10_000);
        rounds: usize = 5, quick 1
            => "rounds" "N" "measurements of each, in turns (default 5)",
            |given| given.within(1..=1_000);
        round: Duration = Duration::from_secs(1), quick Duration::from_millis(50)
            => "round-ms" "N" "duration of one measurement (default 1000)",
            |given| given.milliseconds(10..=3_600_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "http",
    about:
        "requests per second over kept connections, to a room that a handler asks, to a page, and to
the baseline, which only reads and writes. The server runs on one core, the clients on another. The
room ticks at 60 Hz meanwhile, and says how late.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "http", log: "error", serve: host };

/// The room's ticks per second.
const TICK_HZ: u32 = 60;

names! {
    /// The target of requests.
    Target {
        Room = "room",
        Page = "page",
        Bare = "bare",
    }
}

const COLUMNS: &[Column] = &[
    ("target", "target"),
    ("connections", "connections"),
    ("K/s best", "thousand_per_second_best"),
    ("K/s median", "thousand_per_second_median"),
    ("server us", "server_us_per_request"),
    ("of bare", "server_us_of_bare"),
    ("delayed", "server_delayed"),
    ("tick late p50", "tick_late_us_p50"),
    ("tick late p99", "tick_late_us_p99"),
    ("requests", "requests"),
    ("verified", "verified"),
];

/// The measurements of one target.
#[derive(Default)]
struct Measured {
    per_second: Vec<f64>,
    requests: u64,
    cpu: Duration,
    delayed: Duration,
    seconds: f64,
    lateness_us: Vec<u64>,
}

impl Measured {
    fn us_per_request(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.requests.max(1) as f64
    }
}

fn run(options: &Options, report: &mut Report<'_>) -> std::result::Result<(), Failure> {
    let mut server = ROLE.start(&[])?;
    pin(DRIVER_CORE)?;
    let (player, room) = create_room(server.address)?;
    let mut asked = 0;
    let mut all: [Measured; 3] = Default::default();
    let mut corrupt_one = options.corrupt_one;
    let mut failure = None;
    for round in 0..=options.rounds {
        for ((_, target), measured) in Target::NAMES.iter().zip(&mut all) {
            let address = server.address(usize::from(*target == Target::Bare))?;
            let before = server.usage()?;
            let mut fleet = Requests::fleet(options, *target, &room, address)?;
            fleet.script.corrupt = std::mem::take(&mut corrupt_one);
            let seconds = fleet.requests_for(options.round);
            let requests = fleet.script.requests;
            asked += if *target == Target::Room { requests } else { 0 };
            let mut after = server.usage()?;
            if let Some(fault) = fleet.fault {
                failure.get_or_insert(fault);
                break;
            }
            // The first round warms up.
            if round > 0 {
                measured.per_second.push(requests as f64 / seconds);
                measured.requests += requests;
                measured.seconds += seconds;
                measured.cpu += after.cpu - before.cpu;
                measured.delayed += after.delayed.saturating_sub(before.delayed);
                measured.lateness_us.extend(after.more.drain(..).map(|ns| ns / 1_000));
            }
        }
    }
    // The room has handled each request once.
    let counted = sum(&room, server.address)?;
    if counted != asked {
        failure.get_or_insert(format!("the room has counted {counted} of {asked} requests"));
    }
    drop(player);
    if let Some(failure) = &failure {
        eprintln!("{failure}");
    }
    report.begin(COLUMNS)?;
    let bare = all[2].us_per_request();
    for ((_, target), measured) in Target::NAMES.iter().zip(&mut all) {
        let record = record(options, *target, measured, bare);
        report.add(record.with("verified", failure.is_none()))?;
    }
    Ok(())
}

fn record(options: &Options, target: Target, measured: &mut Measured, bare: f64) -> Record {
    measured.per_second.sort_by(f64::total_cmp);
    measured.lateness_us.sort_unstable();
    let rates = &measured.per_second;
    let late = |share: f64| {
        let place = (measured.lateness_us.len() as f64 * share) as usize;
        measured.lateness_us.get(place).copied().unwrap_or_default()
    };
    Record::of("http")
        .with("target", target.name())
        .with("connections", options.connections)
        .measured("thousand_per_second_best", rates.last().map_or(0.0, |rate| rate / 1e3))
        .measured(
            "thousand_per_second_median",
            rates.get(rates.len() / 2).map_or(0.0, |rate| rate / 1e3),
        )
        .measured("thousand_per_second_min", rates.first().map_or(0.0, |rate| rate / 1e3))
        .measured("server_us_per_request", measured.us_per_request())
        .measured("server_us_of_bare", measured.us_per_request() / bare)
        .measured("server_delayed", measured.delayed.as_secs_f64() / measured.seconds.max(1e-9))
        .with("tick_late_us_p50", late(0.5))
        .with("tick_late_us_p99", late(0.99))
        .with("requests", measured.requests)
}

/// Clients with one request under way each.
struct Requests {
    target: Target,
    request: Vec<u8>,
    /// The last sum that the room replied, by client.
    sums: Vec<u64>,
    ends: Option<Instant>,
    requests: u64,
    /// The number of clients that wait for an answer.
    waiting: usize,
    corrupt: bool,
}

impl Requests {
    fn fleet(
        options: &Options,
        target: Target,
        room: &str,
        server: SocketAddr,
    ) -> io::Result<Fleet<Self>> {
        let requests = Self {
            target,
            request: request(target, room, 1),
            sums: vec![0; options.connections],
            ends: None,
            requests: 0,
            waiting: 0,
            corrupt: false,
        };
        let mut fleet = Fleet::new(requests, server, Source::Any, None)?;
        fleet.connect(0..options.connections, AT_ONCE);
        Ok(fleet)
    }

    fn check(&mut self, client: usize, body: &[u8]) -> io::Result<()> {
        match self.target {
            Target::Room => {
                let (sum, last) = (number(body)?, &mut self.sums[client]);
                if sum <= *last {
                    return Err(wrong(&format!("a room counted {sum} after {last}")));
                }
                *last = sum;
            }
            Target::Page if body != PAGE.as_bytes() => return Err(wrong("a page differs")),
            Target::Bare if !RESPONSE.ends_with(body) => return Err(wrong("bytes differ")),
            Target::Page | Target::Bare => {}
        }
        Ok(())
    }
}

impl Fleet<Requests> {
    /// Sends requests for so long, and checks each response. Returns how many seconds it took.
    fn requests_for(&mut self, time: Duration) -> f64 {
        let began = Instant::now();
        let Self { script, links, .. } = self;
        script.ends = Some(began + time);
        for client in 0..script.sums.len() {
            // A lost connection is noticed where it is read.
            let _ = links.send(client, &script.request);
            script.waiting += 1;
        }
        self.until(|requests, _| requests.waiting == 0);
        began.elapsed().as_secs_f64()
    }
}

impl Script for Requests {
    fn opened(&mut self, _: usize, links: &mut Links) -> io::Result<()> {
        links.ready += 1;
        Ok(())
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let Some(body) = body(input)? else { return Ok(0) };
        if std::mem::take(&mut self.corrupt) {
            self.check(client, &[body, b"x"].concat())?;
        }
        self.check(client, body)?;
        self.requests += 1;
        if self.ends.is_some_and(|ends| links.now >= ends) {
            // It stays silent until all are dropped.
            self.waiting -= 1;
        } else {
            links.send(client, &self.request)?;
        }
        Ok(input.len())
    }

    fn progress(&self) -> u64 {
        self.requests
    }
}

/// The sum that the room has counted.
fn sum(room: &str, server: SocketAddr) -> io::Result<u64> {
    let sum = std::cell::Cell::new(0);
    let heard = |_: usize, input: &mut [u8]| {
        let Some(body) = body(input)? else { return Ok((0, Progress::Waits)) };
        sum.set(number(body)?);
        Ok((input.len(), Progress::Leaves))
    };
    let visits = Visits::new(|_| request(Target::Room, room, 0), heard);
    let mut fleet = Fleet::new(visits, server, Source::Any, None)?;
    fleet.connect(0..1, 1);
    fleet.check()?;
    Ok(sum.get())
}

/// Joins a new room. Returns its only player, and its id.
fn create_room<'a>(server: SocketAddr) -> io::Result<(Fleet<Visits<'a>>, String)> {
    let id = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
    let found = std::rc::Rc::clone(&id);
    let join = Dialogue::new(Transport::Tcp).framed(&join_or_create("counter"));
    let first = [opening(&Hello::new(FORMAT)), join].concat();
    let visits = Visits::new(
        move |_| first.clone(),
        move |_, input| {
            messages(input, Progress::Stays, |message| match message {
                ServerMessage::Joined(server::Joined { id, .. }) => {
                    found.replace(id.to_string());
                    Verdict::Wanted
                }
                _ => Verdict::Passing,
            })
        },
    );
    let mut fleet = Fleet::new(visits, server, Source::Any, None)?;
    fleet.connect(0..1, 1);
    fleet.check()?;
    Ok((fleet, id.take()))
}

fn request(target: Target, room: &str, count: u64) -> Vec<u8> {
    let add = |body: &str| {
        format!(
            "POST /rooms/{room}/add HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n{body}"
        )
    };
    match target {
        Target::Room => add(&count.to_string()),
        Target::Page => "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n".to_owned(),
        Target::Bare => add(&char::from(END).to_string()),
    }
    .into_bytes()
}

/// The body of the response in the input, once it is complete.
fn body(input: &[u8]) -> io::Result<Option<&[u8]>> {
    let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return Ok(None);
    };
    let (head, body) = (&input[..end], &input[end + 4..]);
    if !head.starts_with(b"HTTP/1.1 200 OK\r\n") {
        return Err(wrong(&format!("a response is {:?}", String::from_utf8_lossy(input))));
    }
    let name = b"Content-Length: ";
    // Names of headers have no case.
    let start = head.windows(name.len()).position(|bytes| bytes.eq_ignore_ascii_case(name));
    let value = start.map_or(&b""[..], |start| &head[start + name.len()..]);
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = number(&value[..digits])? as usize;
    match body.len() {
        came if came < length => Ok(None),
        came if came == length => Ok(Some(body)),
        _ => Err(wrong("a response is longer than it says")),
    }
}

fn number(bytes: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    text.parse().map_err(|_| wrong(&format!("{text:?} is no number")))
}

/// The page beside the room.
const PAGE: &str = "a page of the usual length of a reply";

/// The ticks of the room.
static TICKS: AllTicks = AllTicks::new(TICK_HZ);

/// Counts.
#[derive(State, Default)]
struct Counter {
    total: u64,
}

/// Adds to the count, and asks for the sum.
#[derive(Message)]
#[reply(u64)]
struct Add {
    count: u64,
}

#[room(internal(Add), tick_hz = 60, empty_ms = 600_000)]
impl Room for Counter {
    fn tick(&mut self, cx: &mut Context<Self>) {
        TICKS.note(cx.room_id(), cx.tick());
    }
}

impl On<Add> for Counter {
    fn on(&mut self, add: Add, _: &mut Context<Self>) -> Result<u64> {
        self.total += add.count;
        Ok(self.total)
    }
}

async fn add(
    node: NodeHandle,
    Path(room): Path<String>,
    body: String,
) -> Result<String, http::Failure> {
    let count = body.parse().map_err(|_| "send a number")?;
    Ok(node.ask(&room, &Add { count }).await?.to_string())
}

/// Serves a node on one core with one shard, and the baseline beside it.
fn host(_: &mut Words) -> io::Result<()> {
    let mut config = node(1, &[])?;
    // All clients have one address.
    config.http.requests.per_address = config.http.requests.total;
    let running = playfield_server::Server::new(config)
        .room_type(RoomType::of::<Counter>("counter"))
        .page("/", "text/plain; charset=utf-8", PAGE)
        .route("POST", "/rooms/{id}/add", add)
        .start()?;
    let bare = bare::start(&Fixed, 1)?;
    serve(format!("{} {}", running.local_addr().port(), bare.port()), || TICKS.report_ns())
}

/// The end of every request to the baseline. Nothing else in it is like this.
const END: u8 = b'!';

/// Nearly as long as a reply of the room.
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 6\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n123456";

/// The baseline: no HTTP server can be cheaper that makes one read and one write per request.
#[derive(Clone)]
struct Fixed;

impl Answer for Fixed {
    type Peer = ();

    fn answer<'a>(
        &'a mut self,
        _: &mut (),
        input: &'a [u8],
        _: &'a mut Vec<u8>,
    ) -> (usize, &'a [u8]) {
        // One request is under way at a time.
        let answer = if input.ends_with(&[END]) { RESPONSE } else { &[] };
        (input.len(), answer)
    }
}
