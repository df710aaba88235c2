//! A session that outlives its connections, against the rules of the protocol document.

use std::time::Duration;

use playfield_client::session::{
    ClientError, Clock, CommandError, Event, Failure, Lost, Session, UNREADABLE_IN_A_ROW_MAX,
};
use playfield_session::{Log, Passage};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::support::{Said, Talk, config, joined, kept, other, patch, polled, resumable, snapshot};

const ROOM: RoomNumber = RoomNumber(1);

fn event(sequence: u64) -> ServerMessage<'static> {
    let message = MessageRef::Index(0);
    ServerMessage::Event(server::Event {
        room: ROOM,
        sequence,
        version: 5,
        message,
        payload: b"".into(),
    })
}

fn reply(request: RequestNumber) -> ServerMessage<'static> {
    ServerMessage::Reply(server::Reply { request, payload: b"1".into() })
}

fn ask(talk: &mut Talk) -> RequestNumber {
    talk.client.request(ROOM, 0, b"").unwrap()
}

fn nonsense(talk: &mut Talk) {
    let bytes = talk.node.frame(b"\xff\xff\xff\xff\xff\xff\xff\xff");
    talk.receives(&bytes);
}

/// The session goes on; the node has handled `received` messages.
fn resumes(talk: &mut Talk, received: u64, lost: Vec<Lost>) -> Vec<Said> {
    talk.says(&kept(b"t2", Some(Resumed { received, lost })));
    let mut said = talk.heard();
    let is_ping = |said: &Said| matches!(said, Said::Other(said) if said.starts_with("Ping"));
    let last = said.iter().rposition(is_ping).expect("the welcome is confirmed");
    said.remove(last);
    said
}

fn whole(received: u64) -> Event<'static> {
    Event::Resumed(Resumed { received, lost: vec![] })
}

fn ended() -> Event<'static> {
    Event::ConnectionLost { error: ClientError::Ended { close_code: None } }
}

fn failed(request: RequestNumber) -> Event<'static> {
    Event::Failed { request, failure: Failure::Lost }
}

#[test]
fn a_client_says_what_it_has_and_repeats_what_the_node_has_not_handled() {
    for web_socket in [false, true] {
        let mut talk = Talk::kept(web_socket);
        let first = talk.client.join("r").unwrap();
        talk.says(&joined(first, ROOM, 3));
        talk.says(&ServerMessage::Snapshot(server::Snapshot {
            room: ROOM,
            epoch: 3,
            version: 5,
            body: b"1".into(),
        }));
        let join = talk.client.join("s").unwrap();
        talk.client.send(ROOM, 1, b"1").unwrap();
        let (before, last) = (talk.heard(), talk.client.list(None, &[], 0).unwrap());
        assert_eq!(before.len(), 3, "{before:?}");
        talk.all_events();

        let hello = talk.reconnects(web_socket);
        assert_eq!(hello, Said::Resume(b"t1".to_vec(), 1, vec![(1, 3, 5)]));
        assert_eq!(talk.all_events(), [ended()]);
        // The node has handled both joins; the send and the list were lost.
        let again = resumes(&mut talk, 2, vec![]);
        assert_eq!(again[0], before[2]);
        assert_eq!(again.len(), 2);
        assert_eq!(talk.event(), whole(2));
        // The answers that were on their way come now.
        talk.says(&joined(join, RoomNumber(2), 3));
        talk.says(&ServerMessage::Listed(server::Listed { request: last, rooms: vec![] }));
        assert!(matches!(talk.all_events()[..], [Event::Joined(_), Event::Listed(_)]));

        // The new token counts; the new room has no copy yet.
        let hello = talk.reconnects(web_socket);
        assert_eq!(hello, Said::Resume(b"t2".to_vec(), 3, vec![(1, 3, 5), (2, 3, 0)]));
    }
}

#[test]
fn commands_given_while_away_follow_what_is_repeated() {
    let mut talk = Talk::kept_in_room();
    let before = ask(&mut talk);
    talk.heard();
    talk.ends();
    let away = ask(&mut talk);
    talk.client.send(ROOM, 0, b"").unwrap();
    assert_eq!(talk.heard(), [], "there is nowhere to send them");
    let hello = talk.reconnects(false);
    assert!(matches!(hello, Said::Resume(..)));
    // The hello is sent, and not answered.
    let waiting = ask(&mut talk);
    assert_eq!(talk.heard(), []);
    let again: Vec<_> =
        resumes(&mut talk, 1, vec![]).iter().map(|said| format!("{said:?}")).collect();
    let numbers = [Some(before), Some(away), None, Some(waiting)];
    assert_eq!(again.len(), 4);
    for (said, request) in again.iter().zip(numbers) {
        let expected = request.map_or("Send".to_owned(), |request| format!("request: {request}"));
        assert!(said.contains(&expected), "{said} {expected}");
    }
    assert_eq!(talk.all_events(), [ended(), whole(1)]);
}

#[test]
fn what_the_node_confirms_is_forgotten() {
    let mut talk = Talk::kept_in_room();
    let (first, second) = (ask(&mut talk), ask(&mut talk));
    talk.says(&ServerMessage::Ack(server::Ack { received: 2 }));
    talk.heard();
    talk.reconnects(false);
    // An acknowledgement is not an answer.
    let again = resumes(&mut talk, 2, vec![]);
    assert_eq!(again.len(), 1, "{again:?}");
    for request in [first, second] {
        talk.says(&reply(request));
    }
    assert!(matches!(
        talk.all_events()[..],
        [Event::ConnectionLost { .. }, Event::Resumed(_), Event::Reply(_), Event::Reply(_)]
    ));
}

#[test]
fn a_node_that_confirms_what_was_not_sent_ends_the_session() {
    let mut talk = Talk::kept_in_room();
    talk.says(&ServerMessage::Ack(server::Ack { received: 2 }));
    talk.assert_closed(ClientError::NeverSent { received: 2, sent: 1 });

    let mut talk = Talk::kept_in_room();
    talk.reconnects(false);
    talk.says(&kept(b"t2", Some(Resumed { received: 2, lost: vec![] })));
    talk.assert_closed(ClientError::NeverSent { received: 2, sent: 1 });

    // A node can't take back what it has confirmed, for that is forgotten.
    let mut talk = Talk::kept_in_room();
    talk.says(&ServerMessage::Ack(server::Ack { received: 1 }));
    talk.reconnects(false);
    talk.says(&kept(b"t2", Some(Resumed { received: 0, lost: vec![] })));
    talk.assert_closed(ClientError::OutOfTurn { message: "a welcome that takes back an ack" });
}

#[test]
fn a_welcome_that_resumes_what_was_not_asked_for_ends_the_session() {
    let resumed = Some(Resumed { received: 0, lost: vec![] });
    let mut talk = Talk::new(false);
    talk.says(&kept(b"t", resumed.clone()));
    talk.assert_closed(ClientError::OutOfTurn { message: "the welcome of a session" });

    let mut talk = Talk::kept_in_room();
    talk.reconnects(false);
    let mut another = kept(b"t2", resumed);
    if let ServerMessage::Welcome(server::Welcome { session, .. }) = &mut another {
        *session += 1;
    }
    talk.says(&another);
    talk.assert_closed(ClientError::OutOfTurn { message: "the welcome of a session" });
}

#[test]
fn acknowledgements_come_after_32_messages_or_16_kib_or_a_second() {
    let mut talk = Talk::kept_in_room();
    // The `joined` was the first.
    for sequence in 1..31 {
        talk.says(&event(sequence));
    }
    assert_eq!(talk.heard(), []);
    talk.says(&event(31));
    assert_eq!(talk.heard(), [other("Ack { received: 32 }")]);

    let (version, message) = (5, MessageRef::Index(0));
    let payload = &[7; 16 * 1024][..];
    talk.says(&ServerMessage::Event(server::Event {
        room: ROOM,
        sequence: 32,
        version,
        message,
        payload: payload.into(),
    }));
    assert_eq!(talk.heard(), [other("Ack { received: 33 }")]);

    let at = |ms| Duration::from_millis(ms);
    talk.advances(at(500));
    talk.says(&event(33));
    talk.says(&patch(ROOM, 5, 6));
    assert_eq!(talk.client.due_at(), Some(at(1500)));
    talk.advances(at(1499));
    assert_eq!(talk.heard(), []);
    talk.advances(at(1500));
    assert_eq!(talk.heard(), [other("Ack { received: 34 }")]);
    assert_eq!(talk.client.due_at(), None);
}

#[test]
fn a_session_that_the_node_does_not_keep_confirms_nothing_and_keeps_nothing() {
    let mut talk = Talk::kept(false);
    talk.client = Session::new(resumable(false)).unwrap();
    talk.node = crate::support::Node::new(false);
    let request = talk.client.join("r").unwrap();
    talk.says(&crate::support::welcome(0, 1000));
    talk.says(&joined(request, ROOM, 3));
    for sequence in 1..100 {
        talk.says(&event(sequence));
    }
    talk.heard();
    let asked = ask(&mut talk);
    assert_eq!(talk.client.due_at(), None);
    talk.all_events();
    talk.ends();
    assert_eq!(talk.client.request(ROOM, 0, b""), Err(CommandError::Away));
    assert_eq!(talk.reconnects(false), Said::Hello { name: "Ann".to_owned() });
    talk.says(&crate::support::welcome(0, 1000));
    assert!(matches!(
        &talk.all_events()[..],
        [Event::ConnectionLost { .. }, lost, Event::NewSession(_)] if *lost == failed(asked)
    ));
}

#[test]
fn in_a_new_session_the_rooms_are_gone_and_what_was_asked_is_unknown() {
    let mut talk = Talk::kept_in_room();
    let (asked, join) = (ask(&mut talk), talk.client.join("s").unwrap());
    let leave = talk.client.leave(ROOM).unwrap();
    talk.heard();
    talk.reconnects(false);
    let away = talk.client.list(None, &[], 0).unwrap();
    talk.says(&kept(b"n1", None));
    let (code, text) = (ErrorCode::Left, "".into());
    let events = talk.all_events();
    let expected = [
        ended(),
        failed(asked),
        failed(join),
        Event::Left(server::Left { room: ROOM, request: Some(leave), code, text }),
        failed(away),
    ];
    assert_eq!(events[..5], expected);
    assert!(matches!(&events[5..], [Event::NewSession(welcome)] if &*welcome.resume == b"n1"));
    assert_eq!(talk.client.send(ROOM, 0, b""), Err(CommandError::NotJoined { room: ROOM }));
    // Both ends count from the beginning, and room numbers too.
    talk.heard();
    let join = talk.client.join("r").unwrap();
    assert_eq!(talk.heard().len(), 1);
    talk.says(&joined(join, ROOM, 9));
    talk.says(&snapshot(ROOM, 9, 2));
    let hello = talk.reconnects(false);
    assert_eq!(hello, Said::Resume(b"n1".to_vec(), 1, vec![(1, 9, 2)]));
    assert_eq!(resumes(&mut talk, 0, vec![]).len(), 1);
}

#[test]
fn a_copy_that_waits_for_a_snapshot_has_version_0_and_a_late_resync_is_sent_after_the_welcome() {
    let mut talk = Talk::kept_in_room();
    talk.client.resync(ROOM).unwrap();
    let hello = talk.reconnects(false);
    assert_eq!(hello, Said::Resume(b"t1".to_vec(), 1, vec![(1, 3, 0)]));
    assert_eq!(resumes(&mut talk, 1, vec![]), []);
    talk.says(&snapshot(ROOM, 3, 7));
    talk.says(&patch(ROOM, 7, 8));

    talk.ends();
    talk.client.resync(ROOM).unwrap();
    assert_eq!(talk.reconnects(false), Said::Resume(b"t2".to_vec(), 1, vec![(1, 3, 0)]));
    resumes(&mut talk, 1, vec![]);
    talk.says(&snapshot(ROOM, 3, 9));

    let hello = talk.reconnects(false);
    assert!(matches!(hello, Said::Resume(_, 1, rooms) if rooms == [(1, 3, 9)]));
    talk.client.resync(ROOM).unwrap();
    assert_eq!(talk.heard(), []);
    assert_eq!(resumes(&mut talk, 1, vec![]), [other("Resync { room: 1 }")]);
    talk.says(&patch(ROOM, 9, 10));
    talk.says(&snapshot(ROOM, 3, 10));
    let updates = talk.all_events().into_iter().rev().take(2).collect::<Vec<_>>();
    assert!(matches!(updates[..], [Event::Update { version: 10, .. }, Event::Resumed(_)]));
}

#[test]
fn an_unreadable_message_ends_the_connection_and_comes_again() {
    for web_socket in [false, true] {
        let mut talk = Talk::kept(web_socket);
        let list = talk.client.list(None, &[], 0).unwrap();
        talk.heard();
        nonsense(&mut talk);
        assert!(talk.client.is_away());
        let lost = talk.all_events();
        assert!(matches!(&lost[..], [Event::ConnectionLost { .. }]), "{lost:?}");
        // The rest of that connection is ignored.
        talk.says(&ServerMessage::Listed(server::Listed { request: list, rooms: vec![] }));
        assert_eq!(talk.all_events(), []);
        let closes = if web_socket { 1 } else { 0 };
        assert_eq!(talk.heard().len(), closes);
        let hello = talk.reconnects(web_socket);
        assert_eq!(hello, Said::Resume(b"t1".to_vec(), 0, vec![]));
        resumes(&mut talk, 1, vec![]);
        talk.says(&ServerMessage::Listed(server::Listed { request: list, rooms: vec![] }));
        assert!(matches!(talk.all_events()[..], [Event::Resumed(_), Event::Listed(_)]));
    }
}

#[test]
fn a_message_that_never_can_be_read_ends_the_session() {
    let mut talk = Talk::kept_in_room();
    let asked = ask(&mut talk);
    for round in 0..2 {
        for _ in 0..UNREADABLE_IN_A_ROW_MAX {
            nonsense(&mut talk);
            talk.reconnects(false);
            resumes(&mut talk, 2, vec![]);
            // A message that is not counted shows nothing: the one that is comes after it.
            talk.says(&snapshot(ROOM, 3, 9));
        }
        if round == 0 {
            talk.says(&event(1));
        }
    }
    talk.all_events();
    nonsense(&mut talk);
    let events = talk.all_events();
    assert_eq!(events[0], Event::Failed { request: asked, failure: Failure::Closed });
    let Event::Closed { error: Some(error) } = &events[1] else { panic!("{events:?}") };
    assert!(error.to_string().starts_with("3 messages in a row can't be read: "), "{error}");
    assert!(talk.client.is_finished());
}

#[test]
fn what_the_node_forgot_is_reported_by_room() {
    let mut talk = Talk::kept_in_room();
    talk.says(&event(1));
    let handled = ask(&mut talk);
    let (list, schema) =
        (talk.client.list(None, &[], 0).unwrap(), talk.client.schema("table").unwrap());
    let unhandled = ask(&mut talk);
    talk.heard();
    talk.reconnects(false);
    talk.all_events();
    let lost = vec![Lost { room: None, messages: 1 }, Lost { room: Some(ROOM), messages: 3 }];
    assert_eq!(resumes(&mut talk, 4, lost.clone()).len(), 1, "what was not handled is repeated");
    let expected = [
        Event::Resumed(Resumed { received: 4, lost }),
        failed(list),
        failed(schema),
        failed(handled),
    ];
    assert_eq!(talk.all_events(), expected);
    // Two of the three were events. Late answers are ignored.
    talk.says(&reply(handled));
    talk.says(&event(4));
    talk.says(&reply(unhandled));
    let events = talk.all_events();
    assert_eq!(events[0], Event::Missed { room: ROOM, events: 2 });
    assert!(matches!(events[1..], [Event::Event(_), Event::Reply(_)]), "{events:?}");
    // The gap is explained once.
    talk.says(&event(6));
    talk.assert_closed(ClientError::EventOutOfOrder { room: ROOM, due: 5, got: 6 });
}

#[test]
fn each_leave_ends_if_the_answers_were_lost() {
    let mut talk = Talk::kept_in_room();
    let (first, second) = (talk.client.leave(ROOM).unwrap(), talk.client.leave(ROOM).unwrap());
    talk.reconnects(false);
    talk.all_events();
    let said = resumes(&mut talk, 3, vec![Lost { room: Some(ROOM), messages: 2 }]);
    assert_eq!(said, []);
    let (code, text) = (ErrorCode::Left, "".into());
    let left = Event::Left(server::Left { room: ROOM, request: Some(first), code, text });
    assert_eq!(talk.all_events()[1..], [left, failed(second)]);
}

#[test]
fn more_events_may_not_be_missing_than_messages_were_lost() {
    let mut talk = Talk::kept_in_room();
    talk.reconnects(false);
    resumes(&mut talk, 1, vec![Lost { room: Some(ROOM), messages: 2 }]);
    talk.says(&event(4));
    talk.assert_closed(ClientError::EventOutOfOrder { room: ROOM, due: 1, got: 4 });
}

#[test]
fn losses_that_alternate_between_rooms_explain_the_gaps_of_each() {
    let mut talk = Talk::kept_in_room();
    let second = RoomNumber(2);
    let join = talk.client.join("s").unwrap();
    talk.says(&joined(join, second, 3));
    talk.says(&snapshot(second, 3, 5));
    talk.reconnects(false);
    talk.all_events();
    // Losses that a node keeps: it has lost 400 events of each room, in turn.
    let mut log = Log::default();
    for _ in 0..2 {
        log.push(Some(ROOM), 1 << 20, Passage::Sent, |_| {});
    }
    for count in 0..801 {
        let room = if count % 2 == 0 { ROOM } else { second };
        log.push(Some(room), 1, Passage::Held, |out| out.push(0));
    }
    resumes(&mut talk, 2, log.resume(2).unwrap());
    let of = |room| {
        let message = MessageRef::Index(0);
        ServerMessage::Event(server::Event {
            room,
            sequence: 401,
            version: 5,
            message,
            payload: b"".into(),
        })
    };
    talk.says(&of(ROOM));
    talk.says(&of(second));
    let events = talk.all_events();
    let missed = |event: &&Event| matches!(event, Event::Missed { .. });
    assert_eq!(events.iter().filter(missed).count(), 2, "{events:?}");
    assert!(!talk.client.is_finished());
}

#[test]
fn a_return_makes_progress_by_a_counted_message_a_confirmation_or_state() {
    let mut talk = Talk::kept_in_room();
    assert!(!talk.client.made_progress(), "this connection has resumed nothing");
    type Happens = fn(&mut Talk);
    let ways: [(Happens, bool); 5] = [
        (|_| {}, false),
        (|talk| talk.says(&ServerMessage::Ping(server::Ping { nonce: 1 })), false),
        (|talk| talk.says(&event(1)), true),
        (|talk| talk.says(&patch(ROOM, 5, 6)), true),
        (
            |talk| {
                ask(talk);
                talk.says(&ServerMessage::Ack(server::Ack { received: 2 }));
            },
            true,
        ),
    ];
    for (happens, is_progress) in ways {
        talk.reconnects(false);
        resumes(&mut talk, 1, vec![]);
        happens(&mut talk);
        assert_eq!(talk.client.made_progress(), is_progress);
        talk.ends();
        assert_eq!(talk.client.made_progress(), is_progress, "it is asked for after the loss");
    }
}

#[test]
fn a_room_that_was_entered_without_this_client_knowing_is_left() {
    let mut talk = Talk::kept_in_room();
    let (join, second) = (talk.client.join("s").unwrap(), talk.client.join("t").unwrap());
    talk.reconnects(false);
    talk.all_events();
    let said = resumes(&mut talk, 3, vec![Lost { room: Some(RoomNumber(2)), messages: 2 }]);
    assert_eq!(said, [other("Leave { request: 4, room: 2 }")]);
    assert_eq!(talk.all_events()[1..], [failed(join), failed(second)]);
    talk.says(&snapshot(RoomNumber(2), 3, 5));
    talk.says(&patch(RoomNumber(2), 5, 6));
    // The other join is granted after all.
    talk.says(&joined(second, RoomNumber(3), 3));
    assert_eq!(talk.heard(), [other("Leave { request: 5, room: 3 }")]);
    talk.says(&snapshot(RoomNumber(3), 3, 5));
    for (request, room) in [(4, 2), (5, 3)] {
        let (request, room) = (Some(RequestNumber(request)), RoomNumber(room));
        let code = ErrorCode::Left;
        talk.says(&ServerMessage::Left(server::Left { request, room, code, text: "".into() }));
    }
    assert_eq!((talk.all_events(), talk.heard()), (vec![], vec![]));
    // Which of the joins was granted is unknown, so the other may have entered any room.
    talk.says(&patch(RoomNumber(4), 5, 6));
    assert_eq!(talk.heard(), [other("Leave { request: 6, room: 4 }")]);
    assert_eq!(talk.all_events(), vec![]);
}

#[test]
fn a_goodbye_ends_the_session_and_giving_up_on_a_silent_client_does_not() {
    let goodbye = |code| ServerMessage::Goodbye(server::Goodbye { code, text: "".into() });
    let mut talk = Talk::kept_in_room();
    talk.says(&goodbye(ErrorCode::TakenOver));
    assert!(talk.client.is_finished());
    // This client slept.
    let mut talk = Talk::kept_in_room();
    talk.says(&goodbye(ErrorCode::Timeout));
    assert!(talk.client.is_away());
    // A node that is full may have room later.
    talk.reconnects(false);
    talk.says(&goodbye(ErrorCode::Limit));
    assert!(talk.client.is_away());
    talk.reconnects(false);
    talk.says(&goodbye(ErrorCode::Unauthorized));
    assert!(talk.client.is_finished());
}

#[test]
fn a_node_that_shuts_down_leaves_the_client_away_and_keeps_nothing() {
    let mut talk = Talk::kept_in_room();
    assert!(!talk.client.grace().is_zero());
    let (code, text) = (ErrorCode::ShuttingDown, "until nine".to_owned());
    talk.says(&ServerMessage::Goodbye(server::Goodbye { code, text: text.clone().into() }));
    let error = ClientError::TurnedAway { code, text, retry_after: None };
    assert_eq!(talk.all_events(), [Event::ConnectionLost { error }]);
    assert!(talk.client.is_away() && talk.client.grace().is_zero());
    // The next node knows no session.
    talk.reconnects(false);
    talk.says(&kept(b"n1", None));
    assert!(talk.all_events().iter().any(|event| matches!(event, Event::NewSession { .. })));
    // A client that does not resume has ended.
    let mut talk = Talk::in_room();
    talk.says(&ServerMessage::Goodbye(server::Goodbye { code, text: "".into() }));
    assert!(talk.client.is_finished());
}

#[test]
fn the_attempts_are_planned_by_the_room_that_keeps_its_seat_for_the_shortest_time() {
    let mut talk = Talk::kept_in_room();
    for (grace, shortest) in [(20_000, 10_000), (700, 700), (0, 700), (900, 700)] {
        let request = talk.client.join("r").unwrap();
        let mut message = joined(request, RoomNumber(100 + grace), 3);
        if let ServerMessage::Joined(server::Joined { grace_ms, .. }) = &mut message {
            *grace_ms = grace;
        }
        talk.says(&message);
        assert_eq!(talk.client.shortest_grace(), Duration::from_millis(shortest));
    }
}

#[test]
fn a_program_that_renews_its_token_gets_one_more_attempt() {
    let code = ErrorCode::Unauthorized;
    let mut talk = Talk::kept_in_room();
    talk.client.set_renews_token(true);
    talk.reconnects(false);
    talk.says(&ServerMessage::Goodbye(server::Goodbye { code, text: "expired".into() }));
    assert!(talk.client.is_away());
    talk.reconnects(false);
    talk.says(&ServerMessage::Goodbye(server::Goodbye { code, text: "expired".into() }));
    assert!(talk.client.is_finished());
}

#[test]
fn an_attempt_that_fails_is_not_reported_and_the_client_may_give_up() {
    let mut talk = Talk::kept_in_room();
    let asked = ask(&mut talk);
    for _ in 0..3 {
        talk.reconnects(false);
    }
    talk.ends();
    assert_eq!(talk.all_events(), [ended()]);
    talk.gives_up();
    let error = Some(ClientError::Ended { close_code: None });
    let closed = Event::Failed { request: asked, failure: Failure::Closed };
    assert_eq!(talk.all_events(), [closed, Event::Closed { error }]);
    assert_eq!(talk.client.join("r"), Err(CommandError::Closed));
    talk.client.reconnect(config(false).transport).unwrap();
    assert!(talk.client.is_finished());
}

#[test]
fn goodbye_while_away_ends_the_session_here() {
    let mut talk = Talk::kept_in_room();
    talk.ends();
    talk.client.goodbye();
    talk.ends();
    assert_eq!(talk.all_events(), [ended(), Event::Closed { error: None }]);
    // On the way back it is said to the node.
    let mut talk = Talk::kept_in_room();
    talk.reconnects(false);
    talk.client.goodbye();
    assert_eq!(talk.heard(), [other("Goodbye")]);
}

#[test]
fn the_bytes_that_wait_to_be_confirmed_are_limited() {
    let mut config = resumable(false);
    config.unconfirmed_bytes_max = 100;
    let mut client = Session::new(config).unwrap();
    let mut sent = 0;
    let error = loop {
        match client.join("a room with a long name") {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CommandError::Unconfirmed { bytes: 100.. }), "{error}");
    assert!(client.is_full());
    let mut node = crate::support::Node::new(false);
    client.received(&node.write(&kept(b"t", None)));
    client.received(&node.write(&ServerMessage::Ack(server::Ack { received: sent })));
    assert_eq!(polled(&mut client).len(), 1);
    assert!(client.join("r").is_ok());
}

#[test]
fn pings_are_sent_again_and_their_round_trip_starts_over() {
    let mut talk = Talk::kept_in_room();
    let nonce = talk.client.ping().unwrap();
    talk.reconnects(false);
    talk.advances(Duration::from_secs(3));
    let again = resumes(&mut talk, 1, vec![]);
    assert_eq!(again, [other(&format!("Ping {{ nonce: {nonce} }}"))]);
    talk.advances(Duration::from_millis(3020));
    talk.says(&ServerMessage::Pong(server::Pong { nonce, time_us: 7_000_000 }));
    let round_trip = Duration::from_millis(20);
    assert_eq!(talk.all_events().pop(), Some(Event::Pong { nonce, round_trip }));
    let clock = talk.client.clock().unwrap();
    assert_eq!(clock, Clock { round_trip, offset_us: 3_990_000 });
    assert_eq!(clock.node_time(Duration::from_secs(5)), Duration::from_millis(8990));
}

#[test]
fn the_clock_is_that_of_the_shortest_of_the_last_eight_round_trips() {
    let mut talk = Talk::kept_in_room();
    let mut now = 0;
    let mut best = Vec::new();
    for delay in [50, 20, 90, 30, 40, 40, 40, 40, 40, 60, 25] {
        let nonce = talk.client.ping().unwrap();
        now += delay;
        talk.advances(Duration::from_millis(now));
        talk.says(&ServerMessage::Pong(server::Pong { nonce, time_us: 1000 * (now + 500) }));
        let clock = talk.client.clock().unwrap();
        best.push(clock.round_trip.as_millis());
        // The node's clock is 500 ms ahead, and the way back took nothing.
        let off = i64::try_from(clock.round_trip.as_micros()).unwrap() / 2;
        assert_eq!(clock.offset_us, 500_000 + off);
    }
    assert_eq!(best, [50, 20, 20, 20, 20, 20, 20, 20, 20, 30, 25]);
}

#[test]
fn a_suspected_connection_has_five_seconds_to_answer() {
    let at = Duration::from_secs;
    for answers in [false, true] {
        let mut talk = Talk::kept_in_room();
        talk.advances(at(9));
        talk.client.suspect();
        assert_eq!(talk.heard().last(), Some(&other("Ping { nonce: 2 }")));
        assert_eq!(talk.client.due_at(), Some(at(14)));
        talk.advances(at(13));
        if answers {
            talk.says(&ServerMessage::Pong(server::Pong { nonce: 2, time_us: 0 }));
            assert_eq!(talk.client.due_at(), None);
        }
        talk.advances(at(14));
        assert_eq!(talk.client.is_away(), !answers);
    }
    // Unless this process slept: then what came is not read yet.
    let mut talk = Talk::kept_in_room();
    talk.client.suspect();
    talk.advances(at(60));
    assert!(!talk.client.is_away());
    talk.advances(at(65));
    assert!(talk.client.is_away());
}

/// Three sends and a request; the node has confirmed one send.
fn sends(talk: &mut Talk) -> RequestNumber {
    for _ in 0..3 {
        talk.client.send(ROOM, 0, b"1").unwrap();
    }
    // The join and a send.
    talk.says(&ServerMessage::Ack(server::Ack { received: 2 }));
    ask(talk)
}

#[test]
fn sends_that_the_node_has_not_confirmed_are_counted_in_a_new_session_and_at_the_end() {
    let mut talk = Talk::kept(false);
    let join = talk.client.join("r").unwrap();
    talk.says(&joined(join, ROOM, 3));
    talk.says(&ServerMessage::Snapshot(server::Snapshot {
        room: ROOM,
        epoch: 3,
        version: 5,
        body: b"1".into(),
    }));
    let request = sends(&mut talk);
    talk.reconnects(false);
    talk.all_events();
    talk.says(&kept(b"n1", None));
    let events = talk.all_events();
    assert_eq!(events[..2], [failed(request), Event::Unconfirmed { sends: 2 }]);
    assert!(matches!(events[2], Event::NewSession(_)), "{events:?}");
    for gives_up in [true, false] {
        let mut talk = Talk::kept_in_room();
        sends(&mut talk);
        talk.ends();
        talk.client.send(ROOM, 0, b"1").unwrap();
        // Requests are not among them.
        assert_eq!(talk.client.unconfirmed_sends(), 3);
        if gives_up {
            talk.gives_up();
        } else {
            talk.client.goodbye();
            talk.ends();
        }
        let events = talk.all_events();
        let [.., unconfirmed, Event::Closed { .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(*unconfirmed, Event::Unconfirmed { sends: 3 });
    }
}

#[test]
fn what_the_node_confirms_after_the_goodbye_is_not_counted() {
    let mut talk = Talk::kept_in_room();
    sends(&mut talk);
    talk.client.goodbye();
    talk.says(&ServerMessage::Ack(server::Ack { received: 5 }));
    talk.ends();
    let events = talk.all_events();
    assert!(!events.iter().any(|event| matches!(event, Event::Unconfirmed { .. })), "{events:?}");
}
