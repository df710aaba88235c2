//! A room for tests: a counter that all see, a secret for each player, and a message for each thing
//! a room can do.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::frozen::ThawError;
use playfield_room::{
    Admission, AnyRoom, Birth, EndReason, Entrant, Error, EventHeader, InternalMessage,
    LeaveReason, Link, Mail, PlayerId, RoomOutput, RoomSummary, RoomType, Sender, Settings,
};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::Type;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{ErrorCode, Format, RequestNumber};

/// The messages, in the order of their numbers.
pub(crate) const MESSAGES: [&str; 20] = [
    "add", "secret", "shout", "refuse", "kick", "big", "later", "answer", "sync", "close", "lock",
    "tell", "ask", "compute", "spawn", "hang", "fail", "forget", "flood", "burst",
];

/// The number of a message.
pub(crate) fn index(name: &str) -> u32 {
    MESSAGES.iter().position(|known| *known == name).expect("a message of the test room") as u32
}

pub(crate) fn room_type(name: &str) -> RoomType {
    let settings = Settings {
        tick_hz: 20,
        sync_hz: 20,
        capacity: 4,
        empty_ms: 30_000,
        // Some clients read nothing for a while, and a busy machine makes it long.
        silence_ms: 3_600_000,
        ..Settings::default()
    };
    RoomType {
        name: name.into(),
        fingerprint: 7,
        schema: "{\"fingerprint\":7}".into(),
        messages: MESSAGES.map(str::to_owned).into(),
        saved: || Type::Unit,
        settings,
        rust_type: TypeId::of::<TestRoom>(),
        criteria: None,
        thaw: |_| Err(ThawError::NotFrozen),
        probe: None,
        create,
    }
}

/// Options are words: `capacity=4 tick=20 sync=20 mode=duel ballast=0 refuse panic only=ann`.
fn create(birth: Birth<'_>) -> Result<Box<dyn AnyRoom>, Error> {
    let options = decoded(birth.format, birth.options);
    let mut room = TestRoom {
        own: Arc::new(Sender { room_id: birth.id, room_type: birth.room_type }),
        summary: RoomSummary {
            capacity: 4,
            private: birth.private,
            key: birth.key,
            ..RoomSummary::default()
        },
        version: 1,
        tick_hz: 20,
        sync_hz: 20,
        counter: 0,
        secrets: BTreeMap::new(),
        shown: Shown::default(),
        seats: BTreeMap::new(),
        players: 0,
        later: Vec::new(),
        asked: Vec::new(),
        refuses: false,
        wants_sync: false,
        ballast: 0,
        forgotten: 0,
        closed: false,
        empty_since: None,
    };
    for word in options.split_whitespace() {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let number =
            || value.parse().map_err(|_| Error::new(ErrorCode::BadPayload, format!("{word:?}")));
        match key {
            "capacity" => room.summary.capacity = number()?,
            "ballast" => room.ballast = number()? as usize,
            "tick" => room.tick_hz = number()?,
            "sync" => room.sync_hz = number()?,
            "mode" => drop(room.summary.metadata.insert("mode".into(), value.into())),
            "refuse" => room.refuses = true,
            "panic" => panic!("as the options said"),
            "only" if birth.creator.name() == Some(value) => {}
            "only" => return Err(Error::new(ErrorCode::Refused, format!("only {value} may"))),
            _ => return Err(Error::new(ErrorCode::BadPayload, format!("unknown option {word:?}"))),
        }
    }
    Ok(Box::new(room))
}

struct TestRoom {
    own: Arc<Sender>,
    summary: RoomSummary,
    version: u64,
    tick_hz: u32,
    sync_hz: u32,
    counter: u64,
    secrets: BTreeMap<PlayerId, u64>,
    shown: Shown,
    seats: BTreeMap<PlayerId, (Link, Format)>,
    players: u64,
    /// Requests to be answered by `answer`.
    later: Vec<(PlayerId, RequestNumber)>,
    /// Requests to be answered when another room has answered.
    asked: Vec<(PlayerId, RequestNumber)>,
    refuses: bool,
    wants_sync: bool,
    /// So many bytes more in each snapshot.
    ballast: usize,
    /// No patch begins at this version or before it.
    forgotten: u64,
    closed: bool,
    empty_since: Option<Duration>,
}

/// The state at the last sync, with the version of each part's last change.
#[derive(Default)]
struct Shown {
    counter: (u64, u64),
    secrets: BTreeMap<PlayerId, (u64, u64)>,
}

/// An empty room ends after this time.
pub(crate) const EMPTY: Duration = Duration::from_secs(1);

impl TestRoom {
    fn body(&self, player: PlayerId, since: u64) -> String {
        let mut body = String::new();
        if self.shown.counter.1 > since {
            body += &format!("c={} ", self.shown.counter.0);
        }
        if let Some((value, version)) = self.shown.secrets.get(&player)
            && *version > since
        {
            body += &format!("s={value} ");
        }
        body
    }

    fn shout(&self, text: &[u8], out: &mut dyn RoomOutput) {
        for &(link, format) in self.seats.values() {
            let event = EventHeader { index: 0, name: "heard", version: self.version };
            out.event(link, event, &encoded(format, text));
        }
    }

    fn remove(&mut self, player: PlayerId) -> Option<(Link, Format)> {
        let seat = self.seats.remove(&player)?;
        self.secrets.remove(&player);
        self.summary.players = self.seats.len() as u32;
        Some(seat)
    }

    fn end(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        self.closed = true;
        for (link, _) in std::mem::take(&mut self.seats).into_values() {
            out.removed(link, why);
        }
        self.summary.players = 0;
    }
}

/// A text as a payload.
pub(crate) fn encoded(format: Format, text: &[u8]) -> Vec<u8> {
    match format.tree() {
        None => text.to_vec(),
        Some(format) => {
            let mut out = Vec::new();
            TreeWriter::new(format, &mut out).text(&String::from_utf8_lossy(text));
            out
        }
    }
}

/// A payload as a text.
fn decoded(format: Format, bytes: &[u8]) -> String {
    match format.tree() {
        None => String::from_utf8_lossy(bytes).into_owned(),
        Some(format) => {
            let value = read_value(format, bytes).unwrap_or_default();
            value.as_str().unwrap_or_default().to_owned()
        }
    }
}

impl AnyRoom for TestRoom {
    fn summary(&self) -> &RoomSummary {
        &self.summary
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn pass_syncs(&mut self, syncs: u64) {
        self.version += syncs;
    }

    fn tick_hz(&self) -> u32 {
        self.tick_hz
    }

    fn sync_hz(&self) -> u32 {
        self.sync_hz
    }

    fn join(
        &mut self,
        _: Duration,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission, Error> {
        if self.seats.len() >= self.summary.capacity as usize {
            return Err(Error::new(ErrorCode::RoomFull, "full"));
        }
        if self.summary.locked {
            return Err(Error::new(ErrorCode::RoomLocked, "locked"));
        }
        self.players += 1;
        let player = PlayerId(self.players);
        self.seats.insert(player, (entrant.link, entrant.format));
        self.shout(format!("{} joins", entrant.name).as_bytes(), out);
        if self.refuses {
            self.seats.remove(&player);
            return Err(Error::with_code(1001, "not you"));
        }
        self.empty_since = None;
        self.secrets.insert(player, 0);
        self.summary.players = self.seats.len() as u32;
        Ok(Admission::Seated(player))
    }

    fn leave(&mut self, at: Duration, player: PlayerId, _: LeaveReason, out: &mut dyn RoomOutput) {
        self.remove(player);
        self.shout(format!("{player} leaves").as_bytes(), out);
        if self.seats.is_empty() {
            self.empty_since = Some(at);
        }
    }

    fn measured(
        &mut self,
        at: Duration,
        player: PlayerId,
        round_trip: Duration,
        out: &mut dyn RoomOutput,
    ) {
        let (at, ms) = (at.as_millis(), round_trip.as_millis());
        self.shout(format!("{player} takes {ms} ms at {at}").as_bytes(), out);
    }

    fn message(
        &mut self,
        at: Duration,
        player: PlayerId,
        message: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
        out: &mut dyn RoomOutput,
    ) {
        let Some(&(link, format)) = self.seats.get(&player) else { return };
        let name = match message {
            MessageRef::Index(index) => MESSAGES.get(*index as usize).copied(),
            MessageRef::Name(name) => MESSAGES.iter().find(|known| **known == *name).copied(),
        };
        let text = decoded(format, payload);
        let mut reply = String::new();
        match name {
            Some("add") => {
                self.counter += 1;
                reply = self.counter.to_string();
            }
            Some("secret") => *self.secrets.entry(player).or_default() += 1,
            Some("shout") => self.shout(text.as_bytes(), out),
            Some("refuse") => return out.error(link, request, &Error::from("no")),
            Some("kick") => {
                let kicked = PlayerId(text.parse().unwrap_or_default());
                if let Some((link, _)) = self.remove(kicked) {
                    out.removed(link, &Error::new(ErrorCode::Kicked, "out with you"));
                }
            }
            Some("flood") => {
                let error = Error::new(ErrorCode::TooFast, "too much");
                out.error(link, request, &error);
                if text == "past" && self.remove(player).is_some() {
                    out.removed(link, &error);
                }
                return;
            }
            // That many events of 1 KB for the others.
            Some("burst") => {
                for number in 0..text.parse().unwrap_or(0) {
                    let text = format!("{number} {}", "x".repeat(1000));
                    let others = self.seats.iter().filter(|(other, _)| **other != player);
                    for (_, &(link, format)) in others {
                        let event = EventHeader { index: 0, name: "heard", version: self.version };
                        out.event(link, event, &encoded(format, text.as_bytes()));
                    }
                }
            }
            Some("big") => reply = "x".repeat(text.parse().unwrap_or_default()),
            Some("later") => return self.later.extend(request.map(|request| (player, request))),
            Some("answer") => {
                for (player, request) in std::mem::take(&mut self.later) {
                    if let Some((link, _)) = self.seats.get(&player) {
                        out.reply(*link, request, &encoded(format, b"at last"));
                    }
                }
            }
            Some("sync") => self.wants_sync = true,
            Some("close") => return self.close(at, EndReason::Closed, "over", out),
            Some("fail") => {
                return self.end(&Error::new(ErrorCode::RoomFailed, "it broke"), out);
            }
            Some("forget") => self.forgotten = self.version,
            Some("lock") => self.summary.locked = true,
            Some("tell") => {
                let message = InternalMessage { name: "shout".into(), payload: b"told".to_vec() };
                out.post(&text, Mail::Told { from: Some(Arc::clone(&self.own)), message });
            }
            Some("ask") => {
                self.asked.extend(request.map(|request| (player, request)));
                let message = InternalMessage { name: "add".into(), payload: Vec::new() };
                return out.post(
                    &text,
                    Mail::Asked { from: Some(Arc::clone(&self.own)), ask: 0, message },
                );
            }
            Some("compute") => {
                let job = move || {
                    assert!(text != "panic", "as it was told");
                    InternalMessage {
                        name: "shout".into(),
                        payload: format!("computed {text}").into_bytes(),
                    }
                };
                if let Err(error) = out.compute(5, Box::new(job)) {
                    return out.error(link, request, &error);
                }
            }
            Some("spawn") => {
                let work = async move {
                    assert!(text != "panic", "as it was told");
                    InternalMessage { name: "shout".into(), payload: b"spawned".to_vec() }
                };
                if let Err(error) = out.spawn(6, Box::pin(work)) {
                    return out.error(link, request, &error);
                }
            }
            Some("hang") => {
                let until = std::time::Instant::now()
                    + Duration::from_millis(text.parse().unwrap_or_default());
                while std::time::Instant::now() < until {
                    std::hint::spin_loop();
                }
            }
            _ => {
                let error = Error::new(ErrorCode::UnknownMessage, "no such message");
                return out.error(link, request, &error);
            }
        }
        if let Some(request) = request {
            out.reply(link, request, &encoded(format, reply.as_bytes()));
        }
    }

    fn mail(&mut self, _: Duration, mail: Mail, out: &mut dyn RoomOutput) {
        match mail {
            Mail::Done { message, .. } | Mail::Told { message, .. } => {
                self.shout(&message.payload, out);
            }
            Mail::Saved { save, .. } => self.shout(format!("saved {save}").as_bytes(), out),
            Mail::Panicked { task } => self.shout(format!("lost {task}").as_bytes(), out),
            Mail::Asked { from, ask, .. } => {
                self.counter += 1;
                out.post(
                    from.as_deref().map_or("", |from| &from.room_id),
                    Mail::Answered { ask, reply: Ok(self.counter.to_string().into_bytes()) },
                );
            }
            Mail::Answered { reply, .. } => {
                for (player, request) in std::mem::take(&mut self.asked) {
                    let Some(&(link, format)) = self.seats.get(&player) else { continue };
                    match &reply {
                        Ok(reply) => out.reply(link, request, &encoded(format, reply)),
                        Err(error) => out.error(link, Some(request), error),
                    }
                }
            }
        }
    }

    fn tick(&mut self, _: Duration, _: u64, _: &mut dyn RoomOutput) {}

    fn wake_at(&self) -> Option<Duration> {
        self.empty_since.map(|since| since + EMPTY)
    }

    fn wake(&mut self, _: Duration, _: &mut dyn RoomOutput) {
        self.closed = true;
    }

    fn wants_sync(&self) -> bool {
        self.wants_sync
    }

    fn sync(&mut self, _: Duration, _: &mut dyn RoomOutput) {
        self.wants_sync = false;
        self.version += 1;
        let version = self.version;
        if self.shown.counter.0 != self.counter {
            self.shown.counter = (self.counter, version);
        }
        for (player, secret) in &self.secrets {
            let shown = self.shown.secrets.entry(*player).or_default();
            if shown.0 != *secret {
                *shown = (*secret, version);
            }
        }
    }

    fn reaches(&self, since: u64) -> bool {
        since > self.forgotten
    }

    fn patch(&mut self, player: PlayerId, since: u64, format: Format, body: &mut Vec<u8>) -> bool {
        let text = self.body(player, since);
        if !text.is_empty() {
            body.extend_from_slice(&encoded(format, text.as_bytes()));
        }
        !text.is_empty()
    }

    fn snapshot(&mut self, player: PlayerId, format: Format, body: &mut Vec<u8>) {
        let secret = self.shown.secrets.get(&player).map_or(0, |secret| secret.0);
        let text = format!("c={} s={secret} {}", self.counter_shown(), "x".repeat(self.ballast));
        body.extend_from_slice(&encoded(format, text.as_bytes()));
    }

    fn digest(&mut self, player: PlayerId, _: Format) -> Option<u64> {
        let secret = self.shown.secrets.get(&player).map_or(0, |secret| secret.0);
        Some(self.counter_shown() << 32 | secret)
    }

    fn close(&mut self, _: Duration, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        let code = match why {
            EndReason::ShuttingDown => ErrorCode::ShuttingDown,
            EndReason::Moved => ErrorCode::RoomMoved,
            _ => ErrorCode::RoomClosed,
        };
        self.end(&Error::new(code, text), out);
    }
}

impl TestRoom {
    fn counter_shown(&self) -> u64 {
        self.shown.counter.0
    }
}
