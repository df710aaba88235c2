//! Rooms that stand still, and what becomes of their saves and messages.

use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use playfield_room::{
    Context, EndReason, Fence, Handle, InternalMessage, LeaveReason, Mail, MemoryStore, Message,
    On, Opened, Pausable, Pause, Player, PlayerId, Result, Room, RoomType, Stage, Store, room,
};
use playfield_state::State;
use playfield_wire::ErrorCode;

use crate::support::{Host, Output, room_named};

/// Counts.
#[derive(State, Default)]
struct Counter {
    count: u32,
    saved: u32,
}

#[derive(Message)]
#[reply(u32)]
#[message(rate = 10)]
struct Add(u32);

#[derive(Message)]
struct Saved;

#[derive(Message)]
#[reply(u32)]
struct Ask;

#[room(messages(Add), internal(Saved, Ask), persist = 10)]
impl Room for Counter {
    fn leave(&mut self, _: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.count += 1_000;
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add(count): Add, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.count += count;
        cx.save(Saved)?;
        Ok(self.count)
    }
}

impl On<Saved> for Counter {
    fn on(&mut self, _: Saved, _: &mut Context<Self>) -> Result<()> {
        self.saved += 1;
        Ok(())
    }
}

impl On<Ask> for Counter {
    fn on(&mut self, _: Ask, _: &mut Context<Self>) -> Result<u32> {
        Ok(self.count)
    }
}

/// A room that is saved, with a player.
fn saved(store: &MemoryStore) -> (Host, PlayerId) {
    let kept = Some(("key", Arc::new(store.clone()) as _));
    let room_type = RoomType::of::<Counter>("test");
    let mut host = Host::create_kept(room_type, 1, &[], kept).unwrap();
    host.wake_after(0);
    host.finish_work();
    let ann = host.join("Ann").unwrap();
    host.act(ann, &Add(1), Some(1));
    host.finish_work();
    assert!(store.get("test", "key").is_some());
    (host, ann)
}

fn pause(host: &mut Host) {
    Pausable::pause(&mut host.room, host.at);
}

fn resume(host: &mut Host) {
    host.room.pausable().unwrap().resume(host.at, &mut host.out);
    Pausable::unwrap(&mut host.room);
}

/// Opens the save, as another owner does, or the host.
fn open(store: &MemoryStore) -> Opened {
    let mut opening = Store::open(store, "test", "key");
    let mut cx = TaskContext::from_waker(Waker::noop());
    match opening.as_mut().poll(&mut cx) {
        Poll::Ready(opened) => opened.unwrap(),
        Poll::Pending => panic!("it is in memory"),
    }
}

fn replies(host: &mut Host) -> Vec<Vec<u8>> {
    let reply = |output| match output {
        Output::Reply { payload, .. } => Some(payload),
        _ => None,
    };
    host.out.take().into_iter().filter_map(reply).collect()
}

#[test]
fn a_room_whose_save_is_its_own_goes_on_and_saves_with_the_new_fence() {
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    let before = store.get("test", "key");
    pause(&mut host);
    host.act(ann, &Add(2), Some(2));
    let opened = open(&store);
    assert!(host.room.reopened(host.at, opened));
    assert_eq!(store.get("test", "key"), before);
    resume(&mut host);
    host.finish_work();
    assert_ne!(store.get("test", "key"), before);
    assert_eq!(replies(&mut host), [[1], [3]]);
    assert_eq!(host.room.stage(), Stage::Open);
}

#[test]
fn a_room_whose_save_is_of_another_owner_ends_without_a_further_call() {
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    pause(&mut host);
    host.act(ann, &Add(2), Some(2));
    let Opened { fence, .. } = open(&store);
    drop(store.save_and_wait("test", "key", fence, b"of the other".to_vec()));
    assert!(!host.room.reopened(host.at, open(&store)));
    let ask = Mail::Asked { from: room_named("x"), ask: 7, message: InternalMessage::of(&Ask) };
    host.mail(ask);
    host.out.take();
    host.room.close(host.at, EndReason::Moved, "join again", &mut host.out);
    assert!(host.room.is_closed());
    let refused = Mail::Answered { ask: 7, reply: Err(Pause::Cluster.error()) };
    let expected = Output::Post { to: "x".into(), mail: refused };
    let all = host.out.take();
    assert_eq!(all[0], expected);
    let Output::Removed { why, .. } = &all[1] else { panic!("{all:?}") };
    assert_eq!((why.code(), why.text()), (ErrorCode::RoomMoved, "join again"));
    assert_eq!(all.len(), 2);
    assert_eq!(store.get("test", "key").as_deref(), Some(&b"of the other"[..]));
}

/// A save in flight is refused, or its outcome comes after the save was opened again.
#[test]
fn a_refused_save_ends_no_room_whose_host_opens_it_again() {
    for waits in [false, true] {
        let store = MemoryStore::new();
        let (mut host, ann) = saved(&store);
        host.out.reopens = true;
        open(&store);
        host.act(ann, &Add(2), Some(2));
        if !waits {
            host.finish_work();
            assert_eq!(host.room.stage(), Stage::Open);
        }
        pause(&mut host);
        if waits {
            host.finish_work();
        }
        assert!(host.room.reopened(host.at, open(&store)));
        resume(&mut host);
        host.wake_after(0);
        host.finish_work();
        assert_eq!(replies(&mut host), [[1], [3]]);
        let mut state = Vec::new();
        assert!(host.room.whole(&mut state));
        // Both who asked for a save were told.
        let counter = playfield_state::load::<Counter>(&state).unwrap();
        assert_eq!((counter.count, counter.saved), (3, 2));
    }
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    let Opened { fence: Fence(fence), .. } = open(&store);
    assert!(fence > 1);
    host.act(ann, &Add(2), Some(2));
    host.finish_work();
    assert!(host.room.is_closed(), "without a cluster, it ends");
}

/// Its last durable save is its own, however many were refused since.
#[test]
fn a_room_knows_its_last_save_after_many_that_failed() {
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    host.out.reopens = true;
    open(&store);
    for request in 0..40 {
        host.act(ann, &Add(1), Some(2 + request));
        host.finish_work();
        host.wake_after(1_000);
    }
    pause(&mut host);
    assert!(host.room.reopened(host.at, open(&store)));
    resume(&mut host);
    let before = store.get("test", "key");
    host.wake_after(0);
    assert_ne!(store.get("test", "key"), before);
}

#[test]
fn messages_that_wait_may_come_up_to_their_rate() {
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    host.out.take();
    pause(&mut host);
    for request in 0..40 {
        host.act(ann, &Add(1), Some(2 + request));
    }
    assert_eq!(host.out.waits, [ann; 40]);
    host.at += Duration::from_secs(4);
    resume(&mut host);
    assert_eq!(replies(&mut host).len(), 40);
}

#[test]
fn a_bounded_number_of_messages_of_others_waits() {
    let store = MemoryStore::new();
    let (mut host, _) = saved(&store);
    host.out.take();
    pause(&mut host);
    for ask in 0..1_100 {
        host.mail(Mail::Asked { from: room_named("x"), ask, message: InternalMessage::of(&Ask) });
    }
    assert_eq!(host.out.take().len(), 1_100 - 1_024);
    resume(&mut host);
    assert_eq!(host.out.take().len(), 1_024);
}

#[test]
fn a_player_who_leaves_meanwhile_is_gone() {
    let store = MemoryStore::new();
    let (mut host, ann) = saved(&store);
    pause(&mut host);
    host.act(ann, &Add(2), Some(2));
    host.leave(ann);
    assert_eq!(host.room.players(&mut |_| true).len(), 1);
    resume(&mut host);
    assert_eq!(host.room.players(&mut |_| true).len(), 0);
    host.room.abandon(host.at, &mut host.out);
    assert!(host.room.is_closed());
}

#[test]
fn persistent_rooms_stand_still_without_a_lease_unless_their_type_says_otherwise() {
    mod types {
        use playfield_room::{Room, room};
        use playfield_state::State;

        #[derive(State, Default)]
        pub(super) struct Lobby {}
        #[room()]
        impl Room for Lobby {}

        #[derive(State, Default)]
        pub(super) struct Strict {}
        #[room(isolated = freeze)]
        impl Room for Strict {}

        #[derive(State, Default)]
        pub(super) struct Lax {}
        #[room(persist = 10, isolated = go_on)]
        impl Room for Lax {}
    }
    fn freezes<R: Room>() -> bool {
        RoomType::of::<R>("test").settings.freezes()
    }
    assert!(freezes::<Counter>() && freezes::<types::Strict>());
    assert!(!freezes::<types::Lobby>() && !freezes::<types::Lax>());
}
