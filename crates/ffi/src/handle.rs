//! The table of handles: every object that a program holds, by a number that is checked.

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::client::ClientCell;
use crate::failure::{Failure, Outcome, PfCode};

/// The most objects that all handles together may name.
pub const PF_HANDLES_MAX: usize = 1 << 24;

const INDEX_BITS: u32 = 24;
const KIND_SHIFT: u32 = 56;

/// A type of object that handles name.
pub(crate) trait Object: Any + Send + Sync {
    /// From 1, different for each type.
    const KIND: u8;
    /// For messages.
    const NAME: &'static str;
}

const NAMES: [&str; 6] = ["nothing", "a client", "a room", "a channel", "a tree", "a device"];

/// The part of a room, a channel or a device that has to do with its client.
pub(crate) struct Member {
    client: Weak<ClientCell>,
    /// How many of its events are announced in the client's news.
    announced: AtomicUsize,
}

impl Member {
    pub(crate) fn of(client: &Arc<ClientCell>) -> Self {
        Self { client: Arc::downgrade(client), announced: AtomicUsize::new(0) }
    }

    pub(crate) fn client<T: Object>(&self) -> Outcome<Arc<ClientCell>> {
        let client = self.client.upgrade().filter(|client| !client.is_freed());
        let text = || format!("{} was freed with its client", T::NAME.replacen('a', "the", 1));
        client.ok_or_else(|| Failure::new(PfCode::Freed, text()))
    }

    /// An event came. Returns whether it is to be announced: not if so many are that older ones were
    /// dropped.
    pub(crate) fn announces(&self, most: usize) -> bool {
        let is_news = self.announced.load(Ordering::Relaxed) < most;
        self.announced.fetch_add(usize::from(is_news), Ordering::Relaxed);
        is_news
    }

    /// The program takes what was announced.
    pub(crate) fn taken(&self) {
        let less = |announced: usize| announced.checked_sub(1);
        let _ = self.announced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

struct Slot {
    generation: u32,
    object: Option<Arc<dyn Any + Send + Sync>>,
}

struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { slots: Vec::new(), free: Vec::new() });

/// Puts an object into the table. Returns its handle.
pub(crate) fn insert<T: Object>(object: Arc<T>) -> Outcome<u64> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let index = match table.free.pop() {
        Some(index) => index,
        None if table.slots.len() < PF_HANDLES_MAX => {
            table.slots.push(Slot { generation: 0, object: None });
            (table.slots.len() - 1) as u32
        }
        None => {
            let text = format!("there are {PF_HANDLES_MAX} handles already; free some");
            return Err(Failure::new(PfCode::Busy, text));
        }
    };
    let slot = &mut table.slots[index as usize];
    slot.generation = slot.generation.wrapping_add(1);
    slot.object = Some(object);
    Ok(u64::from(T::KIND) << KIND_SHIFT
        | u64::from(slot.generation) << INDEX_BITS
        | u64::from(index))
}

/// What the handle names.
pub(crate) fn find<T: Object>(handle: u64) -> Outcome<Arc<T>> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let index = checked::<T>(&table, handle)?;
    let object = table.slots[index].object.clone().ok_or_else(freed::<T>)?;
    object.downcast().map_err(|_| unknown::<T>(handle))
}

/// Takes an object out of the table. It lives on while a call uses it.
pub(crate) fn remove<T: Object>(handle: u64) -> Outcome<Arc<T>> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let index = checked::<T>(&table, handle)?;
    let object = table.slots[index].object.take().ok_or_else(freed::<T>)?;
    table.free.push(index as u32);
    drop(table);
    object.downcast().map_err(|_| unknown::<T>(handle))
}

fn checked<T: Object>(table: &Table, handle: u64) -> Outcome<usize> {
    let kind = (handle >> KIND_SHIFT) as u8;
    if handle == 0 {
        let text = format!("the handle of {} is 0: nothing was stored in it", T::NAME);
        return Err(Failure::new(PfCode::Handle, text));
    }
    if kind != T::KIND {
        let Some(name) = NAMES.get(usize::from(kind)) else { return Err(unknown::<T>(handle)) };
        let text = format!("the handle {handle:#x} is of {name}, and not of {}", T::NAME);
        return Err(Failure::new(PfCode::Handle, text));
    }
    let index = (handle & ((1 << INDEX_BITS) - 1)) as usize;
    let generation = (handle >> INDEX_BITS) as u32;
    match table.slots.get(index) {
        Some(slot) if slot.generation == generation => Ok(index),
        // Generations count up from 1.
        Some(slot) if generation != 0 && generation < slot.generation => Err(freed::<T>()),
        _ => Err(unknown::<T>(handle)),
    }
}

fn freed<T: Object>() -> Failure {
    Failure::new(PfCode::Freed, format!("the handle is of {} that was freed", T::NAME))
}

fn unknown<T: Object>(handle: u64) -> Failure {
    let text = format!("{handle:#x} is not a handle of {}: it was never given out", T::NAME);
    Failure::new(PfCode::Handle, text)
}
