//! A view function, called for each pair of entry and viewer if either was touched.

use serde_json::Value;

use super::eye::{Dense, Eye};
use super::{ByEntry, How, ViewedShadow};
use crate::lens::{Changed, Lens, Sight};
use crate::map::shadow::MapShadow;
use crate::map::state::member;
use crate::map::{Map, Touches};
use crate::viewed::Decided;
use crate::{Key, State};

/// A function decides.
pub struct Asked;

impl How for Asked {
    type Index = Dense;
    type Finder = ();
}

impl<K: Key, V: State> Decided for ByEntry<Map<K, V>> {
    type Item = V;

    fn look<P: Key, A>(
        value: &Map<K, V>,
        shadow: &mut Self::Shadow,
        touched: &Touches,
        viewers: &Map<P, A>,
        moved: &Touches,
        sees: impl Fn(&V, &A) -> bool,
        now: u64,
    ) -> Changed {
        let touched = shadow.places(value, touched, now);
        let mut everything = None;
        let mut turned = false;
        for (place, player, viewer) in viewers.placed() {
            let Some(player) = player.player() else { continue };
            let is_new = !shadow.eyes.contains_key(&player);
            let eye = shadow.eyes.entry(player).or_insert_with(Eye::new);
            let places = if is_new || moved.has(place) {
                everything.get_or_insert_with(|| all_places(&shadow.map, value, now))
            } else {
                &touched
            };
            turned |= eye.look(&shadow.map, places, |value| sees(value, viewer), now);
        }
        if shadow.eyes.len() > viewers.len() {
            shadow.eyes.retain(|player, eye| {
                let is_there = P::of_player(*player).is_some_and(|key| viewers.contains_key(&key));
                if !is_there {
                    turned |= eye.close(now);
                }
                is_there || !Lens::forgotten(eye.emptied, now)
            });
        }
        let changed = Changed { shared: false, owned: turned };
        shadow.stamps.note(changed, now);
        changed
    }

    fn view(value: &Map<K, V>, sight: Sight<'_>, sees: impl Fn(&V) -> bool) -> Option<Value> {
        let seen = value.iter().filter(|(_, value)| sees(value));
        Some(Value::Object(seen.map(|(key, value)| member(key, value, sight)).collect()))
    }
}

/// A slot of the map, its present value, and whether that is a new entry.
struct Place<'a, V> {
    slot: u32,
    value: Option<&'a V>,
    is_new: bool,
}

/// Every slot of the map.
fn all_places<'a, K: Key, V, S>(
    shadow: &MapShadow<K, S>,
    map: &'a Map<K, V>,
    now: u64,
) -> Vec<Place<'a, V>> {
    let mut places: Vec<Place<'_, V>> = (0..shadow.slots_len())
        .map(|slot| Place { slot, value: None, is_new: shadow.slot(slot).defined() == now })
        .collect();
    for (slot, value) in map.slotted() {
        places[slot as usize].value = Some(value);
    }
    places
}

impl<K: Key, S> ViewedShadow<K, S, Asked> {
    /// The slots of entries that were touched, and those that were vacated.
    fn places<'a, V>(&self, map: &'a Map<K, V>, touched: &Touches, now: u64) -> Vec<Place<'a, V>> {
        let Touches::Places(touched) = touched else { return all_places(&self.map, map, now) };
        let mut places = Vec::with_capacity(touched.len());
        for &place in touched {
            // A slot is looked at once: a removed entry whose slot has a new entry is handled there.
            if let Some((slot, value)) = map.slotted_at(place) {
                places.push(Place {
                    slot,
                    value: Some(value),
                    is_new: self.map.slot(slot).defined() == now,
                });
            }
        }
        if self.recent_at == now {
            let vacated = self.recent.iter().filter(|slot| self.map.slot(**slot).entry.is_none());
            places.extend(vacated.map(|&slot| Place { slot, value: None, is_new: true }));
        }
        places
    }
}

impl<K: Key> Eye<K, Asked> {
    /// Looks at some places again. Returns whether anything entered or left the view.
    fn look<V, S>(
        &mut self,
        map: &MapShadow<K, S>,
        places: &[Place<'_, V>],
        sees: impl Fn(&V) -> bool,
        now: u64,
    ) -> bool {
        self.index.0.resize(map.slots_len() as usize, 0);
        let (mut left, mut entered) = (Vec::new(), Vec::new());
        for &Place { slot, value, is_new } in places {
            let seen = self.index.0[slot as usize] != 0;
            let sees = value.is_some_and(&sees);
            if seen && (is_new || !sees) {
                left.push(slot);
            }
            if sees && (is_new || !seen) {
                entered.push(slot);
            }
        }
        left.sort_unstable();
        self.turn(map, &left, &mut entered, now)
    }
}
