//! Services beside the rooms, as a shard keeps them.

mod calls;

use std::time::Duration;

use crate::handle::NodeHandle;
use crate::service::{AnyService, Leave};

/// The services of a shard.
#[derive(Default)]
pub(crate) struct Services {
    pub(super) hosted: Vec<HostedService>,
    /// By which services reach rooms; `None` in tests of the shard alone.
    pub(super) handle: Option<NodeHandle>,
    /// Connections that services have given up, and why.
    pub(super) leaving: Vec<Leave>,
}

/// A service on this shard.
pub(super) struct HostedService {
    pub(super) service: Box<dyn AnyService>,
    /// When it has to be woken.
    pub(super) wake_at: Option<Duration>,
}
