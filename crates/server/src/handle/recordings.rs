//! Recordings of a node's rooms, as its operators see them: they run again beside the shards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_room::frozen::Frozen;
use playfield_room::recording::{
    About, End, Excerpt, ExcerptOf, Found, Position, Recording, ReplayError, Search,
};
use playfield_room::{AnyRoom, Error, Link, Result, RoomType, Thaw};
use playfield_wire::ErrorCode;
use tokio::time::timeout;

use super::operated::Answering;
use super::operator::{Operator, answer_of};
use crate::directory::Plan;
use crate::node::Node;
use crate::recordings::{RecordingFile, RecordingFiles, RecordingSource};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;

/// The time that a replay waits for others.
const WAIT: Duration = Duration::from_secs(5);
/// The time for which frames are taken, beside that of getting to the first.
const FRAMES_WITHIN: Duration = Duration::from_secs(1);
/// The most time that one search takes. Its answer says how far it got.
const SEARCH_WITHIN: Duration = Duration::from_secs(2);

/// The link of players who are not connected.
const NOBODY: Link = Link(u64::MAX);

/// A fork of a recorded room, which is to go on in a shard.
pub(crate) struct Forked {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) room: Box<dyn AnyRoom>,
    /// The position of the recording at which it was forked.
    pub(crate) position: Position,
    pub(crate) answer: Answering<()>,
}

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
    /// The number of files in the folder of recordings whose names contain a text, such as the id
    /// of a room, and `limit` of them after the first `skip`: the latest first. Rooms of the
    /// journal are listed like files of recordings, for which the whole journal is read.
    ///
    /// # Errors
    /// `refused` if recordings have no folder and no room a journal, `internal` if it can't be read.
    pub async fn recordings(
        &self,
        containing: String,
        skip: usize,
        limit: usize,
    ) -> Result<(usize, Vec<RecordingFile>)> {
        self.beside(move |node| node.recording_files()?.list(&containing, skip, limit)).await
    }

    /// The facts about a recording.
    ///
    /// # Errors
    /// The same as for [`excerpt`](Self::excerpt).
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
    /// keyframe before it, and for a second at most after its begin. `shown` runs there, too, with
    /// the schema of the room's type, since an excerpt may be large.
    ///
    /// # Errors
    /// `refused` if there can be no recordings, or the node has no such room type; `room_not_found`
    /// if there is no such recording, `bad_payload` if it can't be read or can't go on in this
    /// build, `busy` if others are replayed for 5 s, or `shutting_down`.
    pub async fn excerpt<T: Send + 'static>(
        &self,
        source: RecordingSource,
        of: ExcerptOf,
        shown: impl FnOnce(&Excerpt, &str) -> T + Send + 'static,
    ) -> Result<T> {
        self.replayed(source, move |recording, room_type, _| {
            let began = Instant::now();
            let has_time = &mut || began.elapsed() < FRAMES_WITHIN;
            let excerpt = Excerpt::run(recording, room_type, &of, has_time)?;
            Ok(shown(&excerpt, &room_type.schema))
        })
        .await
    }

    /// Searches a recording, for two seconds at most.
    ///
    /// # Errors
    /// The same as for [`excerpt`](Self::excerpt).
    pub async fn search_recording(&self, source: RecordingSource, search: Search) -> Result<Found> {
        self.replayed(source, move |recording, room_type, _| {
            let began = Instant::now();
            search.run(recording, room_type, &mut || began.elapsed() < SEARCH_WITHIN)
        })
        .await
    }

    /// Forks a recorded room: a [fork](playfield_room::frozen::fork) goes on in this node from
    /// where the room was after so many inputs. Returns its id.
    ///
    /// # Errors
    /// The same as for [`excerpt`](Self::excerpt); `bad_payload`, too, if the room differs there
    /// from what was recorded, or had ended; `limit` or `busy` if the node takes no more rooms.
    pub async fn fork_recording(&self, source: RecordingSource, inputs: u64) -> Result<String> {
        let mut random = [0; 10];
        getrandom::fill(&mut random).expect("the system's random source worked at the start");
        let id = self.node.node().room_id(random);
        let of = format!("{} input {inputs}", source.file);
        let (room, position, name) = self
            .replayed(source, move |recording, room_type, _| {
                let (frozen, position) = recording.fork(room_type, inputs, &id.to_string(), &of)?;
                let thawed = Frozen::read(&frozen).and_then(|frozen| {
                    let link = &mut |_| NOBODY;
                    (room_type.thaw)(Thaw { frozen: &frozen, store: None, link })
                });
                let room = thawed.map_err(|error| ReplayError::Fork(error.into()))?;
                Ok((room, position, room_type.name.clone()))
            })
            .await?;
        let node = &self.node.node;
        let room_type = node.room_type(&name).expect("the node has it");
        if position.at > self.node.now() {
            let text = format!("the room is {:?} old: that is too old for a fork", position.at);
            return Err(Error::new(ErrorCode::Refused, text));
        }
        // A type has at most 1,000 ticks per second.
        if position.tick / 1_000 > position.at.as_secs() + 1 {
            let text = format!("the room can't have had {} ticks", position.tick);
            return Err(Error::new(ErrorCode::BadPayload, text));
        }
        let settings = &node.room_types[usize::from(room_type)].settings;
        let choice = node.directory.plan(&Plan {
            id,
            room_type,
            key: None,
            criteria: Vec::new(),
            seats: 0,
            waiting_max: settings.joins_waiting_max,
            capacity: room.summary().capacity,
            private: true,
            shard: 0,
        })?;
        let (answer, answered) = Answering::new();
        let forked = Forked { id, room_type, room, position, answer };
        if let Err(error) = self.node.post(choice.shard, ShardMail::Fork(Box::new(forked))) {
            node.remove_room(id);
            return Err(error);
        }
        answer_of(choice.shard, answered).await.map(|()| id.to_string())
    }

    /// Reads a recording, and does something with it.
    async fn replayed<T: Send + 'static>(
        &self,
        source: RecordingSource,
        replay: impl FnOnce(&Recording, &RoomType, u64) -> Result<T, ReplayError> + Send + 'static,
    ) -> Result<T> {
        self.beside(move |node| {
            let (recording, bytes) = node.recording_files()?.read(&source)?;
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
        let replays = Arc::clone(&node.replays);
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
    /// The files of recordings and of the journal.
    ///
    /// # Errors
    /// `refused` if there can be none.
    fn recording_files(&self) -> Result<RecordingFiles> {
        let folder = self.recordings.as_ref().map(|_| self.config.recordings.folder.clone());
        let journal = self.journal.as_ref().map(|journal| journal.folder().to_owned());
        if folder.is_none() && journal.is_none() {
            let text = "the node has no recordings: set recordings.folder";
            return Err(Error::new(ErrorCode::Refused, text));
        }
        Ok(RecordingFiles { folder, journal })
    }
}
