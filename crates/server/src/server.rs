//! A node: its shards, and what they share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use playfield_room::RoomType;

use crate::auth::{Authenticator, Guests};
use crate::background::{Keeper, Threads};
use crate::config::Config;
use crate::directory::Directory;
use crate::event_loop::EventLoop;
use crate::mailbox::Mailboxes;
use crate::pages::Pages;
use crate::shard::{Node, Shard, ShardMail};
use crate::stats::{Published, Stats};
use crate::sys::{self, Spread};
use crate::watchdog::Watchdog;

/// A node that is to be started.
pub struct Server {
    config: Config,
    types: Vec<RoomType>,
    pages: Pages,
    authenticator: Option<Box<dyn Authenticator>>,
}

impl Server {
    /// One without room types, which lets everyone in as a guest.
    pub fn new(config: Config) -> Self {
        Self { config, types: Vec::new(), pages: Pages::default(), authenticator: None }
    }

    /// Adds a room type. Of two with one name, the later counts.
    #[must_use]
    pub fn room_type(mut self, of: RoomType) -> Self {
        self.types.push(of);
        self
    }

    /// Serves `body` to a browser that asks for `path`.
    #[must_use]
    pub fn page(mut self, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.pages.add(path, content_type, body.into());
        self
    }

    /// Decides who is let in.
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authenticator = Some(Box::new(authenticator));
        self
    }

    /// Starts all threads, and returns.
    ///
    /// # Errors
    /// The port can't be listened on, or a thread can't be started.
    pub fn start(self) -> io::Result<Running> {
        let Self { config, types, pages, authenticator } = self;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let shards = if config.shards == 0 { cores } else { config.shards };
        let computers = if config.compute_threads == 0 { (cores - 1).max(1) } else { config.compute_threads };
        let (listeners, spread) = sys::listen(config.listen, shards).map_err(|error| {
            io::Error::new(error.kind(), format!("can't listen on {}: {error}", config.listen))
        })?;
        let address = listeners[0].local_addr()?;
        let mailboxes = Arc::new(Mailboxes::new(shards, config.mailbox_max));
        let (background, keeper) =
            Threads::start(Arc::clone(&mailboxes), computers, config.compute_queue_max)?;
        let watchdog = Watchdog::new(shards);
        let limit = Duration::from_millis(config.watchdog_ms);
        let pins = config.pin_cores.clone();
        let node = Arc::new(Node {
            types: types.into_iter().map(|of| (of.name.clone(), of)).collect(),
            directory: Directory::new(shards, config.rooms_max),
            mailboxes: Arc::clone(&mailboxes),
            background: Box::new(background),
            authenticator: authenticator
                .unwrap_or_else(|| Box::new(Guests { name_bytes_max: config.name_bytes_max })),
            pages,
            config,
        });
        let mut running = Running {
            address,
            mailboxes,
            published: Vec::new(),
            watchdog,
            threads: Vec::new(),
            keeper: Some(keeper),
        };
        let mut listeners = listeners.into_iter();
        for index in 0..shards {
            let pin = (!pins.is_empty()).then(|| pins[index % pins.len()]);
            running.start_shard(index, listeners.next(), &spread, &node, pin)?;
        }
        let watchdog = Arc::clone(&running.watchdog);
        let watch =
            thread::Builder::new().name("playfield-watchdog".into()).spawn(move || watchdog.watch(limit))?;
        running.threads.push(watch);
        Ok(running)
    }
}

/// A node that runs. Dropping it ends it, as [`shutdown`](Self::shutdown) does.
pub struct Running {
    address: SocketAddr,
    mailboxes: Arc<Mailboxes>,
    published: Vec<Arc<Published>>,
    watchdog: Arc<Watchdog>,
    threads: Vec<JoinHandle<()>>,
    keeper: Option<Keeper>,
}

impl Running {
    /// Where clients connect.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What it counted, as of each shard's last turn.
    pub fn stats(&self) -> Stats {
        Stats {
            shards: self.published.iter().map(|published| published.read()).collect(),
            healthy: self.watchdog.is_healthy(),
        }
    }

    /// Something that can end the node from elsewhere, as from a signal's handler.
    pub fn stopper(&self) -> Stopper {
        Stopper { mailboxes: Arc::clone(&self.mailboxes) }
    }

    /// Ends the node: nobody else is let in, rooms are closed, clients are told, and get what they are owed if they take it within
    /// `shutdown_timeout_ms`. Returns when all is done.
    pub fn shutdown(mut self) {
        self.end();
    }

    /// Waits until the node was ended by a [`Stopper`].
    pub fn wait(mut self) {
        self.join();
    }

    fn end(&mut self) {
        if !self.threads.is_empty() {
            self.stopper().stop();
            self.join();
        }
    }

    fn join(&mut self) {
        let mut threads = std::mem::take(&mut self.threads);
        let watchdog = (threads.len() > self.published.len()).then(|| threads.pop()).flatten();
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a shard panicked");
            }
        }
        self.watchdog.end();
        if let Some(watchdog) = watchdog
            && watchdog.join().is_err()
        {
            log::error!("the watchdog panicked");
        }
        self.keeper = None;
    }

    fn start_shard(
        &mut self,
        index: usize,
        listener: Option<std::net::TcpListener>,
        spread: &Spread,
        node: &Arc<Node>,
        pin: Option<usize>,
    ) -> io::Result<()> {
        let published = Arc::new(Published::default());
        self.published.push(Arc::clone(&published));
        let spread = match spread {
            Spread::BySystem => Spread::BySystem,
            Spread::ByDealing => Spread::ByDealing,
        };
        let shard = Shard::new(index, Arc::clone(node));
        let (mailboxes, watchdog) = (Arc::clone(&self.mailboxes), Arc::clone(&self.watchdog));
        let event_loop = EventLoop::new(index, listener, spread, shard, mailboxes, published, watchdog)?;
        let thread = thread::Builder::new().name(format!("playfield-shard-{index}")).spawn(move || {
            if let Some(core) = pin
                && let Err(error) = sys::pin_to_core(core)
            {
                log::warn!("shard {index} could not be pinned to core {core}: {error}");
            }
            event_loop.run();
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends a node from elsewhere.
#[derive(Clone)]
pub struct Stopper {
    mailboxes: Arc<Mailboxes>,
}

impl Stopper {
    /// Begins the end, and returns at once.
    pub fn stop(&self) {
        for shard in 0..self.mailboxes.shards() {
            self.mailboxes.post(shard, [ShardMail::End]);
        }
    }
}
