//! What the derive works out at compile time, and what the schema says of it.

#![allow(dead_code)] // these types are only asked for their shape

use playfield_state::{List, Map, PlayerId, State, Tracker, Tracking, view};

#[derive(State, Default, Clone)]
struct Plain {
    a: u32,
    b: List<u8>,
}

/// Its owner is told by a map around it.
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

fn constants<T: State>() -> [bool; 4] {
    [T::UNOWNED.is_some(), T::HAS_OWNED, T::NESTED_OWNERS, T::KEYED_BY_PLAYER]
}

#[test]
fn the_owner_of_a_field_is_looked_for_in_the_maps_around_it() {
    let (yes, no) = (true, false);
    assert_eq!(constants::<u32>(), [no; 4]);
    assert_eq!(constants::<Plain>(), [no; 4]);
    assert_eq!(constants::<Hides>(), [no; 4]);
    assert_eq!(constants::<Secretive>(), [yes, yes, no, no]);
    assert_eq!(constants::<Option<Secretive>>(), [yes, yes, no, no]);
    assert_eq!(constants::<List<Secretive>>(), [yes, yes, no, no]);
    assert_eq!(constants::<Map<String, Secretive>>(), [yes, yes, no, no]);
    // A map keyed by player says whose its entries are.
    assert_eq!(constants::<Map<PlayerId, Secretive>>(), [no, yes, yes, yes]);
    assert_eq!(constants::<Map<PlayerId, Map<u8, Secretive>>>(), [no, yes, yes, yes]);
    assert_eq!(constants::<Map<u8, Map<PlayerId, Secretive>>>(), [no, yes, yes, no]);
    assert_eq!(constants::<Map<PlayerId, Plain>>(), [no, no, no, yes]);
    // On such a map itself, `owner` needs nothing around it.
    assert_eq!(constants::<Hands>(), [no, yes, yes, no]);
    assert_eq!(constants::<Mixed>(), [yes, yes, yes, no]);
}

#[test]
fn null_is_a_value_of_options_alone() {
    let nullable = [<Option<u8>>::NULLABLE, u8::NULLABLE, <List<Option<u8>>>::NULLABLE, Plain::NULLABLE];
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
        room.hands.entry(player).a = 3;
    }
    room.deck.push(9);
    let everyone = r#"{"hands":{},"seats":{"1":{"open":1},"2":{"open":1}}}"#;
    assert_eq!(view(&room, None).to_string(), everyone);
    let first = r#"{"hands":{"1":{"a":3,"b":[]}},"seats":{"1":{"open":1,"secret":2},"2":{"open":1}}}"#;
    assert_eq!(view(&room, Some(PlayerId(1))).to_string(), first);
    // One who has no entry sees what everyone sees.
    assert_eq!(view(&room, Some(PlayerId(3))).to_string(), everyone);
    Tracker::new(&mut room, Tracking::On);
}
