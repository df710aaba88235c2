//! Limits by client address: connections, handshakes, HTTP requests, memory, and how fast an
//! address opens sessions, joins, creates rooms and uses channels. Shards ask when a connection
//! comes or goes, and before work that costs the whole node something, but not for each message.

mod pace;
mod tally;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_room::Error;
use playfield_state::Data;

use pace::PACES;
pub(crate) use pace::Pace;
pub(crate) use tally::{BytesHeld, Crowded, RequestUnderWay, Tally};

use crate::channel::Creator;
use crate::config::{Config, Network, masked};
use crate::counted::add_below;
use crate::http::Full;
use crate::proxy::Client;
use crate::shard::allowance::{Allowance, Rate};

/// Rates by address are per minute: after a quiet minute an address has its full burst again.
const MEMORY: Duration = Duration::from_secs(60);
/// With fewer addresses, none is forgotten.
const SWEEP_MIN: usize = 1024;
/// There are more by one in this many, at least, before some are forgotten again: going through all
/// takes milliseconds, and no connection is accepted meanwhile.
const SWEEP_AFTER_PART: usize = 8;

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
    /// By what counts as one address, and whether it is trusted: one in a network of strangers may
    /// be, and neither shares with the other.
    by_name: HashMap<AddressName, Arc<Address>>,
    /// With this many, it is time to forget some.
    sweep_at: usize,
}

/// The limits, and the sums over all addresses.
struct Shared {
    connections_max: usize,
    handshakes_max: usize,
    handshakes_of_one_max: usize,
    requests_of_one_max: usize,
    away_of_one_max: usize,
    channels_of_one_max: usize,
    history_of_one_max: usize,
    bytes_max: usize,
    bytes_of_one_max: usize,
    rates: [Rate; PACES],
    handshakes: AtomicUsize,
    bytes: AtomicUsize,
}

/// The name of an address in the table: what limits count as one, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AddressName {
    pub(crate) ip: IpAddr,
    /// Only the limits of the whole node hold for it.
    pub(crate) is_trusted: bool,
}

/// One address, as far as limits go: an IPv4 address, or an IPv6 network.
pub(crate) struct Address {
    shared: Arc<Shared>,
    name: AddressName,
    connections: AtomicUsize,
    handshakes: AtomicUsize,
    requests: AtomicUsize,
    bytes: AtomicUsize,
    away: AtomicUsize,
    /// Channels that its clients have created.
    channels: AtomicUsize,
    /// Bytes of the publications that those channels keep.
    history_bytes: AtomicUsize,
    /// By [`Pace`].
    allowances: Mutex<[Allowance; PACES]>,
    /// When an allowance was last drawn on, in milliseconds.
    drawn_at_ms: AtomicU64,
}

/// The rates of an address, as far as they are used, for another process.
#[derive(Data, Debug)]
pub(crate) struct AddressRates {
    ip: String,
    is_trusted: bool,
    /// By [`Pace`].
    left: Vec<[u64; 2]>,
}

impl Addresses {
    /// The limits of these settings.
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let (memory_max, _) = config.memory_max(None);
        Self::with_memory(config, memory_max)
    }

    /// The same, where clients may make the node hold so much memory, in bytes.
    pub(crate) fn with_memory(config: &Config, memory_max: usize) -> Arc<Self> {
        let shared = Shared {
            connections_max: config.limits.connections.per_address,
            handshakes_max: config.limits.handshakes.total,
            handshakes_of_one_max: config.limits.handshakes.per_address,
            requests_of_one_max: config.http.requests.per_address,
            away_of_one_max: config.limits.sessions_away.per_address,
            channels_of_one_max: config.limits.channels.per_address,
            history_of_one_max: config.limits.history_bytes.per_address,
            bytes_max: memory_max,
            bytes_of_one_max: config.limits.memory.per_address,
            rates: pace::rates(config),
            handshakes: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        };
        Arc::new(Self {
            shared: Arc::new(shared),
            ipv6_bits: config.limits.address.ipv6_prefix_bits as u8,
            trusted: config.limits.address.trusted.clone(),
            proxies: config.trusted_proxies.clone(),
            known: Mutex::default(),
            addresses_max: config.tuning.addresses,
        })
    }

    /// The address that this one is counted as: an IPv6 address as its network.
    fn counted(&self, ip: IpAddr) -> IpAddr {
        match ip.to_canonical() {
            ip @ IpAddr::V6(_) => masked(ip, self.ipv6_bits),
            ip @ IpAddr::V4(_) => ip,
        }
    }

    /// Returns whether what this address says of its clients' addresses counts.
    pub(crate) fn is_proxy(&self, ip: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(ip))
    }

    /// The entry for an address, added if it is new.
    pub(crate) fn at(&self, ip: IpAddr, now: Duration) -> Arc<Address> {
        let is_trusted =
            self.is_proxy(ip) || self.trusted.iter().any(|network| network.contains(ip));
        self.find(ip, is_trusted, now)
    }

    /// The entry for a client. Clients that a proxy does not name share one address: the proxy's,
    /// but with limits.
    pub(crate) fn of(&self, client: Client, now: Duration) -> Arc<Address> {
        let ip = client.address.ip();
        if client.is_unnamed { self.find(ip, false, now) } else { self.at(ip, now) }
    }

    fn find(&self, ip: IpAddr, is_trusted: bool, now: Duration) -> Arc<Address> {
        self.named(AddressName { ip: self.counted(ip), is_trusted }, now)
    }

    /// The entry with this name, added if it is new.
    pub(crate) fn named(&self, name: AddressName, now: Duration) -> Arc<Address> {
        let mut known = self.lock();
        if let Some(address) = known.by_name.get(&name) {
            return Arc::clone(address);
        }
        if known.by_name.len() >= known.sweep_at.max(SWEEP_MIN.min(self.addresses_max)) {
            known.sweep(now, self.addresses_max);
        }
        let address = Arc::new(Address::new(Arc::clone(&self.shared), name));
        known.by_name.insert(name, Arc::clone(&address));
        address
    }

    /// Counts a new connection.
    pub(crate) fn admit(&self, ip: IpAddr, now: Duration) -> Result<Tally, Crowded> {
        Tally::new(self.at(ip, now))
    }

    /// The rates of those that have drawn on them lately.
    pub(crate) fn rates(&self, now: Duration) -> Vec<AddressRates> {
        let known = self.lock();
        let drawn = known.by_name.values().filter(|address| address.was_drawn_on(now));
        drawn
            .map(|address| AddressRates {
                ip: address.name.ip.to_string(),
                is_trusted: address.name.is_trusted,
                left: address.lock().iter().map(|of| of.remaining(Duration::ZERO)).collect(),
            })
            .collect()
    }

    /// Notes rates of another process, whose clock goes on here.
    pub(crate) fn restore(&self, rates: &AddressRates, now: Duration) {
        let Ok(ip) = rates.ip.parse() else { return };
        let address = self.named(AddressName { ip, is_trusted: rates.is_trusted }, now);
        for (of, left) in address.lock().iter_mut().zip(&rates.left) {
            *of = Allowance::with_remaining(*left, Duration::ZERO);
        }
        address.drawn_at_ms.fetch_max(now.as_millis() as u64, Ordering::Relaxed);
    }

    /// The address that holds the most bytes.
    pub(crate) fn largest(&self) -> Option<Arc<Address>> {
        let known = self.lock();
        known.by_name.values().max_by_key(|address| address.bytes()).map(Arc::clone)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that clients may make the node hold, in bytes.
    pub(crate) fn memory_max(&self) -> usize {
        self.shared.bytes_max
    }

    /// Handshakes and bytes of all addresses, and how many addresses are known.
    pub(crate) fn load(&self) -> (usize, usize, usize) {
        let Shared { handshakes, bytes, .. } = &*self.shared;
        let [handshakes, bytes] = [handshakes, bytes].map(|of| of.load(Ordering::Relaxed));
        (handshakes, bytes, self.lock().by_name.len())
    }

    /// Returns the number of known addresses.
    #[cfg(test)]
    pub(crate) fn known(&self) -> usize {
        self.lock().by_name.len()
    }
}

impl Known {
    /// Forgets addresses that have nothing and were quiet for long enough; if there are too many
    /// still, all that have nothing.
    fn sweep(&mut self, now: Duration, addresses_max: usize) {
        // No other can come by a clone while the table is locked.
        let is_used = |address: &Arc<Address>| Arc::strong_count(address) > 1;
        self.by_name.retain(|_, address| is_used(address) || address.was_drawn_on(now));
        if self.by_name.len() >= addresses_max {
            self.by_name.retain(|_, address| is_used(address));
        }
        // While more are in use than may be remembered, a sweep for each new one would find
        // nothing.
        let kept = self.by_name.len();
        self.sweep_at = (2 * kept).min(addresses_max).max(kept + kept / SWEEP_AFTER_PART);
    }
}

impl Address {
    fn new(shared: Arc<Shared>, name: AddressName) -> Self {
        Self {
            shared,
            name,
            connections: AtomicUsize::new(0),
            handshakes: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            away: AtomicUsize::new(0),
            channels: AtomicUsize::new(0),
            history_bytes: AtomicUsize::new(0),
            allowances: Mutex::default(),
            drawn_at_ms: AtomicU64::new(0),
        }
    }

    /// Its name in the table.
    pub(crate) fn name(&self) -> AddressName {
        self.name
    }

    /// A limit by address, as far as it holds for this one.
    fn limit(&self, max: usize) -> usize {
        if self.name.is_trusted { usize::MAX } else { max }
    }

    /// Whether it may do this now; the error says when.
    pub(crate) fn check(&self, pace: Pace, now: Duration) -> Result<(), Error> {
        if self.name.is_trusted {
            return Ok(());
        }
        self.lock()[pace as usize].check(now, self.shared.rates[pace as usize])
    }

    /// Counts the action, whether it may be done now or not.
    pub(crate) fn spend(&self, pace: Pace, now: Duration) {
        if self.name.is_trusted {
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

    /// Returns the number of bytes that its connections and requests hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether it holds more than its share.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes() > self.limit(self.shared.bytes_of_one_max)
    }

    /// Returns whether all together hold more than the node's budget.
    pub(crate) fn is_node_over(&self) -> bool {
        self.shared.bytes.load(Ordering::Relaxed) > self.shared.bytes_max
    }

    /// Counts a session that is away. Whether it may be kept.
    pub(crate) fn keeps_away(&self) -> bool {
        add_below(&self.away, self.limit(self.shared.away_of_one_max))
    }

    /// Counts a session that is away, beyond any limit.
    pub(crate) fn keeps_away_anyway(&self) {
        self.away.fetch_add(1, Ordering::Relaxed);
    }

    /// A session that was counted is resumed, or has ended.
    pub(crate) fn ends_away(&self) {
        self.away.fetch_sub(1, Ordering::Relaxed);
    }

    fn adds(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn frees(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.shared.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts an HTTP request, unless there are too many.
    pub(crate) fn admit_request(self: Arc<Self>) -> Result<RequestUnderWay, Full> {
        if add_below(&self.requests, self.limit(self.shared.requests_of_one_max)) {
            Ok(RequestUnderWay(self))
        } else {
            Err(Full::Address)
        }
    }

    fn lock(&self) -> MutexGuard<'_, [Allowance; PACES]> {
        self.allowances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Creator for Address {
    fn creates(&self) -> bool {
        add_below(&self.channels, self.limit(self.shared.channels_of_one_max))
    }

    fn ended(&self) {
        self.channels.fetch_sub(1, Ordering::Relaxed);
    }

    fn keeps(&self, before: usize, after: usize) {
        if after > before {
            self.history_bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.history_bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    fn keeps_too_much(&self) -> bool {
        let history_max = self.limit(self.shared.history_of_one_max);
        self.history_bytes.load(Ordering::Relaxed) > history_max
    }
}
