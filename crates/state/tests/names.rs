//! Generated code and its user may choose the same names.

use playfield_state::{Format, Map, Mirror, PlayerId, Tracker, Tracking};

/// Constants named as the derive might name its locals and checks.
mod constants {
    #![allow(dead_code, non_upper_case_globals, reason = "they are there for their names")]

    use playfield_state::{Data, Map, State};

    const check_key: usize = 2;
    const field_0: u8 = 7;
    const other_0: u8 = 7;

    #[derive(State, Default)]
    struct Game {
        checked: Map<u32, [u8; check_key]>,
    }

    #[derive(Clone, Data)]
    enum Piece {
        One(u8),
        Two(u8, u8),
    }
}

/// Functions and types named as the derive might name its own, and as the prelude does.
mod shadowing {
    #![allow(dead_code, non_snake_case, reason = "they are there for their names")]

    use playfield_state::{Data, Key, List, Map, PlayerId, State};

    #[derive(State, Default)]
    pub(super) struct Game {
        #[sync(mask = mask_card)]
        pub card: u8,
        #[sync(mask = mask_0)]
        pub place: u8,
        #[sync(mask = value)]
        pub value: u8,
        #[sync(mask = masked)]
        pub masked: u8,
        #[sync(view = sees_food, viewer = players)]
        pub food: Map<u32, u8>,
        #[sync(view = seen, viewer = players)]
        pub seen: u8,
        #[sync(view = entry, viewer = players)]
        pub entry: u8,
        #[sync(view = sees_0, viewer = players)]
        pub sees: Map<u32, u8>,
        #[sync(quantize = STEP, range = RANGE.0..=RANGE.1)]
        pub far: f32,
        pub shadow: Shadow,
        pub piece: Piece,
        pub steps: Steps_0,
        pub players: Map<PlayerId, u8>,
    }

    const STEP: f64 = 0.5;
    const RANGE: (f64, f64) = (0.0, 10.0);

    fn mask_card(card: &u8) -> u8 {
        card / 2
    }
    fn mask_0(place: &u8) -> u8 {
        place + 1
    }
    fn value(value: &u8) -> u8 {
        value + 2
    }
    fn masked(value: &u8) -> u8 {
        value + 3
    }
    fn sees_food(food: &u8, player: &u8) -> bool {
        food == player
    }
    fn sees_0(food: &u8, player: &u8) -> bool {
        food != player
    }
    fn seen(seen: &u8, player: &u8) -> bool {
        seen == player
    }
    fn entry(entry: &u8, player: &u8) -> bool {
        entry != player
    }

    #[derive(State, Default)]
    pub(super) struct Shadow {
        pub stamps: u8,
        pub this: List<u8>,
    }

    #[derive(State, Default)]
    #[allow(non_camel_case_types, reason = "it is there for its name")]
    pub(super) struct Steps_0 {
        #[sync(angle = 0.1)]
        pub angle: f64,
    }

    #[derive(State, Data, Clone, Copy, Default, Debug, PartialEq)]
    pub(super) enum Piece {
        #[default]
        Shadow,
        Some(Value),
        Ok {
            value: u8,
            other: u8,
            out: u8,
            reader: u8,
        },
        None,
    }

    #[derive(State, Data, Clone, Copy, Default, Debug, PartialEq)]
    pub(super) struct Value {
        pub members: u8,
        pub field_0: bool,
    }

    #[derive(Key, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub(super) struct Id(u32);

    struct Option;
    struct Result;
    struct Vec;
    struct String;
    struct Box;
    struct Default;
    struct Copy;
    struct Fn;
    struct DecodeError;
    struct Reader;
    fn Some() {}
    fn None() {}
    fn Ok() {}
    fn Err() {}
    trait Into {
        fn into(&self) {}
        fn map(&self) {}
    }
    impl<T: ?Sized> Into for T {}
}

#[test]
fn generated_names_do_not_collide_with_the_users() {
    let mut game = shadowing::Game {
        card: 9,
        place: 1,
        value: 1,
        masked: 1,
        seen: 7,
        entry: 7,
        far: 3.4,
        piece: shadowing::Piece::Ok { value: 1, other: 2, out: 3, reader: 4 },
        ..Default::default()
    };
    game.players.insert(PlayerId(1), 7);
    game.players.insert(PlayerId(2), 8);
    for food in [7, 8] {
        game.food.insert(food.into(), food);
        game.sees.insert(food.into(), food);
    }
    game.shadow.this.push(5);
    let mut tracker = Tracker::new(&mut game, Tracking::On);
    let mut seen_by = |player| {
        let mut body = Vec::new();
        tracker.snapshot(player, Format::Packed, &mut body);
        let mut copy = Mirror::<shadowing::Game>::new();
        copy.snapshot(&body).unwrap();
        assert_eq!(copy.digest(), tracker.digest(player, Format::Packed));
        copy
    };
    let keys = |map: &Map<u32, u8>| map.keys().copied().collect::<Vec<u32>>();
    let (one, two) = (seen_by(PlayerId(1)), seen_by(PlayerId(2)));
    let one = one.state();
    assert_eq!([one.card, one.place, one.value, one.masked], [4, 2, 3, 4]);
    assert_eq!((one.far, &one.shadow.this[0], one.piece), (3.5, &5, game.piece));
    assert_eq!([one.seen, one.entry], [7, 0]);
    assert_eq!([two.state().seen, two.state().entry], [0, 7]);
    assert_eq!([keys(&one.food), keys(&one.sees)], [[7], [8]]);
}
