//! The attackers at work: many connections on one thread.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::answers::kind;
use super::attack::{Attack, Count};
use super::attacker::{Attacker, Plan};
use super::server::{FAT_BYTES, Places, Stats};

/// How long attackers may take to get ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// By how much attackers are nicer than players.
const NICE: i32 = 10;

/// The attack goes on, but nothing counts yet.
const BEFORE: u8 = 0;
/// What happens counts.
const WATCHED: u8 = 1;
const OVER: u8 = 2;

/// Attackers at work.
pub(super) struct Flood {
    phase: Arc<AtomicU8>,
    thread: JoinHandle<io::Result<Done>>,
}

/// What the attackers did while players were watched, and what the node answered.
pub(super) struct Done {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// How many connections were opened, including replacements.
    pub(super) connections: u64,
    /// Whole messages that were received, by kind.
    pub(super) answers: [u64; 256],
    /// Connections whose first byte from the node was that of a TLS handshake.
    pub(super) flights: u64,
    /// Answers of the console.
    pub(super) pages: u64,
    /// How often sessions were resumed and received all snapshots.
    pub(super) resumed: u64,
    /// How many attackers were connected in the end.
    pub(super) live: usize,
}

impl Flood {
    /// Starts the attack. Where attackers need rooms first, this waits until each has them.
    pub(super) fn start(
        attack: Attack,
        connections: usize,
        node: SocketAddr,
        places: &Places,
    ) -> io::Result<Self> {
        let phase = Arc::new(AtomicU8::new(BEFORE));
        let plan = Plan::new(attack, node, places)?;
        let count = attack.attackers(connections);
        let (readies, ready) = mpsc::sync_channel(count.max(1));
        let phases = Arc::clone(&phase);
        let thread = thread::spawn(move || {
            // The players, on the same core, come first; otherwise their own waits would count. If
            // the system refuses, they do.
            let _ = rustix::process::nice(NICE);
            attack_until(&phases, &readies, &plan, count)
        });
        let ends_at = Instant::now() + PATIENCE;
        let waits_for = if attack.has_sessions() { count } else { 0 };
        for _ in 0..waits_for {
            if ready.recv_timeout(ends_at.saturating_duration_since(Instant::now())).is_err() {
                phase.store(OVER, Ordering::Relaxed);
                let text = "the attackers could not join their rooms";
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
        Ok(Self { phase, thread })
    }

    /// From now on it counts what the attackers do.
    pub(super) fn count(&self) {
        self.phase.store(WATCHED, Ordering::Relaxed);
    }

    pub(super) fn stop(self) -> io::Result<Done> {
        self.phase.store(OVER, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the attackers panicked"))?
    }
}

impl Done {
    fn new() -> Self {
        let answers = [0; 256];
        Self {
            sent: 0,
            received: 0,
            connections: 0,
            answers,
            flights: 0,
            pages: 0,
            resumed: 0,
            live: 0,
        }
    }

    /// What the attack has caused, from the attackers' and the node's counts. Players have sent some
    /// of the messages that the node read, and came back some times themselves.
    pub(super) fn effect(
        &self,
        count: Count,
        [before, after]: [&Stats; 2],
        own_messages: u64,
        own_returns: u64,
    ) -> u64 {
        let read = (after.messages_in - before.messages_in).saturating_sub(own_messages);
        match count {
            Count::Nothing => 0,
            Count::Answers(kind) => self.answers[usize::from(kind)],
            Count::SnapshotsAcross => {
                let written = after.last_bytes_out - before.last_bytes_out;
                self.answers[usize::from(kind::SNAPSHOT)].min(written / FAT_BYTES)
            }
            Count::Read => read.saturating_sub(self.connections),
            Count::ReadFirst => read,
            Count::Resumed => self.resumed,
            Count::ResumedByNode => {
                (after.sessions_resumed - before.sessions_resumed).saturating_sub(own_returns)
            }
            Count::Flights => self.flights,
            Count::Pages => self.pages,
        }
    }
}

fn attack_until(
    phase: &AtomicU8,
    ready: &SyncSender<()>,
    plan: &Plan,
    count: usize,
) -> io::Result<Done> {
    let mut done = Done::new();
    let mut poll = Poll::new()?;
    let mut attackers = Vec::new();
    for number in 0..count {
        let mut attacker = Attacker::connect(plan, number)?;
        register(&poll, &mut attacker, number)?;
        attackers.push(attacker);
        done.connections += 1;
    }
    let mut are_ready = vec![false; count];
    // Those that could not connect again.
    let mut broken: Vec<usize> = Vec::new();
    let mut is_counted = false;
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 << 10];
    loop {
        match phase.load(Ordering::Relaxed) {
            OVER => break,
            // What came before does not count.
            WATCHED if !std::mem::replace(&mut is_counted, true) => done = Done::new(),
            _ => {}
        }
        match poll.poll(&mut events, Some(Duration::from_millis(10))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let tries = std::mem::take(&mut broken);
        for number in tries {
            reconnect(&poll, plan, &mut attackers[number], number, &mut broken, &mut done)?;
        }
        for event in &events {
            let number = event.token().0;
            let attacker = &mut attackers[number];
            if attacker.act(plan, &mut buffer, &mut done) {
                continue;
            }
            if attacker.is_ready() && !std::mem::replace(&mut are_ready[number], true) {
                // Nobody listens once the attack is under way.
                let _ = ready.send(());
            }
            // The node closed it, or it is done: a new connection replaces it.
            reconnect(&poll, plan, attacker, number, &mut broken, &mut done)?;
        }
    }
    done.live = attackers.iter().filter(|attacker| attacker.stream.is_some()).count();
    Ok(done)
}

/// Connects again, or adds the attacker to those that are to try once more.
fn reconnect(
    poll: &Poll,
    plan: &Plan,
    attacker: &mut Attacker,
    number: usize,
    broken: &mut Vec<usize>,
    done: &mut Done,
) -> io::Result<()> {
    if attacker.reconnect(plan, number).is_err() {
        broken.push(number);
        return Ok(());
    }
    done.connections += 1;
    register(poll, attacker, number)
}

fn register(poll: &Poll, attacker: &mut Attacker, number: usize) -> io::Result<()> {
    let Some(stream) = &mut attacker.stream else { return Ok(()) };
    poll.registry().register(stream, Token(number), Interest::READABLE | Interest::WRITABLE)
}
