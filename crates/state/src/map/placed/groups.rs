//! Numbers for groups.

use std::collections::BTreeMap;

/// Gives each group that is in use a number, which appears in no output.
#[derive(Default)]
pub(super) struct Groups {
    numbers: BTreeMap<Vec<u8>, u32>,
    /// By number: the group, and how many are in it.
    groups: Vec<(Vec<u8>, u32)>,
    free: Vec<u32>,
}

impl Groups {
    /// Counts one more in a group. Returns its number.
    pub(super) fn join(&mut self, group: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(group) {
            self.groups[number as usize].1 += 1;
            return number;
        }
        let entry = (group.to_vec(), 1);
        let number = match self.free.pop() {
            Some(number) => {
                self.groups[number as usize] = entry;
                number
            }
            None => {
                self.groups.push(entry);
                (self.groups.len() - 1) as u32
            }
        };
        self.numbers.insert(group.to_vec(), number);
        number
    }

    /// Counts one less in it.
    pub(super) fn leave(&mut self, number: u32) {
        let (group, count) = &mut self.groups[number as usize];
        *count -= 1;
        if *count == 0 {
            self.numbers.remove(&std::mem::take(group));
            self.free.push(number);
        }
    }

    /// Returns whether the number is of this group.
    #[inline]
    pub(super) fn is(&self, number: u32, group: &[u8]) -> bool {
        let of = &self.groups[number as usize].0;
        // Without `same`, all groups are empty.
        of.len() == group.len() && (group.is_empty() || of == group)
    }
}
