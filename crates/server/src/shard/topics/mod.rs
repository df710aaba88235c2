//! Channels and devices: what sessions take part in beside rooms.

pub(crate) mod channels;
pub(crate) mod devices;

use playfield_wire::ErrorCode;

use crate::shard::log_limit::LogLimit;
use crate::shard::topics::channels::ShardChannels;
use crate::shard::topics::devices::ShardDevices;

/// The channels and devices of a shard.
pub(in crate::shard) struct Topics {
    pub(in crate::shard) channels: ShardChannels,
    pub(in crate::shard) devices: ShardDevices,
    /// Why publications and pushes were refused.
    pub(in crate::shard) publications_logged: LogLimit<ErrorCode>,
    pub(in crate::shard) pushes_logged: LogLimit<ErrorCode>,
}

impl Topics {
    pub(in crate::shard) fn new(channels: ShardChannels) -> Self {
        Self {
            channels,
            devices: ShardDevices::default(),
            publications_logged: LogLimit::default(),
            pushes_logged: LogLimit::default(),
        }
    }
}
