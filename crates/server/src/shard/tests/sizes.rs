//! The sizes of the parts of an idle connection and its session.

use crate::addresses::Tally;
use crate::shard::connection::Connection;
use crate::shard::connection::timeouts::Place;
use crate::shard::connection::transport::Dialect;
use crate::shard::connection::transport::Input;
use crate::shard::session::Session;
use crate::shard::session::rates::Usage;
use crate::shard::session::resumption::Resumption;

/// `cargo test -p playfield-server --lib sizes -- --nocapture` prints them.
#[test]
fn an_idle_connection_is_small() {
    let sizes = [
        ("connection", size_of::<Connection>()),
        ("  of it: input", size_of::<Input>()),
        ("  of it: dialect", size_of::<Dialect>()),
        ("  of it: tally", size_of::<Tally>()),
        ("WebSocket decoder", size_of::<playfield_websocket::Decoder>()),
        ("session", size_of::<Session>()),
        ("  of it: usage", size_of::<Usage>()),
        ("resumption", size_of::<Resumption>()),
        ("place in the wheel of timeouts", size_of::<Place>()),
    ];
    for (part, bytes) in sizes {
        println!("{part}: {bytes} bytes");
    }
    assert!(size_of::<Connection>() <= 176 && size_of::<Session>() <= 136, "{sizes:?}");
    assert!(size_of::<Resumption>() <= 72 && size_of::<Place>() <= 4, "{sizes:?}");
}
