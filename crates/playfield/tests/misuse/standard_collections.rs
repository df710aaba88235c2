//! Collections of the standard library do not track changes.
use playfield::prelude::*;

#[derive(State, Default)]
struct Board {
    notices: Vec<String>,
    #[sync(skip)]
    cache: Vec<u8>,
}

#[derive(State, Default)]
struct Game {
    by_team: Map<u32, std::collections::BTreeMap<u32, u8>>,
    board: Board,
}

#[room]
impl Room for Game {}

fn main() {
    let _ = Server::new().room::<Game>("game");
}
