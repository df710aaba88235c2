//! The rooms that `capacity` measures: those of two examples, and a world with views by place.

#[path = "../../../examples/arena.rs"]
#[expect(dead_code, reason = "it is a program of its own, too")]
mod arena;
#[path = "../../../examples/cards.rs"]
#[expect(dead_code, reason = "it is a program of its own, too")]
mod cards;
mod world;

use playfield::Server;

/// The commands that these programs run, and the one that they start.
const COMMANDS: [&str; 3] = ["capacity", "profile", playfield_measure::node::COMMAND];

/// The program with the room that these arguments measure; `None` if they are another command.
#[must_use]
pub fn measured(arguments: &[String]) -> Option<Server> {
    let (command, rest) = arguments.split_first()?;
    if !COMMANDS.contains(&command.as_str()) {
        return None;
    }
    let is_of =
        |room: &str| rest.iter().any(|word| word == room || word.contains(&format!("\"{room}\"")));
    let rooms = [("table", cards::server as fn() -> Server), ("world", world::server)];
    let room = rooms.into_iter().find(|(room, _)| is_of(room));
    Some(room.map_or_else(arena::server, |(_, server)| server()))
}
