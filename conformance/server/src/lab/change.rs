//! Changes of the state, as messages name them.

use playfield::prelude::*;

use super::{Lab, Point, Shape, Spot, Unit};

/// One change of the state.
#[derive(Data)]
pub(crate) enum Change {
    Flag(bool),
    Small(i8),
    Byte(u8),
    Int(i32),
    Wide(i64),
    Huge(u64),
    Single(f32),
    Double(f64),
    Coarse(f32),
    Text(String),
    Data(Bytes),
    Maybe(Option<u32>),
    Grid {
        at: u32,
        value: u8,
    },
    Point {
        x: i32,
        y: i32,
    },
    Shape(Shape),
    Push(i32),
    Insert {
        at: u32,
        value: i32,
    },
    Set {
        at: u32,
        value: i32,
    },
    Remove {
        at: u32,
    },
    Move {
        from: u32,
        to: u32,
    },
    Sort,
    Clear,
    /// The numbers below this one.
    Fill(u32),
    PushUnit(Unit),
    CountUnit {
        at: u32,
        count: u32,
    },
    RemoveUnit {
        at: u32,
    },
    Count {
        key: String,
        value: u32,
    },
    Uncount {
        key: String,
    },
    Item {
        id: u32,
        unit: Unit,
    },
    CountItem {
        id: u32,
        count: u32,
    },
    RemoveItem {
        id: u32,
    },
    Tag(String),
    Untag(String),
    Purse(u32),
    Hand(Vec<u8>),
    Draw(u8),
    Secret(u32),
    Masked(u32),
    Far {
        id: u32,
        at: u32,
    },
    Unfar {
        id: u32,
    },
    Sight(u32),
}

impl Lab {
    pub(crate) fn change(&mut self, change: Change, player: PlayerId) -> Result<()> {
        let at = |at: u32| at as usize;
        let seat = self.players.get_mut(&player).ok_or("you have no seat")?;
        match change {
            Change::Flag(value) => self.flag = value,
            Change::Small(value) => self.small = value,
            Change::Byte(value) => self.byte = value,
            Change::Int(value) => self.int = value,
            Change::Wide(value) => self.wide = value,
            Change::Huge(value) => self.huge = value,
            Change::Single(value) => self.single = value,
            Change::Double(value) => self.double = value,
            Change::Coarse(value) => self.coarse = value,
            Change::Text(value) => self.text = value,
            Change::Data(value) => self.data = value,
            Change::Maybe(value) => self.maybe = value,
            Change::Grid { at: place, value } => {
                *self.grid.get_mut(at(place)).ok_or("no such index")? = value;
            }
            Change::Point { x, y } => self.point = Point { x, y },
            Change::Shape(value) => self.shape = value,
            Change::Push(value) => self.list.push(value),
            Change::Insert { at: place, value } if at(place) <= self.list.len() => {
                self.list.insert(at(place), value);
            }
            Change::Insert { .. } => return Err("no such index".into()),
            Change::Set { at: place, value } => {
                *self.list.get_mut(at(place)).ok_or("no such index")? = value;
            }
            Change::Remove { at: place } => {
                self.list.remove(at(place)).ok_or("no such index")?;
            }
            Change::Move { from, to } => {
                let value = self.list.remove(at(from)).ok_or("no such index")?;
                self.list.insert(at(to).min(self.list.len()), value);
            }
            Change::Sort => self.list.sort_by(Ord::cmp),
            Change::Clear => self.list.clear(),
            Change::Fill(count) => self.list = (0..count.min(50_000) as i32).collect(),
            Change::PushUnit(unit) => self.units.push(unit),
            Change::CountUnit { at: place, count } => {
                self.units.get_mut(at(place)).ok_or("there is no such unit")?.count = count;
            }
            Change::RemoveUnit { at: place } => {
                self.units.remove(at(place)).ok_or("there is no such unit")?;
            }
            Change::Count { key, value } => drop(self.counts.insert(key, value)),
            Change::Uncount { key } => drop(self.counts.remove(&key)),
            Change::Item { id, unit } => drop(self.items.insert(id, unit)),
            Change::CountItem { id, count } => {
                self.items.get_mut(&id).ok_or("there is no such item")?.count = count;
            }
            Change::RemoveItem { id } => drop(self.items.remove(&id)),
            Change::Tag(tag) => drop(self.tags.insert(tag)),
            Change::Untag(tag) => drop(self.tags.remove(&tag)),
            Change::Purse(value) => seat.purse = value,
            Change::Hand(cards) => drop(self.hands.insert(player, cards.into_iter().collect())),
            Change::Draw(card) => self.hands.get_or_default(player).push(card),
            Change::Secret(value) => self.secret = value,
            Change::Masked(value) => self.masked = value,
            Change::Far { id, at } => drop(self.far.insert(id, Spot { at })),
            Change::Unfar { id } => drop(self.far.remove(&id)),
            Change::Sight(value) => seat.sight = value,
        }
        Ok(())
    }
}
