//! Keyed rooms that are opened, changed, closed and opened again, on the embedded store.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use playfield_room::{Context, Message, On, Result, Room, room};
use playfield_server::{NodeHandle, Pending};
use playfield_state::{Data, List, Map, State};

use super::Options;
use super::node::{StoreNode, of};
use crate::harness::report::Record;

/// The row.
pub(super) const NAME: &str = "keyed rooms";
/// The number of rooms opened at a time.
const AT_ONCE: usize = 512;
/// The longest wait for rooms to end.
const END_WAIT: Duration = Duration::from_secs(60);

/// A document of about 1 KB.
#[derive(State, Default)]
struct Page {
    title: String,
    lines: List<String>,
    counts: Map<u32, u64>,
    #[sync(hidden)]
    secret: u64,
}

/// Fills a page.
#[derive(Message)]
#[reply(Contents)]
struct Fill {
    seed: u64,
}

/// Asks for what is in a page.
#[derive(Message)]
#[reply(Contents)]
struct Read;

/// The content of a page.
#[derive(Data, PartialEq)]
struct Contents {
    title: String,
    lines: Vec<String>,
    counts: Vec<u64>,
    secret: u64,
}

#[room(
    internal(Fill, Read),
    persist = 3_600,
    empty_ms = 3_600_000,
    sync_hz = 0,
    closing_ms = 60_000,
    join_wait_ms = 60_000
)]
impl Room for Page {}

impl On<Fill> for Page {
    fn on(&mut self, fill: Fill, _: &mut Context<Self>) -> Result<Contents> {
        let contents = contents(fill.seed);
        self.title.clone_from(&contents.title);
        self.lines = contents.lines.iter().cloned().collect();
        self.counts = (0..).zip(contents.counts.iter().copied()).collect();
        self.secret = contents.secret;
        Ok(contents)
    }
}

impl On<Read> for Page {
    fn on(&mut self, _: Read, _: &mut Context<Self>) -> Result<Contents> {
        Ok(Contents {
            title: self.title.clone(),
            lines: self.lines.iter().cloned().collect(),
            counts: self.counts.values().copied().collect(),
            secret: self.secret,
        })
    }
}

fn contents(seed: u64) -> Contents {
    let word = |at: u64| seed.wrapping_add(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Contents {
        title: format!("Page {seed}"),
        lines: (0..20)
            .map(|line| format!("{:016x} {:016x}", word(line), word(line + 20)))
            .collect(),
        counts: (0..32).map(|at| word(at + 40) >> 40).collect(),
        secret: word(100),
    }
}

/// Opens the rooms, and asks each one something. Returns whether all answers were right.
fn ask_all<M: Message<Reply = Contents>>(
    node: &NodeHandle,
    rooms: u64,
    mut corrupt_one: bool,
    ask: impl Fn(u64) -> M,
) -> Result<bool> {
    let mut right = true;
    let mut compare = |seed, mut reply: Contents| {
        if std::mem::take(&mut corrupt_one) {
            reply.secret ^= 1;
        }
        right &= reply == contents(seed);
    };
    let mut creating: VecDeque<(u64, Pending<String>)> = VecDeque::new();
    let mut asking: VecDeque<(u64, Pending<Contents>)> = VecDeque::new();
    for seed in 0..rooms + AT_ONCE as u64 {
        if seed < rooms {
            let key = format!("page-{seed}");
            creating.push_back((seed, node.new_room::<Page>(&()).key(&key).create()));
        }
        if (creating.len() > AT_ONCE / 2 || seed >= rooms)
            && let Some((seed, created)) = creating.pop_front()
        {
            asking.push_back((seed, node.ask(&created.wait()?, &ask(seed))));
        }
        if (asking.len() > AT_ONCE / 2 || seed >= rooms)
            && let Some((seed, asked)) = asking.pop_front()
        {
            compare(seed, asked.wait()?);
        }
    }
    for (seed, created) in creating {
        asking.push_back((seed, node.ask(&created.wait()?, &ask(seed))));
    }
    for (seed, asked) in asking {
        compare(seed, asked.wait()?);
    }
    Ok(right)
}

/// Closes all rooms, and waits until each is saved and gone.
fn close_all(node: &NodeHandle, rooms: u64) -> Result<()> {
    for seed in 0..rooms {
        if let Some(id) = node.find("page", &format!("page-{seed}")) {
            node.close(&id, "the case is over")?;
        }
    }
    let began = Instant::now();
    while node.stats().total().rooms > 0 {
        if began.elapsed() > END_WAIT {
            return Err("the rooms did not end".into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// The record of the case.
pub(super) fn measure(options: &Options) -> Result<Record, String> {
    let node = StoreNode::start(vec![of::<Page>("page")])?;
    let handle = node.handle();
    let rooms = options.rooms;
    let mut took = Vec::new();
    let mut step = |work: &mut dyn FnMut() -> Result<bool>| {
        let began = Instant::now();
        let right = work().map_err(|error| error.to_string());
        took.push(began.elapsed().as_secs_f64() * 1e6 / rooms as f64);
        right
    };
    let filled = step(&mut || ask_all(&handle, rooms, false, |seed| Fill { seed }))?;
    step(&mut || close_all(&handle, rooms).map(|()| true))?;
    let read = step(&mut || ask_all(&handle, rooms, options.corrupt_one, |_| Read))?;
    step(&mut || close_all(&handle, rooms).map(|()| true))?;
    let verified = filled && read;
    Ok(Record::of("store")
        .with("row", NAME)
        .with("rooms", rooms)
        .measured("us_per_op", took.iter().sum())
        .measured("open_us", took[0])
        .measured("close_us", took[1])
        .measured("open_again_us", took[2])
        .measured("close_again_us", took[3])
        .with("verified", verified))
}
