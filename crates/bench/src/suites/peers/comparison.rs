//! A row: what ours and theirs took for a work, round by round.

use serde_json::Value;

use crate::harness::report::Record;

/// The only unit where higher is better.
pub(super) const MORE_IS_BETTER: &str = "rooms";

/// Values that only some works have. The others have them as nothing, so that tables can ask for
/// them whatever was installed.
const OPTIONAL: [&str; 9] = [
    "row",
    "bytes",
    "window",
    "players",
    "scenario",
    "hands",
    "compressed_to",
    "bytes_ours",
    "bytes_theirs",
];

/// A work of ours and of one peer, in several rounds.
pub(super) struct Comparison {
    pub(super) peer: String,
    pub(super) version: String,
    pub(super) work: String,
    /// The unit of the figures. Lower is better, except for [`MORE_IS_BETTER`].
    pub(super) unit: &'static str,
    /// A figure for each round.
    pub(super) ours: Vec<f64>,
    pub(super) theirs: Vec<f64>,
    /// The cost of what no program can do without; nothing where there is none.
    pub(super) baseline: Vec<f64>,
    /// Other values of the row.
    pub(super) more: Vec<(&'static str, Value)>,
    /// Says whether everything that either has read or written was as it should be.
    pub(super) is_verified: bool,
}

impl Comparison {
    /// The row. Its ratio is how many times better ours is, in the same round.
    pub(super) fn record(self) -> Record {
        let is_more_better = self.unit == MORE_IS_BETTER;
        let rounds = self.theirs.iter().zip(&self.ours);
        let ratios: Vec<f64> = rounds
            .map(|(theirs, ours)| if is_more_better { ours / theirs } else { theirs / ours })
            .collect();
        let mut record = Record::of("peers")
            .with("peer", self.peer)
            .with("peer_version", self.version)
            .with("work", self.work)
            .median("ours", self.ours)
            .median("theirs", self.theirs);
        if !self.baseline.is_empty() {
            record = record.median("baseline", self.baseline);
        }
        record = record.with("unit", self.unit).median("ratio", ratios);
        for name in OPTIONAL {
            if self.more.iter().all(|(other, _)| *other != name) {
                record = record.with(name, Value::Null);
            }
        }
        for (name, value) in self.more {
            record = record.with(name, value);
        }
        record.with("verified", self.is_verified)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, MORE_IS_BETTER};

    fn of(unit: &'static str) -> String {
        let comparison = Comparison {
            peer: "theirs".into(),
            version: "1.0".into(),
            work: "a work".into(),
            unit,
            ours: vec![1.0, 10.0, 2.0],
            theirs: vec![2.0, 40.0, 6.0],
            baseline: Vec::new(),
            more: vec![("bytes", 8.into())],
            is_verified: true,
        };
        comparison.record().line()
    }

    #[test]
    fn a_ratio_is_of_the_same_round_and_says_how_much_better_ours_is() {
        let line = of("ns");
        for expected in [
            r#""ratio":3.0,"ratio_min":2.0,"ratio_max":4.0,"#,
            r#""players":null,"#,
            r#""bytes":8,"verified":true"#,
        ] {
            assert!(line.contains(expected), "{expected} is not in {line}");
        }
        assert!(!line.contains("baseline"), "{line}");
        let line = of(MORE_IS_BETTER);
        assert!(line.contains(r#""ratio":0.333,"ratio_min":0.25,"ratio_max":0.5"#), "{line}");
    }
}
