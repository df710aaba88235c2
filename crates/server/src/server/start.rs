//! The start of a node: everything is checked, then opened, then run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use std::{io, thread};

use playfield_room::{RoomType, Store};

use super::doubts::{raise_descriptors, trusts_everyone};
use super::open::Open;
use super::running::{Running, Stopper};
use super::services::ServiceAt;
use super::shards::shard_threads;
use super::{OnStart, OpenStore, Server, named};
use crate::addresses::Addresses;
use crate::auth::{Admitting, Guests};
use crate::clock::{BEGIN, Clock};
use crate::cluster::Connected;
use crate::config::Descriptors;
use crate::control::Control;
use crate::entropy::Entropy;
use crate::event_loop::SharedRuntime;
use crate::fleet::HostedFleet;
use crate::handle::NodeHandle;
use crate::http::{self, Handover, PrivateHttp};
use crate::journal::Journal;
use crate::memory_limit::MemoryLimit;
use crate::node::Node;
use crate::recordings::Recordings;
use crate::shard_thread::Edges;
use crate::stats::Published;
use crate::tls::TlsContext;
use crate::upgrade::{self, Accepted, Inherited, Phases, Successor};
use crate::watchdog::Watchdog;
use crate::{reach, sys};

/// The most services that a node may have.
const SERVICES_MAX: usize = 64;

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

    let mut accepted = match &mut successor {
        Some(successor) => {
            successor.greet(server.room_types.iter().map(|of| of.name.clone()).collect())?
        }
        None => Accepted::default(),
    };
    let mut phases = successor.is_some().then(|| Phases::begin("new"));
    let mut ended = |phase| phases.iter_mut().for_each(|phases| phases.end(phase));

    let is_clustered = server.config.cluster.is_on();
    if successor.is_some() && is_clustered {
        let text = "a node of a cluster is not upgraded in place; start the new build as another \
                    node, and stop this one";
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    // Whoever finds the port open takes the node for ready, so what may fail comes first.
    let (mut to_open, mut store) = (server.store.take(), None);
    let journal =
        Journal::open(&server.config.journal, &server.room_types, shards, successor.is_some())?;
    let (mut inherited, mut ending) = (Inherited::default(), Vec::new());
    if successor.is_none() {
        store = open_store(to_open.take())?;
        server.check_store(store.as_deref())?;
        if let Some(journal) = &journal {
            let rooms = journal.recover(&server.room_types, store.as_ref())?;
            ending = rooms.ending;
            (accepted, inherited) = Inherited::recovered(rooms.open, &server.room_types)?;
        }
    }
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
    let connected = Connected::connect(&server.config.cluster, server.connect.take())?;
    let config = &server.config;
    let is_per_shard = config.threads.descriptors == Descriptors::PerShard;
    let Edges { polls, mailboxes, tables } =
        Edges::new(shards, is_per_shard, config.limits.queues.mail)
            .map_err(|error| named("threads.descriptors", &error))?;
    let (handover, handed) = Handover::new();
    let shared = Arc::new(SharedRuntime {
        clock: Clock::start(server.pace, accepted.now().max(BEGIN)),
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
    let recordings = Recordings::start(&server.config.recordings)?;

    if let Some(successor) = &mut successor {
        ended("start");
        // From here on nothing runs in the old process.
        inherited = successor.inherit()?;
        ended("wait for rooms and sessions");
        store = open_store(to_open.take())?;
        ended("store");
    }
    let mut open = Open::new(&server, serves_rooms, shards, &mut inherited.listeners)?;
    if let Some(address) = open.rooms_addr {
        // A node starts once.
        let _ = shared.rooms_addr.set(address);
    }
    let mut member = None;
    let mut secret = accepted.secret;
    if let Some(connected) = connected {
        secret = connected.secret;
        let addresses = server.client_urls(open.rooms_addr, shared.tls.is_some())?;
        let types = server.room_types.iter().map(|of| (of.name.clone(), of.fingerprint)).collect();
        member = Some(connected.join(&server.config.cluster, addresses, types)?);
    }
    let (mut node, mut services, on_start) = server.into_node(shards, store, fleet, secret);
    node.cluster = member.as_ref().map(|member| Arc::clone(&member.cluster));
    node.addresses = Addresses::with_memory(&node.config, memory_max);
    node.recordings = recordings;
    node.asks.count_from(Entropy::System.number());
    node.journal = journal;
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
        member,
        words,
        control_threads: Some(control_threads),
        shutdown_timeout: node.config.timeouts.shutdown,
    };
    running.http = Some(http::serve(control.runtime(), handle, site, handed, private_http));
    let threads: Vec<_> = threads.into_iter().zip(polls).collect();
    let control = Arc::new(control);
    let mut made = running.make_shards(&mut services, &control)?;
    if successor.is_some() || inherited.has_any() {
        ended("node");
        let thawed = inherited.thaw(shared.clock.now(), &node, &mut made);
        open.listeners.pass_on(thawed.map_err(io::Error::other)?);
        ended("thaw");
    }
    if let Some(shard) = made.first_mut() {
        shard.save_later(ending);
    }
    if let Some(successor) = &mut successor {
        successor.hold()?;
    }
    // Before the shards, which may seek rooms as soon as they run: clients have connected by now.
    if let Some(member) = &running.member {
        member.serve(running.handle());
    }
    running.start_shards(made, threads, open.listeners, &tells)?;
    if let Some(successor) = &mut successor {
        ended("start of the shards");
        successor.serves()?;
        shared.is_alone.store(true, Ordering::Release);
        if let Some(journal) = &node.journal {
            journal.take_over();
        }
        shared.wake_all();
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

fn open_store(open: Option<OpenStore>) -> io::Result<Option<Arc<dyn Store>>> {
    open.map(|open| open()).transpose().map_err(io::Error::other)
}

impl Running {
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
            log::info!(
                "private HTTP at {}{}",
                reach::url(*address, false),
                reach::hint(*address, false)
            );
        }
        for (path, number) in &self.node.service_paths {
            log::info!("service {number} is reached by WebSocket under {path}");
        }
    }
}
