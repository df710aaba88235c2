//! Cards: a deck that nobody sees, and hands that only their owners see.
//!
//! `cargo run --bin cards` serves it on 127.0.0.1:7350.

use playfield::prelude::*;

/// How many cards a player draws on joining.
const HAND: usize = 5;

#[derive(State, Default)]
struct Table {
    /// Each player receives their own entry. The other entries are never sent to them.
    #[sync(owner)]
    hands: Map<PlayerId, List<u8>>,
    /// Never leaves the server.
    #[sync(hidden)]
    deck: List<u8>,
    /// Everyone sees the cards that have been played.
    played: List<u8>,
}

/// Plays the card at a place in one's hand, counted from 0. The reply is the card.
#[derive(Message)]
#[reply(u8)]
struct Play {
    place: u32,
}

#[room(messages(Play), capacity = 4)]
impl Room for Table {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut deck: List<u8> = (1..=52).collect();
        // The room's own random numbers: a test with the same seed gets the same deck.
        cx.rng().shuffle(&mut deck);
        Ok(Self { deck, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if self.deck.len() < HAND {
            return Err("the deck is empty".into()); // the player is not seated
        }
        let hand = self.hands.get_or_default(player.id());
        hand.extend((0..HAND).filter_map(|_| self.deck.pop()));
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        if let Some(hand) = self.hands.remove(&player.id()) {
            self.played.extend(hand.iter().copied());
        }
    }
}

impl Handle<Play> for Table {
    fn handle(&mut self, play: Play, player: &Player, _: &mut Context<Self>) -> Result<u8> {
        let hand = self.hands.get_mut(&player.id()).ok_or("you have no hand")?;
        let card = hand.remove(play.place as usize).ok_or("you have no card at this place")?;
        self.played.push(card);
        Ok(card)
    }
}

fn main() -> ExitCode {
    Server::new().room::<Table>("table").run()
}
