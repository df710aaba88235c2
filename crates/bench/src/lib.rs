//! What Playfield costs, and whether what came out of it was right.
//!
//! Each suite runs its cases in processes of their own: the command executes itself once more per
//! case, so that no case runs in the memory that another left. A case reports one [`Record`], on
//! one line of JSON or as a row of a table.
//!
//! A figure comes with its check. Everything that is counted is decoded by the client's means and
//! compared with a model that went through the same steps without the engine; `verified` says that
//! as much was compared as was counted. To prove the check, a hidden flag damages one message on
//! its way.

mod allocations;
mod child;
mod clock;
pub mod constructs;
mod limits;
mod machine;
pub mod packet;
mod record;
pub mod rooms;
pub mod rounds;
mod stats;
pub mod sync;
mod table;
pub mod websocket;
pub mod workloads;

pub use allocations::{Allocations, count_allocations_by};
pub use machine::Machine;
pub use record::Record;
