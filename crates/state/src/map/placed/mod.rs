//! A map with a view by place: each viewer sees what is near, or in the same group, or both.
//!
//! A grid finds who sees what. Only viewers who moved, or near whom something did, are looked at
//! again, and only at what is near them.

mod grid;
mod groups;
mod known;
mod rule;

use std::marker::PhantomData;

use serde_json::Value;

use self::grid::Grid;
use self::known::Known;
pub use self::rule::{NEAREST_DEFAULT, Placing, Reach, Spot};
use self::rule::{by_rank, rank};
pub use self::rule::{coordinate, same_axes, same_type, spot};
use super::shadow::MapShadow;
use super::state::member;
use super::viewed::{ByEntry, Eye, How, ViewedShadow};
use super::{Map, Touches};
use crate::lens::{Changed, Lens, Sight};
use crate::{Key, State};

/// A rule of place decides.
pub struct Near<R>(PhantomData<R>);

impl<R: Placing> How for Near<R> {
    type Index = Known;
    type Finder = Finder<R>;
}

/// The grid, and memory for looking.
pub struct Finder<R> {
    grid: Grid,
    /// Cells near a viewer.
    cells: Vec<u32>,
    /// The entries within a viewer's reach: the square of the distance, and the slot in the map.
    hits: Vec<(f64, u32)>,
    /// By slots of the map: [`turn`](Self::turn) if the viewer at hand saw it before, 1 more if the
    /// viewer still does.
    marks: Vec<u32>,
    turn: u32,
    left: Vec<u32>,
    entered: Vec<u32>,
    /// Whether a slot got another entry at this sync.
    has_renewed: bool,
    group: Vec<u8>,
    of: PhantomData<R>,
}

impl<R: Placing> Default for Finder<R> {
    fn default() -> Self {
        Self {
            grid: Grid::new(R::REACH.extents(R::HYSTERESIS)),
            cells: Vec::new(),
            hits: Vec::new(),
            marks: Vec::new(),
            turn: 0,
            left: Vec::new(),
            entered: Vec::new(),
            has_renewed: false,
            group: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<K: Key, V: State, R: Placing<Entry = V>> ByEntry<Map<K, V>, Near<R>> {
    /// Brings up to date who sees what, after `diff`. `touched` and `moved` say where to look: in
    /// the value, and among viewers.
    pub fn look<P: Key>(
        value: &Map<K, V>,
        shadow: &mut ViewedShadow<K, V::Shadow, Near<R>>,
        touched: &Touches,
        viewers: &Map<P, R::Viewer>,
        moved: &Touches,
        now: u64,
    ) -> Changed {
        let ViewedShadow { map, eyes, finder, recent, recent_at, .. } = shadow;
        let vacated = if *recent_at == now { &recent[..] } else { &[] };
        finder.place(map, value, touched, vacated, now);
        let has_changed = finder.grid.has_changed(now);
        if !has_changed && moved.is_empty() && eyes.len() == viewers.len() {
            return Changed::NO;
        }
        let mut turned = false;
        for (place, player, viewer) in viewers.placed() {
            let Some(player) = player.player() else { continue };
            let mut is_new = false;
            let eye = eyes.entry(player).or_insert_with(|| {
                is_new = true;
                Eye::new()
            });
            let mut looks = false;
            if is_new || moved.has(place) {
                looks = finder.stand::<V>(&mut eye.index, viewer);
            }
            if looks || has_changed {
                turned |= finder.look(map, eye, looks, now);
            }
        }
        if eyes.len() > viewers.len() {
            eyes.retain(|player, eye| {
                let is_there = P::of_player(*player).is_some_and(|key| viewers.contains_key(&key));
                if !is_there {
                    finder.leave(&mut eye.index);
                    turned |= eye.close(now);
                }
                is_there || !Lens::forgotten(eye.emptied, now)
            });
        }
        finder.grid.sweep();
        let changed = Changed { shared: false, owned: turned };
        shadow.stamps.note(changed, now);
        changed
    }

    /// Returns the same as [`Compare::owner_view`](crate::state::Compare::owner_view), for the
    /// viewer.
    pub fn view(value: &Map<K, V>, sight: Sight<'_>, viewer: Option<&R::Viewer>) -> Option<Value> {
        let at = viewer.and_then(R::viewer);
        let mut group = Vec::new();
        viewer.into_iter().for_each(|viewer| R::viewer_group(viewer, &mut group));
        let is_same = |entry: &V| {
            let mut other = Vec::new();
            R::entry_group(entry, &mut other);
            other == group
        };
        let seen = value.iter().filter_map(|(key, entry)| {
            let was_seen = R::HYSTERESIS > 0.0 && sight.saw(&key.name());
            let by = if was_seen { R::HYSTERESIS } else { 0.0 };
            let (is_near, square) = R::REACH.sees(&at?, &R::entry(entry)?, by);
            (is_near && is_same(entry)).then(|| (rank(square, was_seen, R::HYSTERESIS), key, entry))
        });
        let mut seen: Vec<(f64, &K, &V)> = seen.collect();
        seen.sort_by(|one, two| by_rank(one.0, two.0, || (one.1, two.1)));
        seen.truncate(R::NEAREST);
        let members = seen.into_iter().map(|(_, key, value)| member(key, value, sight));
        Some(Value::Object(members.collect()))
    }
}

impl<R: Placing> Finder<R> {
    /// Puts what was touched into the grid, and removes what was removed.
    fn place<K: Key, V, S>(
        &mut self,
        map: &MapShadow<K, S>,
        value: &Map<K, V>,
        touched: &Touches,
        vacated: &[u32],
        now: u64,
    ) where
        R: Placing<Entry = V>,
    {
        self.has_renewed = false;
        for &slot in vacated {
            // Its entry is gone, even if there is another one now.
            if map.slot(slot).defined() == now {
                self.grid.remove(slot, now);
                self.has_renewed = true;
            }
        }
        let Self { grid, group, .. } = self;
        let mut put = |slot: u32, entry: &V| {
            let spot = R::entry(entry);
            group.clear();
            R::entry_group(entry, group);
            grid.put(slot, spot, group, now);
        };
        match touched {
            Touches::All => value.slotted().for_each(|(slot, entry)| put(slot, entry)),
            Touches::Places(places) => {
                let entries = places.iter().filter_map(|place| value.slotted_at(*place));
                entries.for_each(|(slot, entry)| put(slot, entry));
            }
        }
    }

    /// Notes where a viewer stands. Returns whether that is somewhere else than before.
    fn stand<V>(&mut self, known: &mut Known, viewer: &R::Viewer) -> bool
    where
        R: Placing<Entry = V>,
    {
        let Some(spot) = R::viewer(viewer) else { return self.leave(known) };
        self.group.clear();
        R::viewer_group(viewer, &mut self.group);
        let groups = &mut self.grid.groups;
        if let Some((before, number)) = &mut known.stand
            && groups.is(*number, &self.group)
        {
            return std::mem::replace(before, spot) != spot;
        }
        let number = groups.join(&self.group);
        self.leave(known);
        known.stand = Some((spot, number));
        true
    }

    /// Notes that a viewer stands nowhere. Returns whether that is news.
    fn leave(&mut self, known: &mut Known) -> bool {
        let Some((_, group)) = known.stand.take() else { return false };
        self.grid.groups.leave(group);
        true
    }

    /// Looks for one viewer, who moved or near whom something may have. Returns whether anything
    /// entered or left the view.
    fn look<K: Key, S>(
        &mut self,
        map: &MapShadow<K, S>,
        eye: &mut Eye<K, Near<R>>,
        has_moved: bool,
        now: u64,
    ) -> bool {
        let Self { grid, cells, hits: found, marks, turn, left, entered, .. } = self;
        let has_renewed = self.has_renewed;
        let known = &mut eye.index;
        let near = |(spot, group): (Spot, u32)| {
            let is_near = grid.around(&spot, group, now, cells);
            (has_moved || is_near).then_some(spot)
        };
        let spot = match known.stand.map(near) {
            Some(None) => return false,
            Some(Some(spot)) => Some(spot),
            None => None,
        };
        marks.resize(grid.slots_len(), 0);
        if *turn > u32::MAX - 4 {
            marks.fill(0);
            *turn = 0;
        }
        *turn += 2;
        let (saw, sees) = (*turn, *turn + 1);
        for &(slot, _) in &known.slots {
            // What was defined at this sync is another entry than the one that was seen.
            if !has_renewed || map.slot(slot).defined() != now {
                marks[slot as usize] = saw;
            }
        }
        let mut count = 0;
        if let Some(spot) = &spot {
            let most = cells.iter().map(|cell| grid.entries(*cell).len()).sum();
            // It never shrinks, since it is overwritten.
            if found.len() < most {
                found.resize(most, (0.0, 0));
            }
            for cell in &*cells {
                for entry in grid.entries(*cell) {
                    let by = if R::HYSTERESIS > 0.0 && marks[entry.slot as usize] == saw {
                        R::HYSTERESIS
                    } else {
                        0.0
                    };
                    let (is_near, square) = R::REACH.sees(spot, &entry.spot, by);
                    // Kept or overwritten by the next one: a branch could not be predicted.
                    found[count] = (square, entry.slot);
                    count += usize::from(is_near);
                }
            }
        }
        let mut hits = &mut found[..count];
        known.within_reach = count;
        if hits.len() > R::NEAREST {
            for (distance, slot) in hits.iter_mut() {
                *distance = rank(*distance, marks[*slot as usize] == saw, R::HYSTERESIS);
            }
            let key = |slot: u32| map.slot(slot).entry.as_ref().map(|(key, _)| key);
            hits.select_nth_unstable_by(R::NEAREST, |one, two| {
                by_rank(one.0, two.0, || (key(one.1), key(two.1)))
            });
            hits = &mut hits[..R::NEAREST];
        }
        left.clear();
        entered.clear();
        for (_, slot) in &*hits {
            let mark = &mut marks[*slot as usize];
            if *mark != saw {
                entered.push(*slot);
            } else {
                *mark = sees;
            }
        }
        let gone = known.slots.iter().filter(|(slot, _)| marks[*slot as usize] != sees);
        left.extend(gone.map(|(slot, _)| *slot));
        eye.turn(map, left, entered, now)
    }
}
