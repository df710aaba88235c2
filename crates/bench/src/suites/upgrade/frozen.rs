//! Freezing and thawing of a room.

use std::cell::RefCell;

use playfield_derive::State;
use playfield_room::frozen::Frozen;
use playfield_room::sim::{ROOM_TYPE, Sim};
use playfield_room::{Context, Link, Result, Room, RoomType, Thaw, room};
use playfield_state::Map;

use crate::harness::rounds::{self, Body, Form, Run};

/// The players of the room.
const PLAYERS: usize = 4;
/// The number of things in it: so many are 8 KiB, frozen.
const THINGS: u32 = 980;

/// A room that is as large as many games'.
#[derive(State, Default)]
pub(super) struct Field {
    things: Map<u32, Thing>,
}

#[derive(State, Default)]
pub(super) struct Thing {
    x: i32,
    y: i32,
    kind: u8,
    hp: u16,
}

#[room(tick_hz = 20, sync_hz = 20)]
impl Room for Field {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        let thing = |number: u32| {
            let spread = number.wrapping_mul(0x9e37_79b9);
            let (x, y) = ((spread >> 20) as i32, (spread & 0xfff) as i32);
            (number, Thing { x, y, kind: (number % 8) as u8, hp: 100 })
        };
        Ok(Self { things: (0..THINGS).map(thing).collect() })
    }
}

/// One of the rows.
pub(super) enum Row {
    Freeze { sim: Box<RefCell<Sim<Field>>>, corrupts: bool },
    Thaw { room_type: Box<RoomType>, frozen: Vec<u8> },
}

/// The rows. Each reads a damaged room if `corrupts`.
pub(super) fn rows(corrupts: bool) -> [Row; 2] {
    let mut sim = Sim::<Field>::new(7);
    // Players' copies cost time here that clients have elsewhere.
    sim.verify(false);
    for player in 0..PLAYERS {
        sim.join(&format!("player {player}")).expect("the room is not full");
    }
    sim.sync();
    let mut frozen = sim.freeze().expect("no work is in flight");
    if corrupts {
        damage(&mut frozen);
    }
    let room_type = Box::new(RoomType::of::<Field>(ROOM_TYPE));
    [Row::Freeze { sim: Box::new(RefCell::new(sim)), corrupts }, Row::Thaw { room_type, frozen }]
}

fn damage(frozen: &mut [u8]) {
    let middle = frozen.len() / 2;
    frozen[middle] ^= 1;
}

/// Returns whether the bytes are those of the room.
fn thaws(room_type: &RoomType, frozen: &[u8]) -> bool {
    let Ok(read) = Frozen::read(frozen) else { return false };
    let mut links = 0;
    let mut link = |_| {
        links += 1;
        Link(links)
    };
    let thawed = (room_type.thaw)(Thaw { frozen: &read, store: None, link: &mut link });
    thawed.is_ok_and(|room| room.players(&mut |_| true).len() == PLAYERS)
}

impl Row {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Freeze { .. } => "freeze",
            Self::Thaw { .. } => "thaw",
        }
    }
}

impl Body for Row {
    fn run(&self, form: Form, times: u64) -> Run {
        match self {
            Self::Freeze { sim, corrupts } => {
                let (mut sim, mut frozen) = (sim.borrow_mut(), Vec::new());
                let mut run = rounds::run(times, 0, |_| match sim.freeze() {
                    Ok(bytes) => {
                        frozen = bytes;
                        true
                    }
                    Err(_) => false,
                });
                run.bytes_per_op = frozen.len() as u64;
                if form == Form::Verified {
                    if *corrupts {
                        damage(&mut frozen);
                    }
                    run.right &= thaws(&RoomType::of::<Field>(ROOM_TYPE), &frozen);
                }
                run
            }
            Self::Thaw { room_type, frozen } => {
                rounds::run(times, frozen.len(), |_| thaws(room_type, frozen))
            }
        }
    }
}
