//! Joins: at once, or after work that the room holds them for.

use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::ErrorCode;

use super::RoomCore;
use super::freezing::frozen_player;
use super::thawing::thawed_player;
use crate::context_state::Subject;
use crate::frozen::parts::{self, Time};
use crate::{
    Admission, EndReason, Entrant, Error, InternalMessage, LeaveReason, Link, Mail, OnePerUser,
    Player, Result, Room, RoomOutput,
};

/// The most messages from other rooms that wait for a room to open.
pub const HELD_MAIL_MAX: usize = 1_024;

/// A room that players can't enter yet: it waits for work that `create` has begun.
pub(super) struct Opening {
    /// So many pieces of work are unfinished.
    pub(super) holds: u32,
    pub(super) by: Duration,
    /// Messages from other rooms, until then.
    pub(super) mail: Vec<Mail>,
}

/// A player who is not in the room yet, and has a seat reserved.
pub(super) struct Waiting {
    pub(super) player: Player,
    /// So many pieces of work, begun in `join`, are unfinished; 0 if the room has yet to open.
    holds: u32,
    /// All wait for the same time, so those who came first are due first.
    by: Duration,
}

impl Waiting {
    pub(super) fn freeze(&self) -> parts::Waiting {
        let Self { player, holds, by } = self;
        parts::Waiting { player: frozen_player(player), holds: *holds, by: Time(*by) }
    }

    /// Goes on from what [`freeze`](Self::freeze) returned.
    pub(super) fn thaw(
        frozen: parts::Waiting,
        link: &mut dyn FnMut(PlayerId) -> Link,
    ) -> std::result::Result<Self, String> {
        let parts::Waiting { player, holds, by: Time(by) } = frozen;
        Ok(Self { player: thawed_player(player, link)?, holds, by })
    }
}

/// The outcome of a join.
enum Outcome {
    Seated,
    Waiting,
    Refused(Error),
}

impl<R: Room> RoomCore<R> {
    /// Lets someone in, or lets them wait. The room is open, or will be.
    pub(super) fn enter(
        &mut self,
        entrant: Entrant,
        out: &mut dyn RoomOutput,
    ) -> Result<Admission> {
        if let Some(id) = self.take_seat_of_fork(&entrant, out) {
            return Ok(Admission::Seated(id));
        }
        self.admit(&entrant)?;
        let id = self.new_player();
        let Entrant { link, format, name, user, claims, seat, .. } = entrant;
        let player = Player { id, name, user, claims, seat, link, format, is_connected: true };
        let by = self.context.now.saturating_add(self.join_wait());
        if self.opening.is_some() {
            self.hold_player(player, 0, by)?;
            return Ok(Admission::Waiting(id));
        }
        match self.ask_to_join(player, by, out) {
            Outcome::Seated => Ok(Admission::Seated(id)),
            Outcome::Waiting => Ok(Admission::Waiting(id)),
            Outcome::Refused(error) => Err(error),
        }
    }

    /// Gives an entrant of a fork the seat of the player of the same name, who has no connection. A
    /// user's seat is only for this user.
    fn take_seat_of_fork(
        &mut self,
        entrant: &Entrant,
        out: &mut dyn RoomOutput,
    ) -> Option<PlayerId> {
        self.context.fork.as_ref()?;
        let is_it = |player: &&Player| {
            let may = player.user.is_none() || player.user == entrant.user;
            !player.is_connected && player.name == entrant.name && may
        };
        let id = self.seats.iter().find(is_it)?.id;
        let player = self.seats.get_mut(id)?;
        (player.link, player.format) = (entrant.link, entrant.format);
        self.connect(id, true, out);
        Some(id)
    }

    /// Returns whether the room has no players. Those of a fork count if they are connected.
    pub(super) fn is_deserted(&self) -> bool {
        let is_fork = self.context.fork.is_some();
        !self.seats.iter().any(|player| player.is_connected || !is_fork)
    }

    /// A number for a player. It is not used again even if the room refuses: its code may have
    /// stored something under it.
    fn new_player(&mut self) -> PlayerId {
        if let Some(unborn) = &mut self.unborn {
            return unborn.provisional();
        }
        self.next_player += 1;
        PlayerId(self.next_player - 1)
    }

    /// Calls `join`.
    fn ask_to_join(&mut self, player: Player, by: Duration, out: &mut dyn RoomOutput) -> Outcome {
        let id = player.id;
        if let Err(error) = self.make_way(&player, out) {
            return Outcome::Refused(error);
        }
        self.seats.insert(player.clone());
        self.context.summary.players = self.seats.len() as u32;
        let was_empty = self.empty_since.take();
        self.joining = Some(id);
        self.context.subject = Some(Subject::Player(id));
        let joined = self.act_for(Some(&player), out, |room, cx| room.join(&player, cx));
        let holds = self.context.take_holds();
        let refusal = match joined {
            Some(Ok(())) if holds > 0 => Some(self.hold_player(player, holds, by)),
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(())) | None => None,
        };
        if let Some(held) = refusal {
            self.unseat(id);
            self.empty_since = self.empty_since.and(was_empty);
            self.join_refusal = held.err();
        }
        self.settle(out);
        self.joining = None;
        match self.join_refusal.take() {
            Some(error) => Outcome::Refused(error),
            None if self.waiting.contains_key(&id) => Outcome::Waiting,
            None => Outcome::Seated,
        }
    }

    /// Makes sure that no other player is the same user, if the room wants that.
    fn make_way(&mut self, player: &Player, out: &mut dyn RoomOutput) -> Result<()> {
        let one_per_user = self.settings.one_per_user;
        if one_per_user == OnePerUser::No || player.user.is_none() {
            return Ok(());
        }
        let is_same = |other: &Player| other.user == player.user && other.id != player.id;
        let waiting = self.waiting.values().map(|waiting| &waiting.player);
        let others = self.seats.iter().chain(waiting).filter(|other| is_same(other));
        let others: Vec<PlayerId> = others.map(|other| other.id).collect();
        if !others.is_empty() && one_per_user == OnePerUser::Refuse {
            let text = "one_per_user: this user is in the room already";
            return Err(Error::new(ErrorCode::AlreadyHere, text));
        }
        let why = Error::new(ErrorCode::TakenOver, "the user has joined the room again");
        let is_taken_over = !others.is_empty();
        for other in others {
            match self.unseat(other) {
                Some(other) => {
                    self.dismiss(&other, &why, out);
                    self.act(out, |room, cx| room.leave(&other, LeaveReason::TakenOver, cx));
                }
                None => self.refuse(other, &why, out),
            }
            self.settle(out);
        }
        // In `leave`, the room may have closed, or given the seat away.
        if !self.is_open() {
            return Err(EndReason::Closed.error("the room ended"));
        }
        self.context.waiting = self.waiting.len() as u32;
        if is_taken_over { self.context.check_free_seat() } else { Ok(()) }
    }

    fn hold_player(&mut self, player: Player, holds: u32, by: Duration) -> Result<()> {
        let waiting_max = self.settings.joins_waiting_max;
        if self.waiting.len() >= waiting_max as usize {
            let text = format!("joins_waiting_max: {waiting_max} players wait to join already");
            return Err(Error::new(ErrorCode::Busy, text));
        }
        self.waiting.insert(player.id, Waiting { player, holds, by });
        Ok(())
    }

    /// Delivers the message that ends work for which the room or a player was held. Nothing happens
    /// if the player has gone.
    pub(super) fn held_message(
        &mut self,
        subject: Subject,
        message: &InternalMessage,
        out: &mut dyn RoomOutput,
    ) {
        let player = match subject {
            Subject::Room if self.opening.is_none() => return,
            Subject::Room => None,
            Subject::Player(id) => match self.waiting.get(&id) {
                Some(waiting) => Some(waiting.player.clone()),
                None => return,
            },
        };
        self.context.subject = Some(subject);
        let done = self.act_for(player.as_ref(), out, |room, cx| {
            R::internal(room, &message.name, &message.payload, &mut Vec::new(), cx)
        });
        let more = self.context.take_holds();
        match (done, subject) {
            // It panicked, and the room has failed.
            (None, _) => {}
            (Some(Err(error)), Subject::Room) => self.refuse_all(&error, out),
            (Some(Err(error)), Subject::Player(id)) => self.refuse(id, &error, out),
            (Some(Ok(())), Subject::Room) => {
                if let Some(opening) = &mut self.opening {
                    opening.holds = opening.holds + more - 1;
                    if opening.holds == 0 {
                        self.open(out);
                    }
                }
            }
            (Some(Ok(())), Subject::Player(id)) => {
                if let Some(waiting) = self.waiting.get_mut(&id) {
                    waiting.holds = waiting.holds + more - 1;
                    if waiting.holds == 0 {
                        self.seat(id, out);
                    }
                }
            }
        }
        self.settle(out);
    }

    /// Opens the room: those who wait are asked in, in the order in which they came, and then
    /// messages from other rooms are delivered.
    pub(super) fn open(&mut self, out: &mut dyn RoomOutput) {
        let Some(opening) = self.opening.take() else { return };
        self.empty_since = Some(self.context.now);
        // What the last message asked for comes first.
        self.settle(out);
        let ids: Vec<_> = self.waiting.keys().copied().collect();
        for id in ids {
            // They may have been refused meanwhile: a room that closes refuses all.
            let Some(Waiting { player, by, .. }) = self.waiting.remove(&id) else { continue };
            let link = player.link;
            match self.ask_to_join(player, by, out) {
                Outcome::Seated => out.admitted(link, id),
                Outcome::Waiting => {}
                Outcome::Refused(error) => out.refused(link, &error),
            }
        }
        for mail in opening.mail {
            self.deliver(mail, out);
        }
    }

    /// Seats a player who has waited.
    fn seat(&mut self, id: PlayerId, out: &mut dyn RoomOutput) {
        if let Some(Waiting { player, .. }) = self.waiting.remove(&id) {
            let link = player.link;
            self.seats.insert(player);
            self.context.summary.players = self.seats.len() as u32;
            self.empty_since = None;
            out.admitted(link, id);
        }
    }

    /// Refuses a player who waits.
    pub(super) fn refuse(&mut self, id: PlayerId, why: &Error, out: &mut dyn RoomOutput) {
        if let Some(Waiting { player, .. }) = self.waiting.remove(&id) {
            if self.joining == Some(id) {
                self.join_refusal = Some(why.clone());
            } else {
                out.refused(player.link, why);
            }
        }
    }

    /// Refuses a player who waits for work that panicked. It had no part of the room's state.
    pub(super) fn refuse_after_panic(
        &mut self,
        id: PlayerId,
        text: &str,
        out: &mut dyn RoomOutput,
    ) {
        log::error!("room {}: {text}, and the player it was for is refused", self.context.id());
        let why = Error::new(ErrorCode::Internal, "the work that the join waited for failed");
        self.refuse(id, &why, out);
    }

    /// Refuses all players who wait, and a room that has not opened yet never will.
    pub(super) fn refuse_all(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        while let Some(id) = self.waiting.keys().next().copied() {
            self.refuse(id, why, out);
        }
        if let Some(opening) = self.opening.take() {
            // Hosts ask for rooms that may not be there.
            let is_missing = why.code() == ErrorCode::RoomNotFound;
            let level = if is_missing { log::Level::Debug } else { log::Level::Warn };
            log::log!(level, "room {} never opened: {why}", self.context.id());
            self.why_not_open = Some(why.clone());
            self.end(out);
            for mail in opening.mail {
                self.deliver(mail, out);
            }
        }
    }

    /// Refuses those who have waited for too long.
    pub(super) fn expire_joins(&mut self, out: &mut dyn RoomOutput) {
        let now = self.context.now;
        let too_late = |what: &str| {
            let text = format!("join_wait_ms = {}: {what}", self.settings.join_wait_ms);
            Error::new(ErrorCode::Timeout, text)
        };
        if self.opening.as_ref().is_some_and(|opening| opening.by <= now) {
            return self.refuse_all(&too_late("the room was not ready in time"), out);
        }
        let error = too_late("the room did not decide in time");
        while let Some((&id, waiting)) = self.waiting.first_key_value()
            && waiting.by <= now
        {
            self.refuse(id, &error, out);
        }
    }

    /// When [`expire_joins`](Self::expire_joins) has something to do.
    pub(super) fn joins_expire_at(&self) -> Option<Duration> {
        let first = self.waiting.values().next().map(|waiting| waiting.by);
        self.opening.as_ref().map(|opening| opening.by).into_iter().chain(first).min()
    }

    /// Keeps mail for a room that is not open yet; gives it back if that is full.
    pub(super) fn keep_mail(&mut self, mail: Mail) -> Result<(), Mail> {
        match &mut self.opening {
            Some(opening) if opening.mail.len() < HELD_MAIL_MAX => {
                opening.mail.push(mail);
                Ok(())
            }
            _ => Err(mail),
        }
    }

    pub(super) fn join_wait(&self) -> Duration {
        Duration::from_millis(self.settings.join_wait_ms)
    }
}
