//! `record` and `tables` as a user runs them, in a repository of their own.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A repository with a document and one suite, without the rows.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("playfield-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("docs/benchmarks")).unwrap();
        for (path, text) in [
            ("docs/benchmarks/suites.json", r#"{"packet": ["playfield-bench bench packet"]}"#),
            ("docs/benchmarks/goals.json", "[]"),
            ("README.md", "<!-- table packet\n| row |\n| {ns} |\n-->\n<!-- end -->\n"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        let repository = Self(root);
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        for arguments in
            [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "A"]]
        {
            let mut git = Command::new("git");
            let done = git.args(author).args(arguments).current_dir(&repository.0).status();
            assert!(done.unwrap().success());
        }
        repository
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut bench = Command::new(env!("CARGO_BIN_EXE_playfield-bench"));
        bench.args(arguments).current_dir(&self.0).stdin(Stdio::piped());
        let mut child = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_recorded_is_in_the_tables_until_somebody_changes_them() {
    let repository = Repository::new("tables");
    let rows = "{\"ns\":1.5,\"verified\":true}\n";
    let recorded = repository.run(&["record", "packet", "--from", "-"], rows);
    assert_eq!(recorded.status.code(), Some(0), "{}", errors(&recorded));
    assert_eq!(repository.run(&["tables", "--check"], "").status.code(), Some(0));

    let readme = repository.0.join("README.md");
    let right = fs::read_to_string(&readme).unwrap();
    fs::write(&readme, right.replace("1.50", "1.40")).unwrap();
    let checked = repository.run(&["tables", "--check"], "");
    assert_eq!(checked.status.code(), Some(1));
    assert!(errors(&checked).contains("README.md:1"), "{}", errors(&checked));
    assert_eq!(repository.run(&["tables"], "").status.code(), Some(0));
    assert_eq!(fs::read_to_string(&readme).unwrap(), right);
}

#[test]
fn a_suite_that_is_not_verified_fails_the_recording() {
    let repository = Repository::new("unverified-rows");
    let rows = "{\"ns\":1.5,\"verified\":false}\n";
    let recorded = repository.run(&["record", "packet", "--from", "-"], rows);
    assert_eq!(recorded.status.code(), Some(1));
    assert!(!Path::exists(&repository.0.join("docs/benchmarks/packet.json")));
}

#[test]
fn wrong_arguments_are_named() {
    let repository = Repository::new("arguments");
    for (arguments, why) in [
        (&["record", "--form", "x"][..], "did you mean --from?"),
        (&["record", "--from", "x"], "--from: name one suite"),
        (&["tables", "--checks"], "did you mean --check?"),
    ] {
        let output = repository.run(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors(&output).contains(why), "{}", errors(&output));
    }
    let unknown = repository.run(&["record", "packets"], "");
    assert!(errors(&unknown).contains("no suite \"packets\""), "{}", errors(&unknown));
}
