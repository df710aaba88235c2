//! A node over real sockets.

use crate::common;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::speech::{encoded, request, send};
use common::{Client, Heard, config, room, start, until};
use playfield_room::{MemoryStore, StoreError, StoreErrorKind};
use playfield_server::config::setting_of;
use playfield_server::{Running, Server};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

/// A client that is on the first shard that accepts it, in a room of its own.
fn with_room(running: &Running, options: &str) -> (Client, RoomNumber, String) {
    let mut client = Client::native(running.local_addr());
    client.join_or_create(RequestNumber(1), options);
    let (room, id) = client.until_joined(RequestNumber(1)).unwrap();
    (client, room, id)
}

#[test]
pub(crate) fn every_transport_and_format_plays() {
    let running = start(&[("shards", "1")]);
    let clients = [
        Client::native(running.local_addr()),
        Client::websocket(running.local_addr(), Format::Packed),
        Client::websocket(running.local_addr(), Format::Msgpack),
        Client::websocket(running.local_addr(), Format::Json),
    ];
    for mut client in clients {
        client.join_or_create(RequestNumber(1), "");
        let (room, _) = client.until_joined(RequestNumber(1)).unwrap();
        assert!(matches!(client.next(), Heard::Snapshot { .. }), "the snapshot follows at once");
        client.request(room, RequestNumber(2), "secret", "");
        assert_eq!(client.until_reply(RequestNumber(2)), "");
        let body = client.until(|heard| match heard {
            Heard::Patch { body, .. } => Some(body.clone()),
            _ => None,
        });
        assert_eq!(body, "s=1 ");
    }
    running.shutdown();
}

#[test]
pub(crate) fn a_page_is_served_on_the_same_port() {
    let running = start(&[]);
    let mut client = Client::connect(running.local_addr());
    client.socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    client.socket.shutdown(Shutdown::Write).unwrap();
    let mut response = String::new();
    client.socket.read_to_string(&mut response).unwrap();
    assert!(
        response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\n<p>hello"),
        "{response}"
    );
}

#[test]
pub(crate) fn joins_on_two_shards_never_fill_a_room_beyond_its_capacity() {
    let running = start(&[("shards", "2")]);
    let address = running.local_addr();
    let mut clients: Vec<Client> = (0..100)
        .map(|number| match number % 2 {
            0 => Client::native(address),
            _ => Client::websocket(address, Format::Packed),
        })
        .collect();
    // Nobody is waited for: the joins are under way on both shards at the same time.
    for client in &mut clients {
        client.join_or_create(RequestNumber(1), "capacity=3");
    }
    let mut players: HashMap<String, usize> = HashMap::new();
    for client in &mut clients {
        let (_, id) = client.until_joined(RequestNumber(1)).unwrap();
        *players.entry(id).or_default() += 1;
    }
    assert!(players.values().all(|&count| count <= 3), "{players:?}");
    assert_eq!(players.len(), 34, "and no room more than needed");
    let stats = running.stats();
    assert!(stats.shards.iter().all(|shard| shard.rooms > 10), "{stats:?}");
    running.shutdown();
}

#[test]
pub(crate) fn a_connection_moves_with_what_it_has_sent_already() {
    let running = start(&[("shards", "2")]);
    let (_host, _, id) = with_room(&running, "capacity=1000");
    // Which shard accepts a client is the system's choice; among so many, both do.
    for number in 0..20 {
        let mut client = Client::native(running.local_addr());
        let join = ClientMessage::Join(client::Join {
            request: RequestNumber(1),
            room: id.as_str().into(),
        });
        let mut bytes = client.framed(&encoded(Format::Packed, &join));
        for nonce in 1..=200 {
            bytes.extend(
                client
                    .framed(&encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce }))),
            );
        }
        let (front, back) = bytes.split_at(bytes.len() - 7 - number);
        client.socket.write_all(front).unwrap();
        client.socket.write_all(back).unwrap();
        let (mut pongs, mut joined) = (0, None);
        while pongs < 200 || joined.is_none() {
            match client.next() {
                Heard::Pong { nonce } => {
                    pongs += 1;
                    assert_eq!(nonce, pongs, "in order, and none is lost");
                }
                Heard::Joined { room, .. } => joined = Some(room),
                _ => {}
            }
        }
        client.request(joined.unwrap(), RequestNumber(2), "add", "");
        assert_eq!(client.until_reply(RequestNumber(2)), (number + 1).to_string());
    }
    let stats = running.stats();
    assert_eq!(stats.total().rooms, 1);
    until(&running, |running| running.stats().shards.iter().any(|shard| shard.connections == 0));
}

#[test]
pub(crate) fn rooms_on_other_shards_are_played_over_one_connection() {
    let running = start(&[("shards", "2")]);
    let mut client = Client::native(running.local_addr());
    // New rooms go where the least is to do, so these are on both shards.
    let mut rooms = Vec::new();
    for number in 1..=6 {
        let create = ClientMessage::Create(client::Create {
            request: RequestNumber(number),
            room_type: "test".into(),
            private: false,
            code: false,
            key: None,
            options: b"",
        });
        client.say(&encoded(Format::Packed, &create));
        rooms.push(client.until_joined(RequestNumber(number)).unwrap().0);
    }
    assert!(running.stats().shards.iter().all(|shard| shard.rooms >= 2));
    for (at, &room) in rooms.iter().enumerate() {
        for count in 1..=3 {
            let number = 100 + at as u32;
            client.request(room, RequestNumber(number), "add", "");
            assert_eq!(client.until_reply(RequestNumber(number)), count.to_string());
        }
    }
    for &room in &rooms {
        client.say(&send(room, "add", ""));
        client.until(|heard| match heard {
            Heard::Patch { room: at, body, .. } => (*at == room && body == "c=4 ").then_some(()),
            _ => None,
        });
    }
    for &room in &rooms {
        client.say(&encoded(
            Format::Packed,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(7), room }),
        ));
        client.until(|heard| match heard {
            Heard::Left { request: Some(RequestNumber(7)), room: at, .. } => {
                (*at == room).then_some(())
            }
            _ => None,
        });
    }
    until(&running, |running| running.stats().total().rooms == 0);
}

#[test]
pub(crate) fn background_work_runs_and_its_panics_are_told() {
    let running = start(&[("threads.compute", "1")]);
    let (mut client, room, _) = with_room(&running, "");
    for (name, payload, expected) in [
        ("compute", "pi", "computed pi"),
        ("spawn", "", "spawned"),
        ("compute", "panic", "lost 5"),
        ("spawn", "panic", "lost 6"),
    ] {
        client.say(&send(room, name, payload));
        client.until(|heard| match heard {
            Heard::Event { payload, .. } => (payload == expected).then_some(()),
            _ => None,
        });
    }
}

#[test]
fn tasks_max_and_compute_queue_max() {
    let running = start(&[
        ("threads.compute", "1"),
        ("limits.queues.computations", "1"),
        ("limits.queues.tasks", "1"),
    ]);
    let (mut client, room, _) = with_room(&running, "");
    // One at work, one in the queue, and more than that at once: sooner or later one is too many,
    // as the thread takes its time.
    let refused = (1..1_000).find(|_| {
        let bytes: Vec<u8> = (1..=10)
            .flat_map(|number| {
                let number = RequestNumber(number);
                client.framed(&request(Format::Packed, room, number, "compute", "x"))
            })
            .collect();
        client.socket.write_all(&bytes).unwrap();
        let answers = (1..=10).map(|number| client.until_reply(RequestNumber(number)));
        answers.filter(|answer| answer == "busy").count() > 0
    });
    assert!(refused.is_some());
    let refused = (1..10_000).find(|_| {
        let bytes: Vec<u8> =
            (0..10).flat_map(|_| client.framed(&send(room, "spawn", ""))).collect();
        client.socket.write_all(&bytes).unwrap();
        client.request(room, RequestNumber(1), "add", "");
        let mut refused = false;
        loop {
            match client.next() {
                Heard::Error { code: ErrorCode::Busy, .. } => refused = true,
                Heard::Reply { request: RequestNumber(1), .. } => return refused,
                _ => {}
            }
        }
    });
    assert!(refused.is_some());
}

#[test]
fn a_client_that_never_reads_costs_no_memory_and_disturbs_nobody() {
    let running = start(&[("shards", "1"), ("limits.session.outbox_bytes.max", "1000000")]);
    let (mut bystander, room, id) = with_room(&running, "");
    let mut deaf = Client::native(running.local_addr());
    deaf.join(RequestNumber(1), &id);
    let (seat, _) = deaf.until_joined(RequestNumber(1)).unwrap();
    // It asks for more and more and reads nothing, until the node reads nothing from it any more.
    deaf.socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let bytes: Vec<u8> = (0..1000)
        .flat_map(|number| {
            deaf.framed(&request(Format::Packed, seat, RequestNumber(number), "big", "60000"))
        })
        .collect();
    let mut asked = 0;
    while deaf.socket.write_all(&bytes).is_ok() {
        asked += 1000;
        assert!(asked < 10_000_000, "the node takes everything");
    }
    bystander.request(room, RequestNumber(2), "add", "");
    assert_eq!(bystander.until_reply(RequestNumber(2)), "1");
    // What waits for it is in the system's buffers, of which there is only so much, and in a
    // bounded outbox.
    let stats = running.stats().total();
    assert!(stats.messages_out < 2000, "{stats:?}");
    drop(deaf);
    until(&running, |running| running.stats().total().connections == 1);
}

#[test]
pub(crate) fn connections_max() {
    let running = start(&[("shards", "2"), ("limits.connections.total", "3")]);
    let clients: Vec<Client> = (0..3).map(|_| Client::native(running.local_addr())).collect();
    let mut refused = Client::connect(running.local_addr());
    assert_eq!(refused.try_next(), None);
    until(&running, |running| running.stats().total().connections_refused == 1);
    drop(clients);
    until(&running, |running| running.stats().total().connections == 0);
    Client::native(running.local_addr());
}

#[test]
pub(crate) fn a_client_that_hangs_up_in_the_middle_of_anything_is_forgotten() {
    let running = start(&[]);
    let (mut bystander, room, id) = with_room(&running, "");
    for cut in [0, 1, 4, 6, 9] {
        let mut client = Client::native(running.local_addr());
        client.join(RequestNumber(1), &id);
        client.until_joined(RequestNumber(1)).unwrap();
        let message = client.framed(&send(RoomNumber(1), "add", ""));
        client.socket.write_all(&message[..cut.min(message.len() - 1)]).unwrap();
        if cut % 2 == 0 {
            client.socket.shutdown(Shutdown::Write).unwrap();
            client.rest();
        }
    }
    until(&running, |running| running.stats().total().connections == 1);
    bystander.request(room, RequestNumber(2), "add", "");
    assert_eq!(bystander.until_reply(RequestNumber(2)), "1");
}

/// The console shows a setting as changed whose value is not the default.
#[test]
fn memory_that_is_left_to_the_node_does_not_count_as_set() {
    let running = start(&[]);
    let handle = running.handle();
    let (operator, name) = (handle.operator(), "limits.memory");
    let default = setting_of(name).unwrap().default();
    assert_eq!(operator.config().get(name), Some(default));
    let limits = operator.limits();
    let total = limits.iter().find(|limit| limit.name == "limits.memory.total").unwrap();
    assert!(total.max >= 1 << 20, "{total:?}");
}

#[test]
fn a_room_that_does_not_return_is_found() {
    let running = start(&[("shards", "1"), ("timeouts.watchdog", "50ms")]);
    let (mut client, room, _) = with_room(&running, "");
    assert!(running.stats().healthy);
    client.request(room, RequestNumber(2), "hang", "1000");
    until(&running, |running| !running.stats().healthy);
    client.until_reply(RequestNumber(2));
    until(&running, |running| running.stats().healthy);
}

#[test]
fn a_handler_that_does_not_return_is_found() {
    let (ends, blocks) = std::sync::mpsc::sync_channel::<()>(1);
    let blocks = std::sync::Arc::new(std::sync::Mutex::new(blocks));
    let blocked = async move || {
        let _ = blocks.lock().unwrap().recv();
    };
    let settings = config(&[("timeouts.watchdog", "50ms")]);
    let running = Server::new(settings).route("GET", "/blocked", blocked).start().unwrap();
    assert!(running.stats().healthy);
    let mut client = TcpStream::connect(running.local_addr()).unwrap();
    client.write_all(b"GET /blocked HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    until(&running, |running| !running.stats().healthy);
    drop(ends);
    until(&running, |running| running.stats().healthy);
}

#[test]
fn a_room_that_never_returns_does_not_hold_up_the_end() {
    let running =
        start(&[("shards", "1"), ("timeouts.shutdown", "100ms"), ("timeouts.watchdog", "100ms")]);
    let (mut client, room, _) = with_room(&running, "");
    client.request(room, RequestNumber(2), "hang", "600000");
    until(&running, |running| !running.stats().healthy);
    let stopper = running.stopper();
    let (tells, ended) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        tells.send(running.wait()).unwrap();
    });
    stopper.stop();
    let error = ended.recv_timeout(Duration::from_secs(20)).unwrap().unwrap_err();
    assert!(error.to_string().contains("left behind"), "{error}");
}

#[test]
pub(crate) fn two_servers_do_not_share_an_address() {
    let first = start(&[("shards", "2")]);
    let address = first.local_addr().to_string();
    let second = Server::new(config(&[("listen", &address), ("shards", "2")]));
    let error = second.room_type(room::room_type("test")).start().err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with(&format!("listen = {address}: ")), "{error}");
}

/// An open port means that the node is ready.
#[test]
fn a_node_listens_once_its_store_is_open() {
    let taken = start(&[]);
    let address = taken.local_addr().to_string();
    let server = Server::new(config(&[("listen", &address)])).room_type(room::room_type("test"));
    let damaged = || StoreError::new(StoreErrorKind::Damaged, "the store is damaged");
    let error = server.open_store(move || Err::<MemoryStore, _>(damaged())).start().err().unwrap();
    assert_eq!(error.to_string(), "the store is damaged", "the address was not looked at before");
}

#[test]
fn settings_that_cannot_be_are_refused_at_the_start() {
    for (settings, expected) in [
        (&[("threads.pin_cores", "0,9999")][..], "threads.pin_cores: "),
        (
            &[
                ("limits.session.outbox_bytes.high", "5000"),
                ("limits.session.outbox_bytes.max", "4000"),
            ],
            "limits.session.outbox_bytes.high = 5000: ",
        ),
    ] {
        let error = Server::new(config(settings)).start().err().unwrap().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
pub(crate) fn a_shutdown_tells_everyone_and_waits_for_nobody_for_long() {
    let running =
        start(&[("shards", "2"), ("timeouts.shutdown", "1000ms"), ("timeouts.close", "500ms")]);
    let mut players: Vec<Client> = (0..10).map(|_| with_room(&running, "capacity=2").0).collect();
    let mut silent = Client::connect(running.local_addr());
    let (mut deaf, seat, _) = with_room(&running, "");
    for number in 0..200 {
        deaf.request(seat, RequestNumber(number), "big", "50000");
    }
    let began = Instant::now();
    let readers = thread::spawn(move || {
        let mut last = Vec::new();
        for player in &mut players {
            last.push(player.rest().pop());
        }
        last
    });
    running.stopper().stop();
    running.wait().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    let code = ErrorCode::ShuttingDown;
    assert!(readers.join().unwrap().iter().all(|last| *last == Some(Heard::Goodbye { code })));
    assert_eq!(silent.try_next(), None);
}

#[test]
pub(crate) fn the_address_is_free_again_after_a_shutdown() {
    let first = start(&[("shards", "1")]);
    let address = first.local_addr();
    let client = Client::native(address);
    first.shutdown();
    drop(client);
    let again =
        config(&[("listen", &address.to_string()), ("shards", "1"), ("threads.pin_cores", "0")]);
    let second = Server::new(again).room_type(room::room_type("test")).start().unwrap();
    Client::native(second.local_addr());
}
