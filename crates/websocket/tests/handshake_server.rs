//! A server's side of the opening handshake (RFC 6455, 4.2).

use playfield_websocket::handshake::{
    HandshakeError, Head, HeadLimits, Request, TARGET_BYTES_MAX, accept, parse_request, reject,
};
use proptest::{collection::vec, prelude::*};

/// The request of RFC 6455, 1.3, as lines that tests replace.
const LINES: [&str; 8] = [
    "GET /chat?room=1 HTTP/1.1",
    "Host: server.example.com",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Origin: http://example.com",
    "Sec-WebSocket-Protocol: chat, superchat",
    "Sec-WebSocket-Version: 13",
];

fn head(lines: &[&str]) -> String {
    lines.join("\r\n") + "\r\n\r\n"
}

/// The request with that header's line replaced by any number of lines.
fn with(header: &str, lines: &[&str]) -> String {
    let mut all = LINES.to_vec();
    match all.iter().position(|line| line.starts_with(header)) {
        Some(at) => drop(all.splice(at..=at, lines.iter().copied())),
        None => all.extend(lines),
    }
    head(&all)
}

fn parse(text: &str) -> Result<Request<'_>, HandshakeError> {
    match parse_request(text.as_bytes(), &HeadLimits::default())? {
        Head::Complete(request) => Ok(request),
        Head::Partial => panic!("{text:?} is not complete"),
    }
}

fn accepts(text: &str) {
    assert!(
        parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}")).upgrade.is_some(),
        "{text:?}"
    );
}

fn refusal(text: &str) -> HandshakeError {
    match parse(text) {
        Ok(request) => panic!("{request:?} is not rejected"),
        Err(error) => error,
    }
}

#[test]
fn the_request_of_the_rfc() {
    let text = head(&LINES) + "frames";
    let request = parse(&text).unwrap();
    assert_eq!((request.method, request.target), ("GET", "/chat?room=1"));
    assert_eq!(&text[request.head_bytes..], "frames");
    assert_eq!(request.header("ORIGIN"), Some("http://example.com"));
    assert_eq!(request.header("cookie"), None);
    let upgrade = request.upgrade.unwrap();
    assert_eq!(upgrade.subprotocols(), ["chat", "superchat"]);
    let mut out = Vec::new();
    accept(&mut out, &upgrade, Some("chat"), None).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
    );
}

#[test]
fn without_a_subprotocol_none_is_named() {
    let text = head(&LINES);
    let mut out = Vec::new();
    accept(&mut out, &parse(&text).unwrap().upgrade.unwrap(), None, None).unwrap();
    assert!(!String::from_utf8(out).unwrap().contains("Protocol:"));
}

#[test]
fn only_a_subprotocol_that_was_offered_is_selected() {
    let text = head(&LINES);
    let upgrade = parse(&text).unwrap().upgrade.unwrap();
    for name in ["Chat", "", "chat, superchat", "chat\r\nSet-Cookie: a=b"] {
        let mut out = Vec::new();
        let error = accept(&mut out, &upgrade, Some(name), None).unwrap_err();
        assert!(matches!(error, HandshakeError::SubprotocolNotOffered { .. }), "{name:?}: {error}");
        assert_eq!(out, b"", "{name:?}");
    }
}

#[test]
fn a_head_may_arrive_one_byte_at_a_time() {
    let text = head(&LINES);
    for cut in 0..text.len() {
        let parsed = parse_request(&text.as_bytes()[..cut], &HeadLimits::default());
        assert!(matches!(parsed, Ok(Head::Partial)), "{cut} bytes: {parsed:?}");
    }
    accepts(&text);
}

#[test]
fn a_plain_http_request_is_not_an_upgrade() {
    let text = head(&["GET / HTTP/1.1", "Host: a", "Accept: text/html"]);
    let request = parse(&text).unwrap();
    assert_eq!((request.target, &request.upgrade), ("/", &None));
    for line in
        ["Upgrade: h2c", "Upgrade: websocket2", "Upgrade: web, socket", "X-Upgrade: websocket"]
    {
        assert!(parse(&with("Upgrade", &[line])).unwrap().upgrade.is_none(), "{line}");
    }
    assert!(parse("POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").is_ok());
    assert!(parse("GET /health HTTP/1.0\r\n\r\n").is_ok(), "HTTP/1.0 needs no Host");
}

#[test]
fn tokens_are_found_in_lists_in_any_case() {
    accepts(&with("Upgrade", &["upgrade: h2c , WebSocket"]));
    accepts(&with("Upgrade", &["UPGRADE:h2c", "Upgrade:\twebsocket\t"]));
    accepts(&with("Connection", &["connection: keep-alive,,UPGRADE"]));
    accepts(&with("Connection", &["Connection: keep-alive", "Connection: upgrade"]));
}

#[test]
fn the_method_must_be_get() {
    for line in ["POST / HTTP/1.1", "get / HTTP/1.1"] {
        assert_eq!(refusal(&with("GET", &[line])).status(), 400);
    }
}

#[test]
fn the_http_version_must_be_1_1() {
    assert!(parse(&with("GET", &["GET / HTTP/1.0"])).unwrap().upgrade.is_none());
    assert_eq!(refusal(&with("GET", &["GET / HTTP/2.0"])).status(), 400);
}

#[test]
fn the_host_must_be_there_once() {
    assert_eq!(refusal(&with("Host", &[])), HandshakeError::Missing { header: "Host" });
    assert_eq!(refusal(&with("Host", &["Host:"])), HandshakeError::Missing { header: "Host" });
    assert_eq!(
        refusal(&with("Host", &["Host: a", "host: a"])),
        HandshakeError::Repeated { header: "Host" }
    );
    assert_eq!(refusal("GET / HTTP/1.1\r\n\r\n"), HandshakeError::Missing { header: "Host" });
    assert_eq!(
        refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        HandshakeError::Repeated { header: "Host" }
    );
}

#[test]
fn without_the_option_in_connection_the_request_is_plain_http() {
    for lines in
        [&[][..], &["Connection: keep-alive"], &["Connection: upgraded"], &["Connection: up grade"]]
    {
        assert!(parse(&with("Connection", lines)).unwrap().upgrade.is_none(), "{lines:?}");
    }
}

#[test]
fn the_key_must_be_sixteen_bytes_in_base64_once() {
    let key = "Sec-WebSocket-Key";
    accepts(&with(key, &["Sec-WebSocket-Key:   AAAAAAAAAAAAAAAAAAAAAA==  "]));
    // Trailing bits after the sixteenth byte are ignored.
    accepts(&with(key, &["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAB=="]));
    assert_eq!(refusal(&with(key, &[])), HandshakeError::Missing { header: key });
    assert_eq!(
        refusal(&with(key, &[LINES[4], LINES[4]])),
        HandshakeError::Repeated { header: key }
    );
    for value in [
        "",
        "AAAAAAAAAAAAAAAAAAAAAA",       // no padding
        "AAAAAAAAAAAAAAAAAAAA",         // 15 bytes
        "AAAAAAAAAAAAAAAAAAAAAAA=",     // 17 bytes
        "AAAAAAAAAAAAAAAAAAAAAAAA",     // 18 bytes
        "AAAAAAAAAAAAAAAAAAAAAAAAAA==", // 19 bytes
        "AAAAAAAAAA*AAAAAAAAAAA==",
        "AAAAAAAAAA-_AAAAAAAAAA==",
        "AAAAAAAAAA AAAAAAAAAAA==",
        "AAAAAAAAAAAAAAAAAAAA====",
    ] {
        let error = refusal(&with(key, &[&format!("Sec-WebSocket-Key: {value}")]));
        assert_eq!(error, HandshakeError::Invalid { what: key, value: value.to_owned() });
    }
}

#[test]
fn the_version_must_be_13_once() {
    let version = "Sec-WebSocket-Version";
    for (lines, value) in [
        (&["Sec-WebSocket-Version: 8"][..], "8"),
        (&["Sec-WebSocket-Version: 13, 8"], "13, 8"),
        (&["Sec-WebSocket-Version: 013"], "013"),
        (&[], ""),
    ] {
        let error = refusal(&with(version, lines));
        assert_eq!(error, HandshakeError::UnsupportedVersion { value: value.to_owned() });
        assert_eq!(error.status(), 426);
    }
    assert_eq!(
        refusal(&with(version, &[LINES[7], LINES[7]])),
        HandshakeError::Repeated { header: version }
    );
}

#[test]
fn the_origin_may_be_there_once() {
    for (lines, origin) in [
        (&[][..], None),
        (&["Origin:"], Some(&b""[..])),
        (&["origin: null"], Some(b"null")),
        (&["Origin: http://caf\u{e9}"], Some("http://caf\u{e9}".as_bytes())),
    ] {
        let text = with("Origin", lines);
        assert_eq!(parse(&text).unwrap().upgrade.unwrap().origin(), origin, "{lines:?}");
    }
    let error = refusal(&with("Origin", &["Origin: http://a", "Origin: http://b"]));
    assert_eq!(error, HandshakeError::Repeated { header: "Origin" });
}

#[test]
fn subprotocols_are_tokens_over_several_lines() {
    let text = with(
        "Sec-WebSocket-Protocol",
        &["Sec-WebSocket-Protocol: a,, b", "Sec-WebSocket-Protocol: c"],
    );
    assert_eq!(parse(&text).unwrap().upgrade.unwrap().subprotocols(), ["a", "b", "c"]);
    for value in ["a b", "a;b", "\"a\"", "caf\u{e9}"] {
        let error = refusal(&with(
            "Sec-WebSocket-Protocol",
            &[&format!("Sec-WebSocket-Protocol: {value}")],
        ));
        assert!(matches!(error, HandshakeError::Invalid { .. }), "{value}: {error}");
    }
}

#[test]
fn a_websocket_request_has_no_body() {
    accepts(&with("Content-Length", &["Content-Length: 0"]));
    assert_eq!(refusal(&with("Content-Length", &["Content-Length: 5"])), HandshakeError::Body);
    assert_eq!(
        refusal(&with("Transfer-Encoding", &["Transfer-Encoding: chunked"])),
        HandshakeError::Body
    );
    assert_eq!(
        refusal(&with("Content-Length", &["Content-Length: 0", "Content-Length: 5"])),
        HandshakeError::Repeated { header: "Content-Length" }
    );
}

#[test]
fn ambiguous_heads_are_rejected() {
    for text in [
        head(&LINES).replace("\r\n", "\n"),
        with("Origin", &["Origin: a\nX-Admin: yes"]),
        with("Origin", &["Origin: a\rX-Admin: yes"]),
        with("Origin", &["Origin: a\r\r\nX-Admin: yes"]),
        with("Origin", &["Origin: a\0b"]),
        with("Origin", &["Origin : a"]),
        with("Origin", &["Origin: a\r\n folded"]),
        with("Origin", &[": a"]),
        with("Origin", &["no colon"]),
        with("Origin", &["Bad Name: a"]),
        with("GET", &["GET  / HTTP/1.1"]),
        with("GET", &["GET / HTTP/1.1 "]),
        with("GET", &["GET /a b HTTP/1.1"]),
        with("GET", &["GET /a\tb HTTP/1.1"]),
        with("GET", &["GET / HTTP/1.1\nX-Admin: yes"]),
        "\n".to_owned() + &head(&LINES),
    ] {
        let error = refusal(&text);
        assert!(matches!(error, HandshakeError::Malformed { .. }), "{text:?}: {error}");
        assert_eq!(error.status(), 400);
    }
}

#[test]
fn invalid_http_is_rejected_immediately() {
    for bytes in [&b"\x16\x03\x01"[..], b"\x00\x01\x02", b"GET\x00", b"GET / FTP"] {
        assert!(parse_request(bytes, &HeadLimits::default()).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_head_over_the_limit_is_rejected() {
    let limits = HeadLimits { head_bytes_max: head(&LINES).len(), ..HeadLimits::default() };
    let at_limit = head(&LINES) + "and frames after it";
    assert!(matches!(parse_request(at_limit.as_bytes(), &limits), Ok(Head::Complete(_))));
    let over = head(&LINES).replace("chat?", "chat??");
    let error = parse_request(over.as_bytes(), &limits).unwrap_err();
    assert_eq!(error, HandshakeError::HeadTooLarge { bytes_max: limits.head_bytes_max });
    assert_eq!(error.status(), 431);
}

#[test]
fn a_head_without_end_is_rejected() {
    let too_large = HandshakeError::HeadTooLarge { bytes_max: 8192 };
    for (start, expected) in [
        ("GET / HTTP/1.1\r\nX: ", &too_large),
        ("", &too_large),
        ("GET /", &HandshakeError::TargetTooLong),
        ("\r\n\r\n\r\n", &too_large),
    ] {
        let mut endless = start.to_owned();
        while endless.len() < 8191 {
            endless.push_str(if start.starts_with('\r') { "\r\n" } else { "aa" });
        }
        endless.truncate(8191);
        assert!(
            matches!(parse_request(endless.as_bytes(), &HeadLimits::default()), Ok(Head::Partial)),
            "{start:?}"
        );
        endless.push(if start.starts_with('\r') { '\n' } else { 'a' });
        let error = parse_request(endless.as_bytes(), &HeadLimits::default()).unwrap_err();
        assert_eq!(error, *expected, "{start:?}");
    }
}

#[test]
fn a_target_over_the_limit_is_rejected_whatever_the_head_limit() {
    let limits = HeadLimits { head_bytes_max: 1 << 16, ..HeadLimits::default() };
    for (extra, is_taken) in [(0, true), (1, false)] {
        let target = "/".to_owned() + &"x".repeat(TARGET_BYTES_MAX - 1 + extra);
        let whole = with("GET", &[&format!("GET {target} HTTP/1.1")]);
        let cut = &whole[..target.len() + 20];
        for text in [&whole, cut] {
            match parse_request(text.as_bytes(), &limits) {
                Ok(_) => assert!(is_taken),
                Err(error) => {
                    assert_eq!((error.status(), is_taken), (414, false));
                    assert_eq!(error, HandshakeError::TargetTooLong);
                }
            }
        }
    }
    let mut out = Vec::new();
    reject(&mut out, 414, "too long");
    assert!(out.starts_with(b"HTTP/1.1 414 URI Too Long\r\n"));
}

#[test]
fn more_headers_than_the_limit_are_rejected() {
    let mut lines = LINES.to_vec();
    lines.resize(65, "X: y");
    accepts(&head(&lines));
    lines.push("X: y");
    let error = refusal(&head(&lines));
    assert_eq!(error, HandshakeError::TooManyHeaders { headers_max: 64 });
    assert_eq!(error.status(), 431);
}

#[test]
fn errors_show_little_of_what_was_sent() {
    let long =
        format!("Sec-WebSocket-Key: {}", "\u{1b}[31m".repeat(50).replace('\u{1b}', "\u{e9}"));
    let shown = refusal(&with("Sec-WebSocket-Key", &[&long])).to_string();
    assert!(shown.len() < 400 && shown.is_ascii(), "{shown}");
}

#[test]
fn a_rejection_is_a_complete_response() {
    let mut out = Vec::new();
    reject(&mut out, 403, "not from here");
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 13\r\n\r\nnot from here"
    );
}

#[test]
fn rejecting_a_version_names_the_supported_one() {
    let mut out = Vec::new();
    reject(&mut out, 426, "");
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("HTTP/1.1 426 Upgrade Required\r\n"));
    assert!(text.contains("\r\nSec-WebSocket-Version: 13\r\n"));
    assert!(text.contains("\r\nUpgrade: websocket\r\n"));
}

#[test]
fn a_rejection_is_always_an_error() {
    for (status, line) in [
        (0, "HTTP/1.1 500 Internal Server Error"),
        (101, "HTTP/1.1 500 Internal Server Error"),
        (204, "HTTP/1.1 500 Internal Server Error"),
        (u16::MAX, "HTTP/1.1 500 Internal Server Error"),
        (418, "HTTP/1.1 418 Client Error"),
        (599, "HTTP/1.1 599 Server Error"),
    ] {
        let mut out = Vec::new();
        reject(&mut out, status, "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
        let text = String::from_utf8(out).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.lines().next(), Some(line));
        assert_eq!(body, "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "the reason is only in the body");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..300)) {
        let _ = parse_request(&bytes, &HeadLimits::default());
    }

    #[test]
    fn a_request_with_one_byte_changed_does_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = head(&LINES).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(Head::Complete(request)) = parse_request(&bytes, &HeadLimits::default()) {
            prop_assert!(request.head_bytes <= bytes.len());
        }
    }
}
