//! The outboxes of connections: what is appended to them, and what was written of it.

use std::collections::VecDeque;

use crate::shard::connection::Connection;
use crate::shard::connection::buffers::Buffers;
use crate::shard::connection::links::Links;
use crate::shard::connection::transport::Dialect;
use crate::shard::keys::ConnectionKey;

/// Of the connections that something is written to, one in this many is the one that has waited
/// longest.
const OLDEST_EVERY: u32 = 4;

/// An outbox that is filled has at most this many times the capacity that it needs.
const GROWTH: usize = 2;

impl Links {
    /// Appends what `write` appends to the connection's outbox, and says whether anything was. What
    /// `write` answers `false` for is taken back.
    #[inline]
    pub(crate) fn append(
        &mut self,
        key: ConnectionKey,
        write: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> bool {
        let Some(connection) = self.slab.get_mut(key) else { return false };
        fill(connection, key, &mut self.buffers, &mut self.dirty, write)
    }

    /// An empty buffer, to be [put](Self::put) into an outbox or [recycled](Self::recycle).
    #[inline]
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.buffers.take()
    }

    /// Gives back a buffer.
    #[inline]
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.give(buffer);
    }

    /// Appends what is in a buffer to the connection's outbox: as a whole, if nothing waits there.
    #[inline]
    pub(crate) fn put(&mut self, key: ConnectionKey, buffer: Vec<u8>) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        if buffer.is_empty() {
            return self.buffers.give(buffer);
        }
        match &mut connection.outbox {
            None => connection.outbox = Some(self.buffers.outbox_of(buffer)),
            Some(outbox) => {
                outbox.bytes.extend_from_slice(&buffer);
                self.buffers.give(buffer);
            }
        }
        if !connection.dirty {
            connection.dirty = true;
            self.dirty.push_back(key);
        }
    }

    /// Appends what `write` appends in the connection's dialect, if it answers `true`. If earlier
    /// bytes are stuck, or there are many, nothing is appended without `force`, the connection is
    /// noted as lagging, and the answer is `None`.
    #[inline]
    pub(crate) fn append_unless_blocked(
        &mut self,
        key: ConnectionKey,
        force: bool,
        write: impl FnOnce(Dialect, &mut Vec<u8>) -> bool,
    ) -> Option<bool> {
        let connection = self.slab.get_mut(key)?;
        let is_behind = connection.blocked || connection.unsent() > self.high_bytes;
        if (is_behind && !force) || connection.held {
            connection.lagging = true;
            return None;
        }
        let dialect = connection.dialect;
        let write = |out: &mut Vec<u8>| write(dialect, out);
        Some(fill(connection, key, &mut self.buffers, &mut self.dirty, write))
    }

    /// Appends a ping of the transport, which is a WebSocket.
    pub(crate) fn ping_transport(&mut self, key: ConnectionKey, payload: &[u8]) {
        self.append(key, |out| {
            playfield_websocket::encode(out, playfield_websocket::Opcode::Ping, payload, None);
            true
        });
    }

    /// Returns whether earlier bytes are stuck. Then the connection is noted as lagging.
    pub(crate) fn lags(&mut self, key: ConnectionKey) -> bool {
        let Some(connection) = self.slab.get_mut(key) else { return false };
        let is_stuck = connection.blocked || connection.held;
        connection.lagging |= is_stuck;
        is_stuck
    }

    /// Returns whether too much is unsent for a snapshot to follow it. Then the connection is noted as
    /// lagging.
    pub(crate) fn is_loaded(&mut self, key: ConnectionKey) -> bool {
        let Some(connection) = self.slab.get_mut(key) else { return false };
        let is_loaded = connection.unsent() > self.high_bytes;
        connection.lagging |= is_loaded;
        is_loaded
    }

    /// Returns whether only the log of the connection's session takes output.
    pub(crate) fn is_held(&self, key: ConnectionKey) -> bool {
        self.get(key).is_some_and(|connection| connection.held)
    }

    /// Appends a message that is counted already, or fleeting, even if the connection is held.
    pub(crate) fn write_again(&mut self, key: ConnectionKey, body: &[u8]) {
        let Some(dialect) = self.get(key).map(|connection| connection.dialect) else { return };
        self.messages_out += 1;
        self.append(key, |out| {
            dialect.write_with(out, |out| out.extend_from_slice(body));
            true
        });
    }

    /// Returns whether the last write left bytes behind, so that another is of no use until the socket says
    /// so.
    pub(crate) fn is_blocked(&self, key: ConnectionKey) -> bool {
        self.get(key).is_some_and(|connection| connection.blocked)
    }

    /// Takes the next connection that has something to be written: the newest, and now and then the
    /// oldest, which would wait for ever otherwise if each turn adds more than it writes.
    pub(crate) fn next_dirty(&mut self) -> Option<ConnectionKey> {
        loop {
            self.written = self.written.wrapping_add(1);
            let is_oldest = self.written.is_multiple_of(OLDEST_EVERY);
            let key = if is_oldest { self.dirty.pop_front() } else { self.dirty.pop_back() }?;
            if let Some(connection) = self.slab.get_mut(key) {
                connection.dirty = false;
                return Some(key);
            }
        }
    }

    /// The bytes to write.
    pub(crate) fn unsent(&self, key: ConnectionKey) -> &[u8] {
        self.get(key).map_or(&[], Connection::unsent_bytes)
    }

    /// `bytes` bytes were written. Whether that was all.
    pub(crate) fn wrote(&mut self, key: ConnectionKey, bytes: usize) -> bool {
        let Some(connection) = self.slab.get_mut(key) else { return false };
        if let Some(outbox) = &mut connection.outbox {
            outbox.written = (outbox.written + bytes).min(outbox.bytes.len());
        }
        let Some(outbox) =
            connection.outbox.as_deref_mut().filter(|outbox| outbox.written < outbox.bytes.len())
        else {
            self.buffers.give_outbox(connection.outbox.take());
            connection.blocked = false;
            return true;
        };
        // Where a client reads slowly but steadily, what it has read must not pile up, nor keep a
        // buffer that was once filled for others.
        let is_half_read = outbox.written > outbox.bytes.len() / 2;
        let dropped = if is_half_read { outbox.written } else { 0 };
        if outbox.bytes.capacity() > GROWTH * (outbox.bytes.len() - dropped) {
            let left = outbox.bytes[outbox.written..].to_vec();
            self.buffers.give(std::mem::replace(&mut outbox.bytes, left));
            outbox.written = 0;
        } else if is_half_read {
            outbox.bytes.drain(..outbox.written);
            outbox.written = 0;
        }
        connection.blocked = true;
        false
    }
}

/// Appends what `write` appends, and puts the connection into the list of those that have something
/// to be written. What `write` answers `false` for is taken back.
#[inline]
pub(in crate::shard) fn fill(
    connection: &mut Connection,
    key: ConnectionKey,
    buffers: &mut Buffers,
    dirty: &mut VecDeque<ConnectionKey>,
    write: impl FnOnce(&mut Vec<u8>) -> bool,
) -> bool {
    let out = &mut connection.outbox.get_or_insert_with(|| buffers.outbox()).bytes;
    let start = out.len();
    let kept = write(out);
    if !kept {
        out.truncate(start);
    }
    if out.is_empty() {
        buffers.give_outbox(connection.outbox.take());
    } else if !connection.dirty {
        connection.dirty = true;
        dirty.push_back(key);
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::addresses::Addresses;
    use crate::config::Config;
    use crate::shard::connection::transport::Input;
    use crate::shard::connection::{Connection, Links};
    use crate::shard::keys::ConnectionKey;

    fn connection() -> Connection {
        let addresses = Addresses::new(&Config::default());
        let tally = addresses.admit([10, 0, 0, 1].into(), Duration::ZERO).unwrap();
        Connection::new(Duration::ZERO, Input::Native, tally)
    }

    fn links() -> Links {
        Links::new(&Config::default(), Duration::from_secs(1))
    }

    fn append(connections: &mut Links, key: ConnectionKey, bytes: &[u8], keep: bool) {
        connections.append(key, |out| {
            out.extend_from_slice(bytes);
            keep
        });
    }

    #[test]
    fn an_outbox_exists_only_while_there_is_something_in_it() {
        let mut connections = links();
        let key = connections.insert(connection());
        append(&mut connections, key, b"abcdef", true);
        append(&mut connections, key, b"not this", false);
        assert_eq!(connections.next_dirty(), Some(key));
        assert_eq!(connections.next_dirty(), None, "it is in the list once");
        assert!(!connections.wrote(key, 2));
        assert_eq!(connections.unsent(key), b"cdef");
        assert!(connections.get(key).unwrap().blocked);
        assert!(connections.wrote(key, 4));
        let connection = connections.get(key).unwrap();
        assert_eq!((connection.outbox_capacity(), connection.blocked), (0, false));
        assert!(connections.buffer().capacity() > 0, "its buffer waits for the next one");

        append(&mut connections, key, b"not this", false);
        assert_eq!(connections.get(key).unwrap().outbox_capacity(), 0);
        assert_eq!(connections.next_dirty(), None);
    }

    #[test]
    fn who_has_waited_longest_is_written_to_even_if_others_always_have_more() {
        let mut connections = links();
        let oldest = connections.insert(connection());
        let others: Vec<_> = (0..8).map(|_| connections.insert(connection())).collect();
        append(&mut connections, oldest, b"welcome", true);
        let mut newest = 0;
        for turn in 0.. {
            for key in &others {
                append(&mut connections, *key, b"patch", true);
            }
            // There is time for two of them.
            let written = [connections.next_dirty(), connections.next_dirty()];
            newest += usize::from(written.contains(&others.last().copied()));
            if written.contains(&Some(oldest)) {
                break;
            }
            assert!(turn < 2);
        }
        assert!(newest >= 1, "the output of this turn mostly comes first");
    }

    #[test]
    fn a_slow_client_does_not_keep_a_large_buffer() {
        let mut connections = links();
        let key = connections.insert(connection());
        let large = connections.insert(connection());
        append(&mut connections, large, &[1; 100_000], true);
        assert!(connections.wrote(large, 100_000));
        for written in [0, 900] {
            append(&mut connections, key, &[1; 1000], true);
            let connection = connections.get(key).unwrap();
            assert!(connection.outbox.as_ref().unwrap().bytes.capacity() >= 100_000);
            assert_eq!(connection.outbox_capacity(), 1000, "others have filled it");
            assert!(!connections.wrote(key, written));
            assert_eq!(connections.unsent(key), vec![1; 1000 - written]);
            let connection = connections.get(key).unwrap();
            assert!(connection.outbox.as_ref().unwrap().bytes.capacity() <= 1000);
            assert!(connections.wrote(key, 1000 - written));
            let (small, large) = (connections.buffer(), connections.buffer());
            assert!(large.capacity() >= 100_000, "it waits for the next one");
            connections.recycle(small);
            connections.recycle(large);
        }
    }

    #[test]
    fn what_was_read_does_not_pile_up() {
        let mut connections = links();
        let key = connections.insert(connection());
        for _ in 0..1000 {
            append(&mut connections, key, &[1; 1000], true);
            connections.wrote(key, 1000 - 1);
        }
        assert_eq!(connections.unsent(key).len(), 1000);
        assert!(connections.get(key).unwrap().outbox_capacity() < 8000);
    }
}
