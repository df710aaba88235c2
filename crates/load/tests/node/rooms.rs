//! The rooms, the node and the settings of the tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use playfield_load::{LoadError, Report, Settings, run, script};
use playfield_room::{Context, Error, Handle, Message, Player, Result, Room, RoomType, room};
use playfield_server::channel::{Access, ChannelRule};
use playfield_server::{Config, Running, Server};
use playfield_state::{Data, State};
use playfield_wire::ErrorCode;

/// Counts what players send.
#[derive(State, Default)]
pub(crate) struct Counter {
    pub(crate) adds: u64,
    pub(crate) last: i32,
}

#[derive(Message)]
#[reply(u64)]
pub(crate) struct Add {
    pub(crate) by: i32,
    pub(crate) note: Option<String>,
}

/// The room refuses it.
#[derive(Message)]
pub(crate) struct Cheat;

/// Nobody answers it.
#[derive(Message)]
#[reply(u8)]
pub(crate) struct Ignore;

/// The first one takes as long as [`Options::stall_ms`] says.
#[derive(Message)]
#[reply(u8)]
pub(crate) struct Stall;

#[derive(Data, Default)]
pub(crate) struct Options {
    pub(crate) stall_ms: u32,
}

/// The number of messages that all tallies have handled. Only one test has tallies.
pub(crate) static HANDLED: AtomicU64 = AtomicU64::new(0);

#[derive(State, Default)]
struct Tally {
    adds: u64,
}

#[room(messages(Add), sync_hz = 20, capacity = 10)]
impl Room for Tally {}

impl Handle<Add> for Tally {
    fn handle(&mut self, _: Add, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        HANDLED.fetch_add(1, Ordering::Relaxed);
        self.adds += 1;
        Ok(self.adds)
    }
}

#[room(messages(Add), sync_hz = 20, capacity = 10)]
impl Room for Counter {}

impl Handle<Add> for Counter {
    fn handle(&mut self, add: Add, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.adds += 1;
        self.last = add.by;
        Ok(self.adds)
    }
}

/// Does what its players should not rely on.
#[derive(State, Default)]
pub(crate) struct Odd {
    #[sync(hidden)]
    stall_ms: u32,
}

#[room(messages(Cheat, Ignore, Stall), capacity = 10)]
impl Room for Odd {
    type Options = Options;

    fn create(options: Options, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { stall_ms: options.stall_ms })
    }
}

impl Handle<Cheat> for Odd {
    fn handle(&mut self, _: Cheat, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Err(Error::new(ErrorCode::Refused, "no cheating"))
    }
}

impl Handle<Ignore> for Odd {
    fn handle(&mut self, _: Ignore, _: &Player, cx: &mut Context<Self>) -> Result<u8> {
        // The reply is never given.
        let _ = cx.defer::<Ignore>();
        Err(Error::deferred())
    }
}

impl Handle<Stall> for Odd {
    fn handle(&mut self, _: Stall, _: &Player, _: &mut Context<Self>) -> Result<u8> {
        let time = Duration::from_millis(std::mem::take(&mut self.stall_ms).into());
        // Nobody notifies it: it passes the time.
        let lock = Mutex::new(());
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = Condvar::new().wait_timeout_while(guard, time, |()| true);
        Ok(1)
    }
}

pub(crate) fn config() -> Config {
    Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 2, ..Config::default() }
}

pub(crate) fn node() -> Running {
    start(config())
}

pub(crate) fn start(config: Config) -> Running {
    server(config).start().expect("the node starts")
}

pub(crate) fn server(config: Config) -> Server {
    let open = |pattern| ChannelRule::new(pattern).publish(Access::Anyone);
    Server::new(config)
        .channel(open("open:**").presence(Access::Anyone))
        .channel(open("bytes:*").bytes())
        .channel(ChannelRule::new("closed:*").subscribe(Access::Nobody))
        .room_type(RoomType::of::<Counter>("counter"))
        .room_type(RoomType::of::<Odd>("odd"))
        .room_type(RoomType::of::<Tally>("tally"))
}

/// Settings for this server: no duration, and little patience.
pub(crate) fn settings(scheme: &str, address: SocketAddr, connections: usize) -> Settings {
    let host = if address.ip().is_loopback() { "127.0.0.1" } else { "localhost" };
    let url = format!("{scheme}://{host}:{}", address.port());
    let mut settings = Settings::new(url.parse().expect("a URL"));
    settings.connections = connections;
    settings.duration = None;
    settings
}

/// Runs a script. The settings give everything else.
pub(crate) fn load(mut settings: Settings, text: &str) -> std::result::Result<Report, LoadError> {
    settings.scripts = script::parse("load.toml", text)?;
    run(&settings, &AtomicBool::new(false), &mut |_| {})
}
