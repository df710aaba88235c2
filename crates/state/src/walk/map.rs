//! Maps and sets.

use std::collections::BTreeMap;

use playfield_wire::DecodeError;
use serde_json::{Map, Value};

use super::node::{Entry, Made, MapNode, Node, Target};
use super::{Done, MapShape, ReadKey, Shape, Walk, refused};
use crate::change::PathStep;
use crate::map::TWO_SLOTS;
use crate::map::wire::{
    CHANGED, COLUMNS, DEFINED, OwnPatch, REMOVED, REPLACED, Slots, read_flags, read_group_count,
    read_slots,
};
use crate::profile::Step;
use crate::{Part, PlayerId};

/// The entries that a map's patch removed and added, for a listener.
#[derive(Default)]
struct News {
    gone: BTreeMap<String, Value>,
    came: Vec<String>,
}

impl Walk<'_> {
    pub(super) fn whole_map(&mut self, of: &MapShape, part: Part) -> Result<Made, DecodeError> {
        if !of.has_slots {
            return self.atomic_map(of);
        }
        let mut made = Made::empty_map();
        let (members, node) = made.target().map();
        let mut slots = Slots::default();
        while let Some(slot) = slots.next(&mut self.reader)? {
            let at = self.reader.offset();
            let (key, value) = self.entry(of, part)?;
            if put(members, node, slot.into(), key, value).is_some() {
                return refused(at, TWO_SLOTS);
            }
        }
        Ok(made)
    }

    fn atomic_map(&mut self, of: &MapShape) -> Result<Made, DecodeError> {
        let mut members = Map::new();
        for _ in 0..self.reader.count()? {
            let at = self.reader.offset();
            let (key, made) = self.entry(of, Part::Shared)?;
            if members.insert(key.name, made.value).is_some() {
                return refused(at, "a key occurs twice in one map");
            }
        }
        Ok(Made { value: Value::Object(members), node: Node::Atomic })
    }

    /// Reads a key and its whole value.
    fn entry(&mut self, of: &MapShape, part: Part) -> Result<(ReadKey, Made), DecodeError> {
        let key = of.key.read(&mut self.reader)?;
        let value = self.under(key.player, |walk| walk.whole(&of.value, part))?;
        Ok((key, value))
    }

    /// Reads something in an entry, whose owner is its key if that is a player.
    fn under<T>(
        &mut self,
        player: Option<PlayerId>,
        work: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let outer = self.owner;
        self.owner = player.or(outer);
        let done = self.inside_each(work);
        self.owner = outer;
        done
    }

    pub(super) fn patch_map(&mut self, of: &MapShape, target: Target<'_>, part: Part) -> Done {
        let (members, node) = target.map();
        let at = self.reader.offset();
        let flags = read_flags(&mut self.reader)?;
        if flags & (REMOVED | DEFINED) != 0 {
            self.came_and_went(of, flags, members, node, part)?;
        }
        if flags & CHANGED != 0 {
            self.each_entry(members, node, |walk, target| walk.patch(&of.value, target, part))?;
        }
        if flags & REPLACED != 0 {
            self.each_entry(members, node, |walk, target| {
                let made = walk.whole(&of.value, part)?;
                walk.replace(&of.value, target, made);
                Ok(())
            })?;
        }
        if flags & COLUMNS != 0 {
            if part == Part::Owned {
                return refused(at, "a field that only its owner sees was sent in columns");
            }
            self.groups(&of.value, members, node)?;
        }
        Ok(())
    }

    fn came_and_went(
        &mut self,
        of: &MapShape,
        flags: u8,
        members: &mut Map<String, Value>,
        node: &mut MapNode,
        part: Part,
    ) -> Done {
        let at = self.reader.offset().saturating_sub(1);
        let mut news = News::default();
        if flags & REMOVED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(&mut self.reader)? {
                // An older copy doesn't have an entry that was added and removed since.
                displace(members, node, slot.into(), &mut news);
            }
        }
        if flags & DEFINED != 0 {
            let mut slots = Slots::default();
            // A key that moved to a lower slot is still in the old one until that is replaced too.
            let mut left = Vec::new();
            while let Some(slot) = slots.next(&mut self.reader)? {
                let (key, made) = self.entry(of, part)?;
                displace(members, node, slot.into(), &mut news);
                if self.watch.listens() {
                    // If the key is still in another slot, its value is removed now.
                    if let Some(old) = members.remove(&key.name) {
                        news.gone.entry(key.name.clone()).or_insert(old);
                    }
                    news.came.push(key.name.clone());
                }
                left.extend(put(members, node, slot.into(), key, made));
            }
            if left.iter().any(|&slot| !node.is_consistent(slot)) {
                return refused(at, TWO_SLOTS);
            }
        }
        if self.watch.listens() {
            self.report_entries(of, members, news);
        }
        Ok(())
    }

    /// Reports what left, then what entered. An entry that left and came back changed.
    fn report_entries(&mut self, of: &MapShape, members: &Map<String, Value>, news: News) {
        let (back, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            news.gone.into_iter().partition(|(name, _)| members.contains_key(name));
        for (name, old) in gone {
            self.watch.enter(&name);
            self.watch.left(old);
            self.watch.leave();
        }
        for name in news.came {
            let Some(new) = members.get(&name) else { continue };
            self.watch.enter(&name);
            match back.get(&name) {
                Some(old) => self.watch.replaced(Some(&of.value), old, new),
                None => self.watch.entered(new),
            }
            self.watch.leave();
        }
    }

    /// Reads a section of entries that exist in this copy.
    fn each_entry(
        &mut self,
        members: &mut Map<String, Value>,
        node: &mut MapNode,
        mut read: impl FnMut(&mut Self, Target<'_>) -> Done,
    ) -> Done {
        let mut slots = Slots::default();
        while let Some(slot) = slots.next(&mut self.reader)? {
            let at = self.reader.offset();
            let entry = node.slots.get_mut(&slot.into()).ok_or_else(|| empty(at, slot))?;
            let value = members.get_mut(&entry.name).ok_or_else(|| empty(at, slot))?;
            self.watch.enter(&entry.name);
            let target = Target { value, node: &mut entry.node };
            self.under(entry.player, |walk| read(walk, target))?;
            self.watch.leave();
        }
        Ok(())
    }

    /// Reads groups of entries that changed in the same fields.
    fn groups(&mut self, of: &Shape, members: &mut Map<String, Value>, node: &mut MapNode) -> Done {
        (0..read_group_count(&mut self.reader)?).try_for_each(|_| {
            // What is in the entries is taken out of them while it is changed, so none can be named
            // twice.
            let mut taken = Vec::new();
            let read = self.group(of, members, node, &mut taken);
            for (slot, value, of_entry) in taken {
                let Some(entry) = node.slots.get_mut(&slot) else { continue };
                entry.node = of_entry;
                match members.get_mut(&entry.name) {
                    Some(place) => *place = value,
                    None => drop(members.insert(entry.name.clone(), value)),
                }
            }
            read
        })
    }

    fn group(
        &mut self,
        of: &Shape,
        members: &mut Map<String, Value>,
        node: &mut MapNode,
        taken: &mut Vec<(u64, Value, Node)>,
    ) -> Done {
        let at = self.reader.offset();
        let (listens, mut names) = (self.watch.listens(), Vec::new());
        let mut own = 0;
        read_slots(&mut self.reader, |slot| {
            let entry = node.slots.get_mut(&slot.into());
            let entry = entry.filter(|entry| !matches!(entry.node, Node::Missing));
            let entry = entry.ok_or_else(|| empty(at, slot))?;
            let value = members.get_mut(&entry.name).map(Value::take).unwrap_or_default();
            taken.push((slot.into(), value, std::mem::replace(&mut entry.node, Node::Missing)));
            own += usize::from(entry.player.or(self.owner) == Some(self.viewer));
            if listens {
                names.push(PathStep::Name(entry.name.as_str().into()));
            }
            Ok(())
        })?;
        let targets = taken.iter_mut().map(|(_, value, node)| Target { value, node });
        let targets: Vec<_> = targets.collect();
        let step = Step::Group { many: targets.len(), own };
        self.inside(step, |walk| walk.columns(of, targets, &names, &mut Vec::new()))
    }

    /// Reads a patch of the player's own entry, which names the key and not the slot.
    pub(super) fn patch_own(&mut self, of: &MapShape, target: Target<'_>) -> Done {
        let (members, node) = target.map();
        let at = self.reader.offset();
        let what = OwnPatch::read(&mut self.reader)?;
        let key = of.key.read(&mut self.reader)?;
        self.watch.enter(&key.name);
        let slot = node.index.get(&key.name).copied();
        match what {
            OwnPatch::Gone => {
                if let Some(slot) = slot {
                    node.displace(slot);
                    self.watch.left(members.remove(&key.name).unwrap_or_default());
                }
            }
            OwnPatch::Whole => {
                let made = self.under(key.player, |walk| walk.whole(&of.value, Part::All))?;
                match members.get(&key.name) {
                    Some(old) => self.watch.replaced(Some(&of.value), old, &made.value),
                    None => self.watch.entered(&made.value),
                }
                put(members, node, slot.unwrap_or_else(|| node.own_slot()), key, made);
            }
            OwnPatch::Patch => {
                let missing = || {
                    DecodeError::new(
                        at,
                        "the player's own entry was changed, but this copy has none",
                    )
                };
                let entry = slot.and_then(|slot| node.slots.get_mut(&slot)).ok_or_else(missing)?;
                let value = members.get_mut(&key.name).ok_or_else(missing)?;
                let target = Target { value, node: &mut entry.node };
                self.under(key.player, |walk| walk.patch(&of.value, target, Part::All))?;
            }
        }
        self.watch.leave();
        Ok(())
    }
}

/// Puts an entry into an empty slot. Returns the other slot that its key is in.
fn put(
    members: &mut Map<String, Value>,
    node: &mut MapNode,
    slot: u64,
    key: ReadKey,
    made: Made,
) -> Option<u64> {
    members.insert(key.name.clone(), made.value);
    let entry = Entry { name: key.name, key: key.digest, player: key.player, node: made.node };
    node.put(slot, entry).filter(|other| *other != slot)
}

fn displace(members: &mut Map<String, Value>, node: &mut MapNode, slot: u64, news: &mut News) {
    if let Some(name) = node.displace(slot) {
        let old = members.remove(&name).unwrap_or_default();
        news.gone.entry(name).or_insert(old);
    }
}

fn empty(at: usize, slot: u32) -> DecodeError {
    DecodeError::new(at, format!("slot {slot} was changed, but it is empty in this copy"))
}
