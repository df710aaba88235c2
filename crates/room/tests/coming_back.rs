//! Players who lose their connection and come back, and users who join twice.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{
    Context, Deferred, Error, Handle, LeaveReason, Message, Player, PlayerId, Result, Room, room,
};
use playfield_state::{List, Map, State};
use playfield_wire::ErrorCode;

#[derive(State, Default)]
struct Bench {
    names: Map<PlayerId, String>,
    log: List<String>,
}

macro_rules! bench {
    ($name:ident, $($option:tt)*) => {
        #[derive(State, Default)]
        struct $name(Bench);

        #[room($($option)*)]
        impl Room for $name {
            fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
                self.0.names.insert(player.id(), player.name().into());
                Ok(())
            }

            fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
                let here = cx.players().filter(|player| player.is_connected()).count();
                self.0.log.push(format!("{} is lost, {here} are here", player.name()));
            }

            fn returned(&mut self, player: &Player, _: &mut Context<Self>) {
                self.0.log.push(format!("{} is back", player.name()));
            }

            fn leave(&mut self, player: &Player, why: LeaveReason, _: &mut Context<Self>) {
                self.0.names.remove(&player.id());
                self.0.log.push(format!("{} leaves: {why:?}", player.name()));
            }
        }
    };
}

bench!(Patient, grace_ms = 5_000);
bench!(Hasty, grace_ms = 0);
bench!(Single, one_per_user = take_over);
bench!(Full, one_per_user = take_over, capacity = 2);
bench!(Strict, one_per_user = refuse);

fn log<R: Room + Default>(sim: &Sim<R>, of: fn(&R) -> &Bench) -> Vec<String> {
    of(sim.room()).log.iter().cloned().collect()
}

#[test]
fn a_room_hears_lost_returned_and_left_apart() {
    let mut sim = Sim::<Patient>::new(1);
    let (ann, ben) = (sim.join("Ann").unwrap(), sim.join("Ben").unwrap());
    sim.cut(ann);
    sim.advance(Duration::from_secs(4));
    assert_eq!(sim.copy(ann).0.log.len(), 0, "nothing arrives");
    sim.resume(ann);
    sim.advance(Duration::from_secs(10));
    assert_eq!(sim.copy(ann).0.log.len(), 2, "one patch brings all of it");
    sim.cut(ben);
    sim.cut(ben);
    sim.advance(Duration::from_secs(5));
    assert!(sim.is_here(ann) && !sim.is_here(ben));
    assert_eq!(sim.why_gone(ben).unwrap().code(), ErrorCode::ConnectionLost);
    assert_eq!(sim.why_gone(ann), None);
    let expected = [
        "Ann is lost, 1 are here",
        "Ann is back",
        "Ben is lost, 1 are here",
        "Ben leaves: ConnectionLost",
    ];
    assert_eq!(log(&sim, |room| &room.0), expected);
}

#[test]
fn without_grace_players_leave_at_once() {
    let mut sim = Sim::<Hasty>::new(1);
    let ann = sim.join("Ann").unwrap();
    sim.cut(ann);
    assert!(!sim.is_here(ann));
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::ConnectionLost);
    let expected = ["Ann is lost, 0 are here", "Ann leaves: ConnectionLost"];
    assert_eq!(log(&sim, |room| &room.0), expected);
}

#[test]
fn a_second_join_of_a_user_takes_over_or_is_refused_as_the_room_says() {
    let mut sim = Sim::<Single>::new(1);
    let first = sim.join_as("Ann", "u1").unwrap();
    let other = sim.join_as("Ben", "u2").unwrap();
    let second = sim.join_as("Anna", "u1").unwrap();
    assert!(!sim.is_here(first) && sim.is_here(other) && sim.is_here(second));
    assert_eq!(sim.why_gone(first).unwrap().code(), ErrorCode::TakenOver);
    assert_eq!(log(&sim, |room| &room.0), ["Ann leaves: TakenOver"]);
    assert!(sim.join("Guest").is_ok() && sim.join("Guest").is_ok(), "guests are no users");

    let mut sim = Sim::<Full>::new(1);
    let first = sim.join_as("Ann", "u1").unwrap();
    sim.join_as("Ben", "u2").unwrap();
    assert_eq!(sim.join_as("Eve", "u3").unwrap_err().code(), ErrorCode::RoomFull);
    let second = sim.join_as("Anna", "u1").expect("it takes the seat of the first");
    assert!(!sim.is_here(first) && sim.is_here(second));
    assert_eq!(sim.summary().players, 2);

    let mut sim = Sim::<Strict>::new(1);
    let first = sim.join_as("Ann", "u1").unwrap();
    let refused = sim.join_as("Anna", "u1").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AlreadyHere);
    sim.leave(first);
    assert!(sim.join_as("Anna", "u1").is_ok());
}

/// A match that has begun: nobody else gets in.
#[derive(State, Default)]
struct Match {
    left: List<String>,
}

#[room(one_per_user = take_over, capacity = 2)]
impl Room for Match {
    fn join(&mut self, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.lock();
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.left.push(player.name().to_owned());
    }
}

#[test]
fn a_user_takes_over_the_own_seat_in_a_locked_room() {
    let mut sim = Sim::<Match>::new(1);
    let first = sim.join_as("Ann", "u1").unwrap();
    let second = sim.join_as("Anna", "u1").expect("the seat is that of the same user");
    assert!(!sim.is_here(first) && sim.is_here(second));
    assert_eq!(sim.why_gone(first).unwrap().code(), ErrorCode::TakenOver);
    assert_eq!((sim.summary().players, sim.summary().locked), (1, true));
    assert_eq!(sim.join_as("Ben", "u2").unwrap_err().code(), ErrorCode::RoomLocked);
    assert_eq!(sim.join("Guest").unwrap_err().code(), ErrorCode::RoomLocked);
    // Who has left has no seat any more.
    sim.leave(second);
    assert_eq!(sim.join_as("Ann", "u1").unwrap_err().code(), ErrorCode::RoomLocked);
}

/// A room that says what it is told.
#[derive(State, Default)]
struct Bell {}

#[derive(Message)]
struct Ring(u32);

#[derive(Message, Debug, PartialEq)]
struct Rang(u32);

#[room(messages(Ring), events(Rang), grace_ms = 5_000)]
impl Room for Bell {}

impl Handle<Ring> for Bell {
    fn handle(&mut self, Ring(times): Ring, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        cx.emit(&Rang(times));
        Ok(())
    }
}

#[test]
fn events_wait_for_who_is_away_arrive_once_and_are_lost_with_the_player() {
    let mut sim = Sim::<Bell>::new(1);
    let (ann, ben) = (sim.join("Ann").unwrap(), sim.join("Ben").unwrap());
    sim.send(ben, Ring(1)).unwrap();
    sim.cut(ann);
    sim.send(ben, Ring(2)).unwrap();
    sim.cut(ann);
    sim.send(ben, Ring(3)).unwrap();
    assert_eq!(sim.events::<Rang>(ann), [Rang(1)], "what came before the cut was heard");
    assert_eq!(sim.events::<Rang>(ben), [Rang(1), Rang(2), Rang(3)]);
    sim.resume(ann);
    sim.send(ben, Ring(4)).unwrap();
    assert_eq!(sim.events::<Rang>(ann), [Rang(2), Rang(3), Rang(4)]);
    assert_eq!(sim.events::<Rang>(ann), []);

    sim.cut(ann);
    sim.send(ben, Ring(5)).unwrap();
    sim.advance(Duration::from_secs(5));
    assert!(!sim.is_here(ann));
    assert_eq!(sim.events::<Rang>(ann), []);
}

/// A court that answers all who plead with its verdict, and may throw a player out with it.
#[derive(State, Default)]
struct Court {
    pleas: List<Deferred<Plead>>,
}

#[derive(Message)]
#[reply(u32)]
struct Plead;

#[derive(Message)]
struct Judge {
    verdict: u32,
    out: Option<PlayerId>,
}

#[room(messages(Plead, Judge), events(Rang), grace_ms = 5_000)]
impl Room for Court {}

impl Handle<Plead> for Court {
    fn handle(&mut self, _: Plead, _: &Player, cx: &mut Context<Self>) -> Result<u32> {
        self.pleas.push(cx.defer());
        Err(Error::deferred())
    }
}

impl Handle<Judge> for Court {
    fn handle(&mut self, judge: Judge, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        for plea in self.pleas.drain(..) {
            cx.answer(plea, Ok(judge.verdict));
        }
        cx.emit(&Rang(judge.verdict));
        if let Some(player) = judge.out {
            cx.kick(player, "out");
        }
        Ok(())
    }
}

#[test]
fn replies_wait_for_who_is_away_arrive_once_and_are_lost_with_the_player() {
    let mut sim = Sim::<Court>::new(1);
    let (ann, ben) = (sim.join("Ann").unwrap(), sim.join("Ben").unwrap());
    let first = sim.request_begin(ann, Plead);
    sim.send(ben, Judge { verdict: 1, out: None }).unwrap();
    let second = sim.request_begin(ann, Plead);
    sim.cut(ann);
    sim.send(ben, Judge { verdict: 2, out: None }).unwrap();
    assert_eq!(sim.reply(&first).unwrap().unwrap(), 1, "it came before the cut");
    assert!(sim.reply(&second).is_none());
    sim.resume(ann);
    assert_eq!(sim.reply(&second).unwrap().unwrap(), 2);
    assert!(sim.reply(&second).is_none());

    let third = sim.request_begin(ann, Plead);
    sim.cut(ann);
    sim.send(ben, Judge { verdict: 3, out: None }).unwrap();
    sim.advance(Duration::from_secs(5));
    assert!(!sim.is_here(ann) && sim.reply(&third).is_none());
}

#[test]
fn who_is_removed_while_away_hears_all_that_came_before_once_the_client_is_back() {
    let mut sim = Sim::<Court>::new(1);
    let (ann, ben) = (sim.join("Ann").unwrap(), sim.join("Ben").unwrap());
    let plea = sim.request_begin(ann, Plead);
    sim.cut(ann);
    sim.send(ben, Judge { verdict: 1, out: Some(ann) }).unwrap();
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::Kicked);
    assert!(sim.reply(&plea).is_none() && sim.events::<Rang>(ann).is_empty());
    sim.resume(ann);
    assert_eq!(sim.reply(&plea).unwrap().unwrap(), 1);
    assert_eq!(sim.events::<Rang>(ann), [Rang(1)]);
    assert!(!sim.is_here(ann));
}
