//! A nats-server for the tests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of the next engine, whose folder has it.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A nats-server on a free port, with a store of its own. Dropping it ends it.
pub(crate) struct Engine {
    process: Child,
    url: String,
    folder: PathBuf,
}

impl Engine {
    /// Starts one; `None` if there is no nats-server, and no Go that builds one.
    pub(crate) fn start() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = Command::new(root.join("scripts/nats-server")).output().unwrap();
        if !found.status.success() {
            let why = String::from_utf8_lossy(&found.stderr).into_owned();
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("{why}so the tests of clusters are left out");
            return None;
        }
        let program = String::from_utf8(found.stdout).unwrap();
        let folder = std::env::temp_dir()
            .join(format!("playfield-nats-{}", std::process::id()))
            .join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let mut process = Command::new(program.trim())
            .args(["-a", "127.0.0.1", "-p", "-1", "-js", "-sd"])
            .arg(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| {
            let line = line.unwrap();
            line.contains("Listening for client connections on").then_some(line)
        });
        let line = line.unwrap();
        let address = line.rsplit(' ').next().unwrap();
        // Its log would block it.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { process, url: format!("nats://{address}"), folder })
    }

    /// A folder that is removed with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Engine {
    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &process]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
