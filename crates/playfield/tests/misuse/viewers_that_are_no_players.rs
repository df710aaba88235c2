use playfield::prelude::*;

#[derive(State, Default)]
struct Field {
    lamps: Map<u32, u8>,
    #[sync(view = lit, viewer = lamps)]
    things: Map<u32, u8>,
}

fn lit(_: &u8, _: &u8) -> bool {
    true
}

#[room()]
impl Room for Field {
    type Options = ();
}

fn main() {}
