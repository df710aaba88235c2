//! `record`, `tables` and `bench compare` as a user runs them, in a repository of their own.

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

/// The recorded files of this repository.
fn recorded() -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|path| !["goals", "suites"].map(Some).contains(&path.file_stem().unwrap().to_str()))
}

fn compare(files: [&Path; 2], more: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_playfield-bench"));
    bench.args(["bench", "compare"]).args(files).args(more).output().unwrap()
}

#[test]
fn every_recorded_file_equals_itself_and_has_figures_to_compare() {
    for path in recorded() {
        let output = compare([&path, &path], &["--json"]);
        assert_eq!(output.status.code(), Some(0), "{}: {}", path.display(), errors(&output));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let changes = value["changes"].as_array().unwrap();
        assert!(!changes.is_empty(), "{} has no figure", path.display());
        assert!(changes.iter().all(|change| change["finding"] == "equal"), "{}", path.display());
        assert!(value["worse"] == false && value["rows"].as_u64() > Some(0));
    }
}

#[test]
fn what_got_worse_is_a_status_and_what_can_t_be_read_is_another() {
    let repository = Repository::new("compare");
    let path = |name: &str| repository.0.join(name);
    let sync = recorded().find(|path| path.ends_with("sync.json")).unwrap();
    let text = fs::read_to_string(&sync).unwrap();
    let (slow, cut) = (path("slow.json"), path("cut.json"));
    fs::write(&slow, text.replacen("\"sync_us_p50\":", "\"sync_us_p50\":9", 1)).unwrap();
    fs::write(&cut, &text[..text.len() / 2]).unwrap();
    let worse = compare([&sync, &slow], &[]);
    let shown = String::from_utf8_lossy(&worse.stdout).into_owned();
    assert_eq!(worse.status.code(), Some(1), "{shown}");
    assert!(shown.contains("\nworse: sync ") && shown.contains("% sync_us_p50: "), "{shown}");
    assert!(errors(&worse).contains("slow.json is worse than "), "{}", errors(&worse));
    assert_eq!(compare([&slow, &sync], &[]).status.code(), Some(0), "it got better");

    let refused = compare([&sync, &cut], &[]);
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    let said = errors(&refused);
    let lines = text[..text.len() / 2].lines().count();
    assert!(said.starts_with(&format!("{}:{lines}: the file is cut", cut.display())), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(compare([&sync, &path("none.json")], &[]).status.code(), Some(2));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_playfield-bench"));
    let one = bench.args(["bench", "compare", "a.json"]).output().unwrap();
    assert_eq!(one.status.code(), Some(2));
    assert!(errors(&one).contains("compare takes two files"), "{}", errors(&one));
}
