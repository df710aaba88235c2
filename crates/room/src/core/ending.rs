//! The end of a room: orderly by [`close`](RoomCore::begin_closing), or at once after a panic.

use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::ErrorCode;

use super::guard::guard;
use super::{RoomCore, Stage};
use crate::context::replies::send_reply;
use crate::{EndReason, Error, LeaveReason, Player, Room, RoomOutput, Undone};

/// The most names of unfinished tasks that are logged.
const NAMES_LOGGED: usize = 4;

/// The end of a room that takes no more players and messages.
pub(super) struct Ending {
    why: EndReason,
    /// The error that the players receive.
    error: Error,
    /// Background work with a greater number was begun since then, and is waited for.
    after: u64,
    /// When the room no longer waits.
    pub(super) by: Duration,
    /// The players are gone.
    parted: bool,
}

impl<R: Room> RoomCore<R> {
    pub(super) fn stage_now(&self) -> Stage {
        match &self.ending {
            _ if self.is_over() => Stage::Ended,
            None => Stage::Open,
            Some(Ending { parted: false, .. }) => Stage::Closing,
            Some(Ending { parted: true, .. }) => Stage::Finishing,
        }
    }

    /// Returns whether it takes players and messages, or will when it has opened.
    pub(super) fn is_open(&self) -> bool {
        !self.is_over() && self.ending.is_none()
    }

    /// Begins an orderly end. What `closing` asked for is left to [`settle`](Self::settle).
    pub(super) fn begin_closing(&mut self, why: EndReason, text: &str, out: &mut dyn RoomOutput) {
        if !self.is_open() {
            return;
        }
        let was_open = self.opening.is_none();
        self.refuse_all(&why.error(text), out);
        if !was_open {
            return;
        }
        let wait = Duration::from_millis(self.settings.closing_ms);
        self.ending = Some(Ending {
            why,
            error: why.error(text),
            after: self.context.next_number,
            by: self.context.now.saturating_add(wait),
            parted: false,
        });
        self.context.summary.closing = true;
        self.act(out, |room, cx| room.closing(why, cx));
        if self.seats.is_empty() {
            // Nobody waits for a last sync.
            self.part_now(out);
        }
    }

    /// The players leave, in the order of their numbers.
    pub(super) fn part_now(&mut self, out: &mut dyn RoomOutput) {
        if self.stage_now() != Stage::Closing {
            return;
        }
        let Some(Ending { why, error, parted, .. }) = &mut self.ending else { return };
        *parted = true;
        let (why, error) = (LeaveReason::RoomEnded(*why), error.clone());
        while let Some(player) = self.seats.first() {
            while let Some(to) = self.context.replies.take_of(player) {
                send_reply(&to, Err(EndReason::Closed.error("the room ended")), out);
            }
            let Some(player) = self.unseat(player) else { break };
            self.dismiss(&player, &error, out);
            self.act(out, |room, cx| room.leave(&player, why, cx));
            self.settle(out);
        }
        self.save_now(out);
        self.finish(out);
    }

    /// Drops the state of a room whose players are gone, once the background work is done that it
    /// has begun since its end began, and it is saved.
    pub(super) fn finish(&mut self, out: &mut dyn RoomOutput) {
        if self.stage_now() == Stage::Finishing
            && self.unfinished().next().is_none()
            && self.is_saved(out)
        {
            self.end(out);
        }
    }

    /// Drops a room that has waited for long enough.
    pub(super) fn give_up_waiting(&mut self, out: &mut dyn RoomOutput) {
        if self.is_over() {
            return;
        }
        let ms = self.settings.closing_ms;
        self.leave_unfinished(&format!("did not end within closing_ms = {ms}, and is dropped"));
        self.end(out);
    }

    /// Ends the room without callbacks.
    pub(super) fn abandon_now(&mut self, out: &mut dyn RoomOutput) {
        if !self.is_over() {
            self.leave_unfinished("could not end before the node's shutdown did, and is dropped");
            self.dismiss_all(&EndReason::ShuttingDown.error("the node is shutting down"), out);
            self.end(out);
        }
    }

    /// Ends the room without callbacks: another node has its key, and may have called its own room
    /// by now.
    pub(super) fn move_away(&mut self, text: &str, out: &mut dyn RoomOutput) {
        if !self.is_over() {
            self.stop(&EndReason::Moved.error(text), out);
        }
    }

    /// After a panic: the state can't be trusted, so no code of the room is called any more.
    pub(super) fn fail(&mut self, text: &str, out: &mut dyn RoomOutput) {
        log::error!("room {} failed, and is closed: {text}", self.context.id());
        if !self.is_over() {
            self.keep_failed();
            self.stop(&Error::new(ErrorCode::RoomFailed, "the room failed"), out);
        }
    }

    /// Ends the room without callbacks, and informs all who wait for it.
    pub(super) fn stop(&mut self, error: &Error, out: &mut dyn RoomOutput) {
        self.why_not_open = Some(error.clone());
        self.dismiss_all(error, out);
        self.fail_replies(error, out);
        self.discard();
    }

    /// Informs a player that they have been removed.
    pub(super) fn dismiss(&mut self, player: &Player, why: &Error, out: &mut dyn RoomOutput) {
        if self.joining == Some(player.id) {
            self.join_refusal = Some(why.clone());
        } else {
            out.removed(player.link, why);
        }
    }

    pub(super) fn unseat(&mut self, player: PlayerId) -> Option<Player> {
        let player = self.seats.remove(player)?;
        self.context.forget_rates(player.id);
        self.context.round_trips.forget(player.id);
        while self.context.replies.take_of(player.id).is_some() {}
        self.context.summary.players = self.seats.len() as u32;
        if self.is_deserted() {
            self.empty_since = Some(self.context.now);
        }
        Some(player)
    }

    /// Fails the replies that other rooms wait for, and drops the state.
    pub(super) fn end(&mut self, out: &mut dyn RoomOutput) {
        self.fail_replies(&EndReason::Closed.error("the room ended"), out);
        self.discard();
    }

    /// Drops everything that has user code in its destructor.
    pub(super) fn discard(&mut self) {
        self.unborn = None;
        self.context.effects.clear();
        let Self { live, deferred, .. } = self;
        for panic in [guard(|| drop(live.take())), guard(|| drop(std::mem::take(deferred)))] {
            if let Err(panic) = panic {
                log::error!("room {} panicked while it was dropped: {panic}", self.context.id());
            }
        }
    }

    fn dismiss_all(&mut self, why: &Error, out: &mut dyn RoomOutput) {
        for player in self.seats.take() {
            while self.context.replies.take_of(player.id).is_some() {}
            self.dismiss(&player, why, out);
        }
        self.context.summary.players = 0;
        self.refuse_all(why, out);
    }

    /// The names of the messages that end the work it waits for.
    fn unfinished(&self) -> impl Iterator<Item = &'static str> {
        let first = self.ending.as_ref().map_or(u64::MAX, |ending| ending.after + 1);
        let (tasks, asks) = (self.context.tasks.range(first..), self.context.asks.range(first..));
        tasks.chain(asks).map(|(_, name)| *name)
    }

    /// Notes that the room is dropped before its end is over.
    fn leave_unfinished(&mut self, what: &str) {
        self.keep_unsaved();
        self.log_unsaved();
        let is_unsaved = self.unsaved().is_some();
        self.undone = Some(if is_unsaved { Undone::Save } else { Undone::End });
        let save = is_unsaved.then_some("its save");
        let mut names: Vec<_> = save.into_iter().chain(self.unfinished()).collect();
        let more = names.len().saturating_sub(NAMES_LOGGED);
        names.truncate(NAMES_LOGGED);
        let unfinished = match (names.join(", "), more) {
            (names, _) if names.is_empty() => String::new(),
            (names, 0) => format!("; unfinished: {names}"),
            (names, more) => format!("; unfinished: {names} and {more} more"),
        };
        log::error!("room {} {what}{unfinished}", self.context.id());
    }
}
