//! Devices by tag.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::SeedableRandomState;

use crate::device::Device;
use crate::device::shrink::{Slots, shrink_map};

const STRIPES: usize = 64;

/// A tag of a device, and the device's place among those that have it.
pub(crate) struct TagSlot {
    pub(crate) tag: Arc<str>,
    place: u32,
}

impl TagSlot {
    /// A tag of a device that is not among those that have it yet.
    pub(crate) fn new(tag: String) -> Self {
        Self { tag: tag.into(), place: u32::MAX }
    }
}

type Tagged = HashMap<Arc<str>, Slots<Arc<Device>>, SeedableRandomState>;

pub(crate) struct Tags {
    stripes: Box<[Mutex<Tagged>]>,
    hasher: SeedableRandomState,
}

impl Tags {
    pub(crate) fn new(hasher: &SeedableRandomState) -> Self {
        let stripe = |_| Mutex::new(HashMap::with_hasher(hasher.clone()));
        Self { stripes: (0..STRIPES).map(stripe).collect(), hasher: hasher.clone() }
    }

    fn stripe(&self, tag: &str) -> MutexGuard<'_, Tagged> {
        // The tables of all stripes have this hash, and use its lowest and highest bits.
        let at = (self.hasher.hash_one(tag) >> 32) as usize % STRIPES;
        // Nothing under the lock can panic half-way through a change.
        self.stripes[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn attach(&self, device: &Arc<Device>, slot: &mut TagSlot) {
        let mut tagged = self.stripe(&slot.tag);
        if let Some((tag, _)) = tagged.get_key_value(&slot.tag) {
            slot.tag = Arc::clone(tag);
        }
        slot.place = tagged.entry(Arc::clone(&slot.tag)).or_default().insert(Arc::clone(device));
    }

    pub(crate) fn detach(&self, slot: &TagSlot) {
        let mut tagged = self.stripe(&slot.tag);
        let Some(devices) = tagged.get_mut(&slot.tag) else { return };
        devices.remove(slot.place);
        if devices.len() == 0 {
            tagged.remove(&slot.tag);
            shrink_map(&mut tagged);
        }
    }

    pub(crate) fn count(&self, tag: &str) -> usize {
        self.stripe(tag).get(tag).map_or(0, Slots::len)
    }

    /// Calls `take` with devices that have the tag, from this place on, until it answers false;
    /// where to go on then.
    pub(crate) fn each(
        &self,
        tag: &str,
        from: usize,
        mut take: impl FnMut(&Arc<Device>) -> bool,
    ) -> Option<usize> {
        let tagged = self.stripe(tag);
        let mut devices = tagged.get(tag)?.from(from);
        devices.find(|(_, device)| !take(device)).map(|(place, _)| place)
    }
}
