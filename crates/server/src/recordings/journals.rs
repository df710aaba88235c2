//! The rooms of journals, as recordings.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use playfield_room::recording::{Journal, JournalPart, ReadLimit, Recording};
use playfield_room::{Error, Result};
use playfield_wire::{ErrorCode, excerpt};

use super::files::{Listed, refusal};
use crate::journal::{ENDING, KEPT, parts};

/// The files of a shard's journal: the number of their process, and that of the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Series(u64, u32);

impl Series {
    /// The series with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (incarnation, shard) = name.strip_suffix(&format!(".{ENDING}"))?.split_once('-')?;
        let this = Self(u64::from_str_radix(incarnation, 16).ok()?, shard.parse().ok()?);
        (this.to_string() == name).then_some(this)
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(incarnation, shard) = self;
        write!(f, "{incarnation:016x}-{shard}.{ENDING}")
    }
}

/// The folder of the journal.
pub(crate) struct Journals<'a>(pub(crate) &'a Path);

impl Journals<'_> {
    /// The rooms whose type and id contain a text, each with the time at which it was last written
    /// whole.
    pub(super) fn list(&self, containing: &str) -> Result<Vec<Listed>> {
        let mut listed = Vec::new();
        for (series, paths) in self.series()? {
            let name = series.to_string();
            let journal = self.part(&paths, JournalPart::List)?;
            // The last recording with an id has the room's latest state.
            let mut rooms = BTreeMap::new();
            for (_, recording) in journal.rooms() {
                rooms.insert(recording.about().room_id.as_str(), recording);
            }
            for (id, recording) in rooms {
                let is_found = format!("{}-{id}", recording.about().room_type).contains(containing);
                if is_found || name.contains(containing) {
                    let changed = Duration::from_millis(recording.last_whole_ms());
                    let glance = Some(recording.glance());
                    listed.push((changed, name.clone(), recording.bytes(), glance));
                }
            }
        }
        Ok(listed)
    }

    /// Reads a room, and the bytes that it has in the journal.
    pub(super) fn read(
        &self,
        series: Series,
        room: &str,
        limit: ReadLimit,
    ) -> Result<(Recording, u64)> {
        let paths = self.series()?.remove(&series).unwrap_or_default();
        let journal = self.part(&paths, JournalPart::Room(room, limit.bytes))?;
        let Some((_, recording)) = journal.rooms().last() else {
            let room = excerpt(room, 64);
            let text = format!("the journal {series} has nothing of the room {room:?} any more");
            return Err(Error::new(ErrorCode::RoomNotFound, text));
        };
        let bytes = recording.bytes();
        limit.check(bytes).map_err(|error| {
            let why = refusal(&error, &format!("replay FOLDER --room {room}"));
            Error::new(ErrorCode::BadPayload, format!("{series}: room {room:?}: {why}"))
        })?;
        Ok((recording.clone(), bytes))
    }

    /// Reads a room of a process, wherever it is.
    pub(crate) fn find(&self, incarnation: u64, room: &str) -> Result<Option<Recording>> {
        for (Series(of, shard), _) in self.series()? {
            if of == incarnation {
                match self.read(Series(of, shard), room, ReadLimit::default()) {
                    Ok((recording, _)) => return Ok(Some(recording)),
                    Err(error) if error.code() == ErrorCode::RoomNotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }

    /// Reads a part of a journal, file by file.
    fn part(&self, paths: &[PathBuf], part: JournalPart<'_>) -> Result<Journal> {
        let mut failed = None;
        let files = paths.iter().filter_map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match fs::read(path) {
                Ok(bytes) => Some((name, bytes)),
                // The file became useless and was removed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    failed = Some(format!("{name}: {error}"));
                    None
                }
            }
        });
        let journal = Journal::read_part(files, part);
        match failed {
            Some(why) => Err(self.unreadable(&why)),
            None => Ok(journal),
        }
    }

    /// The files of each shard and process, in order, including files of another build that this
    /// one could not run to their end.
    fn series(&self) -> Result<BTreeMap<Series, Vec<PathBuf>>> {
        let mut found = BTreeMap::<Series, Vec<(u64, PathBuf)>>::new();
        for folder in [self.0.to_owned(), self.0.join(KEPT)] {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(self.unreadable(&error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| self.unreadable(&error))?;
                let path = entry.path();
                let is_file = entry.file_type().is_ok_and(|of| of.is_file());
                let Some((incarnation, shard, number)) = parts(&path).filter(|_| is_file) else {
                    continue;
                };
                found.entry(Series(incarnation, shard)).or_default().push((number, path));
            }
        }
        let in_order = found.into_iter().map(|(series, mut files)| {
            files.sort();
            (series, files.into_iter().map(|(_, path)| path).collect())
        });
        Ok(in_order.collect())
    }

    fn unreadable(&self, error: &dyn fmt::Display) -> Error {
        let text = format!("journal.folder = {:?} can't be read: {error}", self.0);
        Error::new(ErrorCode::Internal, text)
    }
}

#[cfg(test)]
mod tests {
    use super::Series;

    #[test]
    fn the_name_of_a_series_is_never_a_path() {
        assert_eq!(Series::named("00000000000000ff-3.journal"), Some(Series(255, 3)));
        for other in ["ff-3.journal", "../00000000000000ff-3.journal", "00000000000000ff-3.rec", ""]
        {
            assert_eq!(Series::named(other), None, "{other:?}");
        }
    }
}
