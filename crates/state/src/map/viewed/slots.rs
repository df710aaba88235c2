//! Viewers of a map with a view: the entries they see, and by which slots, as far as the state does
//! not say it: a viewer's slots depend on what was seen before, and so may what is seen.
//!
//! The number of viewers who see anything; for each the player, how many further entries a cap
//! leaves out, the number of entries, and for each, in the order of keys, the viewer's slot and
//! that of the map.

use std::collections::BTreeMap;

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::eye::{Eye, Index};
use super::{How, ViewedShadow};
use crate::lens::Stamps;
use crate::map::shadow::MapShadow;
use crate::slots::{Vacancies, check, read_one};
use crate::{Key, PlayerId};

pub(super) fn put_seen<K: Key, S, H: How>(shadow: &ViewedShadow<K, S, H>, out: &mut Vec<u8>) {
    let sees = |eye: &Eye<K, H>| !eye.seen.index.is_empty() || eye.index.left_out() > 0;
    let eyes = shadow.eyes.iter().filter(|(_, eye)| sees(eye));
    writer::put_varint(out, eyes.clone().count() as u64);
    for (player, eye) in eyes {
        writer::put_varint(out, player.0);
        writer::put_varint(out, eye.index.left_out() as u64);
        writer::put_varint(out, eye.seen.index.len() as u64);
        for slot in eye.seen.used_slots() {
            let at = eye.seen.slot(slot).entry.as_ref().map_or(0, |(_, at)| *at);
            writer::put_varint(out, slot.into());
            writer::put_varint(out, at.into());
        }
    }
}

/// The entries that one viewer sees.
#[derive(Default)]
struct Seen {
    left_out: usize,
    /// The slots of the map, each with the viewer's.
    slots: Vec<(u32, u32)>,
}

/// Reads what [`put_seen`] wrote. The shadow has had its first look.
pub(super) fn recall<K: Key, S, H: How>(
    shadow: &mut ViewedShadow<K, S, H>,
    now: u64,
    reader: &mut Reader<'_>,
    vacancies: &mut Vacancies,
) -> Result<(), DecodeError> {
    let at = reader.offset();
    let mut known = BTreeMap::new();
    for _ in 0..reader.count()? {
        let player = PlayerId(reader.varint()?);
        known.insert(player, Seen::read(&shadow.map, reader, vacancies)?);
    }
    for (player, eye) in &mut shadow.eyes {
        eye.recall(&shadow.map, known.remove(player).unwrap_or_default(), now);
    }
    match known.into_keys().next() {
        Some(player) => Err(DecodeError::new(at, format!("player {player} is not a viewer"))),
        None => Ok(()),
    }
}

impl Seen {
    fn read<K: Key, S>(
        map: &MapShadow<K, S>,
        reader: &mut Reader<'_>,
        vacancies: &mut Vacancies,
    ) -> Result<Self, DecodeError> {
        let start = reader.offset();
        let left_out = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        let left_out = left_out.min(map.index.len());
        let mut slots = Vec::new();
        for _ in 0..reader.count()? {
            let slot = read_one(reader)?;
            let at = reader.offset();
            let of_map = read_one(reader)?;
            if of_map >= map.slots_len() || map.slot(of_map).entry.is_none() {
                return Err(DecodeError::new(at, format!("no entry has the slot {of_map}")));
            }
            slots.push((of_map, slot));
        }
        slots.sort_unstable();
        if let Some(pair) = slots.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(DecodeError::new(start, format!("slot {} is seen twice", pair[0].0)));
        }
        let of_viewer: Vec<u32> = slots.iter().map(|(_, slot)| *slot).collect();
        check(&of_viewer, vacancies, start)?;
        Ok(Self { left_out, slots })
    }
}

impl<K: Key, H: How> Eye<K, H> {
    fn recall<S>(&mut self, map: &MapShadow<K, S>, seen: Seen, now: u64) {
        let Seen { left_out, slots } = seen;
        let of_viewer: Vec<u32> = slots.iter().map(|(_, slot)| *slot).collect();
        self.seen = MapShadow::new(0, Stamps::default());
        self.seen.lay_out(&of_viewer);
        for &(at, slot) in &slots {
            if let Some((key, _)) = &map.slot(at).entry {
                self.seen.define_in(slot, key.clone(), at, Stamps::default(), now);
            }
        }
        self.index.recall(slots, left_out);
    }
}
