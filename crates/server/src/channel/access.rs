//! The sessions that may do something in a channel.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// The sessions that may do something.
#[derive(Clone, Default)]
pub enum Access {
    /// No client. Rooms, services and the program may.
    #[default]
    Nobody,
    /// Every client.
    Anyone,
    /// Clients with a verified user.
    User,
    /// Clients whose token has this claim with this value.
    Claim(String, Value),
    /// Clients for which this is true, given the channel's name. It is called on a shard's thread,
    /// so it must not block.
    Check(Arc<Check>),
}

/// Decides who may do something in the channel of a name.
type Check = dyn Fn(&Asker<'_>, &str) -> bool + Send + Sync;

impl Access {
    /// Clients whose token has this claim with this value.
    #[must_use]
    pub fn claim(name: &str, value: impl Into<Value>) -> Self {
        Self::Claim(name.into(), value.into())
    }

    /// Clients for which this is true, given the channel's name. It is called on a shard's thread,
    /// so it must not block.
    #[must_use]
    pub fn check(check: impl Fn(&Asker<'_>, &str) -> bool + Send + Sync + 'static) -> Self {
        Self::Check(Arc::new(check))
    }

    pub(super) fn admits(&self, asker: &Asker<'_>, channel: &str) -> bool {
        match self {
            Self::Nobody => false,
            Self::Anyone => true,
            Self::User => asker.user.is_some(),
            Self::Claim(name, value) => asker.claim(name) == Some(value),
            Self::Check(check) => check(asker, channel),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("Nobody"),
            Self::Anyone => f.write_str("Anyone"),
            Self::User => f.write_str("User"),
            Self::Claim(name, value) => f.debug_tuple("Claim").field(name).field(value).finish(),
            Self::Check(_) => f.write_str("Check(..)"),
        }
    }
}

/// The session that wants something of a channel.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// Its verified user, if it has one.
    pub user: Option<&'a str>,
    /// Its display name, which is its own choice unless its token says it.
    pub name: &'a str,
    claims: &'a dyn Fn(&str) -> Option<&'a Value>,
}

impl<'a> Asker<'a> {
    /// A session, with the claims of its token by name.
    #[must_use]
    pub fn new(
        user: Option<&'a str>,
        name: &'a str,
        claims: &'a dyn Fn(&str) -> Option<&'a Value>,
    ) -> Self {
        Self { user, name, claims }
    }

    /// The claim of its verified token under this name.
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<&'a Value> {
        (self.claims)(name)
    }
}

impl fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker").field("user", &self.user).field("name", &self.name).finish()
    }
}
