//! All devices of a node.

use std::fmt;
use std::hash::BuildHasher;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::quality::SeedableRandomState;

use crate::device::entry::Stage;
use crate::device::stripe::Stripe;
use crate::device::tags::{TagSlot, Tags};
use crate::device::{Device, Place, Registration};

const STRIPES: usize = 256;

/// The limits of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Devices.
    pub devices_max: usize,
    /// Tags of a device.
    pub tags_max: usize,
    /// Bytes of the names and values of a device's metadata.
    pub metadata_bytes_max: usize,
    /// Bytes of an id, and of a tag.
    pub id_bytes_max: usize,
}

/// Why a device was not registered, or not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// There are as many devices as there may be.
    DevicesMax(usize),
    /// The device has too many tags: their number, and the limit.
    TagsMax(usize, usize),
    /// Its metadata is too large: its bytes, and the limit.
    MetadataBytesMax(usize, usize),
    /// Its id, or a tag, is too long: its bytes, and the limit.
    IdBytesMax(usize, usize),
    /// Its id, or a tag, is empty.
    Empty,
    /// Another is registered under its id, and is not replaced.
    Taken,
    /// The device is not registered any more.
    Gone,
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DevicesMax(max) => write!(f, "limits.devices: there are {max} devices"),
            Self::TagsMax(tags, max) => write!(f, "limits.device.tags: {tags} tags, past {max}"),
            Self::MetadataBytesMax(bytes, max) => {
                write!(f, "limits.device.metadata_bytes: metadata of {bytes} bytes, past {max}")
            }
            Self::IdBytesMax(bytes, max) => {
                write!(f, "limits.name_bytes.device: an id or a tag of {bytes} bytes, past {max}")
            }
            Self::Empty => f.write_str("the id or a tag is empty"),
            Self::Taken => f.write_str("another is registered as this device"),
            Self::Gone => f.write_str("the device is not registered any more"),
        }
    }
}

impl std::error::Error for RegisterError {}

/// A device that may be registered.
#[derive(Debug)]
pub struct Prepared(Device);

impl Deref for Prepared {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.0
    }
}

/// A device that was registered.
#[derive(Debug)]
pub struct Registered {
    /// The device.
    pub device: Arc<Device>,
    /// The one that it took the place of.
    pub replaced: Option<Arc<Device>>,
}

/// A position in a list, to continue from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cursor(u64);

/// A part of a list. Devices that come or go meanwhile may be in it or not; all others are, once.
#[derive(Debug, Default)]
pub struct Page {
    /// The devices, in no particular order.
    pub devices: Vec<Arc<Device>>,
    /// The beginning of the next page; `None` after the last.
    pub next: Option<Cursor>,
}

/// The devices of a node.
pub struct Registry {
    stripes: Box<[Mutex<Stripe>]>,
    /// Strangers choose the ids, but not its seed.
    hasher: SeedableRandomState,
    tags: Tags,
    count: AtomicUsize,
    numbers: AtomicU64,
    limits: Limits,
}

impl Registry {
    /// No devices yet. The state of `hasher` must be such that strangers, who choose ids and tags,
    /// can't guess it.
    #[must_use]
    pub fn new(limits: Limits, hasher: SeedableRandomState) -> Self {
        Self {
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            tags: Tags::new(&hasher),
            hasher,
            count: AtomicUsize::new(0),
            numbers: AtomicU64::new(1),
            limits,
        }
    }

    /// Checks a registration. The device is found once it is [inserted](Self::insert).
    ///
    /// # Errors
    /// If it is past a limit, or its id or a tag is empty.
    pub fn prepare(
        &self,
        mut registration: Registration,
        place: Place,
        now: Duration,
    ) -> Result<Prepared, RegisterError> {
        self.check_name(&registration.id)?;
        self.check_metadata(&registration.metadata)?;
        self.check_tags(&mut registration.tags)?;
        let hash = self.hasher.hash_one(registration.id.as_str());
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        Ok(Prepared(Device::new(number, hash, registration, place, now)))
    }

    /// Registers a device. `replaces` decides whether it, the second, takes the place of
    /// the first, which has its id.
    ///
    /// # Errors
    /// [`RegisterError::DevicesMax`] or [`RegisterError::Taken`].
    pub fn insert(
        &self,
        Prepared(mut device): Prepared,
        replaces: impl FnOnce(&Device, &Device) -> bool,
    ) -> Result<Registered, RegisterError> {
        let has_tags = device.begin();
        let device = Arc::new(device);
        let mut stripe = self.stripe(device.hash);
        let replaced = match stripe.get(device.hash, &device.id) {
            Some(known) if !replaces(known, &device) => return Err(RegisterError::Taken),
            Some(_) => stripe.replace(Arc::clone(&device)),
            None => {
                let max = self.limits.devices_max;
                if self.count.fetch_add(1, Ordering::Relaxed) >= max {
                    self.count.fetch_sub(1, Ordering::Relaxed);
                    return Err(RegisterError::DevicesMax(max));
                }
                stripe.insert(Arc::clone(&device));
                None
            }
        };
        drop(stripe);
        if let Some(replaced) = &replaced {
            self.detach(replaced);
        }
        if has_tags {
            self.attach(&device);
        }
        Ok(Registered { device, replaced })
    }

    /// Takes out a device. False if another has taken its place, or it was taken out before.
    pub fn remove(&self, device: &Device) -> bool {
        let mut stripe = self.stripe(device.hash);
        let is_removed = stripe.remove(device);
        // Under the lock, so that no more are counted than there are.
        self.count.fetch_sub(usize::from(is_removed), Ordering::Relaxed);
        drop(stripe);
        if is_removed {
            self.detach(device);
        }
        is_removed
    }

    /// Changes what a device says about itself, and its tags.
    ///
    /// # Errors
    /// If that is past a limit, or the device is gone. Nothing is changed then.
    pub fn update(
        &self,
        device: &Arc<Device>,
        metadata: Vec<(String, String)>,
        tags: Vec<String>,
    ) -> Result<(), RegisterError> {
        self.check_metadata(&metadata)?;
        self.change(device, Some(metadata), tags)
    }

    /// Changes the tags of a device.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub fn set_tags(&self, device: &Arc<Device>, tags: Vec<String>) -> Result<(), RegisterError> {
        self.change(device, None, tags)
    }

    fn change(
        &self,
        device: &Arc<Device>,
        metadata: Option<Vec<(String, String)>>,
        mut tags: Vec<String>,
    ) -> Result<(), RegisterError> {
        self.check_tags(&mut tags)?;
        let mut described = device.described();
        if described.stage != Stage::Registered {
            return Err(RegisterError::Gone);
        }
        if let Some(metadata) = metadata {
            described.metadata = metadata;
        }
        // Those that it keeps stay where they are.
        described.tags.retain(|slot| {
            let at = tags.iter().position(|tag| **tag == *slot.tag);
            match at {
                Some(at) => drop(tags.swap_remove(at)),
                None => self.tags.detach(slot),
            }
            at.is_some()
        });
        for tag in tags {
            let mut slot = TagSlot::new(tag);
            self.tags.attach(device, &mut slot);
            described.tags.push(slot);
        }
        Ok(())
    }

    /// The device of this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<Arc<Device>> {
        let hash = self.hasher.hash_one(id);
        self.stripe(hash).get(hash, id).cloned()
    }

    /// Returns the number of devices.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the number of devices with this tag.
    #[must_use]
    pub fn count_of_tag(&self, tag: &str) -> usize {
        self.tags.count(tag)
    }

    /// Up to `limit` devices, from `from` on.
    #[must_use]
    pub fn list(&self, from: Cursor, limit: usize) -> Page {
        let mut devices = Vec::new();
        let (first, mut place) = ((from.0 >> 32) as usize, from.0 as u32 as usize);
        for at in first..STRIPES {
            let stripe = lock(&self.stripes[at]);
            for (slot, device) in stripe.slots.from(place) {
                if devices.len() >= limit {
                    return Page { devices, next: Some(Cursor((at as u64) << 32 | slot as u64)) };
                }
                devices.push(Arc::clone(device));
            }
            place = 0;
        }
        Page { devices, next: None }
    }

    /// Up to `limit` devices that have this tag, from `from` on.
    #[must_use]
    pub fn list_tag(&self, tag: &str, from: Cursor, limit: usize) -> Page {
        let mut devices = Vec::new();
        let next = self.tags.each(tag, from.0 as usize, |device| {
            let has_space = devices.len() < limit;
            if has_space {
                devices.push(Arc::clone(device));
            }
            has_space
        });
        Page { devices, next: next.map(|place| Cursor(place as u64)) }
    }

    fn attach(&self, device: &Arc<Device>) {
        let mut described = device.described();
        // Another may have taken its place already.
        if described.stage == Stage::Prepared {
            described.stage = Stage::Registered;
            for slot in &mut described.tags {
                self.tags.attach(device, slot);
            }
        }
    }

    fn detach(&self, device: &Device) {
        let mut described = device.described();
        if std::mem::replace(&mut described.stage, Stage::Gone) == Stage::Registered {
            for slot in &described.tags {
                self.tags.detach(slot);
            }
        }
    }

    fn check_name(&self, name: &str) -> Result<(), RegisterError> {
        let bytes_max = self.limits.id_bytes_max;
        match name.len() {
            0 => Err(RegisterError::Empty),
            bytes if bytes > bytes_max => Err(RegisterError::IdBytesMax(bytes, bytes_max)),
            _ => Ok(()),
        }
    }

    fn check_metadata(&self, metadata: &[(String, String)]) -> Result<(), RegisterError> {
        let bytes: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
        // Each pair takes space, even if it is empty.
        let bytes = bytes.max(metadata.len());
        let bytes_max = self.limits.metadata_bytes_max;
        if bytes > bytes_max {
            return Err(RegisterError::MetadataBytesMax(bytes, bytes_max));
        }
        Ok(())
    }

    /// Checks tags, and takes out those that are there twice.
    fn check_tags(&self, tags: &mut Vec<String>) -> Result<(), RegisterError> {
        let tags_max = self.limits.tags_max;
        if tags.len() > tags_max {
            return Err(RegisterError::TagsMax(tags.len(), tags_max));
        }
        tags.iter().try_for_each(|tag| self.check_name(tag))?;
        if tags.len() > 1 {
            tags.sort_unstable();
            tags.dedup();
        }
        Ok(())
    }

    #[inline]
    fn stripe(&self, hash: u64) -> MutexGuard<'_, Stripe> {
        // Tables use the lowest bits and the highest.
        lock(&self.stripes[(hash >> 32) as usize % STRIPES])
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("count", &self.count()).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The callbacks that run under the lock change nothing; nothing else in here can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
