//! Records of what was measured, printed as rows of a table or as lines of JSON.

use std::io::{self, Write};

use playfield_cli::options::Failure;
use serde_json::Value;

use super::process::Finished;
use super::reports::Reports;
use super::stats::Samples;

/// Named values, in insertion order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Vec<(String, Value)>);

impl Record {
    /// Starts the record of a suite.
    pub(crate) fn of(suite: &str) -> Self {
        Self::default().with("suite", suite)
    }

    /// Adds a value.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        debug_assert!(self.get(name).is_none(), "two values are named {name}");
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Adds named values.
    #[must_use]
    pub(crate) fn with_all(self, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        fields.into_iter().fold(self, |record, (name, value)| record.with(name, value))
    }

    /// Adds a measurement, rounded to three decimals. More digits would be noise.
    #[must_use]
    pub(crate) fn measured(self, name: &str, value: f64) -> Self {
        self.with(name, (value * 1e3).round() / 1e3)
    }

    /// Adds the median of rounds, and the least and the largest of them. Nothing was measured in a
    /// round whose figure is NaN.
    #[must_use]
    pub(crate) fn median(self, name: &str, figures: impl IntoIterator<Item = f64>) -> Self {
        let figures = figures.into_iter().filter(|figure| !figure.is_nan());
        let figures = Samples::new(figures.collect());
        let at = |percent| if figures.is_empty() { f64::NAN } else { figures.percentile(percent) };
        self.measured(name, at(50.0))
            .measured(&format!("{name}_min"), at(0.0))
            .measured(&format!("{name}_max"), at(100.0))
    }

    /// Formats the record as JSON on one line, without a line ending.
    pub(crate) fn line(&self) -> String {
        let member =
            |(name, value): &(String, Value)| format!("{}:{value}", Value::from(name.as_str()));
        let members: Vec<String> = self.0.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }
}

/// A column: its heading, and the name of the value in it.
pub(crate) type Column = (&'static str, &'static str);

/// The minimum column width, so that figures don't touch.
const WIDTH_MIN: usize = 8;

/// A suite's output: rows of a table, or lines of JSON that also describe the machine.
pub(crate) struct Report<'a> {
    out: &'a mut dyn Write,
    is_json: bool,
    columns: &'static [Column],
    reports: &'a mut Reports,
    is_wrong: bool,
    unmeasured: Vec<String>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(is_json: bool, reports: &'a mut Reports, out: &'a mut dyn Write) -> Self {
        Self { out, is_json, columns: &[], reports, is_wrong: false, unmeasured: Vec::new() }
    }

    /// Begins a table, or the first lines of JSON. The first table of all calibrates the machine.
    pub(crate) fn begin(&mut self, columns: &'static [Column]) -> io::Result<()> {
        self.columns = columns;
        self.reports.begin_table(columns);
        if self.is_json { Ok(()) } else { self.print(|(head, _)| (*head).to_owned()) }
    }

    /// Prints a record. The run is wrong if the record is not `verified`.
    pub(crate) fn add(&mut self, record: Record) -> io::Result<()> {
        self.is_wrong |= record.get("verified") == Some(&Value::Bool(false));
        self.add_line(&record.line())
    }

    /// Keeps a record for files of results, without printing it: other rows say the same.
    pub(crate) fn keep(&mut self, record: &Record) {
        self.reports.keep(&record.line());
    }

    /// Prints the record of a child process.
    pub(crate) fn add_finished(&mut self, child: &Finished) -> io::Result<()> {
        self.is_wrong |= !child.is_verified;
        self.add_line(&child.line)
    }

    /// Prints a row of a table without keeping it as a result.
    pub(crate) fn add_value(&mut self, record: &Value) -> io::Result<()> {
        self.reports.show(record);
        self.print(|(_, name)| cell(&record[*name]))
    }

    /// Keeps a row for the page, without printing it.
    pub(crate) fn show(&mut self, row: &Value) {
        self.reports.show(row);
    }

    /// Keeps and prints a record, by its line of JSON.
    fn add_line(&mut self, line: &str) -> io::Result<()> {
        let line = self.reports.keep(line);
        let record: Value = serde_json::from_str(&line)?;
        if self.is_json {
            self.reports.show(&record);
            return self.text(&line);
        }
        self.add_value(&record)
    }

    /// Prints a line as it is.
    pub(crate) fn text(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")?;
        self.out.flush()
    }

    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Something was wrong that no record says.
    pub(crate) fn wrong(&mut self, is_wrong: bool) {
        self.is_wrong |= is_wrong;
    }

    /// A row could not be measured.
    pub(crate) fn unmeasured(&mut self, why: String) {
        self.unmeasured.push(why);
    }

    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.unmeasured.join("; ") {
            _ if self.is_wrong => Err(Failure::Unverified),
            none if none.is_empty() => Ok(()),
            unmeasured => Err(Failure::Unmeasured(unmeasured)),
        }
    }

    fn print(&mut self, cell: impl Fn(&Column) -> String) -> io::Result<()> {
        for column in self.columns {
            write!(self.out, "{:>width$} ", cell(column), width = column.0.len().max(WIDTH_MIN))?;
        }
        self.text("")
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::Bool(yes) => (if *yes { "yes" } else { "NO" }).into(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn a_median_stands_between_the_least_and_the_largest_of_rounds() {
        let record = Record::of("a").median("us", [3.0, f64::NAN, 1.0, 2.5]).median("ms", []);
        let (us, ms) = (r#""us":2.5,"us_min":1.0,"us_max":3.0"#, r#""ms":null,"ms_min":null"#);
        assert!(record.line().contains(us) && record.line().contains(ms), "{}", record.line());
    }

    #[test]
    fn a_line_keeps_the_order_and_three_decimals() {
        let record = Record::of("a \"b\"").with("count", 3).measured("us", 1.234_56);
        assert_eq!(record.line(), r#"{"suite":"a \"b\"","count":3,"us":1.235}"#);
    }
}
