//! Servers of NATS for tests and benchmarks: free ports, folders of their own, ended with the test.

use std::io::{BufRead as _, BufReader, Write as _, stderr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A server. Its records stay in its folder when it is killed, and go with this value.
#[derive(Debug)]
pub struct Server {
    program: &'static Path,
    folder: PathBuf,
    arguments: Vec<String>,
    port: u16,
    child: Child,
}

/// The path of nats-server. `None`, after a line of text, if it can't be had; in CI, a panic.
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
    /// Starts a server with JetStream, and waits until it is ready. Returns `None`, after a line of
    /// text, if this machine has no nats-server and can't build it.
    ///
    /// # Panics
    /// If it ends at once; with the environment variable `CI`, also if it can't be had.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&["--jetstream"], "")
    }

    /// Starts a server with arguments, and a file of settings, as [`start`](Self::start) does.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(arguments: &[&str], config: &str) -> Option<Self> {
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

    /// The port for clients.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it, by SIGKILL.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was killed");
    }

    /// Starts it again after it was killed, at the same port.
    ///
    /// # Panics
    /// If it ends at once.
    pub fn start_again(&mut self) {
        (self.child, _) = run(self.program, &self.folder, &self.arguments, self.port);
    }

    /// Removes all that it has stored, while it does not run.
    ///
    /// # Panics
    /// If it has stored nothing.
    pub fn wipe(&self) {
        fs::remove_dir_all(self.folder.join("store")).expect("it has stored something");
    }

    /// Stops it, by SIGSTOP, and waits until all of its threads stand still.
    ///
    /// # Panics
    /// If it does not run.
    pub fn stop(&self) {
        kill_process(self.pid(), Signal::STOP).expect("it runs");
        waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("it is a child");
    }

    /// Lets it go on after [`stop`](Self::stop).
    ///
    /// # Panics
    /// If it does not run.
    pub fn go_on(&self) {
        kill_process(self.pid(), Signal::CONT).expect("it runs");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
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
    // The server must not wait for a reader of its log.
    thread::spawn(move || lines.for_each(drop));
    (child, port.expect("its port is in its log"))
}
