//! A server made of room types and services.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
#[cfg(feature = "store")]
use std::path::PathBuf;
#[cfg(feature = "tools")]
use std::process::ExitCode;
#[cfg(feature = "jwt")]
use std::sync::Arc;

#[cfg(feature = "tools")]
use playfield_cli::Purpose;
use playfield_room::{Error, OnePerUser, Room, RoomType, Store, StoreError};
use playfield_server::axum::Router;
use playfield_server::axum::handler::Handler;
use playfield_server::channel::ChannelRule;
use playfield_server::service::Service;
use playfield_server::{
    AsyncAuthenticator, Authenticator, Config, Decision, Fleet, FleetSettings, Identity,
    NodeHandle, Running, log_to_stderr,
};
use playfield_wire::client::Hello;

/// The browser client: a JavaScript module without dependencies, and the one that it loads for the
/// format `packed`.
const BROWSER_CLIENT: [(&str, &str); 2] = [
    ("/playfield.js", playfield_web::CLIENT),
    ("/playfield-packed.js", playfield_web::CLIENT_PACKED),
];

/// A server: its room types, the pages it serves to browsers, and services with custom protocols.
///
/// ```no_run
/// use playfield::prelude::*;
///
/// #[derive(State, Default)]
/// struct Lobby {
///     guests: Map<PlayerId, String>,
/// }
///
/// #[room()]
/// impl Room for Lobby {}
///
/// fn main() -> ExitCode {
///     Server::new().room::<Lobby>("lobby").run()
/// }
/// ```
pub struct Server {
    types: Vec<RoomType>,
    pages: Vec<Page>,
    authenticator: Option<MakeAuthenticator>,
    #[cfg(feature = "jwt")]
    tickets: Option<playfield_identity::Tickets>,
    channels: Vec<ChannelRule>,
    fleet: Option<Addition>,
    store: Option<Addition>,
    /// The store's file, if it is one.
    store_path: Option<std::path::PathBuf>,
    /// Routes, folders, and what is decided about users.
    site: Vec<Addition>,
    services: Vec<Addition>,
    has_service_paths: bool,
    on_start: Vec<Addition>,
    /// The engine of its cluster.
    #[cfg(feature = "cluster")]
    engine: Option<String>,
    /// Players for measurements, by the type of their room.
    #[cfg(feature = "load")]
    bots: Vec<(String, playfield_load::MakeBot)>,
    preparations: Vec<Preparation>,
}

/// An addition that is made when the server starts, and may fail.
type Preparation = Box<dyn FnOnce(Server) -> Result<Server, Box<dyn StdError + Send + Sync>>>;

/// An addition to the server below.
type Addition = Box<dyn FnOnce(playfield_server::Server) -> playfield_server::Server>;

/// Makes the authenticator, once the settings are known.
type MakeAuthenticator = Box<dyn FnOnce(&Config) -> Box<dyn Authenticator>>;

struct Page {
    path: String,
    content_type: String,
    body: Vec<u8>,
}

impl Server {
    /// Creates a server without rooms. It serves the browser client at `/playfield.js`, unless it
    /// has only services, no rooms and no pages.
    pub fn new() -> Self {
        Self {
            types: Vec::new(),
            pages: Vec::new(),
            authenticator: None,
            #[cfg(feature = "jwt")]
            tickets: None,
            channels: Vec::new(),
            fleet: None,
            store: None,
            store_path: None,
            site: Vec::new(),
            services: Vec::new(),
            has_service_paths: false,
            on_start: Vec::new(),
            #[cfg(feature = "cluster")]
            engine: None,
            #[cfg(feature = "load")]
            bots: Vec::new(),
            preparations: Vec::new(),
        }
    }

    /// Adds a room type, which clients ask for by `name`.
    ///
    /// # Panics
    /// If clients can't read the room's schema, because its types hold each other, are nested too
    /// deep or are too many: see [`RoomType::of`].
    #[must_use]
    pub fn room<R: Room>(mut self, name: &str) -> Self {
        self.types.push(RoomType::of::<R>(name));
        self
    }

    /// Puts the server into a cluster: its nodes share rooms by key, by NATS servers at these URLs,
    /// separated by commas. The setting `cluster.engine` names others. Rooms that are
    /// [kept](Self::store) need a store that all nodes share.
    ///
    /// ```no_run
    /// # use playfield::prelude::*;
    /// # #[derive(State, Default)]
    /// # struct Lobby {}
    /// # #[room()]
    /// # impl Room for Lobby {}
    /// # fn main() -> ExitCode {
    /// Server::new().room::<Lobby>("lobby").cluster("nats://nats-1:4222,nats://nats-2:4222").run()
    /// # }
    /// ```
    #[cfg(feature = "cluster")]
    #[must_use]
    pub fn cluster(mut self, engine: &str) -> Self {
        self.engine = Some(engine.to_owned());
        self
    }

    /// Serves `body` to a browser that asks for `path`: in gzip to those that take it, if that is
    /// shorter, and with an `ETag`, so that a browser loads again only what has changed. The server
    /// has a page of its own at `/playfield.js`, the browser client, which pages of any origin may
    /// load.
    ///
    /// The start fails if `path` does not begin with a slash, or has a page already.
    #[must_use]
    pub fn page(mut self, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.pages.push(Page {
            path: path.into(),
            content_type: content_type.into(),
            body: body.into(),
        });
        self
    }

    /// Calls `handler` for HTTP requests with this method, on the port of the rooms. A name in
    /// braces takes any one segment of the path, and `{*name}` all that are left.
    ///
    /// The handler is one of [`axum`](crate::axum::handler): its arguments are extractors, and its
    /// result is a response. The [`NodeHandle`] is an extractor, too: it tells and asks rooms. The
    /// client's address is `ConnectInfo<SocketAddr>`, behind a trusted proxy as well. An
    /// [`Error`] becomes a response as an [`http::Failure`](crate::http::Failure), by `?`.
    ///
    /// ```no_run
    /// use playfield::axum::extract::Path;
    /// use playfield::http::Failure;
    /// use playfield::prelude::*;
    /// use playfield::NodeHandle;
    ///
    /// #[derive(State, Default)]
    /// struct Board {
    ///     score: u32,
    /// }
    ///
    /// #[derive(Message)]
    /// #[reply(u32)]
    /// struct Add {
    ///     points: u32,
    /// }
    ///
    /// #[room(internal(Add))]
    /// impl Room for Board {}
    ///
    /// impl On<Add> for Board {
    ///     fn on(&mut self, add: Add, _: &mut Context<Self>) -> Result<u32> {
    ///         self.score += add.points;
    ///         Ok(self.score)
    ///     }
    /// }
    ///
    /// /// `curl -d 3 http://127.0.0.1:7350/rooms/<id>/score`
    /// async fn score(
    ///     node: NodeHandle,
    ///     Path(room): Path<String>,
    ///     body: String,
    /// ) -> Result<String, Failure> {
    ///     let points = body.parse().map_err(|_| "send a number")?;
    ///     Ok(format!("{}\n", node.ask(&room, &Add { points }).await?))
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     Server::new().room::<Board>("board").route("POST", "/rooms/{id}/score", score).run()
    /// }
    /// ```
    ///
    /// All handlers of a node share the control thread with a Tokio runtime (`current_thread`, with
    /// I/O and time enabled), apart from its rooms. So clients built on Tokio work in them, and a
    /// handler must not compute or block: use `tokio::task::spawn_blocking`. A handler that panics
    /// is answered with 500, and one that takes longer than `http.answer_timeout` with 503. When
    /// its client is gone, a handler is dropped at its next `await`.
    ///
    /// A `HEAD` request is handled as a `GET` unless it has a route of its own. Pages come before
    /// routes, then [routers](Self::http), then folders.
    ///
    /// The start fails if the path or the method is invalid, or has a handler or a page already.
    #[must_use]
    pub fn route<H, T>(mut self, method: &str, path: &str, handler: H) -> Self
    where
        H: Handler<T, ()>,
        T: 'static,
    {
        let (method, path) = (method.to_owned(), path.to_owned());
        self.site.push(Box::new(move |server| server.route(&method, &path, handler)));
        self
    }

    /// Serves a router of [`axum`](crate::axum), with its state and middleware, on the port of the
    /// rooms. What [`route`](Self::route) says of handlers holds for these.
    ///
    /// ```no_run
    /// use playfield::axum::{Router, routing::get};
    /// use playfield::NodeHandle;
    /// use playfield::prelude::*;
    ///
    /// async fn rooms(node: NodeHandle) -> String {
    ///     format!("{} rooms\n", node.stats().total().rooms)
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     Server::new().http(Router::new().route("/rooms", get(rooms))).run()
    /// }
    /// ```
    ///
    /// Pages and routes with the same path come first. A [folder](Self::folder) takes the place of
    /// the router's fallback.
    ///
    /// The limits on requests are outside the router's middleware: see `http.requests.total`,
    /// `http.body_bytes` and `http.answer_timeout`. A request is read to its end before the
    /// router sees it.
    ///
    /// # Panics
    /// At the start, if two routers have the same path and method.
    #[must_use]
    pub fn http(mut self, router: Router) -> Self {
        self.site.push(Box::new(move |server| server.http(router)));
        self
    }

    /// Serves a router of [`axum`](crate::axum) at an address of its own: for routes that players
    /// must not reach. Handlers are as those of [`http`](Self::http), on the same thread and under
    /// the same limits. TLS is off, and senders are not checked: listen on `127.0.0.1` or in a
    /// private network, or check a token in a layer of the router.
    ///
    /// ```no_run
    /// use playfield::axum::{Router, routing::post};
    /// use playfield::NodeHandle;
    /// use playfield::http::Failure;
    /// use playfield::prelude::*;
    ///
    /// async fn close(node: NodeHandle, room_id: String) -> Result<(), Failure> {
    ///     Ok(node.close(&room_id, "closed by an operator")?)
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     let admin = Router::new().route("/close", post(close));
    ///     Server::new().http_on(([127, 0, 0, 1], 7352), admin).run()
    /// }
    /// ```
    ///
    /// The start fails if the address can't be listened at.
    #[must_use]
    pub fn http_on(mut self, address: impl Into<SocketAddr>, router: Router) -> Self {
        let address = address.into();
        self.on_start.push(Box::new(move |server| server.http_on(address, router)));
        self
    }

    /// Serves the files of a folder on disk under `path`, such as `/` or `/assets`: with types by
    /// the ends of their names, `index.html` for a path that ends with a slash, and what browsers
    /// need to ask for changed files only. Large files are read and sent in pieces. Where a file
    /// with the same name and `.gz` lies beside one, clients that take gzip get that.
    ///
    /// Nothing outside the folder is served, even if a link in it leads there, and no file or
    /// folder whose name begins with a dot. Folders are not listed.
    ///
    /// The start fails if the folder does not exist.
    #[must_use]
    pub fn folder(mut self, path: &str, folder: impl AsRef<Path>) -> Self {
        let (path, folder) = (path.to_owned(), folder.as_ref().to_owned());
        self.site.push(Box::new(move |server| server.folder(&path, folder)));
        self
    }

    /// Sets the authenticator, which decides who may open a session, and as whom. Without one,
    /// every client is a guest with the name that it gives, as [`Guests`](crate::Guests) describes.
    ///
    /// ```
    /// use playfield::{Authenticator, Decision, Error, ErrorCode, Hello, Identity, Server};
    ///
    /// /// Knows users by their tokens.
    /// struct Tokens;
    ///
    /// impl Authenticator for Tokens {
    ///     fn authenticate(&self, hello: &Hello<'_>) -> Decision {
    ///         let decided = match hello.token.as_ref() {
    ///             b"secret" => Ok(Identity::user("ann", "Ann")),
    ///             _ => Err(Error::new(ErrorCode::Unauthorized, "unknown token; log in again")),
    ///         };
    ///         decided.into()
    ///     }
    /// }
    ///
    /// # fn connect(address: std::net::SocketAddr, token: &[u8]) -> Result<(), playfield::client::Error> {
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    /// # runtime.block_on(async {
    /// #     playfield::client::connect(&format!("tcp://{address}")).token(token).await.map(drop)
    /// # })
    /// # }
    /// let config = playfield::Config { listen: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    /// let running = Server::new().authenticator(Tokens).start(config)?;
    /// assert!(connect(running.local_addr(), b"secret").is_ok());
    /// assert!(connect(running.local_addr(), b"guess").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn authenticator(mut self, authenticator: impl Authenticator + 'static) -> Self {
        self.authenticator = Some(Box::new(|_| Box::new(authenticator)));
        self
    }

    /// Lets an async function decide who may open a session, and as which user. While it waits, for
    /// a database or a web service, other clients are served: it runs on the thread of the node's
    /// background tasks, which has a Tokio runtime. So it must not block or compute for long: use
    /// `tokio::task::spawn_blocking`.
    ///
    /// A client that waits is refused with `timeout` when `timeouts.hello` have passed since it
    /// connected, with `internal` if the function panics, and with `busy` if
    /// `limits.queues.authentications` wait already. The `resume` and `schemas` of the hello that
    /// the function gets are empty.
    ///
    /// ```no_run
    /// use playfield::prelude::*;
    /// use playfield::{ErrorCode, Identity};
    ///
    /// # async fn user_of(token: &[u8]) -> Option<(String, String)> { None }
    /// fn main() -> ExitCode {
    ///     Server::new()
    ///         .authenticate(|hello| async move {
    ///             // Asks a database.
    ///             match user_of(&hello.token).await {
    ///                 Some((id, name)) => Ok(Identity::user(id, name)),
    ///                 None => Err(Error::new(ErrorCode::Unauthorized, "log in again")),
    ///             }
    ///         })
    ///         .run()
    /// }
    /// ```
    #[must_use]
    pub fn authenticate<F, W>(mut self, decide: F) -> Self
    where
        F: Fn(Hello<'static>) -> W + Send + Sync + 'static,
        W: Future<Output = Result<Identity, Error>> + Send + 'static,
    {
        self.authenticator = Some(Box::new(|_| Box::new(AsyncAuthenticator(decide))));
        self
    }

    /// Opens sessions for users with a JSON Web Token (RFC 7519), and for no one else. The client
    /// sends it as its token.
    ///
    /// User, display name and claims are the token's; the name that the client gives is ignored.
    /// Rooms see them: [`Player::user`](crate::Player::user),
    /// [`Player::claims`](crate::Player::claims).
    ///
    /// ```
    /// use playfield::Server;
    /// use playfield::identity::{Jwt, KeyError, Keys};
    ///
    /// // For `Server::prepare`.
    /// fn with_login(server: Server) -> Result<Server, KeyError> {
    ///     let keys = Keys::file("login-keys.json")?;
    ///     let jwt = Jwt::new(keys).audience("my-game").issuer("https://login.example.com");
    ///     Ok(server.jwt(jwt))
    /// }
    /// ```
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn jwt(self, jwt: playfield_identity::Jwt) -> Self {
        self.jwt_by(jwt, false)
    }

    /// Works like [`jwt`](Self::jwt), but a client without a token gets a session, too, that may do
    /// nothing except join rooms by [tickets](Self::tickets) that name a user, and act in those
    /// rooms. All else is refused with `forbidden`. A client whose token is bad gets no session.
    ///
    /// ```
    /// use playfield::Server;
    /// use playfield::identity::{Jwt, KeyError, Keys, Tickets};
    ///
    /// // For `Server::prepare`.
    /// fn with_login(server: Server) -> Result<Server, KeyError> {
    ///     let players = Jwt::new(Keys::file("login-keys.json")?).audience("my-game");
    ///     let matched = Tickets::new(Keys::file("matchmaker-keys.json")?);
    ///     Ok(server.jwt_or_ticket(players).tickets(matched))
    /// }
    /// ```
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn jwt_or_ticket(self, jwt: playfield_identity::Jwt) -> Self {
        self.jwt_by(jwt, true)
    }

    #[cfg(feature = "jwt")]
    fn jwt_by(mut self, jwt: playfield_identity::Jwt, or_ticket: bool) -> Self {
        self.authenticator = Some(Box::new(move |config| {
            let name_bytes_max = config.limits.name_bytes.player;
            let jwt = Arc::new(jwt);
            Box::new(crate::jwt::JwtAuthenticator { jwt, name_bytes_max, or_ticket })
        }));
        self
    }

    /// Calls this with who each client is, once [`jwt`](Self::jwt), or another authenticator, has
    /// let it in: at each hello, also of one that comes back. It returns the identity, to which it
    /// may add, or why the client is refused. So a program adds checks of its own to tokens, and
    /// keys are still refreshed.
    ///
    /// It runs on a shard's thread and must not block. What takes time returns
    /// [`Decision::later`](crate::Decision::later), whose future runs as that of
    /// [`authenticate`](Self::authenticate).
    ///
    /// ```
    /// use std::collections::HashSet;
    /// use std::sync::{Arc, RwLock};
    ///
    /// use playfield::{Error, ErrorCode, Server};
    ///
    /// let banned: Arc<RwLock<HashSet<String>>> = Arc::default();
    /// let list = Arc::clone(&banned);
    /// let server = Server::new().admit(move |who| {
    ///     let is_banned = |user: &String| list.read().unwrap().contains(user);
    ///     if who.user.as_ref().is_some_and(is_banned) || who.claims.text("role") == Some("none") {
    ///         return Err(Error::new(ErrorCode::Unauthorized, "you are banned"));
    ///     }
    ///     Ok(who)
    /// });
    /// ```
    ///
    /// What takes time, and adds data:
    ///
    /// ```
    /// use playfield::{Claims, Decision, Server};
    ///
    /// # async fn level_of(user: &str) -> Result<u32, playfield::Error> { Ok(user.len() as u32) }
    /// let server = Server::new().admit(|who| {
    ///     Decision::later(async move {
    ///         let level = level_of(who.user.as_deref().unwrap_or_default()).await?;
    ///         Ok(who.claims(Claims::from_json(&format!(r#"{{"level":{level}}}"#))?))
    ///     })
    /// });
    /// ```
    ///
    /// It is asked about the user of each ticket, too, unless the session is that user's. Then
    /// [`tickets_only`](crate::Identity::tickets_only) is set, there are no claims, and of the
    /// identity that it returns nothing is used.
    #[must_use]
    pub fn admit<F, D>(mut self, admit: F) -> Self
    where
        F: Fn(Identity) -> D + Send + Sync + 'static,
        D: Into<Decision>,
    {
        self.site.push(Box::new(move |server| server.admit(admit)));
        self
    }

    /// Sets what happens to a hello of a user who has a session. Without it, a user may have many.
    ///
    /// | | |
    /// |---|---|
    /// | [`TakeOver`](OnePerUser::TakeOver) | the first session ends with `taken_over`, and its client does not connect again by itself. The second opens when it has left its rooms |
    /// | [`Refuse`](OnePerUser::Refuse) | the second is refused with `already_here`, until the first has ended |
    ///
    /// A session that is away counts. A client that comes back to its session opens no second one.
    /// One that comes back to a session that is over takes over none: it is refused with
    /// `taken_over`. Guests may have many, and joins by [tickets](Self::tickets) don't count.
    ///
    /// ```
    /// use playfield::{OnePerUser, Server};
    ///
    /// let server = Server::new().one_session_per_user(OnePerUser::TakeOver);
    /// ```
    #[must_use]
    pub fn one_session_per_user(mut self, what: OnePerUser) -> Self {
        self.site.push(Box::new(move |server| server.one_session_per_user(what)));
        self
    }

    /// Admits players with tickets, which a backend signs and clients present in place of a room's
    /// id: see [`Ticket`](crate::identity::Ticket). Each is used once.
    ///
    /// ```
    /// use playfield::Server;
    /// use playfield::identity::{KeyError, Keys, Signer, Ticket, Tickets};
    ///
    /// # let now = 1_800_000_000;
    /// // The backend, which may be written in another language: docs/protocol.md has the format.
    /// let (signer, public_key) = Signer::generate()?;
    /// let ticket = Ticket::by_key("duel", "match-17", now + 60)?.user("ann").seat("red");
    /// let text: String = signer.ticket(&ticket)?;
    ///
    /// // The node.
    /// let server = Server::new().tickets(Tickets::new(Keys::pem(public_key)?));
    /// # Ok::<(), KeyError>(())
    /// ```
    ///
    /// In the room, the player is the ticket's user, with its name if it has one, and
    /// [`Player::seat`](crate::Player::seat) is its seat.
    #[cfg(feature = "jwt")]
    #[must_use]
    pub fn tickets(mut self, tickets: playfield_identity::Tickets) -> Self {
        self.tickets = Some(tickets);
        self
    }

    /// Adds a rule for channels, by which clients publish and subscribe apart from rooms. The first
    /// rule that matches a channel's name decides. Without rules there are no channels.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use playfield::Server;
    /// use playfield::channel::{Access, ChannelRule};
    ///
    /// // Users chat in `chat:lobby` and the like; who comes back gets what they missed.
    /// let chat = ChannelRule::new("chat:*")
    ///     .publish(Access::User)
    ///     .presence(Access::Anyone)
    ///     .history(100, Duration::from_secs(600));
    /// // Each user has an inbox, which the server writes.
    /// let inbox = ChannelRule::new("inbox:{user}").history(20, Duration::from_secs(3600));
    /// let server = Server::new().channel(chat).channel(inbox);
    /// ```
    #[must_use]
    pub fn channel(mut self, rule: ChannelRule) -> Self {
        self.channels.push(rule);
        self
    }

    /// Lets clients register as devices, which report to the fleet and take commands. Connections
    /// of [services](Self::service) can be registered too. [`NodeHandle::devices`] finds them by id
    /// and by tag.
    ///
    /// ```
    /// use playfield::device::{Device, Fleet, FleetSettings, Gone};
    /// use playfield::{Result, Server};
    ///
    /// struct Meters;
    ///
    /// impl Fleet for Meters {
    ///     fn report(&self, meter: &Device, report: &[u8]) -> Result<Vec<u8>> {
    ///         println!("{}: {}", meter.id(), String::from_utf8_lossy(report));
    ///         Ok(Vec::new())
    ///     }
    ///
    ///     fn gone(&self, meter: &Device, why: Gone) {
    ///         println!("{} is gone: {why:?}", meter.id());
    ///     }
    /// }
    ///
    /// // Each user has meters of their own, such as `ann:kitchen`.
    /// let settings = FleetSettings::new().ids("{user}:*").silent_ms(20_000);
    /// let server = Server::new().fleet(Meters, settings);
    /// ```
    #[must_use]
    pub fn fleet(mut self, fleet: impl Fleet, settings: FleetSettings) -> Self {
        self.fleet = Some(Box::new(move |server| server.fleet(fleet, settings)));
        self
    }

    /// Keeps rooms with a key whose type is [persistent](Room#rooms-that-last) in this store. With
    /// such room types and no store, the node does not start.
    #[must_use]
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store_path = None;
        self.store = Some(Box::new(move |server| server.store(store)));
        self
    }

    /// Keeps them in a store that is opened when the node starts: one with settings of its own, or
    /// with TLS. If it can't be opened, the node does not start, and says why. The commands that
    /// need no store, such as `schema` and `generate`, don't open it.
    ///
    /// ```
    /// # #[cfg(feature = "store")] {
    /// use playfield::Server;
    /// use playfield::store::{DiskOptions, DiskStore};
    ///
    /// let server = Server::new().open_store(|| {
    ///     let mut options = DiskOptions::default();
    ///     options.cache_bytes = 256 << 20;
    ///     DiskStore::open_with("boards.redb", options)
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn open_store<S: Store + 'static>(
        mut self,
        open: impl FnOnce() -> Result<S, StoreError> + 'static,
    ) -> Self {
        self.store_path = None;
        self.store = Some(Box::new(move |server| server.open_store(open)));
        self
    }

    /// Keeps them in this file, which is opened when the node starts, and created if there is none:
    /// see [`DiskStore`](crate::store::DiskStore).
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store_file(self, path: impl Into<PathBuf>) -> Self {
        let path: PathBuf = path.into();
        let store_path = Some(path.clone());
        Self { store_path, ..self.open_store(move || playfield_store::DiskStore::open(path)) }
    }

    /// Keeps them in a PostgreSQL database, to which the node connects when it starts: see
    /// [`PostgresStore`](crate::store::PostgresStore). Several nodes may use it.
    ///
    /// ```no_run
    /// # use playfield::Server;
    /// let server = Server::new().store_postgres("postgres://game:secret@db.example/game");
    /// ```
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn store_postgres(self, url: impl Into<String>) -> Self {
        let url = url.into();
        self.open_store(move || playfield_store::PostgresStore::connect(&url))
    }

    /// Keeps them like [`store_postgres`](Self::store_postgres), with the URL in this variable of
    /// the environment. It is read when the node starts, so the commands that need no store run
    /// where it is not set.
    ///
    /// ```no_run
    /// # use playfield::Server;
    /// let server = Server::new().store_postgres_env("DATABASE_URL");
    /// ```
    #[cfg(feature = "postgres")]
    #[must_use]
    pub fn store_postgres_env(self, variable: impl Into<String>) -> Self {
        let variable = variable.into();
        self.open_store(move || playfield_store::PostgresStore::connect(&url_in(&variable)?))
    }

    /// Runs a custom protocol at its own address: see [`service`](crate::service). `make` is called
    /// once for each shard.
    ///
    /// A server with only services, no rooms and no pages, does not listen anywhere else.
    #[must_use]
    pub fn service<S: Service>(
        mut self,
        address: impl Into<SocketAddr>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        let address = address.into();
        self.services.push(Box::new(move |server| server.service(address, make)));
        self
    }

    /// Runs a custom protocol for WebSocket clients that connect with this path, such as `/chat`.
    /// Their messages are pieces of its stream, and each frame that it writes is a message.
    /// [`start`](Self::start) fails if the path is invalid or another service's.
    #[must_use]
    pub fn service_at_path<S: Service>(
        mut self,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        let path = path.into();
        self.has_service_paths = true;
        self.services.push(Box::new(move |server| server.service_at_path(path, make)));
        self
    }

    /// Does the same as [`service`](Self::service) and [`service_at_path`](Self::service_at_path)
    /// at once: clients of both are connections of the same service.
    #[must_use]
    pub fn service_and_path<S: Service>(
        mut self,
        address: impl Into<SocketAddr>,
        path: impl Into<String>,
        make: impl FnMut(usize) -> S + Send + 'static,
    ) -> Self {
        let (address, path) = (address.into(), path.into());
        self.has_service_paths = true;
        self.services.push(Box::new(move |server| server.service_and_path(address, path, make)));
        self
    }

    /// Calls this when the server starts, before it listens, and goes on with the server that it
    /// returns: for additions that may fail, such as keys from a file. If it fails, so does the
    /// start: [`run`](Self::run) prints the error. The commands `schema` and `generate` don't call
    /// it, so that they run where no keys are: add room types outside of it.
    ///
    /// ```no_run
    /// use playfield::identity::{Jwt, KeyError, Keys};
    /// use playfield::prelude::*;
    ///
    /// fn main() -> ExitCode {
    ///     Server::new().prepare(with_login).run()
    /// }
    ///
    /// fn with_login(server: Server) -> Result<Server, KeyError> {
    ///     let keys = Keys::file("login-keys.json")?;
    ///     Ok(server.jwt(Jwt::new(keys).audience("my-game")))
    /// }
    /// ```
    #[must_use]
    pub fn prepare<E>(mut self, add: impl FnOnce(Self) -> Result<Self, E> + 'static) -> Self
    where
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        self.preparations.push(Box::new(|server| add(server).map_err(Into::into)));
        self
    }

    /// Calls this once with a handle that reaches the node's rooms, when it has started: for
    /// programs that [`run`](Self::run). [`Running::handle`] returns the same handle.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use playfield::Server;
    ///
    /// Server::new()
    ///     .on_start(|node| {
    ///         std::thread::spawn(move || {
    ///             loop {
    ///                 std::thread::sleep(Duration::from_secs(60));
    ///                 println!("{} rooms", node.stats().total().rooms);
    ///             }
    ///         });
    ///     })
    ///     .run();
    /// ```
    #[must_use]
    pub fn on_start(mut self, call: impl FnOnce(NodeHandle) + 'static) -> Self {
        self.on_start.push(Box::new(|server| server.on_start(call)));
        self
    }

    /// Lets bots play in rooms of the type `name` when `capacity` measures it. `make` makes the bot
    /// of each player, and gets its number, from 0.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use playfield::load::Turn;
    /// use playfield::prelude::*;
    ///
    /// #[derive(State, Default)]
    /// struct Field {
    ///     angles: Map<PlayerId, f32>,
    /// }
    ///
    /// #[derive(Message)]
    /// struct Steer {
    ///     angle: f32,
    /// }
    ///
    /// #[room(messages(Steer))]
    /// impl Room for Field {}
    ///
    /// impl Handle<Steer> for Field {
    ///     fn handle(&mut self, steer: Steer, player: &Player, _: &mut Context<Self>) -> Result<()> {
    ///         self.angles.insert(player.id(), steer.angle);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// /// Turns somewhere else three times a second.
    /// fn wander(turn: &mut Turn<'_, Field>) -> Duration {
    ///     let angle = turn.fraction() as f32;
    ///     turn.send(&Steer { angle });
    ///     Duration::from_millis(333)
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     Server::new().room::<Field>("field").bot::<Field, _>("field", |_| wander).run()
    /// }
    /// ```
    #[cfg(feature = "load")]
    #[must_use]
    pub fn bot<R: Room, B: playfield_load::Bot<R> + 'static>(
        mut self,
        name: &str,
        make: impl Fn(usize) -> B + Send + Sync + 'static,
    ) -> Self {
        self.bots.push((name.to_owned(), playfield_load::MakeBot::of::<R, B>(make)));
        self
    }

    /// Starts with these settings, and returns immediately.
    ///
    /// The node logs through the crate `log`: warnings, failures of rooms, and errors that are not
    /// sent to a player. If the program has installed no backend, this installs one that writes to
    /// standard error, unless the setting [`log`](Config::log) is `Off`.
    ///
    /// # Errors
    /// If the port can't be listened on, or a thread can't be started, or
    /// [`prepare`](Self::prepare) failed.
    pub fn start(self, config: Config) -> io::Result<Running> {
        log_to_stderr(config.log);
        self.build(config)?.start()
    }

    /// Runs the command in this program's arguments: without a command, it serves until it is
    /// interrupted; `help` lists the commands. It logs as [`start`](Self::start) does.
    ///
    /// Settings come from flags, the environment (`PLAYFIELD_…`) and a TOML file. The exit status
    /// is 0 after an orderly shutdown, 1 after a failure or a shutdown that did not finish, and 2
    /// if the arguments are wrong.
    #[cfg(feature = "tools")]
    pub fn run(#[cfg_attr(not(feature = "load"), expect(unused_mut))] mut self) -> ExitCode {
        #[cfg(feature = "load")]
        let bots = std::mem::take(&mut self.bots);
        let make = |config, purpose| match purpose {
            Purpose::Serve => self.build(config),
            Purpose::Describe | Purpose::Measure => {
                Ok(add_types(playfield_server::Server::new(config), self.types))
            }
            Purpose::Saves => self.with_saves(config),
        };
        playfield_cli::main(
            #[cfg(feature = "load")]
            bots,
            make,
        )
    }

    /// The room types and the store. A store that is added in `prepare` needs what that does.
    #[cfg(feature = "tools")]
    fn with_saves(mut self, config: Config) -> io::Result<playfield_server::Server> {
        if self.store.is_none() {
            self = self.prepared()?;
        }
        if let Some(path) = self.store_path.filter(|path| !path.exists()) {
            let text = format!("there is no store {}", path.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        let server = add_types(playfield_server::Server::new(config), self.types);
        Ok(self.store.into_iter().fold(server, |server, add| add(server)))
    }

    fn prepared(mut self) -> io::Result<Self> {
        while !self.preparations.is_empty() {
            for prepare in std::mem::take(&mut self.preparations) {
                self = prepare(self).map_err(io::Error::other)?;
            }
        }
        Ok(self)
    }

    fn build(self, mut config: Config) -> io::Result<playfield_server::Server> {
        let Self {
            types,
            pages,
            authenticator,
            #[cfg(feature = "jwt")]
            tickets,
            channels,
            fleet,
            store,
            store_path,
            site,
            #[cfg(feature = "cluster")]
            engine,
            services,
            has_service_paths,
            on_start,
            ..
        } = self.prepared()?;
        if let (Some(path), true) = (store_path, config.journal.folder.as_os_str().is_empty()) {
            let mut folder = path.into_os_string();
            folder.push(".journal");
            config.journal.folder = folder.into();
        }
        let authenticator = authenticator.map(|make| make(&config));
        #[cfg(feature = "jwt")]
        let tickets = tickets.map(|tickets| {
            let name_bytes_max = config.limits.name_bytes.player;
            Box::new(crate::jwt::SignedTickets { tickets, name_bytes_max })
        });
        let console = console(&config)?;
        let mut server = playfield_server::Server::new(config);
        #[cfg(feature = "cluster")]
        {
            server = server.connect_engine(Box::new(crate::engine::connect));
            server = engine.iter().fold(server, |server, engine| server.cluster(engine));
        }
        if let Some(open) = console {
            server = server.on_start_open(open);
        }
        #[cfg(feature = "jwt")]
        if let Some(tickets) = tickets {
            server = server.tickets(tickets);
        }
        let serves_clients =
            !types.is_empty() || !channels.is_empty() || fleet.is_some() || has_service_paths;
        if services.is_empty() || serves_clients || !pages.is_empty() || !site.is_empty() {
            for (path, body) in BROWSER_CLIENT {
                server = server.script(path, body);
            }
        }
        if let Some(authenticator) = authenticator {
            server = server.authenticator(authenticator);
        }
        server = channels.into_iter().fold(server, |server, rule| server.channel(rule));
        server = add_types(server, types);
        server = site
            .into_iter()
            .chain(services)
            .chain(store)
            .chain(fleet)
            .chain(on_start)
            .fold(server, |server, add| add(server));
        Ok(pages
            .into_iter()
            .fold(server, |server, page| server.page(&page.path, &page.content_type, page.body)))
    }
}

/// The URL of a store in a variable of the environment.
#[cfg(feature = "postgres")]
fn url_in(variable: &str) -> Result<String, StoreError> {
    use std::env::VarError;
    std::env::var(variable).map_err(|error| {
        let why = match error {
            VarError::NotPresent => "is not set",
            VarError::NotUnicode(_) => "is not UTF-8",
        };
        let text = format!(
            "can't open the store: the environment variable {variable} {why}: set it to the URL \
             of the database, such as postgres://user:password@host:5432/database"
        );
        StoreError::new(playfield_room::StoreErrorKind::Other, text)
    })
}

fn add_types(server: playfield_server::Server, types: Vec<RoomType>) -> playfield_server::Server {
    types.into_iter().fold(server, |server, of| server.room_type(of))
}

/// Opens the console's port. What it returns serves the console once the node runs.
type OpenConsole = Box<dyn FnOnce() -> io::Result<Box<dyn FnOnce(NodeHandle)>>>;

/// The console, if the settings ask for it.
#[cfg(feature = "console")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
fn console(config: &Config) -> io::Result<Option<OpenConsole>> {
    let Some(address) = config.console else { return Ok(None) };
    let token = config.console_token.clone();
    let open: OpenConsole = Box::new(move || {
        let console = playfield_console::Console::listen(address, token.reveal())?;
        Ok(Box::new(|node| {
            console.serve(node);
        }))
    });
    Ok(Some(open))
}

#[cfg(not(feature = "console"))]
fn console(config: &Config) -> io::Result<Option<OpenConsole>> {
    match config.console {
        None => Ok(None),
        Some(address) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("console = {address}: this program was built without the feature `console`"),
        )),
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}
