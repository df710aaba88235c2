//! Services beside the rooms, as a shard keeps them.

mod calls;
mod websocket;

use std::time::Duration;

use crate::service::AnyService;

pub(crate) use websocket::Carrier;

/// A service on this shard.
pub(in crate::shard) struct HostedService {
    pub(super) service: Box<dyn AnyService>,
    /// When it has to be woken.
    pub(super) wake_at: Option<Duration>,
}
