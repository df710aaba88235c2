//! A program is replaced by new processes of it while bots play: nothing that was sent is lost or
//! comes twice, no request is executed twice, and nobody leaves. And programs that can't take over:
//! the old one goes on.

#![cfg(target_os = "linux")]

mod ends;
mod node;
mod players;
mod rooms;
mod schemas;
mod shops;
mod stores;

use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use playfield::{SelfSigned, Server, client};
use rustix::process::{Resource, Rlimit, setrlimit};

use node::{Node, ask, ask_if_it_can, say_that_it_waits, serve, serve_on};
use players::{BOTS, Bots, Manual, PER_ROOM};
use rooms::{Chess, Count, DIES_IN_MOVED, Desk, Fill, Ledger, Save, other_build};

/// The time for which a test waits for something that must come. Only a failing test waits that
/// long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The limit on open files of a process that has too few.
const FEW_FILES: u64 = 48;

/// The number of processes, one after the other.
const UPGRADES: usize = 10;
/// The answered requests of all bots between two upgrades.
const REQUESTS: u64 = 60;

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
    say_that_it_waits();
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
    DIES_IN_MOVED.store(true, Ordering::Relaxed);
    serve(Server::new().room::<Ledger>("ledger"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_few_files() {
    let few = Some(FEW_FILES);
    setrlimit(Resource::Nofile, Rlimit { current: few, maximum: few }).unwrap();
    serve(Server::new().room::<Ledger>("ledger"));
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
        ("node_that_exits", "ended before it could start"),
        ("node_that_hangs", "did not start within timeouts.upgrade = 5s"),
        ("node_of_another_game", "room type \"ledger\" is missing, but rooms of it are open"),
        ("node_of_another_build", "counts"),
        ("node_that_dies", "ended before it could serve"),
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
fn a_process_that_may_open_too_few_files_says_so_at_once_and_the_old_one_goes_on() {
    let mut node = Node::start();
    // Their sockets are sent at once, together with the listening sockets, and arrive in part.
    let mut clients: Vec<_> = (0..60).map(|_| Manual::connect(&node)).collect();
    clients[0].join_room();
    let answer = node.upgrade("node_of_few_files");
    let why = format!(
        " of 62 sockets came: this process may have {FEW_FILES} open files; raise the hard limit"
    );
    assert!(answer.starts_with("failed ") && answer.contains(&why), "{answer}");
    assert_eq!(clients[0].count(1, 1), 1);
    clients[59].join_room();
    let answer = node.upgrade("node");
    assert!(answer.starts_with("done ") && answer.ends_with(" 1 60"), "{answer}");
    assert_eq!(clients[0].count(1, 2), 2);
    clients[1].join_room();
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
        let (_, lines) = sync_channel(0);
        let mut node = Node { child, address, pid: 0, lines, store: PathBuf::new() };
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
        assert!(replies[..FILLS].iter().all(|reply| reply.len() > 30_000));
        assert_eq!(replies[FILLS..].len(), 1);
    }
}
