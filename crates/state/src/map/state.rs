//! Comparing and writing maps, on the server.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::{Place, TreeDigest, TreeWriter};
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use super::groups::Groups;
use super::shadow::{DigestOf, MapShadow};
use super::wire::{CHANGED, DEFINED, OwnPatch, REMOVED, Slots};
use super::{FRESH, Map, SCAN_SHARE, new_token};
use crate::change::Watch;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::slots::{self, Bind, New};
use crate::state::{
    Compare, Describe, Read, Write, diff_inside, tree_owner_field, write_owner_field,
};
use crate::{Key, Part, PlayerId, State, digest};

impl<K: Key, V: State> Describe for Map<K, V> {
    const UNOWNED: Option<&'static str> = {
        assert!(
            !V::NULLABLE,
            "a Map can't hold Options: in JSON, None would look like a missing key. Remove the key instead"
        );
        if K::IS_PLAYER { None } else { V::UNOWNED }
    };
    const HAS_OWNED: bool = V::HAS_OWNED;
    const HYSTERESIS: bool = V::HYSTERESIS;
    const PLACED: bool = V::PLACED;
    const NESTED_OWNERS: bool = V::NESTED_OWNERS || (K::IS_PLAYER && V::HAS_OWNED);
    const KEYED_BY_PLAYER: bool = K::IS_PLAYER;
    const IS_MAP: bool = true;
    const REPORTS: bool = V::REPORTS;

    fn shape() -> Type {
        Type::Map(Box::new(K::schema()), Box::new(V::shape()))
    }
}

impl<K: Key, V: State> Compare for Map<K, V> {
    type Shadow = MapShadow<K, V::Shadow>;

    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow {
        let stamps = Stamps::new(bind.now(), V::HAS_OWNED);
        let mut shadow = MapShadow::new(new_token(), stamps);
        let places: Vec<u32> = self.index.values().copied().collect();
        let slots = bind.known(|reader, vacancies| slots::read(reader, vacancies, places.len()));
        match slots.flatten() {
            Some(slots) => {
                shadow.lay_out(&slots);
                self.define_in(
                    places.into_iter().zip(slots.into_iter().map(Some)),
                    &mut shadow,
                    bind,
                );
            }
            None => self.define_fresh(places, &mut shadow, bind),
        }
        self.in_sync(shadow.token);
        shadow
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        slots::put(shadow.index.values().copied(), out);
        shadow.entries_by_key().for_each(|(_, value)| V::put_slots(value, out));
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        if self.track.token != shadow.token {
            self.rebind(shadow);
        } else if step.tracking() == Tracking::On
            && !self.track.all
            && self.track.touched.is_empty()
            && self.track.removed.is_empty()
        {
            return Changed::NO;
        }
        let mut changed = Changed::NO;
        for (_, slot) in std::mem::take(&mut self.track.removed) {
            shadow.vacate(slot, step.now);
            changed |= Changed::whole(V::HAS_OWNED);
        }
        let mut fresh = Vec::new();
        if self.track.all || step.tracking() == Tracking::Off {
            for place in 0..self.entries.len() {
                changed |= self.diff_entry(place as u32, shadow, step, &mut fresh);
            }
            self.track.touched.clear();
        } else {
            let mut touched = std::mem::take(&mut self.track.touched);
            if touched.len() > self.entries.len() / SCAN_SHARE {
                touched.clear();
                touched.extend(0..self.entries.len() as u32);
            }
            for place in touched.drain(..) {
                if self.entries[place as usize].as_ref().is_some_and(|entry| entry.touched) {
                    changed |= self.diff_entry(place, shadow, step, &mut fresh);
                }
            }
            self.track.touched = touched; // reuse its memory
        }
        step.here();
        if !fresh.is_empty() {
            let entries = &self.entries;
            let key = |place: &u32| entries[*place as usize].as_ref().map(|entry| &entry.key);
            fresh.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
            self.define_fresh(fresh, shadow, New(step.now));
            changed |= Changed::whole(V::HAS_OWNED);
        }
        self.track.all = false;
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        let in_sync =
            self.track.token == shadow.token && tracking == Tracking::On && !self.track.all;
        if in_sync && self.track.touched.is_empty() && self.track.removed.is_empty() {
            return true;
        }
        self.index.len() == shadow.index.len()
            && self.index.iter().zip(&shadow.index).all(|((key, &place), (known, &slot))| {
                key == known
                    && match (&self.entries[place as usize], &shadow.slot(slot).entry) {
                        (Some(entry), Some((_, last))) => {
                            (in_sync && !entry.touched) || entry.value.same_shared(last, tracking)
                        }
                        _ => false,
                    }
            })
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn left_out(shadow: &Self::Shadow, viewer: PlayerId) -> u64 {
        if !V::PLACED {
            return 0;
        }
        shadow.entries().map(|(_, _, value)| V::left_out(value, viewer)).sum()
    }

    fn digest(&self, part: Part) -> u64 {
        self.iter().fold(0, |sum, (key, value)| {
            u64::wrapping_add(sum, digest::of_entry(key.digest(), value.digest(part), true))
        })
    }

    fn view(&self, sight: Sight<'_>) -> Value {
        Value::Object(self.iter().map(|(key, value)| member(key, value, sight)).collect())
    }

    fn owner_view(&self, sight: Sight<'_>) -> Option<Value> {
        if !K::IS_PLAYER {
            return sight.owns().then(|| self.view(sight));
        }
        let own = self.iter().filter(|(key, _)| sight.is_copy || key.player() == sight.viewer);
        Some(Value::Object(own.map(|(key, value)| member(key, value, sight)).collect()))
    }
}

impl<K: Key, V: State> Write for Map<K, V> {
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        let mut slots = Slots::default();
        let mut put = |slot, key: &K, value| {
            slots.put(slot, out);
            key.encode(out);
            V::write_full(value, lens.under(key.player()).each(), out);
            lens.here();
        };
        if lens.fresh {
            for (place, (key, value)) in shadow.entries_by_key().enumerate() {
                put(place as u32, key, value);
            }
        } else {
            shadow.entries().for_each(|(slot, key, value)| put(slot, key, value));
        }
        out.push(0);
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        if lens.part == Part::Owned && K::IS_PLAYER && !V::NESTED_OWNERS {
            return write_own_change::<K, V>(shadow, lens, out);
        }
        if lens.fresh {
            // A fresh value is never patched. This is all of it, through an `owner` field.
            out.push(DEFINED);
            Self::write_full(shadow, lens, out);
            return !shadow.index.is_empty();
        }
        let found = shadow.changed_slots(lens);
        let flags_at = out.len();
        out.push(0);
        let mut flags = 0;
        if lens.part != Part::Owned {
            flags |= write_removed(shadow, lens, &found, out);
            flags |= write_defined::<K, V>(shadow, lens, &found, out);
        }
        flags |= write_changes::<V>(&found, lens, |slot| changed_entry(shadow, slot, lens), out);
        out[flags_at] = flags;
        flags != 0
    }

    fn write_owner_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        if !K::IS_PLAYER {
            return write_owner_field::<Self>(shadow, lens, out);
        }
        match own_entry(shadow, lens) {
            Own::Nothing => false,
            Own::Gone(key) => {
                out.push(OwnPatch::Gone as u8);
                key.encode(out);
                true
            }
            Own::Whole(key, value, lens) => {
                out.push(OwnPatch::Whole as u8);
                key.encode(out);
                V::write_full(value, lens.each(), out);
                true
            }
            Own::Patch(key, value, lens) => {
                let start = out.len();
                out.push(OwnPatch::Patch as u8);
                key.encode(out);
                let any = V::write_patch(value, lens.each(), out);
                if !any {
                    out.truncate(start);
                }
                any
            }
        }
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        if lens.part == Part::Shared
            && let Some((format, place)) = out.counts()
        {
            let members = shadow.digest(DigestOf::Tree(format, place), |slot| {
                let entry = shadow.slot(slot).entry.as_ref();
                entry.map_or(0, |(key, value)| {
                    tree_entry_digest::<K, V>(key, value, lens, format, place)
                })
            });
            return out.count_object(members as u32);
        }
        let mut object = out.object(shadow.index.len());
        for &slot in shadow.index.values() {
            if let Some((key, value)) = &shadow.slot(slot).entry {
                V::tree_full(value, lens.under(key.player()), object.member(&key.name()));
            }
        }
        object.end();
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        if lens.since > 0 && shadow.stamps.shared() > lens.since && shadow.forgets(lens) {
            // The removed keys are forgotten, so the map is sent whole.
            let lens = Lens { since: 0, ..lens };
            if lens.part != Part::Owned {
                ops.set(|out| Self::tree_full(shadow, lens, out));
                return;
            }
            return Self::tree_patch(shadow, lens, ops);
        }
        let found = shadow.changed_slots(lens);
        if lens.part != Part::Owned {
            tree_removed(shadow, lens, ops);
        }
        for &slot in &found {
            let place = shadow.slot(slot);
            let Some((key, value)) = &place.entry else { continue };
            let under = lens.under(key.player()).of(place.defined());
            if lens.part != Part::Owned && place.defined() > lens.since {
                ops.member(&key.name(), |ops| ops.set(|out| V::tree_full(value, under, out)));
            } else if place.stamps.after(under) {
                ops.member(&key.name(), |ops| V::tree_patch(value, under, ops));
            }
        }
    }

    fn tree_owner_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        if !K::IS_PLAYER {
            return tree_owner_field::<Self>(shadow, lens, ops);
        }
        match own_entry(shadow, lens) {
            Own::Nothing => {}
            Own::Gone(key) => ops.member(&key.name(), Ops::remove),
            Own::Whole(key, value, lens) => {
                ops.member(&key.name(), |ops| ops.set(|out| V::tree_full(value, lens, out)));
            }
            Own::Patch(key, value, lens) => {
                ops.member(&key.name(), |ops| V::tree_patch(value, lens, ops));
            }
        }
    }

    fn tree_owner_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        if !K::IS_PLAYER {
            let Some(lens) = lens.owner_field() else { return false };
            Self::tree_full(shadow, lens, out);
            return true;
        }
        let mut object = out.object(1);
        if lens.part != Part::Shared
            && let Own::Whole(key, value, lens) = own_entry(shadow, Lens { since: 0, ..lens })
        {
            V::tree_full(value, lens, object.member(&key.name()));
        }
        object.end();
        true
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        if lens.part == Part::Owned && K::IS_PLAYER && !V::NESTED_OWNERS {
            return own_slot(shadow, lens)
                .map_or(0, |(_, slot)| entry_digest::<K, V>(shadow, slot, lens));
        }
        if lens.part == Part::Owned && !V::HAS_OWNED {
            return 0;
        }
        if lens.part != Part::Shared {
            return shadow
                .used_slots()
                .fold(0, |sum, slot| sum.wrapping_add(entry_digest::<K, V>(shadow, slot, lens)));
        }
        shadow.digest(DigestOf::Packed, |slot| entry_digest::<K, V>(shadow, slot, lens))
    }

    fn owner_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        if !K::IS_PLAYER {
            return lens.owner_field().map_or(0, |lens| Self::shadow_digest(shadow, lens));
        }
        match own_slot(shadow, lens) {
            Some((_, slot)) if lens.part != Part::Shared => {
                entry_digest::<K, V>(shadow, slot, Lens { part: Part::All, ..lens })
            }
            _ => 0,
        }
    }
}

impl<K: Key, V: State> Read for Map<K, V> {
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        Self::read_entries(reader, part)
    }

    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        self.read_changes(reader, part, watch)
    }

    fn read_owner_patch(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        if K::IS_PLAYER {
            self.read_own(reader, watch)
        } else {
            self.read_patch(reader, Part::All, watch)
        }
    }

    fn empty_maps(&mut self) {
        *self = Self::new();
    }
}

/// An entry as `sight` sees it, with its name.
pub(super) fn member<K: Key, V: State>(key: &K, value: &V, sight: Sight<'_>) -> (String, Value) {
    let name = key.name().into_owned();
    let value = value.view(sight.under(key.player()).at(&name));
    (name, value)
}

/// The digest of the entry in a slot; 0 if there is none.
pub(super) fn entry_digest<K: Key, V: State>(
    shadow: &MapShadow<K, V::Shadow>,
    slot: u32,
    lens: Lens,
) -> u64 {
    let Some((key, value)) = &shadow.slot(slot).entry else { return 0 };
    let value = V::shadow_digest(value, lens.under(key.player()));
    digest::of_entry(key.digest(), value, lens.part != Part::Owned)
}

/// The digest of an entry in a tree with its map at `place`.
pub(super) fn tree_entry_digest<K: Key, V: State>(
    key: &K,
    value: &V::Shadow,
    lens: Lens,
    format: TreeFormat,
    place: Place,
) -> u64 {
    let mut digest = TreeDigest::new(format);
    V::tree_full(value, lens.under(key.player()), digest.at(place.member(&key.name())));
    digest.sum().into()
}

// The server compares.

impl<K: Key, V: State> Map<K, V> {
    /// Compares one entry; a new one is put on the list `fresh`.
    fn diff_entry(
        &mut self,
        place: u32,
        shadow: &mut MapShadow<K, V::Shadow>,
        step: Step,
        fresh: &mut Vec<u32>,
    ) -> Changed {
        let Some(entry) = self.entries[place as usize].as_mut() else { return Changed::NO };
        entry.touched = false;
        if entry.slot == FRESH {
            fresh.push(place);
            return Changed::NO;
        }
        let Some(last) = shadow.shadow_mut(entry.slot) else { return Changed::NO };
        let changed = diff_inside(&mut entry.value, last, step);
        if changed.any() {
            shadow.changed(entry.slot, changed, step.now);
        }
        changed
    }

    fn define_fresh<B: Bind>(
        &mut self,
        places: Vec<u32>,
        shadow: &mut MapShadow<K, V::Shadow>,
        bind: B,
    ) {
        self.define_in(places.into_iter().map(|place| (place, None)), shadow, bind);
    }

    /// Defines the entries at these places, each in its slot or in the lowest that is free.
    #[inline]
    fn define_in<B: Bind>(
        &mut self,
        places: impl Iterator<Item = (u32, Option<u32>)>,
        shadow: &mut MapShadow<K, V::Shadow>,
        bind: B,
    ) {
        let (now, stamps) = (bind.now(), Stamps::new(bind.now(), V::HAS_OWNED));
        for (place, slot) in places {
            let Some(entry) = self.entries[place as usize].as_mut() else { continue };
            let value = entry.value.bind(bind);
            let slot = slot.unwrap_or_else(|| shadow.free_slot());
            shadow.define_in(slot, entry.key.clone(), value, stamps, now);
            entry.slot = slot;
            entry.touched = false;
        }
    }

    /// The map was replaced: entries are paired by their keys, and all are compared.
    fn rebind(&mut self, shadow: &mut MapShadow<K, V::Shadow>) {
        let token = new_token();
        shadow.token = token;
        self.in_sync(token);
        self.track.all = true;
        for entry in self.entries.iter_mut().flatten() {
            entry.slot = shadow.index.get(&entry.key).copied().unwrap_or(FRESH);
        }
        let gone = shadow.index.iter().filter(|(key, _)| !self.index.contains_key(key));
        self.track.removed = gone.map(|(key, &slot)| (key.clone(), slot)).collect();
    }
}

// The server writes.

/// Writes a section of the slots for which `write` writes anything. An empty section is left out.
pub(super) fn section(
    found: &[u32],
    flag: u8,
    out: &mut Vec<u8>,
    mut write: impl FnMut(u32, &mut Slots, &mut Vec<u8>),
) -> u8 {
    let start = out.len();
    let mut slots = Slots::default();
    for &slot in found {
        write(slot, &mut slots, out);
    }
    if out.len() == start {
        return 0;
    }
    out.push(0);
    flag
}

fn write_removed<K: Key, S>(
    shadow: &MapShadow<K, S>,
    lens: Lens,
    found: &[u32],
    out: &mut Vec<u8>,
) -> u8 {
    if lens.since == 0 {
        return 0; // a copy of nothing has nothing to remove
    }
    section(found, REMOVED, out, |slot, slots, out| {
        let place = shadow.slot(slot);
        if place.entry.is_none() && place.defined() > lens.since {
            slots.put(slot, out);
        }
    })
}

fn write_defined<K: Key, V: State>(
    shadow: &MapShadow<K, V::Shadow>,
    lens: Lens,
    found: &[u32],
    out: &mut Vec<u8>,
) -> u8 {
    section(found, DEFINED, out, |slot, slots, out| {
        let place = shadow.slot(slot);
        if place.defined() > lens.since
            && let Some((key, value)) = &place.entry
        {
            slots.put(slot, out);
            key.encode(out);
            V::write_full(value, lens.under(key.player()).each(), out);
            lens.here();
        }
    })
}

/// The change inside the entry of a slot; `None` if the entry is sent whole.
fn changed_entry<K: Key, S>(shadow: &MapShadow<K, S>, slot: u32, lens: Lens) -> Option<(Lens, &S)> {
    let place = shadow.slot(slot);
    let (key, value) = place.entry.as_ref()?;
    if place.defined() > lens.since && lens.part != Part::Owned {
        return None;
    }
    let under = lens.under(key.player()).of(place.defined());
    place.stamps.after(under).then_some((under, value))
}

/// Writes the changes inside entries, in columns where many changed in the same fields. `at`
/// returns the change in a slot, if any.
pub(super) fn write_changes<'a, V: State>(
    found: &'a [u32],
    lens: Lens,
    at: impl Fn(u32) -> Option<(Lens, &'a V::Shadow)>,
    out: &mut Vec<u8>,
) -> u8 {
    let grouped = (lens.part != Part::Owned).then(|| Groups::<V>::of(found, &at));
    let one_by_one = grouped.as_ref().map_or(found, |groups| &groups.rest);
    write_grouped(one_by_one, grouped.as_ref(), lens, at, out)
}

/// The same, for changes that are grouped already. `one_by_one` are the slots outside the groups.
pub(super) fn write_grouped<'a, V: State>(
    one_by_one: &[u32],
    grouped: Option<&Groups<'a, V>>,
    lens: Lens,
    at: impl Fn(u32) -> Option<(Lens, &'a V::Shadow)>,
    out: &mut Vec<u8>,
) -> u8 {
    let mut flags = section(one_by_one, CHANGED, out, |slot, slots, out| {
        let Some((lens, value)) = at(slot) else { return };
        let (start, before) = (out.len(), slots.next);
        slots.put(slot, out);
        let is_written = V::write_patch(value, lens.each(), out);
        lens.here();
        if !is_written {
            out.truncate(start);
            slots.next = before;
        }
    });
    if let Some(groups) = grouped {
        flags |= groups.write(lens, out);
    }
    flags
}

/// Writes the change of the viewer's own entry, if no other entry can hold anything for the viewer.
fn write_own_change<K: Key, V: State>(
    shadow: &MapShadow<K, V::Shadow>,
    lens: Lens,
    out: &mut Vec<u8>,
) -> bool {
    match own_slot(shadow, lens) {
        Some((_, slot)) => {
            out.push(CHANGED);
            write_changes::<V>(&[slot], lens, |slot| changed_entry(shadow, slot, lens), out) != 0
        }
        None => false,
    }
}

/// The change of the viewer's own entry, in a map where each player sees their own.
enum Own<'a, K, S> {
    Nothing,
    Gone(K),
    Whole(&'a K, &'a S, Lens),
    Patch(&'a K, &'a S, Lens),
}

fn own_entry<'a, K: Key, S>(shadow: &'a MapShadow<K, S>, lens: Lens) -> Own<'a, K, S> {
    if lens.part == Part::Shared || (shadow.stamps.newest() <= lens.since && !lens.stale) {
        return Own::Nothing;
    }
    let lens = Lens { part: Part::All, owner: Some(lens.viewer), ..lens };
    if let Some((_, slot)) = own_slot(shadow, lens) {
        let place = shadow.slot(slot);
        let Some((key, value)) = &place.entry else { return Own::Nothing };
        return if place.defined() > lens.since {
            Own::Whole(key, value, lens)
        } else if place.stamps.after(lens) {
            Own::Patch(key, value, lens)
        } else {
            Own::Nothing
        };
    }
    let Some(key) = K::of_player(lens.viewer) else { return Own::Nothing };
    // For a version that is too old, an absent entry is always sent, since what is remembered here
    // may depend on others.
    let gone = lens.stale || shadow.gone.get(&key).is_some_and(|end| *end > lens.since);
    if lens.since > 0 && gone { Own::Gone(key) } else { Own::Nothing }
}

fn own_slot<K: Key, S>(shadow: &MapShadow<K, S>, lens: Lens) -> Option<(K, u32)> {
    let key = K::of_player(lens.viewer)?;
    let slot = *shadow.index.get(&key)?;
    Some((key, slot))
}

/// Removes the keys that were removed after `lens.since`, unless they are back.
fn tree_removed<K: Key, S>(shadow: &MapShadow<K, S>, lens: Lens, ops: &mut Ops<'_, '_>) {
    if lens.since == 0 {
        return;
    }
    for (key, &end) in &shadow.gone {
        if end > lens.since {
            ops.member(&key.name(), Ops::remove);
        }
    }
}
