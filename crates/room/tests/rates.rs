//! Rates of messages: what comes faster is refused, and who sends far too much is removed.

use std::time::Duration;

use playfield_room::sim::Sim;
use playfield_room::{
    Context, Handle, LeaveReason, Link, Message, Player, PlayerId, Result, Room, room, schema,
};
use playfield_state::{Map, MessageRate, State};
use playfield_wire::schema::fingerprint;
use playfield_wire::{ErrorCode, RequestNumber};

use crate::support::{Host, Output};

/// Counts what each player's messages did.
#[derive(State, Default)]
struct Counter {
    said: u32,
    drawn: u32,
    left: Map<PlayerId, bool>,
}

/// The most refusals at once at rates this low.
const REFUSALS: u64 = 1000;

#[derive(Message)]
#[message(rate = 10)]
struct Say(u32);

#[derive(Message)]
#[reply(u32)]
#[message(rate = 0.5, burst = 2)]
struct Draw;

#[derive(Message)]
struct Free;

#[room(messages(Free, Say, Draw))]
impl Room for Counter {
    fn leave(&mut self, player: &Player, why: LeaveReason, _: &mut Context<Self>) {
        self.left.insert(player.id(), why == LeaveReason::Kicked);
    }
}

impl Handle<Say> for Counter {
    fn handle(&mut self, _: Say, _: &Player, _: &mut Context<Self>) -> Result<()> {
        self.said += 1;
        Ok(())
    }
}

impl Handle<Draw> for Counter {
    fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        self.drawn += 1;
        Ok(self.drawn)
    }
}

impl Handle<Free> for Counter {
    fn handle(&mut self, _: Free, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_rate_is_a_burst_of_a_second_unless_it_says_otherwise() {
    assert_eq!(Say::RATE, Some(MessageRate { interval_ns: 100_000_000, burst: 10 }));
    assert_eq!(Draw::RATE, Some(MessageRate { interval_ns: 2_000_000_000, burst: 2 }));
    assert_eq!(Free::RATE, None);
}

#[test]
fn what_comes_faster_is_refused_and_not_applied() {
    let mut sim = Sim::<Counter>::new(1);
    let ann = sim.join("Ann").unwrap();
    for _ in 0..10 {
        sim.send(ann, Say(0)).unwrap();
    }
    let error = sim.send(ann, Say(0)).unwrap_err();
    assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::TooFast, Some(100)));
    assert_eq!(error.text(), "Say: a player may send 10 per second, 10 at once");
    assert_eq!(sim.room().said, 10);
    sim.advance(ms(99));
    assert_eq!(sim.send(ann, Say(0)).unwrap_err().retry_after_ms(), Some(1));
    sim.advance(ms(1));
    sim.send(ann, Say(0)).unwrap();
    assert_eq!(sim.room().said, 11);
}

#[test]
fn each_player_and_type_has_a_rate_of_its_own() {
    let mut sim = Sim::<Counter>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    assert_eq!((sim.request(ann, Draw), sim.request(ann, Draw)), (Ok(1), Ok(2)));
    let error = sim.request(ann, Draw).unwrap_err();
    assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::TooFast, Some(2000)));
    assert_eq!(sim.request(bob, Draw), Ok(3));
    sim.send(ann, Say(0)).unwrap();
    for _ in 0..1000 {
        sim.send(ann, Free).unwrap();
    }
    sim.advance(ms(2000));
    assert_eq!(sim.request(ann, Draw), Ok(4));
    assert!(sim.request(ann, Draw).is_err());
}

#[test]
fn a_message_that_cannot_be_read_counts() {
    let mut sim = Sim::<Counter>::new(1);
    let ann = sim.join("Ann").unwrap();
    let codes = [(); 3].map(|()| sim.raw_request(ann, 2, b"junk").unwrap_err().code());
    assert_eq!(codes, [ErrorCode::BadPayload, ErrorCode::BadPayload, ErrorCode::TooFast]);
}

#[test]
fn past_a_multiple_of_the_rate_the_player_is_removed() {
    let mut sim = Sim::<Counter>::new(1);
    let (ann, bob) = (sim.join("Ann").unwrap(), sim.join("Bob").unwrap());
    for number in 0..10 + REFUSALS {
        assert_eq!(sim.send(ann, Say(0)).is_ok(), number < 10);
        assert!(sim.is_here(ann));
    }
    assert_eq!(sim.send(ann, Say(0)).unwrap_err().code(), ErrorCode::TooFast);
    assert!(!sim.is_here(ann) && sim.is_here(bob));
    assert_eq!(sim.why_gone(ann).unwrap().code(), ErrorCode::TooFast);
    assert_eq!(sim.room().left.get(&ann), Some(&true));
    assert_eq!(sim.room().said, 10);
    sim.send(bob, Say(0)).unwrap();
}

#[test]
fn a_burst_of_three_hundred_costs_a_player_what_is_refused_and_nothing_else() {
    let mut sim = Sim::<Counter>::new(1);
    let ann = sim.join("Ann").unwrap();
    let taken = (0..300).filter(|_| sim.send(ann, Say(0)).is_ok()).count();
    assert_eq!((taken, sim.room().said), (10, 10), "each of the others was refused, with an error");
    sim.advance(ms(100));
    sim.send(ann, Say(0)).unwrap();
}

#[test]
fn the_last_request_is_answered_before_the_player_is_removed() {
    let mut host = Host::create::<Counter>(1, &[]).unwrap();
    let player = host.join("Ann").unwrap();
    for number in 1..=2 + REFUSALS {
        host.message(player, 2, &[0], Some(RequestNumber(number as u32)));
    }
    host.out.take();
    host.message(player, 2, &[0], Some(RequestNumber(99)));
    let outputs = host.out.take();
    let [
        Output::Error { link: Link(1), request: Some(RequestNumber(99)), error },
        Output::Removed { link: Link(1), why },
    ] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((error.code(), why.code()), (ErrorCode::TooFast, ErrorCode::TooFast));
}

#[test]
fn a_rate_is_no_part_of_the_schema() {
    mod without {
        use super::*;

        #[derive(State, Default)]
        pub(super) struct Counter {
            said: u32,
            drawn: u32,
            left: Map<PlayerId, bool>,
        }

        #[derive(Message)]
        struct Say(u32);

        #[derive(Message)]
        #[reply(u32)]
        struct Draw;

        #[room(messages(Free, Say, Draw))]
        impl Room for Counter {}

        impl Handle<Say> for Counter {
            fn handle(&mut self, _: Say, _: &Player, _: &mut Context<Self>) -> Result<()> {
                Ok(())
            }
        }

        impl Handle<Draw> for Counter {
            fn handle(&mut self, _: Draw, _: &Player, _: &mut Context<Self>) -> Result<u32> {
                Ok(0)
            }
        }

        impl Handle<Free> for Counter {
            fn handle(&mut self, _: Free, _: &Player, _: &mut Context<Self>) -> Result<()> {
                Ok(())
            }
        }
    }
    assert_eq!(fingerprint(&schema::<Counter>()), fingerprint(&schema::<without::Counter>()));
}

/// A client that was away sends what waited at once, and it is no more than its rate allows.
#[test]
fn who_comes_back_may_send_what_waited_in_one_burst() {
    for (away_s, expected) in [(0, 10), (4, 50), (9, 100)] {
        let mut sim = Sim::<Counter>::new(1);
        let ann = sim.join("Ann").unwrap();
        sim.cut(ann);
        sim.advance(Duration::from_secs(away_s));
        sim.resume(ann);
        for _ in 0..expected {
            sim.send(ann, Say(1)).unwrap();
        }
        assert!(sim.send(ann, Say(1)).is_err(), "{away_s} s away: one more");
        // The credit is for that burst.
        sim.advance(Duration::from_secs(30));
        for _ in 0..10 {
            sim.send(ann, Say(1)).unwrap();
        }
        assert!(sim.send(ann, Say(1)).is_err());
    }
}
