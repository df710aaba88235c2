//! The rates of an address.

use crate::config::Config;
use crate::shard::allowance::Rate;

/// The number of rates of an address: one for each [`Pace`].
pub(super) const PACES: usize = 6;

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

/// The rates of these settings, by [`Pace`].
pub(super) fn rates(config: &Config) -> [Rate; PACES] {
    let rate = |setting, limit| Rate::new(setting, limit).of_address();
    [
        rate("limits.address.sessions", config.limits.address.sessions),
        rate("limits.address.resumes", config.limits.address.resumes),
        rate("limits.address.joins", config.limits.address.joins),
        rate("limits.address.rooms_created", config.limits.address.rooms_created),
        rate("limits.address.keys_missed", config.limits.address.keys_missed),
        rate("limits.address.channels_opened", config.limits.address.channels_opened),
    ]
}
