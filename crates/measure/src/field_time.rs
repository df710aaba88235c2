//! The CPU time of syncs by field, from the probe of a node.

use playfield_state::{Beside, PlaceTime, Spent, SyncProbe};

use crate::run::Run;
use crate::samples::Samples;

/// The CPU time of a sync at a place, for all players, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldTime {
    /// Comparing it with what was last synced, and deciding who sees it.
    pub compare: f64,
    /// Writing what all players are sent alike.
    pub shared: f64,
    /// Writing what single players are sent.
    pub own: f64,
}

impl FieldTime {
    /// All of it.
    #[must_use]
    pub fn all(&self) -> f64 {
        self.compare + self.shared + self.own
    }
}

/// The CPU time of a field at a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldCpu {
    /// Its parts, in the median run.
    pub time: FieldTime,
    /// The difference of the runs, in nanoseconds.
    pub error: f64,
}

/// The CPU time of a sync in one run, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyncTime {
    /// Finding what has changed, as the node counts it, without what the probe takes.
    pub changes: f64,
    /// Making all players' patches, in the same way.
    pub patches: f64,
    /// Reading from sockets, decoding and handling all messages.
    pub receive: f64,
    /// Each field.
    pub fields: Vec<FieldTime>,
    /// The work beside the walk through the state.
    pub beside: [f64; Beside::ALL.len()],
}

impl SyncTime {
    /// Finding changes and making patches.
    #[must_use]
    pub fn whole(&self) -> f64 {
        self.changes + self.patches
    }

    /// The sum of all fields.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.fields.iter().map(FieldTime::all).sum()
    }

    /// The part of the whole that is neither a field's nor beside the walk.
    #[must_use]
    pub fn rest(&self) -> f64 {
        self.whole() - self.sum() - self.beside.iter().sum::<f64>()
    }
}

/// The run whose total is the median, and the time of each field in it with
/// the difference of the runs. `None` without runs.
pub(crate) fn median_run(mut runs: Vec<SyncTime>) -> Option<(SyncTime, Vec<FieldCpu>)> {
    runs.sort_by(|one, other| one.whole().total_cmp(&other.whole()));
    let median = runs.get(runs.len() / 2)?.clone();
    let field = |(at, time): (usize, &FieldTime)| {
        let all = runs.iter().filter_map(|run| run.fields.get(at)).map(FieldTime::all).collect();
        let all = Samples::new(all);
        FieldCpu { time: *time, error: all.percentile(100.0) - all.percentile(0.0) }
    };
    let fields = median.fields.iter().enumerate().map(field).collect();
    Some((median, fields))
}

/// The times that a node's probe has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeTimes {
    /// The time that a mark takes by itself, in picoseconds.
    mark_ps: u64,
    places: Vec<PlaceTime>,
}

/// Numbers of each place.
const NUMBERS: usize = 6;
const PS_PER_NS: f64 = 1000.0;

/// The numbers that a node reports of its probe, for [`ProbeTimes::read`].
pub(crate) fn probe_numbers(probe: &SyncProbe) -> Vec<u64> {
    let places = probe.places();
    let begin = [(probe.mark_ns() * PS_PER_NS) as u64, places.len() as u64];
    let numbers = places.iter().flat_map(|place| {
        let PlaceTime { compare, shared, own } = place;
        [compare, shared, own].into_iter().flat_map(|spent| [spent.ns, spent.marks])
    });
    begin.into_iter().chain(numbers).collect()
}

impl ProbeTimes {
    /// Reads the numbers of a node from the begin of these. Returns the others, too.
    pub(crate) fn read(numbers: &[u64]) -> Option<(Self, &[u64])> {
        let ([mark_ps, count], rest) = numbers.split_first_chunk()?;
        let count = usize::try_from(*count).ok()?;
        let (places, rest) = rest.split_at_checked(count.checked_mul(NUMBERS)?)?;
        let spent = |ns, marks| Spent { ns, marks };
        let place = |&[a, b, c, d, e, f]: &[u64; NUMBERS]| PlaceTime {
            compare: spent(a, b),
            shared: spent(c, d),
            own: spent(e, f),
        };
        let places = places.as_chunks::<NUMBERS>().0.iter().map(place).collect();
        Some((Self { mark_ps: *mark_ps, places }, rest))
    }

    /// The times since an earlier sample.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let less = |now: Spent, then: Spent| Spent {
            ns: now.ns.saturating_sub(then.ns),
            marks: now.marks.saturating_sub(then.marks),
        };
        let none = PlaceTime::default();
        let before = before.places.iter().chain(std::iter::repeat(&none));
        let places = self.places.iter().zip(before).map(|(now, then)| PlaceTime {
            compare: less(now.compare, then.compare),
            shared: less(now.shared, then.shared),
            own: less(now.own, then.own),
        });
        Self { mark_ps: self.mark_ps, places: places.collect() }
    }

    /// The times of a sync of a run, without what the probe took. `None` if there was no probe.
    pub(crate) fn of_run(&self, run: &Run) -> Option<SyncTime> {
        let (fields, beside) = self.places.split_last_chunk()?;
        let syncs = run.syncs.max(1) as f64;
        let mark_ns = self.mark_ps as f64 / PS_PER_NS;
        let taken = |marks: u64| marks as f64 * mark_ns / syncs;
        // A field that takes next to nothing may seem to take less.
        let net = |Spent { ns, marks }| (ns as f64 / syncs - taken(marks)).max(0.0);
        let marks = |of: fn(&PlaceTime) -> u64| taken(fields.iter().map(of).sum());
        let written = marks(|place| place.shared.marks + place.own.marks);
        let of_beside = taken(beside.iter().map(|place| place.compare.marks).sum());
        let per_sync = |part: &str| run.part(part) * 1e9 / syncs;
        let field = |place: &PlaceTime| FieldTime {
            compare: net(place.compare),
            shared: net(place.shared),
            own: net(place.own),
        };
        Some(SyncTime {
            changes: per_sync("changes") - marks(|place| place.compare.marks),
            patches: per_sync("patches") - written - of_beside,
            receive: per_sync("receive"),
            fields: fields.iter().map(field).collect(),
            beside: beside.map(|place| net(place.compare)),
        })
    }
}

#[cfg(test)]
mod tests {
    use playfield_state::{PlaceTime, Spent};

    use super::{FieldTime, ProbeTimes, SyncTime, median_run};

    fn run(changes: f64, own: f64) -> SyncTime {
        SyncTime {
            changes,
            patches: 50.0,
            fields: vec![FieldTime { compare: 5.0, shared: 10.0, own }],
            beside: [1.0; 4],
            ..SyncTime::default()
        }
    }

    #[test]
    fn the_run_with_the_median_stands_for_all_and_their_difference_is_the_error() {
        let (median, fields) =
            median_run(vec![run(40.0, 2.0), run(10.0, 9.0), run(20.0, 3.0)]).unwrap();
        assert_eq!(median, run(20.0, 3.0));
        assert_eq!((fields[0].time.all(), fields[0].error), (18.0, 7.0));
        assert_eq!((median.whole(), median.sum(), median.rest()), (70.0, 18.0, 48.0));
        assert_eq!(median_run(Vec::new()), None);
    }

    #[test]
    fn the_times_between_two_samples_are_read_from_numbers() {
        let spent = |ns, marks| Spent { ns, marks };
        let of = |numbers: &[u64]| ProbeTimes::read(numbers).unwrap().0;
        let then = of(&[25_000, 1, 1, 2, 3, 4, 5, 6]);
        let now = of(&[25_000, 1, 11, 12, 13, 14, 15, 16]);
        let since = now.since(&then);
        let all = spent(10, 10);
        assert_eq!(since.places, [PlaceTime { compare: all, shared: all, own: all }]);
        assert_eq!(now.since(&ProbeTimes::default()), now);
        assert_eq!(ProbeTimes::read(&[25_000, 2, 1, 2, 3, 4, 5, 6]), None);
        assert_eq!(ProbeTimes::read(&[25_000, 0, 7]).unwrap().1, [7]);
    }
}
