//! A room that keeps account of what it receives: the messages of each player are numbered.

use playfield::prelude::*;

#[derive(State, Default)]
pub(crate) struct Ledger {
    total: u32,
    /// Messages that were lost, doubled or reordered.
    faults: u32,
    accounts: Map<PlayerId, Account>,
    /// Changes with each tick, so that something passes whatever the players do.
    noise: [u8; 24],
}

#[derive(State, Default)]
pub(crate) struct Account {
    /// The last number.
    last: u32,
    /// The same, for its player alone.
    #[sync(owner)]
    own: u32,
}

/// A message without an answer.
#[derive(Message)]
pub(crate) struct Tell {
    number: u32,
    filling: String,
}

/// A message whose reply is its number.
#[derive(Message)]
#[reply(u32)]
pub(crate) struct Ask {
    number: u32,
    filling: String,
}

/// Names the room in lists, as its metadata `name`.
#[derive(Message)]
pub(crate) struct Label {
    name: String,
}

/// Everyone hears of each message.
#[derive(Message)]
pub(crate) struct Done {
    player: PlayerId,
    number: u32,
    filling: String,
}

#[room(messages(Tell, Ask, Label), events(Done), tick_hz = 20, sync_hz = 20, grace_ms = 600_000)]
impl Room for Ledger {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.accounts.insert(player.id(), Account::default());
        Ok(())
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.noise = self.noise.map(|byte| byte.wrapping_add(1));
    }
}

impl Ledger {
    fn note(&mut self, tell: Tell, player: &Player, cx: &mut Context<Self>) -> Result<u32> {
        let Tell { number, filling } = tell;
        let account = self.accounts.get_mut(&player.id()).ok_or("you have no account")?;
        self.faults += u32::from(number != account.last + 1);
        (account.last, account.own) = (number, number);
        self.total += 1;
        cx.emit(&Done { player: player.id(), number, filling });
        Ok(number)
    }
}

impl Handle<Tell> for Ledger {
    fn handle(&mut self, tell: Tell, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.note(tell, player, cx).map(drop)
    }
}

impl Handle<Label> for Ledger {
    fn handle(&mut self, label: Label, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.set_metadata("name", &label.name)
    }
}

impl Handle<Ask> for Ledger {
    fn handle(&mut self, ask: Ask, player: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.note(Tell { number: ask.number, filling: ask.filling }, player, cx)
    }
}
