//! A table of cards like that of `examples/cards.rs`, in which leaks can be planted. Ann offers Bob
//! a card, which Cleo must not learn.

use std::time::Duration;

use playfield::prelude::*;
use playfield::sim::{AuditReport, Sim};
use playfield::{ErrorCode, SeatFor};

use super::plant::Plant;

/// The number of cards in a hand.
const HAND: usize = 5;

/// The time after which everyone is reminded to play.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(State, Default)]
struct Table {
    #[sync(owner)]
    hands: Map<PlayerId, List<u8>>,
    #[sync(hidden)]
    deck: List<u8>,
    /// The cards that were offered, by the player who offers one.
    #[sync(hidden)]
    offers: Map<PlayerId, u8>,
    seats: Map<PlayerId, Seat>,
    played: List<u8>,
    #[sync(hidden)]
    plant: u32,
    #[sync(hidden)]
    waiting: Option<Deferred<Look>>,
    // Only plants use what follows.
    top: u8,
    open_hands: Map<PlayerId, List<u8>>,
    order: List<PlayerId>,
    marks: List<bool>,
    note: String,
}

#[derive(State, Default)]
struct Seat {
    name: String,
    cards: u32,
    offers: u32,
}

#[derive(Data, Default)]
struct Setup {
    plant: u32,
}

/// Plays the card at a place in one's hand. The reply is the card.
#[derive(Message)]
#[reply(u8)]
struct Play {
    place: u32,
}

/// Offers the card at a place in one's hand to another player.
#[derive(Message)]
struct Offer {
    place: u32,
    with: PlayerId,
}

/// Looks at the table. The reply is the number of cards on it.
#[derive(Message)]
#[reply(Seen)]
struct Look;

#[derive(Data, Default)]
struct Seen {
    cards: u32,
    best: u8,
}

/// Rolls the die. The reply is the number on it.
#[derive(Message)]
#[reply(u32)]
struct Roll;

/// To one player: someone offers you a card.
#[derive(Message)]
struct Offered {
    card: u8,
}

/// Someone has offered a card.
#[derive(Message)]
struct Heard {
    padding: Vec<u8>,
}

/// A reminder that it is time to play.
#[derive(Message)]
struct Hurry;

#[room(
    messages(Play, Offer, Look, Roll),
    events(Offered, Heard, Hurry),
    internal(Hurry, Look),
    capacity = 4
)]
impl Room for Table {
    type Options = Setup;

    fn create(setup: Setup, cx: &mut Context<Self>) -> Result<Self> {
        let mut deck: List<u8> = (1..=52).collect();
        cx.rng().shuffle(&mut deck);
        cx.after(PATIENCE, Hurry);
        Ok(Self { deck, plant: setup.plant, ..Self::default() })
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if let (true, Some(card)) = (self.has(Plant::JoinText), self.offers.values().next()) {
            return Err(format!("{card} is on offer: wait").into());
        }
        let hand = self.hands.get_or_default(player.id());
        hand.extend((0..HAND).filter_map(|_| self.deck.pop()));
        let seat = Seat { name: player.name().to_owned(), cards: HAND as u32, offers: 0 };
        self.seats.insert(player.id(), seat);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.seats.remove(&player.id());
        self.hands.remove(&player.id());
        self.offers.remove(&player.id());
    }
}

impl Handle<Play> for Table {
    fn handle(&mut self, play: Play, player: &Player, _: &mut Context<Self>) -> Result<u8> {
        let hand = self.hands.get_mut(&player.id()).ok_or("you have no hand")?;
        let card = hand.remove(play.place as usize).ok_or("you have no card at this place")?;
        self.played.push(card);
        if let Some(seat) = self.seats.get_mut(&player.id()) {
            seat.cards -= 1;
        }
        Ok(card)
    }
}

impl Handle<Offer> for Table {
    fn handle(&mut self, offer: Offer, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let hand = self.hands.get(&player.id()).ok_or("you have no hand")?;
        let card = *hand.get(offer.place as usize).ok_or("you have no card at this place")?;
        if cx.player(offer.with).is_none() {
            return Err("there is no such player".into());
        }
        self.offers.insert(player.id(), card);
        if let Some(seat) = self.seats.get_mut(&player.id()) {
            seat.offers += 1;
        }
        cx.emit_to(offer.with, &Offered { card });
        self.leak(player.id(), offer.with, card, cx)
    }
}

impl Handle<Look> for Table {
    fn handle(&mut self, _: Look, _: &Player, cx: &mut Context<Self>) -> Result<Seen> {
        let cards = self.played.len() as u32;
        let seen = Seen { cards, best: 0 };
        let Some(&card) = self.offers.values().next() else { return Ok(seen) };
        match self.plant() {
            Plant::ErrorText => Err(format!("wait until {card} is taken").into()),
            Plant::ErrorCode => Err(Error::with_code(1000 + u16::from(card % 2), "wait")),
            Plant::RetryAfter => {
                let wait = Duration::from_millis(u64::from(card) * 100);
                Err(Error::new(ErrorCode::Refused, "wait").with_retry_after(wait))
            }
            Plant::ReplyField => Ok(Seen { cards, best: card }),
            Plant::ReplyTime => {
                self.waiting = Some(cx.defer());
                cx.after(Duration::from_millis(u64::from(card)), Look);
                Err(Error::deferred())
            }
            _ => Ok(seen),
        }
    }
}

impl Handle<Roll> for Table {
    fn handle(&mut self, _: Roll, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        Ok(cx.rng().below(1_000_000) as u32)
    }
}

impl On<Hurry> for Table {
    fn on(&mut self, _: Hurry, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Hurry);
        Ok(())
    }
}

impl On<Look> for Table {
    fn on(&mut self, _: Look, cx: &mut Context<Self>) -> Result<Seen> {
        if let Some(waiting) = self.waiting.take() {
            cx.answer(waiting, Ok(Seen::default()));
        }
        Ok(Seen::default())
    }
}

impl Table {
    fn plant(&self) -> Plant {
        Plant::numbered(self.plant)
    }

    fn has(&self, plant: Plant) -> bool {
        self.plant() == plant
    }

    /// The planted leak of an offer.
    fn leak(
        &mut self,
        by: PlayerId,
        with: PlayerId,
        card: u8,
        cx: &mut Context<Self>,
    ) -> Result<()> {
        let is_high = card > 26;
        match self.plant() {
            Plant::HiddenField => self.top = self.deck.first().copied().unwrap_or_default(),
            Plant::OtherHand => {
                let hand = self.hands.get(&by).into_iter().flatten().copied().collect();
                self.open_hands.insert(by, hand);
            }
            Plant::ListLength => self.marks = (0..card / 13).map(|_| true).collect(),
            Plant::TextLength => self.note = "#".repeat(card.into()),
            Plant::ListOrder => {
                let mut order: Vec<PlayerId> = self.seats.keys().copied().collect();
                if is_high {
                    order.reverse();
                }
                self.order = order.into_iter().collect();
            }
            Plant::EventToAll => cx.emit(&Offered { card }),
            Plant::EventToOthers => cx.emit_except(with, &Offered { card }),
            Plant::EventLength => cx.emit(&Heard { padding: vec![0; card.into()] }),
            Plant::EventOrder => {
                let heard = Heard { padding: Vec::new() };
                if is_high {
                    cx.emit(&Hurry);
                }
                cx.emit(&heard);
                if !is_high {
                    cx.emit(&Hurry);
                }
            }
            Plant::SyncTime if is_high => cx.sync_now(),
            Plant::TimerTick => {
                cx.after(Duration::from_millis(u64::from(card / 13) * 50 + 25), Hurry);
            }
            Plant::RandomNumber if is_high => {
                cx.rng().below(2);
            }
            Plant::Metadata => cx.set_metadata("offer", &card.to_string())?,
            Plant::Lock if is_high => cx.lock(),
            Plant::Reserved if is_high => {
                cx.reserve(SeatFor::Name("a friend".into()), PATIENCE)?;
            }
            Plant::KickReason => {
                let others: Vec<PlayerId> = cx.players().map(Player::id).collect();
                for other in others.into_iter().filter(|other| ![by, with].contains(other)) {
                    cx.kick(other, format!("{card} is not for you"));
                }
            }
            Plant::CloseText => cx.close(format!("{card} was offered, so the game ends")),
            Plant::RoomKey => {
                let setup = Setup::default();
                cx.new_room::<Self>(&setup).key(&format!("trade-of-{card}")).create()?;
            }
            Plant::Publication => cx.publish("offers", &card),
            Plant::Push => cx.push("board", &card),
            _ => {}
        }
        Ok(())
    }
}

/// Audits the table with a plant.
pub(super) fn audit(plant: Plant, messages: u64) -> AuditReport {
    let setup = Setup { plant: plant as u32 };
    let create = |_: &u8| Sim::<Table>::with_options(7, &setup).expect("it refuses nobody");
    Sim::audit_with([12, 31], create, |sim, card| {
        let [ann, bob, cleo] = ["Ann", "Bob", "Cleo"].map(|name| sim.join(name).expect("a seat"));
        sim.may_see(ann);
        sim.may_see(bob);
        let table = sim.room_mut();
        table.hands.get_or_default(ann).insert(0, *card);
        // Nobody draws this one.
        table.deck.insert(0, *card);
        sim.advance(Duration::from_millis(110));
        // With a plant, the room may end here.
        let _ = sim.send(ann, Offer { place: 0, with: bob });
        for seed in 0..messages {
            sim.any_message(cleo, seed);
        }
        sim.advance(Duration::from_millis(500));
        let _ = sim.request_begin(cleo, Look);
        let _ = sim.request_begin(cleo, Roll);
        let _ = sim.send(cleo, Play { place: 99 });
        sim.advance(Duration::from_millis(500));
        // A newcomer sees the table, or the reason why not.
        let _ = sim.join("Dan");
        sim.advance(Duration::from_secs(1));
    })
}
