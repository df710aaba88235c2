//! The end of a room: its order, what the room may still do, and how long it takes.

use std::cell::RefCell;
use std::time::Duration;

use playfield_room::sim::{OTHER_ROOM_ID, Sim};
use playfield_room::{
    Answer, AskId, Context, EndReason, Error, Handle, LeaveReason, Mail, Message, On, Player,
    PlayerId, Result, Room, SeatFor, room,
};
use playfield_state::State;
use playfield_wire::ErrorCode;

use crate::support::logged;

thread_local! {
    /// The calls in this test.
    static CALLED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn called(what: impl Into<String>) {
    CALLED.with_borrow_mut(|called| called.push(what.into()));
}

fn take_called() -> Vec<String> {
    CALLED.take()
}

#[derive(State, Default)]
struct Mortal {
    words: String,
    /// The actions of `closing`.
    #[sync(hidden)]
    plan: String,
    /// The value is the room's, not a player's copy.
    #[sync(hidden)]
    is_room: bool,
}

impl Drop for Mortal {
    fn drop(&mut self) {
        if self.is_room {
            called("drop");
        }
    }
}

/// Sets what `closing` does.
#[derive(Message)]
struct Plan(String);

#[derive(Message)]
struct End;

#[derive(Message)]
struct Ring;

/// The message that ends background work: this many more steps follow.
#[derive(Message)]
struct Saved(u32);

#[derive(Message, Debug, PartialEq)]
struct Farewell;

#[room(
    messages(Plan, End),
    events(Farewell),
    internal(Ring, Saved),
    asks(Ring),
    tick_hz = 10,
    empty_ms = 1_000,
    closing_ms = 2_000
)]
impl Room for Mortal {
    fn create((): (), _: &mut Context<Self>) -> Result<Self> {
        let mut room = Self::default();
        room.is_room = true;
        Ok(room)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if player.name() == "last" {
            cx.close("that will do");
        }
        Ok(())
    }

    fn leave(&mut self, player: &Player, why: LeaveReason, cx: &mut Context<Self>) {
        called(format!("leave {} {why:?}, {} stay", player.id(), cx.players().count()));
        cx.emit(&Farewell);
        assert!(self.plan != format!("panic in leave {}", player.id()), "a bug in leave");
        if self.plan == "save in leave" {
            cx.spawn(async { Saved(0) }).unwrap();
        }
    }

    fn closing(&mut self, why: EndReason, cx: &mut Context<Self>) {
        called(format!("closing {why:?}, {} here", cx.players().count()));
        self.words = format!("goodbye to {}", cx.players().count());
        cx.emit(&Farewell);
        match self.plan.as_str() {
            "save" => cx.spawn(async { Saved(0) }).unwrap(),
            "save thrice" => cx.spawn(async { Saved(2) }).unwrap(),
            "compute" => cx.compute(|| Saved(0)).unwrap(),
            "hang" => cx.spawn(std::future::pending::<Saved>()).unwrap(),
            "ask" => drop(cx.ask(OTHER_ROOM_ID, &Ring)),
            "kick" => cx.kick(PlayerId(1), "first"),
            "close" => cx.close("twice"),
            "reserve" => {
                let seat = cx.reserve(SeatFor::Name("Eve".into()), Duration::from_secs(1));
                assert_eq!(seat.unwrap_err().code(), ErrorCode::RoomClosed);
                called("no seats");
            }
            "time" => drop(cx.after(Duration::from_millis(1), Ring)),
            "panic" => panic!("a bug in closing"),
            _ => {}
        }
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        assert!(cx.players().count() > 0 || self.words.is_empty(), "no ticks after the end");
    }
}

impl Handle<Plan> for Mortal {
    fn handle(&mut self, Plan(plan): Plan, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.plan = plan;
        Ok(())
    }
}

impl Handle<End> for Mortal {
    fn handle(&mut self, _: End, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.after(Duration::from_millis(1), Ring);
        cx.close("over");
        Ok(())
    }
}

impl On<Ring> for Mortal {
    fn on(&mut self, _: Ring, _: &mut Context<Self>) -> Result<()> {
        called("ring");
        Ok(())
    }
}

impl On<Saved> for Mortal {
    fn on(&mut self, Saved(more): Saved, cx: &mut Context<Self>) -> Result<()> {
        called(format!("saved {:?}, {more} more", self.words));
        if more > 0 {
            cx.spawn(async move { Saved(more - 1) })?;
        }
        Ok(())
    }
}

impl Answer<Ring> for Mortal {
    fn answer(&mut self, _: AskId, reply: Result<()>, _: &mut Context<Self>) {
        called(format!("answer {}", reply.is_ok()));
    }
}

/// A room that does this in `closing`, and two players.
fn mortal(plan: &str) -> (Sim<Mortal>, PlayerId, PlayerId) {
    let mut sim = Sim::<Mortal>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    sim.request(ann, Plan(plan.into())).unwrap();
    take_called();
    (sim, ann, bob)
}

fn leaves(why: &str) -> [String; 2] {
    [(1, 1), (2, 0)].map(|(player, stay)| format!("leave {player} {why}, {stay} stay"))
}

#[test]
fn a_room_that_ends_says_so_syncs_sees_its_players_off_and_is_dropped() {
    let (mut sim, ann, bob) = mortal("");
    sim.request(ann, End).unwrap();
    assert!(sim.is_closed());
    let [first, second] = leaves("RoomEnded(Closed)");
    assert_eq!(take_called(), ["closing Closed, 2 here", &first, &second, "drop"]);
    assert_eq!(sim.why_gone(bob), Some(&Error::new(ErrorCode::RoomClosed, "over")));
    assert_eq!(sim.copy(bob).words, "goodbye to 2", "a last sync");
    assert_eq!(sim.events::<Farewell>(bob), [Farewell, Farewell], "also as Ann leaves");
    assert_eq!(sim.events::<Farewell>(ann), [Farewell]);
    sim.advance(Duration::from_secs(60));
    assert_eq!(take_called(), [""; 0], "no callback runs any more");
}

#[test]
fn a_room_that_ends_reserves_no_seats() {
    let (mut sim, ann, _) = mortal("reserve");
    sim.request(ann, End).unwrap();
    assert!(take_called().contains(&"no seats".to_owned()));
}

#[test]
fn a_room_knows_why_it_ends_and_so_do_its_players() {
    for (why, code) in [
        (EndReason::ShuttingDown, ErrorCode::ShuttingDown),
        (EndReason::Drained, ErrorCode::RoomClosed),
        (EndReason::Empty, ErrorCode::RoomClosed),
    ] {
        let (mut sim, ann, _) = mortal("");
        sim.close(why);
        let [first, second] = leaves(&format!("RoomEnded({why:?})"));
        let closing = format!("closing {why:?}, 2 here");
        assert_eq!(take_called(), [&closing, &first, &second, "drop"]);
        assert_eq!(sim.why_gone(ann).unwrap().code(), code);
    }
}

#[test]
fn a_room_without_players_ends_in_the_same_way() {
    let (mut sim, ann, bob) = mortal("save");
    sim.leave(ann);
    sim.disconnect(bob);
    assert_eq!(take_called(), ["leave 1 Left, 1 stay", "leave 2 ConnectionLost, 0 stay"]);
    sim.advance(Duration::from_secs(1));
    assert_eq!(take_called(), ["closing Empty, 0 here"]);
    assert!(!sim.is_closed(), "it waits for what it saves");
    sim.run_background();
    assert_eq!(take_called(), ["saved \"goodbye to 0\", 0 more", "drop"]);
}

#[test]
fn a_room_waits_for_work_that_it_began_at_its_end_and_for_what_follows_from_that() {
    for (plan, steps) in [("save", 1), ("compute", 1), ("save thrice", 3), ("save in leave", 2)] {
        let (mut sim, ann, _) = mortal(plan);
        sim.request(ann, End).unwrap();
        assert!(!sim.is_closed() && !sim.is_here(ann), "{plan}");
        take_called();
        while sim.run_background() > 0 {}
        let called = take_called();
        assert!(sim.is_closed(), "{plan}");
        assert_eq!(called.iter().filter(|what| what.starts_with("saved")).count(), steps);
        assert_eq!(called.last().unwrap(), "drop", "{plan}");
    }
}

#[test]
fn a_room_waits_for_the_answer_of_another() {
    let (mut sim, ann, _) = mortal("ask");
    sim.request(ann, End).unwrap();
    let posted = sim.posted();
    let [(_, Mail::Asked { ask, .. })] = &posted[..] else { panic!("{posted:?}") };
    take_called();
    sim.answer::<Ring>(AskId(*ask), Ok(()));
    assert_eq!(take_called(), ["answer true", "drop"]);
}

#[test]
fn work_that_never_ends_is_waited_for_until_closing_ms_and_no_longer() {
    let (mut sim, ann, _) = mortal("hang");
    sim.request(ann, End).unwrap();
    take_called();
    sim.advance(Duration::from_millis(1_999));
    assert!(!sim.is_closed());
    sim.advance(Duration::from_millis(1));
    assert!(sim.is_closed());
    assert_eq!(take_called(), ["drop"]);
}

#[test]
fn a_room_that_always_begins_more_work_ends_at_the_deadline_too() {
    let (mut sim, ann, _) = mortal("save thrice");
    sim.request(ann, End).unwrap();
    sim.advance(Duration::from_millis(1_000));
    sim.run_background();
    let lines = logged(|| sim.advance(Duration::from_millis(1_000)));
    assert!(sim.is_closed(), "the deadline does not move");
    assert!(lines[0].ends_with(", and is dropped; unfinished: Saved"), "{lines:?}");
}

#[test]
fn a_room_that_ends_takes_no_players_messages_or_timers() {
    for plan in ["hang", "time"] {
        let (mut sim, ann, _) = mortal(plan);
        sim.request(ann, End).unwrap();
        if plan == "time" {
            assert!(sim.is_closed(), "a timer is nothing to wait for");
            continue;
        }
        take_called();
        assert_eq!(sim.join("Cy").unwrap_err().code(), ErrorCode::RoomClosed);
        assert_eq!(sim.request(ann, End).unwrap_err().code(), ErrorCode::RoomClosed);
        sim.tell(&Ring);
        assert_eq!(sim.ask(&Ring).unwrap_err().code(), ErrorCode::RoomClosed);
        sim.advance(Duration::from_millis(500));
        assert!(sim.summary().closing && take_called().is_empty(), "no ticks, no timers");
    }
}

#[test]
fn work_begun_before_is_not_waited_for() {
    let (mut sim, ..) = mortal("");
    sim.tell(&Saved(1));
    sim.close(EndReason::Drained);
    assert!(sim.is_closed());
    take_called();
    sim.run_background();
    assert_eq!(take_called(), [""; 0], "its result is discarded");
}

#[test]
fn a_player_who_is_kicked_in_closing_leaves_for_that_reason_alone() {
    let (mut sim, ann, bob) = mortal("kick");
    sim.request(bob, End).unwrap();
    let kicked = "leave 1 Kicked, 1 stay";
    let ended = "leave 2 RoomEnded(Closed), 0 stay";
    assert_eq!(take_called(), ["closing Closed, 2 here", kicked, ended, "drop"]);
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::Kicked);
}

#[test]
fn closing_twice_is_closing_once() {
    let (mut sim, ann, _) = mortal("close");
    sim.request(ann, End).unwrap();
    sim.close(EndReason::Drained);
    assert_eq!(take_called().iter().filter(|what| what.starts_with("closing")).count(), 1);
    assert_eq!(sim.why_gone(ann).unwrap().text(), "over");
}

#[test]
fn a_panic_at_the_end_ends_the_room_at_once_for_all_who_are_left() {
    for (plan, left) in [("panic", 0), ("panic in leave 1", 1), ("panic in leave 2", 2)] {
        let (mut sim, ann, bob) = mortal(plan);
        sim.close(EndReason::Drained);
        assert!(sim.is_closed());
        let called = take_called();
        assert_eq!(called.iter().filter(|what| what.starts_with("leave")).count(), left, "{plan}");
        assert_eq!(called.last().unwrap(), "drop");
        let codes = [ann, bob].map(|player| sim.why_gone(player).unwrap().code());
        let expected = [0, 1].map(|place| match place < left {
            true => ErrorCode::RoomClosed,
            false => ErrorCode::RoomFailed,
        });
        assert_eq!(codes, expected, "{plan}");
    }
}

#[test]
fn a_player_who_joins_a_room_that_closes_in_join_has_joined_and_leaves() {
    let (mut sim, ..) = mortal("");
    let last = sim.join("last").unwrap();
    assert!(sim.is_closed());
    assert_eq!(sim.copy(last).words, "goodbye to 3");
    assert_eq!(take_called().iter().filter(|what| what.starts_with("leave")).count(), 3);
}

#[test]
fn what_was_acknowledged_is_part_of_what_is_saved() {
    let (mut sim, ann, _) = mortal("");
    sim.request(ann, Plan("save".into())).unwrap();
    sim.close(EndReason::ShuttingDown);
    sim.run_background();
    assert!(take_called().contains(&"saved \"goodbye to 2\", 0 more".to_owned()));
}
