//! Parts of all suites: clients, bare servers, processes, rounds, options and reports.

pub(crate) mod allocations;
pub(crate) mod bare;
pub(crate) mod dialogue;
pub(crate) mod dice;
pub(crate) mod fleet;
pub(crate) mod options;
pub(crate) mod pace;
pub(crate) mod plots;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod reports;
pub(crate) mod rounds;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod tables;
pub(crate) mod ticks;
pub(crate) mod tls;
pub(crate) mod visits;
pub(crate) mod windows;

pub(crate) use playfield_measure::machine;

options::names! {
    /// One of the two servers that a suite compares.
    Side {
        /// The baseline.
        Bare = "bare",
        Node = "node",
    }
}
