//! Settings of a node.

use std::fmt;
use std::time::Duration;

use crate::record::Slot;

/// Settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time without a renewal after which others declare a node dead.
    pub lease: Duration,
    /// The time between two renewals.
    pub renew: Duration,
    /// The time after the sending of the last answered renewal at which a node freezes.
    pub freeze: Duration,
    /// The longest time between two answers to own renewals that counts for other nodes.
    pub gap: Duration,
    /// The time that a node waits longer than those of lower slots before it declares one dead, for
    /// each of these.
    pub rank_delay: Duration,
    /// The most bytes that wait for another node. Past it, the link with it is reset.
    pub link_bytes_max: usize,
    /// The slot to try first; a random one without it.
    pub slot: Option<Slot>,
    /// The name of the node, for people.
    pub name: String,
    /// The places where clients reach the node, as URLs.
    pub addresses: Vec<String>,
    /// The number of the node's build.
    pub build: u64,
    /// The room types of the node, with the fingerprints of their schemas.
    pub types: Vec<(String, u64)>,
    /// The machine and the file of a lock that this process holds, or empty. A node whose record
    /// names the same one is gone.
    pub lock: String,
}

impl Settings {
    /// The settings of a node with a lease of this length, 5 s at least. It has no name, address
    /// and room type yet.
    ///
    /// # Errors
    /// If the lease is too short.
    pub fn new(lease: Duration) -> Result<Self, SettingsError> {
        if lease < LEASE_MIN {
            return Err(SettingsError { lease });
        }
        let renew = lease / 10;
        Ok(Self {
            lease,
            renew,
            freeze: lease * 3 / 4,
            gap: renew * 2,
            rank_delay: renew / 10,
            link_bytes_max: 16 << 20,
            slot: None,
            name: String::new(),
            addresses: Vec::new(),
            build: 0,
            types: Vec::new(),
            lock: String::new(),
        })
    }
}

/// The shortest lease.
const LEASE_MIN: Duration = Duration::from_secs(5);

/// The error of settings that can't work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsError {
    lease: Duration,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease } = self;
        write!(f, "a lease of {lease:?} is too short: set {LEASE_MIN:?} or more")
    }
}

impl std::error::Error for SettingsError {}
