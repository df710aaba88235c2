//! A room whose players join, leave and send arbitrary messages. No message makes it panic, and
//! every copy equals what its player may see.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use playfield::prelude::*;
use playfield::sim::Sim;
use playfield_fuzz::input::Input;

/// A table with every kind of value that players can change.
#[derive(State, Default)]
pub struct Table {
    seats: Map<PlayerId, Seat>,
    marks: Map<String, List<i64>>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    #[sync(view = in_sight, viewer = seats)]
    things: Map<u16, Thing>,
}

#[derive(State, Default)]
struct Seat {
    at: i32,
    #[sync(owner)]
    secret: Option<String>,
}

#[derive(State, Default)]
struct Hand {
    cards: List<u8>,
}

#[derive(State, Default)]
struct Thing {
    at: i32,
    kind: u8,
}

fn in_sight(thing: &Thing, viewer: &Seat) -> bool {
    thing.at.abs_diff(viewer.at) < 100
}

/// The player's actions.
#[derive(Message)]
#[reply(u64)]
pub enum Act {
    Go { to: i32 },
    Whisper(Option<String>),
    Draw { cards: Vec<u8> },
    Sort,
    Mark { name: String, value: i64 },
    Unmark { name: String },
    Put { number: u16, at: i32, kind: u8 },
    Take { number: u16 },
}

#[room(messages(Act))]
impl Room for Table {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.seats.insert(player.id(), Seat::default());
        self.hands.insert(player.id(), Hand::default());
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.seats.remove(&player.id());
        self.hands.remove(&player.id());
    }
}

impl Handle<Act> for Table {
    fn handle(&mut self, act: Act, player: &Player, _: &mut Context<Self>) -> Result<u64> {
        let (seat, hand) =
            (self.seats.get_or_default(player.id()), self.hands.get_or_default(player.id()));
        match act {
            Act::Go { to } => seat.at = to,
            Act::Whisper(secret) => seat.secret = secret,
            Act::Draw { cards } => hand.cards.extend(cards),
            Act::Sort => hand.cards.sort(),
            Act::Mark { name, value } => self.marks.get_or_default(name).push(value),
            Act::Unmark { name } => drop(self.marks.remove(&name)),
            Act::Put { number, at, kind } => drop(self.things.insert(number, Thing { at, kind })),
            Act::Take { number } => drop(self.things.remove(&number)),
        }
        Ok(self.things.len() as u64)
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let mut sim = Sim::<Table>::new(1);
    let mut players = Vec::new();
    while let Some(piece) = input.piece() {
        let [what, payload @ ..] = piece else { continue };
        let player = players.get(usize::from(what >> 4) % players.len().max(1)).copied();
        match (what % 16, player) {
            (0, _) if players.len() < 4 => players.extend(sim.join("Ann")),
            (1, Some(player)) => {
                sim.leave(player);
                players.retain(|other| *other != player);
            }
            (2, _) => sim.advance(Duration::from_millis(100)),
            (3, Some(player)) => sim.stall(player),
            (4, Some(player)) => sim.resume(player),
            (number, Some(player)) => {
                drop(sim.raw_request(player, u32::from(number == 15), payload))
            }
            _ => {}
        }
    }
    // At each sync, copies are compared with what their players may see.
    sim.advance(Duration::from_millis(100));
    assert!(!sim.is_closed());
});
