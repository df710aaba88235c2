//! Saves of older builds. Each module is a build.

use playfield_state::{LoadError, load, save};

mod old {
    use playfield_state::{Data, List, Map, PlayerId, State};

    #[derive(State, Default)]
    pub(super) struct Board {
        pub(super) title: String,
        pub(super) notes: Map<u32, Note>,
        #[sync(hidden)]
        pub(super) log: List<Step>,
        #[sync(quantize = 0.5)]
        pub(super) zoom: f64,
        pub(super) last: Option<Note>,
        pub(super) corner: [Note; 2],
        pub(super) nothing: Nothing,
    }

    #[derive(State, Default)]
    pub(super) struct Nothing {}

    #[derive(State, Default, Clone)]
    pub(super) struct Note {
        pub(super) text: String,
        pub(super) author: PlayerId,
    }

    #[derive(State, Data, Clone)]
    pub(super) enum Step {
        Wrote { note: u32 },
        Moved(Vec<Place>),
        Cleared,
    }

    #[derive(Data, Clone)]
    pub(super) struct Place {
        pub(super) x: f32,
    }
}

mod new {
    use playfield_state::{Data, List, Map, PlayerId, State};

    /// Fields in another order, some are new, and other players see them.
    #[derive(State, Debug, PartialEq)]
    pub(super) struct Board {
        #[sync(hidden)]
        pub(super) title: String,
        pub(super) size: Size,
        pub(super) notes: Map<u32, Note>,
        pub(super) log: List<Step>,
        pub(super) last: Option<Note>,
        pub(super) corner: [Note; 2],
        pub(super) zoom: f64,
        pub(super) nothing: Nothing,
    }

    #[derive(State, Default, Debug, PartialEq)]
    pub(super) struct Nothing {
        pub(super) more: u8,
    }

    #[derive(State, Debug, PartialEq)]
    pub(super) struct Size {
        pub(super) width: u32,
        pub(super) color: Color,
    }

    impl Default for Size {
        fn default() -> Self {
            Self { width: 640, color: Color::Black }
        }
    }

    #[derive(State, Clone, Debug, PartialEq)]
    pub(super) struct Note {
        pub(super) author: PlayerId,
        pub(super) color: Color,
        pub(super) pins: Pins,
        pub(super) text: String,
    }

    /// Without a default: what is added follows from the types.
    #[derive(State, Clone, Debug, PartialEq)]
    pub(super) struct Pins {
        pub(super) count: u16,
        pub(super) at: [f32; 2],
        pub(super) first: Option<u8>,
        pub(super) names: List<String>,
        pub(super) kind: Kind,
    }

    #[derive(State, Data, Clone, Debug, PartialEq)]
    pub(super) enum Kind {
        Round(f64, bool),
        Square,
    }

    #[derive(State, Data, Clone, Copy, Default, Debug, PartialEq)]
    pub(super) enum Color {
        White,
        #[default]
        Yellow,
        Black,
    }

    #[derive(State, Data, Clone, Debug, PartialEq)]
    pub(super) enum Step {
        Opened,
        Cleared,
        Moved(Vec<Place>),
        Wrote { by: Option<PlayerId>, note: u32, times: Times },
    }

    #[derive(Data, Clone, Debug, PartialEq)]
    pub(super) struct Times {
        pub(super) begun: u64,
        pub(super) of: Vec<u8>,
    }

    #[derive(Data, Clone, Debug, PartialEq)]
    pub(super) struct Place {
        pub(super) y: f32,
        pub(super) x: f32,
    }
}

fn old_board() -> old::Board {
    let note = |text: &str| old::Note { text: text.into(), author: playfield_state::PlayerId(3) };
    old::Board {
        title: "Plan".into(),
        notes: [(7, note("one")), (9, note("two"))].into_iter().collect(),
        log: playfield_state::List::from([
            old::Step::Wrote { note: 7 },
            old::Step::Moved(vec![old::Place { x: 1.5 }]),
            old::Step::Cleared,
        ]),
        zoom: 1.234,
        last: Some(note("last")),
        corner: [note("a"), note("b")],
        nothing: old::Nothing {},
    }
}

#[test]
fn an_older_save_is_read_and_what_is_new_has_its_default() {
    let pins = new::Pins {
        count: 0,
        at: [0.0; 2],
        first: None,
        names: playfield_state::List::new(),
        kind: new::Kind::Round(0.0, false),
    };
    let author = playfield_state::PlayerId(3);
    let note = |text: &str| new::Note {
        author,
        color: new::Color::Yellow,
        pins: pins.clone(),
        text: text.into(),
    };
    let wrote =
        new::Step::Wrote { by: None, note: 7, times: new::Times { begun: 0, of: Vec::new() } };
    let expected = new::Board {
        title: "Plan".into(),
        size: new::Size { width: 640, color: new::Color::Black },
        notes: [(7, note("one")), (9, note("two"))].into_iter().collect(),
        log: playfield_state::List::from([
            wrote,
            new::Step::Moved(vec![new::Place { y: 0.0, x: 1.5 }]),
            new::Step::Cleared,
        ]),
        last: Some(note("last")),
        corner: [note("a"), note("b")],
        zoom: 1.234,
        nothing: new::Nothing { more: 0 },
    };
    assert_eq!(load::<new::Board>(&save(&old_board())).unwrap(), expected);
}

#[test]
fn a_save_of_a_newer_build_is_refused_at_the_first_field_that_is_not_known() {
    let state = load::<new::Board>(&save(&old_board())).unwrap();
    let error = load::<old::Board>(&save(&state)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "size: the save has this field, which this build lacks: the save is of a newer build, or the field \
         was removed or renamed"
    );
}

#[test]
fn each_difference_is_named_with_its_place() {
    let said = |error: LoadError| error.to_string();
    {
        #[derive(playfield_state::State, Default)]
        struct Board {
            title: u32,
        }
        #[derive(playfield_state::State, Default)]
        struct Other {
            title: u32,
        }
        let other = said(load::<Other>(&save(&Board::default())).err().unwrap());
        assert_eq!(
            other,
            "this is a save of a `Board`, not of a `Other`: the name of the type that is saved must stay the same"
        );
        let map = playfield_state::Map::<u8, u8>::new();
        let other = said(load::<Board>(&save(&map)).err().unwrap());
        assert!(other.starts_with("this is a save of a collection, not of a `Board`"), "{other}");
    }
    type Maps<K, V> = playfield_state::Map<K, V>;
    let error = load::<Maps<u8, u16>>(&save(&Maps::<u8, u8>::new())).err().unwrap();
    assert_eq!(
        error.to_string(),
        "*: the save has u8, this build has u16: keep the type, and add a field with another name"
    );
    let error = load::<Maps<u16, u8>>(&save(&Maps::<u8, u8>::new())).err().unwrap();
    assert!(error.to_string().starts_with("the save has u8, this build has u16"), "{error}");
    let error = load::<[u8; 3]>(&save(&[1_u8, 2])).err().unwrap();
    assert!(error.to_string().contains("an array of 2, this build has an array of 3"), "{error}");
}
