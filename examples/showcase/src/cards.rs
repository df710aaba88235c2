//! A card table. Everyone sees the players and the open cards; each player sees their own hand;
//! nobody sees the deck.

use std::time::Duration;

use playfield::prelude::*;

/// The number of cards in a hand.
pub const HAND: usize = 5;

/// The time that a player may take before a card is played for them.
const PATIENCE: Duration = Duration::from_secs(8);

/// The table.
#[derive(State, Default)]
pub struct Table {
    /// The number of the trick.
    pub round: u32,
    /// The players at the table.
    pub players: Map<PlayerId, Seat>,
    /// The open cards: each player's card in this trick.
    pub open: Map<PlayerId, Card>,
    /// The winner of the last trick.
    pub winner: Option<PlayerId>,
    /// Each player's hand, visible only to its owner.
    #[sync(owner)]
    pub hands: Map<PlayerId, Hand>,
    /// The deck, which never leaves the server.
    #[sync(hidden)]
    pub deck: List<Card>,
}

/// A player at the table.
#[derive(State, Default)]
pub struct Seat {
    /// The display name.
    pub name: String,
    /// Tricks won.
    pub tricks: u32,
    /// Cards in hand.
    pub cards: u32,
}

/// A player's hand.
#[derive(State, Default)]
pub struct Hand {
    /// In the order drawn.
    pub cards: List<Card>,
}

/// A playing card.
#[derive(State, Data, Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// 0 clubs, 1 diamonds, 2 hearts, 3 spades.
    pub suit: u8,
    /// 2 to 14, the ace.
    pub rank: u8,
}

/// Plays the card at an index of the player's own hand. The reply is the card.
#[derive(Message)]
#[reply(Card)]
pub struct Play {
    /// The index, from 0.
    pub place: u32,
}

/// The trick is complete and has a winner.
#[derive(Message)]
pub struct Taken {
    /// The winner.
    pub by: PlayerId,
}

/// The time limit of a trick has expired.
#[derive(Message)]
pub struct Hurry {
    /// The trick that the limit applies to.
    pub round: u32,
}

#[room(messages(Play), events(Taken), internal(Hurry), capacity = 4, empty_ms = 10_000)]
impl Room for Table {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        cx.after(PATIENCE, Hurry { round: 0 });
        Ok(Self::default())
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.players
            .insert(player.id(), Seat { name: player.name().to_owned(), ..Seat::default() });
        self.hands.insert(player.id(), Hand::default());
        self.deal(player.id(), cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.hands.remove(&player.id());
        self.open.remove(&player.id());
        self.take_trick(cx);
    }
}

impl Handle<Play> for Table {
    fn handle(
        &mut self,
        Play { place }: Play,
        player: &Player,
        cx: &mut Context<Self>,
    ) -> Result<Card> {
        self.play(player.id(), place as usize, cx)
    }
}

impl On<Hurry> for Table {
    fn on(&mut self, Hurry { round }: Hurry, cx: &mut Context<Self>) -> Result<()> {
        if round == self.round {
            let late: Vec<PlayerId> =
                self.players.keys().filter(|id| !self.open.contains_key(id)).copied().collect();
            for id in late {
                self.play(id, 0, cx)?;
            }
        }
        cx.after(PATIENCE, Hurry { round: self.round });
        Ok(())
    }
}

impl Table {
    fn play(&mut self, id: PlayerId, place: usize, cx: &mut Context<Self>) -> Result<Card> {
        if self.open.contains_key(&id) {
            return Err("you have already played a card in this trick".into());
        }
        let hand = self.hands.get_mut(&id).ok_or("you are not at this table")?;
        let card = hand.cards.remove(place).ok_or("there is no card at that place in your hand")?;
        self.open.insert(id, card.clone());
        self.deal(id, cx);
        self.take_trick(cx);
        Ok(card)
    }

    /// Fills a hand from the deck.
    fn deal(&mut self, id: PlayerId, cx: &mut Context<Self>) {
        let Some(hand) = self.hands.get_mut(&id) else { return };
        while hand.cards.len() < HAND {
            if self.deck.is_empty() {
                self.deck
                    .extend((0..4).flat_map(|suit| (2..=14).map(move |rank| Card { suit, rank })));
                cx.rng().shuffle(&mut self.deck);
            }
            hand.cards.extend(self.deck.pop());
        }
        if let Some(seat) = self.players.get_mut(&id) {
            seat.cards = hand.cards.len() as u32;
        }
    }

    /// Once all have played, the highest card wins the trick.
    fn take_trick(&mut self, cx: &mut Context<Self>) {
        if self.players.is_empty() || self.open.len() < self.players.len() {
            return;
        }
        let best =
            self.open.iter().max_by_key(|(_, card)| (card.rank, card.suit)).map(|(id, _)| *id);
        if let Some(by) = best {
            if let Some(seat) = self.players.get_mut(&by) {
                seat.tricks += 1;
            }
            cx.emit(&Taken { by });
        }
        self.winner = best;
        self.open.clear();
        self.round += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    #[test]
    fn nobody_sees_another_hand() {
        let mut sim = Sim::<Table>::new(1);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        sim.advance(Duration::from_millis(100));
        assert_eq!(sim.copy(ann).hands.keys().collect::<Vec<_>>(), [&ann]);
        assert_eq!(sim.copy(bob).hands.get(&bob).unwrap().cards.len(), HAND);
        assert_eq!(sim.copy(bob).players.len(), 2);
    }

    #[test]
    fn the_highest_card_takes_the_trick() {
        let mut sim = Sim::<Table>::new(1);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        let a = sim.request(ann, Play { place: 0 }).unwrap();
        assert!(sim.request(ann, Play { place: 0 }).is_err());
        let b = sim.request(bob, Play { place: 0 }).unwrap();
        let winner = if (a.rank, a.suit) > (b.rank, b.suit) { ann } else { bob };
        assert_eq!(sim.room().players.get(&winner).unwrap().tricks, 1);
        assert_eq!(sim.room().round, 1);
    }

    #[test]
    fn a_card_is_played_for_one_who_sleeps() {
        let mut sim = Sim::<Table>::new(1);
        sim.join("Ann").unwrap();
        sim.advance(PATIENCE + Duration::from_millis(100));
        assert_eq!(sim.room().round, 1);
    }
}
