//! HTTP that two readers may understand differently, as a proxy could pass it on, and connections
//! that change hands at inconvenient moments.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use playfield_server::{Running, Server};

use crate::common::tls::{client as tls_client, trusting_node};
use crate::common::{PATIENCE, config, until};

const GET: &str = "GET /good HTTP/1.1\r\nHost: x\r\n\r\n";
const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
/// A ping in a WebSocket frame, and the pong that answers it.
const PING: &[u8] = b"\x89\x82\0\0\0\0hi";
const PONG: &[u8] = b"\x8A\x02hi";

/// A node, and how often the handler was called that nobody asks for.
fn node(settings: &[(&str, &str)]) -> (Running, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let smuggled = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        std::future::ready("smuggled")
    };
    let server = Server::new(config(settings))
        .page("/good", "text/plain", "a page")
        .route("POST", "/echo", async |body: String| body)
        .route("GET", "/smuggled", smuggled);
    (server.start().unwrap(), calls)
}

fn connect(running: &Running) -> TcpStream {
    let stream = TcpStream::connect(running.local_addr()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads until the node ends the connection.
fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    // The node may reset what it has not read.
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads one page.
fn page(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"a page") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.extend(byte);
    }
    String::from_utf8(text).unwrap()
}

fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)).collect()
}

#[test]
fn nothing_is_smuggled_behind_a_request_that_two_readers_understand_differently() {
    let (running, calls) = node(&[]);
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    let long = "x".repeat(20_000);
    for (name, request) in [
        ("a length beside a coding", {
            let length = 5 + hidden.len();
            format!(
                "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{chunked}\r\n0\r\n\r\n"
            )
        }),
        ("a coding beside a length", {
            let length = 5 + hidden.len();
            format!(
                "POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}Content-Length: {length}\r\n\r\n0\r\n\r\n"
            )
        }),
        (
            "two lengths",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n"
                .into(),
        ),
        (
            "a list of lengths",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 9\r\n\r\n".into(),
        ),
        (
            "a length with a sign",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n".into(),
        ),
        (
            "a coding that is none",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n".into(),
        ),
        (
            "a coding behind chunks",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"
                .into(),
        ),
        (
            "a coding in HTTP/1.0",
            format!("POST /echo HTTP/1.0\r\nConnection: keep-alive\r\n{chunked}\r\n0\r\n\r\n"),
        ),
        ("a folded header", "GET /good HTTP/1.1\r\nHost: x\r\nX: a\r\n b: c\r\n\r\n".into()),
        ("a space before the colon", "GET /good HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n".into()),
        ("a carriage return alone", "GET /good HTTP/1.1\r\nHost: x\rX: a\r\n\r\n".into()),
        ("a header with a zero", "GET /good HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n".into()),
        ("two hosts", "GET /good HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n".into()),
        ("no host", "GET /good HTTP/1.1\r\n\r\n".into()),
        (
            "a chunk that is longer than it says",
            format!("POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}\r\n1\r\nabc\r\n0\r\n\r\n"),
        ),
        (
            "a chunk whose size is no number",
            format!("POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}\r\n0x1\r\na\r\n0\r\n\r\n"),
        ),
        (
            "a chunk with an extension without end",
            format!("POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}\r\n1;{long}\r\na\r\n0\r\n\r\n"),
        ),
        (
            "a chunk with a line of 257 bytes",
            format!(
                "POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}\r\n1;{}\r\na\r\n0\r\n\r\n",
                &long[..253]
            ),
        ),
    ] {
        for kept in [false, true] {
            let mut stream = connect(&running);
            if kept {
                stream.write_all(GET.as_bytes()).unwrap();
                page(&mut stream);
            }
            // The node may end the connection before all is written.
            let _ = stream.write_all(format!("{request}{hidden}").as_bytes());
            let _ = stream.shutdown(Shutdown::Write);
            let text = rest(&mut stream);
            let answered = statuses(&text);
            assert!(answered.len() <= 1, "{name}, kept: {kept}: {text}");
            let is_refused = answered.first().is_none_or(|status| status.starts_with('4'));
            assert!(is_refused, "{name}, kept: {kept}: {text}");
            assert_eq!(calls.load(Ordering::Relaxed), 0, "{name}, kept: {kept}");
        }
    }
    let mut stream = connect(&running);
    stream.write_all(GET.as_bytes()).unwrap();
    page(&mut stream);
}

/// A shard reads the first head of a connection, the control thread all others.
#[test]
fn later_heads_are_refused_as_the_first_one_is() {
    let tls: &[(&str, &str)] = &[("tls.self_signed", "true")];
    let chunked = "Transfer-Encoding: chunked\r\n";
    let headers: String = (0..69).map(|number| format!("X-{number}: y\r\n")).collect();
    let long = "x".repeat(8_050);
    let longer = "x".repeat(20_000);
    for (request, status, what) in [
        (
            format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n{chunked}\r\n"),
            "400",
            "Content-Length beside Transfer-Encoding",
        ),
        (
            format!("POST /echo HTTP/1.1\r\nHost: x\r\n{chunked}Content-Length: 5\r\n\r\n"),
            "400",
            "Content-Length beside Transfer-Encoding",
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx"
                .into(),
            "400",
            "2 Content-Length headers",
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\nx".into(),
            "400",
            "\"1, 1\"",
        ),
        (
            format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", u64::MAX),
            "413",
            "18446744073709551615 bytes are too many",
        ),
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n".into(),
            "413",
            "99999999999999999999 bytes are too many",
        ),
        ("GET /good HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n".into(), "400", "Host"),
        ("GET /good HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n".into(), "400", "malformed"),
        ("GET /good HTTP/1.1\nHost: x\n\n".into(), "400", "a line feed without a carriage"),
        ("GET /good HTTP/1.1\r\nHost: x\nX: y\r\n\r\n".into(), "400", "a line feed without"),
        (format!("GET /good HTTP/1.1\r\nHost: x\r\n{headers}\r\n"), "431", "64 headers"),
        (format!("GET /good HTTP/1.1\r\nHost: x\r\nX: {longer}\r\n\r\n"), "431", "8192 bytes"),
        (format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), "414", "8000 bytes"),
        (format!("GET /{longer} HTTP/1.1\r\nHost: x\r\n\r\n"), "414", "8000 bytes"),
        ("GET /good HTTP/1.1\r\nHost: a b\r\n\r\n".into(), "400", "\"a b\""),
        ("GET /good HTTP/1.1\r\nHost: a@b\r\n\r\n".into(), "400", "\"a@b\""),
        ("GET /good HTTP/1.1\r\n\r\n".into(), "400", "Host is missing"),
        ("GET /good HTTP/1.1\r\nHost : x\r\n\r\n".into(), "400", "malformed: a header name"),
    ] {
        for settings in [&[], tls] {
            let (running, _) = node(settings);
            let answers = ["", GET].map(|before| {
                let mut stream = connect(&running);
                let text = format!("{before}{request}");
                if settings.is_empty() {
                    // In one piece with the request before. The node may end the connection before
                    // all is written.
                    let _ = stream.write_all(text.as_bytes());
                    return rest(&mut stream);
                }
                let mut client = tls_client(&trusting_node(&running));
                let mut stream = rustls::Stream::new(&mut client, &mut stream);
                let mut came = Vec::new();
                if !before.is_empty() {
                    stream.write_all(before.as_bytes()).unwrap();
                    came.extend(page(&mut stream).into_bytes());
                }
                let _ = stream.write_all(request.as_bytes());
                let _ = stream.read_to_end(&mut came);
                String::from_utf8(came).unwrap()
            });
            let [first, later] = answers;
            assert_eq!(statuses(&first), [status], "{request}: {first}");
            assert!(first.contains(what), "{request}: {first}");
            assert_eq!(statuses(&later), ["200", status], "{request}: {later}");
            let (_, answer) = later.split_once("a page").unwrap();
            assert_eq!(answer, first, "{request}");
        }
    }
}

#[test]
fn requests_behind_each_other_end_where_their_heads_say() {
    let (running, calls) = node(&[]);
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    let length = hidden.len();
    let posts = format!(
        "\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{hidden}\
         POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    );
    let last = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\nabc\r\n0\r\n\r\n";
    let all = format!("{GET}{posts}{GET}{posts}{last}{hidden}");
    for pieces in [1, 3, 1_000, usize::MAX] {
        let mut stream = connect(&running);
        for piece in all.as_bytes().chunks(all.len().min(pieces)) {
            // The connection ends with the answer to a request in chunks.
            let _ = stream.write_all(piece);
        }
        let text = rest(&mut stream);
        assert_eq!(statuses(&text), ["200"; 7], "{pieces}: {text}");
        assert_eq!((text.matches("a page").count(), text.matches(hidden).count()), (2, 2));
        assert!(text.ends_with("abc"), "{text}");
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn what_proxies_may_send_is_understood() {
    let (running, _) = node(&[]);
    for (request, expected) in [
        // An absolute target, whose path counts.
        (
            "GET http://other.example/good HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            "a page",
        ),
        // Chunks with short extensions and a trailer.
        (
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
             3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX-Trailer: y\r\n\r\n",
            "abcde",
        ),
        ("\r\nGET /good HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "a page"),
    ] {
        for kept in [false, true] {
            let mut stream = connect(&running);
            if kept {
                stream.write_all(GET.as_bytes()).unwrap();
                page(&mut stream);
            }
            stream.write_all(request.as_bytes()).unwrap();
            let text = rest(&mut stream);
            assert!(text.starts_with("HTTP/1.1 200 ") && text.ends_with(expected), "{text}");
        }
    }
    for (request, status) in [
        ("CONNECT x:80 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "400"),
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "400"),
        ("TRACE /good HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"),
        ("GET /%0d%0aSet-Cookie:%20a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "404"),
    ] {
        let mut stream = connect(&running);
        stream.write_all(GET.as_bytes()).unwrap();
        page(&mut stream);
        stream.write_all(request.as_bytes()).unwrap();
        let text = rest(&mut stream);
        assert_eq!(statuses(&text), [status], "{request}: {text}");
        let says = "the target of the request is not a path";
        assert_eq!(text.contains(says), status == "400", "{request}: {text}");
        assert!(!text.to_ascii_lowercase().contains("set-cookie"), "{text}");
    }
}

/// While a request is answered, the node reads ahead: nothing of a body may be lost by that.
#[test]
fn a_body_arrives_whole_however_it_is_cut() {
    let (running, _) = node(&[]);
    let mut stream = connect(&running);
    let text = "0123456789".repeat(2_000);
    for pieces in [1_000, 4_095, 4_096, 4_097, 20_000] {
        let length = text.len();
        let head = format!("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        for piece in text.as_bytes().chunks(pieces) {
            stream.write_all(piece).unwrap();
            std::thread::yield_now();
        }
        let mut came = Vec::new();
        while !came.ends_with(text.as_bytes()) {
            let mut chunk = [0; 8192];
            let bytes = stream.read(&mut chunk).unwrap();
            assert!(bytes > 0, "the connection goes on");
            came.extend_from_slice(&chunk[..bytes]);
        }
        assert!(came.starts_with(b"HTTP/1.1 200 "));
    }
}

#[test]
fn a_websocket_may_follow_requests_on_one_connection() {
    for own_tables in [false, true] {
        if own_tables && !cfg!(target_os = "linux") {
            continue;
        }
        let tables = if own_tables { "per_shard" } else { "shared" };
        let (running, _) = node(&[("threads.descriptors", tables)]);
        for pieces in [1, usize::MAX] {
            let mut stream = connect(&running);
            let all = [format!("{GET}{GET}{UPGRADE}").as_bytes(), PING].concat();
            for piece in all.chunks(all.len().min(pieces)) {
                stream.write_all(piece).unwrap();
            }
            page(&mut stream);
            page(&mut stream);
            let mut came = Vec::new();
            while !came.ends_with(PONG) {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                came.extend(byte);
            }
            assert!(came.starts_with(b"HTTP/1.1 101 "), "{:?}", String::from_utf8_lossy(&came));
            until(&running, |running| running.stats().total().connections == 1);
            drop(stream);
            until(&running, |running| running.stats().total().connections == 0);
        }
    }
}

#[test]
fn a_tls_connection_is_handed_over_in_the_middle_of_a_record() {
    let (running, _) = node(&[("tls.self_signed", "true")]);
    let mut client = tls_client(&trusting_node(&running));
    let mut stream = connect(&running);
    client.complete_io(&mut stream).unwrap();
    let mut sealed = |text: &str| {
        client.writer().write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        bytes
    };
    let (first, second, third) = (sealed(GET), sealed(GET), sealed(UPGRADE));
    let cut = second.len() / 2;
    stream.write_all(&[&first[..], &second[..cut]].concat()).unwrap();
    // The first answer says that it was handed over.
    let mut tls = rustls::Stream::new(&mut client, &mut stream);
    page(&mut tls);
    tls.sock.write_all(&[&second[cut..], &third[..7]].concat()).unwrap();
    page(&mut tls);
    // And back, in the middle of another.
    tls.sock.write_all(&third[7..]).unwrap();
    let mut head = [0; 13];
    tls.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 101 ");
}

#[test]
fn a_thousand_half_sent_heads_delay_nobody_and_end_in_time() {
    let (running, _) =
        node(&[("http.request_timeout", "3000ms"), ("limits.connections.total", "3000")]);
    let halves = ["GET /good HTTP/1.1\r\nX: ", "POST /echo HTTP/1.1\r\nHost: x\r\n"];
    let mut silent: Vec<_> = (0..1_000)
        .map(|number| {
            let mut stream = connect(&running);
            if number % 4 == 3 {
                // On a connection that was of use.
                stream.write_all(GET.as_bytes()).unwrap();
                page(&mut stream);
            }
            stream.write_all(halves[number % 2].as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut stream = connect(&running);
    stream.write_all(GET.as_bytes()).unwrap();
    page(&mut stream);
    for (number, stream) in silent.iter_mut().enumerate() {
        let text = rest(stream);
        let expected: &[&str] = if number % 4 == 3 { &[] } else { &["408"] };
        assert_eq!(statuses(&text), expected, "{number}: {text}");
    }
    until(&running, |running| running.stats().total().connections <= 1);
}
