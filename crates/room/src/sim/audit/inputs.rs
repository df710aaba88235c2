//! The inputs of a simulated room, as its log has them.

use playfield_state::{Format, PlayerId};
use playfield_wire::RequestNumber;

use super::{By, Log};
use crate::sim::Sim;
use crate::{Link, Room};

impl<R: Room + Default> Sim<R> {
    /// Logs an input, and begins a step.
    pub(in crate::sim) fn log_input(&mut self, by: By, text: impl FnOnce(&Log) -> String) {
        self.log_step(self.next_tick - 1);
        if let Some(log) = &mut self.out.log {
            let text = text(log);
            log.input(by, text);
        }
    }

    /// Logs how the last step has left the room, and begins the next one.
    pub(in crate::sim) fn log_step(&mut self, tick: u64) {
        if let Some(log) = &mut self.out.log {
            log.step(&self.core, self.now, tick);
        }
    }

    /// Logs an input of a player.
    pub(in crate::sim) fn log_of(&mut self, player: PlayerId, does: &str) {
        let link = self.link_of(player);
        let by = link.map_or(By::Test, By::Player);
        self.log_input(by, |log| format!("{} {does}", log.name(link)));
    }

    pub(in crate::sim) fn log_message(
        &mut self,
        player: PlayerId,
        message: u32,
        payload: &[u8],
        request: Option<RequestNumber>,
    ) {
        let (link, format) = (self.link_of(player), self.format_of(player));
        let by = link.map_or(By::Test, By::Player);
        self.log_input(by, |log| {
            let does = if request.is_some() { "requests" } else { "sends" };
            let message = log.message_text(message, format, payload);
            format!("{} {does} {message}", log.name(link))
        });
        self.out.log(|log| log.message(link, message, request));
    }

    /// The link of a player who is here, waits, or was here.
    pub(in crate::sim) fn link_of(&self, player: PlayerId) -> Option<Link> {
        let copies = self.players.get(&player).or_else(|| self.past.get(&player));
        let waiting = || self.waiting.get(&player).map(|(link, _)| *link);
        copies.map(|copies| copies.link).or_else(waiting)
    }

    pub(in crate::sim) fn format_of(&self, player: PlayerId) -> Format {
        self.link_of(player).map_or(Format::Packed, |link| self.out.format_of(link))
    }
}
