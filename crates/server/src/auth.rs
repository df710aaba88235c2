//! Who a client is.

use playfield_room::Error;
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;

/// Who a session belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The display name; may be empty.
    pub name: String,
    /// Who this is, in whatever way the authenticator knows users; `None` for a guest.
    pub user: Option<String>,
}

/// Decides who may open a session. It is called on a shard's thread, so it must not wait.
pub trait Authenticator: Send + Sync {
    /// Says who sent this hello.
    ///
    /// # Errors
    /// Whatever it holds against the client, usually with the code `unauthorized`. The connection
    /// is closed then.
    fn authenticate(&self, hello: &Hello<'_>) -> Result<Identity, Error>;
}

/// Lets everyone in as a guest, under the name that they give; the token is ignored.
///
/// White space around the name is cut off. A name with control characters is refused, as is one
/// that is too long.
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
        if let Some(control) = name.chars().find(|character| character.is_control()) {
            let text = format!("the name contains the control character {control:?}");
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
        let identity = Guests { name_bytes_max: 5 }.authenticate(&hello);
        identity.map(|identity| identity.name).map_err(|error| error.code())
    }

    #[test]
    fn names_of_guests() {
        assert_eq!(ask(""), Ok("".into()));
        assert_eq!(ask("  ann \n"), Ok("ann".into()));
        assert_eq!(ask("12345"), Ok("12345".into()));
        assert_eq!(ask("123456"), Err(ErrorCode::Limit));
        assert_eq!(ask("a\u{7}b"), Err(ErrorCode::Unauthorized));
        assert_eq!(ask("a\u{85}b"), Err(ErrorCode::Unauthorized));
    }
}
