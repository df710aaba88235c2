//! `dev`: builds and serves the game in this folder, and again after each save.

mod build;
mod group;
mod lines;
mod node;
mod program;
mod types;
mod watch;
mod web;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use lexopt::Arg::{Long, Short, Value};
use playfield_cli::options::{Failure, Once, Opt, describe, unknown};
use playfield_server::reach;

use build::{Build, Made, Target};
use node::{How, Node, Outcome};
use program::Program;
use types::{TYPES_MAX, Types};
use watch::Watch;
use web::App;

const OPTIONS: &[Opt] = &[
    Opt { name: "bin", value: "NAME", help: "which program of the package is the server" },
    Opt { name: "release", value: "", help: "build with optimizations" },
    Opt {
        name: "pages",
        value: "DIR",
        help: "the folder of pages, which are served as they are saved (default: web)",
    },
    Opt {
        name: "types",
        value: "DIR",
        help: "write TypeScript types of the rooms here (default: web/src/types, in a Vite app)",
    },
    Opt {
        name: "console",
        value: "ADDRESS",
        help: "where the console listens, or off (default: 127.0.0.1:7351, or a free port)",
    },
    Opt {
        name: "watch",
        value: "PATH",
        help: "build after saves here, too, besides src, Cargo.toml and build.rs",
    },
];

/// The files on which a build depends in a package without special needs.
const SOURCES: [&str; 3] = ["src", "Cargo.toml", "build.rs"];

/// The address on which the console listens by default.
const CONSOLE: &str = "127.0.0.1:7351";

/// The time that a server may take to end; its rooms may save their states.
const STOP_MAX: Duration = Duration::from_secs(20);

/// The text that a server adds to the line with its address if it has TLS.
const WITH_TLS: &str = " with TLS";

/// The most events that may wait. Threads that send more wait.
const EVENTS_MAX: usize = 64;

fn help() -> String {
    format!(
        "\
Usage: playfield dev [OPTIONS] [-- ARGUMENTS OF THE SERVER]

Builds the game in this folder and serves it, and again after each save. The match goes on: the new
server takes over the rooms and players of the old one, which runs on if it can't. Pages come from
the folder web, so that they need no build. If web has a package.json, its script `dev` serves the
page, such as Vite, once the server runs. The URL that is printed is the page's.

Options:
{}",
        describe(OPTIONS)
    )
}

/// The events that `dev` handles.
enum Event {
    /// Ctrl-C, or another signal that ends this program.
    Stop,
    /// A build has ended.
    Built { number: u64, made: Made },
    /// A program has written its types, or has failed to.
    Typed { number: u64 },
    /// A server has printed a line.
    Says { number: u64, line: String },
    /// A server has ended.
    Ended { number: u64 },
    /// A server was replaced by a new build, or was not.
    Replaced { order: u64, outcome: Outcome },
    /// The page's script has printed a line.
    AppSays { line: String },
    /// The page's script has ended.
    AppEnded,
}

/// Builds and serves until it is interrupted.
pub(crate) fn run(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut bin, mut is_release, mut pages, mut types) = (None, false, None, None);
    let (mut watched, mut arguments, mut console) = (Vec::new(), Vec::new(), None);
    let mut once = Once::default();
    while let Some(argument) = parser.next()? {
        if let Long(name) = argument
            && name != "watch"
        {
            once.note(name)?;
        }
        match argument {
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            Long("bin") => bin = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("release") => is_release = true,
            Long("pages") => pages = Some(PathBuf::from(parser.value()?)),
            Long("types") => types = Some(PathBuf::from(parser.value()?)),
            Long("console") => console = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("watch") => watched.push(PathBuf::from(parser.value()?)),
            // Only after two dashes.
            Value(word) => arguments.push(word),
            other => return Err(unknown(&other, OPTIONS)),
        }
    }
    let folder = std::env::current_dir()?;
    if !folder.join("Cargo.toml").is_file() {
        let text = format!(
            "{} has no Cargo.toml: run `playfield dev` in the folder of a game",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::NotFound, text).into());
    }
    let web = folder.join("web");
    let is_app = web.join("package.json").is_file();
    let pages = match pages {
        Some(pages) => Some(folder.join(pages)),
        None => Some(web.clone()).filter(|web| !is_app && web.is_dir()),
    };
    let types = match types {
        Some(types) => Some(folder.join(types)),
        None => is_app.then(|| web.join("src/types")),
    };
    watched = watched.iter().map(|path| folder.join(path)).collect();
    watched.extend(SOURCES.map(|source| folder.join(source)));
    let left_out = [pages.clone(), types.clone(), is_app.then(|| web.clone())];
    let watch = Watch::new(watched, left_out.into_iter().flatten().collect())?;

    let (sender, events) = sync_channel(EVENTS_MAX);
    let stopper = sender.clone();
    // It may wait: it has a thread of its own.
    let stop = move || _ = stopper.send(Event::Stop);
    ctrlc::set_handler(stop).map_err(io::Error::other)?;
    let target = Target { folder: folder.clone(), bin, is_release };
    // A server that has it in its environment already, or among its arguments, decides itself.
    let console = match console {
        Some(off) if off == "off" => None,
        Some(address) => Some(address),
        None if std::env::var_os("PLAYFIELD_CONSOLE").is_some() => None,
        None if arguments.iter().any(is_console) => None,
        None => Some(free(CONSOLE)?),
    };
    let how = How { folder, arguments, pages, console, listens: None };
    let mut dev = Dev {
        out,
        events,
        sender,
        watch,
        target,
        how,
        types,
        app: is_app.then(|| App::new(web)),
        count: 0,
        saved: Instant::now(),
        build: None,
        node: None,
        program: None,
        begins: None,
        order: None,
        has_tls: false,
        writes: None,
        is_stopping: false,
    };
    Ok(dev.run()?)
}

/// The state of the command.
struct Dev<'a> {
    out: &'a mut dyn Write,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    watch: Watch,
    target: Target,
    how: How,
    /// The file to which types are written.
    types: Option<PathBuf>,
    /// The page's own development server.
    app: Option<App>,
    /// The number of builds and servers started.
    count: u64,
    /// When the last save was seen.
    saved: Instant,
    /// The build that runs, and its number.
    build: Option<(u64, Build)>,
    node: Option<Node>,
    /// The program that the last server was started from.
    program: Option<Program>,
    /// The server that was started and does not listen yet.
    begins: Option<Begins>,
    /// The order to the server to be replaced by a new build.
    order: Option<Order>,
    /// The last server has TLS.
    has_tls: bool,
    /// The program that writes types, and is served then.
    writes: Option<Writes>,
    is_stopping: bool,
}

/// A server that is being replaced.
struct Order {
    number: u64,
    program: Program,
    built_in: Duration,
    began: Instant,
    /// A later build, which waits until this is over.
    next: Option<(Program, Duration)>,
}

/// A program that was built and writes its types.
struct Writes {
    number: u64,
    types: Types,
    program: Program,
    built_in: Duration,
}

/// The times before the start of a server.
struct Begins {
    built_in: Duration,
    stopped_in: Duration,
    started: Instant,
}

impl Dev<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.build()?;
        let mut look = Instant::now() + self.watch.pause();
        while !self.is_stopping {
            match self.events.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(Event::Stop) => self.is_stopping = true,
                Ok(Event::Built { number, made }) => self.built(number, &made)?,
                Ok(Event::Typed { number }) => self.typed(number)?,
                Ok(Event::Says { number, line }) => self.says(number, &line)?,
                Ok(Event::Ended { number }) => self.ended(number)?,
                Ok(Event::Replaced { order, outcome }) => self.replaced(order, outcome)?,
                Ok(Event::AppSays { line }) => self.app_says(&line)?,
                Ok(Event::AppEnded) => self.app_ended()?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if look <= Instant::now() {
                if self.watch.has_changed()? {
                    self.saved = Instant::now();
                    self.build()?;
                }
                self.look_at_types()?;
                look = Instant::now() + self.watch.pause();
            }
        }
        self.writes = None;
        self.build = None;
        if let Some(app) = &mut self.app {
            app.stop();
        }
        self.stop_node()
    }

    /// Starts a build, in place of one that runs.
    fn build(&mut self) -> io::Result<()> {
        // Its end is waited for: cargo locks the folder.
        (self.build, self.writes) = (None, None);
        self.count += 1;
        self.build = Some((self.count, Build::start(&self.target, self.count, &self.sender)?));
        Ok(())
    }

    /// A build has ended.
    fn built(&mut self, number: u64, made: &Made) -> io::Result<()> {
        let Some((_, build)) = self.build.take_if(|(running, _)| *running == number) else {
            return Ok(());
        };
        let (built_in, is_built) = build.finish()?;
        if !is_built {
            let what = match self.node {
                Some(_) => "the server that was built before runs on",
                None => "save a file to build again",
            };
            return self.say(&format!("the build has failed; {what}"));
        }
        let [(_, program)] = &made.programs[..] else {
            return Err(not_one(made));
        };
        let program = Program::at(program)?;
        if self.node.is_some() && self.program.as_ref() == Some(&program) {
            return Ok(());
        }
        let Some(types) = &self.types else { return self.serve(program, built_in) };
        // A page that does not compile without them may be what the server waits for.
        self.count += 1;
        let types = Types::write(&program.path, types, self.count, &self.sender)?;
        self.writes = Some(Writes { number: self.count, types, program, built_in });
        Ok(())
    }

    /// The types have been written.
    fn typed(&mut self, number: u64) -> io::Result<()> {
        match self.writes.take_if(|writes| writes.number == number) {
            Some(writes) => self.serve(writes.program, writes.built_in),
            None => Ok(()),
        }
    }

    /// Gives up a program that writes types for too long.
    fn look_at_types(&mut self) -> io::Result<()> {
        let now = Instant::now();
        let Some(writes) = self.writes.take_if(|writes| writes.types.is_late(now)) else {
            return Ok(());
        };
        let text = format!(
            "the program has not written types within {} s: its main must call `Server::run`, \
             which knows the command `generate`",
            TYPES_MAX.as_secs()
        );
        self.say(&text)?;
        self.serve(writes.program, writes.built_in)
    }

    /// Has a new build serve: it takes over from the server that runs, if there is one.
    fn serve(&mut self, program: Program, built_in: Duration) -> io::Result<()> {
        if let Some(order) = &mut self.order {
            order.next = Some((program, built_in));
            return Ok(());
        }
        match &self.node {
            // One that does not listen yet has no rooms.
            Some(node) if self.begins.is_none() => {
                self.count += 1;
                let (number, began) = (self.count, Instant::now());
                node.replace(&program.path, number, &self.sender);
                self.order = Some(Order { number, program, built_in, began, next: None });
                Ok(())
            }
            _ => self.start(program, built_in),
        }
    }

    /// An order to the server has an outcome.
    fn replaced(&mut self, number: u64, outcome: Outcome) -> io::Result<()> {
        let Some(order) = self.order.take_if(|order| order.number == number) else { return Ok(()) };
        let Order { program, built_in, began, next, .. } = order;
        match (outcome, &mut self.node) {
            (Outcome::Replaced(pid), Some(node)) => {
                node.pid = pid;
                self.program = Some(program);
                let text = format!(
                    "{}, {} after the save: build {}, hand-over {}; the match goes on",
                    self.place(),
                    seconds(self.saved.elapsed()),
                    seconds(built_in),
                    seconds(began.elapsed()),
                );
                self.say(&text)?;
            }
            (Outcome::Refused(why), Some(_)) => {
                self.say(&format!(
                    "the new build can't go on with the match, so the server that was built before \
                     runs on: {why}. Change it and save, or start `playfield dev` again for a new \
                     match"
                ))?;
            }
            // The newest build is served.
            _ => {
                let (program, built_in) = next.unwrap_or((program, built_in));
                return self.start(program, built_in);
            }
        }
        match next {
            Some((program, built_in)) => self.serve(program, built_in),
            None => Ok(()),
        }
    }

    /// Starts a server, after the end of the one that runs.
    fn start(&mut self, program: Program, built_in: Duration) -> io::Result<()> {
        let began = Instant::now();
        self.stop_node()?;
        if self.is_stopping {
            return Ok(());
        }
        let (stopped_in, started) = (began.elapsed(), Instant::now());
        self.count += 1;
        self.node = Some(Node::start(&program.path, &self.how, self.count, &self.sender)?);
        self.begins = Some(Begins { built_in, stopped_in, started });
        self.program = Some(program);
        Ok(())
    }

    /// A server has printed a line.
    fn says(&mut self, number: u64, line: &str) -> io::Result<()> {
        let (address, has_tls) = match listening(line) {
            Some(listening) if self.is_node(number) => listening,
            _ => return writeln!(self.out, "{line}"),
        };
        let Some(begins) = self.begins.take() else {
            // A server that has taken over listens where the one before it did.
            return match self.how.listens.as_deref() == Some(address) {
                true => Ok(()),
                false => writeln!(self.out, "{line}"),
            };
        };
        // The page asks the next server at the same port.
        (self.how.listens, self.has_tls) = (Some(address.to_owned()), has_tls);
        let text = format!(
            "{}, {} after the save: build {}, stop {}, start {}",
            self.place(),
            seconds(self.saved.elapsed()),
            seconds(begins.built_in),
            seconds(begins.stopped_in),
            seconds(begins.started.elapsed()),
        );
        self.say(&text)?;
        if let Some(console) = &self.how.console {
            let text = format!("console at {}", url(console, false));
            self.say(&text)?;
        }
        match (&mut self.app, address.rsplit_once(':')) {
            (Some(app), Some((_, port))) => app.start(port, &self.sender),
            _ => Ok(()),
        }
    }

    /// The place at which the game is found.
    fn place(&self) -> String {
        let address = self.how.listens.as_deref().unwrap_or_default();
        // The node of an app serves no page.
        match &self.app {
            None => url(address, self.has_tls),
            Some(App { url: Some(page), .. }) => page.clone(),
            Some(_) => format!("the server listens on {address}"),
        }
    }

    /// The page's script has printed a line, perhaps the page's URL.
    fn app_says(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        let Some(app) = self.app.as_mut().filter(|app| app.url.is_none()) else { return Ok(()) };
        app.url = web::local_url(line);
        match &app.url {
            Some(url) => {
                let text = format!("{url}, the page");
                self.say(&text)
            }
            None => Ok(()),
        }
    }

    /// The page's script has ended by itself.
    fn app_ended(&mut self) -> io::Result<()> {
        let Some(app) = &self.app else { return Ok(()) };
        let folder = app.folder.display();
        let text = format!(
            "the script `dev` of {folder}/package.json has ended, so there is no page: it needs \
             Node.js with npm; start `playfield dev` again"
        );
        self.say(&text)
    }

    /// A server has ended by itself.
    fn ended(&mut self, number: u64) -> io::Result<()> {
        if !self.is_node(number) {
            return Ok(());
        }
        self.node = None;
        self.begins = None;
        self.say("the server has ended; save a file to build and start it again")
    }

    fn is_node(&self, number: u64) -> bool {
        self.node.as_ref().is_some_and(|node| node.number == number)
    }

    /// Stops the server, and waits for its end.
    fn stop_node(&mut self) -> io::Result<()> {
        let Some(mut node) = self.node.take() else { return Ok(()) };
        node.stop();
        let last = Instant::now() + STOP_MAX;
        loop {
            match self.events.recv_timeout(last.saturating_duration_since(Instant::now())) {
                Ok(Event::Ended { number }) if number == node.number => return Ok(()),
                Ok(Event::Says { line, .. }) => writeln!(self.out, "{line}")?,
                Ok(Event::AppSays { line }) => self.app_says(&line)?,
                Ok(Event::Stop) if !self.is_stopping => self.is_stopping = true,
                // The second Ctrl-C. The server is killed when it is dropped.
                Ok(Event::Stop) => return Ok(()),
                Ok(_) => {}
                Err(_) => return self.say("the server does not end; it is killed"),
            }
        }
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "playfield: {text}")?;
        self.out.flush()
    }
}

/// An address that nothing listens on: this one, or else one with another port.
fn free(address: &str) -> io::Result<String> {
    let listener = match TcpListener::bind(address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => TcpListener::bind("127.0.0.1:0")?,
        other => other?,
    };
    Ok(listener.local_addr()?.to_string())
}

/// The address in the line by which a server says that it listens, and whether it has TLS.
fn listening(line: &str) -> Option<(&str, bool)> {
    let address = line.strip_prefix("listening on ")?;
    Some((address.strip_suffix(WITH_TLS).unwrap_or(address), line.ends_with(WITH_TLS)))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Why a build that has made several programs, or none, makes no server.
fn not_one(made: &Made) -> io::Error {
    let names: Vec<&str> = made.programs.iter().map(|(name, _)| &**name).collect();
    io::Error::other(match &names[..] {
        [] => "the package has no program: it needs a src/main.rs".to_owned(),
        names => format!("which program is the server? Say --bin with one of {}", names.join(", ")),
    })
}

/// Whether an argument says where the console listens.
fn is_console(argument: &OsString) -> bool {
    let argument = argument.to_string_lossy();
    argument == "--console" || argument.starts_with("--console=")
}

/// The URL of what listens on an address, for a browser on this machine.
fn url(address: &str, has_tls: bool) -> String {
    match address.parse::<SocketAddr>() {
        Ok(address) => reach::url(address, has_tls),
        Err(_) => format!("http://{address}/"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{free, url};

    #[test]
    fn a_port_that_is_taken_is_replaced() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().unwrap().to_string();
        let other = free(&taken).unwrap();
        assert_ne!(other, taken);
        assert_eq!(free(&other).unwrap(), other);
    }

    #[test]
    fn a_url_leads_to_this_machine() {
        assert_eq!(url("127.0.0.1:7350", false), "http://127.0.0.1:7350/");
        assert_eq!(url("0.0.0.0:80", true), "https://127.0.0.1:80/");
        assert_eq!(url("localhost:80", false), "http://localhost:80/");
    }
}
