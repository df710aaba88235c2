//! Saves that older builds wrote are read, bit for bit: a save is a file format. The files beside
//! this one are never written again; a new format gets a file of its own.

use playfield_state::{Kept, restore, save_kept};

/// A save in format 1: a whole state.
const WHOLE: &[u8] = include_bytes!("format-1.save");
/// A save in format 2, which has fields that the build that wrote it lacked.
const WITH_KEPT: &[u8] = include_bytes!("format-2.save");

/// The number that both were saved with.
const MARK: u64 = 0x8000_0000_0000_0007;

mod full {
    use playfield_state::{Bytes, Data, Key, List, Map, PlayerId, Set, State};

    /// Each kind of type, and each policy.
    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Town {
        pub(super) nothing: Nothing,
        pub(super) is_open: bool,
        pub(super) unsigned: Unsigned,
        pub(super) signed: Signed,
        pub(super) floats: [f32; 2],
        #[sync(quantize = 0.5, range = -4.0..=4.0)]
        pub(super) height: f64,
        #[sync(angle = 0.01)]
        pub(super) facing: f32,
        pub(super) name: String,
        pub(super) seal: Bytes,
        #[sync(hidden)]
        pub(super) deck: List<Card>,
        #[sync(mask = blank)]
        pub(super) code: String,
        pub(super) mayor: Option<House>,
        pub(super) houses: Map<HouseId, House>,
        #[sync(owner)]
        pub(super) hands: Map<PlayerId, List<u8>>,
        pub(super) tags: Set<String>,
        pub(super) grid: [List<u8>; 2],
        #[sync(skip)]
        pub(super) cache: Option<u8>,
    }

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Nothing {}

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Unsigned(pub(super) u8, pub(super) u16, pub(super) u32, pub(super) u64);

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Signed(pub(super) i8, pub(super) i16, pub(super) i32, pub(super) i64);

    #[derive(Key, Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) struct HouseId(pub(super) u16);

    #[derive(State, Data, Clone, Debug, PartialEq)]
    pub(super) enum Card {
        Blank,
        Plain(u8),
        Drawn { by: PlayerId, notes: Vec<String> },
    }

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct House {
        pub(super) rooms: u32,
        pub(super) color: String,
    }

    fn blank(_: &String) -> String {
        String::new()
    }
}

/// The same of an older build.
mod plain {
    use playfield_state::{Map, State};

    use super::full::HouseId;

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Town {
        pub(super) name: String,
        pub(super) houses: Map<HouseId, House>,
    }

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct House {
        pub(super) rooms: u32,
    }
}

fn town() -> full::Town {
    use full::{Card, House, HouseId, Nothing, Signed, Unsigned};
    use playfield_state::{List, PlayerId};
    let house = |rooms, color: &str| House { rooms, color: color.into() };
    full::Town {
        nothing: Nothing {},
        is_open: true,
        unsigned: Unsigned(255, 300, 70_000, u64::MAX),
        signed: Signed(-128, -300, -70_000, i64::MIN),
        floats: [-0.0, f32::MAX],
        height: 1.234_567_89,
        facing: 2.75,
        name: "Ebersberg".into(),
        seal: vec![0, 255, 10].into(),
        deck: List::from([
            Card::Blank,
            Card::Plain(9),
            Card::Drawn { by: PlayerId(300), notes: vec!["a".into(), String::new()] },
        ]),
        code: "swordfish".into(),
        mayor: Some(house(12, "red")),
        houses: [(HouseId(1), house(3, "blue")), (HouseId(700), house(4, ""))]
            .into_iter()
            .collect(),
        hands: [(PlayerId(7), List::from([4, 5]))].into_iter().collect(),
        tags: ["old".to_owned(), "market".to_owned()].into_iter().collect(),
        grid: [List::from([1]), List::new()],
        cache: None,
    }
}

#[test]
fn a_save_in_format_1_is_read() {
    let restored = restore::<full::Town>(WHOLE).unwrap();
    assert_eq!((restored.state, restored.mark), (town(), MARK));
    assert!(!restored.is_foreign && restored.kept.is_empty() && restored.dropped.is_empty());
    let mut bytes = Vec::new();
    save_kept(&town(), MARK, &mut Kept::default(), &mut bytes);
    assert!(bytes == WHOLE, "this build writes another format: read the old one, and name the new");
}

#[test]
fn a_save_in_format_2_is_read_by_the_build_that_wrote_it_and_by_the_newer_one() {
    let mut older = restore::<plain::Town>(WITH_KEPT).unwrap();
    assert_eq!((older.state.houses.get(&full::HouseId(1)).unwrap().rooms, older.mark), (33, MARK));
    let kept: Vec<String> = older.kept.fields().into_keys().collect();
    assert!(kept.contains(&"houses.*.color".to_owned()) && kept.len() == 15, "{kept:?}");
    let mut again = Vec::new();
    save_kept(&older.state, older.mark, &mut older.kept, &mut again);
    assert_eq!(restore::<full::Town>(&again).unwrap().state, restored_town());

    let newer = restore::<full::Town>(WITH_KEPT).unwrap();
    assert_eq!(newer.state, restored_town());
    assert!(newer.kept.is_empty() && newer.dropped.is_empty());
}

/// The town after the older build.
fn restored_town() -> full::Town {
    let mut town = town();
    town.name = "Ebersberg am Fluss".into();
    town.houses.get_mut(&full::HouseId(1)).unwrap().rooms = 33;
    town
}
