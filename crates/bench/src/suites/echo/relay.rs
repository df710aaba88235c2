//! From room to room of a node with two shards: each message goes to a room of the other shard,
//! which sends one back.

use std::io;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use playfield_derive::State;
use playfield_load::Timings;
use playfield_room::{Context, Message, On, Result, Room, RoomType, room};
use playfield_server::{Config, NodeHandle, Server};
use playfield_state::Bytes;

use super::traffic::data;
use super::{Options, Outcome};
use crate::harness::machine::{process_cpu, resident};

const SHARDS: usize = 2;
/// The time that the last messages may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The room has a partner, and begins to send.
#[derive(Message)]
struct Begin {
    partner: String,
    messages: u32,
    bytes: u32,
    /// Its first message is to be wrong.
    corrupt: bool,
}

/// Goes back and forth.
#[derive(Message)]
struct Pass {
    number: u64,
    data: Bytes,
}

/// Ends the answers: messages from now on get none.
#[derive(Message)]
struct Stop;

/// Is answered with how many messages the room has sent and received, and how many of them were
/// wrong.
#[derive(Message)]
#[reply(Vec<u64>)]
struct Count;

#[derive(State, Default)]
struct Relay {
    partner: String,
    data: Bytes,
    sent: u64,
    received: u64,
    wrong: u64,
    is_over: bool,
}

#[room(internal(Begin, Pass, Stop, Count), empty_ms = 3_600_000)]
impl Room for Relay {}

impl Relay {
    fn pass(&mut self, cx: &mut Context<Self>) {
        self.sent += 1;
        cx.tell(&self.partner, &Pass { number: self.sent, data: self.data.clone() });
    }
}

impl On<Begin> for Relay {
    fn on(&mut self, begin: Begin, cx: &mut Context<Self>) -> Result<()> {
        self.partner = begin.partner;
        let expected = data(begin.bytes as usize, 0);
        if begin.corrupt {
            let mut changed = expected.clone();
            changed[0] ^= 1;
            self.data = Bytes(changed);
            self.pass(cx);
        }
        self.data = Bytes(expected);
        (u32::from(begin.corrupt)..begin.messages).for_each(|_| self.pass(cx));
        Ok(())
    }
}

impl On<Pass> for Relay {
    fn on(&mut self, pass: Pass, cx: &mut Context<Self>) -> Result<()> {
        self.received += 1;
        self.wrong += u64::from(pass.number != self.received || pass.data != self.data);
        if !self.is_over {
            self.pass(cx);
        }
        Ok(())
    }
}

impl On<Stop> for Relay {
    fn on(&mut self, _: Stop, _: &mut Context<Self>) -> Result<()> {
        self.is_over = true;
        Ok(())
    }
}

impl On<Count> for Relay {
    fn on(&mut self, _: Count, _: &mut Context<Self>) -> Result<Vec<u64>> {
        Ok(vec![self.sent, self.received, self.wrong])
    }
}

/// Measures as many pairs of rooms as there are connections.
#[expect(clippy::disallowed_methods, reason = "the rooms are left alone while they are counted")]
pub(super) fn measure(options: &Options) -> io::Result<Outcome> {
    let mut config = Config { listen: (Ipv4Addr::LOCALHOST, 0).into(), ..Config::default() };
    config.shards = SHARDS;
    // What is under way, and the answers to it.
    let mailbox_max = 16_384.max(4 * options.connections * options.window).to_string();
    config.set("limits.queues.mail", &mailbox_max).map_err(io::Error::other)?;
    let running = Server::new(config).room_type(RoomType::of::<Relay>("relay")).start()?;
    let handle = running.handle();
    // A room goes to the shard with fewer rooms: the next one to the other.
    let create = |_| handle.create_room::<Relay>(&()).wait().map_err(io::Error::other);
    let rooms = (0..2 * options.connections).map(create).collect::<io::Result<Vec<String>>>()?;
    for (place, pair) in rooms.chunks(2).enumerate() {
        let (messages, bytes) = (options.window as u32, options.payload as u32);
        // The partner needs to know the other one before the first message.
        for (at, messages) in [(1, 0), (0, messages)] {
            let corrupt = options.corrupt_one && place == 0 && messages > 0;
            let begin = Begin { partner: pair[1 - at].clone(), messages, bytes, corrupt };
            handle.ask(&pair[at], &begin).wait().map_err(io::Error::other)?;
        }
    }
    std::thread::sleep(super::WARM_UP);
    let (before, cpu, began) = (count(&handle, &rooms)?, process_cpu(), Instant::now());
    std::thread::sleep(options.time);
    let (after, cpu) = (count(&handle, &rooms)?, process_cpu().saturating_sub(cpu));
    let (time, messages) = (began.elapsed(), after[1] - before[1]);
    let resident = resident("self");
    for room in &rooms {
        handle.tell(room, &Stop).map_err(io::Error::other)?;
    }
    let ends = Instant::now() + PATIENCE;
    let [sent, received, wrong] = loop {
        let all = count(&handle, &rooms)?;
        if all[0] == all[1] || Instant::now() > ends {
            break all;
        }
    };
    let shards = running.stats().shards;
    let rooms_by_shard: Vec<_> = shards.iter().map(|shard| shard.rooms).collect();
    let fault = if rooms_by_shard != [options.connections as u64; SHARDS] {
        Some(format!("the rooms are not on both shards: {rooms_by_shard:?}"))
    } else if sent != received || wrong > 0 {
        Some(format!("{sent} messages were sent, {received} received, {wrong} of them wrong"))
    } else {
        None
    };
    if let Some(fault) = &fault {
        eprintln!("{fault}");
    }
    let (driver_cpu, times, late) = (Duration::ZERO, Timings::default(), Timings::default());
    let compared = received;
    Ok(Outcome { messages, compared, time, cpu, driver_cpu, resident, times, late, fault })
}

/// Messages of all rooms: sent, received and wrong.
fn count(handle: &NodeHandle, rooms: &[String]) -> io::Result<[u64; 3]> {
    let mut all = [0; 3];
    for room in rooms {
        let counts = handle.ask(room, &Count).wait().map_err(io::Error::other)?;
        all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    Ok(all)
}
