//! The browser client (`web/playfield.js`) over a connection that is cut at random bytes, against a
//! real node: no event is lost, doubled or reordered, no message is executed twice, and copies are
//! equal.
//!
//! Node.js runs it. If it is missing, or has no WebSocket, the test reports that and is skipped.
//! `PLAYFIELD_CUTS` sets how often the connection is cut.

mod node_js;

use playfield::prelude::*;
use playfield::{Config, Data};

/// Keeps account of what a page does.
#[derive(State, Default)]
struct Ledger {
    sum: u64,
    beats: u32,
    marks: Map<u32, u32>,
    #[sync(hidden)]
    executed: List<u32>,
    #[sync(hidden)]
    is_over: bool,
}

#[derive(Message)]
#[reply(u32)]
struct Add {
    number: u32,
}

#[derive(Message)]
struct Note {
    number: u32,
}

/// Ends the beats. The reply is what the room has seen.
#[derive(Message)]
#[reply(Account)]
struct Stop;

#[derive(Data, Default)]
struct Account {
    executed: Vec<u32>,
    sum: u64,
    beats: u32,
}

#[derive(Message)]
struct Did {
    number: u32,
}

#[derive(Message)]
struct Beat {
    number: u32,
}

#[room(
    messages(Add, Note, Stop),
    events(Did, Beat),
    tick_hz = 50,
    sync_hz = 50,
    grace_ms = 600_000,
    empty_ms = 600_000
)]
impl Room for Ledger {
    fn tick(&mut self, cx: &mut Context<Self>) {
        if !self.is_over {
            self.beats += 1;
            cx.emit(&Beat { number: self.beats });
        }
    }
}

impl Ledger {
    fn execute(&mut self, number: u32, cx: &mut Context<Self>) {
        self.sum += u64::from(number);
        self.marks.insert(number % 10, number);
        self.executed.push(number);
        cx.emit(&Did { number });
    }
}

impl Handle<Add> for Ledger {
    fn handle(&mut self, add: Add, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.execute(add.number, cx);
        Ok(add.number)
    }
}

impl Handle<Note> for Ledger {
    fn handle(&mut self, note: Note, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.execute(note.number, cx);
        Ok(())
    }
}

impl Handle<Stop> for Ledger {
    fn handle(&mut self, _: Stop, _: &Player, _: &mut Context<Self>) -> Result<Account> {
        self.is_over = true;
        let executed = self.executed.iter().copied().collect();
        Ok(Account { executed, sum: self.sum, beats: self.beats })
    }
}

#[test]
fn a_page_whose_connections_are_cut_misses_nothing_and_does_nothing_twice() {
    let cuts =
        std::env::var("PLAYFIELD_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(60);
    // Each fifth sync has a digest.
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        shards: 2,
        check_every_syncs: 5,
        session_grace_ms: 600_000,
        // Connections are cut much faster than anyone loses them.
        resumes_per_minute_max: 1_000_000,
        ..Config::default()
    };
    let running = Server::new().room::<Ledger>("ledger").start(config).expect("it starts");
    let port = running.local_addr().port();
    let Some(said) =
        node_js::run("cuts.mjs", &[u32::from(port), cuts, 1].map(|number| number.to_string()))
    else {
        return;
    };
    assert_eq!(said, format!("{cuts} cuts\n"));
    let rooms: Vec<u64> = running.stats().shards.iter().map(|shard| shard.rooms).collect();
    assert!(rooms.iter().all(|rooms| *rooms > 0), "rooms are on both shards: {rooms:?}");
    running.shutdown();
}
