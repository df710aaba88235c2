//! The queue of requests from shards to the worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use playfield_http::{Request, Sending};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{mpsc, oneshot};

use crate::addresses::{Addresses, RequestUnderWay};
use crate::config::Config;
use crate::counted::Counted;
use crate::proxy::Client;
use crate::shard::keys::ConnectionKey;

/// The destination of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    /// The connection's number for the request.
    pub(crate) exchange: u64,
    pub(crate) head_only: bool,
    pub(crate) keeps_alive: bool,
    pub(crate) is_http_1_0: bool,
}

impl Answer {
    /// How the response is sent.
    pub(crate) fn sending<'a>(&self, date: Option<&'a str>) -> Sending<'a> {
        let &Self { head_only, keeps_alive, is_http_1_0, .. } = self;
        Sending { head_only, keeps_alive, is_http_1_0, date }
    }
}

/// A part of an answer, on its way to the connection.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    pub(crate) then: Then,
}

/// How an answer goes on after a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Another part.
    More,
    /// Nothing: it was the last.
    Done,
    /// The answer can't be completed: the connection has to end.
    Broken,
}

/// A request for the worker. While it is under way it counts against `http_requests_max` and
/// `http_requests_per_address_max`.
pub(crate) struct Call {
    pub(crate) answer: Answer,
    pub(crate) request: Request,
    pub(crate) work: Work,
    pub(crate) under_way: UnderWay,
}

/// A task for the worker.
pub(crate) enum Work {
    /// Calls the handler of the route with this number, until the client is gone.
    Route { number: usize, gone: oneshot::Receiver<()> },
    /// Sends a file of the folder with this number. Each part after the first is asked for.
    File { folder: usize, pulls: mpsc::Receiver<()> },
}

/// A connection's hold on a request that is under way. The work ends when it is dropped.
#[derive(Debug)]
pub(crate) enum Hold {
    Route { _gone: oneshot::Sender<()> },
    File { pulls: mpsc::Sender<()> },
}

impl Hold {
    /// Asks for the next part of the answer.
    pub(crate) fn pull(&self) {
        if let Self::File { pulls } = self {
            // It was asked for already.
            let _ = pulls.try_send(());
        }
    }
}

/// A message to the worker.
pub(crate) enum Order {
    Call(Box<Call>),
    Stop,
}

/// Takes requests for the worker.
pub(crate) struct Desk {
    orders: UnboundedSender<Order>,
    load: Arc<AtomicUsize>,
    requests_max: usize,
    addresses: Arc<Addresses>,
}

/// Counts one request.
pub(crate) struct UnderWay {
    _of_node: Counted,
    _of_address: RequestUnderWay,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// `http_requests_max` requests are under way.
    Node,
    /// `http_requests_per_address_max` requests of the client's address are.
    Address,
    /// With its body, clients would hold more than `peer_bytes_max`, or those of the address more
    /// than `peer_bytes_per_address_max`.
    Memory,
}

impl Desk {
    /// A desk, and the worker's end of it. The queue's bound is `http_requests_max`.
    pub(crate) fn new(config: &Config) -> (Self, UnboundedReceiver<Order>) {
        let (orders, ordered) = unbounded_channel();
        let desk = Self {
            orders,
            load: Arc::default(),
            requests_max: config.http_requests_max,
            addresses: Addresses::new(config),
        };
        (desk, ordered)
    }

    /// The limits by client address.
    pub(crate) fn addresses(&self) -> &Arc<Addresses> {
        &self.addresses
    }

    /// Counts a request from this client, whose body has `bytes` bytes.
    pub(crate) fn admit(
        &self,
        client: Client,
        bytes: usize,
        now: Duration,
    ) -> Result<UnderWay, Full> {
        let of_address = self.addresses.of(client, now).admit_request(bytes)?;
        let of_node = Counted::new(&self.load, self.requests_max).ok_or(Full::Node)?;
        Ok(UnderWay { _of_node: of_node, _of_address: of_address })
    }

    /// How many requests are under way.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Hands in a request; `false` if nobody is there any longer.
    pub(crate) fn submit(&self, call: Call) -> bool {
        self.orders.send(Order::Call(Box::new(call))).is_ok()
    }

    /// Ends the worker.
    pub(crate) fn stop(&self) {
        let _ = self.orders.send(Order::Stop);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::{Desk, Full};
    use crate::config::Config;
    use crate::proxy::Client;

    fn client(text: &str) -> Client {
        Client::named(SocketAddr::new(text.parse().unwrap(), 1))
    }

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let config =
            Config { http_requests_max: 5, http_requests_per_address_max: 2, ..Config::default() };
        let (desk, _orders) = Desk::new(&config);
        let admit = |text| desk.admit(client(text), 0, Duration::ZERO);
        let mut held = Vec::new();
        for (one, same) in [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1", "2001:db8::ffff:1")] {
            held.push(admit(one).ok().unwrap());
            held.push(admit(same).ok().unwrap());
            assert_eq!(admit(one).err(), Some(Full::Address));
        }
        held.push(admit("2001:db8:0:1::1").ok().unwrap());
        assert_eq!(admit("10.0.0.2").err(), Some(Full::Node));
        held.remove(0);
        held.push(admit("10.0.0.1").ok().unwrap());
        held.clear();
        assert_eq!(desk.load.load(Ordering::Relaxed), 0);
    }
}
