//! A sparse grid of the entries of a map.

use std::collections::BTreeMap;

use super::groups::Groups;
use super::rule::Spot;

/// The places of the entries. Cells are as wide as viewers see, so what a viewer sees is in the
/// viewer's cell or next to it. There are only cells with entries. An entry that does not move
/// costs nothing.
pub(super) struct Grid {
    /// The width of a cell on each axis.
    widths: Spot,
    numbers: BTreeMap<Key, u32>,
    cells: Vec<Cell>,
    free: Vec<u32>,
    /// By the map's slots: where the entry is.
    places: Vec<Place>,
    pub(super) groups: Groups,
    /// Cells without entries. They are kept for one sync, so that viewers notice the change.
    empty: Vec<u32>,
    /// Whether there has been anything above or below the lowest layer of cells.
    deep: bool,
    /// The last sync at which an entry appeared, moved or vanished.
    changed: u64,
}

/// The group and the cell of each axis, so that a row along the second axis is one range.
type Key = u128;

/// The entries in one cell, in no order.
struct Cell {
    key: Key,
    entries: Vec<Entry>,
    /// The last sync at which an entry in it appeared, moved or vanished.
    changed: u64,
}

/// An entry of the map.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) spot: Spot,
    /// Its slot in the map.
    pub(super) slot: u32,
}

/// An entry's cell, and its index in there.
#[derive(Clone, Copy)]
struct Place {
    cell: u32,
    index: u32,
}

const NOWHERE: Place = Place { cell: u32::MAX, index: 0 };

/// Cells are wider than viewers see by this factor, because distances are rounded.
const SLACK: f64 = 1.0001;

/// The number of the last cell in either direction. Up to here, the slack is more than the error of
/// the division. Whatever is farther out is in the last cell.
const CELL_MAX: f64 = (1 << 30) as f64;

/// Makes a cell's number positive.
const CELL_ZERO: i64 = 1 << 31;

impl Grid {
    pub(super) fn new(extents: Spot) -> Self {
        Self {
            widths: extents.map(|extent| extent * SLACK),
            numbers: BTreeMap::new(),
            cells: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            groups: Groups::default(),
            empty: Vec::new(),
            deep: false,
            changed: 0,
        }
    }

    /// Returns whether any entry appeared, moved or vanished at this sync.
    pub(super) fn has_changed(&self, now: u64) -> bool {
        self.changed == now
    }

    /// The number of slots that may have an entry.
    pub(super) fn slots_len(&self) -> usize {
        self.places.len()
    }

    /// Puts the entry of a slot where it is now, in its group; `None`: nowhere.
    #[inline]
    pub(super) fn put(&mut self, slot: u32, spot: Option<Spot>, group: &[u8], now: u64) {
        let Some(spot) = spot else { return self.remove(slot, now) };
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NOWHERE);
        }
        let place = self.places[slot as usize];
        let Some(cell) = self.cells.get_mut(place.cell as usize) else {
            let group = self.groups.join(group);
            return self.add(slot, spot, group, now);
        };
        let mut number = group_of(cell.key);
        if self.groups.is(number, group) {
            let before = &mut cell.entries[place.index as usize].spot;
            if *before == spot {
                return;
            }
            if cell.key == key(number, cells_of(&spot, &self.widths)) {
                *before = spot;
                (cell.changed, self.changed) = (now, now);
                return;
            }
        } else {
            // Joined first, since a group without members is forgotten.
            let before = std::mem::replace(&mut number, self.groups.join(group));
            self.groups.leave(before);
        }
        self.take(slot, now);
        self.add(slot, spot, number, now);
    }

    /// Removes the entry of a slot, if there is one.
    pub(super) fn remove(&mut self, slot: u32, now: u64) {
        if let Some(group) = self.take(slot, now) {
            self.groups.leave(group);
        }
    }

    /// Takes the entry of a slot out of its cell, if there is one. Returns its group.
    fn take(&mut self, slot: u32, now: u64) -> Option<u32> {
        let place = self.places.get_mut(slot as usize)?;
        let Place { cell: number, index } = std::mem::replace(place, NOWHERE);
        let cell = self.cells.get_mut(number as usize)?;
        cell.entries.swap_remove(index as usize);
        if let Some(moved) = cell.entries.get(index as usize) {
            self.places[moved.slot as usize].index = index;
        }
        if cell.entries.is_empty() {
            self.empty.push(number);
        }
        (cell.changed, self.changed) = (now, now);
        Some(group_of(cell.key))
    }

    fn add(&mut self, slot: u32, spot: Spot, group: u32, now: u64) {
        let at = cells_of(&spot, &self.widths);
        self.deep |= at[2] != CELL_ZERO as u32;
        let key = key(group, at);
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let cell = Cell { key, entries: Vec::new(), changed: now };
            match self.free.pop() {
                Some(number) => {
                    self.cells[number as usize] = cell;
                    number
                }
                None => {
                    self.cells.push(cell);
                    (self.cells.len() - 1) as u32
                }
            }
        });
        let cell = &mut self.cells[number as usize];
        self.places[slot as usize] = Place { cell: number, index: cell.entries.len() as u32 };
        cell.entries.push(Entry { spot, slot });
        (cell.changed, self.changed) = (now, now);
    }

    /// Puts the numbers of the cells that a viewer may see anything in on a list. Returns whether
    /// any of them changed at this sync.
    pub(super) fn around(&self, spot: &Spot, group: u32, now: u64, near: &mut Vec<u32>) -> bool {
        near.clear();
        let [x, y, z] = cells_of(spot, &self.widths);
        let layers = if self.deep { z - 1..=z + 1 } else { CELL_ZERO as u32..=CELL_ZERO as u32 };
        let mut has_changed = false;
        for z in layers {
            for x in x - 1..=x + 1 {
                let row = key(group, [x, y - 1, z])..=key(group, [x, y + 1, z]);
                for (_, &number) in self.numbers.range(row) {
                    has_changed |= self.cells[number as usize].changed == now;
                    near.push(number);
                }
            }
        }
        has_changed
    }

    /// The entries in a cell.
    pub(super) fn entries(&self, cell: u32) -> &[Entry] {
        &self.cells[cell as usize].entries
    }

    /// Drops the cells that have no entries.
    pub(super) fn sweep(&mut self) {
        for number in self.empty.drain(..) {
            let cell = &mut self.cells[number as usize];
            // It may have got an entry again, or have been dropped already.
            if cell.entries.is_empty() && self.numbers.get(&cell.key) == Some(&number) {
                self.numbers.remove(&cell.key);
                cell.entries = Vec::new();
                self.free.push(number);
            }
        }
    }
}

/// The numbers of the cell on each axis.
#[inline]
fn cells_of(spot: &Spot, widths: &Spot) -> [u32; 3] {
    let cell = |axis: usize| {
        let number = (spot[axis] / widths[axis]).clamp(-CELL_MAX, CELL_MAX);
        // Rounded down by hand: `floor` is a call on processors without an instruction for it.
        let whole = number as i64;
        let whole = whole - i64::from(whole as f64 > number);
        (whole + CELL_ZERO) as u32
    };
    [cell(0), cell(1), cell(2)]
}

#[inline]
fn key(group: u32, [x, y, z]: [u32; 3]) -> Key {
    u128::from(group) << 96 | u128::from(z) << 64 | u128::from(x) << 32 | u128::from(y)
}

#[inline]
fn group_of(key: Key) -> u32 {
    (key >> 96) as u32
}
