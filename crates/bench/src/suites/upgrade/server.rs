//! The node, in one process after the other: each is replaced by the next when it is asked to be.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, RoomType, room};
use playfield_server::{NodeHandle, Upgrade};
use playfield_state::{Data, Map};
use rustix::process::{Pid, Signal, getpid, kill_process, test_kill_process};

use crate::harness::process::{Role, Server, Words, node_for};

pub(crate) const ROLE: Role = Role { name: "upgrade", log: "error", serve: host };

/// The ticks per second.
const TICK_HZ: u64 = 20;
/// The interval between looks whether the process that measures is there.
const LOOK: Duration = Duration::from_millis(500);

/// A step of a player, who expects no answer.
#[derive(Message)]
pub(super) struct Step {
    /// Counts the steps of the player from 1.
    pub(super) number: u64,
}

/// Asks how much the room has done.
#[derive(Message)]
#[reply(Done)]
pub(super) struct Count;

/// The work of a room, as of an answer.
#[derive(Data)]
pub(super) struct Done {
    /// The number of the player's requests that were executed.
    pub(super) requests: u64,
    /// The number of the player's steps.
    pub(super) steps: u64,
    /// Steps that did not come in their order.
    pub(super) disorder: u64,
    /// The number of events that the room has sent.
    pub(super) hour: u64,
}

/// Happens each second, to everyone.
#[derive(Message)]
pub(super) struct Struck {
    pub(super) hour: u64,
}

/// A room whose state changes with each tick.
#[derive(State, Default)]
pub(super) struct Arena {
    ticks: u64,
    steps: Map<PlayerId, u64>,
    #[sync(hidden)]
    requests: Map<PlayerId, u64>,
    #[sync(hidden)]
    disorder: u64,
    #[sync(hidden)]
    hour: u64,
}

#[room(messages(Step, Count), events(Struck), tick_hz = 20, sync_hz = 20, capacity = 1_000)]
impl Room for Arena {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
        // No hour is left out, even if ticks are.
        if cx.tick() >= (self.hour + 1) * TICK_HZ {
            self.hour += 1;
            cx.emit(&Struck { hour: self.hour });
        }
    }
}

impl Handle<Step> for Arena {
    fn handle(&mut self, step: Step, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let steps = self.steps.get_or_default(player.id());
        *steps += 1;
        if *steps != step.number {
            self.disorder += 1;
        }
        Ok(())
    }
}

impl Handle<Count> for Arena {
    fn handle(&mut self, _: Count, player: &Player, _: &mut Context<Self>) -> Result<Done> {
        let requests = self.requests.get_or_default(player.id());
        *requests += 1;
        let requests = *requests;
        let steps = self.steps.get(&player.id()).copied().unwrap_or_default();
        Ok(Done { requests, steps, disorder: self.disorder, hour: self.hour })
    }
}

/// The processes, one after the other.
pub(super) struct Processes {
    _first: Server,
    pub(super) address: SocketAddr,
    last: Option<Pid>,
}

impl Processes {
    pub(super) fn start(players: usize) -> io::Result<Self> {
        let first = ROLE.start(&[&getpid().as_raw_pid(), &players])?;
        let address = first.address;
        Ok(Self { _first: first, address, last: None })
    }

    /// Another process has taken over.
    pub(super) fn replaced(&mut self, upgraded: &Upgraded) {
        self.last = Some(upgraded.pid);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        if let Some(last) = self.last {
            // The process may have ended.
            let _ = kill_process(last, Signal::KILL);
        }
    }
}

/// The outcome of an upgrade, as the old process says.
#[derive(Clone, Copy)]
pub(super) struct Upgraded {
    pid: Pid,
    pub(super) rooms: usize,
    pub(super) sessions: usize,
    /// The time for which no room ran.
    pub(super) stopped: Duration,
}

/// Has the process at this address replaced, and waits until the next one serves.
pub(super) fn upgrade(address: SocketAddr) -> io::Result<Upgraded> {
    let mut stream = TcpStream::connect(address)?;
    let request = "POST /upgrade HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\
                   Connection: close\r\n\r\n";
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    upgraded(body).ok_or_else(|| io::Error::other(format!("no upgrade: {answer:?}")))
}

fn upgraded(body: &str) -> Option<Upgraded> {
    let mut words = body.strip_prefix("done ")?.split(' ');
    let mut next = || words.next()?.parse::<u64>().ok();
    Some(Upgraded {
        pid: Pid::from_raw(i32::try_from(next()?).ok()?)?,
        rooms: next()? as usize,
        sessions: next()? as usize,
        stopped: Duration::from_nanos(next()?),
    })
}

async fn replace(node: NodeHandle) -> String {
    let upgraded = tokio::task::spawn_blocking(move || node.upgrade(&Upgrade::default())).await;
    match upgraded {
        Ok(Ok(done)) => {
            format!("done {} {} {} {}", done.pid, done.rooms, done.sessions, done.pause.as_nanos())
        }
        Ok(Err(error)) => format!("failed {error}"),
        Err(error) => format!("failed {error}"),
    }
}

fn host(words: &mut Words) -> io::Result<()> {
    let (measures, players) = (words.next::<i32>()?, words.next()?);
    end_with(measures)?;
    let mut config = node_for(players, 2)?;
    // All clients have one address. The load is fixed, however late a busy machine makes the rooms.
    for (name, value) in [
        ("limits.sessions_away.per_address", "100000"),
        ("rooms.lateness", "0s"),
        ("rooms.busy_percent", "0"),
        ("http.answer_timeout", "60s"),
    ] {
        config.set(name, value).map_err(io::Error::other)?;
    }
    let running = playfield_server::Server::new(config)
        .room_type(RoomType::of::<Arena>("arena"))
        .route("POST", "/upgrade", replace)
        .start()?;
    println!("{}", running.local_addr().port());
    running.wait()
}

/// Exits once the process that measures is gone. Only the first process has a pipe to it.
fn end_with(measures: i32) -> io::Result<()> {
    let Some(measures) = Pid::from_raw(measures) else {
        return Err(io::Error::other("0 is not a process"));
    };
    thread::Builder::new().name("playfield-bench".into()).spawn(move || {
        while test_kill_process(measures).is_ok() {
            #[expect(clippy::disallowed_methods, reason = "it serves no client")]
            thread::sleep(LOOK);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the process that measures is gone, and no process is left behind"
        )]
        std::process::exit(1);
    })?;
    Ok(())
}
