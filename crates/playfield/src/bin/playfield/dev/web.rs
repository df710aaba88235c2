//! The page's own development server, such as Vite.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread;

use serde_json::Value;

use super::Event;
use super::group::Group;
use super::lines::lines;

/// The variable in which the page finds the node: the name that Vite passes on.
const PORT: &str = "VITE_PLAYFIELD_PORT";
/// The variable with the folder of the TypeScript package that has to be built first.
const SDK: &str = "PLAYFIELD_SDK";

/// An app with a `package.json`, whose script `dev` serves its page.
pub(super) struct App {
    pub(super) folder: PathBuf,
    /// The script, once it runs.
    script: Option<Group>,
    /// The URL at which it serves the page, once it has said so.
    pub(super) url: Option<String>,
}

impl App {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, script: None, url: None }
    }

    /// Starts the script, once, for a node with this port. What the app needs is installed before
    /// that, if it is missing. It sends [`Event::AppSays`] for each line that it prints, and
    /// [`Event::AppEnded`].
    pub(super) fn start(&mut self, port: &str, events: &SyncSender<Event>) -> io::Result<()> {
        if self.script.is_some() {
            return Ok(());
        }
        let sdk = unbuilt_sdk(&self.folder);
        let mut script = match (&sdk, cfg!(windows)) {
            (None, _) => String::new(),
            (_, true) => {
                format!("npm --prefix \"%{SDK}%\" ci && npm --prefix \"%{SDK}%\" run build && ")
            }
            _ => format!("npm --prefix \"${SDK}\" ci && npm --prefix \"${SDK}\" run build && "),
        };
        if sdk.is_some() || !self.folder.join("node_modules").is_dir() {
            script += "npm install && ";
        }
        script += "npm run dev";
        let shell = if cfg!(windows) { ["cmd", "/C"] } else { ["sh", "-c"] };
        let mut command = Command::new(shell[0]);
        command.args([shell[1], &script]).current_dir(&self.folder);
        command.env(PORT, port).envs(sdk.map(|sdk| (SDK, sdk)));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let stdout = group.stdout().expect("standard output is a pipe");
        self.script = Some(group);
        let events = events.clone();
        thread::spawn(move || {
            for line in lines(BufReader::new(stdout)) {
                if events.send(Event::AppSays { line }).is_err() {
                    return;
                }
            }
            let _ = events.send(Event::AppEnded);
        });
        Ok(())
    }

    /// Ends the script.
    pub(super) fn stop(&mut self) {
        self.script = None;
    }
}

/// The TypeScript package in a clone that an app depends on, if that has not been built.
fn unbuilt_sdk(app: &Path) -> Option<PathBuf> {
    let package = std::fs::read(app.join("package.json")).ok()?;
    let package: Value = serde_json::from_slice(&package).ok()?;
    let sdk = package["dependencies"]["playfield"].as_str()?.strip_prefix("file:")?;
    let sdk = app.join(sdk);
    (sdk.join("package.json").is_file() && !sdk.join("dist").is_dir()).then_some(sdk)
}

/// The URL in a line by which a browser on this machine opens the page.
pub(super) fn local_url(line: &str) -> Option<String> {
    let text = without_colors(line);
    let begin = text.find("http://").or_else(|| text.find("https://"))?;
    let url = text[begin..].split(|letter: char| letter.is_whitespace() || letter == ',').next()?;
    let (_, place) = url.split_once("://")?;
    let is_local = ["localhost", "127.0.0.1", "[::1]"].iter().any(|host| {
        place.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    });
    is_local.then(|| url.to_owned())
}

/// A line without the sequences by which terminals show colors.
fn without_colors(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| part.split_once('m').map(|(_, text)| text));
    std::iter::once(first).chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::local_url;

    #[test]
    fn the_url_of_a_development_server_is_found() {
        for (line, url) in [
            ("  ➜  Local:   http://localhost:5173/", Some("http://localhost:5173/")),
            (
                "\u{1b}[32m➜\u{1b}[39m  Local:   \u{1b}[36mhttp://localhost:\u{1b}[1m5173\u{1b}[22m/\u{1b}[39m",
                Some("http://localhost:5173/"),
            ),
            ("- Local: https://127.0.0.1:3000", Some("https://127.0.0.1:3000")),
            ("  ➜  Network: http://192.0.2.7:5173/", None),
            ("run `npm fund`: https://localhost.example.org/x", None),
            ("no URL", None),
        ] {
            assert_eq!(local_url(line).as_deref(), url, "{line}");
        }
    }
}
