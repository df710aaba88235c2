//! The HTTP server of a node, on the control thread's runtime.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use super::connection::{End, Protocol};
use super::handover::{Handed, OpenConnection};
use super::limits::{Front, Limits, Origin};
use super::private::PrivateHttp;
use super::progress::Progress;
use super::site::Built;
use super::stream::Stream;
use crate::handle::NodeHandle;
use crate::shard::connection::address::Unnamed;
use crate::shard::connection::http::HandedOver;

/// An estimate of the memory of a connection without TLS: its buffers and its state in hyper.
const CONNECTION_BYTES: usize = 12 << 10;

/// A running server. Dropping it ends its connections once their requests are answered.
pub(crate) struct HttpServer {
    ends: watch::Sender<bool>,
    /// Disconnected once no connection is left.
    all_ended: Receiver<Infallible>,
}

/// Serves the connections that shards hand over, until the server ends.
pub(crate) fn serve(
    runtime: &Handle,
    handle: NodeHandle,
    site: Built,
    handed: UnboundedReceiver<Handed>,
    private: Vec<PrivateHttp>,
) -> HttpServer {
    let protocol = Protocol::new(&handle.node().config);
    let Built { pages, router } = site;
    let unnamed = Mutex::new(Unnamed::default());
    let front = Arc::new(Front { handle, pages, router, unnamed, has_rooms: true });
    let (ends, ending) = watch::channel(false);
    let (lives, all_ended) = sync_channel(1);
    let shared = Shared { front, protocol, ending, _lives: lives };
    for private in private {
        runtime.spawn(shared.clone().serve_private(private));
    }
    runtime.spawn(shared.run(handed));
    HttpServer { ends, all_ended }
}

impl HttpServer {
    /// Takes no more requests, and waits until those that were taken are answered, but not longer
    /// than this. Returns whether all are.
    pub(crate) fn end(self, wait: Duration) -> bool {
        let _ = self.ends.send(true);
        self.all_ended.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected)
    }
}

/// The state that all connections share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) front: Arc<Front>,
    protocol: Protocol,
    pub(super) ending: watch::Receiver<bool>,
    _lives: SyncSender<Infallible>,
}

impl Shared {
    async fn run(mut self, mut handed: UnboundedReceiver<Handed>) {
        loop {
            let next = tokio::select! {
                biased;
                next = handed.recv() => next,
                _ = self.ending.wait_for(|ends| *ends) => None,
            };
            let Some(mut handed) = next else { return };
            let socket = handed.socket.take().map_or_else(|| received(&handed.open), Ok);
            match socket.and_then(TcpStream::from_std) {
                Ok(socket) => drop(tokio::spawn(self.clone().serve(socket, handed))),
                Err(error) => {
                    log::warn!("a connection was lost on the way to its HTTP server: {error}");
                }
            }
        }
    }

    /// Serves a connection, such as one that a shard has handed over.
    pub(super) async fn serve(self, socket: TcpStream, handed: Handed) {
        let Handed { tls, input, peer, mut tally, open, .. } = handed;
        tally.holds(CONNECTION_BYTES + tls.as_ref().map_or(0, |tls| tls.bytes()));
        let published = Arc::clone(&open.published);
        let progress = Arc::new(Progress::new());
        let head_bytes_max = self.front.handle.node().config.http.head_bytes;
        let stream = Stream::new(
            socket,
            tls,
            input,
            head_bytes_max,
            Arc::clone(&progress),
            Arc::clone(&published),
        );
        let origin = Arc::new(Origin::new(peer, tally, progress, published));
        let limits = Limits { front: self.front, origin: Arc::clone(&origin) };
        match self.protocol.serve(stream, limits, self.ending).await {
            End::Closed | End::Late => {}
            End::Refused(status) => {
                if status == 431 {
                    open.published.http.heads_too_large.fetch_add(1, Ordering::Relaxed);
                }
            }
            End::Returns(stream, behind) => {
                if let Some((mut input, tally)) = origin.take() {
                    let (socket, tls, unread) = stream.into_parts();
                    input.extend_from_slice(&behind);
                    input.extend_from_slice(&unread);
                    open.give_back(socket, tls, HandedOver { peer, tally, input });
                }
            }
        }
    }
}

/// The socket of a connection that came through the passage between descriptor tables.
fn received(open: &OpenConnection) -> io::Result<std::net::TcpStream> {
    let shared = &open.shared;
    let none = || io::Error::other("there is no passage between descriptor tables");
    shared.tables.as_deref().ok_or_else(none)?.receive(shared.mailboxes.len())
}
