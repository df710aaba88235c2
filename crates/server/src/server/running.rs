//! A node that runs: what it tells about itself, and how it stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::cluster::Member;
use crate::control::ControlThreads;
use crate::event_loop::SharedRuntime;
use crate::handle::NodeHandle;
use crate::http::HttpServer;
use crate::kept_store::STORE_CLOSE_MAX;
use crate::node::Node;
use crate::pulse::Pulse;
use crate::reach;
use crate::stats::{Published, Stats};
use crate::tls::TlsContext;
use crate::watchdog::Leash;

/// The time that a shard may need for the turn it is in when a shutdown ends, beyond the time for
/// the shutdown.
const LAST_TURN: Duration = Duration::from_secs(1);

/// The time for which a shutdown waits for recordings.
const RECORDINGS_WAIT: Duration = Duration::from_secs(2);

/// A running node. Dropping it shuts it down, as [`shutdown`](Self::shutdown) does.
pub struct Running {
    pub(super) handle: NodeHandle,
    pub(super) http: Option<HttpServer>,
    pub(super) stopper: Stopper,
    pub(super) local_addr: SocketAddr,
    pub(super) service_addrs: Vec<SocketAddr>,
    pub(super) http_addrs: Vec<SocketAddr>,
    pub(super) published: Vec<Arc<Published>>,
    pub(super) node: Arc<Node>,
    pub(super) leash: Arc<Leash>,
    pub(super) watchdog: Option<JoinHandle<()>>,
    /// The thread that looks for new certificates.
    pub(super) reloader: Option<JoinHandle<()>>,
    pub(super) shards: Vec<JoinHandle<()>>,
    /// The node's part in a cluster.
    pub(super) member: Option<Member>,
    pub(super) words: Receiver<Word>,
    pub(super) control_threads: Option<ControlThreads>,
    pub(super) shutdown_timeout: Duration,
}

/// Stops a node from anywhere, such as from a handler of signals.
#[derive(Clone)]
pub struct Stopper {
    pub(super) shared: Arc<SharedRuntime>,
    pub(super) tells: SyncSender<Word>,
}

/// A message to a thread that waits for the node's end.
pub(crate) enum Word {
    /// A request to stop the node, with its reason.
    Stop(&'static str),
    /// A shard's thread has ended.
    Ended,
}

impl Stopper {
    /// Begins the shutdown: the node stops accepting connections, closes its rooms, waits for their
    /// end, and says goodbye to its clients. Does not wait itself.
    pub fn stop(&self) {
        self.stop_because("the program stops it");
    }

    /// Like [`stop`](Self::stop), with a reason for the log.
    pub fn stop_because(&self, why: &'static str) {
        self.shared.stops.store(true, Ordering::Release);
        // The thread that waits need not learn it twice.
        let _ = self.tells.try_send(Word::Stop(why));
        self.shared.gate.stop();
        self.shared.wake_all();
    }
}

impl Running {
    /// The address that it listens on for rooms, with the actual port. If it has neither room types
    /// nor anything to serve over HTTP, the address of its first service.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The URL at which a browser on this machine opens its pages. In a container, so does one
    /// outside, once the port is published under the same number.
    #[must_use]
    pub fn url(&self) -> String {
        reach::url(self.local_addr, self.stopper.shared.tls.is_some())
    }

    /// The addresses of its services, in the order in which they were added.
    #[must_use]
    pub fn service_addrs(&self) -> &[SocketAddr] {
        &self.service_addrs
    }

    /// The addresses of the routers of [`Server::http_on`](crate::Server::http_on), in the order in
    /// which they were added.
    #[must_use]
    pub fn http_addrs(&self) -> &[SocketAddr] {
        &self.http_addrs
    }

    /// The certificate that new TLS connections get, in DER; `None` without TLS. Clients have to be
    /// given a self-signed one to trust it.
    #[must_use]
    pub fn tls_certificate(&self) -> Option<Vec<u8>> {
        self.stopper.shared.tls.as_deref().map(TlsContext::certificate)
    }

    /// The node's counters, as of each shard's last turn.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.handle.stats()
    }

    /// A handle that reaches the node's rooms from anywhere.
    #[must_use]
    pub fn handle(&self) -> NodeHandle {
        self.handle.clone()
    }

    /// A handle that stops the node from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until the node is [stopped](Stopper::stop) or a shard fails, then shuts down as
    /// [`shutdown`](Self::shutdown) does.
    ///
    /// # Errors
    ///
    /// If a shard failed: it could not wait for its sockets, or it panicked. If the shutdown did
    /// not finish: rooms were dropped before they had ended or were saved, a thread is left behind,
    /// or the store has not written what it accepted.
    pub fn wait(mut self) -> io::Result<()> {
        let (ended, why) = match self.words.recv() {
            Ok(Word::Stop(why)) => (0, why),
            Ok(Word::Ended) if self.handle.is_replaced() => (1, "another process has taken over"),
            Ok(Word::Ended) => (1, "a shard has failed"),
            Err(_) => (0, "no shard is left"),
        };
        self.stop(why);
        let unfinished = self.join(ended);
        let failed = |published: &Arc<Published>| published.pulse.failed.load(Ordering::Relaxed);
        match self.published.iter().position(failed) {
            Some(index) => Err(io::Error::other(format!("shard {index} failed; see the log"))),
            None if unfinished.is_empty() => Ok(()),
            None => {
                let text = unfinished.join("; ");
                Err(io::Error::other(format!("the shutdown did not finish: {text}; see the log")))
            }
        }
    }

    /// Stops the node gracefully: it stops accepting connections, closes its rooms, waits for
    /// background work that they begin at their end, and then sends every client what is queued and
    /// `shutting_down`, for no longer than `timeouts.shutdown`.
    ///
    /// Returns when all threads have ended and the store is closed, so that its file can be opened
    /// again. It waits for the store up to 10 s more. If a room, an HTTP handler or background work
    /// does not return in time, its thread is left behind. What was not finished is logged;
    /// [`stop`](Stopper::stop) and [`wait`](Self::wait) return it.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Begins the shutdown.
    fn stop(&self, why: &str) {
        // The counters of the shards may lack a room that has just been created.
        let rooms = self.node.directory.count();
        let connections = self.stopper.shared.connections.load(Ordering::Relaxed);
        log::info!("the node stops, with {rooms} rooms and {connections} connections: {why}");
        self.stopper.stop();
    }

    /// Waits for all threads, `ended` of which are known to have ended; gives up on those that take
    /// too long. Returns what was not finished.
    fn join(&mut self, ended: usize) -> Vec<String> {
        let mut unfinished = Vec::new();
        let began = Instant::now();
        let deadline = began + self.shutdown_timeout + LAST_TURN;
        let mut missing = self.shards.len() - ended;
        if let Some(journal) = &self.node.journal {
            journal.ends_at(deadline + LAST_TURN);
        }
        while missing > 0 {
            match self.words.recv_timeout(left_until(deadline)) {
                Ok(Word::Ended) => missing -= 1,
                Ok(Word::Stop(_)) => {}
                // No thread is left that could report.
                Err(RecvTimeoutError::Disconnected) => missing = 0,
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        // This process ends the one that was to take over.
        self.stopper.shared.gate.wait_until_ended(Instant::now() + LAST_TURN);
        self.leash.end();
        self.node.asks.end();
        // Handlers that wait for rooms have their answers now. Others still have their time.
        if self.http.take().is_some_and(|http| !http.end(left_until(deadline))) {
            log::warn!("HTTP requests that are not answered are dropped");
        }
        let control = self.control_threads.take();
        // Streams without an end may have used the time; it needs some of its own.
        let control = control.and_then(|threads| threads.end(left_until(deadline).max(LAST_TURN)));
        // Both end with the leash, whatever the shards do.
        for thread in [self.watchdog.take(), self.reloader.take()].into_iter().flatten() {
            let _ = thread.join();
        }
        let shards = self.shards.drain(..).map(|thread| (thread, missing == 0));
        for (thread, has_ended) in shards.chain(control) {
            if has_ended || thread.is_finished() {
                // A panic was reported where it happened.
                let _ = thread.join();
            } else {
                let name = thread.thread().name().unwrap_or_default();
                let text = format!("the thread {name:?} does not end, and is left behind");
                log::error!("{text}");
                unfinished.push(text);
            }
        }
        let sum = |of: fn(&Pulse) -> &AtomicU64| {
            let all = self.published.iter();
            all.map(|published| of(&published.pulse).load(Ordering::Relaxed)).sum::<u64>()
        };
        let (undone, unsaved) =
            (sum(|pulse| &pulse.rooms_undone), sum(|pulse| &pulse.rooms_unsaved));
        if undone > 0 {
            let limit = self.shutdown_timeout;
            unfinished.push(format!(
                "rooms dropped before they had ended: {undone} (not saved: {unsaved}); raise \
                 timeouts.shutdown = {limit:?} or their closing_ms"
            ));
        }
        if let Some(recordings) = &self.node.recordings {
            recordings.flush(RECORDINGS_WAIT);
        }
        if let Some(journal) = &self.node.journal {
            journal.stop_saving();
            let is_written = self.handle.is_replaced()
                || missing > 0
                || journal.wait_until_written(deadline + LAST_TURN);
            if !is_written {
                let text = format!(
                    "journal.folder = {:?}: the ends of rooms are not written; the next start runs \
                     them again, and saves them",
                    journal.folder()
                );
                log::error!("{text}");
                unfinished.push(text);
            }
            if missing == 0 {
                journal.release();
            }
        }
        // Its rooms are gone, so this releases the file: the process may open it again.
        if !self.node.store.close(STORE_CLOSE_MAX) {
            let wait = STORE_CLOSE_MAX.as_secs();
            let text = format!("the store has not written what it accepted within {wait} s");
            log::error!("{text}; it goes on while the process runs");
            unfinished.push(text);
        }
        if let Some(mut member) = self.member.take() {
            member.leave();
        }
        let took = began.elapsed();
        match unfinished.is_empty() {
            true => log::info!("the node has stopped, after {took:.1?}"),
            false => log::warn!("the node has stopped, after {took:.1?}, and left work undone"),
        }
        unfinished
    }
}

fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.shards.is_empty() {
            self.stop("the program shuts it down");
            self.join(0);
        }
    }
}
