//! Rooms that a handle has created: it learns when they are open, or why they never are.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use playfield::prelude::*;
use playfield::store::MemoryStore;
use playfield::{Config, ErrorCode, NodeHandle, Running};

/// A room that persists. Its key says how it begins.
#[derive(State, Default)]
struct Den {
    visits: u32,
}

#[derive(Message)]
struct Ready {
    refuses: bool,
}

#[derive(Message)]
#[reply(u32)]
struct Visit;

/// The message that ends the room's wait for its end.
#[derive(Message)]
struct LetGo;

/// The receiver on which the room of the key "home" waits while it ends. Rooms of other tests, in
/// the same process, end meanwhile.
static GATE: Mutex<Option<tokio::sync::oneshot::Receiver<()>>> = Mutex::new(None);

#[room(internal(Ready, Visit, LetGo), persist = 1, join_wait_ms = 100, empty_ms = 60_000)]
impl Room for Den {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        begin(cx.key().unwrap_or_default().to_owned(), |work| cx.hold(work))?;
        Ok(Self::default())
    }

    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        if cx.key() != Some("home") {
            return;
        }
        let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(gate) = gate {
            let _ = cx.spawn(async {
                let _ = gate.await;
                LetGo
            });
        }
    }
}

/// The beginning of a room with this key.
fn begin(key: String, hold: impl FnOnce(Hold) -> Result<()>) -> Result<()> {
    match key.as_str() {
        "forbidden" => Err("nobody may".into()),
        "refuses later" => hold(Box::pin(async { Ready { refuses: true } })),
        "slow" => hold(Box::pin(async {
            tokio::task::yield_now().await;
            Ready { refuses: false }
        })),
        "never" => hold(Box::pin(std::future::pending())),
        _ => Ok(()),
    }
}

type Hold = std::pin::Pin<Box<dyn Future<Output = Ready> + Send>>;

impl On<Ready> for Den {
    fn on(&mut self, ready: Ready, _: &mut Context<Self>) -> Result<()> {
        if ready.refuses { Err("not today".into()) } else { Ok(()) }
    }
}

impl On<Visit> for Den {
    fn on(&mut self, _: Visit, _: &mut Context<Self>) -> Result<u32> {
        self.visits += 1;
        Ok(self.visits)
    }
}

impl On<LetGo> for Den {
    fn on(&mut self, _: LetGo, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

/// The same without saves.
#[derive(State, Default)]
struct Camp {}

#[room(internal(Ready), join_wait_ms = 100, empty_ms = 60_000)]
impl Room for Camp {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        begin(cx.key().unwrap_or_default().to_owned(), |work| cx.hold(work))?;
        Ok(Self::default())
    }
}

impl On<Ready> for Camp {
    fn on(&mut self, ready: Ready, _: &mut Context<Self>) -> Result<()> {
        if ready.refuses { Err("not today".into()) } else { Ok(()) }
    }
}

fn start() -> (Running, NodeHandle) {
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 2, ..Config::default() };
    let store = MemoryStore::new();
    store.set("den", "damaged", b"no save".to_vec());
    let server = Server::new().room::<Den>("den").room::<Camp>("camp").store(store);
    let running = server.start(config).expect("it starts");
    let handle = running.handle();
    (running, handle)
}

#[tokio::test]
async fn a_room_that_never_opens_is_an_error_for_its_creator() {
    let (_running, node) = start();
    for (key, code) in [
        ("forbidden", ErrorCode::Refused),
        ("refuses later", ErrorCode::Refused),
        ("damaged", ErrorCode::RoomFailed),
        ("never", ErrorCode::Timeout),
    ] {
        let created = node.new_room::<Den>(&()).key(key).create().await;
        assert_eq!(created.unwrap_err().code(), code, "{key}");
        assert_eq!(node.find("den", key), None, "{key}");
        let found = node.find_or_create::<Den>(key, &()).await;
        assert_eq!(found.unwrap_err().code(), code, "{key}");
        if key != "damaged" {
            let created = node.new_room::<Camp>(&()).key(key).create().await;
            assert_eq!(created.unwrap_err().code(), code, "{key}");
        }
    }
    let slow = node.new_room::<Den>(&()).key("slow").create().await.expect("it opens");
    assert_eq!(node.ask(&slow, &Visit).await, Ok(1));
}

#[tokio::test]
async fn all_who_look_for_a_key_at_once_find_one_room() {
    let (_running, node) = start();
    let searches: Vec<_> = (0..8).map(|_| node.find_or_create::<Den>("slow", &())).collect();
    let mut found = Vec::new();
    for search in searches {
        found.push(search.await.expect("it opens"));
    }
    found.dedup();
    assert_eq!(found.len(), 1);
    assert_eq!(node.find_or_create::<Den>("slow", &()).await.as_ref(), Ok(&found[0]));
    let bad = node.find_or_create::<Den>("", &()).await;
    assert_eq!(bad.unwrap_err().code(), ErrorCode::BadKey);
}

#[tokio::test]
async fn who_looks_for_a_key_waits_while_its_room_ends() {
    let (_running, node) = start();
    let first = node.find_or_create::<Den>("home", &()).await.expect("it opens");
    assert_eq!(node.ask(&first, &Visit).await, Ok(1));
    let (let_go, gate) = tokio::sync::oneshot::channel();
    *GATE.lock().unwrap() = Some(gate);
    node.close(&first, "over").unwrap();
    while node.find("den", "home").is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(node.ask(&first, &Visit).await.unwrap_err().code(), ErrorCode::RoomClosed);
    let taken = node.new_room::<Den>(&()).key("home").create().await;
    assert_eq!(taken.unwrap_err().code(), ErrorCode::RoomExists);

    let (one, two) =
        (node.find_or_create::<Den>("home", &()), node.find_or_create::<Den>("home", &()));
    // Dropping a search ends it.
    drop(node.find_or_create::<Den>("home", &()));
    let ending = node.ask(&first, &Visit).await;
    assert_eq!(ending.unwrap_err().code(), ErrorCode::RoomClosed, "they wait");
    let_go.send(()).expect("the room waits");
    let next = one.await.expect("the key is free");
    assert_ne!(next, first);
    assert_eq!(two.await, Ok(next.clone()));
    assert_eq!(node.ask(&next, &Visit).await, Ok(2), "it was saved and loaded");
}

#[tokio::test]
async fn who_looks_for_a_key_gets_the_next_room_if_one_is_closed_before_it_opens() {
    let (_running, node) = start();
    let search = node.find_or_create::<Den>("never", &());
    let first = node.find("den", "never").expect("it is registered at once");
    node.close(&first, "over").unwrap();
    // The next one has the key, and does not open either: that is the error.
    assert_eq!(search.await.unwrap_err().code(), ErrorCode::Timeout);
}

#[tokio::test]
async fn the_wait_for_a_room_that_does_not_end_is_bounded() {
    let (running, node) = start();
    let never = node.find_or_create::<Den>("never", &());
    let also = node.find_or_create::<Den>("never", &());
    let (never, also) = tokio::time::timeout(Duration::from_secs(30), async {
        (never.await.unwrap_err().code(), also.await.unwrap_err().code())
    })
    .await
    .expect("it is bounded");
    assert_eq!((never, also), (ErrorCode::Timeout, ErrorCode::Timeout));
    let late = node.find_or_create::<Den>("never", &());
    running.shutdown();
    assert!(late.await.is_err());
}
