//! `bench journal`: the same rooms with a journal and without, and the disk alone.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_derive::State;
use playfield_room::frozen::Frozen;
use playfield_room::recording::{BlockKind, Blocks, HEAD, Journal, RecoveredRoom, recover};
use playfield_room::{
    Context, Durability, Handle, Link, MemoryStore, Message, Player, PlayerId, Result, Room,
    RoomType, Thaw, room,
};
use playfield_state::Map;
use playfield_wire::RequestNumber;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::ServerMessage;

use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Transport, varint};
use crate::harness::fleet::Fleet;
use crate::harness::machine::{DRIVER_CORE, pin};
use crate::harness::options::{Suite, options};
use crate::harness::process::{Role, Server, Words, node_for, serve};
use crate::harness::report::{Column, Record, Report};
use crate::harness::source::Source;
use crate::harness::stats::Samples;
use crate::harness::windows::{self, Answers, Windows};

options! {
    Options {
        clients: usize = 300, quick 30
            => "clients" "N" "number of clients (default 300)", |given| given.within(1..=10_000);
        per_room: usize = 30
            => "per-room" "N" "clients of a room (default 30)", |given| given.within(1..=100);
        window: Option<usize> = None
            => "window" "N" "only with this many requests of a client under way (default 20, then 1)",
            |given| given.within(1..=50).map(Some);
        rounds: u32 = 9, quick 1
            => "rounds" "N" "rounds; the medians count (default 9)", |given| given.within(1..=1_000);
        time: Duration = Duration::from_secs(1), quick Duration::from_millis(200)
            => "seconds" "S" "how long each is measured in a round (default 1)",
            |given| given.seconds(1..=86_400);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "journal",
    about: "clients send requests to rooms with a journal, and to the same rooms without: answered
inputs a second, and the time to an answer, compared with the time that the disk alone takes for
the same blocks. Each answer is compared, and all that was answered is looked for in the files.",
    defaults: Options::new,
    run,
};

pub(crate) const ROLE: Role = Role { name: "journal", log: "error", serve: host };

/// The blocks that are written to the disk alone.
const BARE_BLOCKS: usize = 400;

const COLUMNS: &[Column] = &[
    ("clients", "clients"),
    ("window", "window"),
    ("inputs/s", "inputs_per_s"),
    ("without", "plain_inputs_per_s"),
    ("ratio", "ratio"),
    ("answer us p50", "answer_us_p50"),
    ("without", "plain_answer_us_p50"),
    ("block", "block_bytes"),
    ("fdatasync us p50", "fdatasync_us_p50"),
    ("added/fdatasync", "added_of_fdatasync"),
    ("compared", "compared"),
    ("verified", "verified"),
];

fn run(options: &Options, report: &mut Report<'_>) -> std::result::Result<(), Failure> {
    pin(DRIVER_CORE)?;
    report.begin(COLUMNS)?;
    for window in options.window.map_or(vec![20, 1], |window| vec![window]) {
        report.add(measure(options, window)?)?;
    }
    Ok(())
}

/// A folder of a journal, which is removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measure(options: &Options, window: usize) -> io::Result<Record> {
    let name = format!("playfield-bench-journal-{}-{window}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let mut sides = Vec::new();
    for is_journaled in [false, true] {
        let server = start(options, is_journaled, &folder.0)?;
        let clients = Receipts::connect(options, window, &server, is_journaled)?;
        sides.push((server, clients));
    }
    let (mut rates, mut times) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut ratios = Vec::new();
    // A warm-up.
    for round in 0..=options.rounds {
        let mut pair = [0.0, 0.0];
        for turn in 0..2 {
            let side = (turn + round as usize) % 2;
            let (_, clients) = &mut sides[side];
            clients.script.answers.times.clear();
            let (answered, began) = (clients.script.answered, Instant::now());
            clients.begin();
            clients.run(options.time);
            let time = began.elapsed();
            pair[side] = (clients.script.answered - answered) as f64 / time.as_secs_f64();
            clients.end();
            if round > 0 {
                rates[side].push(pair[side]);
                let taken = std::mem::take(&mut clients.script.answers.times);
                times[side].push(Samples::new(taken).percentile(50.0));
            }
        }
        if round > 0 {
            ratios.push(pair[1] / pair[0]);
        }
    }
    let mut is_wrong = options.corrupt_one;
    for (_, clients) in &sides {
        is_wrong |= clients.said_fault(&format!("{window} under way"));
    }
    let answered = sides[1].1.script.answered;
    let (kept, blocks) = look(&folder.0)?;
    if kept != answered {
        eprintln!("{answered} requests were answered, and {kept} are in the journal");
        is_wrong = true;
    }
    let fdatasync = bare(&folder.0, &blocks)?;
    let median = |figures: &[f64]| Samples::new(figures.to_vec()).percentile(50.0);
    let added = median(&times[1]) - median(&times[0]);
    let compared: u64 = sides.iter().map(|(_, clients)| clients.script.answered).sum();
    let [plain_rates, rates] = rates;
    let [plain_times, times] = times;
    let bytes = blocks.iter().sum::<usize>() / blocks.len().max(1);
    Ok(Record::of("journal")
        .with("clients", options.clients)
        .with("per_room", options.per_room)
        .with("window", window)
        .median("inputs_per_s", rates)
        .median("plain_inputs_per_s", plain_rates)
        .median("ratio", ratios)
        .median("answer_us_p50", times)
        .median("plain_answer_us_p50", plain_times)
        .with("blocks", blocks.len())
        .with("block_bytes", bytes)
        .measured("fdatasync_us_p50", fdatasync)
        .measured("added_us_p50", added)
        .measured("added_of_fdatasync", added / fdatasync)
        .with("compared", compared)
        .with("verified", !is_wrong))
}

/// Runs the rooms of a journal again. Returns the requests that they have answered, and the sizes
/// of the last blocks.
fn look(folder: &Path) -> io::Result<(u64, Vec<usize>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "journal") {
            files.push((path.display().to_string(), fs::read(&path)?));
        }
    }
    files.sort();
    let journal = Journal::read(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])));
    if journal.is_damaged() {
        return Err(io::Error::other(format!("the journal is damaged: {:?}", journal.faults())));
    }
    let (room_type, mut answered) = (till(true), 0);
    for (_, recording) in journal.rooms() {
        let recovered = recover(recording, &room_type).map_err(io::Error::other)?;
        let RecoveredRoom::Open(form) = recovered.room else { continue };
        let frozen = form.finish().map_err(io::Error::other)?;
        let frozen = Frozen::read(&frozen).map_err(io::Error::other)?;
        let store = Some(std::sync::Arc::new(MemoryStore::new()) as _);
        let thaw = Thaw { frozen: &frozen, store, link: &mut |_| Link(0) };
        let room = (room_type.thaw)(thaw).map_err(io::Error::other)?;
        let mut save = Vec::new();
        room.whole(&mut save);
        let till: Till = playfield_state::load(&save).map_err(io::Error::other)?;
        answered += till.counts.values().sum::<u64>();
    }
    let (_, last) = files.last().ok_or_else(|| io::Error::other("there is no journal"))?;
    let blocks = Blocks::new(&last[HEAD.len()..], 0).filter_map(std::result::Result::ok);
    let blocks = blocks.filter(|block| block.kind == BlockKind::Rooms as u8);
    Ok((answered, blocks.map(|block| block.content.len()).collect()))
}

/// Writes blocks of these sizes to the disk alone. Returns the median time for one, in
/// microseconds.
fn bare(folder: &Path, blocks: &[usize]) -> io::Result<f64> {
    let mut file = File::create(folder.join("bare"))?;
    let mut times = Vec::new();
    for bytes in blocks.iter().rev().take(BARE_BLOCKS) {
        let block = vec![7; bytes + 28];
        let began = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Samples::new(times).percentile(50.0))
}

fn start(options: &Options, is_journaled: bool, folder: &Path) -> io::Result<Server> {
    ROLE.start(&[&options.clients, &is_journaled, &folder.display()])
}

/// The answers of the rooms: how many requests of the client they have handled.
struct Receipts {
    per_room: usize,
    /// By client.
    counts: Vec<usize>,
    asked_at: Vec<Option<Instant>>,
    /// The times from a window to its last answer, in microseconds.
    times: Vec<f64>,
}

impl Receipts {
    /// Connects all clients, and has each enter its room.
    fn connect(
        options: &Options,
        window: usize,
        server: &Server,
        is_journaled: bool,
    ) -> io::Result<Fleet<Windows<Self>>> {
        let Options { clients, per_room, .. } = *options;
        let (counts, asked_at) = (vec![0; clients], vec![None; clients]);
        let receipts = Self { per_room, counts, asked_at, times: Vec::new() };
        let dialogue = Dialogue::new(Transport::Tcp);
        let requests = windows::requests(dialogue, window, |_| vec![7; 8]);
        let source = Source::Network(if is_journaled { 50 } else { 60 });
        Windows::new(receipts, dialogue, requests, window, clients).connect(
            server,
            Side::Node,
            source,
        )
    }
}

impl Answers for Receipts {
    fn join(&self, client: usize) -> ClientMessage<'_> {
        let key = format!("till-{}", client / self.per_room);
        ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "till".into(),
            key: Some(key.into()),
            options: &[],
        })
    }

    fn is_right(&mut self, client: usize, at: usize, body: &[u8]) -> bool {
        let Ok(ServerMessage::Reply(reply)) = ServerMessage::decode(FORMAT, body) else {
            return false;
        };
        let count = self.counts[client] + 1;
        let is_right = reply.request == windows::request(at) && reply.payload == varint(count);
        self.counts[client] += usize::from(is_right);
        is_right
    }

    fn begins(&mut self, client: usize) {
        self.asked_at[client] = Some(Instant::now());
    }

    fn ends(&mut self, client: usize) {
        let time = self.asked_at[client].take().map_or(0.0, |at| at.elapsed().as_secs_f64() * 1e6);
        self.times.push(time);
    }
}

/// A message of a client, which is answered with how many it has sent.
#[derive(Message)]
#[reply(u64)]
struct Pay {
    amount: [u8; 8],
}

/// A room that counts the messages of each player.
#[derive(State, Default)]
struct Till {
    #[sync(hidden)]
    counts: Map<PlayerId, u64>,
    #[sync(hidden)]
    sum: u64,
}

#[room(messages(Pay), capacity = 100, empty_ms = 600_000, persist = 10, durability = journal)]
impl Room for Till {}

impl Handle<Pay> for Till {
    fn handle(&mut self, pay: Pay, player: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.sum += u64::from(pay.amount[0]);
        let count = self.counts.get_or_default(player.id());
        *count += 1;
        Ok(*count)
    }
}

fn till(is_journaled: bool) -> RoomType {
    let mut room_type = RoomType::of::<Till>("till");
    if !is_journaled {
        room_type.settings.durability = Durability::Save;
    }
    room_type
}

fn host(words: &mut Words) -> io::Result<()> {
    let (clients, is_journaled): (usize, bool) = (words.next()?, words.next()?);
    let folder: String = words.next()?;
    let mut config = node_for(clients, 1)?;
    config.journal.folder = folder.into();
    let server = playfield_server::Server::new(config).room_type(till(is_journaled));
    let running = server.store(MemoryStore::new()).start()?;
    serve(running.local_addr().port(), Vec::new)
}
