//! Limits by client address: connections, handshakes, HTTP requests, memory, and how fast an
//! address opens sessions, joins, creates rooms and uses channels. Shards ask when a connection
//! comes or goes, and before work that costs the whole node something, but not for each message.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_room::Error;

use crate::channel::Creator;
use crate::config::{Config, Network, masked};
use crate::counted::add_below;
use crate::http::Full;
use crate::proxy::Client;
use crate::shard::allowance::Allowance;
use crate::shard::allowance::Rate;
use crate::shard::connection::narrowed;

/// Rates by address are per minute: after a quiet minute an address has its full burst again.
const MEMORY: Duration = Duration::from_secs(60);
/// The number of rates of an address: one for each [`Pace`].
const PACES: usize = 6;
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

/// An action that an address may do only at a limited rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Open a session.
    Session,
    /// Come back to a session, with a token of this node.
    Resume,
    /// Ask to join a room.
    Join,
    /// Create a room.
    Room,
    /// Ask for a key that no room has.
    MissedKey,
    /// Use a channel that may have to be created.
    Channel,
}

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
pub(crate) struct RequestUnderWay(Arc<Address>);

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

impl Addresses {
    /// The limits of these settings.
    pub(crate) fn new(config: &Config) -> Arc<Self> {
        let (memory_max, _) = config.memory_max(None);
        Self::with_memory(config, memory_max)
    }

    /// The same, where clients may make the node hold so much memory, in bytes.
    pub(crate) fn with_memory(config: &Config, memory_max: usize) -> Arc<Self> {
        let rate = |setting, limit| Rate::new(setting, limit).of_address();
        let rates = [
            rate("limits.address.sessions", config.limits.address.sessions),
            rate("limits.address.resumes", config.limits.address.resumes),
            rate("limits.address.joins", config.limits.address.joins),
            rate("limits.address.rooms_created", config.limits.address.rooms_created),
            rate("limits.address.keys_missed", config.limits.address.keys_missed),
            rate("limits.address.channels_opened", config.limits.address.channels_opened),
        ];
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
            rates,
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

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tally {
    fn new(address: Arc<Address>) -> Result<Self, Crowded> {
        if !add_below(&address.connections, address.limit(address.shared.connections_max)) {
            return Err(Crowded::Connections);
        }
        let mut tally = Self { address, is_connected: true, in_handshake: false, bytes: 0 };
        tally.begin_handshake()?;
        Ok(tally)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use playfield_wire::ErrorCode;

    use super::{Addresses, BytesHeld, Crowded, MEMORY, Pace, SWEEP_MIN, Tally};
    use crate::config::Config;

    const NOW: Duration = Duration::from_secs(1);

    fn addresses(settings: &[(&str, &str)]) -> Arc<Addresses> {
        let mut config = Config::default();
        for (name, value) in settings {
            config.set(name, value).unwrap();
        }
        Addresses::new(&config)
    }

    fn admit(addresses: &Addresses, ip: &str) -> Result<Tally, Crowded> {
        addresses.admit(ip.parse().unwrap(), NOW)
    }

    #[test]
    fn an_address_has_so_many_connections_and_not_one_more() {
        let addresses = addresses(&[("limits.connections.per_address", "2")]);
        let mut held = Vec::new();
        for (one, same) in [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1", "2001:db8::ffff:1")] {
            held.push(admit(&addresses, one).unwrap());
            held.push(admit(&addresses, same).unwrap());
            assert_eq!(admit(&addresses, one).err(), Some(Crowded::Connections));
        }
        held.push(admit(&addresses, "2001:db8:0:1::1").unwrap());
        held.remove(0);
        held.push(admit(&addresses, "10.0.0.1").unwrap());
        for _ in 0..10 {
            held.push(admit(&addresses, "127.0.0.1").unwrap());
            held.push(admit(&addresses, "::1").unwrap());
        }
    }

    #[test]
    fn the_prefix_of_ipv6_is_a_setting() {
        let addresses = addresses(&[
            ("limits.connections.per_address", "1"),
            ("limits.address.ipv6_prefix_bits", "48"),
        ]);
        let _one = admit(&addresses, "2001:db8:1:1::1").unwrap();
        assert!(admit(&addresses, "2001:db8:1:2::1").is_err());
        assert!(admit(&addresses, "2001:db8:2::1").is_ok());
    }

    #[test]
    fn one_trusted_address_does_not_exempt_its_neighbors() {
        let addresses = addresses(&[
            ("limits.connections.per_address", "1"),
            ("limits.address.trusted", "2001:db8::5"),
        ]);
        let _trusted = [(); 3].map(|()| admit(&addresses, "2001:db8::5").unwrap());
        let _stranger = admit(&addresses, "2001:db8::6").unwrap();
        assert!(admit(&addresses, "2001:db8::7").is_err());
        assert!(admit(&addresses, "2001:db8::5").is_ok());
    }

    #[test]
    fn so_many_are_in_handshake_of_an_address_and_in_all() {
        let addresses =
            addresses(&[("limits.handshakes.per_address", "2"), ("limits.handshakes.total", "3")]);
        let mut one = admit(&addresses, "10.0.0.1").unwrap();
        let _two = admit(&addresses, "10.0.0.1").unwrap();
        assert_eq!(admit(&addresses, "10.0.0.1").err(), Some(Crowded::Handshakes));
        let _three = admit(&addresses, "10.0.0.2").unwrap();
        assert_eq!(admit(&addresses, "10.0.0.3").err(), Some(Crowded::AllHandshakes));
        assert_eq!(admit(&addresses, "127.0.0.1").err(), Some(Crowded::AllHandshakes));
        one.settle();
        one.settle();
        let _four = admit(&addresses, "10.0.0.1").unwrap();
        assert_eq!(one.begin_handshake(), Err(Crowded::Handshakes));
        drop(one);
        assert_eq!(addresses.shared.handshakes.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_connection_counts_where_a_proxy_says_that_it_comes_from() {
        let addresses = addresses(&[
            ("limits.connections.per_address", "1"),
            ("trusted_proxies", "10.0.0.0/8"),
            ("limits.handshakes.total", "3"),
        ]);
        let mut proxied: Vec<_> = (0..3).map(|_| admit(&addresses, "10.0.0.1").unwrap()).collect();
        proxied[0].holds(5000);
        let client = addresses.at("203.0.113.5".parse().unwrap(), NOW);
        assert_eq!(proxied[0].come_from(Arc::clone(&client)), Ok(()));
        assert_eq!(client.bytes(), 5000);
        assert_eq!(proxied[1].come_from(Arc::clone(&client)), Err(Crowded::Connections));
        proxied.remove(0);
        assert_eq!(client.bytes(), 0);
        assert_eq!(proxied[1].come_from(client), Ok(()));
        drop(proxied);
        assert_eq!(addresses.shared.handshakes.load(Ordering::Relaxed), 0);
        assert_eq!(addresses.shared.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn each_pace_has_its_own_limit_which_outlasts_the_connections() {
        let addresses = addresses(&[
            ("limits.address.sessions.per_minute", "3"),
            ("limits.address.resumes.per_minute", "7"),
            ("limits.address.joins.per_minute", "4"),
            ("limits.address.rooms_created.per_minute", "5"),
            ("limits.address.keys_missed.per_minute", "6"),
            ("limits.address.channels_opened.per_minute", "2"),
        ]);
        for (pace, max, setting) in [
            (Pace::Session, 3, "limits.address.sessions"),
            (Pace::Resume, 7, "limits.address.resumes"),
            (Pace::Join, 4, "limits.address.joins"),
            (Pace::Room, 5, "limits.address.rooms_created"),
            (Pace::MissedKey, 6, "limits.address.keys_missed"),
            (Pace::Channel, 2, "limits.address.channels_opened"),
        ] {
            let take = |ip: &str, now| addresses.at(ip.parse().unwrap(), now).take(pace, now);
            for _ in 0..max {
                assert_eq!(take("10.0.0.1", NOW), Ok(()));
            }
            let error = take("10.0.0.1", NOW).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Limit);
            let text = format!("{setting}: the limit is {max} per minute and address; try again");
            assert!(error.text().starts_with(&text), "{error}");
            assert!(error.retry_after_ms().is_some());
            assert_eq!(take("10.0.0.2", NOW), Ok(()));
            assert!(take("10.0.0.1", NOW + MEMORY).is_ok());
            assert!((0..100).all(|_| take("127.0.0.1", NOW).is_ok()));
        }
    }

    #[test]
    fn addresses_are_forgotten_a_minute_later_or_when_there_are_too_many() {
        let many = SWEEP_MIN as u32;
        for (addresses_max, now, kept) in
            [("1000000", NOW, many + 2), ("1000000", NOW + MEMORY, 2), ("1024", NOW, 2)]
        {
            let addresses = addresses(&[("tuning.addresses", addresses_max)]);
            let _stays = admit(&addresses, "192.0.2.1").unwrap();
            for number in 1..many {
                let address = addresses.at((0x0A00_0000 + number).to_be_bytes().into(), NOW);
                address.spend(Pace::Session, NOW);
            }
            assert_eq!(addresses.known(), many as usize);
            let _late = addresses.at([10, 1, 1, 1].into(), now);
            let _last = addresses.at([10, 1, 1, 2].into(), now);
            assert_eq!(addresses.known() as u32, kept.max(3), "{addresses_max} {now:?}");
        }
    }

    #[test]
    fn with_more_in_use_than_may_be_remembered_not_each_new_one_goes_through_all() {
        let addresses = addresses(&[("tuning.addresses", "1024")]);
        let at = |number: u32| addresses.at((0x0A00_0000 + number).to_be_bytes().into(), NOW);
        let _in_use: Vec<_> = (0..2000).map(at).collect();
        // Each sweep forgets all the others.
        let mut sweeps = 0;
        let mut before = addresses.known();
        for number in 2000..12_000 {
            at(number);
            let known = addresses.known();
            sweeps += usize::from(known <= before);
            before = known;
            assert!(known <= 2000 + 2000 / 8 + 1, "{known}");
        }
        assert!((30..=50).contains(&sweeps), "{sweeps} for 10,000 new ones");
    }

    #[test]
    fn bytes_are_summed_up_by_address_and_in_all() {
        let addresses = addresses(&[
            ("limits.memory.per_address", "65536"),
            ("limits.memory.total", "1048576"),
            ("http.requests.per_address", "2"),
        ]);
        let mut one = admit(&addresses, "10.0.0.1").unwrap();
        let mut two = admit(&addresses, "10.0.0.1").unwrap();
        one.holds(40_000);
        two.holds(25_536);
        let address = Arc::clone(one.address());
        assert!(!address.is_over());
        two.holds(25_537);
        assert!(address.is_over() && !address.is_node_over());
        let mut body = BytesHeld::new(Arc::clone(&address));
        assert!(!body.adds(1));
        one.holds(0);
        assert!(body.adds(999));
        assert_eq!(address.bytes(), 26_537);
        let request = || Arc::clone(&address).admit_request().ok();
        let _requests = (request().unwrap(), request().unwrap());
        assert!(request().is_none());
        drop((body, one, two));
        assert_eq!(address.bytes(), 0);

        let mut local = admit(&addresses, "127.0.0.1").unwrap();
        local.holds(1 << 20);
        assert!(!local.address().is_over() && !local.address().is_node_over());
        local.holds((1 << 20) + 1);
        assert!(!local.address().is_over() && local.address().is_node_over());
        let largest = addresses.largest().unwrap();
        assert!(Arc::ptr_eq(&largest, local.address()));
    }
}
