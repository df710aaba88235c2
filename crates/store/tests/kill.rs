//! A process that saves is killed at random moments. Whatever it said is durable is there, and
//! every save is whole.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use playfield_room::Store;
use playfield_state::{Bytes, State, load, save};
use playfield_store::DiskStore;
use tokio::sync::mpsc::channel;

use crate::store::{fresh, wait};

/// The number of times that the process is killed. `PLAYFIELD_KILLS=1000` kills it more often.
const KILLS: u64 = 20;

/// The number of rooms it saves.
const KEYS: u64 = 16;

/// The saved state: its number, and bytes that follow from it.
#[derive(State, Default)]
struct Document {
    number: u64,
    text: Bytes,
}

impl Document {
    fn new(number: u64) -> Self {
        let dice = mixed(number);
        // Mostly small, sometimes of many pages.
        let length = if dice.is_multiple_of(8) { dice % 200_000 } else { dice % 2_000 };
        let text = (0..length).map(|at| (dice.wrapping_mul(at | 1) >> 32) as u8).collect();
        Self { number, text: Bytes(text) }
    }
}

/// The finalizer of SplitMix64, by Steele, Lea and Flood.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[test]
#[ignore = "a process that another test starts and kills"]
fn victim() {
    let store = DiskStore::open(std::env::var_os("PLAYFIELD_STORE").unwrap()).unwrap();
    let first: u64 = std::env::var("PLAYFIELD_FIRST").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        // Some wait for each commit.
        let (sender, mut durable) = channel(24);
        let mut fences = BTreeMap::new();
        for key in (0..KEYS).map(|key| key.to_string()) {
            let fence = store.open("document", &key).await.unwrap().fence;
            fences.insert(key, fence);
        }
        let saves = async {
            for number in first.. {
                let key = (mixed(number) % KEYS).to_string();
                let bytes = save(&Document::new(number));
                let done = store.save_and_wait("document", &key, fences[&key], bytes);
                sender.send((key, number, done)).await.unwrap();
            }
        };
        let says = async {
            let mut out = std::io::stdout();
            while let Some((key, number, done)) = durable.recv().await {
                done.await.unwrap();
                writeln!(out, "durable {key} {number}").unwrap();
                out.flush().unwrap();
            }
        };
        let mut saves = std::pin::pin!(saves);
        let mut says = std::pin::pin!(says);
        std::future::poll_fn(|cx| {
            let _ = saves.as_mut().poll(cx);
            says.as_mut().poll(cx)
        })
        .await;
    });
}

#[test]
fn what_is_durable_survives_kill_9_and_no_save_is_torn() {
    let kills = std::env::var("PLAYFIELD_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let path = fresh();
    let mut durable: BTreeMap<String, u64> = BTreeMap::new();
    let (mut next, mut acknowledged) = (1, 0_u64);
    let seed = Instant::now();
    for round in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::victim", "--exact", "--ignored", "--nocapture"])
            .env("PLAYFIELD_STORE", &path)
            .env("PLAYFIELD_FIRST", next.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1 << 16);
        let reader = std::thread::spawn(move || {
            out.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        let mut hear = |line: String| {
            // The test harness begins a line, too.
            let Some((_, words)) = line.split_once("durable ") else { return false };
            let Some((key, number)) = words.split_once(' ') else { return false };
            durable.insert(key.to_owned(), number.parse().unwrap());
            acknowledged += 1;
            true
        };
        // It runs, and has saved; then comes the moment.
        while !hear(lines.recv().unwrap()) {}
        let dice = mixed(seed.elapsed().as_nanos() as u64 ^ round);
        let moment = Instant::now() + Duration::from_micros(dice % 30_000);
        loop {
            match lines.recv_timeout(moment.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    hear(line);
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => panic!("the process ended by itself"),
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            hear(line);
        }
        reader.join().unwrap();

        let store = DiskStore::open(&path).unwrap();
        let keys = wait(store.keys("document", None, usize::MAX)).unwrap();
        assert!(durable.keys().all(|key| keys.contains(key)), "round {round}");
        for key in keys {
            let bytes = wait(store.load("document", &key)).unwrap().unwrap().bytes;
            let found: Document = load(&bytes).unwrap_or_else(|error| panic!("{key}: {error}"));
            let least = durable.get(&key).copied().unwrap_or(0);
            assert!(found.number >= least, "round {round}: {key} is {}, not {least}", found.number);
            assert_eq!(found.text, Document::new(found.number).text, "round {round}");
            next = next.max(found.number + 1);
        }
    }
    assert!(acknowledged >= kills);
    println!("killed {kills} times; {acknowledged} saves were acknowledged, and all are there");
    std::fs::remove_file(path).unwrap();
}
