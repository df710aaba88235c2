//! The server process: the real server with default settings, except for one core, one shard and a
//! free port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use playfield_room::{RoomType, Settings};
use playfield_server::{Config, Server};

use super::case::Case;
use super::hosted::report;
use super::table::ROOM_TYPE;
use crate::clock::pin;
use crate::limits::raise_descriptors;
use crate::workloads::colyseus::Table;

/// Serves until standard input is closed.
pub(super) fn host(case: &Case) -> io::Result<()> {
    pin(super::SERVER_CORE)?;
    raise_descriptors();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = Config {
        listen,
        shards: 1,
        tls_self_signed: case.transport.is_secure(),
        ..Config::default()
    };
    let usual = RoomType::of::<Table>(ROOM_TYPE);
    let settings = Settings { tick_hz: case.hz, sync_hz: case.hz, ..usual.settings };
    let running = Server::new(config).room_type(RoomType { settings, ..usual }).start()?;
    report(running.local_addr().port())
}
