//! In which order what a node says is reported. The node is a script, which says much at once.

use std::io::Read as _;
use std::sync::mpsc::sync_channel;
use std::thread;

use playfield_ffi::*;
use playfield_wire::server::{self, ServerMessage};

use crate::calls::{next, read, text};
use crate::script::{
    Go, Node, connecting, event, join, joined, packed, patch, request_of, snapshot, states, welcome,
};

/// Waits until everything that the node says has come, without polling: until the connection ends.
fn wait_for_the_end(client: PfClient) {
    let mut statistics = PfStatistics { is_connected: true, ..PfStatistics::default() };
    while statistics.is_connected {
        // SAFETY: it is a place.
        assert_eq!(unsafe { pf_client_statistics(client, &raw mut statistics) }, PfCode::Ok);
        thread::yield_now();
    }
}

/// All events until there is none.
fn rest(client: PfClient) -> Vec<PfEvent> {
    let mut all = Vec::new();
    loop {
        let mut event = PfEvent::default();
        // SAFETY: it is a place.
        assert_eq!(unsafe { pf_client_next(client, 0, &raw mut event) }, PfCode::Ok);
        if event.kind == PfEventKind::None {
            return all;
        }
        all.push(event);
    }
}

fn kinds(events: &[PfEvent]) -> Vec<PfEventKind> {
    events.iter().map(|event| event.kind).collect()
}

/// The member `n` of a state.
fn n(root: PfValue) -> Result<i64, PfCode> {
    let (mut value, mut number) = (PfValue::default(), 0);
    // SAFETY: the text outlives the call, and the others are places.
    unsafe {
        match pf_value_get(root, text("n"), &raw mut value) {
            PfCode::Ok => {}
            code => return Err(code),
        }
        assert_eq!(pf_value_i64(value, &raw mut number), PfCode::Ok);
    }
    Ok(number)
}

fn state(room: PfRoom) -> PfValue {
    let mut root = PfValue::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_room_state(room, &raw mut root) }, PfCode::Ok);
    root
}

fn send(room: PfRoom, name: &str, json: &str) {
    // SAFETY: the texts outlive the call.
    let sent = unsafe { pf_room_send(room, text(name), text(json)) };
    // The node may have heard it, and ended the connection, before the call returns.
    assert!([PfCode::Ok, PfCode::Closed].contains(&sent), "{}", read(pf_error_message()));
}

/// Events past the 64 that a task reports at once, and the end of the room, came after the end of
/// the connection.
#[test]
fn the_end_of_the_connection_is_the_last_event() {
    const EVENTS: u64 = 200;
    let (url, node) = Node::start(|node| {
        node.welcome();
        node.let_in(2);
        assert!(node.hear().starts_with("Send"));
        for sequence in 1..=EVENTS {
            node.prepare(&event(2, sequence, "7"));
        }
        node.prepare(&patch(1));
        node.bye();
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let rooms = [0; 2].map(|_| {
        join(client);
        next(client, PfEventKind::Joined).room
    });
    rest(client);
    // SAFETY: the text outlives the call, and the watch is a place.
    assert_eq!(unsafe { pf_room_watch(rooms[0], text("n"), &mut 0) }, PfCode::Ok);
    send(rooms[0], "Go", "1");
    wait_for_the_end(client);
    let mut events = rest(client);
    let last = events.pop().expect("an end");
    assert_eq!((last.kind, last.code), (PfEventKind::Ended, PfCode::Closed));
    let of = |room: PfRoom| {
        let all: Vec<PfEvent> = events.iter().copied().filter(|event| event.room == room).collect();
        all
    };
    let kinds_of_first = [PfEventKind::State, PfEventKind::Change, PfEventKind::Left];
    assert_eq!(kinds(&of(rooms[0])), kinds_of_first);
    let mut second = of(rooms[1]);
    assert_eq!(second.pop().expect("an end").kind, PfEventKind::Left);
    let numbers: Vec<u64> = second.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=EVENTS).collect::<Vec<_>>());
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// The state of a room moved while the program took events of another.
#[test]
fn a_state_moves_with_the_event_that_says_so() {
    let (is_there, there) = sync_channel(1);
    let (url, node) = Node::start(move |node| {
        node.welcome();
        node.let_in(2);
        assert!(node.hear().starts_with("Send"));
        node.prepare(&event(1, 1, "7"));
        node.prepare(&patch(2));
        node.say(&ServerMessage::Ping(server::Ping { nonce: 1 }));
        // The client has handled what came before.
        assert!(node.hear().starts_with("Pong"));
        is_there.send(()).expect("the test waits");
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    let [first, second] = [0; 2].map(|_| {
        join(client);
        next(client, PfEventKind::Joined).room
    });
    rest(client);
    let mut watch = 0;
    // SAFETY: the text outlives the call, and the watch is a place.
    assert_eq!(unsafe { pf_room_watch(second, text("n"), &raw mut watch) }, PfCode::Ok);
    let root = state(second);
    send(first, "Go", "1");
    there.recv().expect("the node runs");
    assert_eq!(next(client, PfEventKind::Event).room, first);
    assert_eq!(n(root), Ok(1), "no event has said that it is another");
    assert_eq!(next(client, PfEventKind::State).number, 6);
    assert_eq!(n(root), Err(PfCode::Stale));
    assert_eq!(n(state(second)), Ok(2));
    let mut change = PfEvent::default();
    // SAFETY: it is a place.
    assert_eq!(unsafe { pf_client_next(client, 0, &raw mut change) }, PfCode::Ok);
    assert_eq!((change.kind, change.watch), (PfEventKind::Change, watch));
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// Events that had come for a room were reported after it was freed.
#[test]
fn nothing_is_reported_of_a_room_that_was_freed() {
    let (url, node) = Node::start(|node| {
        node.welcome();
        node.let_in(1);
        let asked = node.hear();
        assert!(asked.starts_with("Request"), "{asked}");
        for sequence in 1..=100 {
            node.prepare(&event(1, sequence, "7"));
        }
        node.prepare(&ServerMessage::Reply(server::Reply {
            request: request_of(&asked),
            payload: packed(&8u32).into(),
        }));
        node.prepare(&patch(1));
        node.bye();
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    join(client);
    let room = next(client, PfEventKind::Joined).room;
    rest(client);
    let mut request = 0;
    // SAFETY: the texts outlive the call, and the request is a place.
    let asked = unsafe { pf_room_request(room, text("Ask"), text("1"), &raw mut request) };
    assert_eq!(asked, PfCode::Ok);
    wait_for_the_end(client);
    next(client, PfEventKind::Event);
    assert_eq!(pf_room_free(room), PfCode::Ok);
    let events = rest(client);
    assert_eq!(kinds(&events), [PfEventKind::Reply, PfEventKind::Ended], "but for its answers");
    assert_eq!((events[0].request, events[0].code), (request, PfCode::Ok));
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// A connection that was there, but not reported, was not closed.
#[test]
fn closing_before_the_connection_is_reported_closes_it() {
    let (is_there, there) = sync_channel(1);
    let (url, node) = Node::start(move |node| {
        node.welcome();
        // The client's first ping: it was welcomed.
        while node.stream.read(&mut [0; 1024]).expect("a connection") == 0 {}
        is_there.send(()).expect("the test waits");
    });
    let client = connecting(&url, &[]);
    there.recv().expect("the node runs");
    assert_eq!(pf_client_close(client), PfCode::Ok);
    // Unless it came at once, within the call that connects.
    assert_eq!(next(client, PfEventKind::Ended).code, PfCode::Closed);
    // The client has hung up.
    node.join().expect("a node that heard what it expects");
    assert_eq!(pf_client_connect(client), PfCode::Usage);
    assert_eq!(pf_client_free(client), PfCode::Ok);
}

/// The reason was lost if the connection had ended before the program polled.
#[test]
fn the_end_says_why_also_if_it_comes_with_the_welcome() {
    let (url, node) = Node::start(|node| {
        node.prepare(&welcome());
        node.bye();
    });
    let client = connecting(&url, &[]);
    let ended = next(client, PfEventKind::Ended);
    assert_eq!((read(ended.reason), read(ended.said)), ("kicked".into(), "enough".into()));
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// An end that came with a message was not noticed: the edge that told of both was used up by the
/// message.
#[test]
fn an_end_that_comes_with_a_message_is_noticed() {
    let (is_there, there) = sync_channel(1);
    let (url, node) = Node::start(move |node| {
        node.welcome();
        let asked = node.hear();
        assert!(asked.starts_with("Join"), "{asked}");
        node.say(&joined(request_of(&asked), 1));
        node.stream.shutdown(std::net::Shutdown::Write).expect("a connection");
        is_there.send(()).expect("the test waits");
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    rest(client);
    join(client);
    there.recv().expect("the node runs");
    let mut event = PfEvent::default();
    while event.kind != PfEventKind::Ended {
        // SAFETY: it is a place.
        assert_eq!(unsafe { pf_client_next(client, 10_000, &raw mut event) }, PfCode::Ok);
        assert_ne!(event.kind, PfEventKind::None, "the end is not noticed");
    }
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// A send that waited for a place in the queue was overtaken by those after it.
#[test]
fn sends_arrive_in_order_however_many_are_made_at_once() {
    const CORKED: u64 = 2000;
    const TURNS: u64 = 20;
    let (is_there, there) = sync_channel(1);
    let (url, node) = Node::start(move |node| {
        node.welcome();
        node.let_in(1);
        for number in 1..=TURNS * (CORKED + 2) {
            let heard = node.hear();
            let payload = packed(&Go(u32::try_from(number).expect("a small number")));
            assert!(heard.contains(&format!("payload: {payload:?}")), "{number}: {heard}");
            if [0, CORKED].contains(&(number % (CORKED + 2))) {
                is_there.send(()).expect("the test waits");
            }
        }
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    join(client);
    let room = next(client, PfEventKind::Joined).room;
    let mut numbers = 1..;
    let mut say = |count| {
        for number in numbers.by_ref().take(count) {
            send(room, "Go", &number.to_string());
        }
    };
    for _ in 0..TURNS {
        assert_eq!(pf_client_cork(client, true), PfCode::Ok);
        say(CORKED as usize);
        assert_eq!(pf_client_cork(client, false), PfCode::Ok);
        while there.try_recv().is_err() {
            rest(client);
        }
        say(2);
        while there.try_recv().is_err() {
            rest(client);
        }
    }
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard them in order");
}

#[test]
fn a_room_keeps_no_more_bytes_of_events_than_is_set() {
    let (url, node) = Node::start(|node| {
        node.welcome();
        node.let_in(1);
        assert!(node.hear().starts_with("Send"));
        let text = "x".repeat(1000);
        for sequence in 1..=5 {
            node.prepare(&event(1, sequence, &text));
        }
        node.bye();
    });
    let set = [(PfOption::EventBytesMax, 0), (PfOption::QueueBytesMax, 2500)];
    let client = connecting(&url, &set);
    next(client, PfEventKind::Connected);
    join(client);
    let room = next(client, PfEventKind::Joined).room;
    rest(client);
    send(room, "Go", "1");
    wait_for_the_end(client);
    let missed = next(client, PfEventKind::Missed);
    assert_eq!((missed.room, missed.number), (room, 3));
    let events = rest(client);
    let kept: Vec<u64> = events.iter().map(|event| event.number).take(2).collect();
    assert_eq!((kept, events.len()), (vec![4, 5], 4), "two events, the end of the room, the end");
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// All events until the end, as they came together.
fn batches(client: PfClient, mut each: impl FnMut(&[PfEvent])) {
    loop {
        let (mut count, mut events) = (0, [PfEvent::default(); 16]);
        let (place, most) = (events.as_mut_ptr(), events.len());
        // SAFETY: there are as many places, and the count is one.
        let code = unsafe { pf_client_next_many(client, 0, place, most, &raw mut count) };
        assert_eq!(code, PfCode::Ok);
        assert_ne!(count, 0, "the end does not come");
        each(&events[..count]);
        if events[0].kind == PfEventKind::Ended {
            return;
        }
    }
}

fn set_packed(room: PfRoom, is_packed: bool) {
    // SAFETY: the text outlives the call.
    assert_eq!(unsafe { pf_room_set_packed(room, text("Dealt"), is_packed) }, PfCode::Ok);
}

/// Events came with the answer to a join, so in the form that was set before the program could set
/// another, and values with what could have it set another.
#[test]
fn only_replies_and_events_in_packed_come_together() {
    let (url, node) = Node::start(|node| {
        node.welcome();
        node.let_in(1);
        let heard = node.hear();
        assert!(heard.starts_with("Join"), "{heard}");
        node.prepare(&event(1, 1, "a"));
        node.prepare(&event(1, 2, "b"));
        node.prepare(&joined(request_of(&heard), 2));
        let snapshot_bytes = states().0;
        node.prepare(&snapshot(2, &snapshot_bytes));
        for (room, sequence) in [(2, 1), (2, 2), (1, 3)] {
            node.prepare(&event(room, sequence, "c"));
        }
        node.prepare(&patch(1));
        for (room, sequence) in [(1, 4), (2, 3), (1, 5), (2, 4)] {
            node.prepare(&event(room, sequence, "d"));
        }
        node.bye();
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    join(client);
    let first = next(client, PfEventKind::Joined).room;
    set_packed(first, true);
    rest(client);
    join(client);
    wait_for_the_end(client);
    let (mut found, mut second) = (Vec::new(), PfRoom::default());
    batches(client, |events| {
        let of = |event: &PfEvent| match event.kind {
            PfEventKind::Event => {
                assert_ne!(event.value.tree == 0, event.bytes.length == 0, "{event:?}");
                let room = if event.room == first { 1 } else { 2 };
                let form = if event.value.tree == 0 { "packed" } else { "value" };
                format!("{room}.{} {form}", event.number)
            }
            kind => format!("{kind:?}"),
        };
        found.push(events.iter().map(of).collect::<Vec<_>>().join(", "));
        match events[0].kind {
            PfEventKind::Joined => {
                second = events[0].room;
                set_packed(second, true);
            }
            PfEventKind::State if events[0].room == first => set_packed(first, false),
            PfEventKind::Event if events[0].room == first && events[0].number == 4 => {
                set_packed(second, false);
            }
            _ => {}
        }
    });
    let expected = [
        "1.1 packed, 1.2 packed",
        "Joined",
        "State",
        "2.1 packed, 2.2 packed, 1.3 packed",
        "State",
        "1.4 value",
        "2.3 value",
        "1.5 value",
        "2.4 value",
        "Left",
        "Left",
        "Ended",
    ];
    assert_eq!(found, expected);
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}

/// A program that held back what it sends, and did not poll, lost its connection.
#[test]
fn pings_are_answered_while_what_is_sent_is_held_back() {
    let ((is_corked, corked), (is_answered, answered)) = (sync_channel(1), sync_channel(1));
    let (url, node) = Node::start(move |node| {
        node.welcome();
        node.let_in(1);
        corked.recv().expect("the test runs");
        node.say(&ServerMessage::Ping(server::Ping { nonce: 9 }));
        let limit = Some(std::time::Duration::from_secs(20));
        node.stream.set_read_timeout(limit).expect("an option");
        let heard = [node.hear(), node.hear()];
        assert!(heard[0].starts_with("Send") && heard[1].starts_with("Pong"), "{heard:?}");
        is_answered.send(()).expect("the test waits");
    });
    let client = connecting(&url, &[]);
    next(client, PfEventKind::Connected);
    join(client);
    let room = next(client, PfEventKind::Joined).room;
    rest(client);
    assert_eq!(pf_client_cork(client, true), PfCode::Ok);
    send(room, "Go", "1");
    is_corked.send(()).expect("the node runs");
    // The client is not polled meanwhile.
    let _ = answered.recv();
    assert_eq!(pf_client_free(client), PfCode::Ok);
    node.join().expect("a node that heard what it expects");
}
