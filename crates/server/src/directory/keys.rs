//! The index of rooms by their keys.

use std::collections::HashMap;
use std::sync::Arc;

use crate::memory::shrink_map;
use crate::room_id::RoomId;

/// A room's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) text: Arc<str>,
    /// The node picked it. Clients may write it in any case.
    pub(crate) is_code: bool,
}

/// The rooms of one type that have a key.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<Arc<str>, (RoomId, bool)>);

impl Keys {
    /// The room that this text names: a code counts before a key that a user chose, lest one that
    /// looks like it catches those who were given the code.
    pub(super) fn find(&self, text: &str) -> Option<RoomId> {
        let code = code::normalized(text).and_then(|code| self.0.get(code.as_str()));
        let code = code.filter(|(_, is_code)| *is_code);
        code.or_else(|| self.0.get(text)).map(|(id, _)| *id)
    }

    pub(super) fn insert(&mut self, key: &Key, id: RoomId) {
        self.0.insert(Arc::clone(&key.text), (id, key.is_code));
    }

    pub(super) fn remove(&mut self, key: &Key) {
        self.0.remove(&*key.text);
        shrink_map(&mut self.0);
    }

    /// Returns whether the index is empty.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Codes: keys that people read aloud and type in.
pub(crate) mod code {
    use super::Key;

    /// Letters and digits without those that are taken for each other: `0` and `O`, `1`, `I` and
    /// `L`, `2` and `Z`, `5` and `S`, `8` and `B`, `U` and `V`.
    const ALPHABET: &[u8; 24] = b"ACDEFGHJKMNPQRTVWXY34679";

    /// The number of characters in a code. There are 24^6 codes, 191 million.
    const LENGTH: usize = 6;

    /// The code made of random bytes.
    pub(crate) fn from_random(random: [u8; 16]) -> Key {
        let mut rest = u128::from_le_bytes(random);
        let code: String = (0..LENGTH)
            .map(|_| {
                let place = rest % ALPHABET.len() as u128;
                rest /= ALPHABET.len() as u128;
                char::from(ALPHABET[place as usize])
            })
            .collect();
        Key { text: code.into(), is_code: true }
    }

    /// The code that someone meant: in upper case, without spaces and hyphens. `None` if it can't
    /// be one.
    pub(super) fn normalized(text: &str) -> Option<String> {
        let mut code = String::with_capacity(LENGTH);
        for byte in text.bytes().filter(|byte| !matches!(byte, b' ' | b'-')) {
            let byte = byte.to_ascii_uppercase();
            if code.len() == LENGTH || !ALPHABET.contains(&byte) {
                return None;
            }
            code.push(char::from(byte));
        }
        (code.len() == LENGTH).then_some(code)
    }

    /// The code that someone may have meant.
    pub(crate) fn spelled(text: &str) -> Option<Key> {
        let code = normalized(text)?;
        Some(Key { text: code.into(), is_code: true })
    }

    #[cfg(test)]
    mod tests {
        use super::{from_random, normalized};

        #[test]
        fn codes_are_read_as_people_write_them() {
            for random in 0..200 {
                let key = from_random([random; 16]);
                assert_eq!(normalized(&key.text).as_deref(), Some(&*key.text));
            }
            for text in ["K7WQ4C", "k7wq4c", " k7w-q4c ", "K7W Q4C"] {
                assert_eq!(normalized(text).as_deref(), Some("K7WQ4C"));
            }
            for text in ["", "K7WQ4", "K7WQ4CC", "K7WQ40", "K7WQ4\u{CA}", "K7W_Q4C"] {
                assert_eq!(normalized(text), None, "{text:?}");
            }
        }
    }
}
