//! HTTP on a connection: requests are parsed here, pages and errors answered, and everything else
//! handed to the worker. Answers leave in the order of the requests.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_http::{Head, Limits, Parser, Response, Sending};

use crate::addresses::Crowded;
use crate::config::Config;
use crate::http::{Found, Full, Hold};
use crate::node::Node;
use crate::proxy::{Client, forwarded};
use crate::shard::connection::half_closed::HalfClosed;

/// An HTTP connection.
pub(crate) struct Http {
    pub(in crate::shard) parser: Parser,
    pub(in crate::shard) peer: Client,
    /// Requests that are not answered to their end, oldest first.
    pub(in crate::shard) exchanges: VecDeque<Exchange>,
    /// How many requests there were.
    pub(in crate::shard) begun: u64,
    /// Since when a request is coming in, if one is.
    pub(in crate::shard) receives_since: Option<Duration>,
    /// When something was last answered or written.
    pub(in crate::shard) active: Duration,
    /// The client waits for `100 Continue`, behind the answers before it.
    pub(in crate::shard) owes_continue: bool,
    /// No request is read any more.
    pub(in crate::shard) ends: bool,
    /// The client has ended its input.
    pub(in crate::shard) half_closed: Option<HalfClosed>,
}

/// A request that is not answered to its end.
pub(in crate::shard) struct Exchange {
    pub(in crate::shard) number: u64,
    /// When it is answered with an error instead.
    pub(in crate::shard) by: Duration,
    pub(in crate::shard) sending: Sending<'static>,
    /// The bytes to be written next.
    pub(in crate::shard) bytes: Vec<u8>,
    /// Whether nothing follows those bytes.
    pub(in crate::shard) is_done: bool,
    /// Whether a part of the answer is written.
    pub(in crate::shard) has_begun: bool,
    /// Ends the work for it when dropped.
    pub(in crate::shard) hold: Option<Hold>,
}

impl Http {
    pub(crate) fn new(config: &Config, peer: Client, now: Duration) -> Self {
        let limits = Limits {
            head_bytes_max: config.http_head_bytes_max,
            body_bytes_max: config.http_body_bytes_max,
            ..Limits::default()
        };
        Self {
            parser: Parser::new(limits),
            peer,
            exchanges: VecDeque::new(),
            begun: 0,
            receives_since: None,
            active: now,
            owes_continue: false,
            ends: false,
            half_closed: None,
        }
    }

    /// Nothing more comes in.
    pub(in crate::shard) fn end_input(&mut self) {
        self.ends = true;
        self.owes_continue = false;
        self.receives_since = None;
    }

    /// Whether all that the client sent before its FIN is read.
    pub(in crate::shard) fn has_hung_up(&self) -> bool {
        self.half_closed.is_some_and(|half_closed| half_closed.is_read)
    }

    /// How much memory its unfinished request takes, and the answers that wait.
    pub(super) fn buffered_bytes(&self) -> usize {
        let answers: usize = self.exchanges.iter().map(|exchange| exchange.bytes.capacity()).sum();
        self.parser.buffered_bytes() + answers
    }

    /// Whether a whole head has come that asks for a WebSocket.
    pub(in crate::shard) fn upgrades(&self) -> bool {
        self.parser.head().is_some_and(|head| head.upgrades_to_websocket())
    }

    /// Something was written.
    pub(crate) fn wrote(&mut self, now: Duration) {
        self.active = now;
    }

    /// Everything is written: a file's next part is asked for, which has its time from here on.
    pub(in crate::shard) fn drained(&mut self, now: Duration, answer_timeout: Duration) {
        self.active = now;
        if let Some(front) = self.exchanges.front_mut()
            && let Some(hold) = &front.hold
        {
            hold.pull();
            if front.has_begun {
                front.by = now + answer_timeout;
            }
        }
    }

    pub(in crate::shard) fn push(
        &mut self,
        sending: Sending<'static>,
        by: Duration,
    ) -> &mut Exchange {
        self.begun += 1;
        self.exchanges.push_back(Exchange {
            number: self.begun,
            by,
            sending,
            bytes: Vec::new(),
            is_done: false,
            has_begun: false,
            hold: None,
        });
        self.exchanges.back_mut().expect("it was just pushed")
    }
}

impl Exchange {
    /// Whether an interim response may come before its answer.
    pub(in crate::shard) fn takes_interim(&self) -> bool {
        !self.has_begun && !self.sending.is_http_1_0
    }

    pub(in crate::shard) fn fill(&mut self, write: impl FnOnce(&mut Vec<u8>, &Sending<'_>)) {
        write(&mut self.bytes, &self.sending);
        self.is_done = true;
        self.hold = None;
    }
}

pub(in crate::shard) fn unavailable(text: &str) -> Response {
    Response::error(503, format!("{text}\n"))
}

/// The answer to a request that is refused because of a limit.
pub(in crate::shard) fn overload(full: Full, config: &Config) -> Response {
    let response = match full {
        Full::Node => {
            let max = config.http_requests_max;
            unavailable(&format!(
                "http_requests_max: {max} requests are waiting already; try again"
            ))
        }
        Full::Address => {
            let max = config.http_requests_per_address_max;
            let text = format!(
                "http_requests_per_address_max: {max} requests from your address are waiting \
                 already; try again when some are answered\n"
            );
            Response::error(429, text)
        }
        Full::Memory => unavailable(
            "peer_bytes_max or peer_bytes_per_address_max: clients hold too much memory; try again",
        ),
    };
    response.with_header("Retry-After", "1")
}

/// The answer to a WebSocket handshake that is refused because of a limit.
pub(in crate::shard) fn crowded(why: Crowded) -> &'static str {
    match why {
        Crowded::Connections => {
            "connections_per_address_max: too many connections of your address\n"
        }
        Crowded::Handshakes => {
            "handshakes_per_address_max: too many clients of your address have not said hello\n"
        }
        Crowded::AllHandshakes => "handshakes_max: too many clients have not said hello\n",
    }
}

/// The answer where there is nothing that could give one; `None` where there is.
pub(in crate::shard) fn refusal(found: &Found<'_>) -> Option<Response> {
    Some(match found {
        Found::Page(_) | Found::Route { .. } | Found::File { .. } => return None,
        Found::Options { allow } => Response::new(204).with_header("Allow", allow.clone()),
        Found::NotAllowed { allow } => {
            Response::error(405, format!("this path takes {allow} only\n"))
                .with_header("Allow", allow.clone())
        }
        Found::Nothing => Response::error(404, "There is no such page here.\n"),
        Found::BadPath => Response::error(400, "the path is not validly encoded\n"),
    })
}

/// How often the timeouts of a connection are checked, and so how late they may be noticed.
pub(crate) fn period(config: &Config) -> Duration {
    let timeouts =
        [config.http_request_timeout(), config.http_answer_timeout(), config.http_idle_timeout()];
    timeouts.into_iter().min().unwrap_or_default() / 4
}

/// The client that sent a request: the one that a trusted proxy names, or else the peer.
pub(in crate::shard) fn client_of(node: &Node, peer: Client, head: &Head) -> Client {
    if !node.addresses.is_proxy(peer.address.ip()) {
        return peer;
    }
    let is_named = |(name, _): &(&str, &[u8])| name.eq_ignore_ascii_case("x-forwarded-for");
    let headers: Vec<&[u8]> = head.headers().filter(is_named).map(|(_, value)| value).collect();
    forwarded(peer, headers.into_iter(), |ip| node.addresses.is_proxy(ip))
}
