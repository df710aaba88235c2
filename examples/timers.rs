//! Timers: an auction that ends some time after the last bid.
//!
//! `cargo run --bin timers` serves it on 127.0.0.1:7350.

use std::time::Duration;

use playfield::prelude::*;

#[derive(State, Default)]
struct Auction {
    price: u32,
    winner: Option<PlayerId>,
    sold: bool,
    #[sync(hidden)]
    patience_ms: u32,
}

/// The options that a client may choose when it creates an auction.
#[derive(Data, Default)]
struct Terms {
    /// The time to wait for another bid, in milliseconds.
    patience_ms: u32,
}

#[derive(Message)]
struct Bid {
    price: u32,
}

/// Some time has passed since the bid of this price. A timer brings a message, which comes to `On`;
/// clients can't send it.
#[derive(Message)]
struct Waited {
    price: u32,
}

#[room(messages(Bid), internal(Waited))]
impl Room for Auction {
    type Options = Terms;

    fn create(terms: Terms, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { patience_ms: terms.patience_ms, ..Self::default() })
    }
}

impl Handle<Bid> for Auction {
    fn handle(&mut self, bid: Bid, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if self.sold || bid.price <= self.price {
            return Err(format!("{} is not enough, or too late", bid.price).into());
        }
        self.price = bid.price;
        self.winner = Some(player.id());
        // A test with `Sim` need not wait: `advance` makes the room's time pass.
        cx.after(Duration::from_millis(self.patience_ms.into()), Waited { price: bid.price });
        Ok(())
    }
}

impl On<Waited> for Auction {
    fn on(&mut self, waited: Waited, _: &mut Context<Self>) -> Result<()> {
        // Of a timer that was set before the last bid, nothing follows.
        self.sold |= waited.price == self.price;
        Ok(())
    }
}

fn main() -> ExitCode {
    Server::new().room::<Auction>("auction").run()
}
