//! `playfield new`, as people run it. That what it writes compiles is checked by `templates.rs`
//! beside this, and as a whole by `make test-new`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder for the games, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("playfield-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn playfield(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_playfield"))
            .args(arguments)
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    /// Returns what the program says when it fails, which must be one sentence.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.playfield(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files in a folder, with paths from there.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn help_says_how_to_get_what_this_build_lacks() {
    let output = Folder::new("help").playfield(&["help"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let load = said.lines().find(|line| line.trim_start().starts_with("load ")).unwrap();
    assert_eq!(load.contains("`--features load`"), !cfg!(feature = "load"), "{said}");
}

#[test]
fn every_template_is_written_with_its_name() {
    let folder = Folder::new("new");
    for template in ["counter", "cards", "arena", "react"] {
        let name = format!("my-{template}");
        let output = folder.playfield(&["new", &name, "--template", template]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains(&format!("cd {name}\n  playfield dev\n")), "{said}");
        let game = folder.0.join(&name);
        let manifest: toml::Table =
            fs::read_to_string(game.join("Cargo.toml")).unwrap().parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some(name.as_str()));
        let path = manifest["dependencies"]["playfield"]["path"].as_str().unwrap();
        assert!(Path::new(path).join("src/lib.rs").is_file(), "{path}");
        let written = files(&game);
        for needed in [".gitignore", "README.md", "src/main.rs", "web/index.html"] {
            assert!(written.iter().any(|file| file == needed), "{needed}: {written:?}");
        }
        for file in &written {
            let text = fs::read_to_string(game.join(file)).unwrap();
            assert!(!text.contains("{{"), "{file} of {template}");
        }
        if template == "react" {
            let package = fs::read_to_string(game.join("web/package.json")).unwrap();
            let package: serde_json::Value = serde_json::from_str(&package).unwrap();
            let sdk = package["dependencies"]["playfield"].as_str().unwrap();
            assert!(
                sdk.strip_prefix("file:").is_some_and(|path| Path::new(path).is_dir()),
                "{sdk}"
            );
        }
    }
}

#[test]
fn every_file_of_the_templates_is_written_by_one() {
    let folder = Folder::new("new-all");
    let mut texts = Vec::new();
    for template in ["counter", "cards", "arena", "react"] {
        assert!(folder.playfield(&["new", template, "--template", template]).status.success());
        let game = folder.0.join(template);
        texts.extend(files(&game).iter().map(|file| fs::read(game.join(file)).unwrap()));
    }
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    for file in files(&templates) {
        let text = fs::read_to_string(templates.join(&file)).unwrap();
        if !text.contains("{{") {
            assert!(
                texts.contains(&text.into_bytes()),
                "{file} is in no game: list it in templates.rs"
            );
        }
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new("new-twice");
    fs::create_dir(folder.0.join("empty")).unwrap();
    fs::write(folder.0.join("file"), "mine").unwrap();
    assert!(folder.playfield(&["new", "duel"]).status.success());
    fs::write(folder.0.join("duel/src/main.rs"), "mine").unwrap();
    for name in ["empty", "file", "duel"] {
        let said = folder.refused(&["new", name, "--template", "arena"]);
        assert_eq!(said, format!("{name} exists already: choose another name\n"));
    }
    assert_eq!(files(&folder.0.join("empty")), [""; 0]);
    assert_eq!(fs::read(folder.0.join("file")).unwrap(), b"mine");
    assert_eq!(fs::read(folder.0.join("duel/src/main.rs")).unwrap(), b"mine");
}

#[test]
fn a_name_that_is_no_crates_or_a_path_without_playfield_is_refused() {
    let folder = Folder::new("new-bad");
    for name in ["2048", "../up", "a b", "match", "playfield", "é", ""] {
        let said = folder.refused(&["new", name]);
        assert!(said.contains("can't be the name of a crate: "), "{said}");
    }
    let said = folder.refused(&["new", "duel", "--playfield-path", "nowhere"]);
    assert!(said.contains("nowhere: no clone of Playfield is there"), "{said}");
    assert_eq!(files(&folder.0), [""; 0]);
    let output = folder.playfield(&["new", "duel", "--template", "chess"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("must be one of counter, cards, arena, react"), "{said}");
    assert_eq!(files(&folder.0), [""; 0]);
}
