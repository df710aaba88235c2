//! The busy share of shards, and those that are too busy for more rooms.

use std::time::Duration;

use playfield_room::Error;
use playfield_wire::ErrorCode;

use super::lateness::RETRY_AFTER;

/// For how many measurements a new room is counted beside them. They are of the last two periods
/// of a shard; it was given the room before those, in the first of them, or since.
const PERIODS: usize = 3;

/// The busy share of each shard's time, with the rooms that it got since. All times are per second.
pub(super) struct BusyShards {
    /// The share from which a shard gets no new rooms; zero does not limit it.
    max: Duration,
    shards: Vec<BusyShard>,
}

#[derive(Clone, Default)]
struct BusyShard {
    measured: Duration,
    /// The cost of a room of each type.
    costs: Vec<Duration>,
    /// The cost of new rooms, by the periods in which the shard got them, the last one first.
    expected: [Duration; PERIODS],
}

impl BusyShards {
    pub(super) fn new(shards: usize) -> Self {
        Self { max: Duration::ZERO, shards: vec![BusyShard::default(); shards] }
    }

    pub(super) fn limit(&mut self, max: Duration) {
        self.max = max;
    }

    /// A shard has measured its share, and what a room of each type takes.
    pub(super) fn set(&mut self, shard: u16, measured: Duration, costs: Vec<Duration>) {
        let of = &mut self.shards[usize::from(shard)];
        (of.measured, of.costs) = (measured, costs);
        of.expected.rotate_right(1);
        of.expected[0] = Duration::ZERO;
    }

    /// A shard gets a new room of this type.
    pub(super) fn plan(&mut self, shard: u16, room_type: u16) {
        let of = &mut self.shards[usize::from(shard)];
        let cost = of.costs.get(usize::from(room_type)).copied().unwrap_or_default();
        of.expected[0] += cost;
    }

    pub(super) fn takes_rooms(&self, shard: u16) -> bool {
        self.max.is_zero() || self.shards[usize::from(shard)].expected() < self.max
    }

    /// The busiest shard's measured share, in percent.
    pub(super) fn most_percent(&self) -> u64 {
        let most = self.shards.iter().map(|shard| shard.measured).max().unwrap_or_default();
        percent(most)
    }

    /// The error for a room that no shard takes.
    pub(super) fn refusal(&self) -> Error {
        let least = self.shards.iter().map(BusyShard::expected).min().unwrap_or_default();
        let text = format!(
            "rooms.busy_percent: rooms take {} % of the time, new ones included, and the node takes \
             no more from {} % on; try again",
            percent(least),
            percent(self.max),
        );
        Error::new(ErrorCode::Busy, text).with_retry_after(RETRY_AFTER)
    }
}

impl BusyShard {
    fn expected(&self) -> Duration {
        self.measured + self.expected.iter().sum::<Duration>()
    }
}

fn percent(share: Duration) -> u64 {
    (share.as_millis() / 10) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_wire::ErrorCode;

    use super::BusyShards;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_shard_gets_rooms_until_those_to_come_fill_it() {
        let mut busy = BusyShards::new(2);
        busy.limit(MS(900));
        busy.plan(0, 0);
        assert!(busy.takes_rooms(0), "nobody knows what rooms take");
        busy.set(0, MS(700), vec![MS(10), MS(90)]);
        for _ in 0..2 {
            assert!(busy.takes_rooms(0));
            busy.plan(0, 1);
        }
        assert!(busy.takes_rooms(0));
        busy.plan(0, 0);
        busy.plan(0, 0);
        assert!(!busy.takes_rooms(0) && busy.takes_rooms(1));
        // They may not show in the next two measurements.
        for _ in 0..2 {
            busy.set(0, MS(700), vec![MS(10), MS(90)]);
            assert!(!busy.takes_rooms(0));
        }
        busy.set(0, MS(899), vec![MS(10), MS(90)]);
        assert!(busy.takes_rooms(0));
        busy.set(0, MS(935), vec![MS(10), MS(90)]);
        assert!(!busy.takes_rooms(0));
        assert_eq!(busy.most_percent(), 93);
        busy.set(1, MS(915), Vec::new());
        let error = busy.refusal();
        assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::Busy, Some(1000)));
        let text = "rooms.busy_percent: rooms take 91 % of the time, new ones included, and the node \
                    takes no more from 90 % on; try again";
        assert_eq!(error.text(), text);
        busy.limit(MS(0));
        assert!(busy.takes_rooms(0), "nothing is limited");
    }
}
