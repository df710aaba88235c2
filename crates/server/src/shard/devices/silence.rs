//! When devices were heard.

use std::sync::Arc;

use crate::shard::Shard;
use crate::shard::keys::ConnectionKey;

impl Shard {
    /// Something was received from the connection of a device.
    pub(in crate::shard) fn heard_device(&mut self, key: ConnectionKey) {
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let Some(own) = connection.device.as_deref_mut() else { return };
        own.device.heard(self.now);
        if !std::mem::take(&mut own.is_silent) {
            return;
        }
        own.device.set_silent(false);
        self.delivery.devices.silent -= 1;
        let (node, device) = (Arc::clone(&self.delivery.node), Arc::clone(&own.device));
        self.watch.enters_fleet();
        if let Some(fleet) = &node.fleet {
            fleet.call(|fleet| fleet.back(&device));
        }
        self.note_silence(key);
    }

    /// Notices that a device is silent, or looks at its connection when it may be.
    pub(in crate::shard) fn note_silence(&mut self, key: ConnectionKey) {
        let node = Arc::clone(&self.delivery.node);
        let Some(fleet) = &node.fleet else { return };
        let Some(silent) = fleet.silent else { return };
        let Some(connection) = self.delivery.connections.get_mut(key) else { return };
        let Some(own) = connection.device.as_deref_mut() else { return };
        if own.is_silent {
            return;
        }
        // A connection that only now became a device is given the whole time.
        let heard = connection.heard.time().max(own.device.registered_at());
        if self.now < heard + silent {
            let is_asked = connection.pinged || connection.is_away();
            let by = if is_asked { heard + silent } else { heard + silent / 2 };
            return self.look_by(key, by);
        }
        own.is_silent = true;
        own.device.set_silent(true);
        self.delivery.devices.silent += 1;
        let device = Arc::clone(&own.device);
        self.watch.enters_fleet();
        fleet.call(|fleet| fleet.silent(&device));
    }
}
