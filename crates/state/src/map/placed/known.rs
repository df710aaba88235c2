//! The data kept about a viewer of a view by place.

use super::rule::Spot;
use crate::map::viewed::Index;

/// The place of a viewer, and what the viewer sees. Its size depends on what is seen.
#[derive(Default)]
pub struct Known {
    /// The position, and the number of the group. `None`: nowhere.
    pub(super) stand: Option<(Spot, u32)>,
    /// The number of entries within reach: without a cap, all would be seen.
    pub(super) within_reach: usize,
    /// Slots of the map in rising order, each with the viewer's slot.
    pub(super) slots: Vec<(u32, u32)>,
}

impl Index for Known {
    fn slot(&self, at: u32) -> Option<u32> {
        let index = self.slots.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.slots[index].1)
    }

    fn remove(&mut self, left: &[u32]) {
        let mut left = left.iter().peekable();
        if left.peek().is_some() {
            self.slots.retain(|(at, _)| left.next_if(|gone| *gone == at).is_none());
        }
    }

    fn left_out(&self) -> usize {
        self.within_reach - self.slots.len()
    }

    fn recall(&mut self, seen: Vec<(u32, u32)>, left_out: usize) {
        self.within_reach = seen.len() + left_out;
        self.slots = seen;
    }

    fn insert(&mut self, entered: &[(u32, u32)]) {
        // Two rising runs are merged from their ends.
        let mut old = self.slots.len();
        let mut new = entered.len();
        self.slots.resize(old + new, (0, 0));
        while new > 0 {
            let takes_old = old > 0 && self.slots[old - 1].0 > entered[new - 1].0;
            let pair = if takes_old {
                old -= 1;
                self.slots[old]
            } else {
                new -= 1;
                entered[new]
            };
            let end = old + new;
            self.slots[end] = pair;
        }
    }
}
