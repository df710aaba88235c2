//! Rooms that move between nodes.

use std::sync::atomic::{AtomicBool, Ordering};

use playfield::{ErrorCode, Running};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::ServerMessage;

use crate::engine::Engine;
use crate::nomad::{Nomad, request};
use crate::raw::Raw;
use crate::{Count, Lobby, any, join, joined, new, node, redirected, url, welcomed};

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(future)
}

/// Moves a room, once the nodes know each other.
fn move_room(from: &Running, id: &str, to: &str) {
    loop {
        match run(from.handle().move_room(id, to)) {
            Ok(()) => return,
            Err(error) if error.code() == ErrorCode::Unreachable => {
                super::rest();
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Enters a room, and has a copy.
fn enter(nomad: &mut Nomad, wish: &ClientMessage<'_>) {
    nomad.say_until(wish, |message| matches!(message, ServerMessage::Snapshot(_)));
}

/// Counts up to this number in the room, each number once.
fn count(nomad: &mut Nomad, number: u32) {
    let is_reply = |message: &ServerMessage<'_>| match message {
        ServerMessage::Reply(reply) if reply.request.0 == number => {
            assert_eq!(reply.payload, u32_payload(number), "it was counted once");
            true
        }
        _ => false,
    };
    let mut payload = Vec::new();
    playfield::Data::encode(&Count, &mut payload);
    nomad.say_until(&request(number, &payload), is_reply);
}

fn u32_payload(number: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    playfield::Data::encode(&number, &mut payload);
    payload
}

#[test]
fn a_room_moves_ten_times_and_its_player_misses_nothing() {
    let Some(engine) = Engine::start() else { return };
    for key in [None, Some("table")] {
        let nodes = [node(&engine, "a"), node(&engine, "b")];
        let mut ann = Nomad::new(&url(&nodes[0]), "Ann");
        match key {
            Some(key) => enter(&mut ann, &any(key)),
            None => enter(&mut ann, &new(None, false)),
        }
        let id = ann.room_id.clone();
        let is_over = AtomicBool::new(false);
        let (ann, counted) = std::thread::scope(|scope| {
            let player = scope.spawn(|| {
                let mut counted = 0;
                while !is_over.load(Ordering::Relaxed) {
                    counted += 1;
                    count(&mut ann, counted);
                }
                counted += 1;
                count(&mut ann, counted);
                (ann, counted)
            });
            for number in 0..10 {
                let to = ["b", "a"][number % 2];
                move_room(&nodes[number % 2], &id, to);
            }
            is_over.store(true, Ordering::Relaxed);
            player.join().unwrap()
        });
        assert_eq!((ann.snapshots, ann.events), (1, u64::from(counted)), "{counted}");
        assert!((1..=10).contains(&ann.returns), "{}", ann.returns);
        drop(nodes);
    }
}

#[test]
fn a_room_that_has_moved_is_found_by_its_id_and_its_key() {
    let Some(engine) = Engine::start() else { return };
    let [a, b, c] = &[node(&engine, "a"), node(&engine, "b"), node(&engine, "c")];
    for key in [None, Some("table")] {
        let mut ann = Nomad::new(&url(a), "Ann");
        match key {
            Some(key) => enter(&mut ann, &any(key)),
            None => enter(&mut ann, &new(None, false)),
        }
        let id = ann.room_id.clone();
        move_room(a, &id, "b");
        count(&mut ann, 1);
        assert_eq!((ann.snapshots, ann.returns), (1, 1));
        for from in [a, c] {
            let mut bob = Raw::hello(&url(from), "Bob", None);
            welcomed(&mut bob);
            for wish in [Some(join(&id)), key.map(any)].into_iter().flatten() {
                bob.send(&wish);
                let reservation = redirected(&mut bob, b);
                assert!(reservation.starts_with(&*id), "{reservation}");
            }
        }
        // Its claims are gone with it.
        b.handle().close(&id, "over").unwrap();
        let mut bob = Raw::hello(&url(c), "Bob", None);
        welcomed(&mut bob);
        loop {
            bob.send(&join(&id));
            match bob.next() {
                ServerMessage::Error(error) if error.code == ErrorCode::RoomNotFound => break,
                ServerMessage::Error(error) => assert_eq!(error.code, ErrorCode::Busy, "{error:?}"),
                ServerMessage::Redirect(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_player_who_is_away_while_the_room_moves_finds_it() {
    let Some(engine) = Engine::start() else { return };
    let [a, b, c] = &[node(&engine, "a"), node(&engine, "b"), node(&engine, "c")];
    let mut ann = Nomad::new(&url(a), "Ann");
    enter(&mut ann, &any("table"));
    count(&mut ann, 1);
    // It has all that there is.
    ann.until(|message| matches!(message, ServerMessage::Patch(_)));
    ann.hang_up();
    let (id, session) = (ann.room_id.clone(), ann.session);
    move_room(a, &id, "b");
    ann.dial(&url(c));
    count(&mut ann, 2);
    assert_eq!((ann.session, ann.snapshots), (session, 1));
    let _ = b;
}

#[test]
fn sessions_with_other_rooms_stay_and_leave_the_room() {
    let Some(engine) = Engine::start() else { return };
    let [a, _b] = &[node(&engine, "a"), node(&engine, "b")];
    let mut ann = Raw::hello(&url(a), "Ann", None);
    welcomed(&mut ann);
    ann.send(&any("one"));
    let first = joined(&mut ann);
    let request = playfield_wire::RequestNumber(2);
    let (room_type, key) = ("lobby".into(), Some("two".into()));
    ann.send(&ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request,
        room_type,
        key,
        options: &[],
    }));
    joined(&mut ann);
    move_room(a, &first.id, "b");
    match ann.next() {
        ServerMessage::Left(left) => {
            assert_eq!((left.room, left.code), (first.room, ErrorCode::RoomMoved));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_room_that_can_not_move_goes_on() {
    let Some(engine) = Engine::start() else { return };
    let a = node(&engine, "a");
    let mut ann = Nomad::new(&url(&a), "Ann");
    enter(&mut ann, &any("table"));
    let error = run(a.handle().move_room(&ann.room_id, "nobody")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unreachable);
    let error = run(a.handle().move_room("aaaaaaaaaaaaaaaa", "a")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::RoomNotFound);
    count(&mut ann, 1);
    assert_eq!(ann.returns, 0);
}

#[test]
fn a_node_that_drains_gives_its_rooms_to_others_and_can_go() {
    let Some(engine) = Engine::start() else { return };
    let [a, b, c] = [node(&engine, "a"), node(&engine, "b"), node(&engine, "c")];
    let mut players: Vec<Nomad> = (0..20)
        .map(|number| {
            let mut player = Nomad::new(&url(&a), &format!("player {number}"));
            let id = a.handle().create_room::<Lobby>(&()).wait().unwrap();
            enter(&mut player, &join(&id));
            count(&mut player, 1);
            player
        })
        .collect();
    // One is away, and comes back when the node is gone.
    players[0].until(|message| matches!(message, ServerMessage::Patch(_)));
    players[0].hang_up();
    players[0].dial(&url(&c));
    // The first time, it may not know the others yet.
    while run(a.handle().drain()).left > 0 {}
    for player in &mut players[1..] {
        count(player, 2);
    }
    drop(a);
    count(&mut players[0], 2);
    for player in &players {
        assert_eq!((player.snapshots, player.events, player.returns), (1, 2, 1));
    }
    drop((b, c));
}
