//! `saves`: the saved rooms in the program's store, and the copies of saves beside them.

use std::io::{self, Write};
use std::sync::Arc;

use playfield_room::copies::{copies, load_copy, restore_copy};
use playfield_room::{Store, StoreError};
use playfield_server::Server;
use playfield_state::saved_as_json;

use crate::options::{Failure, Usage, read, take_word};

/// The keys that are read at a time.
const PAGE: usize = 256;

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} saves list ROOM_TYPE
       {program} saves copies ROOM_TYPE KEY
       {program} saves show ROOM_TYPE KEY [COPY]
       {program} saves restore ROOM_TYPE KEY COPY

Reads and writes the store of this program, while no node uses it, unless nodes share the store.
Where a build can't use all of a save of another build, such as after a rollback, it keeps a copy of
it before it saves the room: the first one and the last three of each room, by number.

list prints the keys of saved rooms, and how many copies each has. copies prints the numbers of a
room's copies and their sizes, the oldest first. show prints a save, or a copy, as JSON;
fields that the build which saved it lacked are marked \"(unknown)\". restore makes a copy the room's
save; the present save becomes a copy. A room that is open meanwhile ends at its next save.
"
    )
}

/// Lists, shows and restores saves.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut words = Vec::new();
    if !read(parser, &[], &mut words, |words, word| take_word(words, word, 4))? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wanted = match words.as_slice() {
        ["list", room_type] => Wanted::List { room_type },
        ["copies", room_type, key] => Wanted::Copies { room_type, key },
        ["show", room_type, key] => Wanted::Show { room_type, key, copy: None },
        ["show", room_type, key, copy] => {
            Wanted::Show { room_type, key, copy: Some(number(copy)?) }
        }
        ["restore", room_type, key, copy] => {
            Wanted::Restore { room_type, key, copy: number(copy)? }
        }
        _ => {
            let text = "saves needs list, copies, show or restore, a room type, and what it says";
            return Err(Usage(format!("{text}: see `help saves`")).into());
        }
    };
    let server = make()?;
    let known: Vec<String> = server.saved_types().map(|(name, _)| name.to_owned()).collect();
    let Some(store) = server.into_store().map_err(io::Error::other)? else {
        return Err(io::Error::other("this program has no store").into());
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    if !runtime.block_on(wanted.run(&store, out))? {
        let room_type = words[1];
        if !known.iter().any(|name| name == room_type) {
            let text = format!(
                "no saves, and no persistent room type {room_type:?}; there are: {}",
                known.join(", ")
            );
            return Err(io::Error::other(text).into());
        }
    }
    Ok(())
}

fn number(copy: &str) -> Result<u64, Usage> {
    copy.parse().map_err(|_| Usage(format!("a copy has a number, not {copy:?}: see `help saves`")))
}

enum Wanted<'a> {
    List { room_type: &'a str },
    Copies { room_type: &'a str, key: &'a str },
    Show { room_type: &'a str, key: &'a str, copy: Option<u64> },
    Restore { room_type: &'a str, key: &'a str, copy: u64 },
}

impl Wanted<'_> {
    /// Returns whether there was anything.
    async fn run(self, store: &Arc<dyn Store>, out: &mut dyn Write) -> io::Result<bool> {
        let mut found = false;
        let failed = |error: StoreError| io::Error::other(error);
        match self {
            Self::List { room_type } => {
                let mut after: Option<String> = None;
                loop {
                    let keys = store.keys(room_type, after.as_deref(), PAGE);
                    let keys = keys.await.map_err(failed)?;
                    for key in &keys {
                        let copies = copies(store, room_type, key).await.map_err(failed)?.len();
                        writeln!(out, "{key:?}\t{copies} copies")?;
                    }
                    found |= !keys.is_empty();
                    if keys.len() < PAGE {
                        return Ok(found);
                    }
                    after = keys.last().cloned();
                }
            }
            Self::Copies { room_type, key } => {
                for copy in copies(store, room_type, key).await.map_err(failed)? {
                    let bytes = load_copy(store, room_type, key, copy).await.map_err(failed)?;
                    let bytes = bytes.map_or(0, |bytes| bytes.len());
                    writeln!(out, "{copy}\t{bytes} bytes")?;
                    found = true;
                }
                Ok(found)
            }
            Self::Show { room_type, key, copy } => {
                let found = match copy {
                    Some(copy) => load_copy(store, room_type, key, copy).await.map_err(failed)?,
                    None => {
                        let found = store.load(room_type, key).await.map_err(failed)?;
                        found.map(|loaded| loaded.bytes)
                    }
                };
                let Some(bytes) = found else {
                    return Err(io::Error::other(format!("{room_type} {key:?} has no such save")));
                };
                let shown = saved_as_json(&bytes).map_err(io::Error::other)?;
                writeln!(out, "{shown:#}")?;
                Ok(true)
            }
            Self::Restore { room_type, key, copy } => {
                let replaced = restore_copy(store, room_type, key, copy).await.map_err(failed)?;
                match replaced {
                    Some(number) => writeln!(
                        out,
                        "{room_type} {key:?} has the save of copy {copy} again; the one from \
                         before is copy {number}"
                    ),
                    None => writeln!(out, "{room_type} {key:?} has the save of copy {copy} again"),
                }?;
                Ok(true)
            }
        }
    }
}
