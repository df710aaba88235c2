//! The server process: a node with two shards, whose rooms note how late they tick.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playfield_derive::State;
use playfield_room::{Context, Message, Player, Result, Room, RoomType, room};
use playfield_server::{Config, Server};

use crate::clock::{Beat, process_cpu};
use crate::limits::raise_descriptors;

/// How many ticks a second.
const TICK_HZ: u64 = 20;

/// How late ticks were, in microseconds, since the last report.
static LATE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Happens once a second, to everyone.
#[derive(Message)]
struct Struck {
    hour: u64,
}

/// A room whose players see and hear the time.
#[derive(State, Default)]
struct Clock {
    hour: u64,
    #[sync(skip)]
    beat: Beat,
}

#[room(events(Struck), tick_hz = 20, sync_hz = 20, capacity = 30, grace_ms = 60_000)]
impl Room for Clock {
    fn join(&mut self, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        let late = self.beat.late(cx.tick(), TICK_HZ);
        LATE.lock().unwrap_or_else(PoisonError::into_inner).push(late.as_micros() as u64);
        if cx.tick().is_multiple_of(TICK_HZ) {
            self.hour += 1;
            cx.emit(&Struck { hour: self.hour });
        }
    }
}

/// Serves until standard input is closed: prints its port, then a line of statistics for each line
/// that it reads.
pub(super) fn host() -> io::Result<()> {
    raise_descriptors();
    let mut config =
        Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), shards: 2, ..Config::default() };
    // All clients have one of two addresses.
    config.set("sessions_away_per_address_max", "100000").map_err(io::Error::other)?;
    let running = Server::new(config).room_type(RoomType::of::<Clock>("clock")).start()?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", running.local_addr().port())?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        write!(out, "{} {}", process_cpu().as_nanos(), crate::limits::resident())?;
        let late = std::mem::take(&mut *LATE.lock().unwrap_or_else(PoisonError::into_inner));
        for late in late {
            write!(out, " {late}")?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}

/// The server in its process.
pub(super) struct Hosted {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(super) node: SocketAddr,
}

/// What the server says of itself.
pub(super) struct Stats {
    /// CPU time since the start.
    pub(super) cpu: Duration,
    pub(super) resident: u64,
    /// How late each tick was since the last call.
    pub(super) lateness_us: Vec<u64>,
}

impl Hosted {
    pub(super) fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "resume", "--role", "server"])
            .env("PLAYFIELD_LOG", "error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server process has no pipes"));
        };
        let node = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut hosted = Self { child, input, output: BufReader::new(output), node };
        let [port] = hosted.line()?[..] else {
            return Err(io::Error::other("the server process printed no port"));
        };
        hosted.node.set_port(port as u16);
        Ok(hosted)
    }

    pub(super) fn stats(&mut self) -> io::Result<Stats> {
        self.input.write_all(b"\n")?;
        let line = self.line()?;
        let [cpu, resident, lateness_us @ ..] = &line[..] else {
            return Err(io::Error::other("the server process printed no statistics"));
        };
        let (cpu, resident) = (Duration::from_nanos(*cpu), *resident);
        Ok(Stats { cpu, resident, lateness_us: lateness_us.to_vec() })
    }

    fn line(&mut self) -> io::Result<Vec<u64>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.split_whitespace().filter_map(|number| number.parse().ok()).collect())
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
