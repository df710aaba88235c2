//! The cost of live profiles: one node, whose rooms are profiled and not, in turns.

use std::io;
use std::time::Duration;

use crate::capacity::Plan;
use crate::run::{Besides, Case, run_with};
use crate::samples::Samples;

/// The longest time that a node takes to begin and to end the profiles of a round.
const BETWEEN: Duration = Duration::from_millis(200);

/// The CPU time of shards in rounds, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileCost {
    /// The rounds without profiles and with them, in their order.
    pub rounds: Vec<[u64; 2]>,
}

impl ProfileCost {
    /// The cost as a part of the CPU time: the median of the rounds.
    #[must_use]
    pub fn part(&self) -> f64 {
        self.parts().percentile(50.0)
    }

    /// The quarters of the rounds: a quarter of them cost less than the first, and a quarter more
    /// than the second.
    #[must_use]
    pub fn quarters(&self) -> [f64; 2] {
        let parts = self.parts();
        [parts.percentile(25.0), parts.percentile(75.0)]
    }

    /// The mean CPU time without profiles and with them, as a part of `time`, the length of each.
    #[must_use]
    pub fn cores(&self, time: Duration) -> [f64; 2] {
        let all = time.as_nanos() as f64 * self.rounds.len() as f64;
        [0, 1].map(|of| self.rounds.iter().map(|round| round[of]).sum::<u64>() as f64 / all)
    }

    fn parts(&self) -> Samples {
        let part = |[without, with]: &[u64; 2]| *with as f64 / *without as f64 - 1.0;
        Samples::new(self.rounds.iter().map(part).collect())
    }
}

/// Runs so many rooms of a plan, in turns without live profiles and with those of all rooms, each
/// for the plan's time.
///
/// # Errors
/// If the rooms can't be run.
pub fn profile_cost(plan: &Plan, rooms: usize, rounds: u32) -> io::Result<ProfileCost> {
    let time = (plan.time + BETWEEN) * 2 * rounds;
    let besides = Besides { profile: Some(plan.time), rounds, ..Besides::default() };
    let measured = run_with(&Case { time, ..plan.case(rooms, 1) }, besides)?;
    let (found, _) = measured.rounds.as_chunks();
    if found.len() != rounds as usize {
        let text = format!("the node ran {} of {rounds} rounds: try fewer rooms", found.len());
        return Err(io::Error::other(text));
    }
    Ok(ProfileCost { rounds: found.to_vec() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ProfileCost;

    #[test]
    fn the_cost_is_the_median_of_rounds() {
        let rounds = vec![[100, 102], [200, 202], [400, 440], [100, 104], [100, 99]];
        let cost = ProfileCost { rounds };
        assert!((cost.part() - 0.02).abs() < 1e-9, "{}", cost.part());
        assert!((cost.quarters()[0] - 0.01).abs() < 1e-9, "{:?}", cost.quarters());
        let [without, with] = cost.cores(Duration::from_nanos(1000));
        assert!((without - 0.18).abs() < 1e-9 && (with - 0.1894).abs() < 1e-9);
    }
}
