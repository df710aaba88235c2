//! Cards: a deck that nobody sees, hands that only their owners see, and trades that wait for an
//! answer.
//!
//! `cargo run --bin cards` serves it on 127.0.0.1:7350.

use std::time::Duration;

use playfield::load::Turn;
use playfield::prelude::*;

/// The number of cards that a player draws on joining.
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
    /// Trades that were offered, by the player who may accept.
    #[sync(hidden)]
    offers: Map<PlayerId, Offer>,
}

#[derive(State, Default)]
struct Offer {
    from: PlayerId,
    card: u8,
    /// The reply that the one who offered waits for.
    reply: Deferred<Trade>,
}

/// Plays the card at a place in one's hand, counted from 0. The reply is the card.
#[derive(Message)]
#[reply(u8)]
struct Play {
    place: u32,
}

/// Offers the card at a place in one's hand to another player. The reply is the card that they give
/// for it; it comes when they accept.
#[derive(Message)]
#[reply(u8)]
struct Trade {
    place: u32,
    with: PlayerId,
}

/// Accepts an offer, and gives the card at this place for it. The reply is the other card.
#[derive(Message)]
#[reply(u8)]
struct Accept {
    place: u32,
}

// An offer that nobody accepts within `reply_ms` fails.
#[room(messages(Play, Trade, Accept), capacity = 4, reply_ms = 60_000)]
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

impl Handle<Trade> for Table {
    fn handle(&mut self, trade: Trade, player: &Player, cx: &mut Context<Self>) -> Result<u8> {
        let card = self.card(player.id(), trade.place)?;
        if cx.player(trade.with).is_none() {
            return Err("there is no such player".into());
        }
        // Keep the request, and answer when the other player accepts.
        let offer = Offer { from: player.id(), card, reply: cx.defer() };
        self.offers.insert(trade.with, offer);
        Err(Error::deferred())
    }
}

impl Handle<Accept> for Table {
    fn handle(&mut self, accept: Accept, player: &Player, cx: &mut Context<Self>) -> Result<u8> {
        let given = self.card(player.id(), accept.place)?;
        let offer = self.offers.remove(&player.id()).ok_or("nobody offers you a card")?;
        let theirs = self.hands.get_mut(&offer.from).ok_or("they have left")?;
        let place = theirs.iter().position(|card| *card == offer.card);
        let place = place.ok_or("they no longer have the card")?;
        // `false` if they have left or waited for too long.
        if !cx.answer(offer.reply, Ok(given)) {
            return Err("the offer has ended".into());
        }
        theirs.remove(place);
        theirs.push(given);
        let mine = self.hands.get_or_default(player.id());
        mine.remove(accept.place as usize);
        mine.push(offer.card);
        Ok(offer.card)
    }
}

impl Table {
    fn card(&self, player: PlayerId, place: u32) -> Result<u8> {
        let hand = self.hands.get(&player).ok_or("you have no hand")?;
        Ok(*hand.get(place as usize).ok_or("you have no card at this place")?)
    }
}

/// A player for `cargo run --release --bin cards -- capacity table --players 4`: trades a card with
/// a neighbor every second.
fn trade(turn: &mut Turn<'_, Table>) -> Duration {
    let neighbor = PlayerId(turn.player() + 1);
    match turn.player() % 2 {
        1 => turn.request(&Trade { place: 0, with: neighbor }),
        _ => turn.request(&Accept { place: 0 }),
    }
    Duration::from_secs(1)
}

pub(crate) fn server() -> Server {
    Server::new().room::<Table>("table").bot::<Table, _>("table", |_| trade)
}

fn main() -> ExitCode {
    server().run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    /// An offer is between two: nobody else learns of it, nor of any card that was not played.
    #[test]
    fn hands_the_deck_and_offers_are_secret() {
        let report = Sim::<Table>::audit([7, 48], |sim, card| {
            let [ann, bob, eve] = ["Ann", "Bob", "Eve"].map(|name| sim.join(name).unwrap());
            sim.may_see(ann);
            sim.may_see(bob);
            sim.room_mut().hands.get_or_default(ann).push(*card);
            sim.room_mut().deck.push(*card);
            let trade = sim.request_begin(ann, Trade { place: 5, with: bob });
            sim.advance(Duration::from_millis(100));
            for seed in 0..100 {
                sim.any_message(eve, seed);
                sim.advance(Duration::from_millis(20));
            }
            sim.request(bob, Accept { place: 0 }).unwrap();
            assert!(sim.reply(&trade).unwrap().is_ok());
            sim.advance(Duration::from_millis(100));
        });
        report.assert_silent();
    }

    #[test]
    fn the_table_is_deterministic() {
        Sim::<Table>::check_determinism(
            || Sim::new(7),
            |sim| {
                let players = ["Ann", "Bob", "Eve"].map(|name| sim.join(name).unwrap());
                for seed in 0..100 {
                    sim.any_message(players[seed as usize % 3], seed);
                    sim.advance(Duration::from_millis(30));
                }
            },
        )
        .unwrap();
    }
}
