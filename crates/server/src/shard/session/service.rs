//! Connections of services by WebSocket, once their clients have sent their last frames.

use crate::service::Closed;
use crate::shard::connection::close_codes::NO_CLOSE_CODE;
use crate::shard::connection::transport::Input;
use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// Closes a connection whose client has sent its last frame, once the service was given all
    /// that came before.
    pub(in crate::shard) fn end_messages(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get(key) else { return };
        let Input::Service(_, Some(carrier)) = &connection.input else { return };
        if !connection.partial.is_empty() && !connection.takes_input() {
            return;
        }
        match carrier.end {
            None => {}
            Some(Ok(code)) => {
                self.leave_service(key, Closed::HungUp);
                self.close(key, Some((code.unwrap_or(NO_CLOSE_CODE), "")));
            }
            Some(Err(error)) => self.close_service(key, Closed::WebSocket(error)),
        }
    }
}
