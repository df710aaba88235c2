//! Results of the derive at compile time, and what the schema says about them.

#![allow(dead_code)] // only the shape of these types is used

use playfield_state::{
    Format, JsonMirror, List, Map, Mirror, PlayerId, State, Tracker, Tracking, view,
};

#[derive(State, Default, Clone)]
struct Plain {
    a: u32,
    b: List<u8>,
}

/// Its owner is determined by an enclosing map.
#[derive(State, Default, Clone)]
struct Secretive {
    open: u8,
    #[sync(owner)]
    secret: u8,
}

#[derive(State, Default)]
struct Hides {
    #[sync(hidden)]
    inside: Secretive,
    #[sync(hidden)]
    map: Map<u32, Secretive>,
}

#[derive(State, Default)]
struct Hands {
    #[sync(owner)]
    hands: Map<PlayerId, Plain>,
}

#[derive(State, Default)]
struct Mixed {
    #[sync(owner)]
    hands: Map<PlayerId, Plain>,
    #[sync(owner)]
    more: List<u8>,
}

fn nullable<T: State>() -> bool {
    T::NULLABLE
}

fn constants<T: State>() -> [bool; 4] {
    [T::UNOWNED.is_some(), T::HAS_OWNED, T::NESTED_OWNERS, T::KEYED_BY_PLAYER]
}

#[test]
fn the_owner_of_a_field_is_found_in_the_enclosing_maps() {
    let (yes, no) = (true, false);
    assert_eq!(constants::<u32>(), [no; 4]);
    assert_eq!(constants::<Plain>(), [no; 4]);
    assert_eq!(constants::<Hides>(), [no; 4]);
    assert_eq!(constants::<Secretive>(), [yes, yes, no, no]);
    assert_eq!(constants::<Option<Secretive>>(), [yes, yes, no, no]);
    assert_eq!(constants::<List<Secretive>>(), [yes, yes, no, no]);
    assert_eq!(constants::<Map<String, Secretive>>(), [yes, yes, no, no]);
    // A map keyed by player determines the owners of its entries.
    assert_eq!(constants::<Map<PlayerId, Secretive>>(), [no, yes, yes, yes]);
    assert_eq!(constants::<Map<PlayerId, Map<u8, Secretive>>>(), [no, yes, yes, yes]);
    assert_eq!(constants::<Map<u8, Map<PlayerId, Secretive>>>(), [no, yes, yes, no]);
    assert_eq!(constants::<Map<PlayerId, Plain>>(), [no, no, no, yes]);
    // On such a map itself, `owner` needs no enclosing map.
    assert_eq!(constants::<Hands>(), [no, yes, yes, no]);
    assert_eq!(constants::<Mixed>(), [yes, yes, yes, no]);
}

#[test]
fn only_options_can_be_null() {
    let nullable = [
        nullable::<Option<u8>>(),
        nullable::<u8>(),
        nullable::<List<Option<u8>>>(),
        nullable::<Plain>(),
    ];
    assert_eq!(nullable, [true, false, false, false]);
}

#[derive(State, Default)]
struct Room {
    seats: Map<PlayerId, Secretive>,
    #[sync(owner)]
    hands: Map<PlayerId, Plain>,
    #[sync(hidden)]
    deck: List<u8>,
}

#[test]
fn a_view_shows_what_the_policies_say() {
    let mut room = Room::default();
    for player in [1, 2].map(PlayerId) {
        room.seats.insert(player, Secretive { open: 1, secret: 2 });
        room.hands.get_or_default(player).a = 3;
    }
    room.deck.push(9);
    let everyone = r#"{"hands":{},"seats":{"1":{"open":1},"2":{"open":1}}}"#;
    assert_eq!(view(&room, None).to_string(), everyone);
    let first =
        r#"{"hands":{"1":{"a":3,"b":[]}},"seats":{"1":{"open":1,"secret":2},"2":{"open":1}}}"#;
    assert_eq!(view(&room, Some(PlayerId(1))).to_string(), first);
    // A player without an entry sees what everyone sees.
    assert_eq!(view(&room, Some(PlayerId(3))).to_string(), everyone);
    Tracker::new(&mut room, Tracking::On);
}

#[derive(State, Default)]
struct Night {
    #[sync(hidden)]
    cameras: Map<PlayerId, Camera>,
    #[sync(view = lit, viewer = cameras)]
    things: Map<u8, u8>,
}

#[derive(State, Default)]
struct Camera {
    level: u8,
}

fn lit(depth: &u8, camera: &Camera) -> bool {
    *depth <= camera.level
}

#[test]
fn viewers_that_return_after_removal_are_evaluated_again() {
    let mut night = Night::default();
    night.cameras.insert(PlayerId(1), Camera { level: 0 });
    night.things.insert(1, 5);
    let mut tracker = Tracker::new(&mut night, Tracking::On);
    let mut copy = Mirror::<Night>::new();
    let mut body = Vec::new();
    tracker.snapshot(PlayerId(1), Format::Packed, &mut body);
    copy.snapshot(&body).unwrap();
    let mut sync = |night: &mut Night| {
        let since = tracker.version();
        tracker.sync(night);
        let mut body = Vec::new();
        if tracker.patch(PlayerId(1), since, Format::Packed, &mut body) {
            copy.patch(&body).unwrap();
        }
        assert_eq!(copy.digest(), tracker.digest(PlayerId(1), Format::Packed));
        copy.state().things.len()
    };
    let all_seeing = [(PlayerId(1), Camera { level: 9 })].into_iter().collect();
    let dark = std::mem::replace(&mut night.cameras, all_seeing);
    assert_eq!(sync(&mut night), 1);
    let bright = std::mem::replace(&mut night.cameras, dark);
    assert_eq!(sync(&mut night), 0);
    night.cameras = bright;
    assert_eq!(sync(&mut night), 1);
    let taken = std::mem::take(&mut night.cameras);
    assert_eq!(sync(&mut night), 0);
    night.cameras = taken;
    assert_eq!(sync(&mut night), 1);
}

#[derive(State)]
struct Bag {
    items: Map<u8, u8>,
    size: u8,
}

/// A kit to begin with.
impl Default for Bag {
    fn default() -> Self {
        Self { items: [(1, 1)].into_iter().collect(), size: 3 }
    }
}

#[derive(State, Default)]
struct Carrier {
    #[sync(owner)]
    bag: Bag,
}

#[derive(State, Default)]
struct Camp {
    carriers: Map<PlayerId, Carrier>,
}

#[test]
fn entries_of_a_default_are_not_revealed_in_a_copy() {
    for taken in [false, true] {
        let mut camp = Camp::default();
        let bag = &mut camp.carriers.get_or_default(PlayerId(1)).bag;
        if taken {
            bag.items.clear();
        }
        let mut tracker = Tracker::new(&mut camp, Tracking::On);
        for viewer in [PlayerId(1), PlayerId(2)] {
            let (mut copy, mut body) = (Mirror::<Camp>::new(), Vec::new());
            tracker.snapshot(viewer, Format::Packed, &mut body);
            copy.snapshot(&body).unwrap();
            assert_eq!(copy.digest(), tracker.digest(viewer, Format::Packed));
            let mut json = JsonMirror::new();
            body.clear();
            tracker.snapshot(viewer, Format::Json, &mut body);
            json.snapshot(&body).unwrap();
            assert_eq!(*json.state(), view(&camp, Some(viewer)));
            assert_eq!(view(copy.state(), Some(viewer)), *json.state());
        }
    }
}

/// A box whose default contains a spot, which few see.
#[derive(State)]
struct Case {
    eyes: Map<PlayerId, bool>,
    #[sync(view = is_open, viewer = eyes)]
    spot: u8,
}

impl Default for Case {
    fn default() -> Self {
        Self { eyes: Map::new(), spot: 7 }
    }
}

fn is_open(_: &u8, open: &bool) -> bool {
    *open
}

#[derive(State, Default)]
struct Porter {
    #[sync(owner)]
    case: Case,
}

#[derive(State, Default)]
struct Station {
    porters: Map<PlayerId, Porter>,
}

/// Private contents of a default once got into the copies of players who don't see them, so their
/// digests were never right.
#[test]
fn hidden_contents_of_a_default_are_not_revealed_in_a_copy() {
    let mut station = Station::default();
    let mut tracker = Tracker::new(&mut station, Tracking::On);
    station.porters.get_or_default(PlayerId(1));
    tracker.sync(&mut station);
    for sees in [false, true] {
        station.porters.get_or_default(PlayerId(1)).case.eyes.insert(PlayerId(1), sees);
        tracker.sync(&mut station);
        for viewer in [PlayerId(1), PlayerId(2)] {
            let (mut copy, mut body) = (Mirror::<Station>::new(), Vec::new());
            tracker.snapshot(viewer, Format::Packed, &mut body);
            copy.snapshot(&body).unwrap();
            assert_eq!(copy.digest(), tracker.digest(viewer, Format::Packed));
            assert_eq!(view(copy.state(), Some(viewer)), view(&station, Some(viewer)));
            let spot = copy.state().porters.get(&PlayerId(1)).map(|porter| porter.case.spot);
            assert_eq!(spot, Some(if sees && viewer == PlayerId(1) { 7 } else { 0 }));
        }
    }
}
