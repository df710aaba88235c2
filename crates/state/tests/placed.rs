//! Views by place: they send what a view function would, and stay small where it gets crowded.

use crate::common;

use common::Dice;
use playfield_state::{
    Format, JsonMirror, Map, Mirror, PlayerId, State, Tracker, Tracking, TreeFormat, view,
    view_after,
};

const ANN: PlayerId = PlayerId(1);

#[derive(State, Default)]
struct Unit {
    x: f32,
    y: f32,
    floor: u8,
    hp: u16,
}

#[derive(State, Default)]
struct Eye {
    x: f32,
    y: f32,
    floor: u8,
    #[sync(hidden)]
    asleep: bool,
}

fn unit_at(unit: &Unit) -> [f32; 2] {
    [unit.x, unit.y]
}

fn eye_at(eye: &Eye) -> Option<[f32; 2]> {
    (!eye.asleep).then_some([eye.x, eye.y])
}

fn sees(unit: &Unit, eye: &Eye) -> bool {
    let (x, y) = (f64::from(unit.x) - f64::from(eye.x), f64::from(unit.y) - f64::from(eye.y));
    !eye.asleep && unit.floor == eye.floor && x * x + y * y <= 9.0
}

/// Two states of one shape.
macro_rules! worlds {
    ($($name:ident($($policy:tt)*))*) => {$(
        #[derive(State, Default)]
        struct $name {
            eyes: Map<PlayerId, Eye>,
            #[sync($($policy)*)]
            units: Map<u32, Unit>,
        }
    )*};
}

worlds! {
    Placed(near = (unit_at, eye_at), same = [floor], viewer = eyes, radius = 3.0)
    Asked(view = sees, viewer = eyes)
    Lasting(near = (unit_at, eye_at), viewer = eyes, radius = 3.0, hysteresis = 2.0)
    Crowded(near = [x, y], viewer = eyes, radius = 3.0, nearest = 2)
    Open(near = [x, y], viewer = eyes, radius = 3.0)
}

fn some_number(dice: &mut Dice) -> f32 {
    match dice.pick(40) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => -3e38,
        3 => 1e-40,
        _ => dice.pick(160) as f32 / 8.0 - 10.0,
    }
}

fn step(eyes: &mut Map<PlayerId, Eye>, units: &mut Map<u32, Unit>, dice: &mut Dice) {
    for _ in 0..dice.pick(12) {
        let key = dice.pick(60) as u32;
        match dice.pick(12) {
            0 => drop(units.remove(&key)),
            1 => units.values_mut().for_each(|unit| unit.x += 0.25),
            2 => units.get_or_default(key).floor = dice.pick(2) as u8,
            3 => units.get_or_default(key).hp += 1,
            _ => {
                let (x, y) = (some_number(dice), some_number(dice));
                let unit = units.get_or_default(key);
                (unit.x, unit.y) = (x, y);
            }
        }
    }
    let player = PlayerId(1 + dice.pick(5) as u64);
    match dice.pick(6) {
        0 => drop(eyes.remove(&player)),
        1 => eyes.get_or_default(player).floor = dice.pick(2) as u8,
        2 => eyes.get_or_default(player).asleep = dice.once_in(2),
        3 => {
            let (x, y) = (some_number(dice), some_number(dice));
            let eye = eyes.get_or_default(player);
            (eye.x, eye.y) = (x, y);
        }
        _ => {}
    }
}

fn patch<T: State>(
    tracker: &mut Tracker<T>,
    player: PlayerId,
    since: u64,
    format: Format,
) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    tracker.patch(player, since, format, &mut body).then_some(body)
}

/// Returns the units that a player sees.
fn seen<T: State + Default>(tracker: &mut Tracker<T>, player: PlayerId) -> Vec<u32> {
    let (mut copy, mut body) = (JsonMirror::new(), Vec::new());
    tracker.snapshot(player, Format::Json, &mut body);
    copy.snapshot(&body).unwrap();
    let units = copy.state()["units"].as_object().unwrap();
    let mut seen: Vec<u32> = units.keys().map(|key| key.parse().unwrap()).collect();
    seen.sort_unstable();
    seen
}

#[test]
fn a_view_by_place_sends_the_bytes_of_a_function_that_decides_the_same() {
    for seed in 0..40 {
        let tracking = if seed % 4 == 0 { Tracking::Off } else { Tracking::On };
        let (mut placed, mut asked) = (Placed::default(), Asked::default());
        let mut one = Tracker::new(&mut placed, tracking);
        let mut two = Tracker::new(&mut asked, Tracking::On);
        for round in 0..80_u64 {
            let seed = seed * 1_000 + round;
            step(&mut placed.eyes, &mut placed.units, &mut Dice::new(seed));
            step(&mut asked.eyes, &mut asked.units, &mut Dice::new(seed));
            one.sync(&mut placed);
            two.sync(&mut asked);
            for player in (1..6).map(PlayerId) {
                for (format, back) in [(Format::Packed, 1), (Format::Packed, 7), (Format::Json, 2)]
                {
                    let since = one.version().saturating_sub(back).max(1);
                    let bodies = (
                        patch(&mut one, player, since, format),
                        patch(&mut two, player, since, format),
                    );
                    assert_eq!(bodies.0, bodies.1, "seed {seed}, player {player}, {format:?}");
                    assert_eq!(one.digest(player, format), two.digest(player, format));
                }
                assert_eq!(view(&placed, Some(player)), view(&asked, Some(player)));
            }
        }
    }
}

fn at<T: Default>(set: impl FnOnce(&mut T)) -> T {
    let mut value = T::default();
    set(&mut value);
    value
}

fn unit(x: f32) -> Unit {
    at(|unit: &mut Unit| unit.x = x)
}

#[test]
fn who_is_nowhere_sees_nothing_and_is_seen_by_nobody() {
    let mut world = Placed::default();
    world.eyes.insert(ANN, Eye::default());
    let spots = [0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0];
    world.units = (0..).zip(spots.map(unit)).collect();
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    assert_eq!(seen(&mut tracker, ANN), [0, 4]);
    for lost in [f32::NAN, f32::INFINITY] {
        world.eyes.get_or_default(ANN).x = lost;
        tracker.sync(&mut world);
        assert!(seen(&mut tracker, ANN).is_empty());
        world.eyes.get_or_default(ANN).x = 0.0;
        tracker.sync(&mut world);
        assert_eq!(seen(&mut tracker, ANN), [0, 4]);
    }
    world.eyes.get_or_default(ANN).asleep = true;
    tracker.sync(&mut world);
    assert!(seen(&mut tracker, ANN).is_empty());
}

#[test]
fn hysteresis_keeps_in_view_what_was_seen() {
    let mut world = Lasting::default();
    world.eyes.insert(ANN, Eye::default());
    world.units.insert(1, unit(4.0));
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    for (x, is_seen) in
        [(4.0, false), (3.0, true), (4.0, true), (5.0, true), (5.1, false), (4.0, false)]
    {
        world.units.get_or_default(1).x = x;
        tracker.sync(&mut world);
        assert_eq!(seen(&mut tracker, ANN) == [1], is_seen, "at {x}");
        // What a player sees is also right for one who already sees it.
        let mut body = Vec::new();
        let mut copy = JsonMirror::new();
        tracker.snapshot(ANN, Format::Json, &mut body);
        copy.snapshot(&body).unwrap();
        assert_eq!(*copy.state(), view_after(TreeFormat::Json, &world, ANN, copy.state()));
    }
    // An entry that was removed is another one when it is back.
    world.units.get_or_default(1).x = 2.0;
    tracker.sync(&mut world);
    world.units.remove(&1);
    tracker.sync(&mut world);
    world.units.insert(1, unit(4.0));
    tracker.sync(&mut world);
    assert!(seen(&mut tracker, ANN).is_empty());
}

#[test]
fn the_cap_takes_the_nearest_and_of_equally_near_ones_the_least_keys() {
    let mut world = Crowded::default();
    world.eyes.insert(ANN, Eye::default());
    world.units = (0..).zip([2.0, 1.0, -1.0, 1.0, 9.0].map(unit)).collect();
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    assert_eq!((seen(&mut tracker, ANN), tracker.left_out(ANN)), (vec![1, 2], 2));
    world.units.remove(&1);
    tracker.sync(&mut world);
    assert_eq!((seen(&mut tracker, ANN), tracker.left_out(ANN)), (vec![2, 3], 1));
    world.units.remove(&2);
    tracker.sync(&mut world);
    assert_eq!((seen(&mut tracker, ANN), tracker.left_out(ANN)), (vec![0, 3], 0));
    world.eyes.remove(&ANN);
    tracker.sync(&mut world);
    assert_eq!((seen(&mut tracker, ANN), tracker.left_out(ANN)), (vec![], 0));
}

#[test]
fn without_a_cap_of_its_own_a_view_shows_4096_entries() {
    let mut world = Open::default();
    world.eyes.insert(ANN, Eye::default());
    world.units = (0..4_097).map(|key| (key, unit(0.5))).collect();
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    assert_eq!(seen(&mut tracker, ANN).len(), 4_096);
    assert_eq!(tracker.left_out(ANN), 1);
    world.units.remove(&7);
    tracker.sync(&mut world);
    assert_eq!(seen(&mut tracker, ANN).len(), 4_096);
    assert_eq!(tracker.left_out(ANN), 0);
}

#[test]
fn a_hundred_thousand_entries_at_one_point_are_seen_up_to_the_cap() {
    let mut world = Crowded::default();
    world.eyes.extend((1..=20).map(|player| (PlayerId(player), Eye::default())));
    world.units = (0..100_000).map(|key| (key, unit(1.0))).collect();
    let mut tracker = Tracker::new(&mut world, Tracking::On);
    let mut copy = Mirror::<Crowded>::new();
    let mut body = Vec::new();
    tracker.snapshot(ANN, Format::Packed, &mut body);
    copy.snapshot(&body).unwrap();
    for key in [0, 99_999, 1] {
        world.units.get_or_default(key).x = 0.5;
        let since = tracker.version();
        tracker.sync(&mut world);
        copy.patch(&patch(&mut tracker, ANN, since, Format::Packed).unwrap()).unwrap();
    }
    assert_eq!(copy.state().units.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(tracker.left_out(ANN), 99_998);
    assert_eq!(tracker.left_out(PlayerId(99)), 0);
}
