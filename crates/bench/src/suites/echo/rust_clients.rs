//! Clients as programs have them: the Rust client, all of them on one thread. They measure
//! themselves as much as the node.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use playfield::client::{Connection, QueueLimits, Room, connect};
use playfield_load::Timings;
use playfield_state::Bytes;
use tokio::runtime;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::{sleep, timeout};

use super::server::{self, Ask, Hall, Said, Say};
use super::traffic::data;
use super::{Mode, Options, Outcome, WARM_UP};
use crate::harness::Side;
use crate::harness::machine::process_cpu;
use crate::harness::process::Server;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of a client's messages that differ.
const CYCLE: usize = 1_021;

/// The work of all clients so far.
#[derive(Default)]
struct Tally {
    answered: Cell<u64>,
    /// Nothing more is sent.
    is_over: Cell<bool>,
    times: RefCell<Option<Timings>>,
    fault: RefCell<Option<String>>,
    /// The next reply is read as if it were wrong.
    corrupt: Cell<bool>,
}

/// Measures a node with clients of `playfield_client`, each in a room.
pub(super) fn measure(options: &Options) -> io::Result<Outcome> {
    let mut server = server::start(options, Side::Node)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let set = LocalSet::new();
    let outcome = set.block_on(&runtime, drive(options, &mut server));
    runtime.shutdown_background();
    outcome
}

async fn drive(options: &Options, server: &mut Server) -> io::Result<Outcome> {
    let tally = Rc::new(Tally { corrupt: Cell::new(options.corrupt_one), ..Tally::default() });
    let payloads: Rc<[Bytes]> = (0..CYCLE).map(|at| Bytes(data(options.payload, at))).collect();
    let mut rooms = Vec::new();
    let url = options.url(server);
    for _ in 0..options.connections {
        rooms.push(enter(&url, options.window).await.map_err(io::Error::other)?);
    }
    let mut tasks: Vec<JoinHandle<()>> = Vec::new();
    for (_, room) in &rooms {
        let senders = if options.mode == Mode::Send { 1 } else { options.window };
        for number in 0..senders {
            let (tally, room) = (Rc::clone(&tally), Rc::clone(room));
            let (payloads, window) = (Rc::clone(&payloads), options.window);
            let is_send = options.mode == Mode::Send;
            tasks.push(tokio::task::spawn_local(async move {
                let ended = if is_send {
                    say(&tally, &room, &payloads, window).await
                } else {
                    ask(&tally, &room, &payloads, number).await
                };
                if let Err(why) = ended {
                    tally.fault.borrow_mut().get_or_insert(why);
                }
            }));
        }
    }
    sleep(WARM_UP).await;
    let before = server.cpu()?;
    let driver_before = process_cpu();
    tally.times.replace(Some(Timings::default()));
    let (answered, began) = (tally.answered.get(), Instant::now());
    sleep(options.time).await;
    let time = began.elapsed();
    let messages = tally.answered.get() - answered;
    let times = tally.times.replace(None).unwrap_or_default();
    let after = server.usage()?;
    let driver_cpu = process_cpu().saturating_sub(driver_before);
    tally.is_over.set(true);
    let ended = timeout(PATIENCE, async {
        for task in tasks {
            let _ = task.await;
        }
    });
    if ended.await.is_err() {
        tally.fault.borrow_mut().get_or_insert("nothing comes any more".to_owned());
    }
    let fault = tally.fault.take();
    if let Some(fault) = &fault {
        eprintln!("the Rust client: {fault}");
    }
    let (cpu, resident) = (after.cpu.saturating_sub(before), after.resident);
    let (compared, late) = (tally.answered.get(), Timings::default());
    Ok(Outcome { messages, compared, time, cpu, driver_cpu, resident, times, late, fault })
}

/// Connects, and enters a room.
async fn enter(
    url: &str,
    window: usize,
) -> Result<(Connection, Rc<Room<Hall>>), playfield::client::Error> {
    let limits = QueueLimits { events_max: 2 * window, ..Default::default() };
    let connection = connect(url).timeout(PATIENCE).queue_limits(limits).await?;
    let room = connection.join_or_create::<Hall>("hall", &()).await?;
    Ok((connection, Rc::new(room)))
}

/// Sends a window of messages, and another for each event. Events come in the order of what they
/// answer.
async fn say(
    tally: &Tally,
    room: &Room<Hall>,
    payloads: &[Bytes],
    window: usize,
) -> Result<(), String> {
    let mut sent_at = VecDeque::with_capacity(window);
    let (mut sent, mut answered) = (0, 0);
    loop {
        while sent_at.len() < window && !tally.is_over.get() {
            sent_at.push_back(Instant::now());
            let data = payloads[sent % payloads.len()].clone();
            room.send(Say { data }).await.map_err(|error| error.to_string())?;
            sent += 1;
        }
        if answered == sent {
            return Ok(());
        }
        let event = room.next_event().await.map_err(|error| error.to_string())?;
        let said = event.decode::<Said>().map_err(|error| error.to_string())?;
        let Some(Said { data }) = said else { return Err("another event".to_owned()) };
        tally.compare(&data, &payloads[answered % payloads.len()])?;
        answered += 1;
        tally.note(sent_at.pop_front());
    }
}

/// Sends a request, and another for each reply.
async fn ask(
    tally: &Tally,
    room: &Room<Hall>,
    payloads: &[Bytes],
    first: usize,
) -> Result<(), String> {
    let mut at = first;
    while !tally.is_over.get() {
        let began = Instant::now();
        let expected = &payloads[at % payloads.len()];
        let reply = room.request(Ask { data: expected.clone() }).await;
        tally.compare(&reply.map_err(|error| error.to_string())?, expected)?;
        tally.note(Some(began));
        at += 1;
    }
    Ok(())
}

impl Tally {
    fn compare(&self, data: &Bytes, expected: &Bytes) -> Result<(), String> {
        if data != expected || self.corrupt.take() {
            return Err("a reply is not what was sent".to_owned());
        }
        Ok(())
    }

    fn note(&self, sent_at: Option<Instant>) {
        self.answered.set(self.answered.get() + 1);
        if let (Some(times), Some(sent_at)) = (&mut *self.times.borrow_mut(), sent_at) {
            times.record(sent_at.elapsed().as_nanos() as u64);
        }
    }
}
