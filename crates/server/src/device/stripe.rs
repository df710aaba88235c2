//! The devices whose ids have hashes of one stripe.

use std::sync::Arc;

use hashbrown::HashTable;

use crate::device::Device;
use crate::device::shrink::{Slots, shrink_table};

#[derive(Default)]
pub(crate) struct Stripe {
    /// The places of the devices, by the hashes of their ids.
    by_id: HashTable<u32>,
    pub(crate) slots: Slots<Arc<Device>>,
}

impl Stripe {
    #[inline]
    pub(crate) fn get(&self, hash: u64, id: &str) -> Option<&Arc<Device>> {
        self.slots.get(self.place(hash, id)?)
    }

    fn place(&self, hash: u64, id: &str) -> Option<u32> {
        let has_id = |&place: &u32| self.slots.get(place).is_some_and(|known| *known.id == *id);
        self.by_id.find(hash, has_id).copied()
    }

    /// Adds a device, whose id no other has.
    #[inline]
    pub(crate) fn insert(&mut self, device: Arc<Device>) {
        let hash = device.hash;
        let place = self.slots.insert(device);
        self.by_id.insert_unique(hash, place, |&place| hash_at(&self.slots, place));
    }

    /// Puts a device in the place of another with its id.
    pub(crate) fn replace(&mut self, device: Arc<Device>) -> Option<Arc<Device>> {
        let place = self.place(device.hash, &device.id)?;
        self.slots.replace(place, device)
    }

    /// Takes out this device; not another that has its id.
    #[inline]
    pub(crate) fn remove(&mut self, device: &Device) -> bool {
        let is_it =
            |&place: &u32| self.slots.get(place).is_some_and(|known| known.number == device.number);
        let Ok(entry) = self.by_id.find_entry(device.hash, is_it) else { return false };
        let (place, _) = entry.remove();
        self.slots.remove(place);
        shrink_table(&mut self.by_id, |&place| hash_at(&self.slots, place));
        true
    }
}

/// The hash of the id of the device at this place.
fn hash_at(slots: &Slots<Arc<Device>>, place: u32) -> u64 {
    slots.get(place).map_or(0, |device| device.hash)
}
