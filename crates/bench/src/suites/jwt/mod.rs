//! `bench jwt`: what a session costs that a JSON Web Token opens.
//!
//! A client connects, sends a hello with a token, gets the welcome and goes. The server's processor
//! time for it is compared with that of the verification alone, by the same library with the same
//! key, on the same core, in turn. A node that asks for no token shows what the connection costs.
//!
//! The server runs in its own process on one core, the clients on another.

mod algorithm;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_derive::State;
use playfield_room::{Context, Player, Room, room};
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;
use playfield_wire::server::{self as messages, ServerMessage};

use crate::harness::dialogue::{Dialogue, FORMAT, Transport, join_or_create, opening};
use crate::harness::fleet::Fleet;
use crate::harness::machine::{DRIVER_CORE, SERVER_CORE, pin, raise_descriptors, thread_cpu};
use crate::harness::options::{Suite, options, row_of};
use crate::harness::process::{Role, Server, Words, node, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::stats::Samples;
use crate::harness::visits::{self, AT_ONCE, Progress, Verdict, Visits};
use algorithm::{ALGORITHMS, Algorithm, forged, user_id};

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &ALGORITHMS.map(|algorithm| algorithm.name));
        sessions: usize = 2_000, quick 30
            => "sessions" "N" "sessions of one measurement (default 2000)",
            |given| given.within(1..=1_000_000);
        rounds: usize = 9, quick 1
            => "rounds" "N" "measurements, in turns (default 9)", |given| given.within(1..=1_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "jwt",
    about: "sessions that JSON Web Tokens open, from connection to welcome, compared with the
verification of the tokens alone. The server runs on one core, the clients on another.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "jwt", log: "error", serve: host };

/// The room type that says who a client is.
const DOOR: &str = "door";

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

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    raise_descriptors();
    report.begin(COLUMNS)?;
    let mut server = ROLE.start(&[])?;
    pin(DRIVER_CORE)?;
    for (place, algorithm) in ALGORITHMS.into_iter().enumerate() {
        if options.row.as_deref().is_some_and(|row| row != algorithm.name) {
            continue;
        }
        let record = match measure(options, algorithm, server.address(place)?, &mut server) {
            Ok(measured) => measured.record().with("verified", true),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                eprintln!("{}: {error}", algorithm.name);
                Record::of("jwt").with("verified", false)
            }
            Err(error) => return Err(error.into()),
        };
        let sessions = options.sessions * options.rounds;
        report.add(record.with("row", algorithm.name).with("sessions", sessions))?;
    }
    Ok(())
}

impl Measured {
    fn record(self) -> Record {
        let median = |us: &[f64]| Samples::new(us.to_vec()).percentile(50.0);
        let [node, guest, bare] = [&self.node, &self.guest, &self.bare].map(|us| median(us));
        Record::of("jwt")
            .median("node_us", self.node)
            .median("guest_us", self.guest)
            .median("bare_us", self.bare)
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
    server: &mut Server,
) -> io::Result<Measured> {
    let tokens = algorithm.tokens()?;
    check(node, &tokens)?;
    let verify = algorithm.bare()?;
    let mut measured = Measured::default();
    for round in 0..=options.rounds {
        let bare = bare(options, &tokens, &verify)?;
        let (guest, _) = sessions(options, server.address(ALGORITHMS.len())?, &tokens, server)?;
        let is_forged = options.corrupt_one && round == 0;
        let one_forged;
        let shown = if is_forged {
            one_forged = [&[forged(&tokens[0])], &tokens[1..]].concat();
            &one_forged
        } else {
            &tokens
        };
        let (of_node, seconds) = sessions(options, node, shown, server)?;
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
    let join = Dialogue::new(Transport::Tcp).framed(&join_or_create(DOOR));
    visit(
        node,
        tokens.len(),
        |number| [hello(&tokens[number]), join.clone()].concat(),
        |number, message| match message {
            ServerMessage::Welcome(_) => Verdict::Passing,
            ServerMessage::Error(messages::Error { text, .. }) if *text == user_id(number) => {
                Verdict::Wanted
            }
            _ => Verdict::Wrong,
        },
    )?;
    visit(
        node,
        tokens.len(),
        |number| hello(&forged(&tokens[number])),
        |_, message| match message {
            ServerMessage::Error(messages::Error { code: ErrorCode::Unauthorized, .. }) => {
                Verdict::Wanted
            }
            _ => Verdict::Wrong,
        },
    )
}

/// Opens so many connections, each until the wanted message has come.
fn visit(
    node: SocketAddr,
    count: usize,
    first: impl Fn(usize) -> Vec<u8>,
    judge: impl Fn(usize, &ServerMessage<'_>) -> Verdict,
) -> io::Result<()> {
    let heard = |number: usize, input: &mut [u8]| {
        visits::messages(input, Progress::Leaves, |message| judge(number, message))
    };
    let mut fleet = Fleet::new(Visits::new(first, heard), node, Source::Any, None)?;
    fleet.connect(0..count, AT_ONCE);
    fleet.check()
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
    server: &mut Server,
) -> io::Result<(Duration, f64)> {
    let before = server.cpu()?;
    let began = Instant::now();
    visit(
        node,
        options.sessions,
        |number| hello(&tokens[number % tokens.len()]),
        |_, message| match message {
            ServerMessage::Welcome(_) => Verdict::Wanted,
            _ => Verdict::Wrong,
        },
    )?;
    Ok((server.cpu()? - before, began.elapsed().as_secs_f64()))
}

fn hello(token: &str) -> Vec<u8> {
    opening(&Hello { token: token.as_bytes().into(), ..Hello::new(FORMAT) })
}

/// A room that refuses everyone; the error's text is the user of the client.
#[derive(State, Default)]
struct Door {}

#[room()]
impl Room for Door {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> playfield_room::Result<()> {
        Err(player.user().unwrap_or("a guest").to_owned().into())
    }
}

/// Serves a node for each algorithm and one for guests, each with one shard.
fn host(_: &mut Words) -> io::Result<()> {
    let start = |server: playfield::Server| server.room::<Door>(DOOR).start(node(1, &[])?);
    let mut nodes = Vec::new();
    for algorithm in ALGORITHMS {
        nodes.push(start(playfield::Server::new().jwt(algorithm.jwt()?))?);
    }
    nodes.push(start(playfield::Server::new())?);
    let ports: Vec<_> = nodes.iter().map(|node| node.local_addr().port().to_string()).collect();
    serve(ports.join(" "), Vec::new)
}
