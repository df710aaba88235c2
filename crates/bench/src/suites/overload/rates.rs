//! The evenness with which rooms are served.

/// The patches per second that the players of each room received.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates(Vec<f64>);

impl Rates {
    /// The rates of rooms with so many players each, by the number of messages of each player, in
    /// order.
    pub(super) fn new(messages: &[u64], players: usize, seconds: f64) -> Self {
        let rate = |room: &[u64]| room.iter().sum::<u64>() as f64 / players as f64 / seconds;
        Self(messages.chunks(players).map(rate).collect())
    }

    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    pub(super) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn most(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// The slowest room's share of the mean rate.
    pub(super) fn slowest_share(&self) -> f64 {
        self.least() / self.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::Rates;

    #[test]
    fn the_slowest_room_is_compared_with_the_mean_of_all() {
        let rates = Rates::new(&[20, 20, 10, 8, 30, 32], 2, 2.0);
        assert_eq!((rates.least(), rates.mean(), rates.most()), (4.5, 10.0, 15.5));
        assert_eq!(rates.slowest_share(), 0.45);
    }
}
