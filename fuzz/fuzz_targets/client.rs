//! The client's session, with arbitrary input from a node, and commands and time in between.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use playfield_client::RoomNumber;
use playfield_client::session::{
    Build, ClientConfig, Event, Masks, RoomCopy, Session, Step, Target, Transport, Update,
};
use playfield_fuzz::input::Input;
use playfield_wire::{DecodeError, server};

/// A copy that can't apply some bodies.
struct Picky;

impl RoomCopy for Picky {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        if update.body.len() % 4 == 3 { Err(DecodeError::other("picky")) } else { Ok(()) }
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        digest % 2 == 0
    }
}

/// Polls at most `most` events, and notes those that end something.
fn poll(session: &mut Session, most: usize, events: &mut Vec<Event<'static>>) {
    for _ in 0..most {
        let Some(event) = session.poll_event() else { return };
        let joined = match &event {
            Event::Joined(joined) => Some(joined.room),
            _ => None,
        };
        events.push(event.into_owned());
        if let Some(room) = joined {
            session.set_copy(room, Box::new(Picky));
        }
    }
}

/// A room to enter; its options, if any, may need the schema.
fn target(kind: u8) -> Target {
    match kind % 3 {
        0 => Target::Join { id: "r".into() },
        options => Target::JoinOrCreate {
            room_type: "table".into(),
            key: None,
            options: if options == 1 { Vec::new() } else { b"null".to_vec() },
        },
    }
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    let transport = if input.byte() % 2 == 0 {
        Transport::Native
    } else {
        let (host, target) = ("node".to_owned(), "/".to_owned());
        Transport::WebSocket { host, target, key: [9; 16], masks: Masks::seeded([3; 16]) }
    };
    let mut session =
        Session::new(ClientConfig::new(transport.clone())).expect("a valid host and target");
    let (mut events, mut now) = (Vec::new(), Duration::ZERO);
    let mut asked: Vec<_> =
        [session.join("r"), session.list(None, &[], 0)].into_iter().flatten().collect();
    while let Some(piece) = input.piece() {
        let piece = piece.to_vec();
        session.received(&piece);
        let (act, room) = (input.byte(), RoomNumber(u32::from(input.byte() % 4)));
        match act % 16 {
            0 => asked.extend(session.join("r")),
            1 => asked.extend(session.request(room, 0, b"1")),
            2 => asked.extend(session.leave(room)),
            3 => drop(session.send(room, 0, b"1")),
            4 => drop(session.subscribe("c", None, true)),
            5 => drop(session.resync(room)),
            6 => drop(session.ping()),
            7 => session.suspect(),
            8 => session.ended(),
            9 => now += Duration::from_millis(u64::from(input.byte()) * 100),
            10 => {
                asked.extend(session.enter(target(input.byte()), Build::Any, Box::new(Picky)));
            }
            11 => drop(session.schema("table")),
            12 => session.forsake(room),
            _ => {}
        }
        session.advance(now);
        poll(&mut session, if act & 0x80 == 0 { usize::MAX } else { 1 }, &mut events);
        session.take_output(&mut Vec::new());
        match session.next_step() {
            Step::Dial(_) if act & 0x40 == 0 => {
                session.reconnect(transport.clone()).expect("a valid host and target");
            }
            Step::Dial(_) | Step::Token(_) => drop(session.attempt_failed()),
            Step::Wait => {}
        }
    }
    session.give_up();
    poll(&mut session, usize::MAX, &mut events);
    assert!(session.is_finished() && session.due_at().is_none());
    assert!(matches!(events.last(), Some(Event::Closed { .. })));
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Closed { .. })).count(), 1);
    for request in asked {
        let ends = events.iter().filter(|event| match event {
            Event::Joined(server::Joined { request: ended, .. })
            | Event::Listed(server::Listed { request: ended, .. })
            | Event::Reply(server::Reply { request: ended, .. })
            | Event::Left(server::Left { request: Some(ended), .. })
            | Event::Failed { request: ended, .. } => *ended == request,
            _ => false,
        });
        assert_eq!(ends.count(), 1, "{request}");
    }
});
