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
use crate::event_loop::{EventLoop, Floor, WAKER};
use crate::mailbox::Mailbox;
use crate::node::Node;
use crate::pages::Pages;
use crate::shard::Shard;
use crate::stats::{Published, Stats, Watch};
use crate::sys;
use crate::watchdog::{Leash, Watchdog};

/// What a shard may need for the turn it is in when a shutdown ends, beyond the time for the shutdown.
const LAST_TURN: Duration = Duration::from_secs(1);

/// A node that is not running yet.
pub struct Server {
    config: Config,
    room_types: Vec<RoomType>,
    pages: Pages,
    authenticator: Option<Box<dyn Authenticator>>,
}

impl Server {
    /// A node with these settings, and nothing to serve.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, room_types: Vec::new(), pages: Pages::default(), authenticator: None }
    }

    /// Lets clients make rooms of this type. One of the same name takes the place of an earlier one.
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

    /// Starts the node. When this returns, it accepts connections.
    ///
    /// # Errors
    /// If the address can't be listened on, a thread can't be started, or there are more than 65,535 room types.
    pub fn start(self) -> io::Result<Running> {
        let Self { config, room_types, pages, authenticator } = self;
        if room_types.len() >= usize::from(u16::MAX) {
            return Err(io::Error::other(format!("{} room types are too many", room_types.len())));
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
        let listeners = sys::listen(config.listen, shards)
            .map_err(|error| named(&format!("listen = {}", config.listen), &error))?;
        let deals = listeners.iter().flatten().count() < shards;
        let local_addr = match listeners.iter().flatten().next() {
            Some(listener) => listener.local_addr()?,
            None => return Err(io::Error::other("nothing listens")),
        };
        let polls = (0..shards).map(|_| Poll::new()).collect::<io::Result<Vec<Poll>>>()?;
        let mailbox = |poll: &Poll| Ok(Mailbox::new(config.mailbox_max, Waker::new(poll.registry(), WAKER)?));
        let floor = Arc::new(Floor {
            mailboxes: polls.iter().map(mailbox).collect::<io::Result<_>>()?,
            began: Instant::now(),
            stops: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            connections_max: config.connections_max,
            shutdown_timeout: config.shutdown_timeout(),
        });
        let (control, control_threads) =
            Control::start(Arc::clone(&floor), compute_threads, config.compute_queue_max, config.tasks_max)?;
        let control = Arc::new(control);
        let node = Arc::new(Node::new(config, shards, room_types, pages, authenticator));
        let published: Vec<Arc<Published>> = (0..shards).map(|_| Arc::default()).collect();
        let (tells, words) = sync_channel(shards + 1);

        let mut running = Running {
            stopper: Stopper { floor: Arc::clone(&floor), tells: tells.clone() },
            local_addr,
            published: published.clone(),
            leash: Arc::default(),
            watchdog: None,
            shards: Vec::new(),
            words,
            control_threads: Some(control_threads),
            shutdown_timeout: node.config.shutdown_timeout(),
        };
        for (index, (poll, listener)) in polls.into_iter().zip(listeners).enumerate() {
            let published = Arc::clone(&published[index]);
            let shard = Shard::new(
                index as u16,
                Arc::clone(&node),
                Arc::clone(&control) as _,
                Entropy::System,
                Watch(Arc::clone(&published)),
            );
            let event_loop = EventLoop::new(
                index,
                shard,
                Arc::clone(&floor),
                Arc::clone(&published),
                poll,
                listener,
                deals,
            )?;
            let cores = &node.config.pin_cores;
            let core = (!cores.is_empty()).then(|| cores[index % cores.len()]);
            let ends = tells.clone();
            let thread = thread::Builder::new().name(format!("playfield-shard-{index}"));
            running.shards.push(thread.spawn(move || {
                let _guard = EndGuard { published, ends };
                run(index, core, event_loop);
            })?);
        }
        let watchdog = Watchdog { node, published, began: floor.began };
        let leash = Arc::clone(&running.leash);
        let thread = thread::Builder::new().name("playfield-watchdog".into());
        running.watchdog = Some(thread.spawn(move || watchdog.run(&leash))?);
        log::info!("listening on {local_addr} with {shards} shards");
        Ok(running)
    }
}

/// An error, with the setting it comes of.
fn named(setting: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{setting}: {error}"))
}

fn run(index: usize, core: Option<usize>, event_loop: EventLoop) {
    if let Some(core) = core
        && let Err(error) = sys::pin_to_core(core)
    {
        log::warn!("pin_cores: shard {index} can't be kept on core {core}: {error}");
    }
    if let Err(error) = event_loop.run() {
        log::error!("shard {index} can't go on: {error}");
    }
}

/// Tells that a shard's thread has ended, however it did.
struct EndGuard {
    published: Arc<Published>,
    ends: SyncSender<Word>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if thread::panicking() {
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
    floor: Arc<Floor>,
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
    /// Begins the shutdown: nothing more is accepted, rooms close, and clients are told. It does not wait.
    pub fn stop(&self) {
        self.floor.stops.store(true, Ordering::Release);
        // Whoever waits need not hear it twice.
        let _ = self.tells.try_send(Word::Stop);
        for mailbox in &self.floor.mailboxes {
            if let Err(error) = mailbox.wake() {
                log::warn!("a shard can't be woken: {error}");
            }
        }
    }
}

impl Running {
    /// The address that it listens on, with the port that was picked.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
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

    /// Waits until someone has [stopped](Stopper::stop) the node, or a shard can't go on; then for its end, as
    /// [`shutdown`](Self::shutdown) does.
    pub fn wait(self) {
        let ended = usize::from(matches!(self.words.recv(), Ok(Word::Ended)));
        self.end(ended);
    }

    /// Stops the node in good order: nothing more is accepted, rooms close, every client is told `shutting_down`, and
    /// what it is owed is written, for no longer than `shutdown_timeout_ms`.
    ///
    /// Returns when all threads have ended; should a room or its background work not return in time, a thread is left behind.
    pub fn shutdown(self) {
        drop(self);
    }

    fn end(mut self, ended: usize) {
        self.stopper.stop();
        self.join(ended);
    }

    /// Ends all threads, of which so many are known to have ended; gives up on those that do not end in time.
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
                log::error!("the thread {:?} does not end, and is left behind", thread.thread().name());
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
