//! Whatever an older build does with a list and a map, each field that it lacks is beside the value
//! that it belongs to, or gone with it.

use std::collections::BTreeMap;

use playfield_state::{List, Map, Restored, State, Tracker, Tracking, restore, save, save_kept};
use proptest::prelude::*;

#[derive(State, Default, Debug)]
struct Town {
    queue: List<Item>,
    keyed: Map<u8, Item>,
}

#[derive(State, Default, Clone, Debug)]
struct Item {
    known: u8,
}

mod new {
    use playfield_state::{List, Map, State};

    #[derive(State, Default, Debug)]
    pub(super) struct Town {
        pub(super) keyed: Map<u8, Item>,
        pub(super) queue: List<Item>,
    }

    #[derive(State, Default, Debug)]
    pub(super) struct Item {
        pub(super) extra: u32,
        pub(super) known: u8,
    }
}

/// The values that the newer build is to find: the known and the unknown field of each.
#[derive(Clone, Default, Debug, PartialEq)]
struct Model {
    queue: Vec<(u8, u32)>,
    keyed: BTreeMap<u8, (u8, u32)>,
}

/// A room of the older build.
struct Room {
    read: Restored<Town>,
    tracker: Option<Tracker<Town>>,
}

impl Room {
    fn of(bytes: &[u8], is_tracked: bool) -> Self {
        let mut read = restore::<Town>(bytes).unwrap();
        let tracker = is_tracked.then(|| Tracker::new(&mut read.state, Tracking::On));
        read.kept.bind(&read.state);
        Self { read, tracker }
    }

    fn save(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        save_kept(&self.read.state, 0, &mut self.read.kept, &mut bytes);
        bytes
    }
}

fn found(town: &new::Town) -> Model {
    let pair = |item: &new::Item| (item.known, item.extra);
    Model {
        queue: town.queue.iter().map(pair).collect(),
        keyed: town.keyed.iter().map(|(key, item)| (*key, pair(item))).collect(),
    }
}

/// Does a step with both. The last two end the process.
fn step(room: &mut Room, model: &mut Model, (what, a, b): (u8, u8, u8)) {
    let Town { queue, keyed } = &mut room.read.state;
    let length = queue.len();
    let at = |number: u8| usize::from(number) % length.max(1);
    match what {
        0 => {
            queue.insert(at(a), Item { known: b });
            model.queue.insert(at(a), (b, 0));
        }
        1 if length > 0 => {
            queue.remove(at(a));
            model.queue.remove(at(a));
        }
        2 if length > 0 => {
            queue.swap_remove(at(a));
            model.queue.swap_remove(at(a));
        }
        3 if length > 0 => {
            queue.swap(at(a), at(b));
            model.queue.swap(at(a), at(b));
        }
        4 if length > 0 => {
            queue.move_to(at(a), at(b));
            let item = model.queue.remove(at(a));
            model.queue.insert(at(b), item);
        }
        5 => {
            queue.sort_by_key(|item| item.known);
            model.queue.sort_by_key(|item| item.0);
        }
        6 if length > 0 => {
            queue.get_mut(at(a)).unwrap().known = b;
            model.queue[at(a)].0 = b;
        }
        7 => {
            queue.retain(|item| item.known != b);
            model.queue.retain(|item| item.0 != b);
        }
        8 => {
            keyed.insert(a, Item { known: b });
            model.keyed.entry(a).or_default().0 = b;
        }
        9 => {
            keyed.remove(&a);
            model.keyed.remove(&a);
        }
        10 => {
            keyed.retain(|key, _| *key < a);
            model.keyed.retain(|key, _| *key < a);
        }
        11 => {
            if let Some(tracker) = &mut room.tracker {
                tracker.sync(&mut room.read.state);
            }
        }
        12 => _ = room.save(),
        13 => *room = Room::of(&room.save(), b % 2 == 0),
        14 => {
            let town = restore::<new::Town>(&room.save()).unwrap().state;
            assert_eq!(found(&town), *model);
            *room = Room::of(&save(&town), b % 2 == 0);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn unknown_fields_stay_with_their_values(
        queue in prop::collection::vec(0..4_u8, 0..6),
        keys in prop::collection::btree_set(0..4_u8, 0..4),
        is_tracked in any::<bool>(),
        steps in prop::collection::vec((0..15_u8, 0..6_u8, 0..4_u8), 0..40),
    ) {
        let number = |index: usize| index as u32 + 100;
        let mut model = Model {
            queue: queue.iter().enumerate().map(|(index, known)| (*known, number(index))).collect(),
            keyed: keys.iter().map(|key| (*key, (*key, u32::from(*key) + 200))).collect(),
        };
        let item = |(known, extra)| new::Item { known, extra };
        let town = new::Town {
            queue: model.queue.iter().copied().map(item).collect(),
            keyed: model.keyed.iter().map(|(key, of)| (*key, item(*of))).collect(),
        };
        let mut room = Room::of(&save(&town), is_tracked);
        for one in steps {
            step(&mut room, &mut model, one);
        }
        prop_assert_eq!(found(&restore::<new::Town>(&room.save()).unwrap().state), model);
    }
}
