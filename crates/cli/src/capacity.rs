//! `capacity` and `profile`: the cost of this program's rooms, and of their fields.

mod fields;
mod outcome;
pub(crate) mod profile;
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
    CapacityBaseline, Certificate, Drive, Plan, Target, compare, measure, predicted, prove,
};
use playfield_server::{SelfSigned, Server};
use serde_json::Value;

use self::outcome::Outcome;
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
needs two cores for itself. The exit status is 1 if a room can't be measured, the proof fails, or
it costs more than in the baseline.

{}",
        describe(OPTIONS.iter().map(|option| &option.opt))
    )
}

/// Reads the command line, measures, and prints the result. `make` makes the program's server.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    bots: Bots,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut command = Command::default();
    if !command.read(parser)? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let certificate = command.tls.then(Files::new).transpose()?;
    let plan = command.plan(bots, make, certificate.as_ref())?;
    let page = command.page()?;
    // A baseline that can't be compared is refused before anything is measured.
    let before = command.earlier(|before| CapacityBaseline::read(before, &plan))?;
    command.target.check().map_err(|error| Usage(error.to_string()))?;
    let mut shown = Shown::new(command.is_quiet);
    let capacity = measure(&plan, &mut |what| shown.show(what));
    shown.end();
    let capacity = capacity?;
    if !command.is_json {
        table::print(&capacity, &command.target, out)?;
        out.flush()?;
    }
    let proof = command.proves.then(|| {
        if !command.is_json {
            let rooms = predicted(&capacity);
            writeln!(
                out,
                "\npredicted, before any run of several rooms: {rooms} rooms on one core of this \
                 machine, used to the full"
            )?;
            out.flush()?;
        }
        let proved = prove(&capacity, &mut |what| shown.show(what));
        shown.end();
        Ok::<_, io::Error>(proved.map_err(|error| error.to_string()))
    });
    let proof = proof.transpose()?;
    let compared = before.map(|before| compare(&before, &capacity));
    let outcome = Outcome { capacity, target: command.target, proof, compared };
    let file = command.baseline.as_deref().unwrap_or(Path::new(""));
    match command.is_json {
        true => writeln!(out, "{}", outcome.to_json())?,
        false => outcome.print(file, out)?,
    }
    out.flush()?;
    let mut failures = outcome.failures(file);
    // The page comes last: without it, there is still the result.
    if let Some(page) = page {
        match outcome.report(&page) {
            Err(error) => failures.push(format!("the report can't be written: {error}")),
            Ok(()) if command.is_json => eprintln!("report: {}", page.display()),
            Ok(()) => writeln!(out, "\nreport: {}", page.display())?,
        }
        out.flush()?;
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(io::Error::other(failures.join("\n")).into()),
    }
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
    /// The names of the options on the command line.
    given: Vec<&'static str>,
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
            given: Vec::new(),
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
        match &given.target_file {
            None => *self = given,
            Some(file) => {
                target::read(file, self)?;
                let mut parser = lexopt::Parser::from_args(arguments.clone());
                options::read(&mut parser, OPTIONS, self, room_type)?;
            }
        }
        self.given = names(arguments);
        Ok(true)
    }

    /// Reads the baseline, if there is one.
    fn earlier<T>(
        &self,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let Some(file) = &self.baseline else { return Ok(None) };
        let read = std::fs::read_to_string(file).map_err(|error| error.to_string());
        let read = read.and_then(|text| {
            let value = serde_json::from_str(&text);
            parse(&value.map_err(|error| format!("it is cut or not JSON: {error}"))?)
        });
        Ok(Some(read.map_err(|why| not_comparable(file, &why))?))
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

    /// The rooms and players that are measured. `make` makes the program's server.
    fn plan(
        &self,
        bots: Bots,
        make: impl FnOnce() -> io::Result<Server>,
        certificate: Option<&Files>,
    ) -> Result<Plan, Failure> {
        let Some(room_type) = &self.room_type else {
            return Err(Usage(unnamed(&make()?)).into());
        };
        let bot = bots.into_iter().find(|(of, _)| of == room_type).map(|(_, make)| make);
        let has_message = self.message.is_some() || self.value.is_some() || self.rate.is_some();
        let drive = match (&self.script, bot) {
            (Some(_), _) if has_message || self.is_request => {
                let text = "--script says what players send: leave out --message, --value, --rate, \
                            --request";
                return Err(Usage(text.into()).into());
            }
            (None, Some(_)) if self.is_request && !has_message => {
                let text = format!(
                    "--request asks for replies to messages, and players of {room_type} are its \
                     bot: add --message, --value or --rate, or leave it out"
                );
                return Err(Usage(text).into());
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
            script: self
                .script
                .as_deref()
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned()),
            tls: certificate.map(|files| files.certificate.clone()),
            time: Duration::from_secs_f64(self.seconds),
            is_whole: !self.is_brief,
        })
    }
}

/// The names of the options among arguments in which nothing is wrong.
fn names(arguments: Vec<OsString>) -> Vec<&'static str> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut names = Vec::new();
    while let Ok(Some(argument)) = parser.next() {
        let lexopt::Arg::Long(name) = argument else { continue };
        let Some(option) = OPTIONS.iter().find(|option| option.opt.name == name) else { continue };
        names.push(option.opt.name);
        // Skip the value, which may begin with dashes.
        let _ = match option.opt.value.is_empty() {
            true => parser.optional_value(),
            false => parser.value().ok(),
        };
    }
    names
}

/// Says that a room type is missing, and which ones the program has.
fn unnamed(server: &Server) -> String {
    let types: Vec<&str> = server.schemas().map(|(name, _)| name).collect();
    match types.is_empty() {
        true => "name a room type; this program has none".to_owned(),
        false => format!("name a room type; this program has {}", types.join(", ")),
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

    use playfield::prelude::{Room, State, room};
    use playfield_load::MakeBot;
    use playfield_measure::Drive;
    use playfield_room::RoomType;
    use playfield_server::{Config, Server};
    use serde_json::json;

    use super::{profile, run};
    use crate::Bots;
    use crate::options::{Failure, Usage};

    #[derive(State, Default)]
    struct Arena {
        round: u32,
    }

    #[room()]
    impl Room for Arena {}

    fn bots() -> Bots {
        vec![("arena".to_owned(), MakeBot::of::<(), _>(|_| wait))]
    }

    fn make() -> std::io::Result<Server> {
        let types = ["arena", "chat"].map(RoomType::of::<Arena>);
        Ok(types.into_iter().fold(Server::new(Config::default()), Server::room_type))
    }

    fn usage(result: Result<(), Failure>) -> String {
        match result {
            Err(Failure::Usage(Usage(text))) => text,
            other => panic!("{other:?}"),
        }
    }

    fn refused(arguments: &[&str]) -> String {
        let parser = &mut lexopt::Parser::from_args(arguments);
        usage(run(parser, "game", bots(), make, &mut Vec::new()))
    }

    fn profile_refused(arguments: &[&str]) -> String {
        let parser = &mut lexopt::Parser::from_args(arguments);
        usage(profile::run(parser, "game", bots(), make, &mut Vec::new()))
    }

    fn wait(_: &mut playfield_load::Turn<'_, ()>) -> std::time::Duration {
        std::time::Duration::from_secs(1)
    }

    #[test]
    fn wrong_arguments_are_refused_before_anything_is_measured() {
        for (arguments, expected) in [
            (&["--players", "4"][..], "name a room type; this program has arena, chat"),
            (
                &["arena", "--request"],
                "--request asks for replies to messages, and players of arena",
            ),
            (&["chat", "--script", "a.toml", "--request"], "--script says what players send"),
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
    fn a_profile_takes_no_option_that_would_change_nothing() {
        for option in [
            &["--cores", "1"][..],
            &["--cores=1"],
            &["--safety", "0.7"],
            &["--prove"],
            &["--report", "a.html"],
            &["--message", "--json", "--clock", "1"],
        ] {
            let text = profile_refused(&[&["arena"][..], option].concat());
            assert!(text.contains("profile takes none of --"), "{option:?}: {text}");
        }
    }

    #[test]
    fn the_help_says_when_a_baseline_fails() {
        let parser = &mut lexopt::Parser::from_args(["--help"]);
        let mut out = Vec::new();
        assert!(run(parser, "game", bots(), make, &mut out).is_ok());
        let text = String::from_utf8(out).expect("it is text").replace('\n', " ");
        assert!(text.contains("or it costs more than in the baseline"), "{text}");
    }

    #[test]
    fn a_bad_baseline_is_refused_before_anything_is_measured() {
        let file = std::env::temp_dir().join(format!("playfield-baseline-{}", std::process::id()));
        let path = file.to_string_lossy().into_owned();
        let plan = json!({ "players": 30, "hz": null, "drive": "bot", "tls": false });
        let other = json!({ "players": 30, "hz": null, "drive": "messages", "tls": false });
        for (text, expected) in [
            ("junk".to_owned(), "it is cut or not JSON"),
            (json!({ "capacity": 1, "profile": 1 }).to_string(), "it is of version 1"),
            (
                json!({ "capacity": 2, "profile": 4, "room": "chat", "plan": plan }).to_string(),
                "its room is \"chat\", and \"arena\" is measured",
            ),
            (
                json!({ "capacity": 2, "profile": 4, "room": "arena", "plan": other }).to_string(),
                "its drive is \"messages\", and \"bot\" is measured",
            ),
        ] {
            std::fs::write(&file, text).expect("it is written");
            for refused in [refused, profile_refused] {
                let text = refused(&["arena", "--baseline", &path]);
                assert!(text.starts_with(&format!("--baseline {path}: {expected}")), "{text}");
                assert!(text.ends_with("; write one with --json"), "{text}");
            }
        }
        let _ = std::fs::remove_file(&file);
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
            command.plan(bots(), make, None).map(|plan| plan.drive).expect("it is a plan")
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
