//! Plain state, compared at sync.

mod player_id;

pub use player_id::PlayerId;
