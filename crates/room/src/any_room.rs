//! A room as its host sees it, whatever its state.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format, RequestNumber};

use crate::frozen::{FreezeError, FrozenWriter, InFlight};
use crate::recording::Recorder;
use crate::{
    Claims, EndReason, Error, LeaveReason, Link, Message, Opened, Operation, Pausable, Player,
    Reservation, RoomOutput, Saves, SeatFor, Sender, Stage, StoreError, Undone, Unsaved,
};

/// A player who wants to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// The receiver of all that is sent to the player.
    pub link: Link,
    /// The format of that output.
    pub format: Format,
    /// The display name.
    pub name: String,
    /// The user that the authenticator identified; `None` for a guest.
    pub user: Option<String>,
    /// The user's claims from the verified token; empty for a guest.
    pub claims: Claims,
    /// The seat that their ticket names.
    pub seat: Option<String>,
    /// The secret of their reservation.
    pub reservation: Option<String>,
}

/// The outcome of a join that was not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The player is in the room.
    Seated(PlayerId),
    /// The player waits, with a seat reserved. [`RoomOutput::admitted`] or [`RoomOutput::refused`]
    /// follows, unless they [leave](AnyRoom::leave) before.
    Waiting(PlayerId),
}

/// The facts about a room that those outside it may know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomSummary {
    /// The number of players, without those who wait to join.
    pub players: u32,
    /// The most players.
    pub capacity: u32,
    /// The seats kept for players with a reservation.
    pub reserved: u32,
    /// No further players may join.
    pub locked: bool,
    /// Neither listed nor found by `join_or_create`; joined by its id alone.
    pub private: bool,
    /// The key by which it can be joined, if it has one. It never changes.
    pub key: Option<Arc<str>>,
    /// The key is a code, which clients may write in any case.
    pub is_code: bool,
    /// The room ends: nobody may join, and it is not listed.
    pub closing: bool,
    /// The metadata that the room publishes, for listing and filtering.
    pub metadata: BTreeMap<String, String>,
}

/// The input of a room from parties other than its players.
#[derive(Clone, Debug, PartialEq)]
pub enum Mail {
    /// A background task ended.
    Done {
        /// Its number in [`RoomOutput::spawn`] or [`RoomOutput::compute`].
        task: u64,
        /// Its result.
        message: InternalMessage,
    },
    /// A background task panicked.
    Panicked {
        /// Its number in [`RoomOutput::spawn`] or [`RoomOutput::compute`].
        task: u64,
    },
    /// A save ended.
    Saved {
        /// Its number in [`RoomOutput::completion`].
        save: u64,
        /// Its outcome.
        outcome: Result<(), StoreError>,
    },
    /// A message from another room.
    Told {
        /// The room that sent it; `None` if it came from outside.
        from: Option<Arc<Sender>>,
        /// The message.
        message: InternalMessage,
    },
    /// A request from another room.
    Asked {
        /// The room to answer; `None` if the request came from outside, where the empty id answers
        /// it.
        from: Option<Arc<Sender>>,
        /// The asking room's number for it.
        ask: u64,
        /// The message.
        message: InternalMessage,
    },
    /// The answer to a request of this room.
    Answered {
        /// The number of the request.
        ask: u64,
        /// The reply, encoded in `packed`, or why there is none.
        reply: Result<Vec<u8>, Error>,
    },
}

/// The greatest length of an encoded message that takes one allocation.
const SHORT_BYTES: usize = 32;

/// A message by name, encoded in `packed`: the form in which rooms receive messages from timers,
/// background work and other rooms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalMessage {
    /// The message's declared name.
    pub name: Cow<'static, str>,
    /// The encoded message.
    pub payload: Vec<u8>,
}

impl InternalMessage {
    /// A message in that form.
    pub fn of<M: Message>(message: &M) -> Self {
        // Most are short; one that grows would be moved.
        let mut payload = Vec::with_capacity(SHORT_BYTES);
        message.encode(&mut payload);
        Self { name: Cow::Borrowed(M::NAME), payload }
    }
}

/// A room as its host sees it: inputs with the time of each go in, encoded state comes out.
///
/// Times are named `at`: how long the room has existed. They never go back. No call panics because
/// user code does: the room closes, and its players receive [`RoomOutput::removed`].
pub trait AnyRoom: Send {
    /// Returns the facts about it that others may know. It may change with each call.
    fn summary(&self) -> &RoomSummary;

    /// Returns whether it has ended, and is to be dropped.
    fn is_closed(&self) -> bool;

    /// Returns the stage of its life.
    fn stage(&self) -> Stage {
        if self.is_closed() { Stage::Ended } else { Stage::Open }
    }

    /// Whether it has opened, so that players can enter it; `None` while it waits for work that
    /// began in its creation. The error says why it never opened, or that it has ended.
    fn opened(&self) -> Option<Result<(), Error>> {
        let is_closed = self.is_closed();
        Some(if is_closed { Err(EndReason::Closed.error("the room ended")) } else { Ok(()) })
    }

    /// Returns what it had not done when it was dropped; `None` if it has not ended, or ended in
    /// time.
    fn undone(&self) -> Option<Undone> {
        None
    }

    /// The version of the last sync; 1 after creation.
    fn version(&self) -> u64;

    /// Counts as this many syncs, if nothing has been called since the last one.
    fn pass_syncs(&mut self, syncs: u64);

    /// Ticks per second; 0 = none.
    fn tick_hz(&self) -> u32;

    /// Syncs per second; 0 = only on demand.
    fn sync_hz(&self) -> u32;

    /// A player wants to join.
    ///
    /// # Errors
    /// `room_full`, `room_locked`, `bad_reservation`, `room_closed` if it is about to end,
    /// `room_not_found` if it has ended, `room_failed`, or the room's own refusal. The host sends
    /// the link this error and nothing else: [`RoomOutput::removed`] is not called for it, and the
    /// host drops any event for it.
    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission, Error>;

    /// Reserves a seat for someone, for so long.
    ///
    /// # Errors
    /// `room_full`, `limit` beyond [`RESERVATION_MAX`](crate::RESERVATION_MAX), or `room_closed` if
    /// it ends.
    fn reserve(
        &mut self,
        at: Duration,
        who: SeatFor,
        wait: Duration,
        out: &mut dyn RoomOutput,
    ) -> Result<Reservation, Error> {
        let _ = (at, who, wait, out);
        Err(Error::new(ErrorCode::Refused, "this room reserves no seats"))
    }

    /// A player's connection was lost. The player stays: [`returned`](Self::returned) or
    /// [`leave`](Self::leave) follows.
    fn lost(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        let _ = (at, player, out);
    }

    /// A player whose connection was lost is back. The link is the same. `away` is the time since
    /// the client was last heard: messages that came up to their [rates](crate::Message) meanwhile
    /// wait with the client, and come at once.
    fn returned(
        &mut self,
        at: Duration,
        player: PlayerId,
        away: Duration,
        out: &mut dyn RoomOutput,
    ) {
        let _ = (at, player, away, out);
    }

    /// A ping to a player was answered after `round_trip`. Only for rooms whose
    /// [settings](crate::Settings::round_trip_ms) ask for it.
    fn measured(
        &mut self,
        at: Duration,
        player: PlayerId,
        round_trip: Duration,
        out: &mut dyn RoomOutput,
    ) {
        let _ = (at, player, round_trip, out);
    }

    /// A player left, or their session ended, also while they waited. The link is not used again.
    fn leave(&mut self, at: Duration, player: PlayerId, why: LeaveReason, out: &mut dyn RoomOutput);

    /// A player's message. If it is a request, the answer goes to `out`.
    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
        out: &mut dyn RoomOutput,
    );

    /// A message from others than the players.
    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput);

    /// One step of the simulation. `number` counts from 1, skipped ticks included.
    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput);

    /// When [`wake`](Self::wake) is next due: for timers, for the end of an empty room, for the
    /// deadline of one that ends.
    fn wake_at(&self) -> Option<Duration>;

    /// Does what is due.
    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput);

    /// Returns whether the room asked for a sync before the next regular one.
    fn wants_sync(&self) -> bool;

    /// Records what changed since the last sync, under the next version.
    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput);

    /// Returns whether a patch can start at this version. If not, the player needs a snapshot.
    fn reaches(&self, since: u64) -> bool;

    /// Appends the body of the patch that takes this player's copy from version `since` to
    /// [`version`](Self::version); `false`, and nothing appended, when nothing changed for this
    /// player.
    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool;

    /// Appends the body of this player's snapshot.
    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>);

    /// The digest that this player's copy in a format should have at [`version`](Self::version);
    /// `None` if the room has none.
    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        let _ = (player, format);
        None
    }

    /// Returns whether [`left_out`](Self::left_out) may be above 0.
    fn may_leave_out(&self) -> bool {
        false
    }

    /// Returns how many entries more this player would have seen at the last sync, if no view had a
    /// cap.
    fn left_out(&self, player: PlayerId) -> u64 {
        let _ = player;
        0
    }

    /// Returns the wanted players in the order in which they joined, without those who wait to
    /// join.
    fn players(&self, wanted: &mut dyn FnMut(&Player) -> bool) -> Vec<Player> {
        let _ = wanted;
        Vec::new()
    }

    /// Appends all of its state as it is now, also what no player sees, as a
    /// [save](playfield_state::save); `false`, and nothing appended, if it has none now.
    fn whole(&self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// Appends its save as it is now, for a [`Store`](crate::Store); `false`, and nothing appended,
    /// if it has none.
    fn save(&mut self, out: &mut Vec<u8>) -> bool {
        let _ = out;
        false
    }

    /// The saves that the store may have of a room that is saved.
    fn saves(&self) -> Option<Saves> {
        None
    }

    /// Takes the remains of a journaled room that ended without being saved, or failed.
    fn take_unsaved(&mut self) -> Option<Box<Unsaved>> {
        None
    }

    /// The numbers of its requests to other rooms that are not answered.
    fn asks(&self) -> Vec<u64> {
        Vec::new()
    }

    /// Returns a hash of its state as it is now, of its random numbers and of its next timer, which
    /// is equal for rooms that go on alike; `None` if it has none now.
    fn state_hash(&self) -> Option<u64> {
        None
    }

    /// Writes all that it is, with the work in flight, for a [replay](crate::recording::Replay). It
    /// goes on as if nothing had happened. Unless it was synced just now, the form is
    /// [unsynced](FrozenWriter::unsynced).
    ///
    /// # Errors
    /// If it has ended or ends, if it has not opened, or if someone waits for the outcome of a
    /// save.
    fn capture(&mut self, form: &mut FrozenWriter) -> Result<(), FreezeError> {
        let _ = form;
        Err(FreezeError::Unsupported)
    }

    /// The wrapper by which it stands still, if it has one.
    fn pausable(&mut self) -> Option<&mut Pausable> {
        None
    }

    /// Returns whether it stands still: calls wait.
    fn is_paused(&self) -> bool {
        false
    }

    /// It goes on after it stood still for this time: messages that came up to their
    /// [rates](crate::Message) meanwhile come at once.
    fn resumed(&mut self, at: Duration, paused: Duration, out: &mut dyn RoomOutput) {
        let _ = (at, paused, out);
    }

    /// Its save was opened again, for a new fence, while it stood still. Returns whether it is the
    /// last one that the room has written, or the room was made of. If not, another owner has
    /// saved it, and the room must end.
    fn reopened(&mut self, at: Duration, opened: Opened) -> bool {
        let _ = (at, opened);
        false
    }

    /// Its recorder, if it has one.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        None
    }

    /// The recorder that notes its inputs in the node's journal, if it is in there.
    fn journaled(&mut self) -> Option<&mut Recorder> {
        None
    }

    /// Syncs, and writes all that it is, for [`RoomType::thaw`](crate::RoomType::thaw). The host
    /// then sends patches as after any sync: a player who has them goes on without a snapshot. The
    /// room is as it was, and the host drops it, or goes on with it. Here or elsewhere, a room that
    /// goes on opens its save again.
    ///
    /// # Errors
    /// If it has ended or ends, or if work is in flight, which can't go on elsewhere. Nothing is
    /// written then.
    fn freeze(
        &mut self,
        at: Duration,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        let _ = (at, form, out);
        Err(FreezeError::Unsupported)
    }

    /// Freezes it as [`freeze`](Self::freeze) does, once the work in flight is given up. Players
    /// who wait to join, and requests whose reply background work was to give, are refused with
    /// `why`; the outcome of a save is not known; and the room learns of tasks that are lost in
    /// [`Room::moved`](crate::Room::moved). A room that has not opened ends.
    ///
    /// # Errors
    /// The same as [`freeze`](Self::freeze): `moved` may have begun work again.
    fn freeze_after(
        &mut self,
        at: Duration,
        why: &Error,
        form: &mut FrozenWriter,
        out: &mut dyn RoomOutput,
    ) -> Result<(), FreezeError> {
        let _ = why;
        self.freeze(at, form, out)
    }

    /// Returns the work that can't go on elsewhere.
    fn in_flight(&self) -> InFlight {
        InFlight::default()
    }

    /// The first call after the room was made by [`RoomType::thaw`](crate::RoomType::thaw), or goes
    /// on after [`freeze_after`](Self::freeze_after).
    fn moved(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        let _ = (at, out);
    }

    /// Does what an operator wants.
    ///
    /// # Errors
    /// `room_closed` if it has ended or ends, `refused` for an unknown player, `bad_payload`
    /// for an unknown event.
    fn operate(
        &mut self,
        at: Duration,
        operation: Operation,
        out: &mut dyn RoomOutput,
    ) -> Result<(), Error> {
        let _ = (at, operation, out);
        Err(Error::new(ErrorCode::Refused, "this room can't be operated"))
    }

    /// Begins the room's end; its players will receive the text. Nothing happens if it is ending
    /// already. See [`stage`](Self::stage) for what follows.
    fn close(&mut self, at: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput);

    /// After the last sync of a room in [`Stage::Closing`]: its players leave. Does nothing in
    /// other stages.
    fn part(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        let _ = (at, out);
    }

    /// Ends the room at once, whatever it waits for, and logs what that was. Its players receive
    /// `shutting_down`, without callbacks. For hosts that can't wait any longer.
    fn abandon(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        let _ = (at, out);
    }
}
