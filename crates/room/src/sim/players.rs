//! Simulated players: what they send, and what they receive.

use std::marker::PhantomData;
use std::time::Duration;

use playfield_state::{Data, Format, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

use super::Sim;
use super::audit::By;
use super::copies::Copies;
use super::record::{SentAnswer, SentEvent};
use crate::{
    Admission, AnyRoom, Claims, Entrant, Error, EventOf, LeaveReason, Link, MessageOf, Reservation,
    Result, Room, Stage, split_reservation,
};

/// A request from [`Sim::request_begin`].
#[derive(Debug)]
pub struct Requested<M> {
    request: RequestNumber,
    message: PhantomData<fn() -> M>,
}

impl<R: Room + Default> Sim<R> {
    /// Lets a guest join, and syncs, so that the player has a copy.
    ///
    /// # Errors
    /// `room_full`, `room_locked`, `room_closed` if the room is about to end, `room_not_found` if
    /// it has ended, `room_failed` if it panicked, or its refusal.
    ///
    /// # Panics
    /// If the room [holds](crate::Context::hold) the player: use [`join_begin`](Self::join_begin).
    pub fn join(&mut self, name: &str) -> Result<PlayerId> {
        self.join_in(name, Format::Packed)
    }

    /// Lets a guest join whose messages and events are in the given format.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Panics
    /// As [`join`](Self::join).
    pub fn join_in(&mut self, name: &str, format: Format) -> Result<PlayerId> {
        self.enter(Entrant { format, ..entrant(name, None) }).map(seated)
    }

    /// Lets a player join that the authenticator identified as `user`.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Panics
    /// As [`join`](Self::join).
    pub fn join_as(&mut self, name: &str, user: &str) -> Result<PlayerId> {
        self.enter(entrant(name, Some(user))).map(seated)
    }

    /// Lets a player join whose verified token has these claims.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Panics
    /// As [`join`](Self::join).
    pub fn join_claiming(&mut self, name: &str, user: &str, claims: Claims) -> Result<PlayerId> {
        self.enter(Entrant { claims, ..entrant(name, Some(user)) }).map(seated)
    }

    /// Lets a player join by a ticket that names this seat; a guest, if `user` is `None`.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    ///
    /// # Panics
    /// As [`join`](Self::join).
    pub fn join_at(&mut self, name: &str, user: Option<&str>, seat: &str) -> Result<PlayerId> {
        let seat = Some(seat.into());
        self.enter(Entrant { seat, ..entrant(name, user) }).map(seated)
    }

    /// Lets a player join with a reservation; a guest, if `user` is `None`.
    ///
    /// # Errors
    /// As [`join`](Self::join), or `bad_reservation`.
    ///
    /// # Panics
    /// As [`join`](Self::join).
    pub fn join_reserved(
        &mut self,
        name: &str,
        user: Option<&str>,
        reservation: &Reservation,
    ) -> Result<PlayerId> {
        self.enter(reserved(name, user, reservation)).map(seated)
    }

    /// Lets a guest join who may have to [wait](Self::is_waiting) until the room has decided, such
    /// as by [`run_background`](Self::run_background). Then the player
    /// [is here](Self::is_here), or was refused ([`why_gone`](Self::why_gone)).
    ///
    /// A player who waits for the room's save gets a new number when it is loaded:
    /// [`number_of`](Self::number_of) returns it.
    ///
    /// # Errors
    /// As [`join`](Self::join), if the room refuses at once.
    pub fn join_begin(&mut self, name: &str) -> Result<PlayerId> {
        self.enter(entrant(name, None)).map(player_of)
    }

    /// Works like [`join_begin`](Self::join_begin), for a player that the authenticator identified
    /// as `user`.
    ///
    /// # Errors
    /// As [`join_begin`](Self::join_begin).
    pub fn join_begin_as(&mut self, name: &str, user: &str) -> Result<PlayerId> {
        self.enter(entrant(name, Some(user))).map(player_of)
    }

    /// Works like [`join_begin`](Self::join_begin), with a reservation; for a guest, if `user` is
    /// `None`.
    ///
    /// # Errors
    /// As [`join_begin`](Self::join_begin), or `bad_reservation`.
    pub fn join_begin_reserved(
        &mut self,
        name: &str,
        user: Option<&str>,
        reservation: &Reservation,
    ) -> Result<PlayerId> {
        self.enter(reserved(name, user, reservation)).map(player_of)
    }

    /// The number of a player who has waited to join: the one that
    /// [`join_begin`](Self::join_begin) returned, unless they waited for the room's save. Then that
    /// number may be in use, or was used in the saved room, and all other methods take the new one.
    pub fn number_of(&self, waiting: PlayerId) -> PlayerId {
        self.renumbered.get(&waiting).copied().unwrap_or(waiting)
    }

    /// Returns whether a player waits to join.
    pub fn is_waiting(&self, player: PlayerId) -> bool {
        self.waiting.contains_key(&player)
    }

    fn enter(&mut self, entrant: Entrant) -> Result<Admission> {
        self.links += 1;
        let (link, format) = (Link(self.links), entrant.format);
        if format != Format::Packed {
            self.out.formats.insert(link, format);
        }
        let entrant = Entrant { link, ..entrant };
        self.out.log(|log| log.entrant(link, &entrant.name));
        self.log_input(By::Player(link), |log| format!("{} joins", log.name(Some(link))));
        let joined = self.core.join(self.now, entrant, &mut self.out);
        match &joined {
            Ok(Admission::Seated(player)) => self.out.log(|log| log.joined(link, *player)),
            Ok(Admission::Waiting(_)) => {}
            Err(why) => self.out.log(|log| log.refused(link, why)),
        }
        match joined {
            Ok(Admission::Seated(player)) => {
                self.players.insert(player, Copies::new(link, format));
            }
            Ok(Admission::Waiting(player)) => {
                self.waiting.insert(player, (link, format));
            }
            Err(_) => self.out.events.retain(|event| event.link != link),
        }
        self.follow_up();
        let joined = joined?;
        if let Admission::Seated(_) = joined {
            self.sync_now();
        }
        Ok(joined)
    }

    /// A player leaves.
    pub fn leave(&mut self, player: PlayerId) {
        self.log_of(player, "leaves");
        self.go(player, LeaveReason::Left);
    }

    /// A player's connection is lost, and the client can come back: [`resume`](Self::resume). If it
    /// does not within the room's `grace_ms`, the player leaves. Meanwhile no patches arrive, and
    /// [events](Self::events) and [replies](Self::reply) wait: they arrive once the client is back,
    /// also if the room has removed the player by then, and are lost if the player leaves.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn cut(&mut self, player: PlayerId) {
        self.log_of(player, "loses the connection for now");
        let until = self.now + Duration::from_millis(R::SETTINGS.grace_ms);
        let sent = self.out.sent;
        let copies = self.copies_mut(player);
        copies.is_stalled = true;
        if copies.away_until.is_some() {
            return;
        }
        (copies.away_until, copies.hears_until) = (Some(until), sent);
        let link = copies.link;
        self.out.log(|log| log.hold(link));
        self.core.lost(self.now, player, &mut self.out);
        self.follow_up();
        self.expire_away();
    }

    /// Players whose connections were lost for too long leave.
    pub(super) fn expire_away(&mut self) {
        let is_over = |copies: &Copies<R>| copies.away_until.is_some_and(|until| until <= self.now);
        let over = self.players.iter().filter(|(_, copies)| is_over(copies));
        let over: Vec<PlayerId> = over.map(|(&player, _)| player).collect();
        for player in over {
            let text = "the connection was lost for too long";
            self.out.gone.insert(player, Error::new(ErrorCode::ConnectionLost, text));
            self.go(player, LeaveReason::ConnectionLost);
        }
    }

    /// A player's connection is lost, and the client can't come back.
    pub fn disconnect(&mut self, player: PlayerId) {
        self.log_of(player, "loses the connection");
        self.go(player, LeaveReason::ConnectionLost);
    }

    fn go(&mut self, player: PlayerId, why: LeaveReason) {
        self.waiting.remove(&player);
        if let Some(mut copies) = self.players.remove(&player) {
            self.out.log(|log| log.forget(copies.link));
            self.out.lose(copies.link, copies.hears_until);
            copies.away_until = None;
            self.past.insert(player, copies);
        }
        self.core.leave(self.now, player, why, &mut self.out);
        self.follow_up();
    }

    /// A player sends a request, and gets the reply.
    ///
    /// # Errors
    /// The room's refusal, or `room_failed` if it panicked.
    ///
    /// # Panics
    /// If the room [defers](crate::Context::defer) the reply, or the player's connection is
    /// [cut](Self::cut): use [`request_begin`](Self::request_begin).
    pub fn request<M: MessageOf<R>>(&mut self, player: PlayerId, message: M) -> Result<M::Reply> {
        let asked = self.request_begin(player, message);
        match self.reply(&asked) {
            Some(reply) => reply,
            None if self.is_here(player) && !self.core.is_closed() => {
                panic!(
                    "the room deferred the reply, or the player is away: use `Sim::request_begin`"
                )
            }
            None => Err(self.why_no_answer(player)),
        }
    }

    /// A player sends a request whose reply may come later: see [`reply`](Self::reply).
    pub fn request_begin<M: MessageOf<R>>(&mut self, player: PlayerId, message: M) -> Requested<M> {
        self.requests += 1;
        let request = RequestNumber(self.requests);
        self.message(player, &message, Some(request));
        Requested { request, message: PhantomData }
    }

    /// The reply to a request, once: `None` as long as there is none. A player who left gets none,
    /// and one whose connection is [cut](Self::cut) gets it when they are back.
    pub fn reply<M: MessageOf<R>>(&mut self, to: &Requested<M>) -> Option<Result<M::Reply>> {
        let (format, reply) = self.take_answer(to.request)?;
        Some(reply.and_then(|reply| {
            M::Reply::read(format, &reply)
                .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))
        }))
    }

    /// A player sends a message that has no reply.
    ///
    /// # Errors
    /// The room's refusal, or `room_failed` if it panicked.
    pub fn send<M: MessageOf<R>>(&mut self, player: PlayerId, message: M) -> Result<()> {
        self.message(player, &message, None);
        let link = self.players.get(&player).map(|copies| copies.link);
        match self.out.errors.pop() {
            Some((of, error)) if Some(of) == link => Err(error),
            _ if self.players.contains_key(&player) && !self.core.is_closed() => Ok(()),
            _ => Err(self.why_no_answer(player)),
        }
    }

    /// A player sends a request as bytes, which need not be valid: a message by its number, with a
    /// payload in `packed`. Returns the encoded reply.
    ///
    /// # Errors
    /// The room's refusal.
    pub fn raw_request(
        &mut self,
        player: PlayerId,
        message: u32,
        payload: &[u8],
    ) -> Result<Vec<u8>> {
        self.requests += 1;
        let request = RequestNumber(self.requests);
        self.deliver(player, message, &MessageRef::Index(message), payload, Some(request));
        self.take_answer(request)
            .map_or_else(|| Err(self.why_no_answer(player)), |(_, reply)| reply)
    }

    /// The answer to a request, once it has reached the player.
    fn take_answer(&mut self, request: RequestNumber) -> Option<(Format, Result<Vec<u8>>)> {
        let &SentAnswer { number, link, .. } = self.out.answers.get(&request)?;
        let mut all = self.players.values().chain(self.past.values());
        let waits = all.any(|copies| copies.link == link && number > copies.hears_until);
        let answer = if waits { None } else { self.out.answers.remove(&request) };
        answer.map(|answer| (self.out.format_of(link), answer.reply))
    }

    /// A ping to a player was answered after `round_trip`: see
    /// [`Context::round_trip`](crate::Context::round_trip).
    ///
    /// # Panics
    /// If the room's type does not ask for that: no node would measure it.
    pub fn measure(&mut self, player: PlayerId, round_trip: Duration) {
        assert!(
            R::SETTINGS.round_trip_ms > 0,
            "the room's type needs `#[room(round_trip_ms = 2_000)]`"
        );
        self.log_of(player, &format!("answers a ping after {round_trip:?}"));
        self.core.measured(self.now, player, round_trip, &mut self.out);
        self.follow_up();
    }

    /// From here on this player's connection is blocked: no patches arrive.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn stall(&mut self, player: PlayerId) {
        self.log_of(player, "stops reading");
        self.copies_mut(player).is_stalled = true;
    }

    /// Unblocks the connection, or brings back a player whose connection was [cut](Self::cut): with
    /// the next sync, one patch brings all that was missed. Events and replies that waited arrive
    /// at once. If the room has removed the player meanwhile, the client gets only those.
    ///
    /// # Panics
    /// If there is no such player.
    pub fn resume(&mut self, player: PlayerId) {
        self.log_of(player, "is back");
        if let Some(link) = self.link_of(player) {
            self.out.log(|log| log.release(link));
        }
        if let Some(past) = self.past.get_mut(&player)
            && past.away_until.take().is_some()
        {
            past.hears_until = u64::MAX;
            return;
        }
        let copies = self.copies_mut(player);
        (copies.is_stalled, copies.hears_until) = (false, u64::MAX);
        if let Some(until) = copies.away_until.take() {
            let left = until.saturating_sub(self.now);
            let away = Duration::from_millis(R::SETTINGS.grace_ms).saturating_sub(left);
            self.core.returned(self.now, player, away, &mut self.out);
            self.follow_up();
        }
    }

    /// A player's copy of the state, as of the last sync they received, also if they are gone. What
    /// the player may not see is at its default.
    ///
    /// # Panics
    /// If there was no such player.
    pub fn copy(&self, player: PlayerId) -> &R {
        let copies = self.players.get(&player).or_else(|| self.past.get(&player));
        copies.expect("no such player").typed.state()
    }

    /// Returns how many entries more a player would have seen at the last sync, if no view had a
    /// cap (`nearest`).
    pub fn left_out(&self, player: PlayerId) -> u64 {
        self.core.left_out(player)
    }

    /// The events of one type that a player received since the last call for that type. A player
    /// whose connection is [cut](Self::cut) receives none.
    ///
    /// # Panics
    /// If there was no such player, or an event can't be decoded.
    pub fn events<E: EventOf<R>>(&mut self, player: PlayerId) -> Vec<E> {
        let copies = self.players.get(&player).or_else(|| self.past.get(&player));
        let &Copies { link, hears_until, .. } = copies.expect("no such player");
        let (mine, others) = std::mem::take(&mut self.out.events).into_iter().partition(|event| {
            event.link == link && event.index == E::INDEX && event.number <= hears_until
        });
        self.out.events = others;
        let mine: Vec<SentEvent> = mine;
        mine.iter()
            .map(|event| {
                E::read(self.out.format_of(event.link), &event.payload)
                    .expect("an event can be decoded")
            })
            .collect()
    }

    /// Returns whether a player is in the room. A player who waited for the room's save is here
    /// under a new number: see [`number_of`](Self::number_of).
    pub fn is_here(&self, player: PlayerId) -> bool {
        self.players.contains_key(&player)
    }

    /// Why the room removed a player, or refused one who waited: with the code `connection_lost`,
    /// the connection was lost for longer than the room keeps the seat. `None` if the player is
    /// here, or left by [`leave`](Self::leave) or [`disconnect`](Self::disconnect).
    pub fn why_gone(&self, player: PlayerId) -> Option<&Error> {
        self.out.gone.get(&player)
    }

    fn message<M: MessageOf<R>>(
        &mut self,
        player: PlayerId,
        message: &M,
        request: Option<RequestNumber>,
    ) {
        let format = self.format_of(player);
        let mut payload = Vec::new();
        message.write(format, &mut payload);
        let reference = match format.tree() {
            None => MessageRef::Index(M::INDEX),
            Some(_) => MessageRef::Name(M::NAME.into()),
        };
        self.deliver(player, M::INDEX, &reference, &payload, request);
    }

    /// Gives the room a message of a player, by its number and as it is written.
    pub(super) fn deliver(
        &mut self,
        player: PlayerId,
        index: u32,
        reference: &MessageRef<'_>,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        self.log_message(player, index, payload, request);
        if !self.players.contains_key(&player) || self.core.is_closed() {
            let why = self.why_no_answer(player);
            self.out.log(|log| log.unheard(index, &why));
        }
        self.core.message(self.now, player, reference, payload, request, &mut self.out);
        self.follow_up();
    }

    /// Moves those who waited to the players, or to those who are gone. Whether there is a new
    /// player.
    fn take_decided(&mut self) -> bool {
        for (link, why) in std::mem::take(&mut self.out.refused) {
            let player = self.waiting.iter().find(|(_, (of, _))| *of == link);
            if let Some(player) = player.map(|(player, _)| *player) {
                self.waiting.remove(&player);
                self.out.gone.insert(player, why);
            }
            self.out.events.retain(|event| event.link != link);
        }
        let admitted = std::mem::take(&mut self.out.admitted);
        for (link, player) in &admitted {
            let before = self.waiting.iter().find(|(_, (of, _))| of == link);
            let Some(before) = before.map(|(before, _)| *before) else { continue };
            self.renumbered.insert(before, *player);
            if let Some((_, format)) = self.waiting.remove(&before) {
                self.players.insert(*player, Copies::new(*link, format));
            }
        }
        !admitted.is_empty()
    }

    /// Drops the players whom the room removed.
    pub(super) fn take_removed(&mut self) {
        for (link, why) in std::mem::take(&mut self.out.removed) {
            let player = self
                .players
                .iter()
                .find(|(_, copies)| copies.link == link)
                .map(|(player, _)| *player);
            if let Some(player) = player {
                self.past.extend(self.players.remove_entry(&player));
                self.out.gone.insert(player, why);
            }
        }
    }

    /// Does what a host does after each call: players who were admitted get a snapshot, a room that
    /// is about to end gets its last sync, and its players leave.
    pub(super) fn follow_up(&mut self) {
        if self.take_decided() && self.core.stage() == Stage::Open || self.core.wants_sync() {
            self.sync_now();
        }
        self.take_removed();
        if self.core.stage() == Stage::Closing {
            self.sync_now();
            self.core.part(self.now, &mut self.out);
            self.take_removed();
        }
    }

    fn why_no_answer(&self, player: PlayerId) -> Error {
        self.out
            .gone
            .get(&player)
            .cloned()
            .unwrap_or_else(|| Error::new(ErrorCode::NotJoined, "no such player"))
    }

    fn copies_mut(&mut self, player: PlayerId) -> &mut Copies<R> {
        self.players.get_mut(&player).expect("no such player")
    }
}

/// The player who was seated, or waits.
fn player_of(admission: Admission) -> PlayerId {
    let (Admission::Seated(player) | Admission::Waiting(player)) = admission;
    player
}

/// Someone with a reservation.
fn reserved(name: &str, user: Option<&str>, reservation: &Reservation) -> Entrant {
    let secret = split_reservation(reservation.as_str()).map(|(_, secret)| secret.to_owned());
    Entrant { reservation: secret, ..entrant(name, user) }
}

/// A user, or a guest, before the link is known.
fn entrant(name: &str, user: Option<&str>) -> Entrant {
    Entrant {
        link: Link(0),
        format: Format::Packed,
        name: name.into(),
        user: user.map(str::to_owned),
        claims: Claims::default(),
        seat: None,
        reservation: None,
    }
}

/// The player who was seated.
fn seated(admission: Admission) -> PlayerId {
    match admission {
        Admission::Seated(player) => player,
        Admission::Waiting(_) => panic!(
            "the room holds the player: use `Sim::join_begin`, `join_begin_as` or \
             `join_begin_reserved`"
        ),
    }
}
