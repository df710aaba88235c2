//! Who a client is.

use playfield_room::{Error, Result};
use playfield_wire::ErrorCode;

/// What a client says of itself in its hello.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    /// The display name it wants.
    pub name: &'a str,
    /// What proves who it is; empty if it doesn't say.
    pub token: &'a [u8],
}

/// Who a client is, once it is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The display name.
    pub name: String,
    /// A name that is one person's alone; `None` for a guest.
    pub user: Option<String>,
}

/// Decides who is let in, and as whom. It is asked on a shard's own thread, and so must not wait.
pub trait Authenticator: Send + Sync {
    /// Lets a client in, or not.
    ///
    /// # Errors
    /// A refusal; its code is best `unauthorised`.
    fn authenticate(&self, credentials: Credentials<'_>) -> Result<Identity>;
}

/// Lets everyone in, under the display name they choose.
#[derive(Clone, Copy, Debug)]
pub struct Guests {
    /// The longest name, bytes.
    pub name_bytes_max: usize,
}

impl Authenticator for Guests {
    fn authenticate(&self, Credentials { name, .. }: Credentials<'_>) -> Result<Identity> {
        let name = name.trim();
        if name.len() > self.name_bytes_max {
            let text = format!(
                "a name has at most name_bytes_max = {} bytes, this one has {}",
                self.name_bytes_max,
                name.len()
            );
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if name.chars().any(char::is_control) {
            return Err(Error::new(ErrorCode::Refused, "a name holds no control characters"));
        }
        Ok(Identity { name: if name.is_empty() { "guest".to_owned() } else { name.to_owned() }, user: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Result<String> {
        Guests { name_bytes_max: 8 }
            .authenticate(Credentials { name, token: b"" })
            .map(|identity| identity.name)
    }

    #[test]
    fn a_guest_has_a_plain_name() {
        assert_eq!(name("  Ann "), Ok("Ann".into()));
        assert_eq!(name(""), Ok("guest".into()));
        assert_eq!(name("12345678"), Ok("12345678".into()));
        assert_eq!(name("123456789").unwrap_err().code(), ErrorCode::Limit);
        assert_eq!(name("a\u{7}b").unwrap_err().code(), ErrorCode::Refused);
    }
}
