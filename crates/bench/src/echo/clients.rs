//! The comparing driver: clients that send frames, and compare every byte that comes back.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::arrivals::Arrivals;
use super::server::PATH;
use super::traffic::{Cycle, ROOM, Replies, Traffic};
use super::{Class, Driver, Options, Transport};
use crate::connections::dialogue::{Dialogue, Frame, wrong};
use crate::histogram::Histogram;
use crate::native::FORMAT;
use crate::side::Side;
use crate::source;

/// How many connections are opened at once.
const OPENING_MAX: usize = 64;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 256 << 10;
/// The longest incomplete message that is kept.
const PARTIAL_BYTES_MAX: usize = 128 << 10;

/// All clients.
pub(super) struct Clients {
    began: Instant,
    window: u64,
    poll: Poll,
    events: Events,
    peers: Vec<Peer>,
    buffer: Vec<u8>,
    talk: Talk,
    pub(super) tally: Tally,
    arrivals: Option<Arrivals>,
    is_over: bool,
    server: SocketAddr,
    network: u8,
    opening: Vec<u8>,
}

/// What happened so far.
pub(super) struct Tally {
    pub(super) answered: u64,
    pub(super) times: Histogram,
    /// In an open loop: from when messages should have been sent to when they were.
    pub(super) late: Histogram,
    ready: usize,
    pub(super) fault: Option<String>,
}

/// What is said, and what has to be answered.
struct Talk {
    side: Side,
    class: Class,
    dialogue: Dialogue,
    traffic: Traffic,
    hello: Vec<u8>,
    join: Vec<u8>,
    /// Nothing is said between the upgrade and the frames.
    is_raw: bool,
    /// Replies are counted, and not compared.
    counts: bool,
    /// The next reply is read as if it were wrong.
    corrupt: bool,
}

struct Peer {
    stream: TcpStream,
    is_ready: bool,
    /// Messages of the protocol, which go out between frames.
    control: Vec<u8>,
    /// The next frames' place in the cycle, and how many bytes of them are to be written.
    write_at: usize,
    unwritten: usize,
    /// Frames that were sent, and answered.
    sent: u64,
    answered: u64,
    /// The next reply's place in the cycle, in bytes or in frames.
    read_at: usize,
    /// How many frames are to be sent.
    due: u64,
    /// An incomplete message.
    partial: Vec<u8>,
    /// Numbers of frames, and when they were sent or should have been, in nanoseconds.
    marks: VecDeque<(u64, u64)>,
}

impl Clients {
    pub(super) fn new(
        options: &Options,
        traffic: Traffic,
        server: SocketAddr,
        side: Side,
    ) -> io::Result<Self> {
        let dialogue = Dialogue::new(options.transport);
        let framed = |message: &ClientMessage<'_>| {
            let mut out = Vec::new();
            dialogue.say(&mut out, message);
            out
        };
        let hello = Hello { resumable: false, ..Hello::new(FORMAT) };
        let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "hall".into(),
            key: None,
            options: &[],
        });
        let is_raw = side == Side::Bare || options.class == Class::A;
        Ok(Self {
            began: Instant::now(),
            window: options.window as u64,
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            peers: Vec::new(),
            buffer: vec![0; PARTIAL_BYTES_MAX + READ_BYTES],
            talk: Talk {
                side,
                class: options.class,
                dialogue,
                traffic,
                hello: framed(&ClientMessage::Hello(hello)),
                join: framed(&join),
                is_raw,
                counts: options.driver == Driver::Counting,
                corrupt: options.corrupt_one && side == Side::Node,
            },
            tally: Tally {
                answered: 0,
                times: Histogram::new(),
                late: Histogram::new(),
                ready: 0,
                fault: None,
            },
            arrivals: options.rate.map(|rate| Arrivals::new(rate, options.connections)),
            is_over: false,
            server,
            network: if side == Side::Bare { 70 } else { 80 },
            opening: match (is_raw, options.transport) {
                (true, Transport::Tcp) => Vec::new(),
                (true, Transport::WebSocket) => dialogue.opening_at(PATH, false),
                (false, _) => dialogue.opening(false),
            },
        })
    }

    /// Connects all clients, and waits until they are where they can send.
    pub(super) fn connect(&mut self, count: usize) -> io::Result<()> {
        for number in 0..count {
            let socket = source::connect(self.server, self.network, number)?;
            socket.set_tcp_nodelay(true)?;
            let mut stream = TcpStream::from_std(socket.into());
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut stream, Token(number), interest)?;
            let is_ready = self.opening.is_empty();
            self.tally.ready += usize::from(is_ready);
            self.peers.push(Peer::new(stream, is_ready, self.opening.clone()));
            self.peers[number].flush(&self.talk)?;
            self.until(|tally| tally.ready + OPENING_MAX > number)?;
        }
        self.until(|tally| tally.ready == count)
    }

    /// Begins to send: a window of each client, or what arrives from now on.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        if self.arrivals.is_some() {
            let now = self.now();
            self.arrivals.iter_mut().for_each(|arrivals| arrivals.begin(now));
            return Ok(());
        }
        for number in 0..self.peers.len() {
            let now = self.now();
            self.peers[number].due = self.window;
            self.peers[number].send(now, &self.talk)?;
        }
        Ok(())
    }

    /// Continues until that many frames are answered.
    pub(super) fn until_answered(&mut self, count: u64) -> io::Result<()> {
        self.until(|tally| tally.answered >= count)
    }

    /// Goes on for this long.
    pub(super) fn run(&mut self, time: Duration) -> io::Result<()> {
        let began = Instant::now();
        self.until(|_| began.elapsed() >= time)
    }

    /// Sends nothing more, and waits for the replies that are missing.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.is_over = true;
        self.arrivals = None;
        let sent: u64 = self.peers.iter().map(|peer| peer.sent).sum();
        self.until(|tally| tally.answered == sent)
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Lets things happen until this is so, or nothing comes any more.
    fn until(&mut self, is_so: impl Fn(&Tally) -> bool) -> io::Result<()> {
        let mut ends = Instant::now() + PATIENCE;
        while self.tally.fault.is_none() && !is_so(&self.tally) {
            let before = (self.tally.answered, self.tally.ready);
            if let Err(error) = self.turn() {
                self.tally.fault = Some(error.to_string());
            }
            if before != (self.tally.answered, self.tally.ready) {
                ends = Instant::now() + PATIENCE;
            } else if Instant::now() > ends {
                self.tally.fault = Some("nothing comes any more".to_owned());
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let wait = match &self.arrivals {
            // A driver that sleeps is late.
            Some(arrivals) if arrivals.has_begun() => Duration::ZERO,
            _ => Duration::from_millis(100),
        };
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        match self.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            let number = event.token().0;
            if event.is_readable() {
                self.read(number)?;
            }
            self.peers[number].flush(&self.talk)?;
        }
        self.events = events;
        self.arrive()
    }

    /// Sends what has arrived by now.
    fn arrive(&mut self) -> io::Result<()> {
        let now = self.now();
        let Self { arrivals: Some(arrivals), peers, talk, tally, began, .. } = self else {
            return Ok(());
        };
        let touched = arrivals.take(now, peers, |peer, at| {
            peer.due += 1;
            peer.marks.push_back((peer.sent + peer.due, at));
        });
        for &number in touched {
            let peer = &mut peers[number];
            let due = peer.due as usize;
            peer.send_due(talk)?;
            let now = began.elapsed().as_nanos() as u64;
            for &(_, at) in peer.marks.iter().rev().take(due) {
                tally.late.note(Duration::from_nanos(now.saturating_sub(at)));
            }
        }
        Ok(())
    }

    fn read(&mut self, number: usize) -> io::Result<()> {
        let Self { peers, buffer, talk, tally, .. } = self;
        let peer = &mut peers[number];
        loop {
            let kept = peer.partial.len();
            buffer[..kept].copy_from_slice(&peer.partial);
            let count = match peer.stream.read(&mut buffer[kept..][..READ_BYTES]) {
                Ok(0) => return Err(wrong(&format!("client {number} was disconnected"))),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let input = &buffer[..kept + count];
            let before = peer.answered;
            let handled = peer.hear(input, talk, tally)?;
            if input.len() - handled > PARTIAL_BYTES_MAX {
                return Err(wrong("a message is too long"));
            }
            peer.partial.clear();
            peer.partial.extend_from_slice(&input[handled..]);
            let answered = peer.answered - before;
            if answered > 0 {
                tally.answered += answered;
                let now = self.began.elapsed().as_nanos() as u64;
                peer.note(now, &mut tally.times);
                if self.arrivals.is_none() && !self.is_over {
                    peer.due += answered;
                    if peer.due * 2 >= self.window {
                        peer.send(now, talk)?;
                    }
                }
            }
            if count < READ_BYTES {
                return Ok(());
            }
        }
    }
}

impl Peer {
    fn new(stream: TcpStream, is_ready: bool, control: Vec<u8>) -> Self {
        let (partial, marks) = (Vec::new(), VecDeque::new());
        let [write_at, unwritten, read_at] = [0; 3];
        let [sent, answered, due] = [0; 3];
        Self {
            stream,
            is_ready,
            control,
            write_at,
            unwritten,
            sent,
            answered,
            read_at,
            due,
            partial,
            marks,
        }
    }

    /// Sends what is due, and notes when.
    fn send(&mut self, now: u64, talk: &Talk) -> io::Result<()> {
        self.marks.push_back((self.sent + self.due, now));
        self.send_due(talk)
    }

    fn send_due(&mut self, talk: &Talk) -> io::Result<()> {
        self.sent += self.due;
        self.unwritten += talk.traffic.sent.frame_bytes * self.due as usize;
        self.due = 0;
        self.flush(talk)
    }

    /// Writes as much as the socket takes.
    fn flush(&mut self, talk: &Talk) -> io::Result<()> {
        let cycle = &talk.traffic.sent;
        while self.unwritten > 0 || !self.control.is_empty() {
            let of_frame = self.write_at % cycle.frame_bytes;
            let is_control = of_frame == 0 && !self.control.is_empty();
            let bytes = if is_control {
                &self.control[..]
            } else if self.control.is_empty() {
                cycle.at(self.write_at, self.unwritten)
            } else {
                cycle.at(self.write_at, cycle.frame_bytes - of_frame)
            };
            match self.stream.write(bytes) {
                Ok(count) if is_control => drop(self.control.drain(..count)),
                Ok(count) => {
                    self.write_at = cycle.after(self.write_at, count);
                    self.unwritten -= count;
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes how long it took until frames were answered.
    fn note(&mut self, now: u64, times: &mut Histogram) {
        while let Some(&(number, at)) = self.marks.front()
            && number <= self.answered
        {
            times.note(Duration::from_nanos(now.saturating_sub(at)));
            self.marks.pop_front();
        }
    }

    /// Takes in what came. How many bytes are done with.
    fn hear(&mut self, input: &[u8], talk: &mut Talk, tally: &mut Tally) -> io::Result<usize> {
        let mut changed = Vec::new();
        let input = match self.corrupted(input, talk)? {
            Some(at) => {
                talk.corrupt = false;
                changed.extend_from_slice(input);
                changed[at] ^= 1;
                &changed
            }
            None => input,
        };
        let mut handled = 0;
        while handled < input.len() {
            let left = &input[handled..];
            if self.is_ready {
                match &talk.traffic.replies {
                    Replies::Stream(cycle) => {
                        return Ok(handled + self.hear_stream(left, cycle, talk.counts)?);
                    }
                    Replies::Frames(cycle) => handled += self.hear_frames(left, cycle),
                    Replies::Events(_) => {}
                }
            }
            let left = &input[handled..];
            let Some((frame, consumed)) = talk.dialogue.frame(left)? else { break };
            self.hear_frame(frame, talk, tally)?;
            handled += consumed;
        }
        Ok(handled)
    }

    /// Where a byte is to be changed: the last of the first reply that is here as a whole.
    fn corrupted(&self, input: &[u8], talk: &Talk) -> io::Result<Option<usize>> {
        if !(talk.corrupt && self.is_ready) {
            return Ok(None);
        }
        let bytes = match &talk.traffic.replies {
            Replies::Stream(cycle) | Replies::Frames(cycle) => {
                cycle.frame_bytes - self.read_at % cycle.frame_bytes
            }
            Replies::Events(_) => match talk.dialogue.frame(input)? {
                Some((_, consumed)) => consumed,
                None => return Ok(None),
            },
        };
        Ok((bytes <= input.len()).then(|| bytes - 1))
    }

    /// Everything has to be replies.
    fn hear_stream(&mut self, input: &[u8], cycle: &Cycle, counts: bool) -> io::Result<usize> {
        if !counts && cycle.agrees(self.read_at, input) < input.len() {
            return Err(wrong("what came back is not what was sent"));
        }
        let of_frame = self.read_at % cycle.frame_bytes;
        self.answered += ((of_frame + input.len()) / cycle.frame_bytes) as u64;
        self.read_at = cycle.after(self.read_at, input.len());
        Ok(input.len())
    }

    /// The replies at the front.
    fn hear_frames(&mut self, input: &[u8], cycle: &Cycle) -> usize {
        let frames = cycle.agrees(self.read_at, input) / cycle.frame_bytes;
        let bytes = frames * cycle.frame_bytes;
        self.answered += frames as u64;
        self.read_at = cycle.after(self.read_at, bytes);
        bytes
    }

    fn hear_frame(&mut self, frame: Frame<'_>, talk: &Talk, tally: &mut Tally) -> io::Result<()> {
        let Frame::Message(body) = frame else {
            if talk.is_raw {
                self.is_ready = true;
                tally.ready += 1;
            } else {
                self.control.extend_from_slice(&talk.hello);
            }
            return Ok(());
        };
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Event(server::Event { room, sequence, payload, .. })
                if self.is_ready && room == ROOM =>
            {
                let Replies::Events(payloads) = &talk.traffic.replies else {
                    return Err(wrong("an event instead of a reply"));
                };
                if sequence != self.answered + 1 || payload != payloads[self.read_at] {
                    return Err(wrong(&format!("event {sequence} is not what was sent")));
                }
                self.answered += 1;
                self.read_at = (self.read_at + 1) % payloads.len();
            }
            ServerMessage::Welcome(_) => self.control.extend_from_slice(&talk.join),
            ServerMessage::Joined(server::Joined { room: ROOM, .. }) => {}
            ServerMessage::Snapshot(server::Snapshot { room: RoomNumber(1), .. })
                if !self.is_ready =>
            {
                self.is_ready = true;
                tally.ready += 1;
            }
            ServerMessage::Check(_) => {}
            ServerMessage::Ping(server::Ping { nonce }) => {
                talk.dialogue.pong(&mut self.control, nonce);
            }
            other => {
                let (side, class) = (talk.side, talk.class);
                return Err(wrong(&format!("{side:?}, {class:?}: not expected now: {other:?}")));
            }
        }
        Ok(())
    }
}
