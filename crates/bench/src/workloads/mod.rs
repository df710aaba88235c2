//! What is measured: states, and what a step does to them.
//!
//! Each workload is there twice: as a [`State`] that the engine keeps in step, and as a *model* of
//! plain maps and vectors that goes through the same steps on its own. Copies at the receiving end
//! are held to the model, so a fault of the engine's collections shows like a fault on the way. The
//! model also says what the steps cost without an engine.

pub mod colyseus;
pub mod entities;
pub mod swift;

use std::collections::BTreeMap;

use playfield_state::{Map, PlayerId, State, TreeFormat};
use serde_json::Value;

/// A workload of a given size.
pub trait Workload {
    /// What the engine keeps in step.
    type State: State + Default;
    /// The same in plain maps and vectors.
    type Model;

    /// Everyone in the room.
    fn players(&self) -> Vec<PlayerId>;

    /// The state before the first step.
    fn state(&self) -> Self::State;

    /// The model before the first step.
    fn model(&self) -> Self::Model;

    /// One step of the state. `iteration` counts from 0.
    fn step(&self, state: &mut Self::State, iteration: u64);

    /// One step of the model.
    fn step_model(&self, model: &mut Self::Model, iteration: u64);

    /// Whether a copy holds what everyone sees of the model.
    fn matches_shared(&self, copy: &Self::State, model: &Self::Model) -> bool;

    /// Whether a copy holds what the viewer alone sees of the model, and nothing of anyone else's.
    fn matches_own(&self, copy: &Self::State, model: &Self::Model, viewer: PlayerId) -> bool;

    /// What everyone sees of the model, as the members of a copy that is a tree, in this format.
    fn shared_tree(
        &self,
        model: &Self::Model,
        format: TreeFormat,
    ) -> serde_json::Map<String, Value>;

    /// What one player alone sees of the model: one more member, by its name.
    fn own_tree(&self, model: &Self::Model, viewer: PlayerId) -> (&'static str, Value);
}

/// How many hands change in a step: the fraction of the players, rounded down, but at least one.
pub fn hands_changed(players: u64, fraction: f64) -> u64 {
    ((players as f64 * fraction) as u64).max(1)
}

/// Whether a map holds what its model does.
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

/// Whether a map holds the viewer's own entry of its model, and no other.
fn same_own<V, M>(
    map: &Map<PlayerId, V>,
    model: &BTreeMap<PlayerId, M>,
    viewer: PlayerId,
    same: impl Fn(&V, &M) -> bool,
) -> bool {
    map.len() == 1
        && map.get(&viewer).zip(model.get(&viewer)).is_some_and(|(value, model)| same(value, model))
}
