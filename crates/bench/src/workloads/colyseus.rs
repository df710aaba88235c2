//! One room with floating-point positions and hidden hands. The same workload also runs on
//! Colyseus.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_state::{List, Map, PlayerId, State, TreeFormat};
use playfield_wire::tree::{TreeWriter, read_value};
use serde_json::{Value, json};

use super::{Workload, hands_changed, same_map, same_own};

/// The workload's size.
#[derive(Clone, Debug)]
pub struct Colyseus {
    players: u64,
    /// The first player's number; the others follow.
    first: u64,
    cards: i32,
    /// Scenario "players": everyone moves at each step.
    all_players: bool,
    hands_changed: u64,
}

/// The synced state.
#[derive(State, Default)]
pub struct Table {
    round: i32,
    players: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
    /// The number of players that a room waits for before its clock starts.
    #[sync(hidden)]
    pub(crate) size: u64,
    /// The number of inputs that a room has handled.
    #[sync(hidden)]
    pub(crate) inputs: u64,
    /// Extra work of rooms with this workload.
    #[sync(skip)]
    pub(crate) setup: Setup,
}

/// Extra work of a room, beyond the workload.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// The number of seats taken when it begins.
    pub(crate) seats: u64,
    /// The extra work of each tick.
    pub(crate) tick: Duration,
    /// The work for each input.
    pub(crate) input: Duration,
}

#[derive(State, Default)]
struct Seat {
    pos_x: f64,
    pos_y: f64,
    health: i32,
    name: String,
}

#[derive(State, Default)]
struct Hand {
    cards: List<Card>,
}

#[derive(State, Default)]
struct Card {
    id: i32,
    suit: i32,
    rank: i32,
}

/// The same, in plain collections.
#[derive(Debug)]
pub struct Model {
    round: i32,
    players: BTreeMap<PlayerId, ModelSeat>,
    hands: BTreeMap<PlayerId, Vec<ModelCard>>,
}

#[derive(Debug)]
struct ModelSeat {
    pos_x: f64,
    pos_y: f64,
    health: i32,
    name: String,
}

#[derive(Debug)]
struct ModelCard {
    id: i32,
    suit: i32,
    rank: i32,
}

impl Colyseus {
    /// Creates a room of `players` players, numbered from `first`, with `cards` cards in each hand.
    /// In each step a card changes in `fraction` of the hands. With `all_players`, everyone moves
    /// too.
    pub fn new(players: u64, first: u64, cards: u32, all_players: bool, fraction: f64) -> Self {
        let hands_changed = hands_changed(players, fraction);
        Self { players, first, cards: cards.cast_signed(), all_players, hands_changed }
    }

    fn ids(&self) -> impl Iterator<Item = PlayerId> + use<> {
        (self.first..self.first + self.players).map(PlayerId)
    }

    /// The players whose hands change in a step.
    fn hands_of_step(&self) -> impl Iterator<Item = PlayerId> + use<> {
        (self.first..self.first + self.hands_changed).map(PlayerId)
    }
}

impl Table {
    /// The number of steps so far.
    pub fn round(&self) -> i32 {
        self.round
    }

    /// The number of players.
    pub fn players(&self) -> usize {
        self.players.len()
    }

    /// Gives the player at index `place` a position and a hand.
    pub fn seat(&mut self, id: PlayerId, place: usize, cards: i32) {
        let (pos_x, pos_y) = start(place);
        self.players.insert(id, Seat { pos_x, pos_y, health: 100, name: name(place) });
        let cards =
            new_hand(place, cards).map(|(id, suit, rank)| Card { id, suit, rank }).collect();
        self.hands.insert(id, Hand { cards });
    }

    /// Removes what everyone sees.
    pub fn keep_own(&mut self) {
        self.players = Map::new();
    }
}

impl Workload for Colyseus {
    type State = Table;
    type Model = Model;

    fn players(&self) -> Vec<PlayerId> {
        self.ids().collect()
    }

    fn state(&self) -> Table {
        let mut table = Table::default();
        for (place, id) in self.ids().enumerate() {
            table.seat(id, place, self.cards);
        }
        table
    }

    fn model(&self) -> Model {
        let mut model = Model { round: 0, players: BTreeMap::new(), hands: BTreeMap::new() };
        for (place, id) in self.ids().enumerate() {
            let (pos_x, pos_y) = start(place);
            model.players.insert(id, ModelSeat { pos_x, pos_y, health: 100, name: name(place) });
            let cards =
                new_hand(place, self.cards).map(|(id, suit, rank)| ModelCard { id, suit, rank });
            model.hands.insert(id, cards.collect());
        }
        model
    }

    fn step(&self, table: &mut Table, iteration: u64) {
        let tick = iteration as i32 + 1;
        table.round = tick;
        if self.all_players {
            for (place, seat) in table.players.values_mut().enumerate() {
                seat.pos_x += 0.37;
                seat.pos_y -= 0.21;
                seat.health = health(tick, place);
            }
        }
        for id in self.hands_of_step() {
            let Some(hand) = table.hands.get_mut(&id) else { continue };
            let card = &mut hand.cards[(tick % self.cards) as usize];
            card.id += 1;
            card.suit = (card.suit + 1) % 4;
            card.rank = (card.rank + 1) % 13;
        }
    }

    fn step_model(&self, model: &mut Model, iteration: u64) {
        let tick = iteration as i32 + 1;
        model.round = tick;
        if self.all_players {
            for (place, seat) in model.players.values_mut().enumerate() {
                seat.pos_x += 0.37;
                seat.pos_y -= 0.21;
                seat.health = health(tick, place);
            }
        }
        for id in self.hands_of_step() {
            let Some(hand) = model.hands.get_mut(&id) else { continue };
            let card = &mut hand[(tick % self.cards) as usize];
            card.id += 1;
            card.suit = (card.suit + 1) % 4;
            card.rank = (card.rank + 1) % 13;
        }
    }

    fn matches_shared(&self, copy: &Table, model: &Model) -> bool {
        copy.round == model.round
            && same_map(&copy.players, &model.players, |seat, model| {
                seat.pos_x.to_bits() == model.pos_x.to_bits()
                    && seat.pos_y.to_bits() == model.pos_y.to_bits()
                    && seat.health == model.health
                    && seat.name == model.name
            })
    }

    fn matches_own(&self, copy: &Table, model: &Model, viewer: PlayerId) -> bool {
        same_own(&copy.hands, &model.hands, viewer, |hand, model| {
            hand.cards
                .iter()
                .map(|card| (card.id, card.suit, card.rank))
                .eq(model.iter().map(|card| (card.id, card.suit, card.rank)))
        })
    }

    fn shared_tree(&self, model: &Model, format: TreeFormat) -> serde_json::Map<String, Value> {
        let players = model.players.iter().map(|(id, seat)| {
            let value = json!({
                "pos_x": number(seat.pos_x, format),
                "pos_y": number(seat.pos_y, format),
                "health": seat.health,
                "name": seat.name,
            });
            (id.to_string(), value)
        });
        serde_json::Map::from_iter([
            ("round".into(), model.round.into()),
            ("players".into(), Value::Object(players.collect())),
        ])
    }

    fn own_tree(&self, model: &Model, viewer: PlayerId) -> (&'static str, Value) {
        let hands = model.hands.get(&viewer).map(|cards| {
            let cards: Vec<Value> = cards
                .iter()
                .map(|card| json!({ "id": card.id, "suit": card.suit, "rank": card.rank }))
                .collect();
            (viewer.to_string(), json!({ "cards": cards }))
        });
        ("hands", Value::Object(hands.into_iter().collect()))
    }
}

fn start(place: usize) -> (f64, f64) {
    (place as f64 * 1.5, place as f64 * 2.5)
}

fn name(place: usize) -> String {
    format!("Player {place}")
}

/// A new hand: each card's number, suit and rank.
fn new_hand(place: usize, count: i32) -> impl Iterator<Item = (i32, i32, i32)> {
    (0..count).map(move |card| (place as i32 * count + card, card % 4, card % 13))
}

fn health(tick: i32, place: usize) -> i32 {
    1 + (tick * 7 + place as i32) % 100
}

/// A float as it is read back from this format: in JSON, one without a fraction is read as an
/// integer.
fn number(value: f64, format: TreeFormat) -> Value {
    let mut bytes = Vec::new();
    TreeWriter::new(format, &mut bytes).f64(value);
    read_value(format, &bytes).unwrap_or_default()
}
