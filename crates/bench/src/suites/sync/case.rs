//! The cases of `bench sync`.

use playfield_state::{Format, Tracking};

use crate::harness::options::names;
use crate::harness::report::Record;

/// The maximum number of players.
pub(crate) const PLAYERS_MAX: u64 = 10_000;

/// The maximum number of cards in a hand.
pub(crate) const CARDS_MAX: u32 = 1_000;

/// The maximum number of entities.
pub(crate) const ENTITIES_MAX: u32 = 1_000_000;

/// A workload of a given size.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The workload.
    pub(crate) which: Which,
    /// The number of players, from 1 to [`PLAYERS_MAX`].
    pub(crate) players: u64,
    /// The number of cards per player, from 1 to [`CARDS_MAX`].
    pub(crate) cards: u32,
    /// Whether every player's public state changes.
    pub(crate) scenario: Scenario,
    /// The fraction of hands in which a card changes, from 0 to 1. At least one hand always
    /// changes.
    pub(crate) hands: f64,
    /// The number of entities, from 1 to [`ENTITIES_MAX`], in an entity workload.
    pub(crate) entities: u32,
    /// The number of them that move per step.
    pub(crate) changed: u32,
    /// Whether the entities that move in one step are scattered, or adjacent in key order.
    pub(crate) scattered: bool,
    /// The number of players that move per step, in an entity workload.
    pub(crate) moving: u64,
    /// The format of all messages.
    pub(crate) format: Format,
    /// Whether only modified values are compared.
    pub(crate) tracking: Tracking,
}

names! {
    /// The workload's origin.
    Which {
        /// [`Swift`](crate::workloads::swift::Swift).
        Swift = "swift",
        /// [`Colyseus`](crate::workloads::colyseus::Colyseus).
        Colyseus = "colyseus",
        /// [`Entities`](crate::workloads::entities::Entities) that everyone sees.
        Entities = "entities",
        /// [`Entities`](crate::workloads::entities::Entities), seen by players whose window contains
        /// them.
        Windows = "windows",
    }
}

names! {
    /// Changes per step.
    Scenario {
        /// The round and some hands.
        A = "A",
        /// Every player's public state too.
        B = "B",
    }
}

impl Default for Case {
    fn default() -> Self {
        Self {
            which: Which::Swift,
            players: 30,
            cards: 10,
            scenario: Scenario::B,
            hands: 0.2,
            entities: 10_000,
            changed: 100,
            scattered: false,
            moving: 1,
            format: Format::Packed,
            tracking: Tracking::On,
        }
    }
}

impl Case {
    /// The command line that runs this case in its own process.
    pub(super) fn arguments(&self) -> Vec<String> {
        ["bench", "sync", "--in-process"]
            .into_iter()
            .map(str::to_owned)
            .chain([
                format!("--workload={}", self.which.name()),
                format!("--players={}", self.players),
                format!("--cards={}", self.cards),
                format!("--scenario={}", self.scenario.name()),
                format!("--hands={}", self.hands),
                format!("--entities={}", self.entities),
                format!("--changed={}", self.changed),
                format!("--order={}", self.order()),
                format!("--moving={}", self.moving),
                format!("--format={}", self.format),
                format!("--tracking={}", tracking_name(self.tracking)),
            ])
            .collect()
    }

    /// Returns whether an option with this name affects the workload.
    pub(crate) fn heeds(&self, option: &str) -> bool {
        match self.which {
            Which::Swift | Which::Colyseus => {
                !matches!(option, "entities" | "changed" | "order" | "moving")
            }
            Which::Entities | Which::Windows => !matches!(option, "cards" | "scenario" | "hands"),
        }
    }

    fn order(&self) -> &'static str {
        if self.scattered { "scattered" } else { "neighbors" }
    }

    /// Starts the case's record.
    pub(super) fn record(&self) -> Record {
        let record =
            Record::of("sync").with("workload", self.which.name()).with("players", self.players);
        let record = match self.which {
            Which::Swift | Which::Colyseus => record
                .with("scenario", self.scenario.name())
                .with("cards", self.cards)
                .with("hands", self.hands),
            Which::Entities | Which::Windows => record
                .with("entities", self.entities)
                .with("changed", self.changed)
                .with("order", self.order())
                .with("moving", self.moving),
        };
        record.with("format", self.format.name()).with("tracking", tracking_name(self.tracking))
    }
}

/// The cases for which others have published figures, and variants that change one option each.
pub(super) fn standard(is_quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    if is_quick {
        let small = Case { players: 4, entities: 300, changed: 20, ..Case::default() };
        let of = |which| Case { which, ..small.clone() };
        return Which::NAMES.iter().map(|(_, which)| of(*which)).collect();
    }
    for (which, sizes) in [(Which::Swift, &[4, 10, 20, 30, 50][..]), (Which::Colyseus, &[30, 50])] {
        for scenario in [Scenario::A, Scenario::B] {
            for hands in [0.05, 0.2, 0.8] {
                for &players in sizes {
                    cases.push(Case { which, players, scenario, hands, ..Case::default() });
                }
            }
        }
    }
    for (which, entities, scattered, moving) in [
        (Which::Entities, 1_000, false, 1),
        (Which::Entities, 10_000, false, 1),
        (Which::Entities, 1_000, true, 1),
        (Which::Entities, 10_000, true, 1),
        (Which::Windows, 10_000, false, 1),
        (Which::Windows, 10_000, true, 1),
        (Which::Windows, 10_000, false, 100),
    ] {
        cases.push(Case { which, players: 100, entities, scattered, moving, ..Case::default() });
    }
    for scenario in [Scenario::A, Scenario::B] {
        cases.push(Case { scenario, tracking: Tracking::Off, ..Case::default() });
        cases.push(Case { scenario, format: Format::Json, ..Case::default() });
    }
    cases
}

impl Which {
    /// Returns the number of times that the sequence is restarted, if a small workload restarts it
    /// `sequences` times. Comparing thousands of entities in the copies of a hundred players takes
    /// long.
    pub(super) fn sequences(self, sequences: u32) -> u32 {
        match self {
            Self::Swift | Self::Colyseus => sequences,
            Self::Entities | Self::Windows => sequences.div_ceil(100),
        }
    }

    /// Returns the number of rooms synced in a row between two readings of the CPU clock: a reading
    /// takes longer than many a sync of a small workload.
    pub(super) fn rooms_a_reading(self) -> usize {
        match self {
            Self::Swift | Self::Colyseus => 8,
            Self::Entities | Self::Windows => 1,
        }
    }
}

fn tracking_name(tracking: Tracking) -> &'static str {
    match tracking {
        Tracking::On => "on",
        Tracking::Off => "off",
    }
}
