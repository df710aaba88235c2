//! A store in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Completion, Fence, Fences, Loaded, Opened, Store, StoreError, Stored};

/// A store in memory, for tests: what it keeps ends with the process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// By room type and key.
    saves: BTreeMap<(String, String), Vec<u8>>,
    fences: Fences,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of saves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with(|kept| kept.saves.len())
    }

    /// Returns whether there are no saves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The save of a room.
    #[must_use]
    pub fn get(&self, room_type: &str, key: &str) -> Option<Vec<u8>> {
        self.with(|kept| kept.saves.get(&named(room_type, key)).cloned())
    }

    /// Sets the save of a room without checking its fence.
    pub fn set(&self, room_type: &str, key: &str, bytes: Vec<u8>) {
        self.with(|kept| drop(kept.saves.insert(named(room_type, key), bytes)));
    }

    /// Sets or removes the save of a room for the owner of this fence.
    fn write(
        &self,
        room_type: &str,
        key: &str,
        fence: Fence,
        bytes: Option<Vec<u8>>,
    ) -> Result<(), StoreError> {
        self.with(|kept| {
            kept.fences.check(room_type, key, fence)?;
            match bytes {
                Some(bytes) => drop(kept.saves.insert(named(room_type, key), bytes)),
                None => drop(kept.saves.remove(&named(room_type, key))),
            }
            Ok(())
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn named(room_type: &str, key: &str) -> (String, String) {
    (room_type.to_owned(), key.to_owned())
}

impl Store for MemoryStore {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        let opened = self.with(|kept| Opened {
            fence: kept.fences.open(room_type, key),
            save: kept.saves.get(&named(room_type, key)).cloned().map(Loaded::from),
        });
        Box::pin(ready(Ok(opened)))
    }

    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        self.with(|kept| kept.fences.close(room_type, key, fence));
    }

    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        Box::pin(ready(Ok(self.get(room_type, key).map(Loaded::from))))
    }

    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        done.complete(self.write(room_type, key, fence, Some(bytes)));
    }

    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        Box::pin(ready(self.write(room_type, key, fence, None)))
    }

    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        let found = self.with(|kept| {
            let from = named(room_type, after.unwrap_or_default());
            let from_here = kept.saves.range(from..).map(|(name, _)| name);
            from_here
                .take_while(|(of, _)| of == room_type)
                .map(|(_, key)| key)
                .filter(|key| after != Some(key.as_str()))
                .take(limit)
                .cloned()
                .collect()
        });
        Box::pin(ready(Ok(found)))
    }
}
