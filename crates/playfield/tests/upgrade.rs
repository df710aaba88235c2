//! A program is replaced by new processes of it while bots play: nothing that was sent is lost or
//! comes twice, no request is executed twice, and nobody leaves. And programs that can't take over:
//! the old one goes on.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playfield::axum::extract::Path;
use playfield::client::RoomNumber;
use playfield::client::session::{ClientConfig, Event, Session, Transport};
use playfield::prelude::*;
use playfield::{Config, LevelFilter, NodeHandle, SelfSigned, Server, Upgrade, client};

/// The time for which a test waits for something that must come. Only a failing test waits that
/// long.
const PATIENCE: Duration = Duration::from_secs(60);

const BOTS: u32 = 6;
const PER_ROOM: u32 = 3;
/// The number of processes, one after the other.
const UPGRADES: usize = 10;
/// The answered requests of all bots between two upgrades.
const REQUESTS: u64 = 60;

/// Counts what each bot asks for.
#[derive(State, Default)]
struct Ledger {
    counts: Map<u32, u64>,
    ticks: u64,
    departures: u32,
}

/// The next number of a bot. The reply is the number of requests that were executed.
#[derive(Message, Clone)]
#[reply(u64)]
struct Count {
    bot: u32,
    number: u64,
}

/// A request was executed.
#[derive(Message, Clone)]
struct Counted {
    bot: u32,
    number: u64,
}

/// The reply has this many bytes.
#[derive(Message)]
#[reply(String)]
struct Fill {
    bytes: u32,
}

/// The reply comes when all that was counted is on disk.
#[derive(Message)]
#[reply(())]
struct Save;

#[derive(Message)]
struct Saved(Deferred<Save>);

#[room(
    messages(Count, Save, Fill),
    events(Counted),
    internal(Saved),
    tick_hz = 20,
    sync_hz = 20,
    empty_ms = 60_000,
    persist = 1
)]
impl Room for Ledger {
    fn leave(&mut self, _: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.departures += 1;
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks += 1;
    }
}

impl Handle<Count> for Ledger {
    fn handle(&mut self, count: Count, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        let Count { bot, number } = count;
        let executed = self.counts.get_or_default(bot);
        *executed += 1;
        let executed = *executed;
        cx.emit(&Counted { bot, number });
        Ok(executed)
    }
}

impl Handle<Fill> for Ledger {
    fn handle(&mut self, fill: Fill, _: &Player, _: &mut Context<Self>) -> Result<String> {
        Ok("x".repeat(fill.bytes as usize))
    }
}

impl Handle<Save> for Ledger {
    fn handle(&mut self, _: Save, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        let later = cx.defer();
        cx.save(Saved(later))?;
        Err(Error::deferred())
    }
}

impl On<Saved> for Ledger {
    fn on(&mut self, Saved(later): Saved, cx: &mut Context<Self>) -> Result<()> {
        cx.answer(later, Ok(()));
        Ok(())
    }
}

/// A room that only the program speaks to.
#[derive(State, Default)]
struct Desk {
    added: u64,
    #[sync(hidden)]
    held: List<Deferred<Hold>>,
}

/// The reply is the number of these.
#[derive(Message)]
#[reply(u64)]
struct Add;

/// The reply comes with [`Free`].
#[derive(Message)]
#[reply(u64)]
struct Hold;

/// Answers all that is held with this.
#[derive(Message)]
struct Free(u64);

#[room(internal(Add, Hold, Free), empty_ms = 600_000, reply_ms = 600_000)]
impl Room for Desk {}

impl On<Add> for Desk {
    fn on(&mut self, _: Add, _: &mut Context<Self>) -> Result<u64> {
        self.added += 1;
        Ok(self.added)
    }
}

impl On<Hold> for Desk {
    fn on(&mut self, _: Hold, cx: &mut Context<Self>) -> Result<u64> {
        self.held.push(cx.defer());
        Err(Error::deferred())
    }
}

impl On<Free> for Desk {
    fn on(&mut self, Free(with): Free, cx: &mut Context<Self>) -> Result<()> {
        while let Some(held) = self.held.pop() {
            cx.answer(held, Ok(with));
        }
        Ok(())
    }
}

/// Like [`Ledger`], with a field of another type.
mod other_build {
    use super::{Map, Room, State, room};

    #[derive(State, Default)]
    pub(super) struct Ledger {
        pub(super) counts: Map<String, u64>,
        pub(super) ticks: u64,
        pub(super) departures: u32,
    }

    #[room(tick_hz = 20, sync_hz = 20)]
    impl Room for Ledger {}
}

/// Another game.
#[derive(State, Default)]
struct Chess {
    moves: u32,
}

#[room()]
impl Room for Chess {}

/// Dies as soon as it goes on.
mod dying {
    use super::{Context, Map, Room, State, room};

    #[derive(State, Default)]
    pub(super) struct Ledger {
        pub(super) counts: Map<u32, u64>,
        pub(super) ticks: u64,
        pub(super) departures: u32,
    }

    #[room(tick_hz = 20, sync_hz = 20)]
    impl Room for Ledger {
        #[expect(clippy::disallowed_methods, reason = "it is to die")]
        fn moved(&mut self, _: &mut Context<Self>) {
            std::process::exit(4);
        }
    }
}

/// The programs that other tests start.
const IGNORED: [&str; 5] = ["--exact", "--ignored", "--nocapture", "--test-threads", "1"];

#[test]
#[ignore = "a node that another test starts and ends"]
fn node() {
    serve(Server::new().room::<Ledger>("ledger").room::<Desk>("desk"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_one_shard() {
    serve_on(1, Server::new().room::<Ledger>("ledger"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_four_shards() {
    serve_on(4, Server::new().room::<Ledger>("ledger"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_exits() {}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_hangs() {
    #[expect(clippy::disallowed_methods, reason = "it hangs, as it is to do")]
    std::thread::sleep(PATIENCE);
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_another_game() {
    serve(Server::new().room::<Chess>("chess"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_another_build() {
    serve(Server::new().room::<other_build::Ledger>("ledger"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_that_dies() {
    serve(Server::new().room::<dying::Ledger>("ledger"));
}

/// Serves until another process has taken over, or the process that began all has ended. A request
/// orders the upgrade to the program that it names.
fn serve(server: Server) {
    serve_on(2, server);
}

fn serve_on(shards: usize, server: Server) {
    if std::env::var("PLAYFIELD_TEST_NODE").is_err() {
        return;
    }
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards, ..Config::default() };
    if let Ok(settings) = std::env::var("PLAYFIELD_TEST_SETTINGS") {
        for (name, value) in settings.lines().filter_map(|line| line.split_once('=')) {
            config.set(name, value).unwrap();
        }
    }
    config.log = LevelFilter::Warn;
    config.timeouts.upgrade = Duration::from_secs(5);
    config.http.answer_timeout = PATIENCE;
    let server = match std::env::var("PLAYFIELD_TEST_STORE") {
        Ok(path) => server.store_file(path),
        Err(_) => server,
    };
    let server = server.route("POST", "/upgrade/{program}", upgrade).route(
        "POST",
        "/desk/{key}/{act}",
        at_desk,
    );
    match server.start(config) {
        Ok(running) => {
            println!("\nlistening on {}", running.local_addr());
            running.wait().unwrap();
        }
        Err(error) => eprintln!("node: {error}"),
    }
}

async fn upgrade(node: NodeHandle, Path(program): Path<String>) -> String {
    let arguments = [program.as_str()].into_iter().chain(IGNORED).map(Into::into).collect();
    let order = Upgrade { binary: std::env::current_exe().ok(), arguments: Some(arguments) };
    match tokio::task::spawn_blocking(move || node.upgrade(&order)).await.unwrap() {
        Ok(done) => format!("done {} {} {}", done.pid, done.rooms, done.sessions),
        Err(error) => format!("failed {error}"),
    }
}

/// Does something at a desk: the answer is its answer, or why there is none.
async fn at_desk(node: NodeHandle, Path((key, act)): Path<(String, String)>) -> String {
    let answered = async {
        let desk = node.find_or_create::<Desk>(&key, &()).await?;
        match act.as_str() {
            "add" => node.ask(&desk, &Add).await,
            "hold" => node.ask(&desk, &Hold).await,
            with => node.tell(&desk, &Free(with.parse().unwrap())).map(|()| 0),
        }
    };
    answered.await.map_or_else(|error| error.to_string(), |answer| format!("ok {answer}"))
}

/// A node in a process of its own, and those that replace it.
struct Node {
    child: Child,
    address: String,
    /// The last process.
    pid: u32,
    store: PathBuf,
}

impl Node {
    fn start() -> Self {
        Self::start_with("")
    }

    /// With these settings, one in each line.
    fn start_with(settings: &str) -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let name = format!("playfield-upgrade-{}-{number}.redb", std::process::id());
        let store = std::env::temp_dir().join(name);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("node")
            .args(IGNORED)
            .env("PLAYFIELD_TEST_NODE", "1")
            .env("PLAYFIELD_TEST_STORE", &store)
            .env("PLAYFIELD_TEST_SETTINGS", settings)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned));
        // Later processes write there, too.
        std::thread::spawn(move || lines.for_each(drop));
        let pid = child.id();
        Self { child, address: address.expect("the node listens"), pid, store }
    }

    fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    /// Has it replaced by this program. Returns the answer.
    fn upgrade(&mut self, program: &str) -> String {
        let answer = ask(&self.address, &format!("POST /upgrade/{program}"));
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        if let Some(done) = body.strip_prefix("done ") {
            let pid = done.split(' ').next().and_then(|pid| pid.parse().ok());
            self.pid = pid.expect("a process");
        }
        body.to_owned()
    }
}

/// Makes an HTTP request without a body. Returns the answer.
fn ask(address: impl ToSocketAddrs, what: &str) -> String {
    ask_if_it_can(address, what).unwrap()
}

/// Like [`ask`], of a process that may end meanwhile.
fn ask_if_it_can(address: impl ToSocketAddrs, what: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

impl Drop for Node {
    fn drop(&mut self) {
        // The first has ended, unless it was never replaced.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let last = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(last) = last.filter(|_| self.pid != self.child.id()) {
            let _ = rustix::process::kill_process(last, rustix::process::Signal::KILL);
        }
        let _ = std::fs::remove_file(&self.store);
    }
}

/// The state that the bots and the test share.
#[derive(Default)]
struct World {
    url: String,
    /// The certificate of a node with TLS.
    certificate: Option<Vec<u8>>,
    is_over: AtomicBool,
    answered: AtomicU64,
}

/// Asks until the world is over. Each request is executed once, and each event is heard once.
async fn play(world: Arc<World>, bot: u32) {
    let mut connect = client::connect(&world.url).timeout(PATIENCE);
    if let Some(certificate) = &world.certificate {
        connect = connect.root_certificate(certificate);
    }
    let connection = connect.await.unwrap();
    let key = format!("ledger-{}", bot / PER_ROOM);
    let room = connection.join_or_create_by_key::<Ledger>("ledger", &key, &()).await.unwrap();
    let (mut number, mut heard) = (0, BTreeMap::<u32, u64>::new());
    while !world.is_over.load(Ordering::Relaxed) {
        number += 1;
        let executed = room.request(Count { bot, number }).await.unwrap();
        assert_eq!(executed, number, "bot {bot}: each request is executed once");
        world.answered.fetch_add(1, Ordering::Relaxed);
        while heard.get(&bot).is_none_or(|last| *last < number) {
            let event = room.next_event().await.unwrap().decode::<Counted>().unwrap().unwrap();
            if let Some(last) = heard.insert(event.bot, event.number) {
                assert_eq!(event.number, last + 1, "bot {bot} hears each event of {}", event.bot);
            }
        }
        let departures = room.state().departures;
        // Others leave when the world is over.
        if !world.is_over.load(Ordering::Relaxed) {
            assert_eq!(departures, 0, "nobody leaves");
        }
    }
}

/// Bots that play until the end of the test.
struct Bots {
    world: Arc<World>,
    thread: Option<JoinHandle<()>>,
}

impl Bots {
    fn play(node: &Node) -> Self {
        Self::play_at(node.url(), None)
    }

    fn play_at(url: String, certificate: Option<Vec<u8>>) -> Self {
        let world = Arc::new(World { url, certificate, ..World::default() });
        let shared = Arc::clone(&world);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let bots = (0..BOTS).map(|bot| tokio::spawn(play(Arc::clone(&shared), bot)));
                for bot in bots.collect::<Vec<_>>() {
                    bot.await.unwrap();
                }
            });
        });
        Self { world, thread: Some(thread) }
    }

    /// Waits until so many more requests were answered.
    fn wait(&self, requests: u64) {
        let until = self.world.answered.load(Ordering::Relaxed) + requests;
        let by = Instant::now() + PATIENCE;
        while self.world.answered.load(Ordering::Relaxed) < until {
            let is_alive = self.thread.as_ref().is_some_and(|thread| !thread.is_finished());
            assert!(is_alive, "a bot has failed");
            assert!(Instant::now() < by, "the bots get answers");
            #[expect(clippy::disallowed_methods, reason = "the bots count without a signal")]
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(mut self) {
        self.world.is_over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().expect("no bot has failed");
    }
}

#[test]
fn the_match_goes_on_over_ten_upgrades() {
    let mut node = Node::start();
    let bots = Bots::play(&node);
    for _ in 0..UPGRADES {
        bots.wait(REQUESTS);
        let before = node.pid;
        let answer = node.upgrade("node");
        let what = format!(" {} {BOTS}", BOTS / PER_ROOM);
        assert!(answer.starts_with("done ") && answer.ends_with(&what), "{answer}");
        assert_ne!(node.pid, before);
    }
    bots.wait(REQUESTS);
    assert!(node.child.wait().unwrap().success(), "the first process ended in order");
    bots.end();
}

#[test]
fn a_program_that_can_not_take_over_leaves_the_old_one_as_it_was() {
    let mut node = Node::start();
    let bots = Bots::play(&node);
    let expected = [
        ("node_that_exits", "ended before it did start"),
        ("node_that_hangs", "did not start within timeouts.upgrade = 5s"),
        ("node_of_another_game", "room type \"ledger\" is missing, but rooms of it are open"),
        ("node_of_another_build", "counts"),
        ("node_that_dies", "ended before it did serve"),
    ];
    for (program, why) in expected {
        bots.wait(REQUESTS);
        let answer = node.upgrade(program);
        assert!(answer.starts_with("failed ") && answer.contains(why), "{program}: {answer}");
    }
    bots.wait(REQUESTS);
    let answer = node.upgrade("node");
    assert!(answer.starts_with("done "), "then another can: {answer}");
    bots.wait(REQUESTS);
    bots.end();
}

#[test]
fn a_room_is_saved_after_upgrades_that_succeed_and_that_fail() {
    let mut node = Node::start();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let room = runtime.block_on(async {
        let connection = client::connect(&node.url()).timeout(PATIENCE).await.unwrap();
        connection.join_or_create_by_key::<Ledger>("ledger", "kept", &()).await.unwrap()
    });
    let orders = [
        ("node", "done "),
        ("node_that_exits", "failed "),
        ("node_of_another_build", "failed "),
        ("node_that_dies", "failed "),
        ("node", "done "),
    ];
    for (number, (program, outcome)) in (1..).zip(orders) {
        runtime.block_on(room.request(Count { bot: 1, number })).unwrap();
        let answer = node.upgrade(program);
        assert!(answer.starts_with(outcome), "{program}: {answer}");
        runtime.block_on(room.request(Save)).unwrap();
    }
    let counts = runtime.block_on(room.request(Count { bot: 1, number: 6 }));
    assert_eq!(counts.unwrap(), 6);
}

#[test]
fn of_two_upgrades_at_once_the_second_is_refused() {
    let mut node = Node::start();
    let bots = Bots::play(&node);
    bots.wait(REQUESTS);
    let under_way = "an upgrade is under way already";
    let (address, pid) = (node.address.clone(), node.pid);
    let first = std::thread::spawn(move || {
        let child = Command::new("true").spawn().unwrap();
        let mut node = Node { child, address, pid: 0, store: PathBuf::new() };
        node.pid = node.child.id();
        // One of those below may be under way.
        loop {
            let answer = node.upgrade("node_that_hangs");
            if !answer.contains(under_way) {
                return answer;
            }
        }
    });
    let by = Instant::now() + PATIENCE;
    loop {
        let answer = node.upgrade("node_that_exits");
        if answer.contains(under_way) {
            break;
        }
        assert!(Instant::now() < by, "{answer}");
    }
    assert!(first.join().unwrap().contains("did not start"));
    assert_eq!(node.pid, pid);
    bots.end();
}

/// A process has what it has answered to, and so has the next one.
#[test]
fn what_was_answered_over_http_is_in_the_room_whichever_process_has_it() {
    let mut node = Node::start();
    let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let askers = (0..4).map(|_| {
        let (address, is_over) = (node.address.clone(), Arc::clone(&is_over));
        let answered = Arc::clone(&answered);
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let answer = ask_if_it_can(&address, "POST /desk/one/add").unwrap_or_default();
                let is_answer = answer.contains("\r\n\r\nok ");
                answered.fetch_add(u64::from(is_answer), Ordering::Relaxed);
            }
        })
    });
    let askers: Vec<_> = askers.collect();
    for _ in 0..5 {
        let before = answered.load(Ordering::Relaxed);
        while answered.load(Ordering::Relaxed) < before + REQUESTS {
            #[expect(clippy::disallowed_methods, reason = "they count without a signal")]
            std::thread::sleep(Duration::from_millis(5));
        }
        let answer = node.upgrade("node");
        assert!(answer.starts_with("done "), "{answer}");
    }
    is_over.store(true, Ordering::Relaxed);
    askers.into_iter().for_each(|asker| asker.join().unwrap());
    let added = ask(&node.address, "POST /desk/one/add");
    let added = added.rsplit_once("ok ").and_then(|(_, added)| added.parse::<u64>().ok());
    let answered = answered.load(Ordering::Relaxed);
    assert!(added.is_some_and(|added| added > answered), "{added:?} with {answered} before");
}

/// The requests of each process are its own: those who asked the one before are gone.
#[test]
fn a_reply_owed_to_the_process_before_is_nobody_elses() {
    let mut node = Node::start();
    let hold = |node: &Node, key: &str| {
        let (address, what) = (node.address.clone(), format!("POST /desk/{key}/hold"));
        std::thread::spawn(move || ask_if_it_can(&address, &what).unwrap_or_default())
    };
    let before: Vec<_> = (0..5).map(|_| hold(&node, "one")).collect();
    let answer = node.upgrade("node");
    assert!(answer.starts_with("done "), "{answer}");
    before.into_iter().for_each(|asker| drop(asker.join()));
    let after: Vec<_> = (0..5).map(|_| hold(&node, "two")).collect();
    let by = Instant::now() + PATIENCE;
    // Each answer is one of the own desk, once it is asked.
    while !after.iter().all(JoinHandle::is_finished) {
        for (key, with) in [("one", 1), ("two", 2)] {
            ask(&node.address, &format!("POST /desk/{key}/{with}"));
        }
        assert!(Instant::now() < by, "all are answered");
    }
    for asker in after {
        let answer = asker.join().unwrap();
        assert!(answer.ends_with("ok 2"), "{answer}");
    }
}

#[test]
fn the_match_goes_on_in_processes_of_fewer_and_of_more_shards() {
    let mut node = Node::start();
    let bots = Bots::play(&node);
    for program in ["node_of_one_shard", "node_of_four_shards", "node"] {
        bots.wait(REQUESTS);
        let answer = node.upgrade(program);
        assert!(answer.starts_with("done "), "{program}: {answer}");
    }
    bots.wait(REQUESTS);
    bots.end();
}

/// Connections with TLS are not passed on: their clients come back. The console stays where it is.
#[test]
fn the_match_goes_on_over_tls_and_the_console_is_found_where_it_was() {
    let signed = SelfSigned::new(&["localhost"]).unwrap();
    let file = |end: &str| {
        std::env::temp_dir().join(format!("playfield-upgrade-tls-{}.{end}", std::process::id()))
    };
    let (certificate, key) = (file("cert"), file("key"));
    std::fs::write(&certificate, signed.certificate_pem()).unwrap();
    std::fs::write(&key, signed.key_pem()).unwrap();
    let console = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = format!(
        "tls.cert={}\ntls.key={}\nconsole={console}\n",
        certificate.display(),
        key.display()
    );
    let mut node = Node::start_with(&settings);
    let port = node.address.rsplit_once(':').unwrap().1.to_owned();
    let url = format!("tls://localhost:{port}");
    let bots = Bots::play_at(url, Some(signed.certificate_pem().into_bytes()));
    for _ in 0..2 {
        bots.wait(REQUESTS);
        let answer = node.upgrade("node");
        assert!(answer.starts_with("done "), "{answer}");
        let answer = ask(console, "GET /api/node");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    bots.wait(REQUESTS);
    bots.end();
    for path in [certificate, key] {
        std::fs::remove_file(path).unwrap();
    }
}

/// A client that sends and reads what the test says.
struct Manual {
    stream: TcpStream,
    session: Session,
    room: Option<RoomNumber>,
    /// The sizes of the replies so far.
    replies: Vec<usize>,
}

impl Manual {
    fn join(node: &Node) -> Self {
        let stream = TcpStream::connect(&node.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let session = Session::new(ClientConfig::new(Transport::Native)).unwrap();
        let mut client = Self { stream, session, room: None, replies: Vec::new() };
        client.flush();
        client.read_until(|client| client.session.is_welcomed());
        client.session.join_or_create_by_key("ledger", "manual", &[]).unwrap();
        client.flush();
        client.read_until(|client| client.room.is_some());
        client
    }

    /// The bytes of a request.
    fn request(&mut self, message: u32, payload: &impl Data) -> Vec<u8> {
        let (mut body, mut out) = (Vec::new(), Vec::new());
        payload.encode(&mut body);
        self.session.request(self.room.unwrap(), message, &body).unwrap();
        self.session.take_output(&mut out);
        out
    }

    fn flush(&mut self) {
        let mut out = Vec::new();
        self.session.take_output(&mut out);
        self.stream.write_all(&out).unwrap();
    }

    fn read_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        let mut buffer = vec![0; 1 << 16];
        while !is_done(self) {
            let bytes = self.stream.read(&mut buffer).unwrap();
            assert!(bytes > 0, "the connection goes on");
            self.session.received(&buffer[..bytes]);
            while let Some(event) = self.session.poll_event() {
                match event {
                    Event::Joined(joined) => self.room = Some(joined.room),
                    Event::Reply(reply) => self.replies.push(reply.payload.len()),
                    _ => {}
                }
            }
            self.flush();
        }
    }
}

/// Megabytes wait for it, requests wait that were not read or not handled, and one is half sent.
#[test]
fn the_connection_of_a_client_that_does_not_read_goes_on_over_upgrades() {
    const FILLS: usize = 100;
    let mut node = Node::start();
    let mut client = Manual::join(&node);
    for number in 1..=3 {
        for _ in 0..FILLS {
            let bytes = client.request(2, &Fill { bytes: 30_000 });
            client.stream.write_all(&bytes).unwrap();
        }
        let bytes = client.request(0, &Count { bot: 1, number });
        let (half, rest) = bytes.split_at(bytes.len() / 2);
        client.stream.write_all(half).unwrap();
        let answer = node.upgrade("node");
        assert!(answer.starts_with("done "), "{answer}");
        client.stream.write_all(rest).unwrap();
        client.read_until(|client| client.replies.len() > FILLS);
        let replies = std::mem::take(&mut client.replies);
        assert!(replies[..FILLS].iter().all(|bytes| *bytes > 30_000), "{replies:?}");
        assert_eq!(replies[FILLS..].len(), 1);
    }
}
