//! Copies of saves, kept beside them in the store: of a save of another build that the present one
//! can't use whole, from before it saves the room.

use std::sync::Arc;

use crate::{Opened, Store, StoreError, StoreErrorKind};

/// The number of copies kept of one room's saves. For a further one, the oldest but the first is
/// removed: the first is of before all that other builds did.
pub const COPIES_MAX: usize = 4;

/// The keys that are read at a time.
const PAGE: usize = 64;

/// The room type under which a [`Store`] keeps the copies. A copy's key is that of the room, then
/// `@` and the copy's number with ten digits.
#[must_use]
pub fn copies_type(room_type: &str) -> String {
    format!("{room_type}~copies")
}

fn name(key: &str, number: u64) -> String {
    format!("{key}@{number:010}")
}

fn number(key: &str, name: &str) -> Option<u64> {
    let digits = name.strip_prefix(key)?.strip_prefix('@')?;
    let is_number = digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

/// The numbers of the copies of a room's saves, the oldest first.
///
/// # Errors
/// If the store fails.
pub async fn copies(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
) -> Result<Vec<u64>, StoreError> {
    let (of, first) = (copies_type(room_type), format!("{key}@"));
    let mut after = first.clone();
    let mut found = Vec::new();
    loop {
        let names = store.keys(&of, Some(&after), PAGE).await?;
        found.extend(names.iter().filter_map(|name| number(key, name)));
        match names.last() {
            Some(last) if last.starts_with(&first) && names.len() == PAGE => {
                after.clone_from(last);
            }
            _ => return Ok(found),
        }
    }
}

/// A copy of a room's save; `None` if there is none with this number.
///
/// # Errors
/// If the store fails.
pub async fn load_copy(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
    number: u64,
) -> Result<Option<Vec<u8>>, StoreError> {
    let loaded = store.load(&copies_type(room_type), &name(key, number)).await?;
    Ok(loaded.map(|loaded| loaded.bytes))
}

/// Keeps a copy, unless the newest one is the same, and removes those beyond [`COPIES_MAX`].
/// Returns its number. When the future ends, it is durable.
///
/// # Errors
/// If the store fails.
pub async fn keep_copy(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
    bytes: Vec<u8>,
) -> Result<u64, StoreError> {
    let kept = add_copy(store, room_type, key, bytes).await?;
    remove_beyond(store, room_type, key).await?;
    Ok(kept)
}

async fn add_copy(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
    bytes: Vec<u8>,
) -> Result<u64, StoreError> {
    let last = copies(store, room_type, key).await?.last().copied().unwrap_or(0);
    if last > 0 && load_copy(store, room_type, key, last).await?.as_deref() == Some(&bytes[..]) {
        return Ok(last);
    }
    let of = copies_type(room_type);
    let mut number = last + 1;
    loop {
        let name = name(key, number);
        let Opened { fence, save } = store.open(&of, &name).await?;
        if save.is_none() {
            let saved = store.save_and_wait(&of, &name, fence, bytes).await;
            store.close(&of, &name, fence);
            return saved.map(|()| number);
        }
        // Another node has kept one meanwhile.
        store.close(&of, &name, fence);
        number += 1;
    }
}

/// Removes copies beyond [`COPIES_MAX`], the oldest but the first.
async fn remove_beyond(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
) -> Result<(), StoreError> {
    let known = copies(store, room_type, key).await?;
    let of = copies_type(room_type);
    for number in known.iter().skip(1).take(known.len().saturating_sub(COPIES_MAX)) {
        let name = name(key, *number);
        let fence = store.open(&of, &name).await?.fence;
        let removed = store.remove(&of, &name, fence).await;
        store.close(&of, &name, fence);
        removed?;
        log::info!("copy {number} of {room_type} {key:?} gave way to newer copies");
    }
    Ok(())
}

/// Makes a copy a room's save again, and keeps a copy of the present one. A room that has the save
/// open no longer owns it, and ends. Returns the number of that copy, if there was a save.
///
/// # Errors
/// If there is no such copy, or the store fails.
pub async fn restore_copy(
    store: &Arc<dyn Store>,
    room_type: &str,
    key: &str,
    number: u64,
) -> Result<Option<u64>, StoreError> {
    let Some(bytes) = load_copy(store, room_type, key, number).await? else {
        let text = format!("{room_type} {key:?} has no copy {number}");
        return Err(StoreError::new(StoreErrorKind::Other, text));
    };
    let Opened { fence, save } = store.open(room_type, key).await?;
    let restored = async {
        let replaced = match save {
            Some(present) => Some(add_copy(store, room_type, key, present.bytes).await?),
            None => None,
        };
        store.save_and_wait(room_type, key, fence, bytes).await?;
        Ok(replaced)
    }
    .await;
    store.close(room_type, key, fence);
    let replaced = restored?;
    // Not before: the restored copy may be the one that is removed.
    remove_beyond(store, room_type, key).await?;
    Ok(replaced)
}
