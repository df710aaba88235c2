use playfield::prelude::*;

type Things = Map<u32, u8>;

#[derive(State, Default)]
struct Field {
    seats: Map<PlayerId, u8>,
    #[sync(view = seen, viewer = seats)]
    things: Things,
}

fn seen(_: &Things, _: &u8) -> bool {
    true
}

#[room()]
impl Room for Field {
    type Options = ();
}

fn main() {}
