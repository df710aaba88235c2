//! Authentication of clients.

use playfield_room::{Error, invisible};
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;

/// Who a session belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The display name; may be empty.
    pub name: String,
    /// The user's id, as the authenticator knows it; `None` for a guest.
    pub user: Option<String>,
}

/// Decides who may open a session. It runs on a shard's thread, so it must not block.
pub trait Authenticator: Send + Sync {
    /// Says who sent this hello.
    ///
    /// # Errors
    /// Why the client is refused, usually with the code `unauthorized`. The connection is closed.
    fn authenticate(&self, hello: &Hello<'_>) -> Result<Identity, Error>;
}

/// Accepts everyone as a guest, under the name in the hello; the token is ignored.
///
/// White space around the name is cut off. A name that is too long is refused, and one with
/// characters that are invisible or change the direction of text. Names are not normalized: `é` can be
/// one character or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guests {
    /// The longest name, in bytes.
    pub name_bytes_max: usize,
}

impl Authenticator for Guests {
    fn authenticate(&self, hello: &Hello<'_>) -> Result<Identity, Error> {
        let name = hello.name.trim();
        if name.len() > self.name_bytes_max {
            let (bytes, bytes_max) = (name.len(), self.name_bytes_max);
            let text =
                format!("name_bytes_max: the name has {bytes} bytes, the limit is {bytes_max}");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if let Some(refused) = invisible(name) {
            let text = format!(
                "the name contains the character {refused:?}, which is invisible or changes the \
                 direction of text; remove it"
            );
            return Err(Error::new(ErrorCode::Unauthorized, text));
        }
        Ok(Identity { name: name.into(), user: None })
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::client::Hello;
    use playfield_wire::{ErrorCode, Format};

    use super::{Authenticator, Guests};

    fn ask(name: &str) -> Result<String, ErrorCode> {
        let hello = Hello { name: name.into(), ..Hello::new(Format::Packed) };
        let identity = Guests { name_bytes_max: 6 }.authenticate(&hello);
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
