//! The attackers at work: many connections on one thread.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Attackers at work.
pub(super) struct Flood {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Done>>,
}

/// What the attackers did, and what the node answered.
pub(super) struct Done {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// How many connections were opened, including replacements.
    pub(super) connections: u64,
    /// Whole messages that were received, by kind.
    pub(super) answers: [u64; 256],
    /// Connections whose first byte from the node was that of a TLS handshake.
    pub(super) flights: u64,
    /// How often sessions were resumed and received all snapshots.
    pub(super) resumed: u64,
}

impl Flood {
    /// Starts the attack. Where attackers need rooms first, this waits until each has them.
    pub(super) fn start(
        attack: Attack,
        connections: usize,
        node: SocketAddr,
        places: &Places,
    ) -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let plan = Plan::new(attack, node, places)?;
        let count = attack.attackers(connections);
        let (readies, ready) = mpsc::sync_channel(count.max(1));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            // The players, on the same core, come first; otherwise their own waits would count. If
            // the system refuses, they do.
            let _ = rustix::process::nice(NICE);
            attack_until(&ends, &readies, &plan, count)
        });
        let ends_at = Instant::now() + PATIENCE;
        let waits_for = if attack == Attack::Resumes { count } else { 0 };
        for _ in 0..waits_for {
            if ready.recv_timeout(ends_at.saturating_duration_since(Instant::now())).is_err() {
                is_over.store(true, Ordering::Relaxed);
                let text = "the attackers could not join their rooms";
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
        }
        Ok(Self { is_over, thread })
    }

    pub(super) fn stop(self) -> io::Result<Done> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the attackers panicked"))?
    }
}

impl Done {
    fn new() -> Self {
        let (sent, received, connections) = (0, 0, 0);
        Self { sent, received, connections, answers: [0; 256], flights: 0, resumed: 0 }
    }

    /// What the attack has caused, from the attackers' and the node's counts.
    pub(super) fn effect(&self, count: Count, before: &Stats, after: &Stats) -> u64 {
        // The player sends some messages too.
        let read = (after.messages_in - before.messages_in).saturating_sub(super::OWN_MESSAGES);
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
            Count::Flights => self.flights,
        }
    }
}

fn attack_until(
    is_over: &AtomicBool,
    ready: &SyncSender<()>,
    plan: &Plan,
    count: usize,
) -> io::Result<Done> {
    let mut done = Done::new();
    let mut poll = Poll::new()?;
    let both = Interest::READABLE | Interest::WRITABLE;
    let mut attackers = Vec::new();
    for number in 0..count {
        let mut attacker = Attacker::connect(plan, number)?;
        poll.registry().register(&mut attacker.stream, Token(number), both)?;
        attackers.push(Some(attacker));
        done.connections += 1;
    }
    let mut are_ready = vec![false; count];
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 << 10];
    while !is_over.load(Ordering::Relaxed) {
        match poll.poll(&mut events, Some(Duration::from_millis(10))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            let number = event.token().0;
            let Some(attacker) = &mut attackers[number] else { continue };
            if attacker.act(plan, &mut buffer, &mut done) {
                continue;
            }
            if attacker.is_ready() && !std::mem::replace(&mut are_ready[number], true) {
                // Nobody listens once the attack is under way.
                let _ = ready.send(());
                // What came before the attack does not count.
                done.answers = [0; 256];
            }
            // The node closed it, or it is done: a new connection replaces it.
            let next = attackers[number].take().map(|attacker| attacker.reconnect(plan, number));
            let Some(Ok(mut next)) = next else { continue };
            done.connections += 1;
            poll.registry().register(&mut next.stream, Token(number), both)?;
            attackers[number] = Some(next);
        }
    }
    Ok(done)
}
