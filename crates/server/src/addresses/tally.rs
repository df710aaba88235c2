//! Counts of an address while something is held: connections, requests and bytes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Address;
use crate::counted::add_below;
use crate::shard::connection::narrowed;

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// `limits.connections.per_address` connections of the address are open.
    Connections,
    /// `limits.handshakes.per_address` connections of the address have not said hello.
    Handshakes,
    /// `limits.handshakes.total` connections of all addresses have not said hello.
    AllHandshakes,
}

impl Crowded {
    /// The setting that is reached.
    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Connections => "limits.connections.per_address",
            Self::Handshakes => "limits.handshakes.per_address",
            Self::AllHandshakes => "limits.handshakes.total",
        }
    }
}

/// A connection, counted where it comes from. It counts as in handshake until it is
/// [settled](Self::settle).
pub(crate) struct Tally {
    address: Arc<Address>,
    is_connected: bool,
    in_handshake: bool,
    /// The memory it holds, in bytes, as far as that is counted.
    bytes: u32,
}

/// An HTTP request under way.
pub(crate) struct RequestUnderWay(pub(super) Arc<Address>);

/// Bytes that an address makes the node hold.
pub(crate) struct BytesHeld {
    address: Arc<Address>,
    bytes: usize,
}

impl BytesHeld {
    /// None so far.
    pub(crate) fn new(address: Arc<Address>) -> Self {
        Self { address, bytes: 0 }
    }

    /// Counts more bytes. Returns whether there is space for them.
    pub(crate) fn adds(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.address.adds(bytes);
        !(self.address.is_over() || self.address.is_node_over())
    }
}

impl Drop for BytesHeld {
    fn drop(&mut self) {
        self.address.frees(self.bytes);
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tally {
    pub(super) fn new(address: Arc<Address>) -> Result<Self, Crowded> {
        if !add_below(&address.connections, address.limit(address.shared.connections_max)) {
            return Err(Crowded::Connections);
        }
        let mut tally = Self { address, is_connected: true, in_handshake: false, bytes: 0 };
        tally.begin_handshake()?;
        Ok(tally)
    }

    /// For a connection that came from another process, beyond any limit.
    pub(crate) fn of_open(address: &Arc<Address>) -> Self {
        address.connections.fetch_add(1, Ordering::Relaxed);
        let mut tally = Self::without_connection(address);
        tally.is_connected = true;
        tally
    }

    /// For what a client of this address holds of the node without a connection.
    pub(crate) fn without_connection(address: &Arc<Address>) -> Self {
        let address = Arc::clone(address);
        Self { address, is_connected: false, in_handshake: false, bytes: 0 }
    }

    /// For what its client holds of the node without a connection.
    pub(crate) fn of_nobody(&self) -> Self {
        Self::without_connection(&self.address)
    }

    /// The address that the connection comes from.
    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Counts the connection as one that has yet to say hello.
    pub(crate) fn begin_handshake(&mut self) -> Result<(), Crowded> {
        if self.in_handshake {
            return Ok(());
        }
        let Address { shared, handshakes, .. } = &*self.address;
        if !add_below(handshakes, self.address.limit(shared.handshakes_of_one_max)) {
            return Err(Crowded::Handshakes);
        }
        if !add_below(&shared.handshakes, shared.handshakes_max) {
            handshakes.fetch_sub(1, Ordering::Relaxed);
            return Err(Crowded::AllHandshakes);
        }
        self.in_handshake = true;
        Ok(())
    }

    /// Ends the handshake: the connection has a session, or was useful otherwise.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.in_handshake) {
            self.address.handshakes.fetch_sub(1, Ordering::Relaxed);
            self.address.shared.handshakes.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A proxy says that it comes from this address.
    pub(crate) fn come_from(&mut self, address: Arc<Address>) -> Result<(), Crowded> {
        let in_handshake = self.in_handshake;
        // First, so that it does not count as two of the node's.
        self.settle();
        let mut there = Self::new(address)?;
        if !in_handshake {
            there.settle();
        }
        there.holds(self.bytes());
        *self = there;
        Ok(())
    }

    /// Returns the memory it holds, in bytes, as far as that is counted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// Sets how many bytes it holds now. More than 4 GiB count as 4 GiB.
    #[inline]
    pub(crate) fn holds(&mut self, bytes: usize) {
        let (before, now) = (self.bytes, narrowed(bytes));
        if now > before {
            self.address.adds((now - before) as usize);
        } else if now < before {
            self.address.frees((before - now) as usize);
        }
        self.bytes = now;
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.holds(0);
        self.settle();
        if self.is_connected {
            self.address.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
