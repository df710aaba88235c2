//! A node whose rooms are kept in a file, for a case.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use playfield_room::{Room, RoomType};
use playfield_server::{Config, NodeHandle, Running, Server};
use playfield_store::DiskStore;

/// A running node, and its file, which is removed with it.
pub(super) struct StoreNode {
    running: Option<Running>,
    file: PathBuf,
}

impl StoreNode {
    /// A node of one shard with rooms of these types, and an empty file in the temporary folder.
    pub(super) fn start(room_types: Vec<RoomType>) -> Result<Self, String> {
        let name = format!("playfield-bench-{}.redb", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&file);
        let store = DiskStore::open(&file).map_err(|error| error.to_string())?;
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let config = Config { listen, shards: 1, ..Config::default() };
        let server = room_types.into_iter().fold(Server::new(config), Server::room_type);
        let running = server.store(store).start().map_err(|error| error.to_string())?;
        Ok(Self { running: Some(running), file })
    }

    pub(super) fn handle(&self) -> NodeHandle {
        self.running.as_ref().expect("it runs until it is dropped").handle()
    }
}

impl Drop for StoreNode {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown();
        }
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Rooms of a type under its name here.
pub(super) fn of<R: Room>(name: &str) -> RoomType {
    RoomType::of::<R>(name)
}
