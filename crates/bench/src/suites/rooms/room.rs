//! The benchmark's room: the Colyseus workload, in which every position and one hand in five change
//! at each tick.

use std::time::{Duration, Instant};

use playfield_room::{Context, Handle, Message, Player, Result, Room, room};
use playfield_state::{Bytes, Data, PlayerId};

use crate::workloads::Workload;
use crate::workloads::colyseus::{Colyseus, Table};

/// The room type that clients request.
pub(super) const ROOM_TYPE: &str = "bench";

/// The maximum number of players per room.
pub(in crate::suites) const PLAYERS_MAX: u64 = 1_000;

/// Cards in a hand.
const CARDS: u32 = 10;

/// The fraction of hands in which a card changes.
const HANDS: f64 = 0.2;

/// The parameters of a new room.
#[derive(Clone, Copy, Data, Debug, Default)]
pub struct Opening {
    /// The number of players that it waits for before its clock starts.
    pub players: u64,
    /// The number of seats taken then: the room takes those that players leave.
    pub seats: u64,
    /// The extra work of each tick, in microseconds.
    pub tick_us: u64,
    /// The extra work for each input, in microseconds.
    pub input_us: u64,
}

impl Opening {
    /// A room of players alone, without further work.
    pub(in crate::suites) fn of(players: u64) -> Self {
        Self { players, seats: players, ..Self::default() }
    }
}

/// An input. It is decoded, handled and counted, but does not change what players see, since its
/// arrival time can't be predicted.
#[derive(Message)]
pub(crate) struct Steer {
    /// To the right.
    pub(crate) x: f32,
    /// Upward.
    pub(crate) y: f32,
    /// Not looked at.
    pub(crate) more: Bytes,
}

/// Requests the number of inputs that the room has handled.
#[derive(Message)]
#[reply(u64)]
pub(crate) struct CountInputs;

/// The workload of a room with so many seats, whose players are numbered from 1.
pub(super) fn workload(seats: u64) -> Colyseus {
    Colyseus::new(seats, 1, CARDS, true, HANDS)
}

// An empty room ends soon.
#[room(messages(Steer, CountInputs), tick_hz = 20, capacity = 1_000, empty_ms = 100)]
impl Room for Table {
    type Options = Opening;

    fn create(opening: Opening, _: &mut Context<Self>) -> Result<Self> {
        let Opening { players, seats, tick_us, input_us } = opening;
        if !(1..=PLAYERS_MAX).contains(&players) || !(players..=PLAYERS_MAX).contains(&seats) {
            return Err(format!(
                "{players} players and {seats} seats requested; the numbers must be from 1 to \
                 {PLAYERS_MAX}, and each player needs a seat"
            )
            .into());
        }
        let mut table = Self::default();
        table.size = players;
        table.setup.seats = seats;
        table.setup.tick = Duration::from_micros(tick_us);
        table.setup.input = Duration::from_micros(input_us);
        Ok(table)
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if self.players() as u64 >= self.size {
            return Err("the room is full".into());
        }
        self.seat(player.id(), self.players(), CARDS.cast_signed());
        if self.players() as u64 == self.size {
            for place in self.size..self.setup.seats {
                self.seat(PlayerId(place + 1), place as usize, CARDS.cast_signed());
            }
        }
        Ok(())
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        work(self.setup.tick);
        // Nothing moves until all players have joined, so the state at each round does not depend
        // on when players joined.
        let seats = self.setup.seats;
        if self.players() as u64 == seats {
            workload(seats).step(self, u64::from(self.round().unsigned_abs()));
        }
    }
}

/// Keeps the thread busy for this long.
fn work(time: Duration) {
    if time.is_zero() {
        return;
    }
    let began = Instant::now();
    while began.elapsed() < time {
        std::hint::spin_loop();
    }
}

impl Handle<Steer> for Table {
    fn handle(&mut self, steer: Steer, _: &Player, _: &mut Context<Self>) -> Result<()> {
        if !steer.x.is_finite() || !steer.y.is_finite() {
            return Err("no direction".into());
        }
        work(self.setup.input);
        self.inputs += 1;
        Ok(())
    }
}

impl Handle<CountInputs> for Table {
    fn handle(&mut self, _: CountInputs, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        Ok(self.inputs)
    }
}
