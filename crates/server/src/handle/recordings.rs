//! Recordings of a node's rooms, as its operators see them: they run again beside the shards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_room::recording::{
    About, End, Excerpt, ExcerptOf, Found, Position, Recording, ReplayError, Search,
};
use playfield_room::{Error, Result, RoomType};
use playfield_wire::ErrorCode;
use tokio::time::timeout;

use super::operator::Operator;
use crate::node::Node;
use crate::recordings::{RecordingFile, RecordingSource};

/// The time that a replay waits for others.
const WAIT: Duration = Duration::from_secs(5);
/// The time for which frames are taken, beside that of getting to the first.
const FRAMES_WITHIN: Duration = Duration::from_secs(1);
/// The time for which a recording is searched, before the asker is told how far that was.
const SEARCH_WITHIN: Duration = Duration::from_secs(2);

/// A recording of a room, as a whole.
#[derive(Clone, Debug)]
pub struct RecordingFacts {
    /// The facts about the room.
    pub about: About,
    /// The bytes of its file.
    pub bytes: u64,
    /// Why it ends; `None` if it has no end yet, or was cut.
    pub end: Option<End>,
    /// The fault of the file, with its place. The recording ends before it.
    pub fault: Option<String>,
    /// The position of the first keyframe.
    pub first: Position,
    /// The position after the last input.
    pub last: Position,
    /// The places where inputs are missing, each with the reason.
    pub gaps: Vec<(Position, String)>,
    /// The room type has another schema here than when it was recorded.
    pub is_other_schema: bool,
}

impl Operator<'_> {
    /// The number of files in the folder of recordings whose names contain a text, such as the id of
    /// a room, and `limit` of them after the first `skip`: the latest first.
    ///
    /// # Errors
    /// `refused` if recordings have no folder, `internal` if it can't be read.
    pub async fn recordings(
        &self,
        containing: String,
        skip: usize,
        limit: usize,
    ) -> Result<(usize, Vec<RecordingFile>)> {
        self.beside(move |node| node.recordings()?.files().list(&containing, skip, limit)).await
    }

    /// The facts about a recording.
    ///
    /// # Errors
    /// As [`excerpt`](Self::excerpt).
    pub async fn recording(&self, source: RecordingSource) -> Result<RecordingFacts> {
        self.replayed(source, |recording, room_type, bytes| {
            Ok(RecordingFacts {
                about: recording.about().clone(),
                bytes,
                end: recording.end().cloned(),
                fault: recording.fault().map(ToString::to_string),
                first: recording.begin(),
                last: recording.last()?,
                gaps: recording.gaps().iter().map(|(at, why)| (*at, (*why).to_owned())).collect(),
                is_other_schema: recording.about().fingerprint != room_type.fingerprint,
            })
        })
        .await
    }

    /// A part of a recording, which runs again in this build, beside the shards: from the last
    /// keyframe before it, and for a second at most after its begin.
    ///
    /// # Errors
    /// `refused` if recordings have no folder, or the node has no such room type; `room_not_found`
    /// if there is no such recording, `bad_payload` if it can't be read or can't go on in this
    /// build, `busy` if others are replayed for 5 s, or `shutting_down`.
    pub async fn excerpt(&self, source: RecordingSource, of: ExcerptOf) -> Result<Excerpt> {
        self.replayed(source, move |recording, room_type, _| {
            let began = Instant::now();
            Excerpt::run(recording, room_type, &of, &mut || began.elapsed() < FRAMES_WITHIN)
        })
        .await
    }

    /// Searches a recording, for two seconds at most.
    ///
    /// # Errors
    /// As [`excerpt`](Self::excerpt).
    pub async fn search(&self, source: RecordingSource, search: Search) -> Result<Found> {
        self.replayed(source, move |recording, room_type, _| {
            let began = Instant::now();
            search.run(recording, room_type, &mut || began.elapsed() < SEARCH_WITHIN)
        })
        .await
    }

    /// Reads a recording, and does something with it.
    async fn replayed<T: Send + 'static>(
        &self,
        source: RecordingSource,
        replay: impl FnOnce(&Recording, &RoomType, u64) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T> {
        self.beside(move |node| {
            let (recording, bytes) = node.recordings()?.files().read(&source)?;
            let name = &recording.about().room_type;
            let room_type = node.room_type(name).ok_or_else(|| {
                let text = format!("{}: the node has no room type {name:?}", source.file);
                Error::new(ErrorCode::Refused, text)
            })?;
            let room_type = &node.room_types[usize::from(room_type)];
            replay(&recording, room_type, bytes).map_err(|error| {
                Error::new(ErrorCode::BadPayload, format!("{}: {error}", source.file))
            })
        })
        .await
    }

    /// Does something that takes long, on a thread of its own. Few do at once.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Node) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let node = Arc::clone(&self.node.node);
        let replays = node.recordings()?.replays();
        let Ok(Ok(replay)) = timeout(WAIT, replays.acquire_owned()).await else {
            let text = "other recordings are replayed: try again";
            return Err(Error::new(ErrorCode::Busy, text));
        };
        let runtime = self.node.shared.control.get().ok_or_else(crate::asks::ended)?;
        let done = runtime.spawn_blocking(move || {
            let _replay = replay;
            work(&node)
        });
        done.await.unwrap_or_else(|error| {
            Err(Error::new(ErrorCode::Internal, format!("the replay failed: {error}")))
        })
    }
}

impl Node {
    /// The recordings.
    ///
    /// # Errors
    /// `refused` if they have no folder.
    fn recordings(&self) -> Result<&crate::recordings::Recordings> {
        self.recordings.as_ref().ok_or_else(|| {
            let text = "the node has no recordings: set recordings.folder";
            Error::new(ErrorCode::Refused, text)
        })
    }
}
