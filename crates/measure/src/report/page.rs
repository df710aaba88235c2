//! The page: its head, its style, and its parts in a row.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::escaped;
use super::plot::Plot;
use super::table::{Bars, Table};

/// The colors of both schemes, and the layout. Plots take their colors from here, too.
const STYLE: &str = "
:root { color-scheme: light dark; --back: #ffffff; --text: #1b1f24; --line: #d0d7de;
  --warn: #fff3cd; --c0: #0b5fff; --c1: #c2410c; --c2: #15803d; --c3: #7e22ce; --c4: #b91c1c;
  --c5: #0e7490; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e6e8ea; --line: #3a4047;
  --warn: #4a3a08; --c0: #7aa7ff; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc; --c4: #f87171;
  --c5: #22d3ee; } }
body { margin: 2rem auto; max-width: 76rem; padding: 0 1rem; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.warning { background: var(--warn); padding: .5rem 1rem; border-radius: .3rem; }
.bar { display: block; height: .8rem; background: var(--c0); min-width: 1px; }
td.bars { width: 20rem; }
figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; }
.key { display: inline-block; width: .8rem; height: .8rem; margin: 0 .4rem 0 1rem; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); }
.s3 { stroke: var(--c3); } .s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); }
.f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); }
.k0 { background: var(--c0); } .k1 { background: var(--c1); } .k2 { background: var(--c2); }
.k3 { background: var(--c3); } .k4 { background: var(--c4); } .k5 { background: var(--c5); }
";

/// A report.
#[derive(Clone, Debug)]
pub struct Page {
    title: String,
    body: String,
}

impl Page {
    /// A page with a title and nothing else.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self { title: escaped(title), body: String::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        self.body += &format!("<h2>{}</h2>\n", escaped(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.body += &format!("<p>{}</p>\n", escaped(text));
    }

    /// Adds a warning.
    pub fn warning(&mut self, text: &str) {
        self.body += &format!("<p class=\"warning\">Warning: {}</p>\n", escaped(text));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.body += &table.html();
    }

    /// Adds bars.
    pub fn bars(&mut self, bars: &Bars) {
        self.body += &bars.html();
    }

    /// Adds a plot, if it has a point.
    pub fn plot(&mut self, plot: &Plot) {
        self.body += &plot.html();
    }

    /// Adds the description of the machine: named values.
    pub fn machine<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, Value)>) {
        self.heading("Machine");
        let mut table = Table::new(["", "value"]);
        for (name, value) in fields {
            table.row([name.to_owned(), super::table::text(&value)]);
        }
        self.table(&table);
    }

    /// The page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let Self { title, body } = self;
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n</html>\n"
        )
    }
}

/// Replaces a file atomically: readers see the old text or the new one.
///
/// # Errors
/// If the file can't be written, with its path. The old one is left then.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let replaced = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    replaced.map_err(|error| {
        // It may not exist.
        let _ = fs::remove_file(&new);
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    })
}
