//! The CPU time of fields, of several rounds.

use playfield_state::{FieldTime, StateTime};

use crate::samples::Samples;

/// The CPU time of a field at a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldCpu {
    /// Its parts.
    pub time: FieldTime,
    /// All of it, for all players, in nanoseconds.
    pub per_sync: f64,
    /// The difference of the rounds, in nanoseconds.
    pub error: f64,
}

/// The CPU time of each field, and of copying what all are sent to one player, from several rounds.
/// `players` are sent a patch at a sync.
pub(crate) fn fields_cpu(rounds: &[StateTime], players: f64) -> (Vec<FieldCpu>, f64) {
    let median = |of: &dyn Fn(&StateTime) -> f64| {
        let samples = Samples::new(rounds.iter().map(of).collect());
        (samples.percentile(50.0), samples.percentile(100.0) - samples.percentile(1.0))
    };
    let count = rounds.first().map_or(0, |round| round.fields.len());
    let field = |at: usize| {
        let part = |of: fn(&FieldTime) -> f64| median(&|round| of(&round.fields[at])).0;
        let sum = |time: &FieldTime| time.compare + time.shared + time.own * players;
        let (per_sync, error) = median(&|round| sum(&round.fields[at]));
        let time = FieldTime {
            compare: part(|time| time.compare),
            shared: part(|time| time.shared),
            own: part(|time| time.own),
        };
        FieldCpu { time, per_sync, error }
    };
    ((0..count).map(field).collect(), median(&|round| round.copy).0)
}

#[cfg(test)]
mod tests {
    use playfield_state::{FieldTime, StateTime};

    use super::fields_cpu;

    #[test]
    fn the_median_of_the_rounds_counts_and_their_difference_is_the_error() {
        let round = |compare: f64, copy: f64| StateTime {
            fields: vec![FieldTime { compare, shared: 5.0, own: 2.0 }],
            copy,
        };
        let (fields, copy) =
            fields_cpu(&[round(10.0, 3.0), round(40.0, 1.0), round(12.0, 2.0)], 4.0);
        assert_eq!((fields.len(), copy), (1, 2.0));
        assert_eq!((fields[0].per_sync, fields[0].error), (25.0, 30.0));
        assert_eq!(fields_cpu(&[], 4.0), (Vec::new(), 0.0));
    }
}
