//! The attackers at work: many connections on one thread. Each sends as much as its socket accepts,
//! reads what arrives, and connects again when the node closes the connection.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use playfield_client::poll::Stream;

use super::answers::{Answers, kind};
use super::attack::{Attack, Count};
use super::returning::{Next as Step, Session};
use super::script::{self, Script as Bytes};
use super::server::{FAT_BYTES, Places, Stats};
use crate::harness::fleet::{Fleet, Links, Next, Script};
use crate::harness::source::Source;

/// The time that attackers may take to get ready.
const PATIENCE: Duration = Duration::from_secs(60);
/// By how much attackers are nicer than players.
const NICE: i32 = 10;
/// The part of a batch that is written at once: as much as is kept of it if the socket is full.
const WRITE_BYTES: usize = 16 << 10;
/// The most that an attacker writes before the others, and what has come, get their turn.
const TURN_BYTES: usize = 64 << 10;
/// The first byte of a record of a TLS handshake (RFC 8446, 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// The beginning of an answer of the console.
const PAGE: &[u8] = b"HTTP/1.1 200 ";

/// The attack goes on, but nothing counts yet.
const BEFORE: u8 = 0;
/// Events count.
const WATCHED: u8 = 1;
const OVER: u8 = 2;

/// Attackers at work.
pub(super) struct Flood {
    phase: Arc<AtomicU8>,
    thread: JoinHandle<io::Result<Done>>,
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
        let count = attack.attackers(connections);
        let (readies, ready) = mpsc::sync_channel(count.max(1));
        let attackers = Attackers {
            attack,
            bytes: Bytes::of(attack, places)?,
            fat: places.fat.clone(),
            all: (0..count).map(|_| Attacker::of(attack)).collect(),
            done: Done::new(),
            phase: Arc::clone(&phase),
            is_counted: false,
            readies,
        };
        let node = if attack == Attack::ConsolePolls { places.console } else { node };
        let thread = thread::spawn(move || {
            // The players, on the same core, come first; otherwise their own waits would count. If
            // the system refuses, they do.
            let _ = rustix::process::nice(NICE);
            let source = Source::Each { addresses: attack.addresses(), resets: attack.resets() };
            let mut fleet = Fleet::new(attackers, node, source, None)?;
            // None waits for another.
            fleet.connect(0..count, usize::MAX);
            while fleet.fault.is_none() && fleet.script.phase.load(Ordering::Relaxed) != OVER {
                fleet.run(Duration::from_millis(10));
            }
            if let Some(fault) = fleet.fault {
                return Err(io::Error::other(fault));
            }
            Ok(Done { live: fleet.links.open_count(), ..fleet.script.done })
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

/// Acts of the attackers while players were watched, and answers of the node.
pub(super) struct Done {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The number of connections that were opened, including replacements.
    pub(super) connections: u64,
    /// Whole messages that were received, by kind.
    pub(super) answers: [u64; 256],
    /// Connections whose first byte from the node was that of a TLS handshake.
    pub(super) flights: u64,
    /// Answers of the console.
    pub(super) pages: u64,
    /// The number of times that sessions were resumed and received all snapshots.
    pub(super) resumed: u64,
    /// The number of attackers connected in the end.
    pub(super) live: usize,
}

impl Done {
    fn new() -> Self {
        let [sent, received, connections, flights, pages, resumed] = [0; 6];
        let answers = [0; 256];
        Self { sent, received, connections, answers, flights, pages, resumed, live: 0 }
    }

    /// The effect of the attack, from the attackers' and the node's counts. Players have sent some
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

/// All attackers.
struct Attackers {
    attack: Attack,
    bytes: Bytes,
    fat: Vec<String>,
    all: Vec<Attacker>,
    done: Done,
    phase: Arc<AtomicU8>,
    is_counted: bool,
    readies: SyncSender<()>,
}

/// One of them.
#[derive(Default)]
struct Attacker {
    /// The connection before, if it stays open until the node closes it.
    _replaced: Option<Stream>,
    /// The number of times that it has connected.
    connections: usize,
    /// The bytes of the batch that are sent.
    batched: usize,
    answers: Answers,
    is_answered: bool,
    is_ready: bool,
    /// Of those that act on what the node answers.
    session: Option<Session>,
}

impl Attacker {
    fn of(attack: Attack) -> Self {
        let acts = attack == Attack::Joins || attack.has_sessions();
        Self { session: acts.then(Session::default), ..Self::default() }
    }
}

impl Attackers {
    /// Returns whether answers are in native framing, and `packed`.
    fn reads_answers(&self) -> bool {
        !matches!(
            self.attack,
            Attack::Bombs
                | Attack::Json
                | Attack::JsonPairs
                | Attack::Handshakes
                | Attack::ConsolePolls
        )
    }
}

impl Script for Attackers {
    fn opened(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        links.ready += 1;
        self.done.connections += 1;
        let attacker = &mut self.all[number];
        (attacker.batched, attacker.is_answered) = (0, false);
        attacker.answers = Answers::default();
        let mut opening = match &mut attacker.session {
            Some(session) => session.opening(self.attack, &self.fat),
            None => self.bytes.opening.clone(),
        };
        if self.attack == Attack::TakeOvers {
            script::register(&mut opening, number, attacker.connections);
        }
        attacker.connections += 1;
        self.done.sent += opening.len() as u64;
        links.send(number, &opening).map(drop)
    }

    fn receive(&mut self, number: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let reads_answers = self.reads_answers();
        let Self { attack, fat, all, done, .. } = self;
        let attacker = &mut all[number];
        done.received += input.len() as u64;
        if !std::mem::replace(&mut attacker.is_answered, true) && input[0] == TLS_HANDSHAKE {
            done.flights += 1;
        }
        if *attack == Attack::Handshakes {
            return Err(again());
        }
        if *attack == Attack::ConsolePolls {
            // One that is cut is missed.
            done.pages += input.windows(PAGE.len()).filter(|part| *part == PAGE).count() as u64;
        }
        if !reads_answers {
            return Ok(input.len());
        }
        let Attacker { answers, session, .. } = attacker;
        let mut stays = true;
        let (mut heard, has_session) = (Vec::new(), session.is_some());
        let keeps = |kind| has_session && Session::keeps(kind);
        answers.read(input, keeps, |of, body| {
            done.answers[usize::from(of)] += 1;
            stays &= *attack != Attack::Refused && of != kind::REGISTERED;
            if has_session {
                heard.push((of, body.to_vec()));
            }
        });
        if let Some(session) = session {
            let before = session.resumed;
            for (kind, body) in heard {
                match session.hear(*attack, fat, kind, &body) {
                    Step::Wait => {}
                    Step::Send(bytes) => {
                        done.sent += bytes.len() as u64;
                        links.send(number, &bytes)?;
                    }
                    Step::Reconnect => stays = false,
                }
            }
            done.resumed += session.resumed - before;
            if session.is_ready && !std::mem::replace(&mut attacker.is_ready, true) {
                // Nobody listens once the attack is under way.
                let _ = self.readies.send(());
            }
        }
        if stays {
            return Ok(input.len());
        }
        if *attack == Attack::TakeOvers {
            attacker._replaced = links.take(number);
        }
        Err(again())
    }

    fn writable(&mut self, number: usize, links: &mut Links) -> io::Result<()> {
        let attacker = &mut self.all[number];
        // With a token it goes before it hears anything, so the token stays the same.
        let is_ready = attacker.session.as_ref().is_some_and(|session| session.is_ready);
        if self.bytes.goes || self.attack == Attack::Replays && is_ready {
            return Err(again());
        }
        let batch = &self.bytes.batch;
        if batch.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        while links.is_open(number) {
            if written >= TURN_BYTES {
                // A node that reads as fast as this sends would keep the others waiting.
                links.continue_later(number);
                break;
            }
            let part = &batch[attacker.batched..];
            let part = &part[..part.len().min(WRITE_BYTES)];
            let is_sent = links.send(number, part)?;
            written += part.len();
            self.done.sent += part.len() as u64;
            attacker.batched = (attacker.batched + part.len()) % batch.len();
            if !is_sent {
                break;
            }
        }
        Ok(())
    }

    fn due(&mut self, _: &mut Links) -> io::Result<Duration> {
        let is_watched = self.phase.load(Ordering::Relaxed) == WATCHED;
        if is_watched && !std::mem::replace(&mut self.is_counted, true) {
            // What came before does not count.
            self.done = Done::new();
        }
        Ok(Duration::from_millis(10))
    }

    /// The node closed the connection, or the attacker is done with it: a new one replaces it.
    fn lost(&mut self, _: usize, _: io::Error, _: &mut Links) -> io::Result<Next> {
        Ok(Next::Connect)
    }

    fn progress(&self) -> u64 {
        self.done.received + self.done.connections
    }
}

/// The end of a connection that has served its purpose.
fn again() -> io::Error {
    ErrorKind::ConnectionAborted.into()
}
