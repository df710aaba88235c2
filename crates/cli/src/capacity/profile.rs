//! `profile`: what a room's players are sent, by field.

use std::io::{self, Write};
use std::path::Path;

use playfield_measure::{FieldChanges, ProfileBaseline, profile};
use playfield_server::Server;
use serde_json::Value;

use super::{Command, OPTIONS, fields};
use crate::Bots;
use crate::options::{Failure, Usage, describe};

/// Options that have no effect on a profile.
const CAPACITY_ALONE: [&str; 12] = [
    "tls",
    "target",
    "cores",
    "clock",
    "memory",
    "bandwidth",
    "utilization",
    "safety",
    "price",
    "prove",
    "brief",
    "report",
];

pub(crate) fn help(program: &str) -> String {
    let options = OPTIONS.iter().map(|option| &option.opt);
    format!(
        "\
Usage: {program} profile ROOM_TYPE [OPTIONS]

Runs a room, and says what players are sent, by field: bytes in a patch, how much of it is for one
player alone, the CPU time of a sync, and what another type or policy would save; of messages and
events their bytes and time. Players are those of `capacity`. The exit status is 1 if the room can't
be run, or a field costs more than in the baseline.

{}",
        describe(options.filter(|option| !CAPACITY_ALONE.contains(&option.name)))
    )
}

/// Runs a room, and prints what its players are sent, by field. `make` makes the program's server.
pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    bots: Bots,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut command = Command::default();
    if !command.read(parser)? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    if let Some(name) = command.given.iter().find(|name| CAPACITY_ALONE.contains(name)) {
        let all = CAPACITY_ALONE.join(", --");
        let text = format!("--{name} changes no profile: profile takes none of --{all}");
        return Err(Usage(text).into());
    }
    let plan = command.plan(bots, make, None)?;
    let file = command.baseline.as_deref().unwrap_or(Path::new(""));
    let before = command.earlier(|before| ProfileBaseline::read(before, &plan))?;
    let room = profile(&plan)?;
    let changes = before.map(|before| room.changes(&before));
    if command.is_json {
        let mut result = room.to_json();
        if let Some(FieldChanges { fields, rooms, notes }) = &changes {
            result["changes"] = fields.iter().map(|of| Value::from(of.text.as_str())).collect();
            result["rooms_a_core"] = Value::from(rooms.map(Vec::from));
            result["notes"] = notes.iter().map(|note| Value::from(note.as_str())).collect();
        }
        writeln!(out, "{result}")?;
    } else {
        fields::print(&room, out)?;
        if let Some(changes) = &changes {
            fields::print_changes(changes, file, out)?;
        }
    }
    out.flush()?;
    match changes.is_some_and(|changes| changes.fields.iter().any(|field| field.is_worse)) {
        true => {
            let text = format!("a field costs more than in {}: see above", file.display());
            Err(io::Error::other(text).into())
        }
        false => Ok(()),
    }
}
