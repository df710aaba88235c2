//! A node that sends each WebSocket message back, in place of opening sessions.

use playfield_wire::Format;

use crate::shard::keys::ConnectionKey;
use crate::shard::moment::Moment;
use crate::shard::session::outlet::Outlet;

impl Outlet<'_> {
    /// Sends a message back to its client.
    pub(super) fn echo(&mut self, key: ConnectionKey, body: &[u8], is_text: bool) {
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.unfinished_since = Moment::NEVER;
        // The format decides between text and binary frames.
        connection.dialect.format = if is_text { Format::Json } else { Format::Packed };
        self.links.write_again(key, body);
    }
}
