//! What responses look like, and which are not written.

use playfield_http::{Response, Sending};

fn written(response: &Response, sending: &Sending<'_>) -> String {
    let mut out = Vec::new();
    response.write(&mut out, sending);
    String::from_utf8(out).unwrap()
}

const KEPT: Sending<'static> =
    Sending { head_only: false, keeps_alive: true, is_http_1_0: false, date: None };

#[test]
fn a_response_is_its_status_its_headers_and_its_body() {
    let response = Response::text("hello").with_status(201).with_header("X-Thing", "7");
    let expected = "HTTP/1.1 201 Created\r\nContent-Type: text/plain; charset=utf-8\r\nX-Thing: 7\r\n\
                    Content-Length: 5\r\n\r\nhello";
    assert_eq!(written(&response, &KEPT), expected);
    let head = Sending { head_only: true, ..KEPT };
    assert_eq!(written(&response, &head), expected.strip_suffix("hello").unwrap());
    let closed = Sending { keeps_alive: false, date: Some("today"), ..KEPT };
    assert!(written(&response, &closed).ends_with("Date: today\r\nConnection: close\r\n\r\nhello"));
    let old = Sending { is_http_1_0: true, ..KEPT };
    assert!(written(&response, &old).contains("\r\nConnection: keep-alive\r\n\r\n"));
    assert_eq!(
        (response.status(), response.header("x-thing"), response.body()),
        (201, Some("7"), &b"hello"[..])
    );
    let json = response.with_body("application/json", &b"{}"[..]);
    assert_eq!(json.header("content-type"), Some("application/json"));
}

#[test]
fn a_status_without_a_body_has_none() {
    for status in [204, 304] {
        let text = written(&Response::text("hello").with_status(status), &KEPT);
        assert!(text.ends_with("\r\n\r\n") && !text.contains("Content-Length"), "{text}");
    }
    assert!(written(&Response::new(200), &KEPT).contains("Content-Length: 0\r\n"));
}

#[test]
fn nothing_can_be_smuggled_into_a_response() {
    for (name, value) in [
        ("X", "a\r\nSet-Cookie: b"),
        ("X", "a\nb"),
        ("X", "a\0"),
        ("X\r\nY", "a"),
        ("X:", "a"),
        ("", "a"),
        ("Content-Length", "1"),
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
    ] {
        let response = Response::text("hello").with_header(name, value);
        assert!(response.defect().is_some(), "{name:?}: {value:?}");
        let text = written(&response, &KEPT);
        assert!(text.starts_with("HTTP/1.1 500 ") && !text.contains("hello"), "{text}");
        assert!(!text.contains(value) || value.len() < 2 || value == "chunked", "{text}");
    }
    for status in [0, 100, 101, 199, 600, u16::MAX] {
        assert!(
            Response::new(status).defect().is_some()
                && Response::new(200).with_status(status).defect().is_some()
        );
    }
    let typed = Response::new(200).with_body("text/html\r\nX: y", &b"a"[..]);
    assert!(written(&typed, &KEPT).starts_with("HTTP/1.1 500 "));
}
