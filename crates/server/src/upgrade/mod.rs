//! A new process of the program takes over from this one, and the rooms and sessions go on in it.
//!
//! ```text
//!  old                                    new, started by the old with one end of a socket pair
//!                                  hello  which room types it has
//!  accept, or refuse               ─────▶ starts its threads, and opens what more than one can have
//!                                  ready
//!  shards stop at the gate, rooms and
//!  sessions become bytes
//!  parts, sockets                  ─────▶ opens the store, thaws
//!                           holds, refuse
//!  commit                          ─────▶ shards run
//!                                 serves
//!  over                            ─────▶ reads from and writes to the connections that were
//!  closes the others, ends                passed on; other clients come back with their tokens
//! ```
//!
//! Until `serves` the old process has all that it had, and goes on if anything else comes: a
//! refusal, the end of the new process, or nothing in time.
//!
//! A connection is passed on if it is plain, with all that is under way. Its client notices
//! nothing. All others end as lost connections do.

#[cfg(target_os = "linux")]
mod channel;
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing stops there"))]
pub(crate) mod gate;
mod inherited;
mod known;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod notify;
mod phases;
#[cfg(target_os = "linux")]
mod predecessor;
#[cfg(target_os = "linux")]
mod successor;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use inherited::{Accepted, Inherited, InheritedListener, PassedOn};
#[cfg(target_os = "linux")]
pub(crate) use notify::is_ready;
pub(crate) use phases::Phases;
#[cfg(target_os = "linux")]
pub(crate) use predecessor::upgrade;
#[cfg(target_os = "linux")]
pub(crate) use successor::{Successor, is_taking_over};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{Successor, is_ready, is_taking_over, upgrade};

/// The variable by which a process knows that it is to take over: the id of the process that
/// started it for that, which is at the other end of its standard input. It has not the prefix of
/// settings.
#[cfg(target_os = "linux")]
const VARIABLE: &str = "UPGRADES_PLAYFIELD_PID";

/// A wish to be replaced by a new process of the program: see
/// [`NodeHandle::upgrade`](crate::NodeHandle::upgrade).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// The program's file; `None` is that which this process was started from, as it is now.
    pub binary: Option<PathBuf>,
    /// The arguments; `None` are those of this process.
    pub arguments: Option<Vec<OsString>>,
}

/// A process has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// Its id.
    pub pid: u32,
    /// The number of rooms that go on in it.
    pub rooms: usize,
    /// The number of sessions that go on in it.
    pub sessions: usize,
    /// The time for which no room ran.
    pub pause: Duration,
}

/// The reason that no process took over. Everything goes on in this one.
#[derive(Debug)]
pub struct UpgradeError(String);

impl UpgradeError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UpgradeError {}
