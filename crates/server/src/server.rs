//! A node: what it is to serve, how it starts, and how it runs.

mod clustered;
mod doubts;
mod open;
mod running;
mod services;
mod shards;
mod start;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use playfield_room::{OnePerUser, RoomType, Store, StoreError};
use playfield_wire::schema::Type;

use crate::auth::{Admit, Authenticator, Decision, Identity};
use crate::channel::{ChannelRule, ChannelRules};
use crate::clock::Pace;
use crate::cluster::ConnectEngine;
use crate::config::Config;
use crate::fleet::{Fleet, FleetSettings};
use crate::handle::NodeHandle;
use crate::http::Site;
use crate::tickets::TicketChecker;
pub(crate) use running::Word;
pub use running::{Running, Stopper};
use services::ServiceAt;

/// A node that is not running yet.
pub struct Server {
    config: Config,
    pace: Pace,
    room_types: Vec<RoomType>,
    site: Site,
    /// The first error in what was added.
    wrong: Option<String>,
    authenticator: Option<Box<dyn Authenticator>>,
    admit: Option<Arc<Admit>>,
    one_session_per_user: OnePerUser,
    tickets: Option<Box<dyn TicketChecker>>,
    channel_rules: ChannelRules,
    fleet: Option<(Box<dyn Fleet>, FleetSettings)>,
    store: Option<OpenStore>,
    services: Vec<ServiceAt>,
    private_http: Vec<(SocketAddr, Router)>,
    on_start: Vec<OnStart>,
    opens: Vec<Box<dyn FnOnce() -> io::Result<OnStart>>>,
    /// Connects to the engine of a cluster.
    connect: Option<ConnectEngine>,
    /// Sends WebSocket messages back, in place of sessions.
    pub(crate) echoes: bool,
}

/// Opens the store when the node starts.
type OpenStore = Box<dyn FnOnce() -> Result<Arc<dyn Store>, StoreError>>;

/// Called with the handle of the node, once it runs.
type OnStart = Box<dyn FnOnce(NodeHandle)>;

impl Server {
    /// A node with these settings, and nothing to serve.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            pace: Pace::default(),
            room_types: Vec::new(),
            site: Site::default(),
            wrong: None,
            authenticator: None,
            admit: None,
            one_session_per_user: OnePerUser::No,
            tickets: None,
            channel_rules: ChannelRules::default(),
            fleet: None,
            store: None,
            services: Vec::new(),
            private_http: Vec::new(),
            on_start: Vec::new(),
            opens: Vec::new(),
            connect: None,
            echoes: false,
        }
    }

    /// Runs the node at another pace, to measure it.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Changes the room types, such as their rates, to measure them.
    #[must_use]
    pub fn change_room_types(mut self, change: impl FnMut(&mut RoomType)) -> Self {
        self.room_types.iter_mut().for_each(change);
        self
    }

    /// The room types by name, each with its schema as JSON.
    pub fn schemas(&self) -> impl Iterator<Item = (&str, &str)> {
        self.room_types.iter().map(|of| (of.name.as_str(), &*of.schema))
    }

    /// The room type of a name.
    #[must_use]
    pub fn find_room_type(&self, name: &str) -> Option<&RoomType> {
        self.room_types.iter().find(|of| of.name == name)
    }

    /// The types of states in the saves of room types that are kept, by name.
    pub fn saved_types(&self) -> impl Iterator<Item = (&str, Type)> {
        let kept = self.room_types.iter().filter(|of| of.settings.persist_s > 0);
        kept.map(|of| (of.name.as_str(), (of.saved)()))
    }

    /// Opens the store, without starting a node; `None` if the server has none.
    ///
    /// # Errors
    /// If it can't be opened: a node may use it.
    pub fn into_store(self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        self.store.map(|open| open()).transpose()
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

    /// Serves a page to browsers, under a path such as `/`: compressed to those that take that, and
    /// in few bytes to those that have it already. [`start`](Self::start) fails if the path does
    /// not begin with a slash or has a page already.
    #[must_use]
    pub fn page(
        mut self,
        path: impl Into<String>,
        content_type: impl Into<String>,
        body: impl Into<Vec<u8>>,
    ) -> Self {
        let added = self.site.page(path.into(), &content_type.into(), body.into());
        self.note(added);
        self
    }

    /// Serves a script as [`page`](Self::page) does, which pages of any origin may load.
    #[must_use]
    pub fn script(mut self, path: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let added = self.site.script(path.into(), body.into());
        self.note(added);
        self
    }

    /// Calls `handler` for HTTP requests with this method, such as `POST`, and a path such as
    /// `/rooms/{id}/score`, where a name in braces takes any one segment. The handler is one of
    /// [`axum`](axum::handler), which may take the [`NodeHandle`].
    ///
    /// Handlers run on the control thread, with a Tokio runtime, so they must not block.
    /// [`start`](Self::start) fails if the method or the path is invalid, or has a handler already.
    #[must_use]
    pub fn route<H, T>(mut self, method: &str, path: &str, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let added = self.site.route(method, path, handler);
        self.note(added);
        self
    }

    /// Serves a router of [`axum`], with its middleware, after pages and routes. Handlers may take
    /// the [`NodeHandle`], and the client's address as `ConnectInfo<SocketAddr>`. If there are
    /// folders, they take the place of the router's fallback.
    ///
    /// [`start`](Self::start) fails if two routers overlap, or each has a fallback.
    #[must_use]
    pub fn http(mut self, router: Router) -> Self {
        self.site.router(router);
        self
    }

    /// Serves a router of [`axum`] at an address of its own, which may be reached by operators only;
    /// port 0 picks a free one, which [`Running::http_addrs`] returns. Handlers may take the
    /// [`NodeHandle`] and the client's address, as those of [`http`](Self::http), and the limits of
    /// `[http]` hold. There are no pages, no TLS and no rooms. Who reaches the address is not
    /// checked.
    #[must_use]
    pub fn http_on(mut self, address: SocketAddr, router: Router) -> Self {
        self.private_http.push((address, router));
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

    /// Calls `admit` with who a client is, once the authenticator has accepted it, at each hello.
    /// It returns the identity, which it may change, or why the client is refused: now, or
    /// [later](Decision::later). It runs on a shard's thread, so it must not block.
    ///
    /// It is called for each ticket, too, whose user is not the session's: with that user, without
    /// claims, and with [`tickets_only`](Identity::tickets_only). The join is refused with its
    /// error, and the ticket stays valid; of the identity that it returns, nothing is used.
    #[must_use]
    pub fn admit<F, D>(mut self, admit: F) -> Self
    where
        F: Fn(Identity) -> D + Send + Sync + 'static,
        D: Into<Decision>,
    {
        self.admit = Some(Arc::new(move |identity| admit(identity).into()));
        self
    }

    /// Sets what happens to a hello of a user who has a session. Without it, a user may have many.
    #[must_use]
    pub fn one_session_per_user(mut self, what: OnePerUser) -> Self {
        self.one_session_per_user = what;
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

    /// Like [`store`](Self::store), with a store that is opened when the node starts.
    #[must_use]
    pub fn open_store<S: Store + 'static>(
        mut self,
        open: impl FnOnce() -> Result<S, StoreError> + 'static,
    ) -> Self {
        self.store = Some(Box::new(|| open().map(|store| Arc::new(store) as Arc<dyn Store>)));
        self
    }

    /// Sets how to connect to the engine of a cluster, if the setting `cluster.engine` names one.
    #[must_use]
    pub fn connect_engine(mut self, connect: ConnectEngine) -> Self {
        self.connect = Some(connect);
        self
    }

    /// Puts the node into the cluster of this engine, unless `cluster.engine` names another.
    /// [`start`](Self::start) fails if it is not a list of URLs.
    #[must_use]
    pub fn cluster(mut self, engine: &str) -> Self {
        if !self.config.cluster.is_on() {
            let set = self.config.set("cluster.engine", engine);
            self.note(set.map_err(|error| error.to_string()));
        }
        self
    }

    /// Calls this with a handle to the node when it has started, on the thread that starts it: for
    /// programs that leave the rest to the command line.
    #[must_use]
    pub fn on_start(mut self, call: impl FnOnce(NodeHandle) + 'static) -> Self {
        self.on_start.push(Box::new(call));
        self
    }

    /// Like [`on_start`](Self::on_start), with the function that `open` returns. `open` may open
    /// ports of its own, and runs after the store is opened and before the node's ports are. If it
    /// fails, the node does not start.
    #[must_use]
    pub fn on_start_open(
        mut self,
        open: impl FnOnce() -> io::Result<Box<dyn FnOnce(NodeHandle)>> + 'static,
    ) -> Self {
        self.opens.push(Box::new(open));
        self
    }

    /// Starts the node. When this returns, it accepts connections.
    ///
    /// # Errors
    /// If there are persistent room types and no store, the store can't be opened, an address can't
    /// be listened on, a thread can't be started, there are more than 65,535 room types or 64
    /// services, or something that was added is invalid or there twice.
    pub fn start(self) -> io::Result<Running> {
        start::start(self)
    }
}

/// An error, with the setting it comes of.
pub(crate) fn named(setting: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{setting}: {error}"))
}
