//! Keys of maps.

use std::borrow::Cow;

use playfield_wire::DecodeError;

use crate::{Data, PlayerId};

/// A key of a [`Map`](crate::Map): a player, a text, an integer, or a newtype of one of these.
///
/// ```
/// use playfield_state::{Key, Map};
///
/// #[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
/// struct UnitId(u32);
///
/// let mut units = Map::new();
/// units.insert(UnitId(7), "scout".to_owned());
/// assert_eq!(units.get(&UnitId(7)).map(String::as_str), Some("scout"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the key of a map",
    note = "keys are `PlayerId`, `String`, the integers, and newtypes of these that derive `Key`, `Clone` and `Ord`"
)]
pub trait Key: Data + Ord + Clone + 'static {
    /// Maps with this key are keyed by player.
    const IS_PLAYER: bool = false;

    /// The player, if it is one.
    fn player(&self) -> Option<PlayerId> {
        None
    }

    /// The key of a player, where keys are players.
    fn of_player(_: PlayerId) -> Option<Self> {
        None
    }

    /// The key as the name of a JSON member.
    fn name(&self) -> Cow<'_, str>;

    /// Reads it back.
    ///
    /// # Errors
    /// If the name is not such a key.
    fn parse(name: &str) -> Result<Self, DecodeError>;
}

impl Key for String {
    fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
    fn parse(name: &str) -> Result<Self, DecodeError> {
        Ok(name.to_owned())
    }
}

impl Key for PlayerId {
    const IS_PLAYER: bool = true;

    fn player(&self) -> Option<PlayerId> {
        Some(*self)
    }
    fn of_player(player: PlayerId) -> Option<Self> {
        Some(player)
    }
    fn name(&self) -> Cow<'_, str> {
        Cow::Owned(self.to_string())
    }
    fn parse(name: &str) -> Result<Self, DecodeError> {
        u64::parse(name).map(Self)
    }
}

macro_rules! integer_keys {
    ($($int:ty)*) => {$(
        impl Key for $int {
            fn name(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
            fn parse(name: &str) -> Result<Self, DecodeError> {
                name.parse().map_err(|_| DecodeError::other(format!("{name:?} is not a valid {}", stringify!($int))))
            }
        }
    )*};
}

integer_keys! { u8 u16 u32 u64 i8 i16 i32 i64 }
