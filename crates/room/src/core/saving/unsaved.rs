//! The state of a room that ended without being saved, or failed, to be saved later.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{Owned, Saves, Saving};
use crate::copies::keep_copy;
use crate::{Store, StoreError, StoreErrorKind};

/// A room that ended while its store was unavailable, or failed. The room's save stays open until
/// this is dropped.
pub struct Unsaved {
    owned: Arc<Owned>,
    /// The last state; `None` of a room that failed, whose state can't be trusted.
    save: Option<Vec<u8>>,
    /// The saves that the store may have, if the room was ending when its process ended.
    known: Option<Saves>,
}

impl Unsaved {
    pub(super) fn of(saving: &Saving, save: Option<Vec<u8>>) -> Self {
        Self { owned: Arc::clone(&saving.owned), save, known: None }
    }

    /// A room that was ending when its process ended, with its last state, and the saves that the
    /// store may have if nobody else has saved it since.
    #[must_use]
    pub fn recovered(
        store: Arc<dyn Store>,
        room_type: String,
        key: &str,
        save: Vec<u8>,
        known: Saves,
    ) -> Self {
        let owned = Owned { store, room_type, key: key.into(), fence: OnceLock::new() };
        Self { owned: Arc::new(owned), save: Some(save), known: Some(known) }
    }

    /// The room's type.
    #[must_use]
    pub fn room_type(&self) -> &str {
        &self.owned.room_type
    }

    /// The room's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.owned.key
    }

    /// Returns whether its state is known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.save.is_some()
    }

    /// Sets the state of a failed room to the one before the failure, and keeps a
    /// [copy](crate::copies) of the save that it replaces.
    ///
    /// # Errors
    /// Errors of the store. The state then stays unknown.
    pub async fn replace(&mut self, save: Vec<u8>) -> Result<(), StoreError> {
        let Owned { store, room_type, key, .. } = &*self.owned;
        if let Some(last) = store.load(room_type, key).await? {
            keep_copy(store, room_type, key, last.bytes).await?;
        }
        self.save = Some(save);
        Ok(())
    }

    /// Tries to save it, if its state is known.
    ///
    /// # Errors
    /// Errors of the store: [`Fenced`](StoreErrorKind::Fenced) if the save was opened elsewhere
    /// since, so that this state is outdated.
    pub async fn save(&self) -> Result<(), StoreError> {
        let Some(save) = &self.save else { return Ok(()) };
        let Owned { store, room_type, key, fence } = &*self.owned;
        let fence = match fence.get() {
            Some(fence) => *fence,
            None => {
                let opened = store.open(room_type, key).await?;
                let fence = *fence.get_or_init(|| opened.fence);
                let last = opened.save.map(|save| save.bytes).filter(|last| last != save);
                if last.is_some_and(|last| self.known.as_ref().is_some_and(|it| it.lacks(&last))) {
                    let text = "the store has a newer save, which the room's journal does not know";
                    return Err(StoreError::new(StoreErrorKind::Fenced, text));
                }
                fence
            }
        };
        store.save_and_wait(room_type, key, fence, save.clone()).await
    }
}

impl fmt::Debug for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Unsaved");
        shown.field("room_type", &self.room_type()).field("key", &self.key());
        shown.finish_non_exhaustive()
    }
}
