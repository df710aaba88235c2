//! A node: put together, started, watched and stopped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::{Poll, Waker};
use playfield_room::RoomType;

use crate::auth::{Authenticator, Guests};
use crate::config::Config;
use crate::control::{Control, ControlThreads};
use crate::entropy::Entropy;
use crate::event_loop::{EventLoop, Listening, SharedRuntime, WAKER};
use crate::mailbox::Mailbox;
use crate::node::Node;
use crate::pages::Pages;
use crate::service::{AnyService, Hosted, Service};
use crate::shard::Shard;
use crate::stats::{Published, Stats, Watch};
use crate::sys;
use crate::watchdog::{Leash, Watchdog};

/// What a shard may need for the turn it is in when a shutdown ends, beyond the time for the
/// shutdown.
const LAST_TURN: Duration = Duration::from_secs(1);

/// A node that is not running yet.
pub struct Server {
    config: Config,
    room_types: Vec<RoomType>,
    pages: Pages,
    authenticator: Option<Box<dyn Authenticator>>,
    services: Vec<ServiceAt>,
}

/// A service that is to listen somewhere.
struct ServiceAt {
    address: SocketAddr,
    /// Makes the value for a shard.
    make: Box<dyn FnMut(usize) -> Box<dyn AnyService> + Send>,
}

/// How many services a node may have.
const SERVICES_MAX: usize = 64;

impl Server {
    /// A node with these settings, and nothing to serve.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            room_types: Vec::new(),
            pages: Pages::default(),
            authenticator: None,
            services: Vec::new(),
        }
    }

    /// Lets clients make rooms of this type. One of the same name takes the place of an earlier
    /// one.
    #[must_use]
    pub fn room_type(mut self, room_type: RoomType) -> Self {
        self.room_types.retain(|known| known.name != room_type.name);
        self.room_types.push(room_type);
        self
    }

    /// Serves a page to browsers, under a path such as `/`.
    #[must_use]
    pub fn page(
        mut self,
        path: impl Into<String>,
        content_type: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        self.pages.insert(path.into(), content_type.into(), body.into());
        self
    }

    /// Has this decide who may open a session; without one, everyone is a guest.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Box<dyn Authenticator>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Runs a protocol of your own at an address of its own; port 0 picks a free one, which
    /// [`Running::service_addrs`] tells. `make` is called once for each shard, with the shard's
    /// number.
    ///
    /// A node with services and with neither room types nor pages does not listen at `listen`.
    #[must_use]
    pub fn service<S: Service>(
        mut self,
        address: SocketAddr,
        mut make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        let make = Box::new(move |shard| Box::new(Hosted::new(make(shard))) as Box<dyn AnyService>);
        self.services.push(ServiceAt { address, make });
        self
    }

    /// Starts the node. When this returns, it accepts connections.
    ///
    /// # Errors
    /// If an address can't be listened on, a thread can't be started, or there are more than 65,535
    /// room types or 64 services.
    pub fn start(self) -> io::Result<Running> {
        let Self { config, room_types, pages, authenticator, mut services } = self;
        if room_types.len() >= usize::from(u16::MAX) {
            return Err(io::Error::other(format!("{} room types are too many", room_types.len())));
        }
        if services.len() > SERVICES_MAX {
            let text =
                format!("{} services are too many; there may be {SERVICES_MAX}", services.len());
            return Err(io::Error::other(text));
        }
        let mut random = [0; 1];
        getrandom::fill(&mut random)
            .map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;

        let cores = thread::available_parallelism().map_or(1, usize::from);
        let shards = if config.shards == 0 { cores } else { config.shards };
        let compute_threads =
            if config.compute_threads == 0 { (cores - 1).max(1) } else { config.compute_threads };
        let name_bytes_max = config.name_bytes_max;
        let authenticator = authenticator.unwrap_or_else(|| Box::new(Guests { name_bytes_max }));

        config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        for &core in &config.pin_cores {
            sys::check_core(core).map_err(|error| named("pin_cores", &error))?;
        }
        let mut listeners = Listeners::new(shards);
        let serves_rooms = services.is_empty() || !room_types.is_empty() || !pages.is_empty();
        let rooms_addr = if serves_rooms {
            Some(listeners.listen(config.listen, None, &format!("listen = {}", config.listen))?)
        } else {
            None
        };
        let mut service_addrs = Vec::new();
        for (number, service) in services.iter().enumerate() {
            let name = format!("service {number} at {}", service.address);
            service_addrs.push(listeners.listen(service.address, Some(number as u16), &name)?);
        }
        let Some(local_addr) = rooms_addr.or(service_addrs.first().copied()) else {
            return Err(io::Error::other("nothing listens"));
        };
        let polls = (0..shards).map(|_| Poll::new()).collect::<io::Result<Vec<Poll>>>()?;
        let mailbox =
            |poll: &Poll| Ok(Mailbox::new(config.mailbox_max, Waker::new(poll.registry(), WAKER)?));
        let shared = Arc::new(SharedRuntime {
            mailboxes: polls.iter().map(mailbox).collect::<io::Result<_>>()?,
            began: Instant::now(),
            stops: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            connections_max: config.connections_max,
            shutdown_timeout: config.shutdown_timeout(),
        });
        let (control, control_threads) = Control::start(
            Arc::clone(&shared),
            compute_threads,
            config.compute_queue_max,
            config.tasks_max,
        )?;
        let control = Arc::new(control);
        let node = Arc::new(Node::new(config, shards, room_types, pages, authenticator));
        let published: Vec<Arc<Published>> = (0..shards).map(|_| Arc::default()).collect();
        let (tells, words) = sync_channel(shards + 1);

        let mut running = Running {
            stopper: Stopper { shared: Arc::clone(&shared), tells: tells.clone() },
            local_addr,
            service_addrs: service_addrs.clone(),
            published: published.clone(),
            leash: Arc::default(),
            watchdog: None,
            shards: Vec::new(),
            words,
            control_threads: Some(control_threads),
            shutdown_timeout: node.config.shutdown_timeout(),
        };
        let deals = listeners.deals;
        for (index, (poll, listening)) in polls.into_iter().zip(listeners.by_shard).enumerate() {
            let published = Arc::clone(&published[index]);
            let mut shard = Shard::new(
                index as u16,
                Arc::clone(&node),
                Arc::clone(&control) as _,
                Entropy::System,
                Watch(Arc::clone(&published)),
            );
            for service in &mut services {
                shard.host((service.make)(index));
            }
            let event_loop = EventLoop::new(
                index,
                shard,
                Arc::clone(&shared),
                Arc::clone(&published),
                poll,
                listening,
                deals,
            )?;
            let cores = &node.config.pin_cores;
            let core = (!cores.is_empty()).then(|| cores[index % cores.len()]);
            let ends = tells.clone();
            let thread = thread::Builder::new().name(format!("playfield-shard-{index}"));
            running.shards.push(thread.spawn(move || {
                let mut guard = EndGuard { published, ends, has_failed: true };
                guard.has_failed = !run(index, core, event_loop);
            })?);
        }
        let watchdog = Watchdog { node, published, began: shared.began };
        let leash = Arc::clone(&running.leash);
        let thread = thread::Builder::new().name("playfield-watchdog".into());
        running.watchdog = Some(thread.spawn(move || watchdog.run(&leash))?);
        if rooms_addr.is_some() {
            log::info!("listening on {local_addr} with {shards} shards");
        }
        for (number, address) in service_addrs.iter().enumerate() {
            log::info!("service {number} listens on {address} with {shards} shards");
        }
        Ok(running)
    }
}

/// The sockets that listen, for each shard.
struct Listeners {
    by_shard: Vec<Vec<Listening>>,
    /// Only the first shard listens, and deals connections to all.
    deals: bool,
}

impl Listeners {
    fn new(shards: usize) -> Self {
        Self { by_shard: (0..shards).map(|_| Vec::new()).collect(), deals: false }
    }

    /// Listens at an address, for rooms or a service, and says at which if any would do. An error
    /// begins with `name`.
    fn listen(
        &mut self,
        address: SocketAddr,
        service: Option<u16>,
        name: &str,
    ) -> io::Result<SocketAddr> {
        let sockets =
            sys::listen(address, self.by_shard.len()).map_err(|error| named(name, &error))?;
        let mut bound = address;
        for (shard, socket) in self.by_shard.iter_mut().zip(sockets) {
            let Some(socket) = socket else {
                self.deals = true;
                continue;
            };
            bound = socket.local_addr()?;
            shard.push(Listening { socket, service });
        }
        Ok(bound)
    }
}

/// An error, with the setting it comes of.
fn named(setting: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{setting}: {error}"))
}

/// Runs a shard until the node is stopped; `false` if it fails.
fn run(index: usize, core: Option<usize>, event_loop: EventLoop) -> bool {
    if let Some(core) = core
        && let Err(error) = sys::pin_to_core(core)
    {
        log::warn!("pin_cores: shard {index} can't be kept on core {core}: {error}");
    }
    let result = event_loop.run();
    if let Err(error) = &result {
        log::error!("shard {index} failed: {error}");
    }
    result.is_ok()
}

/// Reports the end of a shard's thread, also after a panic.
struct EndGuard {
    published: Arc<Published>,
    ends: SyncSender<Word>,
    has_failed: bool,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if self.has_failed {
            self.published.pulse.failed.store(true, Ordering::Relaxed);
        }
        // Nobody may be waiting.
        let _ = self.ends.try_send(Word::Ended);
    }
}

/// A node that runs. Dropping it ends it, as [`shutdown`](Self::shutdown) does.
pub struct Running {
    stopper: Stopper,
    local_addr: SocketAddr,
    service_addrs: Vec<SocketAddr>,
    published: Vec<Arc<Published>>,
    leash: Arc<Leash>,
    watchdog: Option<JoinHandle<()>>,
    shards: Vec<JoinHandle<()>>,
    words: Receiver<Word>,
    control_threads: Option<ControlThreads>,
    shutdown_timeout: Duration,
}

/// Stops a node from anywhere, such as from a handler of signals.
#[derive(Clone)]
pub struct Stopper {
    shared: Arc<SharedRuntime>,
    tells: SyncSender<Word>,
}

/// What those hear who wait for a node to end.
enum Word {
    /// It was told to.
    Stop,
    /// A shard's thread has ended.
    Ended,
}

impl Stopper {
    /// Begins the shutdown: nothing more is accepted, rooms close, and clients are told. It does
    /// not wait.
    pub fn stop(&self) {
        self.shared.stops.store(true, Ordering::Release);
        // Whoever waits need not hear it twice.
        let _ = self.tells.try_send(Word::Stop);
        for mailbox in &self.shared.mailboxes {
            if let Err(error) = mailbox.wake() {
                log::warn!("a shard can't be woken: {error}");
            }
        }
    }
}

impl Running {
    /// The address that it listens on for rooms, with the port that was picked; that of its first
    /// service if it has neither room types nor pages.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The addresses that its services listen on, in the order in which they were added.
    #[must_use]
    pub fn service_addrs(&self) -> &[SocketAddr] {
        &self.service_addrs
    }

    /// What it has counted, as of each shard's last turn.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let is_well = |published: &Arc<Published>| {
            let pulse = &published.pulse;
            !pulse.stuck.load(Ordering::Relaxed) && !pulse.failed.load(Ordering::Relaxed)
        };
        Stats {
            healthy: self.published.iter().all(is_well),
            shards: self.published.iter().map(|published| published.read()).collect(),
        }
    }

    /// Stops it from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until someone has [stopped](Stopper::stop) the node, or a shard has failed; then for
    /// its end, as [`shutdown`](Self::shutdown) does.
    ///
    /// # Errors
    /// If a shard has failed: it can't wait for its sockets, or it panicked.
    pub fn wait(mut self) -> io::Result<()> {
        let ended = usize::from(matches!(self.words.recv(), Ok(Word::Ended)));
        self.stopper.stop();
        self.join(ended);
        let failed = |published: &Arc<Published>| published.pulse.failed.load(Ordering::Relaxed);
        match self.published.iter().position(failed) {
            Some(index) => Err(io::Error::other(format!("shard {index} failed; see the log"))),
            None => Ok(()),
        }
    }

    /// Stops the node in good order: nothing more is accepted, rooms close, every client is told
    /// `shutting_down`, and what it is owed is written, for no longer than `shutdown_timeout_ms`.
    ///
    /// Returns when all threads have ended; should a room or its background work not return in
    /// time, a thread is left behind.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Ends all threads, of which so many are known to have ended; gives up on those that do not
    /// end in time.
    fn join(&mut self, ended: usize) {
        let deadline = Instant::now() + self.shutdown_timeout + LAST_TURN;
        let mut missing = self.shards.len() - ended;
        while missing > 0 {
            match self.words.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Word::Ended) => missing -= 1,
                Ok(Word::Stop) => {}
                // Whoever could have told has ended.
                Err(RecvTimeoutError::Disconnected) => missing = 0,
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        self.leash.end();
        // A computation may take for ever; its thread ends after it, or with the process.
        drop(self.control_threads.take().map(ControlThreads::stop));
        for thread in self.shards.drain(..).chain(self.watchdog.take()) {
            if missing == 0 || thread.is_finished() {
                // A panic was reported where it happened.
                let _ = thread.join();
            } else {
                log::error!(
                    "the thread {:?} does not end, and is left behind",
                    thread.thread().name()
                );
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.shards.is_empty() {
            self.stopper.stop();
            self.join(0);
        }
    }
}
