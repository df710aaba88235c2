//! A node with a console, whose files are in a folder of its own.

use std::net::SocketAddr;
use std::path::PathBuf;

use playfield::client::{Connection, connect};
use playfield::{Running, Server};
use serde_json::Value;

use super::{api, start_with};

/// A node with a folder, which is removed when dropped.
pub(super) struct Node {
    running: Option<Running>,
    pub(super) console: SocketAddr,
    pub(super) folder: PathBuf,
}

impl Node {
    /// Starts what `server` makes. `setting` says where its folder is.
    pub(super) fn start(name: &str, setting: &str, server: fn() -> Server) -> Self {
        let name = format!("playfield-console-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let (running, console) = start_with(&[(setting, folder.to_str().unwrap())], server);
        Self { running: Some(running), console, folder }
    }

    pub(super) fn get(&self, path: &str) -> (u16, Value) {
        api(self.console, &format!("GET /api/{path}"), &Value::Null)
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        api(self.console, &format!("POST /api/{path}"), body)
    }

    /// Reads something that exists.
    pub(super) fn ok(&self, path: &str) -> Value {
        let (status, shown) = self.get(path);
        assert_eq!(status, 200, "{path}: {shown}");
        shown
    }

    pub(super) async fn connect(&self, name: &str) -> Connection {
        let url = format!("tcp://{}", self.running.as_ref().unwrap().local_addr());
        connect(&url).name(name).await.unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
