//! The abilities of `Sim` that a host does not have.

use playfield_room::sim::{OTHER_ROOM_ID, Sim};
use playfield_room::{
    Answer, AskId, Claims, Context, Creator, Error, Handle, LeaveReason, Mail, Message, On, Player,
    PlayerId, Result, Room, room,
};
use playfield_state::{Format, List, Map, State};
use playfield_wire::ErrorCode;

#[derive(State, Default)]
struct Market {
    log: List<String>,
}

#[derive(Message)]
#[reply(u64)]
enum Do {
    Fetch,
    Ask,
    Who,
    Fail,
}

#[derive(Message)]
#[reply(u32)]
struct Price(u32);

#[derive(Message, Debug, PartialEq)]
struct News(u32);

#[room(messages(Do), events(News), internal(Price), asks(Price))]
impl Room for Market {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&News(1));
        assert!(player.name() != "Mallory", "a bug in join");
        if player.name() == "Eve" { Err("not you".into()) } else { Ok(()) }
    }

    fn leave(&mut self, _: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        cx.close("it was fun while it lasted");
    }
}

impl Handle<Do> for Market {
    fn handle(&mut self, what: Do, player: &Player, cx: &mut Context<Self>) -> Result<u64> {
        match what {
            Do::Fetch => cx.spawn(async { std::future::pending::<Price>().await })?,
            Do::Ask => return Ok(cx.ask(OTHER_ROOM_ID, &Price(1)).0),
            Do::Who => self.log.push(player.user().unwrap_or("a guest").to_owned()),
            Do::Fail => panic!("a bug in a handler"),
        }
        Ok(0)
    }
}

impl On<Price> for Market {
    fn on(&mut self, Price(price): Price, _: &mut Context<Self>) -> Result<u32> {
        self.log.push(format!("costs {price}"));
        if price == 0 { Err("nothing is free".into()) } else { Ok(price * 2) }
    }
}

impl Answer<Price> for Market {
    fn answer(&mut self, _: AskId, reply: Result<u32>, _: &mut Context<Self>) {
        self.log.push(format!("{reply:?}"));
    }
}

fn log(sim: &Sim<Market>) -> Vec<String> {
    sim.room().log.iter().cloned().collect()
}

#[test]
fn a_player_may_be_a_user_whom_the_authenticator_identified() {
    let mut sim = Sim::<Market>::new(1);
    let (ann, bob) = (sim.join_as("Ann", "user 7").unwrap(), sim.join("Bob").unwrap());
    sim.request(ann, Do::Who).unwrap();
    sim.request(bob, Do::Who).unwrap();
    assert_eq!(log(&sim), ["user 7", "a guest"]);
}

/// Lets in those whose token or ticket says so.
#[derive(State, Default)]
struct Club {
    seats: Map<PlayerId, String>,
}

#[room()]
impl Room for Club {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let seat = player.seat().or(player.claims().text("role"));
        let seat = seat.ok_or("members only")?;
        self.seats.insert(player.id(), seat.to_owned());
        Ok(())
    }
}

#[test]
fn a_room_seats_by_claims_and_by_the_seat_of_a_ticket() {
    let mut sim = Sim::<Club>::new(1);
    let claims = Claims::from_json(r#"{"role":"referee"}"#).unwrap();
    let ann = sim.join_claiming("Ann", "u1", claims).unwrap();
    let bob = sim.join_at("Bob", None, "red").unwrap();
    assert!(sim.join_claiming("Cy", "u3", Claims::default()).is_err());
    let seats: Vec<_> = sim.room().seats.iter().map(|(id, seat)| (*id, seat.as_str())).collect();
    assert_eq!(seats, [(ann, "referee"), (bob, "red")]);
}

#[test]
fn a_test_ends_a_task_that_needs_the_outside_world() {
    let mut sim = Sim::<Market>::new(1);
    let ann = sim.join("Ann").unwrap();
    sim.request(ann, Do::Fetch).unwrap();
    assert_eq!(sim.run_background(), 0, "it waits for what never comes");
    let [task] = sim.background()[..] else { panic!("one piece of work") };
    sim.finish(task, &Price(3));
    assert_eq!(log(&sim), ["costs 3"]);
    assert!(sim.background().is_empty());
}

#[test]
fn a_test_sends_as_another_room() {
    let mut sim = Sim::<Market>::new(1);
    sim.tell(&Price(4));
    assert_eq!(sim.ask(&Price(5)), Ok(10));
    assert_eq!(sim.ask(&Price(0)), Err(Error::from("nothing is free")));
    assert!(sim.posted().is_empty(), "the answers were taken");
    assert_eq!(log(&sim), ["costs 4", "costs 5", "costs 0"]);
}

#[test]
fn a_test_answers_as_another_room() {
    let mut sim = Sim::<Market>::new(1);
    let ann = sim.join("Ann").unwrap();
    let ask = AskId(sim.request(ann, Do::Ask).unwrap());
    assert!(matches!(&sim.posted()[..], [(to, Mail::Asked { .. })] if to == OTHER_ROOM_ID));
    sim.answer::<Price>(ask, Ok(6));
    sim.answer::<Price>(ask, Ok(7));
    assert_eq!(log(&sim), ["Ok(6)"], "an answer counts once");
}

#[test]
fn a_refused_player_leaves_no_events_behind() {
    let mut sim = Sim::<Market>::new(1);
    let ann = sim.join_in("Ann", Format::Json).unwrap();
    assert_eq!(sim.join("Eve").unwrap_err(), Error::from("not you"));
    assert_eq!(sim.events::<News>(ann), [News(1), News(1)]);
}

#[test]
fn players_whom_a_failure_removes_are_gone_at_once() {
    let mut sim = Sim::<Market>::new(1);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.join("Mallory").unwrap_err().code(), ErrorCode::RoomFailed);
    assert!(!sim.is_here(ann));
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::RoomFailed);

    let mut sim = Sim::<Market>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.leave(ann);
    assert_eq!(sim.why_gone(bob).unwrap().code(), ErrorCode::RoomClosed);
}

#[test]
fn a_send_that_makes_the_room_fail_returns_the_error() {
    let mut sim = Sim::<Market>::new(1);
    let ann = sim.join("Ann").unwrap();
    assert_eq!(sim.send(ann, Do::Fail).unwrap_err().code(), ErrorCode::RoomFailed);
}

/// A room that begins tasks in `create`.
#[derive(State, Default)]
struct Eager {
    log: List<u32>,
}

#[room(internal(Price), empty_ms = 0)]
impl Room for Eager {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        cx.compute(|| Price(1))?;
        cx.spawn(async { std::future::pending::<Price>().await })?;
        cx.tell(OTHER_ROOM_ID, &Price(9));
        Ok(Self::default())
    }
}

impl On<Price> for Eager {
    fn on(&mut self, Price(price): Price, _: &mut Context<Self>) -> Result<u32> {
        self.log.push(price);
        Ok(price)
    }
}

#[test]
fn tasks_begun_in_create_are_there_from_the_start() {
    let mut sim = Sim::<Eager>::new(1);
    assert_eq!(sim.background().len(), 2);
    assert_eq!(sim.posted().len(), 1);
    assert_eq!(sim.run_background(), 1);
    let [task] = sim.background()[..] else { panic!("one piece of work waits") };
    sim.finish(task, &Price(2));
    assert_eq!(sim.room().log, [1, 2].into_iter().collect());
    assert!(!sim.is_closed());
}

#[derive(State, Default)]
struct Den {
    host: String,
}

#[room()]
impl Room for Den {
    fn create((): (), cx: &mut Context<Self>) -> Result<Self> {
        match cx.creator() {
            Creator::Player { user: None, .. } => Err("guests create no rooms".into()),
            creator => Ok(Self { host: creator.name().unwrap_or("nobody").to_owned() }),
        }
    }

    fn join(&mut self, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        assert_eq!(cx.creator().name().unwrap_or("nobody"), self.host);
        Ok(())
    }
}

#[test]
fn a_room_knows_who_had_it_created() {
    let ann = Creator::player("Ann", Some("user 7".into()));
    let mut sim = Sim::<Den>::created_by(ann, 1, &()).unwrap();
    assert_eq!(sim.room().host, "Ann");
    sim.join("Bob").unwrap();
    let guest = Creator::player("Eve", None);
    assert_eq!(
        Sim::<Den>::created_by(guest, 1, &()).err(),
        Some(Error::from("guests create no rooms"))
    );
    assert_eq!(Sim::<Den>::new(1).room().host, "nobody");
}

#[derive(State, Default)]
struct Lot {
    name: String,
}

#[room]
impl Room for Lot {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let name = cx.key().ok_or("a lot needs a key")?.to_owned();
        Ok(Self { name })
    }
}

#[test]
fn a_room_has_the_key_that_it_is_made_with() {
    assert_eq!(Sim::<Lot>::with_key(1, &(), "sword").unwrap().room().name, "sword");
    let Err(error) = Sim::<Lot>::with_options(1, &()) else { panic!("it has a key") };
    assert_eq!(error.text(), "a lot needs a key");
}
