//! The benchmark's room: the Colyseus workload, in which every position and one hand in five change
//! at each tick.

use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
use playfield_state::Data;

use crate::workloads::Workload;
use crate::workloads::colyseus::{Colyseus, Table};

/// The room type that clients request.
pub(super) const ROOM_TYPE: &str = "bench";

/// The maximum number of players per room.
pub(super) const PLAYERS_MAX: u64 = 1_000;

/// Cards in a hand.
const CARDS: u32 = 10;

/// The fraction of hands in which a card changes.
const HANDS: f64 = 0.2;

/// The parameters of a new room.
#[derive(Data, Default)]
pub struct Opening {
    /// How many players it waits for before its clock starts.
    pub players: u64,
}

/// An input. It is decoded, handled and counted, but does not change what players see, since its
/// arrival time can't be predicted.
#[derive(Message)]
pub(crate) struct Steer {
    /// To the right.
    pub(crate) x: f32,
    /// Upward.
    pub(crate) y: f32,
}

/// Requests the number of inputs that the room has handled.
#[derive(Message)]
#[reply(u64)]
pub(crate) struct CountInputs;

/// The workload of a room with `players` players, numbered from 1.
pub(super) fn workload(players: u64) -> Colyseus {
    Colyseus::new(players, 1, CARDS, true, HANDS)
}

#[room(messages(Steer, CountInputs), tick_hz = 20, capacity = 1_000)]
impl Room for Table {
    type Options = Opening;

    fn create(opening: Opening, _: &mut Context<Self>) -> Result<Self> {
        if !(1..=PLAYERS_MAX).contains(&opening.players) {
            return Err(format!(
                "{} players requested; the number must be from 1 to {PLAYERS_MAX}",
                opening.players
            )
            .into());
        }
        let mut table = Self::default();
        table.size = opening.players;
        Ok(table)
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if self.players() as u64 == self.size {
            return Err("the room is full".into());
        }
        self.seat(player.id(), self.players(), CARDS.cast_signed());
        Ok(())
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        // Nothing moves until all players have joined, so the state at each round does not depend
        // on when players joined.
        if self.players() as u64 == self.size {
            workload(self.size).step(self, u64::from(self.round().unsigned_abs()));
        }
    }
}

impl Handle<Steer> for Table {
    fn handle(&mut self, steer: Steer, _: &Player, _: &mut Context<Self>) -> Result<()> {
        if !steer.x.is_finite() || !steer.y.is_finite() {
            return Err("no direction".into());
        }
        self.inputs += 1;
        Ok(())
    }
}

impl Handle<CountInputs> for Table {
    fn handle(&mut self, _: CountInputs, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        Ok(self.inputs)
    }
}
