//! The same inputs and seed give the same outputs and state, and copies follow any inputs.

use crate::support;

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{
    Answer, AskId, Context, Handle, InternalMessage, LeaveReason, Mail, Message, On, Player,
    PlayerId, Result, Room, SeatFor, room,
};
use playfield_state::{Data, Format, List, Map, State};
use playfield_wire::RequestNumber;
use proptest::prelude::*;
use support::{Host, Output, room_named};

/// A bit of everything.
#[derive(State, Default)]
struct Fair {
    guests: Map<PlayerId, Guest>,
    #[sync(owner)]
    pockets: Map<PlayerId, List<u32>>,
    #[sync(hidden)]
    box_of_prizes: List<u32>,
    log: List<String>,
    last: Option<u64>,
}

#[derive(State, Default)]
struct Guest {
    name: String,
    luck: f32,
    #[sync(owner)]
    secret: u32,
}

#[derive(Message, Clone, Debug)]
#[reply(Option<u32>)]
enum Act {
    Draw,
    Roll,
    Shout(u8),
    Whisper(u8, u8),
    After(u8, u8),
    Every(u8),
    Work(u8),
    Ask(u8),
    Kick(u8),
    Ping(u8),
    Turn(bool),
    Keep(u8),
    Find(bool),
    Found,
    Refuse,
    Sync,
    Close,
}

#[derive(Message, Clone, Debug, PartialEq)]
struct Heard {
    who: PlayerId,
    what: u8,
}

#[derive(Message)]
#[reply(u32)]
struct Gong(u8);

#[room(
    messages(Act),
    events(Heard),
    internal(Gong),
    asks(Gong),
    tick_hz = 20,
    sync_hz = 10,
    capacity = 5,
    empty_ms = 2000,
    round_trip_ms = 1000
)]
impl Room for Fair {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut fair = Self { box_of_prizes: (0..30).collect(), ..Self::default() };
        cx.rng().shuffle(&mut fair.box_of_prizes);
        Ok(fair)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let luck = cx.rng().fraction() as f32;
        let guest =
            Guest { name: player.name().to_owned(), luck, secret: cx.rng().below(100) as u32 };
        self.guests.insert(player.id(), guest);
        if cx.rng().chance(0.1) { Err("out of luck".into()) } else { Ok(()) }
    }

    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        let connected = cx.players().filter(|player| player.is_connected()).count();
        self.log.push(format!("{} is lost, {connected} are here", player.id()));
        cx.emit(&Heard { who: player.id(), what: 1 });
    }

    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        self.log.push(format!("{} is back at {:?}", player.id(), cx.now()));
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.guests.remove(&player.id());
        self.pockets.remove(&player.id());
        cx.emit(&Heard { who: player.id(), what: 0 });
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        self.last = Some(cx.tick());
        for guest in self.guests.values_mut().filter(|guest| guest.luck < 0.5) {
            guest.luck += 0.01;
        }
    }
}

impl Handle<Act> for Fair {
    fn handle(&mut self, act: Act, player: &Player, cx: &mut Context<Self>) -> Result<Option<u32>> {
        let who = player.id();
        match act {
            Act::Draw => {
                let prize = self.box_of_prizes.pop();
                self.pockets.get_or_default(who).extend(prize);
                return Ok(prize);
            }
            Act::Roll => {
                let roll = cx.rng().range(-3..4);
                self.log.push(format!("{who} rolls {roll}"));
            }
            Act::Shout(what) => cx.emit_except(who, &Heard { who, what }),
            Act::Whisper(to, what) => cx.emit_to(PlayerId(to.into()), &Heard { who, what }),
            Act::After(ms, what) => drop(cx.after(Duration::from_millis(ms.into()), Gong(what))),
            Act::Every(ms) => {
                let timer = cx.every(Duration::from_millis(ms.into()), Gong(ms));
                if ms % 3 == 0 {
                    cx.cancel(timer);
                }
            }
            Act::Work(what) => {
                cx.spawn(async move { Gong(what) })?;
                cx.compute(move || Gong(what))?;
            }
            Act::Ask(what) => self.log.push(format!("asks {}", cx.ask("other", &Gong(what)).0)),
            Act::Kick(whom) => cx.kick(PlayerId(whom.into()), "out"),
            Act::Ping(whom) => {
                let round_trip = cx.round_trip(PlayerId(whom.into()));
                self.log.push(format!("{whom} takes {round_trip:?}"));
            }
            Act::Turn(true) => cx.lock(),
            Act::Turn(false) => cx.unlock(),
            Act::Keep(ms) => {
                let wait = Duration::from_millis(u64::from(ms) * 10);
                let seat = cx.reserve(SeatFor::Name("guest".into()), wait)?;
                self.log.push(format!("keeps {seat}"));
            }
            Act::Find(there) => {
                let found = cx.find::<Self>(if there { "there" } else { "gone" })?;
                self.log.push(format!("finds {found:?}"));
            }
            Act::Found => {
                let id = cx.create_room::<Self>(&())?;
                self.log.push(format!("creates {id}"));
            }
            Act::Refuse => return Err("no".into()),
            Act::Sync => cx.sync_now(),
            Act::Close => cx.close("enough"),
        }
        Ok(None)
    }
}

impl On<Gong> for Fair {
    fn on(&mut self, Gong(what): Gong, cx: &mut Context<Self>) -> Result<u32> {
        self.log.push(format!("{what} at {:?}", cx.now()));
        if self.log.len() > 20 {
            self.log.remove(0);
        }
        Ok(what.into())
    }
}

impl Answer<Gong> for Fair {
    fn answer(&mut self, ask: AskId, reply: Result<u32>, _: &mut Context<Self>) {
        self.log.push(format!("answer {}: {reply:?}", ask.0));
    }
}

/// One input.
#[derive(Clone, Debug)]
enum Input {
    Join(Format),
    Leave(u8),
    Act(u8, Act, bool),
    Noise(u8, u8, Vec<u8>),
    Wait(u8),
    Tick,
    Sync,
    Answer(u8, bool),
    Told(u8),
    Measured(u8, u16),
    Lost(u8),
    Returned(u8),
    Done,
    Stall(u8),
    Cut(u8),
    Resume(u8),
}

fn acts() -> impl Strategy<Value = Act> {
    let (a, b) = (0..8_u8, any::<u8>());
    prop_oneof![
        8 => Just(Act::Draw),
        4 => Just(Act::Roll),
        4 => b.prop_map(Act::Shout),
        4 => (a.clone(), b).prop_map(|(to, what)| Act::Whisper(to, what)),
        4 => (b, b).prop_map(|(ms, what)| Act::After(ms, what)),
        2 => b.prop_map(Act::Every),
        2 => b.prop_map(Act::Work),
        2 => b.prop_map(Act::Ask),
        2 => a.clone().prop_map(Act::Kick),
        4 => a.prop_map(Act::Ping),
        1 => any::<bool>().prop_map(Act::Find),
        1 => Just(Act::Turn(true)),
        3 => Just(Act::Turn(false)),
        2 => b.prop_map(Act::Keep),
        1 => Just(Act::Found),
        2 => Just(Act::Refuse),
        2 => Just(Act::Sync),
    ]
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let player = 1..12_u8;
    let input = prop_oneof![
        6 => proptest::sample::select(&Format::ALL).prop_map(Input::Join),
        2 => player.clone().prop_map(Input::Leave),
        20 => (player.clone(), acts(), any::<bool>()).prop_map(|(who, act, ask)| Input::Act(who, act, ask)),
        1 => player.clone().prop_map(|who| Input::Act(who, Act::Close, false)),
        2 => (player.clone(), 0..3_u8, any::<Vec<u8>>()).prop_map(|(who, index, bytes)| Input::Noise(who, index, bytes)),
        8 => any::<u8>().prop_map(Input::Wait),
        4 => Just(Input::Tick),
        4 => Just(Input::Sync),
        2 => (0..20_u8, any::<bool>()).prop_map(|(ask, well)| Input::Answer(ask, well)),
        2 => any::<u8>().prop_map(Input::Told),
        4 => (player.clone(), any::<u16>()).prop_map(|(who, us)| Input::Measured(who, us)),
        1 => player.clone().prop_map(Input::Lost),
        1 => player.clone().prop_map(Input::Returned),
        2 => Just(Input::Done),
        2 => player.clone().prop_map(Input::Stall),
        3 => player.clone().prop_map(Input::Cut),
        2 => player.prop_map(Input::Resume),
    ];
    prop::collection::vec(input, 1..80)
}

/// All that a room with these inputs shows: its outputs, its summary, every player's bytes.
fn play(seed: u64, inputs: &[Input]) -> (Vec<Output>, String, Vec<Vec<u8>>) {
    let mut host = Host::create::<Fair>(seed, &[]).unwrap();
    let (mut summary, mut ticks, mut requests) = (String::new(), 0, 0);
    let mut bodies = Vec::new();
    for input in inputs {
        match input {
            Input::Join(format) => drop(host.join_in("guest", *format)),
            Input::Leave(player) => host.leave(PlayerId((*player).into())),
            Input::Act(player, act, ask) => {
                let mut payload = Vec::new();
                act.encode(&mut payload);
                requests += 1;
                host.message(
                    PlayerId((*player).into()),
                    0,
                    &payload,
                    ask.then_some(RequestNumber(requests)),
                );
            }
            Input::Noise(player, index, payload) => {
                host.message(
                    PlayerId((*player).into()),
                    (*index).into(),
                    payload,
                    Some(RequestNumber(0)),
                );
            }
            Input::Wait(ms) => host.wake_after((*ms).into()),
            Input::Tick => {
                ticks += 1;
                host.tick(ticks);
            }
            Input::Sync => host.sync(),
            Input::Answer(ask, well) => {
                let reply = if *well { Ok(vec![3]) } else { Err("no".into()) };
                host.mail(Mail::Answered { ask: (*ask).into(), reply });
            }
            Input::Told(what) => host.mail(Mail::Told {
                from: room_named("x"),
                message: InternalMessage::of(&Gong(*what)),
            }),
            Input::Measured(player, us) => {
                let round_trip = Duration::from_micros((*us).into());
                let player = PlayerId((*player).into());
                host.room.measured(host.at, player, round_trip, &mut host.out);
            }
            Input::Lost(player) => {
                host.room.lost(host.at, PlayerId((*player).into()), &mut host.out);
            }
            Input::Returned(player) => {
                let player = PlayerId((*player).into());
                host.room.returned(host.at, player, Duration::from_secs(1), &mut host.out);
            }
            Input::Done => host.finish_work(),
            Input::Stall(_) => {}
            Input::Cut(player) => host.lost(PlayerId((*player).into())),
            Input::Resume(player) => host.returned(PlayerId((*player).into())),
        }
        summary += &format!(
            "{:?} {:?} {}\n",
            host.room.summary(),
            host.room.wake_at(),
            host.room.version()
        );
        for player in 1..12 {
            for format in Format::ALL {
                let mut body = Vec::new();
                host.room.patch(PlayerId(player), 1, format, &mut body);
                host.room.snapshot(PlayerId(player), format, &mut body);
                bodies.push(body);
            }
        }
    }
    (host.out.take(), summary, bodies)
}

/// `PLAYFIELD_LAW_CASES` sets the number of cases of each property, for a longer run.
fn cases() -> u32 {
    std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_rooms_with_the_same_seed_and_inputs_are_the_same(seed: u64, inputs in inputs()) {
        prop_assert_eq!(play(seed, &inputs), play(seed, &inputs));
    }

    // The simulation compares the copies after each sync.
    #[test]
    fn every_copy_equals_what_its_player_may_see_after_any_inputs(seed: u64, inputs in inputs()) {
        let mut sim = Sim::<Fair>::new(seed);
        let mut players: Vec<PlayerId> = Vec::new();
        for input in inputs {
            let here = |player: u8| players.get(usize::from(player) - 1).copied();
            match input {
                Input::Join(format) => players.extend(sim.join_in("guest", format)),
                Input::Leave(player) => here(player).into_iter().for_each(|player| sim.leave(player)),
                Input::Act(player, act, true) => {
                    // The reply to a player who is away comes later.
                    let asked = here(player).map(|player| sim.request_begin(player, act));
                    drop(asked.and_then(|asked| sim.reply(&asked)));
                }
                Input::Act(player, act, false) => drop(here(player).map(|player| sim.send(player, act))),
                Input::Noise(player, index, payload) => {
                    drop(here(player).map(|player| sim.raw_request(player, index.into(), &payload)));
                }
                Input::Wait(ms) => sim.advance(Duration::from_millis(ms.into())),
                Input::Tick | Input::Sync => sim.sync(),
                Input::Answer(ask, well) => {
                    sim.answer::<Gong>(AskId(ask.into()), if well { Ok(3) } else { Err("no".into()) });
                }
                Input::Told(what) => sim.tell(&Gong(what)),
                Input::Measured(player, us) => {
                    let round_trip = Duration::from_micros(us.into());
                    here(player).into_iter().for_each(|player| sim.measure(player, round_trip));
                }
                Input::Lost(_) | Input::Returned(_) => {}
                Input::Done => drop(sim.run_background()),
                Input::Cut(player) => {
                    let here = here(player).filter(|player| sim.is_here(*player));
                    here.into_iter().for_each(|player| sim.cut(player));
                }
                Input::Stall(player) => here(player).into_iter().for_each(|player| sim.stall(player)),
                Input::Resume(player) => here(player).into_iter().for_each(|player| sim.resume(player)),
            }
            players.retain(|player| sim.is_here(*player));
            prop_assert_eq!(sim.summary().players as usize, players.len());
            prop_assert!(players.len() <= 5, "never more than are seated");
        }
    }
}
