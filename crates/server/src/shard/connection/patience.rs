//! The time that a connection may be silent: by the node's settings, and by the rooms that it is
//! in.

use std::time::Duration;

use playfield_room::Settings;

use crate::config::Config;
use crate::shard::connection::Links;
use crate::shard::keys::ConnectionKey;

/// The shortest silence that a room may ask for. A room type of the program's own making may have
/// asked for less.
const SILENCE_MIN: Duration = Duration::from_millis(100);

/// The silence of rooms with ticks that ask for none: players there notice a second's stop.
const SILENCE_OF_TICKS: Duration = Duration::from_secs(5);

/// A connection that is silent for so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// The silence after which it is asked for a sign of life.
    pub(crate) ask: Duration,
    /// The silence after which it is closed.
    pub(crate) end: Duration,
}

impl Patience {
    /// Endless.
    pub(crate) const ALL: Self = Self { ask: Duration::MAX, end: Duration::MAX };

    /// By the node's settings.
    pub(crate) fn of_node(config: &Config) -> Self {
        Self { ask: config.timeouts.heartbeat / 2, end: 2 * config.timeouts.heartbeat }
    }

    /// By a room's wish; endless if it has none, and no ticks.
    pub(crate) fn of(settings: Settings) -> Self {
        let end = match settings {
            Settings { silence_ms: 0, tick_hz: 0, .. } => return Self::ALL,
            Settings { silence_ms: 0, .. } => SILENCE_OF_TICKS,
            Settings { silence_ms, .. } => Duration::from_millis(silence_ms).max(SILENCE_MIN),
        };
        Self { ask: end / 2, end }
    }

    /// The silence that a room allows, as its clients are told; 0 if it sets no limit.
    pub(crate) fn silence_ms(self) -> u32 {
        if self == Self::ALL {
            return 0;
        }
        u32::try_from(self.end.as_millis()).unwrap_or(u32::MAX)
    }

    pub(crate) fn min(self, other: Self) -> Self {
        Self { ask: self.ask.min(other.ask), end: self.end.min(other.end) }
    }
}

impl Links {
    /// Looks at a connection at this time, unless that is to happen sooner.
    pub(in crate::shard) fn look_by(&mut self, key: ConnectionKey, at: Duration) {
        let Some(connection) = self.slab.get(key) else { return };
        if at < connection.look_at.time() {
            self.look_at(key, at);
        }
    }

    /// Sees to it that the wheel comes to a connection in time. If it comes too early, it is turned
    /// again: a connection that is heard often has one place in it, not many.
    pub(in crate::shard) fn set_timeout(&mut self, key: ConnectionKey) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        let slot = self.timeouts.slot_of(connection.look_at.time());
        if slot < connection.slot {
            connection.slot = slot;
            self.timeouts.set(slot, key.index() as u32);
        }
    }

    /// Looks at a connection at this time, and not at that which was set before.
    pub(in crate::shard) fn look_at(&mut self, key: ConnectionKey, at: Duration) {
        let Some(connection) = self.slab.get_mut(key) else { return };
        connection.look_at = at.into();
        self.set_timeout(key);
    }
}
