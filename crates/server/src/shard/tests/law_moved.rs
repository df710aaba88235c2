//! The law of moving: rooms leave a running shard with the sessions of their players, and go on in
//! another, or come back. Steps of a play, with any number of moves: each client that comes back
//! hears each event once and in order, and its copy is what it may see of the room, as without.

use std::time::Duration;

use playfield_wire::ErrorCode;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::laws::{Pace, Play, Step, config, paces, steps};
use super::passed_on::in_new_room;
use super::world::{Client, World};
use crate::handle::operated::Answering;
use crate::room_id::RoomId;
use crate::shard::frozen::parcel;
use crate::shard::mail::ShardMail;
use crate::shard::mail::parcel::{Parcel, PutIn, TakeOut};

impl World {
    /// Takes a room out of its shard; `None` if it can't move now.
    pub(super) fn take_out(&mut self, id: &str, gives_up: bool) -> Option<Parcel> {
        let room = RoomId::parse(id).unwrap();
        let place = self.node.directory.find(room)?;
        let (answer, mut answered) = Answering::new();
        let of = TakeOut { room, gives_up, answer };
        self.post(place.shard, ShardMail::TakeOut(Box::new(of)));
        match answered.try_recv().unwrap() {
            Ok(parcel) => Some(parcel),
            Err(error) => {
                let codes = [ErrorCode::Busy, ErrorCode::Refused, ErrorCode::RoomNotFound];
                assert!(codes.contains(&error.code()), "{error:?}");
                None
            }
        }
    }

    /// Puts a room in that came from elsewhere, or was taken out of this shard.
    pub(super) fn put_in(&mut self, shard: u16, parcel: Parcel) {
        let mut bytes = Vec::new();
        playfield_state::Data::encode(&parcel, &mut bytes);
        let parcel = parcel::check(&bytes, &self.node).unwrap();
        let (answer, mut answered) = Answering::new();
        self.post(shard, ShardMail::PutIn(Box::new(PutIn { parcel, answer })));
        answered.try_recv().unwrap().unwrap();
    }

    /// Moves a room to a shard, which may be its own. Returns the clients whose sessions move.
    pub(super) fn move_room(&mut self, id: &str, shard: u16, clients: &[Client]) -> Vec<Client> {
        let sessions: Vec<_> = clients.iter().map(|client| self.session_of(*client)).collect();
        let before = RoomId::parse(id).and_then(|id| self.node.directory.find(id));
        let Some(parcel) = self.take_out(id, true) else { return Vec::new() };
        let moves = |session: &Option<u64>| session.is_some_and(|of| parcel.numbers.contains(&of));
        let moved = clients.iter().zip(&sessions).filter(|(_, session)| moves(session));
        let moved = moved.map(|(client, _)| *client).collect();
        if before.is_some_and(|place| place.shard != shard) {
            self.node.remove_room(RoomId::parse(id).unwrap());
        }
        self.put_in(shard, parcel);
        moved
    }
}

/// The places in the steps at which a room moves to a shard.
type Moves = Vec<(usize, usize, u16)>;

fn moves() -> impl Strategy<Value = Moves> {
    proptest::collection::vec((0..100_usize, 0..2_usize, 0..2_u16), 1..8)
}

fn with_moves(steps: &[Step], moves: &Moves) -> Vec<Step> {
    let mut all = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let here = moves.iter().filter(|(at, ..)| at % steps.len() == number);
        all.extend(here.map(|&(_, room, shard)| Step::Move { room, shard }));
        all.push(step.clone());
    }
    all
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..config(100) })]

    #[test]
    fn copies_and_events_go_on_in_another_shard(
        pace in paces(),
        steps in steps(),
        moves in moves(),
        forgets in any::<bool>(),
    ) {
        let steps = with_moves(&steps, &moves);
        Play::of(pace, forgets).run_watched(&steps, |_, _| {});
    }
}

#[test]
fn a_client_that_has_all_gets_patches_after_moves_and_no_snapshot() {
    let mut steps = vec![
        Step::Join { seat: 0, room: 0 },
        Step::Join { seat: 1, room: 0 },
        Step::Act { seat: 0, pick: 0, seed: 1 },
        Step::Wait { ms: 120 },
    ];
    for shard in [1, 1, 0] {
        steps.extend([
            Step::Act { seat: 1, pick: 0, seed: 5 },
            Step::Move { room: 0, shard },
            Step::Return { seat: 0, shard: 0 },
            Step::Return { seat: 1, shard: 1 },
            Step::Act { seat: 0, pick: 0, seed: 12 },
            Step::Wait { ms: 120 },
        ]);
    }
    let mut play = Play::of(Pace::Rate, false);
    let mut moved = 0;
    play.run_watched(&steps, |play, step| {
        if let Step::Move { .. } = step {
            moved += play.seats.iter().filter(|seat| seat.client.is_none()).count() - 3;
        }
    });
    assert_eq!(moved, 6, "both sessions move each time");
    assert_eq!(play.seats.iter().map(|seat| seat.snapshots).sum::<usize>(), 2);
}

#[test]
fn a_room_that_is_put_back_goes_on_with_its_sessions() {
    let mut world = World::new(2, &[]);
    let (client, id) = in_new_room(&mut world);
    let session = world.session_of(client).unwrap();
    let parcel = world.take_out(&id, false).unwrap();
    assert_eq!((world.sessions().0, world.members()), (0, 0));
    assert!(world.is_over(client));
    world.wait(500);
    world.put_in(0, parcel);
    assert_eq!((world.sessions().0, world.members()), (1, 1));
    assert_eq!(world.node.moved.place_of(session), None);
    let place = world.node.directory.find(RoomId::parse(&id).unwrap());
    assert_eq!(place.map(|place| place.shard), Some(0));
}

#[test]
fn times_go_on_by_the_clock_of_the_other_node() {
    let (mut one, mut other) = (World::new(1, &[]), World::new(2, &[]));
    one.wait(60_000);
    other.now = Duration::from_secs(3_600);
    let (_, id) = in_new_room(&mut one);
    one.wait(5_000);
    let parcel = one.take_out(&id, false).unwrap();
    other.put_in(1, parcel);
    let room = RoomId::parse(&id).unwrap();
    let shard = &mut other.shards[1];
    let key = shard.host.by_id[&room];
    let created = shard.host.rooms.get(key).unwrap().created;
    let age = Duration::from_secs(3_600) - created;
    assert!((4_900..5_300).contains(&age.as_millis()), "{age:?}");
}
