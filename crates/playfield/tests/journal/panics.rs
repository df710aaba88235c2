//! A journaled room that panics continues from its journal, in its state before the panic.

use std::sync::atomic::{AtomicBool, Ordering};

use playfield::ErrorCode;
use playfield::client::{Connection, Room as Joined};
use playfield::prelude::*;
use playfield::store::{MemoryStore, copies};

use super::away::{Folder, connect, join_when_free, runtime};

/// Adds up. 13 is a panic.
#[derive(State, Default)]
pub(super) struct Score {
    points: u64,
    luck: u64,
}

#[derive(Message)]
#[reply(u64)]
struct Add {
    points: u64,
}

/// 8 panics, too, as it did not before.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);

#[room(messages(Add), persist = 3_600, empty_ms = 60_000, durability = journal)]
impl Room for Score {}

impl Handle<Add> for Score {
    fn handle(&mut self, Add { points }: Add, _: &Player, cx: &mut Context<Self>) -> Result<u64> {
        self.points += points;
        self.luck = cx.rng().below(1_000_000);
        let is_broken = points == 8 && IS_BROKEN.load(Ordering::SeqCst);
        assert!(points != 13 && !is_broken, "{points} brings no luck");
        Ok(self.points)
    }
}

async fn enter(connection: &Connection, key: &str) -> Joined<Score> {
    join_when_free(async || connection.join_or_create_by_key::<Score>("score", key, &()).await)
        .await
}

/// Makes a room fail, and returns its state after recovery.
async fn fail(connection: &Connection, room: Joined<Score>, key: &str) -> Joined<Score> {
    let failed = room.request(Add { points: 13 }).await.expect_err("it panics");
    assert_eq!(failed.code(), Some(ErrorCode::RoomFailed), "{failed}");
    drop(room);
    enter(connection, key).await
}

#[test]
fn a_room_that_panics_goes_on_as_it_was_before_the_input_with_which_it_did() {
    let store = MemoryStore::new();
    let folder = Folder::new("panics");
    let running = folder.start(store.clone());
    runtime().block_on(async {
        let ann = connect(&running).await;
        let mut room = enter(&ann, "one").await;
        let mut expected = 0;
        for round in 1..=3 {
            for points in 1..=5 {
                expected += points;
                assert_eq!(room.request(Add { points }).await.unwrap(), expected);
            }
            while room.state().points < expected {
                room.changed().await.unwrap();
            }
            let luck = room.state().luck;
            room = fail(&ann, room, "one").await;
            let state = room.state();
            assert_eq!((state.points, state.luck), (expected, luck), "round {round}");
        }
        let other = enter(&ann, "two").await;
        assert_eq!(other.request(Add { points: 1 }).await.unwrap(), 1);
    });
    running.shutdown();
    // The node starts with what was saved, and an operator has the saves before.
    let kept = runtime().block_on(copies::copies(
        &(std::sync::Arc::new(store.clone()) as _),
        "score",
        "one",
    ));
    assert!(!kept.unwrap().is_empty());
    let running = folder.start(store);
    runtime().block_on(async {
        let room = enter(&connect(&running).await, "one").await;
        assert_eq!(room.state().points, 45);
    });
    running.shutdown();
}

#[test]
fn a_room_that_fails_again_when_it_runs_from_its_journal_starts_from_its_last_save() {
    let folder = Folder::new("panics-again");
    let running = folder.start(MemoryStore::new());
    runtime().block_on(async {
        let ann = connect(&running).await;
        let room = enter(&ann, "one").await;
        for points in [1, 8, 2] {
            room.request(Add { points }).await.unwrap();
        }
        IS_BROKEN.store(true, Ordering::SeqCst);
        let room = fail(&ann, room, "one").await;
        assert_eq!(room.state().points, 0, "the last save is from its begin");
        assert_eq!(room.request(Add { points: 3 }).await.unwrap(), 3);
    });
    running.shutdown();
}
