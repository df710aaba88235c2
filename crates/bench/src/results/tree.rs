//! The commit of the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error;

/// Finds the folder of the repository that this process runs in.
///
/// # Errors
/// There is none, or `git` is missing.
pub fn root() -> io::Result<PathBuf> {
    output(Path::new("."), "git", &["rev-parse", "--show-toplevel"]).map(PathBuf::from)
}

/// Names the commit that is checked out.
pub(super) fn commit(root: &Path) -> io::Result<String> {
    output(root, "git", &["rev-parse", "--short=8", "HEAD"])
}

/// Returns why a program was not built from the sources of this repository: it lies elsewhere, or a
/// source is newer. `None` if nothing says so.
pub(super) fn is_not_built_from(root: &Path, program: &Path) -> io::Result<Option<String>> {
    let (root, shown) = (root.canonicalize()?, program.display());
    if !program.canonicalize()?.starts_with(&root) {
        return Ok(Some(format!("{shown} lies outside of {}", root.display())));
    }
    let built = fs::metadata(program)?.modified()?;
    let sources = output(&root, "git", &["ls-files", "--", "crates", "Cargo.lock", "Cargo.toml"])?;
    for source in sources.lines().filter(|line| line.ends_with(".rs") || line.contains("Cargo")) {
        // One that is gone is a change, which is looked for as well.
        let written = fs::metadata(root.join(source)).and_then(|of| of.modified());
        if written.is_ok_and(|written| written > built) {
            return Ok(Some(format!("{source} was written after {shown} was built")));
        }
    }
    Ok(None)
}

/// Lists files that differ from the commit, except those that a recording writes.
pub(super) fn changes(root: &Path) -> io::Result<String> {
    let arguments = ["status", "--porcelain", "--", ".", ":!README.md", ":!docs/*"];
    output(root, "git", &arguments)
}

/// Today, in UTC.
pub(super) fn day() -> io::Result<String> {
    output(Path::new("."), "date", &["-u", "+%F"])
}

/// The output of a program.
fn output(folder: &Path, program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).current_dir(folder).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(error(format!("{program} {}: {}", arguments.join(" "), why.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::{is_not_built_from, output};

    #[test]
    fn a_program_that_is_older_than_a_source_or_lies_elsewhere_is_refused() {
        let name = format!("playfield-tree-{}", std::process::id());
        let root = &std::env::temp_dir().join(name);
        fs::create_dir_all(root.join("crates")).expect("a folder");
        let (program, source) = (root.join("program"), root.join("crates/a.rs"));
        fs::write(&source, "").expect("a source");
        fs::write(&program, "").expect("a program");
        output(root, "git", &["init", "-q"]).expect("a repository");
        output(root, "git", &["add", "."]).expect("an added file");
        assert_eq!(is_not_built_from(root, &program).expect("an answer"), None);
        let later = SystemTime::now() + Duration::from_secs(9);
        let file = fs::File::options().write(true).open(&source).expect("the source");
        file.set_modified(later).expect("another time");
        let why = is_not_built_from(root, &program).expect("an answer").expect("a reason");
        assert!(why.starts_with("crates/a.rs was written after "), "{why}");
        let why = is_not_built_from(&root.join("crates"), &program).expect("an answer");
        assert!(why.is_some_and(|why| why.contains(" lies outside of ")));
        fs::remove_dir_all(root).expect("the folder is gone");
    }
}
