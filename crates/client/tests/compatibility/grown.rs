//! The node's version of the room: everything has new fields, in another order.

use playfield_room::{Context, Handle, Message, Player, PlayerId, Result, Room, room};
use playfield_state::{Data, List, Map, Set, State};

use super::old;

#[derive(State, Default)]
pub(crate) struct Table {
    weather: List<u8>,
    #[sync(view = near, viewer = seats)]
    units: Map<u32, Unit>,
    tags: Set<String>,
    #[sync(owner)]
    purses: Map<PlayerId, u64>,
    log: List<Line>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    round: u32,
    #[sync(hidden)]
    deck: List<u8>,
    seats: Map<PlayerId, Seat>,
    fog: bool,
    phase: Phase,
    best: Option<Spot>,
    scores: Map<String, i64>,
    marks: [i16; 3],
}

#[derive(State, Data, Clone, Default)]
enum Phase {
    Playing {
        clock: u32,
        turn: u64,
    },
    #[default]
    Waiting,
}

#[derive(State, Default)]
struct Seat {
    armour: i32,
    #[sync(owner)]
    plans: List<String>,
    hp: i32,
    #[sync(owner)]
    secret: u8,
    name: String,
}

#[derive(State, Default)]
struct Hand {
    open: bool,
    cards: List<u8>,
}

#[derive(State, Default)]
struct Line {
    at: u32,
    text: String,
}

#[derive(State, Default)]
struct Spot {
    y: i32,
    z: i32,
    x: i32,
}

#[derive(State, Default)]
struct Unit {
    #[sync(quantize = 0.25)]
    speed: f32,
    kind: u8,
    x: i32,
}

fn near(unit: &Unit, seat: &Seat) -> bool {
    unit.x < seat.hp
}

#[derive(Data, Default)]
pub(crate) struct Setup {
    names: Vec<String>,
    rounds: u8,
    limit: Option<u32>,
}

#[derive(Message)]
#[reply(Stirred)]
struct Stir {
    how: How,
    only: Option<u32>,
    seed: u64,
}

#[derive(Data)]
enum How {
    Not,
    Much { slowly: Option<bool>, times: u32 },
    Little,
}

#[derive(Data)]
struct Stirred {
    changes: u32,
    expected: String,
}

#[derive(Message)]
struct Nudge;

/// A message that the old client does not know.
#[derive(Message)]
struct Shout {
    #[allow(dead_code)]
    text: String,
}

#[derive(Message)]
struct Nudged {
    hard: bool,
    by: PlayerId,
}

/// An event that the old client does not know.
#[derive(Message)]
struct Heard;

#[derive(Message)]
struct Over;

#[room(messages(Shout, Stir, Nudge), events(Heard, Over, Nudged), sync_hz = 100)]
impl Room for Table {
    type Options = Setup;

    fn create(options: Setup, _: &mut Context<Self>) -> Result<Self> {
        assert!(options.names.is_empty() && options.limit.is_none());
        Ok(Self { round: options.rounds.into(), ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let seat = Seat { hp: 5, armour: 1, name: player.name().to_owned(), ..Seat::default() };
        self.seats.insert(player.id(), seat);
        self.hands.insert(player.id(), Hand::default());
        Ok(())
    }
}

impl Handle<Shout> for Table {
    fn handle(&mut self, _: Shout, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Handle<Nudge> for Table {
    fn handle(&mut self, _: Nudge, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Heard);
        cx.emit(&Nudged { hard: true, by: player.id() });
        cx.emit(&Heard);
        cx.emit(&Over);
        Ok(())
    }
}

impl Handle<Stir> for Table {
    fn handle(&mut self, stir: Stir, player: &Player, _: &mut Context<Self>) -> Result<Stirred> {
        assert_eq!(stir.only, None);
        let changes = match stir.how {
            How::Not => 0,
            How::Little => 1,
            How::Much { slowly, times } => {
                assert_eq!(slowly, None);
                times
            }
        };
        let mut dice = Dice(stir.seed);
        (0..changes).for_each(|_| self.change(&mut dice));
        Ok(Stirred { changes, expected: format!("{:?}", self.seen_by(player.id())) })
    }
}

/// SplitMix64, by Steele, Lea and Flood.
struct Dice(u64);

impl Dice {
    fn pick(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % count
    }
}

impl Table {
    fn change(&mut self, dice: &mut Dice) {
        let small = dice.pick(9) as i32;
        let player = PlayerId(1 + dice.pick(12));
        match dice.pick(19) {
            0 => self.round += 1,
            1 => {
                self.weather.push(small as u8);
                self.deck.push(0);
            }
            2 => self.fog = !self.fog,
            3 => self.phase = Phase::Playing { clock: 7, turn: dice.pick(9) },
            4 => self.phase = Phase::Waiting,
            5 => self.marks[small as usize % 3] += 1,
            6 => drop(self.tags.insert(small.to_string())),
            7 => drop(self.tags.remove(&small.to_string())),
            8 => self.log.insert(
                small as usize % (self.log.len() + 1),
                Line { at: 9, text: player.to_string() },
            ),
            9 => drop(self.log.remove(small as usize % (self.log.len() + 1))),
            10 => self.log.iter_mut().for_each(|line| line.at += 1),
            11 => self.best = (small > 2).then(|| Spot { x: small, z: 3, y: -small }),
            12 => {
                if let Some(best) = &mut self.best {
                    (best.z, best.y) = (best.z + 1, small);
                }
            }
            13 => {
                let unit = Unit { x: small, speed: small as f32 / 3.0, kind: 2 };
                self.units.insert(dice.pick(40) as u32, unit);
            }
            // Many entries change the same fields, so the patch has columns.
            14 => {
                for unit in self.units.values_mut() {
                    (unit.x, unit.kind) = (unit.x + small - 4, unit.kind.wrapping_add(1));
                    unit.speed += 0.5;
                }
            }
            15 => {
                for seat in self.seats.values_mut() {
                    (seat.hp, seat.armour) = (small + seat.hp % 7, seat.armour + 1);
                }
            }
            16 => {
                let hand = self.hands.get_or_default(player);
                hand.open = !hand.open;
                hand.cards.push(small as u8);
                *self.purses.get_or_default(player) += 1;
            }
            17 => {
                let seat = self.seats.get_or_default(player);
                seat.secret = seat.secret.wrapping_add(1);
                seat.plans.push(small.to_string());
            }
            _ => {
                if player.0 > 3 {
                    self.seats.remove(&player);
                    self.hands.remove(&player);
                }
                let _ = self.scores.insert(small.to_string(), 1);
            }
        }
    }

    /// The view of an old client of this player.
    fn seen_by(&self, viewer: PlayerId) -> old::Table {
        let spot = |spot: &Spot| old::Spot { x: spot.x, y: spot.y };
        let own = |player: PlayerId| player == viewer;
        let seats = self.seats.iter().map(|(player, seat)| {
            let secret = if own(*player) { seat.secret } else { 0 };
            (*player, old::Seat { name: seat.name.clone(), hp: seat.hp, secret })
        });
        let hands = self.hands.iter().filter(|(player, _)| own(**player));
        let seat = self.seats.get(&viewer);
        let units = self.units.iter().filter(|(_, unit)| seat.is_some_and(|seat| near(unit, seat)));
        old::Table {
            round: self.round,
            phase: match self.phase {
                Phase::Waiting => old::Phase::Waiting,
                Phase::Playing { turn, .. } => old::Phase::Playing { turn },
            },
            seats: seats.collect(),
            hands: hands
                .map(|(player, hand)| {
                    (*player, old::Hand { cards: hand.cards.iter().copied().collect() })
                })
                .collect(),
            log: self.log.iter().map(|line| old::Line { text: line.text.clone() }).collect(),
            best: self.best.as_ref().map(spot),
            marks: self.marks,
            tags: self.tags.iter().cloned().collect(),
            units: units
                .map(|(id, unit)| {
                    let speed = (unit.speed * 4.0).round_ties_even() / 4.0;
                    (*id, old::Unit { x: unit.x, speed })
                })
                .collect(),
        }
    }
}
