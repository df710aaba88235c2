//! Bots of a connection.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_client::session::Session;

use super::steps::{IN_FLIGHT_MAX, Stop};
use super::{Actor, What};
use crate::bot::{AnyBot, AnyTurn, BotSend, MakeBot};
use crate::engine::{Shared, nanoseconds};
use crate::random::Random;

/// The shortest wait of a bot, at the speed of the load.
const WAIT_MIN: Duration = Duration::from_micros(10);

/// A bot that acts in a room.
pub(super) struct Acting {
    bot: AnyBot,
    /// Messages to send, the next one first.
    sends: VecDeque<BotSend>,
    /// The wait after that, in nanoseconds; 0 before its first turn.
    wait_ns: u64,
}

impl Acting {
    /// Lets the bot have its turn. Returns how long it waits then, in nanoseconds.
    fn turn(&mut self, number: u32, player: u64, random: &mut Random, shared: &Shared) -> u64 {
        let (number, sends) = (number as usize, &mut self.sends);
        let wait = (self.bot)(&mut AnyTurn { player, number, random, sends });
        self.wait_ns = nanoseconds((wait / shared.programs.speed).max(WAIT_MIN));
        self.wait_ns
    }
}

impl Actor {
    /// Sends what the bot wants to, or lets it have its turn.
    pub(super) fn act(
        &mut self,
        (room, join): (u32, u32),
        make: &MakeBot,
        timing: u32,
        client: &mut Session,
        shared: &mut Shared,
    ) -> Result<(), Stop> {
        let Some(seat) = self.rooms.iter().find(|seat| seat.of == room) else {
            // The room has ended: enter another, as another player.
            self.bot = None;
            (self.back, self.at) = (self.at, join);
            return Ok(());
        };
        let (place, player, number) = (seat.room, seat.player, self.number);
        let Some(acting) = &mut self.bot else {
            let bot = make.bot(number as usize);
            let acting = Acting { bot, sends: VecDeque::new(), wait_ns: 0 };
            let acting = self.bot.insert(Box::new(acting));
            // Bots that begin together are spread over their first wait.
            let wait = acting.turn(number, player, &mut self.random, shared);
            self.due += self.random.below(wait);
            return Ok(());
        };
        let Some(send) = acting.sends.front() else {
            self.due += match std::mem::take(&mut acting.wait_ns) {
                0 => {
                    acting.turn(number, player, &mut self.random, shared);
                    0
                }
                wait => wait,
            };
            return Ok(());
        };
        if self.asked.len() >= IN_FLIGHT_MAX || client.is_full() {
            return Err(Stop::Here);
        }
        let sent = match send.is_request {
            false => client.send(place, send.index, &send.payload).map(|()| None),
            true => client.request(place, send.index, &send.payload).map(Some),
        };
        let request = self.taken(sent, shared)?;
        if let Some(acting) = &mut self.bot {
            acting.sends.pop_front();
        }
        shared.counts.sent += 1;
        if let Some(request) = request {
            shared.counts.requests += 1;
            self.ask(request.0.into(), What::Message { timing }, false, self.due);
        }
        Ok(())
    }
}
