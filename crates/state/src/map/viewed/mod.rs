//! A map with a view, which decides entry by entry.

mod asked;
mod eye;
mod slots;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::tree::TreeWriter;

use self::asked::Asked;
pub(super) use self::eye::{Eye, Index};
use super::groups::Groups;
use super::shadow::{DigestOf, MapShadow};
use super::state::{entry_digest, section, tree_entry_digest, write_changes, write_grouped};
use super::wire::{ALL, DEFINED, REMOVED, REPLACED, Slots};
use super::{Map, Touches};
use crate::change::Watch;
use crate::lens::{Changed, Lens, Stamps, Step};
use crate::ops::Ops;
use crate::slots::Bind;
use crate::state::{Compare, differs};
use crate::viewed::Viewed;
use crate::{Key, Part, PlayerId, State};

/// A map: its view decides entry by entry, by a function (`Asked`) or by place
/// ([`Near`](super::Near)).
pub struct ByEntry<M, H = Asked>(PhantomData<(M, H)>);

/// A way to find the entries that someone sees in a view.
pub trait How: 'static {
    /// The data kept for each viewer.
    type Index: Index;
    /// The data kept for all of them.
    type Finder: Default + 'static;
}

/// The shadow of [`ByEntry`].
pub struct ViewedShadow<K, S, H: How> {
    pub(super) map: MapShadow<K, S>,
    /// When an entry changed, or entered or left someone's view.
    pub(super) stamps: Stamps,
    pub(super) eyes: BTreeMap<PlayerId, Eye<K, H>>,
    /// The slots that changed at the version `recent_at`, the last one with changes.
    pub(super) recent: Vec<u32>,
    pub(super) recent_at: u64,
    /// The last version with changes before it.
    before: u64,
    pub(super) finder: H::Finder,
}

impl<K: Key, V: State, H: How> Viewed for ByEntry<Map<K, V>, H> {
    type Of = Map<K, V>;
    type Shadow = ViewedShadow<K, V::Shadow, H>;

    fn bind<B: Bind>(value: &mut Map<K, V>, bind: B) -> Self::Shadow {
        let now = bind.now();
        ViewedShadow {
            map: value.bind(bind),
            stamps: Stamps::new(now, true),
            eyes: BTreeMap::new(),
            recent: Vec::new(),
            recent_at: now,
            before: now,
            finder: H::Finder::default(),
        }
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        Map::<K, V>::put_slots(&shadow.map, out);
    }

    fn put_seen(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        slots::put_seen(shadow, out);
    }

    fn recall<B: Bind>(shadow: &mut Self::Shadow, bind: B) {
        bind.known(|reader, vacancies| slots::recall(shadow, bind.now(), reader, vacancies));
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

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn left_out(shadow: &Self::Shadow, viewer: PlayerId) -> u64 {
        let Some(eye) = shadow.eyes.get(&viewer) else { return 0 };
        let inside = |(_, _, at): (u32, &K, &u32)| {
            let entry = shadow.map.slot(*at).entry.as_ref();
            entry.map_or(0, |(_, value)| V::left_out(value, viewer))
        };
        let inside: u64 = if V::PLACED { eye.seen.entries().map(inside).sum() } else { 0 };
        eye.index.left_out() as u64 + inside
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
        if V::PLAIN {
            let at = |slot| {
                eye.changed_entry(shadow, slot, lens).map(|(_, _, value, lens)| (lens, value))
            };
            if eye.is_scanned(shadow, lens.since) {
                // One pass finds the changes and groups them.
                let count = eye.seen.index.len();
                let groups = Groups::<V>::of_changes(count, eye.changes(shadow, lens));
                flags |= write_grouped(&groups.rest, Some(&groups), lens, at, out);
            } else {
                flags |= write_changes::<V>(&eye.changed(shadow, lens.since), lens, at, out);
            }
        } else {
            flags |=
                section(&eye.changed(shadow, lens.since), REPLACED, out, |slot, slots, out| {
                    if let Some((_, _, value, lens)) = eye.changed_entry(shadow, slot, lens)
                        && differs::<V>(value, lens)
                    {
                        slots.put(slot, out);
                        V::write_full(value, lens.each(), out);
                        lens.here();
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
        value.read_changes(reader, Part::All, &mut Watch::idle())
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
}

impl<K: Key, S, H: How> ViewedShadow<K, S, H> {
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
            V::write_full(value, lens.under(key.player()).each(), out);
            lens.here();
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
}
