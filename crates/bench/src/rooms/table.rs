//! The room that is served: the Colyseus workload, with everyone's position and one hand in five
//! changing at each tick.

use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
use playfield_state::Data;

use crate::workloads::Workload;
use crate::workloads::colyseus::{Colyseus, Table};

/// What clients ask for.
pub(super) const ROOM_TYPE: &str = "bench";

/// The most players of a room.
pub const PLAYERS_MAX: u64 = 1_000;

/// Cards in a hand.
const CARDS: u32 = 10;

/// The fraction of hands in which a card changes.
const HANDS: f64 = 0.2;

/// What a room is created with.
#[derive(Data, Default)]
pub struct Opening {
    /// How many players it waits for before its clock begins to run.
    pub players: u64,
}

/// An input: it is decoded, handled and counted, and changes nothing that players see, since when
/// it comes is nobody's to foretell.
#[derive(Message)]
pub struct Steer {
    /// To the right.
    pub x: f32,
    /// Upward.
    pub y: f32,
}

/// Asks how many inputs the room has handled.
#[derive(Message)]
#[reply(u64)]
pub struct CountInputs;

/// The workload of a room with `players`, who are numbered from 1.
pub(super) fn workload(players: u64) -> Colyseus {
    Colyseus::new(players, 1, CARDS, true, HANDS)
}

#[room(messages(Steer, CountInputs), tick_hz = 20, capacity = 1_000)]
impl Room for Table {
    type Options = Opening;

    fn create(opening: Opening, _: &mut Context<Self>) -> Result<Self> {
        if !(1..=PLAYERS_MAX).contains(&opening.players) {
            return Err(format!(
                "{} players: from 1 to {PLAYERS_MAX} are possible",
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
            return Err("everyone is here already".into());
        }
        self.seat(player.id(), self.players(), CARDS.cast_signed());
        Ok(())
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        // Until all are there nothing moves, so that what is seen at each round does not depend on
        // who came when.
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
