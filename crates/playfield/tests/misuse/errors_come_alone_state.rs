//! Errors are reported where they are, and nothing else where the types are used.
use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    #[sync(near = [at], viewer = eyes, radius = 5.0)]
    units: Map<Place, Unit>,
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
    pairs: List<Pair<u8>>,
    number: Number,
}

#[derive(State, Default)]
struct Unit {
    #[sync(hide)]
    at: u8,
}

#[derive(State, Default)]
struct Pair<T> {
    at: T,
}

#[derive(State, Default)]
struct Eye {
    #[sync(owner = 3)]
    at: u8,
    nothings: List<Nothing>,
}

#[derive(State)]
union Number {
    signed: i8,
    unsigned: u8,
}

impl Default for Number {
    fn default() -> Self {
        Self { signed: -1 }
    }
}

#[derive(Key, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u32, u32);

#[derive(State, Data, Clone)]
enum Nothing {}

#[room]
impl Room for Field {}

fn main() {
    let _ = Server::new().room::<Field>("field");
    let _ = playfield::save(&Field::default());
}
