//! Messages on their way into an outbox: each is written where it is sent from.

use std::collections::VecDeque;

use crate::shard::connection::buffers::Buffers;
use crate::shard::connection::transport::Dialect;
use crate::shard::connection::{Connection, Links};
use crate::shard::keys::ConnectionKey;

impl Links {
    /// The outbox of a connection, to append to.
    #[inline]
    pub(crate) fn outbox(&mut self, key: ConnectionKey) -> Option<OpenOutbox<'_>> {
        let Self { slab, buffers, dirty, messages_out, .. } = self;
        Some(OpenOutbox { connection: slab.get_mut(key)?, key, buffers, dirty, messages_out })
    }
}

/// A connection that something is appended to.
pub(crate) struct OpenOutbox<'a> {
    pub(crate) connection: &'a mut Connection,
    key: ConnectionKey,
    buffers: &'a mut Buffers,
    dirty: &'a mut VecDeque<ConnectionKey>,
    messages_out: &'a mut u64,
}

impl OpenOutbox<'_> {
    /// The key of the connection.
    #[inline]
    pub(crate) fn key(&self) -> ConnectionKey {
        self.key
    }

    /// Begins a message.
    #[inline(always)]
    pub(crate) fn begin(&mut self) -> OpenMessage<'_> {
        self.mark_dirty();
        let Self { connection, buffers, messages_out, .. } = self;
        let dialect = connection.dialect;
        let out = &mut connection.outbox.get_or_insert_with(|| buffers.outbox()).bytes;
        let start = dialect.begin(out);
        let body = out.len();
        OpenMessage { out, dialect, start, body, messages_out }
    }

    /// Gives back the buffer if nothing is in it.
    #[inline(always)]
    pub(crate) fn release_if_empty(&mut self) {
        if self.connection.outbox.as_deref().is_some_and(|outbox| outbox.bytes.is_empty()) {
            self.buffers.give_outbox(self.connection.outbox.take());
        }
    }

    /// Has the connection come up as one to be written to, so that what it holds is counted.
    #[inline(always)]
    fn mark_dirty(&mut self) {
        if !std::mem::replace(&mut self.connection.dirty, true) {
            self.dirty.push_back(self.key);
        }
    }
}

/// A message that is appended to an outbox: it is [ended](Self::end), or [taken
/// back](Self::take_back).
#[must_use]
pub(crate) struct OpenMessage<'a> {
    out: &'a mut Vec<u8>,
    dialect: Dialect,
    /// The start of its frame.
    start: usize,
    /// The start of its bytes.
    body: usize,
    messages_out: &'a mut u64,
}

impl OpenMessage<'_> {
    /// The buffer to which the bytes of the message are appended.
    #[inline]
    pub(crate) fn body(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// The bytes of the message so far.
    #[inline(always)]
    pub(crate) fn written(&self) -> &[u8] {
        &self.out[self.body..]
    }

    /// Takes the message back.
    #[inline(always)]
    pub(crate) fn take_back(self) {
        self.out.truncate(self.start);
    }

    /// Ends the message.
    #[inline(always)]
    pub(crate) fn end(self) {
        let OpenMessage { out, dialect, start, messages_out, .. } = self;
        dialect.end(out, start);
        *messages_out += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::addresses::Addresses;
    use crate::config::Config;
    use crate::shard::connection::transport::Input;
    use crate::shard::connection::{Connection, Links};

    #[test]
    fn a_message_is_ended_or_taken_back() {
        let addresses = Addresses::new(&Config::default());
        let tally = addresses.admit([10, 0, 0, 1].into(), Duration::ZERO).unwrap();
        let mut links = Links::new(&Config::default(), Duration::from_secs(1));
        let key = links.insert(Connection::new(Duration::ZERO, Input::Native, tally));
        let mut append = |body: &[u8], is_ended: bool| {
            let mut outbox = links.outbox(key).unwrap();
            let mut message = outbox.begin();
            message.body().extend_from_slice(body);
            assert_eq!(message.written(), body);
            if is_ended {
                message.end();
            } else {
                message.take_back();
                outbox.release_if_empty();
            }
            let holds = links.get(key).unwrap().outbox.is_some();
            (links.unsent(key).to_vec(), links.messages_out, holds)
        };
        assert_eq!(append(b"not this", false), (Vec::new(), 0, false));
        assert_eq!(append(b"ab", true), (b"\x02\0\0\0ab".to_vec(), 1, true));
        assert_eq!(append(b"nor this", false), (b"\x02\0\0\0ab".to_vec(), 1, true));
    }
}
