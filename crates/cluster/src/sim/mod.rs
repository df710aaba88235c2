//! Simulation of whole clusters in one thread, with faults: for tests.
//!
//! A run has hosts with nodes, an engine, a store and clients, and follows from its seed alone. Its
//! rooms are lists of numbers. Clients join them by key, wherever they are, and append numbers; an
//! answer comes after the save. Hosts ask and tell each other over the links of their nodes, and place
//! rooms without a key at each other. [`Law`]s are checked after every step. Those of sessions,
//! channels and presence are not among them.
//!
//! ```
//! use playfield_cluster::sim::{Options, run};
//!
//! run(7, &Options { faults: 20, mutation: None }).unwrap();
//! ```

use std::fmt;
use std::ops::AddAssign;

mod asks;
mod client;
mod clock;
mod engine;
mod faults;
mod host;
mod laws;
mod network;
mod room;
mod saves;
mod transport;
mod world;

pub use faults::{Fault, FaultKind};
pub use laws::{Breach, Law};
pub use network::Way;

use world::World;

/// The lease of the nodes, in microseconds.
const LEASE: u64 = 20_000_000;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of faults.
    pub faults: usize,
    /// A mistake that the cluster makes, for tests of the laws.
    pub mutation: Option<Mutation>,
}

/// A mistake that breaks a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// The store writes saves of earlier owners, too.
    NoFence,
    /// A node freezes after the lease, not before its end.
    FreezeLate,
    /// A node writes claims for others, which do not know of it.
    ClaimForOthers,
    /// Writes to the engine have no condition.
    NoCondition,
    /// A save is opened before its key is claimed.
    OpenBeforeClaim,
    /// An observer counts time in which its own renewals were not answered.
    CountOutages,
    /// A host keeps rooms that another one has placed there when their link is reset.
    KeepPlaced,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::NoFence,
        Self::FreezeLate,
        Self::ClaimForOthers,
        Self::NoCondition,
        Self::OpenBeforeClaim,
        Self::CountOutages,
        Self::KeepPlaced,
    ];
}

/// The counts of a run without a breach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steps.
    pub events: u64,
    /// The time that was simulated, in microseconds.
    pub simulated: u64,
    /// Joins that succeeded.
    pub joined: u64,
    /// Numbers that were answered.
    pub appended: u64,
    /// Saves that were confirmed.
    pub saved: u64,
    /// Saves that were refused.
    pub fenced: u64,
    /// Rooms that went on after their keys were claimed again.
    pub thawed: u64,
    /// Rooms that ended since others had their keys.
    pub ended: u64,
    /// Notices of nodes.
    pub noted: u64,
    /// Requests between nodes that ended.
    pub asked: u64,
    /// Requests between nodes that ended with an answer.
    pub answered: u64,
    /// Messages between nodes.
    pub told: u64,
    /// Rooms that one host has placed at another, and a client has entered.
    pub entered: u64,
    /// Resets of ends of links.
    pub resets: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.simulated += other.simulated;
        self.joined += other.joined;
        self.appended += other.appended;
        self.saved += other.saved;
        self.fenced += other.fenced;
        self.thawed += other.thawed;
        self.ended += other.ended;
        self.noted += other.noted;
        self.asked += other.asked;
        self.answered += other.answered;
        self.told += other.told;
        self.entered += other.entered;
        self.resets += other.resets;
    }
}

/// A run that has broken a law.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The breach.
    pub breach: Breach,
    /// The faults that are enough for it.
    pub faults: Vec<Fault>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, breach, faults } = self;
        writeln!(f, "seed {seed}: {breach}, with {} faults:", faults.len())?;
        for Fault { at, span, host, kind } in faults {
            let (at, span) = (*at as f64 / 1e6, *span as f64 / 1e6);
            writeln!(f, "  {at:.3} s, for {span:.3} s, host {host}: {kind:?}")?;
        }
        Ok(())
    }
}

/// Runs a seed.
///
/// # Errors
/// If a law is broken.
pub fn run(seed: u64, options: &Options) -> Result<Counts, Breach> {
    let world = World::new(seed, options.faults, options.mutation);
    let faults = world.planned().to_vec();
    world.run(&faults)
}

/// Runs a seed, and if a law is broken, leaves out faults that are not needed for that.
///
/// # Errors
/// If a law is broken.
pub fn check(seed: u64, options: &Options) -> Result<Counts, Box<Failure>> {
    run(seed, options).map_err(|breach| Box::new(shrink(seed, options, breach)))
}

fn shrink(seed: u64, options: &Options, mut breach: Breach) -> Failure {
    let world = || World::new(seed, options.faults, options.mutation);
    let mut faults = world().planned().to_vec();
    faults.retain(|fault| fault.at <= breach.at);
    let mut size = faults.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        let before = faults.len();
        while at < faults.len() {
            let end = (at + size).min(faults.len());
            let fewer = [&faults[..at], &faults[end..]].concat();
            match world().run(&fewer) {
                Err(found) if found.law == breach.law => (faults, breach) = (fewer, found),
                _ => at = end,
            }
        }
        if size == 1 && faults.len() == before {
            return Failure { seed, breach, faults };
        }
        size = size.div_ceil(2);
    }
}
