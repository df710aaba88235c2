//! Servers of NATS for one test each: free ports, folders of their own, ended with the test.

use std::io::{BufRead as _, BufReader, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A server. Its records stay in its folder when it is killed, and go with this value.
pub(crate) struct Server {
    program: &'static Path,
    folder: PathBuf,
    arguments: Vec<String>,
    port: u16,
    child: Child,
}

/// The path of nats-server. `None`, after a line of text, if it can't be had.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let script = Path::new(ROOT).join("scripts/nats-server");
        let output = Command::new(script).output().expect("a shell for scripts/nats-server");
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            assert!(env::var_os("CI").is_none(), "{reason}");
            // This bypasses the test harness, which hides the output of passing tests.
            let text = "The tests of clusters over NATS are left out.";
            let _ = writeln!(stderr(), "{reason}\nplayfield: {text}");
            return None;
        }
        Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim()))
    });
    program.as_deref()
}

impl Server {
    /// Starts a server with JetStream.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(&["--jetstream"], "")
    }

    /// Starts a server with arguments, and a file of settings.
    pub(crate) fn start_with(arguments: &[&str], config: &str) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("playfield-nats-{}-{count}", process::id()));
        let program = program()?;
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        let file = folder.join("config");
        fs::write(&file, config).expect("a file can be written");
        let mut arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
        let (child, port) = run(program, &folder, &arguments, 0);
        Some(Self { program, folder, arguments, port, child })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Starts it again after it was killed, at the same port.
    pub(crate) fn start_again(&mut self) {
        (self.child, _) = run(self.program, &self.folder, &self.arguments, self.port);
    }

    /// Removes all that it has stored, while it does not run.
    pub(crate) fn wipe(&self) {
        fs::remove_dir_all(self.folder.join("store")).expect("it has stored something");
    }

    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a server, and waits until it is ready. Port 0: a free one.
fn run(program: &Path, folder: &Path, arguments: &[String], port: u16) -> (Child, u16) {
    let mut child = Command::new(program)
        .args(["--addr", "127.0.0.1"])
        .args(["--port", if port == 0 { "-1".to_owned() } else { port.to_string() }.as_str()])
        .arg("--store_dir")
        .arg(folder.join("store"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("nats-server runs");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let (mut port, mut log) = (None, String::new());
    loop {
        let line = lines.next().and_then(Result::ok);
        let Some(line) = line else { panic!("nats-server ended:\n{log}") };
        if let Some((_, address)) = line.split_once("Listening for client connections on ") {
            port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        }
        if line.ends_with("Server is ready") {
            break;
        }
        log += &line;
        log.push('\n');
    }
    // It must not wait for a reader of its log.
    thread::spawn(move || lines.for_each(drop));
    (child, port.expect("its port is in its log"))
}
