//! The store in PostgreSQL, on servers that the tests start.

pub(crate) mod server;

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Barrier};
use std::thread;

use playfield_room::{Completion, Fence, Store, StoreError, StoreErrorKind};
use playfield_store::{PostgresOptions, PostgresStore};

use crate::any_store::{is_fenced, keeps_all_promises, put};
use crate::store::wait;
use server::{PgServer, execute};

/// The number of times that the server is killed. `PLAYFIELD_SERVER_KILLS=100` kills it more often.
const KILLS: u32 = 3;

fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url).unwrap()
}

fn refused(url: &str) -> StoreError {
    PostgresStore::connect(url).unwrap_err()
}

#[test]
fn a_database_keeps_all_promises() {
    let Some(server) = PgServer::shared() else { return };
    for connections in [1, 3] {
        let mut options = PostgresOptions::default();
        options.connections = connections;
        let store = PostgresStore::connect_with(&server.database(), options).unwrap();
        assert!(store.is_shared());
        keeps_all_promises(&store, 1_000);
    }
}

#[test]
fn saves_are_written_before_a_store_is_gone() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let store = connect(&url);
    drop(put(&store, "document", "1", vec![7; 3_000_000]));
    drop(store);
    let loaded = wait(connect(&url).load("document", "1")).unwrap().unwrap();
    assert_eq!(loaded.bytes, vec![7; 3_000_000]);
}

/// Another process that opens a save then has the last one of a room that has ended.
#[test]
fn what_was_accepted_is_written_before_another_process_takes_over() {
    let Some(server) = PgServer::start(&["-c", "fsync=off"]) else { return };
    let url = server.database();
    let store = connect(&url);
    for round in 0..10_u8 {
        let saved = put(&store, "town", "1", vec![round; 3_000_000]);
        store.release().unwrap();
        let opened = wait(connect(&url).open("town", "1")).unwrap();
        assert_eq!(opened.save.unwrap().bytes, vec![round; 3_000_000]);
        assert_eq!(wait(saved), Ok(()));
    }
    // The store reports a failure.
    let fence = wait(store.open("town", "1")).unwrap().fence;
    server.kill();
    let waits = store.save_and_wait("town", "1", fence, vec![9]);
    assert_eq!(store.release().unwrap_err().kind(), StoreErrorKind::Away);
    server.run();
    assert_eq!(wait(waits), Ok(()));
    assert_eq!(store.release(), Ok(()));
}

#[test]
fn an_old_owner_of_another_node_overwrites_nothing() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let (old, new) = (connect(&url), connect(&url));
    let (mut late, mut raced) = (0, [0, 0]);
    for round in 0..1_000_u32 {
        let key = (round % 50).to_string();
        let bytes = |text: &str| format!("{text} {round}").into_bytes();
        let fence = wait(old.open("town", &key)).unwrap().fence;
        wait(old.save_and_wait("town", &key, fence, bytes("first"))).unwrap();
        // One that is under way while the other node opens the save is seen, or refused.
        let racing = old.save_and_wait("town", &key, fence, bytes("racing"));
        let opened = wait(new.open("town", &key)).unwrap();
        let seen = opened.save.unwrap().bytes;
        match wait(racing) {
            Ok(()) => assert_eq!(seen, bytes("racing"), "round {round}"),
            Err(error) => {
                assert_eq!(error.kind(), StoreErrorKind::Fenced, "round {round}: {error}");
                assert_eq!(seen, bytes("first"), "round {round}");
                raced[0] += 1;
            }
        }
        raced[1] += 1;
        // One that was held back until then is refused.
        late += u32::from(is_fenced(wait(old.save_and_wait("town", &key, fence, bytes("late")))));
        assert_eq!(wait(new.load("town", &key)).unwrap().unwrap().bytes, seen);
    }
    assert_eq!(late, 1_000);
    println!("refused {late} of 1000 late saves, and {} of {} racing ones", raced[0], raced[1]);
}

#[test]
fn a_save_that_was_opened_and_never_written_leaves_nothing() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let store = connect(&url);
    let fences: Vec<Fence> =
        (0..9).map(|key| wait(store.open("town", &key.to_string())).unwrap().fence).collect();
    wait(store.save_and_wait("town", "3", fences[3], vec![3])).unwrap();
    for (key, fence) in fences.into_iter().enumerate() {
        store.close("town", &key.to_string(), fence);
    }
    // An owner who was not waited for has never been one.
    drop(store.open("town", "nobody"));
    drop(store);
    assert_eq!(execute(&url, "select key from playfield_saves"), ["3"]);
}

#[test]
fn a_save_that_fails_does_so_alone() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let mut options = PostgresOptions::default();
    (options.connections, options.save_bytes_max) = (1, 1_000);
    let store = PostgresStore::connect_with(&url, options).unwrap();
    // The database takes no key with a zero.
    let wrong = "a\0b";
    let opening: Vec<_> = ["1", wrong, "2"].map(|key| store.open("town", key)).into();
    let opened: Vec<_> = opening.into_iter().map(wait).collect();
    let said = opened[1].as_ref().unwrap_err().to_string();
    assert!(said.contains("invalid byte sequence") && said.contains("SQLSTATE 22021"), "{said}");
    let fences = [&opened[0], &opened[2]].map(|opened| opened.as_ref().unwrap().fence);
    let mut saves = Vec::new();
    for (key, fence) in [("1", fences[0]), (wrong, Fence(1)), ("2", fences[1]), ("1", Fence(7))] {
        saves.push(store.save_and_wait("town", key, fence, vec![1; 100]));
    }
    saves.push(store.save_and_wait("town", "1", fences[0], vec![1; 1_001]));
    let loads: Vec<_> = ["1", wrong, "2"].map(|key| store.load("town", key)).into();
    let saved: Vec<_> = saves.into_iter().map(wait).collect();
    assert_eq!((&saved[0], &saved[2]), (&Ok(()), &Ok(())));
    assert_eq!(saved[1].as_ref().unwrap_err().kind(), StoreErrorKind::Other);
    assert!(is_fenced(saved[3].clone()));
    assert_eq!(
        saved[4].as_ref().unwrap_err().to_string(),
        "the save of town \"1\" has 1001 bytes, and may have 1000: keep less in the state, or raise \
         save_bytes_max"
    );
    let loaded: Vec<_> = loads.into_iter().map(wait).collect();
    assert!(loaded[0].is_ok() && loaded[1].is_err() && loaded[2].is_ok());
}

#[test]
fn a_row_that_someone_holds_delays_only_its_own_save() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let mut options = PostgresOptions::default();
    options.connections = 1;
    options.statement_timeout = std::time::Duration::from_millis(300);
    let store = PostgresStore::connect_with(&url, options).unwrap();
    let fences: Vec<Fence> = ["held", "free"]
        .map(|key| {
            wait(put(&store, "town", key, vec![0])).unwrap();
            wait(store.open("town", key)).unwrap().fence
        })
        .into();
    let (holds, held) = sync_channel::<()>(0);
    let (ends, ended) = sync_channel::<()>(0);
    let of = url.clone();
    let other = thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let (mut client, connection) =
                tokio_postgres::connect(&of, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            let change = client.transaction().await.unwrap();
            let lock = "select 1 from playfield_saves where key = 'held' for update";
            change.execute(lock, &[]).await.unwrap();
            holds.send(()).unwrap();
            let _ = ended.recv();
        });
    });
    held.recv().unwrap();
    let saves: Vec<_> = ["held", "free"]
        .into_iter()
        .zip(&fences)
        .map(|(key, fence)| store.save_and_wait("town", key, *fence, vec![1]))
        .collect();
    let outcomes: Vec<_> = saves.into_iter().map(wait).collect();
    assert_eq!(outcomes[0].as_ref().unwrap_err().kind(), StoreErrorKind::Busy);
    assert_eq!(outcomes[1], Ok(()));
    drop(ends);
    other.join().unwrap();
    assert_eq!(wait(store.save_and_wait("town", "held", fences[0], vec![2])), Ok(()));
}

#[test]
fn nodes_that_start_at_once_make_the_tables_once() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let barrier = Barrier::new(8);
    let stores: Vec<PostgresStore> = thread::scope(|scope| {
        let connect = || {
            barrier.wait();
            PostgresStore::connect(&url).unwrap()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(connect)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (number, store) in stores.iter().enumerate() {
        wait(put(store, "t", &number.to_string(), vec![1])).unwrap();
    }
    assert_eq!(execute(&url, "select version from playfield_version"), ["1"]);
    assert_eq!(wait(stores[0].keys("t", None, 99)).unwrap().len(), 8);
}

#[test]
fn tables_of_another_version_are_made_new_or_refused() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    wait(put(&connect(&url), "t", "1", vec![1])).unwrap();
    for (version, said) in [
        ("2", "its tables have version 2, and this build knows 1: run a newer build"),
        ("-1", "its tables have version -1, which none has"),
    ] {
        execute(&url, &format!("update playfield_version set version = {version}"));
        let error = refused(&url).to_string();
        assert!(error.starts_with("can't open the store postgres://"), "{error}");
        assert!(error.ends_with(said), "{error}");
    }
    // A user who may not change them may use them.
    let name = url.rsplit_once("dbname=").unwrap().1;
    execute(
        &url,
        "update playfield_version set version = 1;
         create role player login;
         grant select on playfield_version to player;
         grant select, insert, update, delete on playfield_saves to player;
         grant usage on playfield_fences to player",
    );
    let store = connect(&server.url("player", name));
    assert_eq!(wait(store.load("t", "1")), Ok(Some(vec![1].into())));
    wait(put(&store, "t", "1", vec![2])).unwrap();
    // Older ones are changed.
    execute(
        &url,
        "drop table playfield_saves; drop sequence playfield_fences;
         update playfield_version set version = 0",
    );
    let store = connect(&url);
    assert_eq!(wait(store.load("t", "1")), Ok(None));
    assert_eq!(execute(&url, "select version from playfield_version"), ["1"]);
}

#[test]
fn a_database_that_cant_be_used_is_named_with_the_reason() {
    let Some(server) = PgServer::shared() else { return };
    let url = server.database();
    let name = url.rsplit_once("dbname=").unwrap().1;
    server.execute(
        "postgres",
        "create role guarded login password 'right';
         create role single login superuser connection limit 1;
         create role powerless login",
    );
    let is = |error: StoreError, kind: StoreErrorKind, parts: &[&str]| {
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("wrong"), "{text}");
    };
    is(
        refused(&format!("{} password=wrong", server.url("guarded", name))),
        StoreErrorKind::Other,
        &["password authentication failed", "SQLSTATE 28P01", "check the user and the password"],
    );
    is(
        refused(&server.url("postgres", "nowhere")),
        StoreErrorKind::Other,
        &["database \"nowhere\" does not exist", "createdb"],
    );
    is(
        refused(&server.url("powerless", name)),
        StoreErrorKind::Other,
        &["permission denied for schema public", "grant create"],
    );
    server.execute(name, "alter role single nosuperuser; grant all on schema public to single");
    let first = PostgresStore::connect(&server.url("single", name)).unwrap();
    is(
        refused(&server.url("single", name)),
        StoreErrorKind::Away,
        &["too many connections for role", "SQLSTATE 53300", "PostgresOptions::connections"],
    );
    drop(first);
    is(
        refused("host=/nowhere user=postgres"),
        StoreErrorKind::Away,
        &["can't open the store postgres:///nowhere/postgres", "check that it runs"],
    );
    is(
        refused("redis://localhost"),
        StoreErrorKind::Other,
        &["the URL of the store is invalid", "postgres://user:password@host:5432/database"],
    );
    let required = format!("{url} sslmode=require");
    is(refused(&required), StoreErrorKind::Away, &["TLS"]);
}

#[test]
fn while_the_database_is_away_saves_wait_and_opens_are_refused() {
    let Some(server) = PgServer::start(&["-c", "fsync=off"]) else { return };
    let url = server.database();
    let store = connect(&url);
    let fence = wait(store.open("town", "1")).unwrap().fence;
    server.kill();
    let saves: Vec<_> =
        (0..3).map(|round| store.save_and_wait("town", "1", fence, vec![round])).collect();
    for _ in 0..3 {
        let error = wait(store.open("town", "2")).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Away, "{error}");
        assert_eq!(wait(store.load("town", "1")).unwrap_err().kind(), StoreErrorKind::Away);
        assert_eq!(wait(store.keys("town", None, 9)).unwrap_err().kind(), StoreErrorKind::Away);
    }
    server.run();
    for saved in saves {
        assert_eq!(wait(saved), Ok(()));
    }
    assert_eq!(wait(store.load("town", "1")), Ok(Some(vec![2].into())));
    // A store that is dropped meanwhile ends all the same, and says what is not written.
    server.kill();
    let lost = store.save_and_wait("town", "1", fence, vec![9]);
    drop(store);
    assert_eq!(wait(lost).unwrap_err().kind(), StoreErrorKind::Away);
}

#[test]
fn what_was_answered_is_there_after_each_crash_of_the_server() {
    let Some(server) = PgServer::start(&[]) else { return };
    let kills =
        std::env::var("PLAYFIELD_SERVER_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let url = server.database();
    let store = Arc::new(connect(&url));
    let fences: Vec<Fence> =
        (0..16).map(|key| wait(store.open("town", &key.to_string())).unwrap().fence).collect();
    let (sender, answered) = sync_channel::<(usize, u64, Result<(), StoreError>)>(1 << 16);
    let begin = |key: usize, number: u64| {
        let sender = sender.clone();
        let done = Completion::new(move |outcome| drop(sender.send((key, number, outcome))));
        let bytes = number.to_le_bytes().repeat(500 + key * 100);
        store.save("town", &key.to_string(), fences[key], bytes, done);
    };
    (0..16).for_each(|key| begin(key, 1));
    let mut durable: BTreeMap<usize, u64> = BTreeMap::new();
    let mut count = 0_u64;
    // Each answer is followed by the next save of the same room.
    let mut hear = |answers: u64| {
        for _ in 0..answers {
            let (key, number, outcome) = answered.recv().unwrap();
            assert_eq!(outcome, Ok(()), "save {number} of {key}");
            durable.insert(key, number);
            count += 1;
            begin(key, number + 1);
        }
        (durable.clone(), count)
    };
    for round in 0..kills {
        let (_, _) = hear(50 + u64::from(round * 37 % 101));
        server.kill();
        // Answers from before the crash that are not read yet.
        let mut known = hear(0).0;
        while let Ok((key, number, outcome)) = answered.try_recv() {
            assert_eq!(outcome, Ok(()));
            known.insert(key, number);
            begin(key, number + 1);
        }
        server.run();
        let other = connect(&url);
        for (key, number) in known {
            let found = wait(other.load("town", &key.to_string())).unwrap().unwrap().bytes;
            let found = u64::from_le_bytes(*found.first_chunk().unwrap());
            assert!(found >= number, "round {round}: {key} is {found}, and {number} was answered");
        }
    }
    let (_, count) = hear(100);
    println!("killed the server {kills} times; {count} saves were answered, and all are there");
}
