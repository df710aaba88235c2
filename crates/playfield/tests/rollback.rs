//! A deploy that is rolled back, both ways and twice, while bots play: nodes are processes of their
//! own, with one store on disk. Each saved room can be joined at any time, nothing that was
//! acknowledged is lost, and what only the newer build has is there again when it runs again.
//!
//! `PLAYFIELD_ROLLBACK_BOTS=50` has as many bots, and each build then serves longer.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playfield::client::{self, Connection};
use playfield::prelude::*;
use playfield::store::{DiskStore, Store as _};
use playfield::{Config, LevelFilter, Server};

/// The number of bots that play. `PLAYFIELD_ROLLBACK_BOTS=50` has more.
const BOTS: usize = 6;

/// The time for which the test waits for something that must come. Only a failing test waits that
/// long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of bots that share a room.
const PER_ROOM: usize = 3;

/// The acknowledged trades of each bot that a build serves, on average, before it ends.
const TRADES: u64 = 8;

/// The number of goods that a shop keeps: the oldest goes, so that elements of lists move.
const GOODS_MAX: usize = 4;

/// The code that both builds share.
macro_rules! town {
    () => {
        impl Handle<Trade> for Town {
            fn handle(&mut self, trade: Trade, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
                let Trade { bot, number } = trade;
                if self.shops.get(&bot).is_none() {
                    self.shops.insert(bot, Shop::default());
                }
                let shop = self.shops.get_mut(&bot).ok_or("no such shop")?;
                // A trade that comes again was carried out.
                if number > shop.trades {
                    shop.trades = number;
                    // Elements move up, down and around, and the one that goes is in the middle.
                    shop.goods.insert(number as usize % (shop.goods.len() + 1), Good::new(number));
                    if shop.goods.len() > GOODS_MAX {
                        // The first one stays.
                        let numbers = shop.goods.iter().map(|good| good.number);
                        let oldest = numbers.filter(|number| *number > 1).min();
                        shop.goods.retain(|good| Some(good.number) != oldest);
                    }
                    shop.goods.sort_by_key(|good| good.number.reverse_bits());
                    // Sent as a whole: it is rebuilt, and some of its elements are equal.
                    let Ledger::Open(entries) = &mut shop.ledger;
                    entries.reverse();
                    entries.retain(|entry| entry.number == 1 || entry.number + 4 > number);
                    entries.push(Entry::new(number));
                    if number % 3 == 0 {
                        entries.push(Entry::new(number));
                    }
                    // The other list is replaced.
                    let last: Vec<Good> = shop.last.iter().cloned().collect();
                    shop.last = last.into_iter().rev().take(2).collect();
                    shop.last.push(Good::new(number));
                }
                self.waiting.push(Waiting { later: cx.defer(), number });
                cx.save(Saved)?;
                Err(Error::deferred())
            }
        }

        impl Default for Ledger {
            fn default() -> Self {
                Self::Open(Vec::new())
            }
        }

        impl On<Saved> for Town {
            fn on(&mut self, _: Saved, cx: &mut Context<Self>) -> Result<()> {
                // Each waits for a save of its own, in this order.
                if let Some(Waiting { later, number }) = self.waiting.remove(0) {
                    cx.answer(later, Ok(number));
                }
                Ok(())
            }
        }
    };
}

/// The release from before the deploy.
mod old {
    use super::*;

    #[derive(State, Default)]
    pub(super) struct Town {
        pub(super) shops: Map<u32, Shop>,
        #[sync(hidden)]
        pub(super) waiting: List<Waiting>,
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Shop {
        /// The number of the last trade.
        pub(super) trades: u64,
        pub(super) goods: List<Good>,
        pub(super) last: List<Good>,
        pub(super) ledger: Ledger,
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Good {
        pub(super) number: u64,
    }

    #[derive(State, Data, Clone)]
    pub(super) enum Ledger {
        Open(Vec<Entry>),
    }

    #[derive(Data, Default, Clone)]
    pub(super) struct Entry {
        pub(super) number: u64,
    }

    impl Entry {
        fn new(number: u64) -> Self {
            Self { number }
        }
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Waiting {
        pub(super) later: Deferred<Trade>,
        pub(super) number: u64,
    }

    #[derive(Message)]
    pub(super) struct Saved;

    #[room(messages(Trade), internal(Saved), persist = 1, empty_ms = 200)]
    impl Room for Town {
        fn rebuild(&mut self, _: &mut Context<Self>) {
            self.waiting.clear();
        }
    }

    impl Good {
        fn new(number: u64) -> Self {
            Self { number }
        }
    }

    town!();
}

/// The release of the deploy: shops and goods have more.
mod new {
    use super::*;

    #[derive(State, Default)]
    pub(super) struct Town {
        pub(super) motto: String,
        pub(super) shops: Map<u32, Shop>,
        #[sync(hidden)]
        pub(super) waiting: List<Waiting>,
        /// Paint that was acknowledged, by shop.
        #[sync(hidden)]
        pub(super) paint: Map<u32, Paint>,
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Shop {
        pub(super) color: String,
        pub(super) trades: u64,
        pub(super) goods: List<Good>,
        pub(super) last: List<Good>,
        pub(super) ledger: Ledger,
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Good {
        pub(super) label: String,
        pub(super) number: u64,
    }

    #[derive(State, Data, Clone)]
    pub(super) enum Ledger {
        Open(Vec<Entry>),
    }

    #[derive(Data, Default, Clone)]
    pub(super) struct Entry {
        pub(super) label: String,
        pub(super) number: u64,
    }

    impl Entry {
        fn new(number: u64) -> Self {
            Self { label: String::new(), number }
        }
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Paint {
        pub(super) color: String,
    }

    #[derive(State, Default, Clone)]
    pub(super) struct Waiting {
        pub(super) later: Deferred<Trade>,
        pub(super) number: u64,
    }

    #[derive(Message)]
    pub(super) struct Saved;

    #[room(messages(Trade, Mark), internal(Saved), persist = 1, empty_ms = 200)]
    impl Room for Town {
        fn rebuild(&mut self, _: &mut Context<Self>) {
            self.waiting.clear();
        }
    }

    /// Gives a shop, its goods and entries what the older build lacks.
    impl Handle<Mark> for Town {
        fn handle(&mut self, mark: Mark, _: &Player, _: &mut Context<Self>) -> Result<u64> {
            let shop = self.shops.get_mut(&mark.bot).ok_or("no such shop")?;
            shop.color.clone_from(&mark.color);
            let number = shop.trades;
            for good in shop.goods.iter_mut().chain(shop.last.iter_mut()) {
                good.label = format!("good {}", good.number);
            }
            let Ledger::Open(entries) = &mut shop.ledger;
            for entry in entries {
                entry.label = format!("good {}", entry.number);
            }
            self.motto = "Onward".into();
            self.paint.insert(mark.bot, Paint { color: mark.color });
            Ok(number)
        }
    }

    impl Good {
        fn new(number: u64) -> Self {
            Self { label: String::new(), number }
        }
    }

    town!();
}

/// The trade with this number. It is answered once it is on disk, with the number.
#[derive(Message, Clone)]
#[reply(u64)]
struct Trade {
    bot: u32,
    number: u64,
}

/// A color for a shop, which goes to disk with the next trade. The reply is the number of its last
/// good.
#[derive(Message, Clone)]
#[reply(u64)]
struct Mark {
    bot: u32,
    color: String,
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node() {
    let Ok(path) = std::env::var("PLAYFIELD_STORE") else { return };
    let server = match std::env::var("PLAYFIELD_BUILD").as_deref() {
        Ok("old") => Server::new().room::<old::Town>("town"),
        _ => Server::new().room::<new::Town>("town"),
    };
    let listen = ([127, 0, 0, 1], 0).into();
    let config = Config { listen, shards: 2, log: LevelFilter::Warn, ..Config::default() };
    let running = server.store_file(path).start(config).unwrap();
    println!("\nlistening on {}", running.local_addr());
    let stopper = running.stopper();
    // Until it is asked to stop, or the test has ended.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        stopper.stop();
    });
    running.wait().unwrap();
}

/// A node in a process of its own.
struct Node {
    child: Child,
    stdin: Option<ChildStdin>,
    url: String,
}

impl Node {
    fn start(build: &str, store: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["node", "--exact", "--ignored", "--nocapture"])
            .env("PLAYFIELD_BUILD", build)
            .env("PLAYFIELD_STORE", store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned));
        // What the test harness writes at the end.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, stdin, url: format!("tcp://{}", address.expect("the node listens")) }
    }

    /// Ends it in order, or at once.
    fn end(mut self, in_order: bool) {
        if in_order {
            let mut stdin = self.stdin.take().unwrap();
            writeln!(stdin, "stop").unwrap();
            assert!(self.child.wait().unwrap().success(), "it stops in order");
        } else {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It has ended, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The knowledge shared by bots and the test.
#[derive(Default)]
struct World {
    url: Mutex<String>,
    is_over: AtomicBool,
    acknowledged: AtomicU64,
    /// By bot: the last trade that was acknowledged.
    trades: Mutex<BTreeMap<u32, u64>>,
}

fn key(bot: u32) -> String {
    format!("town-{}", bot as usize / PER_ROOM)
}

async fn connect(url: &str) -> std::result::Result<Connection, client::Error> {
    client::connect(url).reconnect_timeout(Duration::ZERO).timeout(Duration::from_secs(20)).await
}

/// Trades until the world is over, over whichever node there is. Its build is that from before the
/// deploy, as that of clients which were not updated.
async fn play(world: Arc<World>, bot: u32, acknowledged: SyncSender<()>) {
    let mut number = 1;
    while !world.is_over.load(Ordering::Relaxed) {
        let url = world.url.lock().unwrap().clone();
        let Ok(connection) = connect(&url).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let entered = connection.join_or_create_by_key::<old::Town>("town", &key(bot), &()).await;
        let room = match entered {
            Ok(room) => room,
            Err(error) => {
                assert!(!error.to_string().contains("save"), "bot {bot}: {error}");
                continue;
            }
        };
        while !world.is_over.load(Ordering::Relaxed) {
            let Ok(reply) = room.request(Trade { bot, number }).await else { break };
            assert_eq!(reply, number);
            world.trades.lock().unwrap().insert(bot, number);
            world.acknowledged.fetch_add(1, Ordering::Relaxed);
            // Nobody may count them now.
            let _ = acknowledged.try_send(());
            number += 1;
        }
    }
}

/// The parts of each shop that only the newer build has: its color, and the labels of goods by
/// their number, at 0 that of the first entry of its ledger.
type Marks = BTreeMap<u32, (String, BTreeMap<u64, String>)>;

/// Gives each shop a color and its newest good a label, and waits until that is on disk.
async fn mark(url: &str, bots: u32, round: usize) {
    for bot in 0..bots {
        let connection = connect(url).await.unwrap();
        let room =
            connection.join_or_create_by_key::<new::Town>("town", &key(bot), &()).await.unwrap();
        let color = format!("color {round} of {bot}");
        room.request(Mark { bot, color }).await.expect("the shop has a color");
        // One that was carried out is saved and answered again.
        room.request(Trade { bot, number: 0 }).await.expect("it is on disk");
        connection.close().await;
    }
}

/// Returns what the newest build reads in the store.
fn marks(store: &Path, bots: u32, trades: &BTreeMap<u32, u64>, build: &str) -> Marks {
    let store = DiskStore::open(store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut marks = Marks::new();
    for bot in 0..bots {
        let loaded = runtime.block_on(store.load("town", &key(bot))).unwrap().expect("a save");
        let town = playfield::load::<new::Town>(&loaded.bytes).unwrap();
        let shop = town.shops.get(&bot).unwrap();
        let acknowledged = trades.get(&bot).copied().unwrap_or(0);
        assert!(
            shop.trades >= acknowledged,
            "{build}: bot {bot} has {} trades on disk, {acknowledged} were acknowledged",
            shop.trades
        );
        assert_eq!(town.motto, "Onward", "{build}");
        assert_eq!(town.paint.get(&bot).unwrap().color, shop.color, "{build}");
        // None has reached another element.
        let new::Ledger::Open(entries) = &shop.ledger;
        let of_wholes = entries.iter().map(|entry| (entry.number, &entry.label));
        let goods = shop.goods.iter().chain(&shop.last).map(|good| (good.number, &good.label));
        for (number, label) in goods.chain(of_wholes) {
            assert!(label.is_empty() || *label == format!("good {number}"), "{build}: {label}");
        }
        let labels = shop.goods.iter().map(|good| (good.number, good.label.clone()));
        let mut labels: BTreeMap<u64, String> = labels.collect();
        let first = entries.iter().find(|entry| entry.number == 1).expect("the first entry");
        labels.insert(0, first.label.clone());
        marks.insert(bot, (shop.color.clone(), labels));
    }
    marks
}

#[test]
fn a_deploy_is_rolled_back_twice_under_bots_and_nothing_is_lost() {
    let bots = std::env::var("PLAYFIELD_ROLLBACK_BOTS").map_or(BOTS, |bots| bots.parse().unwrap());
    let bots = bots as u32;
    let name = format!("playfield-rollback-{}.redb", std::process::id());
    let store: PathBuf = std::env::temp_dir().join(name);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();

    let world = Arc::<World>::default();
    let mut node = Node::start("new", &store);
    world.url.lock().unwrap().clone_from(&node.url);
    let (sender, acknowledged) = sync_channel(1 << 16);
    let playing: Vec<_> =
        (0..bots).map(|bot| runtime.spawn(play(Arc::clone(&world), bot, sender.clone()))).collect();
    // Waits for so many trades of each bot, on average, and at least one of each.
    let trade = |times: u64| {
        let mut left = u64::from(bots) * times;
        while left > 0 || world.trades.lock().unwrap().len() < bots as usize {
            acknowledged.recv_timeout(PATIENCE).expect("trades are acknowledged");
            left = left.saturating_sub(1);
        }
    };
    trade(TRADES);
    let (mut joined, mut kept) = (0, 0);
    for round in 0..2 {
        runtime.block_on(mark(&node.url, bots, round));
        // Killed the first time, in order the second time; and the other way around below.
        node.end(round == 1);
        let trades = world.trades.lock().unwrap().clone();
        let before = marks(&store, bots, &trades, "new");

        acknowledged.try_iter().for_each(drop);
        node = Node::start("old", &store);
        world.url.lock().unwrap().clone_from(&node.url);
        trade(1);
        joined += join_all::<old::Town>(&runtime, &node.url, bots);
        node.end(round == 0);
        let trades = world.trades.lock().unwrap().clone();
        let after = marks(&store, bots, &trades, "old");
        for (bot, (color, labels)) in &before {
            let (color_after, labels_after) = &after[bot];
            assert_eq!(color_after, color, "the shop of bot {bot}, round {round}");
            for (number, label) in labels_after {
                let before = labels.get(number).map_or("", |label| label);
                assert_eq!(label, before, "good {number} of bot {bot}, round {round}");
                kept += usize::from(!label.is_empty());
            }
            kept += 1;
        }

        acknowledged.try_iter().for_each(drop);
        node = Node::start("new", &store);
        world.url.lock().unwrap().clone_from(&node.url);
        trade(TRADES);
        joined += join_all::<new::Town>(&runtime, &node.url, bots);
    }
    world.is_over.store(true, Ordering::Relaxed);
    for bot in playing {
        runtime.block_on(bot).unwrap();
    }
    node.end(true);
    let trades = world.trades.lock().unwrap().clone();
    marks(&store, bots, &trades, "new");
    std::fs::remove_file(&store).unwrap();
    println!(
        "{bots} bots, 4 switches: {} trades acknowledged, none lost; {joined} rooms joined; {kept} \
         unknown fields kept",
        world.acknowledged.load(Ordering::Relaxed)
    );
    // The color, the first good and the first entry, twice.
    assert!(kept >= 6 * bots as usize);
}

/// Joins every saved room, and returns how many there are.
fn join_all<R: Room<Options = ()> + Default + Sync>(
    runtime: &tokio::runtime::Runtime,
    url: &str,
    bots: u32,
) -> usize {
    let keys: std::collections::BTreeSet<String> = (0..bots).map(key).collect();
    runtime.block_on(async {
        for key in &keys {
            let connection = connect(url).await.unwrap();
            let room = connection.join_or_create_by_key::<R>("town", key, &()).await;
            room.unwrap_or_else(|error| panic!("{key}: {error}"));
            connection.close().await;
        }
    });
    keys.len()
}
