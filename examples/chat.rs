//! Chat: everyone in a room reads what is said, and who comes later reads the last lines.
//!
//! `cargo run --bin chat` serves it on 127.0.0.1:7350. With `CHAT_KEYS=file`, only users with a
//! JSON Web Token for `chat` get in, signed by a key in the file; moderators may clear the room.

use playfield::identity::{Jwt, Keys};
use playfield::prelude::*;

/// The number of lines that a room keeps.
const LINES_MAX: usize = 100;

/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 1_000;

/// The state of a room. Each member has a copy, which Playfield keeps up to date.
#[derive(State, Default)]
struct Chat {
    members: Map<PlayerId, String>,
    /// The players whose connection is lost. They come back and have missed nothing, or leave.
    away: Set<PlayerId>,
    lines: List<Line>,
}

#[derive(State, Default)]
struct Line {
    from: String,
    text: String,
}

/// Says something: five times a second, and ten times at once. Without `#[reply(…)]` the reply is
/// empty.
#[derive(Message)]
#[message(rate = 5, burst = 10)]
struct Say {
    text: String,
}

/// Removes all lines. It is for moderators, whose token says so.
#[derive(Message)]
struct Clear;

/// Someone came or left. An event is sent once, and is not part of the state.
#[derive(Message)]
struct Notice {
    text: String,
}

// A member whose connection is silent for five seconds has lost it.
#[room(messages(Say, Clear), events(Notice), capacity = 200, silence_ms = 5_000)]
impl Room for Chat {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.members.insert(player.id(), player.name().to_owned());
        cx.emit_except(player.id(), &Notice { text: format!("{} is here", player.name()) });
        Ok(())
    }

    fn lost(&mut self, player: &Player, _: &mut Context<Self>) {
        self.away.insert(player.id());
    }

    fn returned(&mut self, player: &Player, _: &mut Context<Self>) {
        self.away.remove(&player.id());
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.members.remove(&player.id());
        self.away.remove(&player.id());
        cx.emit(&Notice { text: format!("{} has left", player.name()) });
    }
}

impl Handle<Say> for Chat {
    fn handle(&mut self, say: Say, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if say.text.len() > LINE_BYTES_MAX {
            // An error is the answer to the player who asked; nobody else sees it.
            return Err(format!("a line has at most {LINE_BYTES_MAX} bytes").into());
        }
        if self.lines.len() == LINES_MAX {
            self.lines.remove(0);
        }
        // The others get this line, not the whole list.
        self.lines.push(Line { from: player.name().to_owned(), text: say.text });
        Ok(())
    }
}

impl Handle<Clear> for Chat {
    fn handle(&mut self, _: Clear, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if player.claims().text("role") != Some("moderator") {
            return Err("only moderators may clear the room".into());
        }
        self.lines.clear();
        Ok(())
    }
}

/// Name, user and claims are the token's, whatever the client says, if there are keys for tokens.
fn with_tokens(server: Server) -> Result<Server, String> {
    let Ok(path) = std::env::var("CHAT_KEYS") else { return Ok(server) };
    let keys = Keys::file(path).map_err(|error| format!("CHAT_KEYS: {error}"))?;
    Ok(server.jwt(Jwt::new(keys).audience("chat")))
}

fn main() -> ExitCode {
    Server::new().room::<Chat>("chat").prepare(with_tokens).run()
}
