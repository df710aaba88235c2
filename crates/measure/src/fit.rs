//! A fit of costs: which part grows with what.

/// A measured cost, and the values of the terms at which it was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The values of the terms, such as players and messages a second.
    pub terms: Vec<f64>,
    /// The cost.
    pub cost: f64,
}

/// A cost as a sum of terms, each with a factor that is not negative.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The factors of the terms.
    pub factors: Vec<f64>,
    /// The largest relative deviation of an observation from the fit.
    pub residual: f64,
}

/// The rounds of the search for factors. Each halves the error at least, for terms that differ.
const ROUNDS: usize = 20_000;

impl Fit {
    /// The fit with the least squares of relative deviations; `None` without observations, or if
    /// one costs nothing.
    ///
    /// Factors can't be negative: no part of a cost is. So terms are fitted one after the other,
    /// each to what the others leave, until nothing changes (coordinate descent).
    #[must_use]
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let count = observations.first()?.terms.len();
        let is_costly = |seen: &Observation| seen.cost.is_finite() && seen.cost > 0.0;
        if !observations.iter().all(|seen| is_costly(seen) && seen.terms.len() == count) {
            return None;
        }
        // Relative: each observation is divided by its cost, which then is 1.
        let rows: Vec<Vec<f64>> = observations
            .iter()
            .map(|seen| seen.terms.iter().map(|term| term / seen.cost).collect())
            .collect();
        let mut factors = vec![0.0; count];
        let mut left = vec![1.0; rows.len()];
        for _ in 0..ROUNDS {
            let mut change: f64 = 0.0;
            for (term, factor) in factors.iter_mut().enumerate() {
                let squares: f64 = rows.iter().map(|row| row[term] * row[term]).sum();
                if squares == 0.0 {
                    continue;
                }
                let slope: f64 = rows.iter().zip(&left).map(|(row, left)| row[term] * left).sum();
                let next = (*factor + slope / squares).max(0.0);
                let step = next - *factor;
                *factor = next;
                for (row, left) in rows.iter().zip(&mut left) {
                    *left -= step * row[term];
                }
                change = change.max((step * squares.sqrt()).abs());
            }
            if change < 1e-12 {
                break;
            }
        }
        let residual = left.iter().fold(0.0, |most: f64, left| most.max(left.abs()));
        Some(Self { factors, residual })
    }

    /// The cost that the fit has for these values of the terms.
    #[must_use]
    pub fn cost(&self, terms: &[f64]) -> f64 {
        self.factors.iter().zip(terms).map(|(factor, term)| factor * term).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Fit, Observation};

    fn observed(cost: impl Fn(f64, f64) -> f64) -> Vec<Observation> {
        let cases = [(15.0, 20.0), (30.0, 20.0), (60.0, 20.0), (30.0, 10.0), (30.0, 60.0)];
        cases
            .into_iter()
            .map(|(players, hz)| Observation {
                terms: vec![1.0, hz, hz * players, hz * players * players],
                cost: cost(players, hz),
            })
            .collect()
    }

    #[test]
    fn the_factors_of_a_sum_are_found() {
        let fit = Fit::of(&observed(|players, hz| 3.0 + hz * (2.0 + 0.5 * players))).unwrap();
        assert!(fit.residual < 1e-3, "{fit:?}");
        let at = fit.cost(&[1.0, 30.0, 30.0 * 45.0, 30.0 * 45.0 * 45.0]);
        assert!((at / (3.0 + 30.0 * 24.5) - 1.0).abs() < 1e-2, "{at}");
    }

    #[test]
    fn what_is_no_such_sum_leaves_a_residual() {
        let fit = Fit::of(&observed(|players, hz| hz * players.powi(4))).unwrap();
        assert!(fit.residual > 0.1, "{fit:?}");
        assert!(fit.factors.iter().all(|factor| *factor >= 0.0));
    }

    #[test]
    fn nothing_fits_nothing() {
        assert_eq!(Fit::of(&[]), None);
        assert_eq!(Fit::of(&[Observation { terms: vec![1.0], cost: 0.0 }]), None);
        let cost = f64::NAN;
        assert_eq!(Fit::of(&[Observation { terms: vec![1.0], cost }]), None);
    }
}
