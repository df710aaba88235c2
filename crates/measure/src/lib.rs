//! Measures what rooms cost on this machine, says how many of them a machine carries, and proves
//! it.
//!
//! ```text
//!  capacity ──▶ run ──▶ node (a process of its own, one shard) ◀── loopback ──▶ load (bots)
//!     │          └──▶ CPU time by part, bytes, memory
//!     ├──▶ fit: cost over players, rates and messages
//!     ├──▶ target: rooms by CPU, by bandwidth, by memory
//!     └──▶ prove: the maximum that was found against the one that was predicted
//! ```
//!
//! One room is measured at a time. The clock of its node runs several times as fast as time, and so
//! do its players, so that there is something to measure. Each turn of the node's shard begins with
//! reading other memory, so that caches are as cold as if other rooms had run. Players poll their
//! sockets without sleeping: a busy node seldom has to wake them. CPU time is the sum of the parts
//! that grow with rooms; what a turn costs by itself is shared by all that a busy shard does in it.

mod baseline;
mod calibration;
mod capacity;
mod change;
mod compare;
mod drive;
mod exchange;
mod field_time;
mod fit;
pub mod machine;
mod measurer;
pub mod node;
mod noise;
pub mod process;
mod profile;
mod profile_cost;
mod prove;
mod regression;
pub mod report;
mod run;
mod samples;
mod search;
mod target;

pub use calibration::{Calibration, Conditions, FIELDS as CALIBRATION_FIELDS, speed};
pub use capacity::{Capacity, Cell, Plan, measure};
pub use change::{BYTES_NOISE, Better, CPU_NOISE, Change, Finding, MEMORY_NOISE};
pub use compare::{CapacityBaseline, Comparison, compare};
pub use drive::Drive;
pub use exchange::{Exchange, Exchanged};
pub use field_time::{FieldCpu, FieldTime, SyncTime};
pub use fit::{Fit, Observation};
pub use profile::{BESIDE, RoomProfiled, profile};
pub use profile_cost::{ProfileCost, profile_cost};
pub use prove::{Proof, Tried, predicted, prove};
pub use regression::{FieldBytes, FieldChange, FieldChanges, ProfileBaseline};
pub use run::{Case, Certificate, Run, run};
pub use samples::Samples;
pub use search::{Search, Steps, Verdict};
pub use target::{Answer, Bound, Need, Target, TargetError};
