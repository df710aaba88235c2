//! Prints records as rows of a table, or as lines of JSON.

use std::io::{self, Write};

use serde_json::Value;

use crate::{Machine, Record};

/// A column: its heading, and the name of the value in it.
pub(crate) type Column = (&'static str, &'static str);

/// A suite's output: rows of a table, or lines of JSON that also describe the machine.
pub(crate) struct Report {
    table: Option<Table>,
    machine: Machine,
}

impl Report {
    /// Prints the heading, if there is one.
    pub(crate) fn begin(
        columns: &'static [Column],
        json: bool,
        out: &mut dyn Write,
    ) -> io::Result<Self> {
        Self::of(columns, json, Machine::describe(), out)
    }

    /// As [`begin`](Self::begin), for a machine that was described before.
    pub(crate) fn of(
        columns: &'static [Column],
        json: bool,
        machine: Machine,
        out: &mut dyn Write,
    ) -> io::Result<Self> {
        let table = if json { None } else { Some(Table::begin(columns, out)?) };
        Ok(Self { table, machine })
    }

    /// Prints one record.
    pub(crate) fn add(&self, record: Record, out: &mut dyn Write) -> io::Result<()> {
        match &self.table {
            Some(table) => table.row(&serde_json::from_str(&record.line())?, out),
            None => writeln!(out, "{}", self.machine.add_to(record).line()),
        }
    }
}

/// Prints rows as they arrive.
pub(crate) struct Table {
    columns: &'static [Column],
}

/// The minimum column width, so that figures don't touch.
const WIDTH_MIN: usize = 8;

impl Table {
    /// Prints the heading.
    pub(crate) fn begin(columns: &'static [Column], out: &mut dyn Write) -> io::Result<Self> {
        let table = Self { columns };
        table.print(columns.iter().map(|(head, _)| (*head).to_owned()), out)?;
        Ok(table)
    }

    /// Prints one row.
    pub(crate) fn row(&self, record: &Value, out: &mut dyn Write) -> io::Result<()> {
        self.print(self.columns.iter().map(|(_, name)| cell(&record[*name])), out)
    }

    fn print(&self, cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
        for (cell, (head, _)) in cells.zip(self.columns) {
            write!(out, "{cell:>width$} ", width = head.len().max(WIDTH_MIN))?;
        }
        writeln!(out)?;
        out.flush()
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
