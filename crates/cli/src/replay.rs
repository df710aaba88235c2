//! `replay`: a recorded room runs again in this build.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use playfield_room::recording::{Journal, Moment, Recording, Replay, Summary};
use playfield_server::Server;

use crate::options::{Failure, Setter, Usage, describe, read, set};

/// The content of the arguments.
#[derive(Default)]
struct Given {
    file: Option<PathBuf>,
    to: Option<Moment>,
    room: Option<String>,
    verifies: bool,
}

const OPTIONS: &[Setter<Given>] = &[
    Setter::new(
        "to",
        "TICK",
        "stop after this tick, and print the state there; else the state at the end",
        |to, given| to.stop(Moment::Tick(given.value()?)),
    ),
    Setter::new(
        "to-input",
        "N",
        "the same after this many inputs: rooms without ticks have no others",
        |to, given| to.stop(Moment::Inputs(given.value()?)),
    ),
    Setter::new("room", "KEY", "the room of a journal, by its key or its id", |to, given| {
        set(&mut to.room, given.value().map(Some))
    }),
    Setter::new(
        "verify",
        "",
        "compare the room with what was recorded, in place of printing its state; fail if it
differs, and name the first inputs after which it does",
        |to, _| set(&mut to.verifies, Ok(true)),
    ),
];

impl Given {
    fn stop(&mut self, at: Moment) -> Result<(), Failure> {
        match self.to.replace(at) {
            None => Ok(()),
            Some(_) => Err(Usage("--to and --to-input: give one of them".to_owned()).into()),
        }
    }
}

pub(crate) fn help(program: &str) -> String {
    format!(
        "\
Usage: {program} replay FILE [--room KEY] [--to TICK | --to-input N] [--verify]

Runs a recorded room again in this build, and prints its state as JSON. Recordings are in the folder
`recordings.folder` of a node: of rooms that failed or whose handlers returned
an internal error, of those whose type has `record = always`, and of those that an operator has
recorded. Of a file of a journal, one room is run.

Options:
{}",
        describe(OPTIONS.iter().map(|setter| &setter.opt))
    )
}

pub(crate) fn run(
    parser: &mut lexopt::Parser,
    program: &str,
    make: impl FnOnce() -> io::Result<Server>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut given = Given::default();
    let word = |to: &mut Given, word: &OsStr| {
        let takes = to.file.is_none();
        to.file.get_or_insert_with(|| word.into());
        Ok(takes)
    };
    if !read(parser, OPTIONS, &mut given, word)? {
        return Ok(out.write_all(help(program).as_bytes())?);
    }
    let Given { file, to, room, verifies } = given;
    let file = file.ok_or_else(|| Usage("replay needs the file of a recording".to_owned()))?;
    if verifies && to.is_some() {
        return Err(Usage("--to and --verify: give one of them".to_owned()).into());
    }
    let failed = |error: &dyn std::fmt::Display| -> Failure {
        io::Error::other(format!("{}: {error}", file.display())).into()
    };
    let bytes = fs::read(&file).map_err(|error| failed(&error))?;
    let recording = match Journal::is_journal(&bytes) {
        true => journaled(&bytes, room.as_deref()).map_err(|why| failed(&why))?,
        false => Recording::read(&bytes).map_err(|error| failed(&error))?,
    };
    let about = recording.about();
    let server = make()?;
    let room_type = server.find_room_type(&about.room_type).ok_or_else(|| {
        let names: Vec<_> = server.schemas().map(|(name, _)| name).collect();
        failed(&format!(
            "it is of the room type {:?}, and this program has {}",
            about.room_type,
            names.join(", ")
        ))
    })?;
    if about.fingerprint != room_type.fingerprint {
        log::warn!(
            "{}: the room type {:?} has another schema in this build: a message whose fields have \
             changed may be refused, or read as another",
            file.display(),
            about.room_type
        );
    }
    let mut replay = Replay::new(&recording, room_type).map_err(|error| failed(&error))?;
    if verifies {
        let began = Instant::now();
        let summary = replay.verify().map_err(|error| failed(&error))?;
        let took = began.elapsed();
        writeln!(
            out,
            "room {} ({}), {}: {} compared up to {}, in {took:.1?}",
            about.room_id,
            about.room_type,
            about.why,
            hashes(summary.compared),
            summary.position
        )?;
        report(&recording, &summary, out)?;
        let fails_again = recording.end().is_some_and(|end| end.has_failed) && !summary.is_fixed;
        return match summary.difference {
            Some(difference) => Err(failed(&difference)),
            None if recording.fault().is_some() => Err(Failure::Unverified),
            None if summary.compared == 0 && !fails_again => {
                writeln!(out, "nothing was compared: no hash of the recording can be")?;
                Err(Failure::Unverified)
            }
            None => Ok(()),
        };
    }
    match to {
        Some(moment) => replay.seek(moment).map_err(|error| failed(&error))?,
        None => while replay.step(None).map_err(|error| failed(&error))?.is_some() {},
    }
    if let Some(fault) = recording.fault() {
        log::warn!("{}: {fault}; inputs are missing from there on", file.display());
    }
    let state = replay.state().map_err(|error| failed(&error))?;
    if state.is_null() {
        return Err(failed(&format!("the room has ended at {}", replay.position())));
    }
    Ok(writeln!(out, "{state:#}")?)
}

fn hashes(count: u64) -> String {
    match count {
        1 => "1 hash".into(),
        count => format!("{count} hashes"),
    }
}

/// A room of a file of a journal, by its key or its id.
fn journaled(bytes: &[u8], room: Option<&str>) -> Result<Recording, String> {
    let journal = Journal::read([("the journal", bytes)]);
    let named = |of: &Recording| {
        let about = of.about();
        about.key.clone().unwrap_or_else(|| about.room_id.clone())
    };
    let is_it = |of: &Recording| match room {
        Some(room) => of.about().key.as_deref() == Some(room) || of.about().room_id == room,
        None => true,
    };
    let mut found: Vec<_> = journal.rooms().filter(|(_, of)| is_it(of)).collect();
    match (found.pop(), found.len(), room) {
        (Some((_, last)), 0, _) | (Some((_, last)), _, Some(_)) => Ok(last.clone()),
        _ => {
            let names: Vec<_> = journal.rooms().map(|(_, of)| named(of)).collect();
            Err(format!("it is a journal: give one of its rooms with --room: {}", names.join(", ")))
        }
    }
}

/// Says what a comparison does not show.
fn report(recording: &Recording, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    for (position, why) in &summary.gaps {
        writeln!(out, "inputs are missing at {position}: {why}")?;
    }
    if summary.is_other_type {
        let why = "the room has another type of state in this build, or its `moved` changes it";
        writeln!(out, "hashes can't be compared: {why}")?;
    }
    if recording.end().is_some_and(|end| end.has_failed) && summary.difference.is_none() {
        let here = if summary.is_fixed { "does not here" } else { "fails here, too" };
        writeln!(out, "the room failed when it was recorded, and {here}")?;
    }
    match (recording.end(), recording.fault()) {
        (Some(end), _) => writeln!(out, "the recording ends there: {}", end.why),
        (None, Some(fault)) => writeln!(out, "the recording ends there: {fault}"),
        (None, None) => writeln!(out, "the recording ends there: the process ended"),
    }
}

#[cfg(test)]
mod tests {
    use super::hashes;

    #[test]
    fn one_hash_is_not_several() {
        assert_eq!([0, 1, 2].map(hashes), ["0 hashes", "1 hash", "2 hashes"]);
    }
}
