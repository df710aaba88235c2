use playfield::prelude::*;

use std::rc::Rc;

#[derive(State, Default)]
struct World {
    #[sync(skip)]
    index: Rc<u8>,
}

#[room()]
impl Room for World {}

fn main() {}
