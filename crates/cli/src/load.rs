//! `load`: drives a running node with many clients.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value as Word};
use playfield_client::Format;
use playfield_load::{
    Action, CONNECTIONS_MAX, Enter, LoadError, MessageKind, PROCESSES_MAX, Progress, Script,
    Settings, Step, Worker,
};

use crate::options::{Failure, Opt, Usage, describe, one_of, unknown, value, within};

/// The longest time that an option takes, in seconds: a month.
const SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

/// The most messages a second.
const RATE_MAX: f64 = 1e9;

const OPTIONS: &[Opt] = &[
    Opt { name: "connections", value: "N", help: "how many connections (default 1)" },
    Opt {
        name: "ramp",
        value: "SECONDS",
        help: "open them over this time (default: as fast as the node answers)",
    },
    Opt {
        name: "duration",
        value: "SECONDS",
        help: "how long it lasts once all are connected (default 10, or until scripts end)",
    },
    Opt { name: "room", value: "TYPE", help: "join any room of this type, or create one" },
    Opt { name: "options", value: "JSON", help: "options for creating the room" },
    Opt { name: "key", value: "KEY", help: "join or create the room with this key" },
    Opt { name: "id", value: "ID", help: "join the room with this id" },
    Opt { name: "per-room", value: "N", help: "every N connections share a room of their own" },
    Opt { name: "create", value: "", help: "each connection creates a room" },
    Opt {
        name: "rate",
        value: "N",
        help: "requests a second of each connection, with random valid values",
    },
    Opt { name: "total-rate", value: "N", help: "requests a second of all connections together" },
    Opt { name: "message", value: "NAME", help: "send only this message (default: any)" },
    Opt { name: "value", value: "JSON", help: "its value; what it leaves out is random" },
    Opt { name: "send", value: "", help: "send messages without asking for a reply" },
    Opt { name: "script", value: "FILE", help: "run the steps in this file (TOML)" },
    Opt { name: "ping", value: "SECONDS", help: "time a ping this often on each connection" },
    Opt { name: "format", value: "NAME", help: "packed (default), msgpack or json" },
    Opt { name: "name", value: "NAME", help: "the players' display name" },
    Opt {
        name: "token",
        value: "TOKEN",
        help: "the token for the node's authenticator; {n} in it is the connection's number",
    },
    Opt {
        name: "root-certificate",
        value: "FILE",
        help: "trust the certificates in this file (PEM)",
    },
    Opt { name: "deflate", value: "", help: "offer compression over WebSocket" },
    Opt {
        name: "resumable",
        value: "on|off",
        help: "whether the node keeps lost sessions (default on)",
    },
    Opt {
        name: "copies",
        value: "N",
        help: "connections that keep a copy of the state and compare digests (default 1000)",
    },
    Opt {
        name: "processes",
        value: "N",
        help: "share the connections among N processes (default: as few as descriptors allow)",
    },
    Opt {
        name: "source",
        value: "ADDRESSES",
        help: "connect from these, as 10.0.0.1,10.0.0.2 or 127.0.0.1..127.0.0.9",
    },
    Opt { name: "timeout", value: "SECONDS", help: "how long to wait for answers (default 10)" },
    Opt { name: "seed", value: "N", help: "seed of all random values (default 1)" },
    Opt { name: "json", value: "", help: "print one JSON object instead of tables" },
    Opt { name: "quiet", value: "", help: "print no progress" },
    Opt { name: "worker", value: "", help: "" },
];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} load URL [OPTIONS]

Drives a running node with many clients, and measures it. URL is tcp://, ws://, tls:// or
wss://host:port. Latencies count from the moment when a message was due. The exit status is 1 if a
connection failed or was lost, a request was not answered, or a copy of a state was wrong.

{}",
        describe(OPTIONS)
    )
}

/// Reads the command line, runs the load and prints the report.
///
/// # Errors
/// If the arguments are wrong, the node can't be reached, or something went wrong in the load.
pub fn run(parser: &mut lexopt::Parser, program: &str, out: &mut dyn Write) -> Result<(), Failure> {
    // Each of several processes gets the same arguments.
    let mut arguments: Vec<OsString> = vec!["load".into()];
    arguments.extend(parser.raw_args()?);
    let parser = &mut lexopt::Parser::from_args(arguments[1..].iter().cloned());
    let Some(mut command) = Command::read(parser)? else {
        return Ok(out.write_all(help(program).as_bytes())?);
    };
    command.settings.worker_arguments = arguments;
    command.is_quiet |= command.settings.worker.is_some();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // A second load of the same process keeps the first one's handler.
    let _ = ctrlc::set_handler(move || stopped.store(true, Ordering::Relaxed));
    let mut shown = Shown { is_quiet: command.is_quiet, ..Shown::default() };
    let report = playfield_load::run(&command.settings, &stop, &mut |now| shown.show(now));
    shown.end();
    let report = match report {
        Err(error) if command.is_json && command.settings.worker.is_none() => {
            // As a report of nothing, for who reads only that.
            let text = error.to_string();
            writeln!(out, "{}", serde_json::json!({ "verified": false, "problems": { text: 1 } }))?;
            out.flush()?;
            return Err(error.into());
        }
        report => report?,
    };
    if command.settings.worker.is_some() {
        // The process that started this one prints the report.
        return Ok(());
    }
    if command.is_json {
        writeln!(out, "{}", report.to_json())?;
    } else {
        report.print(out)?;
    }
    out.flush()?;
    match report.trouble() {
        Some(trouble) => Err(io::Error::other(trouble).into()),
        None => Ok(()),
    }
}

/// The command line.
struct Command {
    settings: Settings,
    is_json: bool,
    is_quiet: bool,
}

/// The options that make a script.
#[derive(Default)]
struct Plan {
    room: Option<String>,
    options: Option<serde_json::Value>,
    enter: Vec<(&'static str, Enter)>,
    rate: Option<f64>,
    total_rate: Option<f64>,
    message: Option<String>,
    value: Option<serde_json::Value>,
    send: bool,
}

impl Command {
    /// `None` if help was asked for.
    fn read(parser: &mut lexopt::Parser) -> Result<Option<Self>, Failure> {
        let mut url = None;
        let mut plan = Plan::default();
        let (mut is_json, mut is_quiet, mut script, mut duration) = (false, false, None, None);
        let mut s = Settings::new("tcp://127.0.0.1".parse().map_err(usage)?);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('h') | Long("help") => return Ok(None),
                Word(word) if url.is_none() => {
                    url = Some(word.to_string_lossy().parse().map_err(usage)?);
                }
                Long("connections") => {
                    s.connections = within(parser, "connections", 1..=CONNECTIONS_MAX)?;
                }
                Long("ramp") => s.ramp = seconds(parser, "ramp")?,
                Long("duration") => duration = Some(seconds(parser, "duration")?),
                Long("room") => plan.room = Some(value(parser, "room")?),
                Long("options") => plan.options = Some(value(parser, "options")?),
                Long("key") => plan.enter.push(("key", Enter::Key(value(parser, "key")?))),
                Long("id") => plan.enter.push(("id", Enter::Id(value(parser, "id")?))),
                Long("per-room") => {
                    let connections = within(parser, "per-room", 1..=CONNECTIONS_MAX)?;
                    plan.enter
                        .push(("per-room", Enter::Shared { key: String::new(), connections }));
                }
                Long("create") => plan.enter.push(("create", Enter::Create)),
                Long("rate") => plan.rate = Some(rate(parser, "rate")?),
                Long("total-rate") => plan.total_rate = Some(rate(parser, "total-rate")?),
                Long("message") => plan.message = Some(value(parser, "message")?),
                Long("value") => plan.value = Some(value(parser, "value")?),
                Long("send") => plan.send = true,
                Long("script") => script = Some(value::<PathBuf>(parser, "script")?),
                Long("ping") => {
                    let every = within(parser, "ping", 0.001..=SECONDS_MAX)?;
                    s.ping = Some(Duration::from_secs_f64(every));
                }
                Long("format") => {
                    let formats = Format::ALL.map(|format| (format.name(), format));
                    s.format = one_of(parser, "format", &formats)?;
                }
                Long("name") => s.name = value(parser, "name")?,
                Long("token") => s.token = value::<String>(parser, "token")?.into_bytes(),
                Long("root-certificate") => {
                    s.root = Some(value::<PathBuf>(parser, "root-certificate")?);
                }
                Long("deflate") => s.deflate = true,
                Long("resumable") => {
                    s.resumable = one_of(parser, "resumable", &[("on", true), ("off", false)])?;
                }
                Long("copies") => s.copies = within(parser, "copies", 0..=CONNECTIONS_MAX)?,
                Long("timeout") => {
                    let timeout = within(parser, "timeout", 0.001..=SECONDS_MAX)?;
                    s.timeout = Duration::from_secs_f64(timeout);
                }
                Long("processes") => s.processes = within(parser, "processes", 1..=PROCESSES_MAX)?,
                Long("source") => s.sources = sources(&value::<String>(parser, "source")?)?,
                Long("worker") => s.worker = Some(worker(&value::<String>(parser, "worker")?)?),
                Long("seed") => s.seed = value(parser, "seed")?,
                Long("json") => is_json = true,
                Long("quiet") => is_quiet = true,
                other => return Err(unknown(&other, OPTIONS)),
            }
        }
        let example = "load needs the URL of a node: load tcp://127.0.0.1:7350";
        s.url = url.ok_or_else(|| usage(example))?;
        s.scripts = match script {
            // Scripts end by themselves, or after the default duration.
            Some(path) => {
                s.duration = duration;
                plan.refuse_beside_a_script()?;
                playfield_load::script::read(&path)?
            }
            None => {
                s.duration = duration.or(s.duration);
                vec![plan.script(&s)?]
            }
        };
        Ok(Some(Self { settings: s, is_json, is_quiet }))
    }
}

impl Plan {
    /// A script says itself what its connections do.
    fn refuse_beside_a_script(&self) -> Result<(), Failure> {
        let given = [
            (self.room.is_some(), "room"),
            (self.options.is_some(), "options"),
            (self.rate.is_some(), "rate"),
            (self.total_rate.is_some(), "total-rate"),
            (self.message.is_some(), "message"),
            (self.value.is_some(), "value"),
            (self.send, "send"),
        ];
        let given = given.into_iter().filter(|(given, _)| *given).map(|(_, name)| name);
        match given.chain(self.enter.iter().map(|(name, _)| *name)).next() {
            Some(name) => Err(usage(format!("--{name} has no effect with --script: say it there"))),
            None => Ok(()),
        }
    }

    /// Joins a room if one is asked for, waits for all connections, and sends messages at a rate.
    fn script(mut self, settings: &Settings) -> Result<Script, Failure> {
        let step = |option: &str, action| Step { place: format!("--{option}"), action };
        if let [(one, _), (two, _), ..] = &self.enter[..] {
            return Err(usage(format!("--{one} and --{two} exclude each other; use one")));
        }
        let mut steps = Vec::new();
        let (entered_by, enter) = self.enter.pop().unwrap_or(("room", Enter::Any));
        let needs_room = [
            (entered_by != "room", entered_by),
            (self.options.is_some(), "options"),
            (self.rate.is_some(), "rate"),
            (self.total_rate.is_some(), "total-rate"),
        ];
        match self.room {
            Some(room_type) => {
                steps.push(step("room", Action::Join { room_type, enter, options: self.options }));
            }
            None => {
                if let Some((_, option)) = needs_room.iter().find(|(given, _)| *given) {
                    return Err(usage(format!("--{option} needs --room, the type of the room")));
                }
            }
        }
        steps.push(step("connections", Action::WaitForAll));
        let each = match (self.rate, self.total_rate) {
            (Some(_), Some(_)) => {
                return Err(usage("--rate and --total-rate exclude each other; use one"));
            }
            (Some(each), None) => Some(("rate", each)),
            (None, Some(all)) => Some(("total-rate", all / settings.connections as f64)),
            (None, None) => None,
        };
        let Some((option, rate)) = each else {
            for (given, option) in [
                (self.message.is_some(), "message"),
                (self.value.is_some(), "value"),
                (self.send, "send"),
            ] {
                if given {
                    return Err(usage(format!("--{option} needs --rate or --total-rate")));
                }
            }
            steps.push(step("connections", Action::Hold));
            return Ok(Script { weight: 1, token: None, steps });
        };
        if self.value.is_some() && self.message.is_none() {
            return Err(usage("--value needs --message, the name of the message"));
        }
        let kind = if self.send { MessageKind::Send } else { MessageKind::RequestAhead };
        let named = if self.message.is_some() { "message" } else { option };
        let message =
            Action::Message { room_type: None, name: self.message, value: self.value, kind };
        let every = Some(Duration::from_secs_f64(1.0 / rate));
        let steps_of_one = vec![step(named, message)];
        steps.push(step(option, Action::Repeat { times: None, every, steps: steps_of_one }));
        Ok(Script { weight: 1, token: None, steps })
    }
}

fn seconds(parser: &mut lexopt::Parser, name: &str) -> Result<Duration, Failure> {
    within(parser, name, 0.0..=SECONDS_MAX).map(Duration::from_secs_f64)
}

fn rate(parser: &mut lexopt::Parser, name: &str) -> Result<f64, Failure> {
    // At least one message an hour.
    within(parser, name, 1.0 / 3600.0..=RATE_MAX)
}

/// The most source addresses.
const SOURCES_MAX: u32 = 4096;

/// Addresses with commas between them, and ranges of IPv4 addresses.
fn sources(text: &str) -> Result<Vec<IpAddr>, Failure> {
    let wrong = |why: &str| {
        usage(format!(
            "--source {text}: {why}; use addresses as in 10.0.0.1,10.0.0.2 or 127.0.0.1..127.0.0.9"
        ))
    };
    let mut sources = Vec::new();
    for part in text.split(',') {
        let Some((first, last)) = part.split_once("..") else {
            let address =
                part.parse().map_err(|_| wrong(&format!("{part:?} is not an IP address")))?;
            sources.push(address);
            continue;
        };
        let bound = |text: &str| {
            let address: Result<Ipv4Addr, _> = text.parse();
            address.map(u32::from).map_err(|_| wrong(&format!("{text:?} is no IPv4 address")))
        };
        let (first, last) = (bound(first)?, bound(last)?);
        if first > last || last - first >= SOURCES_MAX {
            return Err(wrong(&format!("{part} must have from 1 to {SOURCES_MAX} addresses")));
        }
        sources.extend((first..=last).map(|bits| IpAddr::from(Ipv4Addr::from(bits))));
    }
    Ok(sources)
}

/// The number of a process, how many there are, and what distinguishes their load from others.
fn worker(text: &str) -> Result<Worker, Failure> {
    let worker = || {
        let mut words = text.split('/');
        let (number, of) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let worker = Worker { number, of, run: words.next()?.parse().ok()? };
        (worker.number < worker.of && words.next().is_none()).then_some(worker)
    };
    worker().ok_or_else(|| usage(format!("--worker {text} is for this program's own use")))
}

fn usage(what: impl ToString) -> Failure {
    Usage(what.to_string()).into()
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Usage(what) => usage(what),
            LoadError::Work(what) => io::Error::other(what).into(),
        }
    }
}

/// The progress on standard error: one line that is written over on a terminal, and otherwise a
/// line now and then.
#[derive(Default)]
struct Shown {
    is_quiet: bool,
    before: Progress,
    /// The characters of the line on the terminal.
    width: usize,
}

/// How often progress is printed where it can't be written over.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

impl Shown {
    fn show(&mut self, now: &Progress) {
        if self.is_quiet {
            return;
        }
        let mut err = io::stderr();
        let is_terminal = err.is_terminal();
        if !is_terminal && now.elapsed.saturating_sub(self.before.elapsed) < PLAIN_EVERY {
            return;
        }
        let line = now.line(&self.before);
        self.before = now.clone();
        // A closed standard error is no reason to stop.
        let _ = if is_terminal {
            let width = std::mem::replace(&mut self.width, line.chars().count());
            write!(err, "\r{line:<width$}")
        } else {
            writeln!(err, "{line}")
        };
    }

    fn end(&self) {
        if self.width > 0 {
            let _ = writeln!(io::stderr());
        }
    }
}
