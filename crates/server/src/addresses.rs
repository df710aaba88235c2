//! What each client address takes of the node: connections, handshakes, HTTP requests, bytes, and how
//! fast it opens sessions, joins and creates rooms. Shards ask when a connection comes or goes, and at
//! what costs the whole node something, but not for each message.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_room::Error;

use crate::config::{Config, Network, masked};
use crate::http::Full;
use crate::shard::session::allowance::{Allowance, Rate};

/// Rates by address are per minute, so an address that was away for so long has all of them again.
const MEMORY: Duration = Duration::from_secs(60);
/// Below so many addresses none is looked for that can be forgotten.
const SWEEP_MIN: usize = 1024;

/// The addresses that are connected, or were lately.
pub(crate) struct Addresses {
    shared: Arc<Shared>,
    ipv6_bits: u8,
    trusted: Vec<Network>,
    proxies: Vec<Network>,
    known: Mutex<Known>,
    addresses_max: usize,
}

#[derive(Default)]
struct Known {
    by_ip: HashMap<IpAddr, Arc<Address>>,
    /// With so many, it is time to look for those that can be forgotten.
    sweep_at: usize,
}

/// The limits, and the sums over all addresses.
struct Shared {
    connections_max: usize,
    handshakes_max: usize,
    handshakes_of_one_max: usize,
    requests_of_one_max: usize,
    bytes_max: usize,
    bytes_of_one_max: usize,
    rates: [Rate; 4],
    handshakes: AtomicUsize,
    bytes: AtomicUsize,
}

/// One address, as far as limits go: an IPv4 address, or an IPv6 network.
pub(crate) struct Address {
    shared: Arc<Shared>,
    /// Only the limits of the whole node hold for it.
    is_trusted: bool,
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    /// By [`Pace`].
    allowances: Mutex<[Allowance; 4]>,
    /// When an allowance was last drawn on, in milliseconds.
    drawn_at_ms: AtomicU64,
}

/// What an address may do so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Open a session.
    Session,
    /// Ask to join a room.
    Join,
    /// Create a room.
    Room,
    /// Ask for a key that no room has.
    MissedKey,
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowded {
    /// `connections_per_address_max` connections of the address are open.
    Connections,
    /// `handshakes_max` connections have not said hello, or `handshakes_per_address_max` of the
    /// address.
    Handshakes,
}

/// A connection, counted where it comes from. It counts as in handshake until it is
/// [settled](Self::settle).
pub(crate) struct Presence {
    address: Arc<Address>,
    in_handshake: bool,
    /// How much memory it holds, as far as that is counted.
    bytes: usize,
}

/// An HTTP request under way, and the bytes of its body.
pub(crate) struct RequestUnderWay {
    address: Arc<Address>,
    bytes: usize,
}

impl Addresses {
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let rate = |setting, count| Rate::per_minute(setting, count).of_address();
        let rates = [
            rate("sessions_per_address_per_minute_max", config.sessions_per_address_per_minute_max),
            rate("joins_per_address_per_minute_max", config.joins_per_address_per_minute_max),
            rate(
                "rooms_created_per_address_per_minute_max",
                config.rooms_created_per_address_per_minute_max,
            ),
            rate(
                "keys_missed_per_address_per_minute_max",
                config.keys_missed_per_address_per_minute_max,
            ),
        ];
        let shared = Shared {
            connections_max: config.connections_per_address_max,
            handshakes_max: config.handshakes_max,
            handshakes_of_one_max: config.handshakes_per_address_max,
            requests_of_one_max: config.http_requests_per_address_max,
            bytes_max: config.peer_bytes_max,
            bytes_of_one_max: config.peer_bytes_per_address_max,
            rates,
            handshakes: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        };
        Arc::new(Self {
            shared: Arc::new(shared),
            ipv6_bits: config.ipv6_prefix_bits as u8,
            trusted: config.trusted_addresses.clone(),
            proxies: config.trusted_proxies.clone(),
            known: Mutex::default(),
            addresses_max: config.addresses_max,
        })
    }

    /// What counts as one address.
    fn counted(&self, ip: IpAddr) -> IpAddr {
        match ip.to_canonical() {
            ip @ IpAddr::V6(_) => masked(ip, self.ipv6_bits),
            ip @ IpAddr::V4(_) => ip,
        }
    }

    /// Whether what this address says of its clients' addresses counts.
    pub(crate) fn is_proxy(&self, ip: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(ip))
    }

    /// What is known of an address.
    pub(crate) fn at(&self, ip: IpAddr, now: Duration) -> Arc<Address> {
        let counted = self.counted(ip);
        let mut known = self.lock();
        if let Some(address) = known.by_ip.get(&counted) {
            return Arc::clone(address);
        }
        if known.by_ip.len() >= known.sweep_at.max(SWEEP_MIN).min(self.addresses_max) {
            known.sweep(now, self.addresses_max);
        }
        let is_trusted =
            self.is_proxy(ip) || self.trusted.iter().any(|network| network.contains(ip));
        let address = Arc::new(Address::new(Arc::clone(&self.shared), is_trusted));
        known.by_ip.insert(counted, Arc::clone(&address));
        address
    }

    /// Counts a new connection.
    pub(crate) fn admit(&self, ip: IpAddr, now: Duration) -> Result<Presence, Crowded> {
        Presence::new(self.at(ip, now))
    }

    /// The address that holds the most bytes.
    pub(crate) fn dearest(&self) -> Option<Arc<Address>> {
        let known = self.lock();
        known.by_ip.values().max_by_key(|address| address.bytes()).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many addresses are known.
    #[cfg(test)]
    pub(crate) fn known(&self) -> usize {
        self.lock().by_ip.len()
    }
}

impl Known {
    /// Forgets addresses that have nothing and were quiet for long enough; if there are too many
    /// still, all that have nothing.
    fn sweep(&mut self, now: Duration, addresses_max: usize) {
        // No other can come by a clone while the table is locked.
        let is_used = |address: &Arc<Address>| Arc::strong_count(address) > 1;
        self.by_ip.retain(|_, address| is_used(address) || address.was_drawn_on(now));
        if self.by_ip.len() >= addresses_max {
            self.by_ip.retain(|_, address| is_used(address));
        }
        self.sweep_at = 2 * self.by_ip.len();
    }
}

impl Address {
    fn new(shared: Arc<Shared>, is_trusted: bool) -> Self {
        Self {
            shared,
            is_trusted,
            connections: AtomicUsize::new(0),
            handshakes: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            allowances: Mutex::default(),
            drawn_at_ms: AtomicU64::new(0),
        }
    }

    /// Whether it may do this now; the error says when.
    pub(crate) fn check(&self, pace: Pace, now: Duration) -> Result<(), Error> {
        if self.is_trusted {
            return Ok(());
        }
        self.lock()[pace as usize].check(now, self.shared.rates[pace as usize])
    }

    /// It does it.
    pub(crate) fn spend(&self, pace: Pace, now: Duration) {
        if self.is_trusted {
            return;
        }
        self.lock()[pace as usize].take(now, self.shared.rates[pace as usize]);
        self.drawn_at_ms.fetch_max(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// Does it, if that may be done now.
    pub(crate) fn take(&self, pace: Pace, now: Duration) -> Result<(), Error> {
        self.check(pace, now)?;
        self.spend(pace, now);
        Ok(())
    }

    fn was_drawn_on(&self, now: Duration) -> bool {
        let drawn_at = Duration::from_millis(self.drawn_at_ms.load(Ordering::Relaxed));
        drawn_at > Duration::ZERO && now < drawn_at + MEMORY
    }

    /// How many bytes its connections and requests hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether it holds more than its share.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_trusted && self.bytes() > self.shared.bytes_of_one_max
    }

    /// Whether all together hold more than the node's budget.
    pub(crate) fn is_node_over(&self) -> bool {
        self.shared.bytes.load(Ordering::Relaxed) > self.shared.bytes_max
    }

    fn adds(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn frees(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts an HTTP request whose body has so many bytes, if there is place for it.
    pub(crate) fn admit_request(self: Arc<Self>, bytes: usize) -> Result<RequestUnderWay, Full> {
        let max = if self.is_trusted { usize::MAX } else { self.shared.requests_of_one_max };
        if !add_below(&self.requests, max) {
            return Err(Full::Address);
        }
        self.adds(bytes);
        let is_over = self.is_over() || self.is_node_over();
        let under_way = RequestUnderWay { address: self, bytes };
        if bytes > 0 && is_over { Err(Full::Memory) } else { Ok(under_way) }
    }

    fn lock(&self) -> MutexGuard<'_, [Allowance; 4]> {
        self.allowances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.address.requests.fetch_sub(1, Ordering::Relaxed);
        self.address.frees(self.bytes);
    }
}

/// Counts one more, unless there are `max`.
fn add_below(count: &AtomicUsize, max: usize) -> bool {
    let is_below = count.fetch_add(1, Ordering::Relaxed) < max;
    if !is_below {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    is_below
}

impl Presence {
    fn new(address: Arc<Address>) -> Result<Self, Crowded> {
        let max = if address.is_trusted { usize::MAX } else { address.shared.connections_max };
        if !add_below(&address.connections, max) {
            return Err(Crowded::Connections);
        }
        let mut presence = Self { address, in_handshake: false, bytes: 0 };
        presence.begin_handshake()?;
        Ok(presence)
    }

    /// Where the connection comes from.
    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// It has yet to say hello.
    pub(crate) fn begin_handshake(&mut self) -> Result<(), Crowded> {
        if self.in_handshake {
            return Ok(());
        }
        let Address { shared, is_trusted, handshakes, .. } = &*self.address;
        let max = if *is_trusted { usize::MAX } else { shared.handshakes_of_one_max };
        if !add_below(handshakes, max) {
            return Err(Crowded::Handshakes);
        }
        if !add_below(&shared.handshakes, shared.handshakes_max) {
            handshakes.fetch_sub(1, Ordering::Relaxed);
            return Err(Crowded::Handshakes);
        }
        self.in_handshake = true;
        Ok(())
    }

    /// It has a session, or was useful otherwise.
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
        there.holds(self.bytes);
        *self = there;
        Ok(())
    }

    /// How much it holds, as far as that is counted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// It holds so many bytes now.
    #[inline]
    pub(crate) fn holds(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.address.adds(bytes - self.bytes);
        } else if bytes < self.bytes {
            self.address.frees(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    fn leave(&mut self) {
        self.holds(0);
        self.settle();
        self.address.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.leave();
    }
}
