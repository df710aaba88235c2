//! The subscribers and the publisher.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use playfield_wire::RequestNumber;
use playfield_wire::client::{self, ClientMessage, Position};
use playfield_wire::server::{self, ServerMessage};

use super::{CHANNEL, Options};
use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Frame, Transport};
use crate::harness::fleet::{Fleet, Links, Script, wrong};
use crate::harness::source::Source;

/// The number of connections opened at once.
const OPENING_MAX: usize = 64;
/// The most publications that may be on their way, if subscribers read more slowly than the server
/// writes.
const ON_THEIR_WAY_MAX: usize = 4;
const WS: Dialogue = Dialogue::new(Transport::WebSocket);

/// The state of all subscribers after a cut.
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

/// Everyone, and what is known of each.
pub(super) struct Audience {
    side: Side,
    /// The subscribers. Who publishes comes after them.
    subscribers: Vec<Subscriber>,
    bytes: usize,
    /// Publications that have not reached everyone.
    sent: VecDeque<Sent>,
    /// The last offset.
    last: u64,
    /// The number of publications that were acknowledged.
    published: u64,
    returned: Returned,
    pub(super) compared: u64,
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
    /// Connects everyone.
    pub(super) fn fleet(
        options: &Options,
        server: SocketAddr,
        side: Side,
    ) -> io::Result<Fleet<Self>> {
        let audience = Self {
            side,
            subscribers: vec![Subscriber::default(); options.subscribers],
            bytes: options.bytes,
            sent: VecDeque::new(),
            last: 0,
            published: 0,
            returned: Returned::default(),
            compared: 0,
            corrupt: options.corrupt_one && side == Side::Node,
        };
        let source = Source::Network(if side == Side::Bare { 30 } else { 40 });
        let mut fleet = Fleet::new(audience, server, source, None)?;
        let publisher = options.subscribers;
        fleet.connect(0..publisher, OPENING_MAX);
        // The last to come, by which the baseline knows it.
        fleet.connect(publisher..publisher + 1, OPENING_MAX);
        Ok(fleet)
    }

    /// Publishes the next payload.
    pub(super) fn publish(
        &mut self,
        request: Option<RequestNumber>,
        links: &mut Links,
    ) -> io::Result<()> {
        self.last += 1;
        let offset = self.last;
        let payload = payload(offset, self.bytes);
        let out = match self.side {
            Side::Node => {
                let channel = CHANNEL.into();
                WS.framed(&ClientMessage::Publish(client::Publish {
                    request,
                    channel,
                    payload: &payload,
                }))
            }
            Side::Bare => {
                let frame = WS.answer_of(&ServerMessage::Publication(server::Publication {
                    channel: 1,
                    offset,
                    user: None,
                    payload: (&payload).into(),
                }));
                let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
                [&length.to_le_bytes()[..], &frame].concat()
            }
        };
        let missing = self.subscribers.len();
        self.sent.push_back(Sent { offset, payload, missing });
        links.send(self.subscribers.len(), &out).map(drop)
    }

    /// Returns whether the last publication has reached someone, and not too many are on their way.
    pub(super) fn takes_more(&self) -> bool {
        let all = self.subscribers.len();
        self.sent.len() < ON_THEIR_WAY_MAX && self.sent.back().is_none_or(|sent| sent.missing < all)
    }

    /// Returns whether all publications have reached everyone.
    pub(super) fn has_all(&self) -> bool {
        self.sent.is_empty()
    }

    fn hear(&mut self, client: usize, frame: Frame<'_>, links: &mut Links) -> io::Result<()> {
        let Frame::Message(body) = frame else {
            return links.send(client, &WS.reply(&frame, false)).map(drop);
        };
        match ServerMessage::decode(FORMAT, body).map_err(io::Error::other)? {
            ServerMessage::Publication(server::Publication { offset, payload, .. }) => {
                self.publication(client, offset, &payload)?;
            }
            ServerMessage::Welcome(_)
                if client == self.subscribers.len() || self.side == Side::Bare =>
            {
                links.ready += 1;
            }
            ServerMessage::Welcome(_) => {
                let Subscriber { epoch, last } = self.subscribers[client];
                let subscribe = client::Subscribe {
                    request: RequestNumber(1),
                    channel: CHANNEL.into(),
                    since: (epoch > 0).then_some(Position { epoch, offset: last }),
                    presence: false,
                };
                links.send(client, &WS.framed(&ClientMessage::Subscribe(subscribe)))?;
            }
            ServerMessage::Subscribed(server::Subscribed { epoch, offset, recovered, .. }) => {
                links.ready += 1;
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
            }
            ServerMessage::Published(server::Published { offset, .. }) => {
                self.published += 1;
                if offset > self.last {
                    return Err(wrong("an offset from the future"));
                }
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                links.send(client, &WS.pong(nonce))?;
            }
            other => return Err(wrong(&format!("not expected now: {other:?}"))),
        }
        Ok(())
    }

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

/// Cuts all subscribers off, publishes this many messages, and has them come back.
pub(super) fn come_back(fleet: &mut Fleet<Audience>, publications: u64) -> io::Result<Returned> {
    let all = fleet.script.subscribers.len();
    (0..all).for_each(|client| fleet.links.close(client));
    fleet.script.published = 0;
    fleet.script.returned = Returned::default();
    for _ in 0..publications {
        fleet.script.publish(Some(RequestNumber(1)), &mut fleet.links)?;
    }
    fleet.until(|audience, _| audience.published == publications);
    let (began, compared) = (Instant::now(), fleet.script.compared);
    fleet.connect(0..all, OPENING_MAX);
    fleet.until(|audience, _| audience.subscribers.iter().all(|of| of.last == audience.last));
    let audience = &mut fleet.script;
    audience.sent.clear();
    let missed = |of: &Subscriber| audience.last - of.last;
    audience.returned.lost += audience.subscribers.iter().map(missed).sum::<u64>();
    audience.returned.time = began.elapsed();
    audience.returned.replayed = audience.compared - compared;
    Ok(audience.returned)
}

impl Script for Audience {
    fn opened(&mut self, client: usize, links: &mut Links) -> io::Result<()> {
        if self.side == Side::Bare {
            return Ok(());
        }
        links.send(client, &WS.opening(false)).map(drop)
    }

    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize> {
        WS.each(input, |frame| self.hear(client, frame, links))
    }

    fn progress(&self) -> u64 {
        self.compared + self.published
    }
}

/// The publication at an offset.
fn payload(offset: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|at| (offset.wrapping_mul(0x9e37_79b9) >> (at % 24)) as u8).collect()
}
