//! The subscribers and the publisher.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use playfield_websocket::Opcode;
use playfield_wire::client::{self, ClientMessage, Hello, Position};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber};

use super::server::CHANNEL;
use super::{Options, Side};
use crate::connections::Transport;
use crate::connections::dialogue::{Dialogue, Frame, wrong};
use crate::crowd::{Crowd, Listens};

const FORMAT: Format = Format::Packed;
/// How many connections are opened at once.
const OPENING_MAX: usize = 64;
/// How many publications may be on their way, if subscribers read more slowly than the server
/// writes.
const ON_THEIR_WAY_MAX: usize = 4;
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of all subscribers after a cut.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Returned {
    /// Subscribers whose `subscribed` says that nothing is lost.
    pub(super) recovered: u64,
    /// Subscribers whose `subscribed` says that something may be lost.
    pub(super) flagged: u64,
    /// Publications that neither came nor were announced as lost.
    pub(super) lost: u64,
    /// Publications that came from the history.
    pub(super) replayed: u64,
    /// From the first connection until everyone was up to date.
    pub(super) time: Duration,
}

/// The connections, and what is known of each.
pub(super) struct Audience {
    crowd: Crowd,
    members: Members,
    pub(super) compared: u64,
    pub(super) fault: Option<String>,
}

/// Everything but the sockets.
struct Members {
    dialogue: Dialogue,
    side: Side,
    opening: Rc<[u8]>,
    hello: Rc<[u8]>,
    /// The subscribers. Who publishes comes after them.
    subscribers: Vec<Subscriber>,
    bytes: usize,
    /// What was published and has not reached everyone.
    sent: VecDeque<Sent>,
    /// The last offset.
    last: u64,
    /// How many are ready.
    ready: usize,
    /// How many publications were acknowledged.
    published: u64,
    returned: Returned,
    compared: u64,
    corrupt: bool,
}

#[derive(Clone, Copy, Default)]
struct Subscriber {
    epoch: u64,
    /// The last offset that came.
    last: u64,
}

struct Sent {
    offset: u64,
    payload: Vec<u8>,
    missing: usize,
}

impl Audience {
    pub(super) fn new(options: &Options, server: SocketAddr, side: Side) -> io::Result<Self> {
        let dialogue = Dialogue::new(Transport::WebSocket);
        let mut hello = Vec::new();
        let first = Hello { resumable: false, ..Hello::new(FORMAT) };
        dialogue.say(&mut hello, &ClientMessage::Hello(first));
        let opening = match side {
            Side::Bare => Vec::new(),
            Side::Node => dialogue.opening(false),
        };
        let network = if side == Side::Bare { 30 } else { 40 };
        let members = Members {
            dialogue,
            side,
            opening: opening.into(),
            hello: hello.into(),
            subscribers: vec![Subscriber::default(); options.subscribers],
            bytes: options.bytes,
            sent: VecDeque::new(),
            last: 0,
            ready: 0,
            published: 0,
            returned: Returned::default(),
            compared: 0,
            corrupt: options.corrupt_one && side == Side::Node,
        };
        let crowd = Crowd::new(server, dialogue, network)?;
        Ok(Self { crowd, members, compared: 0, fault: None })
    }

    /// Connects everyone.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        let publisher = self.members.subscribers.len();
        self.open(0..publisher)?;
        // The last to come, by which the baseline knows it.
        self.open(publisher..publisher + 1)
    }

    fn open(&mut self, clients: std::ops::Range<usize>) -> io::Result<()> {
        self.members.ready = 0;
        let all = clients.len();
        for (opened, client) in clients.enumerate() {
            self.crowd.open(client, &self.members.opening)?;
            self.until(|members| members.ready + OPENING_MAX > opened)?;
        }
        self.until(|members| members.ready == all)
    }

    /// Publishes the next payload.
    pub(super) fn publish(&mut self) -> io::Result<()> {
        self.publish_asking(None)
    }

    fn publish_asking(&mut self, request: Option<RequestNumber>) -> io::Result<()> {
        let members = &mut self.members;
        members.last += 1;
        let offset = members.last;
        let payload = payload(offset, members.bytes);
        let mut out = Vec::new();
        match members.side {
            Side::Node => {
                let channel = CHANNEL.into();
                let message =
                    ClientMessage::Publish(client::Publish { request, channel, payload: &payload });
                members.dialogue.say(&mut out, &message);
            }
            Side::Bare => {
                let (mut body, user) = (Vec::new(), None);
                let message = ServerMessage::Publication(server::Publication {
                    channel: 1,
                    offset,
                    user,
                    payload: (&payload).into(),
                });
                message.encode(FORMAT, &mut body);
                let mut frame = Vec::new();
                playfield_websocket::encode(&mut frame, Opcode::Binary, &body, None);
                let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&frame);
            }
        }
        let missing = members.subscribers.len();
        members.sent.push_back(Sent { offset, payload, missing });
        let publisher = members.subscribers.len();
        self.crowd.send(publisher, &out.into())
    }

    /// Waits until the last publication has reached someone, and not too many are on their way.
    pub(super) fn wait_for_first(&mut self) -> io::Result<()> {
        let all = self.members.subscribers.len();
        self.until(|members| {
            members.sent.len() < ON_THEIR_WAY_MAX
                && members.sent.back().is_none_or(|sent| sent.missing < all)
        })
    }

    /// Waits until all publications have reached everyone.
    pub(super) fn wait_for_all(&mut self) -> io::Result<()> {
        self.until(|members| members.sent.is_empty())
    }

    /// Cuts all subscribers off, publishes this many messages, and has them come back.
    pub(super) fn come_back(&mut self, publications: u64) -> io::Result<Returned> {
        let all = self.members.subscribers.len();
        for client in 0..all {
            self.crowd.cut(client);
        }
        self.members.published = 0;
        self.members.returned = Returned::default();
        for _ in 0..publications {
            self.publish_asking(Some(RequestNumber(1)))?;
        }
        self.until(|members| members.published == publications)?;
        let (began, compared) = (Instant::now(), self.members.compared);
        self.open(0..all)?;
        self.until(|members| members.subscribers.iter().all(|of| of.last == members.last))?;
        self.members.sent.clear();
        let members = &mut self.members;
        let missed = |of: &Subscriber| members.last - of.last;
        members.returned.lost += members.subscribers.iter().map(missed).sum::<u64>();
        members.returned.time = began.elapsed();
        members.returned.replayed = members.compared - compared;
        Ok(members.returned)
    }

    /// Lets things happen until this is so, or nothing comes any more.
    fn until(&mut self, is_so: impl Fn(&Members) -> bool) -> io::Result<()> {
        let mut ends = Instant::now() + PATIENCE;
        while self.fault.is_none() && !is_so(&self.members) {
            let before = (self.members.compared, self.members.ready);
            if let Err(error) = self.crowd.turn(Duration::from_millis(100), &mut self.members) {
                self.fault = Some(error.to_string());
            }
            if before != (self.members.compared, self.members.ready) {
                ends = Instant::now() + PATIENCE;
            } else if Instant::now() > ends {
                self.fault = Some("nothing comes any more".to_owned());
            }
        }
        self.compared = self.members.compared;
        Ok(())
    }
}

impl Listens for Members {
    fn hear(&mut self, client: usize, heard: Frame<'_>) -> io::Result<Option<Rc<[u8]>>> {
        let Frame::Message(body) = heard else { return Ok(Some(Rc::clone(&self.hello))) };
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Publication(server::Publication { offset, payload, .. }) => {
                self.publication(client, offset, &payload).map(|()| None)
            }
            ServerMessage::Welcome(_)
                if client == self.subscribers.len() || self.side == Side::Bare =>
            {
                self.ready += 1;
                Ok(None)
            }
            ServerMessage::Welcome(_) => {
                let Subscriber { epoch, last } = self.subscribers[client];
                let since = (epoch > 0).then_some(Position { epoch, offset: last });
                let (request, channel) = (RequestNumber(1), CHANNEL.into());
                let message = ClientMessage::Subscribe(client::Subscribe {
                    request,
                    channel,
                    since,
                    presence: false,
                });
                let mut out = Vec::new();
                self.dialogue.say(&mut out, &message);
                Ok(Some(out.into()))
            }
            ServerMessage::Subscribed(server::Subscribed { epoch, offset, recovered, .. }) => {
                self.ready += 1;
                let subscriber = &mut self.subscribers[client];
                if subscriber.epoch > 0 {
                    let is_same = (subscriber.epoch, subscriber.last) == (epoch, offset);
                    if recovered && !is_same {
                        return Err(wrong("recovered, but from elsewhere"));
                    }
                    self.returned.recovered += u64::from(recovered);
                    self.returned.flagged += u64::from(!recovered);
                }
                *subscriber = Subscriber { epoch, last: offset };
                Ok(None)
            }
            ServerMessage::Published(server::Published { offset, .. }) => {
                self.published += 1;
                if offset > self.last { Err(wrong("an offset from the future")) } else { Ok(None) }
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                let mut out = Vec::new();
                self.dialogue.pong(&mut out, nonce);
                Ok(Some(out.into()))
            }
            other => Err(wrong(&format!("not expected now: {other:?}"))),
        }
    }
}

impl Members {
    fn publication(&mut self, client: usize, offset: u64, payload: &[u8]) -> io::Result<()> {
        let Some(subscriber) = self.subscribers.get_mut(client) else {
            return Err(wrong("a publication reached the publisher, which has not subscribed"));
        };
        if offset != subscriber.last + 1 {
            let text = format!("publication {offset} came after {}", subscriber.last);
            return Err(wrong(&text));
        }
        subscriber.last = offset;
        let first = self.sent.front().map_or(0, |sent| sent.offset);
        let at = offset.checked_sub(first).and_then(|at| usize::try_from(at).ok());
        let Some(sent) = at.and_then(|at| self.sent.get_mut(at)) else {
            return Err(wrong(&format!("publication {offset} is not expected")));
        };
        if sent.payload != payload || std::mem::take(&mut self.corrupt) {
            return Err(wrong(&format!("publication {offset} is not what was published")));
        }
        self.compared += 1;
        sent.missing -= 1;
        while self.sent.front().is_some_and(|sent| sent.missing == 0) {
            self.sent.pop_front();
        }
        Ok(())
    }
}

/// What the baseline says to each connection.
pub(super) fn bare_welcome() -> Vec<u8> {
    let welcome = ServerMessage::Welcome(server::Welcome {
        protocol: playfield_wire::PROTOCOL,
        session: 1,
        heartbeat_ms: 30_000,
        max_message_bytes: 1 << 20,
        grace_ms: 0,
        resume: Vec::new().into(),
        resumed: None,
    });
    let (mut body, mut frame) = (Vec::new(), Vec::new());
    welcome.encode(FORMAT, &mut body);
    playfield_websocket::encode(&mut frame, Opcode::Binary, &body, None);
    frame
}

/// What is published at an offset.
fn payload(offset: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (offset.wrapping_mul(0x9e37_79b9) >> (at % 24)) as u8).collect()
}
