//! The part of a map with a view that one player sees.

use super::{How, ViewedShadow};
use crate::Key;
use crate::lens::{Lens, Stamps};
use crate::map::shadow::{DigestOf, MapShadow};

/// The part of the map that one player sees: keys with slots of their own, and for each its slot in
/// the map.
pub(in crate::map) struct Eye<K, H: How> {
    pub(in crate::map) seen: MapShadow<K, u32>,
    /// The version at which the view became empty and `seen` was reset. An older copy is sent all
    /// that is in view. So the map doesn't remember forever what a player has seen, and players who
    /// left use no memory.
    pub(in crate::map) emptied: u64,
    /// The viewer's slots by slots of the map.
    pub(in crate::map) index: H::Index,
}

/// Finds the viewer's slots by slots of the map.
pub trait Index: Default + 'static {
    /// The viewer's slot, if the slot of the map is in view.
    fn slot(&self, at: u32) -> Option<u32>;

    /// Forgets these slots of the map, which are in view and in rising order.
    fn remove(&mut self, left: &[u32]);

    /// Adds slots of the map, in rising order, each with the viewer's.
    fn insert(&mut self, entered: &[(u32, u32)]);

    /// Returns the number of further entries that would be in view without a cap.
    fn left_out(&self) -> usize {
        0
    }

    /// Replaces all slots by these, in rising order, each with the viewer's, and the number of
    /// further entries.
    fn recall(&mut self, seen: Vec<(u32, u32)>, left_out: usize);
}

/// For views that look at many slots and see a part of them: 1 more than the viewer's slot, by
/// slots of the map; 0 where nothing is seen.
#[derive(Default)]
pub struct Dense(pub(super) Vec<u32>);

impl Index for Dense {
    #[inline]
    fn slot(&self, at: u32) -> Option<u32> {
        self.0.get(at as usize)?.checked_sub(1)
    }

    fn remove(&mut self, left: &[u32]) {
        for at in left {
            self.0[*at as usize] = 0;
        }
    }

    fn insert(&mut self, entered: &[(u32, u32)]) {
        for (at, slot) in entered {
            self.0[*at as usize] = 1 + slot;
        }
    }

    fn recall(&mut self, seen: Vec<(u32, u32)>, _: usize) {
        self.0.clear();
        self.0.resize(seen.last().map_or(0, |(at, _)| *at as usize + 1), 0);
        self.insert(&seen);
    }
}

impl<K: Key, H: How> Eye<K, H> {
    pub(in crate::map) fn new() -> Self {
        Self { seen: MapShadow::new(0, Stamps::default()), emptied: 0, index: H::Index::default() }
    }

    /// Takes slots of the map out of view, then others into view. `left` is in rising order.
    /// Returns whether there were any.
    pub(in crate::map) fn turn<S>(
        &mut self,
        map: &MapShadow<K, S>,
        left: &[u32],
        entered: &mut [u32],
        now: u64,
    ) -> bool {
        for slot in left.iter().filter_map(|at| self.index.slot(*at)) {
            self.seen.vacate(slot, now);
        }
        self.index.remove(left);
        if !entered.is_empty() {
            self.enter(map, entered, now);
        }
        if !left.is_empty() && self.seen.index.is_empty() {
            self.empty(now);
        }
        !left.is_empty() || !entered.is_empty()
    }

    fn enter<S>(&mut self, map: &MapShadow<K, S>, entered: &mut [u32], now: u64) {
        let key = |at: &u32| map.slot(*at).entry.as_ref().map(|(key, _)| key);
        // In the order of keys, so that slots depend only on what is seen.
        entered.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(entered.len());
        for &at in &*entered {
            let Some(key) = key(&at) else { continue };
            pairs.push((at, self.seen.define(key.clone(), at, Stamps::default(), now)));
        }
        pairs.sort_unstable();
        self.index.insert(&pairs);
    }

    /// Closes the view. Returns whether anything left it.
    pub(in crate::map) fn close(&mut self, now: u64) -> bool {
        let any = !self.seen.index.is_empty();
        if any {
            self.empty(now);
        }
        self.index = H::Index::default();
        any
    }

    /// Resets, since nothing is in view. Like all that the viewer is sent, this must depend only on
    /// what the viewer sees.
    fn empty(&mut self, now: u64) {
        self.seen = MapShadow::new(0, Stamps::default());
        self.emptied = now;
    }

    /// Returns whether the view at a version is forgotten.
    pub(super) fn is_past(&self, since: u64) -> bool {
        since > 0 && since < self.emptied
    }

    /// The entry in a slot of the viewer's, if it changed since.
    #[inline]
    pub(super) fn changed_entry<'a, S>(
        &'a self,
        shadow: &'a ViewedShadow<K, S, H>,
        slot: u32,
        lens: Lens,
    ) -> Option<(&'a K, u32, &'a S, Lens)> {
        let (_, at) = self.seen.slot(slot).entry.as_ref()?;
        let place = shadow.map.slot(*at);
        let (key, value) = place.entry.as_ref()?;
        let lens = lens.under(key.player());
        place.stamps.after(lens).then_some((key, *at, value, lens))
    }

    /// The sum of the digests of what is in view. `digest` computes one from the key and the slot
    /// of the map.
    pub(super) fn digest<S>(
        &self,
        shadow: &ViewedShadow<K, S, H>,
        of: DigestOf,
        digest: impl Fn(&K, u32) -> u64,
    ) -> u64 {
        let version = self.seen.newest_version().max(shadow.map.newest_version());
        let changed = |since| self.changed(shadow, since);
        self.seen.digest_until(of, version, changed, |slot| {
            self.seen.slot(slot).entry.as_ref().map_or(0, |(key, at)| digest(key, *at))
        })
    }

    /// The viewer's slots of entries that were in view and may have changed since, in order.
    pub(super) fn changed<S>(&self, shadow: &ViewedShadow<K, S, H>, since: u64) -> Vec<u32> {
        if since == 0 {
            return Vec::new(); // all of it is new
        }
        let slot = |&at: &u32| {
            let slot = self.index.slot(at)?;
            (self.seen.slot(slot).defined() <= since).then_some(slot)
        };
        if self.is_scanned(shadow, since) {
            let changed = |(slot, _, at): (u32, &K, &u32)| {
                let is_old = self.seen.slot(slot).defined() <= since;
                (is_old && shadow.map.slot(*at).version() > since).then_some(slot)
            };
            return self.seen.entries().filter_map(changed).collect();
        }
        let mut slots: Vec<u32> = shadow.recent.iter().filter_map(slot).collect();
        slots.sort_unstable();
        slots
    }

    /// Returns whether changes since then are found by looking at all that is in view, which is in
    /// order and needs no search.
    pub(super) fn is_scanned<S>(&self, shadow: &ViewedShadow<K, S, H>, since: u64) -> bool {
        let is_recent = since >= shadow.before && since < shadow.recent_at;
        !is_recent || shadow.recent.len() > self.seen.index.len() / 4
    }

    /// Returns what [`changed`](Self::changed) and [`changed_entry`](Self::changed_entry) find, by
    /// looking at all that is in view.
    #[inline]
    pub(super) fn changes<'a, S>(
        &'a self,
        shadow: &'a ViewedShadow<K, S, H>,
        lens: Lens,
    ) -> impl Iterator<Item = (u32, Option<(Lens, &'a S)>)> {
        self.seen.entries_until(lens.since).filter_map(move |(slot, _, at)| {
            let place = shadow.map.slot(*at);
            let (key, value) = place.entry.as_ref()?;
            let lens = lens.under(key.player());
            place.stamps.after(lens).then_some((slot, Some((lens, value))))
        })
    }
}
