//! Benchmarks of Playfield, with verified results.
//!
//! Each suite runs its cases in separate processes: the command executes itself once per case, so
//! no case inherits the memory of another. A case reports one [`Record`], as one line of JSON or as
//! a row of a table.
//!
//! Every figure is checked. Everything that is counted is decoded as a client would, and compared
//! with a model that goes through the same steps without the engine. `verified` says that
//! everything counted was also compared. To test the check itself, a hidden flag corrupts one
//! message in transit.

mod allocations;
pub mod attacks;
pub mod channel;
mod child;
mod clock;
pub mod connections;
pub mod constructs;
mod crowd;
pub mod echo;
mod histogram;
pub mod http;
pub mod jwt;
mod limits;
mod machine;
pub mod messages;
mod native;
pub mod packet;
mod record;
pub mod registry;
pub mod results;
pub mod resume;
pub mod rooms;
pub mod rounds;
mod server_process;
pub mod side;
mod source;
mod stats;
pub mod store;
pub mod sync;
mod table;
mod ticks;
pub mod tls;
mod visits;
pub mod websocket;
pub mod workloads;
pub mod worlds;

pub use allocations::{Allocations, count_allocations_by};
pub use machine::Machine;
pub use record::Record;
