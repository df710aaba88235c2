//! Calls of a client against a node, and calls that must fail.

use playfield::channel::{Access, ChannelRule};
use playfield::prelude::*;
use playfield::{Config, Running};
use playfield_ffi::*;

#[derive(State, Default)]
struct Counter {
    value: i64,
}

#[derive(Message)]
#[reply(i64)]
struct Add(i64);

#[derive(Message)]
#[reply(i64)]
struct Count(u32);

#[derive(Message)]
struct Counted(u32);

#[room(messages(Add, Count), events(Counted), sync_hz = 100)]
impl Room for Counter {}

/// Emits as many events.
impl Handle<Count> for Counter {
    fn handle(&mut self, Count(to): Count, _: &Player, context: &mut Context<Self>) -> Result<i64> {
        (1..=to).for_each(|number| context.emit(&Counted(number)));
        Ok(to.into())
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add(number): Add, _: &Player, _: &mut Context<Self>) -> Result<i64> {
        self.value += number;
        Ok(self.value)
    }
}

fn node() -> Running {
    let config = Config { listen: ([127, 0, 0, 1], 0).into(), shards: 1, ..Config::default() };
    Server::new()
        .room::<Counter>("counter")
        .channel(ChannelRule::new("chat").publish(Access::Anyone))
        .start(config)
        .expect("a free port")
}

pub(crate) fn text(text: &str) -> PfText {
    PfText { data: text.as_ptr(), length: text.len() }
}

pub(crate) fn read(text: PfText) -> String {
    // SAFETY: it comes from the library, and the value or event that it belongs to is current.
    let bytes = unsafe { std::slice::from_raw_parts(text.data, text.length) };
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// The next event of a kind; others are passed over.
pub(crate) fn next(client: PfClient, kind: PfEventKind) -> PfEvent {
    loop {
        let mut event = PfEvent::default();
        // SAFETY: it is a place.
        let code = unsafe { pf_client_next(client, 30_000, &raw mut event) };
        assert_eq!(code, PfCode::Ok, "{}", read(pf_error_message()));
        assert_ne!(event.kind, PfEventKind::None, "nothing came");
        if event.kind == kind {
            return event;
        }
    }
}

#[test]
fn a_client_enters_a_room_sees_its_state_and_asks_it() {
    let node = node();
    let url = format!("tcp://{}", node.local_addr());
    let (mut client, mut request, mut state, mut value, mut number) =
        (PfClient::default(), 0, PfValue::default(), PfValue::default(), 0);
    // SAFETY: all pointers are to places, and all texts outlive the calls.
    unsafe {
        assert_eq!(pf_client_new(text(&url), &raw mut client), PfCode::Ok);
        assert_eq!(pf_client_join(client, text("x"), &raw mut request), PfCode::Usage);
        assert_eq!(pf_client_connect(client), PfCode::Ok);
        next(client, PfEventKind::Connected);
        let nothing = PfText::default();
        assert_eq!(
            pf_client_join_or_create(client, text("counter"), nothing, nothing, &raw mut request),
            PfCode::Ok
        );
        let room = next(client, PfEventKind::Joined).room;
        assert_eq!(pf_room_request(room, text("Add"), text("7"), &raw mut request), PfCode::Ok);
        let reply = next(client, PfEventKind::Reply);
        assert_eq!((reply.request, reply.code), (request, PfCode::Ok));
        assert_eq!(pf_value_i64(reply.value, &raw mut number), PfCode::Ok);
        assert_eq!(number, 7);
        let mut statistics = PfStatistics::default();
        assert_eq!(pf_client_statistics(client, &raw mut statistics), PfCode::Ok);
        assert_eq!(statistics.waiting, 0, "to follow a room is no request");
        while {
            next(client, PfEventKind::State);
            assert_eq!(pf_room_state(room, &raw mut state), PfCode::Ok);
            assert_eq!(pf_value_get(state, text("value"), &raw mut value), PfCode::Ok);
            assert_eq!(pf_value_i64(value, &raw mut number), PfCode::Ok);
            number != 7
        } {}
        assert_eq!(pf_client_close(client), PfCode::Ok);
        assert_eq!(next(client, PfEventKind::Ended).code, PfCode::Closed);
        assert_eq!(pf_client_free(client), PfCode::Ok);
        assert_eq!(pf_client_free(client), PfCode::Freed);
        assert_eq!(pf_room_free(room), PfCode::Freed);
        assert_eq!(pf_value_i64(value, &raw mut number), PfCode::Stale);
    }
    assert_eq!(read(pf_error_message()), "the value is of a tree that is gone");
}

/// A client of a node, connected.
fn connected(node: &Running, set: impl FnOnce(PfClient)) -> PfClient {
    let url = format!("tcp://{}", node.local_addr());
    let mut client = PfClient::default();
    // SAFETY: the client is a place, and the text outlives the call.
    assert_eq!(unsafe { pf_client_new(text(&url), &raw mut client) }, PfCode::Ok);
    set(client);
    assert_eq!(pf_client_connect(client), PfCode::Ok);
    next(client, PfEventKind::Connected);
    client
}

/// All that had come for a channel was reported at once, and while more came, without an end.
#[test]
fn no_more_of_a_channel_is_reported_than_the_program_is_about_to_take() {
    // As many as a session may publish at once.
    const PUBLICATIONS: u64 = 100;
    let node = node();
    let (slow, quick) = (connected(&node, |_| {}), connected(&node, |_| {}));
    let mut request = 0;
    // SAFETY: all pointers are to places, and all texts outlive the calls.
    unsafe {
        let subscribed = pf_client_subscribe(slow, text("chat"), false, 0, 0, &raw mut request);
        assert_eq!(subscribed, PfCode::Ok);
        next(slow, PfEventKind::Subscribed);
        for _ in 0..PUBLICATIONS {
            let published =
                pf_client_publish(quick, text("chat"), text("1"), false, &raw mut request);
            assert_eq!(published, PfCode::Ok);
        }
        for _ in 0..PUBLICATIONS {
            assert_eq!(next(quick, PfEventKind::Reply).code, PfCode::Ok);
        }
        for taken in 1..=PUBLICATIONS {
            assert_eq!(next(slow, PfEventKind::Publication).number, taken);
            let mut statistics = PfStatistics::default();
            assert_eq!(pf_client_statistics(slow, &raw mut statistics), PfCode::Ok);
            let waiting = statistics.publications - taken;
            assert!(waiting < 64, "{waiting} wait");
        }
    }
    assert_eq!((pf_client_free(slow), pf_client_free(quick)), (PfCode::Ok, PfCode::Ok));
}

#[test]
fn missed_events_are_counted() {
    const EVENTS: u64 = 500;
    let node = node();
    let slow = connected(&node, |client| {
        for option in [PfOption::EventsMax, PfOption::EventBytesMax] {
            assert_eq!(pf_client_set_number(client, option as u32, 1), PfCode::Ok);
        }
    });
    let quick = connected(&node, |_| {});
    let join = |client| {
        let (nothing, mut request) = (PfText::default(), 0);
        // SAFETY: the request is a place, and the texts outlive the call.
        let asked = unsafe {
            pf_client_join_or_create(client, text("counter"), nothing, nothing, &raw mut request)
        };
        assert_eq!(asked, PfCode::Ok);
        next(client, PfEventKind::Joined).room
    };
    join(slow);
    let (room, mut request) = (join(quick), 0);
    // SAFETY: the request is a place, and the texts outlive the call.
    let asked = unsafe { pf_room_request(room, text("Count"), text("500"), &raw mut request) };
    assert_eq!(asked, PfCode::Ok);
    while next(quick, PfEventKind::Event).number < EVENTS {}
    let (mut events, mut missed) = (0, 0);
    while events + missed < EVENTS {
        let mut event = PfEvent::default();
        // SAFETY: it is a place.
        assert_eq!(unsafe { pf_client_next(slow, 30_000, &raw mut event) }, PfCode::Ok);
        match event.kind {
            PfEventKind::Event => events += 1,
            PfEventKind::Missed => {
                assert_eq!(event.code, PfCode::Missed);
                missed += event.number;
            }
            kind => assert_ne!(kind, PfEventKind::None, "{events} came, {missed} were missed"),
        }
    }
    assert_eq!(events + missed, EVENTS);
    assert_eq!((pf_client_free(slow), pf_client_free(quick)), (PfCode::Ok, PfCode::Ok));
}

fn packed(bytes: &[u8]) -> PfText {
    PfText { data: bytes.as_ptr(), length: bytes.len() }
}

#[test]
fn replies_in_packed_come_together_and_states_alone() {
    const REQUESTS: i64 = 50;
    let node = node();
    let client = connected(&node, |_| {});
    let (nothing, mut request) = (PfText::default(), 0);
    // SAFETY: all pointers are to places, and all texts outlive the calls.
    unsafe {
        let asked =
            pf_client_join_or_create(client, text("counter"), nothing, nothing, &raw mut request);
        assert_eq!(asked, PfCode::Ok);
        let room = next(client, PfEventKind::Joined).room;
        assert_eq!(pf_client_cork(client, true), PfCode::Ok);
        for _ in 0..REQUESTS {
            // 1 in zigzag.
            let asked = pf_room_request_packed(room, text("Add"), packed(&[2]), &raw mut request);
            assert_eq!(asked, PfCode::Ok);
        }
        let (mut sum, mut together, mut values) = (0, 0, [PfEvent::default(); 8]);
        while sum < REQUESTS {
            let mut count = 0;
            let (events, most) = (values.as_mut_ptr(), values.len());
            let code = pf_client_next_many(client, 30_000, events, most, &raw mut count);
            assert_eq!(code, PfCode::Ok);
            assert!((1..=most).contains(&count), "{count}");
            together = count.max(together);
            for event in &values[..count] {
                if event.kind == PfEventKind::State {
                    assert_eq!(count, 1);
                    continue;
                }
                sum += 1;
                assert_eq!(
                    (event.kind, event.code, event.room),
                    (PfEventKind::Reply, PfCode::Ok, room)
                );
                assert_eq!(event.request, request - (REQUESTS - sum) as u64);
                assert_eq!(event.value, PfValue::default());
                let bytes = std::slice::from_raw_parts(event.bytes.data, event.bytes.length);
                assert_eq!(bytes, [2 * sum as u8]);
            }
        }
        assert_eq!(together, values.len());

        // An error of a request is its answer, and one of a send is returned at once.
        for (bytes, why) in [(&[0x80][..], "at byte 0"), (&[2, 2], "at byte 1")] {
            let asked = pf_room_request_packed(room, text("Add"), packed(bytes), &raw mut request);
            assert_eq!(asked, PfCode::Ok);
            let reply = next(client, PfEventKind::Reply);
            assert_eq!((reply.request, reply.code), (request, PfCode::Failed));
            assert!(read(reply.text).contains(why), "{}", read(reply.text));
            assert_eq!(pf_room_send_packed(room, text("Add"), packed(bytes)), PfCode::Failed);
            assert!(read(pf_error_message()).contains(why), "{}", read(pf_error_message()));
        }

        // Two packed events, each with its bytes.
        assert_eq!(pf_room_set_packed(room, text("Counted"), true), PfCode::Ok);
        assert_eq!(pf_room_set_packed(room, text("Sung"), true), PfCode::NotFound);
        assert_eq!(pf_room_send_packed(room, text("Count"), packed(&[2])), PfCode::Ok);
        for number in 1..=2 {
            let event = next(client, PfEventKind::Event);
            assert_eq!((&*read(event.name), event.value), ("Counted", PfValue::default()));
            let bytes = std::slice::from_raw_parts(event.bytes.data, event.bytes.length);
            assert_eq!(bytes, [number]);
        }
    }
    assert_eq!(pf_client_free(client), PfCode::Ok);
}

#[test]
fn null_and_foreign_handles_and_pointers_are_refused() {
    let mut event = PfEvent::default();
    // SAFETY: the event is a place, and the other pointers are null.
    unsafe {
        for id in [0, 1, u64::MAX] {
            assert_eq!(pf_client_next(PfClient { id }, 0, &raw mut event), PfCode::Handle);
        }
        assert_eq!(pf_client_new(text("tcp://x"), std::ptr::null_mut()), PfCode::Null);
        assert_eq!(
            pf_client_new(PfText { data: std::ptr::null(), length: 3 }, &mut PfClient::default()),
            PfCode::Null
        );
        assert_eq!(pf_client_new(text("nonsense"), &mut PfClient::default()), PfCode::Argument);
    }
    let message = read(pf_error_message());
    assert!(message.contains("nonsense"), "{message}");
}
