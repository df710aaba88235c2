//! Fields that an older build lacks, whatever it does with the values that have them: they come
//! back beside the same value, or are forgotten and counted. They never reach another one.

use std::collections::BTreeMap;

use playfield_state::{
    List, LoadError, Map, State, Tracker, Tracking, load, restore, save, save_kept, saved_as_json,
};
use serde_json::json;

mod old {
    use playfield_state::{Data, List, Map, State};

    #[derive(State, Default, Debug)]
    pub(super) struct Town {
        pub(super) queue: List<Item>,
        pub(super) other: List<Item>,
        pub(super) keyed: Map<u32, Item>,
        pub(super) pair: [Item; 2],
        pub(super) choice: Option<Item>,
        pub(super) wall: Wall,
        pub(super) rows: List<Row>,
        pub(super) cards: List<Card>,
    }

    #[derive(State, Default, Clone, Debug)]
    pub(super) struct Item {
        pub(super) known: u32,
    }

    #[derive(State, Default, Clone, Debug)]
    pub(super) struct Row {
        pub(super) items: List<Item>,
        pub(super) keyed: Map<u32, Item>,
    }

    #[derive(State, Data, Clone, Default, Debug)]
    pub(super) enum Wall {
        #[default]
        None,
        Built(Vec<Stone>, Vec<Vec<Stone>>),
    }

    #[derive(Data, Clone, Debug)]
    pub(super) struct Stone {
        pub(super) known: u32,
    }

    #[derive(State, Data, Clone, Debug)]
    pub(super) enum Card {
        Number { known: u32 },
    }
}

mod new {
    use playfield_state::{Data, List, Map, State};

    #[derive(State, Default, Debug)]
    pub(super) struct Town {
        pub(super) queue: List<Item>,
        pub(super) other: List<Item>,
        pub(super) keyed: Map<u32, Item>,
        pub(super) pair: [Item; 2],
        pub(super) choice: Option<Item>,
        pub(super) wall: Wall,
        pub(super) rows: List<Row>,
        pub(super) cards: List<Card>,
    }

    #[derive(State, Default, Clone, Debug)]
    pub(super) struct Item {
        pub(super) known: u32,
        pub(super) extra: u32,
    }

    #[derive(State, Default, Clone, Debug)]
    pub(super) struct Row {
        pub(super) items: List<Item>,
        pub(super) keyed: Map<u32, Item>,
    }

    #[derive(State, Data, Clone, Default, Debug)]
    pub(super) enum Wall {
        #[default]
        None,
        Built(Vec<Stone>, Vec<Vec<Stone>>),
    }

    #[derive(Data, Clone, Debug)]
    pub(super) struct Stone {
        pub(super) extra: u32,
        pub(super) known: u32,
    }

    #[derive(State, Data, Clone, Debug)]
    pub(super) enum Card {
        Joker,
        Number { known: u32, extra: u32 },
    }
}

/// An element as the newer build has it. The older build lacks the second number.
type Pair = (u32, u32);

fn item((known, extra): Pair) -> new::Item {
    new::Item { known, extra }
}

fn stone((known, extra): Pair) -> new::Stone {
    new::Stone { extra, known }
}

const ITEMS: [Pair; 4] = [(1, 10), (2, 20), (3, 30), (4, 40)];

fn town() -> new::Town {
    new::Town {
        queue: ITEMS.map(item).into_iter().collect(),
        other: [item((8, 80)), item((9, 90))].into_iter().collect(),
        keyed: ITEMS.map(|(known, extra)| (known, item((known, extra)))).into_iter().collect(),
        pair: [item((1, 10)), item((2, 20))],
        choice: Some(item((1, 10))),
        wall: new::Wall::Built(
            ITEMS.map(stone).to_vec(),
            vec![vec![stone((1, 10)), stone((2, 20))], vec![stone((3, 30))]],
        ),
        rows: [(1, 10), (2, 20)]
            .map(|pair| new::Row {
                items: [item(pair)].into_iter().collect(),
                keyed: [(1, item(pair))].into_iter().collect(),
            })
            .into_iter()
            .collect(),
        cards: [
            new::Card::Joker,
            new::Card::Number { known: 1, extra: 10 },
            new::Card::Joker,
            new::Card::Number { known: 2, extra: 20 },
        ]
        .into_iter()
        .collect(),
    }
}

/// The number of forgotten values, by place.
type Forgotten = BTreeMap<String, u64>;

/// The state of the newer build, after the older one has changed it: tracked or not, and saved
/// before or after a sync.
fn after(town: &new::Town, change: impl Fn(&mut old::Town)) -> (new::Town, Forgotten) {
    let mut results = Vec::new();
    for (is_tracked, is_synced) in [(false, false), (true, false), (true, true)] {
        let mut read = restore::<old::Town>(&save(town)).unwrap();
        let mut tracker = is_tracked.then(|| {
            let tracker = Tracker::new(&mut read.state, Tracking::On);
            read.kept.bind(&read.state);
            tracker
        });
        change(&mut read.state);
        let mut save = || {
            let mut bytes = Vec::new();
            save_kept(&read.state, 0, &mut read.kept, &mut bytes);
            (bytes, read.kept.take_forgotten())
        };
        if !is_synced {
            results.push(save());
        }
        if let Some(tracker) = &mut tracker {
            tracker.sync(&mut read.state);
        }
        let mut save = || {
            let mut bytes = Vec::new();
            save_kept(&read.state, 0, &mut read.kept, &mut bytes);
            (bytes, read.kept.take_forgotten())
        };
        if is_synced {
            results.push(save());
        }
        // Nothing changes any more, so nothing more is forgotten.
        assert_eq!(save(), (results[0].0.clone(), Forgotten::new()));
        // Nor does anything change in a node that starts again.
        let mut again = restore::<old::Town>(&results[0].0).unwrap();
        let mut bytes = Vec::new();
        save_kept(&again.state, 0, &mut again.kept, &mut bytes);
        assert_eq!(bytes, results[0].0);
    }
    assert!(results.iter().all(|result| *result == results[0]));
    let (bytes, forgotten) = results.swap_remove(0);
    (restore::<new::Town>(&bytes).unwrap().state, forgotten)
}

fn lost(place: &str, count: u64) -> Forgotten {
    [(place.to_owned(), count)].into_iter().collect()
}

fn pairs<'a>(items: impl IntoIterator<Item = &'a new::Item>) -> Vec<Pair> {
    items.into_iter().map(|item| (item.known, item.extra)).collect()
}

fn stones(stones: &[new::Stone]) -> Vec<Pair> {
    stones.iter().map(|stone| (stone.known, stone.extra)).collect()
}

/// The queue, after the older build has changed it, and what is forgotten.
fn queue(change: impl Fn(&mut old::Town)) -> (Vec<Pair>, Forgotten) {
    let (town, forgotten) = after(&town(), change);
    (pairs(&town.queue), forgotten)
}

/// Returns the same as [`queue`], of a `Vec` with these elements.
fn whole(elements: &[Pair], change: impl Fn(&mut Vec<old::Stone>)) -> (Vec<Pair>, Forgotten) {
    let wall = new::Wall::Built(elements.iter().copied().map(stone).collect(), Vec::new());
    let (town, forgotten) = after(&new::Town { wall, ..town() }, |town| {
        let old::Wall::Built(stones, _) = &mut town.wall else { panic!() };
        change(stones);
    });
    let new::Wall::Built(whole, _) = &town.wall else { panic!() };
    (stones(whole), forgotten)
}

#[test]
fn all_fields_are_named_and_counted() {
    let read = restore::<old::Town>(&save(&town())).unwrap();
    let fields: Vec<(String, u64)> = read.kept.fields().into_iter().collect();
    let fields: Vec<(&str, u64)> = fields.iter().map(|(place, count)| (&**place, *count)).collect();
    assert_eq!(
        fields,
        [
            ("cards.*.Number.extra", 2),
            ("choice.extra", 1),
            ("keyed.*.extra", 4),
            ("other.*.extra", 2),
            ("pair.*.extra", 2),
            ("queue.*.extra", 4),
            ("rows.*.items.*.extra", 2),
            ("rows.*.keyed.*.extra", 2),
            ("wall.Built.0.*.extra", 4),
            ("wall.Built.1.*.*.extra", 3),
        ]
    );
    assert!(read.is_foreign);
    assert!(!restore::<new::Town>(&save(&town())).unwrap().is_foreign);
}

#[test]
fn elements_of_a_list_keep_them_wherever_they_move() {
    let none = Forgotten::new();
    let all = ITEMS.to_vec();
    assert_eq!(queue(|_| ()), (all, none.clone()));
    assert_eq!(
        queue(|town| town.queue.sort_by_key(|item| std::cmp::Reverse(item.known))),
        (ITEMS.iter().rev().copied().collect(), none.clone())
    );
    assert_eq!(
        queue(|town| town.queue.insert(0, old::Item { known: 1 })),
        ([&[(1, 0)], &ITEMS[..]].concat(), none.clone())
    );
    assert_eq!(
        queue(|town| _ = town.queue.remove(1)),
        (vec![(1, 10), (3, 30), (4, 40)], lost("queue.*.extra", 1))
    );
    // Its known content changes, even to that of another one.
    assert_eq!(
        queue(|town| town.queue.get_mut(2).unwrap().known = 1),
        (vec![(1, 10), (2, 20), (1, 30), (4, 40)], none)
    );
}

#[test]
fn a_list_that_is_cleared_or_an_element_that_moves_to_another_list_loses_them() {
    assert_eq!(queue(|town| town.queue.clear()), (vec![], lost("queue.*.extra", 4)));
    assert_eq!(
        queue(|town| {
            let items: Vec<_> = town.queue.iter().cloned().collect();
            town.queue.clear();
            town.queue.extend(items);
        }),
        (vec![(1, 0), (2, 0), (3, 0), (4, 0)], lost("queue.*.extra", 4))
    );
    let (town, forgotten) = after(&town(), |town| {
        let item = town.queue.remove(0).unwrap();
        town.other.push(item);
    });
    assert_eq!(pairs(&town.queue), ITEMS[1..]);
    assert_eq!(pairs(&town.other), [(8, 80), (9, 90), (1, 0)]);
    assert_eq!(forgotten, lost("queue.*.extra", 1));
}

#[test]
fn in_a_list_that_is_replaced_elements_are_recognized_if_they_are_unique() {
    let replaced = |of: &'static [u32]| {
        queue(move |town| {
            town.queue = of.iter().map(|&known| old::Item { known }).collect();
        })
    };
    assert_eq!(
        replaced(&[4, 7, 3, 1]),
        (vec![(4, 40), (7, 0), (3, 30), (1, 10)], lost("queue.*.extra", 1))
    );
    assert_eq!(replaced(&[2, 2, 1]), (vec![(2, 0), (2, 0), (1, 10)], lost("queue.*.extra", 3)));
    // Its elements are recognized from then on by ids: it is the same list with the same content.
    assert_eq!(replaced(&[1, 2, 3, 4]), (ITEMS.to_vec(), Forgotten::new()));
    // An equal one that the older build adds makes both ambiguous, once the list is replaced.
    let mut read = restore::<old::Town>(&save(&town())).unwrap();
    read.state.queue.push(old::Item { known: 1 });
    save_kept(&read.state, 0, &mut read.kept, &mut Vec::new());
    read.state.queue = [1, 2].map(|known| old::Item { known }).into_iter().collect();
    let mut bytes = Vec::new();
    save_kept(&read.state, 0, &mut read.kept, &mut bytes);
    assert_eq!(pairs(&restore::<new::Town>(&bytes).unwrap().state.queue), [(1, 0), (2, 20)]);
    // Two lists that change places were replaced, both.
    let (town, forgotten) = after(&town(), |town| {
        std::mem::swap(&mut town.queue, &mut town.other);
    });
    assert_eq!(
        (pairs(&town.queue), pairs(&town.other)),
        (vec![(8, 0), (9, 0)], vec![(1, 0), (2, 0), (3, 0), (4, 0)])
    );
    assert_eq!(forgotten.values().sum::<u64>(), 6);
}

/// The place has the unknown fields, as it has those that the older build did not assign.
#[test]
fn values_that_are_swapped_leave_them_at_their_places() {
    let (town, forgotten) = after(&town(), |town| {
        let mut items = town.queue.iter_mut();
        std::mem::swap(items.next().unwrap(), items.next().unwrap());
        town.pair.swap(0, 1);
        *town.keyed.get_mut(&1).unwrap() = old::Item { known: 7 };
        town.choice = Some(old::Item { known: 8 });
    });
    assert_eq!(pairs(&town.queue), [(2, 10), (1, 20), (3, 30), (4, 40)]);
    assert_eq!(pairs(&town.pair), [(2, 10), (1, 20)]);
    assert_eq!(pairs([town.keyed.get(&1).unwrap()]), [(7, 10)]);
    assert_eq!(pairs(&town.choice), [(8, 10)]);
    assert_eq!(forgotten, Forgotten::new());
    // A list or a map that came with its element is another one there.
    let (town, forgotten) = after(&self::town(), |town| {
        let mut rows = town.rows.iter_mut();
        std::mem::swap(rows.next().unwrap(), rows.next().unwrap());
    });
    let rows: Vec<_> = town.rows.iter().map(|row| pairs(&row.items)).collect();
    assert_eq!(rows, [[(2, 0)], [(1, 0)]]);
    let rows: Vec<_> = town.rows.iter().map(|row| pairs(row.keyed.values())).collect();
    assert_eq!(rows, [[(2, 0)], [(1, 0)]]);
    assert_eq!(
        forgotten,
        ["rows.*.items.*.extra", "rows.*.keyed.*.extra"].map(|of| (of.to_owned(), 2)).into()
    );
}

#[test]
fn an_entry_keeps_them_with_its_key_and_loses_them_with_another_one() {
    let (town, forgotten) = after(&town(), |town| {
        let item = town.keyed.remove(&1).unwrap();
        town.keyed.insert(9, item);
        town.choice = None;
    });
    let keyed: Vec<_> = town.keyed.iter().map(|(_, item)| (item.known, item.extra)).collect();
    assert_eq!(keyed, [(2, 20), (3, 30), (4, 40), (1, 0)]);
    assert_eq!(
        forgotten,
        [("choice.extra".to_owned(), 1), ("keyed.*.extra".to_owned(), 1)].into_iter().collect()
    );
}

/// An entry that leaves and comes back under the same key is another one, saved in between or not.
#[test]
fn an_entry_that_is_removed_and_inserted_again_has_lost_them() {
    let keyed = |change: fn(&mut old::Town)| {
        let (town, forgotten) = after(&town(), change);
        (pairs(town.keyed.values()), forgotten)
    };
    assert_eq!(
        keyed(|town| {
            town.keyed.remove(&1);
            town.keyed.insert(1, old::Item { known: 7 });
        }),
        ([&[(7, 0)], &ITEMS[1..]].concat(), lost("keyed.*.extra", 1))
    );
    assert_eq!(
        keyed(|town| {
            town.keyed.clear();
            town.keyed.get_or_default(3).known = 3;
        }),
        (vec![(3, 0)], lost("keyed.*.extra", 4))
    );
    // A value that is assigned is the same entry, and so are those of a map that is built again.
    assert_eq!(
        keyed(|town| _ = town.keyed.insert(1, old::Item { known: 7 })),
        ([&[(7, 10)], &ITEMS[1..]].concat(), Forgotten::new())
    );
    assert_eq!(
        keyed(|town| {
            town.keyed = [3, 5, 1]
                .map(|known| (known, old::Item { known: known + 1 }))
                .into_iter()
                .collect();
        }),
        (vec![(2, 10), (4, 30), (6, 0)], lost("keyed.*.extra", 2))
    );
}

#[test]
fn in_a_whole_elements_are_recognized_if_they_are_unique() {
    let none = Forgotten::new();
    let lose = |count| lost("wall.Built.0.*.extra", count);
    let rebuilt = |stones: &mut Vec<old::Stone>| {
        *stones = stones.iter().map(|stone| old::Stone { known: stone.known }).collect();
    };
    assert_eq!(whole(&ITEMS, rebuilt), (ITEMS.to_vec(), none.clone()));
    assert_eq!(
        whole(&ITEMS, |stones| stones.reverse()),
        (ITEMS.iter().rev().copied().collect(), none.clone())
    );
    assert_eq!(
        whole(&ITEMS, |stones| stones.swap(0, 2)),
        (vec![(3, 30), (2, 20), (1, 10), (4, 40)], none.clone())
    );
    assert_eq!(
        whole(&ITEMS, |stones| _ = stones.remove(1)),
        (vec![(1, 10), (3, 30), (4, 40)], lose(1))
    );
    assert_eq!(
        whole(&ITEMS, |stones| stones.insert(0, old::Stone { known: 7 })),
        ([&[(7, 0)], &ITEMS[..]].concat(), none.clone())
    );
    // One that has changed is not recognized, wherever it is.
    assert_eq!(
        whole(&ITEMS, |stones| stones[1].known = 7),
        (vec![(1, 10), (7, 0), (3, 30), (4, 40)], lose(1))
    );
    assert_eq!(
        whole(&ITEMS, |stones| stones[1].known = 1),
        (vec![(1, 0), (1, 0), (3, 30), (4, 40)], lose(2))
    );
    // Which of two equal ones is left, or where the other one is, is not known.
    let equal = [(1, 10), (1, 11), (2, 20)];
    assert_eq!(whole(&equal, |_| ()), (equal.to_vec(), none));
    assert_eq!(whole(&equal, |stones| _ = stones.remove(0)), (vec![(1, 0), (2, 20)], lose(2)));
    assert_eq!(
        whole(&equal, |stones| stones.push(old::Stone { known: 3 })),
        (vec![(1, 0), (1, 0), (2, 20), (3, 0)], lose(2))
    );
}

#[test]
fn in_nested_wholes_only_what_is_unchanged_keeps_them() {
    let nested = |change: fn(&mut Vec<Vec<old::Stone>>)| {
        let (town, forgotten) = after(&town(), |town| {
            let old::Wall::Built(_, nested) = &mut town.wall else { panic!() };
            change(nested);
        });
        let new::Wall::Built(_, nested) = &town.wall else { panic!() };
        let nested: Vec<_> = nested.iter().map(|row| stones(row)).collect();
        (nested, forgotten)
    };
    assert_eq!(
        nested(|rows| rows.reverse()),
        (vec![vec![(3, 30)], vec![(1, 10), (2, 20)]], Forgotten::new())
    );
    assert_eq!(
        nested(|rows| rows[0].reverse()),
        (vec![vec![(2, 0), (1, 0)], vec![(3, 30)]], lost("wall.Built.1.*.*.extra", 2))
    );
}

#[test]
fn they_follow_elements_that_move_up_because_one_before_them_is_dropped() {
    let (town, forgotten) = after(&town(), |_| ());
    let cards: Vec<_> = town
        .cards
        .iter()
        .map(|card| match card {
            new::Card::Joker => panic!("it is dropped"),
            new::Card::Number { known, extra } => (*known, *extra),
        })
        .collect();
    assert_eq!(cards, [(1, 10), (2, 20)]);
    assert_eq!(forgotten, Forgotten::new());
}

/// The bytes that another build saves after it has read this state.
fn saved_again<Older: State, Newer: State>(state: &Newer) -> Vec<u8> {
    let mut read = restore::<Older>(&save(state)).unwrap();
    let mut bytes = Vec::new();
    save_kept(&read.state, 0, &mut read.kept, &mut bytes);
    bytes
}

/// A program that loads a state saves it without what is kept, so it would be gone without a word.
#[test]
fn a_load_refuses_a_save_with_fields_that_it_would_lose() {
    /// In this build, the field that the older one lacks has another type.
    #[derive(State, Default, Debug)]
    struct Sign {
        known: u32,
        extra: String,
    }
    fn by_old() -> Vec<u8> {
        #[derive(State, Default)]
        struct Sign {
            known: u32,
        }
        mod new {
            #[derive(playfield_state::State, Default)]
            pub(super) struct Sign {
                pub(super) known: u32,
                pub(super) extra: u32,
            }
        }
        saved_again::<Sign, _>(&new::Sign { known: 1, extra: 2 })
    }
    let place = |error: LoadError| match error {
        LoadError::Incompatible { place, .. } => place,
        error => panic!("{error}"),
    };
    assert_eq!(place(load::<Sign>(&by_old()).unwrap_err()), "extra");
    let bytes = saved_again::<old::Town, _>(&town());
    assert_eq!(place(load::<old::Town>(&bytes).unwrap_err()), "cards.*.Number.extra");
    assert_eq!(load::<new::Town>(&bytes).unwrap().keyed.get(&1).unwrap().extra, 10);
}

#[test]
fn they_are_shown_as_json() {
    let mut shown = saved_as_json(&saved_again::<old::Town, _>(&town())).unwrap();
    let item = json!({ "known": 1, "extra (unknown)": 10 });
    for place in ["/queue/0", "/keyed/1", "/pair/0", "/choice", "/wall/Built/1/0/0"] {
        assert_eq!(*shown.pointer(place).unwrap(), item, "{place}");
    }
    assert_eq!(shown["cards"][1]["Number"], json!({ "known": 2, "extra (unknown)": 20 }));
    // What the newer build has shown is the same, but for the names.
    let names = shown.to_string().replace(" (unknown)", "");
    shown = serde_json::from_str(&names).unwrap();
    let mut newer = town();
    newer.cards.retain(|card| !matches!(card, new::Card::Joker));
    assert_eq!(shown, saved_as_json(&save(&newer)).unwrap());
}

/// Programs hand over what they have: nothing of it fits another state.
#[test]
fn what_is_kept_of_another_type_is_harmless() {
    #[derive(State, Default)]
    struct Town {
        keyed: List<old::Item>,
        queue: Map<u32, old::Item>,
        pair: Option<old::Item>,
        rows: u32,
    }
    let mut kept = restore::<old::Town>(&save(&town())).unwrap().kept;
    let queue = [(0, old::Item { known: 1 })].into_iter().collect();
    let keyed = [old::Item { known: 1 }].into_iter().collect();
    let town = Town { keyed, queue, pair: Some(old::Item { known: 1 }), rows: 1 };
    let mut bytes = Vec::new();
    save_kept(&town, 0, &mut kept, &mut bytes);
    let again = restore::<Town>(&bytes).unwrap();
    assert_eq!((again.state.keyed.len(), again.state.queue.len()), (1, 1));
}
