//! When devices were heard.

use std::sync::Arc;

use crate::pulse::Called;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;
use crate::shard::topics::Topics;

impl Topics {
    /// Something was received from the connection of a device.
    pub(in crate::shard) fn device_heard(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let Some(own) = self.devices.get_mut(key) else { return };
        own.device.heard(out.env.now);
        if !std::mem::take(&mut own.is_silent) {
            return;
        }
        own.device.set_silent(false);
        let (node, device) = (Arc::clone(&out.env.node), Arc::clone(&own.device));
        self.devices.silent -= 1;
        out.env.watch.calls(Called::Fleet);
        if let Some(fleet) = &node.fleet {
            fleet.call(|fleet| fleet.back(&device));
        }
        self.note_silence(out, key);
    }

    /// Notices that a device is silent, or looks at its connection when it may be.
    pub(in crate::shard) fn note_silence(&mut self, out: &mut Outlet<'_>, key: ConnectionKey) {
        let node = Arc::clone(&out.env.node);
        let Some(fleet) = &node.fleet else { return };
        let Some(silent) = fleet.silent else { return };
        let Some(connection) = out.links.get(key) else { return };
        let Some(own) = self.devices.get_mut(key) else { return };
        if own.is_silent {
            return;
        }
        // A connection that only now became a device is given the whole time.
        let heard = connection.heard.time().max(own.device.registered_at());
        if out.env.now < heard + silent {
            let is_asked = connection.pinged || connection.is_away();
            let by = if is_asked { heard + silent } else { heard + silent / 2 };
            return out.links.look_by(key, by);
        }
        own.is_silent = true;
        own.device.set_silent(true);
        let device = Arc::clone(&own.device);
        self.devices.silent += 1;
        out.env.watch.calls(Called::Fleet);
        fleet.call(|fleet| fleet.silent(&device));
    }
}
