//! Journaled rooms: what they send waits for the disk, and nothing else shows.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, process};

use playfield_room::recording::{Journal as Read, RecoveredRoom, Segment, SegmentWriter, recover};
use playfield_room::{
    Context, EndReason, Handle, Message as Declared, On, Player, Room, RoomType, room,
};
use playfield_state::{Data, Format, State};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::law_frozen::{replacements, with_replacements};
use super::laws::{self, Play, paces, steps};
use super::speech::{Heard, encoded};
use super::world::{Client, World};
use crate::config;
use crate::journal::Journal;
use crate::room_id::RoomId;
use crate::shard::journaled::{Block, Journaled, Sink};
use crate::shard::mail::ShardMail;
use crate::shard::outbound::Outbound;

thread_local! {
    /// The disks of the shards of this thread that are journaled, and how they work.
    static DISKS: RefCell<Option<(Speed, Vec<Disk>)>> = const { RefCell::new(None) };
    /// The number of messages that tills have handled.
    static HANDLED: Cell<u64> = const { Cell::new(0) };
    /// The number of computations of tills.
    static COMPUTED: Cell<u64> = const { Cell::new(0) };
}

#[derive(Clone, Copy, PartialEq)]
enum Speed {
    /// Each look finds one block more that is durable.
    Lags,
    /// The test says what is durable. Only tills are journaled.
    Held,
}

/// A disk in a test's hands.
#[derive(Clone, Default)]
struct Disk {
    blocks: Arc<Mutex<Vec<Block>>>,
    durable: Arc<AtomicU64>,
    /// The blocks before this one are useless.
    first: Arc<AtomicU64>,
    journal: Option<Arc<Journal>>,
    lags: bool,
    gave_up: Arc<AtomicBool>,
}

/// Journals the rooms of the worlds that are made on this thread from here on.
fn begin(speed: Speed) {
    DISKS.set(Some((speed, Vec::new())));
}

fn disks() -> Vec<Disk> {
    DISKS.with_borrow(|disks| disks.as_ref().map(|(_, disks)| disks.clone()).unwrap_or_default())
}

impl Disk {
    fn len(&self) -> u64 {
        self.blocks.lock().unwrap().len() as u64
    }

    /// All that was written is durable.
    fn sync(&self) {
        self.durable.store(self.len(), Ordering::Relaxed);
    }

    /// The bytes of these blocks, in one file.
    fn file(&self, blocks: Range<u64>) -> Vec<u8> {
        self.file_of(blocks, Segment::default())
    }

    /// The same, in a file with this place in the journal.
    fn file_of(&self, blocks: Range<u64>, segment: Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        let segment = Segment { first: blocks.start, ..segment };
        let mut writer = SegmentWriter::begin(&segment, &mut bytes);
        for block in &self.blocks.lock().unwrap()[blocks.start as usize..blocks.end as usize] {
            writer.block(block.number, &block.sections, &mut bytes);
        }
        bytes
    }

    /// The number of rooms that continue from the useful blocks.
    fn rooms(&self) -> usize {
        let bytes = self.file(self.first.load(Ordering::Relaxed)..self.len());
        let journal = Read::read([("file", &bytes[..])]);
        assert!(!journal.is_damaged(), "{:?}", journal.faults());
        journal.rooms().filter(|(_, room)| room.end().is_none()).count()
    }
}

impl Sink for Disk {
    fn append(&mut self, block: Block) {
        self.blocks.lock().unwrap().push(block);
    }

    fn settled(&mut self, _: u64, first: u64) {
        self.first.store(first, Ordering::Relaxed);
    }

    fn gave_up(&mut self) -> bool {
        self.gave_up.swap(false, Ordering::Relaxed)
    }

    fn durable(&self) -> u64 {
        let durable = self.durable.load(Ordering::Relaxed);
        if self.lags && durable < self.len() {
            self.durable.store(durable + 1, Ordering::Relaxed);
        }
        durable
    }
}

/// The journal of a shard, if rooms are journaled.
pub(super) fn of_shard(settings: &config::Journal) -> Option<Journaled> {
    DISKS.with_borrow_mut(|disks| {
        let (speed, disks) = disks.as_mut()?;
        let journal = Journal::of_test(settings.clone());
        let lags = *speed == Speed::Lags;
        let disk = Disk { lags, journal: Some(Arc::clone(&journal)), ..Disk::default() };
        disks.push(disk.clone());
        let mut journaled = Journaled::new(journal, Box::new(disk));
        journaled.journals = match speed {
            Speed::Lags => |_| true,
            Speed::Held => |of| of.name == "till",
        };
        Some(journaled)
    })
}

/// Returns whether mail waits for a disk that goes on by itself.
pub(super) fn is_lagging(outbound: &Outbound) -> bool {
    let lags =
        DISKS.with_borrow(|disks| disks.as_ref().is_some_and(|(speed, _)| *speed == Speed::Lags));
    lags && outbound.journaled.as_ref().is_some_and(|journaled| !journaled.is_empty())
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..laws::config(100) })]

    #[test]
    fn copies_and_events_of_journaled_rooms_are_those_of_others(
        pace in paces(),
        steps in steps(),
        forgets in any::<bool>(),
    ) {
        begin(Speed::Lags);
        Play::of(pace, forgets).run_watched(&steps, |_, _| {});
        prop_assert!(disks().iter().any(|disk| disk.len() > 1), "there is something in it");
        DISKS.set(None);
    }

    #[test]
    fn journaled_rooms_go_on_in_another_process(
        pace in paces(),
        steps in steps(),
        replacements in replacements(),
    ) {
        begin(Speed::Lags);
        let steps = with_replacements(&steps, &replacements);
        Play::of(pace, false).run_watched(&steps, |_, _| {});
        DISKS.set(None);
    }
}

/// Adds up.
#[derive(State, Default)]
struct Till {
    sum: u64,
}

#[derive(Declared)]
#[reply(u64)]
struct Add(u64);

/// Starts work elsewhere: a computation, or another till.
#[derive(Declared)]
#[reply(u64)]
struct Elsewhere {
    is_room: bool,
}

/// The result of a computation.
#[derive(Declared)]
struct Computed;

/// Bytes in the journal, for nothing else.
#[derive(Declared)]
struct Fill(String);

/// The work that a till waits for at its end.
#[derive(Declared)]
struct Counted;

/// A till with this sum counts it before it ends.
const COUNTS: u64 = 1_000;

#[room(
    messages(Add, Fill, Elsewhere),
    internal(Counted, Computed),
    sync_hz = 20,
    persist = 1,
    closing_ms = 60_000,
    durability = journal
)]
impl Room for Till {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        if self.sum >= COUNTS {
            let _ = cx.spawn(async { Counted });
        }
    }
}

impl Handle<Fill> for Till {
    fn handle(&mut self, _: Fill, _: &Player, _: &mut Context<Self>) -> playfield_room::Result<()> {
        Ok(())
    }
}

impl On<Counted> for Till {
    fn on(&mut self, _: Counted, _: &mut Context<Self>) -> playfield_room::Result<()> {
        Ok(())
    }
}

impl Handle<Add> for Till {
    fn handle(
        &mut self,
        Add(it): Add,
        _: &Player,
        _: &mut Context<Self>,
    ) -> playfield_room::Result<u64> {
        HANDLED.set(HANDLED.get() + 1);
        self.sum += it;
        Ok(self.sum)
    }
}

impl Handle<Elsewhere> for Till {
    fn handle(
        &mut self,
        Elsewhere { is_room }: Elsewhere,
        _: &Player,
        cx: &mut Context<Self>,
    ) -> playfield_room::Result<u64> {
        match is_room {
            true => drop(cx.create_room::<Till>(&())?),
            false => cx.compute(|| {
                COMPUTED.set(COMPUTED.get() + 1);
                Computed
            })?,
        }
        Ok(0)
    }
}

impl On<Computed> for Till {
    fn on(&mut self, _: Computed, _: &mut Context<Self>) -> playfield_room::Result<()> {
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Till>("till")
}

/// A world with a till, and one who is in it.
fn till(shards: usize, shard: usize) -> (World, Client) {
    begin(Speed::Held);
    let mut world = World::new(shards, &[("journal.file_bytes", "65536")]);
    let client = world.client(shard);
    create(&mut world, client, "till");
    (world, client)
}

fn create(world: &mut World, client: Client, room_type: &str) {
    let create = ClientMessage::Create(client::Create {
        request: RequestNumber(1),
        room_type: room_type.into(),
        private: false,
        code: false,
        key: None,
        options: &[],
    });
    world.say(client, &encoded(Format::Packed, &create));
    world.wait(100);
}

/// A request to add a number.
fn ask(request: u32, number: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    Add(number).encode(&mut payload);
    request_of(request, 0, &payload)
}

/// A request with the message of this number.
fn request_of(request: u32, message: u32, payload: &[u8]) -> Vec<u8> {
    let message = ClientMessage::Request(client::Request {
        room: RoomNumber(1),
        request: RequestNumber(request),
        message: MessageRef::Index(message),
        payload,
    });
    encoded(Format::Packed, &message)
}

fn add(world: &mut World, client: Client, request: u32, number: u64) {
    world.say(client, &ask(request, number));
}

/// Sends tills enough to fill a file of the journal.
fn fill(world: &mut World, client: Client) {
    for _ in 0..7 {
        let mut payload = Vec::new();
        Fill("x".repeat(10_000)).encode(&mut payload);
        let message = ClientMessage::Send(client::Send {
            room: RoomNumber(1),
            message: MessageRef::Index(1),
            payload: &payload,
        });
        world.say(client, &encoded(Format::Packed, &message));
        sync(world);
    }
}

/// The numbers of the requests that were answered.
fn replies(world: &mut World, client: Client) -> Vec<u32> {
    let heard = world.heard(client).into_iter();
    let reply = heard.filter_map(|heard| match heard {
        Heard::Reply { request, .. } => Some(request.0),
        _ => None,
    });
    reply.collect()
}

fn sync(world: &mut World) {
    disks().iter().for_each(Disk::sync);
    world.run();
    world.wait(1);
}

#[test]
fn nothing_leaves_before_its_cause_is_durable_and_other_rooms_do_not_wait() {
    for (shards, shard) in [(1, 0), (2, 0), (2, 1)] {
        let (mut world, client) = till(shards, shard);
        assert_eq!(world.heard(client), [], "that it has joined is not durable");
        // A room of another type.
        let other = world.client(shard);
        world.room(other, "");
        sync(&mut world);
        let heard = world.heard(client);
        assert!(matches!(&heard[..], [Heard::Joined { .. }, Heard::Snapshot { .. }]), "{heard:?}");
        for request in 1..=3 {
            add(&mut world, client, request, 1);
            world.wait(60);
        }
        assert_eq!(world.heard(client), [], "neither replies nor patches");
        assert!(!world.ask(other, RoomNumber(1), "add", "").is_empty());
        sync(&mut world);
        assert_eq!(replies(&mut world, client), [1, 2, 3]);
        DISKS.set(None);
    }
}

#[test]
fn work_and_rooms_begin_once_their_cause_is_durable() {
    for (shards, is_room) in [(1, false), (1, true), (2, false), (2, true)] {
        let (mut world, client) = till(shards, 0);
        sync(&mut world);
        let begun = |world: &mut World| {
            world.run_background();
            let rooms = (0..shards).map(|shard| world.counters(shard).rooms).sum::<u64>();
            (COMPUTED.get(), rooms)
        };
        let (computed, rooms) = begun(&mut world);
        let mut payload = Vec::new();
        Elsewhere { is_room }.encode(&mut payload);
        world.say(client, &request_of(1, 2, &payload));
        world.wait(60);
        assert_eq!(begun(&mut world), (computed, rooms), "its cause is not durable");
        sync(&mut world);
        world.wait(60);
        let now = begun(&mut world);
        assert_eq!(now, (computed + u64::from(!is_room), rooms + u64::from(is_room)));
        sync(&mut world);
        assert!(replies(&mut world, client).contains(&1));
        DISKS.set(None);
    }
}

#[test]
fn what_waits_for_several_blocks_leaves_in_its_order() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    world.heard(client);
    for first in [1, 4, 7] {
        let asks: Vec<Vec<u8>> = (first..first + 3).map(|request| ask(request, 1)).collect();
        let asks: Vec<Vec<u8>> = asks.iter().map(|body| world.framed(client, body)).collect();
        world.bytes(client, &asks.concat());
    }
    assert_eq!(world.heard(client), []);
    sync(&mut world);
    assert_eq!(replies(&mut world, client), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    DISKS.set(None);
}

#[test]
fn a_room_whose_journal_stands_still_is_not_called_and_goes_on_with_it() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    world.heard(client);
    let before = HANDLED.get();
    add(&mut world, client, 1, 1);
    world.wait(1_100);
    assert_eq!(HANDLED.get(), before + 1);
    // The client gets an error, or its messages wait.
    for request in 2..5 {
        add(&mut world, client, request, 1);
    }
    let refused: Vec<String> = world.bodies(client).iter().map(|it| lossy(it)).collect();
    assert!(!refused.is_empty());
    let named = |text: &String| text.contains("the journal can't be written");
    assert!(refused.iter().all(named), "{refused:?}");
    world.wait(10_000);
    assert_eq!(HANDLED.get(), before + 1, "it is not called");
    sync(&mut world);
    world.wait(100);
    sync(&mut world);
    let answered = replies(&mut world, client);
    assert!(answered.starts_with(&[1]), "{answered:?}");
    add(&mut world, client, 9, 1);
    world.wait(100);
    sync(&mut world);
    assert_eq!(replies(&mut world, client), [9]);
    DISKS.set(None);
}

#[test]
fn a_shard_whose_journal_stands_still_has_no_turns_but_those_of_its_rooms() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    add(&mut world, client, 1, 1);
    world.wait(1_100);
    let turns = world.counters(0).turns;
    world.wait(1_000);
    let turns = world.counters(0).turns - turns;
    // The till syncs 20 times a second, and the shard looks at its load.
    assert!(turns < 100, "{turns} turns in a second");
    DISKS.set(None);
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_journal_tells_whether_it_is_written_and_that_it_was_too_late() {
    let (mut world, client) = till(1, 0);
    let journal = disks()[0].journal.clone().unwrap();
    let made = journal.made();
    assert!(!journal.has_written(&made));
    sync(&mut world);
    assert!(journal.has_written(&made));
    sync(&mut world);
    add(&mut world, client, 1, 1);
    let made = journal.made();
    world.wait(900);
    assert!(!journal.has_written(&made));
    assert_eq!(journal.stalls_so_far(), 0);
    world.wait(200);
    assert_eq!(journal.stalls_so_far(), 1);
    sync(&mut world);
    assert!(journal.has_written(&made));
    assert_eq!(journal.stalls_so_far(), 1);
    DISKS.set(None);
}

#[test]
fn no_journaled_room_is_created_while_the_journal_stands_still() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    add(&mut world, client, 1, 1);
    world.wait(1_100);
    let other = world.client(0);
    create(&mut world, other, "till");
    assert!(matches!(world.heard(other)[..], [Heard::Error { code: ErrorCode::Busy, .. }]));
    assert_eq!(world.counters(0).rooms, 1);
    sync(&mut world);
    create(&mut world, other, "till");
    sync(&mut world);
    assert!(matches!(world.heard(other)[..], [Heard::Joined { .. }, ..]));
    DISKS.set(None);
}

#[test]
fn a_room_that_is_ending_when_the_journal_comes_to_a_stand_ends_when_that_goes_on() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    let (_, id) = world.joined(client);
    add(&mut world, client, 1, 1);
    world.oversleep(1_100);
    let room = RoomId::parse(&id).unwrap();
    world.post(0, ShardMail::Close { room, text: "over".into() });
    world.wait(10_000);
    assert_eq!(world.heard(client), [], "nothing of it is durable");
    sync(&mut world);
    sync(&mut world);
    let heard = world.heard(client);
    assert!(matches!(&heard[..], [.., Heard::Left { .. }]), "{heard:?}");
    assert_eq!(world.counters(0).rooms, 0);
    DISKS.set(None);
}

#[test]
fn a_room_that_waits_for_its_end_stays_in_the_journal() {
    let (mut world, client) = till(1, 0);
    let other = world.client(0);
    create(&mut world, other, "till");
    sync(&mut world);
    let (_, id) = world.joined(client);
    add(&mut world, client, 1, COUNTS);
    world.wait(100);
    sync(&mut world);
    let room = RoomId::parse(&id).unwrap();
    world.post(0, ShardMail::Close { room, text: "over".into() });
    sync(&mut world);
    let disk = disks().remove(0);
    for _ in 0..3 {
        fill(&mut world, other);
        assert_eq!(disk.rooms(), 2);
    }
    let turns = world.counters(0).turns;
    world.wait(100);
    let turns = world.counters(0).turns - turns;
    assert!(turns < 50, "{turns} turns while it waits");
    world.run_background();
    fill(&mut world, other);
    assert_eq!((disk.rooms(), world.counters(0).rooms), (1, 1));
    assert!(disk.first.load(Ordering::Relaxed) > 0, "files before are of no use any more");
    DISKS.set(None);
}

#[test]
fn rooms_are_written_whole_after_a_file_was_given_up_so_that_it_can_go() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    add(&mut world, client, 1, 1);
    sync(&mut world);
    let disk = disks().remove(0);
    let before = disk.len();
    let first = || disk.first.load(Ordering::Relaxed);
    assert_eq!(first(), 0);
    disk.gave_up.store(true, Ordering::Relaxed);
    add(&mut world, client, 2, 1);
    sync(&mut world);
    world.wait(100);
    sync(&mut world);
    assert!(first() >= before, "files before block {} are still of use", first());
    assert_eq!(disk.rooms(), 1);
    assert!(!disk.gave_up.load(Ordering::Relaxed));
    DISKS.set(None);
}

/// Joins the till with a key, or creates it.
fn join_by_key(world: &mut World, client: Client) {
    let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: "till".into(),
        key: Some("desk".into()),
        options: &[],
    });
    world.say(client, &encoded(Format::Packed, &join));
    world.wait(100);
}

#[test]
fn a_key_is_free_when_the_journal_has_the_end_of_its_room() {
    for (shard, stalls) in [(0, false), (1, false), (0, true), (1, true)] {
        begin(Speed::Held);
        let mut world = World::new(2, &[]);
        let client = world.client(0);
        join_by_key(&mut world, client);
        sync(&mut world);
        let (_, id) = world.joined(client);
        sync(&mut world);
        let (room, home) = (RoomId::parse(&id).unwrap(), world.shard_of(client));
        world.post(home as u16, ShardMail::Close { room, text: "over".into() });
        world.wait(100);
        assert_eq!(world.node.directory.list(None, &[("", ""); 0], 9).len(), 0);
        let next = world.client(shard);
        join_by_key(&mut world, next);
        let rooms = world.counters(0).rooms + world.counters(1).rooms;
        assert_eq!((world.heard(next), rooms), (vec![], 0), "the end is not durable");
        if stalls {
            world.wait(1_100);
            assert!(matches!(world.heard(next)[..], [Heard::Error { code: ErrorCode::Busy, .. }]));
            sync(&mut world);
            join_by_key(&mut world, next);
        }
        let heard = (0..20).find_map(|_| {
            sync(&mut world);
            world.wait(10);
            Some(world.heard(next)).filter(|heard| !heard.is_empty())
        });
        let heard = heard.expect("it is answered");
        assert!(matches!(&heard[..], [Heard::Joined { id: of, .. }, ..] if *of != id), "{heard:?}");
        DISKS.set(None);
    }
}

#[test]
fn two_rooms_of_one_key_of_which_none_is_newer_are_named() {
    let folder = std::env::temp_dir().join(format!("playfield-two-of-a-key-{}", process::id()));
    let _ = fs::remove_dir_all(&folder);
    let settings = config::Journal { folder: folder.clone(), ..config::Journal::default() };
    let journal = Journal::open(&settings, &[room_type()], 2, false).unwrap().unwrap();
    fs::write(folder.join("owner"), "0000000000000007 00002\n").unwrap();
    let mut ids = Vec::new();
    for shard in 0..2 {
        begin(Speed::Held);
        let mut world = World::new(1, &[("shards", "1")]);
        // The shard draws ids at random, so the next one differs.
        let _ = (0..shard).map(|_| world.shards[0].env.entropy.number()).last();
        let client = world.client(0);
        join_by_key(&mut world, client);
        sync(&mut world);
        ids.push(world.joined(client).1);
        let disk = disks().remove(0);
        let segment = Segment { incarnation: 7, shard, ..Segment::default() };
        let bytes = disk.file_of(0..disk.len(), segment);
        fs::write(folder.join(format!("{:016x}-{shard}-000000.journal", 7)), bytes).unwrap();
        DISKS.set(None);
    }
    assert_ne!(ids[0], ids[1]);
    let Err(error) = journal.recover(&[room_type()], None) else { panic!("it recovers") };
    let error = error.to_string();
    let files = [0, 1].map(|shard| format!("{:016x}-{shard}-000000.journal", 7));
    for named in ids.iter().chain(&files).map(String::as_str).chain(["\"desk\"", "\"till\""]) {
        assert!(error.contains(named), "{named}: {error}");
    }
    assert!(error.contains(folder.to_str().unwrap()), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_answered_is_in_the_journal() {
    let (mut world, client) = till(1, 0);
    sync(&mut world);
    let disk = disks().remove(0);
    let mut answered = Vec::new();
    for request in 1..=20 {
        add(&mut world, client, request, 1);
        world.wait(7);
        if request % 3 == 0 {
            sync(&mut world);
        }
        answered.extend(replies(&mut world, client));
        let bytes = disk.file(0..disk.durable.load(Ordering::Relaxed));
        let journal = Read::read([("file", &bytes[..])]);
        let (_, recording) = journal.rooms().next().unwrap();
        let recovered = recover(recording, &room_type()).unwrap();
        let RecoveredRoom::Open(form) = recovered.room else { panic!("it is open") };
        let frozen = form.finish().unwrap();
        let frozen = playfield_room::frozen::Frozen::read(&frozen).unwrap();
        let link = &mut |_| playfield_room::Link(0);
        let thaw = playfield_room::Thaw { frozen: &frozen, store: None, link };
        let room = (room_type().thaw)(thaw).unwrap();
        let mut save = Vec::new();
        assert!(room.whole(&mut save));
        let till: Till = playfield_state::load(&save).unwrap();
        assert!(till.sum >= answered.len() as u64, "{} of {answered:?}", till.sum);
    }
    assert_eq!(answered.len(), 18);
    DISKS.set(None);
}

#[test]
fn what_is_too_much_for_a_block_is_in_several_and_waits_for_all() {
    let disk = Disk::default();
    let journal = Journal::of_test(config::Journal::default());
    let mut journaled = Journaled::new(journal, Box::new(disk.clone()));
    let large = vec![7; 9 << 20];
    for room in 0..5 {
        journaled.note(room, &large);
    }
    assert!(!journaled.end_block(Duration::ZERO));
    journaled.hold(0, VecDeque::new());
    let blocks = disk.len();
    assert!(blocks > 2, "{blocks} blocks for 45 MiB");
    let bytes = disk.file(0..blocks);
    assert_eq!(Read::read([("file", &bytes[..])]).last(), Some(blocks - 1), "all are read");
    disk.durable.store(blocks - 1, Ordering::Relaxed);
    assert!(!journaled.may_release(), "the last is not durable");
    disk.sync();
    assert!(journaled.may_release());
}
