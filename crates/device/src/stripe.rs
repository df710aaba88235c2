//! The devices whose ids have hashes of one stripe.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use crate::Device;
use crate::shrink::{Slots, shrink_map};

#[derive(Default)]
pub(crate) struct Stripe {
    by_id: HashMap<ById, u32, BuildHasherDefault<Known>>,
    pub(crate) slots: Slots<Arc<Device>>,
}

impl Stripe {
    #[inline]
    pub(crate) fn get(&self, hash: u64, id: &str) -> Option<&Arc<Device>> {
        let (ById(device), _) = self.by_id.get_key_value(&(hash, id) as &dyn HashedId)?;
        Some(device)
    }

    #[inline]
    pub(crate) fn insert(&mut self, device: Arc<Device>) {
        let slot = self.slots.insert(Arc::clone(&device));
        self.by_id.insert(ById(device), slot);
    }

    /// Puts a device in the place of another with its id.
    pub(crate) fn replace(&mut self, device: Arc<Device>) -> Option<Arc<Device>> {
        let (ById(old), slot) = self.by_id.remove_entry(&*device as &dyn HashedId)?;
        self.slots.replace(slot, Arc::clone(&device));
        self.by_id.insert(ById(device), slot);
        Some(old)
    }

    /// Takes out this device; not another that has its id.
    #[inline]
    pub(crate) fn remove(&mut self, device: &Device) -> bool {
        let known = self.get(device.hash, &device.id);
        if known.is_none_or(|known| known.number != device.number) {
            return false;
        }
        if let Some(slot) = self.by_id.remove(device as &dyn HashedId) {
            self.slots.remove(slot);
            shrink_map(&mut self.by_id);
        }
        true
    }
}

/// A device, found by its id. Its hash is computed once.
struct ById(Arc<Device>);

/// An id, and its hash.
trait HashedId {
    fn hash(&self) -> u64;
    fn id(&self) -> &str;
}

impl HashedId for Device {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn id(&self) -> &str {
        &self.id
    }
}

impl HashedId for (u64, &str) {
    fn hash(&self) -> u64 {
        self.0
    }

    fn id(&self) -> &str {
        self.1
    }
}

impl Hash for dyn HashedId + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(HashedId::hash(self));
    }
}

impl PartialEq for dyn HashedId + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for dyn HashedId + '_ {}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}

impl<'a> Borrow<dyn HashedId + 'a> for ById {
    fn borrow(&self) -> &(dyn HashedId + 'a) {
        &*self.0
    }
}

/// Passes on a hash that is known.
#[derive(Default)]
pub(crate) struct Known(u64);

impl Hasher for Known {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
