//! The law of pauses: a room that stands still, and goes on, does what it would have done if it had
//! been told all of it then, in the same order.

use std::borrow::Cow;
use std::time::Duration;

use playfield_room::recording::Input as Call;
use playfield_room::{
    Claims, Entrant, InternalMessage, LeaveReason, Link, Mail, Pausable, Pause, PlayerId, SeatFor,
};
use playfield_state::{Data, Format};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};
use proptest::prelude::*;

use crate::freezing_laws::{Input, Play, Shown, cases, inputs};
use crate::support::park::{Gong, Quick};
use crate::support::{Host, room_named};

/// The calls that an input would be, apart from those that a paused room leaves out or refuses.
fn call(input: &Input, requests: &mut u32, host: &mut Host) -> Vec<Call<'static>> {
    let player = |player: &u8| PlayerId((*player).into());
    let mut message = |player: &u8, index, payload: Vec<u8>, is_request: bool| {
        *requests += 1;
        let request = is_request.then_some(RequestNumber(*requests));
        let (player, message) = (PlayerId((*player).into()), MessageRef::Index(index));
        vec![Call::Message { player, message, payload: payload.into(), request }]
    };
    let mail = |mail| vec![Call::Mail(Cow::Owned(mail))];
    match input {
        Input::Freeze | Input::Join(..) | Input::Reserve(_) | Input::Tick | Input::Sync => vec![],
        Input::Wait(ms) => {
            host.at += Duration::from_millis((*ms).into());
            vec![]
        }
        Input::Leave(who) => vec![Call::Leave(player(who), LeaveReason::Left)],
        Input::Act(who, act, ask) => message(who, 0, encoded(act), *ask),
        Input::Quick(who, what) => message(who, 1, encoded(&Quick(*what)), true),
        Input::Answer(ask, well) => {
            let reply = if *well { Ok(vec![3]) } else { Err("no".into()) };
            mail(Mail::Answered { ask: (*ask).into(), reply })
        }
        Input::Told(what) => {
            mail(Mail::Told { from: room_named("x"), message: InternalMessage::of(&Gong(*what)) })
        }
        Input::Asked(what) => mail(Mail::Asked {
            from: room_named("x"),
            ask: (*what).into(),
            message: InternalMessage::of(&Gong(*what)),
        }),
        Input::Measured(who, ms) => {
            vec![Call::Measured(player(who), Duration::from_millis((*ms).into()))]
        }
        Input::Lost(who) => vec![Call::Lost(player(who))],
        Input::Returned(who) => vec![Call::Returned(player(who), Duration::from_secs(1))],
        Input::Done => host.work_done().into_iter().flat_map(mail).collect(),
    }
}

fn encoded(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// Plays, and pauses the room at these inputs, each time for so many.
fn play(seed: u64, inputs: &[Input], pauses: &[(usize, usize)], wraps: bool) -> Vec<Shown> {
    let (mut play, mut shown) = (Play::new(seed, false), Vec::new());
    let (mut next, mut left) = (0, 0);
    let (mut since, mut waiting) = (None, Vec::new());
    for (place, input) in inputs.iter().enumerate() {
        if left == 0 && pauses.get(next).is_some_and(|(at, _)| *at <= place) {
            (left, since) = (pauses[next].1, Some(play.host.at));
            next += 1;
            if wraps {
                Pausable::pause(&mut play.host.room, play.host.at);
            }
        }
        if left == 0 {
            play.take(input);
        } else {
            left -= 1;
            let before = (play.host.room.state_hash(), play.host.room.version());
            let calls = call(input, &mut play.requests, &mut play.host);
            let (at, Host { room, out, .. }) = (play.host.at, &mut play.host);
            match (wraps, input) {
                (true, Input::Tick | Input::Freeze) => room.tick(at, 1, out),
                (true, Input::Sync) => room.sync(at, out),
                (true, Input::Wait(_)) => room.wake(at, out),
                (true, Input::Reserve(_)) => {
                    let reserved = room.reserve(at, SeatFor::Name("Eve".into()), at, out);
                    assert_eq!(reserved.unwrap_err(), Pause::Cluster.error());
                }
                (true, Input::Join(..)) => {
                    let joined = room.join(at, entrant(), out);
                    assert_eq!(joined.unwrap_err().code(), ErrorCode::Busy);
                }
                _ => {}
            }
            let Host { room, out, .. } = &mut play.host;
            match wraps {
                true => calls.into_iter().for_each(|call| drop(call.apply(at, &mut **room, out))),
                false => waiting.extend(calls),
            }
            assert_eq!((room.state_hash(), room.version()), before);
            assert!(!wraps || room.wake_at().is_none() && room.is_paused());
        }
        if left == 0 {
            if let Some(since) = since.take() {
                resume(&mut play, since, std::mem::take(&mut waiting), wraps);
            }
            let mut now = Shown::default();
            play.note(&mut now);
            shown.push(now);
        }
    }
    shown
}

fn entrant() -> Entrant {
    Entrant {
        link: Link(0),
        format: Format::Packed,
        name: "Eve".into(),
        user: None,
        claims: Claims::default(),
        seat: None,
        reservation: None,
    }
}

fn resume(play: &mut Play, since: Duration, waiting: Vec<Call<'static>>, wraps: bool) {
    let (at, Host { room, out, .. }) = (play.host.at, &mut play.host);
    match room.pausable() {
        Some(paused) => paused.resume(at, out),
        None => {
            room.resumed(at, at - since, out);
            waiting.into_iter().for_each(|call| drop(call.apply(at, &mut **room, out)));
        }
    }
    assert_eq!(room.pausable().is_some(), wraps);
    Pausable::unwrap(room);
    assert!(room.pausable().is_none());
    play.host.follow_up();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pause_equals_being_told_all_of_it_later(
        seed: u64,
        inputs in inputs(),
        pauses in prop::collection::vec((0..30_usize, 1..20_usize), 1..4),
    ) {
        let mut at = 0;
        let pauses: Vec<_> = pauses
            .into_iter()
            .map(|(after, lasts)| {
                let begins = at + after;
                at = begins + lasts;
                (begins, lasts)
            })
            .collect();
        let (paused, told) = (play(seed, &inputs, &pauses, true), play(seed, &inputs, &pauses, false));
        for (one, two) in paused.iter().zip(&told) {
            prop_assert_eq!(&one.outputs, &two.outputs);
            prop_assert!(one == two, "the rooms show something else");
        }
    }
}
