//! `capacity` and `profile`: the cost of this program's rooms, and of their fields.

mod fields;
mod progress;
mod table;
mod target;

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use playfield_measure::{
    Certificate, Drive, FieldChanges, Plan, Target, compare, measure, predicted, profile, prove,
    report,
};
use playfield_server::SelfSigned;
use serde_json::Value;

use self::progress::Shown;
use crate::Bots;
use crate::options::{self, Failure, Setter, Usage, describe, set};

const OPTIONS: &[Setter<Command>] = &[
    Setter::internal("room", |c, given| set(&mut c.room_type, given.value().map(Some))),
    Setter::new("players", "N", "players in a room (default 30, or all that fit)", |c, given| {
        set(&mut c.players, given.within(1..=10_000).map(Some))
    }),
    Setter::new("hz", "N", "ticks and syncs a second (default: the room's own)", |c, given| {
        set(&mut c.hz, given.within(1..=240).map(Some))
    }),
    Setter::new("message", "NAME", "send only this message (default: any)", |c, given| {
        set(&mut c.message, given.value().map(Some))
    }),
    Setter::new("value", "JSON", "its value; what it leaves out is random", |c, given| {
        set(&mut c.value, given.value().map(Some))
    }),
    Setter::new("rate", "N", "messages a second of each player (default 5)", |c, given| {
        set(&mut c.rate, given.value().and_then(rate).map(Some))
    }),
    Setter::new("request", "", "ask for replies to messages", |c, _| {
        set(&mut c.is_request, Ok(true))
    }),
    Setter::new("script", "FILE", "let players run the steps in this file (TOML)", |c, given| {
        set(&mut c.script, given.value().map(Some))
    }),
    Setter::new("tls", "", "over TLS", |c, _| set(&mut c.tls, Ok(true))),
    Setter::new(
        "target",
        "FILE",
        "take what is not given here from this file (TOML)",
        |c, given| set(&mut c.target_file, given.value().map(Some)),
    ),
    Setter::new("cores", "N", "cores of the machine that is asked for (default 1)", |c, given| {
        set(&mut c.target.cores, given.value())
    }),
    Setter::new(
        "clock",
        "X",
        "how fast a core of it is, against one here (default 1)",
        |c, given| set(&mut c.target.clock, given.value()),
    ),
    Setter::new("memory", "MB", "its memory for rooms (default: no limit)", |c, given| {
        set(&mut c.target.memory, given.value::<f64>().map(|mb| mb * 1e6))
    }),
    Setter::new("bandwidth", "MBIT", "its bandwidth a second (default: no limit)", |c, given| {
        set(&mut c.target.bandwidth, given.value::<f64>().map(|mbit| mbit * 1e6))
    }),
    Setter::new("utilization", "X", "the part of a core to use (default 0.8)", |c, given| {
        set(&mut c.target.utilization, given.value())
    }),
    Setter::new("safety", "X", "the part of what fits to count on (default 0.7)", |c, given| {
        set(&mut c.target.safety, given.value())
    }),
    Setter::new("price", "X", "what the machine costs in an hour", |c, given| {
        set(&mut c.target.price, given.value().map(Some))
    }),
    Setter::new(
        "prove",
        "",
        "find the maximum here, and compare it with the prediction",
        |c, _| set(&mut c.proves, Ok(true)),
    ),
    Setter::new("brief", "", "measure only the room that is asked for", |c, _| {
        set(&mut c.is_brief, Ok(true))
    }),
    Setter::new("seconds", "X", "how long a measurement takes (default 3)", |c, given| {
        set(&mut c.seconds, given.within(0.2..=60.0))
    }),
    Setter::new("baseline", "FILE", "fail if it costs more than in this result", |c, given| {
        set(&mut c.baseline, given.value().map(Some))
    }),
    Setter::new(
        "report",
        "FILE",
        "write an HTML page (default target/capacity-ROOM_TYPE.html, if there is a folder target)",
        |c, given| set(&mut c.report, given.value().map(Some)),
    ),
    Setter::new("json", "", "print one JSON object instead of tables", |c, _| {
        set(&mut c.is_json, Ok(true))
    }),
    Setter::new("quiet", "", "print no progress", |c, _| set(&mut c.is_quiet, Ok(true))),
];

/// Checks a rate of messages.
fn rate(rate: f64) -> Result<f64, Failure> {
    if rate == 0.0 || (RATE_MIN..=RATE_MAX).contains(&rate) {
        return Ok(rate);
    }
    Err(Usage(format!("--rate {rate:?} must be 0, or from {RATE_MIN} to {RATE_MAX}")).into())
}

/// The messages a second that are measured, if there are any.
const RATE_MIN: f64 = 0.001;
const RATE_MAX: f64 = 10_000.0;

/// The players in a room, if nobody asks for another number.
const PLAYERS: usize = 30;

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} capacity ROOM_TYPE [OPTIONS]

Measures what a room costs on this machine, and says how many of them a machine carries. Players are
the program's bots for this room type, or send messages at a rate, with random valid values. It
needs two cores for itself. The exit status is 1 if a room can't be measured.

{}",
        describe(OPTIONS.iter().map(|option| &option.opt))
    )
}

pub(crate) fn help_profile(program: &str) -> String {
    let options = OPTIONS.iter().map(|option| &option.opt);
    format!(
        "\
Usage: {program} profile ROOM_TYPE [OPTIONS]

Runs a room, and says what players are sent, by field: bytes in a patch, how much of it is for one
player alone, the CPU time of a sync, and what another type or policy would save; of messages and
events their bytes and time. Players are those of `capacity`. The exit status is 1 if the room can't
be run, or a field costs more than in the baseline.

{}",
        describe(options.filter(|option| !CAPACITY_ALONE.contains(&option.name)))
    )
}

/// Options that have no effect on a profile.
const CAPACITY_ALONE: [&str; 12] = [
    "tls",
    "target",
    "cores",
    "clock",
    "memory",
    "bandwidth",
    "utilization",
    "safety",
    "price",
    "prove",
    "brief",
    "report",
];

/// Runs a room, and prints what its players are sent, by field.
pub(crate) fn run_profile(
    parser: &mut lexopt::Parser,
    program: &str,
    bots: Bots,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut command = Command::default();
    if !command.read(parser)? {
        return Ok(out.write_all(help_profile(program).as_bytes())?);
    }
    let Command { target, tls, proves, is_brief, report, .. } = &command;
    let has_target = command.target_file.is_some() || *target != Target::default();
    if *tls || *proves || *is_brief || report.is_some() || has_target {
        let text = format!("profile takes none of --{}", CAPACITY_ALONE.join(", --"));
        return Err(Usage(text).into());
    }
    let before = command.baseline.as_deref().map(read).transpose()?;
    let room = profile(&command.plan(bots, None)?)?;
    let changes = before.as_ref().map(|before| room.changes(before)).transpose();
    let file = command.baseline.clone().unwrap_or_default();
    let changes = changes.map_err(|why| not_comparable(&file, &why))?;
    if command.is_json {
        let mut result = room.to_json();
        if let Some(FieldChanges { fields, rooms }) = &changes {
            result["changes"] = fields.iter().map(|of| Value::from(of.text.as_str())).collect();
            result["rooms_a_core"] = Value::from(rooms.map(Vec::from));
        }
        writeln!(out, "{result}")?;
    } else {
        fields::print(&room, out)?;
        if let Some(changes) = &changes {
            fields::print_changes(changes, &file, out)?;
        }
    }
    out.flush()?;
    match changes.is_some_and(|changes| changes.fields.iter().any(|field| field.is_worse)) {
        true => {
            let text = format!("a field costs more than in {}: see above", file.display());
            Err(io::Error::other(text).into())
        }
        false => Ok(()),
    }
}

/// Reads the command line, measures, and prints the result.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    bots: Bots,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut command = Command::default();
    if !command.read(parser)? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let certificate = command.tls.then(Files::new).transpose()?;
    let plan = command.plan(bots, certificate.as_ref())?;
    let page = command.page()?;
    // A file that can't be read is said before anything is measured.
    let before = command.baseline.as_deref().map(read).transpose()?;
    command.target.check().map_err(|error| Usage(error.to_string()))?;
    let mut shown = Shown::new(command.is_quiet);
    let capacity = measure(&plan, &mut |what| shown.show(what));
    shown.end();
    let capacity = capacity?;
    if !command.is_json {
        table::print(&capacity, &command.target, out)?;
    }
    let mut result = capacity.to_json();
    let mut proof = None;
    result["answer"] = table::answer_json(&capacity, &command.target);
    if command.proves {
        let text = format!("predicted, before any run of several rooms: {}", predicted(&capacity));
        if !command.is_json {
            writeln!(out, "\n{text} rooms on one core of this machine, used to the full")?;
            out.flush()?;
        }
        let proved = prove(&capacity, &mut |what| shown.show(what));
        shown.end();
        let proof = proof.insert(proved?);
        if !command.is_json {
            table::print_proof(&capacity, proof, out)?;
        }
        let Value::Object(members) = proof.to_json(&capacity) else { unreachable!("an object") };
        members.into_iter().for_each(|(name, value)| result[name] = value);
    }
    if let Some(page) = page {
        let report = report::capacity(&capacity, &command.target, proof.as_ref());
        report::replace(&page, &report.html())?;
        match command.is_json {
            true => eprintln!("report: {}", page.display()),
            false => writeln!(out, "\nreport: {}", page.display())?,
        }
    }
    let mut is_worse = false;
    if let (Some(file), Some(before)) = (&command.baseline, &before) {
        let compared = compare(before, &capacity).map_err(|why| not_comparable(file, &why))?;
        is_worse = compared.is_worse();
        let changes = compared.changes.iter().map(ToString::to_string).collect::<Vec<_>>();
        result["changes"] = changes.into();
        result["worse"] = is_worse.into();
        if !command.is_json {
            table::print_comparison(&compared, file, out)?;
        }
    }
    if command.is_json {
        writeln!(out, "{result}")?;
    }
    out.flush()?;
    match &command.baseline {
        Some(file) if is_worse => {
            let text = format!("it costs more than in {}: see above", file.display());
            Err(io::Error::other(text).into())
        }
        _ => Ok(()),
    }
}

/// Reads an earlier result.
fn read(file: &Path) -> Result<Value, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Usage(format!("--baseline {}: {error}; write one with --json", file.display()))
    })?;
    let value = serde_json::from_str(&text);
    Ok(value.map_err(|error| not_comparable(file, &error.to_string()))?)
}

fn not_comparable(file: &Path, why: &str) -> Usage {
    Usage(format!("--baseline {}: {why}; write one with --json", file.display()))
}

/// The command line.
struct Command {
    room_type: Option<String>,
    players: Option<usize>,
    hz: Option<u32>,
    message: Option<String>,
    value: Option<String>,
    rate: Option<f64>,
    is_request: bool,
    script: Option<PathBuf>,
    tls: bool,
    target_file: Option<PathBuf>,
    target: Target,
    proves: bool,
    is_brief: bool,
    seconds: f64,
    baseline: Option<PathBuf>,
    report: Option<PathBuf>,
    is_json: bool,
    is_quiet: bool,
}

impl Default for Command {
    fn default() -> Self {
        Self {
            room_type: None,
            players: None,
            hz: None,
            message: None,
            value: None,
            rate: None,
            is_request: false,
            script: None,
            tls: false,
            target_file: None,
            target: Target::default(),
            proves: false,
            is_brief: false,
            seconds: 3.0,
            baseline: None,
            report: None,
            is_json: false,
            is_quiet: false,
        }
    }
}

impl Command {
    /// Reads the arguments, and before them the target that they name, so that they replace its
    /// values. Returns whether the command is to run: not if help is asked for.
    fn read(&mut self, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        let room_type = |command: &mut Self, word: &OsStr| {
            let word = word.to_string_lossy().into_owned();
            Ok(command.room_type.replace(word).is_none())
        };
        let arguments: Vec<OsString> = parser.raw_args()?.collect();
        let mut given = Self::default();
        let mut parser = lexopt::Parser::from_args(arguments.clone());
        if !options::read(&mut parser, OPTIONS, &mut given, room_type)? {
            return Ok(false);
        }
        let Some(file) = &given.target_file else {
            *self = given;
            return Ok(true);
        };
        target::read(file, self)?;
        options::read(&mut lexopt::Parser::from_args(arguments), OPTIONS, self, room_type)
    }

    /// The file of the report; `None` if none is written.
    fn page(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(file) = &self.report else {
            let is_named =
                |c: char| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
            let room: String =
                self.room_type.iter().flat_map(|name| name.chars()).map(is_named).collect();
            let file = Path::new("target").join(format!("capacity-{room}.html"));
            return Ok(Path::new("target").is_dir().then_some(file));
        };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        match folder.is_none_or(Path::is_dir) && file.file_name().is_some() && !file.is_dir() {
            true => Ok(Some(file.clone())),
            false => {
                let text =
                    format!("--report {}: name a file in a folder that exists", file.display());
                Err(Usage(text).into())
            }
        }
    }

    fn plan(&self, bots: Bots, certificate: Option<&Files>) -> Result<Plan, Failure> {
        let Some(room_type) = &self.room_type else {
            return Err(Usage("name a room type, such as arena".into()).into());
        };
        let bot = bots.into_iter().find(|(of, _)| of == room_type).map(|(_, make)| make);
        let has_message = self.message.is_some() || self.value.is_some() || self.rate.is_some();
        let drive = match (&self.script, bot) {
            (Some(_), _) if has_message => {
                let text = "--script says what players send: leave out --message, --value, --rate";
                return Err(Usage(text.into()).into());
            }
            (Some(file), _) => {
                let read = playfield_load::script::read(file);
                Drive::Scripts(read.map_err(|error| Usage(error.to_string()))?)
            }
            (None, Some(make)) if !has_message => Drive::Bot(make),
            (None, _) => {
                let value = self.value.as_ref().map(|text| serde_json::from_str(text));
                let value = value.transpose().map_err(|error| {
                    Usage(format!("--value {}: {error}", self.value.as_deref().unwrap_or("")))
                })?;
                Drive::Messages {
                    name: self.message.clone(),
                    value,
                    rate: self.rate.unwrap_or(5.0),
                    is_request: self.is_request,
                }
            }
        };
        Ok(Plan {
            room_type: room_type.clone(),
            players: self.players.unwrap_or(PLAYERS),
            is_default_size: self.players.is_none(),
            hz: self.hz,
            drive,
            tls: certificate.map(|files| files.certificate.clone()),
            time: Duration::from_secs_f64(self.seconds),
            is_whole: !self.is_brief,
        })
    }
}

/// A certificate for this machine in files of a folder, which is removed in the end.
struct Files {
    folder: PathBuf,
    certificate: Certificate,
}

impl Files {
    fn new() -> io::Result<Self> {
        let signed = SelfSigned::new(&["localhost"]).map_err(io::Error::other)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("playfield-{}-{now}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // A folder that another user has put there is not used.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        let files = Self { folder, certificate: Certificate { certificate, key } };
        let Certificate { certificate, key } = &files.certificate;
        std::fs::write(certificate, signed.certificate_pem())?;
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(key)?;
        file.write_all(signed.key_pem().as_bytes())?;
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // A leftover folder in the temporary directory does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::PermissionsExt;

    use playfield_load::MakeBot;
    use playfield_measure::Drive;

    use super::run;
    use crate::options::{Failure, Usage};

    fn refused(arguments: &[&str]) -> String {
        let bots = vec![("arena".to_owned(), MakeBot::of::<(), _>(|_| wait))];
        let parser = &mut lexopt::Parser::from_args(arguments);
        match run(parser, "game", bots, &mut Vec::new()) {
            Err(Failure::Usage(Usage(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    fn wait(_: &mut playfield_load::Turn<'_, ()>) -> std::time::Duration {
        std::time::Duration::from_secs(1)
    }

    #[test]
    fn wrong_arguments_are_refused_before_anything_is_measured() {
        for (arguments, expected) in [
            (&["--players", "4"][..], "name a room type"),
            (&["arena", "chat"], "unexpected argument \"chat\""),
            (&["arena", "--players", "0"], "--players 0 must be from 1"),
            (&["arena", "--cores", "0"], "--cores 0 must be a number above 0"),
            (&["arena", "--clock", "1e308"], "--clock 1e308 must be from 0.01 to 100"),
            (&["arena", "--memory", "-5"], "--memory -5 must be a number above 0"),
            (&["arena", "--rate", "1e-20"], "--rate 1e-20 must be 0, or from 0.001"),
            (&["arena", "--rate", "-1"], "--rate -1.0 must be 0, or from 0.001"),
            (&["arena", "--safety", "2"], "--safety 2 must be above 0, and 1 at most"),
            (&["arena", "--value", "{"], "--value {: "),
            (&["arena", "--script", "a.toml", "--rate", "2"], "--script says what players send"),
            (&["arena", "--script", "/nowhere/a.toml"], "/nowhere/a.toml"),
            (&["arena", "--baseline", "/nowhere/a.json"], "--baseline /nowhere/a.json: "),
            (&["arena", "--report", "/nowhere/a.html"], "--report /nowhere/a.html: name a file"),
        ] {
            let text = refused(arguments);
            assert!(text.contains(expected), "{arguments:?}: {text}");
        }
    }

    #[test]
    fn a_key_can_be_read_by_its_user_alone() {
        let files = super::Files::new().expect("it is written");
        let key = std::fs::metadata(&files.certificate.key).expect("it is there");
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
        let folder = files.folder.clone();
        drop(files);
        assert!(!folder.exists());
    }

    #[test]
    fn the_command_line_wins_over_the_target() {
        let file = std::env::temp_dir().join(format!("playfield-target-{}", std::process::id()));
        std::fs::write(&file, "cores = 8\nsafety = 0.6\nplayers = 12").expect("it is written");
        let mut command = super::Command::default();
        let arguments = ["arena", "--cores", "4", "--target"].map(OsString::from);
        let arguments = arguments.into_iter().chain([file.clone().into_os_string()]);
        let read = command.read(&mut lexopt::Parser::from_args(arguments));
        let _ = std::fs::remove_file(&file);
        assert!(matches!(read, Ok(true)), "{read:?}");
        assert_eq!((command.target.cores, command.target.safety), (4.0, 0.6));
        assert_eq!((command.players, command.room_type.as_deref()), (Some(12), Some("arena")));
        assert!(refused(&["arena", "--target", "/nowhere/a.toml"]).contains("/nowhere/a.toml: "));
    }

    #[test]
    fn players_are_bots_unless_messages_are_asked_for() {
        let drive = |command: super::Command| {
            let bots = vec![("arena".to_owned(), MakeBot::of::<(), _>(|_| wait))];
            command.plan(bots, None).map(|plan| plan.drive).expect("it is a plan")
        };
        let room_type = || Some("arena".to_owned());
        let plain = super::Command { room_type: room_type(), ..super::Command::default() };
        assert!(matches!(drive(plain), Drive::Bot(_)));
        let rate = Some(2.0);
        let rated = super::Command { room_type: room_type(), rate, ..super::Command::default() };
        assert!(matches!(drive(rated), Drive::Messages { rate: 2.0, .. }));
        let other = Some("chat".to_owned());
        let other = super::Command { room_type: other, ..super::Command::default() };
        assert!(matches!(drive(other), Drive::Messages { rate: 5.0, .. }));
    }
}
