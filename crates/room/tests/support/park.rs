//! A room that uses everything that a room can use, for the laws of freezing.

use std::collections::BTreeMap;
use std::time::Duration;

use playfield_room::{
    Answer, AskId, Context, Deferred, Error, Handle, LeaveReason, Message, On, Player, PlayerId,
    Result, Room, SeatFor, TimerId, room,
};
use playfield_state::{List, Map, Set, State};

#[derive(State, Default)]
pub(crate) struct Park {
    guests: Map<PlayerId, Guest>,
    #[sync(owner)]
    pockets: Map<PlayerId, List<u32>>,
    #[sync(hidden)]
    prizes: List<u32>,
    #[sync(hidden)]
    timers: List<TimerId>,
    #[sync(hidden)]
    owed: List<Deferred<Act>>,
    #[sync(hidden)]
    gongs: List<Deferred<Gong>>,
    rides: Map<String, Ride>,
    tags: Set<u8>,
    log: List<String>,
    #[sync(near = [x, y], viewer = guests, radius = 3.0, hysteresis = 1.5, nearest = 3)]
    beasts: Map<u8, Beast>,
    #[sync(view = is_for, viewer = guests)]
    notes: Map<u8, Note>,
    #[sync(view = is_warm, viewer = guests)]
    fire: Fire,
    #[sync(quantize = 0.5)]
    heat: f32,
    #[sync(mask = rounded)]
    score: u32,
    spots: [Option<Beast>; 2],
    last_tick: u64,
    /// The number of beasts in each column. Made again from the beasts.
    #[sync(skip)]
    columns: BTreeMap<u8, usize>,
}

#[derive(State, Default)]
struct Guest {
    name: String,
    x: u8,
    y: u8,
    #[sync(owner)]
    secret: u32,
    bag: Map<u8, u8>,
}

#[derive(State, Default)]
struct Ride {
    seats: Map<u8, u8>,
    queue: List<u8>,
}

#[derive(State, Default, Clone)]
struct Beast {
    x: u8,
    y: u8,
    food: Map<u8, u8>,
}

#[derive(State, Default)]
struct Note {
    floor: u8,
    text: String,
}

#[derive(State, Default)]
struct Fire {
    logs: List<u8>,
}

fn is_for(note: &Note, guest: &Guest) -> bool {
    note.floor <= guest.y
}

fn is_warm(_: &Fire, guest: &Guest) -> bool {
    guest.x < 4
}

fn rounded(score: &u32) -> u32 {
    score / 10 * 10
}

#[derive(Message, Clone, Debug)]
#[reply(Option<u32>)]
pub(crate) enum Act {
    Draw,
    Roll,
    Move(u8, u8),
    Beast(u8, u8, u8),
    Gone(u8),
    Feed(u8, u8),
    Note(u8, u8),
    Log(u8),
    Ride(u8, u8, u8),
    Stop(u8),
    Tag(u8),
    Score(u8),
    Spot(u8, bool),
    Bag(u8, u8),
    Shout(u8),
    Whisper(u8, u8),
    After(u8, u8),
    Every(u8),
    Cancel(u8),
    Work(u8),
    Look(u8),
    Defer,
    Answer(u8),
    Ask(u8),
    Tell(u8),
    Kick(u8),
    Ping(u8),
    Turn(bool),
    Hide(bool),
    Keep(u8),
    Name(u8),
    Found,
    Save,
    TrySave,
    Publish(u8),
    Refuse,
    Sync,
    Close,
}

/// Has a rate that players exceed.
#[derive(Message, Clone, Debug)]
#[message(rate = 2, burst = 2)]
pub(crate) struct Quick(pub(crate) u8);

#[derive(Message, Clone, Debug, PartialEq)]
pub(crate) struct Heard {
    who: PlayerId,
    what: u8,
}

#[derive(Message)]
#[reply(u32)]
pub(crate) struct Gong(pub(crate) u8);

#[derive(Message)]
pub(crate) struct Saved(pub(crate) bool);

#[room(
    messages(Act, Quick),
    events(Heard),
    internal(Gong, Saved),
    asks(Gong),
    tick_hz = 20,
    sync_hz = 10,
    capacity = 5,
    empty_ms = 2000,
    reply_ms = 600,
    round_trip_ms = 1000,
    one_per_user = take_over,
    persist = 1
)]
impl Room for Park {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut park = Self { prizes: (0..30).collect(), ..Self::default() };
        cx.rng().shuffle(&mut park.prizes);
        cx.set_metadata("mode", "park")?;
        Ok(park)
    }

    fn rebuild(&mut self, _: &mut Context<Self>) {
        for beast in self.beasts.values() {
            *self.columns.entry(beast.x).or_default() += 1;
        }
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let (x, y) = (cx.rng().below(8) as u8, cx.rng().below(8) as u8);
        let secret = cx.rng().below(100) as u32;
        let name =
            format!("{}{:?}{:?}", player.name(), player.user(), player.claims().text("team"));
        self.guests.insert(player.id(), Guest { name, x, y, secret, ..Guest::default() });
        let is_out = cx.rng().chance(0.1) && player.name() == "guest";
        if is_out { Err("out of luck".into()) } else { Ok(()) }
    }

    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        let connected = cx.players().filter(|player| player.is_connected()).count();
        self.log(format!("{} is lost, {connected} are here", player.id()));
        cx.emit(&Heard { who: player.id(), what: 1 });
    }

    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.log(format!("{} is back at {:?}", player.id(), cx.now()));
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.guests.remove(&player.id());
        self.pockets.remove(&player.id());
        cx.emit(&Heard { who: player.id(), what: 0 });
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        self.last_tick = cx.tick();
        self.heat += 0.2;
        for guest in self.guests.values_mut().filter(|guest| guest.x > 4) {
            guest.x -= 1;
        }
    }
}

impl Park {
    fn log(&mut self, text: String) {
        self.log.push(text);
        if self.log.len() > 12 {
            self.log.remove(0);
        }
    }

    fn take_beast(&mut self, number: u8) {
        if let Some(beast) = self.beasts.remove(&number) {
            *self.columns.get_mut(&beast.x).expect("it was counted") -= 1;
        }
    }
}

impl Handle<Act> for Park {
    fn handle(&mut self, act: Act, player: &Player, cx: &mut Context<Self>) -> Result<Option<u32>> {
        let who = player.id();
        match act {
            Act::Draw => {
                let prize = self.prizes.pop();
                self.pockets.get_or_default(who).extend(prize);
                return Ok(prize);
            }
            Act::Roll => {
                let roll = cx.rng().range(-3..4);
                self.log(format!("{who} rolls {roll}"));
            }
            Act::Move(x, y) => {
                if let Some(guest) = self.guests.get_mut(&who) {
                    (guest.x, guest.y) = (x, y);
                }
            }
            Act::Beast(number, x, y) => {
                self.take_beast(number);
                self.beasts.insert(number, Beast { x, y, ..Beast::default() });
                *self.columns.entry(x).or_default() += 1;
                let columns = format!("{:?}", self.columns);
                self.log(columns);
            }
            Act::Gone(number) => self.take_beast(number),
            Act::Feed(number, food) => {
                if let Some(beast) = self.beasts.get_mut(&number)
                    && beast.food.remove(&food).is_none()
                {
                    beast.food.insert(food, number);
                }
            }
            Act::Note(number, floor) => {
                if floor == 0 {
                    self.notes.remove(&number);
                } else {
                    self.notes.insert(number, Note { floor, text: format!("{who}") });
                }
            }
            Act::Log(log) => self.fire.logs.insert(log as usize % (self.fire.logs.len() + 1), log),
            Act::Ride(ride, seat, by) => {
                let ride = self.rides.get_or_default(format!("ride {ride}"));
                ride.seats.insert(seat, by);
                ride.queue.push(by);
                ride.queue.sort();
            }
            Act::Stop(ride) => {
                let name = format!("ride {ride}");
                match self.rides.get_mut(&name) {
                    Some(of) if of.seats.len() > 2 => of.seats.retain(|seat, _| *seat % 2 == 0),
                    _ => drop(self.rides.remove(&name)),
                }
            }
            Act::Tag(tag) => {
                if !self.tags.insert(tag) {
                    self.tags.remove(&tag);
                }
            }
            Act::Score(more) => self.score += u32::from(more),
            Act::Spot(number, is_there) => {
                let beast = self.beasts.get(&number).cloned();
                self.spots[usize::from(number % 2)] = if is_there { beast } else { None };
            }
            Act::Bag(thing, count) => {
                if let Some(guest) = self.guests.get_mut(&who) {
                    match count % 3 {
                        0 => drop(guest.bag.remove(&thing)),
                        _ => drop(guest.bag.insert(thing, count)),
                    }
                }
            }
            Act::Shout(what) => cx.emit_except(who, &Heard { who, what }),
            Act::Whisper(to, what) => cx.emit_to(PlayerId(to.into()), &Heard { who, what }),
            Act::After(ms, what) => {
                let timer = cx.after(Duration::from_millis(ms.into()), Gong(what));
                self.timers.push(timer);
            }
            Act::Every(ms) => {
                let timer = cx.every(Duration::from_millis(u64::from(ms) + 20), Gong(ms));
                self.timers.push(timer);
            }
            Act::Cancel(place) => {
                if !self.timers.is_empty() {
                    let timer = self.timers.remove(usize::from(place) % self.timers.len());
                    let was_set = timer.is_some_and(|timer| cx.cancel(timer));
                    self.log(format!("canceled: {was_set}"));
                }
            }
            Act::Work(what) => {
                cx.spawn(async move { Gong(what) })?;
                cx.compute(move || Gong(what))?;
            }
            Act::Look(what) => {
                return cx.reply_later::<Act>(async move { Ok(Some(what.into())) });
            }
            Act::Defer => {
                self.owed.push(cx.defer());
                return Err(Error::deferred());
            }
            Act::Answer(what) => {
                if let Some(owed) = self.owed.pop() {
                    let heard = cx.answer(owed, Ok(Some(what.into())));
                    self.log(format!("answered: {heard}"));
                }
                if let Some(owed) = self.gongs.pop() {
                    cx.answer(owed, Ok(what.into()));
                }
            }
            Act::Ask(what) => {
                let ask = cx.ask("other", &Gong(what)).0;
                self.log(format!("asks {ask}"));
            }
            Act::Tell(what) => cx.tell("other", &Gong(what)),
            Act::Kick(whom) => cx.kick(PlayerId(whom.into()), "out"),
            Act::Ping(whom) => {
                let round_trip = cx.round_trip(PlayerId(whom.into()));
                self.log(format!("{whom} takes {round_trip:?}"));
            }
            Act::Turn(true) => cx.lock(),
            Act::Turn(false) => cx.unlock(),
            Act::Hide(private) => cx.set_private(private),
            Act::Keep(ms) => {
                let wait = Duration::from_millis(u64::from(ms) * 10);
                let seat = cx.reserve(SeatFor::Name("kept".into()), wait)?;
                self.log(format!("keeps {seat}"));
            }
            Act::Name(name) => cx.set_metadata("name", &name.to_string())?,
            Act::Found => {
                let id = cx.create_room::<Self>(&())?;
                self.log(format!("creates {id}"));
            }
            Act::Save => cx.save(Saved(true))?,
            Act::TrySave => cx.try_save(|outcome| Saved(outcome.is_ok()))?,
            Act::Publish(what) => cx.publish("news", &u32::from(what)),
            Act::Refuse => return Err("no".into()),
            Act::Sync => cx.sync_now(),
            Act::Close => cx.close("enough"),
        }
        Ok(None)
    }
}

impl Handle<Quick> for Park {
    fn handle(&mut self, Quick(what): Quick, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.log(format!("{} says {what}", player.id()));
        Ok(())
    }
}

impl On<Gong> for Park {
    fn on(&mut self, Gong(what): Gong, cx: &mut Context<Self>) -> Result<u32> {
        self.log(format!("{what} at {:?} by {:?}", cx.now(), cx.sender()));
        if what % 4 == 0 && cx.sender().is_some() {
            self.gongs.push(cx.defer());
            return Err(Error::deferred());
        }
        Ok(what.into())
    }
}

impl On<Saved> for Park {
    fn on(&mut self, Saved(is_saved): Saved, cx: &mut Context<Self>) -> Result<()> {
        self.log(format!("saved at {:?}: {is_saved}", cx.now()));
        Ok(())
    }
}

impl Answer<Gong> for Park {
    fn answer(&mut self, ask: AskId, reply: Result<u32>, _: &mut Context<Self>) {
        self.log(format!("answer {}: {reply:?}", ask.0));
    }
}
