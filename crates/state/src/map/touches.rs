//! The entries that were touched, for views, which need them after the comparison has reset them.

use std::collections::BTreeMap;

use super::{Entry, FRESH, Map, SCAN_SHARE, new_token};
use crate::lens::{Step, Tracking};
use crate::profile::Point;
use crate::{Key, PlayerId};

/// The places of a map's entries that were touched since the last sync.
pub enum Touches {
    /// All of them may have been touched.
    All,
    /// These, in order.
    Places(Vec<u32>),
}

impl Touches {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Places(places) if places.is_empty())
    }

    pub(super) fn has(&self, place: u32) -> bool {
        match self {
            Self::All => true,
            Self::Places(places) => places.binary_search(&place).is_ok(),
        }
    }
}

/// A map in which a view looks up each player's entry. For generated code.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a map of viewers",
    note = "`viewer` must name a Map keyed by PlayerId; the view function gets each viewer's entry in it"
)]
pub trait Viewers {
    /// Its keys are players.
    const ARE_PLAYERS: bool;
}

impl<K: Key, V> Viewers for Map<K, V> {
    const ARE_PLAYERS: bool = K::IS_PLAYER;
}

/// Watches the map of viewers of a view.
#[derive(Default)]
pub struct Watch {
    /// The token that the map had at the last [`note`](Self::note).
    token: u64,
}

impl Watch {
    /// Returns what was touched since [`note`](Self::note).
    pub fn touches<K: Key, V>(&self, map: &Map<K, V>, step: Step) -> Touches {
        map.touches(self.token, step)
    }

    /// Notes the map's token after its own comparison.
    pub fn note<K, V>(&mut self, map: &Map<K, V>) {
        self.token = map.track.token;
    }

    /// The same for a map without a comparison of its own.
    pub fn note_uncompared<K: Key, V>(&mut self, map: &mut Map<K, V>) {
        if self.token == 0 {
            self.token = new_token();
        }
        let step = Step::new(0, Tracking::On, Point::default());
        let touches = map.touches(self.token, step);
        if map.track.token != self.token {
            // The map was replaced. If the previous one comes back, it counts as another one too.
            self.token = new_token();
        }
        match touches {
            Touches::All => {
                map.entries.iter_mut().flatten().for_each(|entry| entry.touched = false);
            }
            Touches::Places(places) => {
                for place in places {
                    map.entries[place as usize].iter_mut().for_each(|entry| entry.touched = false);
                }
            }
        }
        map.in_sync(self.token);
    }
}

impl<K: Key, V> Map<K, V> {
    /// Returns what was touched since the map was synced with `token`.
    pub(super) fn touches(&self, token: u64, step: Step) -> Touches {
        if token == 0
            || self.track.token != token
            || self.track.all
            || step.tracking() == Tracking::Off
        {
            return Touches::All;
        }
        let touched = &self.track.touched;
        if touched.len() > self.entries.len() / SCAN_SHARE {
            let touched = |(entry, place): (&Option<Entry<K, V>>, u32)| {
                entry.as_ref().is_some_and(|entry| entry.touched).then_some(place)
            };
            return Touches::Places(self.entries.iter().zip(0..).filter_map(touched).collect());
        }
        let mut places = touched.clone();
        places.sort_unstable();
        places.dedup();
        Touches::Places(places)
    }

    /// From now on, touches count from the sync with `token`.
    pub(super) fn in_sync(&mut self, token: u64) {
        self.track.token = token;
        self.track.touched.clear();
        self.track.removed = BTreeMap::new();
        self.track.all = false;
    }

    /// All entries with their places, in the order of keys.
    pub(super) fn placed(&self) -> impl Iterator<Item = (u32, &K, &V)> {
        self.index.values().filter_map(|&place| {
            let entry = self.entries[place as usize].as_ref()?;
            Some((place, &entry.key, &entry.value))
        })
    }

    /// All entries by their slots in the shadow.
    pub(super) fn slotted(&self) -> impl Iterator<Item = (u32, &V)> {
        self.entries
            .iter()
            .flatten()
            .filter(|entry| entry.slot != FRESH)
            .map(|entry| (entry.slot, &entry.value))
    }

    /// The entry at a place, by its slot.
    pub(super) fn slotted_at(&self, place: u32) -> Option<(u32, &V)> {
        let entry = self.entries.get(place as usize)?.as_ref()?;
        (entry.slot != FRESH).then_some((entry.slot, &entry.value))
    }

    /// The viewer's entry. For generated code.
    #[doc(hidden)]
    pub fn of_viewer(&self, viewer: Option<PlayerId>) -> Option<&V> {
        self.get(&K::of_player(viewer?)?)
    }
}
