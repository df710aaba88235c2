//! The Vite app beside the server.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::group::Group;

/// Starts the app's script `dev`. What the app needs is installed before that, if it is missing.
pub(super) fn start(app: &Path) -> io::Result<Group> {
    let is_installed = app.join("node_modules").is_dir();
    let script = if is_installed { "npm run dev" } else { "npm install && npm run dev" };
    let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
    let mut command = Command::new(shell[0]);
    command.args([shell[1], script]).current_dir(app).stdin(Stdio::null());
    Group::start(&mut command)
}
