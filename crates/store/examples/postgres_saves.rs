//! Saves of 8 KiB a second in PostgreSQL, beside plain upserts of the same bytes, one for each
//! transaction, in the same run:
//!
//! ```text
//! cargo run --release -p playfield-store --features postgres --example postgres_saves [URL]
//! ```
//!
//! Without a URL it starts a server of its own, with the settings that a new one has. Every row is
//! measured in turns with the others, and the median counts.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/postgres/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use playfield_room::{Completion, Fence, Store, StoreError, Stored};
use playfield_store::{PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};

use server::PgServer;

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_secs(2);
const SAVE_BYTES: usize = 8 << 10;

/// The connections of the upserts, if that many wait.
const CONNECTIONS: [usize; 2] = [1, 16];

const UPSERT: &str = "
    insert into plain_saves (room_type, key, bytes) values ('room', $1, $2)
    on conflict (room_type, key) do update set bytes = excluded.bytes";

/// Bytes that can't be compressed, and say which save of which room they are.
fn save(room: usize, number: u64) -> Vec<u8> {
    let mut word = room as u64 ^ (number << 20) ^ 0x9e37_79b9_7f4a_7c15;
    let mut bytes = number.to_le_bytes().to_vec();
    while bytes.len() < SAVE_BYTES {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.extend(word.to_le_bytes());
    }
    bytes
}

fn wait<T>(work: Stored<T>) -> Result<T, StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Saves a second, with so many waiting at any time.
fn through_the_store(store: &PostgresStore, waiting: usize) -> f64 {
    let fences: Vec<Fence> = (0..waiting)
        .map(|room| wait(store.open("room", &room.to_string())).unwrap().fence)
        .collect();
    let (sender, answered) = sync_channel(waiting);
    let begin = |room: usize, number: u64| {
        let sender = sender.clone();
        let done = Completion::new(move |outcome| {
            let () = outcome.unwrap();
            sender.send((room, number)).unwrap();
        });
        store.save("room", &room.to_string(), fences[room], save(room, number), done);
    };
    let began = Instant::now();
    (0..waiting).for_each(|room| begin(room, 1));
    let (mut count, mut left) = (0_u64, waiting);
    let mut last = vec![0; waiting];
    let mut took = Duration::ZERO;
    while left > 0 {
        let (room, number) = answered.recv().unwrap();
        last[room] = number;
        if began.elapsed() < WINDOW {
            count += 1;
            took = began.elapsed();
            begin(room, number + 1);
        } else {
            left -= 1;
        }
    }
    for (room, number) in last.into_iter().enumerate() {
        let loaded = wait(store.load("room", &room.to_string())).unwrap().unwrap();
        assert!(loaded.bytes == save(room, number), "room {room} has another save");
    }
    count as f64 / took.as_secs_f64()
}

/// The same by a statement for each save.
async fn through_upserts(clients: &[Arc<Client>], waiting: usize) -> f64 {
    let began = Instant::now();
    let tasks: Vec<_> = (0..waiting)
        .map(|room| {
            let client = Arc::clone(&clients[room % clients.len()]);
            tokio::spawn(async move {
                let upsert = client.prepare(UPSERT).await.unwrap();
                let (mut number, mut in_time) = (0, 0);
                while began.elapsed() < WINDOW {
                    number += 1;
                    let bytes = save(room, number);
                    client.execute(&upsert, &[&room.to_string(), &bytes]).await.unwrap();
                    in_time += u64::from(began.elapsed() < WINDOW);
                }
                (number, in_time)
            })
        })
        .collect();
    let mut count = 0;
    for (room, task) in tasks.into_iter().enumerate() {
        let (number, in_time) = task.await.unwrap();
        count += in_time;
        let found = "select bytes from plain_saves where room_type = 'room' and key = $1";
        let row = clients[0].query_one(found, &[&room.to_string()]).await.unwrap();
        assert!(row.get::<_, &[u8]>(0) == save(room, number), "room {room} has another save");
    }
    count as f64 / WINDOW.as_secs_f64()
}

async fn client(url: &str) -> Arc<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    Arc::new(client)
}

fn main() {
    let (mut _server, given) = (None, std::env::args().nth(1));
    let url = given.unwrap_or_else(|| {
        let server = PgServer::start(&[]).expect("PostgreSQL, or the URL of a database");
        _server.insert(server).database()
    });
    let connections: Vec<usize> = vec![1, 2, 4];
    let stores: Vec<PostgresStore> = connections
        .iter()
        .map(|connections| {
            let mut options = PostgresOptions::default();
            options.connections = *connections;
            PostgresStore::connect_with(&url, options).unwrap()
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clients: Vec<Arc<Client>> = runtime.block_on(async {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS[1] {
            clients.push(client(&url).await);
        }
        let table = "drop table if exists plain_saves;
             create table plain_saves (room_type text, key text, bytes bytea,
                                       primary key (room_type, key));
             alter table plain_saves alter column bytes set storage external";
        clients[0].batch_execute(table).await.unwrap();
        clients
    });
    println!("{:>8} {:<28} {:>9} {:>9} {:>9}", "waiting", "by", "saves/s", "least", "most");
    for waiting in [1, 16, 256] {
        let names = connections.iter().map(|count| format!("the store, {count} connections"));
        let plain = CONNECTIONS.iter().map(|count| format!("upserts, {count} connections"));
        let mut rows: Vec<(String, Vec<f64>)> =
            names.chain(plain).map(|name| (name, Vec::new())).collect();
        for _ in 0..ROUNDS {
            for (number, (_, measured)) in rows.iter_mut().enumerate() {
                measured.push(match stores.get(number) {
                    Some(store) => through_the_store(store, waiting),
                    None => {
                        let clients = &clients[..CONNECTIONS[number - stores.len()]];
                        runtime.block_on(through_upserts(clients, waiting))
                    }
                });
            }
        }
        for (name, mut measured) in rows {
            measured.sort_by(f64::total_cmp);
            let [least, median, most] = [0, ROUNDS / 2, ROUNDS - 1].map(|at| measured[at]);
            println!("{waiting:>8} {name:<28} {median:>9.0} {least:>9.0} {most:>9.0}");
        }
    }
    println!("verified: each last save was read again, and is the one that was answered");
}
