//! Events that wait for players who are entering: what they take is counted, and bounded.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use super::speech::encoded;
use super::wanderer::{Return, Wanderer};
use super::world::World;

/// A room that shows itself once a second.
const SELDOM: &str = "sync=1 tick=0";
/// Returns how many events of a `burst` of eight a client hears that enters a room of this shard,
/// and is away meanwhile; `None` if the join failed. Also returns how many bytes waited for it.
fn enters_while_away(shard: usize, resume_bytes_max: usize) -> (Option<usize>, usize) {
    let mut world =
        World::new(2, &[("limits.session.resume_bytes", &resume_bytes_max.to_string())]);
    let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
    ann.room(&mut world, "");
    let mut host = Wanderer::new(&mut world, shard, false, Format::Packed);
    let there = host.room(&mut world, SELDOM);
    let id = host.rooms[&there].id.clone();
    let request = RequestNumber(5);
    ann.say(&mut world, &ClientMessage::Join(client::Join { request, room: id.into() }));
    ann.listen(&mut world);
    ann.acknowledge(&mut world);
    let (home, key) = world.place_of(ann.client);
    ann.cut(&mut world, usize::MAX);
    ann.heard.clear();
    host.request(&mut world, there, 1, "burst", "8");
    let bytes = world.entering_bytes(home, key);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    world.wait(1100);
    ann.listen(&mut world);
    assert_eq!((ann.goodbye, world.sessions()), (None, (2, 0)));
    assert_eq!(world.entering_bytes(home, key), 0);
    let is_in = ann.rooms.len() == 2;
    let error = format!("Some(5): {}", ErrorCode::TooSlow);
    assert_eq!(is_in, !ann.heard.contains(&error), "{:?}", ann.heard);
    let events = ann.heard.iter().filter(|heard| heard.contains("xxx")).count();
    (is_in.then_some(events), bytes)
}

#[test]
fn who_is_away_loses_the_seat_if_events_before_the_first_sync_exceed_resume_bytes_max() {
    for shard in [0, 1] {
        let (events, bytes) = enters_while_away(shard, 100_000);
        assert_eq!((events, bytes > 8000), (Some(8), true), "shard {shard}");
        assert_eq!(enters_while_away(shard, bytes), (Some(8), bytes), "shard {shard}");
        assert_eq!(enters_while_away(shard, bytes - 1), (None, 0), "shard {shard}");
    }
}

#[test]
fn events_that_wait_for_players_who_are_entering_count_in_the_budget_of_their_address() {
    for shard in [0, 1] {
        let mut world = World::new(2, &[("limits.memory.per_address", "150000")]);
        let mut host = Wanderer::new(&mut world, shard, false, Format::Packed);
        let there = host.room(&mut world, SELDOM);
        let id = host.rooms[&there].id.clone();
        let mut strangers = Vec::new();
        for _ in 0..4 {
            let stranger = world.client_from([203, 0, 113, 5], 0);
            world.heard(stranger);
            world.room(stranger, "");
            let join = ClientMessage::Join(client::Join {
                request: RequestNumber(5),
                room: id.clone().into(),
            });
            world.say(stranger, &encoded(Format::Packed, &join));
            strangers.push(stranger);
        }
        host.request(&mut world, there, 1, "burst", "50");
        world.wait(1);
        let gone = strangers.iter().filter(|stranger| world.is_over(**stranger)).count();
        let closed = (0..2).map(|shard| world.counters(shard).closed_over_budget).sum::<u64>();
        assert!((1..=3).contains(&gone) && closed == gone as u64, "{gone} on shard {shard}");
        world.wait(1100);
        for stranger in strangers {
            if world.is_over(stranger) {
                continue;
            }
            let (home, key) = world.place_of(stranger);
            assert_eq!(world.entering_bytes(home, key), 0);
        }
    }
}
