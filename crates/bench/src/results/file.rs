//! A file of results.

use std::fs;
use std::io;
use std::path::Path;

use playfield_measure::CALIBRATION_FIELDS;
use serde_json::{Map, Value, json};

use super::{at, error};

/// One measurement: named values.
pub(super) type Row = Map<String, Value>;

/// The version of printed rows, in their member `results`.
pub(crate) const VERSION: u64 = 1;

/// Members of a printed row that describe the machine and the build.
pub(super) const MACHINE: [&str; 6] = ["cores", "cpu", "kernel", "memory_mb", "profile", "version"];

/// Results of one recording of a suite, and how they were measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Results {
    pub(super) suite: String,
    /// The commit that was measured.
    pub(super) commit: String,
    /// Whether files differed from the commit.
    pub(super) is_changed: bool,
    /// The day in UTC, as 2026-11-24.
    pub(super) day: String,
    pub(super) machine: Row,
    /// The commands that printed the rows; none if the rows were printed before.
    pub(super) commands: Vec<String>,
    pub(super) rows: Vec<Row>,
}

impl Results {
    /// Reads a file; `None` if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Err(failed) if failed.kind() == io::ErrorKind::NotFound => Ok(None),
            text => Self::parse(&text?).map(Some).map_err(at(path.display())),
        }
    }

    fn parse(text: &str) -> io::Result<Self> {
        let whole: Value = serde_json::from_str(text)?;
        let of = |name: &str| whole[name].as_str().map(str::to_owned).ok_or(missing(name));
        let objects = |name: &str| whole[name].as_array().ok_or(missing(name));
        Ok(Self {
            suite: of("suite")?,
            commit: of("commit")?,
            is_changed: whole["changed"] == true,
            day: of("day")?,
            machine: whole["machine"].as_object().ok_or(missing("machine"))?.clone(),
            commands: objects("commands")?
                .iter()
                .map(|command| command.as_str().map(str::to_owned).ok_or(missing("commands")))
                .collect::<io::Result<_>>()?,
            rows: objects("rows")?
                .iter()
                .map(|row| row.as_object().cloned().ok_or(missing("rows")))
                .collect::<io::Result<_>>()?,
        })
    }

    /// Formats the file: a row is a line, so that two recordings can be compared.
    pub(super) fn text(&self) -> String {
        let lines = |lines: Vec<String>| match lines.is_empty() {
            true => "[]".to_owned(),
            false => format!("[\n    {}\n  ]", lines.join(",\n    ")),
        };
        let commands = self.commands.iter().map(|command| json!(command).to_string()).collect();
        let rows = self.rows.iter().map(|row| json!(row).to_string()).collect();
        format!(
            "{{\n  \"suite\": {},\n  \"commit\": {},\n  \"changed\": {},\n  \"day\": {},\n  \
             \"machine\": {},\n  \"commands\": {},\n  \"rows\": {}\n}}\n",
            json!(self.suite),
            json!(self.commit),
            self.is_changed,
            json!(self.day),
            json!(self.machine),
            lines(commands),
            lines(rows),
        )
    }

    /// Tells whether a figure can stand without a word on its origin: of a commit and an optimized
    /// build.
    pub(super) fn is_plain(&self) -> bool {
        !self.is_changed && !self.is_debug()
    }

    fn is_debug(&self) -> bool {
        self.machine.get("profile").is_some_and(|profile| profile == "debug")
    }

    /// Day, commit and machine, for people.
    pub(super) fn origin(&self) -> String {
        let value = |name: &str| self.machine.get(name).map_or(String::new(), plain);
        let mut origin = format!("{}, `{}`", self.day, self.commit);
        if self.is_changed {
            origin.push_str(" with changes");
        }
        if self.commands.is_empty() {
            origin.push_str(", printed before");
        }
        if self.is_debug() {
            origin.push_str(", debug build");
        }
        origin.push_str(&format!(", {} cores of {}", value("cores"), value("cpu")));
        origin
    }
}

/// Takes the machine out of printed rows, where it is the same in all; `machine` is that of the
/// process that records, for rows that do not say. Calibrations differ between commands: the result
/// has the middle speed, and the worst of all else.
pub(super) fn without_machine(rows: &mut [Row], machine: Row) -> io::Result<Row> {
    let mut found: Option<Row> = None;
    let mut calibrations = Vec::new();
    for row in rows {
        let mut take = |names: &[&str]| -> Row {
            let taken = names.iter().filter_map(|name| row.remove_entry(*name));
            taken.collect()
        };
        take(&["results"]);
        let of_row = take(&MACHINE);
        calibrations.push(take(&CALIBRATION_FIELDS));
        if of_row.is_empty() {
            continue;
        }
        match &found {
            Some(machine) if *machine != of_row => {
                return Err(error("the rows are of different machines or builds"));
            }
            _ => found = Some(of_row),
        }
    }
    let mut machine = found.unwrap_or(machine);
    machine.append(&mut combined(&calibrations));
    Ok(machine)
}

/// One calibration for several.
fn combined(calibrations: &[Row]) -> Row {
    let combine = |name: &str| {
        let values: Vec<&Value> = calibrations.iter().filter_map(|of| of.get(name)).collect();
        let mut numbers: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
        numbers.sort_by(f64::total_cmp);
        match name {
            "quiet" => values.iter().map(|value| value.as_bool()).min()?.map(Value::from),
            "calibration_us" => numbers.get(numbers.len() / 2).map(|number| json!(number)),
            _ => numbers.last().map(|number| json!(number)),
        }
    };
    let named = |name: &&str| combine(name).map(|value| ((*name).to_owned(), value));
    CALIBRATION_FIELDS.iter().filter_map(named).collect()
}

/// A value as text, without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn missing(name: &str) -> io::Error {
    error(format!("{name:?} is missing or of another type"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Results, Row, without_machine};

    fn row(value: Value) -> Row {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_file_that_was_written_is_read_as_it_was() {
        let results = Results {
            suite: "sync".into(),
            commit: "0123abcd".into(),
            is_changed: true,
            day: "2026-11-24".into(),
            machine: row(json!({"cores": 2, "cpu": "a \"fast\" one"})),
            commands: vec!["playfield-bench bench sync --json".into()],
            rows: vec![row(json!({"us": 1.25, "verified": true})), row(json!({"us": null}))],
        };
        assert_eq!(Results::parse(&results.text()).unwrap(), results);
        assert!(Results::parse("{}").unwrap_err().to_string().contains("\"suite\""));
    }

    #[test]
    fn the_machine_is_said_once_and_must_be_one() {
        let printed = |cores| row(json!({"us": 1, "cores": cores, "profile": "release"}));
        let own = row(json!({"cores": 8}));
        let mut rows = [printed(2), row(json!({"us": 2})), printed(2)];
        let machine = without_machine(&mut rows, own.clone()).unwrap();
        assert_eq!(machine, row(json!({"cores": 2, "profile": "release"})));
        assert_eq!(rows[0], row(json!({"us": 1})));
        assert!(without_machine(&mut [printed(2), printed(4)], own.clone()).is_err());
        assert_eq!(without_machine(&mut [row(json!({"us": 2}))], own.clone()).unwrap(), own);
    }

    #[test]
    fn calibrations_of_several_commands_become_one() {
        let printed = |us, steal, quiet| {
            row(json!({
                "us": 1, "cores": 2, "calibration_us": us, "noise": 0.02, "load": null,
                "steal": steal, "quiet": quiet,
            }))
        };
        let mut rows = [printed(200.0, 0.0, true), printed(230.0, 0.07, false)];
        rows[1]["noise"] = json!(0.1);
        let machine = without_machine(&mut rows, Row::new()).unwrap();
        let expected = json!({
            "cores": 2, "calibration_us": 230.0, "noise": 0.1, "steal": 0.07, "quiet": false,
        });
        assert_eq!(machine, row(expected));
        assert_eq!(rows[0], row(json!({"us": 1})));
    }
}
