//! The comparing driver: clients that send frames, and compare every byte that comes back.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_load::Timings;
use playfield_wire::RoomNumber;
use playfield_wire::server::{self, ServerMessage};

use super::arrivals::Arrivals;
use super::server::PATH;
use super::traffic::{Cycle, ROOM, Replies, Traffic};
use super::{Class, Driver, Options, Transport};
use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Frame, join_or_create};
use crate::harness::fleet::{Fleet, Links, Script, wrong};
use crate::harness::source::Source;

const OPENING_MAX: usize = 64;
/// About how much is written at once.
const WRITE_BYTES: usize = 64 << 10;

/// All clients.
pub(super) struct Clients {
    began: Instant,
    window: u64,
    peers: Vec<Peer>,
    talk: Talk,
    arrivals: Option<Arrivals>,
    is_over: bool,
    /// The next reply is read as if it were wrong.
    corrupt: bool,
    opening: Vec<u8>,
    pub(super) answered: u64,
    pub(super) times: Timings,
    /// In an open loop: from when messages should have been sent to when they were.
    pub(super) late: Timings,
}

/// Messages that are sent, and those that have to be answered.
struct Talk {
    side: Side,
    class: Class,
    dialogue: Dialogue,
    traffic: Traffic,
    /// Nothing is said between the upgrade and the frames.
    is_raw: bool,
    /// Replies are counted, and not compared.
    counts: bool,
}

#[derive(Default)]
struct Peer {
    is_ready: bool,
    /// The next frames' place in the cycle, and how many bytes of them are to be written.
    write_at: usize,
    unwritten: usize,
    /// Frames that were sent, and answered.
    sent: u64,
    answered: u64,
    /// The next reply's place in the cycle, in bytes or in frames.
    read_at: usize,
    /// The number of frames to be sent.
    due: u64,
    /// Numbers of frames, and when they were sent or should have been, in nanoseconds.
    marks: VecDeque<(u64, u64)>,
}

impl Clients {
    /// Connects all clients, and waits until they are where they can send.
    pub(super) fn fleet(
        options: &Options,
        traffic: Traffic,
        server: SocketAddr,
        side: Side,
    ) -> io::Result<Fleet<Self>> {
        let dialogue = Dialogue::new(options.transport);
        let is_raw = side == Side::Bare || options.class == Class::A;
        let counts = options.driver == Driver::Counting;
        let clients = Self {
            began: Instant::now(),
            window: options.window as u64,
            peers: (0..options.connections).map(|_| Peer::default()).collect(),
            talk: Talk { side, class: options.class, dialogue, traffic, is_raw, counts },
            arrivals: options.rate.map(|rate| Arrivals::new(rate, options.connections)),
            is_over: false,
            corrupt: options.corrupt_one && side == Side::Node,
            opening: match (is_raw, options.transport) {
                (true, Transport::Tcp) => Vec::new(),
                (true, Transport::WebSocket) => dialogue.opening_at(PATH, false),
                (false, _) => dialogue.opening(false),
            },
            answered: 0,
            times: Timings::default(),
            late: Timings::default(),
        };
        let source = Source::Network(if side == Side::Bare { 70 } else { 80 });
        let mut fleet = Fleet::new(clients, server, source, None)?;
        fleet.connect(0..options.connections, OPENING_MAX);
        Ok(fleet)
    }

    /// Begins to send: a window of each client, or what arrives from now on.
    pub(super) fn begin(&mut self, links: &mut Links) -> io::Result<()> {
        let now = self.now();
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.begin(now);
            return Ok(());
        }
        for client in 0..self.peers.len() {
            let now = self.now();
            self.peers[client].due = self.window;
            self.peers[client].send(client, now, &self.talk, links)?;
        }
        Ok(())
    }

    /// Sends nothing more. Returns how many replies there should be in the end.
    pub(super) fn end(&mut self) -> u64 {
        self.is_over = true;
        self.arrivals = None;
        self.peers.iter().map(|peer| peer.sent).sum()
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

impl Script for Clients {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        if self.opening.is_empty() {
            self.peers[client].is_ready = true;
            links.ready += 1;
        }
        links.send(client, &self.opening).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        let Self { peers, talk, .. } = self;
        let peer = &mut peers[client];
        if self.corrupt
            && let Some(last) = peer.last_of_first(input, talk)?
        {
            input[last] ^= 1;
            self.corrupt = false;
        }
        let before = peer.answered;
        let handled = peer.hear(client, input, talk, links)?;
        let answered = peer.answered - before;
        if answered > 0 {
            self.answered += answered;
            let now = self.began.elapsed().as_nanos() as u64;
            peer.note(now, &mut self.times);
            if self.arrivals.is_none() && !self.is_over {
                peer.due += answered;
                if peer.due * 2 >= self.window {
                    peer.send(client, now, talk, links)?;
                }
            }
        }
        Ok(handled)
    }

    fn writable(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        self.peers[client].write(client, &self.talk, links)
    }

    /// Sends what has arrived by now.
    fn due(&mut self, links: &mut Links) -> io::Result<Duration> {
        let now = self.now();
        let Self { arrivals, peers, talk, late, began, .. } = self;
        let Some(arrivals) = arrivals.as_mut().filter(|arrivals| arrivals.has_begun()) else {
            return Ok(Duration::MAX);
        };
        let touched = arrivals.take(now, peers, |peer, at| {
            peer.due += 1;
            peer.marks.push_back((peer.sent + peer.due, at));
        });
        for &client in touched {
            let peer = &mut peers[client];
            let due = peer.due as usize;
            peer.send_due(client, talk, links)?;
            let now = began.elapsed().as_nanos() as u64;
            for &(_, at) in peer.marks.iter().rev().take(due) {
                late.record(now.saturating_sub(at));
            }
        }
        // A driver that sleeps is late.
        Ok(Duration::ZERO)
    }

    fn progress(&self) -> u64 {
        self.answered
    }
}

impl Peer {
    /// Sends what is due, and notes when.
    fn send(&mut self, client: usize, now: u64, talk: &Talk, links: &mut Links) -> io::Result<()> {
        self.marks.push_back((self.sent + self.due, now));
        self.send_due(client, talk, links)
    }

    fn send_due(&mut self, client: usize, talk: &Talk, links: &mut Links) -> io::Result<()> {
        self.sent += self.due;
        self.unwritten += talk.traffic.sent.frame_bytes * self.due as usize;
        self.due = 0;
        self.write(client, talk, links)
    }

    /// Writes whole frames until the socket takes no more.
    fn write(&mut self, client: usize, talk: &Talk, links: &mut Links) -> io::Result<()> {
        let cycle = &talk.traffic.sent;
        let most = (WRITE_BYTES / cycle.frame_bytes).max(1) * cycle.frame_bytes;
        while self.unwritten > 0 && !links.is_blocked(client) {
            let bytes = cycle.at(self.write_at, self.unwritten.min(most));
            links.send(client, bytes)?;
            self.write_at = cycle.after(self.write_at, bytes.len());
            self.unwritten -= bytes.len();
        }
        Ok(())
    }

    /// Notes how long it took until frames were answered.
    fn note(&mut self, now: u64, times: &mut Timings) {
        while let Some(&(number, at)) = self.marks.front()
            && number <= self.answered
        {
            times.record(now.saturating_sub(at));
            self.marks.pop_front();
        }
    }

    /// Takes in what came. Returns how many bytes are done with.
    fn hear(
        &mut self,
        client: usize,
        input: &[u8],
        talk: &Talk,
        links: &mut Links,
    ) -> io::Result<usize> {
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
            let Some((frame, consumed)) = talk.dialogue.frame(&input[handled..])? else { break };
            self.hear_frame(client, frame, talk, links)?;
            handled += consumed;
        }
        Ok(handled)
    }

    /// The place of the last byte of the first reply, if it is here as a whole.
    fn last_of_first(&self, input: &[u8], talk: &Talk) -> io::Result<Option<usize>> {
        let bytes = match &talk.traffic.replies {
            _ if !self.is_ready => None,
            Replies::Stream(cycle) | Replies::Frames(cycle) => {
                Some(cycle.frame_bytes - self.read_at % cycle.frame_bytes)
            }
            Replies::Events(_) => talk.dialogue.frame(input)?.map(|(_, consumed)| consumed),
        };
        Ok(bytes.filter(|bytes| *bytes <= input.len()).map(|bytes| bytes - 1))
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

    fn hear_frame(
        &mut self,
        client: usize,
        frame: Frame<'_>,
        talk: &Talk,
        links: &mut Links,
    ) -> io::Result<()> {
        let Frame::Message(body) = frame else {
            if talk.is_raw && matches!(frame, Frame::Upgraded) {
                self.is_ready = true;
                links.ready += 1;
                return Ok(());
            }
            return links.send(client, &talk.dialogue.reply(&frame, false)).map(drop);
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
            ServerMessage::Welcome(_) => {
                links.send(client, &talk.dialogue.framed(&join_or_create("hall")))?;
            }
            ServerMessage::Joined(server::Joined { room: ROOM, .. }) => {}
            ServerMessage::Snapshot(server::Snapshot { room: RoomNumber(1), .. })
                if !self.is_ready =>
            {
                self.is_ready = true;
                links.ready += 1;
            }
            ServerMessage::Check(_) => {}
            ServerMessage::Ping(server::Ping { nonce }) => {
                links.send(client, &talk.dialogue.pong(nonce))?;
            }
            other => {
                let (side, class) = (talk.side, talk.class);
                return Err(wrong(&format!("{side:?}, {class:?}: not expected now: {other:?}")));
            }
        }
        Ok(())
    }
}
