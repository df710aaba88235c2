//! `new`: writes a game that runs into a new folder.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use lexopt::Arg::{Long, Short, Value};
use playfield_cli::options::{Failure, Opt, Usage, describe, unknown};

use crate::name;
use crate::templates::{MANIFEST, TEMPLATES, Template};

const OPTIONS: &[Opt] = &[
    Opt {
        name: "template",
        value: "NAME",
        help: "what to begin with: counter (default), cards, arena or react",
    },
    Opt {
        name: "playfield-path",
        value: "DIR",
        help: "the clone of Playfield to depend on (default: the one that this was installed from)",
    },
];

fn help() -> String {
    format!(
        "\
Usage: playfield new NAME [OPTIONS]

Writes a game into the new folder NAME: a server with one room, a page, tests and a README.

Options:
{}",
        describe(OPTIONS)
    )
}

/// Writes a game.
pub(crate) fn run(parser: &mut lexopt::Parser, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut name, mut template, mut clone) = (None, &TEMPLATES[0], None);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(out.write_all(help().as_bytes())?),
            Long("template") => template = named(&parser.value()?.to_string_lossy())?,
            Long("playfield-path") => clone = Some(PathBuf::from(parser.value()?)),
            Value(word) if name.is_none() => name = Some(word.to_string_lossy().into_owned()),
            other => return Err(unknown(&other, OPTIONS)),
        }
    }
    let name = name.ok_or_else(|| Usage("new needs a name: playfield new my-game".to_owned()))?;
    name::check(&name).map_err(io::Error::other)?;
    let origin = match clone {
        Some(clone) => Origin::of_clone(&clone)?,
        None => Origin::of_this_program(),
    };
    let game = Game { name: &name, template, origin: &origin };
    game.write(Path::new(&name))?;
    writeln!(out, "{name} is written. To start it:\n\n  cd {name}\n  playfield dev\n")?;
    Ok(())
}

/// The template with this name.
fn named(name: &str) -> Result<&'static Template, Usage> {
    TEMPLATES.iter().find(|template| template.name == name).ok_or_else(|| {
        let known: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        Usage(format!("--template {name}: must be one of {}", known.join(", ")))
    })
}

/// The source from which a game gets Playfield.
enum Origin {
    /// A clone: its crate `playfield`, and its TypeScript package.
    Clone { playfield: PathBuf, sdk: PathBuf },
    /// The registries.
    Registry,
}

impl Origin {
    /// The clone that this program was built in, or else the registries.
    fn of_this_program() -> Self {
        // In the sources that cargo has downloaded, no other crate lies beside this one.
        Self::of_crate(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_or(Self::Registry)
    }

    /// A clone, or its crate `playfield`.
    fn of_clone(path: &Path) -> io::Result<Self> {
        [path.join("crates/playfield"), path.to_owned()]
            .iter()
            .find_map(|path| Self::of_crate(path))
            .ok_or_else(|| {
                let text =
                    format!("--playfield-path {}: no clone of Playfield is there", path.display());
                io::Error::new(ErrorKind::NotFound, text)
            })
    }

    fn of_crate(path: &Path) -> Option<Self> {
        let playfield = path.canonicalize().ok()?;
        let root = playfield.parent()?.parent()?.to_owned();
        let is_clone = playfield.join("Cargo.toml").is_file() && root.join("crates/wire").is_dir();
        is_clone.then(|| Self::Clone { sdk: root.join("sdk/typescript"), playfield })
    }

    /// The dependency in `Cargo.toml`.
    fn cargo(&self) -> String {
        match self {
            Self::Clone { playfield, .. } => {
                format!("{{ path = {} }}", quoted(&playfield.to_string_lossy()))
            }
            Self::Registry => format!("{:?}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// The dependency in `package.json`.
    fn npm(&self) -> String {
        match self {
            Self::Clone { sdk, .. } => quoted(&format!("file:{}", sdk.display())),
            Self::Registry => format!("\"^{}\"", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// A text in JSON, which is one in TOML, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A game that is about to be written.
struct Game<'a> {
    name: &'a str,
    template: &'static Template,
    origin: &'a Origin,
}

impl Game<'_> {
    /// Writes it into a new folder. If that fails, nothing is left.
    fn write(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder).map_err(|error| {
            let text = match error.kind() {
                ErrorKind::AlreadyExists => {
                    format!("{} exists already: choose another name", folder.display())
                }
                _ => format!("the folder {} can't be made: {error}", folder.display()),
            };
            io::Error::new(error.kind(), text)
        })?;
        let manifest = ("Cargo.toml", MANIFEST);
        for (path, text) in self.template.files.iter().chain([&manifest]) {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            let written =
                fs::create_dir_all(parent).and_then(|()| fs::write(&path, self.filled(text)));
            if let Err(error) = written {
                let text = format!("{} can't be written: {error}", path.display());
                // It is this program's own, from a moment ago.
                let _ = fs::remove_dir_all(folder);
                return Err(io::Error::new(error.kind(), text));
            }
        }
        Ok(())
    }

    /// A file of the template for this game.
    fn filled(&self, text: &str) -> String {
        text.replace("{{name}}", self.name)
            .replace("{{about}}", self.template.about)
            .replace("{{playfield}}", &self.origin.cargo())
            .replace("{{npm}}", &self.origin.npm())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Game, MANIFEST, Origin};
    use crate::templates::TEMPLATES;

    #[test]
    fn every_place_in_a_template_is_filled() {
        for template in TEMPLATES {
            let game = Game { name: "duel", template, origin: &Origin::Registry };
            let manifest = ("Cargo.toml", MANIFEST);
            for (path, text) in template.files.iter().chain([&manifest]) {
                let text = game.filled(text);
                assert!(!text.contains("{{"), "{} of {}: {text}", path, template.name);
            }
        }
    }

    #[test]
    fn a_game_depends_on_the_clone_or_on_the_registries() {
        let origin = Origin::of_this_program();
        let Origin::Clone { playfield, .. } = &origin else { panic!("this is a clone") };
        assert!(
            origin.cargo().starts_with("{ path = \"") && playfield.ends_with("crates/playfield")
        );
        assert!(origin.npm().starts_with("\"file:") && origin.npm().ends_with("sdk/typescript\""));
        assert_eq!(Origin::Registry.cargo(), format!("{:?}", env!("CARGO_PKG_VERSION")));
        assert!(Origin::of_clone(Path::new("/nowhere")).is_err());
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert_eq!(Origin::of_clone(&root).unwrap().cargo(), origin.cargo());
    }
}
