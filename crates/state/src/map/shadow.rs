//! The shadow of a map: a table of slots, and the order in which they last changed.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use playfield_wire::TreeFormat;
use playfield_wire::tree::Place;

use super::{MAP_SLOTS_MAX, SCAN_SHARE};
use crate::Key;
use crate::lens::{Changed, GONE_VERSIONS, Lens, Stamp, Stamps};

/// The shadow of a map.
///
/// An entry has a slot, a small number that replaces its key in patches. A sync assigns slots in
/// the order of keys, lowest first, so they depend on nothing that happened between syncs. A vacant
/// slot keeps the version at which its entry was removed until it is used again. So no list of
/// tombstones is needed, and a patch can begin at any version.
#[derive(Debug)]
pub struct MapShadow<K, S> {
    pub(super) token: u64,
    pub(super) stamps: Stamps,
    pub(super) index: BTreeMap<K, u32>,
    slots: Vec<Slot<K, S>>,
    vacant: BinaryHeap<Reverse<u32>>,
    /// Changes, oldest first: a version and a slot. A slot that changed several times is in it
    /// several times; the version in the slot counts.
    log: Vec<(Stamp, u32)>,
    /// Digests of what everyone sees of it, one for each kind.
    digests: RefCell<Vec<Digests>>,
    /// Removed keys, with versions, for patches that name keys and not slots: those in JSON, and
    /// those of an owner's entry.
    pub(super) gone: BTreeMap<K, u64>,
    /// The number of removed keys above which some are forgotten.
    gone_max: usize,
    /// The latest version that was forgotten from `gone`, except for those forgotten by age.
    forgotten: u64,
}

/// A kind of digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DigestOf {
    /// The digest of a typed copy.
    Packed,
    /// The digest of a copy that is a tree, with the map at this place.
    Tree(TreeFormat, Place),
}

impl DigestOf {
    /// Returns whether one replaces the other. A map is in one place of the tree, so after a move
    /// the digests of the old place are useless.
    fn replaces(self, other: Self) -> bool {
        match (self, other) {
            (Self::Packed, Self::Packed) => true,
            (Self::Tree(one, _), Self::Tree(other, _)) => one == other,
            _ => false,
        }
    }
}

/// Digests of each slot at a version, and their sum. The sum of a later version needs only the
/// slots that changed since.
#[derive(Debug)]
struct Digests {
    of: DigestOf,
    at: u64,
    slots: Vec<u64>,
    sum: u64,
}

/// The maximum number of removed keys that a map remembers. A map keyed by player remembers those
/// of the last [`GONE_VERSIONS`] instead.
const GONE_MAX: usize = 4_096;

/// Outdated changes are dropped when the log is longer than twice the number of slots plus this.
const LOG_SPARE: usize = 64;

/// A place for one entry.
#[derive(Debug)]
pub(super) struct Slot<K, S> {
    pub(super) entry: Option<(K, S)>,
    defined: Stamp,
    pub(super) stamps: Stamps,
}

impl<K, S> Slot<K, S> {
    const EMPTY: Self = Self { entry: None, defined: Stamp::NEVER, stamps: Stamps::NEVER };

    /// When the entry was defined or removed.
    #[inline]
    pub(super) fn defined(&self) -> u64 {
        self.defined.version()
    }

    /// When it last changed.
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.defined().max(self.stamps.newest())
    }
}

impl<K: Key, S> MapShadow<K, S> {
    pub(super) fn new(token: u64, stamps: Stamps) -> Self {
        Self {
            token,
            stamps,
            index: BTreeMap::new(),
            slots: Vec::new(),
            vacant: BinaryHeap::new(),
            log: Vec::new(),
            digests: RefCell::default(),
            gone: BTreeMap::new(),
            gone_max: GONE_MAX,
            forgotten: 0,
        }
    }

    pub(super) fn slot(&self, slot: u32) -> &Slot<K, S> {
        &self.slots[slot as usize]
    }

    /// The number of slots, including vacant ones.
    pub(super) fn slots_len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// When anything last changed in any slot.
    pub(super) fn newest_version(&self) -> u64 {
        self.log.last().map_or(0, |(version, _)| version.version())
    }

    pub(super) fn shadow_mut(&mut self, slot: u32) -> Option<&mut S> {
        self.slots[slot as usize].entry.as_mut().map(|(_, shadow)| shadow)
    }

    /// Gives a new entry the lowest free slot.
    pub(super) fn define(&mut self, key: K, shadow: S, stamps: Stamps, now: u64) -> u32 {
        let slot = self.free_slot();
        self.define_in(slot, key, shadow, stamps, now);
        slot
    }

    /// Takes the lowest free slot.
    pub(super) fn free_slot(&mut self) -> u32 {
        match self.vacant.pop() {
            Some(Reverse(slot)) => slot,
            None => {
                assert!(
                    self.slots.len() < MAP_SLOTS_MAX,
                    "a synced map holds more than {MAP_SLOTS_MAX} entries: split it, or hide it from players with #[sync(hidden)]"
                );
                self.slots.push(Slot::EMPTY);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Makes an empty shadow that is about to get entries in these slots. The others before the
    /// last one are vacant.
    pub(super) fn lay_out(&mut self, slots: &[u32]) {
        let count = slots.iter().max().map_or(0, |last| *last as usize + 1);
        self.slots.resize_with(count, || Slot::EMPTY);
        let mut is_vacant = vec![true; count];
        slots.iter().for_each(|slot| is_vacant[*slot as usize] = false);
        let vacant = (0..).zip(is_vacant).filter(|(_, is_vacant)| *is_vacant);
        self.vacant = vacant.map(|(slot, _)| Reverse(slot)).collect();
    }

    /// Gives a new entry this slot, which is free.
    pub(super) fn define_in(&mut self, slot: u32, key: K, shadow: S, stamps: Stamps, now: u64) {
        self.gone.remove(&key);
        self.index.insert(key.clone(), slot);
        let place = &mut self.slots[slot as usize];
        place.entry = Some((key, shadow));
        place.defined = Stamp::new(now);
        place.stamps = stamps;
        self.note(slot, now);
    }

    /// Empties a slot.
    pub(super) fn vacate(&mut self, slot: u32, now: u64) {
        let place = &mut self.slots[slot as usize];
        place.defined = Stamp::new(now);
        let Some((key, _)) = place.entry.take() else { return };
        self.index.remove(&key);
        self.vacant.push(Reverse(slot));
        self.note(slot, now);
        self.gone.insert(key, now);
        if self.gone.len() > self.gone_max {
            self.forget(now);
        }
    }

    /// Notes a change inside an entry.
    pub(super) fn changed(&mut self, slot: u32, changed: Changed, now: u64) {
        self.slots[slot as usize].stamps.note(changed, now);
        self.note(slot, now);
    }

    /// The slots where something changed after `lens.since`, in order.
    pub(super) fn changed_slots(&self, lens: Lens) -> Vec<u32> {
        self.slots_since(lens.since, lens.recalls_all())
    }

    /// The same for any viewer.
    pub(super) fn changed_since(&self, since: u64) -> Vec<u32> {
        self.slots_since(since, false)
    }

    fn slots_since(&self, since: u64, all: bool) -> Vec<u32> {
        if all {
            return (0..self.slots.len() as u32).collect();
        }
        let logged = self.log.iter().rev().take_while(|(version, _)| version.version() > since);
        if logged.count() > self.slots.len() / SCAN_SHARE {
            let slots = self.slots.iter().zip(0..);
            return slots
                .filter_map(|(place, slot)| (place.version() > since).then_some(slot))
                .collect();
        }
        let mut found: Vec<u32> = self.logged_since(since).collect();
        // Within one sync, slots are mostly visited in rising order, which makes this sort fast.
        found.sort();
        found.dedup();
        found
    }

    /// The slots that changed after a version, in the order of their changes. A slot may be in it
    /// more than once.
    fn logged_since(&self, since: u64) -> impl Iterator<Item = u32> {
        let last = self.log.iter().rposition(|(version, _)| version.version() <= since);
        let latest = |&&(version, slot): &&(Stamp, u32)| {
            self.slots[slot as usize].version() == version.version()
        };
        self.log[last.map_or(0, |last| last + 1)..].iter().filter(latest).map(|(_, slot)| *slot)
    }

    /// The slots that are not vacant.
    pub(super) fn used_slots(&self) -> impl Iterator<Item = u32> {
        self.index.values().copied()
    }

    /// The sum of the digests of what everyone sees in the slots. `digest` computes one.
    pub(super) fn digest(&self, of: DigestOf, digest: impl Fn(u32) -> u64) -> u64 {
        self.digest_until(of, self.newest_version(), |_| Vec::new(), digest)
    }

    /// The same at a version. `changed` returns the slots that changed elsewhere since a version.
    pub(super) fn digest_until(
        &self,
        of: DigestOf,
        version: u64,
        changed: impl FnOnce(u64) -> Vec<u32>,
        digest: impl Fn(u32) -> u64,
    ) -> u64 {
        let all = &mut *self.digests.borrow_mut();
        let known = all.iter().position(|digests| of.replaces(digests.of)).unwrap_or_else(|| {
            all.push(Digests { of, at: 0, slots: Vec::new(), sum: 0 });
            all.len() - 1
        });
        let digests = &mut all[known];
        if digests.of != of {
            *digests = Digests { of, at: 0, slots: Vec::new(), sum: 0 };
        }
        digests.slots.resize(self.slots.len(), 0);
        for slot in self.logged_since(digests.at).chain(changed(digests.at)) {
            let (now, before) = (digest(slot), &mut digests.slots[slot as usize]);
            digests.sum =
                digests.sum.wrapping_sub(std::mem::replace(before, now)).wrapping_add(now);
        }
        digests.at = version;
        digests.sum
    }

    /// All entries with their slots, in the order of slots.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u32, &K, &S)> {
        self.slots.iter().enumerate().filter_map(|(slot, place)| {
            place.entry.as_ref().map(|(key, shadow)| (slot as u32, key, shadow))
        })
    }

    /// The entries that were defined at `since` or before. At 0 there was nothing.
    #[inline]
    pub(super) fn entries_until(&self, since: u64) -> impl Iterator<Item = (u32, &K, &S)> {
        self.slots.iter().zip(0..).filter_map(move |(place, slot)| {
            let (key, shadow) = place.entry.as_ref()?;
            (place.defined() <= since).then_some((slot, key, shadow))
        })
    }

    /// All entries in the order of keys.
    pub(super) fn entries_by_key(&self) -> impl Iterator<Item = (&K, &S)> {
        self.index
            .values()
            .filter_map(|&slot| self.slot(slot).entry.as_ref().map(|(key, shadow)| (key, shadow)))
    }

    /// Returns whether keys that were removed since may be forgotten.
    pub(super) fn forgets(&self, lens: Lens) -> bool {
        if K::IS_PLAYER { lens.stale } else { lens.since < self.forgotten }
    }

    fn forget(&mut self, now: u64) {
        let until = if K::IS_PLAYER {
            now.saturating_sub(GONE_VERSIONS)
        } else {
            // The older half.
            let mut ends: Vec<u64> = self.gone.values().copied().collect();
            ends.sort_unstable();
            self.forgotten = ends[ends.len() / 2];
            self.forgotten
        };
        self.gone.retain(|_, end| *end > until);
        // The next search is due after as many more removals.
        self.gone_max = GONE_MAX.max(2 * self.gone.len());
    }

    /// Notes that something changed in a slot.
    fn note(&mut self, slot: u32, now: u64) {
        if self.log.len() >= 2 * self.slots.len() + LOG_SPARE {
            // The cost is amortized: the log has doubled since the last time.
            let slots = &self.slots;
            self.log.retain(|&(version, slot)| slots[slot as usize].version() == version.version());
            self.log.dedup();
        }
        self.log.push((Stamp::new(now), slot));
    }
}
