//! `upgrade`: a running program is replaced by a new process of it, and the match goes on. Beside
//! the command, the part of a program that serves: it listens on a socket in a folder that only its
//! user can open, and for `SIGUSR2`.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{SigSet, Signal};
use playfield_server::{NodeHandle, Upgrade};

use crate::options::{Failure, Setter, describe, read, set};

/// The content of the arguments.
#[derive(Default)]
struct Given {
    pid: Option<u32>,
    binary: Option<PathBuf>,
}

const OPTIONS: &[Setter<Given>] = &[
    Setter::new(
        "pid",
        "PID",
        "the process to be replaced; not needed if only one of this user runs",
        |to, given| set(&mut to.pid, given.value().map(Some)),
    ),
    Setter::new(
        "binary",
        "FILE",
        "the file of the new program; else that of the running one, as it is now",
        |to, given| set(&mut to.binary, program_file(Path::new(&given.text()?)).map(Some)),
    ),
];

/// The longest wait for an upgrade.
const WAIT_MAX: Duration = Duration::from_secs(600);

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} upgrade [--pid PID] [--binary FILE]

Replaces a running process of this program by a new one. Rooms and sessions go on in it, and clients
come back to it by themselves. If the new process does not start, is another program or can't read
the state of a room, the old one goes on, and this says why. `kill -USR2 PID` does the same.

Options:
{}",
        describe(OPTIONS.iter().map(|setter| &setter.opt))
    )
}

/// Has a running process replaced.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut given = Given::default();
    if !read(parser, OPTIONS, &mut given, |_, _| Ok(false))? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let Given { pid, binary } = given;
    let folder = folder()?;
    let path = match pid {
        Some(pid) => socket(&folder, pid),
        None => only_socket(&folder)?,
    };
    match ask(&path, binary.as_deref())? {
        Answer::Done { text, .. } => Ok(writeln!(out, "{text}")?),
        Answer::Failed { text } => Err(io::Error::other(text).into()),
    }
}

/// The answer of a process that was to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Another process has taken over.
    Done {
        /// Its id.
        pid: u32,
        /// For people.
        text: String,
    },
    /// None has, and everything goes on in this one.
    Failed {
        /// The reason, for people.
        text: String,
    },
}

/// The whole path of a program, which the running process may know by another one.
fn program_file(path: &Path) -> Result<PathBuf, Failure> {
    let wrong = |why: &str| {
        Failure::Input(format!("--binary {}: {why}; give the file of a program", path.display()))
    };
    let whole = fs::canonicalize(path).map_err(|error| wrong(&error.to_string()))?;
    let about = fs::metadata(&whole).map_err(|error| wrong(&error.to_string()))?;
    match about.is_file() && about.mode() & 0o111 != 0 {
        true => Ok(whole),
        false => Err(wrong("it is not executable")),
    }
}

/// Has a process of this user replaced by a new one of this program, and waits for that.
///
/// # Errors
/// If the process is not one that serves, or ends before it answers.
pub fn replace(pid: u32, binary: &Path) -> io::Result<Answer> {
    ask(&socket(&folder()?, pid), Some(binary))
}

fn ask(path: &Path, binary: Option<&Path>) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(path).map_err(|error| {
        let text = format!("no process is reached by {}: {error}", path.display());
        io::Error::new(error.kind(), text)
    })?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    let binary = binary.map_or(&[][..], |binary| binary.as_os_str().as_bytes());
    stream.write_all(&[binary, b"\n"].concat())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let ended = || io::Error::other("the process ended before it answered; see its log");
    answer_of(line.trim_end()).ok_or_else(ended)
}

fn answer_of(line: &str) -> Option<Answer> {
    if let Some(text) = line.strip_prefix("failed ") {
        return Some(Answer::Failed { text: text.into() });
    }
    let (pid, text) = line.strip_prefix("done ")?.split_once(' ')?;
    Some(Answer::Done { pid: pid.parse().ok()?, text: text.into() })
}

/// The folder of the sockets of this user's processes. Nobody else can open it.
fn folder() -> io::Result<PathBuf> {
    let user = fs::metadata("/proc/self")?.uid();
    // Unlike the runtime folder of a login, it is the same for a service and for its user.
    let folder = std::env::temp_dir().join(format!("playfield-{user}"));
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = fs::symlink_metadata(&folder)?;
    if !about.is_dir() || about.uid() != user || about.mode() & 0o077 != 0 {
        let text = format!("{} is not a folder that only this user can open", folder.display());
        return Err(io::Error::other(text));
    }
    Ok(folder)
}

fn socket(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

/// The socket of the only process that has one.
fn only_socket(folder: &Path) -> io::Result<PathBuf> {
    let pid = |path: &Path| path.file_stem()?.to_str()?.parse::<u32>().ok();
    let all = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    let alive =
        |path: &PathBuf| pid(path).is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
    let mut found: Vec<PathBuf> = all.filter(alive).collect();
    match found.len() {
        0 => Err(io::Error::other("no program of this user runs that can be upgraded")),
        1 => Ok(found.remove(0)),
        _ => {
            let mut pids: Vec<u32> = found.iter().filter_map(|path| pid(path)).collect();
            pids.sort_unstable();
            let text = format!("several programs run: give one of {pids:?} as --pid");
            Err(io::Error::other(text))
        }
    }
}

/// Keeps `SIGUSR2` from ending this process. It has to be called before threads are started.
pub(crate) fn hold_signal() -> io::Result<()> {
    Ok(signal().thread_block()?)
}

fn signal() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR2);
    set
}

/// Takes orders to upgrade, by `SIGUSR2` and by the command.
pub(crate) struct Orders(Option<PathBuf>);

impl Orders {
    pub(crate) fn take(node: &NodeHandle) -> io::Result<Self> {
        let of_signal = node.clone();
        thread::Builder::new().name("playfield-signal".into()).spawn(move || {
            while signal().wait().is_ok() {
                // The log has the outcome.
                let _ = of_signal.upgrade(&Upgrade::default());
            }
        })?;
        let path = socket(&folder()?, std::process::id());
        // Another process had the number before.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        let node = node.clone();
        thread::Builder::new().name("playfield-upgrade".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let node = node.clone();
                let answers = move || {
                    if let Err(error) = answer(&stream, &node) {
                        log::debug!("an order to upgrade was not answered: {error}");
                    }
                };
                // Two at once: the second is refused.
                let _ = thread::Builder::new().name("playfield-order".into()).spawn(answers);
            }
        })?;
        Ok(Self(Some(path)))
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            let _ = fs::remove_file(path);
        }
    }
}

fn answer(stream: &UnixStream, node: &NodeHandle) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut binary = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut binary)?;
    binary.pop();
    let binary = (!binary.is_empty()).then(|| PathBuf::from(std::ffi::OsString::from_vec(binary)));
    let answer = match node.upgrade(&Upgrade { binary, arguments: None }) {
        Ok(done) => format!(
            "done {pid} process {pid} has taken over {} rooms and {} sessions; no room ran for {:.1?}",
            done.rooms,
            done.sessions,
            done.pause,
            pid = done.pid,
        ),
        Err(error) => format!("failed {}", error.to_string().replace('\n', " ")),
    };
    let mut stream = stream;
    stream.write_all(format!("{answer}\n").as_bytes())
}
