//! The workloads: states, and what each step does to them.
//!
//! Each workload exists twice: as a [`State`] that the engine syncs, and as a *model* of plain maps
//! and vectors that goes through the same steps. Received copies are compared with the model, so an
//! error in the engine's collections is detected just like a transmission error. The model also
//! shows the cost of the steps without an engine.

pub mod colyseus;
pub mod entities;
pub mod swift;

use std::collections::BTreeMap;

use playfield_state::{Map, PlayerId, State, TreeFormat};
use serde_json::Value;

/// A workload of a given size.
pub trait Workload {
    /// The state that the engine syncs.
    type State: State + Default;
    /// The same state in plain maps and vectors.
    type Model;

    /// Everyone in the room.
    fn players(&self) -> Vec<PlayerId>;

    /// The state before the first step.
    fn state(&self) -> Self::State;

    /// The model before the first step.
    fn model(&self) -> Self::Model;

    /// Applies one step to the state. `iteration` counts from 0.
    fn step(&self, state: &mut Self::State, iteration: u64);

    /// Applies one step to the model.
    fn step_model(&self, model: &mut Self::Model, iteration: u64);

    /// Returns whether a copy contains exactly what everyone sees of the model.
    fn matches_shared(&self, copy: &Self::State, model: &Self::Model) -> bool;

    /// Returns whether a copy contains what only the viewer sees of the model, and nothing that others own.
    fn matches_own(&self, copy: &Self::State, model: &Self::Model, viewer: PlayerId) -> bool;

    /// Returns what everyone sees of the model, as the members of a tree copy in this format.
    fn shared_tree(
        &self,
        model: &Self::Model,
        format: TreeFormat,
    ) -> serde_json::Map<String, Value>;

    /// Returns what only one player sees of the model: one more member, with its name.
    fn own_tree(&self, model: &Self::Model, viewer: PlayerId) -> (&'static str, Value);
}

/// Returns the number of hands that change per step: the fraction of the players, rounded down, but
/// at least one.
pub fn hands_changed(players: u64, fraction: f64) -> u64 {
    ((players as f64 * fraction) as u64).max(1)
}

/// Returns whether a map equals its model.
fn same_map<V, M>(
    map: &Map<PlayerId, V>,
    model: &BTreeMap<PlayerId, M>,
    same: impl Fn(&V, &M) -> bool,
) -> bool {
    map.len() == model.len()
        && map
            .iter()
            .zip(model)
            .all(|((key, value), (model_key, model))| key == model_key && same(value, model))
}

/// Returns whether a map contains the viewer's own entry of its model, and no other.
fn same_own<V, M>(
    map: &Map<PlayerId, V>,
    model: &BTreeMap<PlayerId, M>,
    viewer: PlayerId,
    same: impl Fn(&V, &M) -> bool,
) -> bool {
    map.len() == 1
        && map.get(&viewer).zip(model.get(&viewer)).is_some_and(|(value, model)| same(value, model))
}
