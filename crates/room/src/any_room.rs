//! A room as its host sees it, whatever its state.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format};

use crate::{Error, Link, Message, RoomOutput};

/// Someone who asks to be let in.
#[derive(Clone, Debug)]
pub struct Entrant {
    /// Where the player's output goes.
    pub link: Link,
    /// The format of that output.
    pub format: Format,
    /// The display name.
    pub name: String,
    /// Who the authenticator says this is; `None` for a guest.
    pub user: Option<String>,
}

/// What others may know of a room without being in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomSummary {
    /// Seated players.
    pub players: u32,
    /// The most that may be seated.
    pub capacity: u32,
    /// Nobody else may join.
    pub locked: bool,
    /// Never listed, never matched; joined by its id alone.
    pub private: bool,
    /// What the room says of itself, for listing and filtering.
    pub metadata: BTreeMap<String, String>,
}

/// What comes to a room from elsewhere than its players.
#[derive(Clone, Debug, PartialEq)]
pub enum Mail {
    /// Background work ended.
    Done {
        /// The number given to [`RoomOutput::spawn`] or [`RoomOutput::compute`].
        task: u64,
        /// What it ended with.
        message: InternalMessage,
    },
    /// Background work panicked.
    Lost {
        /// The number given to [`RoomOutput::spawn`] or [`RoomOutput::compute`].
        task: u64,
    },
    /// A message from another room.
    Told {
        /// The id of the room that sent it.
        from: String,
        /// The message.
        message: InternalMessage,
    },
    /// A request from another room.
    Asked {
        /// The id of the room to answer.
        from: String,
        /// The asking room's number for it.
        ask: u64,
        /// The message.
        message: InternalMessage,
    },
    /// The answer to a request of this room.
    Answered {
        /// The number it was asked under.
        ask: u64,
        /// The encoded reply (`packed`), or why there is none.
        reply: Result<Vec<u8>, Error>,
    },
}

/// A message by name, encoded in `packed`: the form in which messages reach rooms from rooms,
/// timers and background work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalMessage {
    /// The message's declared name.
    pub name: String,
    /// The encoded message.
    pub payload: Vec<u8>,
}

impl InternalMessage {
    /// A message in that form.
    pub fn of<M: Message>(message: &M) -> Self {
        let mut payload = Vec::new();
        message.encode(&mut payload);
        Self { name: M::NAME.to_owned(), payload }
    }
}

/// A room as its host drives it: inputs with the time they came at, and encoded state out.
///
/// Times are `at`: how long the room has existed. They never go back. No call panics on account of
/// user code: a panic there closes the room, which tells its players through [`RoomOutput::removed`].
pub trait AnyRoom: Send {
    /// What others may know of it. Check after each call whether it changed.
    fn summary(&self) -> &RoomSummary;

    /// It has ended, and wants to be dropped.
    fn is_closed(&self) -> bool;

    /// The version of the last sync; 1 after creation.
    fn version(&self) -> u64;

    /// Ticks per second; 0 = never.
    fn tick_hz(&self) -> u32;

    /// Syncs per second; 0 = only on demand.
    fn sync_hz(&self) -> u32;

    /// Seats a player, if there is room and the room's code agrees.
    ///
    /// # Errors
    /// `room_full`, `room_locked`, `room_failed`, or the room's own refusal. The error is all that
    /// is owed to the link then: [`RoomOutput::removed`] is not called for it, and events for it that
    /// were raised meanwhile are to be dropped.
    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<PlayerId, Error>;

    /// A player went, by choice or because the session ended. Nothing more is sent to the link.
    fn leave(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput);

    /// A player's message; answered through `out` if `request` is given.
    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<u32>,
        out: &mut dyn RoomOutput,
    );

    /// Something from elsewhere.
    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput);

    /// One step of the simulation. `number` counts from 1; numbers that were skipped stay skipped.
    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput);

    /// When [`wake`](Self::wake) is next due: timers, and the end of an empty room.
    fn wake_at(&self) -> Option<Duration>;

    /// Runs what is due.
    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput);

    /// The room asked to be synced before its next regular time.
    fn wants_sync(&self) -> bool;

    /// Internal what changed since the last sync, under the next version.
    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput);

    /// Whether a patch can begin at this version; if not, the player needs a snapshot.
    fn reaches(&self, since: u64) -> bool;

    /// Appends the body of the patch that takes this player's copy from version `since` to
    /// [`version`](Self::version); `false`, and nothing appended, when nothing changed for this
    /// player.
    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool;

    /// Appends the body of this player's snapshot.
    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>);

    /// The digest of this player's copy in a format at [`version`](Self::version), for a client to
    /// hold its own against; `None` where there is none to be had.
    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        let _ = (player, format);
        None
    }

    /// Ends the room from outside.
    fn close(&mut self, at: Duration, code: ErrorCode, text: &str, out: &mut dyn RoomOutput);
}
