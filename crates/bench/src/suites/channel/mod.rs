//! `bench channel`: one channel with many subscribers over WebSocket. How fast publications reach
//! all of them, compared with bare sends of the same frames on as many sockets; and what they get
//! after all their connections were cut.
//!
//! Both servers run the whole time, each in a process of its own on one core, and are measured in
//! turns. The subscribers are on another core. The ratios are medians of those of adjacent rounds: of
//! deliveries per second, and of deliveries per second of the server's processor time, which say
//! the same unless something else uses the server's core.
//!
//! The next
//! publication is sent when the first subscriber has the last, so that the server always has work,
//! but never two publications for one write. Every publication is compared with what was published: its
//! offset and each byte.

mod audience;

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use playfield::channel::{Access, ChannelRule};
use playfield_cli::options::Failure;
use playfield_wire::server::{self as messages, ServerMessage};

use crate::harness::dialogue::{Dialogue, Transport};
use crate::harness::fleet::Fleet;
use crate::harness::machine::{DRIVER_CORE, SERVER_CORE, pin, raise_descriptors};
use crate::harness::options::{Suite, options};
use crate::harness::process::{Role, Server, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::Samples;
use crate::harness::{Side, bare, tables};
use audience::{Audience, Returned, come_back};

/// The number of publications that the channel keeps.
const HISTORY: u64 = 32;
/// The number of publications before the measurement.
const WARM_UP: usize = 2;
const CHANNEL: &str = "bench";

options! {
    Options {
        subscribers: usize = 10_000, quick 50
            => "subscribers" "N" "number of subscribers (default 10000)",
            |given| given.within(1..=19_000);
        bytes: usize = 100
            => "bytes" "N" "size of a payload (default 100)", |given| given.within(1..=60_000);
        time: Duration = Duration::from_secs(10), quick Duration::from_millis(400)
            => "seconds" "S" "how long publications of each server are measured (default 10)",
            |given| given.seconds(1..=86_400);
        rounds: u32 = 20, quick 4
            => "rounds" "N" "in how many turns (default 20)", |given| given.within(1..=10_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "channel",
    about:
        "one channel with many subscribers over WebSocket: how fast publications reach all of them,
compared with bare sends of the same frames on as many sockets; and what they get after all their
connections were cut. The server runs on one core, the subscribers on another.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "channel", log: "error", serve: host };

const COLUMNS: &[Column] = &[
    ("subscribers", "subscribers"),
    ("publications", "publications"),
    ("deliveries/s", "deliveries_per_s"),
    ("bare", "floor_deliveries_per_s"),
    ("ratio", "floor_ratio"),
    ("us/delivery", "server_us_per_delivery"),
    ("bare", "floor_us_per_delivery"),
    ("ratio", "floor_ratio_cpu"),
    ("recovered", "recovered"),
    ("flagged", "flagged"),
    ("lost", "lost"),
    ("recovery s", "recovery_s"),
    ("compared", "compared"),
    ("verified", "verified"),
];

/// One round of one server.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    publications: u64,
    time: Duration,
    /// Processor time of the server.
    cpu: Duration,
}

impl Round {
    fn add(&mut self, other: Self) {
        self.publications += other.publications;
        self.time += other.time;
        self.cpu += other.cpu;
    }
}

/// The results of one server.
#[derive(Debug, Default)]
struct Outcome {
    rounds: Vec<Round>,
    compared: u64,
    fault: Option<String>,
    /// After a cut with fewer publications than the channel keeps, and after one with more.
    returned: Vec<Returned>,
}

impl Outcome {
    fn all(&self) -> Round {
        let mut all = Round::default();
        self.rounds.iter().for_each(|round| all.add(*round));
        all
    }
}

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    pin(DRIVER_CORE)?;
    raise_descriptors();
    report.begin(COLUMNS)?;
    let (bare, node) =
        (Measured::begin(options, Side::Bare)?, Measured::begin(options, Side::Node)?);
    for round in 0..options.rounds {
        // Whatever the machine does besides happens to both.
        let sides = if round % 2 == 0 { [&bare, &node] } else { [&node, &bare] };
        sides.into_iter().for_each(Measured::round);
    }
    Ok(report.add(record(options, &bare.end()?, &node.end()?))?)
}

/// A server with its subscribers. They are on a thread that has a table of descriptors of its own,
/// since one table may be too small for the subscribers of both servers.
struct Measured {
    rounds: SyncSender<()>,
    done: Receiver<()>,
    thread: JoinHandle<io::Result<Outcome>>,
}

impl Measured {
    /// Starts the server and connects everyone.
    fn begin(options: &Options, side: Side) -> io::Result<Self> {
        let ((rounds, asked), (is_done, done)) = (mpsc::sync_channel(1), mpsc::sync_channel(1));
        let options = options.clone();
        let thread = tables::spawn(side.name().to_owned(), move || {
            measure(&options, side, &asked, &is_done)
        })?;
        let measured = Self { rounds, done, thread };
        measured.wait();
        Ok(measured)
    }

    fn round(&self) {
        // A thread that has failed says why in the end.
        let _ = self.rounds.send(());
        self.wait();
    }

    fn wait(&self) {
        let _ = self.done.recv();
    }

    fn end(self) -> io::Result<Outcome> {
        drop(self.rounds);
        let failed = |_| Err(io::Error::other("the thread of the subscribers panicked"));
        self.thread.join().unwrap_or_else(failed)
    }
}

/// Connects everyone to a server, and measures a round whenever it is asked to.
fn measure(
    options: &Options,
    side: Side,
    asked: &Receiver<()>,
    is_done: &SyncSender<()>,
) -> io::Result<Outcome> {
    let mut server = ROLE.start(&[&side, &options.subscribers])?;
    let mut fleet = Audience::fleet(options, server.address, side)?;
    // What is used again is there afterwards.
    for _ in 0..WARM_UP {
        fleet.script.publish(None, &mut fleet.links)?;
        fleet.until(|audience, _| audience.has_all());
    }
    let mut outcome = Outcome::default();
    let compared = fleet.script.compared;
    let _ = is_done.send(());
    while asked.recv().is_ok() {
        outcome.rounds.push(round(options, &mut server, &mut fleet)?);
        let _ = is_done.send(());
    }
    if side == Side::Node {
        for count in [HISTORY / 2, 2 * HISTORY] {
            outcome.returned.push(come_back(&mut fleet, count)?);
        }
    }
    outcome.compared = fleet.script.compared - compared;
    outcome.fault = fleet.fault;
    if let Some(fault) = &outcome.fault {
        eprintln!("{side:?}: {fault}");
    }
    Ok(outcome)
}

fn round(options: &Options, server: &mut Server, fleet: &mut Fleet<Audience>) -> io::Result<Round> {
    let before = server.cpu()?;
    let began = Instant::now();
    let mut publications = 0;
    while began.elapsed() < options.time / options.rounds && fleet.fault.is_none() {
        fleet.script.publish(None, &mut fleet.links)?;
        publications += 1;
        fleet.until(|audience, _| audience.takes_more());
    }
    fleet.until(|audience, _| audience.has_all());
    let time = began.elapsed();
    Ok(Round { publications, time, cpu: server.cpu()?.saturating_sub(before) })
}

fn record(options: &Options, bare: &Outcome, node: &Outcome) -> Record {
    let all = options.subscribers as u64;
    let deliveries = |round: Round| (round.publications * all).max(1) as f64;
    let rate = |round: Round| deliveries(round) / round.time.as_secs_f64();
    let core = |round: Round| round.cpu.as_secs_f64() / round.time.as_secs_f64();
    let each_us = |round: Round| round.cpu.as_secs_f64() * 1e6 / deliveries(round);
    // Each round with the one of the other server beside it.
    let ratios = |of: &dyn Fn(Round, Round) -> f64| {
        let pairs = bare.rounds.iter().zip(&node.rounds);
        pairs.map(|(bare, node)| of(*bare, *node)).collect::<Vec<_>>()
    };
    let by_time = ratios(&|bare, node| rate(node) / rate(bare));
    let by_cpu = ratios(&|bare, node| each_us(bare) / each_us(node));
    let quartiles = Samples::new(by_cpu.clone());
    let sum = |of: fn(&Returned) -> u64| node.returned.iter().map(of).sum::<u64>();
    let [recovered, flagged, lost] =
        [sum(|of| of.recovered), sum(|of| of.flagged), sum(|of| of.lost)];
    let replayed = sum(|of| of.replayed);
    let (of_bare, of_node) = (bare.all(), node.all());
    let expected = of_node.publications * all + replayed;
    let verified = bare.fault.is_none()
        && node.fault.is_none()
        && node.compared == expected
        && bare.compared == of_bare.publications * all
        && (recovered, flagged, lost) == (all, all, 0)
        && replayed == all * (HISTORY / 2 + HISTORY);
    let recovery: Duration = node.returned.iter().map(|of| of.time).sum();
    Record::of("channel")
        .with("subscribers", all)
        .with("bytes", options.bytes)
        .with("rounds", options.rounds)
        .with("publications", of_node.publications)
        .measured("deliveries_per_s", rate(of_node))
        .measured("floor_deliveries_per_s", rate(of_bare))
        .median("floor_ratio", by_time)
        .measured("server_us_per_delivery", each_us(of_node))
        .measured("floor_us_per_delivery", each_us(of_bare))
        .median("floor_ratio_cpu", by_cpu)
        .measured("floor_ratio_cpu_p25", quartiles.percentile(25.0))
        .measured("floor_ratio_cpu_p75", quartiles.percentile(75.0))
        .measured("server_core", core(of_node))
        .measured("floor_server_core", core(of_bare))
        .with("recovered", recovered)
        .with("flagged", flagged)
        .with("lost", lost)
        .with("replayed", replayed)
        .measured("recovery_s", recovery.as_secs_f64() / node.returned.len().max(1) as f64)
        .with("compared", node.compared + bare.compared)
        .with("verified", verified)
}

/// Serves a node with one channel, or the baseline.
fn host(words: &mut Words) -> io::Result<()> {
    let (side, subscribers): (Side, usize) = (words.next()?, words.next()?);
    if side == Side::Bare {
        pin(SERVER_CORE)?;
        let listener = bare::listener()?;
        let port = listener.local_addr()?.port();
        thread::spawn(move || bare::report(send_to_all(&listener, subscribers)));
        return serve(port, Vec::new);
    }
    let mut config = node_for(subscribers, 1)?;
    config.set("limits.session.publishes.per_second", "1000000").map_err(io::Error::other)?;
    let hour = Duration::from_secs(3_600);
    let rule = ChannelRule::new(CHANNEL)
        .publish(Access::Anyone)
        .history(usize::try_from(HISTORY).unwrap_or(usize::MAX), hour)
        .history_bytes(64 << 20)
        .bytes();
    let running = playfield_server::Server::new(config).channel(rule).start()?;
    serve(running.local_addr().port(), Vec::new)
}

/// The baseline. Every connection is welcomed. The last one publishes: a length of four bytes, and a
/// frame, which is sent to all others.
fn send_to_all(listener: &TcpListener, subscribers: usize) -> io::Result<()> {
    let mut streams = Vec::with_capacity(subscribers);
    let welcome = bare_welcome();
    for _ in 0..subscribers {
        let (mut stream, _) = listener.accept()?;
        stream.write_all(&welcome)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        streams.push(stream);
    }
    let (mut publisher, _) = listener.accept()?;
    publisher.write_all(&welcome)?;
    let (mut length, mut frame) = ([0; 4], Vec::new());
    loop {
        publisher.read_exact(&mut length)?;
        frame.resize(u32::from_le_bytes(length) as usize, 0);
        publisher.read_exact(&mut frame)?;
        for stream in &mut streams {
            stream.write_all(&frame)?;
        }
    }
}

/// The first message of the baseline to each connection.
fn bare_welcome() -> Vec<u8> {
    Dialogue::new(Transport::WebSocket).answer_of(&ServerMessage::Welcome(messages::Welcome {
        protocol: playfield_wire::PROTOCOL,
        session: 1,
        heartbeat_ms: 30_000,
        max_message_bytes: 1 << 20,
        resume: Vec::new().into(),
        ..messages::Welcome::default()
    }))
}
