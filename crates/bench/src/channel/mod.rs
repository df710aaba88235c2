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
mod server;

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock::pin;
use crate::connections::tables;
use crate::limits::raise_descriptors;
use crate::side::Side;
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use audience::{Audience, Returned};
use server::Hosted;

/// The server's core, and the subscribers'.
const SERVER_CORE: usize = 0;
const SUBSCRIBERS_CORE: usize = 1;

/// How many publications the channel keeps.
const HISTORY: u64 = 32;
/// How many are published before the measurement.
const WARM_UP: usize = 2;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of subscribers.
    pub subscribers: usize,
    /// The size of a payload.
    pub bytes: usize,
    /// How long publications are measured, of each server.
    pub time: Duration,
    /// In how many turns.
    pub rounds: u32,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one publication, so that the check must fail.
    pub corrupt_one: bool,
    /// Which server this process is, if any.
    pub role: Option<Side>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            subscribers: 10_000,
            bytes: 100,
            time: Duration::from_secs(10),
            rounds: 20,
            json: false,
            corrupt_one: false,
            role: None,
        }
    }
}

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

/// What came of one server.
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

/// Runs the suite. Returns whether everyone got what they should.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if let Some(side) = options.role {
        return server::host(options, side).map(|()| true);
    }
    let machine = Machine::describe();
    pin(SUBSCRIBERS_CORE)?;
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let (bare, node) =
        (Measured::begin(options, Side::Bare)?, Measured::begin(options, Side::Node)?);
    for round in 0..options.rounds {
        // Whatever the machine does besides happens to both.
        let sides = if round % 2 == 0 { [&bare, &node] } else { [&node, &bare] };
        sides.into_iter().try_for_each(Measured::round)?;
    }
    let (record, verified) = record(options, &bare.end()?, &node.end()?);
    report.add(record, out)?;
    Ok(verified)
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

    fn round(&self) -> io::Result<()> {
        // A thread that has failed says why in the end.
        let _ = self.rounds.send(());
        self.wait();
        Ok(())
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
    let mut hosted = Hosted::start(options, side)?;
    let mut audience = Audience::new(options, hosted.address, side)?;
    audience.connect()?;
    // What is used again is there afterwards.
    for _ in 0..WARM_UP {
        audience.publish()?;
        audience.wait_for_all()?;
    }
    let mut outcome = Outcome::default();
    let compared = audience.compared;
    let _ = is_done.send(());
    while asked.recv().is_ok() {
        outcome.rounds.push(round(options, &mut hosted, &mut audience)?);
        let _ = is_done.send(());
    }
    if side == Side::Node {
        for count in [HISTORY / 2, 2 * HISTORY] {
            outcome.returned.push(audience.come_back(count)?);
        }
    }
    outcome.compared = audience.compared - compared;
    outcome.fault = audience.fault;
    if let Some(fault) = &outcome.fault {
        eprintln!("{side:?}: {fault}");
    }
    Ok(outcome)
}

fn round(options: &Options, hosted: &mut Hosted, audience: &mut Audience) -> io::Result<Round> {
    let before = hosted.cpu()?;
    let began = Instant::now();
    let mut publications = 0;
    while began.elapsed() < options.time / options.rounds && audience.fault.is_none() {
        audience.publish()?;
        publications += 1;
        audience.wait_for_first()?;
    }
    audience.wait_for_all()?;
    let time = began.elapsed();
    Ok(Round { publications, time, cpu: hosted.cpu()?.saturating_sub(before) })
}

fn record(options: &Options, bare: &Outcome, node: &Outcome) -> (Record, bool) {
    let all = options.subscribers as u64;
    let deliveries = |round: Round| (round.publications * all).max(1) as f64;
    let rate = |round: Round| deliveries(round) / round.time.as_secs_f64();
    let core = |round: Round| round.cpu.as_secs_f64() / round.time.as_secs_f64();
    let each_us = |round: Round| round.cpu.as_secs_f64() * 1e6 / deliveries(round);
    // Each round with the one of the other server beside it.
    let ratios = |of: &dyn Fn(Round, Round) -> f64| {
        let pairs = bare.rounds.iter().zip(&node.rounds);
        Samples::new(pairs.map(|(bare, node)| of(*bare, *node)).collect())
    };
    let by_time = ratios(&|bare, node| rate(node) / rate(bare));
    let by_cpu = ratios(&|bare, node| each_us(bare) / each_us(node));
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
    let record = Record::new()
        .with("suite", "channel")
        .with("subscribers", all)
        .with("bytes", options.bytes)
        .with("rounds", options.rounds)
        .with("publications", of_node.publications)
        .measured("deliveries_per_s", rate(of_node))
        .measured("floor_deliveries_per_s", rate(of_bare))
        .measured("floor_ratio", by_time.percentile(50.0))
        .measured("server_us_per_delivery", each_us(of_node))
        .measured("floor_us_per_delivery", each_us(of_bare))
        .measured("floor_ratio_cpu", by_cpu.percentile(50.0))
        .measured("floor_ratio_cpu_p25", by_cpu.percentile(25.0))
        .measured("floor_ratio_cpu_p75", by_cpu.percentile(75.0))
        .measured("server_core", core(of_node))
        .measured("floor_server_core", core(of_bare))
        .with("recovered", recovered)
        .with("flagged", flagged)
        .with("lost", lost)
        .with("replayed", replayed)
        .measured("recovery_s", recovery.as_secs_f64() / node.returned.len().max(1) as f64)
        .with("compared", node.compared + bare.compared)
        .with("verified", verified);
    (record, verified)
}
