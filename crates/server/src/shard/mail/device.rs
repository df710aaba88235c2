//! Mail about devices.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::Payload;
use crate::shard::keys::ConnectionKey;

/// Messages to shards about devices.
pub(crate) enum DeviceMail {
    /// Commands for devices. `asks` is the request's number, and how long it waits.
    Command { to: Vec<(ConnectionKey, u64)>, payload: Arc<Payload>, asks: Option<(u64, Duration)> },
    /// Another has registered under the device's id.
    Replaced { connection: ConnectionKey, number: u64 },
    /// The program ends its connection.
    Disconnect { connection: ConnectionKey, number: u64, text: String },
    /// The device was heard by other means than its connection.
    Heard { connection: ConnectionKey },
    /// The device has just registered.
    Begun { connection: ConnectionKey },
}
