//! `bench jwt`: what a session costs that a JSON Web Token opens.
//!
//! A client connects, sends a hello with a token, gets the welcome and goes. The server's processor
//! time for it is compared with that of the verification alone, by the same library with the same
//! key, on the same core, in turn. A node that asks for no token shows what the connection costs.
//!
//! The server runs in its own process on one core, the clients on another.

mod algorithm;
mod server;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::server::{self as messages, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::clock::{pin, thread_cpu};
use crate::limits::raise_descriptors;
use crate::native::{self, FORMAT, Verdict, framed};
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::visits::{Progress, Visits};
use crate::{Machine, Record};
use algorithm::{ALGORITHMS, Algorithm, forged, user_id};
use server::{DOOR, Hosted};

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const DRIVER_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Measure only this algorithm.
    pub row: Option<String>,
    /// The number of sessions of one measurement.
    pub sessions: usize,
    /// How often each is measured, in turns. The median counts.
    pub rounds: usize,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Forge one token, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            row: None,
            sessions: 2000,
            rounds: 9,
            json: false,
            corrupt_one: false,
            is_server: false,
        }
    }
}

/// The names of all rows: the algorithms.
pub fn names() -> [&'static str; 4] {
    ALGORITHMS.map(|algorithm| algorithm.name)
}

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("sessions", "sessions"),
    ("node us", "node_us"),
    ("guest us", "guest_us"),
    ("bare us", "bare_us"),
    ("ratio", "ratio"),
    ("unconnected", "ratio_without_connection"),
    ("per s", "per_second"),
    ("verified", "verified"),
];

/// Microseconds of processor time, by round.
#[derive(Default)]
struct Measured {
    node: Vec<f64>,
    guest: Vec<f64>,
    bare: Vec<f64>,
    /// Sessions per second, as clients saw it.
    per_second: f64,
}

/// Runs the suite. Returns whether every token was verified, and opened its user's session.
///
/// # Errors
/// The server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host().map(|()| true);
    }
    let machine = Machine::describe();
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut hosted = Hosted::start()?;
    pin(DRIVER_CORE)?;
    let mut all_verified = true;
    for (place, algorithm) in ALGORITHMS.into_iter().enumerate() {
        if options.row.as_deref().is_some_and(|row| row != algorithm.name) {
            continue;
        }
        let node = hosted.nodes[place];
        let (record, verified) = match measure(options, algorithm, node, &mut hosted) {
            Ok(measured) => (measured.record(), true),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                eprintln!("{}: {error}", algorithm.name);
                (Record::new(), false)
            }
            Err(error) => return Err(error),
        };
        let record = record
            .with("suite", "jwt")
            .with("row", algorithm.name)
            .with("sessions", options.sessions * options.rounds)
            .with("verified", verified);
        report.add(record, out)?;
        all_verified &= verified;
    }
    Ok(all_verified)
}

impl Measured {
    fn record(self) -> Record {
        let median = |us| Samples::new(us).percentile(50.0);
        let (node, guest, bare) = (median(self.node), median(self.guest), median(self.bare));
        Record::new()
            .measured("node_us", node)
            .measured("guest_us", guest)
            .measured("bare_us", bare)
            .measured("ratio", bare / node)
            .measured("ratio_without_connection", bare / (node - guest))
            .measured("per_second", self.per_second)
            .measured("per_cpu_second", 1e6 / node)
            .measured("bare_per_cpu_second", 1e6 / bare)
    }
}

fn measure(
    options: &Options,
    algorithm: Algorithm,
    node: SocketAddr,
    hosted: &mut Hosted,
) -> io::Result<Measured> {
    let tokens = algorithm.tokens()?;
    check(node, &tokens)?;
    let verify = algorithm.bare()?;
    let mut measured = Measured::default();
    for round in 0..=options.rounds {
        let bare = bare(options, &tokens, &verify)?;
        let (guest, _) = sessions(options, hosted.guests, &tokens, hosted)?;
        let is_forged = options.corrupt_one && round == 0;
        let one_forged;
        let shown = if is_forged {
            one_forged = [&[forged(&tokens[0])], &tokens[1..]].concat();
            &one_forged
        } else {
            &tokens
        };
        let (of_node, seconds) = sessions(options, node, shown, hosted)?;
        // The first round warms up.
        if round > 0 {
            let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / options.sessions as f64;
            measured.node.push(each(of_node));
            measured.guest.push(each(guest));
            measured.bare.push(each(bare));
            let per_second = options.sessions as f64 / seconds;
            measured.per_second = measured.per_second.max(per_second);
        }
    }
    Ok(measured)
}

/// Each token makes its client the user that it names, and no client comes in with a forged one.
fn check(node: SocketAddr, tokens: &[String]) -> io::Result<()> {
    let join = framed(&ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: DOOR.into(),
        key: None,
        options: &[],
    }));
    let mut visits = Visits::new(node, None)?;
    visits.run(
        tokens.len(),
        |number| [hello(&tokens[number]), join.clone()].concat(),
        |number, input| {
            let user = user_id(number);
            leaves(input, |message| match message {
                ServerMessage::Welcome(_) => Verdict::Passing,
                ServerMessage::Error(messages::Error { text, .. }) if *text == user => {
                    Verdict::Wanted
                }
                _ => Verdict::Wrong,
            })
        },
    )?;
    visits.run(
        tokens.len(),
        |number| hello(&forged(&tokens[number % tokens.len()])),
        |_, input| {
            leaves(input, |message| match message {
                ServerMessage::Error(messages::Error { code: ErrorCode::Unauthorized, .. }) => {
                    Verdict::Wanted
                }
                _ => Verdict::Wrong,
            })
        },
    )
}

/// The processor time of the library alone, on the server's core, which is idle meanwhile.
fn bare(
    options: &Options,
    tokens: &[String],
    verify: impl Fn(&str) -> io::Result<()>,
) -> io::Result<Duration> {
    pin(SERVER_CORE)?;
    let before = thread_cpu();
    for token in tokens.iter().cycle().take(options.sessions) {
        verify(token)?;
    }
    let cpu = thread_cpu() - before;
    pin(DRIVER_CORE)?;
    Ok(cpu)
}

/// Opens sessions. Returns the server's processor time, and the seconds that passed.
fn sessions(
    options: &Options,
    node: SocketAddr,
    tokens: &[String],
    hosted: &mut Hosted,
) -> io::Result<(Duration, f64)> {
    let mut visits = Visits::new(node, None)?;
    let before = hosted.cpu()?;
    let began = Instant::now();
    visits.run(
        options.sessions,
        |number| hello(&tokens[number % tokens.len()]),
        |_, input| {
            leaves(input, |message| match message {
                ServerMessage::Welcome(_) => Verdict::Wanted,
                _ => Verdict::Wrong,
            })
        },
    )?;
    Ok((hosted.cpu()? - before, began.elapsed().as_secs_f64()))
}

fn hello(token: &str) -> Vec<u8> {
    native::opening(&Hello { token: token.as_bytes().into(), ..Hello::new(FORMAT) })
}

fn leaves(
    input: &mut Vec<u8>,
    judge: impl Fn(&ServerMessage<'_>) -> Verdict,
) -> io::Result<Progress> {
    let is_done = native::heard(input, judge)?;
    Ok(if is_done { Progress::Leaves } else { Progress::Waits })
}
