//! A device: what it said about itself, and when it was last heard.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::device::tags::TagSlot;

/// A request to register a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// The device's id.
    pub id: String,
    /// The verified user behind it, if any.
    pub user: Option<String>,
    /// The metadata that the device gives about itself.
    pub metadata: Vec<(String, String)>,
    /// By which it is found, beside its id.
    pub tags: Vec<String>,
}

impl Registration {
    /// A device with this id, and nothing else.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }

    /// Adds a tag.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Adds a pair of metadata.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((name.into(), value.into()));
        self
    }

    /// The verified user behind the device.
    #[must_use]
    pub fn user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }
}

/// The location of a device's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its shard.
    pub shard: u16,
    /// Its key there.
    pub connection: u64,
    /// Whether it is the connection of a service, not of a session.
    pub is_service: bool,
}

const MINUTE_US: u64 = 60_000_000;

/// A connected device. It stays as it was when it is gone.
pub struct Device {
    pub(crate) number: u64,
    pub(crate) hash: u64,
    pub(crate) id: Box<str>,
    user: Option<Box<str>>,
    place: Place,
    registered_at: Duration,
    last_seen_us: AtomicU64,
    /// When as many take-overs of its id as there were would have been allowed one by one.
    paid_until_us: AtomicU64,
    is_silent: AtomicBool,
    described: Mutex<Described>,
}

/// The parts of a device that can change.
pub(crate) struct Described {
    pub(crate) stage: Stage,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) tags: Vec<TagSlot>,
}

/// Whether the tags of a device are in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not yet.
    Prepared,
    /// In the registry.
    Registered,
    /// Not any more.
    Gone,
}

impl Device {
    pub(crate) fn new(
        number: u64,
        hash: u64,
        registration: Registration,
        place: Place,
        now: Duration,
    ) -> Self {
        let Registration { id, user, metadata, tags } = registration;
        let tags = tags.into_iter().map(TagSlot::new).collect();
        Self {
            number,
            hash,
            id: id.into_boxed_str(),
            user: user.map(String::into_boxed_str),
            place,
            registered_at: now,
            last_seen_us: AtomicU64::new(micros(now)),
            paid_until_us: AtomicU64::new(0),
            is_silent: AtomicBool::new(false),
            described: Mutex::new(Described { stage: Stage::Prepared, metadata, tags }),
        }
    }

    /// Lets it take the place of another, if at most so many take over an id per minute, and in one
    /// burst.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn take_over(&self, other: &Self, per_minute: u64) -> Result<(), Duration> {
        let now = micros(self.registered_at);
        let step = MINUTE_US / per_minute.clamp(1, MINUTE_US);
        let paid_until = other.paid_until_us.load(Ordering::Relaxed).max(now) + step;
        let wait = paid_until.saturating_sub(now.saturating_add(MINUTE_US));
        if wait > 0 {
            return Err(Duration::from_micros(wait));
        }
        self.paid_until_us.store(paid_until, Ordering::Relaxed);
        Ok(())
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of this registration. A device that registers again by another connection has
    /// another number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The verified user behind it, if any.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// When it registered, as time since the node started.
    #[must_use]
    pub fn registered_at(&self) -> Duration {
        self.registered_at
    }

    /// When something was last heard of it, as time since the node started.
    #[must_use]
    pub fn last_seen(&self) -> Duration {
        Duration::from_micros(self.last_seen_us.load(Ordering::Relaxed))
    }

    /// Returns whether it has been silent for longer than the fleet's `silent_ms`.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// The metadata that it gives about itself.
    #[must_use]
    pub fn metadata(&self) -> Vec<(String, String)> {
        self.described().metadata.clone()
    }

    /// The value of its metadata under this name.
    #[must_use]
    pub fn metadata_of(&self, name: &str) -> Option<String> {
        let described = self.described();
        described.metadata.iter().find(|(of, _)| of == name).map(|(_, value)| value.clone())
    }

    /// Its tags.
    #[must_use]
    pub fn tags(&self) -> Vec<String> {
        self.described().tags.iter().map(|slot| slot.tag.to_string()).collect()
    }

    /// Returns whether it has this tag.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.described().tags.iter().any(|slot| *slot.tag == *tag)
    }

    /// The location of its connection. For the node.
    #[doc(hidden)]
    #[must_use]
    pub fn place(&self) -> Place {
        self.place
    }

    /// Something was heard of it. Takes no lock. For the node.
    #[doc(hidden)]
    #[inline]
    pub fn heard(&self, now: Duration) {
        self.last_seen_us.store(micros(now), Ordering::Relaxed);
    }

    /// Notes whether it is silent; whether that is new. For the node.
    #[doc(hidden)]
    pub fn set_silent(&self, is_silent: bool) -> bool {
        self.is_silent.swap(is_silent, Ordering::Relaxed) != is_silent
    }

    /// Begins its registration. Returns whether it has tags, which then have to be registered.
    pub(crate) fn begin(&mut self) -> bool {
        let described = self.described.get_mut().unwrap_or_else(PoisonError::into_inner);
        let has_tags = !described.tags.is_empty();
        if !has_tags {
            described.stage = Stage::Registered;
        }
        has_tags
    }

    pub(crate) fn described(&self) -> MutexGuard<'_, Described> {
        // Nothing under the lock can panic half-way through a change.
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &mut f.debug_struct("Device");
        device.field("id", &self.id).field("number", &self.number).field("tags", &self.tags());
        device.finish_non_exhaustive()
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
