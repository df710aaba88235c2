//! More rooms than a shard has time for.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playfield_room::{Context, Room, RoomType, room};
use playfield_state::State;

use super::speech::Heard;
use super::timing::enter;
use super::world::{Client, World};
use crate::shard::work::Founder;

thread_local! {
    /// The stopwatch of the test on this thread.
    static STOPWATCH: RefCell<Option<Arc<[AtomicU64; 2]>>> = const { RefCell::new(None) };
}

/// The time of a tick, in nanoseconds.
const TICK_NS: u64 = 300_000;
/// The time that passes whenever the shard reads its stopwatch: about seven times for a room, two
/// of them for its sync.
const LOOK: Duration = Duration::from_micros(50);
/// The number of rooms that take 80 % of the time.
const FIT: u32 = 60;

/// A room whose ticks take time, and change what its players see.
#[derive(State, Default)]
struct Toil {
    ticks: u32,
}

#[room(tick_hz = 20, sync_hz = 20)]
impl Room for Toil {
    fn tick(&mut self, _: &mut Context<Self>) {
        self.ticks += 1;
        STOPWATCH.with_borrow(|stopwatch| {
            if let Some(stopwatch) = stopwatch {
                stopwatch[0].fetch_add(TICK_NS, Ordering::Relaxed);
            }
        });
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Toil>("toil")
}

/// A shard with so many rooms, and their players, who all come from one address.
fn shard(rooms: u32) -> (World, Vec<Client>) {
    shard_of(rooms, |_| [10, 0, 0, 1])
}

/// The same, with the address of each player.
fn shard_of(rooms: u32, address: impl Fn(u32) -> [u8; 4]) -> (World, Vec<Client>) {
    let settings = [("rooms.lateness", "0ms"), ("rooms.busy_percent", "0")];
    let mut world = World::new(1, &settings);
    let clients: Vec<Client> =
        (0..rooms).map(|number| world.client_from(address(number), 0)).collect();
    for &client in &clients {
        world.heard(client);
        enter(&mut world, client, "toil");
    }
    world.each_look_takes(LOOK);
    STOPWATCH.set(Some(world.stopwatch()));
    (world, clients)
}

/// The ticks of a room in a second, on average, and the patches that each player got in one.
fn rates(world: &mut World, clients: &[Client]) -> (u64, Range<usize>) {
    let seconds = 4;
    clients.iter().for_each(|&client| drop(world.heard(client)));
    let before = world.counters(0).ticks;
    world.work(0, Duration::from_secs(seconds));
    let room_seconds = clients.len() as u64 * seconds;
    let ticks = (world.counters(0).ticks - before + room_seconds / 2) / room_seconds;
    let patches = clients.iter().map(|&client| {
        let heard = world.heard(client);
        heard.iter().filter(|heard| matches!(heard, Heard::Patch { .. })).count()
    });
    let seconds = seconds as usize;
    let patches: Vec<usize> = patches.map(|patches| (patches + seconds / 2) / seconds).collect();
    let (least, most) = (patches.iter().min().unwrap(), patches.iter().max().unwrap());
    (ticks, *least..*most + 1)
}

#[test]
fn twice_the_rooms_that_fit_get_about_half_of_the_patches_each() {
    let (mut world, clients) = shard(FIT);
    assert_eq!(rates(&mut world, &clients), (20, 20..21));
    let (mut world, clients) = shard(2 * FIT);
    world.work(0, Duration::from_secs(2));
    let (ticks, patches) = rates(&mut world, &clients);
    assert!(patches.start >= 10 && patches.len() <= 2, "{patches:?}");
    assert!((10..20).contains(&ticks), "{ticks}");
}

#[test]
fn a_shard_that_fits_makes_up_for_what_it_missed() {
    let (mut world, clients) = shard(FIT);
    world.work(0, Duration::from_secs(1));
    let before = world.counters(0);
    for _ in 0..3 {
        world.oversleep(100);
        world.work(0, Duration::from_millis(1300));
    }
    let after = world.counters(0);
    assert_eq!(after.ticks_skipped - before.ticks_skipped, 0);
    assert_eq!((after.ticks - before.ticks) / clients.len() as u64, 84);
}

/// However many rooms others create, from however many addresses.
#[test]
fn a_room_is_on_time_whose_founder_has_few_while_others_have_more_than_fit() {
    for addresses in [1, 10] {
        let (mut world, clients) = shard_of(2 * FIT, |number| match number {
            0 => [10, 0, 0, 1],
            _ => [10, 1, 0, (number % addresses) as u8],
        });
        world.work(0, Duration::from_secs(2));
        let (_, patches) = rates(&mut world, &clients[..1]);
        assert!(patches.start >= 19, "{patches:?} beside {addresses} addresses");
        let (_, patches) = rates(&mut world, &clients[1..]);
        assert!(patches.start >= 9 && patches.len() <= 3, "{patches:?} of {addresses} addresses");
    }
}

/// Its rooms are not one client's, as those that clients create are.
#[test]
fn rooms_of_the_program_come_before_those_that_clients_create() {
    let (mut world, clients) = shard_of(2 * FIT, |number| [10, 1, 0, (number % 50) as u8]);
    for key in world.shards[0].host.rooms.keys().into_iter().take(FIT as usize / 2) {
        world.shards[0].host.rooms.get_mut(key).unwrap().founder = Founder::Program;
    }
    world.work(0, Duration::from_secs(2));
    let (_, patches) = rates(&mut world, &clients[..FIT as usize / 2]);
    assert!(patches.start >= 19, "{patches:?}");
}
