//! A node in a process of its own, and the programs that replace it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use playfield::axum::extract::Path;
use playfield::{Config, LevelFilter, NodeHandle, Server, Upgrade};

use crate::PATIENCE;
use crate::rooms::{Add, Desk, Free, Hold};

/// Has a test binary run the one test before these, which is ignored: a program.
pub(crate) const IGNORED: [&str; 5] =
    ["--exact", "--ignored", "--nocapture", "--test-threads", "1"];

/// Serves until another process has taken over, or the process that began all has ended. A request
/// orders the upgrade to the program that it names.
pub(crate) fn serve(server: Server) {
    serve_on(2, server);
}

pub(crate) fn serve_on(shards: usize, server: Server) {
    let server = match std::env::var("PLAYFIELD_TEST_STORE") {
        Ok(path) => server.store_file(path),
        Err(_) => server,
    };
    serve_stored(shards, server);
}

/// Serves with the store that the server has.
pub(crate) fn serve_stored(shards: usize, server: Server) {
    if std::env::var("PLAYFIELD_TEST_NODE").is_err() {
        return;
    }
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards, ..Config::default() };
    config.timeouts.upgrade = Duration::from_secs(5);
    if let Ok(settings) = std::env::var("PLAYFIELD_TEST_SETTINGS") {
        for (name, value) in settings.lines().filter_map(|line| line.split_once('=')) {
            config.set(name, value).unwrap();
        }
    }
    config.log = LevelFilter::Warn;
    config.http.answer_timeout = PATIENCE;
    let server = server.route("POST", "/upgrade/{program}", upgrade).route(
        "POST",
        "/desk/{key}/{act}",
        at_desk,
    );
    match server.start(config) {
        Ok(running) => {
            let stopper = running.stopper();
            ctrlc::set_handler(move || stopper.stop()).unwrap();
            println!("\nlistening on {}", running.local_addr());
            running.wait().unwrap();
        }
        Err(error) => println!("\nnode: {error}"),
    }
}

pub(crate) async fn upgrade(node: NodeHandle, Path(program): Path<String>) -> String {
    let arguments = [program.as_str()].into_iter().chain(IGNORED).map(Into::into).collect();
    let order = Upgrade { binary: std::env::current_exe().ok(), arguments: Some(arguments) };
    match tokio::task::spawn_blocking(move || node.upgrade(&order)).await.unwrap() {
        Ok(done) => format!("done {} {} {}", done.pid, done.rooms, done.sessions),
        Err(error) => format!("failed {error}"),
    }
}

/// Does something at a desk: the answer is its answer, or why there is none.
pub(crate) async fn at_desk(node: NodeHandle, Path((key, act)): Path<(String, String)>) -> String {
    let answered = async {
        let desk = node.find_or_create::<Desk>(&key, &()).await?;
        match act.as_str() {
            "add" => node.ask(&desk, &Add).await,
            "hold" => node.ask(&desk, &Hold).await,
            with => node.tell(&desk, &Free(with.parse().unwrap())).map(|()| 0),
        }
    };
    answered.await.map_or_else(|error| error.to_string(), |answer| format!("ok {answer}"))
}

/// Reports that this program, which a test has started, is waiting.
pub(crate) fn say_that_it_waits() {
    println!("\nwaits {}", std::process::id());
}

/// A node in a process of its own, and those that replace it.
pub(crate) struct Node {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// The last process.
    pub(crate) pid: u32,
    /// Their output.
    pub(crate) lines: Receiver<String>,
    pub(crate) store: PathBuf,
}

impl Node {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// With these settings, one in each line.
    pub(crate) fn start_with(settings: &str) -> Self {
        Self::start_on(new_store(), settings)
    }

    /// Another program than `node`, with these settings.
    pub(crate) fn start_program(program: &str, settings: &str) -> Self {
        Self::start_program_on(program, new_store(), settings)
    }

    /// On this store.
    pub(crate) fn start_on(store: PathBuf, settings: &str) -> Self {
        Self::start_program_on("node", store, settings)
    }

    fn start_program_on(program: &str, store: PathBuf, settings: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(program)
            .args(IGNORED)
            .env("PLAYFIELD_TEST_NODE", "1")
            .env("PLAYFIELD_TEST_STORE", &store)
            .env("PLAYFIELD_TEST_SETTINGS", settings)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned));
        let (says, said) = sync_channel(1000);
        // Later processes write there, too. A test may ignore the output.
        std::thread::spawn(move || lines.for_each(|line| drop(says.try_send(line.unwrap()))));
        let pid = child.id();
        Self { child, address: address.expect("the node listens"), pid, lines: said, store }
    }

    /// Waits for a line that begins with one of these, and returns it.
    pub(crate) fn says(&self, any_of: &[&str]) -> String {
        let by = Instant::now() + PATIENCE;
        loop {
            let line = self.lines.recv_timeout(by.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|error| panic!("no process says {any_of:?}: {error}"));
            if any_of.iter().any(|beginning| line.starts_with(beginning)) {
                return line;
            }
        }
    }

    /// Orders an upgrade to this program, which says that it `waits` and is killed with the node.
    pub(crate) fn order(&mut self, program: &str) {
        let (address, what) = (self.address.clone(), format!("POST /upgrade/{program}"));
        // The node may end before it answers.
        std::thread::spawn(move || drop(ask_if_it_can(address, &what)));
        let line = self.says(&["waits "]);
        self.pid = line["waits ".len()..].parse().expect("its id");
    }

    /// Waits until all processes have ended. Returns whether the first did so in order.
    pub(crate) fn ends(&mut self) -> bool {
        let by = Instant::now() + PATIENCE;
        let has_ended = loop {
            let left = by.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(error) => break error == RecvTimeoutError::Disconnected,
            }
        };
        assert!(has_ended, "a process goes on");
        self.child.wait().unwrap().success()
    }

    pub(crate) fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Has it replaced by this program. Returns the answer.
    pub(crate) fn upgrade(&mut self, program: &str) -> String {
        let answer = ask(&self.address, &format!("POST /upgrade/{program}"));
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        if let Some(done) = body.strip_prefix("done ") {
            let pid = done.split(' ').next().and_then(|pid| pid.parse().ok());
            self.pid = pid.expect("a process");
        }
        body.to_owned()
    }
}

fn new_store() -> PathBuf {
    static STORES: AtomicU64 = AtomicU64::new(0);
    let number = STORES.fetch_add(1, Ordering::Relaxed);
    let name = format!("playfield-upgrade-{}-{number}.redb", std::process::id());
    std::env::temp_dir().join(name)
}

/// Makes an HTTP request without a body. Returns the answer.
pub(crate) fn ask(address: impl ToSocketAddrs, what: &str) -> String {
    ask_if_it_can(address, what).unwrap()
}

/// Like [`ask`], of a process that may end meanwhile.
pub(crate) fn ask_if_it_can(address: impl ToSocketAddrs, what: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

impl Drop for Node {
    fn drop(&mut self) {
        // The first has ended, unless it was never replaced.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let last = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(last) = last.filter(|_| self.pid != self.child.id()) {
            let _ = rustix::process::kill_process(last, rustix::process::Signal::KILL);
        }
        let _ = std::fs::remove_file(&self.store);
    }
}
