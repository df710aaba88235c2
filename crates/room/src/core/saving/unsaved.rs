//! The state of a room that ended without being saved, to be saved later.

use std::fmt;
use std::sync::Arc;

use super::{Owned, Saving};
use crate::StoreError;

/// The last state of a room that ended while its store was away. Until it is dropped, the room's
/// save stays open.
pub struct Unsaved {
    owned: Arc<Owned>,
    save: Vec<u8>,
}

impl Unsaved {
    pub(super) fn of(saving: &Saving, save: Vec<u8>) -> Self {
        Self { owned: Arc::clone(&saving.owned), save }
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

    /// Tries to save it.
    ///
    /// # Errors
    /// Those of the store: [`Fenced`](crate::StoreErrorKind::Fenced) if the save was opened
    /// elsewhere since, so that this state does not count any more.
    pub async fn save(&self) -> Result<(), StoreError> {
        let Owned { store, room_type, key, fence } = &*self.owned;
        let fence = match fence.get() {
            Some(fence) => *fence,
            None => {
                let opened = store.open(room_type, key).await?;
                *fence.get_or_init(|| opened.fence)
            }
        };
        store.save_and_wait(room_type, key, fence, self.save.clone()).await
    }
}

impl fmt::Debug for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Unsaved");
        shown.field("room_type", &self.room_type()).field("key", &self.key());
        shown.finish_non_exhaustive()
    }
}
