//! A program that serves rooms, as people run it. This binary is both that program, when its first
//! argument is one of the program's, and the tests of it.

#[path = "command/other_build.rs"]
mod other_build;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitCode, Output, Stdio};
use std::time::Duration;

use log::{Log, Metadata, Record};
use playfield::client::{self, Connection, Error};
use playfield::prelude::*;
use playfield::store::{DiskStore, MemoryStore, Store as _, StoreError, StoreErrorKind};
use playfield::{Config, RoomSchema, SelfSigned, schema};
use rustix::process::{Pid, Signal, kill_process};

const TESTS: &[(&str, fn())] = &[
    ("help_names_the_program_and_its_commands", help_names_the_program_and_its_commands),
    ("wrong_arguments_are_named", wrong_arguments_are_named),
    (
        "a_server_that_cant_be_prepared_says_why_and_still_helps",
        a_server_that_cant_be_prepared_says_why_and_still_helps,
    ),
    (
        "the_log_names_the_setting_because_of_which_a_connection_is_refused",
        the_log_names_the_setting_because_of_which_a_connection_is_refused,
    ),
    ("the_schema_of_a_nodes_room_is_printed", the_schema_of_a_nodes_room_is_printed),
    ("types_are_generated_from_the_program_a_file_or_a_node", types_are_generated),
    ("an_older_schema_is_checked", an_older_schema_is_checked),
    ("a_rollback_is_checked_beforehand", a_rollback_is_checked_beforehand),
    ("all_that_an_older_client_lacks_is_named", all_that_an_older_client_lacks_is_named),
    ("copies_of_saves_are_listed_and_restored", copies_of_saves_are_listed_and_restored),
    (
        "a_store_that_is_not_there_stops_nodes_and_no_other_command",
        a_store_that_is_not_there_stops_nodes_and_no_other_command,
    ),
    ("a_room_that_failed_is_replayed", a_room_that_failed_is_replayed),
    (
        "a_build_with_other_logic_says_where_it_does_otherwise",
        other_build::a_build_with_other_logic_says_where_it_does_otherwise,
    ),
    ("a_schema_is_read_over_tls", a_schema_is_read_over_tls),
    ("it_serves_until_it_is_stopped", it_serves_until_it_is_stopped),
    ("the_log_says_why_it_stops_and_when_it_has", the_log_says_why_it_stops_and_when_it_has),
    #[cfg(target_os = "linux")]
    ("it_is_replaced_by_a_new_process_of_it", it_is_replaced_by_a_new_process_of_it),
    #[cfg(target_os = "linux")]
    ("a_file_that_is_no_program_is_named", a_file_that_is_no_program_is_named),
    #[cfg(target_os = "linux")]
    (
        "the_first_process_of_a_container_stays_for_its_successors",
        the_first_process_of_a_container_stays_for_its_successors,
    ),
    #[cfg(target_os = "linux")]
    ("a_save_in_dev_keeps_the_match", a_save_in_dev_keeps_the_match),
    ("a_room_that_prints_is_served", a_room_that_prints_is_served),
    ("a_log_that_cannot_be_written_ends_nothing", a_log_that_cannot_be_written_ends_nothing),
    ("a_node_that_fails_says_so_in_its_status", a_node_that_fails_says_so_in_its_status),
    (
        "a_room_type_that_ends_slower_than_its_node_is_logged",
        a_room_type_that_ends_slower_than_its_node_is_logged,
    ),
    ("an_error_of_a_timer_is_logged", an_error_of_a_timer_is_logged),
    ("no_log_is_written_if_it_is_off", no_log_is_written_if_it_is_off),
    ("the_programs_own_log_backend_stays", the_programs_own_log_backend_stays),
];

/// The variable with the error that preparing the server ends with.
const UNPREPARED: &str = "TROUBLE_UNPREPARED";

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some(
            "serve" | "upgrade" | "capacity" | "profile" | "replay" | "schema" | "generate"
            | "saves" | "help" | "bench",
        ) => {
            return server().run();
        }
        Some("start") => return start(),
        Some("start-with-own-log") => {
            log::set_logger(&OwnLog).expect("no backend is installed yet");
            log::set_max_level(log::LevelFilter::Info);
            return start();
        }
        _ => {}
    }
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let filter = filter.unwrap_or_default();
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&filter)) {
        test();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

/// A program that calls `start`, and waits.
fn start() -> ExitCode {
    let config = Config::from_env(std::env::vars()).expect("the settings are valid");
    let running = server().start(config).expect("it starts");
    println!("listening on {}", running.local_addr());
    match running.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn server() -> Server {
    let server = match std::env::var(CHANGED) {
        Ok(_) => Server::new().room::<changed::Trouble>("trouble"),
        Err(_) => Server::new().room::<Trouble>("trouble"),
    };
    let server = match std::env::var(SHELF_BUILD).as_deref() {
        Ok("old") => server.room::<older::Shelf>("shelf"),
        Ok(_) => server.room::<newer::Shelf>("shelf"),
        Err(_) => server,
    };
    let server = match std::env::var(SHELF_STORE) {
        Ok(path) => server.store_file(path),
        Err(_) => server,
    };
    let server = match std::env::var(SHELF_AWAY) {
        Ok(text) => {
            server.open_store(|| Err::<MemoryStore, _>(StoreError::new(StoreErrorKind::Away, text)))
        }
        Err(_) => server,
    };
    #[cfg(feature = "postgres")]
    let server = match std::env::var(SHELF_URL_IN) {
        Ok(variable) => server.store_postgres_env(variable),
        Err(_) => server,
    };
    let server = match std::env::var(other_build::STORE) {
        Ok(path) => server.room::<other_build::Tally>("tally").store_file(path),
        Err(_) => server,
    };
    server.prepare(|server| match std::env::var(UNPREPARED) {
        Ok(why) => Err(why),
        Err(_) => Ok(server),
    })
}

/// The variables with the build of a persistent room type, and the file of its store.
const SHELF_BUILD: &str = "SHELF_BUILD";
const SHELF_STORE: &str = "SHELF_STORE";

/// The variable with the error of a store that is away.
const SHELF_AWAY: &str = "SHELF_AWAY";

/// The variable with the name of the one that has the URL of a database.
#[cfg(feature = "postgres")]
const SHELF_URL_IN: &str = "SHELF_URL_IN";

/// The variable that gives the rooms of [`Trouble`] another state.
const CHANGED: &str = "TROUBLE_CHANGED";

mod changed {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Trouble {
        joined: String,
    }

    #[room()]
    impl Room for Trouble {}
}

mod older {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Shelf {
        #[sync(hidden)]
        pub(super) kind: Kind,
        #[sync(hidden)]
        pub(super) books: List<String>,
    }

    #[derive(State, Data, Clone, Default)]
    pub(super) enum Kind {
        #[default]
        Wood,
    }

    #[room(persist = 1)]
    impl Room for Shelf {}

    /// Has nothing of what the present one has.
    #[derive(State, Default)]
    pub(super) struct Other {
        left: u32,
    }

    #[derive(Message)]
    pub(super) struct Explode {}

    #[derive(Message)]
    pub(super) struct Fall {}

    #[room(messages(Explode, Fall))]
    impl Room for Other {}

    impl Handle<Explode> for Other {
        fn handle(&mut self, _: Explode, _: &Player, _: &mut Context<Self>) -> Result<()> {
            Ok(())
        }
    }

    impl Handle<Fall> for Other {
        fn handle(&mut self, _: Fall, _: &Player, _: &mut Context<Self>) -> Result<()> {
            Ok(())
        }
    }
}

mod newer {
    use playfield::prelude::*;

    #[derive(State, Default)]
    pub(super) struct Shelf {
        #[sync(hidden)]
        pub(super) kind: Kind,
        #[sync(hidden)]
        pub(super) books: List<String>,
        pub(super) color: String,
    }

    #[derive(State, Data, Clone, Default)]
    pub(super) enum Kind {
        #[default]
        Wood,
        Steel,
    }

    #[room(persist = 1)]
    impl Room for Shelf {}
}

/// A room that misbehaves.
#[derive(State, Default)]
struct Trouble {
    joined: u32,
}

/// Panics in the handler.
#[derive(Message)]
struct Crash {}

/// Sets a timer that will fail, then answers.
#[derive(Message)]
#[reply(bool)]
struct Fail {}

/// Prints a line, then answers.
#[derive(Message)]
#[reply(bool)]
struct Print {}

#[derive(Message)]
struct Due {}

#[room(messages(Crash, Fail, Print), internal(Due))]
impl Room for Trouble {}

impl Handle<Print> for Trouble {
    fn handle(&mut self, _: Print, _: &Player, _: &mut Context<Self>) -> Result<bool> {
        println!("the room was asked to print");
        Ok(true)
    }
}

impl Handle<Crash> for Trouble {
    fn handle(&mut self, _: Crash, _: &Player, _: &mut Context<Self>) -> Result<()> {
        panic!("the room was asked to")
    }
}

impl Handle<Fail> for Trouble {
    fn handle(&mut self, _: Fail, _: &Player, cx: &mut Context<Self>) -> Result<bool> {
        let room = cx.room_id().to_owned();
        cx.tell(&room, &Due {});
        Ok(true)
    }
}

impl On<Due> for Trouble {
    fn on(&mut self, _: Due, _: &mut Context<Self>) -> Result<()> {
        Err("the timer has failed".into())
    }
}

/// A backend that panics on errors, and writes all other records.
struct OwnLog;

impl Log for OwnLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        assert!(record.level() > log::Level::Error, "this backend takes no errors");
        let _ = writeln!(io::stderr(), "own: {}", record.args());
    }

    fn flush(&self) {}
}

/// A node in its own process; killed when dropped.
struct Node {
    process: Child,
    output: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Node {
    fn start(arguments: &[&str], stderr: impl Into<Stdio>, log: &str) -> Self {
        Self::start_as(program(arguments), stderr, log)
    }

    fn start_as(mut command: Command, stderr: impl Into<Stdio>, log: &str) -> Self {
        let mut process = command
            .env("PLAYFIELD_LISTEN", "127.0.0.1:0")
            .env("PLAYFIELD_SHARDS", "1")
            .env("PLAYFIELD_LOG", log)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("this program can be run");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        output.read_line(&mut line).expect("it prints its address");
        let address = line.trim().strip_prefix("listening on ").expect("an address");
        let address = address.strip_suffix(" with TLS").unwrap_or(address);
        let address = address.parse().expect("an address");
        Self { process, output, address }
    }

    /// Joins a room, and does something there.
    fn play<T>(
        &self,
        act: impl AsyncFnOnce(&client::Room<Trouble>) -> std::result::Result<T, Error>,
    ) -> std::result::Result<T, Error> {
        self.connect(async |connection| {
            act(&connection.join_or_create::<Trouble>("trouble", &()).await?).await
        })
    }

    fn connect<T>(
        &self,
        act: impl AsyncFnOnce(&Connection) -> std::result::Result<T, Error>,
    ) -> std::result::Result<T, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            // Nobody waits for a node that is gone.
            let connect = client::connect(&format!("tcp://{}", self.address));
            act(&connect.reconnect_timeout(Duration::ZERO).await?).await
        })
    }

    fn stop(&mut self) -> Option<i32> {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("it has a process id"), Signal::TERM).expect("it is still running");
        self.process.wait().expect("it can be waited for").code()
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Reads the log until a line contains `text`. Returns the line.
    fn until_logged(&mut self, text: &str) -> String {
        let stderr = self.process.stderr.take().expect("it is piped and not read yet");
        let mut lines = BufReader::new(stderr).lines().map(|line| line.expect("text"));
        let line = lines.find(|line| line.contains(text));
        // Drains the rest of the log, so that the pipe does not fill up.
        std::thread::spawn(move || lines.for_each(drop));
        line.unwrap_or_else(|| panic!("{text:?} was not logged"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> Output {
    program(arguments).output().expect("this program can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn help_names_the_program_and_its_commands() {
    let path = std::env::current_exe().expect("this program has a path");
    let name = path.file_stem().expect("of a file").to_string_lossy().into_owned();
    for (arguments, usage) in [
        (&["help"][..], format!("Usage: {name} [COMMAND]")),
        (&["help", "serve"], format!("Usage: {name} [serve] [OPTIONS]")),
        (&["serve", "--help"], format!("Usage: {name} [serve] [OPTIONS]")),
        (&["schema", "--help"], format!("Usage: {name} schema [options] [URL ROOM_TYPE]")),
    ] {
        let output = output(arguments);
        assert!(output.status.success());
        assert!(text(&output.stdout).starts_with(&usage), "{}", text(&output.stdout));
    }
    let help = text(&output(&["help"]).stdout);
    for command in ["serve", "upgrade", "capacity", "profile", "schema", "generate", "help"] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
    assert!(!help.contains("bench"), "{help}");
}

fn wrong_arguments_are_named() {
    for (arguments, expected) in [
        (&["serve", "--shard=3"][..], "did you mean --shards?"),
        (&["serve", "--verbose"], "--help lists the options"),
        (
            &["bench"],
            "\"bench\"; the commands are serve, upgrade, capacity, profile, replay, schema, generate, saves, help",
        ),
        (&["schema", "tcp://127.0.0.1"], "a URL and a room type"),
        (&["capacity"], "name a room type"),
        (&["profile", "shelf", "--prove"], "profile takes none of"),
        (&["serve", "--shards=1", "--shards=2"], "--shards is given twice"),
        (&["saves", "restore", "shelf", "a", "first"], "a copy has a number"),
        (&["saves", "show", "shelf", "a", "1", "more"], "unexpected argument \"more\""),
        (&["replay", "a.rec", "--to=1", "--to-input=2"], "--to and --to-input: give one of them"),
        (&["replay", "a.rec", "b.rec"], "unexpected argument \"b.rec\""),
        (&["generate", "cobol"], "not \"cobol\": typescript, python"),
        (&["generate", "python", "--from", "ws://127.0.0.1"], "which room type?"),
        (&["generate", "python", "--out="], "--out needs a folder"),
    ] {
        let output = output(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
}

fn a_server_that_cant_be_prepared_says_why_and_still_helps() {
    let run = |arguments: &[&str]| {
        let output = program(arguments).env(UNPREPARED, "keys.json: gone").output();
        output.expect("this program can be run")
    };
    let failed = run(&["serve"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stderr), "keys.json: gone\n");
    assert!(run(&["help"]).status.success());
    assert!(run(&["serve", "--help"]).status.success());
    // In CI there may be no keys.
    for arguments in [&["schema"][..], &["generate", "python"]] {
        let output = run(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("joined"), "{}", text(&output.stdout));
    }
}

fn the_log_names_the_setting_because_of_which_a_connection_is_refused() {
    for setting in [
        "limits.connections.per_address",
        "limits.handshakes.per_address",
        "limits.connections.total",
    ] {
        let limit = format!("--{setting}=1");
        let arguments = ["serve", &limit, "--limits.address.trusted="];
        let mut node = Node::start(&arguments, Stdio::piped(), "info");
        let connect = || TcpStream::connect(node.address).expect("it listens there");
        let _held = [connect(), connect()];
        node.until_logged(&format!("{setting}: a connection from 127.0.0.1 is refused"));
    }
}

fn the_schema_of_a_nodes_room_is_printed() {
    let node = Node::start(&["serve"], Stdio::null(), "info");
    for scheme in ["tcp", "ws"] {
        let url = format!("{scheme}://{}", node.address);
        let printed = output(&["schema", &url, "trouble"]);
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        assert_eq!(text(&printed.stdout), schema::<Trouble>().to_json_pretty() + "\n");
        RoomSchema::from_json(&printed.stdout).expect("a schema");
        let refused = output(&["schema", &url, "chair"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("unknown_room_type"), "{}", text(&refused.stderr));
    }
}

/// A folder that is removed when dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("playfield-command-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn path(&self, file: &str) -> String {
        self.0.join(file).to_str().expect("a path in UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn types_are_generated() {
    let folder = Folder::new("types");
    let own = output(&["generate", "typescript"]);
    assert!(own.status.success(), "{}", text(&own.stderr));
    let types = text(&own.stdout);
    assert!(
        types.contains("export interface Trouble {\n  type: \"trouble\";\n  state: TroubleState;"),
        "{types}"
    );
    assert!(types.contains("Fail: { payload: null; reply: boolean };"), "{types}");

    let written = output(&["generate", "python", "--out", &folder.path("gen")]);
    assert_eq!(text(&written.stdout), folder.path("gen/trouble.py") + "\n");
    let python = std::fs::read_to_string(folder.path("gen/trouble.py")).expect("a file");
    assert!(python.contains("class TroubleState:\n    joined: int\n"), "{python}");

    let schemas = folder.path("schemas.json");
    std::fs::write(&schemas, output(&["schema"]).stdout).expect("a file");
    let of_file = output(&["generate", "typescript", "--from", &schemas]);
    assert_eq!(text(&of_file.stdout), types);
    let node = Node::start(&["serve"], Stdio::null(), "info");
    let url = format!("ws://{}", node.address);
    let of_node = output(&["generate", "typescript", "trouble", "--from", &url]);
    assert_eq!(text(&of_node.stdout), types);

    let failed = output(&["generate", "python", "chair"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stderr), "no room type \"chair\"; there are: trouble\n");
}

fn an_older_schema_is_checked() {
    let folder = Folder::new("check");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let old = folder.path("old.json");
    let own = schema::<Trouble>();
    let check = |schema: String, rest: &[&str]| {
        std::fs::write(&old, schema).expect("a file");
        output(&[&["schema", "check", &old], rest].concat())
    };
    // All room types, and the only one.
    for schema in [text(&output(&["schema"]).stdout), own.to_json_pretty()] {
        let served = check(schema, &[]);
        assert!(served.status.success(), "{}", text(&served.stderr));
        assert_eq!(
            text(&served.stdout),
            "trouble: clients of the older schema are served\n\
             trouble: after a rollback, clients of this one are served\n"
        );
    }
    let mut gone = own.clone();
    gone.messages[0].name = "Explode".into();
    let failed = check(gone.to_json(), &["trouble"]);
    assert_eq!(failed.status.code(), Some(1));
    let why = text(&failed.stderr);
    assert!(why.starts_with("trouble: messages.Explode: ") && why.contains("lacks"), "{why}");
    let failed = check(own.to_json(), &["chair"]);
    assert_eq!(text(&failed.stderr), "chair: this program has no such room type\n");
    for broken in ["{", "[]", "{\"trouble\": 7}"] {
        let failed = check(broken.to_owned(), &[]);
        assert_eq!(failed.status.code(), Some(2), "{broken}");
        assert!(text(&failed.stderr).contains("old.json: "), "{}", text(&failed.stderr));
    }
}

fn all_that_an_older_client_lacks_is_named() {
    let folder = Folder::new("lacks");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let old = folder.path("old.json");
    let failed = output(&["schema", "check", &old]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).contains("old.json: "), "{}", text(&failed.stderr));
    let failed = output(&["schema", "check"]);
    assert_eq!(failed.status.code(), Some(2));
    assert!(text(&failed.stderr).starts_with("schema check needs the file"));
    if cfg!(unix) {
        let check = |schemas: &[u8]| {
            let mut check = program(&["schema", "check", "/dev/stdin"]);
            let check = check.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut check = check.spawn().expect("this program can be run");
            check.stdin.take().unwrap().write_all(schemas).expect("it reads");
            check.wait_with_output().expect("it ends")
        };
        let empty = text(&check(b"").stderr);
        assert!(empty.starts_with("/dev/stdin: it is empty, so the command"), "{empty}");
        let served = check(&output(&["schema"]).stdout);
        assert!(served.status.success(), "a pipe is read once: {}", text(&served.stderr));
    }
    std::fs::write(&old, "{}").expect("a file");
    let failed = output(&["schema", "check", &old, "--rollback"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(text(&failed.stderr), "the file has no room types\n");

    let gone = schema::<older::Other>().to_json();
    std::fs::write(&old, gone).expect("a file");
    let failed = text(&output(&["schema", "check", &old, "trouble"]).stderr);
    let places: Vec<&str> = failed
        .lines()
        .filter_map(|line| line.strip_prefix("trouble: ")?.split(": ").next())
        .collect();
    assert_eq!(places, ["state.left", "messages.Explode", "messages.Fall"], "{failed}");

    // The older release has no room type of this name.
    std::fs::write(&old, text(&output(&["schema"]).stdout)).expect("a file");
    let check = |rest: &[&str]| {
        let arguments = [&["schema", "check", &old], rest].concat();
        program(&arguments).env(SHELF_BUILD, "new").output().expect("this program can be run")
    };
    let said = "shelf: after a rollback, there is no such room type: ";
    let checked = check(&[]);
    assert!(checked.status.success() && text(&checked.stdout).contains(said));
    let checked = check(&["--rollback"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stderr).starts_with(said), "{}", text(&checked.stderr));
    assert!(check(&["trouble", "--rollback"]).status.success());
}

fn a_rollback_is_checked_beforehand() {
    let folder = Folder::new("rollback");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let run = |build: &str, arguments: &[&str]| {
        let output = program(arguments).env(SHELF_BUILD, build).output();
        output.expect("this program can be run")
    };
    let paths = ["old", "new"].map(|build| {
        let path = folder.path(&format!("{build}.json"));
        std::fs::write(&path, run(build, &["schema"]).stdout).expect("a file");
        path
    });
    let [old, new] = &paths;
    let checked = run("new", &["schema", "check", old, "shelf"]);
    assert_eq!(
        text(&checked.stdout),
        String::from("shelf: clients of the older schema are served\n")
            + "shelf: after a rollback, clients of this one are not served: "
            + "state.color: this client was built with this field, which the node lacks: "
            + "rebuild the client\n"
            + "shelf: saves of the older schema are read\n"
            + "shelf: after a rollback, kind.Steel: dropped, and a copy of the save is kept\n"
            + "shelf: after a rollback, color: kept as bytes, and a copy of the save is kept\n"
            + "shelf: after a rollback, saves of this one are read\n",
        "{}",
        text(&checked.stderr)
    );
    assert_eq!(checked.status.code(), Some(0));
    let checked = run("new", &["schema", "check", old, "shelf", "--rollback"]);
    assert_eq!(checked.status.code(), Some(1));
    let wrong = text(&checked.stderr);
    assert!(wrong.contains("kind.Steel: dropped") && !wrong.contains("kept as bytes"), "{wrong}");
    // A release that would lose what the older one saved fails without the option, too.
    let checked = run("old", &["schema", "check", new, "shelf"]);
    assert_eq!(checked.status.code(), Some(1));
    let wrong = text(&checked.stderr);
    assert!(wrong.contains("shelf: saves of the older schema: dropped"), "{wrong}");
    let same = run("new", &["schema", "check", new, "shelf", "--rollback"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));

    // A release in which rooms of this type are not persistent.
    let read = std::fs::read(new).expect("a file");
    let mut schemas: serde_json::Value = serde_json::from_slice(&read).expect("JSON");
    let save = schemas["shelf"].as_object_mut().and_then(|of| of.remove("save")).expect("a type");
    std::fs::write(old, schemas.to_string()).expect("a file");
    let said = "shelf: after a rollback, saves of this one are left as they are";
    let checked = run("new", &["schema", "check", old, "shelf"]);
    assert!(checked.status.success() && text(&checked.stdout).contains(said));
    let checked = run("new", &["schema", "check", old, "shelf", "--rollback"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(text(&checked.stderr).starts_with(said), "{}", text(&checked.stderr));
    // And the other way round: the saves of the older release are there, and are not read.
    schemas["trouble"]["save"] = save;
    std::fs::write(old, schemas.to_string()).expect("a file");
    let checked = run("new", &["schema", "check", old, "trouble"]);
    assert_eq!(checked.status.code(), Some(1));
    let wrong = text(&checked.stderr);
    assert!(wrong.starts_with("trouble: saves of the older schema are not read"), "{wrong}");
}

fn copies_of_saves_are_listed_and_restored() {
    let folder = Folder::new("copies");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.path("shelf.redb");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let shelf = newer::Shelf {
        kind: newer::Kind::Steel,
        books: ["one".to_owned()].into_iter().collect(),
        color: "red".into(),
    };
    let saved = playfield::save(&shelf);
    let store = DiskStore::open(&path).expect("a store");
    let fence = runtime.block_on(store.open("shelf", "a@b")).expect("it is opened").fence;
    let saving = store.save_and_wait("shelf", "a@b", fence, saved.clone());
    runtime.block_on(saving).expect("it is saved");
    drop(store);

    let listen = ([127, 0, 0, 1], 0).into();
    let config = || Config { listen, log: playfield::LevelFilter::Off, ..Config::default() };
    let server = Server::new().room::<older::Shelf>("shelf").store_file(&path);
    let running = server.start(config()).expect("it starts");
    runtime.block_on(async {
        let url = format!("tcp://{}", running.local_addr());
        let connection = client::connect(&url).await.expect("a connection");
        let room = connection.join_or_create_by_key::<older::Shelf>("shelf", "a@b", &()).await;
        room.expect("it is joined");
    });
    running.shutdown();

    let failed = |arguments: &[&str], path: &str| {
        let output = program(arguments).env(SHELF_STORE, path).env(SHELF_BUILD, "old").output();
        let output = output.expect("this program can be run");
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let none = folder.path("none.redb");
    assert_eq!(failed(&["saves", "list", "shelf"], &none), format!("there is no store {none}\n"));
    assert!(!std::path::Path::new(&none).exists());
    assert_eq!(
        failed(&["saves", "list", "chair"], &path),
        "no saves, and no persistent room type \"chair\"; there are: shelf\n"
    );
    // Keys are not needed.
    let run = |arguments: &[&str]| {
        let output = program(arguments).env(SHELF_STORE, &path).env(UNPREPARED, "no key").output();
        let output = output.expect("this program can be run");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(run(&["saves", "list", "shelf"]), "\"a@b\"\t1 copies\n");
    let bytes = saved.len();
    assert_eq!(run(&["saves", "copies", "shelf", "a@b"]), format!("1\t{bytes} bytes\n"));
    assert!(run(&["saves", "show", "shelf", "a@b", "1"]).contains("\"Steel\""));
    let shown = run(&["saves", "show", "shelf", "a@b"]);
    assert!(
        shown.contains("\"Wood\"") && shown.contains("\"color (unknown)\": \"red\""),
        "{shown}"
    );
    assert_eq!(
        run(&["saves", "restore", "shelf", "a@b", "1"]),
        "shelf \"a@b\" has the save of copy 1 again; the one from before is copy 2\n"
    );
    let store = DiskStore::open(&path).expect("a store");
    let loaded = runtime.block_on(store.load("shelf", "a@b")).expect("a load").expect("a save");
    assert_eq!(loaded.bytes, saved);
}

fn a_store_that_is_not_there_stops_nodes_and_no_other_command() {
    let with = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut program = program(arguments);
        program.env(SHELF_BUILD, "old").envs(variables.iter().copied());
        program.output().expect("this program can be run")
    };
    let check = |variables: &[(&str, &str)], why: &str| {
        for command in [&["schema"][..], &["generate", "python"], &["help"]] {
            let output = with(command, variables);
            assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
        }
        let output = with(&["serve", "--listen=127.0.0.1:0"], variables);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.lines().last().is_some_and(|last| last.contains(why)), "{said}");
    };
    check(&[(SHELF_AWAY, "shelf.example is away: start it")], "shelf.example is away: start it");
    #[cfg(feature = "postgres")]
    {
        let unset = [(SHELF_URL_IN, "SHELF_URL")];
        check(&unset, "the environment variable SHELF_URL is not set: set it to the URL");
        // Nothing listens there.
        let url = "postgres://game:secret@127.0.0.1:1/game";
        let away = [(SHELF_URL_IN, "SHELF_URL"), ("SHELF_URL", url)];
        check(&away, "can't open the store postgres://127.0.0.1:1/game: ");
    }
}

fn a_schema_is_read_over_tls() {
    let signed = SelfSigned::new(&["localhost"]).expect("a certificate");
    let file = |end: &str| {
        let name = format!("playfield-command-{}.{end}", std::process::id());
        std::env::temp_dir().join(name).to_str().expect("a path in UTF-8").to_owned()
    };
    let (cert, key) = (file("cert"), file("key"));
    std::fs::write(&cert, signed.certificate_pem()).expect("a file");
    std::fs::write(&key, signed.key_pem()).expect("a file");
    let node = Node::start(
        &["serve", &format!("--tls.cert={cert}"), &format!("--tls.key={key}")],
        Stdio::null(),
        "info",
    );
    let root = format!("--root-certificate={cert}");
    let missing = format!("--root-certificate={cert}.gone");
    for scheme in ["tls", "wss"] {
        let url = format!("{scheme}://localhost:{}", node.address.port());
        let printed = output(&["schema", &root, &url, "trouble"]);
        assert!(printed.status.success(), "{}", text(&printed.stderr));
        assert_eq!(text(&printed.stdout), schema::<Trouble>().to_json_pretty() + "\n");
        for (arguments, why) in [
            (vec!["schema", &url, "trouble"], "--root-certificate"),
            (vec!["schema", &missing, &url, "trouble"], "cert.gone"),
        ] {
            let failed = output(&arguments);
            assert_eq!(failed.status.code(), Some(1));
            assert!(text(&failed.stderr).contains(why), "{}", text(&failed.stderr));
        }
    }
    for path in [cert, key] {
        std::fs::remove_file(path).expect("it is there");
    }
}

fn it_serves_until_it_is_stopped() {
    let mut node = Node::start(&["serve"], Stdio::null(), "info");
    let mut client = TcpStream::connect(node.address).expect("it listens there");
    client.write_all(b"HEAD /nothing HTTP/1.1\r\nHost: here\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it answers, and closes");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert_eq!(node.stop(), Some(0));
}

fn the_log_says_why_it_stops_and_when_it_has() {
    let mut node = Node::start(&["serve"], Stdio::piped(), "info");
    let id = Pid::from_child(&node.process);
    node.play(async |room| {
        room.request(Print {}).await?;
        kill_process(id, Signal::TERM).expect("it runs");
        // Stays connected until the room has ended.
        while room.request(Print {}).await.is_ok() {}
        Ok(())
    })
    .expect("it plays");
    assert_eq!(node.process.wait().expect("it ends").code(), Some(0));
    let stderr = node.process.stderr.take().expect("it is piped");
    let lines = BufReader::new(stderr).lines().map(|line| line.expect("text"));
    let said: Vec<String> = lines.filter(|line| line.contains("the node ")).collect();
    let [stops, stopped] = &said[..] else { panic!("{said:?}") };
    let why = "the node stops, with 1 rooms and 1 connections: SIGINT, SIGTERM or SIGHUP";
    assert!(stops.ends_with(why), "{stops}");
    assert!(stopped.contains("the node has stopped, after "), "{stopped}");
}

fn a_room_that_failed_is_replayed() {
    let folder = Folder::new("recordings");
    let folder_option = format!("--recordings.folder={}", folder.path(""));
    let mut node = Node::start(&["serve", &folder_option], Stdio::null(), "info");
    node.play(async |room| {
        room.request(Print {}).await?;
        room.request(Crash {}).await
    })
    .expect_err("the room fails");
    assert_eq!(node.stop(), Some(0));
    let mut files = std::fs::read_dir(&folder.0).expect("a folder of recordings");
    let file = files.next().expect("a recording").expect("a file").path();
    let file = file.to_str().expect("a path in UTF-8");
    let verified = output(&["replay", file, "--verify"]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    let said = text(&verified.stdout);
    assert!(said.contains("the recording ends there: the room failed"), "{said}");
    // The state at its end is gone.
    let ended = output(&["replay", file]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(text(&ended.stdout).contains("\"joined\": 0"), "{}", text(&ended.stdout));
    let said = text(&ended.stderr);
    assert!(said.contains("the room ended at input "), "{said}");
    let late = output(&["replay", file, "--to", "7"]);
    assert!(text(&late.stderr).contains("before tick 7"), "{}", text(&late.stderr));
    let mut bytes = std::fs::read(file).expect("a recording");
    let place = bytes.len() - 30;
    bytes[place] ^= 1;
    std::fs::write(file, bytes).expect("it is ours");
    let damaged = output(&["replay", file, "--verify"]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(text(&damaged.stdout).contains("is damaged"), "{}", text(&damaged.stdout));
}

/// By the command, and then by a signal.
#[cfg(target_os = "linux")]
fn it_is_replaced_by_a_new_process_of_it() {
    let mut node = Node::start(&["serve", "--listen=127.0.0.1:0"], Stdio::null(), "info");
    let pid = node.process.id();
    let ordered = output(&["upgrade", "--pid", &pid.to_string()]);
    let said = text(&ordered.stdout);
    assert!(ordered.status.success(), "{}", text(&ordered.stderr));
    let second = said.strip_prefix("process ").and_then(|said| said.split(' ').next());
    let second: i32 = second.and_then(|pid| pid.parse().ok()).expect("it names the process");
    assert!(said.contains(" has taken over 0 rooms and 0 sessions; "), "{said}");
    assert!(node.process.wait().expect("it ends").success());
    let announced = |node: &mut Node| {
        let mut line = String::new();
        node.output.read_line(&mut line).expect("its successor has the same output");
        assert_eq!(line.trim(), format!("listening on {}", node.address));
    };
    announced(&mut node);
    let second = Pid::from_raw(second).expect("a process");
    kill_process(second, Signal::USR2).expect("it runs");
    announced(&mut node);
    assert_eq!(node.play(async |room| room.request(Print {}).await).ok(), Some(true));
    let refused = output(&["upgrade", "--pid", &pid.to_string()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).starts_with("no process is reached by "));
    // The third is the child of nobody here.
    let third = std::fs::read_dir("/proc").expect("processes").filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let variable = format!("UPGRADES_PLAYFIELD_PID={}", second.as_raw_nonzero());
        let variables = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        variables.split(|byte| *byte == 0).any(|of| of == variable.as_bytes()).then_some(pid)
    });
    for pid in third.filter_map(Pid::from_raw) {
        kill_process(pid, Signal::TERM).expect("it runs");
    }
}

#[cfg(target_os = "linux")]
fn a_file_that_is_no_program_is_named() {
    let folder = Folder::new("no-program");
    let text = folder.path("notes.txt");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(&text, "notes").expect("a file");
    for (file, why) in [
        (folder.path("nothing"), "No such file or directory"),
        (text, "it is not executable"),
        (folder.path(""), "it is not executable"),
    ] {
        let failed = output(&["upgrade", "--binary", &file]);
        let said = self::text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(2));
        assert!(said.contains(&format!("--binary {file}: {why}")), "{said}");
    }
}

/// In a container of the user's own, where the system allows one.
#[cfg(target_os = "linux")]
fn the_first_process_of_a_container_stays_for_its_successors() {
    let within = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-Urpf", "--mount-proc", "--kill-child", "sh", "-c", script, "sh"]);
        command.arg(std::env::current_exe().expect("this program has a path"));
        command
    };
    if !within("true").output().is_ok_and(|output| output.status.success()) {
        println!("left out: no container can be made here");
        return;
    }
    // Beside the first process, a shell has it replaced twice, and ends what then serves.
    let script = r#"
        (for number in 1 2; do
            until "$1" upgrade 2>/dev/null; do sleep 0.05; done
        done; kill 1) & exec "$1" serve --listen=127.0.0.1:0"#;
    let mut container = within(script);
    let folder = std::env::temp_dir().join(format!("playfield-first-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let output = container.env("TMPDIR", &folder).output().expect("it can be run");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert_eq!(said.matches(" has taken over 0 rooms").count(), 2, "{said}");
    assert_eq!(said.matches("listening on ").count(), 3, "{said}");
    std::fs::remove_dir_all(&folder).expect("it is there");
}

/// In place of cargo: it makes the server, a script, of `src/main.rs`.
#[cfg(target_os = "linux")]
const CARGO: &str = r#"#!/bin/sh
if grep -q wrong src/main.rs; then exit 101; fi
rm -f made; cp src/main.rs made
echo "{\"target\":{\"name\":\"game\"},\"executable\":\"$PWD/made\"}"
"#;

/// Each build is this program, in a script that differs.
#[cfg(target_os = "linux")]
fn a_save_in_dev_keeps_the_match() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = std::env::temp_dir().join(format!("playfield-dev-match-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    std::fs::write(folder.join("Cargo.toml"), "").expect("a file");
    let save = |name: &str, text: &str| {
        let new = folder.join("new");
        std::fs::write(&new, text).expect("a file");
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&new, runs).expect("a program");
        std::fs::rename(new, folder.join(name)).expect("a place");
    };
    let build = |what: &str| {
        let this = std::env::current_exe().expect("this program has a path");
        save("src/main.rs", &format!("#!/bin/sh\n{what}\nexec {} \"$@\"\n", this.display()));
    };
    save("cargo", CARGO);
    build("# the first");
    let mut dev = Command::new(env!("CARGO_BIN_EXE_playfield"))
        .args(["dev", "--console", "off", "--", "serve", "--listen", "127.0.0.1:0", "--shards=2"])
        .current_dir(&folder)
        .env("CARGO", folder.join("cargo"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be run");
    let mut lines = BufReader::new(dev.stdout.take().expect("it is piped")).lines();
    let mut says = |what: &str| {
        let mut said = lines.by_ref().map(|line| line.expect("text"));
        said.find(|line| line.starts_with("playfield: ") && line.contains(what))
            .unwrap_or_else(|| panic!("it says {what:?}"))
    };
    let line = says("after the save: build ");
    let (address, _) = line["playfield: http://".len()..].split_once("/, ").expect("a URL");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let room = runtime.block_on(async {
        let connection = client::connect(&format!("tcp://{address}")).await?;
        connection.join_or_create::<Trouble>("trouble", &()).await
    });
    let room = room.expect("a room");
    // A room that was left would answer no more.
    let plays = || assert_eq!(runtime.block_on(room.request(Print {})).ok(), Some(true));
    plays();
    build("# the second");
    says("; the match goes on");
    plays();
    build(&format!("export {CHANGED}=1"));
    let refused = says("the new build can't go on with the match");
    assert!(refused.contains("joined") && refused.contains("\"trouble\""), "{refused}");
    plays();
    build("wrong");
    says("the build has failed; the server that was built before runs on");
    plays();
    let id = Pid::from_child(&dev);
    kill_process(id, Signal::INT).expect("it runs");
    assert!(dev.wait().expect("it ends").success());
    std::fs::remove_dir_all(&folder).expect("it is there");
}

fn a_room_that_prints_is_served() {
    let mut node = Node::start(&["serve"], Stdio::null(), "info");
    assert_eq!(node.play(async |room| room.request(Print {}).await).ok(), Some(true));
    let mut line = String::new();
    node.output.read_line(&mut line).expect("it is open");
    assert_eq!(line, "the room was asked to print\n");
    assert_eq!(node.stop(), Some(0));
}

fn a_log_that_cannot_be_written_ends_nothing() {
    let full = || File::options().write(true).open("/dev/full").expect("a device that is full");
    let closed = || io::pipe().expect("a pipe").1;
    for stderr in [Stdio::from(full()), Stdio::from(closed())] {
        let mut node = Node::start(&["serve"], stderr, "info");
        // The failure of a room is logged on the shard's thread.
        let crashed = node.play(async |room| room.request(Crash {}).await);
        crashed.expect_err("the room has failed");
        assert_eq!(node.play(async |room| room.request(Fail {}).await).ok(), Some(true));
        assert_eq!(node.stop(), Some(0));
    }
}

fn a_node_that_fails_says_so_in_its_status() {
    let mut node = Node::start(&["start-with-own-log"], Stdio::null(), "info");
    // The backend panics on the shard's thread.
    let crashed = node.play(async |room| room.request(Crash {}).await);
    crashed.expect_err("the room has failed");
    assert_eq!(node.process.wait().expect("it can be waited for").code(), Some(1));
}

fn an_error_of_a_timer_is_logged() {
    for command in ["serve", "start"] {
        let mut node = Node::start(&[command], Stdio::piped(), "info");
        assert_eq!(node.play(async |room| room.request(Fail {}).await).ok(), Some(true));
        node.until_logged("the timer has failed");
    }
}

fn a_room_type_that_ends_slower_than_its_node_is_logged() {
    for (shutdown_ms, is_warned) in [("4999", true), ("5000", false)] {
        let setting = format!("--timeouts.shutdown={shutdown_ms}ms");
        let mut node = Node::start(&["serve", &setting], Stdio::piped(), "warn");
        assert_eq!(node.stop(), Some(0));
        let mut log = String::new();
        let stderr = node.process.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut log).expect("text");
        let text = "closing_ms = 5000 of the room type \"trouble\" is longer than \
                    timeouts.shutdown = 4.999s";
        assert_eq!(log.contains(text), is_warned, "{log}");
    }
}

fn no_log_is_written_if_it_is_off() {
    let mut node = Node::start(&["serve"], Stdio::piped(), "off");
    assert_eq!(node.play(async |room| room.request(Fail {}).await).ok(), Some(true));
    assert_eq!(node.stop(), Some(0));
    let mut log = String::new();
    let stderr = node.process.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut log).expect("text");
    assert_eq!(log, "");
}

fn the_programs_own_log_backend_stays() {
    let mut node = Node::start(&["start-with-own-log"], Stdio::piped(), "trace");
    assert_eq!(node.play(async |room| room.request(Fail {}).await).ok(), Some(true));
    node.until_logged("own: room");
}
