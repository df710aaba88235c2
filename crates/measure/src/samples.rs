//! Means and percentiles.

/// Samples of one quantity.
#[derive(Clone, Debug)]
pub struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    /// Samples in any order.
    #[must_use]
    pub fn new(mut samples: Vec<f64>) -> Self {
        samples.sort_unstable_by(f64::total_cmp);
        Self { sorted: samples }
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The mean; 0 without samples.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.sorted.is_empty() {
            0.0
        } else {
            self.sorted.iter().sum::<f64>() / self.sorted.len() as f64
        }
    }

    /// The smallest sample that at least `percent` of all samples do not exceed; 0 without samples.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (self.sorted.len() as f64 * percent / 100.0).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn percentiles_are_samples() {
        let samples = Samples::new((1..=200).rev().map(f64::from).collect());
        assert_eq!(samples.percentile(50.0), 100.0);
        assert_eq!(samples.percentile(99.0), 198.0);
        assert_eq!(samples.percentile(100.0), 200.0);
        assert_eq!(samples.mean(), 100.5);
    }

    #[test]
    fn statistics_of_no_samples_are_zero() {
        let samples = Samples::new(Vec::new());
        assert_eq!((samples.percentile(50.0), samples.mean()), (0.0, 0.0));
    }
}
