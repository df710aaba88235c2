//! The threads of shards: what each opens, in the descriptor table that it uses, and how it ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use mio::{Poll, Waker};
use socket2::Socket;

use crate::event_loop::{EventLoop, Listening, SharedRuntime, Sockets, WAKER};
use crate::mailbox::Mailbox;
use crate::node::Node;
use crate::server::{Word, named};
use crate::shard::Shard;
use crate::stats::Published;
use crate::sys::{self, Tables};
use crate::upgrade::{InheritedListener, PassedOn, is_taking_over};
use crate::waker::ShardWaker;

/// The polls that shards wait at, and the mailboxes by which others reach them.
pub(crate) struct Edges {
    /// `None` for shards that open their own, in descriptor tables of their own.
    pub(crate) polls: Vec<Option<Poll>>,
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) tables: Option<Arc<Tables>>,
}

impl Edges {
    pub(crate) fn new(shards: usize, is_per_shard: bool, mailbox_max: usize) -> io::Result<Self> {
        if is_per_shard {
            let tables = Arc::new(Tables::new(shards)?);
            let waker = |shard| ShardWaker::PerShard(Arc::clone(&tables), shard);
            let mailboxes = (0..shards).map(|at| Mailbox::new(mailbox_max, waker(at))).collect();
            let polls = (0..shards).map(|_| None).collect();
            return Ok(Self { polls, mailboxes, tables: Some(tables) });
        }
        let (mut polls, mut mailboxes) = (Vec::new(), Vec::new());
        for _ in 0..shards {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), WAKER)?;
            mailboxes.push(Mailbox::new(mailbox_max, waker.into()));
            polls.push(Some(poll));
        }
        Ok(Self { polls, mailboxes, tables: None })
    }
}

/// The sockets that listen, for each shard.
pub(crate) struct Listeners {
    by_shard: Vec<OfShard>,
    /// Only the first shard listens, and deals connections to all.
    deals: bool,
    /// Keep the addresses until each shard listens there; `None` if the shards need not.
    reserved: Option<Vec<Socket>>,
}

/// The sockets and addresses of one shard.
#[derive(Default)]
pub(crate) struct OfShard {
    open: Sockets,
    /// Addresses to listen at, in its own descriptor table, and the services that they are for.
    to_open: Vec<(SocketAddr, Option<u16>)>,
}

impl Listeners {
    pub(crate) fn new(shards: usize, is_per_shard: bool) -> Self {
        Self {
            by_shard: (0..shards).map(|_| OfShard::default()).collect(),
            deals: false,
            reserved: is_per_shard.then(Vec::new),
        }
    }

    /// Listens at an address, for rooms or a service, and says at which if any would do. An error
    /// begins with `name`.
    pub(crate) fn listen(
        &mut self,
        address: SocketAddr,
        service: Option<u16>,
        name: &str,
        inherited: &mut Vec<InheritedListener>,
    ) -> io::Result<SocketAddr> {
        let is_same = |of: &mut InheritedListener| match address.port() {
            0 => of.service == service,
            port => of.address.port() == port,
        };
        let inherited: Vec<_> = inherited.extract_if(.., is_same).collect();
        if let Some(first) = inherited.first() {
            let bound = first.address;
            self.inherit(inherited, service).map_err(|error| named(name, &error))?;
            return Ok(bound);
        }
        if let Some(reserved) = &mut self.reserved {
            let (socket, bound) =
                sys::reserve(address, is_taking_over()).map_err(|error| named(name, &error))?;
            reserved.push(socket);
            self.by_shard.iter_mut().for_each(|shard| shard.to_open.push((bound, service)));
            return Ok(bound);
        }
        let sockets =
            sys::listen(address, self.by_shard.len()).map_err(|error| named(name, &error))?;
        let mut bound = address;
        for (shard, socket) in self.by_shard.iter_mut().zip(sockets) {
            let Some(socket) = socket else {
                self.deals = true;
                continue;
            };
            bound = socket.local_addr()?;
            shard.open.listening.push(Listening { socket, service });
        }
        Ok(bound)
    }

    /// Listens with the sockets of another process.
    fn inherit(&mut self, sockets: Vec<InheritedListener>, service: Option<u16>) -> io::Result<()> {
        let (count, shards) = (sockets.len(), self.by_shard.len());
        let Some(address) = sockets.first().map(|of| of.address) else { return Ok(()) };
        for (number, of) in sockets.into_iter().enumerate() {
            self.by_shard[number % shards]
                .open
                .listening
                .push(Listening { socket: of.socket, service });
        }
        for shard in self.by_shard.iter_mut().skip(count) {
            let socket = sys::listen_beside(address)?;
            shard.open.listening.push(Listening { socket, service });
        }
        Ok(())
    }

    /// Adds open connections of another process, for each shard.
    pub(crate) fn pass_on(&mut self, connections: Vec<Vec<PassedOn>>) {
        for (shard, connections) in self.by_shard.iter_mut().zip(connections) {
            shard.open.passed_on = connections;
        }
    }

    /// Takes what one shard listens at.
    pub(crate) fn of(&mut self, shard: usize) -> OfShard {
        let mut of = std::mem::take(&mut self.by_shard[shard]);
        of.open.deals = self.deals;
        of
    }
}

impl OfShard {
    fn open(self) -> io::Result<Sockets> {
        let Self { mut open, to_open } = self;
        for (address, service) in to_open {
            open.listening.push(Listening { socket: sys::listen_beside(address)?, service });
        }
        Ok(open)
    }
}

/// A thread that waits for its shard.
pub(crate) struct ShardThread {
    thread: JoinHandle<()>,
    work: SyncSender<Box<dyn FnOnce() + Send>>,
    ready: Receiver<io::Result<()>>,
}

impl ShardThread {
    /// Starts a thread. It ends if it is dropped without [running](Self::run) a shard.
    pub(crate) fn start(index: usize, shared: Arc<SharedRuntime>) -> io::Result<Self> {
        let (work, works) = sync_channel::<Box<dyn FnOnce() + Send>>(1);
        let (is_ready, ready) = sync_channel(1);
        let thread = thread::Builder::new().name(format!("playfield-shard-{index}"));
        let thread = thread.spawn(move || {
            let left = shared.tables.as_deref().map_or(Ok(()), Tables::leave);
            // Otherwise nothing here keeps the node's runtime.
            drop(shared);
            if is_ready.send(left).is_ok()
                && let Ok(work) = works.recv()
            {
                work();
            }
        })?;
        Ok(Self { thread, work, ready })
    }

    /// Waits until it has the descriptor table that it will use.
    pub(crate) fn ready(self) -> io::Result<Self> {
        let ended = |_| io::Error::other("the thread of a shard has ended");
        self.ready.recv().map_err(ended)??;
        Ok(self)
    }

    /// Runs a shard there. Its result is sent once it serves.
    pub(crate) fn run(
        self,
        shard: Shard,
        poll: Option<Poll>,
        listeners: OfShard,
        mut guard: EndGuard,
    ) -> (JoinHandle<()>, Receiver<io::Result<()>>) {
        let (starts, started) = sync_channel(1);
        let run = move || match guard.open(shard, poll, listeners) {
            Err(error) => drop(starts.send(Err(error))),
            Ok(mut event_loop) => {
                guard.pin();
                event_loop.go_on();
                drop(starts.send(Ok(())));
                guard.has_failed = !guard.run(event_loop);
                drop(guard);
            }
        };
        // It waits for nothing else.
        drop(self.work.send(Box::new(run)));
        (self.thread, started)
    }
}

/// Reports the end of a shard's thread, also after a panic.
pub(crate) struct EndGuard {
    pub(crate) index: usize,
    pub(crate) node: Arc<Node>,
    pub(crate) shared: Arc<SharedRuntime>,
    pub(crate) published: Arc<Published>,
    pub(crate) ends: SyncSender<Word>,
    pub(crate) has_failed: bool,
}

impl EndGuard {
    fn open(&self, shard: Shard, poll: Option<Poll>, sockets: OfShard) -> io::Result<EventLoop> {
        let poll = poll.map_or_else(Poll::new, Ok)?;
        if let Some(tables) = &self.shared.tables {
            tables.register(self.index, poll.registry(), WAKER)?;
        }
        let sockets = sockets.open()?;
        let (shared, published) = (Arc::clone(&self.shared), Arc::clone(&self.published));
        EventLoop::new(self.index, shard, shared, published, poll, sockets)
    }

    fn pin(&self) {
        let cores = &self.node.config.threads.pin_cores;
        let core = (!cores.is_empty()).then(|| cores[self.index % cores.len()]);
        if let Some(core) = core
            && let Err(error) = sys::pin_to_core(core)
        {
            log::warn!(
                "threads.pin_cores: shard {} can't be pinned to core {core}: {error}",
                self.index
            );
        }
    }

    /// Runs a shard until the node is stopped; `false` if it fails.
    fn run(&self, event_loop: EventLoop) -> bool {
        let result = event_loop.run();
        if let Err(error) = &result {
            log::error!("shard {} failed: {error}", self.index);
        }
        result.is_ok()
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if self.has_failed {
            self.published.pulse.failed.store(true, Ordering::Relaxed);
            self.node.asks.shard_failed(self.index as u16);
        }
        // The others need not wait for its rooms.
        self.shared.close(self.index);
        // Nobody may be waiting.
        let _ = self.ends.try_send(Word::Ended);
    }
}
