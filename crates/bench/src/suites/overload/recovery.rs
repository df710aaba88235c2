//! The time until all is normal again.

use std::time::Duration;

/// The time in which counts are taken.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// The number of slices in a row that are looked at together: a second.
const TOGETHER: usize = 10;

/// The most patches of a hundred that may be late.
const LATE_PERCENT_MAX: usize = 1;

/// Late patches in each slice of time since a load fell, and all patches in it.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The intervals, and the waits for answers, each with how many there were.
    slices: Vec<[(usize, usize); 2]>,
}

impl Recovery {
    pub(super) fn add(&mut self, slice: [(usize, usize); 2]) {
        self.slices.push(slice);
    }

    /// The time after which a whole second was normal: 99 of 100 patches came in time, and so did
    /// 99 of 100 answers. `None` if there was none such.
    pub(super) fn time(&self) -> Option<Duration> {
        let at = self.slices.windows(TOGETHER).position(is_normal)?;
        Some(SLICE * at as u32)
    }
}

fn is_normal(slices: &[[(usize, usize); 2]]) -> bool {
    let sum = |of: usize| {
        slices.iter().fold((0, 0), |sum, slice| (sum.0 + slice[of].0, sum.1 + slice[of].1))
    };
    let is_in_time = |(late, all): (usize, usize)| late * 100 <= all * LATE_PERCENT_MAX;
    let (intervals, waits) = (sum(0), sum(1));
    intervals.1 > 0 && is_in_time(intervals) && is_in_time(waits)
}

#[cfg(test)]
mod tests {
    use super::{Recovery, SLICE};

    fn recovery(slices: &[[(usize, usize); 2]]) -> Recovery {
        let mut recovery = Recovery::default();
        slices.iter().for_each(|slice| recovery.add(*slice));
        recovery
    }

    #[test]
    fn it_is_over_where_a_normal_second_begins() {
        let (late, normal) = ([(50, 100), (0, 5)], [(1, 100), (0, 5)]);
        let mut slices = vec![late; 4];
        slices.extend([normal; 9]);
        assert_eq!(recovery(&slices).time(), None, "not a whole second yet");
        slices.push(normal);
        assert_eq!(recovery(&slices).time(), Some(SLICE * 4));
        slices.insert(9, late);
        assert_eq!(recovery(&slices).time(), None, "it was late again");
    }

    #[test]
    fn answers_count_and_silence_is_not_normal() {
        let (unanswered, silent) = ([(0, 100), (1, 5)], [(0, 0), (0, 0)]);
        assert_eq!(recovery(&[unanswered; 20]).time(), None);
        assert_eq!(recovery(&[silent; 20]).time(), None);
    }
}
