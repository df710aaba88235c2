//! Clients that read slowly.

use std::time::{Duration, Instant};

/// The longest time whose bytes a client may read at once.
const SAVED_MAX: Duration = Duration::from_millis(50);

/// The bytes that a client reads in a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    per_second: f64,
    /// The bytes that it may read as of then. Below zero after it has read more.
    left: f64,
    as_of: Instant,
}

impl Pace {
    pub(crate) fn new(per_second: f64, now: Instant) -> Self {
        Self { per_second, left: 0.0, as_of: now }
    }

    /// Returns the number of bytes that may be read now.
    pub(crate) fn left(&mut self, now: Instant) -> usize {
        let earned = now.saturating_duration_since(self.as_of).as_secs_f64() * self.per_second;
        let most = SAVED_MAX.as_secs_f64() * self.per_second;
        (self.left, self.as_of) = ((self.left + earned).min(most), now);
        self.left.max(0.0) as usize
    }

    pub(crate) fn took(&mut self, bytes: usize) {
        self.left -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    #[test]
    fn a_client_reads_so_much_a_second_and_saves_little_up() {
        let began = Instant::now();
        let mut pace = Pace::new(1000.0, began);
        assert_eq!(pace.left(began), 0);
        assert_eq!(pace.left(began + Duration::from_millis(20)), 20);
        pace.took(15);
        assert_eq!(pace.left(began + Duration::from_millis(30)), 15);
        assert_eq!(pace.left(began + Duration::from_secs(9)), 50);
    }
}
