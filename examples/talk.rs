//! Talk: a chat made of channels alone, without rooms.
//!
//! `cargo run --bin talk` serves it on 127.0.0.1:7350: open http://127.0.0.1:7350/ in two windows.
//! Guests read. To write, log in as `ann` with the password `apple`, or as `bob` with `banana`.

use std::time::Duration;

use playfield::channel::{Access, ChannelRule};
use playfield::prelude::*;
use playfield::{ErrorCode, Identity};

/// A real program asks a database, or verifies a JSON Web Token: see `chat.rs`.
const PASSWORDS: [(&str, &str); 2] = [("ann", "apple"), ("bob", "banana")];

/// Without a token one is a guest; with one, the user whose password it is.
fn identity(name: &str, token: &[u8]) -> Result<Identity> {
    if token.is_empty() {
        return Ok(Identity::guest(name));
    }
    let user = PASSWORDS.iter().find(|(user, word)| *user == name && word.as_bytes() == token);
    let (user, _) = user.ok_or(Error::new(ErrorCode::Unauthorized, "the password is wrong"))?;
    Ok(Identity::user(*user, *user))
}

fn main() -> ExitCode {
    let kept = Duration::from_secs(3600);
    Server::new()
        .authenticate(|hello| async move { identity(&hello.name, &hello.token) })
        // The first rule that matches decides. What only Ann writes, all read.
        .channel(
            ChannelRule::new("talk:news")
                .publish(Access::check(|who, _channel| who.user == Some("ann")))
                .history(10, kept),
        )
        // All other talks: users write, and everyone sees who is there. Who was away reads what
        // was said meanwhile, as far as it is kept.
        .channel(
            ChannelRule::new("talk:*")
                .publish(Access::User)
                .presence(Access::Anyone)
                .history(50, kept),
        )
        // Users write to each other: only the one whose name it has reads an inbox.
        .channel(
            ChannelRule::new("inbox:*")
                .subscribe(Access::check(|who, name| name.strip_prefix("inbox:") == who.user))
                .publish(Access::User)
                .history(20, kept),
        )
        // A user's windows share notes.
        .channel(ChannelRule::new("notes:{user}").publish(Access::User).history(1, kept))
        .folder("/", concat!(env!("CARGO_MANIFEST_DIR"), "/talk"))
        .run()
}
