//! Keys whose claims are held for joins that have not created their room yet.
//!
//! A claim is given up when no room has its key and no join is about to create one.

use std::collections::HashMap;

use super::KeyOf;

#[derive(Debug, Default)]
pub(super) struct Grants(HashMap<KeyOf, usize>);

impl Grants {
    /// A join may create the room of a key.
    pub(super) fn give(&mut self, key: KeyOf) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Such a join has created it, or has not.
    pub(super) fn take_back(&mut self, key: &KeyOf) {
        if let Some(count) = self.0.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(key);
            }
        }
    }

    /// Returns whether a join may still create the room of a key.
    pub(super) fn has(&self, key: &KeyOf) -> bool {
        self.0.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grants, KeyOf};

    #[test]
    fn a_key_is_granted_until_each_join_has_settled() {
        let key = KeyOf { room_type: 1, key: "a".into() };
        let other = KeyOf { room_type: 2, key: "a".into() };
        let mut grants = Grants::default();
        grants.take_back(&key);
        assert!(!grants.has(&key));
        grants.give(key.clone());
        grants.give(key.clone());
        assert!(grants.has(&key) && !grants.has(&other));
        grants.take_back(&key);
        assert!(grants.has(&key));
        grants.take_back(&key);
        assert!(!grants.has(&key));
    }
}
