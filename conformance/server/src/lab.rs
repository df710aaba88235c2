//! A room with a value of every kind, which does what messages say.

pub(crate) mod change;

use playfield::prelude::*;

use change::Change;

#[derive(State, Default)]
pub(crate) struct Lab {
    flag: bool,
    small: i8,
    byte: u8,
    int: i32,
    wide: i64,
    huge: u64,
    single: f32,
    double: f64,
    #[sync(quantize = 0.25)]
    coarse: f32,
    text: String,
    data: Bytes,
    maybe: Option<u32>,
    grid: [u8; 3],
    point: Point,
    shape: Shape,
    list: List<i32>,
    units: List<Unit>,
    counts: Map<String, u32>,
    items: Map<u32, Unit>,
    tags: Set<String>,
    players: Map<PlayerId, Seat>,
    #[sync(owner)]
    hands: Map<PlayerId, List<u8>>,
    #[sync(hidden)]
    secret: u32,
    #[sync(mask = tens)]
    masked: u32,
    #[sync(view = sees, viewer = players)]
    far: Map<u32, Spot>,
    #[sync(hidden)]
    held: Map<u32, Deferred<Hold>>,
    #[sync(hidden)]
    greeting: String,
}

#[derive(Data, Default)]
pub(crate) struct Setup {
    /// The greeting sent to each player who joins; none if it is empty.
    greeting: String,
}

#[derive(State, Data, Clone, Default)]
pub(crate) struct Point {
    x: i32,
    y: i32,
}

#[derive(State, Data, Clone, Default)]
pub(crate) enum Shape {
    #[default]
    None,
    Circle(u32),
    Pair(i32, i32),
    Box {
        width: u32,
        label: Option<String>,
    },
}

#[derive(State, Data, Clone, Default)]
pub(crate) struct Unit {
    name: String,
    count: u32,
}

#[derive(State, Default)]
pub(crate) struct Seat {
    name: String,
    connected: bool,
    /// The player's sight.
    sight: u32,
    #[sync(owner)]
    purse: u32,
}

#[derive(State, Default)]
pub(crate) struct Spot {
    at: u32,
}

/// Everyone sees the tens only.
fn tens(value: &u32) -> u32 {
    value - value % 10
}

fn sees(spot: &Spot, viewer: &Seat) -> bool {
    spot.at <= viewer.sight
}

/// Changes the state, all in one step. The reply is how many changes there were.
#[derive(Message)]
#[reply(u32)]
pub(crate) struct Do {
    changes: Vec<Change>,
}

/// The same without a reply.
#[derive(Message)]
pub(crate) struct Note {
    changes: Vec<Change>,
}

/// A value of every kind. The reply is the same.
#[derive(Message)]
#[reply(Everything)]
pub(crate) struct Echo {
    all: Everything,
}

#[derive(Data, Default)]
pub(crate) struct Everything {
    flag: bool,
    small: i8,
    int: i32,
    wide: i64,
    huge: u64,
    single: f32,
    double: f64,
    text: String,
    data: Bytes,
    maybe: Option<u32>,
    shape: Shape,
    list: Vec<i32>,
}

/// Has no fields, and a reply without fields.
#[derive(Message)]
pub(crate) struct Nothing;

/// Is refused, with a code of the room's own if one is given.
#[derive(Message)]
pub(crate) struct Refuse {
    code: Option<u16>,
    text: String,
}

/// Is answered when it is released.
#[derive(Message)]
#[reply(u32)]
pub(crate) struct Hold {
    id: u32,
}

/// Answers a request that is held, or refuses it.
#[derive(Message)]
pub(crate) struct Release {
    id: u32,
    value: Option<u32>,
}

/// Tells everyone, or one player.
#[derive(Message)]
pub(crate) struct Say {
    text: String,
    to: Option<PlayerId>,
}

/// Tells everyone numbers, from 1, each with some bytes.
#[derive(Message)]
pub(crate) struct Burst {
    count: u32,
    bytes: u32,
}

/// May be sent once in a thousand seconds.
#[derive(Message)]
#[message(rate = 0.001, burst = 1)]
pub(crate) struct Rare;

#[derive(Message)]
pub(crate) struct Kick {
    player: PlayerId,
    text: String,
}

#[derive(Message)]
pub(crate) struct Close {
    text: String,
}

/// Fails as a fault in a room's code does.
#[derive(Message)]
pub(crate) struct Panic;

/// Sets what lists of rooms say of this one.
#[derive(Message)]
pub(crate) struct Describe {
    name: String,
    value: String,
}

#[derive(Message)]
pub(crate) struct Said {
    by: PlayerId,
    text: String,
}

#[derive(Message)]
pub(crate) struct Greeted {
    text: String,
}

#[derive(Message)]
pub(crate) struct Number {
    number: u32,
    filling: Bytes,
}

#[derive(Message)]
pub(crate) struct Came {
    player: PlayerId,
}

#[derive(Message)]
pub(crate) struct Went {
    player: PlayerId,
    why: String,
}

#[derive(Message)]
pub(crate) struct Lost {
    player: PlayerId,
}

#[derive(Message)]
pub(crate) struct Returned {
    player: PlayerId,
}

#[derive(Message)]
pub(crate) struct Ending;

#[room(
    messages(
        Do, Note, Echo, Nothing, Refuse, Hold, Release, Say, Burst, Rare, Kick, Close, Panic,
        Describe
    ),
    events(Said, Greeted, Number, Came, Went, Lost, Returned, Ending),
    sync_hz = 50,
    capacity = 8,
    grace_ms = 60_000
)]
impl Room for Lab {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { greeting: setup.greeting, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let name = player.name().to_owned();
        self.players.insert(player.id(), Seat { name, connected: true, sight: 0, purse: 0 });
        cx.emit_except(player.id(), &Came { player: player.id() });
        if !self.greeting.is_empty() {
            cx.emit_to(player.id(), &Greeted { text: self.greeting.clone() });
        }
        Ok(())
    }

    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        if let Some(seat) = self.players.get_mut(&player.id()) {
            seat.connected = false;
        }
        cx.emit(&Lost { player: player.id() });
    }

    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        if let Some(seat) = self.players.get_mut(&player.id()) {
            seat.connected = true;
        }
        cx.emit(&Returned { player: player.id() });
    }

    fn leave(&mut self, player: &Player, why: LeaveReason, cx: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.hands.remove(&player.id());
        let why = match why {
            LeaveReason::Left => "left",
            LeaveReason::ConnectionLost => "connection_lost",
            LeaveReason::TakenOver => "taken_over",
            LeaveReason::Kicked => "kicked",
            _ => "ended",
        };
        cx.emit(&Went { player: player.id(), why: why.to_owned() });
    }

    fn closing(&mut self, _: EndReason, cx: &mut Context<Self>) {
        cx.emit(&Ending);
    }
}

impl Lab {
    /// A room with one player.
    pub(crate) fn with_player(player: PlayerId, name: &str) -> Self {
        let mut lab = Self::default();
        let seat = Seat { name: name.to_owned(), connected: true, sight: 0, purse: 0 };
        lab.players.insert(player, seat);
        lab
    }
}

impl Handle<Do> for Lab {
    fn handle(&mut self, all: Do, player: &Player, _: &mut Context<Self>) -> Result<u32> {
        let count = all.changes.len() as u32;
        all.changes.into_iter().try_for_each(|change| self.change(change, player.id()))?;
        Ok(count)
    }
}

impl Handle<Note> for Lab {
    fn handle(&mut self, all: Note, player: &Player, _: &mut Context<Self>) -> Result<()> {
        all.changes.into_iter().try_for_each(|change| self.change(change, player.id()))
    }
}

impl Handle<Echo> for Lab {
    fn handle(&mut self, echo: Echo, _: &Player, _: &mut Context<Self>) -> Result<Everything> {
        Ok(echo.all)
    }
}

impl Handle<Nothing> for Lab {
    fn handle(&mut self, _: Nothing, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Handle<Refuse> for Lab {
    fn handle(&mut self, refuse: Refuse, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Err(match refuse.code {
            Some(code) => Error::with_code(code, refuse.text),
            None => refuse.text.into(),
        })
    }
}

impl Handle<Hold> for Lab {
    fn handle(&mut self, hold: Hold, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.held.insert(hold.id, cx.defer());
        Err(Error::deferred())
    }
}

impl Handle<Release> for Lab {
    fn handle(&mut self, release: Release, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        let held = self.held.remove(&release.id).ok_or("nothing is held under this id")?;
        cx.answer(held, release.value.ok_or_else(|| "it is not to be".into()));
        Ok(())
    }
}

impl Handle<Say> for Lab {
    fn handle(&mut self, say: Say, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let said = Said { by: player.id(), text: say.text };
        match say.to {
            Some(to) => cx.emit_to(to, &said),
            None => cx.emit(&said),
        }
        Ok(())
    }
}

impl Handle<Burst> for Lab {
    fn handle(&mut self, burst: Burst, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        if u64::from(burst.count) * u64::from(burst.bytes) > 1 << 20 {
            return Err("more than 1 MiB".into());
        }
        for number in 1..=burst.count {
            cx.emit(&Number { number, filling: Bytes(vec![7; burst.bytes as usize]) });
        }
        Ok(())
    }
}

impl Handle<Rare> for Lab {
    fn handle(&mut self, _: Rare, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Handle<Kick> for Lab {
    fn handle(&mut self, kick: Kick, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.kick(kick.player, kick.text);
        Ok(())
    }
}

impl Handle<Close> for Lab {
    fn handle(&mut self, close: Close, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.close(close.text);
        Ok(())
    }
}

impl Handle<Panic> for Lab {
    fn handle(&mut self, _: Panic, _: &Player, _: &mut Context<Self>) -> Result<()> {
        panic!("a scenario asked for it");
    }
}

impl Handle<Describe> for Lab {
    fn handle(&mut self, about: Describe, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.set_metadata(&about.name, &about.value)
    }
}
