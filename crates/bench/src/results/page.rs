//! Blocks of documents that are made from recorded results.
//!
//! A block begins with a comment and ends with `<!-- end -->`; what lies between is rewritten. The
//! comment has a heading, and lines with figures (`figure.rs`) in braces:
//!
//! ```text
//! <!-- table worlds
//! | world | by function, ms | by place, ms |
//! for worlds by row
//! | {row} | {sync_ms[by=function]} | {sync_ms[by=place]} |
//! -->
//! ```
//!
//! - `table` has a row of headings first, and says last when and where its figures were measured.
//!   A line without recorded figures is left out.
//! - `text` has neither. If a figure is missing, or of a debug build or of no commit, all of it is left
//!   out.
//! - `goals` is the table of goals that are missed, of the goals in `goals.json`.
//!
//! A missing figure is shown as a dash; a part in `[[` and `]]` without recorded figures is left
//! out. `for SUITE`, `for SUITE[CONDITIONS]` and `for SUITE by NAME, NAME` repeat the lines after
//! them, for each row or for the rows that have these values in common; with `for maybe SUITE` there
//! may be no such row. Lines before are written once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::figure::{Conditions, Figure, Ref};
use super::file::{Results, Row, plain};
use super::goals::Goals;
use super::library::{Library, Scope, check_name};
use super::{at, error};

const BEGIN: &str = "<!-- ";
const SHUT: &str = "-->";
/// The beginning of a line that repeats those after it.
const FOR: &str = "for ";
const END: &str = "<!-- end -->";

/// Rewrites the blocks of all documents of a repository. Returns the documents that changed.
///
/// # Errors
/// A file can't be read or written, or a block is wrong.
pub fn update(root: &Path) -> io::Result<Vec<PathBuf>> {
    let pages = made(root)?;
    let changed: Vec<_> = pages.into_iter().filter(|page| page.now != page.new).collect();
    for page in &changed {
        fs::write(root.join(&page.path), &page.new)?;
    }
    Ok(changed.into_iter().map(|page| page.path).collect())
}

/// The blocks that differ from the results, each by its document and line.
///
/// # Errors
/// A file can't be read, or a block is wrong.
pub fn differing(root: &Path) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for page in made(root)? {
        all.extend(page.differing.iter().map(|line| format!("{}:{line}", page.path.display())));
    }
    Ok(all)
}

/// A document as it is, and as it should be.
struct Page {
    path: PathBuf,
    now: String,
    new: String,
    /// The lines where blocks begin that are not as they should be.
    differing: Vec<usize>,
}

/// Makes all documents that can have blocks.
fn made(root: &Path) -> io::Result<Vec<Page>> {
    let library = Library::read(root)?;
    let goals = Goals::read(root)?;
    let mut paths = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root.join("docs"))? {
        let name = entry?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            paths.push(Path::new("docs").join(name));
        }
    }
    paths.sort();
    let page = |path: PathBuf| {
        let now = fs::read_to_string(root.join(&path))?;
        let (new, differing) = remade(&now, &library, &goals).map_err(at(path.display()))?;
        Ok(Page { path, now, new, differing })
    };
    paths.into_iter().map(page).collect()
}

/// Makes the blocks of a document. Returns it with the lines of blocks that were different.
fn remade(text: &str, library: &Library, goals: &Goals) -> io::Result<(String, Vec<usize>)> {
    let mut new = String::with_capacity(text.len());
    let mut differing = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        new.push_str(line);
        new.push('\n');
        let Some(kind) = Kind::of(line) else { continue };
        let place = number + 1;
        let mut template = Vec::new();
        let mut old = String::new();
        if !line.ends_with(SHUT) {
            for (_, line) in lines.by_ref() {
                new.push_str(line);
                new.push('\n');
                if line == SHUT {
                    break;
                }
                template.push(line);
            }
        }
        let is_ended = lines.by_ref().map(|(_, line)| line).any(|line| {
            if line != END {
                old.push_str(line);
                old.push('\n');
            }
            line == END
        });
        if !is_ended {
            return Err(error(format!("line {place}: the block has no {END}")));
        }
        let block = Block { kind, library, template };
        let made = block.made(goals).map_err(at(format_args!("line {place}")))?;
        if made != old {
            differing.push(place);
        }
        new.push_str(&made);
        new.push_str(END);
        new.push('\n');
    }
    Ok((new, differing))
}

/// The first line of a block.
enum Kind<'a> {
    Table(Option<&'a str>),
    Text(Option<&'a str>),
    Goals,
}

impl<'a> Kind<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.strip_prefix(BEGIN)?.trim_end_matches(SHUT).split_whitespace();
        match (words.next()?, words.next(), words.next()) {
            ("table", suite, None) => Some(Self::Table(suite)),
            ("text", suite, None) => Some(Self::Text(suite)),
            ("goals", None, None) => Some(Self::Goals),
            _ => None,
        }
    }
}

struct Block<'a> {
    kind: Kind<'a>,
    library: &'a Library,
    template: Vec<&'a str>,
}

impl Block<'_> {
    /// Makes what is between the comment and the end.
    fn made(&self, goals: &Goals) -> io::Result<String> {
        match self.kind {
            Kind::Table(suite) => self.table(suite),
            Kind::Text(suite) => self.text(suite),
            Kind::Goals => goals.table(self.library),
        }
    }

    fn text(&self, suite: Option<&str>) -> io::Result<String> {
        let lines = self.lines(suite, &self.template)?;
        let is_plain = |suite| self.library.results.get(suite).is_some_and(Results::is_plain);
        if lines.iter().any(|line| !line.is_whole || !line.suites.iter().all(is_plain)) {
            return Ok(String::new());
        }
        let found = lines.into_iter().filter(|line| line.is_found);
        Ok(found.map(|line| line.text + "\n").collect())
    }

    fn table(&self, suite: Option<&str>) -> io::Result<String> {
        let Some((heading, template)) = self.template.split_first() else {
            return Err(error("a table has a row of headings"));
        };
        let columns = heading.matches('|').count();
        let written = template.iter().filter(|line| !line.starts_with(FOR));
        if let Some(wrong) = written.into_iter().find(|line| line.matches('|').count() != columns) {
            return Err(error(format!("{wrong:?} has other columns than the headings")));
        }
        let lines = self.lines(suite, template)?;
        let rows: String = lines
            .iter()
            .filter(|line| line.is_found)
            .map(|line| line.text.clone() + "\n")
            .collect();
        let suites: BTreeSet<String> = lines.into_iter().flat_map(|line| line.suites).collect();
        let origins = origins(&suites, self.library);
        if rows.is_empty() {
            return Ok(origins);
        }
        Ok(format!("{heading}\n|{}\n{rows}\n{origins}", "---|".repeat(columns - 1)))
    }

    fn lines(&self, suite: Option<&str>, template: &[&str]) -> io::Result<Vec<Line>> {
        let mut lines = Vec::new();
        let mut each: Option<Each<'_>> = None;
        for text in template {
            if let Some(rest) = text.strip_prefix(FOR) {
                let new = Each::parse(rest, self.library)?;
                // Names the suite, even if no line follows.
                lines.push(Line::empty(new.suite, new.results.is_some()));
                each = Some(new);
                continue;
            }
            let parts = parts(text)?;
            let Some(each) = &each else {
                let scope = Scope { library: self.library, suite, group: None };
                lines.push(Line::of(&parts, &scope)?);
                continue;
            };
            for group in &each.groups {
                let suite = Some(each.suite);
                let scope = Scope { library: self.library, suite, group: Some(group) };
                lines.push(Line::of(&parts, &scope)?);
            }
        }
        Ok(lines)
    }
}

/// The rows that lines are repeated for.
struct Each<'a> {
    suite: &'a str,
    results: Option<&'a Results>,
    groups: Vec<Vec<&'a Row>>,
}

impl<'a> Each<'a> {
    /// Reads `SUITE[CONDITIONS] by NAME, NAME`.
    fn parse(text: &'a str, library: &'a Library) -> io::Result<Self> {
        let (text, may_be_empty) = match text.strip_prefix("maybe ") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let end = text.rfind(']').map_or(0, |place| place + 1);
        let (of, names) = match text[end..].split_once(" by ") {
            None => (text, ""),
            Some((_, names)) => (&text[..text.len() - names.len() - " by ".len()], names),
        };
        let (suite, conditions) = match of.split_once('[') {
            None => (of, Conditions::none()),
            Some((suite, rest)) => (suite, Conditions::parse(rest.trim_end_matches(']'))?),
        };
        let names: Vec<&str> = names.split(", ").filter(|name| !name.is_empty()).collect();
        let results = library.of(suite)?;
        let mut groups: Vec<(Vec<String>, Vec<&Row>)> = Vec::new();
        if let Some(results) = results {
            for name in conditions.names().chain(names.iter().copied()) {
                check_name(results, name)?;
            }
            for row in results.rows.iter().filter(|row| conditions.hold(row)) {
                let key = names.iter().map(|name| row.get(*name).map_or(String::new(), plain));
                let key: Vec<String> = key.collect();
                match groups.iter_mut().find(|(other, _)| !names.is_empty() && *other == key) {
                    Some((_, rows)) => rows.push(row),
                    None => groups.push((key, vec![row])),
                }
            }
            if groups.is_empty() && !may_be_empty {
                return Err(error(format!("for {text}: {suite}.json has no such row")));
            }
        }
        let groups = groups.into_iter().map(|(_, rows)| rows).collect();
        Ok(Self { suite, results, groups })
    }
}

/// A piece of a line.
enum Part<'a> {
    Text(&'a str),
    Figure(Figure),
    /// The beginning of an optional part.
    Open,
    /// The end of an optional part.
    Close,
}

/// Divides a line into texts and figures.
fn parts(mut line: &str) -> io::Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    while let Some((text, rest)) = line.split_once('{') {
        let Some((figure, rest)) = rest.split_once('}') else {
            return Err(error(format!("{line:?}: a }} is missing")));
        };
        optional(text, &mut parts);
        parts.push(Part::Figure(Figure::parse(figure)?));
        line = rest;
    }
    optional(line, &mut parts);
    Ok(parts)
}

/// Divides a text at the brackets of optional parts.
fn optional<'a>(text: &'a str, parts: &mut Vec<Part<'a>>) {
    for (number, text) in text.split("[[").enumerate() {
        if number > 0 {
            parts.push(Part::Open);
        }
        for (number, text) in text.split("]]").enumerate() {
            if number > 0 {
                parts.push(Part::Close);
            }
            parts.push(Part::Text(text));
        }
    }
}

/// A line that was made.
struct Line {
    text: String,
    suites: BTreeSet<String>,
    /// Whether it has a figure that was recorded, or none at all.
    is_found: bool,
    /// Whether all its figures were recorded.
    is_whole: bool,
}

impl Line {
    fn of(parts: &[Part<'_>], scope: &Scope<'_>) -> io::Result<Self> {
        let mut text = String::new();
        let (mut found, mut missing) = (0, 0);
        let mut values: Vec<&Ref> = Vec::new();
        // Where the optional part begins: in the text, and in the figures.
        let mut open = (0, 0, 0);
        for part in parts {
            match part {
                Part::Open => open = (text.len(), found, missing),
                Part::Close if open.1 == found => {
                    text.truncate(open.0);
                    missing = open.2;
                }
                Part::Close => {}
                Part::Text(part) => text.push_str(part),
                Part::Figure(figure) => {
                    values.extend(figure.refs());
                    let value = figure.text(scope)?;
                    *if value.is_some() { &mut found } else { &mut missing } += 1;
                    text.push_str(value.as_deref().unwrap_or("–"));
                }
            }
        }
        let suites = scope.suites(values.into_iter())?;
        Ok(Self { text, suites, is_found: found > 0 || missing == 0, is_whole: missing == 0 })
    }

    /// Stands for lines that are repeated for no row.
    fn empty(suite: &str, is_recorded: bool) -> Self {
        let suites = BTreeSet::from([suite.to_owned()]);
        Self { text: String::new(), suites, is_found: false, is_whole: is_recorded }
    }
}

/// Says when and where figures were measured, and of which suites they are.
pub(super) fn origins(suites: &BTreeSet<String>, library: &Library) -> String {
    let mut text = String::new();
    let mut missing: Vec<String> = Vec::new();
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for suite in suites {
        let Some(results) = library.results.get(suite) else {
            missing.push(format!("`{suite}`"));
            continue;
        };
        let origin = results.origin();
        match places.iter_mut().find(|(other, _)| *other == origin) {
            Some((_, suites)) => suites.push(format!("`{suite}`")),
            None => places.push((origin, vec![format!("`{suite}`")])),
        }
    }
    for (origin, suites) in places {
        text.push_str(&format!("*{origin}: {}.*\n", suites.join(", ")));
    }
    if !missing.is_empty() {
        text.push_str(&format!("*Not recorded yet: {}.*\n", missing.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{Goals, Library, differing, remade};
    use crate::results::file::Results;

    /// One suite with three rows, and one that is not recorded.
    fn library() -> Library {
        library_of(false, "release")
    }

    fn library_of(is_changed: bool, profile: &str) -> Library {
        let row = |value: serde_json::Value| value.as_object().unwrap().clone();
        let results = Results {
            suite: "worlds".into(),
            commit: "0123abcd".into(),
            is_changed,
            day: "2026-11-24".into(),
            machine: row(json!({"cores": 2, "cpu": "a processor", "profile": profile})),
            commands: vec!["playfield-bench bench worlds --json".into()],
            rows: vec![
                row(json!({"row": "plain", "by": "function", "ms": 3.0})),
                row(json!({"row": "plain", "by": "place", "ms": 1.5})),
                row(json!({"row": "crowd", "by": "place", "ms": 1480.0})),
            ],
        };
        let mut library = Library::default();
        for suite in ["worlds", "later"] {
            library.commands.insert(suite.into(), vec!["true".into()]);
        }
        library.results.insert("worlds".into(), results);
        library
    }

    /// The new contents of a block; the old ones are `old`.
    fn made(template: &str) -> std::io::Result<String> {
        let text = format!("before\n\n<!-- {template}\n-->\nold\n<!-- end -->\nafter\n");
        let goals = Goals::parse(GOALS)?;
        let (new, differing) = remade(&text, &library(), &goals)?;
        assert_eq!(differing, [3]);
        let (again, differing) = remade(&new, &library(), &goals)?;
        assert_eq!((&again, &differing[..]), (&new, &[][..]), "the second time nothing changes");
        let start = text.find("old").unwrap();
        assert_eq!(new[..start], text[..start]);
        Ok(new[start..].strip_suffix("<!-- end -->\nafter\n").unwrap().to_owned())
    }

    const GOALS: &str = r#"[
        {"goal": "missed", "figure": "worlds.ms[by=place] / worlds.ms[by=function]", "at_most": 0.2},
        {"goal": "met", "figure": "max(worlds.ms):k", "at_least": 1, "unit": "s"},
        {"goal": "unknown", "figure": "later.ms", "at_most": 1}
    ]"#;

    const ORIGIN: &str = "*2026-11-24, `0123abcd`, 2 cores of a processor: `worlds`.*\n";

    #[test]
    fn a_table_has_a_line_for_each_group_and_says_where_it_is_from() {
        let table = made(
            "table worlds\n| world | function | place |\nfor worlds by row\n\
             | {row} | {ms[by=function]} | {ms[by=place]:1} |",
        );
        let rows = "| plain | 3.00 | 1.5 |\n| crowd | – | 1,480.0 |\n";
        let expected = format!("| world | function | place |\n|---|---|---|\n{rows}\n{ORIGIN}");
        assert_eq!(table.unwrap(), expected);
    }

    #[test]
    fn a_number_of_the_document_can_be_divided() {
        let table = made("table worlds\n| a | b |\n| {6 / ms:1} | {ms[by=place] / 3} |");
        let expected = format!("| a | b |\n|---|---|\n| 2.0 | 0.50 |\n\n{ORIGIN}");
        assert_eq!(table.unwrap(), expected);
    }

    #[test]
    fn lines_are_repeated_for_rows_that_meet_conditions() {
        let table = made(
            "table\n| a | b |\n| first | {worlds.ms} |\nfor worlds[by=place; ms!=1.5]\n| {row} | {ms} |",
        );
        let rows = "| first | 3.00 |\n| crowd | 1,480 |\n";
        assert_eq!(table.unwrap(), format!("| a | b |\n|---|---|\n{rows}\n{ORIGIN}"));
        let table =
            made("table\n| a |\nfor worlds by row\n| [[{ms[by=function]} (a), ]]{ms[by=place]} |");
        assert_eq!(
            table.unwrap(),
            format!("| a |\n|---|\n| 3.00 (a), 1.50 |\n| 1,480 |\n\n{ORIGIN}")
        );
        let table = made("table worlds\n| a |\n| {ms} |\nfor maybe worlds[by=hand]\n| {row} |");
        assert_eq!(table.unwrap(), format!("| a |\n|---|\n| 3.00 |\n\n{ORIGIN}"));
        let table = made("table\n| a |\nfor maybe worlds[by=hand]\n| {row} |");
        assert_eq!(table.unwrap(), ORIGIN);
    }

    #[test]
    fn a_field_that_is_newer_than_the_results_leaves_its_cell_empty() {
        let table = made(
            "table worlds\n| world | ms | rate |\nfor worlds[by=place]\n\
             | {row} | {ms} | [[{maybe rate} ({maybe rate_max})]] |",
        );
        let rows = "| plain | 1.50 |  |\n| crowd | 1,480 |  |\n";
        let expected = format!("| world | ms | rate |\n|---|---|---|\n{rows}\n{ORIGIN}");
        assert_eq!(table.unwrap(), expected);
        let goals = r#"[{"goal": "new", "figure": "maybe worlds.rate[by=place]", "at_most": 1}]"#;
        let table = Goals::parse(goals).unwrap().table(&library()).unwrap();
        assert!(table.starts_with("Goals that are met: 0, missed: 0, not measured yet: 1."));
    }

    #[test]
    fn what_is_not_recorded_is_named_and_leaves_no_line() {
        let table =
            made("table\n| a | b |\n| this | {worlds.ms} |\n| that | {later.ms} |").unwrap();
        assert!(table.contains("this") && !table.contains("that"), "{table}");
        assert!(table.ends_with("*Not recorded yet: `later`.*\n"), "{table}");
        let table = made("table\n| a |\nfor later by row\n| {row} |");
        assert_eq!(table.unwrap(), "*Not recorded yet: `later`.*\n");
        assert_eq!(made("text\ntakes {worlds.ms:0} ms").unwrap(), "takes 3 ms\n");
        assert_eq!(made("text\ntakes {worlds.ms:0} ms\nor {later.ms}").unwrap(), "");
    }

    #[test]
    fn a_figure_of_a_debug_build_or_of_no_commit_is_only_where_the_document_says_so() {
        for (is_changed, profile, said) in [
            (false, "release", "`0123abcd`, 2 cores"),
            (true, "release", "`0123abcd` with changes, 2 cores"),
            (false, "debug", "`0123abcd`, debug build, 2 cores"),
        ] {
            let library = library_of(is_changed, profile);
            let made = |block: &str| {
                let text = format!("<!-- {block}\n-->\n<!-- end -->\n");
                remade(&text, &library, &Goals::parse("[]").unwrap()).unwrap().0
            };
            assert!(made("table worlds\n| a |\n| {ms} |").contains(said), "{said}");
            let is_plain = !is_changed && profile == "release";
            assert_eq!(made("text worlds\ntakes {ms} ms").contains("takes 3.00"), is_plain);
        }
    }

    #[test]
    fn goals_that_are_missed_are_listed_and_the_others_counted() {
        let table = made("goals").unwrap();
        let expected = "Goals that are met: 1, missed: 1, not measured yet: 1.\n\n\
            | goal that is missed | measured | goal |\n|---|---|---|\n| missed | 0.50 | ≤ 0.2 |\n\n";
        assert_eq!(table, format!("{expected}{ORIGIN}*Not recorded yet: `later`.*\n"));
    }

    #[test]
    fn a_block_that_names_what_there_is_not_is_refused_with_its_line() {
        for (template, why) in [
            ("table\n| {nothing} |\n| {ms} |", "of which suite"),
            ("table worlds\n| a |\n| {mss} |", "no row of worlds.json has \"mss\""),
            ("table worlds\n| a |\n| {ms[bi=place]} |", "no row of worlds.json has \"bi\""),
            ("table world\n| a |\n| {ms} |", "no suite \"world\""),
            ("table\n| a |\nfor worlds[by=hand]\n| {ms} |", "no such row"),
            ("table\n| a |\nfor worlds by hand\n| {ms} |", "no row of worlds.json has \"hand\""),
            ("table worlds\n| a |\n| {ms} | 1 |", "other columns"),
            ("table worlds\n| a |\n| {ms |", "a } is missing"),
            ("table", "headings"),
        ] {
            let error = made(template).expect_err(template).to_string();
            assert!(error.contains(why) && error.starts_with("line 3: "), "{template}: {error}");
        }
        let goals = Goals::parse("[]").unwrap();
        let error = remade("<!-- goals -->\n", &library(), &goals).unwrap_err().to_string();
        assert!(error.contains("no <!-- end -->"), "{error}");
    }

    /// The promise of the documents: their figures are those of the files.
    #[test]
    fn documents_agree_with_the_recorded_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let differing = differing(&root).unwrap();
        assert!(differing.is_empty(), "run `playfield-bench tables`: {}", differing.join(", "));
    }
}
