//! `replay`: a recorded room runs again in this build.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use log::LevelFilter;
use playfield_room::recording::{
    About, Glance, Journal, JournalPart, Moment, ReadLimit, Recording, RecordingError, Replay,
    Summary,
};
use playfield_server::{Server, log_to_stderr};

use crate::options::{Failure, Setter, Usage, describe, read, set};

/// The content of the arguments.
#[derive(Default)]
struct Given {
    file: Option<PathBuf>,
    to: Option<Moment>,
    room: Option<String>,
    verifies: bool,
    limit: ReadLimit,
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
    Setter::new(
        "max-bytes",
        "N",
        "the most bytes of the recording, which is read into memory, and twice as many when it is
inflated (default 268435456)",
        |to, given| set(&mut to.limit.bytes, given.within(1..=1 << 50)),
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
Usage: {program} replay FILE [--room KEY] [--to TICK | --to-input N] [--verify] [--max-bytes N]

Runs a recorded room again in this build, and prints its state as JSON. Recordings are in the folder
`recordings.folder` of a node: of rooms that failed or whose handlers returned
an internal error, of those whose type has `record = always`, and of those that an operator has
recorded. Of a journal, one room is run: FILE is one of its files, or the
folder `journal.folder` for all that the journal has of the room.

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
    let Given { file, to, room, verifies, limit } = given;
    log_to_stderr(LevelFilter::Warn);
    let file = file.ok_or_else(|| Usage("replay needs the file of a recording".to_owned()))?;
    if verifies && to.is_some() {
        return Err(Usage("--to and --verify: give one of them".to_owned()).into());
    }
    let failed = |error: &dyn std::fmt::Display| -> Failure {
        io::Error::other(format!("{}: {error}", file.display())).into()
    };
    let recording = recording(&file, room.as_deref(), limit).map_err(|why| failed(&why))?;
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
    let mut state = replay.state().map_err(|error| failed(&error))?;
    let end = replay.position();
    if state.is_null() && to.is_none() && end.inputs > 0 {
        replay.seek(Moment::Inputs(end.inputs - 1)).map_err(|error| failed(&error))?;
        state = replay.state().map_err(|error| failed(&error))?;
        log::warn!("{}: the room ended at {end}; this is its state before that", file.display());
    }
    if state.is_null() {
        return Err(failed(&format!("the room has ended at {end}; give an earlier moment")));
    }
    Ok(writeln!(out, "{state:#}")?)
}

fn hashes(count: u64) -> String {
    match count {
        1 => "1 hash".into(),
        count => format!("{count} hashes"),
    }
}

/// The recording in a file, or a room of a journal, given by a file or the folder.
fn recording(path: &Path, room: Option<&str>, limit: ReadLimit) -> Result<Recording, String> {
    let text = |error: io::Error| error.to_string();
    if path.is_dir() {
        return journaled(&series(path).map_err(text)?, room, limit);
    }
    let (opened, mut first) = (File::open(path).map_err(text)?, Vec::new());
    opened.take(Glance::BYTES as u64).read_to_end(&mut first).map_err(text)?;
    if Journal::is_journal(&first) {
        return journaled(&[vec![path.to_owned()]], room, limit);
    }
    Recording::open(path, limit).map(|(recording, _)| recording).map_err(|error| refusal(&error))
}

/// The reason why a recording can't be read, and what to do if it is too large.
fn refusal(error: &RecordingError) -> String {
    match error {
        RecordingError::TooLong { bytes, .. } => {
            format!("{error}: if there is the memory for it, give --max-bytes {bytes}")
        }
        RecordingError::TooLarge { limit, .. } => {
            format!("{error}: if there is the memory for it, give --max-bytes {limit}, or more")
        }
        error => error.to_string(),
    }
}

/// The files of journals in a folder, in their order: those of each process and shard. Their names
/// end with their numbers.
fn series(folder: &Path) -> io::Result<Vec<Vec<PathBuf>>> {
    let (mut found, mut first) = (BTreeMap::<_, Vec<(u64, PathBuf)>>::new(), None);
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_suffix(".journal").and_then(|name| name.rsplit_once('-'));
        if let Some((of, Ok(number))) = number.map(|(of, number)| (of, number.parse())) {
            found.entry(of.to_owned()).or_default().push((number, path));
        } else if name.ends_with(".rec") {
            first = first.max(Some(name));
        }
    }
    if found.is_empty() {
        let such = first.map(|name| format!(", such as {name}")).unwrap_or_default();
        let text = format!("it is a folder without a journal: give the file of a recording{such}");
        return Err(io::Error::other(text));
    }
    let in_order = found.into_values().map(|mut files| {
        files.sort();
        files.into_iter().map(|(_, path)| path).collect()
    });
    Ok(in_order.collect())
}

/// Finds a room in these journal files by its key or id, in its latest form.
fn journaled(
    series: &[Vec<PathBuf>],
    room: Option<&str>,
    limit: ReadLimit,
) -> Result<Recording, String> {
    let (mut found, mut names) = (BTreeMap::new(), Vec::new());
    for paths in series {
        let journal = part(paths, JournalPart::List, limit)?;
        for (_, of) in journal.rooms() {
            let About { room_id, key, .. } = of.about();
            names.push(key.clone().unwrap_or_else(|| room_id.clone()));
            if room.is_none_or(|room| key.as_deref() == Some(room) || room_id == room) {
                found.insert((of.last_whole_ms(), room_id.clone()), paths);
            }
        }
    }
    names.sort();
    names.dedup();
    let names = names.join(", ");
    let is_one = found.keys().all(|(_, id)| found.keys().next().is_some_and(|(_, of)| of == id));
    match (found.pop_last(), room) {
        (Some(((_, id), paths)), _) if room.is_some() || is_one => {
            let journal = part(paths, JournalPart::Room(&id, limit.bytes), limit)?;
            let last = journal.rooms().last().map(|(_, of)| of.clone());
            let last =
                last.ok_or_else(|| format!("the room {id} is gone from the journal meanwhile"))?;
            let fits = limit.check(last.bytes());
            fits.map_err(|error| format!("room {id}: {}", refusal(&error)))?;
            Ok(last)
        }
        (Some(_), _) => Err(format!("it is a journal: give one of its rooms with --room: {names}")),
        (None, _) if names.is_empty() => {
            Err("it is a journal, and no room is whole in it".to_owned())
        }
        (None, room) => {
            let room = room.unwrap_or_default();
            Err(format!("the journal has no room {room:?}: give one of its rooms: {names}"))
        }
    }
}

/// Reads a part of a journal, file by file.
fn part(paths: &[PathBuf], part: JournalPart<'_>, limit: ReadLimit) -> Result<Journal, String> {
    let mut failed = None;
    let files = paths.iter().filter_map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = limit.read(path);
        let read = read.map_err(|error| failed.insert(format!("{name}: {}", refusal(&error))));
        Some((name, read.ok()?))
    });
    let journal = Journal::read_part(files, part);
    failed.map_or(Ok(journal), Err)
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
        (None, None) => writeln!(
            out,
            "the recording ends there: the process ended, or has not written more yet"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use playfield_room::recording::{
        About, BlockKind, BlockWriter, HEAD, ReadLimit, RecordingWriter, Segment, SegmentWriter,
        put_section,
    };

    use super::{hashes, recording};

    const LIMIT: ReadLimit = ReadLimit { bytes: 100_000 };

    /// The error for a file with these bytes.
    fn refused(name: &str, bytes: &[u8]) -> String {
        let name = format!("playfield-replay-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, bytes).unwrap();
        let refused = recording(&path, Some("room"), LIMIT).unwrap_err();
        fs::remove_file(path).unwrap();
        refused
    }

    #[test]
    fn a_recording_that_is_too_large_is_refused_by_its_size() {
        let mut file = Vec::new();
        let mut writer = RecordingWriter::begin(&About::default(), &mut file);
        for _ in 0..4 {
            writer.block(BlockKind::Inputs, &vec![0; 100_000], &mut file);
        }
        assert!(file.len() < 2_000, "{} bytes", file.len());
        let why = refused("inflated", &file);
        assert!(why.contains("more than 200000 bytes when it is inflated"), "{why}");
        assert!(why.ends_with("give --max-bytes 200000, or more"), "{why}");
        file.resize(100_001, 0);
        let why = refused("long", &file);
        assert!(
            why.starts_with("the recording has 100001 bytes, and 100000 is the limit"),
            "{why}"
        );
        assert!(why.ends_with("give --max-bytes 100001"), "{why}");
    }

    #[test]
    fn a_room_of_a_journal_that_is_too_large_is_refused_by_its_size() {
        let about = About { room_id: "room".into(), ..About::default() };
        let mut sections = Vec::new();
        put_section(0, BlockKind::About, &about.encode(), &mut sections);
        // At the first input.
        put_section(0, BlockKind::Keyframe, &[0; 100_000], &mut sections);
        put_section(0, BlockKind::Gap, &[0; 100_000], &mut sections);
        let mut file = Vec::new();
        SegmentWriter::begin(&Segment::default(), &mut file);
        // No journal is deflated by its node.
        let mut blocks = BlockWriter::default();
        blocks.put(BlockKind::Segment as u8, &[0; 5], false, &mut Vec::new());
        let content = [&[0][..], &sections].concat();
        blocks.put(BlockKind::Rooms as u8, &content, true, &mut file);
        assert!(file.starts_with(HEAD) && file.len() < 2_000, "{} bytes", file.len());
        let why = refused("journal", &file);
        assert!(why.starts_with("room room: the recording has 200"), "{why}");
        assert!(why.contains("give --max-bytes 200"), "{why}");
    }

    #[test]
    fn one_hash_is_not_several() {
        assert_eq!([0, 1, 2].map(hashes), ["0 hashes", "1 hash", "2 hashes"]);
    }
}
