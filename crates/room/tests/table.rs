//! The guarantees of a room, tested with simulated players and simulated time.

use crate::support::room_named;

use std::time::Duration;

use playfield_room::sim::{ROOM_ID, Sim};
use playfield_room::{
    Answer, AskId, Context, Error, Handle, InternalMessage, LeaveReason, Mail, Message, On, Player,
    PlayerId, Result, Room, room,
};
use playfield_state::{Data, Format, List, Map, State};
use playfield_wire::ErrorCode;

#[derive(State, Default)]
struct Table {
    players: Map<PlayerId, String>,
    #[sync(owner)]
    hands: Map<PlayerId, List<u32>>,
    #[sync(hidden)]
    deck: List<u32>,
    log: List<String>,
    ticks: u64,
    random: u64,
}

#[derive(Data, Default)]
struct Setup {
    cards: u32,
    refuse: bool,
}

#[derive(Message)]
#[reply(u32)]
struct Draw;

#[derive(Message)]
struct Say {
    text: String,
    to: Option<PlayerId>,
}

#[derive(Message, Clone, PartialEq, Debug)]
struct Said {
    text: String,
}

/// The actions that test what a context can do.
#[derive(Message)]
enum Do {
    Kick(PlayerId),
    Close,
    Lock,
    Unlock,
    Panic,
    PanicInBackground,
    After(u32),
    Every(u32),
    Spawn(u32),
    Compute(u32),
    Ask(String),
    Roll,
    Sync,
}

#[derive(Message)]
#[reply(u32)]
struct Rang {
    number: u32,
}

#[room(
    messages(Draw, Say, Do),
    events(Said),
    internal(Rang),
    asks(Rang),
    tick_hz = 20,
    sync_hz = 10,
    capacity = 3,
    empty_ms = 1000
)]
impl Room for Table {
    type Options = Setup;

    fn create(options: Setup, _: &mut Context<Self>) -> Result<Self> {
        if options.refuse {
            return Err("not today".into());
        }
        Ok(Self { deck: (0..options.cards).collect(), ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if player.name() == "Mallory" {
            return Err("not you".into());
        }
        self.players.insert(player.id(), player.name().to_owned());
        cx.emit(&Said { text: format!("welcome {}", player.name()) });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.hands.remove(&player.id());
        cx.emit(&Said { text: format!("farewell {}", player.name()) });
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        self.ticks = cx.tick();
    }
}

impl Handle<Draw> for Table {
    fn handle(&mut self, _: Draw, player: &Player, _: &mut Context<Self>) -> Result<u32> {
        let card = self.deck.pop().ok_or("the deck is empty")?;
        self.hands.get_or_default(player.id()).push(card);
        Ok(card)
    }
}

impl Handle<Say> for Table {
    fn handle(
        &mut self,
        Say { text, to }: Say,
        player: &Player,
        cx: &mut Context<Self>,
    ) -> Result<()> {
        match to {
            Some(to) => cx.emit_to(to, &Said { text }),
            None => cx.emit_except(player.id(), &Said { text }),
        }
        Ok(())
    }
}

impl Handle<Do> for Table {
    fn handle(&mut self, what: Do, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        match what {
            Do::Kick(player) => cx.kick(player, "out"),
            Do::Close => cx.close("enough"),
            Do::Lock => cx.lock(),
            Do::Unlock => cx.unlock(),
            Do::Panic => panic!("a bug in a room"),
            Do::PanicInBackground => cx.spawn(async { panic!("a bug aside") as Rang })?,
            Do::After(number) => drop(cx.after(Duration::from_millis(100), Rang { number })),
            Do::Every(number) => drop(cx.every(Duration::from_millis(100), Rang { number })),
            Do::Spawn(number) => cx.spawn(async move { Rang { number } })?,
            Do::Compute(number) => cx.compute(move || Rang { number })?,
            Do::Ask(room) => drop(cx.ask(&room, &Rang { number: 7 })),
            Do::Roll => self.random = cx.rng().below(1_000_000),
            Do::Sync => cx.sync_now(),
        }
        Ok(())
    }
}

impl On<Rang> for Table {
    fn on(&mut self, Rang { number }: Rang, cx: &mut Context<Self>) -> Result<u32> {
        self.log.push(format!("{number} at {}", cx.now().as_millis()));
        Ok(number + 1)
    }
}

impl Answer<Rang> for Table {
    fn answer(&mut self, ask: AskId, reply: Result<u32>, _: &mut Context<Self>) {
        self.log.push(match reply {
            Ok(number) => format!("answer {} is {number}", ask.0),
            Err(error) => format!("answer {} is {}", ask.0, error.code()),
        });
    }
}

fn table() -> Sim<Table> {
    Sim::with_options(1, &Setup { cards: 10, refuse: false }).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn log(sim: &Sim<Table>) -> Vec<String> {
    sim.room().log.iter().cloned().collect()
}

#[test]
fn creation_may_be_refused() {
    let refused = Sim::<Table>::with_options(1, &Setup { cards: 0, refuse: true }).err().unwrap();
    assert_eq!((refused.code(), refused.text()), (ErrorCode::Refused, "not today"));
}

#[test]
fn a_reply_comes_and_the_copy_follows() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.request(ann, Draw), Ok(9));
    sim.advance(ms(100));
    assert_eq!(sim.copy(ann).hands.get(&ann).unwrap().iter().copied().collect::<Vec<_>>(), [9]);
    assert!(sim.copy(ann).deck.is_empty());
}

#[test]
fn msgpack_and_json_do_the_same() {
    for format in [Format::Msgpack, Format::Json] {
        let mut sim = table();
        let ann = sim.join_in("Ann", format).unwrap();
        assert_eq!(sim.request(ann, Draw), Ok(9));
        assert_eq!(sim.events::<Said>(ann).len(), 1);
    }
}

#[test]
fn a_refusal_answers_its_player_and_changes_nothing() {
    let mut sim = Sim::<Table>::new(1);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.request(ann, Draw), Err(Error::from("the deck is empty")));
    assert!(!sim.is_closed());
}

#[test]
fn a_refused_join_takes_no_seat() {
    let mut sim = table();
    assert_eq!(sim.join("Mallory").unwrap_err(), Error::from("not you"));
    assert_eq!(sim.summary().players, 0);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(ann, PlayerId(2), "what the room kept for the refused can't fall to another");
}

#[test]
fn a_full_room_refuses_joins() {
    let mut sim = table();
    for name in ["a", "b", "c"] {
        sim.join(name).unwrap();
    }
    assert_eq!(sim.join("d").unwrap_err().code(), ErrorCode::RoomFull);
    sim.leave(PlayerId(1));
    assert_eq!(sim.join("d").unwrap(), PlayerId(4));
}

#[test]
fn a_locked_room_refuses_joins() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Lock).unwrap();
    assert_eq!(sim.join("Bob").unwrap_err().code(), ErrorCode::RoomLocked);
    sim.request(ann, Do::Unlock).unwrap();
    sim.join("Bob").unwrap();
}

#[test]
fn events_reach_the_players_they_are_sent_to() {
    let mut sim = table();
    let (ann, bob, cid) =
        (sim.join("Ann").unwrap(), sim.join("Bob").unwrap(), sim.join("Cid").unwrap());
    for player in [ann, bob, cid] {
        sim.events::<Said>(player);
    }
    sim.send(ann, Say { text: "all but me".into(), to: None }).unwrap();
    sim.send(ann, Say { text: "to Cid".into(), to: Some(cid) }).unwrap();
    let texts = |events: Vec<Said>| events.into_iter().map(|said| said.text).collect::<Vec<_>>();
    assert!(sim.events::<Said>(ann).is_empty());
    assert_eq!(texts(sim.events::<Said>(bob)), ["all but me"]);
    assert_eq!(texts(sim.events::<Said>(cid)), ["all but me", "to Cid"]);
}

#[test]
fn a_kicked_player_receives_the_reason_and_the_others_stay() {
    let mut sim = table();
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.request(ann, Do::Kick(bob)).unwrap();
    assert_eq!(sim.why_gone(bob), Some(&Error::new(ErrorCode::Kicked, "out")));
    assert_eq!(sim.summary().players, 1);
    assert!(!sim.room().players.contains_key(&bob));
    assert_eq!(sim.request(ann, Draw), Ok(9));
}

#[test]
fn players_of_a_room_that_closes_receive_the_reason() {
    let mut sim = table();
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.request(ann, Do::Close).unwrap();
    assert!(sim.is_closed());
    for player in [ann, bob] {
        assert_eq!(sim.why_gone(player).unwrap().code(), ErrorCode::RoomClosed);
    }
}

#[test]
fn a_panic_closes_the_room_and_unwinds_no_further() {
    let mut sim = table();
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    assert_eq!(sim.request(ann, Do::Panic).unwrap_err().code(), ErrorCode::RoomFailed);
    assert!(sim.is_closed());
    assert_eq!(sim.why_gone(bob).unwrap().code(), ErrorCode::RoomFailed);
    assert_eq!(sim.request(bob, Draw).unwrap_err().code(), ErrorCode::RoomFailed);
    assert_eq!(sim.join("Cid").unwrap_err().code(), ErrorCode::RoomNotFound);
    sim.advance(ms(1_000));
}

#[test]
fn a_panic_in_background_work_closes_the_room() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::PanicInBackground).unwrap();
    assert_eq!(sim.run_background(), 1);
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::RoomFailed);
}

#[test]
fn ticks_and_syncs_have_rates_of_their_own() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.advance(ms(150));
    assert_eq!(sim.room().ticks, 3);
    assert_eq!(sim.copy(ann).ticks, 2);
    sim.advance(ms(50));
    assert_eq!(sim.copy(ann).ticks, 4);
}

#[test]
fn timers_fire_once_or_repeatedly() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::After(1)).unwrap();
    sim.request(ann, Do::Every(2)).unwrap();
    sim.advance(ms(250));
    assert_eq!(log(&sim), ["1 at 100", "2 at 100", "2 at 200"]);
}

#[test]
fn background_work_ends_as_an_internal_message() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Spawn(3)).unwrap();
    sim.request(ann, Do::Compute(4)).unwrap();
    assert!(log(&sim).is_empty());
    assert_eq!(sim.run_background(), 2);
    assert_eq!(log(&sim).len(), 2);
    // The host delivers it twice: the room ignores it.
    sim.mail(Mail::Done {
        task: 1,
        message: InternalMessage { name: "Rang".into(), payload: vec![9] },
    });
    assert_eq!(log(&sim).len(), 2);
}

#[test]
fn rooms_ask_and_answer_each_other() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Ask("other".into())).unwrap();
    let (to, mail) = sim.posted().pop().unwrap();
    assert_eq!(to, "other");
    let Mail::Asked { from, ask, message } = mail else { panic!("{mail:?}") };
    assert_eq!(from.as_ref().unwrap().room_id, ROOM_ID);

    let mut other = table();
    other.mail(Mail::Asked { from, ask, message });
    let (back, answer) = other.posted().pop().unwrap();
    assert_eq!(back, ROOM_ID);
    sim.mail(answer.clone());
    assert_eq!(log(&sim), ["answer 1 is 8"]);
    sim.mail(answer);
    assert_eq!(log(&sim).len(), 1, "an answer counts once");
}

#[test]
fn an_internal_message_that_is_not_declared_is_refused() {
    let mut sim = table();
    let message = InternalMessage { name: "Nonsense".into(), payload: vec![] };
    sim.mail(Mail::Told { from: room_named("x"), message: message.clone() });
    sim.mail(Mail::Asked { from: room_named("x"), ask: 1, message });
    let message = InternalMessage { name: "Rang".into(), payload: vec![0xFF] };
    sim.mail(Mail::Asked { from: room_named("x"), ask: 2, message });
    let codes: Vec<ErrorCode> = sim
        .posted()
        .into_iter()
        .map(|(_, mail)| match mail {
            Mail::Answered { reply: Err(error), .. } => error.code(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, [ErrorCode::UnknownMessage, ErrorCode::BadPayload]);
    assert!(!sim.is_closed());
}

#[test]
fn an_empty_room_closes_after_a_while() {
    let mut sim = table();
    sim.advance(ms(500));
    let ann = sim.join("Ann").unwrap();
    sim.advance(ms(5_000));
    assert!(!sim.is_closed());
    sim.leave(ann);
    sim.advance(ms(999));
    assert!(!sim.is_closed());
    sim.advance(ms(1));
    assert!(sim.is_closed());
}

#[test]
fn an_empty_room_that_nobody_ever_joined_closes_too() {
    let mut sim = table();
    assert!(sim.join("Mallory").is_err());
    sim.advance(ms(1_000));
    assert!(sim.is_closed());
}

#[test]
fn invalid_payloads_and_unknown_messages_are_refused() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.raw_request(ann, 99, &[]).unwrap_err().code(), ErrorCode::UnknownMessage);
    assert_eq!(sim.raw_request(ann, 1, &[0xFF]).unwrap_err().code(), ErrorCode::BadPayload);
    assert_eq!(sim.raw_request(ann, 0, &[0, 0]).unwrap_err().code(), ErrorCode::BadPayload);
    assert_eq!(sim.request(ann, Draw), Ok(9));
}

#[test]
fn a_sync_on_demand_does_not_wait_for_the_next_regular_one() {
    let mut sim = table();
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Draw).unwrap();
    sim.request(ann, Do::Sync).unwrap();
    sim.advance(ms(50));
    assert_eq!(sim.copy(ann).hands.len(), 1);
}

#[test]
fn a_slow_player_receives_one_patch_to_now() {
    let mut sim = table();
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.stall(bob);
    for _ in 0..3 {
        sim.request(ann, Draw).unwrap();
        sim.advance(ms(200));
    }
    assert_eq!(sim.copy(bob).ticks, 0);
    sim.resume(bob);
    sim.advance(ms(100));
    assert_eq!(sim.copy(bob).ticks, sim.copy(ann).ticks);
}

#[test]
fn the_same_seed_and_inputs_give_the_same_state() {
    let play = |seed| {
        let mut sim =
            Sim::<Table>::with_options(seed, &Setup { cards: 10, refuse: false }).unwrap();
        let ann = sim.join("Ann").unwrap();
        sim.request(ann, Do::Roll).unwrap();
        sim.room().random
    };
    assert_eq!(play(5), play(5));
    assert_ne!(play(5), play(6));
}
