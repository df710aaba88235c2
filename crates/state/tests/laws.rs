//! The two laws of synced state.
//!
//! 1. After every sync, each client's copy equals the server's state, reduced to what that client
//!    may see.
//! 2. Two histories that differ only in what a player may not see send that player identical bytes.
//!
//! `PLAYFIELD_LAW_CASES` sets the number of cases of each law, for a longer run.

use crate::common;

use common::field::{Camera, Field, Zone};
use common::kinds::Kinds;
use common::odd::Odd;
use common::plaza::Plaza;
use common::swarm::Swarm;
use common::world::{Desks, Root, World};
use common::{Dice, Eye, Model};
use playfield_state::{
    DynamicMirror, Format, JsonMirror, Mirror, PlayerId, Tracker, Tracking, TreeFormat,
};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Players 1 to 3 have clients; player 4 has entries but no client.
pub(crate) const PLAYERS: [PlayerId; 3] = [PlayerId(1), PlayerId(2), PlayerId(3)];

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Changes the state at random.
    Mutate(u64),
    /// Changes what is not visible at random.
    Scramble(u64),
    /// Syncs. The seed determines who reads and who is slow.
    Sync(u64),
    /// Syncs until the last change is old.
    Wait,
}

/// More than the versions for which a map remembers removed keys.
const LONG: usize = (1 << 14) + 10;

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => any::<u64>().prop_map(Step::Mutate),
        2 => any::<u64>().prop_map(Step::Scramble),
        3 => any::<u64>().prop_map(Step::Sync),
    ];
    proptest::collection::vec(step, 1..120)
}

/// The number of cases of each law for each state, unless `PLAYFIELD_LAW_CASES` says otherwise. A
/// case has 60 steps on average. `make laws` runs a million steps.
const CASES: u32 = 60;

/// In one of this many cases, copies are also read by the schema.
const DYNAMIC_EVERY: u64 = 4;

/// The number of cases, or a fraction of it for slow ones.
pub(crate) fn config(part: u32) -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(CASES);
    Config {
        cases: (cases / part).max(1),
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..Config::default()
    }
}

pub(crate) fn tracking(on: bool) -> Tracking {
    if on { Tracking::On } else { Tracking::Off }
}

/// Chooses one of the two tree formats with equal probability.
pub(crate) fn one_of_trees(dice: &mut Dice) -> TreeFormat {
    if dice.once_in(2) { TreeFormat::Msgpack } else { TreeFormat::Json }
}

/// One player's copies.
struct Client<T> {
    player: PlayerId,
    packed: Option<(Mirror<T>, u64)>,
    /// Read by the schema from the same bodies as `packed`, in some cases only.
    dynamic: Option<DynamicMirror>,
    tree: Option<(JsonMirror, u64)>,
    /// The format of `tree`.
    format: TreeFormat,
}

impl<T: Root> Client<T> {
    /// Updates some or all of the copies, and checks those.
    fn read(&mut self, world: &T, tracker: &mut Tracker<T>, dice: &mut Dice) {
        let now = tracker.version();
        let mut body = Vec::new();
        if dice.once_in(12) {
            self.packed = None;
            self.tree = None;
        }
        match &mut self.packed {
            None => {
                let mut mirror = Mirror::new();
                tracker.snapshot(self.player, Format::Packed, &mut body);
                mirror.snapshot(&body).unwrap();
                self.packed = Some((mirror, now));
                if let Some(mirror) = &mut self.dynamic {
                    mirror.snapshot(&body).unwrap_or_else(|error| panic!("{error} in {body:02x?}"));
                }
            }
            Some((mirror, at)) if !dice.once_in(3) => {
                if tracker.patch(self.player, *at, Format::Packed, &mut body) {
                    mirror.patch(&body).unwrap_or_else(|error| panic!("{error} in {body:02x?}"));
                    *at = now;
                    if let Some(mirror) = &mut self.dynamic {
                        mirror
                            .patch(&body)
                            .unwrap_or_else(|error| panic!("{error} in {body:02x?}"));
                    }
                } else if dice.once_in(2) {
                    *at = now; // equal already: the base may stay or be the current version
                }
            }
            Some(_) => return,
        }
        let packed = &self.packed.as_ref().unwrap().0;
        let mirror = packed.state();
        let eye = Eye::of(self.player);
        let seen = world.redact(eye);
        assert!(mirror.equals(&seen), "packed, {eye:?}\ncopy {mirror:?}\nseen {seen:?}");
        let digest = tracker.digest(self.player, Format::Packed);
        assert_eq!(packed.digest(), digest, "digest, {eye:?}");
        if let Some(mirror) = &self.dynamic {
            assert_eq!(
                *mirror.state(),
                world.look(TreeFormat::Json, self.player),
                "dynamic, {eye:?}"
            );
            assert_eq!(mirror.digest(), digest, "dynamic digest, {eye:?}");
        }
        body.clear();
        if dice.once_in(8) {
            self.tree = None; // it needs a snapshot
        }
        match &mut self.tree {
            None => {
                self.format = one_of_trees(dice);
                let mut mirror = JsonMirror::of(self.format);
                tracker.snapshot(self.player, self.format.into(), &mut body);
                mirror.snapshot(&body).unwrap();
                self.tree = Some((mirror, now));
            }
            Some((mirror, at)) if !dice.once_in(3) => {
                if tracker.patch(self.player, *at, self.format.into(), &mut body) {
                    mirror.patch(&body).unwrap_or_else(|error| {
                        panic!("{error} in {}", String::from_utf8_lossy(&body))
                    });
                    *at = now;
                } else if dice.once_in(2) {
                    *at = now;
                }
            }
            Some(_) => return,
        }
        let mirror = &self.tree.as_ref().unwrap().0;
        assert_eq!(
            *mirror.state(),
            world.look(self.format, self.player),
            "{:?}, {eye:?}",
            self.format
        );
        let digest = tracker.digest(self.player, self.format.into());
        assert_eq!(mirror.digest(), digest, "digest, {:?}, {eye:?}", self.format);
    }
}

fn copies_equal_the_filtered_state<T: Root>(start: u64, steps: &[Step], tracking: Tracking) {
    let mut world = T::changed(start);
    let mut tracker = Tracker::new(&mut world, tracking);
    world.synced();
    let schema = T::schema();
    let is_dynamic = start.is_multiple_of(DYNAMIC_EVERY);
    let mut clients = PLAYERS.map(|player| {
        let dynamic = is_dynamic.then(|| DynamicMirror::new(&schema, player).unwrap());
        Client { player, packed: None, dynamic, tree: None, format: TreeFormat::Json }
    });
    for step in steps {
        match step {
            Step::Mutate(seed) => world.change(&mut Dice::new(*seed)),
            Step::Scramble(seed) => world.scramble(&mut Dice::new(*seed), Eye::of(PLAYERS[0])),
            Step::Sync(seed) => {
                tracker.sync(&mut world);
                world.synced();
                let mut dice = Dice::new(*seed);
                for client in &mut clients {
                    client.read(&world, &mut tracker, &mut dice);
                }
            }
            Step::Wait => {
                (0..LONG).for_each(|_| tracker.sync(&mut world));
                world.synced();
            }
        }
    }
}

/// The bodies for one player in one history, in `packed` and in a tree format.
pub(crate) fn bodies<T: Root>(
    tracker: &mut Tracker<T>,
    viewer: PlayerId,
    since: u64,
    format: TreeFormat,
) -> [Option<Vec<u8>>; 4] {
    let mut patch = |format| {
        let mut body = Vec::new();
        tracker.patch(viewer, since, format, &mut body).then_some(body)
    };
    let [packed, tree] = [Format::Packed, format.into()].map(&mut patch);
    let [whole, whole_tree] = [Format::Packed, format.into()].map(|format| {
        let mut body = Vec::new();
        tracker.snapshot(viewer, format, &mut body);
        Some(body)
    });
    [packed, tree, whole, whole_tree]
}

pub(crate) fn shown(bodies: &[Option<Vec<u8>>; 4]) -> String {
    let [packed, tree, whole, whole_tree] = bodies;
    let text = |body: &Option<Vec<u8>>| body.as_deref().map(|body| body.escape_ascii().to_string());
    format!("{packed:02x?}\n{:?}\n{whole:02x?}\n{:?}", text(tree), text(whole_tree))
}

/// If a value moved to where the viewer can see it, makes it the same in both.
fn look_alike<T: Root>([a, b]: &mut [T; 2], eye: Eye, seed: u64) {
    if !looks_like(a, b, eye) {
        *b = a.clone();
        b.scramble(&mut Dice::new(seed), eye);
        assert!(looks_like(a, b, eye), "the model scrambles only what is not visible");
    }
}

/// Whether both look the same. If something has its default value, only trees show whether it is
/// visible.
fn looks_like<T: Root>(a: &T, b: &T, eye: Eye) -> bool {
    a.redact(eye).equals(&b.redact(eye))
        && a.look(TreeFormat::Json, eye.viewer) == b.look(TreeFormat::Json, eye.viewer)
}

fn nothing_leaks<T: Root>(start: u64, steps: &[Step], viewer: PlayerId, on: [bool; 2]) {
    let eye = Eye::of(viewer);
    let mut worlds = [T::changed(start), T::changed(start)];
    worlds[1].scramble(&mut Dice::new(7), eye);
    let [a, b] = &mut worlds;
    let mut trackers = [Tracker::new(a, tracking(on[0])), Tracker::new(b, tracking(on[1]))];
    worlds.iter_mut().for_each(Root::synced);
    for step in steps {
        match step {
            Step::Mutate(seed) => {
                worlds.iter_mut().for_each(|world| world.change(&mut Dice::new(*seed)));
            }
            Step::Scramble(seed) => worlds[*seed as usize % 2].scramble(&mut Dice::new(*seed), eye),
            Step::Sync(seed) => {
                look_alike(&mut worlds, eye, *seed);
                for (tracker, world) in trackers.iter_mut().zip(&mut worlds) {
                    tracker.sync(world);
                    world.synced();
                }
                let now = trackers[0].version();
                let mut dice = Dice::new(*seed);
                for since in [
                    now - 1,
                    1 + dice.pick(now as usize) as u64,
                    1 + dice.pick(20).min(now as usize - 1) as u64,
                ] {
                    let [a, b] = &mut trackers;
                    let format = one_of_trees(&mut dice);
                    let (a, b) =
                        (bodies(a, viewer, since, format), bodies(b, viewer, since, format));
                    assert!(
                        a == b,
                        "from {since} to {now}\none:\n{}\nother:\n{}",
                        shown(&a),
                        shown(&b)
                    );
                }
            }
            Step::Wait => {
                look_alike(&mut worlds, eye, 0);
                for (tracker, world) in trackers.iter_mut().zip(&mut worlds) {
                    (0..LONG).for_each(|_| tracker.sync(world));
                    world.synced();
                }
            }
        }
    }
}

fn tracking_shows_in_no_byte<T: Root>(start: u64, steps: &[Step]) {
    let mut worlds = [T::changed(start), T::changed(start)];
    let [a, b] = &mut worlds;
    let mut trackers = [Tracker::new(a, Tracking::On), Tracker::new(b, Tracking::Off)];
    for step in steps {
        match step {
            Step::Mutate(seed) => {
                worlds.iter_mut().for_each(|world| world.change(&mut Dice::new(*seed)));
            }
            Step::Scramble(seed) => {
                worlds
                    .iter_mut()
                    .for_each(|world| world.scramble(&mut Dice::new(*seed), Eye::of(PLAYERS[1])));
            }
            Step::Sync(seed) => {
                for (tracker, world) in trackers.iter_mut().zip(&mut worlds) {
                    tracker.sync(world);
                    world.synced();
                }
                let now = trackers[0].version();
                for viewer in PLAYERS {
                    let mut dice = Dice::new(*seed);
                    let since = 1 + dice.pick(now as usize) as u64;
                    let format = one_of_trees(&mut dice);
                    let [a, b] = &mut trackers;
                    let (a, b) =
                        (bodies(a, viewer, since, format), bodies(b, viewer, since, format));
                    assert!(
                        a == b,
                        "from {since} to {now}\non:\n{}\noff:\n{}",
                        shown(&a),
                        shown(&b)
                    );
                }
            }
            Step::Wait => {}
        }
    }
}

/// Steps with a long absence in them.
fn with_a_long_wait(mut steps: Vec<Step>, place: usize) -> Vec<Step> {
    steps.insert(place % (steps.len() + 1), Step::Wait);
    steps
}

/// Both laws, for one type of state.
macro_rules! laws {
    ($name:ident, $state:ty) => {
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(config(1))]

                #[test]
                fn law_one_copies_equal_the_filtered_state(
                    start in 0..80_u64, steps in steps(), on in any::<bool>()
                ) {
                    copies_equal_the_filtered_state::<$state>(start, &steps, tracking(on));
                }

                #[test]
                fn law_two_nothing_leaks(
                    start in 0..80_u64, steps in steps(), viewer in 0..3_usize, on in any::<[bool; 2]>()
                ) {
                    nothing_leaks::<$state>(start, &steps, PLAYERS[viewer], on);
                }

                #[test]
                fn law_two_tracking_shows_in_no_byte(start in 0..80_u64, steps in steps()) {
                    tracking_shows_in_no_byte::<$state>(start, &steps);
                }
            }

            proptest! {
                #![proptest_config(config(100))]

                #[test]
                fn law_one_holds_after_a_long_absence(
                    start in 0..80_u64, steps in steps(), place in any::<usize>(), on in any::<bool>()
                ) {
                    copies_equal_the_filtered_state::<$state>(start, &with_a_long_wait(steps, place), tracking(on));
                }

                #[test]
                fn law_two_holds_after_a_long_absence(
                    start in 0..80_u64,
                    steps in steps(),
                    place in any::<usize>(),
                    viewer in 0..3_usize,
                    on in any::<[bool; 2]>(),
                ) {
                    nothing_leaks::<$state>(start, &with_a_long_wait(steps, place), PLAYERS[viewer], on);
                }
            }
        }
    };
}

/// A depth of 0 that is visible, and one that is too deep to be visible, differ only in that.
#[test]
fn the_model_distinguishes_a_default_from_an_unseen_value() {
    let viewer = PLAYERS[0];
    let zone = |depth| Zone {
        depth,
        scouts: [(viewer, Camera { level: 1 })].into_iter().collect(),
        ..Zone::default()
    };
    let field = Field { rows: [zone(0), zone(3)].into_iter().collect(), ..Field::default() };
    let eye = Eye::of(viewer);
    for seed in 0..2_000 {
        let mut other = field.clone();
        other.scramble(&mut Dice::new(seed), eye);
        assert!(looks_like(&field, &other, eye), "seed {seed}: {:?}", other.rows);
    }
}

laws!(world, World);
laws!(desks, Desks);
laws!(swarm, Swarm);
laws!(kinds, Kinds);
laws!(field, Field);
laws!(odd, Odd);
laws!(plaza, Plaza);
