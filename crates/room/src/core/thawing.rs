//! A room that goes on from its frozen form.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::{
    Dropped, Format, LoadError, PlayerId, Restored, Tracker, Tracking, describe_type,
    described_type, restore, save_differences,
};

use super::guard::guard;
use super::joining::Waiting;
use super::saving::Saving;
use super::{Live, RoomCore};
use crate::context_state::{ContextState, METADATA_BYTES_MAX, METADATA_MAX, PENDING_MAX, Subject};
use crate::deferred::Replies;
use crate::deferred_output::DeferredOutput;
use crate::frozen::parts::{self, Part, Time};
use crate::frozen::{Frozen, ThawError};
use crate::reservation::Reserved;
use crate::seats::Seats;
use crate::timers::Timers;
use crate::{
    AnyRoom, Claims, InternalMessage, Link, Player, Room, RoomSummary, Sender, Settings, Thaw,
};

impl<R: Room> RoomCore<R> {
    pub(crate) fn thaw(thaw: Thaw<'_>) -> Result<Box<dyn AnyRoom>, ThawError> {
        Self::thaw_with(thaw, Tracking::On).map(|room| Box::new(room) as Box<dyn AnyRoom>)
    }

    pub(crate) fn thaw_with(thaw: Thaw<'_>, tracking: Tracking) -> Result<Self, ThawError> {
        let Thaw { frozen, store, link } = thaw;
        let settings: Settings = frozen.settings()?;
        let parts::Clock { now, tick, version, empty_since } = frozen.value(Part::Clock)?;
        let is_past = empty_since.is_some_and(|Time(since)| since > now.0);
        let checked = parts::check_number(version).and(parts::check_number(now.0.as_secs()));
        let checked = if is_past { Err("it is empty later than now".to_owned()) } else { checked };
        checked.map_err(|why| frozen.refused(Part::Clock, why))?;
        let live = state::<R>(frozen, version, tracking)?;
        let parts::Seats { next_player, players, renumbered } = frozen.value(Part::Seats)?;
        let seats = thawed_seats(players, next_player, link);
        let seats = seats.map_err(|why| frozen.refused(Part::Seats, why))?;
        let messages = Messages::read::<R>(frozen)?;
        let mut context = context::<R>(frozen, &settings, &seats, &messages)?;
        (context.now, context.tick, context.version) = (now.0, tick, live.tracker.version());
        let (pending, replays) = match frozen.value::<parts::Pending>(Part::Pending) {
            Err(ThawError::Missing { .. }) => (parts::Pending::default(), false),
            pending => (pending?, true),
        };
        let name = |name: &str| R::NAMES.iter().copied().find(|known| *known == name);
        let tasks = pending.tasks.into_iter();
        context.tasks = tasks.map(|(task, of)| (task, name(&of).unwrap_or_default())).collect();
        context.replying = pending.replying;
        let held = match frozen.value::<parts::Held>(Part::Held) {
            Err(ThawError::Missing { .. }) => parts::Held::default(),
            held => held?,
        };
        let holds = held.holds.into_iter();
        context.holds = holds.map(|(task, player)| (task, Subject::Player(player))).collect();
        let mut waiting = BTreeMap::new();
        for join in held.joins {
            let join = Waiting::thaw(join, link).map_err(|why| frozen.refused(Part::Held, why))?;
            waiting.insert(join.player.id, join);
        }
        context.waiting = waiting.len() as u32;
        let key = context.summary.key.clone();
        let saving = match (store, key, frozen.value(Part::Saving)) {
            (_, _, Err(ThawError::Missing { .. })) | (None, _, Ok(_)) | (_, None, Ok(_)) => None,
            (_, _, Err(error)) => return Err(error),
            (Some(store), Some(key), Ok(of)) => {
                let every = Duration::from_secs(settings.persist_s.into());
                let room_type = context.own.room_type.clone();
                let mut saving = Saving::new(store, room_type, key, every);
                let thawed = saving.thaw(of, now.0, |message| messages.take(message));
                thawed.map_err(|why| frozen.refused(Part::Saving, why))?;
                let open = pending.save.map(|open| saving.resume(open, |of| messages.take(of)));
                let open = open.transpose();
                open.map_err(|why| frozen.refused(Part::Pending, why))?;
                match frozen.value(Part::Saves) {
                    Err(ThawError::Missing { .. }) => {}
                    saves => saving.thaw_saves(saves?),
                }
                saving.resume_reopening(held.reopening);
                context.persists = true;
                context.saves_asked = saving.asked_len();
                Some(saving)
            }
        };
        Ok(Self {
            live: Some(live),
            unborn: None,
            saving,
            settings,
            seats,
            context,
            next_player,
            empty_since: empty_since.map(|Time(since)| since),
            deferred: DeferredOutput::default(),
            joining: None,
            join_refusal: None,
            failure: None,
            opening: None,
            waiting,
            renumbered,
            ending: None,
            undone: None,
            why_over: None,
            why_not_open: None,
            reply: Vec::new(),
            replays,
        })
    }
}

/// The state with its shadow.
fn state<R: Room>(
    frozen: &Frozen<'_>,
    version: u64,
    tracking: Tracking,
) -> Result<Live<R>, ThawError> {
    let (save, slots) = (frozen.part(Part::State)?, frozen.part(Part::Slots)?);
    // Decoders and defaults are user code.
    let thawed = guard(|| {
        let Restored { mut state, mut kept, dropped, is_foreign, .. } =
            restore::<R>(save).map_err(ThawError::State)?;
        if let Some(Dropped { place, why, .. }) = dropped.into_iter().next() {
            return Err(ThawError::State(LoadError::Incompatible { place, why }));
        }
        let slots = Some(slots).filter(|_| !is_foreign);
        let tracker = Tracker::thaw(&mut state, tracking, version, slots);
        let tracker = tracker.map_err(|error| frozen.wrong(Part::Slots, error))?;
        kept.bind(&state);
        Ok(Live { state, tracker, kept })
    });
    thawed.unwrap_or_else(|text| Err(ThawError::Panicked { text }))
}

fn context<R: Room>(
    frozen: &Frozen<'_>,
    settings: &Settings,
    seats: &Seats,
    messages: &Messages,
) -> Result<ContextState, ThawError> {
    let about: parts::About = frozen.value(Part::About)?;
    let parts::About { id, room_type, key, is_code, private, locked, metadata, creator } = about;
    let is_long = |text: &String| text.len() > METADATA_BYTES_MAX;
    if metadata.len() > METADATA_MAX
        || metadata.iter().any(|(key, value)| is_long(key) || is_long(value))
    {
        return Err(frozen.refused(Part::About, "the metadata exceeds its limits"));
    }
    let reserved = Reserved::thaw(frozen.value(Part::Reserved)?);
    let summary = RoomSummary {
        players: seats.len() as u32,
        capacity: settings.capacity,
        reserved: reserved.count(),
        locked,
        private,
        key: key.map(Into::into),
        is_code,
        closing: false,
        metadata,
    };
    let own = Sender { room_id: id, room_type };
    let mut context = ContextState::new(own, creator.into(), 0, summary);
    context.reserved = reserved;
    context.thaw_random(frozen.value(Part::Random)?);
    context.thaw_rates(frozen.value(Part::Rates)?);
    context.reply_wait = Duration::from_millis(settings.reply_ms);
    let timers = Timers::thaw(frozen.value(Part::Timers)?, |message| messages.take(message));
    context.timers = timers.map_err(|why| frozen.refused(Part::Timers, why))?;
    let name = |name: &str| R::NAMES.iter().copied().find(|known| *known == name);
    let replies = Replies::thaw(frozen.value(Part::Replies)?, seats, name);
    context.replies = replies.map_err(|why| frozen.refused(Part::Replies, why))?;
    context.fork = match frozen.value(Part::Fork) {
        Err(ThawError::Missing { .. }) => None,
        fork => Some(fork?),
    };
    let parts::Work { last, asks, given_up } = frozen.value(Part::Work)?;
    if asks.len() + given_up.len() > PENDING_MAX
        || asks.last_key_value().is_some_and(|(ask, _)| *ask > last)
    {
        return Err(frozen.refused(Part::Work, "the requests to other rooms can't be"));
    }
    parts::check_number(last).map_err(|why| frozen.refused(Part::Work, why))?;
    context.next_number = last;
    // A request that this build lacks stays unanswered.
    let asks = asks.into_iter().map(|(ask, of)| (ask, name(&of).unwrap_or_default()));
    context.asks = asks.collect();
    context.given_up = given_up.iter().filter_map(|of| name(of)).collect();
    Ok(context)
}

fn thawed_seats(
    players: Vec<parts::Player>,
    next_player: u64,
    link: &mut dyn FnMut(PlayerId) -> Link,
) -> Result<Seats, String> {
    parts::check_number(next_player)?;
    let mut seats = Seats::default();
    let mut after = None;
    for player in players {
        let id = player.id;
        if id.0 >= next_player || after.replace(id).is_some_and(|last| last >= id) {
            return Err(format!("player {id} can't be here, or not in this place"));
        }
        seats.insert(thawed_player(player, link)?);
    }
    Ok(seats)
}

pub(super) fn thawed_player(
    player: parts::Player,
    link: &mut dyn FnMut(PlayerId) -> Link,
) -> Result<Player, String> {
    let parts::Player { id, name, user, claims, seat, format, is_connected } = player;
    let claims = Claims::from_json(&claims).map_err(|error| error.to_string())?;
    let format = Format::from_number(format).ok_or_else(|| format!("the format {format}"))?;
    let link = link(id);
    Ok(Player { id, name, user, claims, seat, link, format, is_connected })
}

/// The names of the messages that wait in a room. This build has all of them.
struct Messages(Vec<String>);

impl Messages {
    fn read<R: Room>(frozen: &Frozen<'_>) -> Result<Self, ThawError> {
        let types: Vec<parts::MessageType> = frozen.value(Part::Messages)?;
        let mut names = Vec::new();
        for parts::MessageType { name, of } in types {
            check_type::<R>(frozen, &name, &of)?;
            names.push(name);
        }
        Ok(Self(names))
    }

    fn take(
        &self,
        parts::Message { of, payload }: parts::Message,
    ) -> Result<InternalMessage, String> {
        let name =
            self.0.get(of as usize).ok_or_else(|| format!("no message has the place {of}"))?;
        Ok(InternalMessage { name: name.clone().into(), payload: payload.0 })
    }
}

/// Checks that a message has the same fields in this build. In `packed` it can't be read otherwise.
fn check_type<R: Room>(frozen: &Frozen<'_>, name: &str, of: &[u8]) -> Result<(), ThawError> {
    let refused = |place: &str, why: &str| ThawError::Message {
        name: name.to_owned(),
        place: place.to_owned(),
        why: why.to_owned(),
    };
    let here = R::internal_type(name)
        .ok_or_else(|| refused("", "this build lacks it: declare it in `#[room(internal(…))]`"))?;
    let here = describe_type(&here);
    if here == of {
        return Ok(());
    }
    let wrong = |error| frozen.wrong(Part::Messages, error);
    let (stored, here) =
        (described_type(of).map_err(wrong)?, described_type(&here).map_err(wrong)?);
    Err(match save_differences(&stored, &here).first() {
        Some(first) => refused(&first.place, &first.why),
        None => refused("", "this build has more fields"),
    })
}
