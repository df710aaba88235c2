//! Who is counted with a channel, for as long as it exists.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// Someone because of whom channels exist, such as the address of a client.
pub trait Creator: Send + Sync {
    /// Counts one more channel, if there may be one.
    fn creates(&self) -> bool;

    /// A channel that was counted has ended.
    fn ended(&self);
}

/// One channel of its creator, if it has one.
pub(crate) struct Charge(Option<Arc<dyn Creator>>);

impl Charge {
    /// `None` if the creator has too many.
    pub(crate) fn of(creator: Option<Arc<dyn Creator>>) -> Option<Self> {
        let may = creator.as_ref().is_none_or(|creator| creator.creates());
        may.then(|| Self(creator))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(creator) = &self.0 {
            creator.ended();
        }
    }
}

impl Debug for Charge {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Charge").field(&self.0.is_some()).finish()
    }
}
