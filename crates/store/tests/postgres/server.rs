//! A PostgreSQL server for tests, which ends with them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;

/// A running server, in a temporary folder, which clients reach by a Unix socket in it.
pub(crate) struct PgServer {
    programs: PathBuf,
    folder: PathBuf,
    /// The user and the group of the server, if this process may not run one itself.
    runs_as: Option<(u32, u32)>,
    running: Mutex<Option<Child>>,
}

/// The folders in which systems have the server's programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for of in ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"] {
        let versions = fs::read_dir(of).into_iter().flatten().flatten();
        folders.extend(versions.map(|version| version.path().join("bin")));
    }
    let has_both = |folder: &PathBuf| {
        ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
    };
    folders.into_iter().find(has_both)
}

/// Someone who may run the server if this process is root, which may not.
fn other_user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |name: &str| {
        let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let found = fields.into_iter().find(|fields| fields.first() == Some(&name))?;
        Some((found.get(2)?.parse().ok()?, found.get(3)?.parse().ok()?))
    };
    user("postgres").or_else(|| user("nobody"))
}

impl PgServer {
    /// The server of all tests that run now; `None`, and a line, where PostgreSQL is missing.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<PgServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap();
        if let Some(server) = shared.upgrade() {
            return Some(server);
        }
        // Nobody pulls the plug: a crash of the server alone loses nothing either.
        let server = Arc::new(Self::start(&["-c", "fsync=off"])?);
        *shared = Arc::downgrade(&server);
        Some(server)
    }

    /// A server with these options; `None`, and a line, where PostgreSQL is missing.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let Some(programs) = programs() else {
            eprintln!("PostgreSQL is missing, so a test of the store in it is left out.");
            return None;
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("playfield-postgres-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        let is_root = fs::metadata(&folder).unwrap().uid() == 0;
        let runs_as = is_root.then(|| other_user().expect("a user who is not root"));
        if let Some((user, group)) = runs_as {
            chown(&folder, Some(user), Some(group)).unwrap();
        }
        let server = Self { programs, folder, runs_as, running: Mutex::new(None) };
        let mut initdb = server.program("initdb");
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]);
        let made = initdb.arg("-D").arg(server.data()).output().unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        // The first line that matches counts.
        let rules = server.data().join("pg_hba.conf");
        fs::write(rules, "local all guarded scram-sha-256\nlocal all all trust\n").unwrap();
        fs::write(server.folder.join("options"), options.join("\n")).unwrap();
        server.run();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.folder).stdin(Stdio::null());
        if let Some((user, group)) = self.runs_as {
            command.uid(user).gid(group);
        }
        command
    }

    /// Runs the server until it takes connections. After a crash it may be refused at first, while
    /// the last processes of the one before end.
    pub(crate) fn run(&self) {
        let options = fs::read_to_string(self.folder.join("options")).unwrap();
        let mut running = self.running.lock().unwrap();
        while running.is_none() {
            let mut command = self.program("postgres");
            command.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
            command.args(["-c", "listen_addresses="]).args(options.lines());
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
            let said = |line: String| line.contains("database system is ready to accept");
            if lines.by_ref().map_while(Result::ok).any(said) {
                // The server must not wait for a reader of its output.
                thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
                *running = Some(child);
            } else {
                child.wait().unwrap();
            }
        }
    }

    /// Kills the server and all processes of it, as a crash of the machine would.
    pub(crate) fn kill(&self) {
        let Some(mut child) = self.running.lock().unwrap().take() else { return };
        let of = child.id();
        let mut all = vec![of.to_string()];
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            if parent(&process.path()) == Some(of) {
                all.extend(process.file_name().into_string());
            }
        }
        let _ = Command::new("kill").arg("-9").args(all).stderr(Stdio::null()).status();
        // Without /proc, the others end by themselves.
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// The address by which a user reaches a database of it.
    pub(crate) fn url(&self, user: &str, database: &str) -> String {
        format!("host={} user={user} dbname={database}", self.folder.display())
    }

    /// A new, empty database, as the URL of its owner.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.execute("postgres", &format!("create database {name}"));
        self.url("postgres", &name)
    }

    /// Executes statements in a database.
    pub(crate) fn execute(&self, database: &str, statements: &str) {
        execute(&self.url("postgres", database), statements);
    }
}

/// Executes statements, and returns the first column of all rows.
pub(crate) fn execute(url: &str, statements: &str) -> Vec<String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let driver = tokio::spawn(connection);
        let answers = client.simple_query(statements).await.unwrap();
        drop(client);
        driver.await.unwrap().unwrap();
        let rows = answers.iter().filter_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    })
}

/// The parent of a process in `/proc`.
fn parent(process: &Path) -> Option<u32> {
    let lines = BufReader::new(File::open(process.join("status")).ok()?).lines();
    let line = lines.map_while(Result::ok).find(|line| line.starts_with("PPid:"))?;
    line.trim_start_matches("PPid:").trim().parse().ok()
}

impl Drop for PgServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
