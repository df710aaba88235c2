//! The meaning of a value of a row, by its name: a parameter, a figure, or neither.

use playfield_measure::{BYTES_NOISE, Better, CALIBRATION_FIELDS, CPU_NOISE, MEMORY_NOISE};
use serde_json::Value;

use crate::results::file::{MACHINE, Row};

/// Numbers that are parameters. All other parameters are texts.
const PARAMETERS: [&str; 23] = [
    "attackers",
    "bytes",
    "cards",
    "changed",
    "changes",
    "connections",
    "count",
    "entities",
    "hands",
    "heartbeats_asked",
    "hz_nominal",
    "moving",
    "players",
    "publications_per_s",
    "rate",
    "requests",
    "rooms",
    "round",
    "sessions",
    "shards",
    "size",
    "subscribers",
    "window",
];

/// Parameters of other suites that this suite counts, or derives from what fits.
const COUNTED: [(&str, &str); 3] =
    [("attacks", "connections"), ("http", "requests"), ("overload", "rooms")];

/// Texts that are results or remarks.
const REMARKS: [&str; 14] = [
    "baseline_limit",
    "best",
    "chromium",
    "colyseus_limit",
    "effect",
    "failure",
    "goal",
    "limit",
    "node",
    "package_version",
    "peer_version",
    "plain_limit",
    "python",
    "says",
];

/// Ratios, and the direction in which they are better. Those of `ratio` differ between suites.
const RATIOS: [(&str, Better); 13] = [
    ("connect_ratio", Better::More),
    ("cpu_of_bare", Better::Less),
    ("floor_ratio", Better::More),
    ("floor_ratio_cpu", Better::More),
    ("of_function", Better::Less),
    ("of_memcpy", Better::More),
    ("p99_ratio", Better::Less),
    ("rate_of_bare", Better::More),
    ("ratio_to_colyseus", Better::More),
    ("ratio_to_plain", Better::More),
    ("ratio_without_connection", Better::More),
    ("server_us_of_bare", Better::Less),
    ("server_us_ratio", Better::Less),
];

/// The least and the largest of rounds, parts of a distribution that say how wide it is, and
/// differences of two figures that are compared themselves.
const RANGES: [&str; 10] =
    ["_min", "_max", "_low", "_high", "_p25", "_p75", "_least", "_most", "_growth", "_more"];
/// The ends of a distribution, which vary more than its middle.
pub(super) const TAILS: [&str; 3] = ["_p95", "_p99", "_p999"];
/// The change of the end of a distribution that is noise if nobody knows better.
const TAIL_NOISE: f64 = 0.25;

/// Figures of baselines and of other projects: how they change says something of the machine.
const OTHERS: [&str; 10] = [
    "attack_",
    "bare_",
    "baseline_",
    "colyseus_",
    "floor_",
    "gauge_",
    "guest_",
    "mutate_plain_",
    "plain_",
    "others_",
];

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Parameter,
    Figure(Figure),
    Neither,
}

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// A smaller change is noise on every machine, as a part.
    pub(super) noise: f64,
}

/// The quantity of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A time, which is shorter on a faster machine.
    Time,
    /// Work per time: a faster machine does more.
    Rate,
    /// The quotient of two, or a time that a clock sets.
    Ratio,
    /// Memory: the same on every machine, but what waits on a busy one takes some.
    Memory,
    /// Bytes or instructions, which no machine changes.
    Amount,
}

impl Kind {
    /// The meaning of a value of a row.
    pub(super) fn of(suite: &str, name: &str, row: &Row) -> Self {
        if MACHINE.contains(&name) || CALIBRATION_FIELDS.contains(&name) {
            return Self::Neither;
        }
        match row.get(name) {
            Some(Value::String(_)) if name != "suite" && !REMARKS.contains(&name) => {
                Self::Parameter
            }
            Some(Value::Number(_)) if PARAMETERS.contains(&name) => {
                if COUNTED.contains(&(suite, name)) { Self::Neither } else { Self::Parameter }
            }
            Some(Value::Number(_)) => figure(suite, name, row).map_or(Self::Neither, Self::Figure),
            _ => Self::Neither,
        }
    }
}

fn figure(suite: &str, name: &str, row: &Row) -> Option<Figure> {
    if RANGES.iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let of = |unit, better, noise| Some(Figure { unit, better, noise });
    if let Some(better) = ratio(suite, name, row) {
        return of(Unit::Ratio, better, CPU_NOISE);
    }
    let is_other = OTHERS.iter().any(|start| name.starts_with(start))
        || ["_theirs", "_baseline", "_plain"].iter().any(|end| name.ends_with(end))
        || ["baseline", "theirs"].contains(&name);
    if is_other {
        return None;
    }
    if ["ours", "tls"].contains(&name) {
        return by_unit(row.get("unit")?.as_str()?);
    }
    let words: Vec<&str> = name.split('_').collect();
    let has = |word: &str| words.contains(&word);
    let tail = if TAILS.iter().any(|end| name.ends_with(end)) { TAIL_NOISE } else { CPU_NOISE };
    let is_rate = has("second") || words.windows(2).any(|words| words == ["per", "s"]);
    if is_rate || name == "max_rooms" {
        // Of the program's own load, or of an attack, more is not better.
        return (!["heartbeats_per_s", "answer_mb_per_second"].contains(&name)).then_some(Figure {
            unit: Unit::Rate,
            better: Better::More,
            noise: CPU_NOISE,
        });
    }
    if words[0] == "hz" {
        return of(Unit::Ratio, Better::More, CPU_NOISE);
    }
    if has("interval") {
        return of(Unit::Ratio, Better::Less, tail);
    }
    if ["us", "ns", "ms"].into_iter().any(has) || words.last() == Some(&"s") {
        return of(Unit::Time, Better::Less, tail);
    }
    if ["rss", "resident", "mb", "heap", "session", "connection", "pair"].into_iter().any(has) {
        return of(Unit::Memory, Better::Less, MEMORY_NOISE);
    }
    if has("bytes") || has("instructions") {
        return of(Unit::Amount, Better::Less, BYTES_NOISE);
    }
    None
}

/// The direction in which a ratio is better; `None` if it is none.
fn ratio(suite: &str, name: &str, row: &Row) -> Option<Better> {
    if name != "ratio" {
        return RATIOS.iter().find(|(of, _)| *of == name).map(|(_, better)| *better);
    }
    match suite {
        "peers" | "jwt" => Some(Better::More),
        "rooms" if row.contains_key("max_rooms") => Some(Better::More),
        "rooms" | "python" => Some(Better::Less),
        // That of `tls` has another direction in each row: its `tls` says the same.
        _ => None,
    }
}

/// A figure whose unit another value of the row says.
fn by_unit(unit: &str) -> Option<Figure> {
    let is = |start: &str| unit.starts_with(start);
    let (unit, better, noise) = match unit {
        _ if is("bytes") => (Unit::Memory, Better::Less, MEMORY_NOISE),
        _ if is("µs") || is("us") || is("ns") || is("ms") => (Unit::Time, Better::Less, CPU_NOISE),
        _ => return None,
    };
    Some(Figure { unit, better, noise })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Better, Kind, Unit};

    #[test]
    fn a_name_says_what_a_value_is() {
        let value = json!({
            "suite": "rooms", "workload": "swift", "players": 30, "hands": 0.2, "compared": 7,
            "sync_us_p50": 1.0, "sync_us_p99": 9.0, "us_per_send": 2.0, "us_per_send_max": 3.0,
            "messages_per_s": 8.0, "bytes_per_patch": 518.0, "rss_mb": 20.0, "ratio": 0.9,
            "baseline_us_per_send": 1.0, "interval_ms_p99": 51.0, "settled_s": 2.0,
            "verified": true, "limit": "140 rooms", "tls": 3.0, "unit": "us a patch",
        });
        let row = value.as_object().unwrap();
        let kind = |name: &str| Kind::of("rooms", name, row);
        let figure = |name: &str| match kind(name) {
            Kind::Figure(figure) => (figure.unit, figure.better, figure.noise),
            other => panic!("{name} is {other:?}"),
        };
        for name in ["workload", "players", "hands"] {
            assert_eq!(kind(name), Kind::Parameter, "{name}");
        }
        for name in ["compared", "us_per_send_max", "baseline_us_per_send", "verified", "limit"] {
            assert_eq!(kind(name), Kind::Neither, "{name}");
        }
        for name in ["sync_us_p50", "us_per_send", "settled_s", "tls"] {
            assert_eq!(figure(name), (Unit::Time, Better::Less, 0.05), "{name}");
        }
        assert_eq!(figure("sync_us_p99"), (Unit::Time, Better::Less, 0.25));
        assert_eq!(figure("interval_ms_p99"), (Unit::Ratio, Better::Less, 0.25));
        assert_eq!(figure("messages_per_s"), (Unit::Rate, Better::More, 0.05));
        assert_eq!(figure("bytes_per_patch"), (Unit::Amount, Better::Less, 0.02));
        assert_eq!(figure("rss_mb"), (Unit::Memory, Better::Less, 0.1));
        assert_eq!(figure("ratio"), (Unit::Ratio, Better::Less, 0.05));
        let more = Kind::of("peers", "ratio", row);
        assert!(matches!(more, Kind::Figure(figure) if figure.better == Better::More));
    }
    #[test]
    fn what_one_suite_counts_may_be_a_parameter_of_another() {
        let value = json!({ "connections": 1000, "requests": 5000, "rooms": 80 });
        let kind = |suite, name| Kind::of(suite, name, value.as_object().unwrap());
        for (suite, name) in [("attacks", "connections"), ("http", "requests")] {
            assert_eq!(kind(suite, name), Kind::Neither, "{suite}: {name}");
        }
        assert_eq!(kind("http", "connections"), Kind::Parameter);
        assert_eq!(kind("overload", "rooms"), Kind::Neither);
    }
}
