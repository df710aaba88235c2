//! How a node with rooms that have something to finish shuts down.

use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};

use crate::common::{Client, Heard, config};

use playfield_room::{Context, EndReason, Message, On, Result, Room, RoomType, room};
use playfield_server::{Running, Server};
use playfield_state::State;
use playfield_wire::client::ClientMessage;
use playfield_wire::{ErrorCode, Format, RequestNumber};

/// Ends the background work that the room begins at its end.
static ENDS: Mutex<Option<SyncSender<()>>> = Mutex::new(None);
/// What the room did at its end.
static DONE: Mutex<Vec<&str>> = Mutex::new(Vec::new());

#[derive(State, Default)]
struct Saver {}

#[derive(Message)]
struct Saved;

#[room(internal(Saved))]
impl Room for Saver {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let (ends, end) = sync_channel(1);
        *ENDS.lock().unwrap() = Some(ends);
        let _ = cx.compute(move || {
            end.recv().unwrap();
            Saved
        });
    }
}

impl On<Saved> for Saver {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        DONE.lock().unwrap().push("saved");
        Ok(())
    }
}

#[derive(State, Default)]
struct Stuck {}

#[room(internal(Saved))]
impl Room for Stuck {
    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        let _ = cx.spawn(std::future::pending::<Saved>());
    }
}

impl On<Saved> for Stuck {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn start(settings: &[(&str, &str)]) -> Running {
    Server::new(config(settings))
        .room_type(RoomType::of::<Saver>("saver"))
        .room_type(RoomType::of::<Stuck>("stuck"))
        .start()
        .unwrap()
}

fn enter(running: &Running, room_type: &str) -> Client {
    let mut client = Client::native(running.local_addr());
    let request = RequestNumber(1);
    let room_type = room_type.into();
    let join = ClientMessage::JoinOrCreate { request, room_type, key: None, options: &[] };
    client.say(&crate::common::encoded(Format::Packed, &join));
    client.until_joined(request).unwrap();
    client
}

fn is_goodbye(heard: &Heard) -> bool {
    matches!(heard, Heard::Goodbye { code: ErrorCode::ShuttingDown })
}

#[test]
fn the_goodbye_comes_when_the_rooms_have_saved() {
    let running = start(&[("shards", "2")]);
    let mut clients = [enter(&running, "saver"), Client::native(running.local_addr())];
    let stopper = running.stopper();
    stopper.stop();
    clients[0].until(|heard| matches!(heard, Heard::Left { .. }).then_some(()));
    assert!(DONE.lock().unwrap().is_empty());
    let ends = ENDS.lock().unwrap().take().unwrap();
    DONE.lock().unwrap().push("left");
    ends.send(()).unwrap();
    for client in &mut clients {
        client.until(|heard| is_goodbye(heard).then_some(()));
    }
    assert_eq!(*DONE.lock().unwrap(), ["left", "saved"]);
    drop(clients);
    running.wait().unwrap();
}

#[test]
fn a_room_that_never_ends_does_not_keep_the_node_or_the_goodbye_from_its_clients() {
    let running = start(&[("shards", "2"), ("shutdown_timeout_ms", "100")]);
    let mut client = enter(&running, "stuck");
    running.shutdown();
    client.until(|heard| matches!(heard, Heard::Left { .. }).then_some(()));
    client.until(|heard| is_goodbye(heard).then_some(()));
}
