//! The old process: it starts the new one, hands over, and ends, or goes on.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{io, iter};

use playfield_room::panic_text;
use rustix::process::{Pid, Signal, kill_process};

use super::channel::Channel;
use super::gate::{Collected, Stage};
use super::known::Known;
use super::message::{Listener, Message, Piece, VERSION};
use super::phases::Phases;
use super::{Upgrade, UpgradeError, Upgraded, VARIABLE};
use crate::event_loop::SharedRuntime;
use crate::journal::Journal;
use crate::node::Node;
use crate::shard::frozen::Frozen;
use crate::sys;

/// The time that shards have to come to rest, and a frozen node to be sent.
const STEP_MAX: Duration = Duration::from_secs(10);

/// The time that the store has to complete the saves of rooms, after the wait for other work.
const STORE_WAIT: Duration = Duration::from_secs(1);

/// Replaces this process by a new one. Returns when that serves; the shards of this one end then.
pub(crate) fn upgrade(
    shared: &SharedRuntime,
    node: &Node,
    upgrade: &Upgrade,
) -> Result<Upgraded, UpgradeError> {
    check_goes_on(shared)?;
    if !shared.gate.begin(shared.mailboxes.len()) {
        return Err(UpgradeError::new("an upgrade is under way already: wait for its end"));
    }
    let result = Handover::start(node, upgrade).and_then(|mut handover| {
        // A node that stops waits for no other process.
        let pid = Pid::from_child(&handover.child);
        shared.gate.on_stop(move || {
            if let Err(error) = kill_process(pid, Signal::KILL) {
                log::debug!("the new process has ended already: {error}");
            }
        });
        let run = AssertUnwindSafe(|| handover.run(shared, node));
        // The shards wait for the outcome, whatever code of the program does.
        let result = catch_unwind(run).unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            Err(UpgradeError::new(format!("code of the program panicked: {text}")))
        });
        if result.is_err() {
            // The id may belong to another process once this one has waited for the end of the
            // child.
            shared.gate.forget_stop();
            handover.give_up();
        }
        result
    });
    let result = result.map_err(|error| check_goes_on(shared).err().unwrap_or(error));
    match &result {
        Ok(Upgraded { pid, rooms, sessions, pause }) => {
            log::info!(
                "process {pid} has taken over {rooms} rooms and {sessions} sessions; no room ran \
                 for {pause:.1?}"
            );
            super::notify::is_replaced_by(*pid);
        }
        Err(error) if check_goes_on(shared).is_err() => log::warn!("there was no upgrade: {error}"),
        Err(error) => log::error!("there was no upgrade, and this process goes on: {error}"),
    }
    if let (Err(_), Some(journal)) = (&result, &node.journal) {
        journal.keep();
    }
    // Whoever supervises this process must know before it ends.
    shared.gate.end(result.is_ok());
    shared.wake_all();
    result
}

/// Fails if the node is to stop: then no other process may continue it.
fn check_goes_on(shared: &SharedRuntime) -> Result<(), UpgradeError> {
    match shared.stops.load(Ordering::Acquire) {
        true => Err(stops()),
        false => Ok(()),
    }
}

fn stops() -> UpgradeError {
    UpgradeError::new("the node is shutting down")
}

/// The journal as it was when an upgrade began. The output of rooms must leave before the next
/// process has them, so the rooms would stall while the journal can't be written.
struct Written<'a> {
    journal: Option<&'a Journal>,
    made: Vec<u64>,
    stalls: u64,
}

impl<'a> Written<'a> {
    fn begin(node: &'a Node) -> Self {
        let journal = node.journal.as_deref();
        let made = journal.map(Journal::made).unwrap_or_default();
        Self { journal, made, stalls: journal.map_or(0, Journal::stalls_so_far) }
    }

    /// Returns whether everything up to that point is durable.
    fn is_done(&self) -> bool {
        self.journal.is_none_or(|journal| journal.has_written(&self.made))
    }

    /// Returns whether the journal has stalled since then.
    fn has_stalled(&self) -> bool {
        self.journal.is_some_and(|journal| journal.stalls_so_far() != self.stalls)
    }

    fn error(&self) -> UpgradeError {
        let (folder, wait) = self.journal.map(|it| (it.folder(), it.wait())).unzip();
        UpgradeError::new(format!(
            "journal.folder = {:?}: the journal was not written within journal.wait = {:?}: \
             upgrade once its disk takes writes in time",
            folder.unwrap_or(Path::new("")),
            wait.unwrap_or_default()
        ))
    }
}

/// Fails while rooms that have ended wait for the store: the new process would not know about them.
fn check_saved(node: &Node) -> Result<(), UpgradeError> {
    match node.journal.as_ref().is_some_and(|journal| journal.saves_rooms()) {
        true => Err(UpgradeError::new(
            "journaled rooms that have ended are not saved yet, since the store is away: upgrade \
             once it is back",
        )),
        false => Ok(()),
    }
}

/// The program of this process, as it is now under its name.
fn own_binary() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    // The system says so of a file that was replaced.
    match path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(path) => Ok(path.into()),
        None => Ok(path),
    }
}

struct Handover {
    child: Child,
    channel: Channel,
    /// The time that the new process has for each step.
    step: Duration,
}

impl Handover {
    fn start(node: &Node, upgrade: &Upgrade) -> Result<Self, UpgradeError> {
        check_saved(node)?;
        let failed = |what: &str, error: io::Error| UpgradeError::new(format!("{what}: {error}"));
        let binary = match &upgrade.binary {
            Some(binary) => binary.clone(),
            None => own_binary().map_err(|error| failed("the program's file", error))?,
        };
        let (own, other) = UnixStream::pair().map_err(|error| failed("a socket pair", error))?;
        let mut command = Command::new(&binary);
        match &upgrade.arguments {
            Some(arguments) => command.args(arguments),
            None => command.args(std::env::args_os().skip(1)),
        };
        command.env(VARIABLE, std::process::id().to_string());
        command.stdin(Stdio::from(OwnedFd::from(other)));
        let child = command.spawn();
        let child =
            child.map_err(|error| failed(&format!("{} can't be run", binary.display()), error))?;
        log::info!("an upgrade to {}, process {}, begins", binary.display(), child.id());
        let step = node.config.timeouts.upgrade;
        Ok(Self { child, channel: Channel::new(own), step })
    }

    fn run(&mut self, shared: &SharedRuntime, node: &Node) -> Result<Upgraded, UpgradeError> {
        let mut phases = Phases::begin("old");
        check_goes_on(shared)?;
        self.greet(shared, node)?;
        match self.receive("get ready", self.step)? {
            Message::Ready => {}
            other => return Err(unexpected(&other)),
        }
        phases.end("start of the new process");
        let pid = self.child.id();
        let wake = || shared.wake_all();
        let gate = &shared.gate;
        gate.go_to(Stage::Draining);
        let written = Written::begin(node);
        gate.wait_until_drained(Instant::now() + node.config.timeouts.freeze_wait, &wake);
        // Saves of journaled rooms wait for the journal.
        let wait = Instant::now() + node.config.journal.wait;
        let is_written = gate.wait_until_done(wait, &wake, || written.is_done());
        check_goes_on(shared)?;
        if !is_written {
            return Err(written.error());
        }
        // Before rooms stop: they would stand still while the store is waited for.
        if !gate.wait_until_saved(Instant::now() + STORE_WAIT, &wake) {
            check_goes_on(shared)?;
            return Err(UpgradeError::new(format!(
                "the store has saves of rooms that it did not complete within \
                 timeouts.freeze_wait = {:?} and {STORE_WAIT:?}: upgrade once it takes saves in \
                 time, or raise timeouts.freeze_wait",
                node.config.timeouts.freeze_wait
            )));
        }
        phases.end("work in flight");

        let began = Instant::now();
        let by = began + STEP_MAX;
        for (stage, phase) in [(Stage::Stopped, "stop"), (Stage::Written, "rooms")] {
            gate.go_to(stage);
            let is_still = gate.wait_until_still(by, &wake, || !written.has_stalled());
            // Rooms have continued if their journal could be written again.
            if written.has_stalled() {
                return Err(written.error());
            }
            if !is_still {
                let text = format!("the shards did not come to rest within {STEP_MAX:?}");
                return Err(UpgradeError::new(text));
            }
            phases.end(phase);
        }
        gate.go_to(Stage::Collected);
        wake();
        let Some(collected) = gate.take_collected(by) else {
            let text = format!("the rooms were not frozen within {STEP_MAX:?}");
            return Err(UpgradeError::new(text));
        };
        phases.end("sessions");
        check_saved(node)?;
        node.store.release(STEP_MAX).map_err(|error| UpgradeError::new(error.to_string()))?;
        phases.end("store");
        let (rooms, sessions) = self.send(shared, node, collected)?;
        phases.end("sending");
        match self.receive("read the rooms", self.step)? {
            Message::Holds => {}
            other => return Err(unexpected(&other)),
        }
        check_goes_on(shared)?;
        phases.end("thaw");
        self.send_message(&Message::Commit)?;
        match self.receive("serve", self.step)? {
            Message::Serves => {}
            other => return Err(unexpected(&other)),
        }
        if !shared.gate.forget_stop() {
            return Err(stops());
        }
        phases.end("start of the shards");
        // From here on everything is in the new process. If it has ended, so has the match.
        if let Some(journal) = &node.journal {
            journal.release();
        }
        if let Err(error) = self.channel.send(&Message::Over) {
            log::warn!("the new process did not hear that it is the only one: {error}");
        }
        Ok(Upgraded { pid, rooms, sessions, pause: began.elapsed() })
    }

    /// Waits until the new process is there, and checks whether it can be one of this program.
    fn greet(&mut self, shared: &SharedRuntime, node: &Node) -> Result<(), UpgradeError> {
        let hello = self.receive("start", self.step)?;
        let Message::Hello { version, pid: _, room_types } = hello else {
            return Err(unexpected(&hello));
        };
        let why = if version != VERSION {
            Some(format!("it hands over in version {version}, and this process in {VERSION}"))
        } else {
            let lacks = |name: &&str| !room_types.iter().any(|known| known == name);
            let used = node
                .room_types
                .iter()
                .enumerate()
                .filter(|(number, _)| node.directory.has_rooms(*number as u16));
            let lacking = used.map(|(_, of)| of.name.as_str()).find(lacks);
            lacking.map(|name| {
                format!(
                    "room type {name:?} is missing, but rooms of it are open: is it another program?"
                )
            })
        };
        if let Some(why) = why {
            let refused = self.channel.send(&Message::Refuse { why: why.clone() });
            if let Err(error) = refused {
                log::debug!("the new process did not hear why it is refused: {error}");
            }
            return Err(UpgradeError::new(format!("the new process is refused: {why}")));
        }
        let now = u64::try_from(shared.clock.now().as_nanos()).unwrap_or(u64::MAX);
        let connections = shared.connections.load(Ordering::Relaxed);
        // The shards make copies of them.
        sys::make_space_for(2 * connections);
        let (secret, connections) = (node.token_secret, connections as u32);
        self.send_message(&Message::Accept { now, secret, connections })
    }

    /// Sends all that is frozen. Returns the numbers of rooms and sessions.
    fn send(
        &mut self,
        shared: &SharedRuntime,
        node: &Node,
        collected: Vec<Collected>,
    ) -> Result<(usize, usize), UpgradeError> {
        let (mut sockets, mut open, mut all) = (Vec::new(), Vec::new(), Frozen::default());
        for Collected { frozen, listeners, connections } in collected {
            all.add(frozen.map_err(UpgradeError::new)?);
            sockets.extend(listeners);
            open.extend(connections);
        }
        let (known, Frozen { rooms, sessions, channels, schemas, .. }) =
            (Known::of(node, shared.clock.now()), all);
        let pieces = iter::once((Piece::Node, known.as_slice()))
            .chain(pieces(Piece::Room, &rooms))
            .chain(pieces(Piece::Session, &sessions))
            .chain(pieces(Piece::Channel, &channels))
            .chain(pieces(Piece::Schema, &schemas));
        let sent = self.channel.send_pieces(pieces);
        sent.map_err(|error| self.lost("take the rooms", &error))?;
        let listeners =
            sockets.iter().map(|(_, service)| Listener { service: service.map(u32::from) });
        let (listeners, connections) = (listeners.collect(), open.len() as u32);
        self.send_message(&Message::All { listeners, connections })?;
        let sockets = sockets.iter().map(|(socket, _)| socket.as_fd());
        let sockets: Vec<_> = sockets.chain(open.iter().map(|socket| socket.as_fd())).collect();
        let sent = self.channel.send_sockets(&sockets);
        sent.map_err(|error| self.lost("take the sockets", &error))?;
        Ok((rooms.len(), sessions.len()))
    }

    fn send_message(&mut self, message: &Message) -> Result<(), UpgradeError> {
        let sent = self.channel.write_within(STEP_MAX).and_then(|()| self.channel.send(message));
        sent.map_err(|error| self.lost("receive what comes next", &error))
    }

    fn receive(&mut self, what: &str, within: Duration) -> Result<Message, UpgradeError> {
        match self.channel.receive(within) {
            Ok(Message::Refuse { why }) => {
                Err(UpgradeError::new(format!("the new process refuses: {why}")))
            }
            Ok(message) => Ok(message),
            Err(error) => Err(self.lost(what, &error)),
        }
    }

    /// The new process is gone, or is not heard.
    fn lost(&mut self, what: &str, error: &io::Error) -> UpgradeError {
        let pid = self.child.id();
        let text = match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                let limit = self.step;
                format!(
                    "the new process, {pid}, did not {what} within timeouts.upgrade = {limit:?}"
                )
            }
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => {
                format!("the new process, {pid}, ended before it could {what}; see its output")
            }
            _ => format!("the new process, {pid}, did not {what}: {error}"),
        };
        UpgradeError::new(text)
    }

    /// The new process is not wanted any more.
    fn give_up(&mut self) {
        // The successor has ended, or must not serve beside this process.
        if let Err(error) = self.child.kill() {
            log::debug!("the new process has ended already: {error}");
        }
        if let Err(error) = self.child.wait() {
            log::warn!("the end of the new process is not known: {error}");
        }
    }
}

fn pieces(of: Piece, all: &[Vec<u8>]) -> impl Iterator<Item = (Piece, &[u8])> {
    all.iter().map(move |bytes| (of, bytes.as_slice()))
}

fn unexpected(message: &Message) -> UpgradeError {
    UpgradeError::new(format!("the new process said something unexpected: {message:?}"))
}
