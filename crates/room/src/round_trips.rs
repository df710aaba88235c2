//! The smoothed time that a message to a player and back takes.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::PlayerId;

/// A measurement changes the smoothed value by the difference between them, divided by this: 1 /
/// alpha in RFC 6298 (section 2).
const SMOOTHING: u32 = 8;

/// The smoothed round trips of players.
#[derive(Default)]
pub(crate) struct RoundTrips(BTreeMap<PlayerId, Duration>);

impl FromIterator<(PlayerId, Duration)> for RoundTrips {
    fn from_iter<I: IntoIterator<Item = (PlayerId, Duration)>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl RoundTrips {
    /// Adds a measurement, as `SRTT` takes in `R` in RFC 6298 (section 2).
    pub(crate) fn measured(&mut self, player: PlayerId, round_trip: Duration) {
        self.0
            .entry(player)
            .and_modify(|smoothed| {
                *smoothed = *smoothed - *smoothed / SMOOTHING + round_trip / SMOOTHING;
            })
            .or_insert(round_trip);
    }

    /// The player is gone, or has another connection from here on.
    pub(crate) fn forget(&mut self, player: PlayerId) {
        self.0.remove(&player);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PlayerId, Duration)> {
        self.0.iter().map(|(player, round_trip)| (*player, *round_trip))
    }

    pub(crate) fn of(&self, player: PlayerId) -> Option<Duration> {
        self.0.get(&player).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use playfield_state::PlayerId;

    use super::RoundTrips;

    #[test]
    fn the_first_measurement_counts_whole_and_later_ones_an_eighth() {
        let (one, other) = (PlayerId(1), PlayerId(2));
        let mut round_trips = RoundTrips::default();
        assert_eq!(round_trips.of(one), None);
        for (measured, smoothed) in [(80, 80), (160, 90), (90, 90), (10, 80)] {
            round_trips.measured(one, Duration::from_millis(measured));
            assert_eq!(round_trips.of(one), Some(Duration::from_millis(smoothed)));
        }
        assert_eq!(round_trips.of(other), None);
        round_trips.forget(one);
        assert_eq!(round_trips.of(one), None);
    }

    #[test]
    fn the_longest_measurements_do_not_overflow() {
        let mut round_trips = RoundTrips::default();
        for _ in 0..3 {
            round_trips.measured(PlayerId(1), Duration::MAX);
            assert_eq!(round_trips.of(PlayerId(1)), Some(Duration::MAX));
        }
        round_trips.measured(PlayerId(1), Duration::ZERO);
        assert!(round_trips.of(PlayerId(1)) < Some(Duration::MAX));
    }
}
