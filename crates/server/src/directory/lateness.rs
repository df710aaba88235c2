//! The lateness of shards with their rooms, and what late shards take no more of.

use std::time::Duration;

use playfield_room::Error;
use playfield_wire::ErrorCode;

/// The lateness up to which a shard still gets players for its rooms, as a multiple of that up to
/// which it gets new rooms.
const JOINS_FACTOR: u32 = 4;

/// The time after which a refused player may try again.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The lateness of each shard's rooms.
pub(super) struct Latenesses {
    /// The most with which a shard gets new rooms; zero does not limit it.
    max: Duration,
    shards: Vec<Duration>,
}

impl Latenesses {
    pub(super) fn new(shards: usize) -> Self {
        Self { max: Duration::ZERO, shards: vec![Duration::ZERO; shards] }
    }

    pub(super) fn limit(&mut self, max: Duration) {
        self.max = max;
    }

    pub(super) fn set(&mut self, shard: u16, late: Duration) {
        self.shards[usize::from(shard)] = late;
    }

    /// The latest shard's.
    pub(super) fn most(&self) -> Duration {
        self.shards.iter().max().copied().unwrap_or_default()
    }

    pub(super) fn takes_rooms(&self, shard: u16) -> bool {
        self.is_within(shard, self.max)
    }

    pub(super) fn takes_players(&self, shard: u16) -> bool {
        self.is_within(shard, self.max * JOINS_FACTOR)
    }

    /// The error for a room or player that no shard takes.
    pub(super) fn refusal(&self) -> Error {
        let (late, max) = (self.most().as_millis(), self.max.as_millis());
        let text = format!(
            "rooms.lateness: rooms are run up to {late} ms late, and the node takes no more beyond \
             {max} ms; try again"
        );
        Error::new(ErrorCode::Busy, text).with_retry_after(RETRY_AFTER)
    }

    fn is_within(&self, shard: u16, max: Duration) -> bool {
        max.is_zero() || self.shards[usize::from(shard)] <= max
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_wire::ErrorCode;

    use super::Latenesses;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_late_shard_takes_no_rooms_and_a_very_late_one_no_players() {
        let mut lateness = Latenesses::new(2);
        lateness.limit(MS(5));
        for (late, rooms, players) in [
            (0, true, true),
            (5, true, true),
            (6, false, true),
            (20, false, true),
            (21, false, false),
        ] {
            lateness.set(1, MS(late));
            assert_eq!((lateness.takes_rooms(1), lateness.takes_players(1)), (rooms, players));
            assert!(lateness.takes_rooms(0) && lateness.takes_players(0), "the other is on time");
        }
        let error = lateness.refusal();
        assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::Busy, Some(1000)));
        let text = "rooms.lateness: rooms are run up to 21 ms late, and the node takes no more \
                    beyond 5 ms; try again";
        assert_eq!(error.text(), text);
        lateness.limit(MS(0));
        assert!(lateness.takes_rooms(1) && lateness.takes_players(1), "nothing is limited");
    }
}
