use playfield::prelude::*;

#[derive(State, Default)]
struct Table {}

impl Room for Table {
    type Options = ();

    fn create(_: (), _: &mut Context<Self>) -> Result<Self> {
        Ok(Self::default())
    }
}

fn main() {}
