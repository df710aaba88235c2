//! A map with a view, which decides entry by entry.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;

use super::shadow::{DigestOf, MapShadow};
use super::state::{entry_digest, section, tree_entry_digest, write_changes};
use super::wire::{ALL, DEFINED, REMOVED, REPLACED, Slots};
use super::{Map, Touches};
use crate::lens::{Changed, Lens, Sight, Stamps, Step};
use crate::ops::Ops;
use crate::state::{Compare, differs};
use crate::viewed::Viewed;
use crate::{Key, Part, PlayerId, State};

/// A map: its view decides entry by entry.
pub struct ByEntry<M>(PhantomData<M>);

/// The shadow of [`ByEntry`].
pub struct ViewedShadow<K, S> {
    map: MapShadow<K, S>,
    /// When an entry changed, or entered or left someone's view.
    stamps: Stamps,
    eyes: BTreeMap<PlayerId, Eye<K>>,
    /// The slots that changed at the version `recent_at`, the last one with changes.
    recent: Vec<u32>,
    recent_at: u64,
    /// The last version with changes before it.
    before: u64,
}

/// What one player sees of the map: keys with slots of their own, and for each its slot in the map.
struct Eye<K> {
    seen: MapShadow<K, u32>,
    /// The version at which the view became empty and `seen` was reset. An older copy is sent all
    /// that is in view. So the map doesn't remember forever what a player has seen, and players who
    /// left use no memory.
    emptied: u64,
    /// By slots of the map: 1 more than the viewer's slot, 0 where nothing is seen.
    slots: Vec<u32>,
}

impl<K: Key, V: State> Viewed for ByEntry<Map<K, V>> {
    type Of = Map<K, V>;
    type Item = V;
    type Shadow = ViewedShadow<K, V::Shadow>;

    fn bind(value: &mut Map<K, V>, now: u64) -> Self::Shadow {
        ViewedShadow {
            map: value.bind(now),
            stamps: Stamps::new(now, true),
            eyes: BTreeMap::new(),
            recent: Vec::new(),
            recent_at: now,
            before: now,
        }
    }

    fn touches(value: &Map<K, V>, shadow: &Self::Shadow, step: Step) -> Touches {
        value.touches(shadow.map.token, step)
    }

    fn diff(value: &mut Map<K, V>, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let changed = value.diff(&mut shadow.map, step).to_owner();
        if changed.any() {
            shadow.before = shadow.recent_at;
            shadow.recent_at = step.now;
            shadow.recent = shadow.map.changed_since(step.now - 1);
        }
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn look<P: Key, A>(
        value: &Map<K, V>,
        shadow: &mut Self::Shadow,
        touched: &Touches,
        viewers: &Map<P, A>,
        moved: &Touches,
        sees: impl Fn(&V, &A) -> bool,
        now: u64,
    ) -> Changed {
        let touched = shadow.places(value, touched, now);
        let mut everything = None;
        let mut turned = false;
        for (place, player, viewer) in viewers.placed() {
            let Some(player) = player.player() else { continue };
            let is_new = !shadow.eyes.contains_key(&player);
            let eye = shadow.eyes.entry(player).or_insert_with(Eye::new);
            let places = if is_new || moved.has(place) {
                everything.get_or_insert_with(|| all_places(&shadow.map, value, now))
            } else {
                &touched
            };
            turned |= eye.look(&shadow.map, places, |value| sees(value, viewer), now);
        }
        if shadow.eyes.len() > viewers.len() {
            shadow.eyes.retain(|player, eye| {
                let is_there = P::of_player(*player).is_some_and(|key| viewers.contains_key(&key));
                if !is_there {
                    turned |= eye.close(now);
                }
                is_there || !Lens::forgotten(eye.emptied, now)
            });
        }
        let changed = Changed { shared: false, owned: turned };
        shadow.stamps.note(changed, now);
        changed
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        if lens.part == Part::Shared || !shadow.stamps.after(lens) {
            return false;
        }
        let eye = shadow.eyes.get(&lens.viewer);
        if lens.stale || lens.fresh || eye.is_some_and(|eye| eye.is_past(lens.since)) {
            return shadow.write_all::<V>(lens, out);
        }
        let lens = lens.in_view();
        let Some(eye) = eye else { return false };
        let flags_at = out.len();
        out.push(0);
        let turned = eye.seen.changed_slots(lens);
        let mut flags = 0;
        if lens.since > 0 {
            flags |= section(&turned, REMOVED, out, |slot, slots, out| {
                let place = eye.seen.slot(slot);
                if place.entry.is_none() && place.defined() > lens.since {
                    slots.put(slot, out);
                }
            });
        }
        flags |= section(&turned, DEFINED, out, |slot, slots, out| {
            if let Some((key, at)) = &eye.seen.slot(slot).entry {
                slots.put(slot, out);
                key.encode(out);
                shadow.write_value::<V>(key, *at, lens, out);
            }
        });
        let changed = eye.changed(shadow, lens.since);
        if V::PLAIN {
            let at = |slot| {
                eye.changed_entry(shadow, slot, lens).map(|(_, _, value, lens)| (lens, value))
            };
            flags |= write_changes::<V>(&changed, lens, at, out);
        } else {
            flags |= section(&changed, REPLACED, out, |slot, slots, out| {
                if let Some((_, _, value, lens)) = eye.changed_entry(shadow, slot, lens)
                    && differs::<V>(value, lens)
                {
                    slots.put(slot, out);
                    V::write_full(value, lens, out);
                }
            });
        }
        out[flags_at] = flags;
        flags != 0
    }

    fn read_patch(value: &mut Map<K, V>, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        if reader.peek() == Some(ALL) {
            reader.u8()?;
            *value = Map::read_entries(reader, Part::All)?;
            return Ok(());
        }
        value.read_changes(reader, Part::All)
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        let lens = Lens { since: 0, ..lens };
        let eye = shadow.eyes.get(&lens.viewer).filter(|_| lens.part != Part::Shared);
        let mut object = out.object(eye.map_or(0, |eye| eye.seen.index.len()));
        for (key, slot) in eye.iter().flat_map(|eye| &eye.seen.index) {
            if let Some((_, at)) = eye.and_then(|eye| eye.seen.slot(*slot).entry.as_ref()) {
                shadow.tree_value::<V>(key, *at, lens, object.member(&key.name()));
            }
        }
        object.end();
        true
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        if lens.part == Part::Shared || !shadow.stamps.after(lens) {
            return;
        }
        let lens = lens.in_view();
        let eye = shadow.eyes.get(&lens.viewer);
        if lens.since > 0
            && (lens.stale
                || eye.is_some_and(|eye| eye.is_past(lens.since) || eye.seen.forgets(lens)))
        {
            return ops.set(|out| {
                Self::tree_full(shadow, lens, out);
            });
        }
        let Some(eye) = eye else { return };
        if let Some((format, place)) = ops.counts() {
            let seen = eye.digest(shadow, DigestOf::Tree(format, place), |key, at| {
                let entry = shadow.map.slot(at).entry.as_ref();
                entry.map_or(0, |(_, value)| {
                    tree_entry_digest::<K, V>(key, value, lens, format, place)
                })
            });
            return ops.count(seen as u32);
        }
        for (key, end) in &eye.seen.gone {
            if lens.since > 0 && *end > lens.since {
                ops.member(&key.name(), Ops::remove);
            }
        }
        for slot in eye.seen.changed_slots(lens) {
            if let Some((key, at)) = &eye.seen.slot(slot).entry {
                ops.member(&key.name(), |ops| {
                    ops.set(|out| shadow.tree_value::<V>(key, *at, lens, out));
                });
            }
        }
        for slot in eye.changed(shadow, lens.since) {
            if let Some((key, at, value, under)) = eye.changed_entry(shadow, slot, lens) {
                ops.member(&key.name(), |ops| {
                    if V::PLAIN {
                        V::tree_patch(value, under, ops);
                    } else if differs::<V>(value, under) {
                        ops.set(|out| shadow.tree_value::<V>(key, at, lens, out));
                    }
                });
            }
        }
    }

    fn copy_digest(value: &Map<K, V>) -> u64 {
        value.digest(Part::All)
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        let (Some(eye), Part::Owned | Part::All) = (shadow.eyes.get(&lens.viewer), lens.part)
        else {
            return 0;
        };
        let lens = lens.in_view();
        eye.digest(shadow, DigestOf::Packed, |key, at| {
            entry_digest::<K, V>(&shadow.map, at, lens.under(key.player()))
        })
    }

    fn view(value: &Map<K, V>, sight: Sight, sees: impl Fn(&V) -> bool) -> Option<Value> {
        let seen = value.iter().filter(|(_, value)| sees(value));
        Some(Value::Object(
            seen.map(|(key, value)| {
                (key.name().into_owned(), value.view(sight.under(key.player())))
            })
            .collect(),
        ))
    }
}

/// A slot of the map, its present value, and whether that is a new entry.
struct Place<'a, V> {
    slot: u32,
    value: Option<&'a V>,
    is_new: bool,
}

/// Every slot of the map.
fn all_places<'a, K: Key, V, S>(
    shadow: &MapShadow<K, S>,
    map: &'a Map<K, V>,
    now: u64,
) -> Vec<Place<'a, V>> {
    let mut places: Vec<Place<'_, V>> = (0..shadow.slots_len())
        .map(|slot| Place { slot, value: None, is_new: shadow.slot(slot).defined() == now })
        .collect();
    for (slot, value) in map.slotted() {
        places[slot as usize].value = Some(value);
    }
    places
}

impl<K: Key, S> ViewedShadow<K, S> {
    /// Writes everything that is in view. It replaces what the reader has.
    fn write_all<V: State<Shadow = S>>(&self, lens: Lens, out: &mut Vec<u8>) -> bool {
        out.push(ALL);
        let inside = Lens { since: 0, ..lens.in_view() };
        let mut slots = Slots::default();
        let mut put = |slot, key: &K, at: &u32| {
            slots.put(slot, out);
            key.encode(out);
            self.write_value::<V>(key, *at, inside, out);
        };
        if let Some(eye) = self.eyes.get(&lens.viewer) {
            if lens.fresh {
                for (place, (key, at)) in eye.seen.entries_by_key().enumerate() {
                    put(place as u32, key, at);
                }
            } else {
                eye.seen.entries().for_each(|(slot, key, at)| put(slot, key, at));
            }
        }
        out.push(0);
        true
    }

    fn write_value<V: State<Shadow = S>>(&self, key: &K, at: u32, lens: Lens, out: &mut Vec<u8>) {
        if let Some((_, value)) = &self.map.slot(at).entry {
            V::write_full(value, lens.under(key.player()), out);
        }
    }

    fn tree_value<V: State<Shadow = S>>(&self, key: &K, at: u32, lens: Lens, out: TreeWriter<'_>) {
        match &self.map.slot(at).entry {
            Some((_, value)) => {
                V::tree_full(value, Lens { since: 0, ..lens.under(key.player()) }, out);
            }
            None => out.null(),
        }
    }

    /// The slots of entries that were touched, and those that were vacated.
    fn places<'a, V>(&self, map: &'a Map<K, V>, touched: &Touches, now: u64) -> Vec<Place<'a, V>> {
        let Touches::Places(touched) = touched else { return all_places(&self.map, map, now) };
        let mut places = Vec::with_capacity(touched.len());
        for &place in touched {
            // A slot is looked at once: a removed entry whose slot has a new entry is handled there.
            if let Some((slot, value)) = map.slotted_at(place) {
                places.push(Place {
                    slot,
                    value: Some(value),
                    is_new: self.map.slot(slot).defined() == now,
                });
            }
        }
        if self.recent_at == now {
            let vacated = self.recent.iter().filter(|slot| self.map.slot(**slot).entry.is_none());
            places.extend(vacated.map(|&slot| Place { slot, value: None, is_new: true }));
        }
        places
    }
}

impl<K: Key> Eye<K> {
    fn new() -> Self {
        Self { seen: MapShadow::new(0, Stamps::default()), emptied: 0, slots: Vec::new() }
    }

    /// Looks at some places again. Returns whether anything entered or left the view.
    fn look<V, S>(
        &mut self,
        map: &MapShadow<K, S>,
        places: &[Place<'_, V>],
        sees: impl Fn(&V) -> bool,
        now: u64,
    ) -> bool {
        self.slots.resize(map.slots_len() as usize, 0);
        let mut left = false;
        let mut entered: Vec<(&K, u32)> = Vec::new();
        for &Place { slot, value, is_new } in places {
            let seen = self.slots[slot as usize];
            let sees = value.is_some_and(&sees);
            if seen != 0 && (is_new || !sees) {
                self.seen.vacate(seen - 1, now);
                self.slots[slot as usize] = 0;
                left = true;
            }
            if sees
                && self.slots[slot as usize] == 0
                && let Some((key, _)) = &map.slot(slot).entry
            {
                entered.push((key, slot));
            }
        }
        // In the order of keys, so that slots depend only on what is seen.
        entered.sort_unstable();
        entered.dedup();
        for &(key, slot) in &entered {
            self.slots[slot as usize] =
                1 + self.seen.define(key.clone(), slot, Stamps::default(), now);
        }
        if left && self.seen.index.is_empty() {
            self.empty(now);
        }
        left || !entered.is_empty()
    }

    /// Closes the view. Returns whether anything left it.
    fn close(&mut self, now: u64) -> bool {
        let any = !self.seen.index.is_empty();
        if any {
            self.empty(now);
        }
        self.slots = Vec::new();
        any
    }

    /// Resets, since nothing is in view. Like all that the viewer is sent, this must depend only on
    /// what the viewer sees.
    fn empty(&mut self, now: u64) {
        self.seen = MapShadow::new(0, Stamps::default());
        self.emptied = now;
    }

    /// Whether the view at a version is forgotten.
    fn is_past(&self, since: u64) -> bool {
        since > 0 && since < self.emptied
    }

    /// The entry in a slot of the viewer's, if it changed since.
    fn changed_entry<'a, S>(
        &'a self,
        shadow: &'a ViewedShadow<K, S>,
        slot: u32,
        lens: Lens,
    ) -> Option<(&'a K, u32, &'a S, Lens)> {
        let (_, at) = self.seen.slot(slot).entry.as_ref()?;
        let place = shadow.map.slot(*at);
        let (key, value) = place.entry.as_ref()?;
        let lens = lens.under(key.player());
        place.stamps.after(lens).then_some((key, *at, value, lens))
    }

    /// The sum of the digests of what is in view. `digest` computes one from the key and the slot of
    /// the map.
    fn digest<S>(
        &self,
        shadow: &ViewedShadow<K, S>,
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
    fn changed<S>(&self, shadow: &ViewedShadow<K, S>, since: u64) -> Vec<u32> {
        if since == 0 {
            return Vec::new(); // all of it is new
        }
        let slot = |&at: &u32| {
            let slot = self.slots.get(at as usize)?.checked_sub(1)?;
            (self.seen.slot(slot).defined() <= since).then_some(slot)
        };
        let mut slots: Vec<u32> = if since >= shadow.before && since < shadow.recent_at {
            shadow.recent.iter().filter_map(slot).collect()
        } else {
            shadow.map.changed_since(since).iter().filter_map(slot).collect()
        };
        slots.sort_unstable();
        slots
    }
}
