//! A node: configured, started, watched and stopped.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use playfield_channel::{ChannelRule, ChannelRules};
use playfield_room::{RoomType, Store, StoreError};
use playfield_session::TokenKey;
use playfield_wire::excerpt;

use crate::auth::{Authenticator, Guests};
use crate::config::{Config, Descriptors};
use crate::control::{Control, ControlThreads};
use crate::entropy::Entropy;
use crate::event_loop::{SharedRuntime, Work};
use crate::fleet::{Fleet, FleetSettings, HostedFleet};
use crate::handle::NodeHandle;
use crate::http::{self, Desk, IntoResponse, Request, Site, Worker};
use crate::kept_store::STORE_CLOSE_MAX;
use crate::node::Node;
use crate::service::{AnyService, Hosted, Service};
use crate::shard::{Shard, Stopwatch};
use crate::shard_thread::{Edges, EndGuard, Listeners, ShardThread};
use crate::stats::{Published, Pulse, Stats, Watch};
use crate::sys;
use crate::tickets::TicketChecker;
use crate::tls::TlsContext;
use crate::watchdog::{Leash, Watchdog};

/// What a shard may need for the turn it is in when a shutdown ends, beyond the time for the
/// shutdown.
const LAST_TURN: Duration = Duration::from_secs(1);

/// A node that is not running yet.
pub struct Server {
    config: Config,
    room_types: Vec<RoomType>,
    site: Site,
    /// What is wrong with what was added, first of all.
    wrong: Option<String>,
    authenticator: Option<Box<dyn Authenticator>>,
    tickets: Option<Box<dyn TicketChecker>>,
    channel_rules: ChannelRules,
    fleet: Option<(Box<dyn Fleet>, FleetSettings)>,
    store: Option<OpenStore>,
    services: Vec<ServiceAt>,
    on_start: Vec<OnStart>,
}

/// Opens the store when the node starts.
type OpenStore = Box<dyn FnOnce() -> Result<Arc<dyn Store>, StoreError>>;

/// Called with the handle of the node, once it runs.
type OnStart = Box<dyn FnOnce(NodeHandle)>;

/// A service that is to be reached somewhere.
struct ServiceAt {
    /// Where it listens, if it does.
    address: Option<SocketAddr>,
    /// The path at which it is reached by WebSocket, if it is.
    path: Option<String>,
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
            site: Site::default(),
            wrong: None,
            authenticator: None,
            tickets: None,
            channel_rules: ChannelRules::default(),
            fleet: None,
            store: None,
            services: Vec::new(),
            on_start: Vec::new(),
        }
    }

    /// The room types by name, each with its schema as JSON.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &str)> {
        self.room_types.iter().map(|of| (of.name.as_str(), &*of.schema))
    }

    /// Adds a room type. [`start`](Self::start) fails if another has its name.
    #[must_use]
    pub fn room_type(mut self, room_type: RoomType) -> Self {
        if self.room_types.iter().any(|known| known.name == room_type.name) {
            let text = format!("two room types have the name {:?}", room_type.name);
            self.note(Err(text));
        }
        self.room_types.push(room_type);
        self
    }

    /// Serves a page to browsers, under a path such as `/`. [`start`](Self::start) fails if the
    /// path does not begin with a slash or has a page already.
    #[must_use]
    pub fn page(
        mut self,
        path: impl Into<String>,
        content_type: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let added = self.site.page(path.into(), content_type.into(), body.into());
        self.note(added);
        self
    }

    /// Calls `handler` for HTTP requests with this method, such as `POST`, and a path such as
    /// `/rooms/{id}/score`, where a name in braces takes any one segment.
    ///
    /// Handlers run on a thread of their own, with a Tokio runtime, so they must not block.
    /// [`start`](Self::start) fails if the method or the path is invalid, or has a handler already.
    #[must_use]
    pub fn route<F, W, O>(mut self, method: &str, path: &str, handler: F) -> Self
    where
        F: Fn(Request, NodeHandle) -> W + Send + Sync + 'static,
        W: Future<Output = O> + Send + 'static,
        O: IntoResponse,
    {
        let added = self.site.route(method, path, http::handler(handler));
        self.note(added);
        self
    }

    /// Serves the files of a folder under a path such as `/` or `/assets`.
    /// [`start`](Self::start) fails if the folder does not exist.
    #[must_use]
    pub fn folder(mut self, path: &str, folder: impl AsRef<Path>) -> Self {
        let added = self.site.folder(path, folder.as_ref());
        self.note(added);
        self
    }

    fn note(&mut self, added: Result<(), String>) {
        self.wrong = self.wrong.take().or(added.err());
    }

    /// Sets the authenticator. Without one, everyone is a guest.
    #[must_use]
    pub fn authenticator(mut self, authenticator: Box<dyn Authenticator>) -> Self {
        self.authenticator = Some(authenticator);
        self
    }

    /// Sets who checks tickets. Without it, they are refused.
    #[must_use]
    pub fn tickets(mut self, checker: Box<dyn TicketChecker>) -> Self {
        self.tickets = Some(checker);
        self
    }

    /// Adds a rule for channels, after all others: the first that matches a channel's name decides.
    /// [`start`](Self::start) fails if the rule's pattern is invalid.
    #[must_use]
    pub fn channel(mut self, rule: ChannelRule) -> Self {
        let added = self.channel_rules.add(rule).map_err(|error| error.to_string());
        self.note(added);
        self
    }

    /// Lets clients, and connections of services, register as devices of this fleet.
    /// [`start`](Self::start) fails if the settings' pattern of ids is invalid.
    #[must_use]
    pub fn fleet(mut self, fleet: impl Fleet, settings: FleetSettings) -> Self {
        self.fleet = Some((Box::new(fleet), settings));
        self
    }

    /// Sets where rooms with `#[room(persist = …)]` and a key are kept. A node with such room types
    /// does not start without a store.
    #[must_use]
    pub fn store(self, store: impl Store + 'static) -> Self {
        self.open_store(|| Ok(store))
    }

    /// As [`store`](Self::store), with a store that is opened when the node starts.
    #[must_use]
    pub fn open_store<S: Store + 'static>(
        mut self,
        open: impl FnOnce() -> Result<S, StoreError> + 'static,
    ) -> Self {
        self.store = Some(Box::new(|| open().map(|store| Arc::new(store) as Arc<dyn Store>)));
        self
    }

    /// Serves a custom protocol at an address of its own; port 0 picks a free one, which
    /// [`Running::service_addrs`] returns. `make` is called once for each shard, with the shard's
    /// number.
    ///
    /// A node that has services, but no room types and nothing to serve over HTTP, does not listen
    /// at `listen`.
    #[must_use]
    pub fn service<S: Service>(
        mut self,
        address: SocketAddr,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(Some(address), None, make);
        self
    }

    /// Serves a custom protocol to WebSocket clients that connect to `listen` with this path, such as
    /// `/chat`; sessions connect with any other. [`start`](Self::start) fails if the path does not
    /// begin with a slash, has characters that URLs encode, or is another service's.
    ///
    /// The payloads of binary messages are the stream that the service's codec cuts into frames:
    /// where messages end means nothing. Each frame that the service writes is one message. TLS, the
    /// header of a proxy and `allowed_origins` apply as they do to sessions.
    #[must_use]
    pub fn service_at_path<S: Service>(
        mut self,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(None, Some(path.into()), make);
        self
    }

    /// As [`service`](Self::service) and [`service_at_path`](Self::service_at_path) at once: clients
    /// of both are connections of the same service.
    #[must_use]
    pub fn service_and_path<S: Service>(
        mut self,
        address: SocketAddr,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        self.add_service(Some(address), Some(path.into()), make);
        self
    }

    fn add_service<S: Service>(
        &mut self,
        address: Option<SocketAddr>,
        path: Option<String>,
        mut make: impl FnMut(usize) -> S + Send + 'static,
    ) {
        if let Some(path) = &path {
            let is_known = self.services.iter().any(|known| known.path.as_ref() == Some(path));
            self.note(check_path(path, is_known));
        }
        let make = Box::new(move |shard| Box::new(Hosted::new(make(shard))) as Box<dyn AnyService>);
        self.services.push(ServiceAt { address, path, make });
    }

    /// Calls this with a handle to the node when it has started, on the thread that starts it: for
    /// programs that leave the rest to the command line.
    #[must_use]
    pub fn on_start(mut self, call: impl FnOnce(NodeHandle) + 'static) -> Self {
        self.on_start.push(Box::new(call));
        self
    }

    /// Starts the node. When this returns, it accepts connections.
    ///
    /// # Errors
    /// If there are persistent room types and no store, the store can't be opened, an address can't
    /// be listened on, a thread can't be started, there are more than 65,535 room types or 64
    /// services, or something that was added is invalid or there twice.
    pub fn start(self) -> io::Result<Running> {
        let Self {
            config,
            room_types,
            mut site,
            mut wrong,
            authenticator,
            tickets,
            channel_rules,
            fleet,
            store,
            mut services,
            on_start,
        } = self;
        let persistent = room_types.iter().find(|room_type| room_type.settings.persist_s > 0);
        if let (Some(RoomType { name, .. }), None) = (persistent, &store) {
            let text = format!(
                "rooms of the type {name:?} are persistent (persist), but the node has no store: \
                 give it one with Server::store"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if wrong.is_none() && !config.pages.as_os_str().is_empty() {
            let set = site.take_pages_from(&config.pages);
            wrong = set.err().map(|text| format!("pages = {:?}: {text}", config.pages));
        }
        if let Some(text) = wrong.or(site.check().err()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
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
        let tls = TlsContext::new(&config).map_err(io::Error::other)?.map(Arc::new);
        match sys::raise_descriptors() {
            Ok(descriptors) => {
                let tables = match config.descriptors {
                    Descriptors::Shared => 1,
                    Descriptors::PerShard => shards as u64,
                };
                if let Some(text) = too_few(descriptors, tables, config.connections_max) {
                    // Few who did not set it need as many connections.
                    let is_default = config.connections_max == Config::default().connections_max;
                    let level = if is_default { log::Level::Info } else { log::Level::Warn };
                    log::log!(level, "{text}");
                }
            }
            Err(error) => log::warn!("the limit of open files can't be raised: {error}"),
        }
        for RoomType { name, settings, .. } in &room_types {
            let (closing_ms, shutdown_ms) = (settings.closing_ms, config.shutdown_timeout_ms);
            if closing_ms > shutdown_ms {
                log::warn!(
                    "closing_ms = {closing_ms} of the room type {name:?} is longer than \
                     shutdown_timeout_ms = {shutdown_ms}: a shutdown may drop its rooms before \
                     they have ended; raise shutdown_timeout_ms or lower closing_ms"
                );
            }
        }
        for &core in &config.pin_cores {
            sys::check_core(core).map_err(|error| named("pin_cores", &error))?;
        }
        for doubt in channel_rules.doubts(config.publication_bytes_max) {
            log::warn!("{doubt}");
        }
        let is_per_shard = config.descriptors == Descriptors::PerShard;
        let mut listeners = Listeners::new(shards, is_per_shard);
        let has_rooms_or_channels = !room_types.is_empty() || !channel_rules.is_empty();
        let has_paths = services.iter().any(|service| service.path.is_some());
        let serves_clients = has_rooms_or_channels || fleet.is_some() || has_paths;
        let serves_rooms = services.is_empty() || serves_clients || !site.is_empty();
        let rooms_addr = if serves_rooms {
            Some(listeners.listen(config.listen, None, &format!("listen = {}", config.listen))?)
        } else {
            None
        };
        let (mut service_addrs, mut service_paths) = (Vec::new(), Vec::new());
        for (number, service) in services.iter().enumerate() {
            if let Some(address) = service.address {
                let name = format!("service {number} at {address}");
                service_addrs.push(listeners.listen(address, Some(number as u16), &name)?);
            }
            if let Some(path) = &service.path {
                service_paths.push((path.clone(), number as u16));
            }
        }
        let Some(local_addr) = rooms_addr.or(service_addrs.first().copied()) else {
            return Err(io::Error::other("nothing listens"));
        };
        let Edges { polls, mailboxes, tables } =
            Edges::new(shards, is_per_shard, config.mailbox_max)
                .map_err(|error| named("descriptors", &error))?;
        let shared = Arc::new(SharedRuntime {
            mailboxes,
            began: Instant::now(),
            stops: AtomicBool::new(false),
            closed: (0..shards).map(|_| AtomicBool::new(false)).collect(),
            connections: AtomicUsize::new(0),
            connections_max: config.connections_max,
            shutdown_timeout: config.shutdown_timeout(),
            rooms_addr,
            tls,
            tls_only: config.tls_only,
            tables,
            work: Work::default(),
        });
        let (control, control_threads) = Control::start(
            Arc::clone(&shared),
            compute_threads,
            config.compute_queue_max,
            config.tasks_max,
            config.authentications_max,
        )?;
        let control = Arc::new(control);
        // What shards wake is opened before their descriptor tables part, and the rest after.
        let http_runtime = site.has_work().then(Worker::runtime).transpose()?;
        let threads: Vec<ShardThread> = (0..shards)
            .map(|index| ShardThread::start(index, Arc::clone(&shared)))
            .collect::<io::Result<_>>()?;
        let threads: Vec<ShardThread> = threads
            .into_iter()
            .map(ShardThread::ready)
            .collect::<io::Result<_>>()
            .map_err(|error| named("descriptors", &error))?;
        let (desk, orders) = Desk::new(&config);
        let store = store.map(|open| open()).transpose().map_err(io::Error::other)?;
        let tokens = TokenKey::new(&Entropy::System.bytes());
        let mut node =
            Node::new(config, shards, room_types, site, desk, authenticator, store, tokens);
        node.tickets = tickets;
        node.service_paths = service_paths;
        node.channel_rules = channel_rules;
        node.fleet = fleet
            .map(|(fleet, settings)| {
                HostedFleet::new(fleet, settings, &node.config, &mut Entropy::System)
            })
            .transpose()
            .map_err(|error| {
                let text = format!("FleetSettings::ids: {error}");
                io::Error::new(io::ErrorKind::InvalidInput, text)
            })?;
        let node = Arc::new(node);
        let published: Vec<Arc<Published>> = (0..shards).map(|_| Arc::default()).collect();
        let (tells, words) = sync_channel(shards + 1);

        let handle = NodeHandle::new(Arc::clone(&shared), Arc::clone(&node), &published);
        let mut running = Running {
            handle: handle.clone(),
            http: None,
            stopper: Stopper { shared: Arc::clone(&shared), tells: tells.clone() },
            local_addr,
            service_addrs: service_addrs.clone(),
            published: published.clone(),
            node: Arc::clone(&node),
            leash: Arc::default(),
            watchdog: None,
            reloader: None,
            shards: Vec::new(),
            words,
            control_threads: Some(control_threads),
            shutdown_timeout: node.config.shutdown_timeout(),
        };
        if let Some(runtime) = http_runtime {
            let (shared, node) = (Arc::clone(&shared), Arc::clone(&node));
            running.http = Some(Worker { shared, node, handle }.start(runtime, orders)?);
        }
        let mut begun = Vec::new();
        for (index, (thread, poll)) in threads.into_iter().zip(polls).enumerate() {
            let published = Arc::clone(&published[index]);
            let mut shard = Shard::new(
                index as u16,
                Arc::clone(&node),
                Arc::clone(&control) as _,
                Entropy::System,
                Watch(Arc::clone(&published)),
                Stopwatch::start(),
            );
            shard.reach_by(running.handle());
            for service in &mut services {
                shard.host((service.make)(index));
            }
            let guard = EndGuard {
                index,
                node: Arc::clone(&node),
                shared: Arc::clone(&shared),
                published,
                ends: tells.clone(),
                has_failed: true,
            };
            let (thread, starts) = thread.run(shard, poll, listeners.of(index), guard);
            running.shards.push(thread);
            begun.push(starts);
        }
        for starts in begun {
            let failed = || io::Error::other("a shard failed at its start; see the log");
            starts.recv().map_err(|_| failed())??;
        }
        // Each shard listens by now.
        drop(listeners);
        let watchdog = Watchdog { node: Arc::clone(&node), published, began: shared.began };
        let leash = Arc::clone(&running.leash);
        let thread = thread::Builder::new().name("playfield-watchdog".into());
        running.watchdog = Some(thread.spawn(move || watchdog.run(&leash))?);
        let tls = shared.tls.as_deref();
        if let Some(reloader) = tls.and_then(TlsContext::reloader) {
            let (period, leash) = (running.node.config.tls_reload(), Arc::clone(&running.leash));
            let thread = thread::Builder::new().name("playfield-tls".into());
            running.reloader = Some(thread.spawn(move || reloader.run(period, &leash))?);
        }
        if rooms_addr.is_some() {
            let with_tls = if tls.is_some() { ", with TLS" } else { "" };
            log::info!("listening on {local_addr} with {shards} shards{with_tls}");
        }
        let listening = services.iter().enumerate().filter(|(_, of)| of.address.is_some());
        for ((number, _), address) in listening.zip(&service_addrs) {
            log::info!("service {number} listens on {address} with {shards} shards");
        }
        for (path, number) in &node.service_paths {
            log::info!("service {number} is reached by WebSocket under {path}");
        }
        if let Some(fleet) = &running.node.fleet {
            fleet.call(|fleet| fleet.started(&running.handle));
        }
        for call in on_start {
            call(running.handle());
        }
        Ok(running)
    }
}

/// The longest path of a service.
const PATH_BYTES_MAX: usize = 1_024;

/// Whether a service may be reached at this path.
fn check_path(path: &str, is_known: bool) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#%\"<>\\^`{|}".contains(&byte);
    if !path.starts_with('/') || !path.bytes().all(is_plain) {
        return Err(format!(
            "the path {:?} of a service must begin with a slash and have no characters that URLs \
             encode",
            excerpt(path, 128)
        ));
    }
    if path.len() > PATH_BYTES_MAX {
        let bytes = path.len();
        return Err(format!("a service's path has {bytes} bytes; {PATH_BYTES_MAX} are the most"));
    }
    if is_known {
        return Err(format!("two services have the path {path:?}"));
    }
    Ok(())
}

/// How many open files a node needs beside its connections, roughly.
const DESCRIPTORS_RESERVED: u64 = 64;

/// What to say if the system allows fewer open files than `connections_max` needs; `None` stands
/// for no limit.
fn too_few(descriptors: Option<u64>, tables: u64, connections_max: usize) -> Option<String> {
    let descriptors = descriptors?;
    let connections = descriptors.saturating_sub(DESCRIPTORS_RESERVED).saturating_mul(tables);
    (connections < connections_max as u64).then(|| {
        let whom = if tables > 1 { "each shard" } else { "this process" };
        format!(
            "connections_max = {connections_max}: the system allows {whom} {descriptors} open \
             files, which is enough for {connections} connections; raise the hard limit (ulimit \
             -Hn, LimitNOFILE in systemd), give each shard its own table (descriptors = \
             per_shard), or lower connections_max"
        )
    })
}

/// An error, with the setting it comes of.
pub(crate) fn named(setting: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{setting}: {error}"))
}

/// A running node. Dropping it shuts it down, as [`shutdown`](Self::shutdown) does.
pub struct Running {
    handle: NodeHandle,
    /// The thread of HTTP handlers.
    http: Option<JoinHandle<()>>,
    stopper: Stopper,
    local_addr: SocketAddr,
    service_addrs: Vec<SocketAddr>,
    published: Vec<Arc<Published>>,
    node: Arc<Node>,
    leash: Arc<Leash>,
    watchdog: Option<JoinHandle<()>>,
    /// The thread that looks for new certificates.
    reloader: Option<JoinHandle<()>>,
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

/// What a thread that waits for the node's end receives.
pub(crate) enum Word {
    /// Someone stopped the node.
    Stop,
    /// A shard's thread has ended.
    Ended,
}

impl Stopper {
    /// Begins the shutdown: the node stops accepting connections, closes its rooms, waits for their
    /// end, and says goodbye to its clients. Does not wait itself.
    pub fn stop(&self) {
        self.shared.stops.store(true, Ordering::Release);
        // The thread that waits need not learn it twice.
        let _ = self.tells.try_send(Word::Stop);
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

    /// The addresses of its services, in the order in which they were added.
    #[must_use]
    pub fn service_addrs(&self) -> &[SocketAddr] {
        &self.service_addrs
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
        let ended = usize::from(matches!(self.words.recv(), Ok(Word::Ended)));
        self.stopper.stop();
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
    /// `shutting_down`, for no longer than `shutdown_timeout_ms`.
    ///
    /// Returns when all threads have ended and the store is closed, so that its file can be opened
    /// again. It waits for the store up to 10 s more. If a room or its background work does not
    /// return in time, its thread is left behind. What was not finished is logged;
    /// [`stop`](Stopper::stop) and [`wait`](Self::wait) return it.
    pub fn shutdown(self) {
        drop(self);
    }

    /// Waits for all threads, `ended` of which are known to have ended; gives up on those that take
    /// too long. Returns what was not finished.
    fn join(&mut self, ended: usize) -> Vec<String> {
        let mut unfinished = Vec::new();
        let deadline = Instant::now() + self.shutdown_timeout + LAST_TURN;
        let mut missing = self.shards.len() - ended;
        while missing > 0 {
            match self.words.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Word::Ended) => missing -= 1,
                Ok(Word::Stop) => {}
                // No thread is left that could report.
                Err(RecvTimeoutError::Disconnected) => missing = 0,
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        self.leash.end();
        self.node.asks.end();
        // As with a computation, a handler that never returns keeps its thread.
        self.node.desk.stop();
        drop(self.http.take());
        // A computation may take for ever; its thread ends after it, or with the process.
        drop(self.control_threads.take().map(ControlThreads::stop));
        // Both end with the leash, whatever the shards do.
        for thread in [self.watchdog.take(), self.reloader.take()].into_iter().flatten() {
            let _ = thread.join();
        }
        for thread in self.shards.drain(..) {
            if missing == 0 || thread.is_finished() {
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
            let ms = self.shutdown_timeout.as_millis();
            unfinished.push(format!(
                "rooms dropped before they had ended: {undone} (not saved: {unsaved}); raise \
                 shutdown_timeout_ms = {ms} or their closing_ms"
            ));
        }
        // Its rooms are gone, so this releases the file: the process may open it again.
        if !self.node.store.close(STORE_CLOSE_MAX) {
            let wait = STORE_CLOSE_MAX.as_secs();
            let text = format!("the store has not written what it accepted within {wait} s");
            log::error!("{text}; it goes on while the process runs");
            unfinished.push(text);
        }
        unfinished
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

#[cfg(test)]
mod tests {
    use super::too_few;

    #[test]
    fn a_limit_of_descriptors_below_connections_max_is_said() {
        assert_eq!(too_few(None, 1, 100_000), None);
        assert_eq!(too_few(Some(100_064), 1, 100_000), None);
        assert_eq!(too_few(Some(10_064), 10, 100_000), None);
        assert!(too_few(Some(10_064), 9, 100_000).is_some());
        let text = too_few(Some(1024), 1, 1000).unwrap();
        assert!(
            text.starts_with("connections_max = 1000: ") && text.contains(" 960 conn"),
            "{text}"
        );
    }
}
