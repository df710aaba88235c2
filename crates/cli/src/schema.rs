//! `schema`: the schemas of this program, or of a running node, and whether older clients are served.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use playfield_server::Server;
use playfield_state::{SaveDifference, SaveFate, save_differences};
use playfield_wire::schema::{RoomSchema, Struct, Type, check_compatible};

use crate::options::{Failure, Once, Opt, Usage, describe, unknown};
use crate::schemas::{SAVE, SchemaFile, of_node, of_server};

const OPTIONS: &[Opt] = &[
    Opt {
        name: "root-certificate",
        value: "FILE",
        help: "over TLS, trust this certificate (PEM or DER), not the system's; may be repeated",
    },
    Opt {
        name: "rollback",
        value: "",
        help: "of check: fail also if a rollback to that release would lose something",
    },
];

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} schema [options] [URL ROOM_TYPE]
       {program} schema check OLD [ROOM_TYPE] [--rollback]

Prints schemas as JSON: state, options, messages and events. Without arguments, those of this
program's room types, by name; otherwise that of a room type of a running node.
URL is tcp://host:port or ws://host:port, or tls://host:port or wss://host:port over TLS.

check compares with the schemas in the file OLD, which this command has printed for an older
release. It fails, and says where, if this program could not serve clients of that release, or not
read all of its saves. It also says what becomes of this program's saves after a rollback to that
release: which fields are kept as bytes beside what they belong to, and what is dropped. Unknown fields
are lost where that release rebuilds what they are in: see docs/deploying.md.

Options:
{}",
        describe(OPTIONS)
    )
}

/// Prints schemas, or checks older ones. `make` makes the server of the program itself.
///
/// # Errors
/// If the arguments are wrong, the node can't be reached or has no such room type, or clients of an
/// older schema would not be served.
pub fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let (mut words, mut roots) = (Vec::new(), Vec::new());
    let (mut once, mut rollback) = (Once::default(), false);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => {
                return Ok(out.write_all(help(program).as_bytes())?);
            }
            Long("root-certificate") => {
                let path = std::path::PathBuf::from(parser.value()?);
                let certificate = std::fs::read(&path).map_err(|error| {
                    let path = path.display();
                    io::Error::new(error.kind(), format!("root-certificate {path}: {error}"))
                })?;
                roots.push(certificate);
            }
            Long("rollback") => {
                once.note("rollback")?;
                rollback = true;
            }
            Value(word) if words.len() < 3 => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unknown(&other, OPTIONS)),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => print_own(make, out),
        ["check", old] => check(Path::new(old), None, rollback, make, out),
        ["check", old, room_type] => check(Path::new(old), Some(room_type), rollback, make, out),
        ["check"] => Err(Usage(
            "schema check needs the file that `schema` printed for the older release: schema check \
             schemas/1.4.json"
                .into(),
        )
        .into()),
        _ if rollback => Err(Usage("--rollback is an option of `schema check`".into()).into()),
        [url, room_type] => {
            let schema = of_node(url, room_type, &roots)?;
            Ok(writeln!(out, "{}", schema.to_json_pretty())?)
        }
        _ => Err(Usage(
            "schema needs a URL and a room type, or neither: schema tcp://127.0.0.1:7350 table"
                .into(),
        )
        .into()),
    }
}

fn print_own(
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let server = make()?;
    let saved: BTreeMap<&str, Type> = server.saved_types().collect();
    let mut schemas = Vec::new();
    for (name, schema) in of_server(&server)? {
        let mut text = schema.to_json_pretty();
        if let Some(of) = saved.get(&*name) {
            let of = serde_json::to_string_pretty(of).map_err(io::Error::other)?;
            text.truncate(text.len() - "\n}".len());
            text += &format!(",\n  \"{SAVE}\": {}\n}}", of.replace('\n', "\n  "));
        }
        let name = serde_json::Value::from(name);
        schemas.push(format!("{name}: {text}").replace('\n', "\n  "));
    }
    Ok(writeln!(out, "{{\n  {}\n}}", schemas.join(",\n  "))?)
}

/// The comparison of `check`, and its findings.
struct Check<'a> {
    out: &'a mut dyn Write,
    /// Whether a loss by a rollback is wrong, too.
    rollback: bool,
    wrong: Vec<String>,
}

/// Fails where clients that were built with the schemas in a file would not be served, or saves of
/// that release not read; and says what becomes of clients and saves after a rollback to it.
fn check(
    old: &Path,
    room_type: Option<&str>,
    rollback: bool,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let server = make()?;
    let (own, own_saves) = (of_server(&server)?, server.saved_types().collect::<BTreeMap<_, _>>());
    let unreadable = |error: io::Error| Failure::Usage(Usage(error.to_string()));
    let file = SchemaFile::read(old).map_err(unreadable)?;
    let old_saves = file.saves().map_err(unreadable)?;
    let one = if let [(name, _)] = own.as_slice() { Some(name.as_str()) } else { None };
    let old = match file.schemas(room_type) {
        // A program with one room type needs no name for it.
        Err(_) if room_type.is_none() && one.is_some() => file.schemas(one).map_err(unreadable)?,
        read => read.map_err(unreadable)?,
    };
    let mut check = Check { out, rollback, wrong: Vec::new() };
    for (name, client) in &old {
        let Some((_, node)) = own.iter().find(|(known, _)| known == name) else {
            check.wrong.push(format!("{name}: this program has no such room type"));
            continue;
        };
        check.clients(name, node, client)?;
        match (own_saves.get(name.as_str()), old_saves.get(name)) {
            (Some(own), Some(old)) => check.saves(name, own, old)?,
            (None, Some(_)) => check.wrong.push(format!(
                "{name}: saves of the older schema are not read: the room type is not persistent"
            )),
            (Some(_), None) => check.lost(format!(
                "{name}: after a rollback, saves of this one are left as they are: the file has no \
                 type of saves"
            ))?,
            (None, None) => {}
        }
    }
    match room_type {
        None if old.is_empty() => check.wrong.push("the file has no room types".into()),
        None => {
            for (name, _) in own.iter().filter(|(name, _)| old.iter().all(|(old, _)| old != name)) {
                check.lost(format!(
                    "{name}: after a rollback, there is no such room type: clients of its rooms are \
                     not served, and its saves are left as they are"
                ))?;
            }
        }
        Some(name) if old.is_empty() => {
            check.wrong.push(format!("the file has no room type {name:?}"));
        }
        Some(_) => {}
    }
    match check.wrong {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(io::Error::other(wrong.join("\n")).into()),
    }
}

impl Check<'_> {
    fn clients(&mut self, name: &str, own: &RoomSchema, old: &RoomSchema) -> io::Result<()> {
        let found = incompatible(own, old);
        if found.is_empty() {
            writeln!(self.out, "{name}: clients of the older schema are served")?;
        }
        self.wrong.extend(found.iter().map(|found| format!("{name}: {found}")));
        let found = incompatible(old, own);
        if found.is_empty() {
            writeln!(self.out, "{name}: after a rollback, clients of this one are served")?;
        }
        found.iter().try_for_each(|found| {
            let text = "after a rollback, clients of this one are not served";
            self.lost(format!("{name}: {text}: {found}"))
        })
    }

    fn saves(&mut self, name: &str, own: &Type, old: &Type) -> io::Result<()> {
        let mut reads_all = true;
        for difference in save_differences(old, own) {
            let fate = fate(difference.fate);
            let text = format!("{name}: saves of the older schema: {fate}: {difference}");
            match difference.fate {
                SaveFate::Kept => writeln!(self.out, "{text}")?,
                _ => {
                    self.wrong.push(text);
                    reads_all = false;
                }
            }
        }
        if reads_all {
            writeln!(self.out, "{name}: saves of the older schema are read")?;
        }
        let mut reads_all = true;
        for difference in save_differences(own, old) {
            let SaveDifference { place, fate: becomes, .. } = &difference;
            reads_all &= *becomes != SaveFate::Refused;
            let place = if place.is_empty() { "the save" } else { place };
            let text = format!("{name}: after a rollback, {place}: {}", fate(*becomes));
            match becomes {
                SaveFate::Kept => writeln!(self.out, "{text}")?,
                _ => self.lost(text)?,
            }
        }
        if reads_all {
            writeln!(self.out, "{name}: after a rollback, saves of this one are read")?;
        }
        Ok(())
    }

    /// Reports a loss by a rollback.
    fn lost(&mut self, text: String) -> io::Result<()> {
        if self.rollback {
            self.wrong.push(text);
            return Ok(());
        }
        writeln!(self.out, "{text}")
    }
}

/// Why a client is not served: the first reason in each field of the state, message and event, and
/// in the options.
fn incompatible(node: &RoomSchema, client: &RoomSchema) -> Vec<String> {
    let Err(first) = check_compatible(node, client) else { return Vec::new() };
    let nothing = RoomSchema {
        state: node.state.clone(),
        options: Type::Unit,
        messages: Vec::new(),
        events: Vec::new(),
    };
    let state = |state: Type| RoomSchema { state, ..nothing.clone() };
    let mut parts = Vec::new();
    match &client.state {
        Type::Struct(of) => parts.extend(of.fields.iter().map(|field| {
            let fields = vec![field.clone()];
            state(Type::Struct(Struct { name: of.name.clone(), fields }))
        })),
        whole => parts.push(state(whole.clone())),
    }
    parts.push(RoomSchema { options: client.options.clone(), ..nothing.clone() });
    let messages = client.messages.iter();
    parts.extend(messages.map(|of| RoomSchema { messages: vec![of.clone()], ..nothing.clone() }));
    let events = client.events.iter();
    parts.extend(events.map(|of| RoomSchema { events: vec![of.clone()], ..nothing.clone() }));
    let found = parts.iter().filter_map(|part| check_compatible(node, part).err());
    let mut found: Vec<String> = found.map(|error| error.to_string()).collect();
    if !found.contains(&first.to_string()) {
        found.insert(0, first.to_string());
    }
    found
}

fn fate(of: SaveFate) -> &'static str {
    match of {
        SaveFate::Kept => "kept as bytes, and a copy of the save is kept",
        SaveFate::Dropped => "dropped, and a copy of the save is kept",
        SaveFate::Refused => "not read: the room can't be joined, and its save is left as it is",
    }
}
