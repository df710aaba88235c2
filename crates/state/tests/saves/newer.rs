//! Saves of newer builds: what an older build lacks is kept, what it can't read is dropped. Each
//! module is a build.

use playfield_state::{
    Dropped, LoadError, Restored, SaveFate, State, Tracker, Tracking, load, restore, save,
    save_differences, save_kept, saved_type,
};

mod old {
    use playfield_state::{Data, List, Map, State};

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Town {
        pub(super) name: String,
        pub(super) houses: Map<u32, House>,
        pub(super) queue: List<House>,
        pub(super) road: Road,
        pub(super) mayor: Option<House>,
        pub(super) gates: [House; 2],
    }

    #[derive(State, Default, Clone, Debug, PartialEq)]
    pub(super) struct House {
        pub(super) size: u32,
        pub(super) kind: Kind,
    }

    #[derive(State, Data, Clone, Default, Debug, PartialEq)]
    pub(super) enum Road {
        #[default]
        None,
        Paved {
            stones: Vec<Stone>,
        },
    }

    #[derive(Data, Clone, Debug, PartialEq)]
    pub(super) struct Stone {
        pub(super) x: i32,
    }

    #[derive(State, Data, Clone, Default, Debug, PartialEq)]
    pub(super) enum Kind {
        #[default]
        Hut,
        Shop {
            goods: u32,
        },
    }
}

mod new {
    use playfield_state::{Data, List, Map, State};

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Town {
        pub(super) motto: String,
        pub(super) name: String,
        pub(super) houses: Map<u32, House>,
        pub(super) queue: List<House>,
        pub(super) road: Road,
        pub(super) mayor: Option<House>,
        pub(super) gates: [House; 2],
        pub(super) kinds: List<Kind>,
        #[sync(hidden)]
        pub(super) ledger: Map<String, House>,
    }

    #[derive(State, Default, Clone, Debug, PartialEq)]
    pub(super) struct House {
        pub(super) color: String,
        pub(super) kind: Kind,
        pub(super) size: u32,
    }

    #[derive(State, Data, Clone, Default, Debug, PartialEq)]
    pub(super) enum Road {
        #[default]
        None,
        Paved {
            stones: Vec<Stone>,
        },
    }

    #[derive(Data, Clone, Debug, PartialEq)]
    pub(super) struct Stone {
        pub(super) moss: u8,
        pub(super) x: i32,
    }

    #[derive(State, Data, Clone, Default, Debug, PartialEq)]
    pub(super) enum Kind {
        Castle(u8),
        Shop {
            goods: u32,
            owner: Option<String>,
        },
        #[default]
        Hut,
    }
}

fn house(color: &str, size: u32) -> new::House {
    new::House { color: color.into(), kind: new::Kind::Hut, size }
}

fn town() -> new::Town {
    let shop = new::Kind::Shop { goods: 3, owner: Some("Ann".into()) };
    new::Town {
        motto: "Onward".into(),
        name: "Elm".into(),
        houses: [(1, house("red", 10)), (2, new::House { kind: shop, ..house("blue", 20) })]
            .into_iter()
            .collect(),
        queue: [house("a", 1), house("b", 2), house("c", 3)].into_iter().collect(),
        road: new::Road::Paved {
            stones: (0..4_u8).map(|moss| new::Stone { moss, x: i32::from(moss / 2) }).collect(),
        },
        mayor: Some(house("gold", 99)),
        gates: [house("north", 5), house("south", 6)],
        kinds: [new::Kind::Castle(7)].into_iter().collect(),
        ledger: [("x".to_owned(), house("ink", 1))].into_iter().collect(),
    }
}

/// The save as a room of the older build has read it, and tracks it.
fn restored(bytes: &[u8]) -> (Restored<old::Town>, Tracker<old::Town>) {
    let mut restored = restore::<old::Town>(bytes).unwrap();
    let tracker = Tracker::new(&mut restored.state, Tracking::On);
    restored.kept.bind(&restored.state);
    (restored, tracker)
}

fn saved(restored: &mut Restored<old::Town>) -> Vec<u8> {
    let mut bytes = Vec::new();
    save_kept(&restored.state, restored.mark, &mut restored.kept, &mut bytes);
    bytes
}

#[test]
fn what_an_older_build_lacks_is_there_again_in_the_newer_one() {
    let (mut older, _) = restored(&save(&town()));
    assert_eq!(older.dropped, []);
    assert_eq!((&*older.state.name, older.state.houses.get(&2).unwrap().size), ("Elm", 20));
    // Twice, as of a node that saves a room, ends and loads it again.
    let bytes = saved(&mut older);
    let (mut again, _) = restored(&bytes);
    assert_eq!(saved(&mut again), bytes);
    assert_eq!(restore::<new::Town>(&bytes).unwrap().state, town());
    assert_eq!(load::<new::Town>(&bytes).unwrap(), town());
    // A build that lacks nothing keeps nothing.
    let newer = restore::<new::Town>(&bytes).unwrap();
    assert!(newer.kept.is_empty());
    assert_eq!(save(&newer.state)[7], 1, "the first format");
}

#[test]
fn it_follows_keys_elements_and_variants_and_goes_with_what_is_removed() {
    let (mut older, mut tracker) = restored(&save(&town()));
    let state = &mut older.state;
    state.name = "Oak".into();
    state.houses.remove(&1);
    state.houses.insert(3, old::House { size: 30, ..old::House::default() });
    state.houses.get_mut(&2).unwrap().size = 21;
    state.queue.move_to(0, 2);
    state.queue.remove(0);
    state.queue.insert(0, old::House { size: 7, ..old::House::default() });
    state.queue.get_mut(1).unwrap().size = 33;
    let old::Road::Paved { stones } = &mut state.road else { panic!() };
    stones.remove(0);
    stones[2].x = 8;
    state.mayor = None;
    state.gates[1].kind = old::Kind::Shop { goods: 1 };
    tracker.sync(state);
    let bytes = saved(&mut older);
    // What was removed is not there again under the same key.
    older.state.houses.insert(1, old::House::default());
    older.state.mayor = Some(old::House::default());
    older.state.houses.get_mut(&2).unwrap().kind = old::Kind::Hut;
    tracker.sync(&mut older.state);
    let later = restore::<new::Town>(&saved(&mut older)).unwrap().state;
    let town = restore::<new::Town>(&bytes).unwrap().state;

    assert_eq!((&*town.motto, &*town.name), ("Onward", "Oak"));
    let shop = new::Kind::Shop { goods: 3, owner: Some("Ann".into()) };
    let blue = new::House { kind: shop, ..house("blue", 21) };
    assert_eq!(town.houses, [(2, blue), (3, house("", 30))].into_iter().collect());
    let queue: Vec<_> = town.queue.iter().map(|house| (&*house.color, house.size)).collect();
    assert_eq!(queue, [("", 7), ("c", 33), ("a", 1)]);
    // In a whole, elements are recognized by what is in them, and none that has an equal one.
    let new::Road::Paved { stones } = &town.road else { panic!() };
    let road: Vec<_> = stones.iter().map(|stone| (stone.moss, stone.x)).collect();
    assert_eq!(road, [(0, 0), (0, 1), (0, 8)]);
    assert_eq!(town.mayor, None);
    assert_eq!((&*town.gates[0].color, &*town.gates[1].color), ("north", "south"));
    assert_eq!(*later.houses.get(&1).unwrap(), house("", 0));
    assert_eq!(*later.houses.get(&2).unwrap(), house("blue", 21));
    assert_eq!(later.mayor, Some(house("", 0)));
    assert_eq!(*town.ledger.get("x").unwrap(), house("ink", 1));
}

#[test]
fn elements_of_a_list_that_was_replaced_are_recognized_by_what_is_in_them() {
    let (mut older, mut tracker) = restored(&save(&town()));
    let others: Vec<_> =
        older.state.queue.iter().filter(|house| house.size != 2).cloned().collect();
    older.state.queue = others.into_iter().rev().collect();
    tracker.sync(&mut older.state);
    let town = restore::<new::Town>(&saved(&mut older)).unwrap().state;
    let queue: Vec<_> = town.queue.iter().map(|house| (&*house.color, house.size)).collect();
    assert_eq!(queue, [("c", 3), ("a", 1)]);
}

#[test]
fn what_an_older_build_cannot_read_is_dropped_and_named() {
    let mut newer = town();
    newer.houses.get_mut(&1).unwrap().kind = new::Kind::Castle(1);
    newer.queue.get_mut(2).unwrap().kind = new::Kind::Castle(2);
    let (mut older, _) = restored(&save(&newer));
    let why = "Castle: the save has this variant, which this build lacks: the save is of a newer \
               build, or the variant was removed or renamed";
    let dropped = |place: &str| Dropped { place: place.into(), why: why.into(), count: 1 };
    assert_eq!(older.dropped, [dropped("houses.*.kind"), dropped("queue.*.kind")]);
    assert_eq!(*older.state.houses.get(&1).unwrap(), old::House { size: 10, kind: old::Kind::Hut });
    // The rest is kept nevertheless.
    let again = restore::<new::Town>(&saved(&mut older)).unwrap().state;
    assert_eq!(*again.houses.get(&1).unwrap(), house("red", 10));
    assert_eq!(again.kinds, newer.kinds);
}

#[test]
fn elements_entries_and_options_without_a_default_are_left_out() {
    mod wide {
        use playfield_state::{Data, List, Map, State};

        #[derive(State, Default)]
        pub(super) struct Deck {
            pub(super) cards: List<Card>,
            pub(super) hands: Map<u8, Card>,
            pub(super) top: Option<Card>,
            pub(super) size: u64,
        }

        #[derive(State, Data, Clone)]
        pub(super) enum Card {
            Joker,
            Number(u8),
        }
    }

    #[derive(State, Default)]
    struct Deck {
        cards: playfield_state::List<Card>,
        hands: playfield_state::Map<u8, Card>,
        top: Option<Card>,
        size: u32,
    }

    #[derive(State, playfield_state::Data, Clone, Debug, PartialEq)]
    enum Card {
        Number(u8),
    }

    use wide::Card::{Joker, Number};
    let deck = wide::Deck {
        cards: [Number(1), Joker, Joker, Number(2)].into_iter().collect(),
        hands: [(1, Joker), (2, Number(3))].into_iter().collect(),
        top: Some(Joker),
        size: 52,
    };
    let read = restore::<Deck>(&save(&deck)).unwrap();
    assert_eq!(
        read.state.cards.iter().cloned().collect::<Vec<_>>(),
        [Card::Number(1), Card::Number(2)]
    );
    assert_eq!(read.state.hands.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [2]);
    assert_eq!((read.state.top, read.state.size), (None, 0));
    let dropped: Vec<_> = read.dropped.iter().map(|of| (&*of.place, of.count)).collect();
    assert_eq!(dropped, [("cards.*", 2), ("hands.*", 1), ("size", 1), ("top", 1)]);
}

#[test]
fn a_save_of_another_type_is_refused_whole() {
    #[derive(State, Default)]
    struct Village {}
    assert!(matches!(restore::<Village>(&save(&town())), Err(LoadError::OtherType { .. })));
    let list = save(&playfield_state::List::<u8>::new());
    let error = restore::<playfield_state::Map<u8, u8>>(&list).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the save has a list, this build has a map: keep the type, and add a field with another name"
    );
}

#[test]
fn the_types_alone_say_what_becomes_of_a_save() {
    let (old, new) = (saved_type::<old::Town>(), saved_type::<new::Town>());
    assert_eq!(save_differences(&old, &new), []);
    let found = save_differences(&new, &old);
    let found: Vec<_> = found.iter().map(|of| (&*of.place, of.fate)).collect();
    let (kept, dropped) = (SaveFate::Kept, SaveFate::Dropped);
    let house = |place: &'static str| {
        let at = |rest: &str| format!("{place}.{rest}");
        [(at("color"), kept), (at("kind.Castle"), dropped), (at("kind.Shop.owner"), kept)]
    };
    let mut expected = vec![("motto".to_owned(), kept)];
    expected.extend(house("houses.*"));
    expected.extend(house("queue.*"));
    expected.push(("road.Paved.stones.*.moss".into(), kept));
    expected.extend(house("mayor"));
    expected.extend(house("gates.*"));
    expected.extend([("kinds".into(), kept), ("ledger".into(), kept)]);
    let expected: Vec<_> = expected.iter().map(|(place, fate)| (&**place, *fate)).collect();
    assert_eq!(found, expected);
    let refused = save_differences(&saved_type::<old::House>(), &old);
    assert_eq!(refused[0].fate, SaveFate::Refused);
}

/// Checksums are right here, so what is kept is read, whatever it is.
#[test]
fn a_save_with_kept_fields_and_any_changed_byte_does_not_panic() {
    let (mut older, _) = restored(&save(&town()));
    let bytes = saved(&mut older);
    assert_eq!(bytes[7], 2);
    for length in 0..bytes.len() {
        assert!(restore::<new::Town>(&bytes[..length]).is_err());
    }
    for at in 44..bytes.len() - 4 {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            assert!(restore::<new::Town>(&changed).is_err());
            let changed = super::damage::sealed(changed);
            if let Ok(mut read) = restore::<new::Town>(&changed) {
                read.kept.bind(&read.state);
                let mut again = Vec::new();
                save_kept(&read.state, read.mark, &mut read.kept, &mut again);
                restore::<new::Town>(&again).unwrap();
            }
            let _ = restore::<old::Town>(&changed);
        }
    }
}
