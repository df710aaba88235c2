//! A client's side of the opening handshake (RFC 6455, 4.1).

use playfield_websocket::handshake::{
    ClientHandshake, HandshakeError, Head, HeadLimits, Response, accept, parse_request, reject,
};
use proptest::{collection::vec, prelude::*};

/// The response of RFC 6455, 1.3, as lines that tests replace.
const LINES: [&str; 5] = [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    "Sec-WebSocket-Protocol: chat",
];

fn with(header: &str, lines: &[&str]) -> String {
    let mut all = LINES.to_vec();
    match all.iter().position(|line| line.starts_with(header)) {
        Some(at) => drop(all.splice(at..=at, lines.iter().copied())),
        None => all.extend(lines),
    }
    all.join("\r\n") + "\r\n\r\n"
}

fn handshake() -> ClientHandshake {
    ClientHandshake::new(
        "a.example:81",
        "/chat?x",
        *b"the sample nonce",
        &[],
        &["chat", "superchat"],
    )
    .unwrap()
}

fn parse(text: &str) -> Result<Option<String>, HandshakeError> {
    match handshake().parse_response(text.as_bytes(), &HeadLimits::default())? {
        Response::Complete { subprotocol, .. } => Ok(subprotocol.map(str::to_owned)),
        Response::Partial => panic!("{text:?} is not complete"),
    }
}

fn refusal(text: &str) -> HandshakeError {
    parse(text).unwrap_err()
}

#[test]
fn the_request_has_what_the_rfc_requires() {
    let handshake = ClientHandshake::new(
        "a.example:81",
        "/chat?x",
        *b"the sample nonce",
        &[("Origin", "http://b.example"), ("Authorization", "Bearer x y")],
        &["chat", "superchat"],
    )
    .unwrap();
    assert_eq!(
        std::str::from_utf8(handshake.request()).unwrap(),
        "GET /chat?x HTTP/1.1\r\nHost: a.example:81\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Protocol: chat, superchat\r\nOrigin: http://b.example\r\nAuthorization: Bearer x y\r\n\r\n"
    );
}

#[test]
fn client_and_server_agree() {
    let handshake = handshake();
    let Ok(Head::Complete(request)) = parse_request(handshake.request(), &HeadLimits::default())
    else {
        panic!("the server rejects the client's request");
    };
    assert_eq!(request.head_bytes, handshake.request().len());
    let upgrade = request.upgrade.unwrap();
    for subprotocol in [None, Some("superchat")] {
        let mut out = Vec::new();
        accept(&mut out, &upgrade, subprotocol, None).unwrap();
        let head_bytes = out.len();
        out.extend_from_slice(b"\x81\x00");
        let response = handshake.parse_response(&out, &HeadLimits::default());
        assert_eq!(response, Ok(Response::Complete { head_bytes, subprotocol, deflate: None }));
    }
    let mut out = Vec::new();
    reject(&mut out, 403, "no");
    let response = handshake.parse_response(&out, &HeadLimits::default());
    assert_eq!(response, Err(HandshakeError::Refused { status: 403 }));
}

#[test]
fn a_response_may_arrive_one_byte_at_a_time() {
    let text = with("", &[LINES[0]]);
    for cut in 0..text.len() {
        let response = handshake().parse_response(&text.as_bytes()[..cut], &HeadLimits::default());
        assert_eq!(response, Ok(Response::Partial), "{cut} bytes");
    }
    assert_eq!(parse(&text), Ok(Some("chat".to_owned())));
}

#[test]
fn the_status_must_be_101() {
    for (line, status) in [
        ("HTTP/1.1 200 OK", 200),
        ("HTTP/1.1 302 Found", 302),
        ("HTTP/1.1 426 Upgrade Required", 426),
    ] {
        let error = refusal(&with("HTTP", &[line]));
        assert_eq!(error, HandshakeError::Refused { status });
        assert_eq!(error.status(), status);
    }
    assert_eq!(
        refusal(&with("HTTP", &["HTTP/1.0 101 Switching Protocols"])),
        HandshakeError::HttpTooOld
    );
}

#[test]
fn the_upgrade_must_be_websocket_once() {
    assert!(parse(&with("Upgrade", &["upgrade: WebSocket"])).is_ok());
    assert_eq!(refusal(&with("Upgrade", &[])), HandshakeError::Missing { header: "Upgrade" });
    assert_eq!(
        refusal(&with("Upgrade", &[LINES[1], LINES[1]])),
        HandshakeError::Repeated { header: "Upgrade" }
    );
    for value in ["h2c", "websocket, h2c", ""] {
        let error = refusal(&with("Upgrade", &[&format!("Upgrade: {value}")]));
        assert_eq!(error, HandshakeError::Invalid { what: "Upgrade", value: value.to_owned() });
    }
}

#[test]
fn the_connection_must_name_upgrade() {
    assert!(parse(&with("Connection", &["connection: keep-alive, UPGRADE"])).is_ok());
    for lines in [&[][..], &["Connection: close"]] {
        let error = refusal(&with("Connection", lines));
        assert_eq!(error, HandshakeError::Missing { header: "Connection: Upgrade" });
    }
}

#[test]
fn the_accept_must_match_the_key_once() {
    let header = "Sec-WebSocket-Accept";
    assert!(
        parse(&with(header, &["sec-websocket-accept: \t s3pPLMBiTxaQ9kYGzzhZRbK+xOo= "])).is_ok()
    );
    assert_eq!(refusal(&with(header, &[])), HandshakeError::Missing { header });
    assert_eq!(refusal(&with(header, &[LINES[3], LINES[3]])), HandshakeError::Repeated { header });
    for value in ["", "S3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "dGhlIHNhbXBsZSBub25jZQ=="] {
        let error = refusal(&with(header, &[&format!("Sec-WebSocket-Accept: {value}")]));
        assert_eq!(error, HandshakeError::AcceptMismatch, "{value}");
    }
}

#[test]
fn an_extension_was_never_offered() {
    let line = "Sec-WebSocket-Extensions: permessage-deflate";
    let error = refusal(&with("Sec-WebSocket-Extensions", &[line]));
    assert_eq!(
        error,
        HandshakeError::ExtensionNotOffered { value: "permessage-deflate".to_owned() }
    );
}

#[test]
fn the_subprotocol_must_be_one_that_was_offered_once() {
    let header = "Sec-WebSocket-Protocol";
    assert_eq!(parse(&with(header, &[])), Ok(None));
    assert_eq!(
        parse(&with(header, &["Sec-WebSocket-Protocol: superchat"])),
        Ok(Some("superchat".to_owned()))
    );
    assert_eq!(refusal(&with(header, &[LINES[4], LINES[4]])), HandshakeError::Repeated { header });
    for value in ["", "Chat", "chat, superchat", "other"] {
        let error = refusal(&with(header, &[&format!("Sec-WebSocket-Protocol: {value}")]));
        assert_eq!(error, HandshakeError::SubprotocolNotOffered { value: value.to_owned() });
    }
}

#[test]
fn a_malformed_response_is_rejected() {
    for text in [
        with("", &[LINES[0]]).replace("\r\n", "\n"),
        with("Upgrade", &["Upgrade: websocket\nX: y"]),
        with("Upgrade", &["Upgrade: websocket\rX: y"]),
        with("Upgrade", &["Upgrade : websocket"]),
        with("HTTP", &["HTTP/1.1 1x1 Switching Protocols"]),
        "\x16\x03\x01".to_owned(),
    ] {
        let error = refusal(&text);
        assert!(matches!(error, HandshakeError::Malformed { .. }), "{text:?}: {error}");
    }
}

#[test]
fn a_response_over_the_limits_is_rejected() {
    let text = with("", &[LINES[0]]);
    let at_limit = HeadLimits { head_bytes_max: text.len(), headers_max: 4 };
    assert!(handshake().parse_response(text.as_bytes(), &at_limit).is_ok());
    let shorter = HeadLimits { head_bytes_max: text.len() - 1, ..at_limit };
    let error = handshake().parse_response(text.as_bytes(), &shorter).unwrap_err();
    assert_eq!(error, HandshakeError::HeadTooLarge { bytes_max: text.len() - 1 });
    let fewer = HeadLimits { headers_max: 3, ..at_limit };
    let error = handshake().parse_response(text.as_bytes(), &fewer).unwrap_err();
    assert_eq!(error, HandshakeError::TooManyHeaders { headers_max: 3 });
}

#[test]
fn nothing_can_be_injected_into_the_request() {
    let key = [0; 16];
    let host = |host| ClientHandshake::new(host, "/", key, &[], &[]);
    let target = |target| ClientHandshake::new("a", target, key, &[], &[]);
    let header = |name, value| ClientHandshake::new("a", "/", key, &[(name, value)], &[]);
    let subprotocols = |names: &[&str]| ClientHandshake::new("a", "/", key, &[], names);

    assert!(
        host("[::1]:80").is_ok()
            && target("/?q=%20").is_ok()
            && subprotocols(&["a.b", "c"]).is_ok()
    );
    assert!(header("X-A", "tabs\tand spaces, ünïcode").is_ok());
    for result in [
        host(""),
        host("a\r\nX: y"),
        host("a b"),
        host("ü"),
        target(""),
        target("chat"),
        target("/ HTTP/1.1\r\nX: y\r\n"),
        target("/a b"),
        target("/a#b"),
        target("/ü"),
        header("", "a"),
        header("X:", "a"),
        header("X\r\nY", "a"),
        header("X", "a\r\nY: b"),
        header("X", "a\nY: b"),
        header("X", "a\rb"),
        header("X", "a\0"),
        header("host", "b"),
        header("Connection", "close"),
        header("Content-Length", "5"),
        header("Transfer-Encoding", "chunked"),
        header("sec-websocket-key", "x"),
        header("Sec-WebSocket-Extensions", "permessage-deflate"),
        subprotocols(&[""]),
        subprotocols(&["a,b"]),
        subprotocols(&["a\r\nX: y"]),
        subprotocols(&["a", "a"]),
    ] {
        assert!(matches!(result, Err(HandshakeError::Invalid { .. })), "{result:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..300)) {
        let _ = handshake().parse_response(&bytes, &HeadLimits::default());
    }

    #[test]
    fn every_client_request_is_one_request_to_a_server(
        host in "\\PC{0,8}",
        target in "/\\PC{0,8}",
        name in "[ -~]{1,6}",
        value in "\\PC{0,8}",
        subprotocol in "[ -~]{1,6}",
        key in any::<[u8; 16]>(),
    ) {
        let made = ClientHandshake::new(&host, &target, key, &[(&name, &value)], &[&subprotocol]);
        if let Ok(handshake) = made {
            let parsed = parse_request(handshake.request(), &HeadLimits::default());
            let Ok(Head::Complete(request)) = parsed else { panic!("{parsed:?}") };
            prop_assert_eq!(request.target, &target);
            prop_assert_eq!(request.header("Host"), Some(&host[..]));
            prop_assert_eq!(request.head_bytes, handshake.request().len());
            let upgrade = request.upgrade.unwrap();
            prop_assert_eq!(upgrade.subprotocols(), [&subprotocol]);
        }
    }
}
