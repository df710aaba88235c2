//! A node with journaled rooms is killed while bots play, again and again: what anyone was answered
//! or shown is there when the next process begins.

#![cfg(all(target_os = "linux", feature = "store"))]

#[path = "journal/away.rs"]
mod away;
#[path = "journal/damage.rs"]
mod damage;
#[path = "journal/full.rs"]
mod full;
#[path = "journal/panics.rs"]
mod panics;
#[path = "journal/stale.rs"]
mod stale;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playfield::axum::extract::Path;
use playfield::prelude::*;
use playfield::{Config, LevelFilter, NodeHandle, Server, Upgrade, client};

/// The time for which a test waits for something that must come. Only a failing test waits that
/// long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of times that a node is killed. `PLAYFIELD_KILLS=1000` kills it more often.
const KILLS: u64 = 8;

const BOTS: u32 = 6;
const PER_ROOM: u32 = 3;

/// Counts what each bot asks for.
#[derive(State, Default)]
struct Ledger {
    counts: Map<u32, u64>,
    ticks: u64,
    /// The sum of random numbers, which go on, too.
    luck: u64,
    /// The room's time, which resumes where it was.
    age_ms: u64,
    /// The number of results of background work.
    found: u64,
    is_looking: bool,
}

/// The result of background work.
#[derive(Message)]
struct Found;

/// The next number of a bot. The reply is that number, if it is the next.
#[derive(Message, Clone)]
#[reply(u64)]
struct Count {
    bot: u32,
}

/// A bot has counted.
#[derive(Message, Clone)]
struct Counted {
    bot: u32,
    number: u64,
}

#[room(
    messages(Count),
    events(Counted),
    internal(Found),
    tick_hz = 20,
    sync_hz = 20,
    empty_ms = 60_000,
    grace_ms = 0,
    persist = 1,
    durability = journal
)]
impl Room for Ledger {
    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks += 1;
        self.luck = self.luck.wrapping_add(cx.rng().below(1_000));
        self.age_ms = cx.now().as_millis() as u64;
        if !self.is_looking {
            self.is_looking = cx.spawn(async { Found }).is_ok();
        }
    }

    /// Work in flight is lost with the process.
    fn moved(&mut self, cx: &mut Context<Self>) {
        self.is_looking &= cx.given_up::<Found>() == 0;
    }
}

impl On<Found> for Ledger {
    fn on(&mut self, _: Found, _: &mut Context<Self>) -> Result<()> {
        self.found += 1;
        self.is_looking = false;
        Ok(())
    }
}

impl Handle<Count> for Ledger {
    fn handle(&mut self, Count { bot }: Count, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        let count = self.counts.get_or_default(bot);
        *count += 1;
        let number = *count;
        cx.emit(&Counted { bot, number });
        Ok(number)
    }
}

const IGNORED: [&str; 3] = ["--exact", "--ignored", "--nocapture"];

#[test]
#[ignore = "a node that another test starts and kills"]
fn node() {
    let Ok(store) = std::env::var("PLAYFIELD_TEST_STORE") else { return };
    let mut config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    config.log = LevelFilter::Warn;
    // Many files: most can go.
    config.journal.file_bytes = 65_536;
    if let Ok(settings) = std::env::var("PLAYFIELD_TEST_SETTINGS") {
        for (name, value) in settings.lines().filter_map(|line| line.split_once('=')) {
            config.set(name, value).unwrap();
        }
    }
    let server = Server::new().room::<Ledger>("ledger").store_file(store);
    match server.route("POST", "/upgrade/{program}", upgrade).start(config) {
        Ok(running) => {
            println!("\nlistening on {}", running.local_addr());
            running.wait().unwrap();
        }
        Err(error) => println!("\nfailed {error}"),
    }
}

async fn upgrade(node: NodeHandle, Path(program): Path<String>) -> String {
    let arguments = [program.as_str()].into_iter().chain(IGNORED).map(Into::into).collect();
    let order = Upgrade { binary: std::env::current_exe().ok(), arguments: Some(arguments) };
    match tokio::task::spawn_blocking(move || node.upgrade(&order)).await.unwrap() {
        Ok(done) => format!("done {}", done.pid),
        Err(error) => format!("failed {error}"),
    }
}

/// The files of nodes that follow each other.
struct Files {
    store: PathBuf,
    journal: PathBuf,
}

impl Files {
    fn new(name: &str) -> Self {
        let name = format!("playfield-journal-{}-{name}.redb", std::process::id());
        let store = std::env::temp_dir().join(&name);
        let journal = std::env::temp_dir().join(format!("{name}.journal"));
        Self { store, journal }
    }

    /// The files of the journal that count, or may.
    fn journal(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.journal).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "journal"));
        files.sort();
        files
    }

    /// Starts a node. Returns it, or why it did not start.
    fn start(&self) -> std::result::Result<Node, String> {
        self.start_with("")
    }

    /// With these settings, one in each line.
    fn start_with(&self, settings: &str) -> std::result::Result<Node, String> {
        self.start_build(&std::env::current_exe().unwrap(), settings)
    }

    /// Of this program, which counts as another build under another name.
    fn start_build(
        &self,
        program: &std::path::Path,
        settings: &str,
    ) -> std::result::Result<Node, String> {
        let mut child = Command::new(program)
            .arg("node")
            .args(IGNORED)
            .env("PLAYFIELD_TEST_STORE", &self.store)
            .env("PLAYFIELD_TEST_SETTINGS", settings)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.find_map(|line| {
            let line = line.unwrap();
            let address = line.strip_prefix("listening on ").map(|it| Ok(it.to_owned()));
            address.or_else(|| line.strip_prefix("failed ").map(|why| Err(why.to_owned())))
        });
        std::thread::spawn(move || lines.for_each(drop));
        let pid = child.id();
        match said.expect("the node says something") {
            Ok(address) => Ok(Node { child, address, pid }),
            Err(why) => {
                child.wait().unwrap();
                Err(why)
            }
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.store);
        let _ = std::fs::remove_dir_all(&self.journal);
    }
}

struct Node {
    child: Child,
    address: String,
    /// The last process.
    pid: u32,
}

impl Node {
    fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let last = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(last) = last.filter(|_| self.pid != self.child.id()) {
            let _ = rustix::process::kill_process(last, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The facts that a bot knows for sure: they were answered, or shown.
#[derive(Default)]
struct Known {
    /// By bot of its room, the greatest count.
    counts: [AtomicU64; PER_ROOM as usize],
    ticks: AtomicU64,
    found: AtomicU64,
}

/// The requests that a bot has made.
#[derive(Default)]
struct World {
    known: [Known; (BOTS / PER_ROOM) as usize],
    sent: [AtomicU64; BOTS as usize],
    answered: AtomicU64,
    is_over: AtomicBool,
    /// The time for which clients try to come back.
    comes_back: Duration,
    /// Why bots have ended.
    ends: Mutex<Vec<String>>,
}

/// Plays until the node is gone. Returns an error if something is missing that was known before.
async fn play(world: Arc<World>, url: String, bot: u32) -> std::result::Result<(), String> {
    let known = &world.known[(bot / PER_ROOM) as usize];
    // Nobody knows of more, and nobody has sent less.
    let before: Vec<u64> = known.counts.iter().map(|it| it.load(Ordering::SeqCst)).collect();
    let ticks = known.ticks.load(Ordering::SeqCst);
    let found = known.found.load(Ordering::SeqCst);
    let connect = client::connect(&url).timeout(PATIENCE).reconnect_timeout(world.comes_back);
    let ends = |why: &dyn std::fmt::Display| {
        world.ends.lock().unwrap().push(format!("bot {bot}: {why}"));
        Ok(())
    };
    let connection = match connect.await {
        Ok(connection) => connection,
        Err(error) => return ends(&error),
    };
    let key = format!("ledger-{}", bot / PER_ROOM);
    let joined = connection.join_or_create_by_key::<Ledger>("ledger", &key, &()).await;
    let room = match joined {
        Ok(room) => room,
        Err(error) => return ends(&error),
    };
    let state = room.state();
    if state.ticks < ticks {
        return Err(format!("bot {bot}: {} ticks, but {ticks} were shown", state.ticks));
    }
    if state.found < found {
        return Err(format!("bot {bot}: {} results, but {found} were shown", state.found));
    }
    // The room's time also passes while the node is briefly away.
    if state.age_ms > 50 * (state.ticks + 1) + PATIENCE.as_millis() as u64 {
        return Err(format!("bot {bot}: {} ticks in {} ms", state.ticks, state.age_ms));
    }
    for (of, before) in before.iter().enumerate() {
        let number = bot / PER_ROOM * PER_ROOM + of as u32;
        let found = state.counts.get(&number).copied().unwrap_or(0);
        let sent = world.sent[number as usize].load(Ordering::SeqCst);
        if found < *before || found > sent {
            return Err(format!(
                "bot {bot}: bot {number} is at {found}, but {before} was known and {sent} were sent"
            ));
        }
    }
    let mut last = state.counts.get(&bot).copied().unwrap_or(0);
    drop(state);
    let own = (bot % PER_ROOM) as usize;
    while !world.is_over.load(Ordering::Relaxed) {
        world.sent[bot as usize].fetch_add(1, Ordering::SeqCst);
        let number = match room.request(Count { bot }).await {
            Ok(number) => number,
            Err(error) => return ends(&error),
        };
        if number != last + 1 {
            return Err(format!("bot {bot}: {number} follows {last}"));
        }
        last = number;
        known.counts[own].fetch_max(number, Ordering::SeqCst);
        world.answered.fetch_add(1, Ordering::Relaxed);
        let state = room.state();
        known.ticks.fetch_max(state.ticks, Ordering::SeqCst);
        known.found.fetch_max(state.found, Ordering::SeqCst);
        for (of, count) in known.counts.iter().enumerate() {
            let number = bot / PER_ROOM * PER_ROOM + of as u32;
            let shown = state.counts.get(&number).copied().unwrap_or(0);
            count.fetch_max(shown, Ordering::SeqCst);
        }
    }
    Ok(())
}

/// Bots that play until their node is gone, or the world is over.
fn bots(world: &Arc<World>, url: &str) -> JoinHandle<()> {
    let (world, url) = (Arc::clone(world), url.to_owned());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let play = |bot| tokio::spawn(play(Arc::clone(&world), url.clone(), bot));
            let bots: Vec<_> = (0..BOTS).map(play).collect();
            for bot in bots {
                bot.await.unwrap().unwrap();
            }
        });
    })
}

impl World {
    /// Waits until so many more requests were answered.
    fn wait(&self, bots: &JoinHandle<()>, requests: u64) {
        let until = self.answered.load(Ordering::Relaxed) + requests;
        let by = Instant::now() + PATIENCE;
        while self.answered.load(Ordering::Relaxed) < until {
            assert!(!bots.is_finished(), "they have ended: {:?}", self.ends.lock().unwrap());
            assert!(Instant::now() < by, "the bots get answers");
            #[expect(clippy::disallowed_methods, reason = "the bots count without a signal")]
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The finalizer of SplitMix64, by Steele, Lea and Flood.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[test]
fn what_was_answered_or_shown_survives_kill_9() {
    let kills = std::env::var("PLAYFIELD_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let files = Files::new("kills");
    let world = Arc::new(World::default());
    let seed = Instant::now();
    for round in 0..kills {
        let mut node = files.start().unwrap_or_else(|why| panic!("round {round}: {why}"));
        world.ends.lock().unwrap().clear();
        let bots = bots(&world, &node.url());
        let dice = mixed(seed.elapsed().as_nanos() as u64 ^ round);
        // Sometimes long enough for saves and their consequences.
        let requests_max = if round % 4 == 3 { 8_000 } else { 400 };
        world.wait(&bots, 1 + dice % requests_max);
        node.kill();
        bots.join().unwrap_or_else(|_| panic!("round {round}: something is lost"));
    }
    let answered = world.answered.load(Ordering::Relaxed);
    let files = files.journal().len();
    println!("killed {kills} times; {answered} requests were answered, and all of it is there");
    println!("the journal has {files} files");
}

/// Plays for a while, and kills the node.
fn play_and_kill(files: &Files, world: &Arc<World>, requests: u64) {
    let mut node = files.start().unwrap();
    let bots = bots(world, &node.url());
    world.wait(&bots, requests);
    node.kill();
    bots.join().expect("nothing is lost");
}

#[test]
fn a_new_process_that_has_taken_over_has_all_and_so_has_the_next_after_kill_9() {
    let files = Files::new("upgrade");
    let world = Arc::new(World { comes_back: Duration::from_secs(3), ..World::default() });
    for round in 0..3 {
        let mut node = files.start().unwrap();
        let bots = bots(&world, &node.url());
        for _ in 0..=round {
            world.wait(&bots, 60);
            let answer = ask(&node.address, "POST /upgrade/node");
            let pid = answer.rsplit_once("done ").and_then(|(_, pid)| pid.trim().parse().ok());
            node.pid = pid.unwrap_or_else(|| panic!("{answer}"));
            world.wait(&bots, 60);
        }
        let answer = ask(&node.address, "POST /upgrade/no_such_test");
        assert!(answer.contains("failed "), "{answer}");
        world.wait(&bots, 60);
        node.kill();
        bots.join().expect("nothing is lost");
    }
}

/// Makes an HTTP request without a body. Returns the answer.
fn ask(address: &str, what: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "{what} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
