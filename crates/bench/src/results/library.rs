//! All recorded results, and the rows that a figure can mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::figure::{Ref, is_suite};
use super::file::{Results, Row};
use super::{FOLDER, at, error};

/// The records: the commands of each suite, and the results of those that have been recorded.
#[derive(Default)]
pub(super) struct Library {
    pub(super) commands: BTreeMap<String, Vec<String>>,
    pub(super) results: BTreeMap<String, Results>,
}

impl Library {
    /// Reads all files of a repository.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        let path = folder.join("suites.json");
        let text = fs::read_to_string(&path).map_err(at(path.display()))?;
        let commands = commands(&text).map_err(at(path.display()))?;
        let mut results = BTreeMap::new();
        for suite in commands.keys() {
            if let Some(read) = Results::read(&folder.join(format!("{suite}.json")))? {
                results.insert(suite.clone(), read);
            }
        }
        Ok(Self { commands, results })
    }

    /// The results of a suite; `None` if it has not been recorded.
    pub(super) fn of(&self, suite: &str) -> io::Result<Option<&Results>> {
        match self.commands.contains_key(suite) {
            true => Ok(self.results.get(suite)),
            false => Err(error(format!("suites.json has no suite {suite:?}"))),
        }
    }
}

/// Reads the commands of each suite.
fn commands(text: &str) -> io::Result<BTreeMap<String, Vec<String>>> {
    let commands: BTreeMap<String, Vec<String>> = serde_json::from_str(text)?;
    match commands.iter().find(|(suite, list)| !is_suite(suite) || list.is_empty()) {
        Some((suite, _)) => Err(error(format!("{suite:?}: a name and at least one command"))),
        None => Ok(commands),
    }
}

/// The place where the values of a figure are looked up.
pub(super) struct Scope<'a> {
    pub(super) library: &'a Library,
    /// The suite of values that name none.
    pub(super) suite: Option<&'a str>,
    /// The rows of values that name no suite; `None` for all of it.
    pub(super) group: Option<&'a [&'a Row]>,
}

impl<'a> Scope<'a> {
    /// The rows that a value can be in, for which its conditions hold.
    pub(super) fn rows<'b>(
        &'b self,
        value: &'b Ref,
    ) -> io::Result<Box<dyn Iterator<Item = &'a Row> + 'b>> {
        let suite = self.suite_of(value)?;
        let Some(results) = self.library.of(suite)? else { return Ok(Box::new([].into_iter())) };
        let field = (!value.is_optional).then_some(value.field.as_str());
        for name in value.conditions.names().chain(field) {
            check_name(results, name)?;
        }
        let holds = |row: &&'a Row| value.conditions.hold(row);
        Ok(match (self.group, &value.suite) {
            (Some(group), None) => Box::new(group.iter().copied().filter(holds)),
            _ => Box::new(results.rows.iter().filter(holds)),
        })
    }

    fn suite_of<'b>(&'b self, value: &'b Ref) -> io::Result<&'b str> {
        let suite = value.suite.as_deref().or(self.suite);
        suite.ok_or_else(|| error(format!("{}: of which suite?", value.field)))
    }

    /// Fails if two values can't be compared, as they were measured on different machines.
    pub(super) fn check_machine(&self, one: &Ref, other: &Ref) -> io::Result<()> {
        let (one, other) = (self.suite_of(one)?, self.suite_of(other)?);
        let machine = |suite: &str| {
            let machine = &self.library.results.get(suite)?.machine;
            Some(["cores", "cpu"].map(|name| machine.get(name)))
        };
        if machine(one) == machine(other) {
            return Ok(());
        }
        Err(error(format!("{one} and {other} were measured on different machines: record both")))
    }

    /// The suites that values are of.
    pub(super) fn suites<'b>(
        &'b self,
        values: impl Iterator<Item = &'b Ref>,
    ) -> io::Result<BTreeSet<String>> {
        values.map(|value| self.suite_of(value).map(str::to_owned)).collect()
    }
}

/// Fails if no row has a value of this name, which is then misspelled.
pub(super) fn check_name(results: &Results, name: &str) -> io::Result<()> {
    if results.rows.iter().any(|row| row.contains_key(name)) {
        return Ok(());
    }
    Err(error(format!("no row of {}.json has {name:?}", results.suite)))
}
