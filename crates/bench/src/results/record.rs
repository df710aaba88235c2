//! Recording: what the commands of a suite print becomes its file.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::file::{Results, Row, without_machine};
use super::library::Library;
use super::{FOLDER, at, error, tree, update};
use crate::harness::machine::Machine;
use crate::harness::report::Record;

/// The source of the rows.
#[derive(Clone, Debug)]
pub enum Source {
    /// The commands of these suites; of all if there is none.
    Suites(Vec<String>),
    /// Lines that the commands of a suite have printed before, with `--json`.
    Lines {
        /// The suite.
        suite: String,
        /// The lines.
        text: String,
    },
}

/// Records suites, and makes the documents anew. Returns whether all could be recorded: a row that
/// is not verified, or a command that fails, leaves the file of its suite as it was.
///
/// Files that differ from the commit, and sources that are newer than this program, are refused,
/// unless `allows_changes`: then results say so.
///
/// # Errors
/// The repository can't be read or written, or there is no such suite.
pub fn record(source: &Source, allows_changes: bool, out: &mut dyn Write) -> io::Result<bool> {
    let root = tree::root()?;
    if let Source::Suites(names) = source
        && !allows_changes
    {
        let library = Library::read(&root)?;
        names.iter().try_for_each(|name| library.of(name).map(drop))?;
        if let Some(why) = tree::is_not_built_from(&root, &env::current_exe()?)? {
            return Err(error(format!("{why}: build it again, or record with --changed")));
        }
    }
    record_in(&root, source, allows_changes, out)
}

fn record_in(
    root: &Path,
    source: &Source,
    allows_changes: bool,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let changes = tree::changes(root)?;
    if !changes.is_empty() && !allows_changes {
        let text = "files differ from the commit: commit them, or record with --changed";
        return Err(error(format!("{text}\n{changes}")));
    }
    let commit = tree::commit(root)?;
    let library = Library::read(root)?;
    let chosen: Vec<&String> = match source {
        Source::Suites(names) if names.is_empty() => library.commands.keys().collect(),
        Source::Suites(names) => names.iter().collect(),
        Source::Lines { suite, .. } => vec![suite],
    };
    for suite in &chosen {
        library.of(suite)?;
    }
    let mut all = true;
    for suite in chosen {
        let began = Instant::now();
        let commands = &library.commands[suite];
        let lines = match source {
            Source::Suites(_) => printed(root, commands),
            Source::Lines { text, .. } => Ok(text.clone()),
        };
        let results = lines.and_then(|lines| rows(&lines)).and_then(|mut rows| {
            Ok(Results {
                machine: without_machine(&mut rows, own_machine()?)?,
                suite: suite.clone(),
                commit: commit.clone(),
                is_changed: !changes.is_empty(),
                day: tree::day()?,
                commands: match source {
                    Source::Suites(_) => commands.clone(),
                    // Nobody knows which command printed them.
                    Source::Lines { .. } => Vec::new(),
                },
                rows,
            })
        });
        match results {
            Ok(results) => {
                fs::write(root.join(FOLDER).join(format!("{suite}.json")), results.text())?;
                let (rows, seconds) = (results.rows.len(), began.elapsed().as_secs());
                writeln!(out, "{suite}: {rows} rows, {seconds} s")?;
            }
            Err(failed) => {
                all = false;
                writeln!(out, "{suite}: not recorded: {failed}")?;
            }
        }
        out.flush()?;
    }
    for page in update(root)? {
        writeln!(out, "{} is changed", page.display())?;
    }
    Ok(all)
}

/// Runs commands, and returns what they print. `playfield-bench` is this program.
fn printed(root: &Path, commands: &[String]) -> io::Result<String> {
    let own = env::current_exe()?;
    let folders = own.parent().map(Path::to_owned).into_iter();
    let others = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths(folders.chain(env::split_paths(&others))).map_err(io::Error::other)?;
    let mut text = String::new();
    for command in commands {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).env("PATH", &path).current_dir(root);
        let output = shell.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(error(format!("{command}: {}", output.status)));
        }
        text.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    Ok(text)
}

/// Reads the rows of printed lines, each of which must be verified.
fn rows(lines: &str) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for line in lines.lines() {
        let Value::Object(row) =
            serde_json::from_str(line).map_err(|failed| at(line)(failed.into()))?
        else {
            return Err(error(format!("{line}: not an object")));
        };
        if row.get("verified") != Some(&Value::Bool(true)) {
            return Err(error(format!("not verified: {line}")));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(error("nothing was printed"));
    }
    Ok(rows)
}

/// Describes the machine that records, for scripts that do not.
fn own_machine() -> io::Result<Row> {
    let line = Record::default().with_all(Machine::describe().fields()).line();
    let mut machine: Row = serde_json::from_str(&line)?;
    // That of this program is not theirs.
    machine.remove("profile");
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::{Source, record_in};

    /// A repository with one document, and these suites.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str, suites: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("playfield-{name}-{}", std::process::id()));
            let repository = Self(root);
            fs::create_dir_all(repository.0.join("docs/benchmarks")).unwrap();
            repository.write("docs/benchmarks/suites.json", suites);
            repository.write("docs/benchmarks/goals.json", "[]");
            repository.write("README.md", "<!-- text one\nIt is {us}.\n-->\n<!-- end -->\n");
            repository.git(&["init", "--quiet"]);
            repository.git(&["add", "."]);
            let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            repository.git(&[&author[..], &["commit", "--quiet", "-m", "First"]].concat());
            repository
        }

        fn git(&self, arguments: &[&str]) {
            let status = Command::new("git").args(arguments).current_dir(&self.0).status();
            assert!(status.unwrap().success(), "git {arguments:?}");
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap()
        }

        fn record(&self, suites: &[&str], allows_changes: bool) -> std::io::Result<(bool, String)> {
            let suites = suites.iter().map(|&suite| suite.to_owned()).collect();
            self.record_from(&Source::Suites(suites), allows_changes)
        }

        fn record_from(&self, source: &Source, changes: bool) -> std::io::Result<(bool, String)> {
            let mut out = Vec::new();
            let all = record_in(&self.0, source, changes, &mut out)?;
            Ok((all, String::from_utf8(out).unwrap()))
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    const SUITES: &str = r#"{
        "one": ["echo '{\"us\":1.5,\"verified\":true}'", "echo '{\"us\":2,\"verified\":true}'"],
        "wrong": ["echo '{\"us\":1,\"verified\":false}'"],
        "unsure": ["echo '{\"us\":1}'"],
        "failing": ["echo '{\"us\":1,\"verified\":true}'; exit 3"],
        "silent": ["true"]
    }"#;

    #[test]
    fn a_recording_has_the_rows_of_all_commands_and_reaches_the_documents() {
        let repository = Repository::new("recording", SUITES);
        let (all, out) = repository.record(&["one"], false).unwrap();
        assert!(
            all && out.contains("one: 2 rows") && out.contains("README.md is changed"),
            "{out}"
        );
        let file = repository.read("docs/benchmarks/one.json");
        assert!(file.contains(r#"{"us":1.5,"verified":true},"#), "{file}");
        assert!(file.contains(r#""changed": false"#), "{file}");
        assert!(repository.read("README.md").contains("-->\nIt is 1.50.\n<!-- end"));
        // Files that were recorded are no change that another recording is refused for.
        assert!(repository.record(&["one"], false).unwrap().0);
    }

    #[test]
    fn lines_that_were_printed_before_are_recorded_like_others() {
        let repository = Repository::new("lines", SUITES);
        let of = |text: &str| Source::Lines { suite: "one".into(), text: text.into() };
        let right = of("{\"us\":4,\"verified\":true}\n");
        assert!(repository.record_from(&right, false).unwrap().0);
        assert!(repository.read("README.md").contains("It is 4."));
        // Whatever printed them: the file does not claim that it was the suite's commands.
        assert!(!repository.read("docs/benchmarks/one.json").contains("echo"));
        for wrong in ["{\"us\":5}\n", "==> building\n", ""] {
            assert!(!repository.record_from(&of(wrong), false).unwrap().0, "{wrong}");
        }
        assert!(repository.read("README.md").contains("It is 4."));
    }

    #[test]
    fn what_is_not_verified_is_not_recorded_and_does_not_stop_the_others() {
        let repository = Repository::new("unverified", SUITES);
        let (all, out) = repository.record(&[], false).unwrap();
        assert!(!all);
        for (suite, why) in [
            ("wrong", "not verified"),
            ("unsure", "not verified"),
            ("failing", "exit status: 3"),
            ("silent", "nothing was printed"),
        ] {
            assert!(
                out.contains(&format!("{suite}: not recorded: ")) && out.contains(why),
                "{out}"
            );
            assert!(!repository.path(&format!("docs/benchmarks/{suite}.json")).exists());
        }
        assert!(repository.path("docs/benchmarks/one.json").exists());
        assert!(repository.record(&["two"], false).is_err(), "no such suite");
    }

    #[test]
    fn files_that_differ_from_the_commit_are_refused_or_said() {
        let repository = Repository::new("changes", SUITES);
        repository.write("source.rs", "changed");
        let error = repository.record(&["one"], false).unwrap_err().to_string();
        assert!(error.contains("source.rs") && error.contains("--changed"), "{error}");
        assert!(!Path::exists(&repository.path("docs/benchmarks/one.json")));
        assert!(repository.record(&["one"], true).unwrap().0);
        assert!(repository.read("docs/benchmarks/one.json").contains(r#""changed": true"#));
    }
}
