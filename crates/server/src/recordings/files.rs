//! The files of recordings, as operators see them.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use playfield_room::recording::{Glance, ReadLimit, Recording, RecordingError};
use playfield_room::{Error, Result};
use playfield_wire::{ErrorCode, excerpt};

use super::ENDING;
use super::journals::{Journals, Series};

/// A recording of a room: its file, and the room's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingSource {
    /// The name of a file in the folder `recordings.folder`, or of a journal, as a
    /// [`RecordingFile`] has it.
    pub file: String,
    /// The id of the room.
    pub room: String,
}

/// A file in the folder of recordings, or a room of a journal.
#[derive(Clone, Debug)]
pub struct RecordingFile {
    /// Its name. All files of a shard's journal share one.
    pub file: String,
    /// Its length in bytes, or the bytes that the room has in the journal.
    pub bytes: u64,
    /// The time of its last change, since 1970; of a room of a journal, when it was last written
    /// whole.
    pub changed: Duration,
    /// The facts about the room, or why the file can't be read.
    pub glance: Result<Glance, String>,
    /// The reason why the node does not play it, if it is too large, and the command that does.
    pub too_large: Option<String>,
}

/// The folders of recordings and of the journal, to read from them. One of them is set.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) journal: Option<PathBuf>,
}

/// A recording of the list: its time, its file, its bytes, and the facts already known.
pub(super) type Listed = (Duration, String, u64, Option<Glance>);

impl Files {
    /// The number of recordings whose names contain a text, and `limit` of them after the first
    /// `skip`: the latest first. Rooms of the journal are among them, as if the names of their
    /// files had their types and ids.
    pub(crate) fn list(
        &self,
        containing: &str,
        skip: usize,
        limit: usize,
    ) -> Result<(usize, Vec<RecordingFile>)> {
        let mut files = self.recorded(containing)?;
        if let Some(journals) = self.journals() {
            files.extend(journals.list(containing)?);
        }
        files.sort_by(|(one, name, ..), (other, other_name, ..)| {
            (other, other_name).cmp(&(one, name))
        });
        let count = files.len();
        let listed = files.into_iter().skip(skip).take(limit);
        let listed = listed.map(|(changed, file, bytes, glance)| {
            let glance = glance.map_or_else(|| self.glance(&file, bytes), Ok);
            let replay = match &glance {
                Ok(Glance { about, .. }) if Series::named(&file).is_some() => {
                    format!("replay FOLDER --room {}", about.room_id)
                }
                _ => format!("replay {file}"),
            };
            let fits = ReadLimit::default().check(bytes);
            let too_large = fits.err().map(|error| refusal(&error, &replay));
            RecordingFile { file, bytes, changed, glance, too_large }
        });
        Ok((count, listed.collect()))
    }

    fn journals(&self) -> Option<Journals<'_>> {
        self.journal.as_deref().map(Journals)
    }

    /// The files in the folder of recordings whose names contain a text.
    fn recorded(&self, containing: &str) -> Result<Vec<Listed>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let failed = |error: io::Error| {
            let text = format!("recordings.folder = {folder:?} can't be read: {error}");
            Error::new(ErrorCode::Internal, text)
        };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // The first recording makes it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Ok(file) = entry.file_name().into_string() else { continue };
            // One that is gone meanwhile is left out.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && is_name(&file) && file.contains(containing) {
                let changed = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let changed = changed.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                files.push((changed, file, metadata.len(), None));
            }
        }
        Ok(files)
    }

    /// Looks at the begin and the end of a file.
    fn glance(&self, name: &str, bytes: u64) -> Result<Glance, String> {
        let look = || {
            let folder = self.folder.as_deref().unwrap_or(Path::new(""));
            let mut file = File::open(folder.join(name))?;
            let (mut first, mut last) = (Vec::new(), Vec::new());
            let piece = Glance::BYTES as u64;
            file.by_ref().take(piece).read_to_end(&mut first)?;
            file.seek(SeekFrom::Start(bytes.saturating_sub(piece)))?;
            file.take(piece).read_to_end(&mut last)?;
            Ok::<_, io::Error>((first, last))
        };
        let (first, last) = look().map_err(|error| error.to_string())?;
        Glance::of(&first, &last).map_err(|error| error.to_string())
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// `room_not_found` if there is no such file, or it is of another room; `bad_payload` if it
    /// can't be read.
    pub(crate) fn read(&self, source: &RecordingSource) -> Result<(Recording, u64)> {
        self.read_within(source, ReadLimit::default())
    }

    /// Reads a recording, up to a limit.
    pub(super) fn read_within(
        &self,
        source: &RecordingSource,
        limit: ReadLimit,
    ) -> Result<(Recording, u64)> {
        let RecordingSource { file, room } = source;
        if let Some(journals) = self.journals()
            && let Some(series) = Series::named(file)
        {
            return journals.read(series, room, limit);
        }
        let not_found = |why: &str| {
            let text = format!("the recording {:?} {why}", excerpt(file, 100));
            Error::new(ErrorCode::RoomNotFound, text)
        };
        if !is_name(file) {
            let text = format!("{:?} is not the name of a recording", excerpt(file, 100));
            return Err(Error::new(ErrorCode::Refused, text));
        }
        let path = self.folder.as_ref().map(|folder| folder.join(file));
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
        let Some(path) = path.filter(is_file) else {
            return Err(not_found("is not in the folder of recordings"));
        };
        let opened = Recording::open(&path, limit).map_err(|error| {
            let why = refusal(&error, &format!("replay {file}"));
            Error::new(ErrorCode::BadPayload, format!("{file}: {why}"))
        });
        let (recording, bytes) = opened?;
        if recording.about().room_id != *room {
            return Err(not_found(&format!("is not of the room {:?}", excerpt(room, 64))));
        }
        Ok((recording, bytes))
    }
}

/// The reason why a recording is not played, and the command that runs one that is too large.
pub(super) fn refusal(error: &RecordingError, replay: &str) -> String {
    match error {
        RecordingError::TooLong { bytes, limit } => format!(
            "it has {bytes} bytes; the node plays recordings of up to {limit}. The command \
             `{replay} --max-bytes {bytes}` runs it"
        ),
        RecordingError::TooLarge { limit, .. } => format!(
            "it has more than {limit} bytes when it is inflated, which is the most that the node \
             plays. The command `{replay} --max-bytes {limit}`, or more, runs it"
        ),
        error => error.to_string(),
    }
}

/// Returns whether a text is the name of a recording: a file in the folder, and nothing else.
fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ending = text.rsplit_once('.').filter(|(name, _)| !name.is_empty());
    text.len() <= 255
        && !text.starts_with('.')
        && text.chars().all(is_plain)
        && ending.is_some_and(|(_, ending)| ending == ENDING)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn a_name_is_never_a_path() {
        assert!(is_name("table-0123456789abcdef-1700000000000.rec"));
        let long = format!("{}.rec", "a".repeat(252));
        let others = [
            "",
            ".rec",
            "..rec",
            "a.txt",
            "a",
            "../a.rec",
            "a/b.rec",
            "a\\b.rec",
            "/etc/a.rec",
            "a\0.rec",
            "ä.rec",
            "C:a.rec",
            &long,
        ];
        for other in others {
            assert!(!is_name(other), "{other:?}");
        }
    }
}
