//! A server made of room types.

use std::io;
use std::process::ExitCode;

use playfield_room::{Room, RoomType};
use playfield_server::{Config, Running};

/// The browser's client: one JavaScript module without dependencies, served at `/playfield.js`.
const BROWSER_CLIENT: &str = include_str!("../web/playfield.js");

/// A server: its room types, and the pages it serves to browsers.
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
}

struct Page {
    path: String,
    content_type: String,
    body: Vec<u8>,
}

impl Server {
    /// A server without rooms. It serves the browser's client at `/playfield.js`.
    pub fn new() -> Self {
        Self { types: Vec::new(), pages: Vec::new() }.page(
            "/playfield.js",
            "text/javascript; charset=utf-8",
            BROWSER_CLIENT,
        )
    }

    /// Adds a room type, which clients ask for by `name`.
    ///
    /// # Panics
    /// If the types of the room hold each other, or lie too deep within each other, or are too many, for a schema that clients can read: see
    /// [`RoomType::of`].
    #[must_use]
    pub fn room<R: Room>(mut self, name: &str) -> Self {
        self.types.push(RoomType::of::<R>(name));
        self
    }

    /// Serves `body` to a browser that asks for `path`.
    #[must_use]
    pub fn page(mut self, path: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        self.pages.push(Page { path: path.into(), content_type: content_type.into(), body: body.into() });
        self
    }

    /// Starts with the given settings, and returns at once.
    ///
    /// # Errors
    /// The port can't be listened on, or a thread can't be started.
    pub fn start(self, config: Config) -> io::Result<Running> {
        self.build(config).start()
    }

    /// Makes this programme the tool: without arguments it serves until it is interrupted, and `help` says what else it does.
    ///
    /// Settings come from flags, the environment (`PLAYFIELD_…`) and a TOML file.
    #[cfg(feature = "tools")]
    pub fn run(self) -> ExitCode {
        playfield_cli::main(|config| self.build(config))
    }

    fn build(self, config: Config) -> playfield_server::Server {
        let server = self
            .types
            .into_iter()
            .fold(playfield_server::Server::new(config), |server, of| server.room_type(of));
        self.pages
            .into_iter()
            .fold(server, |server, page| server.page(&page.path, &page.content_type, page.body))
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}
