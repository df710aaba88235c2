//! The guide's game as of its step 4 (`docs/guide.md`): two players, hidden hands, rounds.

use playfield::prelude::*;

#[derive(State, Default)]
struct Duel {
    round: u32,
    players: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, List<u8>>,
    #[sync(hidden)]
    chosen: Map<PlayerId, u8>,
    #[sync(hidden)]
    deck: List<u8>,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    won: u32,
    ready: bool,
}

/// Plays the number at an index of the player's hand. The reply is the number.
#[derive(Message)]
#[reply(u8)]
struct Choose {
    index: u32,
}

/// Both players have chosen.
#[derive(Message)]
struct Shown {
    winner: PlayerId,
    numbers: Vec<u8>,
}

#[room(messages(Choose), events(Shown), capacity = 2)]
impl Room for Duel {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), Seat { name: player.name().into(), ..Seat::default() });
        self.deal(player.id(), cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.hands.remove(&player.id());
        self.chosen.remove(&player.id());
    }
}

impl Handle<Choose> for Duel {
    fn handle(&mut self, choose: Choose, player: &Player, cx: &mut Context<Self>) -> Result<u8> {
        if self.chosen.contains_key(&player.id()) {
            return Err("you have already chosen".into());
        }
        let hand = self.hands.get_mut(&player.id()).ok_or("you have no hand")?;
        let number = hand.remove(choose.index as usize).ok_or("your hand is smaller than that")?;
        self.chosen.insert(player.id(), number);
        if let Some(seat) = self.players.get_mut(&player.id()) {
            seat.ready = true;
        }
        self.compare(cx);
        Ok(number)
    }
}

impl Duel {
    fn compare(&mut self, cx: &mut Context<Self>) {
        if self.chosen.len() < 2 {
            return;
        }
        let Some((&winner, _)) = self.chosen.iter().max_by_key(|(_, number)| **number) else {
            return;
        };
        cx.emit(&Shown { winner, numbers: self.chosen.values().copied().collect() });
        for (id, seat) in &mut self.players {
            seat.ready = false;
            seat.won += u32::from(*id == winner);
        }
        self.chosen.clear();
        self.round += 1;
        let hands = self.hands.iter();
        let empty = hands.filter(|(_, hand)| hand.is_empty()).map(|(id, _)| *id);
        for id in empty.collect::<Vec<PlayerId>>() {
            self.deal(id, cx);
        }
    }

    fn deal(&mut self, id: PlayerId, cx: &mut Context<Self>) {
        if self.deck.len() < 5 {
            self.deck = (1..=50).collect();
            cx.rng().shuffle(&mut self.deck);
        }
        let hand = self.hands.get_or_default(id);
        while hand.len() < 5 {
            hand.extend(self.deck.pop());
        }
    }
}

fn main() -> ExitCode {
    Server::new().room::<Duel>("duel").page("/", "text/html; charset=utf-8", PAGE).run()
}

/// The next step moves the page to a file.
const PAGE: &str = "<h1>Duel</h1>";

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    #[test]
    fn the_higher_number_wins_the_round() {
        let mut sim = Sim::<Duel>::new(7);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        let a = sim.request(ann, Choose { index: 0 }).unwrap();
        assert!(sim.request(ann, Choose { index: 0 }).is_err());
        let b = sim.request(bob, Choose { index: 0 }).unwrap();
        let winner = if a > b { ann } else { bob };
        assert_eq!(sim.room().players.get(&winner).unwrap().won, 1);
    }

    #[test]
    fn no_player_sees_the_other_hand() {
        let mut sim = Sim::<Duel>::new(7);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        sim.advance(std::time::Duration::from_millis(100));
        assert!(sim.copy(ann).hands.contains_key(&ann));
        assert!(!sim.copy(ann).hands.contains_key(&bob));
    }
}
