//! The creation of a room.

/// The settings for creating a room, beside its options: a public room without a key, unless they
/// say otherwise.
///
/// ```
/// use playfield_client::Creation;
///
/// let document = Creation::new().key("document 42");
/// let invited = Creation::new().private().code();
/// # assert_ne!(document, invited);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "it does nothing by itself"]
pub struct Creation {
    pub(crate) private: bool,
    pub(crate) code: bool,
    pub(crate) key: Option<String>,
}

impl Creation {
    /// A public room without a key.
    pub fn new() -> Self {
        Self::default()
    }

    /// A room that is neither listed nor entered by `join_or_create`.
    pub fn private(mut self) -> Self {
        self.private = true;
        self
    }

    /// A room with this key, by which others can enter it. The node refuses with `room_exists` if a
    /// room of the type has it.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// A room with a short code as its key, which the node picks:
    /// [`Joined::key`](crate::session::Joined::key). It is made to be read aloud and typed in.
    pub fn code(mut self) -> Self {
        self.code = true;
        self
    }
}

impl From<bool> for Creation {
    /// A room without a key that is private, or public.
    fn from(private: bool) -> Self {
        Self { private, ..Self::default() }
    }
}
