//! Entering rooms with a copy of their state: the node's schema is asked for where it is needed.

mod target;
mod waiting;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::schema::RoomSchema;
use playfield_wire::{DecodeError, RequestNumber, RoomNumber, server};

use super::copy::BoxedCopy;
use super::numbers::NumberMap;
use super::protocol::Protocol;
use super::report::Report;
use super::requests::Asked;
use super::schemas::{SchemaRequests, Schemas};
use super::{
    Build, CommandError, Event, FORMAT, Failure, RoomCopy, Session, Translation, Unusable,
};
pub use target::Target;

/// The rooms that this client enters and leaves by itself.
#[derive(Debug)]
pub(super) struct Entering {
    schemas: Schemas,
    schema_requests: SchemaRequests,
    /// Requests of the session for schemas, and the room types they are for.
    asked: NumberMap<RequestNumber, String>,
    /// The same of the program.
    shown: NumberMap<RequestNumber, String>,
    /// Requests to enter a room that the node has not granted.
    entries: NumberMap<RequestNumber, Entry>,
    /// Requests that were not sent yet: they wait for the schema of a room type.
    unready: Vec<(String, RequestNumber, Target)>,
    /// Requests that have it.
    ready: Vec<(RequestNumber, Target)>,
    /// Rooms to leave once that can be sent.
    forsaken: Vec<RoomNumber>,
}

#[derive(Debug)]
struct Entry {
    build: Build,
    copy: BoxedCopy,
}

impl Entry {
    /// Checks options, and converts them to the node's form.
    fn options(&self, by: &Translation, options: &mut Vec<u8>) -> Result<(), DecodeError> {
        if let Translation::Learned(learned) = by
            && !options.is_empty()
        {
            self.copy.0.check_options(learned, options)?;
        }
        by.options(options)
    }
}

/// The steps that are left until a room is entered that the node has granted.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) room_type: String,
    pub(super) fingerprint: u64,
    pub(super) player: PlayerId,
    /// The program's build, while the node's schema is awaited.
    awaits: Option<Build>,
    translation: Translation,
}

impl Entering {
    pub(super) fn new(named: Vec<String>, timeout: Duration) -> Self {
        Self {
            schemas: Schemas::new(named),
            schema_requests: SchemaRequests::new(timeout),
            asked: NumberMap::default(),
            shown: NumberMap::default(),
            entries: NumberMap::default(),
            unready: Vec::new(),
            ready: Vec::new(),
            forsaken: Vec::new(),
        }
    }

    /// Returns whether nothing waits.
    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.forsaken.is_empty() && self.schema_requests.is_empty()
    }

    pub(super) fn due_at(&self) -> Option<Duration> {
        self.schema_requests.due_at()
    }

    /// The schema by which the options of unconfirmed requests for rooms of a type are written,
    /// with its fingerprint, if there can be any.
    pub(super) fn written(&self, room_type: &str) -> Option<(u64, Arc<RoomSchema>)> {
        self.schemas.written(room_type, self.entries.values().map(|entry| &entry.build))
    }

    /// Another session has begun: the node may be another build by now.
    pub(super) fn begin_session(&mut self) {
        self.schemas.clear();
        self.forsaken.clear();
    }

    /// The session is over.
    pub(super) fn clear(&mut self) {
        self.schemas.clear();
        self.schema_requests.clear();
        (self.unready, self.ready, self.forsaken) = Default::default();
    }

    /// The room is at another node. The copy that was to be kept is dropped.
    pub(super) fn redirected(&mut self, request: RequestNumber) {
        self.entries.remove(&request);
    }

    /// The room will be left once that can be sent.
    pub(super) fn forsake(&mut self, room: RoomNumber) {
        self.forsaken.push(room);
    }
}

impl Session {
    /// Asks to enter a room, and keeps `copy` up to date from then on. Returns the number of the
    /// request: [`Event::Joined`] says that it was granted, and
    /// [`Event::Entered`] that the copy is there.
    ///
    /// `build` is the schema that the program was built with. If the node's may be another, the
    /// session asks for it and reads updates by it. Options are in the form of that build: of
    /// [`Build::Any`], JSON.
    ///
    /// # Errors
    /// Same as for all [commands](Self::join).
    pub fn enter(
        &mut self,
        target: Target,
        build: Build,
        copy: Box<dyn RoomCopy + Send>,
    ) -> Result<RequestNumber, CommandError> {
        self.protocol.enter(target, build, copy)
    }

    /// Leaves a room, now or once that can be sent. Nothing answers it.
    pub fn forsake(&mut self, room: RoomNumber) {
        self.protocol.entering.forsake(room);
        self.protocol.leave_forsaken();
    }
}

impl Protocol {
    fn enter(
        &mut self,
        mut target: Target,
        build: Build,
        copy: Box<dyn RoomCopy + Send>,
    ) -> Result<RequestNumber, CommandError> {
        let request = self.reserve()?;
        let entry = Entry { build, copy: BoxedCopy::new(copy) };
        let mut waits_for = None;
        if let Some((room_type, options)) = target.creates() {
            let build = &entry.build;
            match self.entering.schemas.translation(room_type, build, None) {
                Ok(None) if build.has_options(options) => waits_for = Some(room_type.to_owned()),
                Ok(translation) => {
                    let translation = translation.unwrap_or(Translation::None);
                    if let Err(error) = entry.options(&translation, options) {
                        return Ok(self.refuse_entry(request, Unusable::Options(error)));
                    }
                }
                Err(why) => return Ok(self.refuse_entry(request, why)),
            }
        }
        match waits_for {
            None => {
                let count = self.send_entry(request, &target)?;
                self.requests.sent(request, Asked::Join, count);
            }
            Some(room_type) => {
                self.requests.unsent(request, Asked::Join);
                self.entering.schema_requests.ask(self.pulse.now(), &room_type);
                self.entering.unready.push((room_type, request, target));
            }
        }
        self.entering.entries.insert(request, entry);
        self.follow_schemas();
        Ok(request)
    }

    /// A request is never sent.
    fn refuse_entry(&mut self, request: RequestNumber, why: Unusable) -> RequestNumber {
        self.requests.skip();
        self.events.push_back(Event::Failed { request, failure: Failure::Unusable(why) });
        request
    }

    fn send_entry(&mut self, request: RequestNumber, target: &Target) -> Result<u64, CommandError> {
        let options = match target {
            Target::Create { options, .. } | Target::JoinOrCreate { options, .. } => &options[..],
            Target::Join { .. } | Target::JoinByKey { .. } => &[],
        };
        let message = target.message(request);
        self.write_counted(None, options, |out| message.encode(FORMAT, out))
    }

    /// Sends a request that has waited for a schema.
    fn send_ready(&mut self, request: RequestNumber, mut target: Target) {
        let entry = self.entering.entries.get(&request);
        let translated = match (target.creates(), entry) {
            (Some((room_type, options)), Some(entry)) => {
                match self.entering.schemas.translation(room_type, &entry.build, None) {
                    Ok(translation) => translation
                        .map_or(Ok(()), |by| entry.options(&by, options))
                        .map_err(Unusable::Options),
                    Err(why) => Err(why),
                }
            }
            _ => Ok(()),
        };
        let failure = match translated {
            Err(why) => Failure::Unusable(why),
            Ok(()) => match self.send_entry(request, &target) {
                Ok(count) => return self.requests.sent_late(request, count),
                Err(error) => Failure::NotSent(error),
            },
        };
        self.requests.forget(request);
        self.failed(request, failure);
    }

    /// The node has granted a request. Its copy, if it has one, is kept up to date from now on.
    pub(super) fn granted(&mut self, joined: &server::Joined<'_>) -> Report {
        let Some(Entry { build, copy }) = self.entering.entries.remove(&joined.request) else {
            return Report::This;
        };
        // The event comes before those that follow from it.
        self.events.push_back(Event::Joined(joined.to_static()));
        let (room, fingerprint) = (joined.room, joined.fingerprint);
        self.entering.schemas.joined(&joined.room_type, fingerprint);
        let mut granted = Granted {
            room_type: joined.room_type.to_string(),
            fingerprint,
            player: PlayerId(joined.player),
            awaits: None,
            translation: Translation::None,
        };
        let translation =
            self.entering.schemas.translation(&joined.room_type, &build, Some(fingerprint));
        let mut copy = copy;
        let speech = self.entering.schemas.speech(&granted, &build);
        if let Ok(None) = translation {
            granted.awaits = Some(build);
            copy.0.hold();
        }
        self.rooms.grant(room, copy, granted);
        self.rooms.speak(room, speech);
        match translation {
            Ok(Some(translation)) => self.translate(room, translation),
            Ok(None) => {
                self.entering.schema_requests.ask(self.pulse.now(), &joined.room_type);
                self.follow_schemas();
            }
            Err(why) => self.unusable(room, why),
        }
        Report::Nothing
    }

    /// Sets how to read what the node sends for a room.
    fn translate(&mut self, room: RoomNumber, translation: Translation) {
        let Some((granted, copy)) = self.rooms.granted(room) else { return };
        match copy.0.translate(&translation, granted.player) {
            Ok(needs_snapshot) => {
                (granted.translation, granted.awaits) = (translation, None);
                if needs_snapshot {
                    let _ = self.resync(room);
                }
            }
            Err(why) => self.unusable(room, Unusable::Shape(why)),
        }
    }

    /// Reports a room as entered, once its copy is there.
    pub(super) fn tell_entered(&mut self, room: RoomNumber) {
        if let Some((granted, copy)) = self.rooms.granted(room)
            && granted.awaits.is_none()
            && copy.0.is_filled()
            && self.rooms.has_copy(room)
            && let Some(granted) = self.rooms.take_granted(room)
        {
            self.events.push_back(Event::Entered { room, translation: granted.translation });
        }
    }

    /// A copy has kept two snapshots in a row, and could read neither.
    pub(super) fn unreadable(&mut self, room: RoomNumber) {
        if self.rooms.knows(room) {
            let why = DecodeError::other("two snapshots in a row can't be read");
            self.unusable(room, Unusable::State(why));
        }
    }

    /// This client can't be in a room: leaves it.
    pub(super) fn unusable(&mut self, room: RoomNumber, why: Unusable) {
        self.rooms.take_granted(room);
        self.events.push_back(Event::Unusable { room, why });
        self.entering.forsake(room);
        self.leave_forsaken();
    }

    /// Does what had to wait: for the time, the welcome, or for less that is unconfirmed.
    #[inline]
    pub(super) fn continue_entering(&mut self) {
        if !self.entering.is_idle() {
            self.follow_schemas();
            self.leave_forsaken();
        }
    }

    /// Leaves the rooms that are forsaken. If that can't be sent now, tries again later.
    fn leave_forsaken(&mut self) {
        for room in mem::take(&mut self.entering.forsaken) {
            let left = self.leave(room);
            if let Err(
                CommandError::Busy { .. } | CommandError::Unconfirmed { .. } | CommandError::Away,
            ) = left
            {
                self.entering.forsaken.push(room);
            }
        }
    }
}
