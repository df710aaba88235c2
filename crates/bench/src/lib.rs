//! Benchmarks of Playfield, with verified results.
//!
//! `harness` is what all benchmarks are made of, `suites` has a file or a folder for each, and
//! [`workloads`] are the states that they sync.
//!
//! The command executes itself for each server, and for each case whose memory must not be
//! inherited by another. Every figure is checked: what is counted is decoded as a client would, and
//! compared with a model that goes through the same steps without the engine. `verified` says that
//! everything counted was also compared. To test the check itself, a hidden flag corrupts one
//! message.

mod capacity;
mod harness;
pub mod results;
mod suites;
pub mod workloads;

pub use capacity::measured;
pub use harness::allocations::{Allocations, count_allocations_by};
pub use harness::options::Command;
pub use harness::process::Role;
pub use harness::reports::Reports;
pub use suites::{ROLES, SUITES};
