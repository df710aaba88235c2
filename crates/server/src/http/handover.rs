//! Connections on their way from a shard to the control thread, and back.

use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::addresses::Tally;
use crate::event_loop::{Layer, SharedRuntime};
use crate::handle::NodeHandle;
use crate::mailbox::Parcel;
use crate::proxy::Client;
use crate::shard::connection::http::HandedOver;
use crate::stats::Published;
use crate::tls::TlsConnection;

/// A connection that speaks HTTP.
pub(crate) struct Handed {
    /// `None` if it comes through the passage between descriptor tables.
    pub(crate) socket: Option<TcpStream>,
    pub(crate) tls: Option<Box<TlsConnection>>,
    /// Bytes that were read of it.
    pub(crate) input: Vec<u8>,
    pub(crate) peer: Client,
    pub(crate) tally: Tally,
    pub(crate) open: OpenConnection,
}

/// An open connection of the control thread, in the node's counters until it is dropped.
pub(crate) struct OpenConnection {
    pub(crate) shared: Arc<SharedRuntime>,
    /// The shard that it comes from.
    shard: usize,
    /// The counters of that shard.
    pub(crate) published: Arc<Published>,
    /// A shard has it again, and counts it.
    is_back: bool,
}

impl OpenConnection {
    /// Takes over a connection that a shard has counted.
    pub(crate) fn new(shared: Arc<SharedRuntime>, shard: usize, published: Arc<Published>) -> Self {
        published.http.connections.fetch_add(1, Ordering::Relaxed);
        Self { shared, shard, published, is_back: false }
    }

    /// Counts a connection that the control thread has accepted itself; `None` if there are too many.
    pub(super) fn accept(handle: &NodeHandle) -> Option<Self> {
        let shared = handle.shared();
        let has_space = shared.counts_connection();
        let (shared, published) = (Arc::clone(shared), handle.published_by(0));
        has_space.then(|| Self::new(shared, 0, published))
    }

    /// Gives a connection back to its shard. If that takes no more, the connection ends.
    pub(crate) fn give_back(
        mut self,
        socket: tokio::net::TcpStream,
        tls: Option<Box<TlsConnection>>,
        http: HandedOver,
    ) {
        let socket = match socket.into_std() {
            Ok(socket) => mio::net::TcpStream::from_std(socket),
            Err(error) => return log::warn!("a connection can't return to its shard: {error}"),
        };
        let layer = tls.map_or(Layer::Plain, Layer::Tls);
        let mailbox = &self.shared.mailboxes[self.shard];
        let pushed = match &self.shared.tables {
            None => mailbox.push(Parcel::Returned { socket: Some(socket), layer, http }),
            Some(tables) if !tables.takes(self.shard) => return,
            Some(tables) => {
                let parcel = Parcel::Returned { socket: None, layer, http };
                let pushed = mailbox.push_with(parcel, || tables.send(self.shard, &socket).is_ok());
                if pushed.is_err() {
                    tables.gives_back(self.shard);
                }
                pushed
            }
        };
        self.is_back = pushed.is_ok();
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.published.http.connections.fetch_sub(1, Ordering::Relaxed);
        if !self.is_back {
            self.shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self.shared.gives_back(self.shared.mailboxes.len());
    }
}

/// The shards' end of the queue. `limits.connections.total` bounds it.
pub(crate) struct Handover(Mutex<UnboundedSender<Handed>>);

impl Handover {
    /// A queue, and the control thread's end of it.
    pub(crate) fn new() -> (Self, UnboundedReceiver<Handed>) {
        let (sender, receiver) = unbounded_channel();
        (Self(Mutex::new(sender)), receiver)
    }

    /// Puts a connection in, if `send` succeeds as well: what `send` sends arrives in the order of
    /// the connections.
    pub(crate) fn push_with(&self, handed: Handed, send: impl FnOnce() -> bool) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if send() {
            // After the node's end it is closed.
            let _ = sender.send(handed);
        }
    }
}
