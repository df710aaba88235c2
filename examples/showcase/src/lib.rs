//! Three example rooms on one server, bots that play in them, and a page that displays them.

pub mod arena;
pub mod bots;
pub mod cards;
pub mod counter;

use playfield::Server;

/// Smooth motion of the ships, as in the template of `playfield new`.
const MOTION: &str = include_str!("../../../crates/playfield/templates/arena/web/motion.js");

/// The server of the showcase: its rooms and its page.
pub fn server() -> Server {
    Server::new()
        .room::<counter::Counter>("counter")
        .room::<cards::Table>("table")
        .room::<arena::Arena>("arena")
        .page("/", "text/html; charset=utf-8", include_str!("../page/index.html"))
        .page("/motion.js", "text/javascript; charset=utf-8", MOTION)
}
