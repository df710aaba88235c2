//! HTTP on a connection: order, timeouts, limits, and the way to a WebSocket.

use playfield_wire::Format;

use super::speech::Heard;
use super::world::{Client, World};
use crate::http::{Answer, Call, Hold, Then, Work};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}").into()
}

/// The responses that have come: the status and the body of each.
fn responses(world: &mut World, client: Client) -> Vec<(u16, String)> {
    let text = String::from_utf8(world.raw(client)).unwrap();
    let mut rest = text.as_str();
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\r\n\r\n").expect("a whole head");
        let length = head.split_once("Content-Length: ").map_or(0, |(_, after)| {
            after.split_once("\r\n").map_or(after, |(length, _)| length).parse().unwrap()
        });
        let status = head.split(' ').nth(1).expect("a status").parse().unwrap();
        let (body, next) = after.split_at(length);
        all.push((status, body.to_owned()));
        rest = next;
    }
    all
}

fn statuses(world: &mut World, client: Client) -> Vec<u16> {
    responses(world, client).into_iter().map(|(status, _)| status).collect()
}

/// An answer as the worker writes it.
fn written(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
}

fn answers(calls: &[Call]) -> Vec<Answer> {
    calls.iter().map(|call| call.answer).collect()
}

#[test]
fn pages_and_refusals_are_answered_one_after_the_other() {
    let requests = [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        ("GET /none HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("OPTIONS /r/1 HTTP/1.1\r\nHost: x\r\n\r\n", 204),
        ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET /?a=b HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    ];
    let (bytes, expected): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    let bytes = bytes.concat();
    for pieces in [bytes.len(), 7, 1] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        for piece in bytes.as_bytes().chunks(pieces) {
            world.bytes(client, piece);
        }
        assert_eq!(statuses(&mut world, client), expected);
        assert!(!world.is_over(client));
        assert_eq!(world.counters(0).http_requests, 6);
    }
}

#[test]
fn a_connection_ends_when_the_client_or_an_error_says_so() {
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200),
        ("GET / HTTP/1.0\r\n\r\n", 200),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400),
        (
            "POST /r/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        ("POST /r/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 405),
        ("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 426),
    ] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        // What follows is not answered.
        world.bytes(client, &[request.as_bytes(), GET].concat());
        let text = String::from_utf8(world.raw(client)).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {text:?}");
        assert!(text.contains("\r\nConnection: close"), "{text:?}");
        assert_eq!(text.matches("HTTP/1.1").count(), 1);
        assert!(world.is_over(client));
    }
}

#[test]
fn answers_leave_in_the_order_of_the_requests() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, &[&post("/r/1", "a")[..], GET, &post("/r/2", "b")].concat());
    let calls = world.calls();
    let seen: Vec<_> =
        calls.iter().map(|call| (call.request.param("x"), call.request.body())).collect();
    assert_eq!(seen, [(Some("1"), &b"a"[..]), (Some("2"), &b"b"[..])]);
    let answers = answers(&calls);
    world.answer(answers[1], &written("second"), Then::Done);
    assert!(world.raw(client).is_empty(), "the first is not answered yet");
    world.answer(answers[0], &written("first"), Then::Done);
    let bodies: Vec<_> = responses(&mut world, client).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["first", "a page", "second"]);
    // An answer that comes twice, or to nobody, is nobody's.
    world.answer(answers[0], &written("first"), Then::Done);
    assert!(world.raw(client).is_empty());
}

#[test]
fn http_pipeline_max_requests_wait_at_once_and_the_rest_is_read_later() {
    let mut world = World::new(1, &[("http_pipeline_max", "2")]);
    let client = world.connect(0);
    world.bytes(client, &post("/r/1", "").repeat(3));
    let calls = world.calls();
    assert_eq!(calls.len(), 2);
    world.answer(calls[0].answer, &written("1"), Then::Done);
    let more = world.calls();
    assert_eq!(more.len(), 1);
    world.answer(calls[1].answer, &written("2"), Then::Done);
    world.answer(more[0].answer, &written("3"), Then::Done);
    assert_eq!(statuses(&mut world, client), [200; 3]);
}

#[test]
fn http_requests_max_requests_wait_at_once_and_more_are_refused() {
    let mut world = World::new(1, &[("http_requests_max", "2")]);
    let (one, two) = (world.connect(0), world.connect(0));
    world.bytes(one, &post("/r/1", "").repeat(2));
    world.bytes(two, &post("/r/1", ""));
    let text = String::from_utf8(world.raw(two)).unwrap();
    assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("\r\nRetry-After: 1\r\n"), "{text}");
    assert!(text.contains("http_requests_max: 2 "), "{text}");
    assert_eq!(world.counters(0).http_unavailable, 1);
    // Pages need nobody.
    world.bytes(two, GET);
    assert_eq!(statuses(&mut world, two), [200]);
    drop(world.calls());
    world.bytes(two, &post("/r/1", ""));
    assert_eq!(world.calls().len(), 1);
}

#[test]
fn http_requests_per_address_max_requests_of_an_address_wait_at_once() {
    let mut world = World::new(2, &[("http_requests_per_address_max", "2")]);
    let (one, two) = (world.connect(0), world.connect(1));
    world.bytes(one, &post("/r/1", ""));
    world.bytes(two, &post("/r/1", "").repeat(2));
    let calls = world.calls();
    assert_eq!(calls.len(), 2);
    world.answer(calls[1].answer, &written("1"), Then::Done);
    let text = String::from_utf8(world.raw(two)).unwrap();
    assert!(text.contains("HTTP/1.1 429 ") && text.contains("\r\nRetry-After: 1\r\n"), "{text}");
    assert!(text.contains("http_requests_per_address_max: 2 "), "{text}");
    assert_eq!((world.counters(1).http_too_many, world.counters(1).http_unavailable), (1, 0));
    // Other addresses are served, and pages need no handler.
    let other = world.connect_from([10, 0, 0, 2], 0);
    world.bytes(other, &post("/r/1", ""));
    assert_eq!(world.calls().len(), 1);
    world.bytes(two, GET);
    assert_eq!(statuses(&mut world, two), [200]);
    drop(calls);
    world.bytes(two, &post("/r/1", ""));
    assert_eq!(world.calls().len(), 1);
}

fn is_dropped(call: &mut Call) -> bool {
    let Work::Route { gone, .. } = &mut call.work else { panic!("it is a route") };
    gone.try_recv().is_err_and(|error| error != still())
}

#[test]
fn a_client_that_is_gone_is_noticed_by_the_work() {
    for leaves in [World::vanish, World::reset] {
        let mut world = World::new(1, &[("http_pipeline_max", "2")]);
        let client = world.connect(0);
        world.bytes(client, &post("/r/1", "").repeat(3));
        let mut calls = world.calls();
        assert!(!calls.iter_mut().any(is_dropped));
        leaves(&mut world, client);
        assert!(calls.len() == 2 && calls.iter_mut().all(is_dropped));
        world.answer(calls[0].answer, &written("late"), Then::Done);
        assert!(world.raw(client).is_empty() && world.is_over(client));
    }
}

#[test]
fn a_client_that_closes_its_half_gets_all_answers() {
    for ends in [World::hang_up, World::half_close] {
        let mut world = World::new(1, &[("http_pipeline_max", "2")]);
        let client = world.connect(0);
        world.bytes(client, &[&post("/r/1", "").repeat(2)[..], GET].concat());
        let mut calls = world.calls();
        ends(&mut world, client);
        assert!(!calls.iter_mut().any(is_dropped));
        world.answer(calls[1].answer, &written("second"), Then::Done);
        world.answer(calls[0].answer, &written("first"), Then::Done);
        let bodies: Vec<_> =
            responses(&mut world, client).into_iter().map(|(_, body)| body).collect();
        assert_eq!(bodies[..2], ["first", "second"]);
        world.hang_up(client);
        assert!(world.is_over(client));
    }
}

#[test]
fn a_client_that_closes_its_half_and_waits_is_asked_whether_it_is_there() {
    let mut world = World::new(1, &[("http_answer_timeout_ms", "60000")]);
    let mut ask = |request: &[u8]| {
        let client = world.connect(0);
        world.bytes(client, request);
        let mut call = world.calls().remove(0);
        world.hang_up(client);
        let mut asked = Vec::new();
        for tenth in 1..=100 {
            world.wait(100);
            if !world.raw(client).is_empty() {
                asked.push(tenth);
            }
        }
        assert!(!is_dropped(&mut call));
        world.answer(call.answer, &written("late"), Then::Done);
        assert_eq!(responses(&mut world, client), [(200, "late".to_owned())]);
        assert!(world.is_over(client));
        asked
    };
    let asked = ask(&post("/r/1", ""));
    assert!(asked.len() == 5 && asked[0] <= 7, "ever less often: {asked:?}");
    assert!(ask(b"GET /r/1 HTTP/1.0\r\n\r\n").is_empty(), "it would not understand");
}

#[test]
fn a_request_that_its_client_does_not_complete_gets_no_answer() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, &[&post("/r/1", "")[..], b"POST /r/2 HTTP/1.1\r\nHo"].concat());
    world.hang_up(client);
    let answer = world.calls()[0].answer;
    // Longer than a request may take to come in.
    world.wait(12_000);
    world.raw(client);
    world.answer(answer, &written("done"), Then::Done);
    assert_eq!(responses(&mut world, client), [(200, "done".to_owned())]);
    assert!(world.is_over(client));
}

#[test]
fn an_upgrade_that_the_connection_does_not_name_is_ignored() {
    for request in [
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: Upgrade, keep-alive\r\n\r\n",
    ] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.bytes(client, request.as_bytes());
        assert_eq!(responses(&mut world, client), [(200, "a page".to_owned())], "{request:?}");
        assert!(!world.is_over(client));
    }
}

#[test]
fn empty_lines_may_come_before_the_first_request() {
    for size in [1, 2, 3, 99] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        for piece in [b"\r\n\r\n", GET].concat().chunks(size) {
            world.bytes(client, piece);
        }
        assert_eq!(statuses(&mut world, client), [200]);
        assert!(!world.is_over(client));
    }
}

/// The answer of a channel as long as its sender exists.
fn still() -> tokio::sync::oneshot::error::TryRecvError {
    tokio::sync::oneshot::error::TryRecvError::Empty
}

#[test]
fn a_request_must_be_complete_in_time() {
    for (request, rest) in [
        ("GET / HT", ""),
        ("POST /r/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", ""),
        ("POST /r/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\na\r\n"),
    ] {
        let mut world = World::new(1, &[("http_request_timeout_ms", "1000")]);
        let client = world.connect(0);
        world.bytes(client, request.as_bytes());
        // A byte now and then makes it no later.
        for _ in 0..9 {
            world.wait(100);
            world.bytes(client, rest.as_bytes());
        }
        assert!(world.raw(client).is_empty());
        world.wait(500);
        assert_eq!(statuses(&mut world, client), [408], "{request:?}");
        assert!(world.is_over(client));
    }
}

#[test]
fn an_idle_connection_ends_in_time_and_not_before() {
    let mut world = World::new(1, &[("http_idle_timeout_ms", "2000")]);
    let client = world.connect(0);
    for _ in 0..5 {
        world.bytes(client, GET);
        world.wait(1500);
        assert_eq!(statuses(&mut world, client), [200]);
        assert!(!world.is_over(client));
    }
    world.wait(1100);
    assert!(world.is_over(client) && world.raw(client).is_empty());
}

#[test]
fn a_handler_that_does_not_answer_is_cut_off() {
    let mut world = World::new(1, &[("http_answer_timeout_ms", "1000")]);
    let client = world.connect(0);
    world.bytes(client, &post("/r/1", ""));
    let mut calls = world.calls();
    world.wait(900);
    assert!(world.raw(client).is_empty());
    world.wait(400);
    let (status, body) = responses(&mut world, client).remove(0);
    assert_eq!(status, 503);
    assert!(body.starts_with("http_answer_timeout_ms: "), "{body}");
    assert_eq!(world.counters(0).http_unavailable, 1);
    let Work::Route { gone, .. } = &mut calls[0].work else { panic!("it is a route") };
    assert!(gone.try_recv().is_err_and(|error| error != still()));
    // The connection goes on, without the late answer.
    world.answer(calls[0].answer, &written("late"), Then::Done);
    world.bytes(client, GET);
    assert_eq!(responses(&mut world, client), [(200, "a page".to_owned())]);
}

#[test]
fn an_answer_in_parts_waits_for_its_reader_and_is_cut_if_it_breaks() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, &post("/r/1", ""));
    let answer = world.calls()[0].answer;
    world.answer(answer, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc", Then::More);
    world.bytes(client, GET);
    world.answer(answer, b"def", Then::Done);
    let bodies: Vec<_> = responses(&mut world, client).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["abcdef", "a page"]);

    world.bytes(client, &post("/r/1", "").repeat(2));
    let calls = world.calls();
    world.answer(calls[0].answer, b"", Then::Broken);
    assert_eq!(statuses(&mut world, client), [503], "nothing was sent of it yet");
    world.answer(calls[1].answer, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc", Then::More);
    world.answer(calls[1].answer, b"", Then::Broken);
    assert!(world.is_over(client));
}

#[test]
fn an_answer_that_waits_for_a_slow_reader_is_not_late() {
    let mut world = World::new(1, &[("http_answer_timeout_ms", "1000")]);
    let client = world.connect(0);
    world.takes(client, 0);
    world.bytes(client, &post("/r/1", "").repeat(2));
    let calls = world.calls();
    for call in &calls {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc";
        world.answer(call.answer, head, Then::More);
    }
    for _ in 0..3 {
        world.wait(1000);
        world.takes(client, 1);
    }
    world.takes(client, usize::MAX);
    world.wait(500);
    world.answer(calls[0].answer, b"def", Then::Done);
    world.wait(500);
    world.answer(calls[1].answer, b"def", Then::Done);
    let bodies: Vec<_> = responses(&mut world, client).into_iter().map(|(_, body)| body).collect();
    assert_eq!(bodies, ["abcdef", "abcdef"]);
}

#[test]
fn the_next_part_is_asked_for_when_the_last_is_written() {
    let (pulls, mut pulled) = tokio::sync::mpsc::channel(1);
    let hold = Hold::File { pulls };
    hold.pull();
    hold.pull();
    assert!(pulled.try_recv().is_ok() && pulled.try_recv().is_err(), "once at most");
    drop(hold);
    assert!(pulled.blocking_recv().is_none());
}

#[test]
fn a_client_that_does_not_read_is_dropped_and_one_that_reads_slowly_stays() {
    for reads in [false, true] {
        let mut world = World::new(1, &[("http_request_timeout_ms", "1000")]);
        let client = world.connect(0);
        world.takes(client, 10);
        world.bytes(client, GET);
        for _ in 0..15 {
            world.wait(100);
            world.takes(client, if reads { 5 } else { 0 });
        }
        assert_eq!(world.is_over(client), !reads);
    }
}

#[test]
fn a_client_that_expects_100_hears_it_in_its_turn() {
    let expecting =
        b"POST /r/2 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, expecting);
    assert_eq!(world.raw(client), b"HTTP/1.1 100 Continue\r\n\r\n");
    world.bytes(client, b"ab");
    let first = world.calls()[0].answer;
    world.bytes(client, expecting);
    assert!(world.raw(client).is_empty(), "the answer before it comes first");
    world.answer(first, &written(""), Then::Done);
    assert!(world.raw(client).ends_with(b"\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"));
    world.bytes(client, b"ab");
    assert_eq!(world.calls()[0].request.body(), b"ab");
    // A client that does not wait needs none.
    world.bytes(client, &[&expecting[..], b"ab"].concat());
    let answer = world.calls().len();
    assert_eq!(answer, 1);
}

#[test]
fn a_websocket_may_follow_requests() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, GET);
    assert_eq!(statuses(&mut world, client), [200]);
    world.upgrade(client, Format::Json);
    world.say(client, &super::speech::hello(Format::Json));
    assert!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]));

    // Also behind one that is not answered yet; its frames wait as well.
    let client = world.connect(0);
    let upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let ping = b"\x89\x82\0\0\0\0hi";
    world.bytes(client, &[&post("/r/1", "")[..], upgrade, ping].concat());
    let answer = world.calls()[0].answer;
    assert!(world.raw(client).is_empty());
    world.answer(answer, &written("done"), Then::Done);
    let came = world.raw(client);
    let text = String::from_utf8_lossy(&came);
    assert!(text.contains("\r\n\r\ndoneHTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(came.ends_with(b"\r\n\r\n\x8A\x02hi"), "{text}");
}

#[test]
fn a_shutdown_waits_for_answers() {
    let mut world = World::new(1, &[]);
    let (idle, busy) = (world.connect(0), world.connect(0));
    world.bytes(idle, GET);
    assert_eq!(statuses(&mut world, idle), [200]);
    world.bytes(busy, &post("/r/1", ""));
    let answer = world.calls()[0].answer;
    world.shut_down();
    assert!(world.is_over(idle) && !world.is_over(busy));
    world.bytes(busy, GET);
    world.answer(answer, &written("saved"), Then::Done);
    assert_eq!(responses(&mut world, busy), [(200, "saved".to_owned())]);
    assert!(world.is_over(busy));
}

#[test]
fn bodies_may_be_http_body_bytes_max_long() {
    let mut world = World::new(1, &[("http_body_bytes_max", "5")]);
    let client = world.connect(0);
    world.bytes(client, &post("/r/1", "12345"));
    assert_eq!(world.calls().len(), 1);
    world.bytes(client, &post("/r/1", "123456"));
    assert!(world.calls().is_empty() && !world.is_over(client), "the first is answered first");
    let client = world.connect(0);
    world.bytes(client, &post("/r/1", "123456"));
    assert_eq!(statuses(&mut world, client), [413]);
}
