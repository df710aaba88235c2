//! CPU time of fields: what was sent of them is compared and written again, many times, by the code
//! that did it in the room.

use std::hint::black_box;
use std::time::Duration;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::tree::{Numbers, Tree};
use crate::leaf::{Atomic, Leaf};
use crate::lens::{Lens, Part, Step, Tracking};
use crate::quantized::Scale;
use crate::state::{Compare, Write};
use crate::walk::Plain;
use crate::{Bytes, Format, Map, PlayerId, Tracker};

/// The most samples that are kept of a place.
const SAMPLES_MAX: usize = 128;
/// The shortest batch.
const BATCH: Duration = Duration::from_micros(100);
/// A batch has no more runs.
const RUNS_MAX: u32 = 1 << 16;
/// The batches that are timed; the median counts.
const BATCHES: usize = 5;

/// The CPU time that a sync spends on a field, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FieldTime {
    /// Comparing its values with those of the last sync, once a sync.
    pub compare: f64,
    /// Writing it for all players, once a sync.
    pub shared: f64,
    /// Writing it for one player alone, for each player that is sent a patch.
    pub own: f64,
}

/// Values that were sent: one, or a column.
#[derive(Clone, Debug)]
struct Sample {
    bytes: Vec<u8>,
    column: Option<usize>,
}

/// Some of the values that were sent of each place.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    places: Vec<Vec<Sample>>,
    /// Values of each place, and one in how many is kept.
    seen: Vec<(u64, u64)>,
}

impl Samples {
    pub(super) fn new(places: usize) -> Self {
        Self { places: vec![Vec::new(); places], seen: vec![(0, 1); places] }
    }

    /// Keeps a sample, if it is its turn. When there are too many, every other is dropped.
    pub(super) fn add(&mut self, place: usize, bytes: &[u8], column: Option<usize>) {
        let (seen, every) = &mut self.seen[place];
        *seen += 1;
        if !seen.is_multiple_of(*every) {
            return;
        }
        let kept = &mut self.places[place];
        if kept.len() == SAMPLES_MAX {
            let mut at = 0;
            kept.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            *every *= 2;
        }
        kept.push(Sample { bytes: bytes.to_vec(), column });
    }
}

/// Times of one value of a place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ValueTime {
    /// Comparing a value that has changed.
    pub(super) changed: f64,
    /// Comparing a value that is the same.
    pub(super) same: f64,
    /// Writing it, in the groups in which it was sent.
    pub(super) write: f64,
}

/// A clock: the time since any moment.
pub(super) type Clock<'a> = &'a mut dyn FnMut() -> Duration;

/// The times of a value of each place. Without samples, and of types that are sent as a unit, they
/// are 0.
pub(super) fn of_values(tree: &Tree, samples: &Samples, clock: Clock<'_>) -> Vec<ValueTime> {
    let places = tree.places().iter().zip(&samples.places);
    let time = |(place, samples): (&super::tree::Place, &Vec<Sample>)| {
        // They were read before, by the same functions.
        let numbers = place.numbers.filter(|_| !samples.is_empty());
        numbers.and_then(|of| of_samples(of, samples, clock).ok()).unwrap_or_default()
    };
    places.map(time).collect()
}

fn of_samples(of: Numbers, samples: &[Sample], clock: Clock<'_>) -> Result<ValueTime, DecodeError> {
    match of {
        Numbers::Plain(Plain::Bool) => of_type::<bool>(samples, clock),
        Numbers::Plain(Plain::U8) => of_type::<u8>(samples, clock),
        Numbers::Plain(Plain::U16) => of_type::<u16>(samples, clock),
        Numbers::Plain(Plain::U32) => of_type::<u32>(samples, clock),
        Numbers::Plain(Plain::U64) => of_type::<u64>(samples, clock),
        Numbers::Plain(Plain::I8) => of_type::<i8>(samples, clock),
        Numbers::Plain(Plain::I16) => of_type::<i16>(samples, clock),
        Numbers::Plain(Plain::I32) => of_type::<i32>(samples, clock),
        Numbers::Plain(Plain::I64) => of_type::<i64>(samples, clock),
        Numbers::Plain(Plain::F32) => of_type::<f32>(samples, clock),
        Numbers::Plain(Plain::F64) => of_type::<f64>(samples, clock),
        Numbers::Plain(Plain::Text) => of_type::<String>(samples, clock),
        Numbers::Plain(Plain::Bytes) => of_type::<Bytes>(samples, clock),
        Numbers::Plain(Plain::Player) => of_type::<PlayerId>(samples, clock),
        Numbers::Plain(Plain::Unit) => Ok(ValueTime::default()),
        Numbers::Steps(scale) => {
            let (steps, times) = match scale.is_unsigned() {
                true => {
                    let groups = groups::<u64>(samples)?;
                    let steps = groups.iter().flatten().map(|steps| steps.cast_signed());
                    (steps.collect::<Vec<_>>(), of_groups(&groups, clock))
                }
                false => {
                    let groups = groups::<i64>(samples)?;
                    (groups.iter().flatten().copied().collect(), of_groups(&groups, clock))
                }
            };
            // The live value is a float, which is rounded before it is compared.
            let rounding = of_rounding(scale, &steps, clock);
            let ValueTime { changed, same, write } = times;
            Ok(ValueTime { changed: changed + rounding, same: same + rounding, write })
        }
    }
}

fn of_type<T: Atomic>(samples: &[Sample], clock: Clock<'_>) -> Result<ValueTime, DecodeError> {
    Ok(of_groups(&groups::<T>(samples)?, clock))
}

fn groups<T: Atomic>(samples: &[Sample]) -> Result<Vec<Vec<T>>, DecodeError> {
    let read = |Sample { bytes, column }: &Sample| {
        let mut reader = Reader::new(bytes);
        let mut group = Vec::new();
        match column {
            None => group.push(T::decode(&mut reader)?),
            Some(count) => T::get_column(&mut reader, *count, |_, value| group.push(value))?,
        }
        Ok(group)
    };
    samples.iter().map(read).collect()
}

/// The times of one value among these.
fn of_groups<T: Atomic>(groups: &[Vec<T>], clock: Clock<'_>) -> ValueTime {
    let values = |groups: &[Vec<T>]| groups.iter().flatten().cloned().collect::<Vec<_>>();
    let mut one = values(groups);
    let count = one.len();
    if count == 0 {
        return ValueTime::default();
    }
    // Each is compared with another value that was sent.
    let mut other = one.clone();
    other.rotate_left(groups[0].len() % count);
    let mut shadows: Vec<Leaf<T>> = other.iter_mut().map(|value| value.bind(1)).collect();
    let step = Step { now: 2, tracking: Tracking::On };
    let per_value = |time: f64| time / count as f64;
    let compare = |live: &mut [T], shadows: &mut [Leaf<T>]| {
        for (value, shadow) in live.iter_mut().zip(shadows) {
            black_box(value.diff(shadow, step));
        }
    };
    let mut is_other = true;
    let changed = per_value(timed(clock, &mut || {
        let live = if is_other { &mut one } else { &mut other };
        is_other = !is_other;
        compare(live, &mut shadows);
    }));
    let mut last = if is_other { other } else { one };
    let same = per_value(timed(clock, &mut || compare(&mut last, &mut shadows)));
    let mut written: Vec<Vec<Leaf<T>>> = groups.iter().cloned().map(bound).collect();
    let lens = Lens::new(Part::Shared, PlayerId(0), 1, 2);
    let mut out = Vec::new();
    let write = per_value(timed(clock, &mut || {
        for group in &mut written {
            out.clear();
            match &group[..] {
                [one] => {
                    T::write_patch(one, lens, &mut out);
                }
                group => T::write_columns(group.len(), |place| &group[place], 1, lens, &mut out),
            }
            black_box(&out);
        }
    }));
    ValueTime { changed, same, write }
}

fn bound<T: Atomic>(values: Vec<T>) -> Vec<Leaf<T>> {
    values.into_iter().map(|mut value| value.bind(1)).collect()
}

fn of_rounding(scale: Scale, steps: &[i64], clock: Clock<'_>) -> f64 {
    let values: Vec<f64> = steps.iter().map(|steps| scale.value(*steps)).collect();
    let time = timed(clock, &mut || {
        for value in &values {
            black_box(scale.steps(black_box(*value)));
        }
    });
    time / values.len().max(1) as f64
}

/// The time of a map itself with so many changed entries, at a sync: finding them, and writing their
/// slots. It is that of a map of bytes, without these.
pub(super) fn of_map(changed: usize, clock: Clock<'_>) -> (f64, f64) {
    if changed == 0 {
        return (0.0, 0.0);
    }
    let mut map: Map<u64, u8> = (0..changed as u64).map(|key| (key, 0)).collect();
    let mut tracker = Tracker::new(&mut map, Tracking::On);
    let mut body = Vec::new();
    let mut value = 0_u8;
    let (mut compares, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..64 {
        value = value.wrapping_add(1);
        for (_, entry) in &mut map {
            *entry = value;
        }
        let began = clock();
        tracker.sync(&mut map);
        let synced = clock();
        body.clear();
        tracker.patch(PlayerId(1), tracker.version() - 1, Format::Packed, &mut body);
        compares.push(nanoseconds(synced.saturating_sub(began)));
        writes.push(nanoseconds(clock().saturating_sub(synced)));
    }
    let bytes = of_groups(&[vec![1_u8; changed], vec![2_u8; changed]], clock);
    let own = |times: Vec<f64>, value: f64| (median(times) - value * changed as f64).max(0.0);
    (own(compares, bytes.changed), own(writes, bytes.write))
}

/// The time of copying a body of so many bytes to one player.
pub(super) fn of_copy(bytes: usize, clock: Clock<'_>) -> f64 {
    let body = vec![7_u8; bytes];
    let mut out = Vec::with_capacity(bytes);
    timed(clock, &mut || {
        out.clear();
        out.extend_from_slice(black_box(&body));
        black_box(&out);
    })
}

/// The time of one run, in nanoseconds: the median of some batches.
fn timed(clock: Clock<'_>, run: &mut dyn FnMut()) -> f64 {
    run();
    let batch = |clock: Clock<'_>, run: &mut dyn FnMut()| {
        let began = clock();
        let mut runs = 0_u32;
        loop {
            run();
            runs += 1;
            let took = clock().saturating_sub(began);
            // A clock that stands still must not hold this up.
            if took >= BATCH || runs >= RUNS_MAX {
                return nanoseconds(took) / f64::from(runs);
            }
            // The clock's own time must not count: few looks at it.
            for _ in 0..runs.min(64) {
                run();
                runs += 1;
            }
        }
    };
    median((0..BATCHES).map(|_| batch(&mut *clock, &mut *run)).collect())
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}
