//! `serve`: settings from a file, the environment and flags, then a server until it is stopped.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lexopt::Arg::{Long, Short};
use playfield_server::config::{Group, keys, setting_of};
use playfield_server::{
    Config, NodeHandle, Running, Server, Stopper, log_to_stderr, renamed, settings,
};

#[cfg(target_os = "linux")]
use crate::first;
use crate::options::{Failure, Once, Usage, text_or_true, unknown_among};

/// The exit status of a program that a second signal ends.
const INTERRUPTED: i32 = 130;

/// The signals that stop a program, as its log names them.
const SIGNALS: &str = if cfg!(unix) { "SIGINT, SIGTERM or SIGHUP" } else { "Ctrl+C" };

/// The variable that names the file of settings. It is not a setting itself.
const CONFIG_VARIABLE: &str = "PLAYFIELD_CONFIG";

pub(crate) fn help(program: &str) -> String {
    let mut text = format!(
        "\
Usage: {program} [serve] [OPTIONS]

Serves until interrupted. A setting comes from its flag, else from the environment
(PLAYFIELD_TIMEOUTS_HELLO for --timeouts.hello, and so on), else from the file, else it has its
default. A flag that is true or false means true if no value follows. Of a table, each part can be
given by itself: --limits.connections.total 5000.

  --config FILE
      settings in TOML, such as listen = \"0.0.0.0:7350\"; else the file that PLAYFIELD_CONFIG names
"
    );
    let mut group: Option<&Group> = None;
    for setting in settings() {
        if group.is_none_or(|group| group.name != setting.group.name) {
            group = Some(setting.group);
            if !setting.group.name.is_empty() {
                text += &format!("\n[{}] {}\n", setting.group.name, setting.group.help);
            }
        }
        let default = match setting.default() {
            default if default.is_empty() => "empty".to_owned(),
            default => default,
        };
        text += &format!("  --{} (default {default})\n", setting.name);
        for line in wrapped(setting.help, HELP_COLUMNS) {
            text += &format!("      {line}\n");
        }
    }
    text
}

/// The width of a description.
const HELP_COLUMNS: usize = 90;

/// Breaks a text into lines of at most so many bytes, unless a word is longer.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= columns {
            *line += " ";
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Serves with the settings from the arguments, the environment and the file.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce(Config) -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(flags) = Flags::read(parser)? else {
        return Ok(out.write_all(help(program).as_bytes())?);
    };
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let config = flags.config(variables)?;

    log_to_stderr(config.log);
    #[cfg(target_os = "linux")]
    crate::upgrade::hold_signal()?;
    // Before the start: a signal may come as soon as this process has taken over.
    let told = Arc::new(Mutex::new(Told::default()));
    let of_signals = Arc::clone(&told);
    ctrlc::set_handler(move || by_signal(&of_signals)).map_err(io::Error::other)?;
    let running = make(config)?.start()?;
    let handle = running.handle();
    {
        let mut told = lock(&told);
        if told.to_stop {
            running.stopper().stop_because(SIGNALS);
        }
        told.running = Some((running.stopper(), handle.clone()));
    }
    // A node serves without it, too.
    #[cfg(target_os = "linux")]
    let orders = crate::upgrade::Orders::take(&handle)
        .inspect_err(|error| log::warn!("`upgrade` does not reach this process: {error}"));
    // A node keeps serving if its output can't be written.
    let _ = announce(&running, out);
    let ended = running.wait();
    #[cfg(target_os = "linux")]
    if handle.is_replaced() && first::is_this() {
        drop(orders);
        return Ok(first::stay()?);
    }
    Ok(ended?)
}

/// The state of a program that stops on signals.
#[derive(Default)]
struct Told {
    to_stop: bool,
    /// The node, once it has started. If a signal arrives earlier, the node stops right after the
    /// start.
    running: Option<(Stopper, NodeHandle)>,
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    // No code under this lock can panic halfway through a change.
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

fn by_signal(told: &Mutex<Told>) {
    let mut told = lock(told);
    #[cfg(target_os = "linux")]
    if told.running.as_ref().is_some_and(|(_, node)| node.is_replaced()) && first::is_this() {
        return first::end_others();
    }
    if std::mem::replace(&mut told.to_stop, true) {
        exit_at_once();
    }
    if let Some((stopper, node)) = &told.running {
        let (stopper, handle) = (stopper.clone(), node.clone());
        node.spawn(async move {
            handle.drain().await;
            stopper.stop_because(SIGNALS);
        });
    }
}

/// Prints the addresses that a node listens on.
fn announce(running: &Running, out: &mut dyn Write) -> io::Result<()> {
    let address = running.local_addr();
    let with_tls = if running.url().starts_with("https:") { " with TLS" } else { "" };
    writeln!(out, "listening on {address}{with_tls}")?;
    for service in running.service_addrs().iter().filter(|service| **service != address) {
        writeln!(out, "a service listens on {service}")?;
    }
    out.flush()
}

#[expect(clippy::disallowed_methods, reason = "the second signal skips the orderly shutdown")]
fn exit_at_once() {
    std::process::exit(INTERRUPTED);
}

/// The content of the arguments.
#[derive(Debug, Default)]
struct Flags {
    file: Option<OsString>,
    /// Settings by name, in the order given.
    settings: Vec<(&'static str, String)>,
}

impl Flags {
    /// Reads all arguments; `None` if they ask for help.
    fn read(parser: &mut lexopt::Parser) -> Result<Option<Self>, Failure> {
        let (mut flags, mut once) = (Self::default(), Once::default());
        while let Some(argument) = parser.next()? {
            let setting = match argument {
                Short('h') | Long("help") => return Ok(None),
                Long("config") => {
                    once.note("config")?;
                    flags.file = Some(parser.value()?);
                    continue;
                }
                Long(name) => key(name).and_then(|key| Some((setting_of(key)?, key))),
                _ => None,
            };
            let Some((setting, key)) = setting else { return Err(unknown(&argument)) };
            once.note(key)?;
            flags.settings.push((key, text_or_true(parser, setting.is_switch())?));
        }
        Ok(Some(flags))
    }

    /// The settings: flags override the environment, which overrides the file.
    fn config(
        self,
        variables: impl Iterator<Item = (String, OsString)>,
    ) -> Result<Config, Failure> {
        let (mut file, mut settings) = (self.file, Vec::new());
        for (name, value) in variables {
            if name == CONFIG_VARIABLE {
                if value.is_empty() {
                    return Err(Usage(format!(
                        "{CONFIG_VARIABLE} is empty: unset it, or name a file"
                    ))
                    .into());
                }
                file.get_or_insert(value);
            } else {
                settings.push((name, value.to_string_lossy().into_owned()));
            }
        }
        let mut config = match file {
            Some(file) => read(Path::new(&file))?,
            None => Config::default(),
        };
        config.read_env(settings).map_err(|error| Failure::Input(error.to_string()))?;
        let settings = self.settings;
        config.set_all(settings).map_err(|error| Failure::Input(error.to_string()))?;
        Ok(config)
    }
}

/// Reads a file of settings.
fn read(file: &Path) -> Result<Config, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::Input(format!("the settings in {} can't be read: {error}", file.display()))
    })?;
    Config::from_toml(&text).map_err(|error| Failure::Input(format!("{}: {error}", file.display())))
}

/// An argument that is not the flag of a setting.
fn unknown(argument: &lexopt::Arg<'_>) -> Failure {
    if let Long(name) = argument
        && let Some(said) = renamed(name, |new| format!("--{new}"))
    {
        return Usage(format!("--{name}: {said}")).into();
    }
    unknown_among(argument, ["config"].into_iter().chain(keys()).map(str::to_owned))
}

/// The name of a setting or of a part of one, by its flag: dashes equal underscores.
fn key(flag: &str) -> Option<&'static str> {
    let flag = flag.replace('-', "_");
    keys().find(|key| *key == flag)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::time::Duration;

    use playfield_server::{Quota, Setting, settings};

    use super::{Config, Failure, Flags, Usage};

    fn config(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
        let said = |failure| match failure {
            Failure::Usage(Usage(text)) | Failure::Input(text) => text,
            other => panic!("{other:?}"),
        };
        let mut parser = lexopt::Parser::from_args(arguments);
        let flags = Flags::read(&mut parser).map_err(said)?.expect("no help was asked for");
        let variables =
            variables.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value)));
        flags.config(variables).map_err(said)
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file() {
        let file = std::env::temp_dir().join(format!("playfield-cli-{}.toml", std::process::id()));
        fs::write(&file, "shards = 1\nlimits = { devices = 1, rooms = 1 }\n").unwrap();
        let path = file.to_string_lossy().into_owned();
        let variables = [
            ("PLAYFIELD_CONFIG", path.as_str()),
            ("PLAYFIELD_SHARDS", "2"),
            ("PLAYFIELD_LIMITS_DEVICES", "2"),
        ];
        let config = config(&["--shards", "3"], &variables);
        fs::remove_file(&file).unwrap();
        let config = config.unwrap();
        assert_eq!((config.shards, config.limits.devices, config.limits.rooms), (3, 2, 1));
    }

    #[test]
    fn flags_take_dashes_or_underscores() {
        for flag in ["--limits.message_bytes=700", "--limits.message-bytes=700"] {
            assert_eq!(config(&[flag], &[]).unwrap().limits.message_bytes, 700);
        }
    }

    #[test]
    fn a_part_of_a_table_has_a_flag_of_its_own() {
        let arguments = ["--limits.connections.total=7", "--timeouts.hello", "1m"];
        let config = config(&arguments, &[]).unwrap();
        assert_eq!(config.limits.connections, Quota { total: 7, per_address: 1000 });
        assert_eq!(config.timeouts.hello, Duration::from_secs(60));
        let table = "{ total = 7, per_address = 3 }";
        let limits = self::config(&["--limits.connections", table], &[]).unwrap().limits;
        assert_eq!(limits.connections, Quota { total: 7, per_address: 3 });
    }

    #[test]
    fn help_lists_every_setting_with_its_default() {
        let help = super::help("game");
        let flags = help.lines().filter_map(|line| line.strip_prefix("  --"));
        let of = |setting: &Setting| match setting.default() {
            default if default.is_empty() => format!("{} (default empty)", setting.name),
            default => format!("{} (default {default})", setting.name),
        };
        let expected = ["config FILE".to_owned()].into_iter().chain(settings().iter().map(of));
        assert!(flags.eq(expected), "{help}");
    }

    #[test]
    fn a_flag_that_is_given_twice_is_refused() {
        let error = config(
            &["--limits.message-bytes=700", "--shards=1", "--limits.message_bytes=800"],
            &[],
        )
        .unwrap_err();
        assert_eq!(error, "--limits.message_bytes is given twice: give it once");
        let error = config(&["--config=a", "--config=b"], &[]).unwrap_err();
        assert_eq!(error, "--config is given twice: give it once");
        assert!(config(&["--websocket.deflate", "--websocket.deflate"], &[]).is_err());
    }

    #[test]
    fn a_switch_needs_no_value() {
        let deflates =
            |arguments: &[&str]| config(arguments, &[]).map(|config| config.websocket.deflate);
        assert_eq!(deflates(&["--websocket.deflate"]), Ok(true));
        assert_eq!(deflates(&["--websocket.deflate=true"]), Ok(true));
        assert_eq!(deflates(&["--websocket.deflate", "true"]), Ok(true));
        assert_eq!(deflates(&["--websocket.deflate=false"]), Ok(false));
        assert_eq!(deflates(&["--websocket.deflate", "false"]), Ok(false));
        let error = deflates(&["--websocket.deflate", "yes"]).unwrap_err();
        assert!(error.contains("give true or false"), "{error}");
    }

    #[test]
    fn a_switch_takes_no_option_for_its_value() {
        let config = config(&["--websocket.deflate", "--listen", "127.0.0.1:0"], &[]).unwrap();
        assert!(config.websocket.deflate);
        assert_eq!(config.listen.port(), 0);
    }

    #[test]
    fn errors_name_the_argument() {
        let error = config(&["--shard=3"], &[]).unwrap_err();
        assert_eq!(error, "unknown option --shard; did you mean --shards?");
        let error = config(&["--limits.conections", "3"], &[]).unwrap_err();
        assert_eq!(error, "unknown option --limits.conections; did you mean --limits.connections?");
        let error = config(&["--hello-timeout-ms", "3"], &[]).unwrap_err();
        let expected =
            "--hello-timeout-ms: this is now `--timeouts.hello`, a duration such as \"10s\"";
        assert_eq!(error, expected);
        let error = config(&["--verbose"], &[]).unwrap_err();
        assert_eq!(error, "unknown option --verbose; --help lists the options");
        let error = config(&["--shards=many"], &[]).unwrap_err();
        assert!(error.contains("shards") && error.contains("many"), "{error}");
        let error = config(&[], &[("PLAYFIELD_SHARDS", "many")]).unwrap_err();
        assert!(error.contains("PLAYFIELD_SHARDS"), "{error}");
        let error = config(&["--config=/nowhere/at/all.toml"], &[]).unwrap_err();
        assert!(error.contains("/nowhere/at/all.toml"), "{error}");
    }
}
