//! The rooms of a process that has ended, from the files of its journal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use playfield_room::frozen::FrozenWriter;
use playfield_room::recording::{
    About, Journal as Read, Position, Recording, RecoveredRoom, Segment, recover,
};
use playfield_room::{RoomType, Saves, Store, StoreError, StoreErrorKind};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::newest::{Claim, superseded};
use super::{ENDING, Journal};
use crate::room_id::RoomId;

/// The time that the store has to load the save of a room, or to save one.
const STORE_WAIT: Duration = Duration::from_secs(10);

/// The rooms of a journal that have not ended.
#[derive(Default)]
pub(crate) struct RecoveredRooms {
    pub(crate) open: Vec<Recovering>,
    pub(crate) ending: Vec<Ending>,
}

/// A room that goes on from the journal.
pub(crate) struct Recovering {
    pub(crate) form: FrozenWriter,
    pub(crate) about: About,
    pub(crate) position: Position,
    /// The values of its criteria.
    pub(crate) criteria: Vec<u8>,
    /// The shard that it was on.
    pub(crate) shard: u32,
}

/// A room that was ending, and could not be saved now.
pub(crate) struct Ending {
    pub(crate) id: RoomId,
    pub(crate) room_type: RoomType,
    pub(crate) key: String,
    pub(crate) recording: Recording,
    pub(crate) save: Vec<u8>,
    /// The saves that the store may have, if nobody else has saved the room since.
    pub(crate) saves: Saves,
}

/// A file of the journal: its number, its name and its content.
type Content = (u64, String, Vec<u8>);

impl Journal {
    /// Runs the rooms to the end of the journal, if another process has left one.
    ///
    /// # Errors
    /// If files are damaged, a room can't go on in this build, or the store refuses the save of one
    /// that was ending. The text names the room, the file and the place in it.
    pub(crate) fn recover(
        &self,
        room_types: &[RoomType],
        store: Option<&Arc<dyn Store>>,
    ) -> io::Result<RecoveredRooms> {
        let began = Instant::now();
        let failed = |text: String| {
            let text = format!(
                "journal.folder = {:?}: {text}. Nothing was changed. Rooms start from their last \
                 saves if you move the files of the journal away",
                self.folder
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let (counts, shards) = self.counts().map_err(|error| {
            io::Error::new(error.kind(), format!("journal.folder = {:?}: {error}", self.folder))
        })?;
        let files = self.files_of(counts)?;
        if let Some(missing) = (0..shards).find(|shard| !files.contains_key(shard)) {
            return Err(failed(format!(
                "all files {counts:016x}-{missing}-*.{ENDING} are missing: the last process had \
                 {shards} shards, each with files of its own; the rooms of shard {missing} would \
                 be lost"
            )));
        }
        let mut journals = Vec::new();
        for (shard, files) in files {
            if let Some((_, name, _)) = files.first().filter(|(.., bytes)| !has_begin(bytes)) {
                return Err(failed(format!(
                    "{name} is empty, or its first block is damaged, and shard {shard} has no \
                     earlier file: rooms of this shard would be lost"
                )));
            }
            let files_read = files.iter().map(|(_, name, bytes)| (name.as_str(), &bytes[..]));
            let journal = Read::read(files_read);
            for fault in journal.faults().iter().filter(|fault| !fault.is_damage) {
                log::info!(
                    "the journal's {fault}. It was being written when the process ended, and \
                     nobody was told of it"
                );
            }
            if let Some(fault) = journal.faults().iter().find(|fault| fault.is_damage)
                && journal.is_damaged()
            {
                let damaged: Vec<_> = journal.damaged().map(|(about, _)| name_of(about)).collect();
                let text = match damaged.is_empty() {
                    true => "rooms that began there would be lost".to_owned(),
                    false => format!("these rooms would lose what follows: {}", damaged.join(", ")),
                };
                return Err(failed(format!("{fault}; {text}")));
            }
            if let Some((before, missing)) = missing(&files, journal.follows()) {
                let open = journal.rooms().filter(|(_, room)| room.end().is_none());
                let open: Vec<_> = open.map(|(_, room)| name_of(room.about())).collect();
                return Err(failed(format!(
                    "file {missing} of shard {shard} is missing, which follows {before}: rooms \
                     that began there would be lost, and these rooms would lose what follows: {}",
                    open.join(", ")
                )));
            }
            journals.push((shard, journal));
        }
        let open = || {
            let rooms = journals.iter().flat_map(|(shard, journal)| {
                journal.rooms().map(move |(_, recording)| (*shard, recording))
            });
            rooms.filter(|(_, recording)| recording.end().is_none())
        };
        let claims = open().filter_map(|(_, recording)| Claim::of(recording));
        let superseded = superseded(claims).map_err(failed)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let store = store.map(|store| (store, &runtime));
        let (mut rooms, mut inputs) = (RecoveredRooms::default(), 0);
        for (shard, recording) in open() {
            let About { room_id, room_type, key, .. } = recording.about();
            if let Some(newest) = superseded.get(room_id) {
                self.keeps_others.store(true, Ordering::Relaxed);
                log::error!(
                    "room {room_id} ({room_type:?} {:?}) does not go on: room {newest} has its \
                     key, and is newer; its journal is kept in {:?}",
                    key.as_deref().unwrap_or_default(),
                    self.folder.join(super::KEPT)
                );
                continue;
            }
            let run = self.room(recording, room_types, store, shard, &mut rooms);
            inputs += run.map_err(failed)?;
        }
        if !rooms.open.is_empty() {
            log::info!("{}", gone_on(rooms.open.len(), inputs, began.elapsed()));
        }
        Ok(rooms)
    }

    /// Runs a room, and adds it to the `rooms`, unless it has ended. Returns the number of inputs
    /// that were run.
    fn room(
        &self,
        recording: &Recording,
        room_types: &[RoomType],
        store: Option<(&Arc<dyn Store>, &Runtime)>,
        shard: u32,
        rooms: &mut RecoveredRooms,
    ) -> Result<u64, String> {
        let about = recording.about().clone();
        let named = format!("room {}", name_of(&about));
        let room_type = room_types.iter().find(|of| of.name == about.room_type);
        let room_type = room_type.ok_or_else(|| {
            format!(
                "{named} can't go on: this program has no such room type; is it another than \
                 {:?}, which wrote the journal?",
                about.build
            )
        })?;
        let recovered = recover(recording, room_type).map_err(|error| match &about.build {
            build if *build == self.build => format!("{named} can't go on: {error}"),
            build => format!(
                "{named} can't go on in this build: {error}. Start the build {build:?}, which \
                 wrote the journal, and upgrade from there"
            ),
        })?;
        if let Some(why) = recovered.stopped {
            self.keeps_others.store(true, Ordering::Relaxed);
            log::error!(
                "{named} behaves differently in this build than when it was journaled, and goes \
                 on at {}; its journal is kept in {:?}. In {why}",
                recovered.position,
                self.folder.join(super::KEPT)
            );
        }
        let (position, inputs, known) = (recovered.position, recovered.inputs, recovered.known);
        if let Some((store, runtime)) = store
            && is_stale(store, runtime, &about, &recovered.saves, &named)?
        {
            self.keeps_others.store(true, Ordering::Relaxed);
            log::error!(
                "{named} does not go on from {}, but starts from its save in the store: the journal \
                 has this room until {position}, and does not know that save. It was made by a \
                 process without this journal, or after the last input that the journal has, or \
                 it is an older one that was put back. The files are kept in {:?}",
                recording.files().last().map_or("", String::as_str),
                self.folder.join(super::KEPT)
            );
            return Ok(inputs);
        }
        if known.inputs < position.inputs && about.build != self.build {
            self.keeps_others.store(true, Ordering::Relaxed);
            log::warn!(
                "{named} goes on at {position} in another build than {:?}, which journaled it: the \
                 last hash of its state in {} is at {known}, so it is not known whether this build \
                 behaves differently after that. The files are kept in {:?}",
                about.build,
                recording.files().last().map_or("", String::as_str),
                self.folder.join(super::KEPT)
            );
        }
        match recovered.room {
            RecoveredRoom::Open(form) => {
                let criteria = recording.host().to_vec();
                rooms.open.push(Recovering { form, about, position, criteria, shard });
            }
            RecoveredRoom::Ending(save) => {
                let (store, runtime) =
                    store.ok_or_else(|| format!("{named} was ending, and there is no store"))?;
                match save_now(store, runtime, &about, save.clone()) {
                    Ok(()) => {}
                    Err(error) if is_temporary(&error) => {
                        log::warn!(
                            "{named} was ending, and can't be saved now; it is tried again, and \
                             its key is busy until then: {error}"
                        );
                        let id = RoomId::parse(&about.room_id)
                            .ok_or_else(|| format!("{named} has an id that is not one"))?;
                        let (key, saves) = (about.key.unwrap_or_default(), recovered.saves);
                        let (room_type, recording) = (room_type.clone(), recording.clone());
                        let ending = Ending { id, room_type, key, recording, save, saves };
                        rooms.ending.push(ending);
                    }
                    Err(error) => {
                        return Err(format!("{named} was ending, and can't be saved: {error}"));
                    }
                }
            }
            RecoveredRoom::Ended => {}
        }
        Ok(inputs)
    }

    /// The files of an incarnation, by shard, in their order. Others do not count.
    fn files_of(&self, incarnation: u64) -> io::Result<BTreeMap<u32, Vec<Content>>> {
        let mut shards = BTreeMap::<u32, Vec<Content>>::new();
        for path in self.others()? {
            let Some((of, shard, number)) = parts(&path) else { continue };
            if of != incarnation {
                log::debug!("{} of the journal does not count", path.display());
                continue;
            }
            let bytes = fs::read(&path)?;
            let name = path.display().to_string();
            if let Some(segment) = Segment::read(&bytes)
                && (segment.incarnation, segment.shard, segment.number)
                    != (of, shard.into(), number)
            {
                let text = format!("{name} was renamed: it is file {} of another", segment.number);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            shards.entry(shard).or_default().push((number, name, bytes));
        }
        shards.values_mut().for_each(|files| files.sort_by_key(|(number, ..)| *number));
        Ok(shards)
    }
}

/// Returns whether a file has its first block, which is durable before an earlier file is removed.
fn has_begin(bytes: &[u8]) -> bool {
    Segment::read(bytes).is_some()
}

/// The first file of a shard that is missing, and the name of the one before: a gap in the numbers,
/// or one that `follows` the last file.
fn missing(files: &[Content], follows: Option<u64>) -> Option<(&str, u64)> {
    let next = files.iter().skip(1).map(|(number, ..)| Some(*number)).chain([follows]);
    let mut pairs = files.iter().zip(next);
    // Files are removed in order, so a gap is never left by a removal.
    let is_gap = |((number, ..), next): &(&Content, Option<u64>)| {
        next.is_some_and(|next| next != number + 1 || Some(next) == follows)
    };
    let gap = pairs.find(is_gap);
    gap.map(|((number, name, _), _)| (name.as_str(), number + 1))
}

/// The id of a room, its type and its key.
fn name_of(about: &About) -> String {
    let About { room_id, room_type, key, .. } = about;
    format!("{room_id} ({room_type:?} {:?})", key.as_deref().unwrap_or_default())
}

/// The incarnation, the shard and the number in the name of a file.
pub(crate) fn parts(path: &Path) -> Option<(u64, u32, u64)> {
    let name = path.file_name()?.to_str()?.strip_suffix(&format!(".{ENDING}"))?;
    let mut parts = name.split('-');
    let incarnation = u64::from_str_radix(parts.next()?, 16).ok()?;
    let numbers = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((incarnation, numbers.0, numbers.1))
}

/// Returns whether the store has a save that the journal of a room does not know. `false` if that
/// can't be read now.
fn is_stale(
    store: &Arc<dyn Store>,
    runtime: &Runtime,
    about: &About,
    saves: &Saves,
    named: &str,
) -> Result<bool, String> {
    let key = about.key.as_deref().unwrap_or_default();
    let loaded = runtime.block_on(in_time(store.load(&about.room_type, key)));
    match loaded {
        Ok(loaded) => Ok(loaded.is_some_and(|loaded| saves.lacks(&loaded.bytes))),
        Err(error) if is_temporary(&error) => {
            log::warn!(
                "{named} goes on from the journal, but its save can't be read now, so it is not \
                 known whether the journal has that: {error}"
            );
            Ok(false)
        }
        Err(error) => Err(format!("the save of {named} can't be read: {error}")),
    }
}

/// Saves a room that was ending.
fn save_now(
    store: &Arc<dyn Store>,
    runtime: &Runtime,
    about: &About,
    save: Vec<u8>,
) -> Result<(), StoreError> {
    let key = about.key.as_deref().unwrap_or_default();
    runtime.block_on(in_time(async {
        let opened = store.open(&about.room_type, key).await?;
        let saved = store.save_and_wait(&about.room_type, key, opened.fence, save).await;
        store.close(&about.room_type, key, opened.fence);
        saved
    }))
}

/// The answer of the store, or an error if it takes too long.
async fn in_time<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    timeout(STORE_WAIT, answer).await.unwrap_or_else(|_| {
        let text = format!("it did not answer within {STORE_WAIT:?}");
        Err(StoreError::new(StoreErrorKind::Away, text))
    })
}

fn is_temporary(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::Away | StoreErrorKind::Busy)
}

/// The log message for rooms that continue.
fn gone_on(rooms: usize, inputs: u64, took: Duration) -> String {
    let rooms = match rooms {
        1 => "1 room goes".to_owned(),
        count => format!("{count} rooms go"),
    };
    let inputs = match inputs {
        0 => "no input had to be run".to_owned(),
        1 => "1 input was run".to_owned(),
        count => format!("{count} inputs were run"),
    };
    format!("{rooms} on from the journal: {inputs}, in {took:.1?}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::gone_on;

    #[test]
    fn one_room_is_not_several() {
        let says = |rooms, inputs| gone_on(rooms, inputs, Duration::from_millis(1_500));
        assert_eq!(
            [says(1, 0), says(1, 1), says(2, 2)],
            [
                "1 room goes on from the journal: no input had to be run, in 1.5s",
                "1 room goes on from the journal: 1 input was run, in 1.5s",
                "2 rooms go on from the journal: 2 inputs were run, in 1.5s",
            ]
        );
    }
}
