//! A client with an older version of a room, against a node with a later one, over real sockets.
#![cfg(feature = "tokio")]

mod grown;
mod old;

use std::task::Poll;

use playfield_client::{Connect, ErrorCode, Room as RoomHandle, connect};
use playfield_room::{Room, RoomType, room, schema};
use playfield_server::{Config, Running, Server};
use playfield_state::{Map, PlayerId, State};

use old::{How, Nudge, Nudged, Over, Setup, Stir};

const OLD: &str = include_str!("schemas/table.json");

fn node() -> Running {
    let config = Config { listen: "127.0.0.1:0".parse().unwrap(), shards: 1, ..Config::default() };
    let server = Server::new(config).room_type(RoomType::of::<grown::Table>("table"));
    server.room_type(RoomType::of::<old::Table>("old")).start().unwrap()
}

fn url(node: &Running) -> Connect {
    connect(&format!("tcp://{}", node.local_addr())).name("Ann")
}

/// Waits until the copy equals this state.
async fn becomes(table: &RoomHandle<old::Table>, expected: &str) {
    while format!("{:?}", &*table.state()) != expected {
        table.changed().await.unwrap();
    }
}

#[test]
fn the_old_build_has_not_changed() {
    assert_eq!(
        schema::<old::Table>().to_json_pretty().trim(),
        OLD.trim(),
        "the old build must stay as it was"
    );
}

#[tokio::test]
async fn an_old_client_works_with_a_later_node() {
    let node = node();
    for connect in [url(&node), url(&node).built_with::<old::Table>("table")] {
        let connection = connect.await.unwrap();
        let table =
            connection.create::<old::Table>("table", true, &Setup { rounds: 7 }).await.unwrap();
        assert_eq!(table.state().round, 7);
        assert_eq!(table.state().seats.get(&table.player()).unwrap().name, "Ann");
        // Another player joins by the id, and only watches.
        let other = url(&node).await.unwrap();
        let onlooker = other.join::<old::Table>(table.id()).await.unwrap();

        for seed in 0..60 {
            let how =
                if seed % 3 == 0 { How::Little } else { How::Much { times: 1 + seed as u32 % 9 } };
            let stirred = table.request(Stir { seed, how }).await.unwrap();
            becomes(&table, &stirred.expected).await;
            if seed % 10 == 0 {
                let how = How::Much { times: 0 };
                let seen = onlooker.request(Stir { seed, how }).await.unwrap();
                becomes(&onlooker, &seen.expected).await;
            }
        }

        table.send(Nudge).await.unwrap();
        for room in [&table, &onlooker] {
            let event = room.next_event().await.unwrap();
            assert_eq!(event.decode::<Over>().unwrap(), None);
            assert_eq!(event.decode().unwrap(), Some(Nudged { by: table.player() }));
            let event = room.next_event().await.unwrap();
            assert_eq!(event.decode().unwrap(), Some(Over));
        }
        onlooker.leave().await.unwrap();
        table.leave().await.unwrap();
    }
}

#[tokio::test]
async fn a_client_of_the_same_build_needs_no_conversion() {
    let node = node();
    let connection = url(&node).await.unwrap();
    let table = connection.create::<old::Table>("old", true, &Setup { rounds: 7 }).await.unwrap();
    table.request(Stir { seed: 1, how: How::Little }).await.unwrap();
}

/// More types at once than the node's rate limit for schemas: the client repeats the refused
/// requests, both before it creates a room and after it joins one.
#[tokio::test]
async fn many_types_of_another_build_are_entered_at_once() {
    let config = Config { listen: "127.0.0.1:0".parse().unwrap(), shards: 1, ..Config::default() };
    let names: Vec<String> = (0..12).map(|number| format!("table{number}")).collect();
    assert!(names.len() as u64 > config.tuning.schemas.count);
    let mut server = Server::new(config);
    for name in &names {
        server = server.room_type(RoomType::of::<grown::Table>(name));
    }
    let node = server.start().unwrap();

    let host = url(&node).await.unwrap();
    let tables = at_once(&names, async |name| {
        host.create::<old::Table>(name, false, &Setup { rounds: 7 }).await.unwrap()
    });
    let tables = tables.await;
    let ids: Vec<String> = tables.iter().map(|table| table.id().to_owned()).collect();
    let visitor = url(&node).await.unwrap();
    let joined = at_once(&ids, async |id| visitor.join::<old::Table>(id).await.unwrap()).await;
    for table in tables.iter().chain(&joined) {
        assert_eq!(table.state().round, 7);
    }
}

/// Runs a future for each name, all at once.
async fn at_once<T>(names: &[String], of: impl AsyncFn(&str) -> T) -> Vec<T> {
    let mut all: Vec<_> = names.iter().map(|name| Box::pin(of(name))).collect();
    let mut done: Vec<Option<T>> = names.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in all.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(result) = future.as_mut().poll(cx)
            {
                *done = Some(result);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

mod incompatible {
    use super::{Map, PlayerId, Room, State, room};

    #[derive(State, Default)]
    pub(crate) struct Table {
        seats: Map<PlayerId, Seat>,
    }

    #[derive(State, Default)]
    pub(crate) struct Seat {
        hp: u16,
    }

    #[room()]
    impl Room for Table {}
}

#[tokio::test]
async fn an_incompatible_client_learns_why() {
    let node = node();
    let connection = url(&node).await.unwrap();
    let error = connection.join_or_create::<incompatible::Table>("table", &()).await.unwrap_err();
    assert!(error.is_incompatible());
    assert_eq!(error.code(), Some(ErrorCode::SchemaMismatch));
    assert_eq!(
        error.to_string(),
        "state.seats.*.hp: the node has i32, this client was built with u16: rebuild the client"
    );
    // The client leaves the room, and the connection continues.
    connection.ping().await.unwrap();
    while !connection
        .list(Some("table"), &[], 0)
        .await
        .unwrap()
        .iter()
        .all(|room| room.players == 0)
    {}
}
