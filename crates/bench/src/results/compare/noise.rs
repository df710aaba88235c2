//! The noise of a figure of two rows.

use playfield_measure::Conditions;
use serde_json::Value;

use super::kind::{Figure, Kind, TAILS, Unit};
use crate::results::file::Row;

/// The noise of a machine that was not calibrated.
pub(super) const UNKNOWN_NOISE: f64 = 0.1;

/// Two rows with the same parameters.
pub(super) struct Pair<'a> {
    pub(super) suite: &'a str,
    /// The earlier row and the later one.
    pub(super) rows: [&'a Row; 2],
    /// The calibrations of their machines, if both were calibrated.
    pub(super) conditions: Option<(Conditions, Conditions)>,
    pub(super) is_same_machine: bool,
}

/// The range of a figure in the rounds of a row, as parts of the figure.
#[derive(Clone, Copy)]
struct Range {
    under: f64,
    over: f64,
}

impl Pair<'_> {
    /// The noise of a figure, as a part: a change beyond it is real. The later figure is multiplied
    /// by `scale` before.
    pub(super) fn noise(&self, name: &str, figure: Figure, scale: f64) -> f64 {
        let of_rounds = self.of_rounds(name, scale).filter(|noise| *noise > 0.0);
        let known =
            of_rounds.unwrap_or_else(|| self.of_machine(figure.unit).max(self.of_row(figure)));
        figure.noise.max(known).max(self.of_drift(figure.unit))
    }

    /// The noise below which the ranges of the rounds overlap.
    fn of_rounds(&self, name: &str, scale: f64) -> Option<f64> {
        let [before, now] = self.rows.map(|row| Some((number(row, name)?, range(row, name)?)));
        let ((before, of_before), (now, of_now)) = before.zip(now)?;
        let change = now * scale / before;
        let (of_before, of_now) = match change > 1.0 {
            true => (of_before.over, of_now.under),
            false => (of_before.under, of_now.over),
        };
        Some(of_before + of_now * change)
    }

    /// The widest range of the other times and rates, for one that has none: of saturated work, a
    /// round trip varies as the rate does.
    fn of_row(&self, figure: Figure) -> f64 {
        let is_timed = |unit| matches!(unit, Unit::Time | Unit::Rate);
        if !is_timed(figure.unit) {
            return 0.0;
        }
        let [before, now] = self.rows;
        let widths = now.keys().filter_map(|name| match Kind::of(self.suite, name, now) {
            Kind::Figure(other) if is_timed(other.unit) && !is_tail(name) => {
                Some(range(before, name)?.width() + range(now, name)?.width())
            }
            _ => None,
        });
        widths.fold(0.0, f64::max)
    }

    /// The noise that the calibrations measured.
    fn of_machine(&self, unit: Unit) -> f64 {
        match (unit, self.conditions) {
            (Unit::Memory | Unit::Amount, _) => 0.0,
            (_, Some((before, now))) => before.noise.max(now.noise),
            (_, None) => UNKNOWN_NOISE,
        }
    }

    /// The change of the speed of one machine. Figures of two machines are scaled by it.
    fn of_drift(&self, unit: Unit) -> f64 {
        match (unit, self.conditions) {
            (Unit::Time | Unit::Rate, Some((before, now))) if self.is_same_machine => {
                before.drift_to(now)
            }
            _ => 0.0,
        }
    }
}

impl Range {
    fn width(self) -> f64 {
        self.under.max(self.over)
    }
}

fn is_tail(name: &str) -> bool {
    TAILS.iter().any(|end| name.ends_with(end))
}

fn range(row: &Row, name: &str) -> Option<Range> {
    let value = number(row, name).filter(|value| *value > 0.0)?;
    let at = |end: &str| number(row, &format!("{name}{end}"));
    let low = at("_min").or_else(|| at("_low"))?;
    let high = at("_max").or_else(|| at("_high"))?;
    let [under, over] = [value - low, high - value].map(|side| side.max(0.0) / value);
    Some(Range { under, over })
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}
