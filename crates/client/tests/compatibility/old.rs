//! The client's version of the room. Its schema is kept in `schemas/table.json`.

use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, room};
use playfield_state::{Data, List, Map, Set, State};

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) round: u32,
    pub(crate) phase: Phase,
    pub(crate) seats: Map<PlayerId, Seat>,
    #[sync(owner)]
    pub(crate) hands: Map<PlayerId, Hand>,
    pub(crate) log: List<Line>,
    pub(crate) best: Option<Spot>,
    pub(crate) marks: [i16; 3],
    pub(crate) tags: Set<String>,
    #[sync(view = near, viewer = seats)]
    pub(crate) units: Map<u32, Unit>,
}

#[derive(State, Data, Clone, Default, Debug, PartialEq)]
pub(crate) enum Phase {
    #[default]
    Waiting,
    Playing {
        turn: u64,
    },
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) hp: i32,
    #[sync(owner)]
    pub(crate) secret: u8,
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Hand {
    pub(crate) cards: List<u8>,
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) text: String,
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) x: i32,
    pub(crate) y: i32,
}

#[derive(State, Default, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) x: i32,
    #[sync(quantize = 0.25)]
    pub(crate) speed: f32,
}

fn near(unit: &Unit, seat: &Seat) -> bool {
    unit.x < seat.hp
}

#[derive(Data, Default)]
pub(crate) struct Setup {
    pub(crate) rounds: u8,
}

/// Changes the state at random. Returns what this player must see then.
#[derive(Message)]
#[reply(Stirred)]
pub(crate) struct Stir {
    pub(crate) seed: u64,
    pub(crate) how: How,
}

#[derive(Data)]
pub(crate) enum How {
    Little,
    Much { times: u32 },
}

#[derive(Data, Debug)]
pub(crate) struct Stirred {
    pub(crate) expected: String,
}

#[derive(Message)]
pub(crate) struct Nudge;

#[derive(Message, Debug, PartialEq)]
pub(crate) struct Nudged {
    pub(crate) by: PlayerId,
}

#[derive(Message, Debug, PartialEq)]
pub(crate) struct Over;

#[room(messages(Nudge, Stir), events(Nudged, Over))]
impl Room for Table {
    type Options = Setup;

    fn create(_: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self::default())
    }
}

impl Handle<Stir> for Table {
    fn handle(&mut self, _: Stir, _: &Player, _: &mut Context<Self>) -> Result<Stirred> {
        Ok(Stirred { expected: format!("{self:?}") })
    }
}

impl Handle<Nudge> for Table {
    fn handle(&mut self, _: Nudge, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Nudged { by: player.id() });
        Ok(())
    }
}
