//! A room at work: its state, its seats, its context, and the one place where its code is called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use playfield_state::{Data, Format, PlayerId, Tracker, Tracking};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;

use crate::context::{ContextState, Effect, Seats};
use crate::deferred_output::DeferredOutput;
use crate::message::{AskId, Call};
use crate::{
    AnyRoom, Birth, Context, Entrant, Error, InternalMessage, Mail, Player, Result, Room,
    RoomOutput, RoomSummary, Settings,
};

/// A room of one type, as its host drives it.
pub(crate) struct RoomCore<R: Room> {
    live: Option<Live<R>>,
    settings: Settings,
    seats: Seats,
    context: ContextState,
    next_player: u64,
    /// Since when nobody has been here.
    empty_since: Option<Duration>,
    /// What `create` sent before there was anyone to send it.
    deferred: DeferredOutput,
    /// Who is about to be let in, and why it came to nothing. That answers the join, so nothing
    /// else is told to the link.
    joining: Option<PlayerId>,
    turned_away: Option<Error>,
    /// A panic where there was no output to tell the players by; they are told at the next call.
    failure: Option<String>,
    reply: Vec<u8>,
}

/// There while the room is open.
struct Live<R: Room> {
    state: R,
    tracker: Tracker<R>,
}

impl<R: Room> RoomCore<R> {
    /// Makes a room.
    pub(crate) fn create(birth: Birth<'_>) -> Result<Box<dyn AnyRoom>> {
        Self::with_tracking(birth, Tracking::On).map(|room| Box::new(room) as Box<dyn AnyRoom>)
    }

    pub(crate) fn with_tracking(birth: Birth<'_>, tracking: Tracking) -> Result<Self> {
        let Birth { id, seed, settings, private, options, format, creator } = birth;
        let summary =
            RoomSummary { capacity: settings.capacity, private, ..RoomSummary::default() };
        let mut context = ContextState::new(id, creator, seed, summary);
        let seats = Seats::new();
        // Defaults, decoders and destructors are the room's code as much as `create` is.
        let made = guard(|| {
            let options = read_options::<R>(format, options)?;
            let mut deferred = DeferredOutput::default();
            let mut state =
                R::create(options, &mut Context::new(&seats, &mut context, &mut deferred))?;
            if let Some(text) = context.effects.drain(..).find_map(Effect::into_close) {
                return Err(Error::new(ErrorCode::Refused, text));
            }
            let tracker = Tracker::new(&mut state, tracking);
            Ok((Live { state, tracker }, deferred))
        });
        let (live, deferred) = made.unwrap_or_else(|panic| {
            log::error!("room {} panicked while it was created: {panic}", context.id);
            Err(Error::new(ErrorCode::Internal, "the room could not be created"))
        })?;
        Ok(Self {
            live: Some(live),
            settings,
            seats,
            context,
            next_player: 1,
            empty_since: Some(Duration::ZERO),
            deferred,
            joining: None,
            turned_away: None,
            failure: None,
            reply: Vec::new(),
        })
    }

    /// The state, while the room is open.
    pub(crate) fn state(&self) -> Option<&R> {
        self.live.as_ref().map(|live| &live.state)
    }

    pub(crate) fn state_mut(&mut self) -> Option<&mut R> {
        self.live.as_mut().map(|live| &mut live.state)
    }

    /// Hands over what `create` sent and began.
    pub(crate) fn start(&mut self, out: &mut dyn RoomOutput) {
        self.begin(Duration::ZERO, out);
    }

    /// Its code panicked where there was no output; it ends at the next call.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Sets the time, and does what had to wait for an output. `false` if the room has ended.
    fn begin(&mut self, at: Duration, out: &mut dyn RoomOutput) -> bool {
        self.context.now = self.context.now.max(at);
        if let Some(text) = self.failure.take() {
            self.fail(&text, out);
        }
        if self.live.is_none() {
            return false;
        }
        if let Err(error) = self.deferred.empty(out) {
            let text = format!(
                "the background work that it began in `create` was refused: {}",
                error.text()
            );
            self.fail(&text, out);
            return false;
        }
        true
    }

    /// Calls the room's code. After a panic there, the room is closed, and this is `None`.
    fn act<T>(
        &mut self,
        out: &mut dyn RoomOutput,
        code: impl FnOnce(&mut R, &Seats, &mut Context<R>) -> T,
    ) -> Option<T> {
        let Live { state, .. } = self.live.as_mut()?;
        let (seats, context) = (&self.seats, &mut self.context);
        match guard(|| code(state, seats, &mut Context::new(seats, context, out))) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.fail(&panic, out);
                None
            }
        }
    }

    /// Does what the room's code wanted done after it returned.
    fn settle(&mut self, out: &mut dyn RoomOutput) {
        while !self.context.effects.is_empty() {
            for effect in std::mem::take(&mut self.context.effects) {
                match effect {
                    Effect::Kick(player, text) => {
                        if let Some(player) = self.unseat(player) {
                            self.dismiss(&player, &Error::new(ErrorCode::Kicked, text), out);
                            self.act(out, |room, _, cx| room.leave(&player, cx));
                        }
                    }
                    Effect::Close(text) => self.end(&Error::new(ErrorCode::RoomClosed, text), out),
                }
            }
        }
    }

    /// Ends the room: every player is told, the state goes.
    fn end(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        if self.live.is_none() {
            return;
        }
        for player in std::mem::take(&mut self.seats).into_values() {
            self.dismiss(&player, why, out);
        }
        self.context.summary.players = 0;
        self.context.effects.clear();
        self.discard();
    }

    /// Tells a player who has no seat any more.
    fn dismiss(&mut self, player: &Player, why: &Error, out: &mut dyn RoomOutput) {
        if self.joining == Some(player.id) {
            self.turned_away = Some(why.clone());
        } else {
            out.removed(player.link, why);
        }
    }

    /// Drops all that is the user's: a destructor is the room's code, too.
    fn discard(&mut self) {
        let Self { live, deferred, .. } = self;
        for panic in [guard(|| drop(live.take())), guard(|| drop(std::mem::take(deferred)))] {
            if let Err(panic) = panic {
                log::error!("room {} panicked while it was dropped: {panic}", self.context.id);
            }
        }
    }

    fn fail(&mut self, text: &str, out: &mut dyn RoomOutput) {
        log::error!("room {} failed, and is closed: {text}", self.context.id);
        self.end(&Error::new(ErrorCode::RoomFailed, "the room failed"), out);
    }

    fn unseat(&mut self, player: PlayerId) -> Option<Player> {
        let player = self.seats.remove(&player)?;
        self.context.summary.players = self.seats.len() as u32;
        if self.seats.is_empty() {
            self.empty_since = Some(self.context.now);
        }
        Some(player)
    }

    /// Gives the room an internal message, and returns the encoded answer.
    fn internal_message(
        &mut self,
        message: &InternalMessage,
        out: &mut dyn RoomOutput,
    ) -> Result<Vec<u8>> {
        let mut reply = Vec::new();
        let done = self.act(out, |room, _, cx| {
            R::internal(room, &message.name, &message.payload, &mut reply, cx)
        });
        self.settle(out);
        match done {
            Some(done) => done.map(|()| reply),
            None => Err(Error::new(ErrorCode::RoomFailed, "the room failed")),
        }
    }

    /// Gives the room an internal message that nobody waits for an answer to.
    fn internal_message_or_log(&mut self, message: &InternalMessage, out: &mut dyn RoomOutput) {
        if let Err(error) = self.internal_message(message, out) {
            log::warn!(
                "room {} refused the internal message {}: {error}",
                self.context.id,
                message.name
            );
        }
    }

    /// Writes something from the shadow. A panic there ends the room at the next call.
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
        Some(self.empty_since? + Duration::from_millis(self.settings.empty_ms))
    }
}

impl<R: Room> AnyRoom for RoomCore<R> {
    fn summary(&self) -> &RoomSummary {
        &self.context.summary
    }

    fn is_closed(&self) -> bool {
        self.live.is_none()
    }

    fn version(&self) -> u64 {
        self.context.version
    }

    fn tick_hz(&self) -> u32 {
        self.settings.tick_hz
    }

    fn sync_hz(&self) -> u32 {
        self.settings.sync_hz
    }

    fn join(
        &mut self,
        at: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<PlayerId> {
        if !self.begin(at, out) {
            return Err(Error::new(ErrorCode::RoomNotFound, "the room has ended"));
        }
        let RoomSummary { players, capacity, locked, .. } = self.context.summary;
        if locked {
            return Err(Error::new(ErrorCode::RoomLocked, "the room takes nobody else"));
        }
        if players >= capacity {
            return Err(Error::new(
                ErrorCode::RoomFull,
                format!("the room seats {capacity}, and all seats are taken"),
            ));
        }
        let id = PlayerId(self.next_player);
        // Used up even if the room refuses: nothing that its code kept under this number may fall
        // to the next player.
        self.next_player += 1;
        let Entrant { link, format, name, user } = entrant;
        self.seats.insert(id, Player { id, name, user, link, format });
        self.context.summary.players += 1;
        let was_empty = self.empty_since.take();
        self.joining = Some(id);
        let joined = self.act(out, |room, seats, cx| match seats.get(&id) {
            Some(player) => room.join(player, cx),
            None => Ok(()),
        });
        if let Some(Err(error)) = joined {
            self.unseat(id);
            self.empty_since = self.empty_since.and(was_empty);
            self.turned_away = Some(error);
        }
        self.settle(out);
        self.joining = None;
        self.turned_away.take().map_or(Ok(id), Err)
    }

    fn leave(&mut self, at: Duration, player: PlayerId, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) {
            return;
        }
        let Some(player) = self.unseat(player) else { return };
        self.act(out, |room, _, cx| room.leave(&player, cx));
        self.settle(out);
    }

    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<u32>,
        out: &mut dyn RoomOutput,
    ) {
        if !self.begin(at, out) {
            return;
        }
        let Self { live: Some(Live { state, .. }), seats, context, reply, .. } = self else {
            return;
        };
        let Some(player) = seats.get(&player) else { return };
        reply.clear();
        let call = Call { player, payload, format: player.format, reply };
        match (
            guard(|| R::dispatch(state, message, call, &mut Context::new(seats, context, out))),
            request,
        ) {
            (Ok(Ok(())), Some(request)) => out.reply(player.link, request, reply),
            (Ok(Ok(())), None) => {}
            (Ok(Err(error)), request) => out.error(player.link, request, &error),
            (Err(panic), _) => self.fail(&panic, out),
        }
        self.settle(out);
    }

    fn mail(&mut self, at: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        let open = self.begin(at, out);
        match mail {
            Mail::Asked { from, ask, message } => {
                let reply = if open {
                    self.internal_message(&message, out)
                } else {
                    Err(Error::new(ErrorCode::RoomNotFound, "the room has ended"))
                };
                out.post(&from, Mail::Answered { ask, reply });
            }
            Mail::Done { task, message } if open && self.context.tasks.remove(&task).is_some() => {
                self.internal_message_or_log(&message, out);
            }
            Mail::Lost { task } if open => {
                if let Some(name) = self.context.tasks.remove(&task) {
                    self.fail(&format!("the background work that ends with {name} panicked"), out);
                }
            }
            Mail::Told { message, .. } if open => self.internal_message_or_log(&message, out),
            Mail::Answered { ask, reply } if open => {
                if let Some(name) = self.context.asks.remove(&ask) {
                    self.act(out, |room, _, cx| R::answer(room, name, AskId(ask), reply, cx));
                    self.settle(out);
                }
            }
            _ => {}
        }
    }

    fn tick(&mut self, at: Duration, number: u64, out: &mut dyn RoomOutput) {
        if self.begin(at, out) {
            self.context.tick = number;
            self.act(out, |room, _, cx| room.tick(cx));
            self.settle(out);
        }
    }

    fn wake_at(&self) -> Option<Duration> {
        self.live.as_ref()?;
        if self.has_failed() || !self.deferred.is_empty() {
            return Some(self.context.now);
        }
        self.context.timers.next_due().into_iter().chain(self.empty_until()).min()
    }

    fn wake(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) {
            return;
        }
        while let Some(message) = self.context.timers.take_due(self.context.now) {
            self.internal_message_or_log(&message, out);
            if self.live.is_none() {
                return;
            }
        }
        if self.empty_until().is_some_and(|until| until <= self.context.now) {
            self.end(&Error::new(ErrorCode::RoomClosed, "nobody was here"), out);
        }
    }

    fn wants_sync(&self) -> bool {
        self.live.is_some() && self.context.wants_sync
    }

    fn sync(&mut self, at: Duration, out: &mut dyn RoomOutput) {
        if !self.begin(at, out) {
            return;
        }
        self.context.wants_sync = false;
        let Some(Live { state, tracker }) = self.live.as_mut() else { return };
        match guard(|| tracker.sync(state)) {
            Ok(()) => self.context.version = tracker.version(),
            Err(panic) => self.fail(&panic, out),
        }
    }

    fn reaches(&self, since: u64) -> bool {
        self.live.as_ref().is_none_or(|live| live.tracker.reaches(since))
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        self.write(body, |tracker, body| tracker.patch(player, since, format, body))
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        self.write(body, |tracker, body| {
            tracker.snapshot(player, format, body);
            true
        });
    }

    fn digest(&mut self, player: PlayerId, format: Format) -> Option<u64> {
        let mut digest = None;
        self.write(&mut Vec::new(), |tracker, _| {
            digest = Some(tracker.digest(player, format));
            true
        });
        digest
    }

    fn close(&mut self, at: Duration, code: ErrorCode, text: &str, out: &mut dyn RoomOutput) {
        self.begin(at, out);
        self.end(&Error::new(code, text), out);
    }
}

impl<R: Room> Drop for RoomCore<R> {
    /// For a host that drops a room which has not ended.
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

/// Runs a room's code. If it panics, the error is what the panic said.
fn guard<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| panic_text(&*panic))
}

/// What a panic said.
#[cold]
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(no text)").to_owned()
}
