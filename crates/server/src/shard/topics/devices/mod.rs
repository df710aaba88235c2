//! Devices of a shard's connections.
//!
//! The registry is the node's. What a shard adds is what belongs to a connection: whether it is
//! silent, and the commands that it has not answered. Nothing is scanned: silence is noticed by the
//! deadlines of connections, and commands are given up in the order of theirs.

mod commands;
mod registration;
mod silence;
mod withdrawal;

use crate::shard::mail::device::DeviceMail;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::device::{Device, Registration};

use self::withdrawal::Unanswered;
use crate::shard::beside::Beside;
use crate::shard::keys::ConnectionKey;
use crate::shard::keys::OfConnection;

/// The devices of a shard.
#[derive(Default)]
pub(crate) struct ShardDevices {
    /// By the connection of each.
    own: Beside<OfConnection, Box<OwnDevice>>,
    /// Requests that devices have not answered, by deadline and number.
    deadlines: BTreeMap<(Duration, u64), ConnectionKey>,
    /// To be done here or on other shards, once the call that wants it is over.
    pub(crate) posts: VecDeque<(u16, DeviceMail)>,
    /// The number of devices here.
    pub(crate) count: u64,
    /// The number of silent devices.
    pub(crate) silent: u64,
    /// The number of devices that have lost their ids to others.
    pub(crate) taken_over: u64,
}

impl ShardDevices {
    /// The device behind a connection.
    pub(crate) fn get(&self, key: ConnectionKey) -> Option<&OwnDevice> {
        self.own.get(key).map(|own| &**own)
    }

    fn get_mut(&mut self, key: ConnectionKey) -> Option<&mut OwnDevice> {
        self.own.get_mut(key).map(|own| &mut **own)
    }
}

/// The device behind a connection.
pub(crate) struct OwnDevice {
    pub(crate) device: Arc<Device>,
    is_silent: bool,
    /// The requests that it has not answered.
    unanswered: Vec<Unanswered>,
    /// The counted messages that are requests whose time is over, and that it may not have received.
    expired: Vec<u64>,
}

impl OwnDevice {
    pub(crate) fn device(&self) -> Arc<Device> {
        Arc::clone(&self.device)
    }

    /// The registration of a device that owes no answers, by which it goes on in another process.
    pub(in crate::shard) fn registration(&self) -> Option<Registration> {
        let Self { device, unanswered, expired, .. } = self;
        (unanswered.is_empty() && expired.is_empty()).then(|| Registration {
            id: device.id().to_owned(),
            user: device.user().map(str::to_owned),
            metadata: device.metadata(),
            tags: device.tags(),
        })
    }
}

/// The connection of a device, and the number of its registration.
pub(crate) fn target(device: &Device) -> (ConnectionKey, u64) {
    (ConnectionKey::from_bits(device.place().connection), device.number())
}
