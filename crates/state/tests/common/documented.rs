//! The state of the examples in `docs/state.md`.

use playfield_state::{List, Map, PlayerId, State};

#[derive(State, Default)]
pub(crate) struct Table {
    pub(crate) round: u32,
    pub(crate) seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    pub(crate) hands: Map<PlayerId, Hand>,
    #[sync(hidden)]
    pub(crate) deck: List<u8>,
    pub(crate) log: List<u8>,
    pub(crate) last: Option<u8>,
}

#[derive(State, Default)]
pub(crate) struct Seat {
    pub(crate) hp: i32,
    #[sync(owner)]
    pub(crate) secret: u8,
}

#[derive(State, Default)]
pub(crate) struct Hand {
    pub(crate) cards: List<u8>,
}
