//! The simulated store of saves, which hands out fences as the trait `Store` of rooms says.

use crate::sim::laws::State;

/// A request to the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum SaveRequest {
    Open { key: u8, attempt: u64 },
    Save { key: u8, fence: u64, state: State },
}

/// An answer of the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum SaveAnswer {
    Opened { key: u8, attempt: u64, save: Option<Opened> },
    Saved { key: u8, fence: u64, state: State, outcome: SaveOutcome },
}

/// A save that was opened, for the owner with this fence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opened {
    pub(super) fence: u64,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveOutcome {
    Saved,
    Fenced,
    /// Not known.
    Failed,
}

impl SaveRequest {
    /// The answer if none came in time.
    pub(super) fn failed(self) -> SaveAnswer {
        match self {
            Self::Open { key, attempt } => SaveAnswer::Opened { key, attempt, save: None },
            Self::Save { key, fence, state } => {
                SaveAnswer::Saved { key, fence, state, outcome: SaveOutcome::Failed }
            }
        }
    }
}

/// The newest save of each key, and its newest fence.
#[derive(Debug)]
pub(super) struct Saves {
    saves: Vec<Opened>,
    pub(super) away_until: u64,
    /// Fences are not compared: a mutation.
    pub(super) is_unfenced: bool,
}

impl Saves {
    pub(super) fn new(keys: usize) -> Self {
        Self { saves: vec![Opened::default(); keys], away_until: 0, is_unfenced: false }
    }

    pub(super) fn open(&mut self, key: u8) -> Opened {
        let save = &mut self.saves[usize::from(key)];
        save.fence += 1;
        *save
    }

    /// Writes a save, and returns the state before, unless it is refused.
    pub(super) fn save(&mut self, key: u8, fence: u64, state: State) -> Option<State> {
        let save = &mut self.saves[usize::from(key)];
        let is_owner = fence == save.fence || self.is_unfenced;
        is_owner.then(|| std::mem::replace(&mut save.state, state))
    }

    pub(super) fn state(&self, key: usize) -> State {
        self.saves[key].state
    }
}
