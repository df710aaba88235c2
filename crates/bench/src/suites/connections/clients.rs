//! The clients: threads that each hold some thousands, and check every answer.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playfield_load::Timings;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};

use super::Options;
use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Frame};
use crate::harness::fleet::{Fleet, Links, Next, Script, wrong};
use crate::harness::source::Source;
use crate::harness::tables;

/// The number of a thread's connections that are opened at once.
const OPENING_MAX: usize = 64;

/// The heartbeats of connected clients.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beat {
    /// One in each period, staggered; none if it is zero.
    Each(Duration),
    /// The next when the last is answered, up to this many in all.
    Next { count: u64 },
}

/// The results of the clients of a thread.
#[derive(Clone, Default)]
pub(super) struct Done {
    /// The number of clients that have a session, and are connected.
    pub(super) connected: u64,
    pub(super) compared: u64,
    /// Heartbeats that were sent, and those that were answered as they should be.
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) times: Timings,
    pub(super) fault: Option<String>,
    pub(super) sessions: Vec<u64>,
}

/// All clients.
pub(super) struct Clients {
    threads: Vec<Thread>,
}

struct Thread {
    orders: SyncSender<(Beat, Duration)>,
    done: Receiver<Done>,
    thread: JoinHandle<io::Result<()>>,
}

impl Clients {
    /// Starts the threads, which begin to connect at once.
    pub(super) fn start(options: &Options, server: SocketAddr, side: Side) -> io::Result<Self> {
        let count = tables::needed(options.count);
        let threads = (0..count).map(|number| {
            let (orders, ordered) = sync_channel(1);
            let (tells, done) = sync_channel(1);
            let from = options.count * number / count;
            let to = options.count * (number + 1) / count;
            let options = options.clone();
            let thread = tables::spawn(format!("clients-{number}"), move || {
                let source = Source::Network(if side == Side::Bare { 10 } else { 20 });
                let corrupt = options.corrupt_one && number == 0 && side == Side::Node;
                let clients = Heartbeats::new(&options, side, from..to, corrupt);
                let mut fleet = Fleet::new(clients, server, source, None)?;
                fleet.connect(from..to, OPENING_MAX);
                // Without anyone to tell, the run is over.
                while tells.send(fleet.script.done(fleet.fault.clone())).is_ok()
                    && let Ok((beat, time)) = ordered.recv()
                {
                    hold(&mut fleet, beat, time);
                }
                Ok(())
            })?;
            Ok(Thread { orders, done, thread })
        });
        Ok(Self { threads: threads.collect::<io::Result<_>>()? })
    }

    /// Waits until all threads have carried out their orders.
    pub(super) fn wait(&mut self) -> io::Result<Done> {
        let mut all = Done::default();
        for thread in &self.threads {
            let lost = |_| io::Error::other("a thread of clients has failed");
            all.add(thread.done.recv().map_err(lost)?);
        }
        Ok(all)
    }

    /// Lets all clients send heartbeats for this long.
    pub(super) fn hold(&mut self, beat: Beat, time: Duration) -> io::Result<Done> {
        let threads = self.threads.len() as u64;
        for (thread, number) in self.threads.iter().zip(0..) {
            let share = match beat {
                Beat::Next { count } => {
                    Beat::Next { count: count * (number + 1) / threads - count * number / threads }
                }
                each @ Beat::Each(_) => each,
            };
            // If it has failed, waiting for it says so.
            let _ = thread.orders.send((share, time));
        }
        self.wait()
    }

    /// Ends the threads, and with them the connections.
    pub(super) fn end(self) {
        for Thread { orders, thread, .. } in self.threads {
            drop(orders);
            if let Ok(Err(error)) = thread.join() {
                eprintln!("a thread of clients failed: {error}");
            }
        }
    }
}

impl Done {
    fn add(&mut self, other: Self) {
        self.connected += other.connected;
        self.compared += other.compared;
        self.sent += other.sent;
        self.answered += other.answered;
        self.times.add(&other.times);
        self.fault = self.fault.take().or(other.fault);
        self.sessions.extend(other.sessions);
    }
}

/// Sends heartbeats for this long, and then waits for the answers that are missing.
fn hold(fleet: &mut Fleet<Heartbeats>, beat: Beat, time: Duration) {
    fleet.script.begin(beat, &mut fleet.links);
    let ends = Instant::now() + time;
    match beat {
        Beat::Each(_) => fleet.run(time),
        Beat::Next { .. } => {
            fleet.until(|clients, _| clients.waiting == 0 || Instant::now() >= ends);
        }
    }
    fleet.script.beat = Beat::Next { count: 0 };
    fleet.script.follow_to = 0;
    fleet.until(|clients, _| clients.waiting == 0);
}

/// The clients of one thread.
struct Heartbeats {
    dialogue: Dialogue,
    side: Side,
    is_resumable: bool,
    /// The number of the first client.
    first: usize,
    clients: Vec<Client>,
    /// The next answer is read with a wrong number.
    corrupt: bool,
    done: Done,
    out: Vec<u8>,
    nonce: u64,
    waiting: u64,
    beat: Beat,
    began: Instant,
    /// The number of staggered heartbeats that were due.
    beats: u64,
    /// The number up to which answered heartbeats are followed by more.
    follow_to: u64,
}

#[derive(Clone, Default)]
struct Client {
    is_open: bool,
    /// The number of the heartbeat that is under way, or 0.
    nonce: u64,
    sent_at: Option<Instant>,
}

impl Heartbeats {
    fn new(options: &Options, side: Side, of: std::ops::Range<usize>, corrupt: bool) -> Self {
        Self {
            dialogue: Dialogue::new(options.transport),
            side,
            is_resumable: options.is_resumable,
            first: of.start,
            clients: vec![Client::default(); of.len()],
            corrupt,
            done: Done::default(),
            out: Vec::new(),
            nonce: 0,
            waiting: 0,
            beat: Beat::Next { count: 0 },
            began: Instant::now(),
            beats: 0,
            follow_to: 0,
        }
    }

    /// Events since the last time.
    fn done(&mut self, fault: Option<String>) -> Done {
        let done = std::mem::take(&mut self.done);
        let connected = self.clients.iter().filter(|client| client.is_open).count() as u64;
        Done { connected, fault: done.fault.or(fault), ..done }
    }

    fn begin(&mut self, beat: Beat, links: &mut Links) {
        (self.beat, self.began, self.beats) = (beat, Instant::now(), 0);
        if let Beat::Next { count } = beat {
            self.follow_to = self.nonce + count;
            for place in 0..self.clients.len() {
                self.ping(place, links);
            }
        }
    }

    fn ping(&mut self, place: usize, links: &mut Links) {
        let (client, number) = (&mut self.clients[place], self.first + place);
        if !client.is_open {
            return;
        }
        if client.nonce > 0 {
            let text = format!("client {number} waits for a whole period");
            self.done.fault.get_or_insert(text);
            return;
        }
        self.nonce += 1;
        self.out.clear();
        let ping = ClientMessage::Ping(client::Ping { nonce: self.nonce });
        self.dialogue.say(&mut self.out, &ping);
        (client.nonce, client.sent_at) = (self.nonce, Some(Instant::now()));
        // If it can't be sent, the connection is lost where it is read.
        let _ = links.send(number, &self.out);
        self.done.sent += 1;
        self.waiting += 1;
    }

    fn hear(&mut self, number: usize, frame: Frame<'_>, links: &mut Links) -> io::Result<()> {
        let place = number - self.first;
        let client = &mut self.clients[place];
        self.done.compared += 1;
        let Frame::Message(body) = frame else {
            let reply = self.dialogue.reply(&frame, self.is_resumable);
            return links.send(number, &reply).map(drop);
        };
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Welcome(server::Welcome { session, .. }) if !client.is_open => {
                client.is_open = true;
                links.ready += 1;
                if self.side == Side::Node {
                    self.done.sessions.push(session);
                }
            }
            ServerMessage::Pong(server::Pong { nonce, .. }) if client.nonce > 0 => {
                // The baseline does not read what it answers.
                let nonce = if self.side == Side::Bare { client.nonce } else { nonce };
                if nonce + u64::from(std::mem::take(&mut self.corrupt)) != client.nonce {
                    let text = format!("heartbeat {nonce} is answered instead of {}", client.nonce);
                    return Err(wrong(&text));
                }
                if let Some(sent_at) = client.sent_at {
                    self.done.times.record(sent_at.elapsed().as_nanos() as u64);
                }
                client.nonce = 0;
                self.done.answered += 1;
                self.waiting -= 1;
                if self.nonce < self.follow_to {
                    self.ping(place, links);
                }
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                links.send(number, &self.dialogue.pong(nonce))?;
            }
            other => return Err(wrong(&format!("not expected now: {other:?}"))),
        }
        Ok(())
    }
}

impl Script for Heartbeats {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        links.send(client, &self.dialogue.opening(self.is_resumable)).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let dialogue = self.dialogue;
        dialogue.each(input, |frame| self.hear(client, frame, links))
    }

    fn due(&mut self, links: &mut Links) -> io::Result<Duration> {
        let Beat::Each(period) = self.beat else { return Ok(Duration::MAX) };
        let all = self.clients.len() as u64;
        if period.is_zero() || all == 0 {
            return Ok(Duration::MAX);
        }
        let passed = self.began.elapsed().as_nanos();
        let due = (passed * u128::from(all) / period.as_nanos()) as u64;
        while self.beats < due {
            self.ping((self.beats % all) as usize, links);
            self.beats += 1;
        }
        let next = period.as_nanos() * u128::from(self.beats + 1) / u128::from(all);
        let next = Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX));
        Ok(next.saturating_sub(self.began.elapsed()))
    }

    /// The others go on.
    fn lost(&mut self, number: usize, why: io::Error, links: &mut Links) -> io::Result<Next> {
        let client = &mut self.clients[number - self.first];
        // Nobody waits for it.
        links.ready += usize::from(!client.is_open);
        self.waiting -= u64::from(client.nonce > 0);
        *client = Client::default();
        self.done.fault.get_or_insert_with(|| format!("client {number}: {why}"));
        Ok(Next::Stay)
    }

    fn progress(&self) -> u64 {
        self.done.answered
    }
}
