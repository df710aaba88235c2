//! All that a simulated room is given and sends, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use playfield_state::{Format, JsonExchange, PlayerId};
use playfield_wire::RequestNumber;
use playfield_wire::tree::read_value;
use serde_json::{Value, json};

use super::refusals::{Kind, Refusals, Tally};
use super::transcript::{Asked, Entry, Receiver, Sent, Transcript};
use crate::core::RoomCore;
use crate::{AnyRoom, Error, Link, Mail, NewRoom, Publication, Push, Room, RoomSummary};

/// The most bytes of saves that are kept of one run, to name the field that differs.
const SAVES_BYTES_MAX: usize = 64 << 20;

/// The log of one run of a room.
pub(in crate::sim) struct Log {
    exchange: JsonExchange,
    inputs: Vec<Input>,
    transcripts: BTreeMap<Receiver, Transcript>,
    /// The states that differ from the one before.
    states: Vec<Settled>,
    saves_bytes: usize,
    /// The players who may see the secret.
    audience: BTreeSet<PlayerId>,
    moment: Moment,
    /// The requests that are not answered: the number among the player's inputs, and the message.
    asked: BTreeMap<RequestNumber, Asked>,
    /// The message that is being handled.
    message: Option<u32>,
    tally: Tally,
}

/// A time in a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Duration,
    pub(super) tick: u64,
}

/// An input of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) by: By,
    pub(super) moment: Moment,
    /// A description for people.
    pub(super) text: String,
}

/// The origin of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sim) enum By {
    Player(Link),
    /// The time, which everyone knows.
    Time,
    /// The test, for all that no player can see of the world outside the room.
    Test,
}

/// The room after an input, or after a step of time.
pub(super) struct Settled {
    pub(super) moment: Moment,
    /// The number of inputs so far.
    pub(super) input: usize,
    pub(super) hash: u64,
    pub(super) wake_at: Option<Duration>,
    pub(super) next_random: u64,
    /// The state, unless there are too many.
    pub(super) save: Option<Vec<u8>>,
}

impl Log {
    pub(in crate::sim) fn new<R: Room>() -> Self {
        let exchange = JsonExchange::new(&crate::schema::<R>())
            .unwrap_or_else(|error| panic!("clients could not read the room's schema: {error}"));
        Self {
            exchange,
            inputs: Vec::new(),
            transcripts: BTreeMap::new(),
            states: Vec::new(),
            saves_bytes: 0,
            audience: BTreeSet::new(),
            moment: Moment::default(),
            asked: BTreeMap::new(),
            message: None,
            tally: Tally::default(),
        }
    }

    pub(super) fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    pub(super) fn refusals(&self) -> Vec<Refusals> {
        self.tally.refusals(|message| self.message_name(message).to_owned())
    }

    pub(super) fn states(&self) -> &[Settled] {
        &self.states
    }

    pub(super) fn transcripts(&self) -> &BTreeMap<Receiver, Transcript> {
        &self.transcripts
    }

    pub(in crate::sim) fn add_to_audience(&mut self, player: PlayerId) {
        self.audience.insert(player);
    }

    /// Returns whether a party may see the secret.
    pub(super) fn is_audience(&self, receiver: &Receiver) -> bool {
        let player = self.transcripts.get(receiver).and_then(|transcript| transcript.player);
        player.is_some_and(|player| self.audience.contains(&player))
    }

    /// The display name of a player, for descriptions of inputs.
    pub(in crate::sim) fn name(&self, link: Option<Link>) -> &str {
        let of = link.and_then(|link| self.transcripts.get(&Receiver::Link(link.0)));
        of.map_or("a player who is not here", |transcript| &transcript.name)
    }

    /// A player's message, for descriptions of inputs.
    pub(in crate::sim) fn message_text(&self, index: u32, format: Format, bytes: &[u8]) -> String {
        let read = match format.tree() {
            None => self.exchange.message_value(index, bytes).ok(),
            Some(tree) => {
                read_value(tree, bytes).ok().map(|value| (self.message_name(index), value))
            }
        };
        match read {
            Some((name, Value::Null)) => name.to_owned(),
            Some((name, value)) => format!("{name} {value}"),
            None => format!(
                "{} with {} bytes that are not valid",
                self.message_name(index),
                bytes.len()
            ),
        }
    }

    fn message_name(&self, index: u32) -> &str {
        self.exchange.message_name(index).unwrap_or("an unknown message")
    }

    pub(in crate::sim) fn input(&mut self, by: By, text: String) {
        self.inputs.push(Input { by, moment: self.moment, text });
        self.message = None;
        if let By::Player(link) = by {
            self.transcript(Receiver::Link(link.0)).own += 1;
        }
    }

    /// The message of the input that was just logged.
    pub(in crate::sim) fn message(
        &mut self,
        link: Option<Link>,
        message: u32,
        request: Option<RequestNumber>,
    ) {
        self.message = Some(message);
        self.tally.give(Kind::Message(message));
        if let Some((link, request)) = link.zip(request) {
            let own = self.transcript(Receiver::Link(link.0)).own;
            self.asked.insert(request, Asked { own, message });
        }
    }

    /// The message that was just logged came from a player who is not in the room.
    pub(in crate::sim) fn unheard(&mut self, message: u32, why: &Error) {
        self.tally.refuse(Kind::Message(message), why);
    }

    /// Notes the room as it is after the last step, and begins the next one.
    pub(in crate::sim) fn step<R: Room>(&mut self, core: &RoomCore<R>, at: Duration, tick: u64) {
        let listed = listed(core.summary());
        let listing = self.transcript(Receiver::Listing);
        let is_listed = listing.entries.iter().rev().find_map(|entry| match &entry.sent {
            Sent::Listing(before) => Some(*before == listed),
            _ => None,
        });
        if is_listed != Some(true) {
            self.send(Receiver::Listing, Sent::Listing(listed));
        }
        let mut save = Vec::new();
        core.whole(&mut save);
        let (wake_at, next_random) = (core.wake_at(), core.next_random());
        let mut hasher = DefaultHasher::new();
        (&save, wake_at, next_random).hash(&mut hasher);
        let hash = hasher.finish();
        if self.states.last().is_none_or(|last| last.hash != hash) {
            let save = (self.saves_bytes + save.len() <= SAVES_BYTES_MAX).then_some(save);
            self.saves_bytes += save.as_ref().map_or(0, Vec::len);
            let (moment, input) = (self.moment, self.inputs.len());
            self.states.push(Settled { moment, input, hash, wake_at, next_random, save });
        }
        self.moment = Moment { at, tick };
    }

    /// Someone wants to join.
    pub(in crate::sim) fn entrant(&mut self, link: Link, name: &str) {
        self.tally.give(Kind::Join);
        name.clone_into(&mut self.transcript(Receiver::Link(link.0)).name);
    }

    pub(in crate::sim) fn joined(&mut self, link: Link, player: PlayerId) {
        self.transcript(Receiver::Link(link.0)).player = Some(player);
        self.send_to(link, Sent::Joined(player));
    }

    /// A refusal to join. The link receives nothing else.
    pub(in crate::sim) fn refused(&mut self, link: Link, why: &Error) {
        self.tally.refuse(Kind::Join, why);
        self.transcript(Receiver::Link(link.0)).entries.clear();
        self.send_to(link, Sent::Refused(why.clone()));
    }

    pub(in crate::sim) fn removed(&mut self, link: Link, why: &Error) {
        self.send_to(link, Sent::Removed(why.clone()));
    }

    pub(in crate::sim) fn body(
        &mut self,
        link: Link,
        format: Format,
        is_snapshot: bool,
        body: &[u8],
    ) {
        self.send_to(link, Sent::Body { format, is_snapshot, bytes: body.to_vec() });
    }

    pub(in crate::sim) fn event(&mut self, link: Link, index: u32, format: Format, payload: &[u8]) {
        self.send_to(link, Sent::Event { index, format, bytes: payload.to_vec() });
    }

    pub(in crate::sim) fn reply(
        &mut self,
        link: Link,
        request: RequestNumber,
        format: Format,
        payload: &[u8],
    ) {
        if let Some(asked) = self.asked.remove(&request) {
            self.send_to(link, Sent::Reply { asked, format, bytes: payload.to_vec() });
        }
    }

    pub(in crate::sim) fn error(
        &mut self,
        link: Link,
        request: Option<RequestNumber>,
        error: &Error,
    ) {
        let asked = request.and_then(|request| self.asked.remove(&request));
        let message = asked.map(|asked| asked.message).or(self.message);
        if let Some(message) = message {
            self.tally.refuse(Kind::Message(message), error);
        }
        self.send_to(link, Sent::Error { asked, message, error: error.clone() });
    }

    /// A private room is not listed.
    pub(in crate::sim) fn created(&mut self, room: &NewRoom) {
        if !room.private {
            let listed = json!({
                "type": room.room_type, "key": room.key.as_deref(), "seats": room.seats.len()
            });
            self.send(Receiver::Listing, Sent::Created(listed));
        }
    }

    pub(in crate::sim) fn published(&mut self, publication: &Publication) {
        let channel = Receiver::Channel(publication.channel.clone());
        self.send(channel, Sent::Payload(publication.payload.clone()));
    }

    pub(in crate::sim) fn pushed(&mut self, push: &Push) {
        let to = Receiver::Devices(format!("{:?}", push.to));
        self.send(to, Sent::Payload(push.payload.clone()));
    }

    pub(in crate::sim) fn posted(&mut self, to: &str, mail: &Mail) {
        let (name, bytes) = match mail {
            Mail::Told { message, .. }
            | Mail::Asked { message, .. }
            | Mail::Done { message, .. } => {
                (message.name.clone().into_owned(), message.payload.clone())
            }
            Mail::Answered { reply: Ok(reply), .. } => ("a reply".to_owned(), reply.clone()),
            Mail::Answered { reply: Err(error), .. } => {
                ("a refusal".to_owned(), error.to_string().into())
            }
            Mail::Panicked { .. } | Mail::Saved { .. } => return,
        };
        self.send(Receiver::Room(to.to_owned()), Sent::Mail { name, bytes });
    }

    /// A player's connection is cut: what is sent to them waits.
    pub(in crate::sim) fn hold(&mut self, link: Link) {
        self.transcript(Receiver::Link(link.0)).held.get_or_insert_default();
    }

    /// The player is back, and receives what waited.
    pub(in crate::sim) fn release(&mut self, link: Link) {
        let held = self.transcript(Receiver::Link(link.0)).held.take();
        for Entry { sent, .. } in held.into_iter().flatten() {
            self.send_to(link, sent);
        }
    }

    /// The player does not come back, and receives nothing more.
    pub(in crate::sim) fn forget(&mut self, link: Link) {
        self.transcript(Receiver::Link(link.0)).held = None;
    }

    fn send_to(&mut self, link: Link, sent: Sent) {
        self.send(Receiver::Link(link.0), sent);
    }

    fn send(&mut self, to: Receiver, sent: Sent) {
        let (moment, input) = (self.moment, self.inputs.len());
        let transcript = self.transcript(to);
        let entry = Entry { moment, own: transcript.own, input, sent };
        transcript.held.as_mut().unwrap_or(&mut transcript.entries).push(entry);
    }

    fn transcript(&mut self, of: Receiver) -> &mut Transcript {
        self.transcripts.entry(of).or_default()
    }
}

/// A room as a list shows it.
fn listed(summary: &RoomSummary) -> Value {
    json!({
        "players": summary.players,
        "capacity": summary.capacity,
        "reserved": summary.reserved,
        "locked": summary.locked,
        "private": summary.private,
        "key": summary.key.as_deref(),
        "closing": summary.closing,
        "metadata": summary.metadata,
    })
}
