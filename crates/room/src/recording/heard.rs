//! The output of a room that runs again, as its players heard it.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::{ErrorCode, RequestNumber};

use super::{Recorded, RecordedKind};
use crate::{
    AnyRoom, Completion, Error, EventHeader, Job, Link, Mail, NewRoom, Publication, Push, Result,
    RoomOutput, Task,
};

/// The output of one input, and the players whom it is for.
#[derive(Default)]
pub(super) struct Heard {
    /// The players by their links, those who have left, too.
    players: BTreeMap<Link, (PlayerId, Format)>,
    /// The output of the present input.
    output: Vec<(Link, RecordedKind, Vec<u8>)>,
    /// Someone who waited is in the room, so that there may be a new player.
    pub(super) has_admitted: bool,
    /// The codes of all errors.
    pub(super) errors: Vec<ErrorCode>,
    /// The errors that no player heard.
    pub(super) unheard: Vec<String>,
}

impl Heard {
    /// Forgets the output of the input before.
    pub(super) fn begin(&mut self) {
        self.output.clear();
        self.errors.clear();
        self.unheard.clear();
        self.has_admitted = false;
    }

    /// Gets to know the players of a room. Returns those who were not known.
    pub(super) fn meet(&mut self, room: &(impl AnyRoom + ?Sized)) -> Vec<PlayerId> {
        let mut new = Vec::new();
        room.players(&mut |player| {
            let of = (player.id, player.format);
            if self.players.insert(player.link, of) != Some(of) {
                new.push(player.id);
            }
            false
        });
        new
    }

    /// The links mean others from here on.
    pub(super) fn forget_players(&mut self) {
        self.players.clear();
    }

    pub(super) fn format_of(&self, player: PlayerId) -> Format {
        let found = self.players.values().rev().find(|(of, _)| *of == player);
        found.map_or(Format::Packed, |(_, format)| *format)
    }

    /// The output of the present input. Numbers go on from this one.
    pub(super) fn take(&mut self, at: Duration, number: &mut u64) -> Vec<Recorded> {
        let Self { players, output, .. } = self;
        let messages = output.drain(..).filter_map(|(link, kind, payload)| {
            let (player, format) = *players.get(&link)?;
            *number += 1;
            Some(Recorded::new(*number, at, player, format, kind, &payload))
        });
        messages.collect()
    }

    fn note(&mut self, link: Link, kind: RecordedKind, payload: &[u8]) {
        self.output.push((link, kind, payload.to_vec()));
    }

    fn refusal(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.errors.push(error.code());
        self.note(link, RecordedKind::Error(error.code(), request), error.text().as_bytes());
    }
}

impl RoomOutput for Heard {
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]) {
        self.note(link, RecordedKind::Reply(request), payload);
    }

    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error) {
        self.refusal(link, request, error);
    }

    fn unheard(&mut self, error: &Error) {
        self.errors.push(error.code());
        self.unheard.push(error.to_string());
    }

    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]) {
        self.note(link, RecordedKind::Event(event.index), payload);
    }

    fn removed(&mut self, link: Link, why: &Error) {
        self.note(link, RecordedKind::Error(why.code(), None), why.text().as_bytes());
    }

    fn admitted(&mut self, _: Link, _: PlayerId) {
        self.has_admitted = true;
    }

    fn refused(&mut self, link: Link, why: &Error) {
        self.refusal(link, None, why);
    }

    // A replay does none of these. Only players are heard.

    fn spawn(&mut self, _: u64, _: Task) -> Result<()> {
        Ok(())
    }

    fn compute(&mut self, _: u64, _: Job) -> Result<()> {
        Ok(())
    }

    fn completion(&mut self, _: u64) -> Completion {
        Completion::new(drop)
    }

    fn create(&mut self, _: NewRoom) -> Result<()> {
        Ok(())
    }

    fn find(&mut self, _: TypeId, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn publish(&mut self, _: Publication) {}

    fn push(&mut self, _: Push) {}

    fn post(&mut self, _: &str, _: Mail) {}
}
