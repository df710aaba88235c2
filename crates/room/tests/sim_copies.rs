//! `Sim` compares copies with what was computed from the state, and never filters a copy.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{Context, Player, PlayerId, Result, Room, room};
use playfield_state::{Format, Map, State};

/// The sight of a player.
#[derive(State, Default)]
struct Eye {
    reach: f32,
}

#[derive(State, Default)]
struct Mark {
    #[sync(quantize = 0.5)]
    at: f32,
    #[sync(hidden)]
    is_buried: bool,
}

#[derive(State, Default)]
struct Island {
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
    #[sync(view = in_reach, viewer = eyes)]
    marks: Map<u32, Mark>,
    #[sync(mask = doubled)]
    depth: u32,
}

fn in_reach(mark: &Mark, eye: &Eye) -> bool {
    mark.at <= eye.reach && !mark.is_buried
}

/// Applied twice, it gives something else.
fn doubled(depth: &u32) -> u32 {
    depth * 2
}

#[room(tick_hz = 10)]
impl Room for Island {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.eyes.insert(player.id(), Eye { reach: 1.4 });
        Ok(())
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.depth += 1;
    }
}

fn marks(sim: &Sim<Island>, player: PlayerId) -> Vec<u32> {
    sim.copy(player).marks.keys().copied().collect()
}

#[test]
fn views_and_masks_are_not_applied_to_copies_again() {
    let mut sim = Sim::<Island>::new(1);
    let players = [Format::Packed, Format::Json, Format::Msgpack]
        .map(|format| sim.join_in("Ann", format).unwrap());
    // The copy has the first at 1.5, out of the reach of 1.4; the third is in reach, but buried.
    for (key, at, is_buried) in [(1, 1.3, false), (2, 1.6, false), (3, 0.1, true), (4, 0.1, false)]
    {
        sim.room_mut().marks.insert(key, Mark { at, is_buried });
    }
    sim.advance(Duration::from_millis(100));
    for player in players {
        assert_eq!(marks(&sim, player), [1, 4]);
        assert_eq!(sim.copy(player).depth, 2);
    }
    sim.room_mut().marks.get_mut(&3).unwrap().is_buried = false;
    sim.sync();
    assert_eq!(marks(&sim, players[0]), [1, 3, 4]);
}

#[test]
fn without_verification_copies_still_follow() {
    let mut sim = Sim::<Island>::new(1);
    sim.verify(false);
    let ann = sim.join("Ann").unwrap();
    sim.advance(Duration::from_millis(300));
    assert_eq!(sim.copy(ann).depth, 6);
    sim.verify(true);
    sim.advance(Duration::from_millis(300));
    assert_eq!(sim.copy(ann).depth, 12);
}

#[derive(State, Default)]
struct Night {
    eyes: Map<PlayerId, Eye>,
    #[sync(view = by_day, viewer = eyes)]
    marks: Map<u32, Mark>,
}

thread_local! {
    static IS_DAY: std::cell::Cell<bool> = const { std::cell::Cell::new(true) };
}

/// Depends on more than its arguments, as a view must not: the room does not ask it again at night.
fn by_day(_: &Mark, _: &Eye) -> bool {
    IS_DAY.get()
}

#[room()]
impl Room for Night {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.eyes.get_or_default(player.id());
        self.marks.get_or_default(1);
        Ok(())
    }
}

/// Checks that what was shown by day stays in the copy at night.
fn see_by_day_and_by_night(verify: bool) {
    let mut sim = Sim::<Night>::new(1);
    sim.verify(verify);
    sim.join("Ann").unwrap();
    IS_DAY.set(false);
    sim.sync();
}

#[test]
#[should_panic(expected = "player 1's packed copy differs from what they may see")]
fn a_copy_that_differs_from_the_state_is_reported() {
    see_by_day_and_by_night(true);
}

#[test]
fn without_verification_it_is_not_reported() {
    see_by_day_and_by_night(false);
}
