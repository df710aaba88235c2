//! Authentication of clients.

use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;

use playfield_room::{Claims, Error, invisible};
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;

/// The owner of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The display name; may be empty.
    pub name: String,
    /// The user's id, as the authenticator knows it; `None` for a guest.
    pub user: Option<String>,
    /// Further claims of the verified token about the user.
    pub claims: Claims,
    /// The session may join rooms by tickets that name a user, act in those rooms, and do nothing
    /// else: see [`ticket_holder`](Self::ticket_holder).
    pub tickets_only: bool,
}

impl Identity {
    /// A user by id and display name, without claims.
    #[must_use]
    pub fn user(user: impl Into<String>, name: impl Into<String>) -> Self {
        Self { name: name.into(), user: Some(user.into()), ..Self::default() }
    }

    /// With what else is known of the user: what [`Player::claims`](playfield_room::Player) shows
    /// and [`Access::claim`](crate::channel::Access::claim) asks for.
    ///
    /// ```
    /// # use playfield_server::Identity;
    /// use playfield_room::Claims;
    ///
    /// let ann = Identity::user("7", "Ann").claims(Claims::from_json(r#"{"role":"staff"}"#)?);
    /// assert_eq!(ann.claims.text("role"), Some("staff"));
    /// # Ok::<(), playfield_room::Error>(())
    /// ```
    #[must_use]
    pub fn claims(self, claims: Claims) -> Self {
        Self { claims, ..self }
    }

    /// A guest, by display name.
    #[must_use]
    pub fn guest(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Someone who is to show a ticket, by display name. In the room that a ticket is for, the
    /// player is the ticket's user. The session may be in such rooms, and whatever else it asks for
    /// is refused with `forbidden`.
    #[must_use]
    pub fn ticket_holder(name: impl Into<String>) -> Self {
        Self { name: name.into(), tickets_only: true, ..Self::default() }
    }
}

/// An authenticator's decision: who the client is, or why it is refused, usually with the code
/// `unauthorized`.
pub type Decided = Result<Identity, Error>;

/// A decision that takes time.
pub type Deciding = Pin<Box<dyn Future<Output = Decided> + Send>>;

/// An authenticator's answer to a hello.
pub enum Decision {
    /// The decision.
    Now(Decided),
    /// A future that decides. It runs on the node's Tokio runtime for background work, so it must
    /// not block. If it panics, the client is refused with `internal`.
    Later(Deciding),
}

impl Decision {
    /// A decision that takes time.
    #[must_use]
    pub fn later(deciding: impl Future<Output = Decided> + Send + 'static) -> Self {
        Self::Later(Box::pin(deciding))
    }
}

impl From<Decided> for Decision {
    fn from(decided: Decided) -> Self {
        Self::Now(decided)
    }
}

/// Decides who may open a session. A refused client is sent the error, and its connection is
/// closed.
pub trait Authenticator: Send + Sync {
    /// Says who sent this hello. It runs on a shard's thread, so it must not block: what takes time
    /// is decided [later](Decision::later). The client waits meanwhile, until `timeouts.hello`
    /// have passed since it connected; then the future is dropped.
    fn authenticate(&self, hello: &Hello<'_>) -> Decision;
}

/// An authenticator, and a check of whom it lets in.
pub(crate) struct Admitting {
    pub(crate) authenticator: Box<dyn Authenticator>,
    pub(crate) admit: Arc<Admit>,
}

/// Decides about someone whom the authenticator lets in.
pub(crate) type Admit = dyn Fn(Identity) -> Decision + Send + Sync;

impl Authenticator for Admitting {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        match self.authenticator.authenticate(hello) {
            Decision::Now(Ok(identity)) => (self.admit)(identity),
            Decision::Now(Err(refused)) => Decision::Now(Err(refused)),
            Decision::Later(deciding) => {
                let admit = Arc::clone(&self.admit);
                Decision::later(async move {
                    match admit(deciding.await?) {
                        Decision::Now(decided) => decided,
                        Decision::Later(deciding) => deciding.await,
                    }
                })
            }
        }
    }
}

/// The longest id of a user, in bytes.
const USER_BYTES_MAX: usize = 256;

/// Checks the id of a user, which others may see, and operators read in logs and consoles.
///
/// # Errors
/// `unauthorized` if it is empty or too long, or has characters that are invisible or change the
/// direction of text.
pub(crate) fn check_user(user: &str) -> Result<(), Error> {
    let text = match invisible(user) {
        _ if user.is_empty() => "the id of the user is empty".to_owned(),
        _ if user.len() > USER_BYTES_MAX => {
            let bytes = user.len();
            format!("the id of the user has {bytes} bytes; {USER_BYTES_MAX} are the limit")
        }
        Some(refused) => format!(
            "the id of the user contains the character {refused:?}, which is invisible or changes \
             the direction of text"
        ),
        None => return Ok(()),
    };
    Err(Error::new(ErrorCode::Unauthorized, text))
}

/// The refusal after a panic.
pub(crate) fn authenticator_failed() -> Error {
    Error::new(ErrorCode::Internal, "the authenticator failed")
}

/// An authenticator made of an async function.
///
/// The `resume` and `schemas` of the hello that it gets are empty.
#[derive(Clone, Copy, Debug)]
pub struct AsyncAuthenticator<F>(pub F);

impl<F, W> Authenticator for AsyncAuthenticator<F>
where
    F: Fn(Hello<'static>) -> W + Send + Sync,
    W: Future<Output = Decided> + Send + 'static,
{
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        let hello = Hello {
            protocol: hello.protocol,
            format: hello.format,
            name: Cow::Owned(hello.name.to_string()),
            token: Cow::Owned(hello.token.to_vec()),
            resumable: hello.resumable,
            resume: None,
            schemas: Vec::new(),
            redirects: hello.redirects,
        };
        Decision::later((self.0)(hello))
    }
}

/// Accepts everyone as a guest, under the name in the hello; the token is ignored.
///
/// White space around the name is cut off. A name that is too long is refused, and one with
/// characters that are invisible or change the direction of text. Names are not normalized: `é` can
/// be one character or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guests {
    /// The longest name, in bytes.
    pub name_bytes_max: usize,
}

impl Authenticator for Guests {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        self.admit(&hello.name).into()
    }
}

impl Guests {
    /// Says who a client is that gives this name.
    ///
    /// # Errors
    /// Why the name is refused.
    pub fn admit(&self, name: &str) -> Decided {
        let name = name.trim();
        if name.len() > self.name_bytes_max {
            let (bytes, bytes_max) = (name.len(), self.name_bytes_max);
            let text = format!(
                "limits.name_bytes.player: the name has {bytes} bytes, the limit is {bytes_max}"
            );
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if let Some(refused) = invisible(name) {
            let text = format!(
                "the name contains the character {refused:?}, which is invisible or changes the \
                 direction of text; remove it"
            );
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
        Ok(Identity::guest(name))
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::ErrorCode;

    use super::Guests;

    fn ask(name: &str) -> Result<String, ErrorCode> {
        let identity = Guests { name_bytes_max: 6 }.admit(name);
        identity.map(|identity| identity.name).map_err(|error| error.code())
    }

    #[test]
    fn names_of_guests() {
        assert_eq!(ask(""), Ok("".into()));
        assert_eq!(ask("  ann \n"), Ok("ann".into()));
        assert_eq!(ask("123456"), Ok("123456".into()));
        assert_eq!(ask("1234567"), Err(ErrorCode::Limit));
        assert_eq!(ask("a\u{7}b"), Err(ErrorCode::Unauthorized));
        assert_eq!(ask("a\u{85}b"), Err(ErrorCode::Unauthorized));
        for unseen in [
            "\u{200B}", "\u{2800}", "\u{FE0F}", "\u{200F}", "\u{202A}", "\u{202E}", "\u{2060}",
            "\u{2069}", "\u{FEFF}",
        ] {
            for name in [format!("a{unseen}"), format!("{unseen}a"), unseen.into()] {
                assert_eq!(ask(&name), Err(ErrorCode::Unauthorized), "{name:?}");
            }
        }
        for seen in ["\u{2764}\u{FE0F}", "\u{FC}", "\u{5D0}", "\u{1F600}", "a b"] {
            assert_eq!(ask(seen), Ok(seen.into()));
        }
    }
}
