//! `load`: drives a running node with many clients.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use playfield_load::{
    Action, CONNECTIONS_MAX, Enter, LoadError, MessageKind, PROCESSES_MAX, Progress, Script,
    Settings, Step, Worker,
};

use crate::options::{self, Failure, Given, Setter, Usage, describe, set};

/// The longest time that an option takes, in seconds: a month.
const SECONDS_MAX: f64 = 30.0 * 24.0 * 3600.0;

/// The shortest time, where none makes no sense.
const SECONDS_MIN: f64 = 0.001;

/// Messages a second: at least one an hour.
const RATES: RangeInclusive<f64> = 1.0 / 3600.0..=1e9;

const OPTIONS: &[Setter<Command>] = &[
    Setter::new("connections", "N", "how many connections (default 1)", |c, given| {
        set(&mut c.settings.connections, given.within(1..=CONNECTIONS_MAX))
    }),
    Setter::new(
        "ramp",
        "SECONDS",
        "open them over this time (default: as fast as the node answers)",
        |c, given| set(&mut c.settings.ramp, seconds(given, 0.0)),
    ),
    Setter::new(
        "duration",
        "SECONDS",
        "how long it lasts once all are connected (default 10, or until scripts end)",
        |c, given| set(&mut c.duration, seconds(given, 0.0).map(Some)),
    ),
    Setter::new("room", "TYPE", "join any room of this type, or create one", |c, given| {
        set(&mut c.plan.room, given.value().map(Some))
    }),
    Setter::new("options", "JSON", "options for creating the room", |c, given| {
        set(&mut c.plan.options, given.value().map(Some))
    }),
    Setter::new("key", "KEY", "join or create the room with this key", |c, given| {
        c.plan.enter(given.name, Enter::Key(given.value()?))
    }),
    Setter::new("id", "ID", "join the room with this id", |c, given| {
        c.plan.enter(given.name, Enter::Id(given.value()?))
    }),
    Setter::new("per-room", "N", "every N connections share a room of their own", |c, given| {
        let connections = given.within(1..=CONNECTIONS_MAX)?;
        c.plan.enter(given.name, Enter::Shared { key: String::new(), connections })
    }),
    Setter::new("create", "", "each connection creates a room", |c, given| {
        c.plan.enter(given.name, Enter::Create)
    }),
    Setter::new(
        "rate",
        "N",
        "requests a second of each connection, with random valid values",
        |c, given| set(&mut c.plan.rate, given.within(RATES).map(Some)),
    ),
    Setter::new("total-rate", "N", "requests a second of all connections together", |c, given| {
        set(&mut c.plan.total_rate, given.within(RATES).map(Some))
    }),
    Setter::new("message", "NAME", "send only this message (default: any)", |c, given| {
        set(&mut c.plan.message, given.value().map(Some))
    }),
    Setter::new("value", "JSON", "its value; what it leaves out is random", |c, given| {
        set(&mut c.plan.value, given.value().map(Some))
    }),
    Setter::new("send", "", "send messages without asking for a reply", |c, _| {
        set(&mut c.plan.send, Ok(true))
    }),
    Setter::new("script", "FILE", "run the steps in this file (TOML)", |c, given| {
        set(&mut c.script, given.value().map(Some))
    }),
    Setter::new("ping", "SECONDS", "time a ping this often on each connection", |c, given| {
        set(&mut c.settings.ping, seconds(given, SECONDS_MIN).map(Some))
    }),
    Setter::new(
        "name",
        "NAME",
        "the players' display name; {n} in it is the connection's number",
        |c, given| set(&mut c.settings.name, given.value()),
    ),
    Setter::new(
        "token",
        "TOKEN",
        "the token for the node's authenticator; {n} in it is the connection's number",
        |c, given| set(&mut c.settings.token, given.value().map(String::into_bytes)),
    ),
    Setter::new(
        "root-certificate",
        "FILE",
        "trust the certificates in this file (PEM)",
        |c, given| set(&mut c.settings.root, given.value().map(Some)),
    ),
    Setter::new("deflate", "", "offer compression over WebSocket", |c, _| {
        set(&mut c.settings.deflate, Ok(true))
    }),
    Setter::new(
        "resumable",
        "on|off",
        "whether the node keeps lost sessions (default on)",
        |c, given| set(&mut c.settings.resumable, given.on_or_off()),
    ),
    Setter::new(
        "copies",
        "N",
        "connections that keep a copy of the state and compare digests (default 1000)",
        |c, given| set(&mut c.settings.copies, given.within(0..=CONNECTIONS_MAX)),
    ),
    Setter::new(
        "processes",
        "N",
        "share the connections among N processes (default: as few as descriptors allow)",
        |c, given| set(&mut c.settings.processes, given.within(1..=PROCESSES_MAX)),
    ),
    Setter::new(
        "source",
        "ADDRESSES",
        "connect from these, as 10.0.0.1,10.0.0.2 or 127.0.0.1..127.0.0.9",
        |c, given| set(&mut c.settings.sources, sources(&given.value::<String>()?)),
    ),
    Setter::new("timeout", "SECONDS", "how long to wait for answers (default 10)", |c, given| {
        set(&mut c.settings.timeout, seconds(given, SECONDS_MIN))
    }),
    Setter::new("seed", "N", "seed of all random values (default 1)", |c, given| {
        set(&mut c.settings.seed, given.value())
    }),
    Setter::new("json", "", "print one JSON object instead of tables", |c, _| {
        set(&mut c.is_json, Ok(true))
    }),
    Setter::new("quiet", "", "print no progress", |c, _| set(&mut c.is_quiet, Ok(true))),
    Setter::internal("worker", |c, given| {
        set(&mut c.settings.worker, worker(&given.value::<String>()?).map(Some))
    }),
];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} load URL [OPTIONS]

Drives a running node with many clients, and measures it. URL is tcp://, ws://, tls:// or
wss://host:port. Latencies count from the moment when a message was due. The exit status is 1 if a
connection failed or was lost, a request was not answered, or a copy of a state was wrong.

{}",
        describe(OPTIONS.iter().map(|option| &option.opt))
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
    plan: Plan,
    script: Option<PathBuf>,
    duration: Option<Duration>,
    has_url: bool,
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
        let mut command = Self {
            settings: Settings::new("tcp://127.0.0.1".parse().map_err(usage)?),
            plan: Plan::default(),
            script: None,
            duration: None,
            has_url: false,
            is_json: false,
            is_quiet: false,
        };
        let url = |command: &mut Self, word: &OsStr| {
            if std::mem::replace(&mut command.has_url, true) {
                return Ok(false);
            }
            command.settings.url = word.to_string_lossy().parse().map_err(usage)?;
            Ok(true)
        };
        if !options::read(parser, OPTIONS, &mut command, url)? {
            return Ok(None);
        }
        if !command.has_url {
            return Err(usage("load needs the URL of a node: load tcp://127.0.0.1:7350"));
        }
        command.plan()?;
        Ok(Some(command))
    }

    /// Makes the scripts of what the options ask for.
    fn plan(&mut self) -> Result<(), Failure> {
        let plan = std::mem::take(&mut self.plan);
        let settings = &mut self.settings;
        settings.scripts = match &self.script {
            // Scripts end by themselves, or after the default duration.
            Some(path) => {
                settings.duration = self.duration;
                plan.refuse_beside_a_script()?;
                playfield_load::script::read(path)?
            }
            None => {
                settings.duration = self.duration.or(settings.duration);
                vec![plan.script(settings)?]
            }
        };
        Ok(())
    }
}

impl Plan {
    /// The option with this name says how to enter the room.
    fn enter(&mut self, option: &'static str, enter: Enter) -> Result<(), Failure> {
        self.enter.push((option, enter));
        Ok(())
    }

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

/// A number of seconds, of `min` or more.
fn seconds(given: &mut Given<'_>, min: f64) -> Result<Duration, Failure> {
    given.within(min..=SECONDS_MAX).map(Duration::from_secs_f64)
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

/// The interval at which progress is printed where it can't be written over.
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
