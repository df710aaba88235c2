//! Rooms and players that wait for background work: who gets in, when, and who does not.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{
    Context, EndReason, Error, HELD_MAIL_MAX, Handle, InternalMessage, LeaveReason, Mail, Message,
    On, Player, PlayerId, Reservation, Result, Room, SeatFor, room,
};
use playfield_state::{Data, List, Map, State};
use playfield_wire::ErrorCode;

use crate::support::room_named;

/// The pieces of work for which the room and each player are held.
#[derive(Data, Clone, Default)]
struct Holds {
    room: u32,
    player: u32,
}

#[derive(State, Default)]
struct Club {
    members: Map<PlayerId, String>,
    log: List<String>,
    #[sync(hidden)]
    holds: u32,
}

/// The message that ends a piece of work.
#[derive(Message, Clone)]
enum Found {
    Yes,
    No,
    /// Yes, and there is more to wait for.
    More,
    Kick,
    Close,
    Panic,
}

#[derive(Message)]
#[reply(u32)]
struct Count;

#[derive(Message)]
struct Kick(PlayerId);

#[derive(Message, Debug, PartialEq)]
struct Welcome(String);

#[room(
    messages(Kick),
    events(Welcome),
    internal(Found, Count),
    tick_hz = 10,
    capacity = 5,
    empty_ms = 1_000,
    join_wait_ms = 2_000,
    joins_waiting_max = 3
)]
impl Room for Club {
    type Options = Holds;

    fn create(holds: Holds, cx: &mut Context<Self>) -> Result<Self> {
        for _ in 0..holds.room {
            cx.hold(std::future::pending::<Found>())?;
        }
        cx.after(Duration::from_millis(100), Count);
        Ok(Self { holds: holds.player, ..Self::default() })
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        assert_eq!(cx.joining().map(Player::id), Some(player.id()));
        self.log.push(format!("join {}", player.name()));
        match player.name() {
            "refused" => {
                cx.hold(std::future::pending::<Found>())?;
                return Err("not you".into());
            }
            "kicked" => cx.kick(player.id(), "out"),
            "kicks 2" => cx.kick(PlayerId(2), "out"),
            "last" => cx.close("that will do"),
            "broken" => cx.hold::<Found>(async { panic!("a bug in the work") })?,
            _ => {}
        }
        for _ in 0..self.holds {
            cx.hold(std::future::pending::<Found>())?;
        }
        if self.holds == 0 {
            self.members.insert(player.id(), player.name().to_owned());
        }
        Ok(())
    }

    fn leave(&mut self, player: &Player, why: LeaveReason, _: &mut Context<Self>) {
        self.members.remove(&player.id());
        self.log.push(format!("leave {} {why:?}", player.id()));
    }

    fn closing(&mut self, why: EndReason, _: &mut Context<Self>) {
        self.log.push(format!("closing {why:?}"));
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.log.push("tick".into());
    }
}

impl Handle<Kick> for Club {
    fn handle(&mut self, Kick(whom): Kick, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        assert!(cx.hold(async { Found::Yes }).is_err(), "nobody is to be held here");
        cx.kick(whom, "out");
        Ok(())
    }
}

impl On<Found> for Club {
    fn on(&mut self, found: Found, cx: &mut Context<Self>) -> Result<()> {
        let joining = cx.joining();
        let name = joining.map_or("the room", Player::name);
        self.log.push(format!("found for {name}, {} here", cx.players().count()));
        match found {
            Found::Yes => {}
            Found::No => return Err(Error::with_code(1_042, "members only")),
            Found::More => cx.hold(std::future::pending::<Found>())?,
            Found::Kick => cx.kick(joining.ok_or("nobody")?.id(), "out"),
            Found::Close => cx.close("full stop"),
            Found::Panic => panic!("a bug in a handler"),
        }
        if let Some(player) = joining {
            self.members.insert(player.id(), player.name().to_owned());
            cx.emit_to(player.id(), &Welcome(player.name().to_owned()));
        }
        Ok(())
    }
}

impl On<Count> for Club {
    fn on(&mut self, _: Count, cx: &mut Context<Self>) -> Result<u32> {
        self.log.push("count".into());
        Ok(cx.players().count() as u32)
    }
}

fn club(room: u32, player: u32) -> Sim<Club> {
    Sim::with_options(1, &Holds { room, player }).unwrap()
}

/// The oldest piece of work ends so.
fn finish(sim: &mut Sim<Club>, found: &Found) {
    let task = sim.background()[0];
    sim.finish(task, found);
}

fn log(sim: &Sim<Club>) -> Vec<String> {
    sim.room().log.iter().filter(|line| *line != "tick").cloned().collect()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_player_who_waits_holds_a_seat_and_is_not_in_the_room() {
    let mut sim = club(0, 1);
    let ann = sim.join_begin("Ann").unwrap();
    assert!(sim.is_waiting(ann) && !sim.is_here(ann));
    assert_eq!((sim.summary().players, sim.ask(&Count)), (0, Ok(0)));
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_here(ann) && !sim.is_waiting(ann));
    assert_eq!((sim.summary().players, sim.ask(&Count)), (1, Ok(1)));
    assert_eq!(sim.copy(ann).members.len(), 1, "they have a copy");
    assert_eq!(sim.events::<Welcome>(ann), [Welcome("Ann".into())]);
    assert_eq!(log(&sim)[..2], ["join Ann", "count"]);
}

#[test]
fn an_error_refuses_the_player_it_is_about_and_no_other() {
    let mut sim = club(0, 1);
    let (ann, bob) = (sim.join_begin("Ann").unwrap(), sim.join_begin("Bob").unwrap());
    finish(&mut sim, &Found::No);
    assert_eq!(sim.why_gone(ann), Some(&Error::with_code(1_042, "members only")));
    assert!(sim.is_waiting(bob));
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_here(bob));
    let expected = ["join Ann", "join Bob", "found for Ann, 0 here", "found for Bob, 0 here"];
    assert_eq!(log(&sim), expected, "no leave for one who never joined");
}

#[test]
fn a_player_waits_for_all_work_and_for_more_that_it_leads_to() {
    let mut sim = club(0, 2);
    let ann = sim.join_begin("Ann").unwrap();
    for found in [Found::More, Found::Yes, Found::Yes] {
        assert!(sim.is_waiting(ann));
        finish(&mut sim, &found);
    }
    assert!(sim.is_here(ann) && sim.background().is_empty());
}

#[test]
fn who_waits_may_leave_and_the_result_is_dropped() {
    let mut sim = club(0, 1);
    let ann = sim.join_begin("Ann").unwrap();
    sim.disconnect(ann);
    finish(&mut sim, &Found::Yes);
    assert!(!sim.is_here(ann) && !sim.is_waiting(ann));
    assert_eq!(log(&sim), ["join Ann"]);
}

#[test]
fn who_waits_for_too_long_is_refused() {
    let mut sim = club(0, 1);
    let ann = sim.join_begin("Ann").unwrap();
    sim.advance(ms(500));
    let bob = sim.join_begin("Bob").unwrap();
    sim.advance(ms(1_499));
    assert!(sim.is_waiting(ann));
    sim.advance(ms(1));
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::Timeout);
    assert!(sim.why_gone(ann).unwrap().text().starts_with("join_wait_ms = 2000: "));
    assert!(sim.is_waiting(bob));
    finish(&mut sim, &Found::Yes);
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_here(bob) && !sim.is_here(ann), "late results are dropped");
}

#[test]
fn those_who_wait_count_against_the_capacity_and_are_bounded() {
    let mut sim = club(0, 1);
    let waiting: Vec<_> = (0..3).map(|_| sim.join_begin("guest").unwrap()).collect();
    let error = sim.join_begin("one more").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Busy);
    assert!(error.text().starts_with("joins_waiting_max: 3 "), "{error}");
    for _ in &waiting {
        finish(&mut sim, &Found::Yes);
    }
    finish(&mut sim, &Found::Yes);
    assert_eq!(sim.summary().players, 3);
    let (fourth, _) = (sim.join_begin("4").unwrap(), sim.join_begin("5").unwrap());
    assert_eq!(sim.join_begin("6").unwrap_err().code(), ErrorCode::RoomFull);
    sim.disconnect(fourth);
    assert!(sim.join_begin("6").is_ok());
}

#[test]
fn a_room_with_someone_who_waits_is_not_empty() {
    let mut sim = club(0, 1);
    sim.advance(ms(900));
    let ann = sim.join_begin("Ann").unwrap();
    sim.advance(ms(1_500));
    assert!(sim.is_waiting(ann) && !sim.is_closed());
    sim.disconnect(ann);
    sim.advance(ms(1));
    assert!(sim.is_closed());
}

#[test]
fn what_the_handler_asks_for_about_the_player_is_done() {
    for (found, code) in [
        (Found::Kick, ErrorCode::Kicked),
        (Found::Close, ErrorCode::RoomClosed),
        (Found::Panic, ErrorCode::RoomFailed),
    ] {
        let mut sim = club(0, 1);
        let ann = sim.join_begin("Ann").unwrap();
        let bob = sim.join_begin("Bob").unwrap();
        finish(&mut sim, &found);
        assert_eq!(sim.why_gone(ann).unwrap().code(), code);
        let bob = sim.why_gone(bob).map(Error::code);
        assert_eq!(bob, Some(code).filter(|code| *code != ErrorCode::Kicked));
    }
}

#[test]
fn a_player_who_waits_can_be_kicked() {
    let mut sim = club(0, 0);
    let ann = sim.join("Ann").unwrap();
    sim.room_mut().holds = 1;
    let bob = sim.join_begin("Bob").unwrap();
    sim.request(ann, Kick(bob)).unwrap();
    assert_eq!(sim.why_gone(bob).unwrap().code(), ErrorCode::Kicked);
    let cy = sim.join_begin("kicked").unwrap_err();
    assert_eq!(cy.code(), ErrorCode::Kicked, "also at once");
    assert_eq!(sim.join_begin("refused").unwrap_err().text(), "not you");
}

#[test]
fn the_end_of_the_room_refuses_those_who_wait() {
    for why in [EndReason::Drained, EndReason::ShuttingDown] {
        let mut sim = club(0, 1);
        let ann = sim.join_begin("Ann").unwrap();
        sim.close(why);
        let code = match why {
            EndReason::ShuttingDown => ErrorCode::ShuttingDown,
            _ => ErrorCode::RoomClosed,
        };
        assert_eq!(sim.why_gone(ann).unwrap().code(), code);
        assert!(sim.is_closed());
    }
}

#[test]
fn nobody_enters_a_room_that_is_not_open_yet() {
    let mut sim = club(2, 0);
    let (ann, bob) = (sim.join_begin("Ann").unwrap(), sim.join_begin("Bob").unwrap());
    sim.advance(ms(500));
    sim.tell(&Count);
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_waiting(ann) && sim.is_waiting(bob));
    assert_eq!(log(&sim), ["found for the room, 0 here"], "no ticks, timers, or messages");
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_here(ann) && sim.is_here(bob));
    assert_eq!(sim.copy(bob).members.len(), 2);
    sim.advance(ms(10));
    assert_eq!(log(&sim)[2..], ["join Ann", "join Bob", "count", "count"]);
}

#[test]
fn a_panic_in_the_work_that_a_player_is_held_for_refuses_that_player_alone() {
    let mut sim = club(0, 1);
    let ann = sim.join_begin("Ann").unwrap();
    finish(&mut sim, &Found::Yes);
    let (broken, bob) = (sim.join_begin("broken").unwrap(), sim.join_begin("Bob").unwrap());
    sim.run_background();
    assert_eq!(sim.why_gone(broken).unwrap().code(), ErrorCode::Internal);
    assert!(sim.is_here(ann) && sim.is_waiting(bob) && !sim.is_closed());
    // The other work for the one who was refused ends without effect.
    for _ in sim.background() {
        finish(&mut sim, &Found::Yes);
    }
    assert!(sim.is_here(bob));

    // A player who is gone is nobody to refuse.
    let broken = sim.join_begin("broken").unwrap();
    sim.leave(broken);
    sim.run_background();
    assert!(sim.is_here(ann) && !sim.is_closed());
}

#[test]
fn a_room_that_is_not_ready_in_time_or_fails_refuses_all_and_never_was() {
    for found in [Some(Found::No), Some(Found::Panic), None] {
        let mut sim = club(1, 0);
        let ann = sim.join_begin("Ann").unwrap();
        let code = match &found {
            Some(Found::No) => ErrorCode::Room(1_042),
            Some(_) => ErrorCode::RoomFailed,
            None => ErrorCode::Timeout,
        };
        match found {
            Some(found) => finish(&mut sim, &found),
            None => sim.advance(ms(2_000)),
        }
        assert_eq!(sim.why_gone(ann).unwrap().code(), code);
        assert!(sim.is_closed());
        assert_eq!(sim.join_begin("Bob").unwrap_err().code(), ErrorCode::RoomNotFound);
    }
}

#[test]
fn a_room_that_is_closed_before_it_opens_refuses_all_without_callbacks() {
    let mut sim = club(1, 0);
    let ann = sim.join_begin("Ann").unwrap();
    sim.close(EndReason::Drained);
    assert!(sim.is_closed());
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::RoomClosed);
}

#[test]
fn joins_that_waited_for_the_room_may_be_held_refused_or_kicked_in_turn() {
    let mut sim = club(1, 0);
    let names = ["refused", "kicked", "kicks 2"];
    let [refused, kicked, kicks] = names.map(|name| sim.join_begin(name).unwrap());
    assert_eq!(sim.join_begin("fourth").unwrap_err().code(), ErrorCode::Busy);
    sim.room_mut().holds = 1;
    finish(&mut sim, &Found::Yes);
    assert_eq!(sim.why_gone(refused).unwrap().text(), "not you");
    assert_eq!(sim.why_gone(kicked).unwrap().code(), ErrorCode::Kicked);
    assert!(sim.is_waiting(kicks));
    // The first is the refused player's.
    finish(&mut sim, &Found::Yes);
    while sim.is_waiting(kicks) {
        finish(&mut sim, &Found::Yes);
    }
    assert!(sim.is_here(kicks));
}

#[test]
fn a_join_that_closes_the_room_as_it_opens_refuses_those_behind() {
    let mut sim = club(1, 0);
    let names = ["first", "last", "late"];
    let [first, last, late] = names.map(|name| sim.join_begin(name).unwrap());
    finish(&mut sim, &Found::Yes);
    assert!(sim.is_closed());
    let codes = [first, last, late].map(|player| sim.why_gone(player).unwrap().code());
    assert_eq!(codes, [ErrorCode::RoomClosed; 3]);
}

#[test]
fn messages_that_wait_for_a_room_to_open_are_bounded_and_none_goes_unanswered() {
    let mut sim = club(1, 0);
    let asked =
        |ask| Mail::Asked { from: room_named("other"), ask, message: InternalMessage::of(&Count) };
    for ask in 0..HELD_MAIL_MAX as u64 {
        sim.mail(asked(ask));
    }
    assert!(sim.posted().is_empty());
    sim.mail(asked(9_999));
    let posted = sim.posted();
    let [(_, Mail::Answered { ask: 9_999, reply: Err(error) })] = &posted[..] else {
        panic!("{posted:?}")
    };
    assert_eq!(error.code(), ErrorCode::Busy);
    sim.close(EndReason::Drained);
    let answered = sim.posted();
    assert_eq!(answered.len(), HELD_MAIL_MAX);
    assert!(answered.iter().all(|(_, mail)| matches!(mail, Mail::Answered { reply: Err(_), .. })));
}

#[test]
fn waiting_is_deterministic() {
    let run = || {
        let mut sim = club(1, 1);
        let mut seen = Vec::new();
        for step in 0..40_u32 {
            match step % 5 {
                0 => seen.push(format!("{:?}", sim.join_begin(&format!("p{step}")))),
                1 if step > 10 => sim.disconnect(PlayerId(u64::from(step / 5))),
                2 if !sim.background().is_empty() => finish(&mut sim, &Found::Yes),
                3 if !sim.background().is_empty() && step > 20 => finish(&mut sim, &Found::No),
                _ => sim.advance(ms(150)),
            }
            if !sim.is_closed() {
                seen.push(format!("{:?}", log(&sim)));
            }
        }
        seen
    };
    assert_eq!(run(), run());
}

#[derive(State, Default)]
struct Door {
    users: List<String>,
}

#[derive(Message)]
struct Opens(String);

#[derive(Message)]
#[reply(Reservation)]
struct Keep(String);

#[room(internal(Opens, Keep))]
impl Room for Door {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let user = player.user().unwrap_or("a guest").to_owned();
        cx.hold(async { Opens(user) })
    }
}

impl On<Opens> for Door {
    fn on(&mut self, Opens(user): Opens, _: &mut Context<Self>) -> Result<()> {
        self.users.push(user);
        Ok(())
    }
}

impl On<Keep> for Door {
    fn on(&mut self, Keep(user): Keep, cx: &mut Context<Self>) -> Result<Reservation> {
        cx.reserve(SeatFor::User(user), ms(1_000))
    }
}

#[test]
fn users_and_those_with_a_reservation_wait_as_guests_do() {
    let mut sim = Sim::<Door>::new(1);
    let seat = sim.ask(&Keep("bob".into())).unwrap();
    let wrong = sim.join_begin_reserved("Cleo", Some("cleo"), &seat).unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::BadReservation);

    let ann = sim.join_begin_as("Ann", "ann").unwrap();
    let bob = sim.join_begin_reserved("Bob", Some("bob"), &seat).unwrap();
    assert!(sim.is_waiting(ann) && sim.is_waiting(bob));
    sim.run_background();
    assert!(sim.is_here(ann) && sim.is_here(bob));
    assert_eq!(sim.room().users.iter().map(String::as_str).collect::<Vec<_>>(), ["ann", "bob"]);
}
