//! `generate`: types of rooms for clients in other languages.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use playfield_server::Server;

use crate::codegen::Language;
use crate::options::{Failure, Setter, Usage, describe, read, set, take_word};
use crate::schemas::{Schemas, of_file, of_node, of_program};

/// The content of the arguments.
#[derive(Default)]
struct Given {
    words: Vec<String>,
    folder: Option<PathBuf>,
    from: Option<String>,
}

const OPTIONS: &[Setter<Given>] = &[
    Setter::new(
        "out",
        "DIR",
        "write a file for each room type into this folder; printed if absent",
        |to, given| {
            let value = given.text()?;
            if value.is_empty() {
                return Err(Usage("--out needs a folder".to_owned()).into());
            }
            set(&mut to.folder, Ok(Some(value.into())))
        },
    ),
    Setter::new(
        "from",
        "SOURCE",
        "a file of schemas, or the URL of a node; this program if absent",
        |to, given| set(&mut to.from, given.value().map(Some)),
    ),
];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} generate LANGUAGE [ROOM_TYPE] [options]

Writes the state, options, messages and events of room types as types of a language: typescript,
for the npm package playfield, or python, for the Python package playfield. No node need run.
A node's URL, and a file with one schema, need ROOM_TYPE.

Options:
{}",
        describe(OPTIONS.iter().map(|setter| &setter.opt))
    )
}

/// Generates types.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut given = Given::default();
    if !read(parser, OPTIONS, &mut given, |to, word| take_word(&mut to.words, word, 2))? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let Given { words, folder, from } = given;
    let name = words.first().map_or("", String::as_str);
    let Some(language) = Language::from_name(name) else {
        let known = Language::ALL.map(Language::name).join(", ");
        return Err(Usage(format!("generate needs a language, not {name:?}: {known}")).into());
    };
    let room_type = words.get(1).map(String::as_str);
    let schemas = match from {
        None => of_program(make)?,
        Some(url) if url.contains("://") => {
            let Some(room_type) = room_type else {
                return Err(Usage(format!("of {url}, which room type? Say its name too")).into());
            };
            vec![(room_type.to_owned(), of_node(&url, room_type, &[])?)]
        }
        Some(path) => of_file(Path::new(&path), room_type)?,
    };
    let schemas = chosen(schemas, room_type)?;
    if folder.is_some() {
        have_files(language, schemas.iter().map(|(name, _)| name.as_str()))?;
    }
    for (name, schema) in &schemas {
        let text = language.generate(name, schema);
        let Some(folder) = &folder else {
            out.write_all(text.as_bytes())?;
            continue;
        };
        let path = folder.join(language.file(name));
        write_if_changed(folder, &path, &text).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}

/// Refuses room types that would be written to one file. Some file systems ignore case.
fn have_files<'a>(language: Language, room_types: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let mut taken = BTreeMap::new();
    for name in room_types {
        let file = language.file(name);
        if let Some(other) = taken.insert(file.to_ascii_lowercase(), name) {
            let text = format!(
                "the room types {other:?} and {name:?} would both be written to {file}: generate \
                 each of them into a folder of its own, as in `generate {} {name:?} --out DIR`",
                language.name()
            );
            return Err(io::Error::other(text));
        }
    }
    Ok(())
}

/// Leaves a file that has this text already as it is, so that nobody who watches it has work.
fn write_if_changed(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|known| known == text.as_bytes()) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(path, text)
}

/// The schemas of the room type that was asked for, or all.
fn chosen(mut schemas: Schemas, room_type: Option<&str>) -> io::Result<Schemas> {
    let Some(room_type) = room_type else { return Ok(schemas) };
    let names: Vec<String> = schemas.iter().map(|(name, _)| name.clone()).collect();
    schemas.retain(|(name, _)| name == room_type);
    if schemas.is_empty() {
        let known = names.join(", ");
        return Err(io::Error::other(format!("no room type {room_type:?}; there are: {known}")));
    }
    Ok(schemas)
}

#[cfg(test)]
mod tests {
    use super::{Language, have_files};

    #[test]
    fn room_types_that_share_a_file_are_refused() {
        let check = |names: &[&str]| {
            have_files(Language::TypeScript, names.iter().copied())
                .map_err(|error| error.to_string())
        };
        assert_eq!(check(&["duel", "a-b", "a.c"]), Ok(()));
        let error = check(&["a-b", "duel", "a_b"]).unwrap_err();
        assert!(
            error.starts_with("the room types \"a-b\" and \"a_b\" would both be written to a_b.ts"),
            "{error}"
        );
        assert!(check(&["Duel", "duel"]).is_err());
    }
}
