//! The plots of a report, each from the rows of a suite, where there are any.

use std::collections::BTreeMap;

use playfield_measure::report::{Bars, Page, Plot, Scale, Series};
use serde_json::{Map, Value};

/// A record with all its values.
type Row = Map<String, Value>;

/// Adds all plots that these rows have points for: the records, and the rows that were printed, by
/// suite.
pub(super) fn add(page: &mut Page, kept: &[Row], shown: &[(&str, &Value)]) {
    page.heading("Plots");
    page.plot(&sync(kept));
    page.plot(&intervals(shown));
    page.plot(&throughput(kept));
    page.plot(&memory(kept));
    page.plot(&percentiles(kept));
    ratios(page, kept);
}

fn sync(rows: &[Row]) -> Plot {
    let mut plot = Plot::new("Time of a sync over players", "players", "µs, p50");
    let plain = |row: &&Row| {
        let is = |name: &str, value: &str| text(row, name) == value;
        is("format", "packed") && is("tracking", "on") && number(row, "hands") == Some(0.2)
    };
    let rows = of_suite(rows, "sync").filter(plain);
    plot.series = series(rows.filter_map(|row| {
        let name = format!("{} {}", text(row, "workload"), text(row, "scenario"));
        Some((name, (number(row, "players")?, number(row, "sync_us_p50")?)))
    }));
    plot
}

fn intervals(shown: &[(&str, &Value)]) -> Plot {
    let mut plot = Plot::new("Interval of patches over rooms", "rooms", "ms, p99");
    let rows = shown.iter().filter(|(suite, _)| *suite == "rooms");
    plot.series = series(rows.filter_map(|(_, row)| {
        let name = row["peer"].as_str().unwrap_or("playfield").to_owned();
        Some((name, (row["rooms"].as_f64()?, row["interval_ms_p99"].as_f64()?)))
    }));
    // A search does not come by the sizes in order.
    plot.series.iter_mut().for_each(|series| series.is_line = false);
    plot
}

fn throughput(rows: &[Row]) -> Plot {
    let mut plot = Plot::new("Throughput over payload", "bytes of a message", "messages a second");
    plot.scales = [Scale::Logarithmic, Scale::Linear];
    let rows = of_suite(rows, "messages").chain(of_suite(rows, "echo"));
    let points = rows.flat_map(|row| {
        let suite = text(row, "suite");
        let way = way(row);
        let sides = [("ours", "messages_per_s"), ("baseline", "floor_messages_per_s")];
        sides.into_iter().filter_map(move |(side, name)| {
            let label = format!("{suite} {way}, {side}");
            Some((label, (number(row, "bytes")?, number(row, name)?)))
        })
    });
    plot.series = series(points);
    plot
}

fn memory(rows: &[Row]) -> Plot {
    let title = "Memory over connections";
    let mut plot = Plot::new(title, "connections", "MB of the node");
    let rows = of_suite(rows, "connections").chain(of_suite(rows, "heartbeat"));
    plot.series = series(rows.filter_map(|row| {
        let name = format!("{} {}", text(row, "suite"), text(row, "transport"));
        let (connected, each) =
            (number(row, "connected")?, number(row, "rss_bytes_per_connection")?);
        Some((name, (connected, connected * each / 1e6)))
    }));
    plot
}

/// The figures of a distribution, by the beginning of their names: milliseconds of one.
const DISTRIBUTIONS: [(&str, &str, f64); 4] = [
    ("heartbeat_rtt_ms", "ours", 1.0),
    ("floor_rtt_ms", "baseline", 1.0),
    ("rtt_us", "ours", 1e-3),
    ("floor_rtt_us", "baseline", 1e-3),
];
const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9)];

fn percentiles(rows: &[Row]) -> Plot {
    let mut plot = Plot::new("Round trips", "percentile", "ms");
    plot.scales = [Scale::Percentiles, Scale::Logarithmic];
    let points = rows.iter().flat_map(|row| {
        let way = format!("{} {}", text(row, "suite"), way(row));
        DISTRIBUTIONS.into_iter().flat_map(move |(start, side, ms)| {
            let label = format!("{way}, {side}");
            PERCENTILES.into_iter().filter_map(move |(end, percent)| {
                let value = number(row, &format!("{start}_{end}"))?;
                Some((label.clone(), (percent, value * ms)))
            })
        })
    });
    plot.series = series(points);
    plot
}

/// Ours against peers and baselines.
fn ratios(page: &mut Page, rows: &[Row]) {
    let mut peers = Bars::new("work, against", "times as fast as theirs");
    for row in of_suite(rows, "peers") {
        let label = format!("{}, {}", text(row, "work"), text(row, "peer"));
        peers.bar(&label, number(row, "ratio").unwrap_or(f64::NAN));
    }
    let mut baselines = Bars::new("suite", "rate, of the baseline's");
    for row in rows {
        let bytes = number(row, "bytes").map_or(String::new(), |bytes| format!(", {bytes} B"));
        let label = format!("{} {}{bytes}", text(row, "suite"), way(row));
        baselines.bar(&label, number(row, "floor_ratio").unwrap_or(f64::NAN));
    }
    for (heading, bars) in [("Ours against peers", peers), ("Ours against baselines", baselines)] {
        if !bars.is_empty() {
            page.heading(heading);
            page.bars(&bars);
        }
    }
}

/// The parameters of a row, but for its payload.
fn way(row: &Row) -> String {
    let texts = ["class", "mode", "transport"].map(|name| text(row, name).to_owned());
    let number = |name: &str| number(row, name).map_or(String::new(), |of| format!("{name} {of}"));
    let all = texts.into_iter().chain(["connections", "window"].map(number));
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
}

fn of_suite<'a>(rows: &'a [Row], suite: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| text(row, "suite") == suite)
}

/// Series by their names.
fn series(points: impl Iterator<Item = (String, (f64, f64))>) -> Vec<Series> {
    let mut named: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    points.for_each(|(name, point)| named.entry(name).or_default().push(point));
    named.into_iter().map(|(name, points)| Series::line(name, points)).collect()
}

fn text<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(row: &Row, name: &str) -> Option<f64> {
    row.get(name).and_then(Value::as_f64)
}
