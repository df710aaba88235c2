//! The law of thawing: a tracker that goes on from bytes, beside a state that was saved and loaded,
//! sends what it would have sent otherwise, byte for byte.

use crate::common;
use crate::laws;

use common::field::Field;
use common::kinds::Kinds;
use common::odd::Odd;
use common::plaza::Plaza;
use common::swarm::Swarm;
use common::world::{Desks, Root, World};
use common::{Dice, Eye};
use laws::{PLAYERS, Step, bodies, config, one_of_trees, shown, steps, tracking};
use playfield_state::{Format, Tracker, Tracking, load, save};
use proptest::prelude::*;

/// A state and its tracker.
struct Side<T: Root> {
    world: T,
    tracker: Tracker<T>,
}

impl<T: Root> Side<T> {
    fn sync(&mut self) {
        self.tracker.sync(&mut self.world);
        self.world.synced();
    }

    /// The same, made of bytes.
    fn thawed(&self, tracking: Tracking) -> Self {
        let mut slots = Vec::new();
        self.tracker.put_slots(&mut slots);
        let mut world: T = load(&save(&self.world)).unwrap();
        let version = self.tracker.version();
        let tracker = Tracker::thaw(&mut world, tracking, version, Some(&slots)).unwrap();
        let mut again = Vec::new();
        tracker.put_slots(&mut again);
        assert_eq!(again, slots, "what was read is written again");
        Self { world, tracker }
    }
}

/// Compares what both send. `versions` are those since one was thawed.
fn compare<T: Root>(sides: &mut [Side<T>; 2], versions: &[u64], seed: u64) {
    let [thawed, other] = sides;
    let mut dice = Dice::new(seed);
    let now = thawed.tracker.version();
    for viewer in PLAYERS {
        let since = versions[dice.pick(versions.len())];
        let format = one_of_trees(&mut dice);
        let (a, b) = (
            bodies(&mut thawed.tracker, viewer, since, format),
            bodies(&mut other.tracker, viewer, since, format),
        );
        assert!(
            a == b,
            "{viewer} from {since} to {now}\nthawed:\n{}\nnot frozen:\n{}",
            shown(&a),
            shown(&b)
        );
        for format in Format::ALL {
            let digests =
                [&mut *thawed, &mut *other].map(|side| side.tracker.digest(viewer, format));
            assert_eq!(digests[0], digests[1], "digest, {viewer}, {format}");
        }
        assert_eq!(thawed.tracker.left_out(viewer), other.tracker.left_out(viewer));
    }
}

fn thawing_shows_in_no_byte<T: Root>(start: u64, steps: &[Step], tracking: Tracking) {
    let mut world = T::changed(start);
    let tracker = Tracker::new(&mut world, tracking);
    world.synced();
    let other = Side { world, tracker };
    let mut sides = [other.thawed(tracking), other];
    let mut versions = vec![sides[0].tracker.version()];
    for step in steps {
        match step {
            Step::Mutate(seed) => {
                sides.iter_mut().for_each(|side| side.world.change(&mut Dice::new(*seed)));
            }
            Step::Scramble(seed) => {
                let eye = Eye::of(PLAYERS[1]);
                let worlds = sides.iter_mut().map(|side| &mut side.world);
                worlds.for_each(|world| world.scramble(&mut Dice::new(*seed), eye));
            }
            Step::Sync(seed) => {
                sides.iter_mut().for_each(Side::sync);
                versions.push(sides[0].tracker.version());
                compare(&mut sides, &versions, *seed);
                if Dice::new(*seed).once_in(3) {
                    // From the thawed one, so that what is lost adds up.
                    sides[0] = sides[0].thawed(tracking);
                    versions = vec![sides[0].tracker.version()];
                    compare(&mut sides, &versions, *seed);
                }
            }
            Step::Wait => {}
        }
    }
}

macro_rules! laws {
    ($($name:ident: $state:ty,)*) => {
        proptest! {
            #![proptest_config(config(1))]
            $(
                #[test]
                fn $name(start in 0..80_u64, steps in steps(), on in any::<bool>()) {
                    thawing_shows_in_no_byte::<$state>(start, &steps, tracking(on));
                }
            )*
        }
    };
}

laws! {
    thawing_shows_in_no_byte_of_a_world: World,
    thawing_shows_in_no_byte_of_desks: Desks,
    thawing_shows_in_no_byte_of_a_swarm: Swarm,
    thawing_shows_in_no_byte_of_kinds: Kinds,
    thawing_shows_in_no_byte_of_a_field: Field,
    thawing_shows_in_no_byte_of_odd_values: Odd,
    thawing_shows_in_no_byte_of_a_plaza: Plaza,
}
