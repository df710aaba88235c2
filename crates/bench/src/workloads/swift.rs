//! One room with hidden hands, the workload for which SwiftStateTree publishes figures.

use std::collections::BTreeMap;

use playfield_state::{List, Map, PlayerId, State, TreeFormat};
use serde_json::{Value, json};

use super::{Workload, hands_changed, same_map, same_own};

/// The workload's size.
#[derive(Clone, Debug)]
pub struct Swift {
    players: u64,
    cards: u64,
    /// Scenario B: every player's public state changes at each step.
    all_players: bool,
    hands_changed: u64,
    /// The players sorted by name as text, which is the order that steps use.
    order: Vec<PlayerId>,
}

/// The synced state.
#[derive(State, Default)]
pub struct Table {
    round: i64,
    players: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, Hand>,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    hp: i64,
    hp_max: i64,
}

#[derive(State, Default)]
struct Hand {
    owner: PlayerId,
    cards: List<Card>,
}

#[derive(State, Default)]
struct Card {
    id: i64,
    suit: i64,
    rank: i64,
}

/// The same, in plain collections.
#[derive(Debug)]
pub struct Model {
    round: i64,
    players: BTreeMap<PlayerId, ModelSeat>,
    hands: BTreeMap<PlayerId, ModelHand>,
}

#[derive(Debug)]
struct ModelSeat {
    name: String,
    hp: i64,
    hp_max: i64,
}

#[derive(Debug)]
struct ModelHand {
    owner: PlayerId,
    cards: Vec<ModelCard>,
}

#[derive(Debug)]
struct ModelCard {
    id: i64,
    suit: i64,
    rank: i64,
}

impl Swift {
    /// Creates a room of `players` players with `cards` cards in each hand. In each step a card
    /// changes in `fraction` of the hands. With `all_players` (scenario B), every player's public
    /// state changes too.
    pub fn new(players: u64, cards: u32, all_players: bool, fraction: f64) -> Self {
        let mut order: Vec<PlayerId> = (0..players).map(PlayerId).collect();
        order.sort_by_key(|id| format!("player_{id}"));
        Self {
            players,
            cards: cards.into(),
            all_players,
            hands_changed: hands_changed(players, fraction),
            order,
        }
    }

    /// The player at `offset` from `start`.
    fn player(&self, start: u64, offset: u64) -> PlayerId {
        self.order[((start + offset) % self.players) as usize]
    }

    /// The hands and cards that change in a step.
    fn cards_of_step(&self, iteration: u64) -> impl Iterator<Item = (PlayerId, usize)> {
        let start = iteration * 7 % self.players;
        (0..self.hands_changed).map(move |offset| {
            (self.player(start, offset), ((iteration + offset) % self.cards) as usize)
        })
    }

    /// The players whose health changes in a step, and its direction.
    fn hits_of_step(&self, iteration: u64) -> impl Iterator<Item = (PlayerId, i64)> {
        let start = iteration * 3 % self.players;
        let count = if self.all_players { self.players } else { 0 };
        (0..count).map(move |offset| {
            (
                self.player(start, offset),
                if (iteration + offset).is_multiple_of(2) { 1 } else { -1 },
            )
        })
    }
}

impl Workload for Swift {
    type State = Table;
    type Model = Model;

    fn players(&self) -> Vec<PlayerId> {
        (0..self.players).map(PlayerId).collect()
    }

    fn state(&self) -> Table {
        let mut table = Table { round: 1, ..Table::default() };
        for id in (0..self.players).map(PlayerId) {
            table.players.insert(id, Seat { name: name(id), hp: 100, hp_max: 100 });
            let cards =
                (0..self.cards as i64).map(|id| Card { id, suit: id % 4, rank: id % 13 }).collect();
            table.hands.insert(id, Hand { owner: id, cards });
        }
        table
    }

    fn model(&self) -> Model {
        let players = (0..self.players).map(PlayerId);
        let cards = || {
            (0..self.cards as i64).map(|id| ModelCard { id, suit: id % 4, rank: id % 13 }).collect()
        };
        Model {
            round: 1,
            players: players
                .clone()
                .map(|id| (id, ModelSeat { name: name(id), hp: 100, hp_max: 100 }))
                .collect(),
            hands: players.map(|id| (id, ModelHand { owner: id, cards: cards() })).collect(),
        }
    }

    fn step(&self, table: &mut Table, iteration: u64) {
        table.round += 1;
        for (id, index) in self.cards_of_step(iteration) {
            let Some(hand) = table.hands.get_mut(&id) else { continue };
            let card = &mut hand.cards[index];
            (card.suit, card.rank) = turned(card.suit, card.rank, iteration);
        }
        for (id, by) in self.hits_of_step(iteration) {
            let Some(seat) = table.players.get_mut(&id) else { continue };
            seat.hp = hit(seat.hp, seat.hp_max, by);
        }
    }

    fn step_model(&self, model: &mut Model, iteration: u64) {
        model.round += 1;
        for (id, index) in self.cards_of_step(iteration) {
            let Some(hand) = model.hands.get_mut(&id) else { continue };
            let card = &mut hand.cards[index];
            (card.suit, card.rank) = turned(card.suit, card.rank, iteration);
        }
        for (id, by) in self.hits_of_step(iteration) {
            let Some(seat) = model.players.get_mut(&id) else { continue };
            seat.hp = hit(seat.hp, seat.hp_max, by);
        }
    }

    fn matches_shared(&self, copy: &Table, model: &Model) -> bool {
        copy.round == model.round
            && same_map(&copy.players, &model.players, |seat, model| {
                seat.hp == model.hp && seat.hp_max == model.hp_max && seat.name == model.name
            })
    }

    fn matches_own(&self, copy: &Table, model: &Model, viewer: PlayerId) -> bool {
        same_own(&copy.hands, &model.hands, viewer, |hand, model| {
            hand.owner == model.owner
                && hand
                    .cards
                    .iter()
                    .map(|card| (card.id, card.suit, card.rank))
                    .eq(model.cards.iter().map(|card| (card.id, card.suit, card.rank)))
        })
    }

    fn shared_tree(&self, model: &Model, _: TreeFormat) -> serde_json::Map<String, Value> {
        let players = model.players.iter().map(|(id, seat)| {
            (id.to_string(), json!({ "name": seat.name, "hp": seat.hp, "hp_max": seat.hp_max }))
        });
        serde_json::Map::from_iter([
            ("round".into(), model.round.into()),
            ("players".into(), Value::Object(players.collect())),
        ])
    }

    fn own_tree(&self, model: &Model, viewer: PlayerId) -> (&'static str, Value) {
        let hands = model.hands.get(&viewer).map(|hand| {
            let cards: Vec<Value> = hand
                .cards
                .iter()
                .map(|card| json!({ "id": card.id, "suit": card.suit, "rank": card.rank }))
                .collect();
            (viewer.to_string(), json!({ "owner": hand.owner.0, "cards": cards }))
        });
        ("hands", Value::Object(hands.into_iter().collect()))
    }
}

fn name(id: PlayerId) -> String {
    format!("Player player_{id}")
}

/// A card's next suit and rank.
fn turned(suit: i64, rank: i64, iteration: u64) -> (i64, i64) {
    ((suit + 1 + (iteration % 3) as i64) % 4, (rank + 1 + (iteration % 7) as i64) % 13)
}

/// A player's next health: up or down, and back from either end.
fn hit(hp: i64, hp_max: i64, by: i64) -> i64 {
    hp + if hp <= 0 {
        1
    } else if hp >= hp_max {
        -1
    } else {
        by
    }
}
