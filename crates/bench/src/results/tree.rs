//! The commit of the repository.

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
