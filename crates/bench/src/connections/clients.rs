//! The clients: threads that each hold some thousands, and check every answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::dialogue::{Dialogue, Heard, wrong};
use super::{Options, Side, tables};
use crate::histogram::Histogram;
use crate::source;

/// How many connections of a thread are opened at once.
const OPENING_MAX: usize = 64;
/// How long clients wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// What clients do while they are connected.
#[derive(Clone, Copy, Debug)]
pub(super) enum Beat {
    /// One heartbeat in each period, staggered; none if it is zero.
    Each(Duration),
    /// The next heartbeat when the last is answered, up to this many in all.
    Next { count: u64 },
}

/// What to do next.
enum Order {
    Hold { beat: Beat, time: Duration },
}

/// What the clients of a thread did.
#[derive(Clone)]
pub(super) struct Done {
    /// How many have a session, and are connected.
    pub(super) connected: u64,
    pub(super) failed: u64,
    pub(super) compared: u64,
    /// Heartbeats that were sent, and those that were answered as they should be.
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) times: Histogram,
    pub(super) fault: Option<String>,
    pub(super) sessions: Vec<u64>,
}

/// All clients.
pub(super) struct Clients {
    threads: Vec<Thread>,
}

struct Thread {
    orders: SyncSender<Order>,
    done: Receiver<Done>,
    _thread: JoinHandle<io::Result<()>>,
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
            let (options, began) = (options.clone(), Instant::now());
            let thread = tables::spawn(format!("clients-{number}"), move || {
                let corrupt = options.corrupt_one && number == 0 && side == Side::Node;
                let mut party = Party::new(&options, server, side, began, corrupt)?;
                party.connect(from..to)?;
                // Without anyone to tell, the run is over.
                while tells.send(party.done()).is_ok()
                    && let Ok(Order::Hold { beat, time }) = ordered.recv()
                {
                    party.hold(beat, time)?;
                }
                Ok(())
            })?;
            Ok(Thread { orders, done, _thread: thread })
        });
        Ok(Self { threads: threads.collect::<io::Result<_>>()? })
    }

    /// Waits until all threads have carried out their orders.
    pub(super) fn wait(&mut self) -> io::Result<Done> {
        let mut all = Done::new();
        for thread in &self.threads {
            let lost = |_| io::Error::other("a thread of clients has failed");
            all.add(thread.done.recv().map_err(lost)?);
        }
        Ok(all)
    }

    /// Lets all clients send heartbeats for this long.
    pub(super) fn hold(&mut self, beat: Beat, time: Duration) -> io::Result<Done> {
        let threads = self.threads.len() as u64;
        let share = |number: u64| match beat {
            Beat::Next { count } => {
                Beat::Next { count: count * (number + 1) / threads - count * number / threads }
            }
            each @ Beat::Each(_) => each,
        };
        for (thread, number) in self.threads.iter().zip(0..) {
            // If it has failed, waiting for it says so.
            let _ = thread.orders.send(Order::Hold { beat: share(number), time });
        }
        self.wait()
    }

    /// Ends the threads, and with them the connections.
    pub(super) fn end(self) {
        for Thread { orders, _thread: thread, .. } in self.threads {
            drop(orders);
            if let Ok(Err(error)) = thread.join() {
                eprintln!("a thread of clients failed: {error}");
            }
        }
    }
}

impl Done {
    fn new() -> Self {
        let times = Histogram::new();
        let [connected, failed, compared, sent, answered] = [0; 5];
        let (fault, sessions) = (None, Vec::new());
        Self { connected, failed, compared, sent, answered, times, fault, sessions }
    }

    fn add(&mut self, other: Self) {
        self.connected += other.connected;
        self.failed += other.failed;
        self.compared += other.compared;
        self.sent += other.sent;
        self.answered += other.answered;
        self.times.add(&other.times);
        self.fault = self.fault.take().or(other.fault);
        self.sessions.extend(other.sessions);
    }
}

/// The clients of one thread.
struct Party {
    options: Options,
    dialogue: Dialogue,
    side: Side,
    server: SocketAddr,
    began: Instant,
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    opening: usize,
    /// The next answer is read with a wrong number.
    corrupt: bool,
    done: Done,
    out: Vec<u8>,
    buffer: Vec<u8>,
    nonce: u64,
    waiting: u64,
    /// Whether, and up to which number, answered heartbeats are followed by more.
    follow_to: u64,
}

struct Client {
    stream: Option<TcpStream>,
    is_open: bool,
    /// The opening is to be written once the connection is there.
    is_connecting: bool,
    /// The number of the heartbeat that is under way, or 0.
    nonce: u64,
    sent_at: Duration,
    /// An incomplete answer.
    input: Vec<u8>,
}

impl Party {
    fn new(
        options: &Options,
        server: SocketAddr,
        side: Side,
        began: Instant,
        corrupt: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            options: options.clone(),
            dialogue: options.dialogue(),
            side,
            server,
            began,
            poll: Poll::new()?,
            events: Events::with_capacity(4096),
            clients: Vec::new(),
            opening: 0,
            corrupt,
            done: Done::new(),
            out: Vec::new(),
            buffer: vec![0; 64 << 10],
            nonce: 0,
            waiting: 0,
            follow_to: 0,
        })
    }

    /// What happened since the last time.
    fn done(&mut self) -> Done {
        let connected = self.clients.iter().filter(|client| client.is_open).count() as u64;
        let failed = self.clients.len() as u64 - connected;
        Done { connected, failed, ..std::mem::replace(&mut self.done, Done::new()) }
    }

    fn connect(&mut self, numbers: std::ops::Range<usize>) -> io::Result<()> {
        let mut ends = Instant::now() + PATIENCE;
        let opening = self.dialogue.opening(self.options.is_resumable);
        for number in numbers {
            while self.opening >= OPENING_MAX {
                let before = self.opening;
                self.turn(Duration::from_millis(100))?;
                if self.opening < before {
                    ends = Instant::now() + PATIENCE;
                } else if Instant::now() > ends {
                    self.fault(&format!("{} clients wait for their welcome", self.opening));
                    return Ok(());
                }
            }
            self.open(number, &opening)?;
        }
        while self.opening > 0 && Instant::now() < ends {
            self.turn(Duration::from_millis(100))?;
        }
        Ok(())
    }

    fn open(&mut self, number: usize, opening: &[u8]) -> io::Result<()> {
        let network = if self.side == Side::Bare { 10 } else { 20 };
        let socket = source::connect(self.server, network, number)?;
        let mut stream = TcpStream::from_std(socket.into());
        // On this machine the connection is usually there at once.
        let is_connecting = match stream.write(opening) {
            Ok(_) => false,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) =>
            {
                true
            }
            Err(error) => return Err(error),
        };
        let interest = if is_connecting {
            Interest::READABLE | Interest::WRITABLE
        } else {
            Interest::READABLE
        };
        self.poll.registry().register(&mut stream, Token(self.clients.len()), interest)?;
        self.clients.push(Client {
            stream: Some(stream),
            is_open: false,
            is_connecting,
            nonce: 0,
            sent_at: Duration::ZERO,
            input: Vec::new(),
        });
        self.opening += 1;
        Ok(())
    }

    /// Sends heartbeats for this long, and then waits for the answers that are missing.
    fn hold(&mut self, beat: Beat, time: Duration) -> io::Result<()> {
        let began = self.began.elapsed();
        let all = self.clients.len() as u64;
        match beat {
            Beat::Each(period) if !period.is_zero() => {
                let mut sent = 0;
                loop {
                    let passed = self.began.elapsed().saturating_sub(began);
                    if passed >= time {
                        break;
                    }
                    let due = (passed.as_nanos() * u128::from(all) / period.as_nanos()) as u64;
                    while sent < due {
                        self.ping((sent % all) as usize)?;
                        sent += 1;
                    }
                    let next = period.as_nanos() * u128::from(sent + 1) / u128::from(all.max(1));
                    let next = Duration::from_nanos(u64::try_from(next).unwrap_or(u64::MAX));
                    let now = self.began.elapsed().saturating_sub(began);
                    self.turn(next.min(time).saturating_sub(now))?;
                }
            }
            Beat::Each(_) => {
                while self.began.elapsed().saturating_sub(began) < time {
                    self.turn(Duration::from_millis(100))?;
                }
            }
            Beat::Next { count } => {
                self.follow_to = self.nonce + count;
                for number in 0..self.clients.len() {
                    self.ping(number)?;
                }
                while self.waiting > 0 {
                    if self.began.elapsed().saturating_sub(began) >= time {
                        self.follow_to = 0;
                        break;
                    }
                    self.turn(Duration::from_millis(100))?;
                }
            }
        }
        let mut ends = Instant::now() + PATIENCE;
        while self.waiting > 0 && Instant::now() < ends {
            let before = self.waiting;
            self.turn(Duration::from_millis(100))?;
            if self.waiting < before {
                ends = Instant::now() + PATIENCE;
            }
        }
        Ok(())
    }

    fn ping(&mut self, number: usize) -> io::Result<()> {
        let client = &mut self.clients[number];
        let Some(stream) = client.stream.as_mut().filter(|_| client.is_open) else { return Ok(()) };
        if client.nonce > 0 {
            let text = format!("client {number} waits for a whole period");
            self.fault(&text);
            return Ok(());
        }
        self.nonce += 1;
        client.nonce = self.nonce;
        self.out.clear();
        self.dialogue.ping(&mut self.out, client.nonce);
        client.sent_at = self.began.elapsed();
        // So few bytes fit into a socket that is otherwise empty.
        if let Err(error) = stream.write_all(&self.out) {
            let text = format!("client {number} can't write: {error}");
            self.lose(number, &text);
            return Ok(());
        }
        self.done.sent += 1;
        self.waiting += 1;
        Ok(())
    }

    fn turn(&mut self, wait: Duration) -> io::Result<()> {
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = self.poll.poll(&mut events, Some(wait));
        if let Err(error) = polled
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error);
        }
        for event in &events {
            let number = event.token().0;
            if let Err(error) = self.read(number) {
                self.lose(number, &format!("client {number}: {error}"));
            }
        }
        self.events = events;
        Ok(())
    }

    fn read(&mut self, number: usize) -> io::Result<()> {
        let client = &mut self.clients[number];
        let Some(stream) = &mut client.stream else { return Ok(()) };
        if client.is_connecting {
            let opening = self.dialogue.opening(self.options.is_resumable);
            match stream.write_all(&opening) {
                Ok(()) => client.is_connecting = false,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let count = match stream.read(&mut self.buffer) {
            Ok(0) => return Err(wrong("the node closed the connection")),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        let buffer = std::mem::take(&mut self.buffer);
        let handled = self.handle(number, &buffer[..count]);
        self.buffer = buffer;
        handled
    }

    fn handle(&mut self, number: usize, bytes: &[u8]) -> io::Result<()> {
        let mut input = std::mem::take(&mut self.clients[number].input);
        let mut rest = if input.is_empty() {
            bytes
        } else {
            input.extend_from_slice(bytes);
            &input
        };
        while let Some((heard, consumed)) = self.dialogue.read(rest)? {
            rest = &rest[consumed..];
            self.hear(number, heard)?;
        }
        self.clients[number].input = rest.to_vec();
        Ok(())
    }

    fn hear(&mut self, number: usize, heard: Heard) -> io::Result<()> {
        let client = &mut self.clients[number];
        let Some(stream) = &mut client.stream else { return Ok(()) };
        self.done.compared += 1;
        self.out.clear();
        match heard {
            Heard::Upgraded => {
                self.dialogue.hello(&mut self.out, self.options.is_resumable);
                stream.write_all(&self.out)
            }
            Heard::Welcome { session } if !client.is_open => {
                client.is_open = true;
                self.opening -= 1;
                if self.side == Side::Node {
                    self.done.sessions.push(session);
                }
                Ok(())
            }
            Heard::Pong { nonce } if client.nonce > 0 => {
                // The baseline does not read what it answers.
                let nonce = if self.side == Side::Bare { client.nonce } else { nonce };
                if nonce + u64::from(std::mem::take(&mut self.corrupt)) != client.nonce {
                    let text = format!("heartbeat {nonce} is answered instead of {}", client.nonce);
                    return Err(wrong(&text));
                }
                self.done.times.note(self.began.elapsed() - client.sent_at);
                client.nonce = 0;
                self.done.answered += 1;
                self.waiting -= 1;
                if self.nonce < self.follow_to { self.ping(number) } else { Ok(()) }
            }
            Heard::Ping { nonce } => {
                self.dialogue.pong(&mut self.out, nonce);
                stream.write_all(&self.out)
            }
            other => Err(wrong(&format!("not expected now: {other:?}"))),
        }
    }

    /// A client is lost.
    fn lose(&mut self, number: usize, text: &str) {
        let client = &mut self.clients[number];
        if !client.is_open && client.stream.is_some() {
            self.opening -= 1;
        }
        if client.nonce > 0 {
            self.waiting -= 1;
        }
        (client.stream, client.is_open, client.nonce) = (None, false, 0);
        self.fault(text);
    }

    fn fault(&mut self, text: &str) {
        self.done.fault.get_or_insert_with(|| text.to_owned());
    }
}
