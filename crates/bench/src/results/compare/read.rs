//! Rows of a file: lines that suites printed with `--json`, or a recorded file.

use std::fs;
use std::path::Path;

use playfield_measure::machine::CPU_FIELDS;
use playfield_measure::{CALIBRATION_FIELDS, Conditions};
use serde_json::Value;

use super::kind::Kind;
use crate::results::file::{Row, VERSION, plain};

/// A row, and the machine that it was measured on.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) suite: String,
    pub(super) row: Row,
    machine: Row,
}

impl Measured {
    /// The calibration; `None` if the machine was not calibrated.
    pub(super) fn conditions(&self) -> Option<Conditions> {
        Conditions::read(&self.machine())
    }

    /// The machine, the kind of build and the calibration.
    pub(super) fn machine(&self) -> Value {
        let names = CPU_FIELDS.iter().chain(&CALIBRATION_FIELDS);
        let known = names.filter_map(|name| Some(((*name).to_owned(), self.member(name)?.clone())));
        Value::Object(known.collect())
    }

    /// The build profile.
    pub(super) fn profile(&self) -> Option<&Value> {
        self.member("profile")
    }

    fn member(&self, name: &str) -> Option<&Value> {
        self.row.get(name).or_else(|| self.machine.get(name))
    }

    /// The parameters, by name.
    pub(super) fn parameters(&self) -> Vec<(&str, String)> {
        self.row
            .iter()
            .filter(|(name, _)| Kind::of(&self.suite, name, &self.row) == Kind::Parameter)
            .map(|(name, value)| (name.as_str(), plain(value)))
            .collect()
    }
}

/// Reads a file. An error is a sentence that begins with the file, and the line if there is one.
pub(super) fn read(path: &Path) -> Result<Vec<Measured>, String> {
    let file = path.display();
    let bytes = fs::read(path).map_err(|error| format!("{file}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: it is not text"))?;
    parse(&text).map_err(|(line, why)| match line {
        0 => format!("{file}: {why}"),
        line => format!("{file}:{line}: {why}"),
    })
}

/// A line, from 1; or 0 if none is at fault. And why.
type Fault = (usize, String);

fn parse(text: &str) -> Result<Vec<Measured>, Fault> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    let Some(first) = first else { return Err((0, "the file is empty".into())) };
    // A recorded file begins with a brace alone, printed lines with a whole object.
    let rows = match serde_json::from_str::<Value>(first) {
        Ok(value) if value.get("rows").is_none() => printed(text)?,
        Err(_) if first != "{" => printed(text)?,
        _ => recorded(text)?,
    };
    match rows.is_empty() {
        true => Err((0, "it has no rows".into())),
        false => Ok(rows),
    }
}

fn printed(text: &str) -> Result<Vec<Measured>, Fault> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let number = number + 1;
            let value = serde_json::from_str(line)
                .map_err(|error| (number, format!("the line is cut or not JSON: {error}")))?;
            measured(value, None, &Row::new()).map_err(|why| (number, why))
        })
        .collect()
}

fn recorded(text: &str) -> Result<Vec<Measured>, Fault> {
    let whole: Value = serde_json::from_str(text)
        .map_err(|error| (error.line(), format!("the file is cut or not JSON: {error}")))?;
    let suite = whole["suite"].as_str();
    let (Some(rows), Some(machine)) = (whole["rows"].as_array(), whole["machine"].as_object())
    else {
        return Err((1, "it is no recorded result: it has no rows or no machine".into()));
    };
    // Each row is a line, after that of their name.
    let before = text.lines().position(|line| line.trim_start().starts_with("\"rows\""));
    let line = |at: usize| before.map_or(0, |before| before + 2 + at);
    let rows = rows.iter().enumerate();
    rows.map(|(at, row)| measured(row.clone(), suite, machine).map_err(|why| (line(at), why)))
        .collect()
}

fn measured(value: Value, suite: Option<&str>, machine: &Row) -> Result<Measured, String> {
    let Value::Object(row) = value else { return Err("a row must be an object".into()) };
    let version = row.get("results").or_else(|| machine.get("results"));
    if let Some(other) = version.filter(|version| **version != VERSION) {
        return Err(format!("it is of version {other}, and this program reads {VERSION}"));
    }
    let Some(suite) = row.get("suite").and_then(Value::as_str).or(suite) else {
        return Err("it is no result of `bench --json`: it names no suite".into());
    };
    if row.get("verified") == Some(&Value::Bool(false)) {
        return Err("the row is not verified, so its figures mean nothing".into());
    }
    let suite = suite.to_owned();
    Ok(Measured { suite, row, machine: machine.clone() })
}

#[cfg(test)]
mod tests {
    use playfield_measure::machine::is_same;

    use super::parse;

    const LINE: &str = r#"{"suite":"sync","players":30,"cores":2,"us":1.5,"verified":true}"#;

    #[test]
    fn printed_lines_and_recorded_files_have_the_same_rows() {
        let printed = parse(&format!("{LINE}\n\n{LINE}\n")).unwrap();
        let file = "{\n  \"suite\": \"sync\",\n  \"machine\": {\"cores\":2},\n  \"rows\": [\n    \
                    {\"players\":30,\"us\":1.5,\"verified\":true},\n    {\"players\":40}\n  ]\n}\n";
        let recorded = parse(file).unwrap();
        assert_eq!((printed.len(), recorded.len()), (2, 2));
        assert!(is_same(&printed[0].machine(), &recorded[0].machine()));
        assert_eq!(printed[0].parameters(), recorded[0].parameters());
        assert_eq!(printed[0].suite, recorded[0].suite);
    }

    #[test]
    fn a_file_that_is_no_result_says_why_and_in_which_line() {
        let cut = &LINE[..LINE.len() - 9];
        let unverified = LINE.replace("true", "false");
        let recorded = "{\n \"suite\": \"sync\",\n \"machine\": {},\n \"rows\": [\n ";
        for (text, line, why) in [
            ("", 0, "empty"),
            ("\n \n", 0, "empty"),
            (&format!("{LINE}\n{cut}"), 2, "the line is cut"),
            (cut, 1, "the line is cut"),
            (recorded, 5, "the file is cut"),
            (&format!("{recorded}]}}"), 0, "no rows"),
            (&format!("{recorded}{unverified}]}}"), 5, "not verified"),
            ("{\n \"a\": 1\n}", 1, "no recorded result"),
            (&format!("{LINE}\n[1]"), 2, "must be an object"),
            (r#"{"capacity":1}"#, 1, "no result of `bench --json`"),
            (r#"{"suite":"sync","results":2}"#, 1, "version 2, and this program reads 1"),
        ] {
            let (at, said) = parse(text).unwrap_err();
            assert!(at == line && said.contains(why), "{text}: {at}: {said}");
        }
    }
}
