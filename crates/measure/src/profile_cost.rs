//! The cost of live profiles: rooms with and without, in turns.

use std::io;
use std::time::Duration;

use crate::capacity::Plan;
use crate::run::{Besides, run_with};
use crate::samples::Samples;

/// The share of a core that a room takes, without and with a live profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileCost {
    /// The rounds without, in their order.
    pub without: Vec<f64>,
    /// The rounds with profiles of all rooms.
    pub with: Vec<f64>,
}

impl ProfileCost {
    /// The cost as a part of a room's CPU time: the median of the rounds. Each round compares two
    /// consecutive runs.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.parts().percentile(50.0)
    }

    /// The difference between the rounds.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let parts = self.parts();
        parts.percentile(100.0) - parts.percentile(1.0)
    }

    fn parts(&self) -> Samples {
        let rounds = self.without.iter().zip(&self.with);
        Samples::new(rounds.map(|(without, with)| with / without - 1.0).collect())
    }
}

/// Runs so many rooms of a plan with and without live profiles of all of them, in turns. A profile
/// begins before each measurement and ends after it.
///
/// # Errors
/// If the rooms can't be run.
pub fn profile_cost(plan: &Plan, rooms: usize, rounds: u64) -> io::Result<ProfileCost> {
    let mut cost = ProfileCost { without: Vec::new(), with: Vec::new() };
    for round in 1..=rounds {
        let case = plan.case(rooms, round);
        let lasts = Some(plan.time + Duration::from_secs(5));
        let mut turn = |of: Option<Duration>| {
            let besides = Besides { profile: of, ..Besides::default() };
            let core = run_with(&case, besides)?.run.core_per_room();
            let rounds = if of.is_some() { &mut cost.with } else { &mut cost.without };
            rounds.push(core);
            Ok::<_, io::Error>(())
        };
        // The order alternates.
        let turns = if round % 2 == 1 { [None, lasts] } else { [lasts, None] };
        turns.into_iter().try_for_each(&mut turn)?;
    }
    Ok(cost)
}

#[cfg(test)]
mod tests {
    use super::ProfileCost;

    #[test]
    fn the_cost_is_the_median_of_rounds() {
        let cost =
            ProfileCost { without: vec![0.01, 0.02, 0.04], with: vec![0.0102, 0.0202, 0.044] };
        assert!((cost.part() - 0.02).abs() < 1e-9, "{}", cost.part());
        assert!((cost.spread() - 0.09).abs() < 1e-9, "{}", cost.spread());
    }
}
