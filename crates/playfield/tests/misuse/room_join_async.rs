use playfield::prelude::*;

#[derive(State, Default)]
struct Club {
    members: u32,
}

#[room()]
impl Room for Club {
    async fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        look_up(player.user()).await
    }
}

async fn look_up(_: Option<&str>) -> Result<()> {
    Ok(())
}

fn main() {}
