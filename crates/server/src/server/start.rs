//! The start of a node: everything is checked, then opened, then run.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use mio::Poll;
use playfield_room::{RoomType, Store};

use super::running::{Running, Stopper, Word};
use super::{OnStart, Server, ServiceAt, named};
use crate::addresses::Addresses;
use crate::auth::{Admitting, Guests};
use crate::clock::Clock;
use crate::config::{Config, Descriptors};
use crate::control::Control;
use crate::entropy::Entropy;
use crate::event_loop::SharedRuntime;
use crate::fleet::HostedFleet;
use crate::handle::NodeHandle;
use crate::http::{self, Handover, PrivateHttp};
use crate::memory_limit::MemoryLimit;
use crate::node::Node;
use crate::pulse::Watch;
use crate::reach;
use crate::shard::Shard;
use crate::shard::env::Stopwatch;
use crate::shard_thread::Edges;
use crate::shard_thread::EndGuard;
use crate::shard_thread::Listeners;
use crate::shard_thread::ShardThread;
use crate::stats::Published;
use crate::sys;
use crate::tls::TlsContext;
use crate::upgrade::{self, InheritedListener, Successor};
use crate::watchdog::Watchdog;

/// The most services that a node may have.
const SERVICES_MAX: usize = 64;

/// The number of open files that a node needs beside its connections, roughly.
const DESCRIPTORS_RESERVED: u64 = 64;

/// A warning if the system allows fewer open files than `limits.connections.total` needs.
/// The system sets no limit if `descriptors` is `None`.
fn too_few(descriptors: Option<u64>, tables: u64, connections_max: usize) -> Option<String> {
    let descriptors = descriptors?;
    let connections = descriptors.saturating_sub(DESCRIPTORS_RESERVED).saturating_mul(tables);
    (connections < connections_max as u64).then(|| {
        let whom = if tables > 1 { "each shard" } else { "this process" };
        format!(
            "limits.connections.total = {connections_max}: the system allows {whom} {descriptors} \
             open files, which is enough for {connections} connections; raise the hard limit \
             (ulimit -Hn, LimitNOFILE in systemd), give each shard its own table \
             (threads.descriptors = per_shard), or lower limits.connections.total"
        )
    })
}

/// A warning if anyone may name the address of a client.
fn trusts_everyone(config: &Config) -> Option<String> {
    let network = config.trusted_proxies.iter().find(|network| network.is_all())?;
    Some(format!(
        "trusted_proxies has {network}: any client may say that it has another address, and pass \
         all limits by address; name the addresses of your proxies only"
    ))
}

pub(super) fn start(server: Server) -> io::Result<Running> {
    let mut successor = Successor::of_this_process()?;
    let started = start_as(server, successor.as_mut());
    if let (Err(error), Some(successor)) = (&started, &mut successor) {
        successor.refuse(&error.to_string());
    }
    started
}

/// Starts a node, which may take over from another process.
fn start_as(mut server: Server, mut successor: Option<&mut Successor>) -> io::Result<Running> {
    server.check()?;
    let (memory_max, text) = server.config.memory_max(MemoryLimit::of_this_process().as_ref());
    if let Some(text) = text {
        log::info!("{text}");
    }
    let config = &server.config;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let shards = if config.shards == 0 { cores } else { config.shards };
    let compute_threads =
        if config.threads.compute == 0 { (cores - 1).max(1) } else { config.threads.compute };
    let tls = TlsContext::new(config).map_err(io::Error::other)?.map(Arc::new);
    raise_descriptors(config, shards);
    server.warn();

    let inherited = match &mut successor {
        Some(successor) => {
            successor.greet(server.room_types.iter().map(|of| of.name.clone()).collect())?;
            Some(successor.inherit()?)
        }
        None => None,
    };
    let mut inherited = inherited.unwrap_or_default();

    // Whoever finds the port open takes the node for ready, so what may fail comes first.
    let store = server.store.take().map(|open| open()).transpose().map_err(io::Error::other)?;
    for open in std::mem::take(&mut server.opens) {
        server.on_start.push(open()?);
    }
    let private_http = std::mem::take(&mut server.private_http).into_iter();
    let private_http = private_http.map(|(address, router)| PrivateHttp::listen(address, router));
    let private_http = private_http.collect::<io::Result<Vec<_>>>()?;
    let serves_rooms = server.serves_rooms();
    let site = std::mem::take(&mut server.site).build();
    let site = site.map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
    let fleet = server.host_fleet()?;
    let config = &server.config;
    let mut open = Open::new(&server, serves_rooms, shards, &mut inherited.listeners)?;
    let is_per_shard = config.threads.descriptors == Descriptors::PerShard;
    let Edges { polls, mailboxes, tables } =
        Edges::new(shards, is_per_shard, config.limits.queues.mail)
            .map_err(|error| named("threads.descriptors", &error))?;
    let (handover, handed) = Handover::new();
    let shared = Arc::new(SharedRuntime {
        clock: Clock::start(server.pace, inherited.now()),
        rooms_addr: open.rooms_addr,
        tls,
        tables,
        ..SharedRuntime::new(config, server.pace, mailboxes, handover)
    });
    let (control, control_threads) = Control::start(
        Arc::clone(&shared),
        compute_threads,
        config.limits.queues.computations,
        config.limits.queues.tasks,
        config.limits.queues.authentications,
    )?;
    // What shards wake is opened before their descriptor tables part, and the rest after.
    let threads = shard_threads(&shared, shards)?;
    let (mut node, mut services, on_start) =
        server.into_node(shards, store, fleet, inherited.secret);
    node.addresses = Addresses::with_memory(&node.config, memory_max);
    let node = Arc::new(node);

    let published: Vec<Arc<Published>> = (0..shards).map(|_| Arc::default()).collect();
    let (tells, words) = sync_channel(shards + 1);
    let handle = NodeHandle::new(Arc::clone(&shared), Arc::clone(&node), &published);
    // Dropped by an error from here on, it ends what was started.
    let mut running = Running {
        handle: handle.clone(),
        http: None,
        stopper: Stopper { shared: Arc::clone(&shared), tells: tells.clone() },
        local_addr: open.local_addr,
        service_addrs: std::mem::take(&mut open.service_addrs),
        http_addrs: private_http.iter().map(PrivateHttp::address).collect(),
        published,
        node: Arc::clone(&node),
        leash: Arc::default(),
        watchdog: None,
        reloader: None,
        shards: Vec::new(),
        words,
        control_threads: Some(control_threads),
        shutdown_timeout: node.config.timeouts.shutdown,
    };
    running.http = Some(http::serve(control.runtime(), handle, site, handed, private_http));
    let threads: Vec<_> = threads.into_iter().zip(polls).collect();
    let control = Arc::new(control);
    let mut made = running.make_shards(&mut services, &control);
    if let Some(successor) = &mut successor {
        inherited.thaw(&mut made).map_err(io::Error::other)?;
        successor.hold()?;
    }
    running.start_shards(made, threads, open.listeners, &tells)?;
    if let Some(successor) = &mut successor {
        successor.serves()?;
    }
    running.start_watchdog()?;
    running.start_reloader()?;
    running.log_addresses(open.rooms_addr, &services);
    if let Some(fleet) = &running.node.fleet {
        fleet.call(|fleet| fleet.started(&running.handle));
    }
    for call in on_start {
        call(running.handle());
    }
    upgrade::is_ready();
    Ok(running)
}

impl Server {
    /// Refuses what can't be served, before anything is opened.
    fn check(&mut self) -> io::Result<()> {
        let invalid = |text| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        let persistent = self.room_types.iter().find(|of| of.settings.persist_s > 0);
        if let (Some(RoomType { name, .. }), None) = (persistent, &self.store) {
            return invalid(format!(
                "rooms of the type {name:?} are persistent (persist), but the node has no store: \
                 give it one with Server::store"
            ));
        }
        let pages = &self.config.pages;
        if self.wrong.is_none() && !pages.as_os_str().is_empty() {
            let set = self.site.take_pages_from(pages);
            self.wrong = set.err().map(|text| format!("pages = {pages:?}: {text}"));
        }
        if let Some(text) = self.wrong.take().or(self.site.check().err()) {
            return invalid(text);
        }
        let (room_types, services) = (self.room_types.len(), self.services.len());
        if room_types >= usize::from(u16::MAX) {
            return Err(io::Error::other(format!("{room_types} room types are too many")));
        }
        if services > SERVICES_MAX {
            let text = format!("{services} services are too many; there may be {SERVICES_MAX}");
            return Err(io::Error::other(text));
        }
        getrandom::fill(&mut [0; 1])
            .map_err(|error| io::Error::other(format!("no random numbers: {error}")))?;
        self.config.check().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        for &core in &self.config.threads.pin_cores {
            sys::check_core(core).map_err(|error| named("threads.pin_cores", &error))?;
        }
        Ok(())
    }

    /// Logs settings that are allowed but hardly meant.
    fn warn(&self) {
        for RoomType { name, settings, .. } in &self.room_types {
            let (closing_ms, shutdown) = (settings.closing_ms, self.config.timeouts.shutdown);
            if Duration::from_millis(closing_ms) > shutdown {
                log::warn!(
                    "closing_ms = {closing_ms} of the room type {name:?} is longer than \
                     timeouts.shutdown = {shutdown:?}: a shutdown may drop its rooms before \
                     they have ended; raise timeouts.shutdown or lower closing_ms"
                );
            }
        }
        if let Some(text) = trusts_everyone(&self.config) {
            log::warn!("{text}");
        }
        for doubt in self.channel_rules.doubts(self.config.limits.payload_bytes) {
            log::warn!("{doubt}");
        }
    }

    /// Returns whether it listens for clients, browsers or both, and not for services alone.
    fn serves_rooms(&self) -> bool {
        let has_paths = self.services.iter().any(|service| service.path.is_some());
        self.services.is_empty()
            || !self.room_types.is_empty()
            || !self.channel_rules.is_empty()
            || self.fleet.is_some()
            || has_paths
            || !self.site.is_empty()
    }

    /// The fleet, as the node has it.
    fn host_fleet(&mut self) -> io::Result<Option<HostedFleet>> {
        let Some((fleet, settings)) = self.fleet.take() else { return Ok(None) };
        let hosted = HostedFleet::new(fleet, settings, &self.config, &mut Entropy::System);
        hosted.map(Some).map_err(|error| {
            let text = format!("FleetSettings::ids: {error}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })
    }

    /// The node that its shards share, and what is left to be started: services, and calls at the
    /// end.
    fn into_node(
        self,
        shards: usize,
        store: Option<Arc<dyn Store>>,
        fleet: Option<HostedFleet>,
        token_secret: [u8; 32],
    ) -> (Node, Vec<ServiceAt>, Vec<OnStart>) {
        let Self { config, room_types, services, .. } = self;
        let name_bytes_max = config.limits.name_bytes.player;
        let authenticator =
            self.authenticator.unwrap_or_else(|| Box::new(Guests { name_bytes_max }));
        let authenticator = match self.admit.clone() {
            Some(admit) => Box::new(Admitting { authenticator, admit }),
            None => authenticator,
        };
        let mut node = Node::new(config, shards, room_types, authenticator, store, token_secret);
        node.admit = self.admit;
        node.tickets = self.tickets;
        node.users.keep_one(self.one_session_per_user);
        node.channel_rules = self.channel_rules;
        let paths = services.iter().enumerate();
        node.service_paths = paths
            .filter_map(|(number, service)| Some((service.path.clone()?, number as u16)))
            .collect();
        node.fleet = fleet;
        node.echoes = self.echoes;
        (node, services, self.on_start)
    }
}

/// Raises the limit of open files, and says so if that is still too few.
fn raise_descriptors(config: &Config, shards: usize) {
    let descriptors = match sys::raise_descriptors() {
        Ok(descriptors) => descriptors,
        Err(error) => return log::warn!("the limit of open files can't be raised: {error}"),
    };
    let tables = match config.threads.descriptors {
        Descriptors::Shared => 1,
        Descriptors::PerShard => shards as u64,
    };
    if let Some(text) = too_few(descriptors, tables, config.limits.connections.total) {
        // Few who did not set it need as many connections.
        let is_default =
            config.limits.connections.total == Config::default().limits.connections.total;
        let level = if is_default { log::Level::Info } else { log::Level::Warn };
        log::log!(level, "{text}");
    }
}

/// The sockets and addresses that the node listens at.
struct Open {
    listeners: Listeners,
    rooms_addr: Option<SocketAddr>,
    service_addrs: Vec<SocketAddr>,
    /// That for rooms, or else the first of a service.
    local_addr: SocketAddr,
}

impl Open {
    fn new(
        server: &Server,
        serves_rooms: bool,
        shards: usize,
        inherited: &mut Vec<InheritedListener>,
    ) -> io::Result<Self> {
        let config = &server.config;
        let mut listeners =
            Listeners::new(shards, config.threads.descriptors == Descriptors::PerShard);
        let rooms_addr = match serves_rooms {
            true => Some(listeners.listen(
                config.listen,
                None,
                &format!("listen = {}", config.listen),
                inherited,
            )?),
            false => None,
        };
        let mut service_addrs = Vec::new();
        for (number, service) in server.services.iter().enumerate() {
            if let Some(address) = service.address {
                let name = format!("service {number} at {address}");
                service_addrs.push(listeners.listen(
                    address,
                    Some(number as u16),
                    &name,
                    inherited,
                )?);
            }
        }
        match rooms_addr.or(service_addrs.first().copied()) {
            Some(local_addr) => Ok(Self { listeners, rooms_addr, service_addrs, local_addr }),
            None => Err(io::Error::other("nothing listens")),
        }
    }
}

/// Starts the threads of the shards, each of which opens its descriptor table.
fn shard_threads(shared: &Arc<SharedRuntime>, shards: usize) -> io::Result<Vec<ShardThread>> {
    let threads: Vec<ShardThread> = (0..shards)
        .map(|index| ShardThread::start(index, Arc::clone(shared)))
        .collect::<io::Result<_>>()?;
    threads
        .into_iter()
        .map(ShardThread::ready)
        .collect::<io::Result<_>>()
        .map_err(|error| named("threads.descriptors", &error))
}

impl Running {
    /// Makes the shards.
    fn make_shards(&self, services: &mut [ServiceAt], control: &Arc<Control>) -> Vec<Shard> {
        let make = |(index, published): (usize, &Arc<Published>)| {
            let mut shard = Shard::new(
                index as u16,
                Arc::clone(&self.node),
                Arc::clone(control) as _,
                Entropy::System,
                Watch(Arc::clone(published)),
                Stopwatch::start(),
            );
            shard.services.reach_by(self.handle());
            for service in &mut *services {
                shard.services.host((service.make)(index));
            }
            shard
        };
        self.published.iter().enumerate().map(make).collect()
    }

    /// Runs the shards on their threads. When this returns, each listens.
    fn start_shards(
        &mut self,
        shards: Vec<Shard>,
        threads: Vec<(ShardThread, Option<Poll>)>,
        mut listeners: Listeners,
        tells: &SyncSender<Word>,
    ) -> io::Result<()> {
        let mut begun = Vec::new();
        for (index, (shard, (thread, poll))) in shards.into_iter().zip(threads).enumerate() {
            let published = Arc::clone(&self.published[index]);
            let guard = EndGuard {
                index,
                node: Arc::clone(&self.node),
                shared: Arc::clone(&self.stopper.shared),
                published,
                ends: tells.clone(),
                has_failed: true,
            };
            let (thread, starts) = thread.run(shard, poll, listeners.of(index), guard);
            self.shards.push(thread);
            begun.push(starts);
        }
        for starts in begun {
            let failed = || io::Error::other("a shard failed at its start; see the log");
            starts.recv().map_err(|_| failed())??;
        }
        Ok(())
    }

    fn start_watchdog(&mut self) -> io::Result<()> {
        let watchdog = Watchdog {
            node: Arc::clone(&self.node),
            published: self.published.clone(),
            shared: Arc::clone(&self.stopper.shared),
        };
        let leash = Arc::clone(&self.leash);
        let thread = thread::Builder::new().name("playfield-watchdog".into());
        self.watchdog = Some(thread.spawn(move || watchdog.run(&leash))?);
        Ok(())
    }

    /// Looks for new certificates, if they come from files.
    fn start_reloader(&mut self) -> io::Result<()> {
        let tls = self.stopper.shared.tls.as_deref();
        if let Some(reloader) = tls.and_then(TlsContext::reloader) {
            let (period, leash) = (self.node.config.tuning.tls_reload, Arc::clone(&self.leash));
            let thread = thread::Builder::new().name("playfield-tls".into());
            self.reloader = Some(thread.spawn(move || reloader.run(period, &leash))?);
        }
        Ok(())
    }

    fn log_addresses(&self, rooms_addr: Option<SocketAddr>, services: &[ServiceAt]) {
        let shards = self.shards.len();
        if let Some(address) = rooms_addr {
            let has_tls = self.stopper.shared.tls.is_some();
            let (with_tls, hint) =
                (if has_tls { ", with TLS" } else { "" }, reach::hint(address, has_tls));
            log::info!("listening on {address} with {shards} shards{with_tls}{hint}");
        }
        let listening = services.iter().enumerate().filter(|(_, of)| of.address.is_some());
        for ((number, _), address) in listening.zip(&self.service_addrs) {
            log::info!("service {number} listens on {address} with {shards} shards");
        }
        for address in &self.http_addrs {
            log::info!("private HTTP at {}{}", reach::url(*address, false), reach::hint(*address, false));
        }
        for (path, number) in &self.node.service_paths {
            log::info!("service {number} is reached by WebSocket under {path}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{too_few, trusts_everyone};
    use crate::config::Config;

    #[test]
    fn a_node_that_trusts_everyone_as_a_proxy_says_so() {
        let doubt = |networks: &str| {
            let mut config = Config::default();
            config.set("trusted_proxies", networks).unwrap();
            trusts_everyone(&config)
        };
        for networks in ["", "10.0.0.0/8", "0.0.0.0/1,2001:db8::/32"] {
            assert_eq!(doubt(networks), None, "{networks}");
        }
        for (networks, named) in [("10.0.0.1,0.0.0.0/0", "0.0.0.0/0"), ("::/0", "::/0")] {
            let text = doubt(networks).unwrap();
            assert!(text.starts_with(&format!("trusted_proxies has {named}: ")), "{text}");
        }
    }

    #[test]
    fn a_limit_of_descriptors_below_connections_max_is_said() {
        assert_eq!(too_few(None, 1, 100_000), None);
        assert_eq!(too_few(Some(100_064), 1, 100_000), None);
        assert_eq!(too_few(Some(10_064), 10, 100_000), None);
        assert!(too_few(Some(10_064), 9, 100_000).is_some());
        let text = too_few(Some(1024), 1, 1000).unwrap();
        assert!(
            text.starts_with("limits.connections.total = 1000: ") && text.contains(" 960 conn"),
            "{text}"
        );
    }
}
