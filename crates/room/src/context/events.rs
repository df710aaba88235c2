//! Events to players.

use playfield_state::{Format, PlayerId};

use super::Context;
use crate::message::EventOf;
use crate::{EventHeader, Player};

impl<'a, R> Context<'a, R> {
    /// Sends an event to all players. In `create` there are none, and the event is dropped.
    pub fn emit<E: EventOf<R>>(&mut self, event: &E) {
        self.emit_each(event, |_| true);
    }

    /// Sends an event to one player; does nothing if they are not in the room. A player who is
    /// [joining](Self::joining) receives it if they are admitted.
    pub fn emit_to<E: EventOf<R>>(&mut self, player: PlayerId, event: &E) {
        self.emit_some([player], event);
    }

    /// Sends an event to some players, in the order given.
    pub fn emit_some<E: EventOf<R>>(
        &mut self,
        players: impl IntoIterator<Item = PlayerId>,
        event: &E,
    ) {
        let mut encoded = [false; Format::ALL.len()];
        for id in players {
            let joining = self.joining.filter(|player| player.id == id);
            if let Some(player) = self.player(id).or(joining) {
                self.emit_one(event, player, &mut encoded);
            }
        }
    }

    /// Sends an event to all players but one.
    pub fn emit_except<E: EventOf<R>>(&mut self, player: PlayerId, event: &E) {
        self.emit_each(event, |id| id != player);
    }

    fn emit_each<E: EventOf<R>>(&mut self, event: &E, to: impl Fn(PlayerId) -> bool) {
        let mut encoded = [false; Format::ALL.len()];
        for player in self.seats.iter().filter(|player| to(player.id)) {
            self.emit_one(event, player, &mut encoded);
        }
    }

    fn emit_one<E: EventOf<R>>(
        &mut self,
        event: &E,
        player: &Player,
        encoded: &mut [bool; Format::ALL.len()],
    ) {
        let place = usize::from(player.format.number());
        let payload = &mut self.context.scratch[place];
        if !std::mem::replace(&mut encoded[place], true) {
            payload.clear();
            event.write(player.format, payload);
        }
        let header = EventHeader { index: E::INDEX, name: E::NAME, version: self.context.version };
        self.out.event(player.link, header, payload);
    }
}
