//! The C ABI of the Playfield client, described by `include/playfield.h`, which is made from this
//! crate. `docs/cpp.md` has the guide, for C++ and for C.
//!
//! ```text
//!  pf_room_request ──▶ State::ask ──▶ Session ──▶ socket
//!  pf_client_next  ◀── news ◀── State::take ◀── Session ◀── socket
//! ```
//!
//! Everything happens in the calls of the program, on its threads: nothing is reported, and no
//! state changes, but in `pf_client_next`. There are no callbacks, so none can come at a bad time
//! or on another thread. One thread of the library serves the connections of programs that do not
//! poll for a while.
//!
//! This crate may contain `unsafe` code: pointers come in and go out here. Handles are numbers that
//! are looked up in a table, and never pointers.

mod channel;
mod client;
mod commands;
mod device;
mod event;
mod events;
mod failure;
mod handle;
mod joins;
mod node;
mod room;
mod runtime;
mod settings;
mod state;
mod text;
mod value;

pub use channel::*;
pub use client::*;
pub use commands::*;
pub use device::*;
pub use event::{PfChangeKind, PfEvent, PfEventKind};
pub use failure::{PfCode, pf_error_message};
pub use handle::PF_HANDLES_MAX;
pub use room::*;
pub use settings::*;
pub use state::PF_WAITING_MAX;
pub use text::PfText;
pub use value::*;
