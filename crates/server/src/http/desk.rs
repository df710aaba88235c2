//! Where shards hand in what the worker is to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use playfield_http::{Request, Sending};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{mpsc, oneshot};

use crate::shard::keys::ConnectionKey;

/// Where the answer to a request goes.
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

/// What follows a part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Another part.
    More,
    /// It was the last.
    Done,
    /// It can't be completed: the connection has to end.
    Broken,
}

/// A request for the worker. While it is under way it counts against `http_requests_max`.
pub(crate) struct Call {
    pub(crate) answer: Answer,
    pub(crate) request: Request,
    pub(crate) work: Work,
    pub(crate) under_way: UnderWay,
}

/// What is to be done.
pub(crate) enum Work {
    /// Calls the handler of the route with this number, until the client is gone.
    Route { number: usize, gone: oneshot::Receiver<()> },
    /// Sends a file of the folder with this number. Each part after the first is asked for.
    File { folder: usize, pulls: mpsc::Receiver<()> },
}

/// What a connection holds while a request is under way. The work ends when it is dropped.
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

/// What the worker hears.
pub(crate) enum Order {
    Call(Box<Call>),
    Stop,
}

/// Takes requests for the worker.
pub(crate) struct Desk {
    orders: UnboundedSender<Order>,
    under_way: Arc<AtomicUsize>,
    requests_max: usize,
}

/// Counts one request.
pub(crate) struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Desk {
    /// A desk, and the worker's end of it. The queue's bound is `requests_max`.
    pub(crate) fn new(requests_max: usize) -> (Self, UnboundedReceiver<Order>) {
        let (orders, ordered) = unbounded_channel();
        (Self { orders, under_way: Arc::default(), requests_max }, ordered)
    }

    /// Counts a request in; `None` at `http_requests_max`.
    pub(crate) fn admit(&self) -> Option<UnderWay> {
        if self.under_way.fetch_add(1, Ordering::Relaxed) >= self.requests_max {
            self.under_way.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(UnderWay(Arc::clone(&self.under_way)))
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
