//! Creators, such as client addresses, with which channels are counted while they exist.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use crate::channel::shares::Holder;

/// Someone because of whom channels exist, such as the address of a client.
pub trait Creator: Send + Sync {
    /// Counts one more channel, if there may be one.
    fn creates(&self) -> bool;

    /// A channel that was counted has ended.
    fn ended(&self);

    /// A channel that was counted keeps `after` bytes of publications, and kept `before`.
    fn keeps(&self, before: usize, after: usize);

    /// Returns whether its channels keep more than its share.
    fn keeps_too_much(&self) -> bool;
}

/// One channel of its creator, if it has one.
pub(crate) struct Charge(Option<Arc<dyn Creator>>);

impl Charge {
    /// `None` if the creator has too many.
    pub(crate) fn of(creator: Option<Arc<dyn Creator>>) -> Option<Self> {
        let may = creator.as_ref().is_none_or(|creator| creator.creates());
        may.then(|| Self(creator))
    }

    /// The holder that is charged for what the channel with this number keeps.
    pub(crate) fn holder(&self, channel: u64) -> Holder {
        match &self.0 {
            Some(creator) => Holder::Creator(Arc::as_ptr(creator).cast::<()>() as usize),
            None => Holder::Channel(channel),
        }
    }

    /// The channel keeps `after` bytes, and kept `before`.
    pub(crate) fn keeps(&self, before: usize, after: usize) {
        if let Some(creator) = &self.0 {
            creator.keeps(before, after);
        }
    }

    /// Returns whether the creator's channels keep more than its share.
    pub(crate) fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|creator| creator.keeps_too_much())
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
