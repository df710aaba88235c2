//! Clients whose rooms continue in builds with other schemas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;

use playfield::client::{self, Connection, Dynamic, Room};
use playfield::{SelfSigned, Server};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::PATIENCE;
use crate::node::{Node, serve};
use crate::shops::first::{Add, Added, Hold, Shop};
use crate::shops::{first, second, strict, third};

/// The number of clients that add.
const CUSTOMERS: u32 = 6;
/// The number of additions between two upgrades.
const ADDED: u64 = 60;

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_the_first_shop() {
    serve(Server::new().room::<first::Shop>("shop"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_the_second_shop() {
    serve(Server::new().room::<second::Shop>("shop"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_the_third_shop() {
    serve(Server::new().room::<third::Shop>("shop"));
}

#[test]
#[ignore = "a node that another test starts and ends"]
fn node_of_a_strict_shop() {
    serve(Server::new().room::<strict::Shop>("shop"));
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

async fn connect(node: &Node) -> Connection {
    client::connect(&node.url()).timeout(PATIENCE).await.unwrap()
}

async fn enter(connection: &Connection) -> Room<Shop> {
    connection.join_or_create_by_key("shop", "one", &()).await.unwrap()
}

/// Waits until the copy has these totals: the overall one and the player's own.
async fn has(room: &Room<Shop>, total: u64, own: u64) {
    let is_there = || {
        let state = room.state();
        let counted: u64 = state.goods.iter().map(|(_, good)| good.count).sum();
        let mine = state.own.get(&room.player()).copied().unwrap_or_default();
        (state.total, counted, mine) == (total, total, own)
    };
    while !is_there() {
        tokio::time::timeout(PATIENCE, room.changed()).await.unwrap().unwrap();
    }
}

/// The next event.
async fn added(room: &Room<Shop>) -> (u32, u64) {
    let event = tokio::time::timeout(PATIENCE, room.next_event()).await.unwrap().unwrap();
    let Added { good, count } = event.decode().unwrap().unwrap();
    (good, count)
}

#[test]
fn messages_run_what_they_did_before_a_build_with_others_in_front() {
    let mut node = Node::start_program("schemas::node_of_the_first_shop", "");
    let runtime = runtime();
    runtime.block_on(async {
        let (one, other) = (connect(&node).await, connect(&node).await);
        let typed = enter(&one).await;
        let dynamic: Room<Dynamic> = other.join_by_key_dynamic("shop", "one").await.unwrap();
        assert_eq!(typed.request(Add { good: 1, count: 5 }).await.unwrap().total, 5);
        let mut held = pin!(typed.request(Hold));
        let is_pending = poll_fn(|cx| Poll::Ready(held.as_mut().poll(cx).is_pending()));
        assert!(is_pending.await);
        let (mut total, mut own) = (5, 5);
        for program in ["second", "third"] {
            let answer = node.upgrade(&format!("schemas::node_of_the_{program}_shop"));
            assert!(answer.starts_with("done "), "{answer}");
            let sum = dynamic.request("Add", &json!({"good": 2, "count": 1})).await.unwrap();
            assert_eq!(sum, json!({"total": total + 1}));
            assert_eq!(typed.request(Add { good: 1, count: 2 }).await.unwrap().total, total + 3);
            (total, own) = (total + 3, own + 2);
            has(&typed, total, own).await;
            while dynamic.state()["total"] != total {
                tokio::time::timeout(PATIENCE, dynamic.changed()).await.unwrap().unwrap();
            }
            assert_eq!(dynamic.state()["goods"]["1"], json!({"count": own}));
        }
        for expected in [(1, 5), (2, 1), (1, 2), (2, 1), (1, 2)] {
            assert_eq!(added(&typed).await, expected);
        }
        dynamic.request("Free", &json!(null)).await.unwrap();
        assert_eq!(held.await.unwrap().total, total, "the reply to what was asked of the first");
    });
}

/// Clients that add until the shop closes: half of them typed, the others not.
#[derive(Default)]
struct Customers {
    is_closed: AtomicBool,
    /// The number of additions so far.
    added: AtomicU64,
    news: tokio::sync::Notify,
}

impl Customers {
    /// Adds one of this good at a time, repeatedly. Each is added once.
    async fn add(self: Arc<Self>, connection: Connection, good: u32) {
        let key = format!("{good}");
        let (mut count, mut before) = (0, 0);
        let (typed, dynamic) = match good % 2 {
            0 => (Some(enter(&connection).await), None),
            _ => (None, Some(connection.join_by_key_dynamic("shop", "one").await.unwrap())),
        };
        while !self.is_closed.load(Ordering::Relaxed) {
            let total = match (&typed, &dynamic) {
                (Some(room), _) => room.request(Add { good, count: 1 }).await.unwrap().total,
                (_, Some(room)) => {
                    let sum = room.request("Add", &json!({"good": good, "count": 1})).await;
                    sum.unwrap()["total"].as_u64().unwrap()
                }
                _ => unreachable!(),
            };
            count += 1;
            assert!(total > before, "{total} after {before}");
            before = total;
            self.added.fetch_add(1, Ordering::Relaxed);
            self.news.notify_one();
        }
        if let Some(room) = typed {
            let (mut heard, mut all) = (0, 0);
            while heard < count {
                let (of, one) = added(&room).await;
                heard += u64::from(of == good);
                all += one;
            }
            assert!(heard == count && all >= count, "{heard} of {count} events");
            while room.state().goods.get(&good).is_none_or(|good| good.count != count) {
                room.changed().await.unwrap();
            }
            assert_eq!(room.state().own.get(&room.player()), Some(&count));
        }
        if let Some(room) = dynamic {
            while room.state()["goods"][&key]["count"] != count {
                room.changed().await.unwrap();
            }
            assert_eq!(room.state()["own"], json!({room.player().0.to_string(): count}));
        }
    }

    async fn wait(&self, more: u64) {
        let until = self.added.load(Ordering::Relaxed) + more;
        while self.added.load(Ordering::Relaxed) < until {
            tokio::time::timeout(PATIENCE, self.news.notified()).await.unwrap();
        }
    }
}

/// A shop of the first build becomes one of the third while clients add.
fn goes_on(settings: &str, certificate: Option<&[u8]>) {
    let mut node = Node::start_program("schemas::node_of_the_first_shop", settings);
    let url = match certificate {
        None => node.url(),
        Some(_) => format!("tls://localhost:{}", node.address.rsplit_once(':').unwrap().1),
    };
    let runtime = runtime();
    runtime.block_on(async {
        let customers = Arc::new(Customers::default());
        let mut tasks: Vec<JoinHandle<()>> = Vec::new();
        for good in 0..CUSTOMERS {
            let mut connect = client::connect(&url).timeout(PATIENCE);
            if let Some(certificate) = certificate {
                connect = connect.root_certificate(certificate);
            }
            let connection = connect.await.unwrap();
            tasks.push(tokio::spawn(Arc::clone(&customers).add(connection, good)));
            customers.wait(5).await;
        }
        for build in ["second", "third", "third"] {
            customers.wait(ADDED).await;
            let answer = node.upgrade(&format!("schemas::node_of_the_{build}_shop"));
            assert!(answer.starts_with("done "), "{answer}");
        }
        customers.wait(ADDED).await;
        customers.is_closed.store(true, Ordering::Relaxed);
        for task in tasks {
            tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap();
        }
    });
}

#[test]
fn clients_go_on_in_builds_with_other_schemas() {
    goes_on("", None);
}

#[test]
fn clients_whose_sessions_end_with_their_connections_go_on_in_builds_with_other_schemas() {
    goes_on("timeouts.reconnect=0s", None);
}

#[test]
fn clients_come_back_to_builds_with_other_schemas() {
    let signed = SelfSigned::new(&["localhost"]).unwrap();
    let file = |end: &str| {
        std::env::temp_dir().join(format!("playfield-schemas-tls-{}.{end}", std::process::id()))
    };
    let (certificate, key) = (file("cert"), file("key"));
    std::fs::write(&certificate, signed.certificate_pem()).unwrap();
    std::fs::write(&key, signed.key_pem()).unwrap();
    let settings = format!("tls.cert={}\ntls.key={}", certificate.display(), key.display());
    goes_on(&settings, Some(signed.certificate_pem().as_bytes()));
    let _ = (std::fs::remove_file(&certificate), std::fs::remove_file(&key));
}

#[test]
fn a_build_that_clients_can_not_speak_with_is_refused_and_the_old_one_goes_on() {
    let mut node = Node::start_program("schemas::node_of_the_first_shop", "");
    let runtime = runtime();
    runtime.block_on(async {
        let connection = connect(&node).await;
        let room = enter(&connection).await;
        room.request(Add { good: 1, count: 5 }).await.unwrap();
        let answer = node.upgrade("schemas::node_of_a_strict_shop");
        let why = "room type \"shop\": its clients speak by the schema of this process: \
                   messages.Add.price: ";
        assert!(answer.starts_with("failed ") && answer.contains(why), "{answer}");
        assert_eq!(room.request(Add { good: 1, count: 2 }).await.unwrap().total, 7);
        room.leave().await.unwrap();
        let answer = node.upgrade("schemas::node_of_a_strict_shop");
        assert!(answer.starts_with("done "), "nobody speaks by another: {answer}");
    });
}
