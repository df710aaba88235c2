//! The load generator: many clients of one node, on one thread, with one event loop.
//!
//! ```text
//!  script or rate ──▶ program ──▶ actor ──▶ client core ──▶ socket
//!                                   │           │
//!                     due times ◀───┘           └──▶ counts, timings ──▶ report
//! ```
//!
//! Each connection has an *actor*, which runs a program of steps: join, wait, request, leave. A
//! step has a time at which it is due, and what is measured counts from then. A server that answers
//! late therefore can't hide behind the messages that were not sent meanwhile (coordinated
//! omission).
//!
//! An idle connection owns no buffer and no timer of its own: all share one buffer and one heap of
//! due times.

mod actor;
mod alarm;
mod bot;
mod connection;
mod copies;
mod counts;
mod deliveries;
mod descriptors;
mod dial;
mod engine;
mod name;
mod payload;
mod probe;
mod processes;
mod profiler;
mod program;
mod progress;
mod random;
mod report;
pub mod script;
mod settings;
mod stamp;
mod timers;
mod timings;

pub use bot::{Bot, MakeBot, Turn};
pub use counts::Counts;
pub use name::Name;
pub use processes::{PROCESSES_MAX, run};
pub use profiler::{Block, Profiled, Profiler};
pub use progress::Progress;
pub use report::Report;
pub use settings::{
    Action, Answer, CONNECTIONS_MAX, Content, Enter, LoadError, MessageKind, Script, Settings,
    Step, Worker,
};
pub use timings::Timings;
