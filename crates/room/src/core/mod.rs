//! A running room: its state, its players, its context, and the calls of its code.

mod admission;
mod calls;
mod ending;
mod freezing;
pub(crate) mod guard;
mod joining;
mod loading;
mod operating;
mod replies;
mod saving;
mod thawing;

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::{Data, Format, Kept, PlayerId, Tracker, Tracking};
use playfield_wire::ErrorCode;
use rand_core::RngCore;

use self::guard::guard;
use crate::context_state::{ContextState, Effect};
use crate::deferred_output::DeferredOutput;
use crate::seats::Seats;
use crate::{
    AnyRoom, Birth, Context, EndReason, Error, InternalMessage, KeyOrigin, LeaveReason, Player,
    Result, Room, RoomOutput, RoomSummary, Sender, Settings, Stage, Undone,
};
use ending::Ending;
pub use joining::HELD_MAIL_MAX;
use joining::{Opening, Waiting};
use loading::Unborn;
pub(crate) use saving::REOPENINGS;
use saving::Saving;
pub use saving::{Saves, Unsaved};

/// A room of one type.
pub(crate) struct RoomCore<R: Room> {
    /// `None` before it is made of its save, and after its end.
    live: Option<Live<R>>,
    /// Its save is being loaded.
    unborn: Option<Unborn<R>>,
    /// Its type is persistent, and it has a key.
    saving: Option<Saving>,
    settings: Settings,
    seats: Seats,
    context: ContextState,
    next_player: u64,
    /// Since when there have been no players; `None` while there are some.
    empty_since: Option<Duration>,
    /// The output of `create`, until the first call with an output.
    deferred: DeferredOutput,
    /// The player who is joining, and why that was refused. The refusal answers the join, so the
    /// link receives nothing else.
    joining: Option<PlayerId>,
    join_refusal: Option<Error>,
    /// The text of a panic in a call without an output. The next call with one closes the room.
    failure: Option<String>,
    /// The opening of a room that is not open yet.
    opening: Option<Opening>,
    /// Players who have a seat reserved, and are not in the room yet.
    waiting: BTreeMap<PlayerId, Waiting>,
    /// The present numbers of those who waited for the save.
    renumbered: BTreeMap<PlayerId, PlayerId>,
    /// The end of a room that is about to end.
    ending: Option<Ending>,
    /// The work left undone by a room that was dropped before its end was over.
    undone: Option<Undone>,
    /// Why it was never made.
    why_over: Option<Error>,
    /// Why it never opened, or failed.
    why_not_open: Option<Error>,
    reply: Vec<u8>,
    /// The room was made from a keyframe of a recording, and nothing was called yet.
    replays: bool,
}

/// The parts of a room that exist until its end.
struct Live<R: Room> {
    state: R,
    tracker: Tracker<R>,
    /// The parts of its save that belong to another build.
    kept: Kept,
}

impl<R: Room> RoomCore<R> {
    /// Creates a room.
    pub(crate) fn create(birth: Birth<'_>) -> Result<Box<dyn AnyRoom>> {
        Self::with_tracking(birth, Tracking::On).map(|room| Box::new(room) as Box<dyn AnyRoom>)
    }

    pub(crate) fn with_tracking(birth: Birth<'_>, tracking: Tracking) -> Result<Self> {
        let Birth {
            id,
            room_type,
            key,
            key_origin,
            seed,
            settings,
            private,
            options,
            format,
            creator,
            seats: reserved,
            store,
        } = birth;
        let capacity = settings.capacity;
        let every = Duration::from_secs(settings.persist_s.into());
        let kept = store.zip(key.clone()).filter(|_| !every.is_zero());
        let saving = kept.map(|(store, key)| Saving::new(store, room_type.clone(), key, every));
        let is_code = key.is_some() && key_origin != KeyOrigin::Chosen;
        let summary = RoomSummary { capacity, private, key, is_code, ..RoomSummary::default() };
        let own = Sender { room_id: id, room_type };
        let mut context = ContextState::new(own, creator, seed, summary);
        let seats = Seats::default();
        let mut deferred = DeferredOutput::default();
        let (mut live, mut unborn) = (None, None);
        if let Some(saving) = &saving {
            context.persists = true;
            let of = (options, format);
            let begun = Unborn::load(saving, of, key_origin, tracking, &mut context, &mut deferred);
            unborn = Some(begun?);
        } else {
            let created = loading::create(format, options, &seats, &mut context, &mut deferred);
            let created = created.and_then(|created| {
                guard(|| {
                    let mut state: R = created?;
                    let tracker = Tracker::new(&mut state, tracking);
                    Ok(Live { state, tracker, kept: Kept::default() })
                })
            });
            live = Some(created.unwrap_or_else(|panic| {
                log::error!("room {} panicked while it was created: {panic}", context.id());
                Err(Error::new(ErrorCode::Internal, "the room could not be created"))
            })?);
            context.effects.clear();
        }
        context.reply_wait = Duration::from_millis(settings.reply_ms);
        let holds = context.take_holds() + u32::from(unborn.is_some());
        let by = Duration::from_millis(settings.join_wait_ms);
        let opening = (holds > 0).then(|| Opening { holds, by, mail: Vec::new() });
        let mut room = Self {
            live,
            unborn,
            saving,
            settings,
            seats,
            context,
            next_player: 1,
            empty_since: Some(Duration::ZERO),
            deferred,
            joining: None,
            join_refusal: None,
            failure: None,
            opening,
            waiting: BTreeMap::new(),
            renumbered: BTreeMap::new(),
            ending: None,
            undone: None,
            why_over: None,
            why_not_open: None,
            reply: Vec::new(),
            replays: false,
        };
        room.reserve_first(reserved)?;
        Ok(room)
    }

    /// The state, until the room's end.
    pub(crate) fn state(&self) -> Option<&R> {
        self.live.as_ref().map(|live| &live.state)
    }

    pub(crate) fn state_mut(&mut self) -> Option<&mut R> {
        self.live.as_mut().map(|live| &mut live.state)
    }

    /// The random number that the room would draw next, which shows how many it has drawn.
    pub(crate) fn next_random(&self) -> u64 {
        self.context.random.clone().next_u64()
    }

    /// Passes on what `create` sent.
    pub(crate) fn start(&mut self, out: &mut dyn RoomOutput) {
        self.begin(Duration::ZERO, out);
    }

    /// Returns whether its code panicked in a call without an output.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Sets the time, and does what had to wait for an output. Returns `false` if the room has
    /// ended.
    #[inline]
    fn begin(&mut self, at: Duration, out: &mut dyn RoomOutput) -> bool {
        self.context.now = self.context.now.max(at);
        if self.live.is_none() || self.has_failed() || !self.deferred.is_empty() {
            return self.begin_late(out);
        }
        self.context.waiting = self.waiting.len() as u32;
        true
    }

    /// Does what had to wait for an output, if the room has not ended.
    #[inline(never)]
    fn begin_late(&mut self, out: &mut dyn RoomOutput) -> bool {
        if let Some(text) = self.failure.take() {
            self.fail(&text, out);
        }
        if self.is_over() {
            return false;
        }
        if !self.deferred.is_empty()
            && let Err(error) = self.deferred.empty(out)
        {
            if self.unborn.is_some() {
                self.refuse_all(&error, out);
                self.why_over = Some(error);
                return false;
            }
            let text = format!("a background task begun in `create` was refused: {}", error.text());
            self.fail(&text, out);
            return false;
        }
        self.context.waiting = self.waiting.len() as u32;
        true
    }

    /// Calls the room's code. If it panics, this closes the room and returns `None`.
    fn act<T>(
        &mut self,
        out: &mut dyn RoomOutput,
        code: impl FnOnce(&mut R, &mut Context<R>) -> T,
    ) -> Option<T> {
        self.act_for(None, out, code)
    }

    /// The same for a player who is about to join.
    fn act_for<T>(
        &mut self,
        joining: Option<&Player>,
        out: &mut dyn RoomOutput,
        code: impl FnOnce(&mut R, &mut Context<R>) -> T,
    ) -> Option<T> {
        let Live { state, .. } = self.live.as_mut()?;
        self.context.waiting = self.waiting.len() as u32;
        let (seats, context) = (&self.seats, &mut self.context);
        match guard(|| code(state, &mut Context::new(seats, context, out, joining))) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.fail(&panic, out);
                None
            }
        }
    }

    /// Returns whether it has ended.
    fn is_over(&self) -> bool {
        self.live.is_none() && self.unborn.is_none()
    }

    /// Does what the room's code asked for, now that it has returned.
    #[inline]
    fn settle(&mut self, out: &mut dyn RoomOutput) {
        self.note_changes();
        self.follow_effects(out);
    }

    #[inline]
    fn follow_effects(&mut self, out: &mut dyn RoomOutput) {
        if !self.context.effects.is_empty() || self.context.saves_asked > 0 {
            self.apply_effects(out);
        }
    }

    #[inline(never)]
    fn apply_effects(&mut self, out: &mut dyn RoomOutput) {
        while !self.context.effects.is_empty() {
            for effect in std::mem::take(&mut self.context.effects) {
                match effect {
                    Effect::Kick(player, error) => {
                        if let Some(player) = self.unseat(player) {
                            self.dismiss(&player, &error, out);
                            let why = LeaveReason::Kicked;
                            self.act(out, |room, cx| room.leave(&player, why, cx));
                        } else {
                            self.refuse(player, &error, out);
                        }
                    }
                    Effect::Close(text) => self.begin_closing(EndReason::Closed, &text, out),
                    Effect::Save(asked) => self.ask_for_save(asked),
                }
            }
        }
        if self.context.saves_asked > 0 {
            self.save_if_due(out);
        }
    }

    /// Delivers an internal message, and returns the encoded reply.
    fn internal_message(
        &mut self,
        message: &InternalMessage,
        out: &mut dyn RoomOutput,
    ) -> Result<Vec<u8>> {
        let mut reply = Vec::new();
        let done = self.act(out, |room, cx| {
            R::internal(room, &message.name, &message.payload, &mut reply, cx)
        });
        self.context.sender = None;
        self.settle(out);
        match done {
            Some(done) => done.map(|()| reply),
            None => Err(Error::new(ErrorCode::RoomFailed, "the room failed")),
        }
    }

    /// Delivers an internal message whose reply nobody awaits.
    fn internal_message_or_log(&mut self, message: &InternalMessage, out: &mut dyn RoomOutput) {
        if let Err(error) = self.internal_message(message, out)
            && !error.is_deferred()
        {
            log::warn!(
                "room {} refused the internal message {}: {error}",
                self.context.id(),
                message.name
            );
            out.unheard(&error);
        }
    }

    /// Writes from the shadow. After a panic, the next call with an output closes the room.
    fn write(
        &mut self,
        body: &mut Vec<u8>,
        write: impl FnOnce(&mut Tracker<R>, &mut Vec<u8>) -> bool,
    ) -> bool {
        let start = body.len();
        let Some(Live { tracker, .. }) = self.live.as_mut().filter(|_| self.failure.is_none())
        else {
            return false;
        };
        guard(|| write(tracker, body)).unwrap_or_else(|panic| {
            body.truncate(start);
            self.failure = Some(panic);
            false
        })
    }

    fn empty_until(&self) -> Option<Duration> {
        let is_empty = self.waiting.is_empty() && self.opening.is_none();
        let since = self.empty_since.filter(|_| is_empty)?;
        let until = since + Duration::from_millis(self.settings.empty_ms);
        // Players with a reserved seat may still come.
        Some(self.context.reserved.last_due().map_or(until, |last| last.max(until)))
    }
}

impl<R: Room> Drop for RoomCore<R> {
    /// A host may drop a room that has not ended.
    fn drop(&mut self) {
        self.discard();
    }
}

fn read_options<R: Room>(format: Format, options: &[u8]) -> Result<R::Options> {
    if options.is_empty() {
        return Ok(R::Options::default());
    }
    R::Options::read(format, options).map_err(|error| {
        Error::new(ErrorCode::BadPayload, format!("the options of the room: {error}"))
    })
}
