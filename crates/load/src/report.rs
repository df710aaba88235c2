//! The measurements of a load, as a table or as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::counts::Counts;
use crate::engine::Outcome;
use crate::settings::Settings;
use crate::timings::{AllTimings, Timings};

/// The percentiles of JSON: the ends of their names, and the percentages.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0), ("p999", 99.9)];

/// The most processes named that ended early.
const ENDED_EARLY_MAX: usize = 3;

/// The measurements of a load.
#[derive(Clone, Debug)]
pub struct Report {
    settings: Settings,
    processes: usize,
    outcome: Outcome,
}

impl Report {
    pub(crate) fn new(settings: &Settings, processes: usize, outcome: Outcome) -> Self {
        Self { settings: settings.clone(), processes, outcome }
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.outcome.counts
    }

    /// Problems, and how often each occurred.
    #[must_use]
    pub fn problems(&self) -> &BTreeMap<String, u64> {
        &self.outcome.problems
    }

    /// Returns the times that things took, by name: `connect`, `join`, `ping`, `lateness` of
    /// patches, the `interval` between those of a room, `delivery` of publications, `reply` to any
    /// message. `None` if nothing has this name.
    #[must_use]
    pub fn timings(&self, name: &str) -> Option<&Timings> {
        let index = AllTimings::NAMES.iter().position(|known| *known == name)?;
        Some(self.outcome.timings.named()[index])
    }

    /// The trouble, in one sentence; `None` if every answer came and every copy was right.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let Counts { begun, .. } = self.outcome.counts;
        let missing =
            self.settings.connections as u64 - begun.min(self.settings.connections as u64);
        let missing = (missing > 0).then(|| format!("{missing} connections were not opened"));
        let Outcome { ended_early, .. } = &self.outcome;
        let parts: Vec<_> = ended_early
            .iter()
            .take(ENDED_EARLY_MAX)
            .cloned()
            .chain([missing, self.outcome.counts.trouble()].into_iter().flatten())
            .collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Prints tables for people.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Outcome { counts, timings, problems, connect_s, load_s, .. } = &self.outcome;
        let Settings { url, connections, .. } = &self.settings;
        writeln!(out, "node         {}", url.authority)?;
        write!(
            out,
            "connections  {} of {connections} in {connect_s:.2} s ({:.0}/s)",
            counts.connected,
            rate(counts.connected, *connect_s)
        )?;
        listed(out, &[(counts.failed, "failed"), (counts.lost, "lost")])?;
        if counts.joined + counts.joins_refused > 0 {
            write!(out, "rooms        {} joined", counts.joined)?;
            listed(out, &[(counts.joins_refused, "refused"), (counts.removed, "removed")])?;
        }
        if counts.sent + counts.unsent > 0 {
            write!(
                out,
                "messages     {} sent in {load_s:.2} s ({:.0}/s): {} requests, {} replies",
                counts.sent,
                rate(counts.sent, *load_s),
                counts.requests,
                counts.replies
            )?;
            listed(
                out,
                &[
                    (counts.refused + counts.sends_refused, "refused"),
                    (counts.abandoned, "abandoned"),
                    (counts.unanswered, "unanswered"),
                    (counts.unsent, "due and not sent"),
                ],
            )?;
        }
        if counts.subscribed + counts.subscriptions_refused + counts.publications > 0 {
            let Counts { subscribed, publications, deliveries, .. } = counts;
            write!(
                out,
                "channels     {subscribed} subscribed, {publications} publications ({:.0}/s), \
                 {deliveries} deliveries ({:.0}/s)",
                rate(*publications, *load_s),
                rate(*deliveries, *load_s)
            )?;
            listed(
                out,
                &[
                    (counts.presences, "of presence"),
                    (counts.subscriptions_refused, "refused"),
                    (counts.unsubscribed, "ended"),
                    (counts.publications_lost, "publications LOST"),
                    (counts.deliveries_lost, "LOST"),
                    (counts.deliveries_late, "not there at the end"),
                    (counts.deliveries_repeated, "REPEATED"),
                    (counts.deliveries_out_of_order, "OUT OF ORDER"),
                ],
            )?;
        }
        if counts.registered + counts.registrations_refused > 0 {
            let Counts { registered, reports, commands, answers, .. } = counts;
            write!(
                out,
                "devices      {registered} registered, {reports} reports ({:.0}/s), \
                 {commands} commands, {answers} answers",
                rate(*reports, *load_s)
            )?;
            listed(out, &[(counts.registrations_refused, "refused")])?;
        }
        if counts.snapshots > 0 {
            write!(
                out,
                "state        {} snapshots, {} patches ({:.0}/s), {} digests compared",
                counts.snapshots,
                counts.patches,
                rate(counts.patches, connect_s + load_s),
                counts.compared
            )?;
            listed(out, &[(counts.events, "events"), (counts.wrong, "WRONG")])?;
        }
        writeln!(
            out,
            "bytes        {} in, {} out",
            bytes(counts.bytes_in),
            bytes(counts.bytes_out)
        )?;
        print_timings(timings, out)?;
        if !problems.is_empty() {
            writeln!(out, "\nproblems")?;
            for (text, count) in problems {
                writeln!(out, "{count:>8}  {text}")?;
            }
        }
        Ok(())
    }

    /// One object, for programs. Times are in milliseconds, as in `reply_ms_p99`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Outcome { counts, timings, problems, connect_s, load_s, .. } = &self.outcome;
        let mut object = Map::new();
        let mut add = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
        add("node", self.settings.url.authority.as_str().into());
        add("transport", self.transport().into());
        add("processes", self.processes.into());
        add("connections", self.settings.connections.into());
        add("connect_s", rounded(*connect_s));
        add("connect_per_s", rounded(rate(counts.connected, *connect_s)));
        add("load_s", rounded(*load_s));
        add("sent_per_s", rounded(rate(counts.sent, *load_s)));
        for (name, value) in Counts::NAMES.iter().zip(counts.values()) {
            add(name, value.into());
        }
        for (name, timings) in AllTimings::NAMES.into_iter().zip(timings.named()) {
            if timings.count() > 0 {
                add(&format!("{name}_ms_mean"), rounded(timings.mean_ms()));
                for (end, percent) in PERCENTILES {
                    add(&format!("{name}_ms_{end}"), rounded(timings.percentile_ms(percent)));
                }
                add(&format!("{name}_ms_max"), rounded(timings.max_ms()));
            }
        }
        let messages = timings.messages.iter().map(|(name, timings)| {
            let mut row = Map::new();
            row.insert("replies".into(), timings.count().into());
            row.insert("ms_mean".into(), rounded(timings.mean_ms()));
            for (end, percent) in PERCENTILES {
                row.insert(format!("ms_{end}"), rounded(timings.percentile_ms(percent)));
            }
            row.insert("ms_max".into(), rounded(timings.max_ms()));
            (name.clone(), Value::Object(row))
        });
        add("messages", Value::Object(messages.collect()));
        add("problems", json!(problems));
        add("verified", self.trouble().is_none().into());
        Value::Object(object)
    }

    fn transport(&self) -> &'static str {
        match (self.settings.url.web_socket.is_some(), self.settings.url.is_secure) {
            (false, false) => "tcp",
            (false, true) => "tls",
            (true, false) => "ws",
            (true, true) => "wss",
        }
    }
}

fn print_timings(timings: &AllTimings, out: &mut dyn Write) -> io::Result<()> {
    let named = AllTimings::NAMES.into_iter().zip(timings.named());
    let each = timings.messages.iter().map(|(name, timings)| (name.as_str(), timings));
    let each = each.filter(|_| timings.messages.len() > 1);
    let rows: Vec<_> = named.chain(each).filter(|(_, timings)| timings.count() > 0).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(11);
    write!(out, "\n{:<width$} ", "ms")?;
    for head in ["count", "mean", "p50", "p95", "p99", "p99.9", "max"] {
        write!(out, "{head:>10} ")?;
    }
    writeln!(out)?;
    for (name, timings) in rows {
        write!(out, "{name:<width$} {:>10} ", timings.count())?;
        let at = |percent| timings.percentile_ms(percent);
        for ms in [timings.mean_ms(), at(50.0), at(95.0), at(99.0), at(99.9), timings.max_ms()] {
            write!(out, "{ms:>10.3} ")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Ends a line with what is not zero.
fn listed(out: &mut dyn Write, parts: &[(u64, &str)]) -> io::Result<()> {
    for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
        write!(out, ", {count} {what}")?;
    }
    writeln!(out)
}

fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// More than three decimals would be noise.
fn rounded(value: f64) -> Value {
    json!((value * 1e3).round() / 1e3)
}

fn bytes(count: u64) -> String {
    match count as f64 {
        count if count >= 1e9 => format!("{:.2} GB", count / 1e9),
        count if count >= 1e6 => format!("{:.2} MB", count / 1e6),
        count => format!("{:.1} kB", count / 1e3),
    }
}
