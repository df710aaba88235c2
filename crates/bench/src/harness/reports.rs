//! The reports of all suites that a command runs: their rows, for files of results.

use std::io;
use std::path::Path;

use playfield_measure::Calibration;
use playfield_measure::report::{Page, Table, replace, swift_state_tree};
use serde_json::{Map, Value};

use super::machine::Machine;
use super::plots;
use super::report::Column;
use crate::results::VERSION;

/// The rows of all suites so far, and the machine, calibrated when the first table begins.
#[derive(Debug)]
pub struct Reports {
    machine: Machine,
    /// The first calibration, and that of the row that was kept last.
    calibration: Option<Calibration>,
    last: Option<Calibration>,
    is_warned: bool,
    suite: &'static str,
    tables: Vec<Shown>,
    /// Records as lines of JSON, with the machine.
    lines: Vec<String>,
}

/// A table as it was printed.
#[derive(Debug)]
struct Shown {
    suite: &'static str,
    columns: &'static [Column],
    rows: Vec<Value>,
}

impl Reports {
    /// Describes the machine: a process that is pinned to a core can't see the others.
    #[must_use]
    pub fn begin() -> Self {
        Self {
            machine: Machine::describe(),
            calibration: None,
            last: None,
            is_warned: false,
            suite: "",
            tables: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// Warns on standard error if the machine was not quiet during the run, unless it was said.
    pub fn end(&mut self) {
        if let Some(trouble) = self.trouble().filter(|_| !self.is_warned) {
            eprintln!("warning: {trouble}");
            self.is_warned = true;
        }
    }

    /// Writes all tables and plots as an HTML page, and the rows beside it, as lines of JSON.
    ///
    /// # Errors
    /// If a file can't be written. The old one is left then.
    pub fn write(&self, page: &Path) -> io::Result<()> {
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        replace(&page.with_extension("jsonl"), &lines)?;
        replace(page, &self.page().html())
    }

    pub(crate) fn begin_suite(&mut self, name: &'static str) {
        self.suite = name;
    }

    /// Begins a table. The first calibrates the machine.
    pub(crate) fn begin_table(&mut self, columns: &'static [Column]) {
        if self.calibration.is_none() {
            self.calibration = Some(Calibration::measure(&self.machine));
            self.last = self.calibration;
            self.end();
        }
        self.tables.push(Shown { suite: self.suite, columns, rows: Vec::new() });
    }

    /// Keeps a row of the table that was begun last.
    pub(crate) fn show(&mut self, row: &Value) {
        if let Some(table) = self.tables.last_mut() {
            table.rows.push(row.clone());
        }
    }

    /// Keeps a record, a line of JSON. Returns it with the machine and its speed now.
    pub(crate) fn keep(&mut self, record: &str) -> String {
        let calibrations = self.calibration.zip(self.last);
        self.last = calibrations.map(|(first, last)| first.again(last.us));
        let members = self.fields(self.last).map(|(name, value)| format!(",\"{name}\":{value}"));
        let members: String = members.collect();
        let line = format!("{}{members}}}", record.strip_suffix('}').unwrap_or(record));
        self.lines.push(line.clone());
        line
    }

    /// The version of rows, the machine, the build, and a calibration with the time stolen so far.
    fn fields(
        &self,
        calibration: Option<Calibration>,
    ) -> impl Iterator<Item = (&'static str, Value)> + use<> {
        let calibration = calibration.map(|calibration| calibration.now().fields());
        let version = [("results", VERSION.into())];
        let machine = self.machine.fields().into_iter();
        version.into_iter().chain(machine).chain(calibration.into_iter().flatten())
    }

    fn trouble(&self) -> Option<String> {
        self.calibration.and_then(|calibration| calibration.now().trouble())
    }

    fn page(&self) -> Page {
        let mut page = Page::new("Benchmarks of Playfield");
        self.trouble().iter().for_each(|trouble| page.warning(trouble));
        page.machine(self.fields(self.calibration).filter(|(name, _)| *name != "results"));
        let kept = self.lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        let kept: Vec<Map<String, Value>> = kept.collect();
        let shown: Vec<(&str, &Value)> =
            self.tables.iter().flat_map(|of| of.rows.iter().map(|row| (of.suite, row))).collect();
        plots::add(&mut page, &kept, &shown);
        for Shown { suite, columns, rows } in &self.tables {
            page.heading(suite);
            let has_value = |(_, name): &&Column| rows.iter().any(|row| !row[*name].is_null());
            let columns: Vec<&Column> = columns.iter().filter(has_value).collect();
            let mut table = Table::new(columns.iter().map(|(head, _)| *head));
            rows.iter().for_each(|row| table.values(columns.iter().map(|(_, name)| &row[*name])));
            page.table(&table);
        }
        page.heading("Others' figures");
        let (table, source) = swift_state_tree();
        page.paragraph(source);
        page.table(&table);
        page
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::Reports;
    use crate::harness::report::{Column, Record, Report};

    const COLUMNS: &[Column] = &[("players", "players"), ("us", "sync_us_p50"), ("none", "none")];

    fn record(players: u32, us: f64) -> Record {
        Record::of("sync")
            .with("workload", "swift")
            .with("scenario", "A")
            .with("format", "packed")
            .with("tracking", "on")
            .with("players", players)
            .with("hands", 0.2)
            .with("note", "a < b")
            .measured("sync_us_p50", us)
            .with("verified", true)
    }

    #[test]
    fn a_page_has_the_figures_of_the_rows_beside_it_and_the_plots_of_its_suites() {
        let folder = std::env::temp_dir().join(format!("playfield-page-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (mut reports, mut out) = (Reports::begin(), Vec::new());
        reports.begin_suite("sync");
        let mut report = Report::new(false, &mut reports, &mut out);
        report.begin(COLUMNS).expect("it is printed");
        report.add(record(10, 1.25)).expect("it is printed");
        report.add(record(30, 4.375)).expect("it is printed");
        report.end().expect("it is verified");
        let page = folder.join("bench.html");
        reports.write(&page).expect("it is written");

        let html = fs::read_to_string(&page).expect("a page");
        let lines = fs::read_to_string(folder.join("bench.jsonl")).expect("rows");
        let rows: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(rows.len(), 2);
        for row in &rows {
            let (players, us) = (&row["players"], &row["sync_us_p50"]);
            let cells = format!("<td class=\"n\">{players}</td><td class=\"n\">{us}</td></tr>");
            assert!(html.contains(&cells), "{cells}");
            assert_eq!((&row["results"], &row["suite"]), (&json!(1), &json!("sync")));
            assert!(row["calibration_us"].as_f64() > Some(0.0) && row["quiet"].is_boolean());
        }
        assert!(html.contains("Time of a sync over players") && html.contains("swift A"));
        assert_eq!(html.matches("<svg ").count(), 1, "no other suite has run");
        fs::remove_dir_all(&folder).expect("the folder is gone");
    }
}
