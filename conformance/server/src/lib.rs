//! The server of the conformance scenarios (`conformance/README.md`): two nodes with the same
//! rooms, and links to them that can be cut.

mod control;
mod devices;
mod lab;
mod ledger;
mod link;
mod plays;
mod rooms;
mod scripted;
mod tickets;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use playfield::channel::{Access, ChannelRule, Slow};
use playfield::config::RateLimit;
use playfield::{Config, Error, ErrorCode, Guests, Identity, LevelFilter, Running, Server};

use control::{Links, Place};
pub use plays::plays;

/// A scenario server that runs.
pub struct ScenarioServer {
    node: Running,
    /// The target of links that were moved.
    other: Running,
}

impl ScenarioServer {
    /// The URL of its controls.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.node.local_addr())
    }

    /// Ends it.
    pub fn shutdown(self) {
        self.node.shutdown();
        self.other.shutdown();
    }
}

/// Starts a scenario server on free ports of 127.0.0.1. It serves the files of `folder`, if there
/// is one, under `/files`, to runners in browsers.
///
/// # Errors
/// If it can't listen, or the folder does not exist.
pub fn start(folder: Option<&Path>) -> io::Result<ScenarioServer> {
    let (tell, started) = mpsc::sync_channel(1);
    let other = rooms().on_start(move |node| drop(tell.send(node))).start(patient())?;
    let handle = started.recv().map_err(io::Error::other)?;
    let links = Arc::new(Links::new(Place::of(&other), handle));
    let mut server = control::routes(rooms(), &links);
    if let Some(folder) = folder {
        server = server.folder("/files", folder);
    }
    let node = server.start(config())?;
    links.set_node(Place::of(&node));
    Ok(ScenarioServer { node, other })
}

/// The settings that scenarios rely on, and rates that many runners at once don't reach.
fn config() -> Config {
    let mut config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        log: LevelFilter::Error,
        shards: 2,
        ..Config::default()
    };
    config.rooms.check_every_syncs = 3;
    config.limits.message_bytes = 65_536;
    config.timeouts.reconnect = Duration::from_secs(60);
    config.limits.session.resume_bytes = 16_384;
    config.limits.session.rooms = 4;
    config.limits.listed.rooms = 3;
    // A machine that runs tests has other work, too.
    (config.rooms.lateness, config.rooms.busy_percent) = (Duration::ZERO, 0);
    config.tls.self_signed = true;
    config
}

/// The settings of the other node: none of its limits is met by random plays, and WebSockets are
/// compressed.
fn patient() -> Config {
    let mut config = config();
    let session = &mut config.limits.session;
    (session.resume_bytes, session.outbox_bytes.max) = (64 << 20, 64 << 20);
    (session.messages.count, session.bytes.count) = (0, 0);
    let fast = RateLimit::per_second(1_000_000);
    (session.publishes, session.snapshots) = (fast, fast);
    (config.tuning.subscribes, config.tuning.lists) = (fast, fast);
    // Connections are cut much faster than anyone loses them.
    config.tuning.resumes = RateLimit::per_minute(1_000_000);
    config.timeouts.reconnect = Duration::from_secs(600);
    config.websocket.deflate = true;
    config
}

fn rooms() -> Server {
    let server = Server::new()
        .authenticate(|hello| async move { identity(&hello.name, &hello.token) })
        .room::<lab::Lab>("lab")
        .room::<ledger::Ledger>("ledger")
        .room::<rooms::Duo>("duo")
        .room::<rooms::Brief>("brief")
        .room::<rooms::Still>("still")
        .room::<rooms::Ticking>("ticking")
        .room::<rooms::Closed>("closed")
        .room::<rooms::Single>("single")
        .room::<rooms::Guarded>("guarded");
    let kept = Duration::from_secs(600);
    tickets::checked(devices::fleet(server))
        .channel(
            ChannelRule::new("talk:*")
                .publish(Access::Anyone)
                .presence(Access::Anyone)
                .history(5, kept)
                .slow(Slow::DropOldest, 64),
        )
        .channel(ChannelRule::new("deep:*").publish(Access::Anyone).history(1 << 16, kept))
        .channel(ChannelRule::new("shallow:*").publish(Access::Anyone).history(1, kept))
        .channel(ChannelRule::new("read:*"))
        .channel(ChannelRule::new("bytes:*").publish(Access::Anyone).history(5, kept).bytes())
        .channel(
            ChannelRule::new("sealed:*").subscribe(Access::Nobody).publish(Access::Anyone).bytes(),
        )
        .channel(ChannelRule::new("users:*").subscribe(Access::User).publish(Access::User))
}

/// A token `user NAME` is that user's, and so is `once NAME`, which is good for one connection.
/// Without a token one is a guest, and any other is refused.
fn identity(name: &str, token: &[u8]) -> Result<Identity, Error> {
    static USED: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());
    let used = || USED.lock().unwrap_or_else(PoisonError::into_inner);
    let once = token.strip_prefix(b"once ").filter(|_| used().insert(token.to_vec()));
    match token.strip_prefix(b"user ").or(once) {
        _ if token.is_empty() => Guests { name_bytes_max: 32 }.admit(name),
        Some(user) => Ok(Identity::user(String::from_utf8_lossy(user), name)),
        None => Err(Error::new(ErrorCode::Unauthorized, "the token is not valid")),
    }
}
