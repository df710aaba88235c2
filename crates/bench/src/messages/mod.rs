//! `bench messages`: many clients send requests to rooms, compared with a bare server that reads
//! and answers as many bytes.
//!
//! The server runs in its own process on one core, the clients on another. A client sends as
//! many messages as the window has, waits for all answers, and sends the next. Every answer is
//! compared: its request, and what the room read of the message.

mod clients;
mod server;
mod shards;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::clock::pin;
use crate::limits::raise_descriptors;
use crate::side::Side;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use clients::Clients;
use server::Hosted;

pub use crate::connections::Transport;
pub use shards::{ShardsOptions, run_by_shards};

/// The server's core, and the clients'.
const SERVER_CORE: usize = 0;
const CLIENTS_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of clients.
    pub count: usize,
    /// How they connect.
    pub transport: Transport,
    /// The size of a message; all sizes without.
    pub bytes: Option<usize>,
    /// How many messages of a client are under way; all windows without.
    pub window: Option<usize>,
    /// How long each case is measured.
    pub time: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Misread one answer, so that the check must fail.
    pub corrupt_one: bool,
    /// Which server this process is, if any.
    pub role: Option<Side>,
    /// How many shards the node has. They share all cores; without, it has one on a core of its own.
    pub shards: Option<usize>,
}

/// The smallest message: what is in its answer.
pub const BYTES_MIN: usize = clients::ECHOED;

/// The largest window: the numbers of its requests all take one byte.
pub const WINDOW_MAX: usize = 100;

impl Default for Options {
    fn default() -> Self {
        Self {
            count: 10_000,
            transport: Transport::Tcp,
            bytes: None,
            window: None,
            time: Duration::from_secs(10),
            json: false,
            corrupt_one: false,
            role: None,
            shards: None,
        }
    }
}

/// One size and one window.
#[derive(Clone, Copy, Debug)]
struct Case {
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

/// What came of one server.
struct Outcome {
    messages: u64,
    time: Duration,
    cpu: Duration,
    fault: Option<String>,
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

/// Runs the cases. Returns whether every answer was as it should be.
///
/// # Errors
/// A server can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    let window = options.window.unwrap_or(10);
    if let Some(side) = options.role {
        let case = Case { bytes: options.bytes.unwrap_or(100), window };
        return server::host(options, case, side).map(|()| true);
    }
    let machine = Machine::describe();
    pin(CLIENTS_CORE)?;
    raise_descriptors();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut all_verified = true;
    for window in options.window.map_or(vec![10, 1], |window| vec![window]) {
        for bytes in options.bytes.map_or(vec![100, 1_000, 10_000], |bytes| vec![bytes]) {
            let case = Case { bytes, window };
            let bare = measure(options, case, Side::Bare)?;
            let node = measure(options, case, Side::Node)?;
            let verified = bare.fault.is_none() && node.fault.is_none();
            all_verified &= verified;
            let record = Record::new()
                .with("suite", "messages")
                .with("transport", options.transport.name())
                .with("clients", options.count)
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
                .with("verified", verified);
            report.add(record, out)?;
        }
    }
    Ok(all_verified)
}

fn measure(options: &Options, case: Case, side: Side) -> io::Result<Outcome> {
    let mut hosted = Hosted::start(options, case, side)?;
    let mut clients = Clients::new(options, case, hosted.address, side)?;
    clients.connect()?;
    clients.begin()?;
    // Every client is at its second window, and buffers have their sizes.
    clients.until_answered(2 * (options.count * case.window) as u64)?;
    let (before, answered, began) = (hosted.cpu()?, clients.answered(), Instant::now());
    clients.run(options.time)?;
    let time = began.elapsed();
    let (messages, cpu) = (clients.answered() - answered, hosted.cpu()?.saturating_sub(before));
    clients.end()?;
    if let Some(fault) = &clients.fault {
        eprintln!("{side:?}: {fault}");
    }
    Ok(Outcome { messages, time, cpu, fault: clients.fault })
}
